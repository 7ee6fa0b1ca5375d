/* test_host.c - names that an API on the loopback answers to. */
#include "queryapi/http/host.h"

#include "tests/lib/test.h"

TEST(addresses_localhost_and_given_names_are_ours)
{
    static const char *const names[] = { "metrics.example" };
    static const char *const ours[] = {
        "",          "127.0.0.1",       "127.0.0.1:8080",       "[::1]:8080",       "[::1]",
        "localhost", "LocalHost:80",    "localhost.",           "pf.localhost:1",   "10.1.2.3:9",
        "[fe80::1]", "metrics.example", "METRICS.example:8443", "metrics.example.",
    };
    static const char *const others[] = {
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "notlocalhost",
        "127.0.0.1.evil.com",
        "127.1",
        ".localhost.x",
        "x.metrics.example",
        "0x7f000001",
        "[evil.example]",
        ":80",
    };

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        CHECK_MSG(qa_host_is_ours(qf_str_from(ours[i]), names, 1), "%s", ours[i]);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        CHECK_MSG(!qa_host_is_ours(qf_str_from(others[i]), names, 1), "%s", others[i]);
}

TEST(a_name_that_is_too_long_is_nobodys)
{
    char name[400];

    memset(name, 'a', sizeof(name));
    CHECK(!qa_host_is_ours((struct qf_str){ name, sizeof(name) }, NULL, 0));
    CHECK(!qa_host_is_ours((struct qf_str){ name, 255 }, NULL, 0));
}
