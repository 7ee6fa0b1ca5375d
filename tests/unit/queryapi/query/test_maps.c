/* test_maps.c - plans over state maps: which leaf reads which, in which shards, and when that is an error. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys/clock.h"
#include "queryapi/query/query.h"
#include "tests/lib/test.h"

#define T0 INT64_C(1769817600000) /* 2026-01-31T00:00:00Z */
#define MAP(name, metric, version, behind)                                                         \
    "{\"name\":\"" name "\",\"kind\":\"state\",\"metric\":\"" metric "\",\"interval_ms\":60000,"   \
    "\"created\":5,\"version\":" version ",\"bytes\":8192,\"behind_ms\":" behind "}"
#define ANSWER                                                                                     \
    "{\"age_ms\":1000,\"nodes\":[\"http://a\"],\"maps\":[" MAP(                                    \
        "late", "late_info", "3",                                                                  \
        "90000") "," MAP("new", "new_info", "0", "0") "," MAP("team", "team_info", "17", "0") "]}"

struct bench {
    char dir[40];
    struct qa_query_env env;
    struct qh_stream *stream;
    struct qa_query *query;
};

/* Segments of @shards shards with a metric `up`, which their names do not say. */
static void start(struct bench *bench, uint32_t shards)
{
    struct qf_err err = { 0 };
    struct qf_strbuf path = QF_STRBUF_INIT;

    *bench = (struct bench){
        .dir = "/tmp/pf-maps-XXXXXX",
        .env = { .items_max = 100, .memory_bytes_max = 1 << 20, .state_age_ms_max = 60000 }
    };
    CHECK(mkdtemp(bench->dir));
    if (shards) {
        qf_strbuf_printf(&path, "mkdir -p %s/tenant=default/date=2026-01-31", bench->dir);
        CHECK(system(qf_strbuf_cstr(&path)) == 0);
        qf_strbuf_reset(&path);
        qf_strbuf_printf(&path,
                         "printf x > %s/tenant=default/date=2026-01-31/"
                         "1769817600000_1769821200000_s1of%u_g7_0000000000000007.parquet",
                         bench->dir, (unsigned)shards);
        CHECK(system(qf_strbuf_cstr(&path)) == 0);
    }
    qf_strbuf_done(&path);
    CHECK_OK(
        sg_store_open(&(struct sg_store_options){ .url = bench->dir }, &bench->env.store, &err),
        &err);
    bench->env.catalog = sg_catalog_new(&(struct sg_catalog_options){ .store = bench->env.store });
    bench->env.asker = (struct qa_asker *)1; /* never called: no answer asks for a listing */
}

static void drop_query(struct bench *bench)
{
    bench->query = qa_query_free(bench->query);
    if (bench->stream)
        (void)qh_stream_drop(bench->stream);
    bench->stream = NULL;
}

static void stop(struct bench *bench)
{
    struct qf_strbuf command = QF_STRBUF_INIT;

    drop_query(bench);
    bench->env.catalog = sg_catalog_free(bench->env.catalog);
    bench->env.store = sg_store_free(bench->env.store);
    qf_strbuf_printf(&command, "rm -rf %s", bench->dir);
    CHECK(system(qf_strbuf_cstr(&command)) == 0);
    qf_strbuf_done(&command);
}

/* Plan @text, with what ingest nodes say of maps @ago_ms ago; NULL: they say nothing. */
static struct qa_query *plan(struct bench *bench, const char *text, const char *answer,
                             int64_t ago_ms)
{
    struct qa_ask ask = { .kind = QA_QUERY_INSTANT,
                          .tenant = QF_STR("default"),
                          .text = qf_str_from(text),
                          .start_ms = T0 + 60000,
                          .end_ms = T0 + 60000 };
    struct qf_err err = { 0 };

    drop_query(bench);
    bench->stream = qh_stream_new(1 << 16);
    bench->query = qa_query_new(&bench->env, &ask, bench->stream);
    qa_query_turn(bench->query, QA_TURN_PLAN);
    CHECK_EQ(bench->query->next, QA_NEXT_ASK);
    bench->query->fresh = qa_status_none();
    if (answer)
        bench->query->maps = qa_maps_parse(qf_str_from(answer), qf_clock_mono_ms() - ago_ms, &err);
    CHECK_MSG(!answer || bench->query->maps, "%s", err.msg);
    qa_query_turn(bench->query, QA_TURN_RESUME);
    return bench->query;
}

TEST(a_leaf_that_may_select_an_info_series_reads_its_map)
{
    static const struct {
        const char *text;
        size_t maps;
    } cases[] = { { "team_info", 1 },
                  { "up", 0 },
                  { "{__name__=~\"team.*\"}", 1 },
                  { "{__name__!~\"late.*|new.*\",key=\"a\"}", 1 },
                  { "{__name__=\"team_info\",__name__!=\"team_info\"}", 0 },
                  { "{key=\"a\",__name__!=\"late_info\",__name__!=\"new_info\"}", 1 } };
    struct bench bench;

    start(&bench, 0);
    for (size_t i = 0; i < QF_COUNT_OF(cases); i++) {
        const struct qa_query *query = plan(&bench, cases[i].text, ANSWER, 0);

        CHECK_EQ(query->next, QA_NEXT_WORK);
        CHECK_EQ(query->item_count, cases[i].maps); /* of one shard, without segments */
        if (!cases[i].maps)
            continue;
        CHECK_EQ(query->items[0].maps.count, 1);
        CHECK_EQ(query->items[0].maps.inputs[0].version, 17);
        CHECK(qf_str_is(query->items[0].maps.nodes[0], "http://a"));
        CHECK_EQ(query->items[0].maps.shard_count, 1);
    }
    stop(&bench);
}

/* Each series belongs to one work: shards without segments get one, too. */
TEST(a_map_is_read_in_every_shard)
{
    struct bench bench;
    const struct qa_query *query;

    start(&bench, 4);
    query = plan(&bench, "team_info or up", ANSWER, 0);
    CHECK_EQ(query->next, QA_NEXT_WORK);
    CHECK_EQ(query->item_count, 4 + 1); /* that of `up` has segments in one shard alone */
    for (size_t i = 0; i < 4; i++) {
        CHECK_EQ(query->items[i].maps.shard, i);
        CHECK_EQ(query->items[i].maps.shard_count, 4);
        CHECK_EQ(query->items[i].segment_count, i == 1);
    }
    CHECK_EQ(query->items[4].maps.count, 0);
    bench.env.small_scan_us = 1000000; /* all of it in one work */
    bench.env.costs = qa_costs_new();
    query = plan(&bench, "team_info", ANSWER, 0);
    CHECK_EQ(query->item_count, 1);
    CHECK_EQ(query->items[0].maps.shard_count, 1);
    CHECK_EQ(query->items[0].segment_count, 1);
    drop_query(&bench);
    qa_costs_free(bench.env.costs);
    stop(&bench);
}

static void check_fails(struct bench *bench, const char *text, const char *answer, int64_t ago_ms,
                        const char *why)
{
    const struct qa_query *query = plan(bench, text, answer, ago_ms);

    CHECK_EQ(query->next, QA_NEXT_OVER);
    CHECK_EQ(query->rc, QF_EUNAVAILABLE);
    CHECK_MSG(strstr(query->told, why), "%s", query->told);
}

/* Without its map a query would lack something and not say so. Others go on. */
TEST(a_map_that_is_too_old_or_not_there_is_an_error)
{
    struct bench bench;

    start(&bench, 0);
    check_fails(&bench, "late_info", ANSWER, 0, "state map late (late_info): what is known of it");
    check_fails(&bench, "new_info", ANSWER, 0, "have no copy of it yet");
    check_fails(&bench, "{key=\"a\"}", ANSWER, 0, "late_info");
    check_fails(&bench, "team_info", ANSWER, 60000, "--state-age-max");
    check_fails(&bench, "up", NULL, 0, "no ingest node says which state maps there are");
    CHECK_EQ(plan(&bench, "up", ANSWER, 60000)->next, QA_NEXT_WORK);
    CHECK_EQ(plan(&bench, "team_info", ANSWER, 50000)->next, QA_NEXT_WORK);
    stop(&bench);
}
