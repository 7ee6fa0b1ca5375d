/* fuzz_http.c - requests from any bytes, through headers, parameters and router, without a network.
 *
 * The input is a request as on the wire: "METHOD PATH?QUERY", headers, an empty line, a body. A request
 * is refused with an answer before its body is read, or meets exactly one handler. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/http/params.h"
#include "base/http/range.h"
#include "base/http/rules.h"
#include "base/http/router.h"
#include "base/pure/strbuf.h"

#define ARENA_BYTES ((size_t)4 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int handled;

static void handle(struct qh_visit *visit)
{
    handled++;
    if (!visit->route->open && visit->tenant.len == 0)
        abort(); /* nobody gets here without a tenant */
    (void)qh_visit_param(visit, "query");
    qh_visit_json(visit, 200, QF_STR("{}"));
}

static void fail(struct qh_visit *visit, const struct qf_err *err)
{
    qh_visit_text(visit, qf_rc_http_status(err->rc), err->msg);
}

static const struct qh_route routes[] = {
    { "/open", QH_GET, true, handle, fail },
    { "/api/v1/query", QH_GET_POST, false, handle, fail },
    { "/api/v1/label/*/values", QH_METHOD_GET, false, handle, fail },
    { "/api/v1/queries/*", QH_METHOD_DELETE, false, handle, fail },
};
static const struct qh_routes family = { routes, QF_COUNT_OF(routes) };
static const struct qh_routes *const families[] = { &family };

static struct qh_tenants *tenants(void)
{
    static struct qh_tenants *keys;
    char path[64];
    FILE *file;

    if (keys)
        return keys;
    (void)snprintf(path, sizeof(path), "/tmp/pf-fuzz-keys-%d", (int)getpid());
    file = fopen(path, "we");
    if (!file || fputs("alpha team-a\nroot *\n", file) < 0 || fclose(file) != 0 ||
        chmod(path, 0600) != 0)
        abort();
    keys = qh_tenants_new(path, NULL);
    (void)unlink(path);
    if (!keys)
        abort();
    return keys;
}

/* Up to the next line feed, which is skipped; a carriage return before it goes too. */
static struct qf_str next_line(struct qf_str *text)
{
    const char *end = text->len ? memchr(text->data, '\n', text->len) : NULL;
    size_t len = end ? (size_t)(end - text->data) : text->len;
    struct qf_str line = qf_str_sub(*text, 0, len);

    *text = qf_str_sub(*text, end ? len + 1 : len, text->len);
    return line.len && line.data[line.len - 1] == '\r' ? qf_str_sub(line, 0, line.len - 1) : line;
}

static bool cut(struct qf_str text, char at, struct qf_str *ret_before, struct qf_str *ret_after)
{
    const char *found = text.len ? memchr(text.data, at, text.len) : NULL;

    *ret_before = found ? qf_str_sub(text, 0, (size_t)(found - text.data)) : text;
    *ret_after = found ? qf_str_sub(text, (size_t)(found - text.data) + 1, text.len) : QF_STR("");
    return found != NULL;
}

static enum qh_method method_of(struct qf_str word)
{
    return qf_str_is(word, "POST")      ? QH_METHOD_POST
           : qf_str_is(word, "HEAD")    ? QH_METHOD_HEAD
           : qf_str_is(word, "DELETE")  ? QH_METHOD_DELETE
           : qf_str_is(word, "OPTIONS") ? QH_METHOD_OPTIONS
           : qf_str_is(word, "GET")     ? QH_METHOD_GET
                                        : QH_METHOD_OTHER;
}

/* False: not worth asking. */
static bool read_request(struct qf_str text, struct qh_request *request, struct qf_str *ret_query)
{
    struct qf_str line = next_line(&text), method, target, path;

    (void)cut(line, ' ', &method, &target);
    (void)cut(target, '?', &path, ret_query);
    request->method = method_of(method);
    request->path = qh_url_decode(request->arena, path, false);
    while (text.len && (line = next_line(&text)).len) {
        struct qf_str name, value;

        (void)cut(line, ':', &name, &value);
        if (qh_params_add(request->arena, &request->headers, name, qf_str_trim(value), NULL))
            return false;
    }
    request->body = text;
    qh_request_read_headers(request);
    return !qf_arena_failed(request->arena);
}

static void ask(struct qh_request *request, struct qf_str query)
{
    struct qh_router router = { .families = families,
                                .family_count = 1,
                                .tenants = tenants(),
                                .cleans_paths = true,
                                .cors_origin = "https://grafana.example",
                                .cors_expose = "" };
    struct qh_stream *refused = qh_stream_new(1 << 16), *answered = qh_stream_new(1 << 16);
    bool admitted = qh_router_admit(&router, request, refused);

    handled = 0;
    if (admitted == qh_stream_begun(refused))
        abort(); /* let in without a word, or told why not */
    request->query = query;
    (void)qh_request_keeps_rules(request, true, &(struct qh_refusal){ 0 });
    (void)!qh_request_read_params(request, NULL);
    qh_router_handle(&router, request, answered);
    if (!qh_stream_begun(answered) || handled != (admitted ? 1 : 0))
        abort();
    (void)qh_stream_drop(refused);
    (void)qh_stream_drop(answered);
}

static void read_range(const struct qh_request *request)
{
    uint64_t offset = 0, length = 0, size = 1000;

    if (qh_range_parse(qh_request_header(request, "Range"), size, &offset, &length) ==
            QH_RANGE_PART &&
        (offset >= size || length == 0 || length > size - offset))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct qh_request request = { .arena = qf_arena_new(ARENA_BYTES), .peer_verified = true };
    struct qf_str query;

    if (read_request((struct qf_str){ (const char *)data, size }, &request, &query)) {
        read_range(&request);
        ask(&request, query);
    }
    (void)qf_arena_free(request.arena);
    return 0;
}
