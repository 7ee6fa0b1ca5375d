/* route_series.c - which series, label names and label values there are. */
#include <inttypes.h>

#include "base/pure/number.h"
#include "base/pure/utf8.h"
#include "base/sys/clock.h"
#include "queryapi/http/params.h"
#include "queryapi/http/routes_int.h"

/* What stands for match[] if none is given: every series has a name or some other label. */
static const struct qf_str all_series = QF_STR_INIT("{__name__=~\".+\"}");

/* A metric's name and nothing else: it can stand in a regular expression as it is. */
static bool is_name(struct qf_str match)
{
    for (size_t i = 0; i < match.len; i++) {
        char c = match.data[i];

        if (!((c | 32) >= 'a' && (c | 32) <= 'z') && c != '_' && c != ':' &&
            !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return match.len > 0;
}

/* Dashboards ask for all of their metrics at once: those that are plain names become one selector, which
 * costs one plan. One of them stays as it is. */
static void join_names(struct qh_visit *visit, struct qf_str *matches, size_t *count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf joined = QF_STRBUF_INIT;
    size_t names = 0, kept = 0;
    struct qf_str text;

    for (size_t i = 0; i < *count; i++)
        names += is_name(matches[i]);
    if (names < 2)
        return;
    qf_strbuf_puts(&joined, "{__name__=~\"");
    for (size_t i = 0, n = 0; i < *count; i++) {
        if (!is_name(matches[i])) {
            matches[kept++] = matches[i];
            continue;
        }
        if (n++)
            qf_strbuf_putc(&joined, '|');
        qf_strbuf_str(&joined, matches[i]);
    }
    qf_strbuf_puts(&joined, "\"}");
    text = qf_arena_str(visit->request->arena, qf_strbuf_view(&joined));
    matches[kept++] = text;
    *count = kept;
}

/* match[], start, end and limit. Without start and end all times count. */
static qf_rc read_matches(struct qh_visit *visit, struct qa_ask *ask, struct qf_err *err)
{
    const struct qh_params *params = &visit->request->params;
    struct qf_str limit = qh_visit_param(visit, "limit");
    struct qf_str *matches =
        QF_ARENA_ARRAY(visit->request->arena, struct qf_str, params->count + 1);
    qf_rc rc;

    if (!matches)
        return qf_err_set(err, QF_ELIMIT, "the request is too large");
    ask->start_ms = -QA_TIME_FAR;
    ask->end_ms = QA_TIME_FAR;
    ask->matches = matches;
    for (size_t i = 0; i < params->count; i++)
        if (qf_str_is(params->items[i].name, "match[]"))
            matches[ask->match_count++] = params->items[i].value;
    join_names(visit, matches, &ask->match_count);
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
        ask->known = ask->kind == QA_QUERY_STORED || qf_str_is(qh_visit_param(visit, "scan"), "0");
    }
    ask->text = ask->matches[0];
    qa_visit_submit(visit, ask, rc, err);
}

static void handle_series(struct qh_visit *visit)
{
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_SERIES);
    struct qf_err err = { 0 };
    qf_rc rc = read_matches(visit, &ask, &err);

    if (rc == QF_OK && ask.match_count == 0)
        rc = qf_err_set(&err, QF_EINVAL, "no match[] parameter provided");
    submit(visit, &ask, rc, &err);
}

static void handle_labels(struct qh_visit *visit)
{
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_LABELS);
    struct qf_err err = { 0 };
    qf_rc rc = read_matches(visit, &ask, &err);

    submit(visit, &ask, rc, &err);
}

static void handle_label_values(struct qh_visit *visit)
{
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_LABEL_VALUES);
    struct qf_err err = { 0 };
    qf_rc rc = read_matches(visit, &ask, &err);

    ask.label = qa_unescape_name(visit->request->arena, visit->rest);
    if (rc == QF_OK && (ask.label.len == 0 || !qf_utf8_valid(ask.label)))
        rc = qf_err_set(&err, QF_EINVAL, "invalid label name: \"%.*s\"",
                        QF_STR_ARG(qf_str_sub(visit->rest, 0, 100)));
    submit(visit, &ask, rc, &err);
}

/* Days that are told of. */
#define DAYS_MAX 366

static void put_usage(struct qf_strbuf *buf, const struct sg_catalog_usage *usage,
                      const struct sg_catalog_day *days)
{
    qf_strbuf_printf(
        buf, "{\"status\":\"success\",\"data\":{\"segments\":%" PRIu64 ",\"bytes\":%" PRIu64,
        usage->segments, usage->bytes);
    if (usage->min_ts <= usage->max_ts)
        qf_strbuf_printf(buf, ",\"min_ms\":%" PRId64 ",\"max_ms\":%" PRId64, usage->min_ts,
                         usage->max_ts);
    else
        qf_strbuf_puts(buf, ",\"min_ms\":null,\"max_ms\":null");
    qf_strbuf_puts(buf, ",\"days\":[");
    for (size_t i = 0; i < usage->day_count; i++) {
        qf_strbuf_puts(buf, i ? ",{\"date\":" : "{\"date\":");
        qf_strbuf_json(buf, days[i].date);
        qf_strbuf_printf(buf, ",\"segments\":%" PRIu64 ",\"bytes\":%" PRIu64 "}", days[i].segments,
                         days[i].bytes);
    }
    qf_strbuf_puts(buf, "]}}");
}

/* What is stored and since when: by the listing, without a look into files. */
static void handle_storage(struct qh_visit *visit)
{
    struct sg_catalog_snapshot *snapshot = sg_catalog_snapshot(qa_routes_of(visit)->env->catalog);
    struct sg_catalog_day days[DAYS_MAX];
    struct sg_catalog_usage usage = { .min_ts = 1 };
    struct qf_strbuf buf = QF_STRBUF_INIT;

    if (snapshot)
        usage = sg_catalog_usage(snapshot, visit->tenant, days, DAYS_MAX);
    put_usage(&buf, &usage, days);
    qh_visit_json(visit, 200, qf_strbuf_view(&buf));
    qf_strbuf_done(&buf);
    (void)sg_catalog_snapshot_drop(snapshot);
}

/* Metrics in the range, and about how much is stored of each. */
static void handle_stored(struct qh_visit *visit)
{
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_STORED);
    struct qf_err err = { 0 };
    qf_rc rc = read_matches(visit, &ask, &err);

    ask.match_count = 0; /* of all */
    submit(visit, &ask, rc, &err);
}

/* What is in memory of a Prometheus, and so what it tells the cardinality of. */
#define CARDINALITY_MS ((int64_t)2 * 60 * 60 * 1000)
#define CARDINALITY_SHOWN 10

/* Of the last two hours, or of a range that is given. */
static void handle_cardinality(struct qh_visit *visit)
{
    struct qa_ask ask = qa_visit_ask(visit, QA_QUERY_CARDINALITY);
    struct qf_str limit = qh_visit_param(visit, "limit");
    struct qf_err err = { 0 };
    int64_t shown = CARDINALITY_SHOWN;
    qf_rc rc = QF_OK;

    if (limit.len && (!qf_parse_i64(limit, &shown) || shown < 1))
        rc = qf_err_set(&err, QF_EINVAL, "limit must be a positive number");
    ask.end_ms = qf_clock_wall_ms();
    ask.start_ms = ask.end_ms - CARDINALITY_MS;
    if (rc == QF_OK)
        rc = qa_param_time_optional("start", qh_visit_param(visit, "start"), &ask.start_ms, &err);
    if (rc == QF_OK)
        rc = qa_param_time_optional("end", qh_visit_param(visit, "end"), &ask.end_ms, &err);
    ask.limit = (uint64_t)shown;
    submit(visit, &ask, rc, &err);
}

static const struct qh_route routes[] = {
    { "/api/v1/status/tsdb", QH_METHOD_GET, false, handle_cardinality, qa_fail_json },
    { "/api/v1/storage", QH_METHOD_GET, false, handle_storage, qa_fail_json },
    { "/api/v1/storage/metrics", QH_METHOD_GET, false, handle_stored, qa_fail_json },
    { "/api/v1/series", QH_GET_POST, false, handle_series, qa_fail_json },
    { "/api/v1/labels", QH_GET_POST, false, handle_labels, qa_fail_json },
    { "/api/v1/label/*/values", QH_METHOD_GET, false, handle_label_values, qa_fail_json },
};
const struct qh_routes qa_series_routes = { routes, QF_COUNT_OF(routes) };
