/* test_cache.c - segments come once, stay while they are held and go when they are told to. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "queryworker/cache/cache.h"
#include "tests/integration/worker/fake_s3.h"
#include "tests/lib/test.h"

/* A cache over an object store with files a, b, c of 1000, 2000 and 3000 bytes. */
struct bench {
    char dir[32];
    struct fake_s3 *s3;
    struct sg_store *store;
    struct qf_mailbox *mailbox;
    struct qf_pool *pool;
    struct qw_metrics *metrics;
    struct qw_cache *cache;
    uint64_t room; /* bytes make_room grants in all */
};

static struct pb_segment segment_a = { .name = QF_STR_INIT("a"), .size_bytes = 1000 };
static struct pb_segment segment_b = { .name = QF_STR_INIT("b"), .size_bytes = 2000 };
static struct pb_segment segment_c = { .name = QF_STR_INIT("c"), .size_bytes = 3000 };

static char *path_in(const struct bench *bench, const char *name)
{
    static char path[200];

    (void)snprintf(path, sizeof(path), "%s/%s", bench->dir, name);
    return path;
}

static bool make_room(void *ctx, uint64_t bytes)
{
    const struct bench *bench = ctx;

    return qw_cache_stats(bench->cache).bytes + bytes <= bench->room;
}

static void open_cache(struct bench *bench)
{
    struct qf_err err = { 0 };
    char *dir = qf_xstrdup(path_in(bench, "cache"));

    bench->cache = qw_cache_new(&(struct qw_cache_options){ .store = bench->store,
                                                            .dir = dir,
                                                            .pool = bench->pool,
                                                            .mailbox = bench->mailbox,
                                                            .metrics = bench->metrics,
                                                            .readers_max = 4,
                                                            .reader_bytes_max = 1 << 20,
                                                            .make_room = make_room,
                                                            .ctx = bench },
                                &err);
    free(dir);
    CHECK_MSG(bench->cache, "%s", err.msg);
}

static struct bench *bench_new(bool local)
{
    struct bench *bench = qf_xcalloc(1, sizeof(*bench));
    struct qf_err err = { 0 };
    char *objects;

    (void)snprintf(bench->dir, sizeof(bench->dir), "/tmp/pf-cache-XXXXXX");
    CHECK(mkdtemp(bench->dir));
    CHECK_EQ(mkdir(path_in(bench, "objects"), 0700), 0);
    for (int i = 0; i < 3; i++) {
        char name[] = { 'o', 'b', 'j', 'e', 'c', 't', 's', '/', (char)('a' + i), '\0' };
        FILE *file = fopen(path_in(bench, name), "we");

        CHECK(file);
        for (int byte = 0; byte < 1000 * (i + 1); byte++)
            CHECK(fputc('a' + i, file) != EOF);
        CHECK_EQ(fclose(file), 0);
    }
    objects = qf_xstrdup(path_in(bench, "objects"));
    bench->s3 = fake_s3_new(objects);
    CHECK_OK(
        sg_store_open(&(struct sg_store_options){ .url = local ? objects : fake_s3_url(bench->s3),
                                                  .attempts_max = 1 },
                      &bench->store, &err),
        &err);
    free(objects);
    bench->mailbox = qf_mailbox_new(64);
    bench->pool = qf_pool_new("download", 3, 64);
    bench->metrics = qw_metrics_new();
    bench->room = UINT64_MAX / 2;
    open_cache(bench);
    return bench;
}

/* Handle download messages until there are none under way. */
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
    free(bench);
}

static struct qw_hold *acquire(struct bench *bench, const struct pb_segment *segments, size_t count)
{
    return qw_cache_acquire(bench->cache, segments, count, QF_STR(""), bench);
}

/* Acquire and wait: all of it must be there. */
static struct qw_hold *get(struct bench *bench, const struct pb_segment *segments, size_t count)
{
    struct qw_hold *hold = acquire(bench, segments, count);

    if (hold->missing) {
        finish_downloads(bench);
        CHECK(qw_cache_settled(bench->cache) == hold);
    }
    CHECK_MSG(hold->rc == QF_OK, "%s", hold->err.msg);
    CHECK_EQ(hold->missing, 0);
    return hold;
}

static uint64_t file_size(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

/* Whoever wants a segment while it is on its way waits for the same download. */
TEST(downloads_of_one_segment_are_shared)
{
    struct bench *bench = bench_new(false);
    struct pb_segment both[] = { segment_a, segment_b };
    struct qw_hold *first, *second, *third;

    fake_s3_delay(bench->s3, 50);
    first = acquire(bench, both, 2);
    second = acquire(bench, &both[1], 1);
    CHECK_EQ(first->missing, 2);
    CHECK_EQ(second->missing, 1);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, 3000); /* counted from the start */
    finish_downloads(bench);
    CHECK(qw_cache_settled(bench->cache) && qw_cache_settled(bench->cache));
    CHECK(!qw_cache_settled(bench->cache));
    CHECK_EQ(fake_s3_requests(bench->s3), 2);
    CHECK_EQ(first->rc, QF_OK);
    CHECK_EQ(second->rc, QF_OK);
    CHECK_EQ(file_size(qw_segment_path(first->segments[0])), 1000);
    CHECK_STR(qw_segment_path(first->segments[1]), qw_segment_path(second->segments[0]));
    third = acquire(bench, both, 2);
    CHECK_EQ(third->missing, 0);
    CHECK_EQ(third->hits, 2);
    CHECK_EQ(fake_s3_requests(bench->s3), 2);
    qw_cache_release(bench->cache, first);
    qw_cache_release(bench->cache, second);
    qw_cache_release(bench->cache, third);
    bench_free(bench);
}

/* A hold lists every segment it was asked for, whatever earlier holds did; twice named is once. */
TEST(every_segment_is_held_once)
{
    struct bench *bench = bench_new(false);
    struct pb_segment list[] = { segment_a, segment_b, segment_a };

    for (int i = 0; i < 100; i++) { /* the allocator hands out the same addresses again */
        struct qw_hold *hold = get(bench, list, 3);

        CHECK_EQ(hold->count, 2);
        qw_cache_release(bench->cache, hold);
    }
    bench_free(bench);
}

/* What was not used for longest goes first; what is held does not go at all. */
TEST(eviction_spares_what_is_held)
{
    struct bench *bench = bench_new(false);
    struct pb_segment all[] = { segment_a, segment_b, segment_c };
    struct qw_hold *hold = get(bench, all, 3), *again;

    CHECK_EQ(qw_cache_evict(bench->cache), 0);
    qw_cache_release(bench->cache, hold);
    again = get(bench, &segment_a, 1);
    CHECK_EQ(qw_cache_evict(bench->cache), 2000);
    CHECK_EQ(qw_cache_evict(bench->cache), 3000);
    CHECK_EQ(qw_cache_evict(bench->cache), 0);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, 1000);
    qw_cache_release(bench->cache, again);
    CHECK_EQ(qw_cache_evict(bench->cache), 1000);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, 0);
    CHECK_EQ(qw_cache_stats(bench->cache).segments, 0);
    bench_free(bench);
}

/* A download nobody waits for any more ends, and leaves nothing behind. */
TEST(an_unwanted_download_is_canceled)
{
    struct bench *bench = bench_new(false);
    struct qw_hold *hold;

    fake_s3_delay(bench->s3, 5000); /* it does not come to that */
    hold = acquire(bench, &segment_a, 1);
    CHECK_EQ(hold->missing, 1);
    qw_cache_release(bench->cache, hold);
    finish_downloads(bench);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, 0);
    CHECK_EQ(qw_cache_stats(bench->cache).segments, 0);
    CHECK(qf_metric_get(bench->metrics->downloads, QW_DOWNLOAD_CANCELED) == 1);
    fake_s3_delay(bench->s3, 0);
    hold = get(bench, &segment_a, 1);
    qw_cache_release(bench->cache, hold);
    bench_free(bench);
}

/* Who comes back too late for a canceled download is told to try again, not that it was canceled.
 */
TEST(a_canceled_download_is_unavailable_to_the_next_one)
{
    struct bench *bench = bench_new(false);
    struct qw_hold *hold;

    fake_s3_delay(bench->s3, 5000); /* it does not come to that */
    hold = acquire(bench, &segment_a, 1);
    (void)usleep(50000);
    qw_cache_release(bench->cache, hold);
    for (int waits = 0; waits < 500 && !qf_mailbox_count(bench->mailbox); waits++)
        (void)usleep(10000);
    hold = acquire(bench, &segment_a, 1);
    finish_downloads(bench);
    CHECK(qw_cache_settled(bench->cache) == hold);
    CHECK_MSG(hold->rc == QF_EUNAVAILABLE, "rc is %d: %s", hold->rc, hold->err.msg);
    CHECK_EQ(hold->err.rc, QF_EUNAVAILABLE);
    qw_cache_release(bench->cache, hold);
    bench_free(bench);
}

static void check_failure(struct bench *bench, struct pb_segment segment, qf_rc rc)
{
    struct pb_segment both[] = { segment_a, segment };
    struct qw_hold *hold = acquire(bench, both, 2);

    finish_downloads(bench);
    if (hold->listed)
        CHECK(qw_cache_settled(bench->cache) == hold);
    CHECK_MSG(hold->rc == rc, "rc is %d: %s", hold->rc, hold->err.msg);
    CHECK_EQ(hold->err.rc, rc);
    CHECK(hold->err.msg[0]);
    qw_cache_release(bench->cache, hold);
}

TEST(what_cannot_be_had_is_an_error_with_a_reason)
{
    struct bench *bench = bench_new(false);
    struct pb_segment missing = { .name = QF_STR("nothing"), .size_bytes = 5 };
    struct pb_segment other_size = { .name = QF_STR("b"), .size_bytes = 2001 };
    struct pb_segment other_etag = { .name = QF_STR("b"), .size_bytes = 2000, .etag = QF_STR("y") };
    struct pb_segment no_size = { .name = QF_STR("b") };
    struct pb_segment outside = { .name = QF_STR("../a"), .size_bytes = 1000 };

    check_failure(bench, missing, QF_ENOTFOUND);
    check_failure(bench, other_size, QF_ENOTFOUND); /* replaced: the query is planned anew */
    check_failure(bench, other_etag, QF_ENOTFOUND);
    check_failure(bench, no_size, QF_EINVAL);
    check_failure(bench, outside, QF_EINVAL);
    bench->room = 1500;
    check_failure(bench, segment_b, QF_ENOSPC);
    bench->room = 5000;
    qw_cache_release(bench->cache, get(bench, &segment_b, 1));
    bench_free(bench);
}

/* The size is what an API says; the bytes are what the store sends. No more are taken than said:
 * the disk budget made room for those alone. */
TEST(a_download_stops_at_the_announced_size)
{
    struct bench *bench = bench_new(false);
    struct pb_segment smaller = { .name = QF_STR("c"), .size_bytes = 10 };
    struct qw_hold *hold = acquire(bench, &smaller, 1);

    finish_downloads(bench);
    CHECK(qw_cache_settled(bench->cache) == hold);
    CHECK_EQ(hold->rc, QF_ENOTFOUND);
    CHECK_MSG(strstr(hold->err.msg, "more bytes than the announced 10"), "%s", hold->err.msg);
    CHECK_EQ(sg_store_counters(bench->store).bytes_read,
             0); /* counted when a whole object is here */
    qw_cache_release(bench->cache, hold);
    bench_free(bench);
}

/* Whole files of an earlier process are used, others are removed. */
TEST(a_later_process_takes_over_what_is_whole)
{
    struct bench *bench = bench_new(false);
    struct qw_hold *hold = get(bench, &segment_a, 1);
    char *path = qf_xstrdup(qw_segment_path(hold->segments[0]));
    char *half = qf_xmalloc(strlen(path) + 6), *other;
    FILE *file;

    qw_cache_release(bench->cache, hold);
    bench->cache = qw_cache_free(bench->cache);
    CHECK_EQ(file_size(path), 1000);
    (void)snprintf(half, strlen(path) + 6, "%s.part", path);
    other = qf_xstrdup(path_in(bench, "cache/notes.txt"));
    CHECK((file = fopen(half, "we")) && fclose(file) == 0);
    CHECK((file = fopen(other, "we")) && fclose(file) == 0);
    open_cache(bench);
    CHECK_EQ(access(half, F_OK), -1);
    CHECK_EQ(access(other, F_OK), -1);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, 1000);
    hold = acquire(bench, &segment_a, 1);
    CHECK_EQ(hold->hits, 1);
    CHECK_EQ(fake_s3_requests(bench->s3), 1);
    /* It may have rotted meanwhile: then it is fetched again. */
    CHECK(qw_segment_distrust(bench->cache, hold->segments[0]));
    CHECK_EQ(access(path, F_OK), -1);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, 0);
    qw_cache_release(bench->cache, hold);
    hold = get(bench, &segment_a, 1);
    CHECK_EQ(fake_s3_requests(bench->s3), 2);
    CHECK(qw_segment_distrust(bench->cache, hold->segments[0])); /* so may a fresh copy */
    qw_cache_release(bench->cache, hold);
    CHECK_EQ(qw_cache_stats(bench->cache).segments, 0);
    free(path);
    free(half);
    free(other);
    bench_free(bench);
}

TEST(a_new_version_of_an_object_is_another_segment)
{
    struct bench *bench = bench_new(false);
    struct pb_segment newer = segment_a;
    struct qw_hold *hold = get(bench, &segment_a, 1);

    newer.etag = QF_STR("x");
    qw_cache_release(bench->cache, hold);
    hold = get(bench, &newer, 1);
    CHECK_EQ(fake_s3_requests(bench->s3), 2);
    qw_cache_release(bench->cache, hold);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, 2000);
    bench_free(bench);
}

/* Files of a local store are read where they are and are never removed. */
TEST(a_local_store_is_read_in_place)
{
    struct bench *bench = bench_new(true);
    struct qw_hold *hold = get(bench, &segment_a, 1);
    char *path = qf_xstrdup(qw_segment_path(hold->segments[0]));

    CHECK(strstr(path, "/objects/a"));
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, 0);
    CHECK(!qw_segment_distrust(bench->cache, hold->segments[0]));
    qw_cache_release(bench->cache, hold);
    CHECK_EQ(qw_cache_evict(bench->cache), 0);
    CHECK_EQ(file_size(path), 1000);
    CHECK_EQ(qw_cache_stats(bench->cache).segments, 0);
    free(path);
    bench_free(bench);
}
