/* test_remove.c - whole segments of a time range go, and nothing else does. */
#include "segments/write/remove.h"

#include <stdio.h>
#include <string.h>

#include "base/sys/clock.h"
#include "segments/annex/annex.h"
#include "segments/catalog/changes.h"
#include "tests/lib/segments/memory_store.h"
#include "tests/lib/test.h"

#define DAY INT64_C(86400000)
#define HOUR INT64_C(3600000)

struct fixture {
    struct memory_store *memory;
    struct sg_store *store;
    struct qf_err err;
    struct sg_remove_result result;
};

static struct fixture fixture_new(void)
{
    struct fixture f = { .memory = memory_store_new() };

    f.store = memory_store_base(f.memory);
    return f;
}

static void print_name(char *out, size_t size, const char *tenant, int64_t min_ts, int64_t max_ts)
{
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct sg_segment_name name = { .tenant = qf_str_from(tenant),
                                    .min_ts = min_ts,
                                    .max_ts = max_ts,
                                    .shard_count = 1,
                                    .generation = 1,
                                    .id = (uint64_t)min_ts };

    sg_segment_name_print(&text, &name);
    (void)snprintf(out, size, "%s", qf_strbuf_cstr(&text));
    qf_strbuf_done(&text);
}

static void add(struct fixture *f, const char *tenant, int64_t min_ts, int64_t max_ts)
{
    char name[200];

    print_name(name, sizeof(name), tenant, min_ts, max_ts);
    memory_store_put(f->memory, name, QF_STR("0123456789"));
}

static bool has(struct fixture *f, const char *tenant, int64_t min_ts, int64_t max_ts)
{
    struct sg_store_info info;
    char name[200];

    print_name(name, sizeof(name), tenant, min_ts, max_ts);
    return sg_store_stat(f->store, qf_str_from(name), NULL, &info, NULL) == QF_OK;
}

static struct sg_remove_options options(struct fixture *f, int64_t min_ts, int64_t max_ts)
{
    return (struct sg_remove_options){ .store = f->store,
                                       .tenant = QF_STR("t"),
                                       .min_ts = min_ts,
                                       .max_ts = max_ts,
                                       .per_second = 100000 };
}

struct notes {
    unsigned count;
};

static bool count_note(void *ctx, const struct sg_store_object *object)
{
    (void)object;
    ((struct notes *)ctx)->count++;
    return true;
}

static unsigned notes(struct fixture *f)
{
    struct notes notes = { 0 };

    CHECK_OK(sg_store_list(f->store, QF_STR(SG_CHANGES_PREFIX), QF_STR(""), NULL, count_note,
                           &notes, &f->err),
             &f->err);
    return notes.count;
}

TEST(whole_segments_go_and_those_that_are_cut_stay)
{
    struct fixture f = fixture_new();
    struct sg_remove_options o = options(&f, 2 * DAY, 4 * DAY - 1);

    add(&f, "t", DAY, 2 * DAY - 1);         /* before */
    add(&f, "t", 2 * DAY - HOUR, 2 * DAY);  /* cut at its end by one sample */
    add(&f, "t", 2 * DAY, 3 * DAY - 1);     /* goes */
    add(&f, "t", 3 * DAY, 4 * DAY - 1);     /* goes */
    add(&f, "t", 4 * DAY - HOUR, 4 * DAY);  /* cut */
    add(&f, "t", 4 * DAY, 5 * DAY);         /* behind */
    add(&f, "other", 2 * DAY, 3 * DAY - 1); /* of somebody else */
    add(&f, "t2", 2 * DAY, 3 * DAY - 1);
    memory_store_put(f.memory, "tenant=t/date=1970-01-03/readme.txt", QF_STR("x"));
    o.dry_run = true;
    CHECK_OK(sg_remove(&o, &f.result, &f.err), &f.err);
    CHECK_EQ(f.result.gone.segments, 2);
    CHECK(has(&f, "t", 2 * DAY, 3 * DAY - 1));
    CHECK_EQ(notes(&f), 0);
    o.dry_run = false;
    CHECK_OK(sg_remove(&o, &f.result, &f.err), &f.err);
    CHECK_EQ(f.result.gone.segments, 2);
    CHECK_EQ(f.result.gone.bytes, 20);
    CHECK_EQ(f.result.gone.min_ts, 2 * DAY);
    CHECK_EQ(f.result.gone.max_ts, 4 * DAY - 1);
    CHECK_EQ(f.result.cut.segments, 2);
    CHECK_EQ(f.result.cut.min_ts, 2 * DAY - HOUR);
    CHECK_EQ(f.result.cut.max_ts, 4 * DAY);
    CHECK(has(&f, "t", DAY, 2 * DAY - 1));
    CHECK(has(&f, "t", 2 * DAY - HOUR, 2 * DAY));
    CHECK(!has(&f, "t", 2 * DAY, 3 * DAY - 1));
    CHECK(!has(&f, "t", 3 * DAY, 4 * DAY - 1));
    CHECK(has(&f, "t", 4 * DAY - HOUR, 4 * DAY));
    CHECK(has(&f, "t", 4 * DAY, 5 * DAY));
    CHECK(has(&f, "other", 2 * DAY, 3 * DAY - 1));
    CHECK(has(&f, "t2", 2 * DAY, 3 * DAY - 1));
    CHECK_EQ(notes(&f), 1);
    CHECK_OK(sg_remove(&o, &f.result, &f.err), &f.err); /* again: nothing to do, nothing to tell */
    CHECK_EQ(f.result.gone.segments, 0);
    CHECK_EQ(notes(&f), 1);
    (void)sg_store_free(f.store);
}

TEST(more_than_a_page_goes_and_the_listing_ends_with_the_range)
{
    struct fixture f = fixture_new();
    struct sg_remove_options o = options(&f, INT64_MIN, 3 * DAY);
    unsigned listed;

    for (int i = 0; i < 2500; i++)
        add(&f, "t", DAY + i * 1000, DAY + i * 1000 + 999);
    for (int i = 0; i < 2500; i++)
        add(&f, "t", 10 * DAY + i * 1000, 10 * DAY + i * 1000 + 999);
    listed = memory_store_counts(f.memory).objects_listed;
    CHECK_OK(sg_remove(&o, &f.result, &f.err), &f.err);
    CHECK_EQ(f.result.gone.segments, 2500);
    CHECK(memory_store_counts(f.memory).objects_listed - listed < 2600);
    CHECK(has(&f, "t", 10 * DAY, 10 * DAY + 999));
    CHECK(!has(&f, "t", DAY + 2499 * 1000, DAY + 2499 * 1000 + 999));
    (void)sg_store_free(f.store);
}

TEST(what_was_deleted_before_a_failure_is_told)
{
    struct fixture f = fixture_new();
    struct sg_remove_options o = options(&f, 0, 3 * DAY);

    add(&f, "t", DAY, DAY + 1);
    memory_store_fail_removals(f.memory, QF_EIO);
    CHECK_EQ(sg_remove(&o, &f.result, &f.err), QF_EIO);
    CHECK(has(&f, "t", DAY, DAY + 1));
    CHECK_EQ(notes(&f), 1); /* it may have happened */
    memory_store_fail_removals(f.memory, QF_OK);
    CHECK_OK(sg_remove(&o, &f.result, &f.err), &f.err);
    CHECK(!has(&f, "t", DAY, DAY + 1));
    memory_store_fail(f.memory, QF_EIO);
    CHECK_EQ(sg_remove(&o, &f.result, &f.err), QF_EIO);
    (void)sg_store_free(f.store);
}

TEST(a_rate_is_kept_and_a_cancel_heard)
{
    struct fixture f = fixture_new();
    struct sg_remove_options o = options(&f, 0, 3 * DAY);
    atomic_bool cancel = false;
    int64_t started = qf_clock_mono_ms();

    for (int i = 0; i < 11; i++)
        add(&f, "t", DAY + i * 1000, DAY + i * 1000 + 999);
    o.per_second = 50;
    o.cancel = &cancel;
    CHECK_OK(sg_remove(&o, &f.result, &f.err), &f.err);
    CHECK(qf_clock_mono_ms() - started >= 200);
    add(&f, "t", DAY, DAY + 1);
    cancel = true;
    CHECK_EQ(sg_remove(&o, &f.result, &f.err), QF_ECANCELED);
    CHECK(has(&f, "t", DAY, DAY + 1));
    (void)sg_store_free(f.store);
}

static bool only_two(void *ctx, const struct sg_store_object *object,
                     const struct sg_segment_name *name, bool cut)
{
    (void)object;
    (void)name;
    (void)cut;
    return ++*(int *)ctx <= 2;
}

TEST(who_is_told_of_segments_may_end_it)
{
    struct fixture f = fixture_new();
    struct sg_remove_options o = options(&f, 0, 3 * DAY);
    int told = 0;

    for (int i = 0; i < 5; i++)
        add(&f, "t", DAY + i * 1000, DAY + i * 1000 + 999);
    o.on_segment = only_two;
    o.ctx = &told;
    CHECK_OK(sg_remove(&o, &f.result, &f.err), &f.err);
    CHECK(f.result.ended);
    CHECK_EQ(f.result.gone.segments, 2);
    CHECK(!has(&f, "t", DAY + 1000, DAY + 1999));
    CHECK(has(&f, "t", DAY + 2000, DAY + 2999));
    (void)sg_store_free(f.store);
}

TEST(times_before_the_epoch_and_beyond_dates_are_looked_at)
{
    struct fixture f = fixture_new();
    struct sg_remove_options o = options(&f, -10 * DAY, -DAY);

    add(&f, "t", -3 * DAY, -2 * DAY);
    add(&f, "t", DAY, 2 * DAY);
    CHECK_OK(sg_remove(&o, &f.result, &f.err), &f.err);
    CHECK_EQ(f.result.gone.segments, 1);
    o.min_ts = INT64_MIN;
    o.max_ts = INT64_MAX;
    CHECK_OK(sg_remove(&o, &f.result, &f.err), &f.err);
    CHECK_EQ(f.result.gone.segments, 1);
    CHECK(!has(&f, "t", DAY, 2 * DAY));
    o.tenant = QF_STR("../x");
    CHECK_EQ(sg_remove(&o, &f.result, &f.err), QF_EINVAL);
    (void)sg_store_free(f.store);
}

static bool collect_tenant(void *ctx, struct qf_str tenant)
{
    qf_strbuf_str(ctx, tenant);
    qf_strbuf_putc(ctx, ' ');
    return true;
}

TEST(tenants_are_folders_of_the_store)
{
    struct fixture f = fixture_new();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf got = QF_STRBUF_INIT;

    add(&f, "b", 0, 1);
    add(&f, "a", 0, 1);
    memory_store_put(f.memory, "_changes/1", QF_STR(""));
    memory_store_put(f.memory, "else/1", QF_STR(""));
    CHECK_OK(sg_remove_tenants(f.store, NULL, collect_tenant, &got, &f.err), &f.err);
    CHECK_STR(qf_strbuf_cstr(&got), "a b ");
    (void)sg_store_free(f.store);
}

static void print_annex(char *out, size_t size, const char *tenant, enum sg_annex_kind kind,
                        int64_t min_ts, int64_t max_ts)
{
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct sg_annex_name name = { qf_str_from(tenant), kind, min_ts, max_ts, 7 };

    sg_annex_name_print(&text, &name);
    (void)snprintf(out, size, "%s", qf_strbuf_cstr(&text));
    qf_strbuf_done(&text);
}

static void add_annex(struct fixture *f, const char *tenant, enum sg_annex_kind kind,
                      int64_t min_ts, int64_t max_ts)
{
    char name[200];

    print_annex(name, sizeof(name), tenant, kind, min_ts, max_ts);
    memory_store_put(f->memory, name, QF_STR("0123456789"));
}

static bool has_annex(struct fixture *f, const char *tenant, enum sg_annex_kind kind,
                      int64_t min_ts, int64_t max_ts)
{
    struct sg_store_info info;
    char name[200];

    print_annex(name, sizeof(name), tenant, kind, min_ts, max_ts);
    return sg_store_stat(f->store, qf_str_from(name), NULL, &info, NULL) == QF_OK;
}

/* Metadata is told once a day: a retention of hours must not take away what is still told. */
TEST(annexes_go_like_segments_and_metadata_later_with_a_retention)
{
    for (int retention = 0; retention < 2; retention++) {
        struct fixture f = fixture_new();
        struct sg_remove_options o = options(&f, INT64_MIN, 10 * DAY - 1);

        o.retention = retention;
        add_annex(&f, "t", SG_ANNEX_EXEMPLARS, 9 * DAY, 10 * DAY - 1);
        add_annex(&f, "t", SG_ANNEX_EXEMPLARS, 10 * DAY, 10 * DAY + 5); /* behind */
        add_annex(&f, "t", SG_ANNEX_METADATA, 7 * DAY, 8 * DAY - 1);
        add_annex(&f, "t", SG_ANNEX_METADATA, 9 * DAY, 9 * DAY + 5);
        add_annex(&f, "t", SG_ANNEX_METADATA, 9 * DAY, 11 * DAY); /* cut */
        add_annex(&f, "u", SG_ANNEX_EXEMPLARS, 9 * DAY, 10 * DAY - 1);
        CHECK_OK(sg_remove(&o, &f.result, &f.err), &f.err);
        CHECK_EQ(f.result.gone.annexes, retention ? 2 : 3);
        CHECK_EQ(f.result.gone.segments, 0);
        CHECK(!has_annex(&f, "t", SG_ANNEX_EXEMPLARS, 9 * DAY, 10 * DAY - 1));
        CHECK(has_annex(&f, "t", SG_ANNEX_EXEMPLARS, 10 * DAY, 10 * DAY + 5));
        CHECK(!has_annex(&f, "t", SG_ANNEX_METADATA, 7 * DAY, 8 * DAY - 1));
        CHECK_EQ(has_annex(&f, "t", SG_ANNEX_METADATA, 9 * DAY, 9 * DAY + 5), retention);
        CHECK(has_annex(&f, "t", SG_ANNEX_METADATA, 9 * DAY, 11 * DAY));
        CHECK(has_annex(&f, "u", SG_ANNEX_EXEMPLARS, 9 * DAY, 10 * DAY - 1));
        CHECK_EQ(notes(&f), 0); /* readers find these by listing */
        (void)sg_store_free(f.store);
    }
}
