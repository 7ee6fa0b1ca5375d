/* server_int.h - calls of the control server, shared by its two files. */
#ifndef QUERYWORKER_RPC_SERVER_INT_H
#define QUERYWORKER_RPC_SERVER_INT_H

#include <grpc/grpc.h>

#include "proto/rpc/credentials.h"
#include "proto/rpc/queue.h"
#include "queryworker/rpc/control_server.h"

enum qw_call_kind {
    QW_CALL_CONTROL,
    QW_CALL_HEALTH_CHECK,
    QW_CALL_HEALTH_WATCH,
    QW_CALL_UNKNOWN,
    QW_CALL_REFUSED, /* one too many */
};

/* At most one operation of each kind is under way. */
enum qw_op { QW_OP_READ, QW_OP_WRITE, QW_OP_CLOSE, QW_OP_STATUS, QW_OP__COUNT };

struct qw_call;

/* What goes through the completion queue and the mailbox. */
struct qw_tag {
    struct qw_message message; /* QW_MESSAGE_RPC */
    struct qw_server *server;
    struct qw_call *call; /* NULL: a new call, or the end of the server */
    enum qw_op op;
    bool ok;
    struct qw_tag *next; /* in qw_server.put_off */
};

/*            what moves a call on
 *   LIVE     reads, and writes what is queued
 *   ENDING   what is queued goes out, then the status; nothing more is read
 *   OVER     status sent, or canceled; waits for its last completions and is freed */
enum qw_call_state { QW_CALL_LIVE, QW_CALL_ENDING, QW_CALL_OVER };

struct qw_call {
    struct qw_server *server;
    struct qw_call *next;
    enum qw_call_kind kind;
    enum qw_call_state state;
    grpc_call *call;
    struct qw_tag tags[QW_OP__COUNT];
    bool busy[QW_OP__COUNT];
    grpc_byte_buffer *incoming;
    int canceled;

    struct rpc_queue out;
    qf_time_ms held_until; /* when what waits in it for company has to go, or QF_TIME_NEVER */

    grpc_status_code status; /* ENDING */
    char why[200];
    qf_time_ms linger_until;

    uint64_t session; /* control streams that the handler knows, else 0 */
    int health_sent;  /* last enum pb_health sent on a watch, -1 before */
};

struct qw_server {
    struct qw_server_options options;
    grpc_server *server;
    grpc_completion_queue *cq;
    struct rpc_identity identity;
    struct qf_thread *thread;
    int port;

    struct qw_tag accept_tag, stop_tag;
    grpc_call *accepted;
    grpc_call_details accepted_details;
    grpc_metadata_array accepted_metadata;

    struct qw_tag *put_off; /* completed while something was sent, when the mailbox was full */
    struct qw_call *calls;
    size_t call_count;
    uint64_t last_session;
    bool serving, stopping, disconnected, accept_done, stop_done;
};

/* call.c */
struct qw_call *qw_call_new(struct qw_server *server, grpc_call *call, enum qw_call_kind kind);
void qw_call_free(struct qw_call *call);
/* Start the operations every call begins with. */
void qw_call_start(struct qw_call *call, bool read);
void qw_call_read(struct qw_call *call);
/* Queue bytes; false if the queue is full. @hold: they go with what is written next, or when
 * qw_call_release() finds that they have waited for QW_SERVER_HOLD_MS. */
bool qw_call_write(struct qw_call *call, struct qf_str bytes, bool hold);
void qw_call_release(struct qw_call *call, qf_time_ms now);
/* No more reading; send the queue, then @status. Only a LIVE call changes. */
void qw_call_end(struct qw_call *call, grpc_status_code status, const char *why);
void qw_call_cancel(struct qw_call *call, grpc_status_code status, const char *why);
/* An operation completed. */
void qw_call_completed(struct qw_call *call, enum qw_op op);
/* The call is over and nothing is under way: free it. */
bool qw_call_finished(const struct qw_call *call);
/* The bytes that were read, copied into @arena, or false at the end of the stream. */
bool qw_call_take_message(struct qw_call *call, struct qf_arena *arena, struct qf_str *ret_bytes);

#endif
