/* route_samples.c - raw samples: for a Prometheus that reads from here (remote read), and for one that
 * scrapes what is newest (federation). Errors are plain text, as Prometheus's are. */
#include "base/pure/utf8.h"
#include "base/sys/clock.h"
#include "promql/parse.h"
#include "proto/codec/remote_read.h"
#include "queryapi/encode/block.h"
#include "queryapi/http/params.h"
#include "queryapi/http/routes_int.h"

/* How old a sample may be that is told to who federates: as for instant queries. */
#define FEDERATE_MS (5 * 60 * 1000)

static void fail_text(struct qh_visit *visit, const struct qf_err *err)
{
    qa_answer_error(visit->stream, QA_FORMAT_BYTES, err->rc, err->msg);
}

/* The matchers of a query as a selector, which is read again where it is planned. */
static qf_rc print_query(const struct pb_read_query *query, struct qf_arena *arena,
                         struct qf_str *ret_text, struct qf_err *err)
{
    static const enum pq_match_type types[] = { [PB_READ_EQUAL] = PQ_MATCH_EQUAL,
                                                [PB_READ_NOT_EQUAL] = PQ_MATCH_NOT_EQUAL,
                                                [PB_READ_REGEX] = PQ_MATCH_REGEX,
                                                [PB_READ_NOT_REGEX] = PQ_MATCH_NOT_REGEX };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct pq_matcher *matchers =
        QF_ARENA_ARRAY(arena, struct pq_matcher, query->matcher_count + 1);

    if (!matchers)
        return qf_err_set(err, QF_ELIMIT, "the request is too large");
    for (size_t i = 0; i < query->matcher_count; i++) {
        const struct pb_read_matcher *from = &query->matchers[i];

        if (!from->name.len)
            return qf_err_set(err, QF_EINVAL, "a matcher without the name of a label");
        if (!qf_utf8_valid(from->name) || !qf_utf8_valid(from->value))
            return qf_err_set(err, QF_EINVAL, "a matcher that is not valid UTF-8");
        matchers[i] = (struct pq_matcher){ types[from->type], from->name, from->value, NULL };
    }
    pq_print_matchers(&text, matchers, query->matcher_count);
    *ret_text = qf_arena_str(arena, qf_strbuf_view(&text));
    return ret_text->data ? QF_OK : qf_err_set(err, QF_ELIMIT, "the request is too large");
}

static qf_rc take_queries(struct qh_visit *visit, const struct pb_read_request *request,
                          struct qa_ask *ask, struct qf_err *err)
{
    struct qf_arena *arena = visit->request->arena;
    struct qf_str *matches = QF_ARENA_ARRAY(arena, struct qf_str, request->query_count + 1);
    struct qa_ask_range *ranges =
        QF_ARENA_ARRAY(arena, struct qa_ask_range, request->query_count + 1);
    qf_rc rc = QF_OK;

    if (!matches || !ranges)
        return qf_err_set(err, QF_ELIMIT, "the request is too large");
    for (size_t i = 0; rc == QF_OK && i < request->query_count; i++) {
        rc = print_query(&request->queries[i], arena, &matches[i], err);
        ranges[i] =
            (struct qa_ask_range){ request->queries[i].start_ms, request->queries[i].end_ms };
    }
    ask->matches = matches;
    ask->ranges = ranges;
    ask->match_count = request->query_count;
    ask->takes_chunks = request->takes_chunks;
    ask->takes_samples = request->takes_samples;
    return rc;
}

/* Times that all ranges are within. */
static void find_bounds(struct qa_ask *ask)
{
    ask->start_ms = QA_TIME_FAR;
    ask->end_ms = -QA_TIME_FAR;
    for (size_t i = 0; i < ask->match_count; i++) {
        int64_t start = QF_MAX(ask->ranges[i].start_ms, -QA_TIME_FAR);
        int64_t end = QF_MIN(ask->ranges[i].end_ms, QA_TIME_FAR);

        ask->start_ms = QF_MIN(ask->start_ms, start);
        ask->end_ms = QF_MAX(ask->end_ms, end);
    }
    ask->text = ask->match_count ? ask->matches[0] : QF_STR("");
}

static void handle_read(struct qh_visit *visit)
{
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_READ);
    struct pb_read_request request;
    struct qf_err err = { 0 };
    struct qf_str bytes;
    qf_rc rc = qa_block_unpack(visit->request->arena, visit->request->body, PB_READ_BYTES_MAX,
                               &bytes, &err);

    if (rc == QF_OK && pb_read_decode(visit->request->arena, bytes, &request, &err) != QF_OK)
        rc = err.rc == QF_EPROTO ? (err.rc = QF_EINVAL) : err.rc;
    if (rc == QF_OK)
        rc = take_queries(visit, &request, &ask, &err);
    if (rc == QF_OK)
        find_bounds(&ask);
    qa_visit_submit(visit, &ask, rc, &err);
}

/* A selector of everything, which selects nothing here: as in Prometheus, nobody is given a whole storage. */
static bool is_empty(struct qf_str match)
{
    match = qf_str_trim(match);
    return qf_str_starts(match, QF_STR("{")) && qf_str_ends(match, QF_STR("}")) && match.len >= 2 &&
           !qf_str_trim(qf_str_sub(match, 1, match.len - 1)).len;
}

static void handle_federate(struct qh_visit *visit)
{
    const struct qh_params *params = &visit->request->params;
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_FEDERATE);
    struct qf_str *matches =
        QF_ARENA_ARRAY(visit->request->arena, struct qf_str, params->count + 1);
    struct qf_err err = { 0 };
    qf_rc rc = QF_OK;

    if (!matches)
        rc = qf_err_set(&err, QF_ELIMIT, "the request is too large");
    for (size_t i = 0; matches && i < params->count; i++)
        if (qf_str_is(params->items[i].name, "match[]") && !is_empty(params->items[i].value))
            matches[ask.match_count++] = params->items[i].value;
    ask.matches = matches;
    ask.text = ask.match_count ? matches[0] : QF_STR("");
    ask.exposition = qa_exposition_choose(qh_request_header(visit->request, "Accept"));
    ask.end_ms = qf_clock_wall_ms();
    ask.start_ms = ask.end_ms - FEDERATE_MS + 1;
    qa_visit_submit(visit, &ask, rc, &err);
}

static const struct qh_route routes[] = {
    { "/api/v1/read", QH_METHOD_POST, false, handle_read, fail_text },
    { "/federate", QH_GET, false, handle_federate, fail_text },
};
const struct qh_routes qa_samples_routes = { routes, QF_COUNT_OF(routes) };
