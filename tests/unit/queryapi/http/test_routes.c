/* test_routes.c - the API's endpoints: requests in, answers out, with a real coordinator behind them
 * and no network. Queries here need no worker; what workers do is the integration tests' subject. */
#include "queryapi/http/routes.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/http/params.h"
#include "base/pure/alloc.h"
#include "queryapi/query/query.h"
#include "tests/lib/http/answers.h"

struct fixture {
    char store[32], spool[32];
    struct qa_metrics metrics;
    struct qf_pool *pool;
    struct qa_query_env env;
    struct qa_routes routes;
    struct qf_strbuf text;
};

static void setup(struct fixture *f)
{
    struct qf_err err = { 0 };

    *f = (struct fixture){ .store = "/tmp/pf-routes-XXXXXX", .spool = "/tmp/pf-routes-XXXXXX" };
    CHECK(mkdtemp(f->store) && mkdtemp(f->spool));
    qa_metrics_init(&f->metrics);
    f->pool = qf_pool_new("eval", 2, 64);
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = f->store }, &f->env.store, &err),
             &err);
    f->env.catalog = sg_catalog_new(&(struct sg_catalog_options){ .store = f->env.store });
    f->env.costs = qa_costs_new();
    f->env.items_max = 100;
    f->env.memory_bytes_max = 16 << 20;
    f->routes.coord = qa_coord_new(&(struct qa_coord_options){ .api_id = "t",
                                                               .pool = f->pool,
                                                               .metrics = &f->metrics,
                                                               .spool_dir = f->spool,
                                                               .spool_bytes_max = 1 << 20,
                                                               .query_artifact_bytes_max = 1 << 20,
                                                               .queries_max = 4,
                                                               .queries_active_max = 2,
                                                               .tenant_queue_max = 4,
                                                               .query_timeout_ms = 10000,
                                                               .worker_wait_ms = 1000,
                                                               .slow_query_ms = -1 },
                                   &err);
    CHECK_MSG(f->routes.coord, "%s", err.msg);
    f->routes.env = &f->env;
    f->routes.metrics = &f->metrics;
    f->routes.tenants = qh_tenants_new(NULL, NULL);
    f->routes.points_max = 11000;
}

static void teardown(struct fixture *f)
{
    (void)qa_coord_free(f->routes.coord);
    (void)qf_pool_free(f->pool);
    (void)qh_tenants_free(f->routes.tenants);
    (void)sg_catalog_free(f->env.catalog);
    (void)qa_costs_free(f->env.costs);
    (void)sg_store_free(f->env.store);
    qa_metrics_done(&f->metrics);
    qf_strbuf_done(&f->text);
    CHECK_EQ(rmdir(f->store), 0);
    (void)rmdir(f->spool);
}

/* The answer as text until the next call, without the id of the query. @form are parameters as in a
 * URL; @body is of type @type. */
static const char *send(struct fixture *f, enum qh_method method, const char *path,
                        const char *form, const char *type, const char *body)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 20);
    struct qh_param headers[] = { { QF_STR("Content-Type"), qf_str_from(type) } };
    struct qh_request request = { .arena = arena,
                                  .method = method,
                                  .path = qf_str_from(path),
                                  .body = qf_str_from(body),
                                  .headers = { .items = headers, .count = 1 } };
    struct qh_stream *stream = answers_stream(1 << 20);
    struct qf_err err = { 0 };
    char *id, *end;

    qh_request_read_headers(&request);
    CHECK_OK(qh_params_add_form(arena, &request.params, qf_str_from(form), &err), &err);
    qa_routes_handle(&f->routes, &request, stream);
    qf_strbuf_reset(&f->text);
    answers_read(stream, &f->text);
    (void)qh_stream_drop(stream);
    id = strstr(f->text.data, "X-Query-Id: t-");
    if (id) {
        end = strchr(id, '\n') + 1;
        memmove(id, end, strlen(end) + 1);
    }
    return f->text.data;
}

static const char *get(struct fixture *f, const char *path, const char *form)
{
    return send(f, QH_METHOD_GET, path, form, "", "");
}

#define OK "200 application/json\n\n{\"status\":\"success\",\"data\":"
#define BAD(message)                                                                               \
    "400 "                                                                                         \
    "application/json\n\n{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"" message    \
    "\"}"
#define BAD_EVENTS(message)                                                                        \
    "400 application/json\n\n{\"status\":\"error\",\"code\":\"bad_data\",\"message\":\"" message   \
    "\"}"

TEST(an_expression_becomes_a_query_and_its_answer)
{
    struct fixture f;

    setup(&f);
    CHECK_STR(get(&f, "/api/v1/query", "query=1%2B1&time=5"),
              OK "{\"resultType\":\"scalar\",\"result\":[5,\"2\"]}}");
    CHECK_STR(get(&f, "/api/v1/query", "query=up&time=5"),
              OK "{\"resultType\":\"vector\",\"result\":[]}}");
    CHECK_STR(get(&f, "/api/v1/query_range", "query=1&start=0&end=20&step=10s"),
              OK "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{},\"values\":"
                 "[[0,\"1\"],[10,\"1\"],[20,\"1\"]]}]}}");
    teardown(&f);
}

TEST(the_event_stream_takes_parameters_and_json)
{
    static const char want[] =
        "200 text/event-stream\nCache-Control: no-cache\nVary: Accept-Encoding\n\n"
        "data: {\"type\":\"result\",\"data\":{\"timestamp\":1000,\"value\":7,\"tags\":{},"
        "\"label\":\"{}\"}}\n\ndata: {\"type\":\"done\",\"data\":{\"status\":\"ok\"}}\n\n";
    struct fixture f;

    setup(&f);
    CHECK_STR(get(&f, "/api/v1/metrics/query", "q=7&s=1&e=1&step=1s"), want);
    CHECK_STR(send(&f, QH_METHOD_POST, "/api/v1/metrics/query", "", "application/json",
                   "{\"q\":\"7\",\"s\":1,\"e\":\"1\",\"step\":\"1s\"}"),
              want);
    teardown(&f);
}

TEST(series_and_labels_ask_for_what_matches)
{
    struct fixture f;

    setup(&f);
    CHECK_STR(get(&f, "/api/v1/series", "match[]=up&match[]=m"), OK "[]}");
    CHECK_STR(get(&f, "/api/v1/labels", ""), OK "[]}");
    CHECK_STR(get(&f, "/api/v1/label/job/values", ""), OK "[]}");
    CHECK_STR(get(&f, "/api/v1/series", ""), BAD("no match[] parameter provided"));
    CHECK_STR(get(&f, "/api/v1/series", "match[]={}"),
              BAD("invalid parameter \\\"match[]\\\": match[] must contain at least one "
                  "non-empty matcher"));
    CHECK_STR(get(&f, "/api/v1/label/\xff/values", ""),
              BAD("invalid label name: \\\"\xef\xbf\xbd\\\""));
    teardown(&f);
}

/* Dashboards ask with one for each of their metrics. */
TEST(any_number_of_matches_is_answered)
{
    struct qf_strbuf form = QF_STRBUF_INIT;
    struct fixture f;

    setup(&f);
    for (int i = 0; i < 300; i++)
        qf_strbuf_printf(&form, "match[]=metric_%d&match[]=up{a=\"%d\"}&", i, i);
    CHECK_STR(get(&f, "/api/v1/series", form.data), OK "[]}");
    qf_strbuf_puts(&form, "match[]=up{");
    CHECK(strstr(get(&f, "/api/v1/series", form.data), "parse error"));
    qf_strbuf_done(&form);
    teardown(&f);
}

TEST(lists_of_what_there_is_not_are_empty_in_the_form_of_prometheus)
{
    struct fixture f;

    setup(&f);
    CHECK_STR(get(&f, "/api/v1/targets", ""),
              OK "{\"activeTargets\":[],\"droppedTargets\":[],\"droppedTargetCounts\":{}}}");
    CHECK_STR(get(&f, "/api/v1/targets/metadata", "match_target={a=\"b\"}"), OK "[]}");
    CHECK_STR(get(&f, "/api/v1/scrape_pools", ""), OK "{\"scrapePools\":[]}}");
    CHECK_STR(get(&f, "/api/v1/alertmanagers", ""),
              OK "{\"activeAlertmanagers\":[],\"droppedAlertmanagers\":[]}}");
    CHECK_STR(get(&f, "/api/v1/notifications", ""), OK "[]}");
    CHECK(strstr(get(&f, "/api/v1/status/buildinfo", ""), "\"version\":\"3.14.0\""));
    CHECK(strstr(get(&f, "/api/v1/status/flags", ""), OK "{}"));
    CHECK(strstr(get(&f, "/api/v1/status/runtimeinfo", ""), "\"startTime\":\""));
    CHECK(strstr(get(&f, "/api/v1/features", ""), "\"abs\":true"));
    teardown(&f);
}

TEST(parameters_of_rules_are_checked)
{
    struct fixture f;

    setup(&f);
    CHECK_STR(
        get(&f, "/api/v1/rules", "type=alert&exclude_alerts=T&group_limit=3&match[]={a=\"b\"}"),
        OK "{\"groups\":[]}}");
    CHECK_STR(get(&f, "/api/v1/rules", "type=x"),
              BAD("invalid parameter \\\"type\\\": not supported value \\\"x\\\""));
    CHECK_STR(get(&f, "/api/v1/rules", "group_limit=0"),
              BAD("invalid parameter \\\"group_limit\\\": group_limit needs to be greater than 0"));
    CHECK(strstr(get(&f, "/api/v1/rules", "match[]=x("), "parse error"));
    CHECK(strstr(get(&f, "/api/v1/rules", "group_next_token=a"), "needs to be present"));
    teardown(&f);
}

/* The same mistake, in the words and the form of each endpoint. */
TEST(mistakes_are_told_in_the_form_of_the_endpoint)
{
    struct fixture f;

    setup(&f);
    CHECK_STR(get(&f, "/api/v1/query", "query=1&time=x"),
              BAD("invalid parameter \\\"time\\\": invalid time value for 'time': cannot parse "
                  "\\\"x\\\" to a valid timestamp"));
    CHECK_STR(get(&f, "/api/v1/query", "query=\xff"),
              BAD("invalid parameter \\\"query\\\": the text is not valid UTF-8"));
    CHECK_STR(get(&f, "/api/v1/query", "query=1&timeout=-1s"),
              BAD("invalid parameter \\\"timeout\\\": cannot parse \\\"-1s\\\" to a valid "
                  "duration"));
    CHECK_STR(get(&f, "/api/v1/query_range", "query=1&start=2&end=1&step=1"),
              BAD("invalid parameter \\\"end\\\": end timestamp must not be before start time"));
    CHECK_STR(get(&f, "/api/v1/query_range", "query=1&start=0&end=11001&step=1"),
              BAD("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing "
                  "the query resolution (?step=XX)"));
    CHECK_STR(get(&f, "/api/v1/metrics/query", "s=1&e=2"),
              BAD_EVENTS("\\\"q\\\", the query, is missing"));
    CHECK_STR(send(&f, QH_METHOD_POST, "/api/v1/metrics/query", "", "", "{"),
              BAD_EVENTS("the body is not JSON: string or '}' expected near end of file"));
    teardown(&f);
}

TEST(a_query_that_does_not_fit_its_memory_is_refused)
{
    struct fixture f;

    setup(&f);
    f.env.memory_bytes_max = 10;
    CHECK(strstr(get(&f, "/api/v1/query", "query=1"), "the query needs more memory than it may"));
    CHECK_EQ(qa_coord_query_count(f.routes.coord), 0);
    teardown(&f);
}

/* What a printed query takes is paid from what all queries have together, before it is printed. */
TEST(printing_finds_no_room_where_others_have_it)
{
    struct qf_purse shared = { .limit = 40 << 20 };
    struct fixture f;

    setup(&f);
    f.env.memory_bytes_max = 64 << 20;
    f.env.purse = &shared;
    CHECK(strstr(get(&f, "/api/v1/format_query", "query=up"), "200 application/json"));
    CHECK(qf_purse_take(&shared, 20 << 20));
    CHECK(strstr(get(&f, "/api/v1/format_query", "query=up"), "503 application/json"));
    CHECK(strstr(f.text.data, "other queries use all memory"));
    qf_purse_give(&shared, 20 << 20);
    teardown(&f);
}

/* A task that keeps a thread of the pool until it is told to end. */
static void hold(void *arg)
{
    const atomic_bool *ended = arg;

    while (!atomic_load(ended))
        (void)usleep(1000);
}

/* Ask for @text to be parsed; what comes of it is in the stream. */
static struct qh_stream *parse(struct fixture *f, struct qf_str text)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 20);
    struct qh_param param = { QF_STR("query"), qf_arena_str(arena, text) };
    struct qh_request request = { .arena = arena,
                                  .method = QH_METHOD_POST,
                                  .path = QF_STR("/api/v1/parse_query"),
                                  .params = { .items = &param, .count = 1 } };
    struct qh_stream *stream = answers_stream(1 << 20);

    qa_routes_handle(&f->routes, &request, stream);
    return stream;
}

/* Parsing a megabyte takes long: the thread of the connection must not do it, or all of its other
 * connections wait. How many wait for the pool has a bound. */
TEST(long_queries_are_parsed_and_printed_on_the_pool)
{
    struct qf_strbuf sum = QF_STRBUF_INIT;
    struct qh_stream *streams[8], *beyond, *small;
    struct qh_stream_head head;
    atomic_bool ended = false;
    struct fixture f;

    setup(&f);
    f.env.helpers = f.pool;
    f.env.memory_bytes_max = 64 << 20;
    qf_strbuf_puts(&sum, "{__name__=~\"");
    for (int i = 0; i < 20000; i++)
        qf_strbuf_putc(&sum, 'x');
    qf_strbuf_puts(&sum, "\"}");
    CHECK(qf_pool_submit(f.pool, hold, &ended) && qf_pool_submit(f.pool, hold, &ended));
    for (size_t i = 0; i < 8; i++)
        streams[i] = parse(&f, qf_strbuf_view(&sum));
    beyond = parse(&f, qf_strbuf_view(&sum));
    small = parse(&f, QF_STR("up"));
    answers_read(small, &f.text);
    CHECK(strstr(f.text.data, "200 application/json"));
    qf_strbuf_reset(&f.text);
    answers_read(beyond, &f.text);
    CHECK(strstr(f.text.data, "429 application/json"));
    for (size_t i = 0; i < 8; i++)
        CHECK(!qh_stream_head(streams[i], &head));
    atomic_store(&ended, true);
    for (size_t i = 0; i < 8; i++) {
        qf_strbuf_reset(&f.text);
        answers_read(streams[i], &f.text);
        CHECK(strstr(f.text.data, "200 application/json"));
        CHECK(strstr(f.text.data, "xxxxxxxx"));
        (void)qh_stream_drop(streams[i]);
    }
    (void)qh_stream_drop(beyond);
    (void)qh_stream_drop(small);
    for (int naps = 0; atomic_load(&f.routes.long_texts) && naps < 10000; naps++)
        (void)usleep(1000); /* an answer is there a moment before its place is free */
    CHECK_EQ(atomic_load(&f.routes.long_texts), 0);
    qf_strbuf_done(&sum);
    teardown(&f);
}

/* What has no place on the pool is short. */
TEST(texts_that_are_parsed_at_once_are_short)
{
    struct qf_strbuf form = QF_STRBUF_INIT;
    struct fixture f;

    setup(&f);
    qf_strbuf_puts(&form, "match%5B%5D=%7Ba%3D%22");
    for (int i = 0; i < 70000; i++)
        qf_strbuf_putc(&form, 'x');
    qf_strbuf_puts(&form, "%22%7D");
    CHECK(strstr(get(&f, "/api/v1/rules", qf_strbuf_cstr(&form)), "400 application/json"));
    CHECK(strstr(f.text.data, "longer than the limit of 65536 bytes"));
    qf_strbuf_done(&form);
    teardown(&f);
}

TEST(probes_say_what_the_role_says)
{
    struct fixture f;

    setup(&f);
    CHECK_STR(get(&f, "/livez", ""), "200 text/plain; charset=utf-8\n\nPromfabric is Healthy.\n");
    CHECK_STR(get(&f, "/readyz", ""), "503 text/plain; charset=utf-8\n\nService Unavailable\n");
    atomic_store(&f.routes.ready, true);
    CHECK_STR(get(&f, "/-/ready", ""), "200 text/plain; charset=utf-8\n\nPromfabric is Ready.\n");
    CHECK(strstr(get(&f, "/metrics", ""), "promfabric_api_queries_refused_total 0\n"));
    teardown(&f);
}

TEST(what_is_going_on_is_shown)
{
    struct fixture f;

    setup(&f);
    CHECK_STR(get(&f, "/api/v1/workers", ""), OK "[]}");
    CHECK_STR(get(&f, "/api/v1/queries", ""), OK "[]}");
    CHECK_STR(send(&f, QH_METHOD_DELETE, "/api/v1/queries/none", "", "", ""),
              "404 application/json\n\n{\"status\":\"error\",\"errorType\":\"not_found\","
              "\"error\":\"no such query\"}");
    CHECK(strstr(get(&f, "/monitor/scaling", ""), "{\"work\":{\"queued\":0,"));
    teardown(&f);
}

TEST(requests_are_counted_by_class_of_their_status)
{
    struct qh_request request = { 0 };
    struct fixture f;

    setup(&f);
    qa_routes_finished(&f.routes, &request, &(struct qh_outcome){ 404, true });
    qa_routes_finished(&f.routes, &request, &(struct qh_outcome){ 0, false }); /* never answered */
    CHECK(strstr(get(&f, "/metrics", ""), "http_requests_total{class=\"2xx\"} 0\n"));
    CHECK(strstr(f.text.data, "http_requests_total{class=\"4xx\"} 1\n"));
    CHECK(strstr(f.text.data, "http_requests_total{class=\"5xx\"} 0\n"));
    teardown(&f);
}
