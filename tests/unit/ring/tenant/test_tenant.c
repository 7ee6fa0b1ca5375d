/* test_tenant.c - settings of tenants: agreed on entry by entry, alike everywhere; saved, paged, shown. */
#include "ring/tenant/tenant.h"

#include <stdio.h>
#include <string.h>

#include "ring/tenant/codec.h"
#include "ring/tenant/page.h"
#include "tests/lib/test.h"

#define TABLE QF_CLEANUP(table_freep) struct rg_tenant_table *
#define BYTES QF_CLEANUP(qf_strbuf_done) struct qf_strbuf
enum { KEPT = 3 }; /* copies of the ring */

static void table_freep(struct rg_tenant_table **table)
{
    *table = rg_tenant_table_free(*table);
}

static struct rg_tenant_entry of(enum rg_tenant_kind kind, const char *name, uint64_t version)
{
    return (struct rg_tenant_entry){
        .kind = kind, .time_ms = 1000, .name = qf_str_from(name), .version = version
    };
}

static struct rg_tenant_entry with_queries(struct rg_tenant_entry entry, uint64_t queries)
{
    entry.settings.limits.of[QF_LIMIT_QUERIES] = queries;
    return entry;
}

static enum rg_tenant_verdict apply(struct rg_tenant_table *table, uint64_t index,
                                    struct rg_tenant_entry entry)
{
    return rg_tenant_table_apply(table, index, &entry, KEPT);
}

/* Tenants a and b, of versions 5 and 6. */
static struct rg_tenant_table *two(void)
{
    struct rg_tenant_table *table = rg_tenant_table_new();

    CHECK_EQ(apply(table, 5, with_queries(of(RG_TENANT_CREATE, "a", 0), 4)), RG_TENANT_APPLIED);
    CHECK_EQ(apply(table, 6, of(RG_TENANT_CREATE, "b", 0)), RG_TENANT_APPLIED);
    return table;
}

TEST(a_tenant_is_made_once_and_doing_it_again_changes_nothing)
{
    TABLE table = two();
    const struct rg_tenant *a = rg_tenant_table_find(table, QF_STR("a"));

    CHECK_EQ(a->version, 5);
    CHECK_EQ(a->created_ms, 1000);
    CHECK_EQ(apply(table, 7, with_queries(of(RG_TENANT_CREATE, "a", 0), 4)), RG_TENANT_SAME);
    CHECK_EQ(apply(table, 8, with_queries(of(RG_TENANT_CREATE, "a", 0), 5)), RG_TENANT_EXISTS);
    CHECK_EQ(apply(table, 8, of(RG_TENANT_CREATE, ".hidden", 0)), RG_TENANT_BAD);
    CHECK_EQ(a->version, 5);
    CHECK_EQ(rg_tenant_table_version(table), 6);
    CHECK_EQ(rg_tenant_table_count(table), 2);
}

/* Of two that read the same version one writes. */
TEST(a_stale_version_changes_nothing)
{
    TABLE table = two();
    const struct rg_tenant *a = rg_tenant_table_find(table, QF_STR("a"));

    CHECK_EQ(apply(table, 7, with_queries(of(RG_TENANT_PUT, "a", 5), 8)), RG_TENANT_APPLIED);
    CHECK_EQ(apply(table, 8, with_queries(of(RG_TENANT_PUT, "a", 5), 9)), RG_TENANT_STALE);
    CHECK_EQ(a->settings.limits.of[QF_LIMIT_QUERIES], 8);
    CHECK_EQ(a->version, 7);
    CHECK_EQ(apply(table, 9, with_queries(of(RG_TENANT_PUT, "a", 7), 8)), RG_TENANT_SAME);
    CHECK_EQ(a->version, 7);
    CHECK_EQ(apply(table, 10, of(RG_TENANT_PUT, "c", 5)), RG_TENANT_NO_SUCH);
    CHECK_EQ(apply(table, 11, of(RG_TENANT_PUT, "a", 7)), RG_TENANT_APPLIED);
    CHECK_EQ(a->settings.limits.of[QF_LIMIT_QUERIES], 0); /* all of them are what is said */
    CHECK_EQ(a->created_ms, 1000);
}

TEST(copies_are_a_least_that_the_ring_keeps)
{
    TABLE table = two();
    struct rg_tenant_entry copies = of(RG_TENANT_COPIES, "a", 0);

    copies.settings.copies = KEPT + 1;
    CHECK_EQ(apply(table, 7, copies), RG_TENANT_TOO_MANY);
    CHECK_EQ(rg_tenant_table_try(table, &copies, 0), RG_TENANT_NO_RING);
    copies.settings.copies = KEPT;
    CHECK_EQ(apply(table, 7, copies), RG_TENANT_APPLIED);
    CHECK_EQ(rg_tenant_table_copies(table), KEPT);
    CHECK_EQ(rg_tenant_table_find(table, QF_STR("a"))->settings.limits.of[QF_LIMIT_QUERIES], 4);
    copies.settings.copies = 1;
    copies.version = 5;
    CHECK_EQ(apply(table, 8, copies), RG_TENANT_STALE);
    copies.version = 7;
    CHECK_EQ(apply(table, 8, copies), RG_TENANT_APPLIED);
    CHECK_EQ(rg_tenant_table_copies(table), 1);
    copies.name = QF_STR("nobody");
    CHECK_EQ(apply(table, 9, copies), RG_TENANT_NO_SUCH);
    /* What was agreed on before a ring has fewer copies may be said again. */
    copies = of(RG_TENANT_PUT, "a", 8);
    copies.settings.copies = 1;
    copies.settings.level = RG_TENANT_ALL;
    CHECK_EQ(rg_tenant_table_try(table, &copies, 0), RG_TENANT_APPLIED);
}

TEST(there_are_so_many_and_no_more)
{
    TABLE table = rg_tenant_table_new();
    char name[32];

    for (uint64_t i = 0; i < RG_TENANTS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "t%u", (unsigned)i);
        CHECK_EQ(apply(table, i + 1, of(RG_TENANT_CREATE, name, 0)), RG_TENANT_APPLIED);
    }
    CHECK_EQ(apply(table, RG_TENANTS_MAX + 1, of(RG_TENANT_CREATE, "more", 0)), RG_TENANT_FULL);
    CHECK_EQ(rg_tenant_table_number(table, QF_STR("t4000")), 4000);
    CHECK_STR(rg_tenant_table_at(table, 4000)->name, "t4000");
}

/* --- records --- */

static struct rg_tenant_entry everything(void)
{
    struct rg_tenant_entry entry = of(RG_TENANT_PUT, "team-a", 1u << 20);

    entry.settings.copies = 3;
    entry.settings.level = RG_TENANT_ALL;
    for (int i = 0; i < QF_LIMIT__COUNT; i++)
        entry.settings.limits.of[i] = (uint64_t)i + 1;
    return entry;
}

TEST(records_travel)
{
    struct rg_tenant_entry entry = everything(), again;
    BYTES record = QF_STRBUF_INIT, bytes = QF_STRBUF_INIT, encoded = QF_STRBUF_INIT;

    rg_tenant_record_encode(&record, &entry);
    CHECK(record.len < RG_TENANT_RECORD_MAX);
    CHECK_EQ(rg_tenant_record_decode(qf_strbuf_view(&record), &bytes, &again), QF_OK);
    CHECK_EQ(again.kind, RG_TENANT_PUT);
    CHECK_EQ(again.version, 1u << 20);
    CHECK(qf_str_is(again.name, "team-a"));
    CHECK(memcmp(&again.settings, &entry.settings, sizeof(entry.settings)) == 0);
    rg_tenant_entry_encode(&encoded, &entry);
    for (size_t len = 0; len < encoded.len; len++)
        CHECK_EQ(rg_tenant_entry_decode((struct qf_str){ encoded.data, len }, &again), QF_ECORRUPT);
}

/* Whoever skipped a record about a tenant would have other settings than the others. */
TEST(records_of_other_things_are_none_and_newer_ones_are_said_so)
{
    static const char *const newer[] = { "{\"settings\":\"", "{\"settings\":\"\"}",
                                         "{\"settings\":\"!!!!\"}", "{\"settings\":\"fwA=\"}" };
    BYTES bytes = QF_STRBUF_INIT;
    struct rg_tenant_entry entry;

    CHECK_EQ(rg_tenant_record_decode(QF_STR("{\"ring\":\"AA==\"}"), &bytes, &entry), QF_ENOTFOUND);
    CHECK_EQ(rg_tenant_record_decode(QF_STR(""), &bytes, &entry), QF_ENOTFOUND);
    for (size_t i = 0; i < QF_COUNT_OF(newer); i++)
        CHECK_EQ(rg_tenant_record_decode(qf_str_from(newer[i]), &bytes, &entry), QF_EUNSUPPORTED);
}

/* A tenant with a limit that only a newer release has. */
static void put_newer(struct qf_strbuf *buf)
{
    rg_put_text(buf, QF_STR("c"));
    rg_put(buf, 9);
    rg_put(buf, 1);
    rg_put(buf, 1);
    rg_put(buf, 0);
    rg_put(buf, 0);
    rg_put(buf, 2);
    rg_put_text(buf, QF_STR("queries"));
    rg_put(buf, 7);
    rg_put_text(buf, QF_STR("whims"));
    rg_put(buf, 3);
}

TEST(settings_of_a_newer_release_are_refused_in_records_and_passed_over_by_followers)
{
    BYTES bytes = QF_STRBUF_INIT;
    struct rg_tenant tenant;
    struct rg_cursor c;

    put_newer(&bytes);
    c = (struct rg_cursor){ .rest = qf_strbuf_view(&bytes) };
    rg_get_tenant(&c, false, &tenant);
    CHECK(c.bad);
    c = (struct rg_cursor){ .rest = qf_strbuf_view(&bytes) };
    rg_get_tenant(&c, true, &tenant);
    CHECK(!c.bad && !c.rest.len);
    CHECK_EQ(tenant.settings.limits.of[QF_LIMIT_QUERIES], 7);
}

/* --- snapshots and pages --- */

TEST(a_table_comes_back_the_same_and_an_empty_one_saves_nothing)
{
    TABLE table = two();
    TABLE again = rg_tenant_table_new();
    BYTES one = QF_STRBUF_INIT, other = QF_STRBUF_INIT;

    rg_tenant_table_save(&one, again);
    CHECK_EQ(one.len, 0);
    CHECK_EQ(apply(table, 7, of(RG_TENANT_PUT, "a", 5)), RG_TENANT_APPLIED);
    rg_tenant_table_save(&one, table);
    CHECK_EQ(rg_tenant_table_restore(again, qf_strbuf_view(&one)), QF_OK);
    rg_tenant_table_save(&other, again);
    CHECK(qf_str_eq(qf_strbuf_view(&one), qf_strbuf_view(&other)));
    CHECK_EQ(rg_tenant_table_version(again), 7);
    CHECK_EQ(rg_tenant_table_find(again, QF_STR("b"))->version, 6);
    for (size_t len = 1; len < one.len; len++)
        CHECK_EQ(rg_tenant_table_restore(again, (struct qf_str){ one.data, len }), QF_ECORRUPT);
    one.data[0] = 9;
    CHECK_EQ(rg_tenant_table_restore(again, qf_strbuf_view(&one)), QF_EUNSUPPORTED);
    CHECK_EQ(rg_tenant_table_count(again), 2); /* as before */
    CHECK_EQ(rg_tenant_table_restore(again, QF_STR("")), QF_OK);
    CHECK_EQ(rg_tenant_table_count(again), 0);
}

TEST(a_page_has_what_changed_since)
{
    const struct rg_tenant_page said = { .cluster = UINT64_MAX, .version = 6, .confirmed_ms = 40 };
    TABLE table = two();
    TABLE all = rg_tenant_table_new();
    TABLE some = rg_tenant_table_new();
    struct rg_tenant_page page;
    BYTES bytes = QF_STRBUF_INIT;

    rg_tenant_page_encode(&bytes, &said, table, 0);
    CHECK_EQ(rg_tenant_page_decode(qf_strbuf_view(&bytes), all, &page), QF_OK);
    CHECK_EQ(page.cluster, UINT64_MAX);
    CHECK_EQ(page.confirmed_ms, 40);
    CHECK_EQ(rg_tenant_table_count(all), 2);
    for (size_t len = 1; len < bytes.len; len++) {
        TABLE cut = rg_tenant_table_new();

        CHECK_EQ(rg_tenant_page_decode((struct qf_str){ bytes.data, len }, cut, &page),
                 QF_ECORRUPT);
    }
    qf_strbuf_reset(&bytes);
    rg_tenant_page_encode(&bytes, &said, table, 5);
    CHECK_EQ(rg_tenant_page_decode(qf_strbuf_view(&bytes), some, &page), QF_OK);
    CHECK_EQ(rg_tenant_table_count(some), 1);
    CHECK(rg_tenant_table_find(some, QF_STR("b")));
    bytes.data[0] = 2;
    CHECK_EQ(rg_tenant_page_decode(qf_strbuf_view(&bytes), some, &page), QF_EUNSUPPORTED);
}

/* --- what is said of them --- */

TEST(what_is_not_said_is_as_for_all_tenants)
{
    const struct qf_limits others = { .of = { 1, 2, 3, 4, 5, 6, 7, 8 } };
    TABLE table = two();
    struct qf_limits_table *limits = rg_tenant_table_limits(table);
    struct qf_limits a = qf_limits_of(limits, QF_STR("a"), &others);

    CHECK_EQ(a.of[QF_LIMIT_QUERIES], 4);
    CHECK_EQ(a.of[QF_LIMIT_QUEUED], 2);
    CHECK(qf_limits_has(limits, QF_STR("b")));
    CHECK(!qf_limits_has(limits, QF_STR("c")));
    (void)qf_limits_free(limits);
    CHECK_EQ(rg_tenant_level_of(RG_TENANT_ANY), RG_LEVEL_QUORUM);
}

TEST(tenants_are_shown_with_what_they_have)
{
    TABLE table = two();
    struct rg_tenant_entry put = of(RG_TENANT_PUT, "b", 6);
    BYTES text = QF_STRBUF_INIT;

    put.settings.copies = 2;
    put.settings.level = RG_TENANT_ONE;
    put.settings.limits.of[QF_LIMIT_RETENTION] = 90 * INT64_C(86400000);
    put.settings.limits.of[QF_LIMIT_HA_PAIRS] = QF_SWITCH_ON;
    CHECK_EQ(apply(table, 9, put), RG_TENANT_APPLIED);
    rg_tenant_table_show(&text, table, QF_STR(""), 0);
    CHECK_STR(qf_strbuf_cstr(&text),
              "{\"tenants\":[{\"tenant\":\"a\",\"version\":5,\"created\":1000,\"updated\":1000,"
              "\"limits\":{\"queries\":4}},{\"tenant\":\"b\",\"version\":9,\"created\":1000,"
              "\"updated\":1000,\"replication_factor\":2,\"level\":\"one\",\"limits\":{"
              "\"retention\":\"90d\",\"ha-pairs\":\"on\"}}]}");
    qf_strbuf_reset(&text);
    rg_tenant_table_show(&text, table, QF_STR("a"), 3);
    CHECK(strstr(qf_strbuf_cstr(&text), "{\"tenants\":[{\"tenant\":\"b\""));
    CHECK(strstr(qf_strbuf_cstr(&text), "\"copies\":3"));
    qf_strbuf_reset(&text);
    rg_tenant_table_show(&text, table, QF_STR("nobody"), 3);
    CHECK_STR(qf_strbuf_cstr(&text), "{\"tenants\":[]}");
}

TEST(each_verdict_has_its_error_and_words)
{
    CHECK_EQ(rg_tenant_verdict_rc(RG_TENANT_SAME), QF_OK);
    CHECK_EQ(rg_tenant_verdict_rc(RG_TENANT_STALE), QF_ECONFLICT);
    CHECK_EQ(rg_tenant_verdict_rc(RG_TENANT_EXISTS), QF_EEXIST);
    for (int verdict = 0; verdict < RG_TENANT_VERDICT__COUNT; verdict++) {
        CHECK(rg_tenant_verdict_rc((enum rg_tenant_verdict)verdict) != QF_EINTERNAL);
        CHECK(rg_tenant_verdict_text((enum rg_tenant_verdict)verdict));
    }
}
