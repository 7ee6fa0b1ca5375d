/* test_fetcher.c - artifacts over real HTTP: verified, bounded, and each request answered once. */
#include "queryapi/fetch/fetcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/http/listener.h"
#include "base/pure/alloc.h"
#include "base/sys/mailbox.h"
#include "segments/parquet/artifact.h"
#include "tests/lib/test.h"

#define BODY "these bytes stand for an artifact"

struct fixture {
    struct qh_listener *listener;
    struct qa_fetcher *fetcher;
    struct qf_mailbox *done;
    _Atomic uint64_t spool_bytes;
    uint64_t memory_bytes_max;
    char dir[64];
};

/* Where the right bytes are, for who goes where a worker sends him. */
static void redirect(struct qh_stream *stream)
{
    qh_stream_header(stream, "Location", "/good");
    qh_stream_answer(stream, 302, "text/plain", QF_STR("elsewhere"));
}

static void serve(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    (void)ctx;
    if (qf_str_is(request->path, "/moved"))
        redirect(stream);
    else if (qf_str_is(request->path, "/missing"))
        qh_stream_answer(stream, 404, "text/plain", QF_STR("gone"));
    else if (qf_str_is(request->path, "/broken"))
        qh_stream_answer(stream, 500, "text/plain", QF_STR("sorry"));
    else if (qf_str_is(request->path, "/short"))
        qh_stream_answer(stream, 200, "text/plain", QF_STR("these bytes"));
    else if (qf_str_is(request->path, "/long"))
        qh_stream_answer(stream, 200, "text/plain", QF_STR(BODY BODY));
    else if (qf_str_is(request->path, "/changed"))
        qh_stream_answer(stream, 200, "text/plain", QF_STR("These bytes stand for an artifact"));
    else
        qh_stream_answer(stream, 200, "text/plain", QF_STR(BODY));
}

static void on_done(void *ctx, struct qa_fetch *fetch)
{
    struct fixture *fixture = ctx;

    CHECK(qf_mailbox_try_send(fixture->done, fetch));
}

static void start(struct fixture *fixture, uint64_t spool_bytes_max)
{
    struct qf_err err = { 0 };
    struct qh_listener_options http = { .listen = "127.0.0.1:0", .handle = serve };
    struct qa_fetcher_options options = { .spool_bytes_max = spool_bytes_max,
                                          .spool_bytes = &fixture->spool_bytes,
                                          .memory_bytes_max = fixture->memory_bytes_max,
                                          .concurrency_max = 4,
                                          .done = on_done,
                                          .ctx = fixture };

    (void)snprintf(fixture->dir, sizeof(fixture->dir), "/tmp/pf-fetch-XXXXXX");
    CHECK(mkdtemp(fixture->dir));
    options.spool_dir = fixture->dir;
    fixture->done = qf_mailbox_new(1000);
    fixture->listener = qh_listener_new(&http, &err);
    CHECK_MSG(fixture->listener, "%s", err.msg);
    fixture->fetcher = qa_fetcher_new(&options, &err);
    CHECK_MSG(fixture->fetcher, "%s", err.msg);
}

static void stop(struct fixture *fixture)
{
    (void)qa_fetcher_free(fixture->fetcher);
    (void)qh_listener_free(fixture->listener);
    (void)qf_mailbox_free(fixture->done, NULL);
    CHECK(access(fixture->dir, F_OK) != 0); /* nothing is left behind */
}

static struct qa_fetch *request(const struct fixture *fixture, const char *path)
{
    struct qa_fetch *fetch = qf_xcalloc(1, sizeof(*fetch));
    char url[100], checksum[40];

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", qh_listener_port(fixture->listener),
                   path);
    fetch->url = qf_xstrdup(url);
    fetch->size_bytes = strlen(BODY);
    sg_artifact_checksum(QF_STR(BODY), checksum);
    CHECK(qa_checksum_parse(checksum, strlen(checksum), &fetch->checksum));
    return fetch;
}

static struct qa_fetch *fetch_one(struct fixture *fixture, const char *path)
{
    struct qa_fetch *fetch;

    CHECK(qa_fetcher_submit(fixture->fetcher, request(fixture, path)));
    fetch = qf_mailbox_receive(fixture->done, 10000);
    CHECK(fetch);
    return fetch;
}

TEST(a_whole_artifact_is_in_the_spool_and_counted)
{
    struct fixture fixture = { 0 };
    struct qa_fetch *fetch;
    struct stat info;

    start(&fixture, 1000);
    fetch = fetch_one(&fixture, "/good");
    CHECK_MSG(fetch->ok, "%s", fetch->detail);
    CHECK(stat(fetch->artifact.path, &info) == 0);
    CHECK_EQ(info.st_size, strlen(BODY));
    CHECK_EQ(fixture.spool_bytes, strlen(BODY));
    (void)qa_fetch_free(fetch);
    stop(&fixture);
}

TEST(a_small_artifact_needs_no_file_while_there_is_memory)
{
    struct fixture fixture = { .memory_bytes_max = strlen(BODY) };
    struct qa_fetch *first, *second;

    start(&fixture, 1000);
    first = fetch_one(&fixture, "/good");
    CHECK_MSG(first->ok, "%s", first->detail);
    CHECK(!first->artifact.path);
    CHECK_EQ(first->artifact.size_bytes, strlen(BODY));
    CHECK_EQ(memcmp(first->artifact.data, BODY, strlen(BODY)), 0);
    second = fetch_one(&fixture, "/good"); /* the spool holds too much by now */
    CHECK(second->ok && second->artifact.path && !second->artifact.data);
    CHECK_EQ(fixture.spool_bytes, 2 * strlen(BODY));
    (void)qa_fetch_free(first);
    (void)qa_fetch_free(second);
    stop(&fixture);
}

/* Each of these means "run it again", and leaves nothing in the spool. */
TEST(what_is_not_the_announced_artifact_is_refused)
{
    static const struct {
        const char *path;
        enum wc_fetch_error error;
    } cases[] = { { "/missing", WC_FETCH_EXPIRED }, { "/broken", WC_FETCH_IO },
                  { "/moved", WC_FETCH_IO }, /* nobody is followed */
                  { "/short", WC_FETCH_CHECKSUM },  { "/long", WC_FETCH_CHECKSUM },
                  { "/changed", WC_FETCH_CHECKSUM } };
    struct fixture fixture = { 0 };

    start(&fixture, 1000);
    for (size_t i = 0; i < QF_COUNT_OF(cases); i++) {
        struct qa_fetch *fetch = fetch_one(&fixture, cases[i].path);

        CHECK(!fetch->ok);
        CHECK_MSG(fetch->error == cases[i].error, "%s: %s", cases[i].path, fetch->detail);
        CHECK(!qa_artifact_present(&fetch->artifact));
        CHECK_EQ(fixture.spool_bytes, 0);
        (void)qa_fetch_free(fetch);
    }
    stop(&fixture);
}

TEST(a_server_that_is_not_there_is_an_error)
{
    struct fixture fixture = { 0 };
    struct qa_fetch *fetch = qf_xcalloc(1, sizeof(*fetch));

    start(&fixture, 1000);
    fetch->url = qf_xstrdup("http://127.0.0.1:1/x");
    CHECK(qa_fetcher_submit(fixture.fetcher, fetch));
    fetch = qf_mailbox_receive(fixture.done, 10000);
    CHECK(fetch && !fetch->ok && fetch->error == WC_FETCH_IO);
    (void)qa_fetch_free(fetch);
    stop(&fixture);
}

TEST(a_full_spool_refuses_before_the_first_byte)
{
    struct fixture fixture = { 0 };
    struct qa_fetch *fetch;

    start(&fixture, 10);
    fetch = fetch_one(&fixture, "/good");
    CHECK(!fetch->ok && fetch->spool_full);
    CHECK_EQ(fixture.spool_bytes, 0);
    (void)qa_fetch_free(fetch);
    stop(&fixture);
}

/* The sum of what is there and what is announced is not a small number. */
TEST(an_announced_size_does_not_wrap_round)
{
    struct fixture fixture = { 0 };
    struct qa_fetch *fetch;

    start(&fixture, 1 << 20);
    fixture.spool_bytes = 100;
    fetch = request(&fixture, "/good");
    fetch->size_bytes = UINT64_MAX - 50;
    CHECK(qa_fetcher_submit(fixture.fetcher, fetch));
    fetch = qf_mailbox_receive(fixture.done, 10000);
    CHECK(!fetch->ok && fetch->spool_full);
    CHECK_EQ(fixture.spool_bytes, 100);
    (void)qa_fetch_free(fetch);
    stop(&fixture);
}

TEST(many_requests_are_each_answered_once)
{
    struct fixture fixture = { 0 };

    start(&fixture, 1 << 20);
    for (int i = 0; i < 200; i++)
        CHECK(qa_fetcher_submit(fixture.fetcher, request(&fixture, "/good")));
    for (int i = 0; i < 200; i++) {
        struct qa_fetch *fetch = qf_mailbox_receive(fixture.done, 10000);

        CHECK(fetch && fetch->ok);
        (void)qa_fetch_free(fetch);
    }
    CHECK(!qf_mailbox_try_receive(fixture.done));
    stop(&fixture);
}

TEST(what_nobody_wants_any_more_is_not_fetched)
{
    struct fixture fixture = { 0 };
    struct qa_fetch *fetch;

    start(&fixture, 1000);
    fetch = request(&fixture, "/good");
    atomic_store(&fetch->unwanted, true);
    CHECK(qa_fetcher_submit(fixture.fetcher, fetch));
    fetch = qf_mailbox_receive(fixture.done, 10000);
    CHECK(fetch && !fetch->ok && !fetch->spool_full);
    CHECK_EQ(fixture.spool_bytes, 0);
    (void)qa_fetch_free(fetch);
    stop(&fixture);
}

TEST(checksums_are_read_strictly)
{
    struct wc_checksum checksum;
    const char *good = "xxh3:0123456789abcdef00000000000000ff";

    CHECK(qa_checksum_parse(good, strlen(good), &checksum));
    CHECK(checksum.high == UINT64_C(0x0123456789abcdef) && checksum.low == 0xff);
    CHECK(!qa_checksum_parse(good, strlen(good) - 1, &checksum));
    CHECK(!qa_checksum_parse("xxh3:0123456789ABCDEF00000000000000ff", 37, &checksum));
    CHECK(!qa_checksum_parse("md5::0123456789abcdef00000000000000ff", 37, &checksum));
}
