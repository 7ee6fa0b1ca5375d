/* control_server.h - the control stream's server side, and the standard gRPC health service.
 *
 * One completion thread forwards what gRPC reports to the coordinator's mailbox; everything below
 * is called by the coordinator thread alone, and the callbacks run on it, inside
 * qw_server_dispatch(). A session is one stream of one API; its number is never used again.
 *
 * Messages leave in the order in which they were sent, a WorkAccepted a few milliseconds later if
 * nothing follows it. A stream whose queue is full belongs to a
 * peer that does not read: it is ended. */
#ifndef QUERYWORKER_RPC_CONTROL_SERVER_H
#define QUERYWORKER_RPC_CONTROL_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/duration.h"
#include "base/pure/err.h"
#include "base/sys/mailbox.h"
#include "proto/codec/control.h"
#include "queryworker/work/message.h"

struct qw_server;

/* Calls of all kinds at once; further ones are refused with RESOURCE_EXHAUSTED. */
#define QW_SERVER_CALLS_MAX 256
/* Bounds of a session's queue of messages to send. */
#define QW_SERVER_QUEUE_MESSAGES_MAX 32768
#define QW_SERVER_QUEUE_BYTES_MAX (16u << 20)
/* What a message may take in its arena. */
#define QW_SERVER_ARENA_BYTES_MAX (PB_DECODE_BYTES_MAX + 2 * PB_MESSAGE_BYTES_MAX)
/* How long a WorkAccepted waits for company: mostly the WorkReady of a small work is there by then, and
 * both wake the API once. */
#define QW_SERVER_HOLD_MS 5
/* How long an ended stream may take to send what is queued and its status. */
#define QW_SERVER_LINGER_MS 500

/* What ended a stream. */
enum qw_closed {
    QW_CLOSED_BY_PEER,  /* the peer has nothing more to say */
    QW_CLOSED_LOST,     /* the connection broke, or the peer canceled */
    QW_CLOSED_STUCK,    /* the peer does not read */
    QW_CLOSED_PROTOCOL, /* the peer said something that is no message */
};

struct qw_server_handler {
    void *ctx;
    /* A stream was opened. QF_OK, or an error that ends it. @peer is for logs. */
    qf_rc (*opened)(void *ctx, uint64_t session, const char *peer);
    /* A message came. Its strings live in @arena, which is the callee's from now on. */
    void (*message)(void *ctx, uint64_t session, struct qf_arena *arena,
                    const struct pb_api_message *message);
    /* The stream is gone; @why is for logs. Not called for those the handler refused or ended
     * itself. */
    void (*closed)(void *ctx, uint64_t session, enum qw_closed how, const char *why);
};

struct qw_server_options {
    const char *listen; /* "host:port"; port 0: any */
    /* PEM files; all NULL: no TLS. With client_ca clients must show a certificate it signed. */
    const char *tls_cert, *tls_key, *tls_client_ca;
    const char *tls_client_name; /* a name that an API's certificate must have; NULL: any */
    struct qf_mailbox *mailbox;
    struct qw_server_handler handler;
};

/* Listen and start the completion thread. QF_EIO if the address is taken or a file is unreadable,
 * QF_EINVAL for bad TLS files. NULL and @err filled on failure. */
struct qw_server *qw_server_new(const struct qw_server_options *options, struct qf_err *err);
/* The port it listens on. */
int qw_server_port(const struct qw_server *server);

/* Handle a QW_MESSAGE_RPC. */
void qw_server_dispatch(struct qw_server *server, struct qw_message *message);

/* Queue @message for a session. False if there is no such session any more, also because this
 * message would not fit its queue: then the stream is being ended and closed() has been called. */
bool qw_server_send(struct qw_server *server, uint64_t session,
                    const struct pb_worker_message *message);
/* End a session with the gRPC status of @rc. @graceful: what is queued still goes out. */
void qw_server_end(struct qw_server *server, uint64_t session, qf_rc rc, const char *why,
                   bool graceful);

/* What the health service answers from now on. */
void qw_server_set_serving(struct qw_server *server, bool serving);

/* End streams that linger too long, send what was held back; call when the deadline has come, and now and then while
 * stopping. */
void qw_server_tick(struct qw_server *server, qf_time_ms now);
qf_time_ms qw_server_deadline(const struct qw_server *server);

/* Stop listening and end every stream. Completions still arrive in the mailbox: dispatch them until
 * qw_server_stopped(), ticking meanwhile, then free. */
void qw_server_stop(struct qw_server *server);
bool qw_server_stopped(const struct qw_server *server);
/* Join the completion thread. Only once stopped. Accepts NULL, returns NULL. */
struct qw_server *qw_server_free(struct qw_server *server);

#endif
