/* router.h - which path means what: tables of routes, and what comes before a handler in any role.
 *
 * A role has families of routes, each a table in the file of its handlers. The router finds the
 * route, answers 404, 405 and OPTIONS by itself, adds the headers that let pages of other origins
 * read the answer, and knows the tenant before a handler runs. A handler answers through the stream
 * now or later, and must not wait. */
#ifndef BASE_HTTP_ROUTER_H
#define BASE_HTTP_ROUTER_H

#include "base/http/request.h"
#include "base/http/stream.h"
#include "base/http/tenants.h"
#include "base/pure/err.h"

struct qh_route;

/* One request on its way. */
struct qh_visit {
    void *role; /* struct qh_router.role */
    const struct qh_route *route;
    struct qh_request *request;
    struct qh_stream *stream;
    struct qh_caller caller; /* zero on open routes */
    struct qf_str tenant;    /* the caller's; empty on open routes */
    struct qf_str rest;      /* what stands for '*' in the route's path */
};

struct qh_route {
    const char *path; /* '*' stands for one or more characters; in the middle, for one segment */
    unsigned methods; /* enum qh_method */
    bool open;        /* needs no tenant and no key */
    void (*handle)(struct qh_visit *visit);
    /* Say in the form of this route what went wrong. */
    void (*fail)(struct qh_visit *visit, const struct qf_err *err);
};

#define QH_GET (QH_METHOD_GET | QH_METHOD_HEAD)
#define QH_GET_POST (QH_METHOD_GET | QH_METHOD_POST)

struct qh_routes {
    const struct qh_route *items;
    size_t count;
};

struct qh_router {
    const struct qh_routes *const *families;
    size_t family_count;
    struct qh_tenants *tenants;
    void (*admitted)(struct qh_visit *visit); /* told who asks, before the handler runs; or NULL */
    bool cleans_paths;       /* who asks for "//a/./b" is sent to "/a/b"; else it is not found */
    const char *cors_origin; /* whose pages may ask: one origin, "*", or NULL */
    const char *cors_expose; /* headers that such pages may read, besides Date; "" for none */
    void *role;
};

/* For qh_listener_options.admit: answer what has no handler, or comes from somebody who may not ask,
 * before its body is read. True: qh_router_handle() will find a handler for it. */
bool qh_router_admit(const struct qh_router *router, struct qh_request *request,
                     struct qh_stream *stream);

/* Answer @request, or have it answered. */
void qh_router_handle(const struct qh_router *router, struct qh_request *request,
                      struct qh_stream *stream);

/* --- for handlers --- */

/* The first value of a parameter, empty if there is none. */
struct qf_str qh_visit_param(const struct qh_visit *visit, const char *name);
void qh_visit_json(struct qh_visit *visit, int status, struct qf_str body); /* may be compressed */
void qh_visit_text(struct qh_visit *visit, int status, const char *text);

struct qf_metrics;
/* All of @metrics as Prometheus's text. */
void qh_visit_metrics(struct qh_visit *visit, struct qf_metrics *metrics);

#endif
