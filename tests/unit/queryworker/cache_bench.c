/* cache_bench.c - see cache_bench.h. */
#include "tests/unit/queryworker/cache_bench.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/test.h"

static bool make_room(void *ctx, uint64_t bytes)
{
    const struct cache_bench *bench = ctx;

    return qw_cache_stats(bench->cache).bytes + bytes <= bench->room;
}

void cache_bench_begin(struct cache_bench *bench)
{
    struct qf_err err = { 0 };
    char cache[100];

    bench->room = UINT64_MAX / 2;
    (void)snprintf(bench->dir, sizeof(bench->dir), "/tmp/pf-cache-XXXXXX");
    CHECK(mkdtemp(bench->dir));
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = bench->dir }, &bench->store, &err),
             &err);
    bench->mailbox = qf_mailbox_new(64);
    bench->pool = qf_pool_new("download", 3, 64);
    bench->metrics = qw_metrics_new();
    bench->source = qw_head_source_new(&(struct qw_head_options){ 0 }, &err);
    (void)snprintf(cache, sizeof(cache), "%s/cache", bench->dir);
    bench->cache = qw_cache_new(&(struct qw_cache_options){ .store = bench->store,
                                                            .heads = bench->source,
                                                            .dir = cache,
                                                            .pool = bench->pool,
                                                            .mailbox = bench->mailbox,
                                                            .metrics = bench->metrics,
                                                            .readers_max = 4,
                                                            .reader_bytes_max = 1 << 20,
                                                            .make_room = make_room,
                                                            .ctx = bench },
                                &err);
    CHECK_MSG(bench->cache, "%s", err.msg);
}

void cache_bench_finish(struct cache_bench *bench)
{
    while (qw_cache_stats(bench->cache).downloads) {
        struct qw_message *message = qf_mailbox_receive(bench->mailbox, 20000);

        CHECK(message && message->kind == QW_MESSAGE_DOWNLOAD);
        qw_cache_dispatch(bench->cache, message);
    }
}

size_t cache_bench_files(const struct cache_bench *bench)
{
    char path[100];
    DIR *dir;
    size_t count = 0;

    (void)snprintf(path, sizeof(path), "%s/cache", bench->dir);
    dir = opendir(path);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        count += entry->d_name[0] != '.';
    (void)closedir(dir);
    return count;
}

void cache_bench_end(struct cache_bench *bench)
{
    char command[100];

    cache_bench_finish(bench);
    CHECK_EQ(qw_cache_stats(bench->cache).bytes, 0);
    CHECK_EQ(qw_cache_stats(bench->cache).segments, 0);
    CHECK_EQ(cache_bench_files(bench), 0);
    bench->cache = qw_cache_free(bench->cache);
    bench->pool = qf_pool_free(bench->pool);
    bench->mailbox = qf_mailbox_free(bench->mailbox, NULL);
    bench->metrics = qw_metrics_free(bench->metrics);
    bench->source = qw_head_source_free(bench->source);
    bench->store = sg_store_free(bench->store);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", bench->dir);
    CHECK_EQ(system(command), 0);
}

struct qh_listener *cache_bench_serve(void (*handle)(void *ctx, struct qh_request *request,
                                                     struct qh_stream *stream),
                                      void *ctx, char url[64])
{
    struct qh_listener_options options = { .listen = "127.0.0.1:0",
                                           .handle = handle,
                                           .ctx = ctx,
                                           .body_bytes_max = 1 << 20,
                                           .bodies_bytes_max = 1 << 20 };
    struct qf_err err = { 0 };
    struct qh_listener *listener = qh_listener_new(&options, &err);

    CHECK_MSG(listener, "%s", err.msg);
    (void)snprintf(url, 64, "http://127.0.0.1:%d", qh_listener_port(listener));
    return listener;
}
