/* route_query.c - expressions: instant and range queries, and the event stream. */
#include <inttypes.h>
#include <stdio.h>

#include "base/http/params.h"
#include "base/sys/clock.h"
#include "queryapi/http/params.h"
#include "queryapi/http/routes_int.h"

/* timeout, limit, lookback_delta, stats: the same for both query endpoints. */
qf_rc qa_read_common(struct qh_visit *visit, struct qa_ask *ask, struct qf_err *err)
{
    struct qf_str timeout = qh_visit_param(visit, "timeout"),
                  limit = qh_visit_param(visit, "limit"),
                  lookback = qh_visit_param(visit, "lookback_delta");
    qf_rc rc = QF_OK;

    if (limit.len)
        rc = qa_param_limit(limit, &ask->limit, err);
    if (rc == QF_OK && timeout.len)
        rc = qa_param_duration("timeout", timeout, &ask->timeout_ms, err);
    if (rc == QF_OK && lookback.len)
        rc = qa_param_lookback(lookback, &ask->lookback_ms, err);
    if (rc == QF_OK && timeout.len && ask->timeout_ms <= 0) /* Prometheus's words for no time */
        rc = qf_err_set(err, QF_EINVAL, "invalid parameter \"query\": context deadline exceeded");
    ask->stats = qh_visit_param(visit, "stats").len > 0;
    ask->stats_all = qf_str_is(qh_visit_param(visit, "stats"), "all");
    return rc;
}

static void handle_query(struct qh_visit *visit)
{
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_INSTANT);
    struct qf_err err = { 0 };
    qf_rc rc = qa_read_common(visit, &ask, &err);

    ask.text = qh_visit_param(visit, "query");
    ask.start_ms = qf_clock_wall_ms();
    if (rc == QF_OK)
        rc = qa_param_time_optional("time", qh_visit_param(visit, "time"), &ask.start_ms, &err);
    if (rc == QF_OK)
        rc = qa_check_text(ask.text, &err);
    ask.end_ms = ask.start_ms;
    qa_visit_submit(visit, &ask, rc, &err);
}

/* end >= start, a positive step, not too many points. */
static qf_rc check_range(const struct qh_visit *visit, const struct qa_ask *ask, struct qf_err *err)
{
    uint64_t points_max = qa_routes_of(visit)->points_max;
    char most[24];

    if (ask->end_ms < ask->start_ms)
        return qf_err_set(err, QF_EINVAL,
                          "invalid parameter \"end\": end timestamp must not be before start time");
    if (ask->step_ms <= 0)
        return qf_err_set(err, QF_EINVAL,
                          "invalid parameter \"step\": zero or negative query resolution step "
                          "widths are not accepted. Try a positive integer");
    if (((uint64_t)ask->end_ms - (uint64_t)ask->start_ms) / (uint64_t)ask->step_ms > points_max) {
        (void)snprintf(most, sizeof(most), "%" PRIu64, points_max);
        return qf_err_set(err, QF_EINVAL,
                          "exceeded maximum resolution of %s points per timeseries. Try "
                          "decreasing the query resolution (?step=XX)",
                          points_max == 11000 ? "11,000" : most); /* Prometheus's words */
    }
    return QF_OK;
}

qf_rc qa_read_range(struct qh_visit *visit, struct qa_ask *ask, struct qf_err *err)
{
    qf_rc rc = qa_param_time("start", qh_visit_param(visit, "start"), &ask->start_ms, err);

    if (rc == QF_OK)
        rc = qa_param_time("end", qh_visit_param(visit, "end"), &ask->end_ms, err);
    if (rc == QF_OK)
        rc = qa_param_duration("step", qh_visit_param(visit, "step"), &ask->step_ms, err);
    return rc ? rc : check_range(visit, ask, err);
}

static void handle_query_range(struct qh_visit *visit)
{
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_RANGE);
    struct qf_err err = { 0 };
    qf_rc rc = qa_read_range(visit, &ask, &err);

    ask.text = qh_visit_param(visit, "query");
    if (rc == QF_OK)
        rc = qa_read_common(visit, &ask, &err);
    if (rc == QF_OK)
        rc = qa_check_text(ask.text, &err);
    qa_visit_submit(visit, &ask, rc, &err);
}

/* s, e and step of the event stream. */
static qf_rc read_events_range(struct qh_visit *visit, struct qa_ask *ask, struct qf_err *err)
{
    struct qf_str start = qh_visit_param(visit, "s"), end = qh_visit_param(visit, "e"),
                  step = qh_visit_param(visit, "step");
    qf_time_ms now = qf_clock_wall_ms();
    qf_rc rc =
        qa_param_when("e", end.len ? end : QF_STR("now"), now, QF_TIME_NEVER, &ask->end_ms, err);

    if (rc == QF_OK)
        rc = qa_param_when("s", start.len ? start : QF_STR("e-1h"), now, ask->end_ms,
                           &ask->start_ms, err);
    if (rc)
        return rc;
    ask->step_ms = qa_default_step((int64_t)((uint64_t)ask->end_ms - (uint64_t)ask->start_ms));
    if (step.len)
        rc = qa_param_duration("step", step, &ask->step_ms, err);
    return rc ? rc : check_range(visit, ask, err);
}

static void handle_events(struct qh_visit *visit)
{
    struct qh_request *request = visit->request;
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_EVENTS);
    struct qf_err err = { 0 };
    struct qf_str progress, explain;
    qf_rc rc = QF_OK;

    if (request->method == QH_METHOD_POST && !qh_request_has_form(request))
        rc = qh_params_add_json(request->arena, &request->params, request->body, &err);
    ask.text = qh_visit_param(visit, "q");
    progress = qh_visit_param(visit, "progress");
    ask.progress = qf_str_is(progress, "true") || qf_str_is(progress, "1");
    explain = qh_visit_param(visit, "explain");
    ask.explain = qf_str_is(explain, "true") || qf_str_is(explain, "1");
    ask.batch = qf_str_is(qh_visit_param(visit, "format"), "batch");
    if (rc == QF_OK)
        rc = read_events_range(visit, &ask, &err);
    if (rc == QF_OK)
        rc = qa_read_common(visit, &ask, &err);
    if (rc == QF_OK)
        rc = qa_check_text(ask.text, &err);
    if (rc == QF_OK && ask.text.len == 0)
        rc = qf_err_set(&err, QF_EINVAL, "\"q\", the query, is missing");
    qa_visit_submit(visit, &ask, rc, &err);
}

static const struct qh_route routes[] = {
    { "/api/v1/metrics/query", QH_GET_POST, false, handle_events, qa_fail_events },
    { "/api/v1/query", QH_GET_POST, false, handle_query, qa_fail_json },
    { "/api/v1/query_range", QH_GET_POST, false, handle_query_range, qa_fail_json },
};
const struct qh_routes qa_query_routes = { routes, QF_COUNT_OF(routes) };
