/* test_plan.c - planning with too little memory is an error, wherever the memory ends. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "queryapi/query/costs.h"
#include "queryapi/query/query_int.h"
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

static const struct qa_ask ask = { .kind = QA_QUERY_INSTANT,
                                   .tenant = { "default", 7 },
                                   .text = { "up", 2 },
                                   .start_ms = T0 + 60000,
                                   .end_ms = T0 + 60000 };

/* True if there was enough. */
static bool plan_with(struct qa_query_env *env, size_t memory)
{
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

/* A store with a segment for each shard. */
struct shop {
    char dir[32], tenant[64], day[100];
    struct qa_query_env env;
};

static void shop_open(struct shop *shop)
{
    struct qf_err err = { 0 };

    *shop = (struct shop){ .dir = "/tmp/pf-plan-XXXXXX", .env = { .items_max = 100 } };
    CHECK(mkdtemp(shop->dir));
    (void)snprintf(shop->tenant, sizeof(shop->tenant), "%s/tenant=default", shop->dir);
    (void)snprintf(shop->day, sizeof(shop->day), "%s/date=2026-01-31", shop->tenant);
    CHECK(mkdir(shop->tenant, 0700) == 0 && mkdir(shop->day, 0700) == 0);
    for (uint32_t i = 0; i < SHARDS; i++)
        touch(shop->dir, i, false);
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = shop->dir }, &shop->env.store, &err),
             &err);
    shop->env.catalog = sg_catalog_new(&(struct sg_catalog_options){ .store = shop->env.store });
}

static void shop_close(struct shop *shop)
{
    (void)sg_catalog_free(shop->env.catalog);
    (void)sg_store_free(shop->env.store);
    for (uint32_t i = 0; i < SHARDS; i++)
        touch(shop->dir, i, true);
    CHECK(rmdir(shop->day) == 0 && rmdir(shop->tenant) == 0 && rmdir(shop->dir) == 0);
}

TEST(a_plan_ends_with_an_error_wherever_its_memory_ends)
{
    struct shop shop;

    shop_open(&shop);
    for (size_t memory = 64; memory < 32768; memory += 16)
        (void)plan_with(&shop.env, memory);
    CHECK(plan_with(&shop.env, 1 << 20));
    shop_close(&shop);
}

/* Plan when the leaf is known to take @scan_us; every shard is in one work item. Returns how many work items
 * there are. */
static size_t items_of(struct shop *shop, uint64_t scan_us)
{
    struct qh_stream *stream = qh_stream_new(1 << 16);
    struct qa_query *query = qa_query_new(&shop->env, &ask, stream);
    size_t items, segments = 0;

    qa_query_turn(query, QA_TURN_PLAN);
    CHECK_EQ(query->next, QA_NEXT_WORK);
    qa_costs_learn(shop->env.costs, qa_leaf_key(query, 0, 0), 0);
    for (int i = 0; i < 100; i++) /* a larger figure counts little by little */
        qa_costs_learn(shop->env.costs, qa_leaf_key(query, 0, 0), scan_us);
    qa_query_turn(query, QA_TURN_PLAN);
    CHECK_EQ(query->next, QA_NEXT_WORK);
    items = query->item_count;
    CHECK_EQ(query->parts[0].columns, items);
    for (size_t i = 0; i < items; i++) {
        const struct qa_item *item = &query->items[i];

        CHECK_EQ(item->column, i);
        CHECK_EQ(item->all_shards, item->segment_count > 1);
        for (size_t k = 0; k < item->segment_count; k++)
            CHECK_EQ(item->segments[k].shard, segments++);
    }
    CHECK_EQ(segments, SHARDS);
    (void)qa_query_free(query);
    (void)qh_stream_drop(stream);
    return items;
}

/* What an item costs besides its scan is not paid for each shard, if there is little to scan. */
TEST(a_leaf_that_takes_little_is_few_work_items)
{
    struct shop shop;

    shop_open(&shop);
    shop.env.memory_bytes_max = 1 << 20;
    shop.env.costs = qa_costs_new();
    CHECK_EQ(items_of(&shop, 5000), SHARDS); /* without --small-scan */
    shop.env.small_scan_us = 1000;
    CHECK_EQ(items_of(&shop, 0), 1);
    CHECK_EQ(items_of(&shop, 1000), 1);
    CHECK_EQ(items_of(&shop, 1001), 2);
    CHECK_EQ(items_of(&shop, 2500), 3); /* of six, six and four shards */
    CHECK_EQ(items_of(&shop, 7900), 8);
    CHECK_EQ(items_of(&shop, 9000), 8); /* of two: nine would be fewer than two each */
    CHECK_EQ(items_of(&shop, 15500), SHARDS);
    CHECK_EQ(items_of(&shop, 90000), SHARDS);
    (void)qa_costs_free(shop.env.costs);
    shop_close(&shop);
}
