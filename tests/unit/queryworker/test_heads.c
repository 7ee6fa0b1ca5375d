/* test_heads.c - head inputs from ingest nodes: fetched once, shared while held, gone afterwards. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/pure/alloc.h"
#include "base/sys/thread.h"
#include "tests/lib/test.h"
#include "tests/unit/queryworker/cache_bench.h"

#define BYTES "these bytes stand for a segment"
#define MANY 60

/* A cache, and two replicas that do as they are told. */
struct bench {
    struct cache_bench base;
    struct replica {
        struct qh_listener *listener;
        char url[64];
        struct qf_str replica;
        atomic_int asked, status, busy; /* `busy` answers are 503 first */
        struct qf_lock *lock;           /* guards: */
        char body[600];
    } replicas[2];
    struct qf_str urls[2];
};

static void serve(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    struct replica *replica = ctx;
    int status = atomic_load(&replica->status);

    (void)atomic_fetch_add(&replica->asked, 1);
    qf_lock_take(replica->lock);
    (void)snprintf(replica->body, sizeof(replica->body), "%.*s", QF_STR_ARG(request->body));
    qf_lock_drop(replica->lock);
    if (atomic_load(&replica->busy) > 0) {
        (void)atomic_fetch_sub(&replica->busy, 1);
        status = 503;
    }
    if (status == 200)
        qh_stream_header(stream, "X-Promfabric-Samples", "41");
    qh_stream_answer(stream, status, "text/plain", status == 200 ? QF_STR(BYTES) : QF_STR(""));
}

static struct bench *bench_new(void)
{
    struct bench *bench = qf_xcalloc(1, sizeof(*bench));

    cache_bench_begin(&bench->base);
    for (int i = 0; i < 2; i++) {
        struct replica *replica = &bench->replicas[i];

        replica->lock = qf_lock_new();
        replica->listener = cache_bench_serve(serve, replica, replica->url);
        atomic_init(&replica->status, 200);
        bench->urls[i] = qf_str_from(replica->url);
    }
    return bench;
}

static void bench_free(struct bench *bench)
{
    cache_bench_end(&bench->base);
    for (int i = 0; i < 2; i++) {
        (void)qh_listener_free(bench->replicas[i].listener);
        (void)qf_lock_free(bench->replicas[i].lock);
    }
    free(bench);
}

/* Whether the last question had @text in it. */
static bool asked_with(struct replica *replica, const char *text)
{
    bool found;

    qf_lock_take(replica->lock);
    found = strstr(replica->body, text) != NULL;
    qf_lock_drop(replica->lock);
    return found;
}

static struct qw_hold *acquire(struct bench *bench, uint64_t cut, size_t count)
{
    struct pb_head inputs[MANY];
    struct pb_heads heads = {
        .inputs = inputs, .count = count, .match = QF_STR("{a=\"b\"}"), .min_ts = 1, .max_ts = 2
    };
    struct qw_hold *hold = qw_cache_acquire(bench->base.cache, NULL, 0, QF_STR(""), bench);

    for (size_t i = 0; i < count; i++)
        inputs[i] = (struct pb_head){ .partition = 3,
                                      .queue = QF_STR("q"),
                                      .generation = 5,
                                      .cut = cut,
                                      .shard = (uint32_t)i,
                                      .shard_count = count > 4 ? MANY : 4,
                                      .replicas = bench->urls,
                                      .replica_count = 2 };
    qw_cache_acquire_heads(bench->base.cache, hold, QF_STR("t"), &heads);
    return hold;
}

static struct qw_hold *get(struct bench *bench, uint64_t cut, size_t count)
{
    struct qw_hold *hold = acquire(bench, cut, count);

    cache_bench_finish(&bench->base);
    CHECK(qw_cache_settled(bench->base.cache) == hold);
    return hold;
}

TEST(a_head_input_is_a_file_while_it_is_held)
{
    struct bench *bench = bench_new();
    struct qw_hold *hold = get(bench, 7, 2);
    struct stat info;

    CHECK_MSG(hold->rc == QF_OK, "%s", hold->err.msg);
    CHECK_EQ(hold->count, 2);
    CHECK(stat(qw_segment_path(hold->segments[1]), &info) == 0);
    CHECK_EQ(info.st_size, strlen(BYTES));
    qw_cache_tidy(bench->base.cache, hold);
    CHECK_EQ(hold->head_samples, 82);
    CHECK_EQ(hold->head_bytes, 2 * strlen(BYTES));
    CHECK(asked_with(&bench->replicas[0],
                     "{\"tenant\":\"t\",\"partition\":3,\"queue\":\"q\",\"generation\":5,\"cut\":7,"
                     "\"shard\":"));
    CHECK(asked_with(&bench->replicas[0],
                     "\"shards\":4,\"min_ts\":1,\"max_ts\":2,\"match\":\"{a=\\\"b\\\"}\"}"));
    CHECK_EQ(atomic_load(&bench->replicas[1].asked), 0);
    qw_cache_release(bench->base.cache, hold);
    CHECK_EQ(cache_bench_files(&bench->base), 0);
    bench_free(bench);
}

/* The same question at the same time is asked once; another cut is another question. */
TEST(equal_head_inputs_are_shared)
{
    struct bench *bench = bench_new();
    struct qw_hold *first = acquire(bench, 7, 1), *second = acquire(bench, 7, 1);
    struct qw_hold *other = acquire(bench, 8, 1);

    cache_bench_finish(&bench->base);
    CHECK_EQ(atomic_load(&bench->replicas[0].asked), 2);
    CHECK_STR(qw_segment_path(first->segments[0]), qw_segment_path(second->segments[0]));
    CHECK(strcmp(qw_segment_path(first->segments[0]), qw_segment_path(other->segments[0])) != 0);
    while (qw_cache_settled(bench->base.cache))
        continue;
    qw_cache_release(bench->base.cache, first);
    CHECK_EQ(cache_bench_files(&bench->base), 2);
    qw_cache_release(bench->base.cache, second);
    qw_cache_release(bench->base.cache, other);
    bench_free(bench);
}

/* While the store is away a query has many, most of them small: a small disk must do. */
TEST(many_head_inputs_fit_a_small_budget)
{
    struct bench *bench = bench_new();
    struct qw_hold *hold;

    bench->base.room = 4 << 20;
    hold = get(bench, 7, MANY);
    CHECK_MSG(hold->rc == QF_OK, "%s", hold->err.msg);
    CHECK_EQ(hold->count, MANY);
    qw_cache_release(bench->base.cache, hold);
    bench->base.room = 1000;
    hold = acquire(bench, 8, 1);
    CHECK_EQ(hold->rc, QF_ENOSPC);
    qw_cache_release(bench->base.cache, hold);
    bench_free(bench);
}

/* Nothing that matches is no input, and no file. */
TEST(an_empty_head_input_is_let_go_of)
{
    struct bench *bench = bench_new();
    struct qw_hold *hold;

    atomic_store(&bench->replicas[0].status, 204);
    hold = get(bench, 7, 3);
    CHECK_EQ(hold->rc, QF_OK);
    qw_cache_tidy(bench->base.cache, hold);
    CHECK_EQ(hold->count, 0);
    CHECK_EQ(hold->head_bytes, 0);
    qw_cache_release(bench->base.cache, hold);
    bench_free(bench);
}

TEST(another_replica_is_asked_and_busy_ones_again)
{
    struct bench *bench = bench_new();
    struct qw_hold *hold;

    atomic_store(&bench->replicas[0].status, 410);
    atomic_store(&bench->replicas[1].busy, 2);
    hold = get(bench, 7, 1);
    CHECK_MSG(hold->rc == QF_OK, "%s", hold->err.msg);
    CHECK_EQ(atomic_load(&bench->replicas[1].asked), 3);
    qw_cache_release(bench->base.cache, hold);
    bench_free(bench);
}

/* What ends the query's plan, what is tried elsewhere, and what is nobody's to mend. */
TEST(failures_of_head_inputs_have_their_codes)
{
    static const struct {
        int first, second;
        qf_rc rc;
    } cases[] = { { 410, 410, QF_EGONE },        { 410, 503, QF_EGONE },
                  { 503, 503, QF_EUNAVAILABLE }, { 404, 404, QF_EGONE },
                  { 400, 200, QF_EINVAL },       { 403, 200, QF_EDENIED },
                  { 500, 500, QF_EUNAVAILABLE } };

    for (size_t i = 0; i < QF_COUNT_OF(cases); i++) {
        struct bench *bench = bench_new();
        struct qw_hold *hold;

        atomic_store(&bench->replicas[0].status, cases[i].first);
        atomic_store(&bench->replicas[1].status, cases[i].second);
        hold = get(bench, 7, 1);
        CHECK_MSG(hold->rc == cases[i].rc, "%d and %d: %s", cases[i].first, cases[i].second,
                  hold->err.msg);
        qw_cache_release(bench->base.cache, hold);
        bench_free(bench);
    }
}

/* Who lets go while it is on its way leaves nothing behind. */
TEST(a_head_input_that_nobody_waits_for_goes)
{
    struct bench *bench = bench_new();

    atomic_store(&bench->replicas[0].busy, 1);
    atomic_store(&bench->replicas[1].busy, 1);
    qw_cache_release(bench->base.cache, acquire(bench, 7, 2));
    bench_free(bench);
}
