/* test_partial.c - of a large segment in a bucket only those row groups come that works read. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/arena.h"
#include "promql/leaf.h"
#include "queryworker/cache/cache.h"
#include "segments/parquet/segment_writer.h"
#include "tests/integration/worker/fake_s3.h"
#include "tests/lib/test.h"

#define METRICS 12 /* one row group each */
#define SERIES 40
#define SAMPLES 500

/* A cache over a bucket with one segment, "seg". */
struct bench {
    char dir[32];
    struct fake_s3 *s3;
    struct sg_store *store;
    struct qf_mailbox *mailbox;
    struct qf_pool *pool;
    struct qw_metrics *metrics;
    struct qw_cache *cache;
    struct qf_arena *arena;
    struct pb_segment segment;
    uint64_t room;
};

static const char *path_in(const struct bench *bench, const char *name)
{
    return qf_arena_printf(bench->arena, "%s/%s", bench->dir, name);
}

static bool make_room(void *ctx, uint64_t bytes)
{
    const struct bench *bench = ctx;

    return qw_cache_stats(bench->cache).bytes + bytes <= bench->room;
}

static void open_cache(struct bench *bench)
{
    struct qf_err err = { 0 };

    bench->cache = qw_cache_new(&(struct qw_cache_options){ .store = bench->store,
                                                            .dir = path_in(bench, "cache"),
                                                            .pool = bench->pool,
                                                            .mailbox = bench->mailbox,
                                                            .metrics = bench->metrics,
                                                            .readers_max = 4,
                                                            .reader_bytes_max = 1 << 20,
                                                            .hot_bytes_max = 1 << 20,
                                                            .partial = { 100000, 1000 },
                                                            .make_room = make_room,
                                                            .ctx = bench },
                                &err);
    CHECK_MSG(bench->cache, "%s", err.msg);
}

/* Values that nothing makes smaller. */
static void write_segment(const struct bench *bench)
{
    const char *path = path_in(bench, "objects/seg");
    struct qf_err err = { 0 };
    struct sg_writer *writer = sg_writer_new(&(struct sg_writer_options){ .path = path,
                                                                          .tenant = QF_STR("t"),
                                                                          .shard_count = 1,
                                                                          .generation = 1,
                                                                          .unsynced = true },
                                             &err);
    static int64_t ts[SAMPLES];
    static double values[SAMPLES];
    struct sg_segment_name name;
    uint64_t random = 88172645463325252u;

    CHECK_MSG(writer, "%s", err.msg);
    for (int m = 0; m < METRICS; m++)
        for (int s = 0; s < SERIES; s++) {
            char metric[8], instance[8];
            struct qf_label labels[2] = { { QF_STR("__name__"), { metric, 3 } },
                                          { QF_STR("i"), { instance, 3 } } };

            (void)snprintf(metric, sizeof(metric), "m%02d", m);
            (void)snprintf(instance, sizeof(instance), "i%02d", s);
            for (int i = 0; i < SAMPLES; i++) {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                ts[i] = i * 1000;
                values[i] = (double)random / 3.0;
            }
            CHECK_OK(
                sg_writer_add(writer, (struct qf_labels){ labels, 2 }, ts, values, SAMPLES, &err),
                &err);
        }
    CHECK_OK(sg_writer_finish(writer, &name, &err), &err);
    (void)sg_writer_free(writer);
}

static struct bench *bench_new(void)
{
    struct bench *bench = qf_xcalloc(1, sizeof(*bench));
    struct qf_err err = { 0 };
    struct stat info;

    bench->arena = qf_arena_new(SIZE_MAX);
    (void)snprintf(bench->dir, sizeof(bench->dir), "/tmp/pf-partial-XXXXXX");
    CHECK(mkdtemp(bench->dir));
    CHECK_EQ(mkdir(path_in(bench, "objects"), 0700), 0);
    write_segment(bench);
    CHECK_EQ(stat(path_in(bench, "objects/seg"), &info), 0);
    bench->segment = (struct pb_segment){ .name = QF_STR("seg"),
                                          .etag = QF_STR("x"),
                                          .size_bytes = (uint64_t)info.st_size };
    bench->s3 = fake_s3_new(path_in(bench, "objects"));
    CHECK_OK(sg_store_open(
                 &(struct sg_store_options){ .url = fake_s3_url(bench->s3), .attempts_max = 1 },
                 &bench->store, &err),
             &err);
    bench->mailbox = qf_mailbox_new(64);
    bench->pool = qf_pool_new("download", 3, 64);
    bench->metrics = qw_metrics_new();
    bench->room = UINT64_MAX / 2;
    open_cache(bench);
    return bench;
}

static void finish_downloads(struct bench *bench)
{
    while (qw_cache_stats(bench->cache).downloads) {
        struct qw_message *message = qf_mailbox_receive(bench->mailbox, 5000);

        CHECK(message && message->kind == QW_MESSAGE_DOWNLOAD);
        qw_cache_dispatch(bench->cache, message);
    }
}

static void bench_free(struct bench *bench)
{
    char command[64];

    finish_downloads(bench);
    bench->cache = qw_cache_free(bench->cache);
    bench->pool = qf_pool_free(bench->pool);
    bench->mailbox = qf_mailbox_free(bench->mailbox, NULL);
    bench->metrics = qw_metrics_free(bench->metrics);
    bench->store = sg_store_free(bench->store);
    bench->s3 = fake_s3_free(bench->s3);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", bench->dir);
    CHECK_EQ(system(command), 0);
    (void)qf_arena_free(bench->arena);
    free(bench);
}

/* The selection of @metric, all of its time; NULL: of every metric. */
static struct pq_select select_of(const struct bench *bench, const char *metric)
{
    struct pq_matcher *matcher = QF_ARENA_ARRAY(bench->arena, struct pq_matcher, 1);

    *matcher =
        metric
            ? (struct pq_matcher){ PQ_MATCH_EQUAL, QF_STR("__name__"), qf_str_from(metric), NULL }
            : (struct pq_matcher){ PQ_MATCH_NOT_EQUAL, QF_STR("__name__"), QF_STR("none"), NULL };
    return (struct pq_select){ matcher, 1, -300000, 10 * SAMPLES * 1000 };
}

static struct qf_str spec_of(const struct bench *bench, const char *metric)
{
    struct pq_stage stage = { .kind = PQ_STAGE_INSTANT,
                              .grid = { 0, 10000, SAMPLES },
                              .range_ms = 300000 };
    struct pq_leaf leaf = { .kind = &pq_leaf_series,
                            .select = select_of(bench, metric),
                            .stages = &stage,
                            .stage_count = 1 };
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_str spec;

    pq_leaf_encode(&leaf, &buf);
    spec = qf_arena_str(bench->arena, qf_strbuf_view(&buf));
    qf_strbuf_done(&buf);
    return spec;
}

static struct qw_hold *acquire(struct bench *bench, const char *metric)
{
    return qw_cache_acquire(bench->cache, &bench->segment, 1, spec_of(bench, metric), bench);
}

/* Wait for @hold, which fails with @rc. */
static void wait_for(struct bench *bench, struct qw_hold *hold, qf_rc rc)
{
    if (hold->missing) {
        finish_downloads(bench);
        CHECK(qw_cache_settled(bench->cache) == hold);
    }
    CHECK_MSG(hold->rc == rc, "%s", hold->err.msg);
}

static struct qw_hold *get(struct bench *bench, const char *metric)
{
    struct qw_hold *hold = acquire(bench, metric);

    wait_for(bench, hold, QF_OK);
    return hold;
}

/* What a scan of @metric finds: the sum of all values, and how many. */
static qf_rc scan(struct bench *bench, struct sg_reader *reader, const char *metric,
                  double *ret_sum, size_t *ret_count, struct qf_err *err)
{
    struct pq_select select = select_of(bench, metric);
    struct pq_source *source = sg_source_new(&reader, 1, &select, NULL, 0);
    struct pq_series series;
    bool more = true;
    qf_rc rc;

    *ret_sum = 0;
    *ret_count = 0;
    while ((rc = source->next(source, &series, &more, err)) == QF_OK && more)
        for (size_t i = 0; i < series.count; i++) {
            *ret_sum += series.values[i];
            ++*ret_count;
        }
    source->close(source);
    return rc;
}

/* A scan of @metric over the copy finds what one over the object finds. */
static void check_same(struct bench *bench, const struct qw_hold *hold, const char *metric)
{
    struct qf_err err = { 0 };
    struct sg_reader *whole = sg_reader_open(path_in(bench, "objects/seg"), &err);
    struct sg_reader *reader = qw_segment_reader(hold->segments[0]);
    struct sg_reader *own =
        reader ? NULL : sg_reader_open(qw_segment_path(hold->segments[0]), &err);
    double want, got;
    size_t want_count, got_count;

    CHECK_MSG(whole, "%s", err.msg);
    CHECK_OK(scan(bench, whole, metric, &want, &want_count, &err), &err);
    CHECK_OK(scan(bench, reader ? reader : own, metric, &got, &got_count, &err), &err);
    CHECK_EQ(got_count, want_count);
    CHECK_EQ(want_count, (size_t)SERIES * SAMPLES * (metric ? 1 : METRICS));
    CHECK(got == want);
    (void)sg_reader_free(whole);
    (void)sg_reader_free(own);
}

static bool whole_copy(const struct qw_hold *hold)
{
    const char *path = qw_segment_path(hold->segments[0]);

    return strcmp(path + strlen(path) - 8, ".parquet") == 0;
}

/* A query for one metric of twelve fetches the end of the file and one row group; the cache counts what
 * is there. What was not fetched does not pass for data. */
TEST(a_work_gets_the_row_groups_it_reads)
{
    struct bench *bench = bench_new();
    struct qw_hold *hold = get(bench, "m03");
    struct qf_err err = { 0 };
    double sum;
    size_t count;

    CHECK_EQ(fake_s3_requests(bench->s3), 2);
    CHECK(fake_s3_bytes(bench->s3) < bench->segment.size_bytes / 4);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, fake_s3_bytes(bench->s3));
    CHECK_EQ(hold->download_bytes, fake_s3_bytes(bench->s3));
    CHECK(!whole_copy(hold));
    check_same(bench, hold, "m03");
    CHECK_EQ(scan(bench, qw_segment_reader(hold->segments[0]), "m07", &sum, &count, &err),
             QF_ECORRUPT);
    qw_cache_release(bench->cache, hold);
    hold = get(bench, "m03"); /* nothing more is asked for */
    CHECK_EQ(fake_s3_requests(bench->s3), 2);
    check_same(bench, hold, "m03");
    qw_cache_release(bench->cache, hold);
    bench_free(bench);
}

/* Works that want other row groups while the first download is under way wait for one more, which
 * fetches for both of them. */
TEST(works_that_come_meanwhile_get_their_parts_together)
{
    struct bench *bench = bench_new();
    struct qw_hold *first, *second, *third;

    fake_s3_delay(bench->s3, 30);
    first = acquire(bench, "m03");
    second = acquire(bench, "m05");
    third = acquire(bench, "m06");
    CHECK_EQ(qw_cache_stats(bench->cache).downloads, 1);
    finish_downloads(bench);
    while (qw_cache_settled(bench->cache))
        ;
    CHECK_EQ(first->missing + second->missing + third->missing, 0);
    CHECK_EQ(first->rc | second->rc | third->rc, QF_OK);
    CHECK_EQ(fake_s3_requests(bench->s3), 3); /* the end, m03, m05 with m06 */
    check_same(bench, first, "m03");
    check_same(bench, second, "m05");
    check_same(bench, third, "m06");
    qw_cache_release(bench->cache, first);
    qw_cache_release(bench->cache, second);
    qw_cache_release(bench->cache, third);
    bench_free(bench);
}

/* One who leaves does not take the parts of the others with it, and cancels nothing they wait for. */
TEST(one_that_leaves_does_not_disturb_the_others)
{
    struct bench *bench = bench_new();
    struct qw_hold *first, *second;

    fake_s3_delay(bench->s3, 50);
    first = acquire(bench, "m03");
    second = acquire(bench, "m05");
    qw_cache_release(bench->cache, first);
    wait_for(bench, second, QF_OK);
    check_same(bench, second, "m05");
    qw_cache_release(bench->cache, second);
    bench_free(bench);
}

/* Who wants most of it gets all of it, as one verified object. */
TEST(a_work_that_reads_most_gets_a_whole_copy)
{
    struct bench *bench = bench_new();
    struct qw_hold *hold = get(bench, NULL);

    CHECK_EQ(fake_s3_requests(bench->s3), 2); /* the end of it told that all is wanted */
    CHECK(whole_copy(hold));
    check_same(bench, hold, NULL);
    qw_cache_release(bench->cache, hold);
    bench_free(bench);
}

/* When parts become more than half of the segment the rest follows, and the copy is as good as any: a
 * later process takes it over. Copies with holes it drops. */
TEST(parts_grow_into_a_whole_copy)
{
    static const char *const metrics[] = { "m00", "m04", "m08", "m02", "m10", "m06", "m11" };
    struct bench *bench = bench_new();
    struct qw_hold *hold = NULL;

    for (size_t i = 0; i < QF_COUNT_OF(metrics); i++) {
        hold = get(bench, metrics[i]);
        check_same(bench, hold, metrics[i]);
        qw_cache_release(bench->cache, hold);
    }
    hold = get(bench, "m05");
    CHECK(whole_copy(hold));
    check_same(bench, hold, NULL);
    qw_cache_release(bench->cache, hold);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, bench->segment.size_bytes);
    CHECK_EQ(system(qf_arena_printf(bench->arena, "cmp -s %s/cache/*.parquet %s/objects/seg",
                                    bench->dir, bench->dir)),
             0);
    bench->cache = qw_cache_free(bench->cache);
    open_cache(bench);
    hold = get(bench, NULL);
    CHECK_EQ(hold->hits, 1);
    qw_cache_release(bench->cache, hold);
    bench_free(bench);
}

TEST(a_later_process_drops_copies_with_holes)
{
    struct bench *bench = bench_new();
    struct qw_hold *hold = get(bench, "m03");
    const char *path = qf_arena_printf(bench->arena, "%s", qw_segment_path(hold->segments[0]));

    qw_cache_release(bench->cache, hold);
    bench->cache = qw_cache_free(bench->cache);
    CHECK_EQ(access(path, F_OK), 0);
    open_cache(bench);
    CHECK(access(path, F_OK) != 0);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, 0);
    bench_free(bench);
}

/* An object that was replaced is not there any more, whether nothing or something of it was copied: the
 * query is planned anew. */
TEST(a_replaced_object_is_not_found)
{
    struct bench *bench = bench_new();
    struct qw_hold *hold = get(bench, "m03");

    fake_s3_replace(bench->s3);
    qw_cache_release(bench->cache, hold);
    hold = acquire(bench, "m05");
    wait_for(bench, hold, QF_ENOTFOUND);
    qw_cache_release(bench->cache, hold);
    CHECK_EQ(qw_cache_stats(bench->cache).segments, 0);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, 0);
    hold = acquire(bench, "m03");
    wait_for(bench, hold, QF_ENOTFOUND);
    qw_cache_release(bench->cache, hold);
    bench->segment.etag = QF_STR("y"); /* as the new plan has it */
    hold = get(bench, "m03");
    check_same(bench, hold, "m03");
    qw_cache_release(bench->cache, hold);
    bench->segment.size_bytes += 1;
    hold = acquire(bench, "m03");
    wait_for(bench, hold, QF_ENOTFOUND);
    qw_cache_release(bench->cache, hold);
    bench_free(bench);
}

/* A server that knows no ranges, and an end that was changed on its way: the whole object comes, with
 * its own checksum. */
TEST(what_has_no_readable_end_is_copied_whole)
{
    struct bench *bench = bench_new();
    struct qw_hold *hold;

    fake_s3_spoil(bench->s3, (long long)bench->segment.size_bytes - 30);
    hold = get(bench, "m03");
    CHECK(whole_copy(hold));
    check_same(bench, hold, NULL);
    qw_cache_release(bench->cache, hold);
    bench_free(bench);

    bench = bench_new();
    fake_s3_ignore_ranges(bench->s3);
    hold = get(bench, "m03");
    CHECK(whole_copy(hold));
    check_same(bench, hold, NULL);
    qw_cache_release(bench->cache, hold);
    bench_free(bench);
}

/* A byte that was changed on its way is found by the scan; once the copy is distrusted, the next one is
 * good. */
TEST(a_damaged_part_is_found_and_fetched_anew)
{
    struct bench *bench = bench_new();
    struct qf_err err = { 0 };
    struct qw_hold *hold;
    double sum;
    size_t count;

    fake_s3_spoil(bench->s3, (long long)bench->segment.size_bytes / 2);
    hold = get(bench, "m06");
    CHECK_EQ(scan(bench, qw_segment_reader(hold->segments[0]), "m06", &sum, &count, &err),
             QF_ECORRUPT);
    CHECK(qw_segment_distrust(bench->cache, hold->segments[0]));
    fake_s3_spoil(bench->s3, -1);
    qw_cache_release(bench->cache, hold);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, 0);
    hold = get(bench, "m06");
    check_same(bench, hold, "m06");
    qw_cache_release(bench->cache, hold);
    bench_free(bench);
}

/* The budget is asked for room for the whole, and refusal is an error of the work. */
TEST(parts_that_have_no_room_are_refused)
{
    struct bench *bench = bench_new();
    struct qw_hold *hold = get(bench, "m03");

    bench->room = bench->segment.size_bytes - 1;
    qw_cache_release(bench->cache, hold);
    hold = acquire(bench, "m05");
    CHECK_EQ(hold->rc, QF_ENOSPC);
    CHECK_EQ(hold->missing, 0);
    CHECK(!qw_cache_settled(bench->cache));
    qw_cache_release(bench->cache, hold);
    CHECK(qw_cache_evict(bench->cache) > 0);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, 0);
    bench_free(bench);
}
