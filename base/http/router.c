/* router.c - from a request to the handler of its route. */
#include "base/http/router.h"

#include <stdio.h>
#include <string.h>

#include "base/http/params.h"
#include "base/http/rules.h"
#include "base/pure/strbuf.h"
#include "base/sys/metrics.h"

struct qf_str qh_visit_param(const struct qh_visit *visit, const char *name)
{
    return qh_params_get(&visit->request->params, name);
}

void qh_visit_json(struct qh_visit *visit, int status, struct qf_str body)
{
    qh_stream_allow(visit->stream, visit->request->coding);
    qh_stream_answer(visit->stream, status, "application/json", body);
}

void qh_visit_text(struct qh_visit *visit, int status, const char *text)
{
    qh_stream_answer(visit->stream, status, "text/plain; charset=utf-8", qf_str_from(text));
}

void qh_visit_metrics(struct qh_visit *visit, struct qf_metrics *metrics)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    qf_metrics_print(metrics, &text);
    qh_stream_allow(visit->stream, visit->request->coding);
    qh_stream_answer(visit->stream, 200, "text/plain; version=0.0.4; charset=utf-8",
                     qf_strbuf_view(&text));
    qf_strbuf_done(&text);
}

static bool path_matches(const char *pattern, struct qf_str path, struct qf_str *ret_rest)
{
    const char *star = strchr(pattern, '*');
    struct qf_str before, after;

    if (!star)
        return qf_str_is(path, pattern);
    before = (struct qf_str){ pattern, (size_t)(star - pattern) };
    after = qf_str_from(star + 1);
    if (path.len <= before.len + after.len || !qf_str_starts(path, before) ||
        !qf_str_ends(path, after))
        return false;
    *ret_rest = qf_str_sub(path, before.len, path.len - after.len);
    /* In the middle it stands for one segment. */
    return after.len == 0 || !memchr(ret_rest->data, '/', ret_rest->len);
}

static void add_cors(const struct qh_router *router, const struct qh_visit *visit)
{
    const char *allowed = router->cors_origin;
    struct qf_str origin = qh_request_header(visit->request, "Origin");
    char expose[200];

    if (!allowed || origin.len == 0)
        return;
    if (strcmp(allowed, "*") != 0 && !qf_str_is(origin, allowed))
        return;
    (void)snprintf(expose, sizeof(expose), "Date%s%s", *router->cors_expose ? ", " : "",
                   router->cors_expose);
    qh_stream_header(visit->stream, "Access-Control-Allow-Origin", allowed);
    qh_stream_header(visit->stream, "Access-Control-Allow-Headers",
                     "Accept, Authorization, Content-Type, Origin, X-Scope-OrgID");
    qh_stream_header(visit->stream, "Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
    qh_stream_header(visit->stream, "Access-Control-Expose-Headers", expose);
    if (strcmp(allowed, "*") != 0)
        qh_stream_header(visit->stream, "Vary", "Origin");
}

static void refuse_method(struct qh_visit *visit, unsigned methods)
{
    char allow[64];

    (void)snprintf(allow, sizeof(allow), "%s%s%s%sOPTIONS", methods & QH_METHOD_GET ? "GET, " : "",
                   methods & QH_METHOD_POST ? "POST, " : "", methods & QH_METHOD_PUT ? "PUT, " : "",
                   methods & QH_METHOD_DELETE ? "DELETE, " : "");
    qh_stream_header(visit->stream, "Allow", allow);
    qh_visit_text(visit, 405, "Method Not Allowed\n");
}

/* The route of the request in visit->route. False: there is none, and *@ret_other is one of the
 * same path with other methods, or NULL. */
static bool find_route(const struct qh_router *router, struct qh_visit *visit,
                       const struct qh_route **ret_other)
{
    *ret_other = NULL;
    for (size_t f = 0; f < router->family_count; f++) {
        for (size_t i = 0; i < router->families[f]->count; i++) {
            const struct qh_route *route = &router->families[f]->items[i];

            if (!path_matches(route->path, visit->request->path, &visit->rest))
                continue;
            if (route->methods & (unsigned)visit->request->method) {
                visit->route = route;
                return true;
            }
            *ret_other = route;
        }
    }
    return false;
}

static void put_html(struct qf_strbuf *buf, struct qf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        switch (text.data[i]) {
        case '&':
            qf_strbuf_puts(buf, "&amp;");
            break;
        case '<':
            qf_strbuf_puts(buf, "&lt;");
            break;
        case '>':
            qf_strbuf_puts(buf, "&gt;");
            break;
        case '"':
            qf_strbuf_puts(buf, "&#34;");
            break;
        case '\'':
            qf_strbuf_puts(buf, "&#39;");
            break;
        default:
            qf_strbuf_putc(buf, text.data[i]);
        }
    }
}

/* A path in the form of a URL. */
static void put_path(struct qf_strbuf *buf, struct qf_str path)
{
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.data[i];
        bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
                     (c && strchr("/-_.~$&+,:;=@", c));

        if (plain)
            qf_strbuf_putc(buf, (char)c);
        else
            qf_strbuf_printf(buf, "%%%02X", c);
    }
}

/* To clients that glue paths together ("//api/v1/query"): the path they mean, with what they ask. The
 * path begins with one slash: it is one of this server. */
static void redirect(struct qh_visit *visit, struct qf_str path)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf where = QF_STRBUF_INIT, body = QF_STRBUF_INIT;
    bool shown = visit->request->method == QH_METHOD_GET;

    put_path(&where, path);
    if (visit->request->query.len) {
        qf_strbuf_putc(&where, '?');
        qf_strbuf_str(&where, visit->request->query);
    }
    qh_stream_header(visit->stream, "Location", qf_strbuf_cstr(&where));
    if (shown) {
        qf_strbuf_puts(&body, "<a href=\"");
        put_html(&body, qf_strbuf_view(&where));
        qf_strbuf_puts(&body, "\">Moved Permanently</a>.\n\n");
    }
    qh_stream_answer(visit->stream, 301,
                     shown || visit->request->method == QH_METHOD_HEAD ? "text/html; charset=utf-8"
                                                                       : NULL,
                     qf_strbuf_view(&body));
}

static void refuse_caller(struct qh_visit *visit, const struct qf_err *err)
{
    if (err->rc == QF_EAUTH)
        qh_stream_header(visit->stream, "WWW-Authenticate", "Bearer");
    visit->route->fail(visit, err);
}

/* Find the route and who asks; false: there is nothing for a handler to do, and it was said. */
static bool admitted(const struct qh_router *router, struct qh_visit *visit)
{
    const struct qh_route *other = NULL;
    struct qf_str clean = visit->request->path;
    struct qf_err err = { 0 };

    if (router->cleans_paths)
        clean = qh_path_clean(visit->request->arena, clean);
    if (clean.data && !qf_str_eq(clean, visit->request->path)) {
        redirect(visit, clean);
        return false;
    }
    if (visit->request->method != QH_METHOD_OPTIONS && find_route(router, visit, &other) &&
        (visit->route->open ||
         qh_tenants_of(router->tenants, visit->request, &visit->caller, &err) == QF_OK)) {
        visit->tenant = qf_str_from(visit->caller.tenant);
        if (router->admitted)
            router->admitted(visit);
        return true;
    }
    add_cors(router, visit);
    if (visit->request->method == QH_METHOD_OPTIONS)
        qh_stream_answer(visit->stream, 204, NULL, QF_STR(""));
    else if (visit->route)
        refuse_caller(visit, &err);
    else if (other)
        refuse_method(visit, other->methods);
    else
        qh_visit_text(visit, 404, "404 page not found\n");
    return false;
}

bool qh_router_admit(const struct qh_router *router, struct qh_request *request,
                     struct qh_stream *stream)
{
    struct qh_visit visit = { .role = router->role, .request = request, .stream = stream };

    return admitted(router, &visit);
}

void qh_router_handle(const struct qh_router *router, struct qh_request *request,
                      struct qh_stream *stream)
{
    struct qh_visit visit = { .role = router->role, .request = request, .stream = stream };

    if (!admitted(router, &visit))
        return;
    add_cors(router, &visit);
    visit.route->handle(&visit);
}
