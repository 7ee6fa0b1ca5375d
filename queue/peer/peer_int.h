/* peer_int.h - the inside of the transport, shared by its files.
 *
 * Two threads: one waits on gRPC's completion queue and forwards each tag to the mailbox; the
 * transport's own reads the mailbox and alone touches streams. Callers on other threads meet it in
 * the table of peers, under `lock`: they put frames into a peer's queue and post one kick. */
#ifndef QUEUE_PEER_PEER_INT_H
#define QUEUE_PEER_PEER_INT_H

#include <grpc/grpc.h>
#include <stdatomic.h>

#include "base/pure/arena.h"
#include "base/pure/duration.h"
#include "base/pure/prng.h"
#include "base/sys/mailbox.h"
#include "base/sys/pool.h"
#include "base/sys/thread.h"
#include "proto/codec/peer.h"
#include "proto/rpc/credentials.h"
#include "proto/rpc/queue.h"
#include "queue/peer/peer.h"

enum {
    QP_TICK_MS = 20,
    QP_LINGER_MS = 500,     /* for a refusal to leave */
    QP_STREAMS_MAX = 128,   /* of all kinds at once; further ones are refused */
    QP_MAILBOX_MAX = 65536, /* more than all operations of all streams */
    QP_ADDRESS_SIZE = 256
};

enum qp_item_kind { QP_ITEM_TAG, QP_ITEM_KICK, QP_ITEM_FETCHED, QP_ITEM_STOP };

/* What goes through the mailbox; first member of what it is part of. */
struct qp_item {
    enum qp_item_kind kind;
};

enum qp_op { QP_OP_READ, QP_OP_WRITE, QP_OP_CLOSE, QP_OP_STATUS, QP_OP__COUNT };

struct qp_stream;

struct qp_tag {
    struct qp_item item;
    struct qp_stream *stream; /* NULL: a new call, or the end of the server */
    enum qp_op op;
    bool ok;
};

/*           what moves a stream on
 *   HELLO   the peer's hello is awaited
 *   READY   hellos were exchanged
 *   ENDING  a refusal is on its way out; nothing more is read
 *   OVER    waits for its last completions and is freed */
enum qp_stream_state { QP_STREAM_HELLO, QP_STREAM_READY, QP_STREAM_ENDING, QP_STREAM_OVER };

struct qp_peer;

struct qp_stream {
    struct qp_peers *peers;
    struct qp_stream *next;
    struct qp_peer *peer; /* dialled: from the start; accepted: once its hello was taken */
    enum qp_stream_state state;
    bool dialed;
    grpc_channel *channel; /* dialled */
    grpc_call *call;
    struct qp_tag tags[QP_OP__COUNT];
    bool busy[QP_OP__COUNT];
    grpc_byte_buffer *incoming;
    grpc_byte_buffer *outgoing; /* until its write completes */
    size_t outgoing_bytes;
    struct rpc_queue own; /* hello and pings; goes before the peer's queue */

    grpc_metadata_array initial, trailing; /* dialled */
    grpc_status_code status;               /* dialled: as it ended; accepted: to be sent */
    grpc_slice details;                    /* dialled */
    int canceled;                          /* accepted */

    uint64_t instance; /* of the peer's process */
    qf_time_ms began, heard, said, ready_at, linger_until;
    bool reported; /* its end was made known */
    char why[200];
};

/* A call that waits for its answer. */
struct qp_wait {
    struct qp_wait *next;
    uint64_t id;
    qf_time_ms deadline;
    qp_done *done;
    void *arg;
};

struct qp_peer {
    bool used;
    /* Under the lock: */
    struct qp_peer_stat stat;
    char token[QP_NAME_SIZE];
    struct rpc_queue out;
    qf_time_ms full_since; /* 0: it is not */
    struct qp_wait *waits;
    size_t wait_count;
    struct qp_stream *current; /* what the queue goes to; NULL: not connected */
    /* The transport's thread alone: */
    char address[QP_ADDRESS_SIZE];
    struct qp_stream *dialed, *accepted;
    qf_time_ms redial_at;
    int64_t redial_ms;
    uint64_t conflict_instance; /* of a second process with its name */
    qf_time_ms conflict_at;
};

struct qp_peers {
    struct qf_lock *lock;
    size_t references; /* under the lock: the owner, and replies that are out */
    bool stopping;     /* under the lock */
    bool kick_posted;  /* under the lock */
    struct qp_peer slots[QP_PEERS_MAX];
    uint64_t cluster, last_call; /* under the lock */

    struct qp_options options; /* its texts are owned */
    struct qp_callbacks callbacks;
    uint64_t instance;
    char token[QP_TOKEN_SIZE];

    struct qf_mailbox *mailbox;
    struct qf_thread *completion_thread, *thread;
    grpc_completion_queue *cq;
    grpc_server *server;
    struct qf_tls_files *tls; /* NULL: no TLS */
    struct rpc_identity identity;
    int port;
    struct qp_item kick_item, stop_item;

    /* The transport's thread alone: */
    grpc_channel_credentials *credentials;
    uint64_t generation; /* of the TLS files that they are made of */
    struct qp_tag accept_tag, stop_tag;
    grpc_call *accepted;
    grpc_call_details accepted_details;
    grpc_metadata_array accepted_metadata;
    struct qp_stream *streams;
    size_t stream_count;
    bool ending, accept_done, stop_done;
    qf_time_ms now, next_tick;
    struct qf_prng prng;
    struct qf_arena *scratch; /* of the frame being decoded */

    struct qf_pool *pool; /* fetches */
    atomic_bool fetch_cancel;
    size_t fetch_count; /* under the lock */
};

/* peer.c */
void qp_release(struct qp_peers *peers);
struct qp_reply *qp_reply_new(struct qp_peers *peers, const char *from, uint64_t id);

/* table.c: the peers by name, and how it stands with them. */
struct qp_peer *qp_find(struct qp_peers *peers, const char *name); /* NULL: unknown */
/* Find or take a slot; NULL: the table is full. */
struct qp_peer *qp_enter(struct qp_peers *peers, struct qf_str name);
/* Note and tell; a line in the log if it is news. */
void qp_set_state(struct qp_peers *peers, struct qp_peer *peer, enum qp_state state,
                  const char *why);
/* Choose the stream that the queue goes to; if it is another one, what waits is given up. */
void qp_choose(struct qp_peers *peers, struct qp_peer *peer);
/* End waiting calls of @peer: those due by @now, or all (QF_TIME_NEVER) with @rc. */
void qp_end_waits(struct qp_peers *peers, struct qp_peer *peer, qf_time_ms now, qf_rc rc,
                  const char *why);

/* stream.c: one gRPC call, on either side. */
struct qp_stream *qp_stream_new(struct qp_peers *peers, grpc_call *call, grpc_channel *channel);
void qp_stream_free(struct qp_stream *stream);
void qp_stream_start(struct qp_stream *stream);
void qp_stream_read(struct qp_stream *stream);
void qp_stream_pump(struct qp_stream *stream);
void qp_stream_say(struct qp_stream *stream, const struct pb_peer_frame *frame);
/* No more of it: a refusal with @status is sent by who accepted, who dialled hangs up. */
void qp_stream_end(struct qp_stream *stream, grpc_status_code status, const char *why);
void qp_stream_cancel(struct qp_stream *stream, const char *why);
void qp_stream_completed(struct qp_stream *stream, enum qp_op op, bool ok);
bool qp_stream_finished(const struct qp_stream *stream);

/* hello.c: who may talk to us. */
void qp_say_hello(struct qp_stream *stream);
void qp_on_hello(struct qp_stream *stream, const struct pb_peer_hello *hello);
enum qp_state qp_state_of_status(grpc_status_code status);

/* transport.c: the thread. */
void qp_run(void *peers);
void qp_request_call(struct qp_peers *peers);
/* Credentials to dial with, from the TLS files as they are. False: those that were there stay. */
bool qp_renew_credentials(struct qp_peers *peers, struct qf_err *err);
/* The stream is lost or refused: tell once, choose another one, dial again later. */
void qp_lost(struct qp_stream *stream, enum qp_state state, const char *why);

/* fetch.c */
void qp_fetched(struct qp_peers *peers, struct qp_item *item);

#endif
