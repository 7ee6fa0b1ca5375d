/* test_control_server.c - the stream's server under a real gRPC client, without works behind it. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/mailbox.h"
#include "base/sys/thread.h"
#include "proto/codec/health.h"
#include "queryworker/rpc/control_server.h"
#include "tests/integration/worker/client.h"
#include "tests/lib/test.h"

/* A coordinator that only keeps count. Its thread runs until `quit`. */
struct host {
    struct qf_mailbox *mailbox;
    struct qw_server *server;
    struct qf_thread *thread;
    atomic_bool quit, refuse, flood, end_next;
    atomic_bool serving;
    atomic_int opened, closed, messages, hellos;
    atomic_int how; /* the last stream was closed: enum qw_closed */
    _Atomic uint64_t last_work;
    bool shown_serving;
};

static qf_rc opened(void *ctx, uint64_t session, const char *peer)
{
    struct host *host = ctx;
    struct pb_worker_message status = { .kind = PB_WORKER_STATUS,
                                        .u.status = { .protocol_version = PB_PROTOCOL_VERSION,
                                                      .worker_id = QF_STR("w"),
                                                      .accepting_work = true } };

    CHECK(peer && *peer);
    if (atomic_load(&host->refuse))
        return QF_ELIMIT;
    atomic_fetch_add(&host->opened, 1);
    CHECK(qw_server_send(host->server, session, &status));
    return QF_OK;
}

static void message(void *ctx, uint64_t session, struct qf_arena *arena,
                    const struct pb_api_message *message)
{
    struct host *host = ctx;

    atomic_fetch_add(&host->messages, 1);
    if (message->kind == PB_API_HELLO)
        atomic_fetch_add(&host->hellos, 1);
    if (message->kind == PB_API_CANCEL) { /* answered with one message per cancel, in order */
        struct pb_worker_message answer = { .kind = PB_WORKER_ACCEPTED,
                                            .u.accepted = { message->u.cancel.work_id, 1 } };

        atomic_store(&host->last_work, message->u.cancel.work_id);
        (void)qw_server_send(host->server, session, &answer);
        if (atomic_load(&host->end_next))
            qw_server_end(host->server, session, QF_EEXEC, "that was all", true);
    }
    if (message->kind == PB_API_ACK && atomic_load(&host->flood)) {
        struct pb_worker_message big = { .kind = PB_WORKER_FAILED };
        char *text = qf_xmalloc(4000);

        memset(text, 'x', 4000);
        big.u.failed.reason = (struct qf_str){ text, 4000 };
        for (int i = 0; i < 6000; i++) /* 24 MB: more than queue and windows hold */
            if (!qw_server_send(host->server, session, &big))
                break;
        free(text);
    }
    (void)qf_arena_free(arena);
}

static void closed(void *ctx, uint64_t session, enum qw_closed how, const char *why)
{
    struct host *host = ctx;

    (void)session;
    CHECK(why && *why);
    atomic_store(&host->how, (int)how);
    atomic_fetch_add(&host->closed, 1);
}

static void run(void *arg)
{
    struct host *host = arg;
    bool stopping = false;

    while (!stopping || !qw_server_stopped(host->server)) {
        struct qw_message *received = qf_mailbox_receive(host->mailbox, 10);

        if (received)
            qw_server_dispatch(host->server, received);
        qw_server_tick(host->server, qf_clock_mono_ms());
        if (atomic_load(&host->serving) != host->shown_serving) {
            host->shown_serving = !host->shown_serving;
            qw_server_set_serving(host->server, host->shown_serving);
        }
        if (atomic_load(&host->quit) && !stopping) {
            stopping = true;
            qw_server_stop(host->server);
        }
    }
}

static struct host *host_new(struct qw_server_options options)
{
    struct host *host = qf_xcalloc(1, sizeof(*host));
    struct qf_err err = { 0 };

    host->mailbox = qf_mailbox_new(64);
    options.listen = "127.0.0.1:0";
    options.mailbox = host->mailbox;
    options.handler = (struct qw_server_handler){ host, opened, message, closed };
    host->server = qw_server_new(&options, &err);
    CHECK_MSG(host->server, "%s", err.msg);
    CHECK(qw_server_port(host->server) > 0);
    host->thread = qf_thread_start("host", run, host);
    return host;
}

static void host_free(struct host *host)
{
    atomic_store(&host->quit, true);
    (void)qf_thread_join(host->thread);
    (void)qw_server_free(host->server);
    (void)qf_mailbox_free(host->mailbox, NULL);
    free(host);
}

static struct client *connect_to(const struct host *host, struct client_options options)
{
    char target[40];

    (void)snprintf(target, sizeof(target), "127.0.0.1:%d", qw_server_port(host->server));
    options.target = target;
    return client_new(&options);
}

static bool reaches(atomic_int *value, int want)
{
    for (int i = 0; i < 500 && atomic_load(value) != want; i++)
        (void)usleep(10000);
    return atomic_load(value) == want;
}

/* The worker speaks first. */
TEST(status_is_the_first_message)
{
    struct host *host = host_new((struct qw_server_options){ 0 });
    struct client *client = connect_to(host, (struct client_options){ 0 });
    struct pb_worker_message got;

    CHECK(client_receive(client, &got, 3000));
    CHECK_EQ(got.kind, PB_WORKER_STATUS);
    CHECK(qf_str_is(got.u.status.worker_id, "w"));
    CHECK(got.u.status.accepting_work);
    client = client_free(client);
    CHECK(reaches(&host->closed, 1));
    host_free(host);
}

/* A thousand messages each way keep their order. */
TEST(messages_keep_their_order)
{
    struct host *host = host_new((struct qw_server_options){ 0 });
    struct client *client = connect_to(host, (struct client_options){ .no_heartbeat = true });
    struct pb_worker_message got;

    for (uint64_t i = 1; i <= 1000; i++)
        CHECK(client_send(client, &(struct pb_api_message){ .kind = PB_API_CANCEL,
                                                            .u.cancel = { .work_id = i } }));
    for (uint64_t i = 1; i <= 1000; i++) {
        CHECK(client_receive_kind(client, PB_WORKER_ACCEPTED, &got, 3000));
        CHECK_EQ(got.u.accepted.work_id, i);
    }
    client = client_free(client);
    host_free(host);
}

/* Several APIs at once, each in a session of its own; one going away does not disturb the rest. */
TEST(sessions_are_independent)
{
    struct host *host = host_new((struct qw_server_options){ 0 });
    struct client *clients[8];
    struct pb_worker_message got;

    for (int i = 0; i < 8; i++)
        clients[i] = connect_to(host, (struct client_options){ 0 });
    for (int i = 0; i < 8; i++)
        CHECK(client_receive_kind(clients[i], PB_WORKER_STATUS, &got, 3000));
    clients[0] = client_free(clients[0]);
    CHECK(reaches(&host->closed, 1));
    for (int i = 1; i < 8; i++) {
        CHECK(client_send(clients[i], &(struct pb_api_message){ .kind = PB_API_CANCEL,
                                                                .u.cancel = { .work_id = 7 } }));
        CHECK(client_receive_kind(clients[i], PB_WORKER_ACCEPTED, &got, 3000));
        clients[i] = client_free(clients[i]);
    }
    CHECK(reaches(&host->closed, 8));
    host_free(host);
}

TEST(a_half_closed_stream_ends_with_ok)
{
    struct host *host = host_new((struct qw_server_options){ 0 });
    struct client *client = connect_to(host, (struct client_options){ 0 });

    client_half_close(client);
    CHECK_EQ(client_wait_end(client, 3000, NULL), 0);
    CHECK(reaches(&host->closed, 1));
    CHECK_EQ(atomic_load(&host->how), QW_CLOSED_BY_PEER);
    client = client_free(client);
    host_free(host);
}

TEST(bytes_that_are_no_message_end_the_stream)
{
    struct host *host = host_new((struct qw_server_options){ 0 });
    struct client *client = connect_to(host, (struct client_options){ 0 });
    const char *details;

    CHECK(client_send_bytes(client, QF_STR("\x12\xff\xff")));
    CHECK_EQ(client_wait_end(client, 3000, &details), 13);
    CHECK_STR(details, "3 bytes are not a ApiMessage message");
    CHECK(reaches(&host->closed, 1));
    CHECK_EQ(atomic_load(&host->how), QW_CLOSED_PROTOCOL);
    client = client_free(client);
    host_free(host);
}

TEST(a_message_over_the_limit_ends_the_stream)
{
    struct host *host = host_new((struct qw_server_options){ 0 });
    struct client *client = connect_to(host, (struct client_options){ 0 });
    char *big = qf_xcalloc(1, PB_MESSAGE_BYTES_MAX + 1);

    CHECK(client_send_bytes(client, (struct qf_str){ big, PB_MESSAGE_BYTES_MAX + 1 }));
    CHECK_EQ(client_wait_end(client, 3000, NULL), 8);
    CHECK(reaches(&host->closed, 1));
    client = client_free(client);
    free(big);
    host_free(host);
}

/* What was sent before the end still arrives, and then the status says why. */
TEST(a_stream_ended_gracefully_delivers_what_was_queued)
{
    struct host *host = host_new((struct qw_server_options){ 0 });
    struct client *client = connect_to(host, (struct client_options){ 0 });
    struct pb_worker_message got;
    const char *details;

    atomic_store(&host->end_next, true);
    CHECK(client_send(
        client, &(struct pb_api_message){ .kind = PB_API_CANCEL, .u.cancel = { .work_id = 5 } }));
    CHECK(client_receive_kind(client, PB_WORKER_ACCEPTED, &got, 3000));
    CHECK_EQ(client_wait_end(client, 3000, &details), 9);
    CHECK_STR(details, "that was all");
    CHECK_EQ(atomic_load(&host->closed), 0); /* the handler ended it itself */
    client = client_free(client);
    host_free(host);
}

/* A client that does not read is a lost peer, not a growing queue. */
TEST(a_peer_that_does_not_read_is_ended)
{
    struct host *host = host_new((struct qw_server_options){ 0 });
    struct client *client = connect_to(host, (struct client_options){ .no_heartbeat = true });

    atomic_store(&host->flood, true);
    CHECK(client_send(client, &(struct pb_api_message){ .kind = PB_API_ACK }));
    CHECK(reaches(&host->closed, 1));
    CHECK_EQ(atomic_load(&host->how), QW_CLOSED_STUCK);
    client = client_free(client);
    host_free(host);
}

TEST(a_refused_session_gets_a_status)
{
    struct host *host = host_new((struct qw_server_options){ 0 });
    struct client *client;

    atomic_store(&host->refuse, true);
    client = connect_to(host, (struct client_options){ 0 });
    CHECK_EQ(client_wait_end(client, 3000, NULL), 8);
    client = client_free(client);
    CHECK_EQ(atomic_load(&host->closed), 0);
    host_free(host);
}

TEST(an_unknown_method_is_unimplemented)
{
    struct host *host = host_new((struct qw_server_options){ 0 });
    struct client *client =
        connect_to(host, (struct client_options){ .method = "/no.Such/Method", .no_hello = true });

    CHECK_EQ(client_wait_end(client, 3000, NULL), 12);
    client = client_free(client);
    host_free(host);
}

/* grpc.health.v1: Check answers once, Watch follows changes, other services are not known. */
TEST(health_service_answers_check_and_watch)
{
    struct host *host = host_new((struct qw_server_options){ 0 });
    struct client *check, *watch;
    struct qf_str bytes;

    watch = connect_to(
        host, (struct client_options){ .method = PB_HEALTH_WATCH_METHOD, .no_hello = true });
    CHECK(client_send_bytes(watch, QF_STR("")));
    CHECK(client_receive_bytes(watch, &bytes, 3000));
    CHECK(qf_str_eq(bytes, QF_STR("\x08\x02")));
    atomic_store(&host->serving, true);
    CHECK(client_receive_bytes(watch, &bytes, 3000));
    CHECK(qf_str_eq(bytes, QF_STR("\x08\x01")));
    check = connect_to(
        host, (struct client_options){ .method = PB_HEALTH_CHECK_METHOD, .no_hello = true });
    CHECK(client_send_bytes(check, QF_STR("")));
    CHECK(client_receive_bytes(check, &bytes, 3000));
    CHECK(qf_str_eq(bytes, QF_STR("\x08\x01")));
    CHECK_EQ(client_wait_end(check, 3000, NULL), 0);
    check = client_free(check);
    check = connect_to(
        host, (struct client_options){ .method = PB_HEALTH_CHECK_METHOD, .no_hello = true });
    CHECK(client_send_bytes(check, QF_STR("\x0a\x01x")));
    CHECK_EQ(client_wait_end(check, 3000, NULL), 5);
    check = client_free(check);
    watch = client_free(watch);
    host_free(host);
}

/* A call that gRPC had accepted, but that was not looked at yet when the server was stopped. */
TEST(a_call_from_just_before_the_stop_ends_with_it)
{
    struct host host = { .mailbox = qf_mailbox_new(64) };
    struct qw_server_options options = { .listen = "127.0.0.1:0",
                                         .mailbox = host.mailbox,
                                         .handler = { &host, opened, message, closed } };
    struct qf_err err = { 0 };
    struct qw_message *received;
    struct client *client;
    int64_t give_up;

    host.server = qw_server_new(&options, &err);
    CHECK_MSG(host.server, "%s", err.msg);
    client = connect_to(&host, (struct client_options){ 0 });
    give_up = qf_clock_mono_ms() + 10000;
    while (!qf_mailbox_count(host.mailbox) && qf_clock_mono_ms() < give_up)
        (void)client_wait_end(client, 10, NULL);
    CHECK(qf_mailbox_count(host.mailbox) > 0);
    qw_server_stop(host.server);
    give_up = qf_clock_mono_ms() + 5000;
    while (!qw_server_stopped(host.server) && qf_clock_mono_ms() < give_up) {
        received = qf_mailbox_receive(host.mailbox, 10);
        if (received)
            qw_server_dispatch(host.server, received);
        qw_server_tick(host.server, qf_clock_mono_ms());
        (void)client_wait_end(client, 1, NULL);
    }
    CHECK(qw_server_stopped(host.server));
    CHECK_EQ(client_wait_end(client, 3000, NULL), 14);
    CHECK_EQ(atomic_load(&host.opened), 0);
    client = client_free(client);
    (void)qw_server_free(host.server);
    (void)qf_mailbox_free(host.mailbox, NULL);
}

TEST(a_taken_port_is_a_clear_error)
{
    struct host *host = host_new((struct qw_server_options){ 0 });
    struct qf_err err = { 0 };
    char target[40];
    struct qw_server_options options = { .listen = target, .mailbox = host->mailbox };

    (void)snprintf(target, sizeof(target), "127.0.0.1:%d", qw_server_port(host->server));
    CHECK(!qw_server_new(&options, &err));
    CHECK_EQ(err.rc, QF_EIO);
    host_free(host);
}
