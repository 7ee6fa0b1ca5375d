/* routes.h - which path means what: from a request to an answer or a query. */
#ifndef QUERYAPI_HTTP_ROUTES_H
#define QUERYAPI_HTTP_ROUTES_H

#include "queryapi/dispatch/coordinator.h"
#include "queryapi/http/request.h"
#include "queryapi/http/stream.h"
#include "queryapi/http/tenants.h"
#include "queryapi/metrics.h"

struct qa_routes {
    struct qa_coord *coord;
    const struct qa_query_env *env;
    struct qa_metrics *metrics;
    const struct qa_tenants *tenants;
    const char *cors_origin; /* regular expression is not needed: one origin, "*", or NULL */
    uint64_t points_max;     /* steps of a range query */
    atomic_bool ready;       /* /readyz */
};

/* For struct qa_listener_options: @ctx is a struct qa_routes. */
void qa_routes_handle(void *ctx, struct qa_request *request, struct qa_stream *stream);
void qa_routes_finished(void *ctx, int status);

#endif
