/* test_body.c - bodies that are there already, headers of requests, and how exchanges end. */
#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/http/listener.h"
#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "tests/lib/test.h"

#define DIGITS "0123456789"

struct fixture {
    struct qh_listener *listener;
    atomic_int released, finished, complete, last_status;
};

static void release(void *fixture)
{
    (void)atomic_fetch_add(&((struct fixture *)fixture)->released, 1);
}

static int file_of(const char *text)
{
    char path[] = "/tmp/pf-body-XXXXXX";
    int fd = mkstemp(path);

    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    CHECK(unlink(path) == 0);
    return fd;
}

static void handle(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    struct qh_body memory = { .fd = -1, .bytes = QF_STR(DIGITS), .release = release, .owner = ctx };

    request->note = ctx;
    if (qf_str_is(request->path, "/file")) {
        qh_stream_send(stream, 206, "text/plain",
                       &(struct qh_body){ .fd = file_of(DIGITS), .offset = 2, .length = 5 });
    } else if (qf_str_is(request->path, "/twice")) {
        qh_stream_send(stream, 200, "text/plain", &memory);
        qh_stream_send(stream, 500, "text/plain", &memory);
    } else if (qf_str_is(request->path, "/header")) {
        qh_stream_answer(stream, 200, NULL, qh_request_header(request, "x-tEst"));
    } else {
        qh_stream_send(stream, 200, "text/plain", &memory);
    }
}

static void finished(void *ctx, struct qh_request *request, const struct qh_outcome *outcome)
{
    struct fixture *fixture = ctx;

    CHECK(request->note == ctx);
    atomic_store(&fixture->last_status, outcome->status);
    (void)atomic_fetch_add(&fixture->complete, outcome->complete);
    (void)atomic_fetch_add(&fixture->finished, 1);
}

static void start(struct fixture *fixture)
{
    struct qf_err err = { 0 };

    *fixture = (struct fixture){ 0 };
    fixture->listener = qh_listener_new(
        &(struct qh_listener_options){
            .listen = "127.0.0.1:0", .handle = handle, .finished = finished, .ctx = fixture },
        &err);
    CHECK_MSG(fixture->listener, "%s", err.msg);
}

/* All that comes back on a connection of its own; free() it. */
static char *ask(const struct fixture *fixture, const char *line)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(qh_listener_port(fixture->listener)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct qf_strbuf text = QF_STRBUF_INIT;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char piece[4096];
    ssize_t len;

    CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    qf_strbuf_printf(&text, "%s HTTP/1.1\r\nHost: x\r\nX-Test: seen\r\nConnection: close\r\n\r\n",
                     line);
    CHECK_EQ(send(fd, text.data, text.len, MSG_NOSIGNAL), text.len);
    qf_strbuf_reset(&text);
    while ((len = recv(fd, piece, sizeof(piece), 0)) > 0)
        qf_strbuf_add(&text, piece, (size_t)len);
    CHECK_EQ(len, 0);
    (void)close(fd);
    return qf_strbuf_take(&text);
}

static void check_body(const struct fixture *fixture, const char *line, const char *status,
                       const char *body)
{
    QF_CLEANUP(qf_freep) char *answer = ask(fixture, line);
    const char *end = strstr(answer, "\r\n\r\n");

    CHECK_MSG(strncmp(answer, status, strlen(status)) == 0, "%s", answer);
    CHECK(end);
    CHECK_STR(end + 4, body);
}

TEST(memory_is_sent_as_it_is_and_let_go_once)
{
    struct fixture fixture;

    start(&fixture);
    check_body(&fixture, "GET /", "HTTP/1.1 200 ", DIGITS);
    check_body(&fixture, "HEAD /", "HTTP/1.1 200 ", "");
    (void)qh_listener_free(fixture.listener);
    CHECK_EQ(atomic_load(&fixture.released), 2);
}

TEST(a_part_of_a_file_is_sent)
{
    struct fixture fixture;

    start(&fixture);
    check_body(&fixture, "GET /file", "HTTP/1.1 206 ", "23456");
    (void)qh_listener_free(fixture.listener);
}

/* The second answer to a request does not count, and its body does not leak. */
TEST(what_comes_too_late_is_let_go_of)
{
    struct fixture fixture;

    start(&fixture);
    check_body(&fixture, "GET /twice", "HTTP/1.1 200 ", DIGITS);
    (void)qh_listener_free(fixture.listener);
    CHECK_EQ(atomic_load(&fixture.released), 2);
}

/* Nobody ever reads the stream: its last reference takes the body along. */
TEST(a_body_that_nobody_takes_goes_with_its_stream)
{
    struct fixture fixture = { 0 };
    struct qh_stream *stream = qh_stream_new(100);
    struct qh_request request = { .path = QF_STR("/") };

    handle(&fixture, &request, stream);
    CHECK_EQ(atomic_load(&fixture.released), 0);
    (void)qh_stream_drop(stream);
    CHECK_EQ(atomic_load(&fixture.released), 1);
}

TEST(headers_are_found_whatever_their_case)
{
    struct fixture fixture;

    start(&fixture);
    check_body(&fixture, "GET /header", "HTTP/1.1 200 ", "seen");
    (void)qh_listener_free(fixture.listener);
}

TEST(every_exchange_is_finished_once_and_tells_how_it_went)
{
    struct fixture fixture;

    start(&fixture);
    check_body(&fixture, "GET /", "HTTP/1.1 200 ", DIGITS);
    check_body(&fixture, "GET /file", "HTTP/1.1 206 ", "23456");
    (void)qh_listener_free(fixture.listener);
    CHECK_EQ(atomic_load(&fixture.finished), 2);
    CHECK_EQ(atomic_load(&fixture.complete), 2);
    CHECK_EQ(atomic_load(&fixture.last_status), 206);
}
