/* routes.h - which path means what: from a request to an answer or a query. */
#ifndef QUERYAPI_HTTP_ROUTES_H
#define QUERYAPI_HTTP_ROUTES_H

#include "base/http/listener.h"
#include "base/http/tenants.h"
#include "queryapi/dispatch/coordinator.h"
#include "queryapi/metrics.h"

struct qa_routes {
    struct qa_coord *coord;
    const struct qa_query_env *env;
    struct qa_metrics *metrics;
    struct qh_tenants *tenants;
    struct qf_line_log *audit; /* or NULL */
    const char *cors_origin;   /* one origin, "*", or NULL */
    uint64_t points_max;       /* steps of a range query */
    bool check_host;           /* only this machine reaches it: see host.h */
    const char *const *hosts;  /* further names it goes by */
    size_t host_count;
    const char *flags_json; /* {"name":"value",...}, or NULL: for /api/v1/status/flags */
    qf_time_ms started_ms;
    size_t thread_count;    /* of those that serve queries, as far as flags say */
    atomic_bool ready;      /* /readyz */
    atomic_uint long_texts; /* queries that the pool parses and prints now */
};

/* For struct qh_listener_options: @ctx is a struct qa_routes. */
bool qa_routes_admit(void *ctx, struct qh_request *request, struct qh_stream *stream);
void qa_routes_handle(void *ctx, struct qh_request *request, struct qh_stream *stream);
void qa_routes_finished(void *ctx, struct qh_request *request, const struct qh_outcome *outcome);

#endif
