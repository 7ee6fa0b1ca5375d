/* test_tenants.c - who asks for settings of tenants gets them once they are sure, who waits gets later ones. */
#include "ring/coord/tenants.h"

#include "base/sys/clock.h"
#include "tests/lib/test.h"

#define TENANTS QF_CLEANUP(tenants_freep) struct rg_tenants *
enum { CLUSTER = 77 };

static void tenants_freep(struct rg_tenants **tenants)
{
    *tenants = rg_tenants_free(*tenants);
}

static void add(struct rg_tenants *tenants, uint64_t index, const char *name,
                enum rg_tenant_level level)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;
    const struct rg_tenant_entry entry = { .kind = RG_TENANT_CREATE,
                                           .name = qf_str_from(name),
                                           .settings.level = level };

    rg_tenant_record_encode(&record, &entry);
    CHECK_EQ(rg_tenants_apply(tenants, index, qf_strbuf_view(&record), 3), QF_OK);
}

/* How many tenants @stream was answered with; -1: it was not answered. Lets go of @stream. */
static int count_of(struct qh_stream *stream)
{
    struct rg_tenant_table *table = rg_tenant_table_new();
    struct rg_tenant_page page;
    char bytes[4096];
    ssize_t len;
    int count = -1;

    if (qh_stream_begun(stream)) {
        len = qh_stream_take(stream, bytes, sizeof(bytes));
        CHECK(len > 0);
        CHECK_EQ(rg_tenant_page_decode((struct qf_str){ bytes, (size_t)len }, table, &page), QF_OK);
        CHECK_EQ(page.cluster, CLUSTER);
        count = (int)rg_tenant_table_count(table);
    }
    (void)rg_tenant_table_free(table);
    (void)qh_stream_drop(stream);
    return count;
}

TEST(nothing_is_said_before_a_leader_said_how_far_settings_are)
{
    TENANTS tenants = rg_tenants_new();
    struct qh_stream *early = qh_stream_new(1 << 10), *late = qh_stream_new(1 << 10);

    add(tenants, 5, "a", RG_TENANT_ONE);
    CHECK_EQ(rg_tenants_wait(tenants, early, 0, 0, 0), QF_EUNAVAILABLE);
    CHECK_EQ(rg_tenants_age_ms(tenants, 100), -1);
    rg_tenants_confirm(tenants, CLUSTER, 6, 100); /* this node lacks something */
    CHECK_EQ(rg_tenants_age_ms(tenants, 100), -1);
    rg_tenants_confirm(tenants, CLUSTER, 5, 100);
    CHECK_EQ(rg_tenants_age_ms(tenants, 350), 250);
    rg_tenants_confirm(tenants, CLUSTER, 6, 400);
    CHECK_EQ(rg_tenants_age_ms(tenants, 450), 350);
    CHECK_EQ(rg_tenants_wait(tenants, late, 0, 0, 0), QF_OK);
    CHECK_EQ(count_of(early), -1);
    CHECK_EQ(count_of(late), 1);
}

TEST(who_waits_is_answered_by_the_next_change_or_its_time)
{
    TENANTS tenants = rg_tenants_new();
    struct qh_stream *change = qh_stream_new(1 << 10), *time = qh_stream_new(1 << 10);
    int64_t now_ms = qf_clock_mono_ms(), due_ms = now_ms + 1000000;

    add(tenants, 5, "a", RG_TENANT_ONE);
    rg_tenants_confirm(tenants, CLUSTER, 5, now_ms);
    CHECK_EQ(rg_tenants_wait(tenants, change, CLUSTER, 5, due_ms), QF_OK);
    CHECK(!qh_stream_begun(change));
    add(tenants, 9, "b", RG_TENANT_ALL);
    CHECK_EQ(rg_tenants_wait(tenants, time, CLUSTER, 9, due_ms), QF_OK);
    rg_tenants_tick(tenants, due_ms - 1, false);
    CHECK(!qh_stream_begun(time));
    rg_tenants_tick(tenants, due_ms, false);
    CHECK_EQ(count_of(change), 1);
    CHECK_EQ(count_of(time), 0);
}

/* Versions of another cluster mean nothing here. */
TEST(who_followed_another_cluster_gets_all)
{
    TENANTS tenants = rg_tenants_new();
    struct qh_stream *stream = qh_stream_new(1 << 10);

    add(tenants, 5, "a", RG_TENANT_ONE);
    rg_tenants_confirm(tenants, CLUSTER, 5, 1);
    CHECK_EQ(rg_tenants_wait(tenants, stream, CLUSTER + 1, 500, INT64_MAX), QF_OK);
    CHECK_EQ(count_of(stream), 1);
}

TEST(documents_have_the_level_of_their_tenant)
{
    TENANTS tenants = rg_tenants_new();

    add(tenants, 5, "a", RG_TENANT_ONE);
    add(tenants, 6, "b", RG_TENANT_ALL);
    add(tenants, 7, "c", RG_TENANT_ANY);
    CHECK_EQ(rg_tenants_level(tenants, QF_STR("a")), RG_LEVEL_ONE);
    CHECK_EQ(rg_tenants_level(tenants, QF_STR("b")), RG_LEVEL_ALL);
    CHECK_EQ(rg_tenants_level(tenants, QF_STR("c")), RG_LEVEL_QUORUM);
    CHECK_EQ(rg_tenants_level(tenants, QF_STR("nobody")), RG_LEVEL_QUORUM);
}

TEST(an_asker_hears_what_came_of_its_entry)
{
    TENANTS tenants = rg_tenants_new();
    struct qn_answer made = { .text = QF_STRBUF_INIT }, again = { .text = QF_STRBUF_INIT };

    add(tenants, 5, "a", RG_TENANT_ONE);
    add(tenants, 6, "a", RG_TENANT_ALL);
    CHECK(rg_tenants_ended(tenants, 5, 0, &made));
    CHECK(strstr(qf_strbuf_cstr(&made.text), "\"tenant\":\"a\",\"version\":5"));
    CHECK(rg_tenants_ended(tenants, 6, 0, &again));
    CHECK_EQ(again.err.rc, QF_EEXIST);
    CHECK(!rg_tenants_ended(tenants, 7, 0, &again));
    qf_strbuf_done(&made.text);
    qf_strbuf_done(&again.text);
}
