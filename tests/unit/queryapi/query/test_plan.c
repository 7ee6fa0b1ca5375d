/* test_plan.c - planning with too little memory is an error, wherever the memory ends. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queryapi/query/query.h"
#include "segments/parquet/segment_name.h"
#include "tests/lib/test.h"

#define T0 INT64_C(1769817600000) /* 2026-01-31T00:00:00Z */
#define SHARDS 16

static void touch(const char *dir, uint32_t shard, bool gone)
{
    struct qf_strbuf path = QF_STRBUF_INIT;
    int fd;

    qf_strbuf_printf(&path, "%s/", dir);
    sg_segment_name_print(&path, &(struct sg_segment_name){ .tenant = QF_STR("default"),
                                                            .min_ts = T0,
                                                            .max_ts = T0 + 3600000,
                                                            .shard = shard,
                                                            .shard_count = SHARDS,
                                                            .generation = 1,
                                                            .id = shard });
    if (gone) {
        CHECK(unlink(qf_strbuf_cstr(&path)) == 0);
    } else {
        fd = open(qf_strbuf_cstr(&path), O_WRONLY | O_CREAT | O_EXCL, 0600);
        CHECK(fd >= 0 && write(fd, "x", 1) == 1);
        (void)close(fd);
    }
    qf_strbuf_done(&path);
}

/* True if there was enough. */
static bool plan_with(struct qa_query_env *env, size_t memory)
{
    struct qa_ask ask = { .kind = QA_QUERY_INSTANT,
                          .tenant = QF_STR("default"),
                          .text = QF_STR("up"),
                          .start_ms = T0 + 60000,
                          .end_ms = T0 + 60000 };
    struct qh_stream *stream = qh_stream_new(1 << 16);
    struct qa_query *query;
    bool planned;

    env->memory_bytes_max = memory;
    query = qa_query_new(env, &ask, stream);
    planned = !qf_arena_failed(query->arena);
    if (planned) {
        qa_query_turn(query, QA_TURN_PLAN);
        planned = query->next == QA_NEXT_WORK;
        CHECK_EQ(query->rc, planned ? QF_OK : QF_ELIMIT);
    }
    if (planned)
        CHECK_EQ(query->item_count, SHARDS);
    (void)qa_query_free(query);
    (void)qh_stream_drop(stream);
    return planned;
}

TEST(a_plan_ends_with_an_error_wherever_its_memory_ends)
{
    char dir[] = "/tmp/pf-plan-XXXXXX", tenant[64], day[100];
    struct qf_err err = { 0 };
    struct qa_query_env env = { .items_max = 100 };

    CHECK(mkdtemp(dir));
    (void)snprintf(tenant, sizeof(tenant), "%s/tenant=default", dir);
    (void)snprintf(day, sizeof(day), "%s/date=2026-01-31", tenant);
    CHECK(mkdir(tenant, 0700) == 0 && mkdir(day, 0700) == 0);
    for (uint32_t i = 0; i < SHARDS; i++)
        touch(dir, i, false);
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = dir }, &env.store, &err), &err);
    env.catalog = sg_catalog_new(&(struct sg_catalog_options){ .store = env.store });
    for (size_t memory = 64; memory < 32768; memory += 16)
        (void)plan_with(&env, memory);
    CHECK(plan_with(&env, 1 << 20));
    env.catalog = sg_catalog_free(env.catalog);
    env.store = sg_store_free(env.store);
    for (uint32_t i = 0; i < SHARDS; i++)
        touch(dir, i, true);
    CHECK(rmdir(day) == 0 && rmdir(tenant) == 0 && rmdir(dir) == 0);
}
