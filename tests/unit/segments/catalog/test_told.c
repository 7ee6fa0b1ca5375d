/* test_told.c - segments that somebody told of count until a listing that began later has ended. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "segments/catalog/catalog.h"
#include "segments/catalog/changes.h"
#include "segments/parquet/segment_name.h"
#include "tests/lib/segments/memory_store.h"
#include "tests/lib/test.h"

#define DAY INT64_C(86400000)
#define T0 INT64_C(1769817600000) /* 2026-01-31T00:00:00Z */

struct fixture {
    struct memory_store *memory;
    struct sg_store *store;
    struct sg_catalog *catalog;
    const char *late; /* told in the middle of the next listing */
    struct qf_err err;
};

static struct fixture fixture_new(int64_t interval_ms)
{
    struct fixture f = { .memory = memory_store_new() };

    f.store = memory_store_base(f.memory);
    f.catalog = sg_catalog_new(&(struct sg_catalog_options){
        .store = f.store, .refresh_interval_ms = interval_ms, .summary_time_ms = -1 });
    return f;
}

static void fixture_done(struct fixture *f)
{
    f->catalog = sg_catalog_free(f->catalog);
    f->store = sg_store_free(f->store);
}

static char *name_of(const char *tenant, int64_t ts, uint64_t generation)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;

    sg_segment_name_print(&buf, &(struct sg_segment_name){ .tenant = qf_str_from(tenant),
                                                           .min_ts = ts,
                                                           .max_ts = ts,
                                                           .shard_count = 1,
                                                           .generation = generation,
                                                           .id = generation });
    return qf_strbuf_take(&buf);
}

static void tell(struct fixture *f, const char *name)
{
    struct sg_catalog_file file = { qf_str_from(name), QF_STR("tag"), 7 };

    CHECK_OK(sg_catalog_tell(f->catalog, &file, 1, &f->err), &f->err);
}

static void refresh(struct fixture *f, enum sg_catalog_refresh_mode mode)
{
    CHECK_OK(sg_catalog_refresh(f->catalog, mode, NULL, &f->err), &f->err);
}

/* How many segments of the tenant a query at @ts gets. */
static size_t count(struct fixture *f, const char *tenant, int64_t ts)
{
    struct sg_catalog_told *told = sg_catalog_told(f->catalog);
    QF_CLEANUP(sg_catalog_snapshot_dropp)
    struct sg_catalog_snapshot *snapshot = sg_catalog_snapshot(f->catalog);
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct sg_catalog_query query = {
        .tenant = qf_str_from(tenant), .min_ts = ts, .max_ts = ts, .told = told
    };
    struct sg_catalog_answer answer;

    CHECK_OK(sg_catalog_lookup(snapshot, &query, arena, &answer, &f->err), &f->err);
    (void)sg_catalog_told_drop(told);
    return answer.segment_count;
}

/* Before any listing shows it; by tenant and time as any other; and with what was told of it. */
TEST(a_told_segment_counts_at_once)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new(60000);
    QF_CLEANUP(qf_freep) char *name = name_of("a", T0, 5);
    struct sg_catalog_told *told;
    QF_CLEANUP(sg_catalog_snapshot_dropp) struct sg_catalog_snapshot *snapshot = NULL;
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct sg_catalog_query query = { .tenant = QF_STR("a"), .min_ts = T0, .max_ts = T0 };
    struct sg_catalog_answer answer;

    refresh(&f, SG_CATALOG_REFRESH_NOW);
    CHECK_EQ(count(&f, "a", T0), 0);
    tell(&f, name);
    tell(&f, name); /* twice is once */
    CHECK_EQ(count(&f, "a", T0), 1);
    CHECK_EQ(count(&f, "a", T0 + 1), 0);
    CHECK_EQ(count(&f, "b", T0), 0);
    told = sg_catalog_told(f.catalog);
    query.told = told;
    snapshot = sg_catalog_snapshot(f.catalog);
    CHECK_OK(sg_catalog_lookup(snapshot, &query, arena, &answer, &f.err), &f.err);
    CHECK_EQ(answer.groups[0].segments[0].size, 7);
    CHECK_EQ(answer.groups[0].segments[0].generation, 5);
    CHECK(qf_str_is(answer.groups[0].segments[0].etag, "tag"));
    (void)sg_catalog_told_drop(told);
}

/* Told and listed it counts once; a listing that does not show it knows better. */
TEST(a_later_listing_knows_better)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new(60000);
    QF_CLEANUP(qf_freep) char *there = name_of("a", T0, 5), *gone = name_of("a", T0, 6);
    struct sg_catalog_told *told;

    memory_store_put(f.memory, there, QF_STR("x"));
    refresh(&f, SG_CATALOG_REFRESH_NOW);
    tell(&f, there);
    tell(&f, gone);
    CHECK_EQ(count(&f, "a", T0), 2);
    refresh(&f, SG_CATALOG_REFRESH_NOW);
    CHECK_EQ(count(&f, "a", T0), 1);
    told = sg_catalog_told(f.catalog);
    CHECK(told == NULL);
}

static void tell_late(void *ctx, struct qf_str name)
{
    struct fixture *f = ctx;

    (void)name;
    if (f->late)
        tell(f, f->late);
    f->late = NULL;
}

/* A listing that had begun may have passed by: what is told meanwhile stays. */
TEST(what_is_told_during_a_listing_outlives_it)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new(60000);
    QF_CLEANUP(qf_freep) char *old = name_of("a", T0, 5), *late = name_of("a", T0, 6);

    memory_store_put(f.memory, old, QF_STR("x"));
    refresh(&f, SG_CATALOG_REFRESH_NOW);
    f.late = late;
    memory_store_hook(f.memory, tell_late, &f);
    refresh(&f, SG_CATALOG_REFRESH_NOW);
    CHECK(!f.late);
    CHECK_EQ(count(&f, "a", T0), 2);
    refresh(&f, SG_CATALOG_REFRESH_NOW);
    CHECK_EQ(count(&f, "a", T0), 1);
}

/* In a bucket that is listed bit by bit a told segment waits for a listing of its own folder. */
TEST(a_told_segment_waits_for_a_listing_of_its_folder)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new(1);
    QF_CLEANUP(qf_freep) char *name = name_of("b", T0 - 500 * DAY, 77);
    QF_CLEANUP(qf_freep) char *other = name_of("a", T0 - 500 * DAY, 78);
    struct sg_changes_note note = { 0 };

    for (int i = 0; i < 4000; i++) {
        QF_CLEANUP(qf_freep)
        char *one = name_of(i % 2 ? "a" : "b", T0 - i % 1000 * DAY, (uint64_t)i + 100);

        memory_store_put(f.memory, one, QF_STR("x"));
    }
    refresh(&f, SG_CATALOG_REFRESH_NOW);
    CHECK_EQ(count(&f, "b", T0 - 500 * DAY), 4);
    memory_store_slow(f.memory, 3000); /* a page of the round is all that there is time for */
    tell(&f, name);
    memory_store_put(f.memory, other, QF_STR("x"));
    sg_changes_note_add(&note, qf_str_from(other));
    CHECK_OK(sg_changes_note_put(&note, f.store, NULL, &f.err), &f.err);
    refresh(&f, SG_CATALOG_REFRESH_TIMER);
    CHECK_EQ(count(&f, "a", T0 - 500 * DAY), 1); /* noted, and listed */
    CHECK_EQ(count(&f, "b", T0 - 500 * DAY), 5); /* told */
    sg_changes_note_add(&note, qf_str_from(name));
    CHECK_OK(sg_changes_note_put(&note, f.store, NULL, &f.err), &f.err);
    for (int i = 0; i < 3; i++)
        refresh(&f, SG_CATALOG_REFRESH_TIMER); /* noted, listed, and not there any more */
    CHECK_EQ(count(&f, "b", T0 - 500 * DAY), 4);
}

/* Who tells of something else than a segment is not believed at all. */
TEST(what_is_not_a_segment_cannot_be_told)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new(60000);
    QF_CLEANUP(qf_freep) char *name = name_of("a", T0, 5);
    struct sg_catalog_file files[] = { { qf_str_from(name), QF_STR(""), 1 },
                                       { QF_STR("tenant=a/readme.txt"), QF_STR(""), 1 } };
    struct sg_catalog_told *told;

    refresh(&f, SG_CATALOG_REFRESH_NOW);
    CHECK_EQ(sg_catalog_tell(f.catalog, files, 2, &f.err), QF_EINVAL);
    told = sg_catalog_told(f.catalog);
    CHECK(told == NULL);
}

/* There is a bound to what can be told. */
TEST(too_much_cannot_be_told)
{
    enum { MANY = SG_CATALOG_TOLD_MAX + 1 };
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new(60000);
    QF_CLEANUP(qf_freep) char *name = name_of("a", T0, 5);
    QF_CLEANUP(qf_freep) struct sg_catalog_file *files = qf_xcalloc(MANY, sizeof(*files));

    for (size_t i = 0; i < MANY; i++)
        files[i] = (struct sg_catalog_file){ qf_str_from(name), QF_STR(""), 1 };
    CHECK_EQ(sg_catalog_tell(f.catalog, files, MANY, &f.err), QF_ELIMIT);
}
