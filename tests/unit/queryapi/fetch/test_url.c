/* test_url.c - which addresses the API will fetch from. */
#include "queryapi/fetch/url.h"

#include "tests/lib/test.h"

static bool base(const char *text, bool tls)
{
    return qa_artifact_base_valid(qf_str_from(text), tls);
}

static bool below(const char *url, const char *where)
{
    return qa_artifact_url_below(qf_str_from(url), qf_str_from(where));
}

TEST(a_base_is_a_web_address_and_no_more)
{
    CHECK(base("http://10.0.0.1:8081", false));
    CHECK(base("https://worker-0.workers:8081", false));
    CHECK(base("http://[::1]:8081", false));
    CHECK(base("https://proxy/worker-0", true));
    CHECK(!base("http://10.0.0.1:8081", true));
    CHECK(!base("", false));
    CHECK(!base("file:///etc/passwd", false));
    CHECK(!base("gopher://h", false));
    CHECK(!base("http://", false));
    CHECK(!base("http:///path", false));
    CHECK(!base("http://user@host", false));
    CHECK(!base("http://host/?x=", false));
    CHECK(!base("http://host#", false));
    CHECK(!base("http://host\r\nX: y", false));
}

TEST(an_artifact_lies_below_its_workers_base)
{
    CHECK(below("http://h:1/artifacts/0a1b", "http://h:1"));
    CHECK(below("http://h:1/w/artifacts/0a1b", "http://h:1/w/"));
    CHECK(!below("http://h:12/artifacts/0a1b", "http://h:1"));
    CHECK(!below("http://h:1.example/x", "http://h:1"));
    CHECK(!below("http://h:1@other/x", "http://h:1"));
    CHECK(!below("http://other/artifacts/0a1b", "http://h:1"));
    CHECK(!below("http://g:1/artifacts/0a1b", "http://h:1"));
    CHECK(!below("file:/h:1/artifacts/0a1b", "http://h:1"));
    CHECK(!below("http://h:1", "http://h:1"));
    CHECK(!below("http://h:1/w/../secret", "http://h:1/w"));
    CHECK(!below("http://h:1/w/%2e%2e/secret", "http://h:1/w"));
    CHECK(!below("http://h:1/a?b=c", "http://h:1"));
    CHECK(!below("http://h:1/a b", "http://h:1"));
    CHECK(!below("x", ""));
}
