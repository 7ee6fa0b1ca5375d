/* test_catalog.c - the index says what the store has, whatever the store does meanwhile. */
#include "segments/catalog/catalog.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/prng.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "segments/parquet/segment_name.h"
#include "segments/parquet/segment.h"
#include "segments/parquet/segment_writer.h"
#include "tests/lib/test.h"
#include "tests/lib/segments/memory_store.h"

#define HOUR INT64_C(3600000)
#define T0 INT64_C(1769817600000) /* 2026-01-31T00:00:00Z */

struct fixture {
    struct memory_store *memory;
    struct sg_store *store;
    struct sg_catalog *catalog;
    struct qf_arena *arena;
    struct qf_err err;
};

static struct fixture fixture_new(struct sg_catalog_options options)
{
    struct fixture f = { .memory = memory_store_new(), .arena = qf_arena_new(SIZE_MAX) };

    f.store = memory_store_base(f.memory);
    options.store = f.store;
    if (!options.summary_time_ms)
        options.summary_time_ms = -1;
    f.catalog = sg_catalog_new(&options);
    return f;
}

static void fixture_done(struct fixture *f)
{
    f->catalog = sg_catalog_free(f->catalog);
    f->store = sg_store_free(f->store);
    f->arena = qf_arena_free(f->arena);
}

static char *name_of(const char *tenant, int64_t min_ts, int64_t max_ts, uint32_t shard,
                     uint32_t shard_count, uint64_t generation)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;

    sg_segment_name_print(&buf, &(struct sg_segment_name){ .tenant = qf_str_from(tenant),
                                                           .min_ts = min_ts,
                                                           .max_ts = max_ts,
                                                           .shard = shard,
                                                           .shard_count = shard_count,
                                                           .generation = generation,
                                                           .id = generation * 31 + shard });
    return qf_strbuf_take(&buf);
}

static void put(struct fixture *f, const char *tenant, int64_t min_ts, int64_t max_ts,
                uint32_t shard, uint32_t shard_count, uint64_t generation)
{
    QF_CLEANUP(qf_freep)
    char *name = name_of(tenant, min_ts, max_ts, shard, shard_count, generation);

    memory_store_put(f->memory, name, QF_STR("content"));
}

static void refresh(struct fixture *f)
{
    CHECK_OK(sg_catalog_refresh(f->catalog, SG_CATALOG_REFRESH_NOW, NULL, &f->err), &f->err);
}

/* "shard/count:[gGENERATION ...] ..." of what a lookup answers. */
static const char *answer_text(struct fixture *f, const char *tenant, int64_t min_ts,
                               int64_t max_ts)
{
    QF_CLEANUP(sg_catalog_snapshot_dropp)
    struct sg_catalog_snapshot *snapshot = sg_catalog_snapshot(f->catalog);
    struct sg_catalog_query query = { .tenant = qf_str_from(tenant),
                                      .min_ts = min_ts,
                                      .max_ts = max_ts };
    struct sg_catalog_answer answer;
    struct qf_strbuf text = QF_STRBUF_INIT;
    char *copy;
    size_t segments = 0;
    uint64_t bytes = 0;

    CHECK(snapshot != NULL);
    CHECK_OK(sg_catalog_lookup(snapshot, &query, f->arena, &answer, &f->err), &f->err);
    for (size_t i = 0; i < answer.group_count; i++) {
        const struct sg_catalog_group *group = &answer.groups[i];

        qf_strbuf_printf(&text, "%s%u/%u:[", i ? " " : "", group->shard, group->shard_count);
        for (size_t j = 0; j < group->segment_count; j++) {
            qf_strbuf_printf(&text, "%sg%llu", j ? " " : "",
                             (unsigned long long)group->segments[j].generation);
            bytes += group->segments[j].size;
        }
        qf_strbuf_putc(&text, ']');
        segments += group->segment_count;
    }
    CHECK_EQ(segments, answer.segment_count);
    CHECK_EQ(bytes, answer.bytes);
    copy = qf_arena_cstr(f->arena, qf_strbuf_view(&text));
    qf_strbuf_done(&text);
    return copy ? copy : "";
}

TEST(there_is_no_snapshot_before_the_first_refresh)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new((struct sg_catalog_options){ 0 });

    CHECK(sg_catalog_snapshot(f.catalog) == NULL);
    memory_store_fail(f.memory, QF_EDENIED);
    CHECK_EQ(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_DUE, NULL, NULL), QF_EDENIED);
    CHECK(sg_catalog_snapshot(f.catalog) == NULL);
    memory_store_fail(f.memory, QF_OK);
    refresh(&f);
    CHECK_STR(answer_text(&f, "t", T0, T0 + HOUR), "");
    CHECK_EQ(sg_catalog_stats(f.catalog).refresh_errors, 1);
}

/* Times are inclusive at both ends, in names and in questions. */
TEST(lookups_prune_by_tenant_and_time)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new((struct sg_catalog_options){ 0 });

    for (int i = 0; i < 24; i++)
        put(&f, i % 2 ? "a" : "a-b", T0 + i * HOUR, T0 + (i + 1) * HOUR - 1, 0, 1, (uint64_t)i);
    memory_store_put(f.memory, "tenant=a/date=2026-01-31/notes.txt", QF_STR("x"));
    memory_store_put(f.memory, "tenant=a/date=2026-01-31/old/x.parquet", QF_STR("x"));
    memory_store_put(f.memory, "tenant=a/zzz", QF_STR("x"));
    memory_store_put(f.memory, "README", QF_STR("x"));
    refresh(&f);
    CHECK_STR(answer_text(&f, "a", T0 + HOUR, T0 + HOUR), "0/1:[g1]");
    CHECK_STR(answer_text(&f, "a", T0 + 2 * HOUR, T0 + 3 * HOUR - 1), "");
    CHECK_STR(answer_text(&f, "a", T0 + 2 * HOUR - 1, T0 + 3 * HOUR), "0/1:[g1 g3]");
    CHECK_STR(answer_text(&f, "a-b", T0, T0 + 2 * HOUR), "0/1:[g0 g2]");
    CHECK_STR(answer_text(&f, "a-b", T0 + 2 * HOUR, T0), "");
    CHECK_STR(answer_text(&f, "b", T0, T0 + 24 * HOUR), "");
    CHECK_STR(answer_text(&f, "a", INT64_MIN, T0 + 3 * HOUR), "0/1:[g1 g3]");
    CHECK_EQ(sg_catalog_stats(f.catalog).segments, 24);
    CHECK_EQ(sg_catalog_stats(f.catalog).tenants, 2);
    CHECK_EQ(sg_catalog_stats(f.catalog).foreign, 2);
}

/* A series of shard 5 of 8 was in shard 1 of 4 when there were four: both files are in one group.
 */
TEST(different_shard_counts_group_at_the_smallest)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new((struct sg_catalog_options){ 0 });

    for (uint32_t s = 0; s < 4; s++)
        put(&f, "t", T0, T0 + 1, s, 4, 40 + s);
    for (uint32_t s = 0; s < 8; s++)
        put(&f, "t", T0 + 10, T0 + 11, s, 8, 80 + s);
    put(&f, "t", T0 + 20, T0 + 21, 0, 1, 1);
    refresh(&f);
    CHECK_STR(answer_text(&f, "t", T0, T0 + 1), "0/4:[g40] 1/4:[g41] 2/4:[g42] 3/4:[g43]");
    CHECK_STR(answer_text(&f, "t", T0 + 10, T0 + 11),
              "0/8:[g80] 1/8:[g81] 2/8:[g82] 3/8:[g83] 4/8:[g84] 5/8:[g85] 6/8:[g86] 7/8:[g87]");
    CHECK_STR(answer_text(&f, "t", T0, T0 + 11),
              "0/4:[g40 g80 g84] 1/4:[g41 g81 g85] 2/4:[g42 g82 g86] 3/4:[g43 g83 g87]");
    CHECK_STR(answer_text(&f, "t", T0 + 11, T0 + 20), "0/1:[g1 g80 g81 g82 g83 g84 g85 g86 g87]");
}

/* Newest last, whatever order names have. */
TEST(overlapping_segments_come_oldest_first)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new((struct sg_catalog_options){ 0 });

    put(&f, "t", T0, T0 + 9, 0, 1, 300);
    put(&f, "t", T0 + 1, T0 + 9, 0, 1, 100);
    put(&f, "t", T0 + 2, T0 + 9, 0, 1, 200);
    refresh(&f);
    CHECK_STR(answer_text(&f, "t", T0, T0 + 9), "0/1:[g100 g200 g300]");
}

/* Against a plain loop over all names, for random stores and questions. */
TEST(random_lookups_answer_as_a_plain_scan_does)
{
    struct qf_prng prng = { 2026 };

    for (int round = 0; round < 20; round++) {
        QF_CLEANUP(fixture_done) struct fixture f = fixture_new((struct sg_catalog_options){ 0 });
        QF_VEC(struct sg_segment_name) all = { 0 };
        size_t count = 1 + qf_prng_below(&prng, 400);

        for (size_t i = 0; i < count; i++) {
            int64_t start = T0 + (int64_t)qf_prng_below(&prng, 200) * HOUR;
            uint32_t shards = 1u << qf_prng_below(&prng, 4);
            struct sg_segment_name name = {
                .tenant = qf_prng_chance(&prng, 0.5) ? QF_STR("x") : QF_STR("x.y"),
                .min_ts = start,
                .max_ts = start + (int64_t)qf_prng_below(&prng, 30) * HOUR,
                .shard_count = shards,
                .shard = (uint32_t)qf_prng_below(&prng, shards),
                .generation = i,
            };

            QF_VEC_PUSH(&all, name);
            put(&f, name.tenant.len == 1 ? "x" : "x.y", name.min_ts, name.max_ts, name.shard,
                name.shard_count, name.generation);
        }
        refresh(&f);
        for (int i = 0; i < 50; i++) {
            QF_CLEANUP(sg_catalog_snapshot_dropp)
            struct sg_catalog_snapshot *snapshot = sg_catalog_snapshot(f.catalog);
            struct sg_catalog_query query = { .tenant = QF_STR("x") };
            struct sg_catalog_answer answer;
            size_t want = 0, groups = 0;
            uint32_t least = UINT32_MAX;

            query.min_ts = T0 + (int64_t)qf_prng_below(&prng, 230) * HOUR;
            query.max_ts = query.min_ts + (int64_t)qf_prng_below(&prng, 50) * HOUR;
            for (size_t j = 0; j < all.count; j++) {
                const struct sg_segment_name *name = &all.items[j];

                if (name->tenant.len == 1 && name->min_ts <= query.max_ts &&
                    name->max_ts >= query.min_ts) {
                    want++;
                    least = name->shard_count < least ? name->shard_count : least;
                }
            }
            CHECK_OK(sg_catalog_lookup(snapshot, &query, f.arena, &answer, &f.err), &f.err);
            CHECK_EQ(answer.segment_count, want);
            for (size_t g = 0; g < answer.group_count; g++) {
                const struct sg_catalog_group *group = &answer.groups[g];

                CHECK_EQ(group->shard_count, least);
                CHECK(group->segment_count > 0);
                groups += group->segment_count;
                for (size_t j = 0; j < group->segment_count; j++) {
                    CHECK_EQ(group->segments[j].shard % least, group->shard);
                    CHECK(j == 0 ||
                          group->segments[j - 1].generation < group->segments[j].generation);
                    CHECK(group->segments[j].min_ts <= query.max_ts &&
                          group->segments[j].max_ts >= query.min_ts);
                }
            }
            CHECK_EQ(groups, want);
        }
        QF_VEC_DONE(&all);
    }
}

/* Unchanged stores keep their snapshot; each change makes exactly one new. */
TEST(refreshes_follow_the_store)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new((struct sg_catalog_options){ 0 });
    QF_CLEANUP(sg_catalog_snapshot_dropp) struct sg_catalog_snapshot *first = NULL;
    QF_CLEANUP(qf_freep) char *gone = name_of("t", T0, T0 + 1, 0, 1, 1);
    QF_CLEANUP(qf_freep) char *day2 = name_of("t", T0 + 30 * HOUR, T0 + 31 * HOUR, 0, 1, 7);
    struct sg_catalog_snapshot *now;

    put(&f, "t", T0, T0 + 1, 0, 1, 1);
    put(&f, "t", T0, T0 + 1, 0, 1, 2);
    memory_store_put(f.memory, day2, QF_STR("x"));
    refresh(&f);
    first = sg_catalog_snapshot(f.catalog);
    CHECK_EQ(sg_catalog_snapshot_version(first), 1);
    refresh(&f);
    now = sg_catalog_snapshot(f.catalog);
    CHECK(now == first);
    (void)sg_catalog_snapshot_drop(now);
    put(&f, "t", T0, T0 + 1, 0, 1, 3);
    put(&f, "u", T0, T0 + 1, 0, 1, 9);
    refresh(&f);
    CHECK_STR(answer_text(&f, "t", T0, T0), "0/1:[g1 g2 g3]");
    CHECK_STR(answer_text(&f, "u", T0, T0), "0/1:[g9]");
    CHECK(memory_store_remove(f.memory, gone));
    CHECK(memory_store_remove(f.memory, day2));
    refresh(&f);
    CHECK_STR(answer_text(&f, "t", T0, T0 + 40 * HOUR), "0/1:[g2 g3]");
    now = sg_catalog_snapshot(f.catalog);
    CHECK_EQ(sg_catalog_snapshot_version(now), 3);
    (void)sg_catalog_snapshot_drop(now);
    /* The first snapshot is what it was. */
    CHECK_EQ(sg_catalog_stats(f.catalog).segments, 3);
    {
        struct sg_catalog_answer answer;
        struct sg_catalog_query query = { .tenant = QF_STR("t"), .min_ts = T0, .max_ts = T0 };

        CHECK_OK(sg_catalog_lookup(first, &query, f.arena, &answer, &f.err), &f.err);
        CHECK_EQ(answer.segment_count, 2);
    }
}

TEST(a_failed_refresh_keeps_the_last_good_snapshot)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new((struct sg_catalog_options){ 0 });

    put(&f, "t", T0, T0, 0, 1, 1);
    refresh(&f);
    memory_store_fail(f.memory, QF_EIO);
    put(&f, "t", T0, T0, 0, 1, 2);
    CHECK_EQ(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_NOW, NULL, NULL), QF_EIO);
    CHECK_STR(answer_text(&f, "t", T0, T0), "0/1:[g1]");
    memory_store_fail(f.memory, QF_OK);
    refresh(&f);
    CHECK_STR(answer_text(&f, "t", T0, T0), "0/1:[g1 g2]");
}

/* For a while a query takes what is known; then each is told, also between two attempts to list. */
TEST(while_the_store_cannot_be_listed_an_old_index_answers_nobody)
{
    QF_CLEANUP(fixture_done)
    struct fixture f = fixture_new((struct sg_catalog_options){ .refresh_interval_ms = 1000 });
    struct qf_err err = { 0 };

    refresh(&f);
    memory_store_fail(f.memory, QF_EIO);
    CHECK_EQ(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_NOW, NULL, NULL), QF_EIO);
    CHECK_OK(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_DUE, NULL, &f.err), &f.err);
    (void)usleep(SG_CATALOG_INTERVALS_MAX * 1000000 + 100000);
    for (int i = 0; i < 3; i++) {
        err = (struct qf_err){ 0 };
        CHECK_EQ(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_DUE, NULL, &err), QF_EIO);
        CHECK(strstr(err.msg, "told to fail"));
    }
    memory_store_fail(f.memory, QF_OK);
    refresh(&f);
    CHECK_OK(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_DUE, NULL, &f.err), &f.err);
}

/* Over the limit nothing is answered rather than a part. */
TEST(more_segments_than_allowed_are_an_error)
{
    QF_CLEANUP(fixture_done)
    struct fixture f = fixture_new((struct sg_catalog_options){ .segments_max = 10 });

    for (uint64_t i = 0; i < 10; i++)
        put(&f, "t", T0 + (int64_t)i * 24 * HOUR, T0 + (int64_t)i * 24 * HOUR, 0, 1, i);
    refresh(&f);
    put(&f, "t", T0 + 1, T0 + 1, 0, 1, 11);
    CHECK_EQ(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_NOW, NULL, &f.err), QF_ELIMIT);
    CHECK_EQ(sg_catalog_stats(f.catalog).segments, 10);
}

TEST(refreshes_that_are_not_due_do_nothing)
{
    QF_CLEANUP(fixture_done)
    struct fixture f = fixture_new((struct sg_catalog_options){ .refresh_interval_ms = 60000 });

    CHECK_OK(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_DUE, NULL, &f.err), &f.err);
    put(&f, "t", T0, T0, 0, 1, 1);
    CHECK_OK(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_DUE, NULL, &f.err), &f.err);
    CHECK_EQ(memory_store_counts(f.memory).lists, 2); /* notes and segments */
    CHECK_STR(answer_text(&f, "t", T0, T0), "");
    CHECK(sg_catalog_due_ms(f.catalog) > qf_clock_mono_ms() + 40000);
    refresh(&f);
    CHECK_STR(answer_text(&f, "t", T0, T0), "0/1:[g1]");
}

/* --- calls at the same time --- */

struct race {
    struct fixture *f;
    atomic_bool *stop;
    atomic_int reached;
    qf_rc rc;
    int64_t done_ms;
};

static void hold(void *ctx, struct qf_str name)
{
    struct race *race = ctx;

    (void)name;
    atomic_fetch_add(&race->reached, 1);
    while (!atomic_load(race->stop))
        (void)usleep(1000);
}

static void refresh_now(void *arg)
{
    struct race *race = arg;

    race->rc = sg_catalog_refresh(race->f->catalog, SG_CATALOG_REFRESH_NOW, NULL, NULL);
}

/* A refresh under way may have passed by what was just put: it does not count for a later call. */
TEST(a_refresh_on_demand_sees_what_was_put_before_it)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new((struct sg_catalog_options){ 0 });
    atomic_bool stop = false;
    struct race slow = { .f = &f, .stop = &stop }, waiting[3];
    struct qf_thread *threads[4];

    put(&f, "t", T0 + HOUR, T0 + HOUR, 0, 1, 5);
    memory_store_hook(f.memory, hold, &slow);
    threads[0] = qf_thread_start("slow", refresh_now, &slow);
    while (!atomic_load(&slow.reached))
        (void)usleep(1000);
    /* The listing stands at g5: a name before it is missed. */
    put(&f, "t", T0, T0, 0, 1, 1);
    for (int i = 0; i < 3; i++) {
        waiting[i] = (struct race){ .f = &f };
        threads[i + 1] = qf_thread_start("waiting", refresh_now, &waiting[i]);
    }
    (void)usleep(20000);
    atomic_store(&stop, true);
    for (int i = 0; i < 4; i++)
        (void)qf_thread_join(threads[i]);
    CHECK_EQ(slow.rc, QF_OK);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(waiting[i].rc, QF_OK);
    CHECK_STR(answer_text(&f, "t", T0, T0 + HOUR), "0/1:[g1 g5]");
    /* Those that waited shared their listing, as far as they were there when it began. */
    CHECK(memory_store_counts(f.memory).lists >= 3 && memory_store_counts(f.memory).lists <= 5);
}

TEST(a_waiting_refresh_can_be_canceled)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new((struct sg_catalog_options){ 0 });
    atomic_bool stop = false, cancel = true;
    struct race slow = { .f = &f, .stop = &stop };
    struct qf_thread *thread;
    struct sg_store_call canceled = { .cancel = &cancel }, brief = { .timeout_ms = 30 };

    put(&f, "t", T0, T0, 0, 1, 5);
    memory_store_hook(f.memory, hold, &slow);
    thread = qf_thread_start("slow", refresh_now, &slow);
    while (!atomic_load(&slow.reached))
        (void)usleep(1000);
    CHECK_EQ(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_NOW, &canceled, NULL), QF_ECANCELED);
    CHECK_EQ(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_NOW, &brief, NULL), QF_ETIMEOUT);
    atomic_store(&stop, true);
    (void)qf_thread_join(thread);
}

static void look_again_and_again(void *arg)
{
    struct race *race = arg;

    while (!atomic_load(race->stop)) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        struct sg_catalog_snapshot *snapshot = sg_catalog_snapshot(race->f->catalog);
        struct sg_catalog_query query = { .tenant = QF_STR("t"), .min_ts = 0, .max_ts = INT64_MAX };
        struct sg_catalog_answer answer;

        if (snapshot && (sg_catalog_lookup(snapshot, &query, arena, &answer, NULL) ||
                         answer.segment_count < 50 || answer.segment_count > 51))
            race->rc = QF_EINTERNAL;
        (void)sg_catalog_snapshot_drop(snapshot);
    }
}

/* Readers take snapshots while the store changes under refreshes from two threads. */
TEST(readers_never_wait_and_never_see_a_half_made_index)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new((struct sg_catalog_options){ 0 });
    atomic_bool stop = false;
    struct race readers[2];
    struct qf_thread *threads[2];
    QF_CLEANUP(qf_freep) char *extra = name_of("t", T0 + 5, T0 + 5, 0, 1, 500);

    for (uint64_t i = 0; i < 50; i++)
        put(&f, "t", T0 + (int64_t)i * HOUR, T0 + (int64_t)i * HOUR, 0, 1, i);
    refresh(&f);
    for (int i = 0; i < 2; i++) {
        readers[i] = (struct race){ .f = &f, .stop = &stop };
        threads[i] = qf_thread_start("reader", look_again_and_again, &readers[i]);
    }
    for (int i = 0; i < 100; i++) {
        if (i % 2 == 0)
            memory_store_put(f.memory, extra, QF_STR(""));
        else
            CHECK(memory_store_remove(f.memory, extra));
        refresh(&f);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        (void)qf_thread_join(threads[i]);
        CHECK_EQ(readers[i].rc, QF_OK);
    }
}

/* --- segments that vanish --- */

struct vanishing {
    struct fixture *f;
    int calls;
    char *old, *new_name;
    bool for_ever;
};

static qf_rc read_segments(void *ctx, const struct sg_catalog_answer *answer, struct qf_err *err)
{
    struct vanishing *v = ctx;

    CHECK_EQ(answer->segment_count, 1);
    if (v->calls++ == 0) {
        /* Replaced while it was about to be read. */
        memory_store_put(v->f->memory, v->new_name, QF_STR("new"));
        CHECK(memory_store_remove(v->f->memory, v->old));
    }
    for (size_t i = 0; i < answer->segment_count; i++) {
        char buf[8];
        size_t len;
        uint64_t size;
        qf_rc rc = v->for_ever ? qf_err_set(err, QF_ENOTFOUND, "gone again")
                               : sg_store_read_tail(v->f->store, answer->groups[0].segments[i].name,
                                                    buf, sizeof(buf), NULL, &len, &size, err);

        if (rc)
            return rc;
    }
    return QF_OK;
}

TEST(readers_of_a_segment_that_vanished_look_again)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new((struct sg_catalog_options){ 0 });
    QF_CLEANUP(qf_freep) char *old = name_of("t", T0, T0, 0, 1, 1);
    QF_CLEANUP(qf_freep) char *new_name = name_of("t", T0, T0, 0, 1, 2);
    struct vanishing v = { .f = &f, .old = old, .new_name = new_name };
    struct sg_catalog_query query = { .tenant = QF_STR("t"), .min_ts = T0, .max_ts = T0 };

    memory_store_put(f.memory, old, QF_STR("old"));
    CHECK_OK(sg_catalog_read(f.catalog, &query, NULL, read_segments, &v, &f.err), &f.err);
    CHECK_EQ(v.calls, 2);
    v.for_ever = true;
    CHECK_EQ(sg_catalog_read(f.catalog, &query, NULL, read_segments, &v, &f.err), QF_ENOTFOUND);
    CHECK_EQ(v.calls, 5);
    CHECK_STR(f.err.msg, "gone again");
}

/* --- summaries --- */

/* A real segment of one series, as the writer makes it. */
static void put_real(struct fixture *f, int64_t ts, const char *metric, const char *job)
{
    char path[] = "/tmp/pf-catalog-XXXXXX";
    struct qf_label items[] = { { QF_STR(QF_METRIC_NAME), qf_str_from(metric) },
                                { QF_STR("job"), qf_str_from(job) } };
    struct qf_labels labels = qf_labels_normalize(items, 2);
    struct sg_writer_options options = {
        .path = path, .tenant = QF_STR("t"), .shard_count = 1, .generation = (uint64_t)ts
    };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT, content = QF_STRBUF_INIT;
    struct sg_writer *writer;
    struct sg_segment_name made;
    double value = 1;
    FILE *file;
    int c;

    (void)close(mkstemp(path));
    (void)unlink(path);
    writer = sg_writer_new(&options, &f->err);
    CHECK_MSG(writer != NULL, "%s", f->err.msg);
    CHECK_OK(sg_writer_add(writer, labels, &ts, &value, 1, &f->err), &f->err);
    CHECK_OK(sg_writer_finish(writer, &made, &f->err), &f->err);
    sg_segment_name_print(&name, &made);
    (void)sg_writer_free(writer);
    file = fopen(path, "rb");
    CHECK(file != NULL);
    while ((c = getc(file)) != EOF)
        qf_strbuf_putc(&content, (char)c);
    (void)fclose(file);
    (void)unlink(path);
    memory_store_put(f->memory, qf_strbuf_cstr(&name), qf_strbuf_view(&content));
}

static struct sg_catalog_answer look_for(struct fixture *f, struct sg_catalog_snapshot *snapshot,
                                         const char *label, const char *value)
{
    struct pq_matcher matcher = { .type = PQ_MATCH_EQUAL,
                                  .name = qf_str_from(label),
                                  .value = qf_str_from(value) };
    struct sg_catalog_query query = { .tenant = QF_STR("t"),
                                      .min_ts = 0,
                                      .max_ts = INT64_MAX,
                                      .matchers = &matcher,
                                      .matcher_count = 1 };
    struct sg_catalog_answer answer;

    CHECK_OK(sg_catalog_lookup(snapshot, &query, f->arena, &answer, &f->err), &f->err);
    return answer;
}

/* Short enough to wait for, and long enough that no listing counts as slow on a busy machine. */
#define DUE_MS 100

/* Before the footers are read everything may match; after, only what does. A file that is no
 * segment inside is never pruned: the query that reads it shall say so. */
TEST(footers_prune_by_metric_and_label)
{
    QF_CLEANUP(fixture_done)
    struct fixture f = fixture_new(
        (struct sg_catalog_options){ .refresh_interval_ms = DUE_MS, .summary_time_ms = 5000 });
    QF_CLEANUP(sg_catalog_snapshot_dropp) struct sg_catalog_snapshot *snapshot = NULL;
    struct sg_catalog_answer answer;

    put_real(&f, T0, "up", "api");
    put_real(&f, T0 + 1, "up", "db");
    put_real(&f, T0 + 30 * HOUR, "http_requests_total", "api");
    refresh(&f);
    snapshot = sg_catalog_snapshot(f.catalog);
    answer = look_for(&f, snapshot, "__name__", "up");
    CHECK_EQ(answer.segment_count, 3);
    CHECK_EQ(answer.pruned, 0);
    put(&f, "t", T0 + 2, T0 + 2, 0, 1, 7); /* not a segment inside */
    (void)usleep(DUE_MS * 1000 + 2000);
    CHECK_OK(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_TIMER, NULL, &f.err), &f.err);
    (void)sg_catalog_snapshot_drop(snapshot);
    snapshot = sg_catalog_snapshot(f.catalog);
    answer = look_for(&f, snapshot, "__name__", "up");
    CHECK_EQ(answer.segment_count, 3);
    CHECK_EQ(answer.pruned, 1);
    answer = look_for(&f, snapshot, "job", "db");
    CHECK_EQ(answer.segment_count, 2);
    answer = look_for(&f, snapshot, "job", "nobody");
    CHECK_EQ(answer.segment_count, 1);
    CHECK_EQ(sg_catalog_stats(f.catalog).summaries, 3);
    CHECK_EQ(memory_store_counts(f.memory).tails, 4);
    /* Summaries survive a change beside them and are not fetched again. */
    put_real(&f, T0 + 3, "up", "cache");
    (void)usleep(DUE_MS * 1000 + 2000);
    CHECK_OK(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_TIMER, NULL, &f.err), &f.err);
    CHECK_EQ(memory_store_counts(f.memory).tails, 5);
    CHECK_EQ(sg_catalog_stats(f.catalog).summaries, 4);
}

/* The budget of memory keeps the newest days. */
TEST(summaries_of_the_oldest_days_go_first)
{
    QF_CLEANUP(fixture_done)
    struct fixture f = fixture_new((struct sg_catalog_options){
        .refresh_interval_ms = DUE_MS, .summary_time_ms = 5000, .summary_bytes_max = 10000 });
    QF_CLEANUP(sg_catalog_snapshot_dropp) struct sg_catalog_snapshot *snapshot = NULL;

    for (int i = 0; i < 200; i++)
        put_real(&f, T0 + i * 24 * HOUR, i < 199 ? "old" : "new", "api");
    for (int i = 0; i < 3; i++) {
        CHECK_OK(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_TIMER, NULL, &f.err), &f.err);
        (void)usleep(DUE_MS * 1000 + 2000);
    }
    snapshot = sg_catalog_snapshot(f.catalog);
    CHECK(sg_catalog_stats(f.catalog).summary_bytes <= 10000);
    CHECK(sg_catalog_stats(f.catalog).summaries >= 20);
    CHECK(look_for(&f, snapshot, "__name__", "old").pruned == 1);
    CHECK(look_for(&f, snapshot, "__name__", "new").pruned >= 19);
}

/* Queries list for themselves and never fetch footers; the timer is told that there are some. */
TEST(footers_are_left_to_the_timer)
{
    QF_CLEANUP(fixture_done)
    struct fixture f = fixture_new(
        (struct sg_catalog_options){ .refresh_interval_ms = 60000, .summary_time_ms = 5000 });

    put_real(&f, T0, "up", "api");
    refresh(&f);
    CHECK_OK(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_DUE, NULL, &f.err), &f.err);
    CHECK_EQ(memory_store_counts(f.memory).tails, 0);
    CHECK(sg_catalog_due_ms(f.catalog) <= qf_clock_mono_ms());
    CHECK_OK(sg_catalog_refresh(f.catalog, SG_CATALOG_REFRESH_TIMER, NULL, &f.err), &f.err);
    CHECK_EQ(memory_store_counts(f.memory).tails, 1);
    CHECK_EQ(memory_store_counts(f.memory).lists, 2);
    CHECK(sg_catalog_due_ms(f.catalog) > qf_clock_mono_ms() + 30000);
}

/* --- a local folder --- */

/* Folders that did not change are not read again, once their stamps have settled. */
TEST(a_local_store_lists_only_folders_that_changed)
{
    char folder[] = "/tmp/pf-catalog-XXXXXX", command[200];
    struct sg_store *store = NULL;
    struct sg_catalog *catalog;
    struct sg_catalog_stats stats;
    struct qf_err err = { 0 };

    CHECK(mkdtemp(folder) != NULL);
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = folder }, &store, &err), &err);
    catalog = sg_catalog_new(&(struct sg_catalog_options){ .store = store, .summary_time_ms = -1 });
    for (int i = 0; i < 10; i++) {
        QF_CLEANUP(qf_freep)
        char *name = name_of("t", T0 + i * 24 * HOUR, T0 + i * 24 * HOUR, 0, 1, 1);

        CHECK_OK(sg_store_put(store, qf_str_from(name), "x", 1, NULL, &err), &err);
    }
    (void)snprintf(command, sizeof(command),
                   "mkdir '%s/tenant=t/date=2020-01-01' && "
                   "find '%s' -type d -exec touch -d '1 hour ago' {} +",
                   folder, folder);
    CHECK(system(command) == 0);
    CHECK_OK(sg_catalog_refresh(catalog, SG_CATALOG_REFRESH_NOW, NULL, &err), &err);
    stats = sg_catalog_stats(catalog);
    CHECK_EQ(stats.segments, 10);
    CHECK_EQ(stats.folders_listed, 11);
    CHECK_OK(sg_catalog_refresh(catalog, SG_CATALOG_REFRESH_NOW, NULL, &err), &err);
    stats = sg_catalog_stats(catalog);
    CHECK_EQ(stats.folders_skipped, 10);
    CHECK_EQ(stats.folders_listed, 12); /* the empty one is not kept */
    {
        QF_CLEANUP(qf_freep) char *name = name_of("t", T0, T0, 0, 1, 2);
        QF_CLEANUP(qf_freep) char *gone = name_of("t", T0 + 24 * HOUR, T0 + 24 * HOUR, 0, 1, 1);

        CHECK_OK(sg_store_put(store, qf_str_from(name), "x", 1, NULL, &err), &err);
        CHECK_OK(sg_store_delete(store, qf_str_from(gone), NULL, &err), &err);
    }
    CHECK_OK(sg_catalog_refresh(catalog, SG_CATALOG_REFRESH_NOW, NULL, &err), &err);
    stats = sg_catalog_stats(catalog);
    CHECK_EQ(stats.segments, 10);
    CHECK_EQ(stats.folders_skipped, 18);
    (void)sg_catalog_free(catalog);
    (void)sg_store_free(store);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
}

static void put_into(struct sg_store *store, const char *tenant, int64_t ts, uint64_t generation)
{
    QF_CLEANUP(qf_freep) char *name = name_of(tenant, ts, ts, 0, 1, generation);
    struct qf_err err = { 0 };

    CHECK_OK(sg_store_put(store, qf_str_from(name), "x", 1, NULL, &err), &err);
}

/* A refresh for one tenant, and how many folders it listed. */
static uint64_t listed_for(struct sg_catalog *catalog, const char *tenant)
{
    uint64_t before = sg_catalog_stats(catalog).folders_listed;
    struct qf_err err = { 0 };

    CHECK_OK(sg_catalog_refresh_tenant(catalog, qf_str_from(tenant), NULL, &err), &err);
    return sg_catalog_stats(catalog).folders_listed - before;
}

/* How many segments a lookup finds. */
static size_t count_of(struct sg_catalog *catalog, const char *tenant)
{
    QF_CLEANUP(sg_catalog_snapshot_dropp)
    struct sg_catalog_snapshot *snapshot = sg_catalog_snapshot(catalog);

    return sg_catalog_usage(snapshot, qf_str_from(tenant), NULL, 0).segments;
}

/* Folders of tenants whose names begin alike lie beside each other: "a", "a-b", "ab". */
TEST(a_refresh_for_a_tenant_looks_at_its_folders_alone)
{
    static const char *const tenants[] = { "a", "a-b", "ab", "b" };
    char folder[] = "/tmp/pf-catalog-XXXXXX", command[200];
    struct sg_store *store = NULL;
    struct sg_catalog *catalog;
    struct qf_err err = { 0 };

    CHECK(mkdtemp(folder) != NULL);
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = folder }, &store, &err), &err);
    catalog = sg_catalog_new(&(struct sg_catalog_options){ .store = store, .summary_time_ms = -1 });
    for (int i = 0; i < 4; i++)
        put_into(store, tenants[i], T0, 1);
    CHECK_EQ(listed_for(catalog, "ab"), 4); /* the first one of all lists everything */
    (void)snprintf(command, sizeof(command), "find '%s' -type d -exec touch -d '1 hour ago' {} +",
                   folder);
    CHECK(system(command) == 0);
    CHECK_EQ(listed_for(catalog, "ab"), 1); /* its folder has another time */
    CHECK_EQ(listed_for(catalog, "ab"), 0);

    for (int i = 0; i < 4; i++)
        put_into(store, tenants[i], T0, 2);
    CHECK_EQ(listed_for(catalog, "ab"), 1);
    CHECK_EQ(count_of(catalog, "ab"), 2);
    CHECK_EQ(count_of(catalog, "a"), 1);
    CHECK_EQ(count_of(catalog, "a-b"), 1);
    CHECK_EQ(listed_for(catalog, "a"), 1);
    CHECK_EQ(count_of(catalog, "a"), 2);

    /* A day more; a tenant more; one that is not there, or cannot be; and one that goes. */
    put_into(store, "b", T0 + 24 * HOUR, 1);
    put_into(store, "aa", T0, 1);
    CHECK(listed_for(catalog, "b") >= 1);
    CHECK_EQ(count_of(catalog, "b"), 3);
    CHECK_EQ(listed_for(catalog, "aa"), 1);
    CHECK_EQ(count_of(catalog, "aa"), 1);
    CHECK_EQ(listed_for(catalog, "nobody"), 0);
    CHECK_EQ(listed_for(catalog, "../.."), 0);
    (void)snprintf(command, sizeof(command), "rm -rf '%s/tenant=ab' '%s/tenant=b'", folder, folder);
    CHECK(system(command) == 0);
    CHECK_EQ(listed_for(catalog, "ab"), 0);
    CHECK_EQ(count_of(catalog, "ab"), 0);
    CHECK_EQ(count_of(catalog, "b"), 3); /* not looked at */
    CHECK_EQ(listed_for(catalog, "b"), 0);
    CHECK_EQ(count_of(catalog, "b"), 0);
    CHECK_EQ(count_of(catalog, "a-b"), 1);
    CHECK_OK(sg_catalog_refresh(catalog, SG_CATALOG_REFRESH_NOW, NULL, &err), &err);
    CHECK_EQ(count_of(catalog, "a-b"), 2);
    (void)sg_catalog_free(catalog);
    (void)sg_store_free(store);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
}
