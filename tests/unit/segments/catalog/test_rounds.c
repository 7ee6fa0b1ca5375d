/* test_rounds.c - a bucket that is slow to list shows what writers noted within the interval, and
 * everything else in time. */
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "segments/catalog/catalog.h"
#include "segments/catalog/changes.h"
#include "segments/parquet/segment_name.h"
#include "tests/lib/test.h"
#include "tests/lib/segments/memory_store.h"

#define HOUR INT64_C(3600000)
#define DAY (24 * HOUR)
#define T0 INT64_C(1769817600000) /* 2026-01-31T00:00:00Z */

struct fixture {
    struct memory_store *memory;
    struct sg_store *store;
    struct sg_catalog *catalog;
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

static void put(struct fixture *f, const char *tenant, int64_t ts, uint64_t generation)
{
    QF_CLEANUP(qf_freep) char *name = name_of(tenant, ts, generation);

    memory_store_put(f->memory, name, QF_STR("x"));
}

/* As a writer does it: the segments first, then the note. */
static void put_noted(struct fixture *f, const char *tenant, int64_t ts, uint64_t generation)
{
    QF_CLEANUP(qf_freep) char *name = name_of(tenant, ts, generation);
    struct sg_changes_note note = { 0 };

    memory_store_put(f->memory, name, QF_STR("x"));
    sg_changes_note_add(&note, qf_str_from(name));
    CHECK_OK(sg_changes_note_put(&note, f->store, NULL, &f->err), &f->err);
}

static size_t count(struct fixture *f, const char *tenant, int64_t ts)
{
    QF_CLEANUP(sg_catalog_snapshot_dropp)
    struct sg_catalog_snapshot *snapshot = sg_catalog_snapshot(f->catalog);
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct sg_catalog_query query = { .tenant = qf_str_from(tenant), .min_ts = ts, .max_ts = ts };
    struct sg_catalog_answer answer;

    CHECK(snapshot != NULL);
    CHECK_OK(sg_catalog_lookup(snapshot, &query, arena, &answer, &f->err), &f->err);
    return answer.segment_count;
}

#define SEGMENTS 12000 /* twelve pages of a listing */

/* A thousand days of two tenants. */
static void fill(struct fixture *f)
{
    for (int i = 0; i < SEGMENTS; i++)
        put(f, i % 2 ? "a" : "b", T0 - i % 1000 * DAY, (uint64_t)i);
    CHECK_OK(sg_catalog_refresh(f->catalog, SG_CATALOG_REFRESH_NOW, NULL, &f->err), &f->err);
    CHECK_EQ(sg_catalog_stats(f->catalog).segments, SEGMENTS);
}

static void refresh_due(struct fixture *f)
{
    int64_t wait = sg_catalog_due_ms(f->catalog) - qf_clock_mono_ms();

    if (wait > 0)
        (void)usleep((unsigned)wait * 1000 + 1000);
    CHECK_OK(sg_catalog_refresh(f->catalog, SG_CATALOG_REFRESH_TIMER, NULL, &f->err), &f->err);
}

struct refresher {
    struct fixture *f;
    atomic_bool stop;
    qf_rc rc;
};

/* What the API does. */
static void keep_refreshing(void *arg)
{
    struct refresher *r = arg;

    while (!atomic_load(&r->stop)) {
        if (qf_clock_mono_ms() >= sg_catalog_due_ms(r->f->catalog))
            r->rc |= sg_catalog_refresh(r->f->catalog, SG_CATALOG_REFRESH_TIMER, NULL, NULL);
        (void)usleep(2000);
    }
}

/* Old days, new days, a new tenant: each within the interval, while listing everything takes
 * longer (12 pages of 80 ms against 500 ms). */
TEST(a_noted_segment_shows_within_the_interval_however_slow_the_bucket)
{
    enum { INTERVAL_MS = 500, SLOW_US = 80000 };
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new(INTERVAL_MS);
    struct refresher r = { .f = &f };
    struct qf_thread *thread;
    static const struct {
        const char *tenant;
        int64_t ts;
    } puts[] = { { "a", T0 - 999 * DAY + 1 },
                 { "b", T0 - 500 * DAY + 1 },
                 { "a", T0 - 7 * DAY + 1 },
                 { "b", T0 + DAY },
                 { "new", T0 - 2000 * DAY } };

    fill(&f);
    memory_store_slow(f.memory, SLOW_US);
    thread = qf_thread_start("refresher", keep_refreshing, &r);
    for (size_t i = 0; i < QF_COUNT_OF(puts); i++) {
        int64_t start, took;

        (void)usleep(70000); /* at another point of the interval each time */
        CHECK_EQ(count(&f, puts[i].tenant, puts[i].ts), 0);
        put_noted(&f, puts[i].tenant, puts[i].ts, 5000 + i);
        start = qf_clock_mono_ms();
        while (!count(&f, puts[i].tenant, puts[i].ts) && qf_clock_mono_ms() - start < 5000)
            (void)usleep(1000);
        took = qf_clock_mono_ms() - start;
        /* A busy machine is given five; a round takes twelve intervals. */
        CHECK_MSG(took <= 5 * INTERVAL_MS, "segment %zu showed after %lld ms", i, (long long)took);
    }
    atomic_store(&r.stop, true);
    (void)qf_thread_join(thread);
    CHECK_EQ(r.rc, QF_OK);
    CHECK_EQ(sg_catalog_stats(f.catalog).segments, SEGMENTS + QF_COUNT_OF(puts));
}

/* Only what is named is listed; many folders side by side cost one listing. */
TEST(notes_cost_what_they_name)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new(50);
    struct memory_counts before, after;
    struct sg_changes_note note = { 0 };

    fill(&f);
    for (int i = 0; i < 300; i++) {
        QF_CLEANUP(qf_freep) char *name = name_of("new", T0 - i * DAY, (uint64_t)(9000 + i));

        memory_store_put(f.memory, name, QF_STR("x"));
        sg_changes_note_add(&note, qf_str_from(name));
        sg_changes_note_add(&note, qf_str_from(name));
    }
    CHECK_EQ(note.folders.count, 300);
    CHECK_OK(sg_changes_note_put(&note, f.store, NULL, &f.err), &f.err);
    CHECK_EQ(note.folders.count, 0);
    before = memory_store_counts(f.memory);
    refresh_due(&f);
    after = memory_store_counts(f.memory);
    CHECK_EQ(count(&f, "new", T0 - 299 * DAY), 1);
    CHECK_EQ(sg_catalog_stats(f.catalog).segments, SEGMENTS + 300);
    CHECK(after.lists - before.lists <= 6); /* notes, these, the round, last days of 3 tenants */
    /* A note that was heeded is not read again. */
    before = after;
    refresh_due(&f);
    after = memory_store_counts(f.memory);
    CHECK(after.lists - before.lists <= 5);
}

/* Deleting is a change as well. */
TEST(notes_tell_of_segments_that_went)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new(50);
    QF_CLEANUP(qf_freep) char *name = name_of("b", T0 - 998 * DAY, SEGMENTS - 2);
    struct sg_changes_note note = { 0 };

    fill(&f);
    memory_store_slow(f.memory, 10000);
    CHECK_EQ(count(&f, "b", T0 - 998 * DAY), 12);
    CHECK(memory_store_remove(f.memory, name));
    sg_changes_note_add(&note, qf_str_from(name));
    CHECK_OK(sg_changes_note_put(&note, f.store, NULL, &f.err), &f.err);
    refresh_due(&f);
    CHECK_EQ(count(&f, "b", T0 - 998 * DAY), 11);
    CHECK_EQ(sg_catalog_stats(f.catalog).segments, SEGMENTS - 1);
}

/* Strangers write no notes: their last days are looked at each time, the rest by and by. */
TEST(what_nobody_noted_is_found_by_the_round)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new(100);
    int64_t today = qf_clock_wall_ms();

    fill(&f);
    memory_store_slow(f.memory, 10000);
    put(&f, "a", today, 7000);
    put(&f, "c", T0, 7001); /* a new tenant is listed whole */
    for (int i = 0; i < 3 && sg_catalog_stats(f.catalog).segments != SEGMENTS + 2; i++)
        refresh_due(&f);
    CHECK_EQ(count(&f, "a", today), 1);
    CHECK_EQ(count(&f, "c", T0), 1);
    {
        QF_CLEANUP(qf_freep) char *gone = name_of("a", T0 - 501 * DAY, 501);

        CHECK(memory_store_remove(f.memory, gone));
    }
    put(&f, "b", T0 - 300 * DAY + 1, 7002);
    for (int i = 0;
         i < 2000 && (!count(&f, "b", T0 - 300 * DAY + 1) || count(&f, "a", T0 - 501 * DAY) == 12);
         i++)
        refresh_due(&f);
    CHECK_EQ(count(&f, "b", T0 - 300 * DAY + 1), 1);
    CHECK_EQ(count(&f, "a", T0 - 501 * DAY), 11);
    CHECK_EQ(sg_catalog_stats(f.catalog).segments, SEGMENTS + 2);
}

/* A listing that fails leaves the index as it was and forgets no note. */
TEST(a_note_is_heeded_after_the_store_recovers)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new(50);

    fill(&f);
    memory_store_slow(f.memory, 10000);
    put_noted(&f, "a", T0 - 999 * DAY + 1, 6000);
    (void)usleep(60000);
    memory_store_fail(f.memory, QF_EIO);
    CHECK_EQ(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_TIMER, NULL, NULL), QF_EIO);
    CHECK_EQ(sg_catalog_stats(f.catalog).segments, SEGMENTS);
    memory_store_fail(f.memory, QF_OK);
    refresh_due(&f);
    CHECK_EQ(count(&f, "a", T0 - 999 * DAY + 1), 1);
}

/* Notes come from outside: what is no folder of the catalogue is passed over. */
TEST(notes_that_say_nonsense_do_no_harm)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new(50);
    char name[64];

    fill(&f);
    memory_store_slow(f.memory, 10000);
    (void)snprintf(name, sizeof(name), "_changes/%013lld-x", (long long)qf_clock_wall_ms());
    memory_store_put(f.memory, name,
                     QF_STR("\n/\ntenant=\n../x/\ntenant=a/\ntenant=a/date=x/y/\n"
                            "tenant=a//\ntenant=a/date=2020-01-01\ntenant=q/date=2020-01-01/"));
    refresh_due(&f);
    CHECK_EQ(sg_catalog_stats(f.catalog).segments, SEGMENTS);
}

TEST(old_notes_expire)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new(50);
    char name[64];
    size_t removed;

    for (int i = 0; i < 48; i++) {
        (void)snprintf(name, sizeof(name), "_changes/%013lld-x",
                       (long long)(qf_clock_wall_ms() - (i * 2 + 1) * HOUR));
        memory_store_put(f.memory, name, QF_STR("tenant=a/date=2020-01-01/\n"));
    }
    CHECK_OK(sg_changes_expire(f.store, false, NULL, &removed, &f.err), &f.err);
    CHECK_EQ(removed, 36);
    CHECK_OK(sg_changes_expire(f.store, false, NULL, &removed, &f.err), &f.err);
    CHECK_EQ(removed, 0);
}
