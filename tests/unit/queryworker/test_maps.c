/* test_maps.c - copies of state maps from ingest nodes: fetched once for all, kept, and never taken for another one. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "base/sys/thread.h"
#include "tests/lib/test.h"
#include "tests/unit/queryworker/cache_bench.h"

#define BYTES "these bytes stand for a map"

/* A cache, and two nodes that do as they are told. */
struct bench {
    struct cache_bench base;
    struct node {
        struct qh_listener *listener;
        char url[64];
        atomic_int asked, status;
        atomic_bool damaged, other, long_one;
        struct qf_lock *lock; /* guards: */
        char path[200], tenant[40];
    } nodes[2];
    struct qf_str urls[2];
};

static void serve(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    struct node *node = ctx;
    int status = atomic_load(&node->status);
    char sum[17];

    (void)atomic_fetch_add(&node->asked, 1);
    qf_lock_take(node->lock);
    (void)snprintf(node->path, sizeof(node->path), "%.*s", QF_STR_ARG(request->path));
    (void)snprintf(node->tenant, sizeof(node->tenant), "%.*s",
                   QF_STR_ARG(qh_request_header(request, "X-Scope-OrgID")));
    qf_lock_drop(node->lock);
    if (status != 200) {
        qh_stream_answer(stream, status, "text/plain", QF_STR(""));
        return;
    }
    (void)snprintf(sum, sizeof(sum), "%016llx",
                   (unsigned long long)XXH3_64bits(BYTES, strlen(BYTES)) +
                       atomic_load(&node->damaged));
    qh_stream_header(stream, "X-Promfabric-State-Sum", sum);
    qh_stream_header(stream, "X-Promfabric-State-Version", "17");
    qh_stream_header(stream, "X-Promfabric-State-Created", atomic_load(&node->other) ? "6" : "5");
    if (atomic_load(&node->long_one)) {
        char *much = qf_xcalloc(17 << 20, 1);

        qh_stream_answer(stream, 200, "text/plain", (struct qf_str){ much, 17 << 20 });
        free(much);
        return;
    }
    qh_stream_answer(stream, 200, "text/plain", QF_STR(BYTES));
}

static struct bench *bench_new(void)
{
    struct bench *bench = qf_xcalloc(1, sizeof(*bench));

    cache_bench_begin(&bench->base);
    for (int i = 0; i < 2; i++) {
        struct node *node = &bench->nodes[i];

        node->lock = qf_lock_new();
        node->listener = cache_bench_serve(serve, node, node->url);
        atomic_init(&node->status, 200);
        bench->urls[i] = qf_str_from(node->url);
    }
    return bench;
}

static void bench_free(struct bench *bench)
{
    cache_bench_finish(&bench->base);
    while (qw_cache_evict(bench->base.cache))
        continue;
    cache_bench_end(&bench->base);
    for (int i = 0; i < 2; i++) {
        (void)qh_listener_free(bench->nodes[i].listener);
        (void)qf_lock_free(bench->nodes[i].lock);
    }
    free(bench);
}

static struct qw_hold *acquire(struct bench *bench, const char *tenant, uint64_t version)
{
    struct pb_map map = { .name = QF_STR("team"),
                          .kind = QF_STR("state"),
                          .metric = QF_STR("team_info"),
                          .interval_ms = 60000,
                          .created = 5,
                          .version = version,
                          .bytes = strlen(BYTES) };
    struct pb_maps maps = {
        .inputs = &map, .count = 1, .nodes = bench->urls, .node_count = 2, .shard_count = 1
    };
    struct qw_hold *hold = qw_cache_acquire(bench->base.cache, NULL, 0, QF_STR(""), bench);

    qw_cache_acquire_maps(bench->base.cache, hold, qf_str_from(tenant), &maps);
    return hold;
}

static struct qw_hold *get(struct bench *bench, const char *tenant, uint64_t version)
{
    struct qw_hold *hold = acquire(bench, tenant, version);

    cache_bench_finish(&bench->base);
    while (qw_cache_settled(bench->base.cache))
        continue;
    return hold;
}

/* What a node was asked last. */
static void check_asked(struct node *node, const char *path, const char *tenant)
{
    char asked[sizeof(node->path)], whose[sizeof(node->tenant)];

    qf_lock_take(node->lock);
    memcpy(asked, node->path, sizeof(asked));
    memcpy(whose, node->tenant, sizeof(whose));
    qf_lock_drop(node->lock);
    CHECK_STR(asked, path);
    CHECK_STR(whose, tenant);
}

TEST(a_copy_is_fetched_once_and_stays)
{
    struct bench *bench = bench_new();
    struct qw_hold *first = acquire(bench, "t", 17), *second = acquire(bench, "t", 17);
    struct stat info;

    cache_bench_finish(&bench->base);
    while (qw_cache_settled(bench->base.cache))
        continue;
    CHECK_MSG(first->rc == QF_OK, "%s", first->err.msg);
    CHECK_EQ(atomic_load(&bench->nodes[0].asked), 1);
    CHECK_EQ(first->map_count, 1);
    CHECK_STR(qw_segment_path(first->segments[0]), qw_segment_path(second->segments[0]));
    CHECK(stat(qw_segment_path(first->segments[0]), &info) == 0);
    CHECK_EQ(info.st_size, strlen(BYTES));
    check_asked(&bench->nodes[0], "/api/v1/state/maps/team/snapshot", "t");
    qw_cache_release(bench->base.cache, first);
    qw_cache_release(bench->base.cache, second);
    first = get(bench, "t", 17);
    CHECK_EQ(first->missing, 0);
    CHECK_EQ(atomic_load(&bench->nodes[0].asked), 1);
    qw_cache_release(bench->base.cache, first);
    CHECK(qw_cache_evict(bench->base.cache) > 0); /* as any segment, when there is no room */
    second = get(bench, "t", 17);
    CHECK_EQ(atomic_load(&bench->nodes[0].asked), 2);
    qw_cache_release(bench->base.cache, second);
    bench_free(bench);
}

/* Another tenant's map of the same name and version is another one. */
TEST(copies_of_two_tenants_are_two)
{
    struct bench *bench = bench_new();
    struct qw_hold *one = get(bench, "t", 17), *two = get(bench, "u", 17);

    CHECK(strcmp(qw_segment_path(one->segments[0]), qw_segment_path(two->segments[0])) != 0);
    qw_cache_release(bench->base.cache, one);
    qw_cache_release(bench->base.cache, two);
    bench_free(bench);
}

TEST(failures_of_copies_have_their_codes)
{
    static const struct {
        int first, second;
        qf_rc rc;
    } cases[] = { { 410, 410, QF_EGONE },   { 404, 503, QF_EGONE },
                  { 204, 204, QF_EGONE },   { 503, 503, QF_EUNAVAILABLE },
                  { 403, 200, QF_EDENIED }, { 410, 200, QF_OK },
                  { 500, 200, QF_OK } };

    for (size_t i = 0; i < QF_COUNT_OF(cases); i++) {
        struct bench *bench = bench_new();
        struct qw_hold *hold;

        atomic_store(&bench->nodes[0].status, cases[i].first);
        atomic_store(&bench->nodes[1].status, cases[i].second);
        hold = get(bench, "t", 17);
        CHECK_MSG(hold->rc == cases[i].rc, "%d and %d: %s", cases[i].first, cases[i].second,
                  hold->err.msg);
        qw_cache_release(bench->base.cache, hold);
        bench_free(bench);
    }
}

/* Bytes with another sum, or of a map that was defined again, are not used, wherever they come from. */
TEST(what_is_damaged_or_of_another_map_is_not_taken)
{
    struct bench *bench = bench_new();
    struct qw_hold *hold;

    atomic_store(&bench->nodes[0].damaged, true);
    hold = get(bench, "t", 17);
    CHECK_MSG(hold->rc == QF_OK, "%s", hold->err.msg); /* from the other one */
    CHECK_EQ(atomic_load(&bench->nodes[1].asked), 1);
    qw_cache_release(bench->base.cache, hold);
    (void)qw_cache_evict(bench->base.cache);
    atomic_store(&bench->nodes[1].damaged, true);
    hold = get(bench, "t", 17);
    CHECK_EQ(hold->rc, QF_EUNAVAILABLE);
    qw_cache_release(bench->base.cache, hold);
    for (int i = 0; i < 2; i++) {
        atomic_store(&bench->nodes[i].damaged, false);
        atomic_store(&bench->nodes[i].other, true);
    }
    hold = get(bench, "t", 17);
    CHECK_EQ(hold->rc, QF_EGONE);
    qw_cache_release(bench->base.cache, hold);
    hold = get(bench, "t", 18); /* nor of another version */
    CHECK_EQ(hold->rc, QF_EGONE);
    qw_cache_release(bench->base.cache, hold);
    bench_free(bench);
}

TEST(a_copy_is_no_larger_than_the_disk_and_what_was_said)
{
    struct bench *bench = bench_new();
    struct qw_hold *hold;

    bench->base.room = 10;
    hold = acquire(bench, "t", 17);
    CHECK_EQ(hold->rc, QF_ENOSPC);
    qw_cache_release(bench->base.cache, hold);
    bench->base.room = 1 << 20;
    atomic_store(&bench->nodes[0].long_one, true);
    hold = get(bench, "t", 17);
    CHECK_EQ(hold->rc, QF_ELIMIT);
    qw_cache_release(bench->base.cache, hold);
    bench_free(bench);
}

TEST(a_copy_that_nobody_waits_for_leaves_nothing_behind)
{
    struct bench *bench = bench_new();

    atomic_store(&bench->nodes[0].status, 503);
    atomic_store(&bench->nodes[1].status, 503);
    qw_cache_release(bench->base.cache, acquire(bench, "t", 17));
    bench_free(bench);
}
