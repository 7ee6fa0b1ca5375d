/* test_credentials.c - where keys come from, and that they are renewed. */
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/sys/clock.h"
#include "segments/store/credentials.h"
#include "tests/lib/test.h"
#include "tests/unit/segments/store/fake_http.h"

static const struct sg_store_limit no_limit = { .deadline_ms = QF_TIME_NEVER };

/* An environment without any AWS variable and with a home of its own. */
struct fixture {
    char home[64];
    struct http_client *http;
    struct credentials_source *source;
    struct qf_err err;
};

static void clear_environment(void)
{
    static const char *const names[] = {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_CONFIG_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_ROLE_ARN",
        "AWS_ROLE_SESSION_NAME",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "AWS_ENDPOINT_URL_STS",
    };

    for (size_t i = 0; i < QF_COUNT_OF(names); i++)
        CHECK(unsetenv(names[i]) == 0);
    CHECK(setenv("no_proxy", "*", 1) == 0);
}

static struct fixture fixture_new(void)
{
    struct fixture f = { .home = "/tmp/pf-home-XXXXXX" };
    char command[128];

    CHECK(mkdtemp(f.home) != NULL);
    clear_environment();
    CHECK(setenv("HOME", f.home, 1) == 0);
    (void)snprintf(command, sizeof(command), "mkdir %s/.aws", f.home);
    CHECK(system(command) == 0);
    f.http = http_client_new(
        &(struct http_options){ .connect_timeout_ms = 2000, .stall_timeout_ms = 2000 });
    return f;
}

static void fixture_done(struct fixture *f)
{
    char command[128];

    f->source = credentials_source_free(f->source);
    f->http = http_client_free(f->http);
    clear_environment();
    (void)snprintf(command, sizeof(command), "rm -rf %s", f->home);
    CHECK(system(command) == 0);
}

static void write_file(const struct fixture *f, const char *name, const char *text)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", f->home, name);
    file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void start(struct fixture *f, struct credentials_options options)
{
    options.http = f->http;
    options.region = "r1";
    f->source = credentials_source_free(f->source);
    f->source = credentials_source_new(&options);
}

/* "access/secret/token" of the current keys, or the error. */
static const char *keys(struct fixture *f)
{
    static char text[1200];
    struct credentials got = { 0 };
    struct qf_err err = { 0 };

    if (credentials_get(f->source, &no_limit, &got, &err)) {
        (void)snprintf(text, sizeof(text), "%s: %s", qf_rc_name(err.rc), err.msg);
    } else {
        (void)snprintf(text, sizeof(text), "%s/%s/%s", got.access_key, got.secret_key, got.token);
        credentials_done(&got);
    }
    return text;
}

TEST(keys_given_outright_come_before_those_of_the_environment)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();

    CHECK(setenv("AWS_ACCESS_KEY_ID", "ea", 1) == 0 &&
          setenv("AWS_SECRET_ACCESS_KEY", "es", 1) == 0);
    start(&f, (struct credentials_options){ .access_key = "oa", .secret_key = "os" });
    CHECK_STR(keys(&f), "oa/os/");
    start(&f, (struct credentials_options){ 0 });
    CHECK_STR(keys(&f), "ea/es/");
    CHECK(setenv("AWS_SESSION_TOKEN", "et", 1) == 0);
    start(&f, (struct credentials_options){ 0 });
    CHECK_STR(keys(&f), "ea/es/et");
}

TEST(files_are_read_as_the_aws_tools_write_them)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();

    write_file(&f, ".aws/credentials",
               "# comment\n[other]\naws_access_key_id=oa\naws_secret_access_key=os\n\n"
               "[default]\r\n aws_access_key_id = da\r\naws_secret_access_key = d/s=+\r\n"
               "aws_session_token=dt\n");
    write_file(&f, ".aws/config",
               "[default]\nregion = eu-west-9\n"
               "[profile third]\naws_access_key_id=ta\naws_secret_access_key=ts\n"
               "region=r3\n");
    start(&f, (struct credentials_options){ 0 });
    CHECK_STR(keys(&f), "da/d/s=+/dt");
    start(&f, (struct credentials_options){ .profile = "other" });
    CHECK_STR(keys(&f), "oa/os/");
    CHECK(setenv("AWS_PROFILE", "third", 1) == 0);
    start(&f, (struct credentials_options){ 0 });
    CHECK_STR(keys(&f), "ta/ts/");
    {
        QF_CLEANUP(qf_freep) char *region = credentials_config_get("default", "region");
        QF_CLEANUP(qf_freep) char *third = credentials_config_get("third", "region");
        QF_CLEANUP(qf_freep) char *none = credentials_config_get("fourth", "region");

        CHECK_STR(region, "eu-west-9");
        CHECK_STR(third, "r3");
        CHECK(none == NULL);
    }
}

TEST(without_any_source_the_error_says_what_to_do)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();

    start(&f, (struct credentials_options){ 0 });
    CHECK(strstr(keys(&f), "unauthenticated: no S3 credentials: set AWS_ACCESS_KEY_ID"));
}

/* Keys that were refused are looked up again: a file may have been rotated under us. */
TEST(rotated_files_are_read_again_after_a_refusal)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    struct credentials used = { 0 };

    write_file(&f, ".aws/credentials", "[default]\naws_access_key_id=a\naws_secret_access_key=1\n");
    start(&f, (struct credentials_options){ 0 });
    CHECK_OK(credentials_get(f.source, &no_limit, &used, &f.err), &f.err);
    write_file(&f, ".aws/credentials", "[default]\naws_access_key_id=b\naws_secret_access_key=2\n");
    CHECK_STR(keys(&f), "a/1/");
    CHECK(credentials_refused(f.source, &used));
    CHECK_STR(keys(&f), "b/2/");
    credentials_done(&used);
    start(&f, (struct credentials_options){ .access_key = "x", .secret_key = "y" });
    CHECK_OK(credentials_get(f.source, &no_limit, &used, &f.err), &f.err);
    CHECK(!credentials_refused(f.source, &used));
    credentials_done(&used);
}

static void print_time(char *out, size_t size, int64_t from_now_ms)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    qf_time_print_rfc3339(&buf, (qf_clock_wall_ms() + from_now_ms) / 1000 * 1000);
    (void)snprintf(out, size, "%s", qf_strbuf_cstr(&buf));
}

static void answer_container(struct fake_http *fake, const char *key, int64_t expires_in_ms)
{
    char body[300], expiry[40];

    print_time(expiry, sizeof(expiry), expires_in_ms);
    (void)snprintf(body, sizeof(body),
                   "{\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"s\",\"Token\":\"t\","
                   "\"Expiration\":\"%s\"}",
                   key, expiry);
    fake_http_answer(fake, "200 OK", "", body);
}

TEST(the_container_endpoint_is_asked_with_its_token_and_in_time)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    QF_CLEANUP(fake_http_freep) struct fake_http *fake = fake_http_new();
    char url[64], path[100];

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/creds", fake_http_port(fake));
    CHECK(setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1) == 0);
    write_file(&f, "token", "Bearer abc\n");
    (void)snprintf(path, sizeof(path), "%s/token", f.home);
    CHECK(setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path, 1) == 0);
    start(&f, (struct credentials_options){ 0 });
    answer_container(fake, "one", 3600000);
    CHECK_STR(keys(&f), "one/s/t");
    CHECK_STR(keys(&f), "one/s/t");
    CHECK_EQ(fake_http_count(fake), 1);
    CHECK(strstr(fake_http_request(fake, 0), "GET /creds HTTP/1.1\r\n"));
    CHECK(strstr(fake_http_request(fake, 0), "Authorization: Bearer abc\r\n"));

    /* Four minutes to go: renewed. */
    start(&f, (struct credentials_options){ 0 });
    fake_http_reset(fake);
    answer_container(fake, "two", 240000);
    answer_container(fake, "three", 3600000);
    CHECK_STR(keys(&f), "two/s/t");
    CHECK_STR(keys(&f), "three/s/t");
    CHECK_STR(keys(&f), "three/s/t");
    CHECK_EQ(fake_http_count(fake), 2);

    /* The endpoint fails: the old keys serve while they last, and it is not asked all the time. */
    start(&f, (struct credentials_options){ 0 });
    fake_http_reset(fake);
    answer_container(fake, "four", 240000);
    fake_http_answer(fake, "400 Bad", "", "no");
    CHECK_STR(keys(&f), "four/s/t");
    CHECK_STR(keys(&f), "four/s/t");
    CHECK_STR(keys(&f), "four/s/t");
    CHECK_EQ(fake_http_count(fake), 2);

    /* Keys that have ended do not serve. */
    start(&f, (struct credentials_options){ 0 });
    fake_http_reset(fake);
    answer_container(fake, "five", -1000);
    fake_http_answer(fake, "400 Bad", "", "no such role");
    CHECK_STR(keys(&f), "five/s/t");
    CHECK(strstr(keys(&f), "unauthenticated: credentials from the container endpoint: status 400: "
                           "no such role"));
}

TEST(container_endpoints_elsewhere_and_bad_answers_are_refused)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    QF_CLEANUP(fake_http_freep) struct fake_http *fake = fake_http_new();
    static const char *const elsewhere[] = {
        "http://example.com/x", "http://127.0.0.1.example.com/",
        "http://10.0.0.1/",     "ftp://127.0.0.1/",
        "http://[::2]/",        "http://localhost.example.com/"
    };
    static const char *const bad[] = { "", "[]", "{}", "{\"AccessKeyId\":1}",
                                       "{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"s\","
                                       "\"Token\":\"t\",\"Expiration\":\"soon\"}",
                                       /* a line feed in a key would begin a header of its own */
                                       "{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"s\","
                                       "\"Token\":\"t\\r\\nX-Amz-Acl: public-read\","
                                       "\"Expiration\":\"2100-01-01T00:00:00Z\"}" };
    char url[64];

    for (size_t i = 0; i < QF_COUNT_OF(elsewhere); i++) {
        CHECK(setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", elsewhere[i], 1) == 0);
        start(&f, (struct credentials_options){ 0 });
        CHECK_MSG(strstr(keys(&f), "only https or a local address"), "%s", elsewhere[i]);
    }
    (void)snprintf(url, sizeof(url), "http://localhost:%d/", fake_http_port(fake));
    CHECK(setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1) == 0);
    start(&f, (struct credentials_options){ 0 });
    for (size_t i = 0; i < QF_COUNT_OF(bad); i++) {
        fake_http_reset(fake);
        fake_http_answer(fake, "200 OK", "", bad[i]);
        CHECK_MSG(strstr(keys(&f), "unauthenticated: credentials from"), "%s", bad[i]);
    }
}

TEST(a_web_identity_is_exchanged_for_keys)
{
    QF_CLEANUP(fixture_done) struct fixture f = fixture_new();
    QF_CLEANUP(fake_http_freep) struct fake_http *fake = fake_http_new();
    char url[64], path[100], body[600], expiry[40];

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d/", fake_http_port(fake));
    (void)snprintf(path, sizeof(path), "%s/jwt", f.home);
    CHECK(setenv("AWS_ENDPOINT_URL_STS", url, 1) == 0);
    CHECK(setenv("AWS_WEB_IDENTITY_TOKEN_FILE", path, 1) == 0);
    CHECK(setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1) == 0);
    start(&f, (struct credentials_options){ 0 });
    CHECK(strstr(keys(&f), "cannot read"));
    write_file(&f, "jwt", "head.pay+load.sig\n");
    print_time(expiry, sizeof(expiry), 3600000);
    (void)snprintf(
        body, sizeof(body),
        "<AssumeRoleWithWebIdentityResponse xmlns=\"x\"><AssumeRoleWithWebIdentityResult>"
        "<AssumedRoleUser><Arn>x</Arn></AssumedRoleUser><Credentials>"
        "<AccessKeyId>a</AccessKeyId><SecretAccessKey>s&amp;</SecretAccessKey>"
        "<SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials>"
        "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
        expiry);
    fake_http_answer(fake, "200 OK", "", body);
    CHECK_STR(keys(&f), "a/s&/t");
    CHECK(strstr(fake_http_request(fake, 0), "POST / HTTP/1.1\r\n"));
    CHECK(
        strstr(fake_http_request(fake, 0),
               "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1"
               "%3Arole%2Fr&RoleSessionName=promfabric&WebIdentityToken=head.pay%2Bload.sig"));
    CHECK(!strstr(fake_http_request(fake, 0), "Authorization"));
    start(&f, (struct credentials_options){ 0 });
    fake_http_reset(fake);
    fake_http_answer(fake, "403 Forbidden", "", "<Error><Code>AccessDenied</Code></Error>");
    CHECK(strstr(keys(&f), "credentials from STS: status 403"));
}
