/* route_page.c - the page itself: files out of the executable. They are nobody's secret, so they need
 * no key; what the page shows comes from the other routes, which do. */
#include "queryapi/http/assets.h"
#include "queryapi/http/routes_int.h"

/* Nothing from elsewhere, nothing inline, no text that becomes script. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "              \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "            \
    "require-trusted-types-for 'script'; trusted-types 'none'"

static const struct qa_asset *find(struct qf_str path)
{
    for (size_t i = 0; i < qa_asset_count; i++)
        if (qf_str_is(path, qa_assets[i].path))
            return &qa_assets[i];
    return NULL;
}

static void set_headers(struct qh_stream *stream, const struct qa_asset *asset,
                        const char *cache_control)
{
    qh_stream_header(stream, "Content-Security-Policy", POLICY);
    qh_stream_header(stream, "X-Content-Type-Options", "nosniff");
    qh_stream_header(stream, "Referrer-Policy", "no-referrer");
    qh_stream_header(stream, "Cross-Origin-Resource-Policy", "same-origin");
    qh_stream_header(stream, "Cache-Control", cache_control);
    qh_stream_header(stream, "ETag", asset->etag);
    qh_stream_header(stream, "Vary", "Accept-Encoding");
}

/* The smallest form that the client takes; its coding in *@ret_coding, NULL for none. */
static struct qf_str form_for(const struct qh_visit *visit, const struct qa_asset *asset,
                              const char **ret_coding)
{
    struct qf_str accept = qh_request_header(visit->request, "Accept-Encoding");

    *ret_coding = "br";
    if (qh_coding_accepted(accept, "br"))
        return (struct qf_str){ asset->brotli, (size_t)(asset->brotli_end - asset->brotli) };
    *ret_coding = "gzip";
    if (qh_coding_accepted(accept, "gzip"))
        return (struct qf_str){ asset->gzip, (size_t)(asset->gzip_end - asset->gzip) };
    *ret_coding = NULL;
    return (struct qf_str){ asset->bytes, (size_t)(asset->bytes_end - asset->bytes) };
}

static void send_asset(struct qh_visit *visit, const struct qa_asset *asset,
                       const char *cache_control)
{
    const char *coding;
    struct qh_body body = { .fd = -1, .bytes = form_for(visit, asset, &coding) };

    set_headers(visit->stream, asset, cache_control);
    if (qf_str_is(qh_request_header(visit->request, "If-None-Match"), asset->etag)) {
        qh_stream_answer(visit->stream, 304, NULL, QF_STR(""));
        return;
    }
    if (coding)
        qh_stream_header(visit->stream, "Content-Encoding", coding);
    qh_stream_send(visit->stream, 200, asset->content_type, &body);
}

static void handle_page(struct qh_visit *visit)
{
    const struct qa_asset *index = find(QF_STR("index.html"));

    if (index)
        send_asset(visit, index, "no-cache");
    else
        qh_visit_text(visit, 404,
                      "This program was built without its page: on a machine with node and npm "
                      "(scripts/setup installs them) it has one.\n"
                      "The API is all here: try /api/v1/query?query=up\n");
}

static void handle_asset(struct qh_visit *visit)
{
    const struct qa_asset *asset = find(visit->rest);
    struct qf_err err = { 0 };

    if (asset && !qf_str_is(visit->rest, "index.html")) {
        /* Licences change with a release, and have no hash in their name. */
        send_asset(visit, asset,
                   qf_str_is(visit->rest, "licences.txt") ? "no-cache"
                                                          : "public, max-age=31536000, immutable");
        return;
    }
    (void)qf_err_set(&err, QF_ENOTFOUND, "no such file");
    visit->route->fail(visit, &err);
}

static const struct qh_route routes[] = {
    { "/", QH_GET, true, handle_page, qa_fail_json },
    { "/graph", QH_GET, true, handle_page, qa_fail_json }, /* links of Prometheus 2 and Grafana */
    { "/query", QH_GET, true, handle_page, qa_fail_json }, /* links of Prometheus 3 */
    { "/assets/*", QH_GET, true, handle_asset, qa_fail_json },
};
const struct qh_routes qa_page_routes = { routes, QF_COUNT_OF(routes) };
