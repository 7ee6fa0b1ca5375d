/* test_rules.c - requests that two readers could understand differently. */
#include "base/http/rules.h"

#include "tests/lib/test.h"

/* The status of the refusal; 0: it keeps the rules. */
static int refused(const char *name, const char *value, const char *other, bool host_needed)
{
    struct qh_param headers[] = { { QF_STR("Host"), QF_STR("a:1") },
                                  { qf_str_from(name), qf_str_from(value) },
                                  { qf_str_from(name), qf_str_from(other ? other : "") } };
    struct qh_request request = { .headers = { .items = headers, .count = other ? 3 : 2 } };
    struct qh_refusal refusal = { 0 };

    return qh_request_keeps_rules(&request, host_needed, &refusal) ? 0 : refusal.status;
}

TEST(lengths_that_differ_are_refused)
{
    CHECK_EQ(refused("content-length", "1", "2", true), 400);
    CHECK_EQ(refused("Content-Length", "1", "1", true), 0);
}

TEST(a_request_names_one_host)
{
    struct qh_request request = { 0 };
    struct qh_refusal refusal;

    CHECK(!qh_request_keeps_rules(&request, true, &refusal));
    CHECK_STR(refusal.text, "400 Bad Request: missing required Host header");
    CHECK(qh_request_keeps_rules(&request, false, &refusal)); /* HTTP/1.0 */
    CHECK_EQ(refused("host", "b", NULL, true), 400);
    CHECK_EQ(refused("X-Host", "a b", NULL, true), 0);
}

TEST(only_one_expectation_is_known)
{
    CHECK_EQ(refused("Expect", "100-Continue", NULL, true), 0);
    CHECK_EQ(refused("Expect", "more", NULL, true), 417);
}

TEST(names_of_headers_are_tokens)
{
    CHECK_EQ(refused("X Y", "1", NULL, true), 400);
    CHECK_EQ(refused("", "1", NULL, true), 400);
    CHECK_EQ(refused("x-scope-orgid", "1", NULL, true), 0);
}

TEST(an_absolute_target_is_its_path)
{
    CHECK_STR(qh_target_path("/a?b"), "/a?b");
    CHECK_STR(qh_target_path("http://host:1/a/b"), "/a/b");
    CHECK_STR(qh_target_path("HTTPS://host/a"), "/a");
    CHECK_STR(qh_target_path("http://host"), "/");
    CHECK_STR(qh_target_path("*"), "*");
}

TEST(paths_are_cleaned)
{
    static const struct {
        const char *path, *clean;
    } cases[] = {
        { "/api/v1/query", "/api/v1/query" },
        { "//api/v1/query", "/api/v1/query" },
        { "/api//v1/query/", "/api/v1/query/" },
        { "/./api/./v1", "/api/v1" },
        { "/api/x/../v1", "/api/v1" },
        { "/../../a", "/a" },
        { "/a/.", "/a" },
        { "/a/..", "/" },
        { "///", "/" },
        { "/a.b/..c/.d", "/a.b/..c/.d" },
        { "", "" },
        { "*", "*" },
    };
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 16);

    for (size_t i = 0; i < QF_COUNT_OF(cases); i++)
        CHECK_STR(qf_arena_cstr(arena, qh_path_clean(arena, qf_str_from(cases[i].path))),
                  cases[i].clean);
}
