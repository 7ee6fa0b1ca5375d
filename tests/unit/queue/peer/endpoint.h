/* endpoint.h - transports in this process, and what they were told. */
#ifndef TESTS_UNIT_QUEUE_PEER_ENDPOINT_H
#define TESTS_UNIT_QUEUE_PEER_ENDPOINT_H

#include "base/sys/thread.h"
#include "queue/peer/peer.h"

struct endpoint {
    struct qf_lock *lock;
    struct qp_peers *peers;
    const char *name;
    /* Under the lock: */
    size_t messages, calls, answers;
    char last_from[QP_NAME_SIZE], last_queue[QP_NAME_SIZE], last_bytes[64];
    size_t last_len;
    qf_rc answer_rc;
    char answer[200];
    struct qp_reply *held; /* of a call "hold" */
    int64_t delay_ms;      /* of every message: a slow reader */
};

/* Options with short times, for node @name in cluster 7. */
struct qp_options endpoint_options(const char *name, const struct qp_address *peers, size_t count);
void endpoint_start(struct endpoint *endpoint, const struct qp_options *options);
void endpoint_stop(struct endpoint *endpoint);
/* HOST:PORT of a running one; the text is static per call site of at most 8. */
const char *endpoint_address(const struct endpoint *endpoint);
/* A free port nobody listens on, as HOST:PORT. */
const char *endpoint_nowhere(void);

/* Wait up to 10 s. */
void endpoint_await_state(struct endpoint *endpoint, const char *peer, enum qp_state state);
void endpoint_await_messages(struct endpoint *endpoint, size_t count);
void endpoint_await_answers(struct endpoint *endpoint, size_t count);
struct qp_peer_stat endpoint_stat(struct endpoint *endpoint, const char *peer);

/* The reply of the last call "hold"; NULL: none came. */
struct qp_reply *endpoint_held(struct endpoint *endpoint);
/* A qp_done that notes what it is told. */
void endpoint_answered(void *arg, qf_rc rc, struct qf_str bytes);

#endif
