/* cache_bench.h - a cache over an empty store, and who it fetches from: for tests of what comes from ingest nodes. */
#ifndef TESTS_UNIT_QUERYWORKER_CACHE_BENCH_H
#define TESTS_UNIT_QUERYWORKER_CACHE_BENCH_H

#include "base/http/listener.h"
#include "queryworker/cache/cache.h"
#include "queryworker/cache/head.h"

struct cache_bench {
    char dir[64];
    struct sg_store *store;
    struct qf_mailbox *mailbox;
    struct qf_pool *pool;
    struct qw_metrics *metrics;
    struct qw_head_source *source;
    struct qw_cache *cache;
    uint64_t room; /* bytes make_room grants in all */
};

void cache_bench_begin(struct cache_bench *bench);
/* Until nothing is on its way any more. */
void cache_bench_finish(struct cache_bench *bench);
/* The cache is empty, or it is a failure. */
void cache_bench_end(struct cache_bench *bench);
/* Files in its folder. */
size_t cache_bench_files(const struct cache_bench *bench);

/* An HTTP server on the loopback; its base URL in @url. */
struct qh_listener *cache_bench_serve(void (*handle)(void *ctx, struct qh_request *request,
                                                     struct qh_stream *stream),
                                      void *ctx, char url[64]);

#endif
