/* test_answer.c - from committed artifacts to the bytes of answers.
 *
 * Real plans, leaves, artifacts and evaluation in one process; only the worker's way of finding
 * segments is replaced by series in memory. Nobody listens and nobody dials. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "promql/leaf.h"
#include "queryapi/query/query.h"
#include "segments/parquet/artifact.h"
#include "segments/parquet/segment_name.h"
#include "tests/lib/http/answers.h"
#include "tests/lib/promql/memory_series.h"

#define SHARDS 2

/* A store that has a segment per shard; what is in them comes from `series`. */
struct fixture {
    char dir[32], day[80];
    struct qa_query_env env;
    struct memory_series *series;
    struct pq_engine engine;
    struct qf_strbuf text;
    struct qf_strbuf log; /* what it would say */
};

static char *segment_path(const struct fixture *f, uint32_t shard)
{
    struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_printf(&path, "%s/", f->dir);
    sg_segment_name_print(&path, &(struct sg_segment_name){ .tenant = QF_STR("default"),
                                                            .min_ts = 0,
                                                            .max_ts = 3600000,
                                                            .shard = shard,
                                                            .shard_count = SHARDS,
                                                            .generation = 1,
                                                            .id = shard });
    return qf_strbuf_take(&path);
}

static void setup(struct fixture *f)
{
    struct qf_err err = { 0 };

    *f = (struct fixture){ .dir = "/tmp/pf-answer-XXXXXX",
                           .env = { .items_max = 100, .memory_bytes_max = 64 << 20 } };
    CHECK(mkdtemp(f->dir));
    (void)snprintf(f->day, sizeof(f->day), "%s/tenant=default", f->dir);
    CHECK_EQ(mkdir(f->day, 0700), 0);
    (void)snprintf(f->day, sizeof(f->day), "%s/tenant=default/date=1970-01-01", f->dir);
    CHECK_EQ(mkdir(f->day, 0700), 0);
    for (uint32_t i = 0; i < SHARDS; i++) {
        QF_CLEANUP(qf_freep) char *path = segment_path(f, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        CHECK(fd >= 0 && write(fd, "x", 1) == 1);
        (void)close(fd);
    }
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = f->dir }, &f->env.store, &err), &err);
    f->env.catalog = sg_catalog_new(&(struct sg_catalog_options){ .store = f->env.store });
    f->env.costs = qa_costs_new();
    f->series = memory_series_new(60000);
    f->engine = memory_series_engine(f->series, SHARDS);
}

static void teardown(struct fixture *f)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        QF_CLEANUP(qf_freep) char *path = segment_path(f, i);

        CHECK_EQ(unlink(path), 0);
    }
    CHECK_EQ(rmdir(f->day), 0);
    (void)snprintf(f->day, sizeof(f->day), "%s/tenant=default", f->dir);
    CHECK(rmdir(f->day) == 0 && rmdir(f->dir) == 0);
    (void)sg_catalog_free(f->env.catalog);
    (void)qa_costs_free(f->env.costs);
    (void)sg_store_free(f->env.store);
    memory_series_freep(&f->series);
    qf_strbuf_done(&f->text);
    qf_strbuf_done(&f->log);
}

/* What a worker does with a work item; the bytes of its artifact. */
static void run_item(const struct fixture *f, struct qa_item *item)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_leaf_limits limits = { 0 };
    struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct pq_leaf_result result;
    struct qf_err err = { 0 };
    struct pq_source *source;
    struct pq_leaf *leaf;

    CHECK_EQ(item->segment_count, 1);
    CHECK_OK(pq_leaf_decode(arena, item->spec, &leaf, &err), &err);
    CHECK_OK(f->engine.open(f->engine.ctx, item->segments[0].shard, &leaf->select, &source, &err),
             &err);
    CHECK_OK(pq_leaf_run(leaf, source, &limits, NULL, arena, &result, &err), &err);
    source->close(source);
    CHECK_OK(sg_artifact_write_memory(&result, &bytes, NULL, &err), &err);
    item->artifact.size_bytes = bytes.len;
    item->artifact.data = qf_strbuf_take(&bytes);
}

/* Plan, and have all work done. */
static struct qa_query *planned(struct fixture *f, const struct qa_ask *ask,
                                struct qh_stream *stream)
{
    struct qa_query *query = qa_query_new(&f->env, ask, stream);

    qa_query_turn(query, QA_TURN_PLAN);
    for (size_t i = 0; query->next == QA_NEXT_WORK && i < query->item_count; i++)
        run_item(f, &query->items[i]);
    return query;
}

/* The whole answer as text, until the next call; *ret_turns is how many turns it took. */
static const char *answer_through(struct fixture *f, const struct qa_ask *ask, size_t stream_bytes,
                                  size_t *ret_turns)
{
    struct qh_stream *stream = answers_stream(stream_bytes);
    struct qa_query *query = planned(f, ask, stream);
    struct qf_strbuf body = QF_STRBUF_INIT;
    struct qh_stream_head head;
    ssize_t last = 0;

    *ret_turns = 0;
    while (query->next != QA_NEXT_OVER) {
        qa_query_turn(query, QA_TURN_ANSWER);
        ++*ret_turns;
        if (query->next == QA_NEXT_ROOM)
            CHECK_EQ(answers_take(stream, &body), 0);
    }
    CHECK(qh_stream_head(stream, &head));
    last = answers_take(stream, &body);
    CHECK(last != 0);
    qf_strbuf_reset(&f->text);
    qf_strbuf_printf(&f->text, "%d %s %s%s", head.status, head.content_type, qf_strbuf_cstr(&body),
                     last == QH_STREAM_CUT ? "[cut]" : "");
    qf_strbuf_done(&body);
    (void)qa_query_free(query);
    (void)qh_stream_drop(stream);
    return qf_strbuf_cstr(&f->text);
}

static const char *answer(struct fixture *f, const struct qa_ask *ask)
{
    size_t turns;

    return answer_through(f, ask, 1 << 20, &turns);
}

static struct qa_ask expression(enum qa_query_kind kind, const char *text)
{
    return (struct qa_ask){ .kind = kind,
                            .tenant = QF_STR("default"),
                            .text = qf_str_from(text),
                            .start_ms = 60000,
                            .end_ms = kind == QA_QUERY_INSTANT ? 60000 : 120000,
                            .step_ms = kind == QA_QUERY_INSTANT ? 0 : 60000 };
}

static struct qa_ask matching(enum qa_query_kind kind, const struct qf_str *match)
{
    return (struct qa_ask){ .kind = kind,
                            .tenant = QF_STR("default"),
                            .text = *match,
                            .start_ms = INT64_MIN / 4,
                            .end_ms = INT64_MAX / 4,
                            .matches = match,
                            .match_count = 1 };
}

#define JSON "200 application/json {\"status\":\"success\",\"data\":"

TEST(each_type_of_result_has_its_document)
{
    struct qa_ask ask;
    struct fixture f;

    setup(&f);
    memory_series_add(f.series, "m{i=\"a\"} 1 2 3");
    memory_series_add(f.series, "m{i=\"b\"} 4 5 6");
    ask = expression(QA_QUERY_INSTANT, "m");
    CHECK_STR(answer(&f, &ask), JSON "{\"resultType\":\"vector\",\"result\":["
                                     "{\"metric\":{\"__name__\":\"m\",\"i\":\"a\"},"
                                     "\"value\":[60,\"2\"]},"
                                     "{\"metric\":{\"__name__\":\"m\",\"i\":\"b\"},"
                                     "\"value\":[60,\"5\"]}]}}");
    ask = expression(QA_QUERY_RANGE, "sum(m)");
    CHECK_STR(answer(&f, &ask), JSON "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{},"
                                     "\"values\":[[60,\"7\"],[120,\"9\"]]}]}}");
    ask = expression(QA_QUERY_INSTANT, "1 + 1");
    CHECK_STR(answer(&f, &ask), JSON "{\"resultType\":\"scalar\",\"result\":[60,\"2\"]}}");
    ask = expression(QA_QUERY_INSTANT, "'x\"y'");
    CHECK_STR(answer(&f, &ask), JSON "{\"resultType\":\"string\",\"result\":[60,\"x\\\"y\"]}}");
    ask = expression(QA_QUERY_INSTANT, "nothing");
    CHECK_STR(answer(&f, &ask), JSON "{\"resultType\":\"vector\",\"result\":[]}}");
    teardown(&f);
}

TEST(series_labels_and_values_are_sorted_lists_without_duplicates)
{
    struct qf_str match = QF_STR("{__name__=~\"m|n\"}");
    struct qa_ask ask = matching(QA_QUERY_SERIES, &match);
    struct fixture f;

    setup(&f);
    memory_series_add(f.series, "n{i=\"b\"} 1");
    memory_series_add(f.series, "m{i=\"b\",j=\"c\"} 1");
    memory_series_add(f.series, "m{i=\"a\"} 1");
    memory_series_add(f.series, "other{i=\"z\"} 1");
    CHECK_STR(answer(&f, &ask), JSON "[{\"__name__\":\"m\",\"i\":\"a\"},"
                                     "{\"__name__\":\"m\",\"i\":\"b\",\"j\":\"c\"},"
                                     "{\"__name__\":\"n\",\"i\":\"b\"}]}");
    ask = matching(QA_QUERY_LABELS, &match);
    CHECK_STR(answer(&f, &ask), JSON "[\"__name__\",\"i\",\"j\"]}");
    ask = matching(QA_QUERY_LABEL_VALUES, &match);
    ask.label = QF_STR("i");
    CHECK_STR(answer(&f, &ask), JSON "[\"a\",\"b\"]}");
    ask.limit = 1;
    CHECK_STR(answer(&f, &ask), JSON "[\"a\"],\"warnings\":[\"results truncated due to limit\"]}");
    teardown(&f);
}

/* The stream begins with the plan: a client sees that its query runs. */
TEST(events_come_in_the_order_of_time_and_end_with_done)
{
    struct qa_ask ask = expression(QA_QUERY_EVENTS, "m");
    struct qh_stream *stream = answers_stream(1 << 20);
    struct qa_query *query;
    struct fixture f;

    setup(&f);
    memory_series_add(f.series, "m{i=\"a\"} 1 2 3");
    memory_series_add(f.series, "m{i=\"b\"} 4 _ 6");
    ask.start_ms = 0;
    query = qa_query_new(&f.env, &ask, stream);
    CHECK(!qh_stream_begun(stream));
    qa_query_turn(query, QA_TURN_PLAN);
    CHECK(qh_stream_begun(stream));
    (void)qa_query_free(query);
    (void)qh_stream_drop(stream);
#define EVENT(ts, value, i)                                                                        \
    "data: {\"type\":\"result\",\"data\":{\"timestamp\":" ts ",\"value\":" value                   \
    ",\"tags\":{\"__name__\":\"m\",\"i\":\"" i "\"},\"label\":\"m{i=\\\"" i "\\\"}\"}}\n\n"
    ask.lookback_ms = 1000;
    CHECK_STR(answer(&f, &ask),
              "200 text/event-stream " EVENT("0", "1", "a") EVENT("0", "4", "b")
                  EVENT("60000", "2", "a") EVENT("120000", "3", "a")
                      EVENT("120000", "6",
                            "b") "data: {\"type\":\"done\",\"data\":{\"status\":\"ok\"}}\n\n");
    teardown(&f);
}

static void add_many(const struct fixture *f)
{
    for (int i = 0; i < 300; i++) {
        char line[100];

        (void)snprintf(line, sizeof(line), "m{instance=\"some-long-name-%03d\"} %d+1x40", i, i);
        memory_series_add(f->series, line);
    }
}

/* A client that reads slowly costs turns, never bytes. */
TEST(an_answer_is_the_same_however_little_room_there_is)
{
    static const enum qa_query_kind kinds[] = { QA_QUERY_INSTANT, QA_QUERY_RANGE, QA_QUERY_EVENTS };
    struct fixture f;

    setup(&f);
    add_many(&f);
    for (size_t i = 0; i < QF_COUNT_OF(kinds); i++) {
        QF_CLEANUP(qf_freep) char *whole = NULL;
        struct qa_ask ask = expression(kinds[i], "m");
        size_t turns;

        ask.end_ms = ask.step_ms ? 2400000 : ask.start_ms;
        whole = qf_xstrdup(answer_through(&f, &ask, 64 << 20, &turns));
        CHECK_EQ(turns, 1);
        CHECK_STR(answer_through(&f, &ask, 100, &turns), whole);
        CHECK_MSG(kinds[i] == QA_QUERY_INSTANT || turns > 3, "kind %zu: %zu turns", i, turns);
    }
    teardown(&f);
}

/* Before the first byte an error has a status, for events too. */
TEST(an_error_is_told_in_the_form_of_the_answer)
{
    struct qa_ask ask = expression(QA_QUERY_INSTANT, "sum(");
    struct fixture f;

    setup(&f);
    CHECK_STR(answer(&f, &ask),
              "400 application/json {\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":"
              "\"invalid parameter \\\"query\\\": 1:5: parse error: unclosed left parenthesis\"}");
    ask = expression(QA_QUERY_EVENTS, "sum(");
    CHECK_STR(answer(&f, &ask),
              "400 application/json {\"status\":\"error\",\"code\":\"parse\",\"message\":"
              "\"1:5: parse error: unclosed left parenthesis\"}");
    teardown(&f);
}

static const char *answer_with_bad_artifact(struct fixture *f, const struct qa_ask *ask, bool gone)
{
    struct qh_stream *stream = answers_stream(1 << 20);
    struct qa_query *query = planned(f, ask, stream);

    CHECK_EQ(query->item_count, SHARDS);
    if (gone)
        qa_artifact_done(&query->items[1].artifact);
    else
        query->items[1].artifact.data[10] ^= 1;
    (void)snprintf(query->name, sizeof(query->name), "api-7");
    qa_query_turn(query, QA_TURN_ANSWER);
    CHECK_EQ(query->next, QA_NEXT_OVER);
    CHECK(query->rc != QF_OK);
    qf_strbuf_reset(&f->text);
    answers_read(stream, &f->text);
    qf_strbuf_reset(&f->log);
    qf_strbuf_puts(&f->log, query->err.msg);
    (void)qa_query_free(query);
    (void)qh_stream_drop(stream);
    return qf_strbuf_cstr(&f->text);
}

/* What was planned is there and whole, or there is no answer. */
TEST(never_a_silent_subset)
{
    struct qa_ask ask = expression(QA_QUERY_RANGE, "m");
    struct fixture f;

    setup(&f);
    memory_series_add(f.series, "m{i=\"a\"} 1 2 3");
    CHECK_STR(answer_with_bad_artifact(&f, &ask, true),
              "500 application/json\n\n{\"status\":\"error\",\"errorType\":\"internal\",\"error\":"
              "\"internal error (query api-7; the server's log says more)\"}");
    CHECK_STR(qf_strbuf_cstr(&f.log), "work item 1 has no artifact");
    CHECK(strstr(answer_with_bad_artifact(&f, &ask, false), "\"artifact: corrupt"));
    ask.kind = QA_QUERY_EVENTS;
    CHECK(strstr(answer_with_bad_artifact(&f, &ask, true),
                 "200 text/event-stream\nCache-Control: no-cache\n\n"
                 "data: {\"type\":\"error\",\"data\":{\"code\":\"internal\",\"message\":"
                 "\"internal error (query api-7; the server's log says more)\"}}\n\n"
                 "data: {\"type\":\"done\",\"data\":{\"status\":\"error\"}}\n\n"));
    teardown(&f);
}

/* Half a document must not look like a whole one. */
TEST(a_document_that_cannot_be_finished_is_cut)
{
    struct qh_stream *stream = answers_stream(100);
    struct qa_ask ask = expression(QA_QUERY_RANGE, "m");
    struct qf_strbuf body = QF_STRBUF_INIT;
    struct qa_query *query;
    struct fixture f;

    setup(&f);
    add_many(&f);
    ask.end_ms = 2400000;
    query = planned(&f, &ask, stream);
    qa_query_turn(query, QA_TURN_ANSWER);
    CHECK_EQ(query->next, QA_NEXT_ROOM);
    query->cancel_rc = QF_ETIMEOUT;
    atomic_store(&query->canceled, true);
    qa_query_turn(query, QA_TURN_ANSWER);
    CHECK_EQ(query->next, QA_NEXT_OVER);
    CHECK_EQ(query->rc, QF_ETIMEOUT);
    CHECK_EQ(answers_take(stream, &body), QH_STREAM_CUT);
    CHECK(body.len > 0);
    qf_strbuf_done(&body);
    (void)qa_query_free(query);
    (void)qh_stream_drop(stream);
    teardown(&f);
}
