/* test_router.c - from a request to the handler of its route. */
#include "base/http/router.h"

#include "base/pure/arena.h"
#include "tests/lib/http/answers.h"

static int role;

static void handle_echo(struct qh_visit *visit)
{
    char text[200];

    CHECK(visit->role == &role);
    (void)snprintf(text, sizeof(text), "tenant=%.*s rest=%.*s q=%.*s", QF_STR_ARG(visit->tenant),
                   QF_STR_ARG(visit->rest), QF_STR_ARG(qh_visit_param(visit, "q")));
    qh_visit_text(visit, 200, text);
}

static void fail(struct qh_visit *visit, const struct qf_err *err)
{
    qh_visit_json(visit, qf_rc_http_status(err->rc), qf_str_from(err->msg));
}

static const struct qh_route first[] = {
    { "/a", QH_GET, false, handle_echo, fail },
    { "/x/*/y", QH_METHOD_GET, false, handle_echo, fail },
};
static const struct qh_route second[] = {
    { "/a", QH_METHOD_DELETE, false, handle_echo, fail },
    { "/open", QH_GET_POST, true, handle_echo, fail },
};
static const struct qh_routes one = { first, QF_COUNT_OF(first) },
                              two = { second, QF_COUNT_OF(second) };
static const struct qh_routes *const families[] = { &one, &two };

struct ask {
    enum qh_method method;
    const char *path;
    const char *tenant, *origin; /* may be NULL */
    const char *cors;            /* the router's */
};

/* The answer as text, until the next call. */
static const char *answer(struct ask ask)
{
    static struct qf_strbuf text;
    struct qh_tenants *tenants = qh_tenants_new(NULL, NULL);
    struct qh_param headers[2], params[] = { { QF_STR("q"), QF_STR("1") } };
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 16);
    struct qh_request request = { .arena = arena,
                                  .method = ask.method,
                                  .path = qf_str_from(ask.path),
                                  .params = { .items = params, .count = 1 },
                                  .headers = { .items = headers } };
    struct qh_router router = { .families = families,
                                .family_count = 2,
                                .tenants = tenants,
                                .cleans_paths = true,
                                .cors_origin = ask.cors,
                                .cors_expose = "X-Id",
                                .role = &role };
    struct qh_stream *stream = answers_stream(1000);

    if (ask.tenant)
        headers[request.headers.count++] =
            (struct qh_param){ QF_STR("X-Scope-OrgID"), qf_str_from(ask.tenant) };
    if (ask.origin)
        headers[request.headers.count++] =
            (struct qh_param){ QF_STR("Origin"), qf_str_from(ask.origin) };
    qh_router_handle(&router, &request, stream);
    qf_strbuf_done(&text);
    text = (struct qf_strbuf)QF_STRBUF_INIT;
    answers_read(stream, &text);
    (void)qh_stream_drop(stream);
    (void)qh_tenants_free(tenants);
    return qf_strbuf_cstr(&text);
}

#define TEXT "text/plain; charset=utf-8\n"

TEST(a_request_goes_to_the_route_of_its_path_and_method)
{
    CHECK_STR(answer((struct ask){ QH_METHOD_GET, "/a", NULL, NULL, NULL }),
              "200 " TEXT "\ntenant=default rest= q=1");
    CHECK_STR(answer((struct ask){ QH_METHOD_DELETE, "/a", "t", NULL, NULL }),
              "200 " TEXT "\ntenant=t rest= q=1");
    CHECK_STR(answer((struct ask){ QH_METHOD_GET, "/x/a.b/y", NULL, NULL, NULL }),
              "200 " TEXT "\ntenant=default rest=a.b q=1");
}

TEST(a_star_stands_for_at_least_one_character)
{
    CHECK_STR(answer((struct ask){ QH_METHOD_GET, "/x/y", NULL, NULL, NULL }),
              "404 " TEXT "\n404 page not found\n");
}

TEST(another_method_is_told_which_ones_there_are)
{
    CHECK_STR(answer((struct ask){ QH_METHOD_POST, "/x/1/y", NULL, NULL, NULL }),
              "405 " TEXT "Allow: GET, OPTIONS\n\nMethod Not Allowed\n");
    CHECK_STR(answer((struct ask){ QH_METHOD_DELETE, "/open", NULL, NULL, NULL }),
              "405 " TEXT "Allow: GET, POST, OPTIONS\n\nMethod Not Allowed\n");
}

/* The route words the error; an open one has no tenant and asks for none. */
TEST(the_tenant_is_known_before_the_handler_runs)
{
    CHECK_STR(answer((struct ask){ QH_METHOD_GET, "/a", "../b", NULL, NULL }),
              "400 application/json\n\ninvalid tenant in X-Scope-OrgID");
    CHECK_STR(answer((struct ask){ QH_METHOD_GET, "/open", "../b", NULL, NULL }),
              "200 " TEXT "\ntenant= rest= q=1");
}

#define CORS(origin)                                                                               \
    "Access-Control-Allow-Origin: " origin "\n"                                                    \
    "Access-Control-Allow-Headers: Accept, Authorization, Content-Type, Origin, X-Scope-OrgID\n"   \
    "Access-Control-Allow-Methods: GET, POST, DELETE, OPTIONS\n"                                   \
    "Access-Control-Expose-Headers: Date, X-Id\n"

TEST(pages_of_allowed_origins_may_read_answers)
{
    CHECK_STR(answer((struct ask){ QH_METHOD_OPTIONS, "/a", NULL, "http://p", "*" }),
              "204 -\n" CORS("*") "\n");
    CHECK_STR(answer((struct ask){ QH_METHOD_GET, "/a", NULL, "http://p", "http://p" }),
              "200 " TEXT CORS("http://p") "Vary: Origin\n\ntenant=default rest= q=1");
    CHECK_STR(answer((struct ask){ QH_METHOD_GET, "/a", NULL, "http://q", "http://p" }),
              "200 " TEXT "\ntenant=default rest= q=1");
    CHECK_STR(answer((struct ask){ QH_METHOD_GET, "/a", NULL, "http://p", NULL }),
              "200 " TEXT "\ntenant=default rest= q=1");
    CHECK_STR(answer((struct ask){ QH_METHOD_GET, "/a", NULL, NULL, "*" }),
              "200 " TEXT "\ntenant=default rest= q=1");
}

/* KEDA and others glue "/api/v1/query" to an address that ends with a slash. */
TEST(unclean_paths_lead_to_the_clean_one)
{
    CHECK(strstr(answer((struct ask){ QH_METHOD_GET, "//a", NULL, NULL, NULL }), "301"));
    CHECK(strstr(answer((struct ask){ QH_METHOD_GET, "/./x//y/", NULL, NULL, NULL }),
                 "Location: /x/y/"));
    CHECK(strstr(answer((struct ask){ QH_METHOD_GET, "/x/b/../c/y", NULL, NULL, NULL }),
                 "<a href=\"/x/c/y\">Moved Permanently</a>."));
    CHECK(strstr(answer((struct ask){ QH_METHOD_POST, "//evil.example/%0d", NULL, NULL, NULL }),
                 "Location: /evil.example/%250d"));
}

TEST(a_star_in_the_middle_is_one_segment)
{
    CHECK(strstr(answer((struct ask){ QH_METHOD_GET, "/x/a/y", NULL, NULL, NULL }), "rest=a "));
    CHECK(strstr(answer((struct ask){ QH_METHOD_GET, "/x/a/b/y", NULL, NULL, NULL }), "404"));
}
