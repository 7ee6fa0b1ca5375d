/* test_listener.c - the HTTP server with real sockets: requests in, streams out. */
#include "base/http/listener.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/http/params.h"
#include "base/pure/strbuf.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "tests/lib/test.h"

/* A server whose behaviour follows the path. */
struct fixture {
    struct qh_listener *listener;
    atomic_int gone, room;
    struct qh_stream *_Atomic kept;
    int64_t rest_timeout_ms;
};

static void on_event(void *ctx, uint64_t id, enum qh_stream_event event)
{
    struct fixture *fixture = ctx;

    CHECK_EQ(id, 7);
    atomic_fetch_add(event == QH_STREAM_GONE ? &fixture->gone : &fixture->room, 1);
}

static void handle(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    struct fixture *fixture = ctx;
    struct qf_strbuf text = QF_STRBUF_INIT;

    if (qf_str_is(request->path, "/keep") || qf_str_is(request->path, "/events")) {
        qh_stream_listen(stream, on_event, fixture, 7);
        if (qf_str_is(request->path, "/events"))
            qh_stream_allow(stream, request->coding);
        if (qf_str_is(request->path, "/events"))
            qh_stream_begin(stream, 200, "text/event-stream");
        atomic_store(&fixture->kept, qh_stream_ref(stream));
        return;
    }
    if (qf_str_is(request->path, "/big"))
        for (int i = 0; i < 10000; i++)
            qf_strbuf_puts(&text, "0123456789");
    qh_stream_allow(stream, request->coding);
    qf_strbuf_printf(&text, "%d %.*s %.*s", (int)request->method, QF_STR_ARG(request->path),
                     QF_STR_ARG(qh_params_get(&request->params, "q")));
    qh_stream_header(stream, "X-Test", "1");
    qh_stream_answer(stream, 200, "text/plain", qf_strbuf_view(&text));
    qf_strbuf_done(&text);
}

/* Those without a word of welcome are sent away before their body is read. */
static bool admit(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    (void)ctx;
    if (!qf_str_is(qh_request_header(request, "X-Key"), "wrong"))
        return true;
    qh_stream_answer(stream, 401, "text/plain", QF_STR("no"));
    return false;
}

static void start(struct fixture *fixture)
{
    struct qf_err err = { 0 };
    struct qh_listener_options options = { .listen = "127.0.0.1:0",
                                           .admit = admit,
                                           .handle = handle,
                                           .ctx = fixture,
                                           .address_connections_max = 8,
                                           .body_bytes_max = 1000,
                                           .bodies_bytes_max = 4000,
                                           .stream_bytes_max = 4096,
                                           .keepalive_ms = 50,
                                           .header_timeout_ms = 300,
                                           .rest_timeout_ms = fixture->rest_timeout_ms
                                                                  ? fixture->rest_timeout_ms
                                                                  : 300 };

    fixture->listener = qh_listener_new(&options, &err);
    CHECK_MSG(fixture->listener, "%s", err.msg);
}

static int dial(const struct fixture *fixture)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(qh_listener_port(fixture->listener)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval limit = { .tv_sec = 5 };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
    return fd;
}

static void say(int fd, const char *text)
{
    CHECK_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Read until @want is seen or the peer closes. */
static void hear(int fd, struct qf_strbuf *buf, const char *want)
{
    char piece[4096];
    ssize_t len;

    while (!want || !strstr(qf_strbuf_cstr(buf), want)) {
        len = recv(fd, piece, sizeof(piece), 0);
        CHECK_MSG(len >= 0, "no answer; so far: %s", qf_strbuf_cstr(buf));
        if (len == 0)
            return;
        qf_strbuf_add(buf, piece, (size_t)len);
    }
}

/* What one request gets, on a connection that closes after it. */
static void ask(const struct fixture *fixture, const char *request, struct qf_strbuf *answer)
{
    int fd = dial(fixture);

    qf_strbuf_reset(answer);
    say(fd, request);
    hear(fd, answer, NULL);
    (void)close(fd);
}

#define END "Host: x\r\nConnection: close\r\n\r\n"

TEST(a_request_reaches_the_handler_whole)
{
    struct fixture fixture = { 0 };
    struct qf_strbuf answer = QF_STRBUF_INIT;

    start(&fixture);
    ask(&fixture, "GET /a%20b?q=1%2B1 HTTP/1.1\r\n" END, &answer);
    CHECK(strstr(answer.data, "HTTP/1.1 200 "));
    CHECK(strstr(answer.data, "X-Test: 1\r\n"));
    CHECK(strstr(answer.data, "\r\n\r\n1 /a b 1+1"));
    ask(&fixture,
        "POST /?q=url HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded; charset=x\r\n"
        "Content-Length: 6\r\n" END "q=body",
        &answer);
    CHECK(strstr(answer.data, "\r\n\r\n2 / body")); /* the body comes first */
    ask(&fixture, "HEAD /x HTTP/1.1\r\n" END, &answer);
    CHECK(strstr(answer.data, "Content-Length: 5\r\n"));
    CHECK(qf_str_ends(qf_strbuf_view(&answer), QF_STR("\r\n\r\n")));
    ask(&fixture, "BREW /x HTTP/1.1\r\n" END, &answer);
    CHECK(strstr(answer.data, "\r\n\r\n32 /x "));
    (void)qh_listener_free(fixture.listener);
    qf_strbuf_done(&answer);
}

/* The answer comes while the body is still being sent, and nothing of it was kept. */
TEST(who_may_not_ask_is_refused_at_the_headers)
{
    struct fixture fixture = { 0 };
    struct qf_strbuf answer = QF_STRBUF_INIT;
    int fd;

    start(&fixture);
    fd = dial(&fixture);
    say(fd, "POST /keep HTTP/1.1\r\nHost: x\r\nX-Key: wrong\r\nContent-Length: 900\r\n\r\nfirst");
    hear(fd, &answer, "\r\n\r\nno");
    CHECK(strstr(answer.data, "HTTP/1.1 401 "));
    CHECK(!atomic_load(&fixture.kept));
    (void)close(fd);
    (void)qh_listener_free(fixture.listener);
    qf_strbuf_done(&answer);
}

/* Whether a third body has no room while two others wait for their ends. They must be read first:
 * @patience_ms is how long the server has for that. */
static bool third_is_refused(const struct fixture *fixture, const char *begun, int patience_ms,
                             struct qf_strbuf *answer)
{
    struct qf_strbuf third = QF_STRBUF_INIT;
    int waiting[2];

    for (size_t i = 0; i < 2; i++) {
        waiting[i] = dial(fixture);
        say(waiting[i], begun);
    }
    (void)usleep((useconds_t)patience_ms * 1000);
    qf_strbuf_puts(&third, "POST / HTTP/1.1\r\nContent-Length: 300\r\n" END);
    for (int i = 0; i < 30; i++)
        qf_strbuf_puts(&third, "0123456789");
    ask(fixture, third.data, answer);
    for (size_t i = 0; i < 2; i++)
        (void)close(waiting[i]);
    qf_strbuf_done(&third);
    return strstr(qf_strbuf_cstr(answer), "HTTP/1.1 503 ") != NULL;
}

/* Two bodies of 900 bytes have room; while they wait for their ends a third has none. */
TEST(bodies_of_all_requests_have_one_budget)
{
    struct fixture fixture = { 0 };
    struct qf_strbuf answer = QF_STRBUF_INIT, begun = QF_STRBUF_INIT;
    bool refused = false, served = false;

    start(&fixture);
    qf_strbuf_puts(&begun, "POST / HTTP/1.1\r\nContent-Length: 950\r\n" END);
    for (int i = 0; i < 90; i++)
        qf_strbuf_puts(&begun, "0123456789");
    for (int tries = 1; tries <= 20 && !refused; tries++)
        refused = third_is_refused(&fixture, begun.data, 10 * tries, &answer);
    CHECK(refused);
    CHECK(strstr(answer.data, "Retry-After: 1"));
    for (int tries = 0; tries < 200 && !served; tries++) { /* and once the two are gone */
        ask(&fixture, "POST / HTTP/1.1\r\nContent-Length: 3\r\n" END "abc", &answer);
        served = strstr(qf_strbuf_cstr(&answer), "HTTP/1.1 200 ") != NULL;
        (void)usleep(served ? 0 : 10000);
    }
    CHECK(served);
    (void)qh_listener_free(fixture.listener);
    qf_strbuf_done(&answer);
    qf_strbuf_done(&begun);
}

TEST(one_address_has_a_share_of_the_connections)
{
    struct fixture fixture = { 0 };
    struct qf_strbuf answer = QF_STRBUF_INIT;
    char byte;
    int fds[9];

    start(&fixture);
    for (size_t i = 0; i < 9; i++)
        fds[i] = dial(&fixture);
    CHECK(recv(fds[8], &byte, 1, 0) <= 0);
    say(fds[0], "GET /x HTTP/1.1\r\n" END);
    hear(fds[0], &answer, "\r\n\r\n1 /x");
    for (size_t i = 0; i < 9; i++)
        (void)close(fds[i]);
    (void)qh_listener_free(fixture.listener);
    qf_strbuf_done(&answer);
}

TEST(what_is_too_large_is_refused)
{
    struct fixture fixture = { 0 };
    struct qf_strbuf answer = QF_STRBUF_INIT, request = QF_STRBUF_INIT;

    start(&fixture);
    qf_strbuf_puts(&request, "POST / HTTP/1.1\r\nContent-Length: 3000\r\n" END);
    for (int i = 0; i < 300; i++)
        qf_strbuf_puts(&request, "0123456789");
    ask(&fixture, request.data, &answer);
    CHECK(strstr(answer.data, "HTTP/1.1 413 "));
    qf_strbuf_reset(&request);
    qf_strbuf_puts(&request, "GET / HTTP/1.1\r\nX: ");
    for (int i = 0; i < 40000; i++)
        qf_strbuf_puts(&request, "0123456789");
    ask(&fixture, request.data, &answer);
    CHECK(strstr(answer.data, "HTTP/1.1 431 "));
    (void)qh_listener_free(fixture.listener);
    qf_strbuf_done(&answer);
    qf_strbuf_done(&request);
}

/* Headers of the size that is promised leave room for an answer in pieces. */
TEST(headers_up_to_the_limit_are_read)
{
    struct fixture fixture = { 0 };
    struct qf_strbuf answer = QF_STRBUF_INIT, request = QF_STRBUF_INIT;

    start(&fixture);
    qf_strbuf_puts(&request, "GET /big?q=");
    for (int i = 0; i < 6000; i++)
        qf_strbuf_puts(&request, "0123456789");
    qf_strbuf_puts(&request, "end HTTP/1.1\r\n" END);
    ask(&fixture, request.data, &answer);
    CHECK(strstr(answer.data, "HTTP/1.1 200 "));
    CHECK(answer.len > 160000 && strstr(answer.data, "56789end"));
    (void)qh_listener_free(fixture.listener);
    qf_strbuf_done(&answer);
    qf_strbuf_done(&request);
}

/* A proxy keeps connections for its next request; who has begun one must get on with it. */
TEST(connections_that_rest_are_kept_longer_than_those_that_dribble)
{
    struct fixture fixture = { .rest_timeout_ms = 60000 };
    struct qf_strbuf answer = QF_STRBUF_INIT;
    int resting, dribbling;

    start(&fixture);
    resting = dial(&fixture);
    dribbling = dial(&fixture);
    say(dribbling, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < 12; i++) { /* four times the time for headers */
        (void)usleep(100000);
        qh_listener_tick(fixture.listener);
    }
    hear(dribbling, &answer, NULL);
    CHECK_EQ(answer.len, 0);
    say(resting, "GET /hello HTTP/1.1\r\n" END);
    hear(resting, &answer, NULL);
    CHECK(strstr(answer.data, "HTTP/1.1 200 "));
    (void)close(resting);
    (void)close(dribbling);
    (void)qh_listener_free(fixture.listener);
    qf_strbuf_done(&answer);
}

TEST(a_request_that_breaks_the_rules_is_refused_and_its_connection_closed)
{
    struct fixture fixture = { 0 };
    struct qf_strbuf answer = QF_STRBUF_INIT;

    start(&fixture);
    ask(&fixture,
        "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n",
        &answer);
    CHECK(strstr(answer.data, "HTTP/1.1 400 "));
    ask(&fixture, "GET /hello HTTP/1.1\r\n\r\n", &answer);
    CHECK(strstr(answer.data, "missing required Host header"));
    ask(&fixture, "GET http://elsewhere.example/hello HTTP/1.1\r\n" END, &answer);
    CHECK(strstr(answer.data, "HTTP/1.1 200 "));
    (void)qh_listener_free(fixture.listener);
    qf_strbuf_done(&answer);
}

TEST(large_answers_are_compressed_if_the_client_can_read_that)
{
    struct fixture fixture = { 0 };
    struct qf_strbuf answer = QF_STRBUF_INIT;

    start(&fixture);
    ask(&fixture, "GET /big HTTP/1.1\r\nAccept-Encoding: br, gzip\r\n" END, &answer);
    CHECK(strstr(answer.data, "Content-Encoding: gzip\r\n"));
    CHECK(answer.len < 5000);
    ask(&fixture, "GET /big HTTP/1.1\r\nAccept-Encoding: gzip;q=0\r\n" END, &answer);
    CHECK(!strstr(answer.data, "Content-Encoding"));
    CHECK(answer.len > 100000);
    (void)qh_listener_free(fixture.listener);
    qf_strbuf_done(&answer);
}

static void wait_until(const struct fixture *fixture, const atomic_int *flag, int want)
{
    for (int i = 0; i < 400 && atomic_load(flag) < want; i++) {
        qh_listener_tick(fixture->listener);
        (void)usleep(5000);
    }
    CHECK_EQ(atomic_load(flag), want);
}

static struct qh_stream *wait_kept(struct fixture *fixture)
{
    for (int i = 0; i < 400 && !atomic_load(&fixture->kept); i++)
        (void)usleep(5000);
    CHECK(atomic_load(&fixture->kept));
    return atomic_exchange(&fixture->kept, NULL);
}

/* The connection sleeps while there is nothing, and wakes for every piece. */
TEST(an_event_stream_brings_pieces_as_they_are_written_and_keeps_alive)
{
    struct fixture fixture = { 0 };
    struct qf_strbuf answer = QF_STRBUF_INIT;
    struct qh_stream *stream;
    int fd;

    start(&fixture);
    fd = dial(&fixture);
    say(fd, "GET /events HTTP/1.1\r\n" END);
    stream = wait_kept(&fixture);
    hear(fd, &answer, "\r\n\r\n"); /* the head comes before the first byte of the body */
    CHECK(qh_stream_write(stream, QF_STR("data: one\n\n")));
    hear(fd, &answer, "data: one");
    /* Only a connection that sleeps is kept alive, and it falls asleep in its own time. */
    for (int ticks = 0; ticks < 250 && !strstr(qf_strbuf_cstr(&answer), ": keep-alive\n\n");
         ticks++) {
        char piece[256];
        ssize_t len;

        (void)usleep(20000);
        qh_listener_tick(fixture.listener);
        while ((len = recv(fd, piece, sizeof(piece), MSG_DONTWAIT)) > 0)
            qf_strbuf_add(&answer, piece, (size_t)len);
    }
    CHECK(strstr(qf_strbuf_cstr(&answer), ": keep-alive\n\n"));
    CHECK(qh_stream_write(stream, QF_STR("data: two\n\n")));
    qh_stream_end(stream);
    hear(fd, &answer, NULL);
    CHECK(strstr(answer.data, "data: two"));
    CHECK_EQ(atomic_load(&fixture.gone), 0);
    (void)close(fd);
    (void)qh_stream_drop(stream);
    (void)qh_listener_free(fixture.listener);
    qf_strbuf_done(&answer);
}

/* Both before the answer begins and in the middle of an idle event stream. */
TEST(a_client_that_goes_away_is_noticed_while_nothing_happens)
{
    static const char *const paths[] = { "GET /keep HTTP/1.1\r\n" END,
                                         "GET /events HTTP/1.1\r\n" END };

    for (size_t i = 0; i < QF_COUNT_OF(paths); i++) {
        struct fixture fixture = { 0 };
        struct qh_stream *stream;
        int fd;

        start(&fixture);
        fd = dial(&fixture);
        say(fd, paths[i]);
        stream = wait_kept(&fixture);
        (void)usleep(20000);
        (void)close(fd);
        wait_until(&fixture, &fixture.gone, 1);
        CHECK(qh_stream_gone(stream));
        CHECK(!qh_stream_write(stream, QF_STR("nobody hears")));
        qh_stream_end(stream);
        (void)qh_stream_drop(stream);
        (void)qh_listener_free(fixture.listener);
        CHECK_EQ(atomic_load(&fixture.gone), 1);
    }
}

/* A producer is told once there is room again, and every byte arrives in order. */
TEST(a_full_stream_says_when_there_is_room)
{
    struct fixture fixture = { 0 };
    struct qf_strbuf answer = QF_STRBUF_INIT, sent = QF_STRBUF_INIT;
    struct qh_stream *stream;
    int fd, pieces = 0;

    start(&fixture);
    fd = dial(&fixture);
    say(fd, "GET /events HTTP/1.0\r\n" END);
    stream = wait_kept(&fixture);
    while (pieces < 20000 && qh_stream_room(stream)) {
        char piece[1024];

        (void)snprintf(piece, sizeof(piece), "data: %01000d\n\n", pieces++);
        qf_strbuf_puts(&sent, piece);
        CHECK(qh_stream_write(stream, qf_str_from(piece)));
    }
    CHECK(pieces < 20000); /* nobody reads, so our buffer fills, at the latest after the kernel's */
    hear(fd, &answer, "\r\n\r\n");
    while (atomic_load(&fixture.room) == 0) {
        char piece[4096];
        ssize_t len = recv(fd, piece, sizeof(piece), 0);

        CHECK(len > 0);
        qf_strbuf_add(&answer, piece, (size_t)len);
    }
    qh_stream_end(stream);
    hear(fd, &answer, NULL);
    CHECK(qf_str_ends(qf_strbuf_view(&answer), qf_strbuf_view(&sent)));
    (void)close(fd);
    (void)qh_stream_drop(stream);
    (void)qh_listener_free(fixture.listener);
    qf_strbuf_done(&answer);
    qf_strbuf_done(&sent);
}

/* One that sends a header now and then never has a whole request, and is cut off. */
TEST(a_client_that_dribbles_its_request_is_cut_off)
{
    struct fixture fixture = { 0 };
    int64_t begun = qf_clock_mono_ms();
    bool cut = false;
    char byte;
    int fd;

    start(&fixture);
    fd = dial(&fixture);
    say(fd, "GET / HTTP/1.1\r\n");
    while (!cut && qf_clock_mono_ms() - begun < 3000) {
        (void)send(fd, "X: y\r\n", 6, MSG_NOSIGNAL);
        qh_listener_tick(fixture.listener);
        (void)usleep(20000);
        cut = recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
        if (send(fd, "X: y\r\n", 6, MSG_NOSIGNAL) < 0)
            cut = true;
    }
    CHECK(cut);
    (void)close(fd);
    (void)qh_listener_free(fixture.listener);
}

/* Closing the server with sleeping connections neither hangs nor leaves one behind. */
TEST(closing_ends_answers_that_have_not_begun)
{
    struct fixture fixture = { 0 };
    struct qf_strbuf answer = QF_STRBUF_INIT;
    struct qh_stream *stream;
    int fd;

    start(&fixture);
    fd = dial(&fixture);
    say(fd, "GET /keep HTTP/1.1\r\n" END);
    stream = wait_kept(&fixture);
    CHECK_EQ(qh_listener_active(fixture.listener), 1);
    (void)qh_listener_free(fixture.listener);
    CHECK_EQ(atomic_load(&fixture.gone), 1);
    hear(fd, &answer, NULL);
    (void)close(fd);
    (void)qh_stream_drop(stream);
    qf_strbuf_done(&answer);
}

TEST(a_bad_address_or_a_busy_port_is_one_clear_error)
{
    struct fixture fixture = { 0 };
    struct qf_err err = { 0 };
    struct qh_listener_options options = { .listen = "nonsense", .handle = handle };
    char busy[32];

    CHECK(!qh_listener_new(&options, &err));
    CHECK_EQ(err.rc, QF_EINVAL);
    start(&fixture);
    (void)snprintf(busy, sizeof(busy), "127.0.0.1:%d", qh_listener_port(fixture.listener));
    options.listen = busy;
    err = (struct qf_err){ 0 };
    CHECK(!qh_listener_new(&options, &err));
    CHECK_EQ(err.rc, QF_EUNAVAILABLE);
    CHECK(strstr(err.msg, "in use"));
    (void)qh_listener_free(fixture.listener);
}
