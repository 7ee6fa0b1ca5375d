/* routes_int.h - what the families of routes share. Each is a file route_<family>.c: handlers, and
 * at its end the table of their paths. A new endpoint is a handler and a row there. */
#ifndef QUERYAPI_HTTP_ROUTES_INT_H
#define QUERYAPI_HTTP_ROUTES_INT_H

#include "base/http/router.h"
#include "queryapi/http/routes.h"

extern const struct qh_routes qa_query_routes;    /* expressions */
extern const struct qh_routes qa_explain_routes;  /* what a query would do */
extern const struct qh_routes qa_series_routes;   /* series and labels */
extern const struct qh_routes qa_language_routes; /* what needs no data */
extern const struct qh_routes qa_about_routes;    /* what Prometheus says of itself */
extern const struct qh_routes qa_fresh_routes;    /* what ingest nodes keep */
extern const struct qh_routes qa_operate_routes;  /* metrics, probes, what is going on */
extern const struct qh_routes qa_page_routes;     /* the page */
extern const struct qh_routes qa_samples_routes;  /* remote read, federation */

static inline struct qa_routes *qa_routes_of(const struct qh_visit *visit)
{
    return visit->role;
}

/* Errors in the two formats of answers. */
void qa_fail_json(struct qh_visit *visit, const struct qf_err *err);
void qa_fail_events(struct qh_visit *visit, const struct qf_err *err);

/* QF_EINVAL for a query that is not text. */
QF_MUST_CHECK qf_rc qa_check_text(struct qf_str text, struct qf_err *err);

/* Texts that are parsed on the thread of the connection are no longer than this together: others wait for
 * it. QF_ELIMIT. */
#define QA_TEXT_AT_ONCE_MAX ((size_t)64 << 10)
QF_MUST_CHECK qf_rc qa_check_short(size_t len, struct qf_err *err);

/* The beginning of an ask: who asks for what kind of answer. Its strings are the request's. */
struct qa_ask qa_visit_ask(const struct qh_visit *visit, enum qa_query_kind kind);
/* False, and answered: nobody has said yet what tenants may have. */
bool qa_visit_settled(struct qh_visit *visit);
/* Have a copy of @ask answered; or say what is wrong with it, if @rc is not QF_OK. */
void qa_visit_submit(struct qh_visit *visit, const struct qa_ask *ask, qf_rc rc,
                     const struct qf_err *err);

/* route_query.c: timeout, limit, lookback_delta, stats. QF_EINVAL. */
QF_MUST_CHECK qf_rc qa_read_common(struct qh_visit *visit, struct qa_ask *ask, struct qf_err *err);
/* route_query.c: start, end and step as Prometheus names them. QF_EINVAL: one of them is no time or
 * duration, or not end >= start, a positive step and not too many points. */
QF_MUST_CHECK qf_rc qa_read_range(struct qh_visit *visit, struct qa_ask *ask, struct qf_err *err);

#endif
