/* test_s3.c - the S3 store against answers that a real server gives rarely or never.
 *
 * What a server that verifies signatures thinks of it is tested in tests/integration/s3. */
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "segments/store/store.h"
#include "tests/lib/test.h"
#include "tests/unit/segments/store/fake_http.h"

static struct sg_store *open_url(const char *url)
{
    struct sg_store *store = NULL;
    struct qf_err err = { 0 };

    CHECK(setenv("no_proxy", "*", 1) == 0);
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = url,
                                                       .access_key = "key",
                                                       .secret_key = "secret",
                                                       .session_token = "session-token",
                                                       .attempts_max = 3,
                                                       .backoff_min_ms = 1,
                                                       .backoff_max_ms = 5 },
                           &store, &err),
             &err);
    return store;
}

static struct sg_store *open_fake(struct fake_http *fake, const char *more)
{
    char url[200];

    (void)snprintf(url, sizeof(url), "s3://bucket/pre?endpoint=http://127.0.0.1:%d&region=r1%s",
                   fake_http_port(fake), more);
    return open_url(url);
}

/* --- URLs --- */

TEST(s3_urls_have_one_canonical_form)
{
    static const char *const pairs[][2] = {
        { "s3://b?region=r", "s3://b?region=r" },
        { "s3://b/?region=r", "s3://b?region=r" },
        { "s3://b/x/y/?region=r", "s3://b/x/y?region=r" },
        { "s3://b/x?style=path&region=r&endpoint=http%3A%2F%2Fh%3A1%2F",
          "s3://b/x?endpoint=http%3A//h%3A1&region=r&style=path" },
        { "s3://b/x?anonymous=1&etag=opaque&region=r&profile=p",
          "s3://b/x?region=r&profile=p&anonymous=1&etag=opaque" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(pairs); i++) {
        QF_CLEANUP(sg_store_freep) struct sg_store *store = open_url(pairs[i][0]);
        QF_CLEANUP(sg_store_freep) struct sg_store *again = open_url(sg_store_url(store));

        CHECK_STR(sg_store_url(store), pairs[i][1]);
        CHECK_STR(sg_store_url(again), pairs[i][1]);
    }
}

TEST(bad_s3_urls_say_what_is_wrong)
{
    static const char *const bad[][2] = {
        { "s3://", "bucket's name" },
        { "s3:///x", "bucket's name" },
        { "s3://a b", "bucket's name" },
        { "s3://b/../x", "prefix" },
        { "s3://b?colour=red", "unknown parameter" },
        { "s3://b?region=%zz", "bad escape" },
        { "s3://b?region=a/b", "region" },
        { "s3://b?endpoint=host:9000", "endpoint" },
        { "s3://b?endpoint=http://user@host", "endpoint" },
        { "s3://b?endpoint=http://host/path", "endpoint" },
        { "s3://b?style=odd", "style" },
        { "s3://b?anonymous=yes", "anonymous" },
        { "s3://b?etag=x", "etag" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++) {
        struct sg_store *store = NULL;
        struct qf_err err = { 0 };

        CHECK_EQ(sg_store_open(&(struct sg_store_options){ .url = bad[i][0] }, &store, &err),
                 QF_EINVAL);
        CHECK_MSG(strstr(err.msg, bad[i][1]), "%s: %s", bad[i][0], err.msg);
    }
}

TEST(requests_go_to_the_path_or_to_the_host_of_the_bucket)
{
    QF_CLEANUP(fake_http_freep) struct fake_http *fake = fake_http_new();
    QF_CLEANUP(sg_store_freep) struct sg_store *path = open_fake(fake, "");
    QF_CLEANUP(sg_store_freep) struct sg_store *virtual = NULL;
    struct sg_store_info info;
    struct qf_err err = { 0 };
    char url[100], host[60];

    fake_http_answer(fake, "200 OK", "Content-Length: 5\r\nETag: \"abc\"\r\n", "");
    CHECK_OK(sg_store_stat(path, QF_STR("a=b/c"), NULL, &info, &err), &err);
    CHECK(info.size == 5);
    CHECK_STR(info.etag, "abc");
    CHECK(strstr(fake_http_request(fake, 0), "HEAD /bucket/pre/a%3Db/c HTTP/1.1\r\n"));
    CHECK(strstr(fake_http_request(fake, 0), "Credential=key/"));
    CHECK(strstr(fake_http_request(fake, 0), "/r1/s3/aws4_request"));
    CHECK(strstr(fake_http_request(fake, 0),
                 "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token"));
    CHECK(strstr(fake_http_request(fake, 0), "x-amz-security-token: session-token\r\n"));
    (void)snprintf(url, sizeof(url), "s3://bucket?endpoint=http://localhost:%d&style=virtual",
                   fake_http_port(fake));
    virtual = open_url(url);
    CHECK_OK(sg_store_stat(virtual, QF_STR("x"), NULL, &info, &err), &err);
    (void)snprintf(host, sizeof(host), "Host: bucket.localhost:%d\r\n", fake_http_port(fake));
    CHECK(strstr(fake_http_request(fake, 1), "HEAD /x HTTP/1.1\r\n"));
    CHECK(strstr(fake_http_request(fake, 1), host));
}

TEST(anonymous_requests_carry_no_signature)
{
    QF_CLEANUP(fake_http_freep) struct fake_http *fake = fake_http_new();
    QF_CLEANUP(sg_store_freep) struct sg_store *store = open_fake(fake, "&anonymous=1");
    struct sg_store_info info;
    struct qf_err err = { 0 };

    fake_http_answer(fake, "200 OK", "Content-Length: 5\r\n", "");
    CHECK_OK(sg_store_stat(store, QF_STR("x"), NULL, &info, &err), &err);
    CHECK(!strstr(fake_http_request(fake, 0), "Authorization"));
    CHECK(!strstr(fake_http_request(fake, 0), "x-amz"));
}

/* --- refusals --- */

TEST(statuses_become_errors_and_only_some_are_tried_again)
{
    static const struct {
        const char *status, *headers, *body;
        qf_rc rc;
        unsigned tries;
        const char *says;
    } cases[] = {
        { "403 Forbidden", "", "<Error><Code>AccessDenied</Code><Message>no</Message></Error>",
          QF_EDENIED, 1, "403 AccessDenied: no" },
        { "404 Not Found", "", "<Error><Code>NoSuchKey</Code></Error>", QF_ENOTFOUND, 1,
          "404 NoSuchKey" },
        { "404 Not Found", "", "<html>a proxy's page<br></html>", QF_ENOTFOUND, 1, ": 404" },
        { "400 Bad Request", "", "<Error><Code>RequestTimeout</Code></Error>", QF_EINVAL, 3,
          "after 3 tries: 400 RequestTimeout" },
        { "400 Bad Request", "", "<Error><Code>InvalidArgument</Code></Error>", QF_EINVAL, 1,
          "400 InvalidArgument" },
        { "429 Too Many", "", "", QF_EIO, 3, "429" },
        { "500 Oops", "", "<Error><Code>InternalError</Code></Error>", QF_EIO, 3,
          "500 InternalError" },
        { "501 Not Here", "", "", QF_EIO, 1, "501" },
        { "503 Slow Down", "Retry-After: 0\r\n", "", QF_EIO, 3, "after 3 tries: 503" },
        { "301 Moved", "x-amz-bucket-region: eu-west-9\r\n", "", QF_EINVAL, 1,
          "region eu-west-9, not r1" },
        { "302 Found", "Location: http://127.0.0.1:1/\r\n", "", QF_EPROTO, 1, "302" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(cases); i++) {
        QF_CLEANUP(fake_http_freep) struct fake_http *fake = fake_http_new();
        QF_CLEANUP(sg_store_freep) struct sg_store *store = open_fake(fake, "");
        struct qf_err err = { 0 };
        char buf[8];
        size_t len;

        fake_http_answer(fake, cases[i].status, cases[i].headers, cases[i].body);
        CHECK_EQ(sg_store_read(store, QF_STR("obj"), 0, buf, 8, NULL, &len, &err), cases[i].rc);
        CHECK_MSG(strstr(err.msg, cases[i].says) != NULL, "case %zu: %s", i, err.msg);
        CHECK_EQ(fake_http_count(fake), cases[i].tries);
    }
}

/* --- bodies --- */

static qf_rc read_range(const char *status, const char *headers, const char *body, uint64_t offset,
                        size_t want, size_t *ret_len)
{
    QF_CLEANUP(fake_http_freep) struct fake_http *fake = fake_http_new();
    QF_CLEANUP(sg_store_freep) struct sg_store *store = open_fake(fake, "");
    char buf[64];

    fake_http_answer(fake, status, headers, body);
    return sg_store_read(store, QF_STR("obj"), offset, buf, want, NULL, ret_len, NULL);
}

TEST(a_range_that_was_not_asked_for_is_refused)
{
    size_t len = 0;

    CHECK_EQ(read_range("206 P", "Content-Range: bytes 2-5/10\r\n", "2345", 2, 4, &len), QF_OK);
    CHECK_EQ(len, 4);
    CHECK_EQ(read_range("206 P", "Content-Range: bytes 8-9/10\r\n", "89", 8, 4, &len), QF_OK);
    CHECK_EQ(len, 2);
    CHECK_EQ(read_range("200 OK", "", "0123", 0, 4, &len), QF_OK);
    CHECK_EQ(read_range("200 OK", "", "01", 0, 4, &len), QF_OK);
    CHECK_EQ(len, 2);
    CHECK_EQ(read_range("416 No", "", "", 10, 4, &len), QF_OK);
    CHECK_EQ(len, 0);
    CHECK_EQ(read_range("200 OK", "", "0123456789", 2, 4, &len), QF_EPROTO);
    CHECK_EQ(read_range("200 OK", "", "2345", 2, 4, &len), QF_EPROTO);
    CHECK_EQ(read_range("206 P", "", "2345", 2, 4, &len), QF_EPROTO);
    CHECK_EQ(read_range("206 P", "Content-Range: bytes 1-4/10\r\n", "1234", 2, 4, &len),
             QF_ECORRUPT);
    CHECK_EQ(read_range("206 P", "Content-Range: bytes 2-4/10\r\n", "234", 2, 4, &len),
             QF_ECORRUPT);
    CHECK_EQ(read_range("206 P", "Content-Range: bytes 2-5/10\r\n", "234", 2, 4, &len),
             QF_ECORRUPT);
    CHECK_EQ(read_range("206 P", "Content-Length: 4\r\nContent-Range: bytes 2-5/10\r\n", "23", 2, 4,
                        &len),
             QF_EIO);
}

static qf_rc read_whole(const char *more, const char *headers, const char *body, struct qf_err *err)
{
    QF_CLEANUP(fake_http_freep) struct fake_http *fake = fake_http_new();
    QF_CLEANUP(sg_store_freep) struct sg_store *store = open_fake(fake, more);
    FILE *file = tmpfile();
    uint64_t size = 0;
    qf_rc rc;

    CHECK(file != NULL);
    fake_http_answer(fake, "200 OK", headers, body);
    rc = sg_store_read_fd(store, QF_STR("obj"), fileno(file), NULL, &size, err);
    if (!rc)
        CHECK_EQ(size, strlen(body));
    (void)fclose(file);
    return rc;
}

#define MD5_OF_HELLO "5d41402abc4b2a76b9719d911017c592"
#define MD5_OF_OTHER "00000000000000000000000000000000"
#define SHA_OF_HELLO "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="
#define SHA_OF_OTHER "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

/* Whatever checksum the server offers is verified; what is no checksum is not taken for one. */
TEST(whole_objects_are_verified_by_what_the_server_offers)
{
    struct qf_err err = { 0 };

    CHECK_EQ(read_whole("", "", "hello", NULL), QF_OK);
    CHECK_EQ(read_whole("", "ETag: \"" MD5_OF_HELLO "\"\r\n", "hello", NULL), QF_OK);
    CHECK_EQ(read_whole("", "ETag: \"" MD5_OF_OTHER "\"\r\n", "hello", &err), QF_ECORRUPT);
    CHECK_MSG(strstr(err.msg, "obj: wrong checksum: MD5"), "%s", err.msg);
    CHECK_EQ(read_whole("", "ETag: \"" MD5_OF_OTHER "-3\"\r\n", "hello", NULL), QF_OK);
    CHECK_EQ(read_whole("&etag=opaque", "ETag: \"" MD5_OF_OTHER "\"\r\n", "hello", NULL), QF_OK);
    CHECK_EQ(read_whole("",
                        "x-amz-server-side-encryption: aws:kms\r\nETag: \"" MD5_OF_OTHER "\"\r\n",
                        "hello", NULL),
             QF_OK);
    CHECK_EQ(read_whole("", "x-amz-checksum-sha256: " SHA_OF_HELLO "\r\n", "hello", NULL), QF_OK);
    CHECK_EQ(read_whole("", "x-amz-checksum-sha256: " SHA_OF_OTHER "\r\n", "hello", NULL),
             QF_ECORRUPT);
    CHECK_EQ(read_whole("", "x-amz-checksum-sha256: " SHA_OF_HELLO "-2\r\n", "hello", NULL), QF_OK);
    CHECK_EQ(read_whole("", "ETag: \"" MD5_OF_OTHER "\"\r\n", "", NULL), QF_ECORRUPT);
}

/* --- listings --- */

static bool collect(void *ctx, const struct sg_store_object *object)
{
    struct qf_strbuf *buf = ctx;

    qf_strbuf_str(buf, object->name);
    qf_strbuf_printf(buf, ":%llu:%.*s ", (unsigned long long)object->size,
                     QF_STR_ARG(object->etag));
    return true;
}

static bool collect_folder(void *ctx, const struct sg_store_folder *folder)
{
    struct qf_strbuf *buf = ctx;

    qf_strbuf_str(buf, folder->name);
    qf_strbuf_putc(buf, ' ');
    return true;
}

static qf_rc list(struct fake_http *fake, const char *const *pages, size_t count,
                  struct qf_strbuf *buf, struct qf_err *err)
{
    QF_CLEANUP(sg_store_freep) struct sg_store *store = open_fake(fake, "");

    fake_http_reset(fake);
    for (size_t i = 0; i < count; i++)
        fake_http_answer(fake, "200 OK", "", pages[i]);
    return sg_store_list(store, QF_STR("t"), QF_STR("t/0"), NULL, collect, buf, err);
}

#define LIST(inner) "<?xml version=\"1.0\"?><ListBucketResult>" inner "</ListBucketResult>"
#define OBJECT(key)                                                                                \
    "<Contents><Key>" key "</Key><Size>7</Size><ETag>&quot;e&quot;</ETag>"                         \
    "<LastModified>2026-01-31T00:00:00.000Z</LastModified></Contents>"

TEST(pages_are_put_together_and_names_decoded)
{
    QF_CLEANUP(fake_http_freep) struct fake_http *fake = fake_http_new();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_err err = { 0 };
    const char *const pages[] = {
        LIST("<IsTruncated>true</IsTruncated><NextContinuationToken>to+ken/=</"
             "NextContinuationToken>" OBJECT("pre/t/a%20b") OBJECT("pre/t/c+d")
                 OBJECT("pre/t/e%2Bf") "<EncodingType>url</EncodingType>"),
        LIST("<IsTruncated>true</IsTruncated><NextContinuationToken>two</NextContinuationToken>"),
        LIST("<IsTruncated>false</IsTruncated>" OBJECT("pre/t/z&amp;") OBJECT("pre/t/z//bad")),
    };

    CHECK_OK(list(fake, pages, 3, &buf, &err), &err);
    CHECK_STR(qf_strbuf_cstr(&buf), "t/a b:7:e t/c d:7:e t/e+f:7:e t/z&:7:e ");
    CHECK(strstr(fake_http_request(fake, 0),
                 "GET /bucket/?encoding-type=url&list-type=2&"
                 "max-keys=1000&prefix=pre%2Ft&start-after=pre%2Ft%2F0 "));
    CHECK(strstr(fake_http_request(fake, 1),
                 "GET /bucket/?continuation-token=to%2Bken%2F%3D&encoding-type=url&"));
    CHECK_EQ(fake_http_count(fake), 3);
}

/* A listing that lies would make the catalogue forget segments: it is an error. */
TEST(listings_that_cannot_be_trusted_are_errors)
{
    QF_CLEANUP(fake_http_freep) struct fake_http *fake = fake_http_new();
    static const char *const pages[] = {
        LIST(OBJECT("pre/t/b") OBJECT("pre/t/a")),
        LIST(OBJECT("pre/t/a") OBJECT("pre/t/a")),
        LIST(OBJECT("elsewhere/t/a")),
        LIST(OBJECT("pre/u")),
        LIST("<IsTruncated>true</IsTruncated>" OBJECT("pre/t/a")),
        LIST("<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken>"),
        LIST("<EncodingType>url</EncodingType>" OBJECT("pre/t/%4")),
        LIST("<Contents><Key>pre/t/a</Key><Size>big</Size></Contents>"),
        "<Other/>",
        "<ListBucketResult>",
        "not XML",
        "",
    };

    for (size_t i = 0; i < QF_COUNT_OF(pages); i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
        struct qf_err err = { 0 };

        CHECK_MSG(list(fake, &pages[i], 1, &buf, &err) == QF_EPROTO, "page %zu: %s", i, err.msg);
        CHECK_MSG(strstr(err.msg, "cannot list s3://bucket/pre"), "%s", err.msg);
    }
}

TEST(folders_of_a_bucket_are_its_common_prefixes)
{
    QF_CLEANUP(fake_http_freep) struct fake_http *fake = fake_http_new();
    QF_CLEANUP(sg_store_freep) struct sg_store *store = open_fake(fake, "");
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    fake_http_answer(
        fake, "200 OK", "",
        LIST(OBJECT("pre/file") "<CommonPrefixes><Prefix>pre/a%3D1/</Prefix></CommonPrefixes>"
                                "<CommonPrefixes><Prefix>pre/b/</Prefix></CommonPrefixes>"
                                "<EncodingType>url</EncodingType>"));
    CHECK_OK(sg_store_folders(store, QF_STR(""), NULL, collect_folder, &buf, &err), &err);
    CHECK_STR(qf_strbuf_cstr(&buf), "a=1/ b/ ");
    CHECK(strstr(
        fake_http_request(fake, 0),
        "/bucket/?delimiter=%2F&encoding-type=url&list-type=2&max-keys=1000&prefix=pre%2F "));
}

/* --- uploads --- */

/* The server joined the parts, but its answer was lost; asked again it knows of no upload. */
TEST(an_upload_whose_answer_was_lost_is_recognised)
{
    QF_CLEANUP(fake_http_freep) struct fake_http *fake = fake_http_new();
    QF_CLEANUP(sg_store_freep) struct sg_store *store = NULL;
    struct qf_err err = { 0 };
    char url[100];

    (void)snprintf(url, sizeof(url), "s3://b?endpoint=http://127.0.0.1:%d", fake_http_port(fake));
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = url,
                                                       .access_key = "k",
                                                       .secret_key = "s",
                                                       .backoff_min_ms = 1,
                                                       .part_bytes = 1 },
                           &store, &err),
             &err);
    fake_http_answer(fake, "200 OK", "", "<R><UploadId>u&amp;1</UploadId></R>");
    for (int i = 0; i < 5; i++)
        fake_http_answer(fake, "200 OK", "ETag: \"part\"\r\n", "");
    fake_http_answer(fake, "200 OK", "", "<Error><Code>InternalError</Code></Error>");
    fake_http_answer(fake, "404 Not Found", "", "<Error><Code>NoSuchUpload</Code></Error>");
    fake_http_answer(fake, "200 OK",
                     "Content-Length: 5\r\nx-amz-meta-promfabric-sha256: "
                     "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\r\n",
                     "");
    CHECK_OK(sg_store_put(store, QF_STR("x"), "hello", 5, NULL, &err), &err);
    CHECK(strstr(fake_http_request(fake, 0), "POST /b/x?uploads= HTTP/1.1"));
    CHECK(strstr(fake_http_request(fake, 5), "PUT /b/x?partNumber=5&uploadId=u%261 HTTP/1.1"));
    CHECK(strstr(fake_http_request(fake, 6),
                 "<Part><PartNumber>5</PartNumber><ETag>\"part\"</ETag>"));
    CHECK_EQ(fake_http_count(fake), 9);
}
