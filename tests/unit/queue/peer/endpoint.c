#include "tests/unit/queue/peer/endpoint.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/net/address.h"
#include "base/sys/clock.h"
#include "tests/lib/test.h"

enum { WAIT_MS = 10000 };

static void pause_ms(int64_t ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

    (void)nanosleep(&time, NULL);
}

static void on_message(void *ctx, const char *from, const char *queue, struct qf_str bytes)
{
    struct endpoint *endpoint = ctx;
    int64_t delay;

    qf_lock_take(endpoint->lock);
    endpoint->messages++;
    (void)snprintf(endpoint->last_from, sizeof(endpoint->last_from), "%s", from);
    (void)snprintf(endpoint->last_queue, sizeof(endpoint->last_queue), "%s", queue);
    (void)snprintf(endpoint->last_bytes, sizeof(endpoint->last_bytes), "%.*s",
                   (int)QF_MIN(bytes.len, sizeof(endpoint->last_bytes) - 1), bytes.data);
    endpoint->last_len = bytes.len;
    delay = endpoint->delay_ms;
    qf_lock_drop(endpoint->lock);
    if (delay)
        pause_ms(delay);
}

/* "echo" answers with its bytes, "fail" with an error, "hold" later or never. */
static void on_call(void *ctx, const char *from, const char *method, struct qf_str bytes,
                    struct qp_reply *reply)
{
    struct endpoint *endpoint = ctx;

    qf_lock_take(endpoint->lock);
    endpoint->calls++;
    (void)snprintf(endpoint->last_from, sizeof(endpoint->last_from), "%s", from);
    if (strcmp(method, "hold") == 0)
        endpoint->held = reply;
    qf_lock_drop(endpoint->lock);
    if (strcmp(method, "echo") == 0)
        qp_reply(reply, QF_OK, bytes);
    else if (strcmp(method, "fail") == 0)
        qp_reply(reply, QF_EBUSY, QF_STR("not now"));
}

void endpoint_answered(void *arg, qf_rc rc, struct qf_str bytes)
{
    struct endpoint *endpoint = arg;

    qf_lock_take(endpoint->lock);
    endpoint->answers++;
    endpoint->answer_rc = rc;
    (void)snprintf(endpoint->answer, sizeof(endpoint->answer), "%.*s", QF_STR_ARG(bytes));
    qf_lock_drop(endpoint->lock);
}

struct qp_options endpoint_options(const char *name, const struct qp_address *peers, size_t count)
{
    return (struct qp_options){ .name = name,
                                .cluster = 7,
                                .listen = "127.0.0.1:0",
                                .peers = peers,
                                .peer_count = count,
                                .redial_ms_min = 30,
                                .redial_ms_max = 200,
                                .silence_ms = 2000 };
}

void endpoint_start(struct endpoint *endpoint, const struct qp_options *options)
{
    struct qp_callbacks callbacks = { .ctx = endpoint, .message = on_message, .call = on_call };
    struct qf_err err = { 0 };

    endpoint->lock = qf_lock_new();
    endpoint->name = options->name;
    CHECK_OK(qp_start(options, &callbacks, &endpoint->peers, &err), &err);
}

void endpoint_stop(struct endpoint *endpoint)
{
    endpoint->peers = qp_stop(endpoint->peers);
    endpoint->lock = qf_lock_free(endpoint->lock);
}

static const char *address_of(int port)
{
    static char texts[8][32];
    static size_t next;
    char *text = texts[next++ % 8];

    (void)snprintf(text, sizeof(texts[0]), "127.0.0.1:%d", port);
    return text;
}

const char *endpoint_address(const struct endpoint *endpoint)
{
    return address_of(qp_port(endpoint->peers));
}

const char *endpoint_nowhere(void)
{
    struct qf_err err = { 0 };
    uint16_t port;
    int fd;

    CHECK_OK(qf_address_listen("127.0.0.1:0", &fd, &port, &err), &err);
    (void)close(fd);
    return address_of(port);
}

static bool find(struct endpoint *endpoint, const char *peer, struct qp_peer_stat *ret_stat)
{
    struct qp_peer_stat stats[QP_PEERS_MAX];
    size_t count = qp_stat(endpoint->peers, stats);

    for (size_t i = 0; i < count; i++)
        if (strcmp(stats[i].name, peer) == 0) {
            *ret_stat = stats[i];
            return true;
        }
    return false;
}

struct qp_peer_stat endpoint_stat(struct endpoint *endpoint, const char *peer)
{
    struct qp_peer_stat stat = { 0 };

    CHECK_MSG(find(endpoint, peer, &stat), "%s knows no peer %s", endpoint->name, peer);
    return stat;
}

void endpoint_await_state(struct endpoint *endpoint, const char *peer, enum qp_state state)
{
    qf_time_ms end = qf_clock_mono_ms() + WAIT_MS;
    struct qp_peer_stat stat = { 0 };
    bool found = false;

    while (qf_clock_mono_ms() < end) {
        found = find(endpoint, peer, &stat);
        if (found && stat.state == state)
            return;
        pause_ms(5);
    }
    test_fail(__FILE__, __LINE__, "%s: peer %s is \"%s\" (%s), not \"%s\"", endpoint->name, peer,
              found ? qp_state_text(stat.state) : "unknown", stat.why, qp_state_text(state));
}

static size_t read_count(struct endpoint *endpoint, const size_t *count)
{
    size_t value;

    qf_lock_take(endpoint->lock);
    value = *count;
    qf_lock_drop(endpoint->lock);
    return value;
}

static void await_count(struct endpoint *endpoint, const size_t *count, size_t want)
{
    qf_time_ms end = qf_clock_mono_ms() + WAIT_MS;

    while (read_count(endpoint, count) < want && qf_clock_mono_ms() < end)
        pause_ms(2);
    CHECK_MSG(read_count(endpoint, count) >= want, "%s: %zu of %zu came", endpoint->name,
              read_count(endpoint, count), want);
}

void endpoint_await_messages(struct endpoint *endpoint, size_t count)
{
    await_count(endpoint, &endpoint->messages, count);
}

void endpoint_await_answers(struct endpoint *endpoint, size_t count)
{
    await_count(endpoint, &endpoint->answers, count);
}

struct qp_reply *endpoint_held(struct endpoint *endpoint)
{
    struct qp_reply *held;

    qf_lock_take(endpoint->lock);
    held = endpoint->held;
    qf_lock_drop(endpoint->lock);
    return held;
}
