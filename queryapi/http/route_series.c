/* route_series.c - which series, label names and label values there are. */
#include "base/pure/utf8.h"
#include "queryapi/http/params.h"
#include "queryapi/http/routes_int.h"

/* What stands for match[] if none is given: every series has a name or some other label. */
static const struct qf_str all_series = QF_STR_INIT("{__name__=~\".+\"}");

/* match[] into @matches, start, end and limit. Without start and end all times count. */
static qf_rc read_matches(struct qh_visit *visit, struct qf_str matches[QA_MATCHES_MAX],
                          struct qa_ask *ask, struct qf_err *err)
{
    const struct qh_params *params = &visit->request->params;
    struct qf_str limit = qh_visit_param(visit, "limit");
    qf_rc rc;

    ask->start_ms = INT64_MIN / 4; /* far beyond any sample, far from any overflow */
    ask->end_ms = INT64_MAX / 4;
    ask->matches = matches;
    for (size_t i = 0; i < params->count; i++) {
        if (!qf_str_is(params->items[i].name, "match[]"))
            continue;
        if (ask->match_count == QA_MATCHES_MAX)
            return qf_err_set(err, QF_EINVAL, "more than %d match[] parameters", QA_MATCHES_MAX);
        matches[ask->match_count++] = params->items[i].value;
    }
    rc = qa_param_time_optional("start", qh_visit_param(visit, "start"), &ask->start_ms, err);
    if (rc == QF_OK)
        rc = qa_param_time_optional("end", qh_visit_param(visit, "end"), &ask->end_ms, err);
    if (rc == QF_OK && limit.len)
        rc = qa_param_limit(limit, &ask->limit, err);
    return rc;
}

static void submit(struct qh_visit *visit, struct qa_ask *ask, qf_rc rc, const struct qf_err *err)
{
    if (ask->match_count == 0) {
        ask->matches = &all_series;
        ask->match_count = 1;
    }
    ask->text = ask->matches[0];
    qa_visit_submit(visit, ask, rc, err);
}

static void handle_series(struct qh_visit *visit)
{
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_SERIES);
    struct qf_str matches[QA_MATCHES_MAX];
    struct qf_err err = { 0 };
    qf_rc rc = read_matches(visit, matches, &ask, &err);

    if (rc == QF_OK && ask.match_count == 0)
        rc = qf_err_set(&err, QF_EINVAL, "no match[] parameter provided");
    submit(visit, &ask, rc, &err);
}

static void handle_labels(struct qh_visit *visit)
{
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_LABELS);
    struct qf_str matches[QA_MATCHES_MAX];
    struct qf_err err = { 0 };
    qf_rc rc = read_matches(visit, matches, &ask, &err);

    submit(visit, &ask, rc, &err);
}

static void handle_label_values(struct qh_visit *visit)
{
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_LABEL_VALUES);
    struct qf_str matches[QA_MATCHES_MAX];
    struct qf_err err = { 0 };
    qf_rc rc = read_matches(visit, matches, &ask, &err);

    ask.label = qa_unescape_name(visit->request->arena, visit->rest);
    if (rc == QF_OK && (ask.label.len == 0 || !qf_utf8_valid(ask.label)))
        rc = qf_err_set(&err, QF_EINVAL, "invalid label name: \"%.*s\"",
                        QF_STR_ARG(qf_str_sub(visit->rest, 0, 100)));
    submit(visit, &ask, rc, &err);
}

static const struct qh_route routes[] = {
    { "/api/v1/series", QH_GET_POST, false, handle_series, qa_fail_json },
    { "/api/v1/labels", QH_GET_POST, false, handle_labels, qa_fail_json },
    { "/api/v1/label/*/values", QH_METHOD_GET, false, handle_label_values, qa_fail_json },
};
const struct qh_routes qa_series_routes = { routes, QF_COUNT_OF(routes) };
