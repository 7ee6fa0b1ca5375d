/* route_explain.c - what a query would do: its plan and what it would cost, without running it. */
#include "base/sys/clock.h"
#include "queryapi/http/params.h"
#include "queryapi/http/routes_int.h"

/* query, and either start, end and step or time: as of Prometheus's two endpoints. */
static void handle_explain(struct qh_visit *visit)
{
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_EXPLAIN);
    struct qf_err err = { 0 };
    qf_rc rc;

    ask.text = qh_visit_param(visit, "query");
    ask.explain = true;
    ask.start_ms = qf_clock_wall_ms();
    if (qh_visit_param(visit, "start").len) {
        rc = qa_read_range(visit, &ask, &err);
    } else {
        rc = qa_param_time_optional("time", qh_visit_param(visit, "time"), &ask.start_ms, &err);
        ask.end_ms = ask.start_ms;
    }
    if (rc == QF_OK)
        rc = qa_read_common(visit, &ask, &err);
    if (rc == QF_OK)
        rc = qa_check_text(ask.text, &err);
    qa_visit_submit(visit, &ask, rc, &err);
}

static const struct qh_route routes[] = {
    { "/api/v1/explain", QH_GET_POST, false, handle_explain, qa_fail_json },
};
const struct qh_routes qa_explain_routes = { routes, QF_COUNT_OF(routes) };
