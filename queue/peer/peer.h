/* peer.h - the streams between ingest nodes: messages, calls and snapshot files, by node name.
 *
 * Every node listens, and dials each peer it was given an address of. A stream begins with a hello
 * in both directions (protocol versions, cluster, name, a random number of this process, where its
 * HTTP is); whoever does not fit is refused, with one line in the log and a state in qp_stat(), and
 * dialled again with growing, jittered pauses. Nodes that were not named in the options may dial in;
 * they are peers while they are connected.
 *
 * Messages are best effort: what does not fit a peer's queue, or finds no stream, is dropped and
 * counted; consensus says everything again. A peer whose queue stays full for `stuck_ms`, or who
 * says nothing for `silence_ms`, is cut and dialled again.
 *
 * Threads: all functions may be called from any thread, none of them waits (qp_stop() aside). All
 * callbacks run on the transport's thread, one at a time, and must not wait. Texts and bytes given to
 * a callback are borrowed until it returns. */
#ifndef QUEUE_PEER_PEER_H
#define QUEUE_PEER_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

enum {
    QP_PEERS_MAX = 32,   /* known by name, whether dialled or dialling in */
    QP_NAME_SIZE = 64,   /* node and queue names, methods: 1 to 63 bytes */
    QP_URL_SIZE = 256,   /* http_base */
    QP_TOKEN_SIZE = 33,  /* 32 hex digits */
    QP_CALLS_MAX = 4096, /* under way to one peer; more are QF_EBUSY */
    QP_FETCHES_MAX = 16, /* waiting or under way in all */
    /* Of one message, call or answer; an entry of the log fits (QL_ENTRY_MAX). */
    QP_BYTES_MAX = (32 << 20) + (64 << 10)
};

/* Versions of what is said on a stream that this build speaks: two nodes speak the newest that both of them
 * do, so that a cluster can be upgraded node by node, and go back. A release that raises the newest
 * goes on speaking the one before; the next one may give that up. (version.c) */
extern const uint32_t qp_protocol_oldest, qp_protocol_newest;

struct qp_peers;
struct qp_reply;

/* How it stands with one peer. */
enum qp_state {
    QP_DIALING,       /* no stream yet, or lost and dialled again */
    QP_CONNECTED,     /* hellos were exchanged */
    QP_UNREACHABLE,   /* nobody answers at its address, or TLS fails */
    QP_WRONG_CLUSTER, /* it belongs to another cluster */
    QP_WRONG_NAME,    /* at its address answers a node of another name */
    QP_SAME_NAME,     /* two processes use its name, or it uses ours */
    QP_WRONG_VERSION, /* there is no protocol version that both speak */
    QP_NOT_ALLOWED    /* its certificate has not the name of an ingest node, or it refuses ours */
};
/* "connected", "wrong cluster", ... */
const char *qp_state_text(enum qp_state state);

struct qp_address {
    const char *name;    /* of the node */
    const char *address; /* HOST:PORT */
};

/* Texts are copied. */
struct qp_options {
    const char *name;   /* of this node */
    uint64_t cluster;   /* 0: in no cluster yet; such a node fits every cluster (qp_set_cluster) */
    const char *listen; /* HOST:PORT, port 0: any */
    const char *http_base; /* where peers fetch snapshots: "http://HOST:PORT"; NULL: nowhere */
    const struct qp_address *peers;
    size_t peer_count;
    /* Mutual TLS: PEM files, all or none. */
    const char *tls_ca_file, *tls_cert_file, *tls_key_file;
    /* A name that the certificate of every ingest node has, whatever its address; NULL: any
     * certificate that the CA signed for the address. */
    const char *tls_peer_name;
    const char *http_ca_file; /* of peers with HTTPS; NULL: tls_ca_file */
    uint32_t records;         /* which records this node's applications know; told to peers */
    /* Zero means the default. */
    uint32_t protocol_oldest, protocol_newest; /* this build's; tests play another release */
    size_t queue_messages_max;                 /* to one peer: 8192 */
    size_t queue_bytes_max;                    /* to one peer: 64 MiB */
    int64_t stuck_ms;                          /* 5 s */
    int64_t silence_ms;                        /* 5 s; something is said every fifth of it */
    int64_t dial_timeout_ms;                   /* 3 s until the peer's hello */
    int64_t redial_ms_min, redial_ms_max; /* 100 ms to 3 s, doubled each time, half of it random */
    uint64_t fetch_bytes_max;             /* of one file: 4 GiB */
    int64_t fetch_stall_ms; /* 10 s without a byte: tried again; 5 times in vain: over */
};

struct qp_peer_stat {
    char name[QP_NAME_SIZE];
    enum qp_state state;
    char why[200];     /* what was last wrong; empty if never */
    uint64_t cluster;  /* as it said; 0: not said, or in none */
    uint64_t instance; /* of its process; 0: not said */
    uint32_t records;  /* that it knows, as it said last; 0: not said */
    uint32_t protocol; /* the version spoken with it, as agreed last; 0: never */
    char http_base[QP_URL_SIZE];
    bool configured; /* has an address in the options */
    uint64_t messages_sent, messages_received, messages_dropped;
    uint64_t bytes_sent, bytes_received;
    uint64_t queued_messages, queued_bytes;
    uint64_t connects; /* how often a stream came up */
    uint64_t cuts;     /* how often it was cut for not reading or for silence */
};

struct qp_callbacks {
    void *ctx;
    void (*message)(void *ctx, const char *from, const char *queue, struct qf_str bytes);
    /* Answer with qp_reply(), now or later, exactly once. */
    void (*call)(void *ctx, const char *from, const char *method, struct qf_str bytes,
                 struct qp_reply *reply);
    /* A peer's state changed, or what it says of itself; may be NULL. */
    void (*peer)(void *ctx, const struct qp_peer_stat *stat);
};

/* Listen and begin to dial. QF_EINVAL: bad options or TLS files; QF_EIO, QF_EUNAVAILABLE: the
 * address is taken, no threads. */
QF_MUST_CHECK qf_rc qp_start(const struct qp_options *options, const struct qp_callbacks *callbacks,
                             struct qp_peers **ret_peers, struct qf_err *err);
/* End all streams and threads. Calls and fetches under way end with QF_ECANCELED first; no callback
 * runs afterwards. Replies that are still out may be answered later, to no effect. Not from a
 * callback. Accepts NULL, returns NULL. */
struct qp_peers *qp_stop(struct qp_peers *peers);

int qp_port(const struct qp_peers *peers); /* it listens on */
/* The node became part of a cluster; streams of others are cut. */
void qp_set_cluster(struct qp_peers *peers, uint64_t cluster);

/* Send a copy of @bytes about @queue to node @to. False: dropped and counted (unknown or not connected
 * peer, full queue, more than QP_BYTES_MAX). True is no promise. */
bool qp_send(struct qp_peers *peers, const char *to, const char *queue, struct qf_str bytes);

/* The same without a copy: if it returns true @bytes were taken, and the buffer is empty. */
bool qp_give(struct qp_peers *peers, const char *to, const char *queue, struct qf_strbuf *bytes);

/* How a call or fetch ended. @bytes: the answer, if @rc is QF_OK; else a text that says why.
 * QF_EUNAVAILABLE: no stream, or it was lost: nobody knows whether it was done; QF_ETIMEOUT; else what
 * the peer answered. */
typedef void qp_done(void *arg, qf_rc rc, struct qf_str bytes);

/* Ask node @to. If this returns QF_OK, @done is called exactly once, within about @deadline_ms.
 * QF_EUNAVAILABLE: not connected; QF_EBUSY: too many, or the queue is full; QF_EINVAL: too long. */
QF_MUST_CHECK qf_rc qp_call(struct qp_peers *peers, const char *to, const char *method,
                            struct qf_str bytes, int64_t deadline_ms, qp_done *done, void *arg);
/* Answer a call; frees @reply. @bytes: the answer, or a text that says why @rc is not QF_OK. */
void qp_reply(struct qp_reply *reply, qf_rc rc, struct qf_str bytes);

/* Fetch the snapshot of @queue at @index and @term from node @from into file @path:
 *
 *     GET {http_base of the node}/v1/peer/snapshot?queue=Q&index=I&term=T     Range: bytes=N-
 *     Authorization: Bearer {qp_token() of the node, which its hello told us}
 *
 * answered with a bundle (queue/peer/bundle.h), an ETag and ranges. It is resumed where it broke off
 * as long as the ETag stays the same, also if `PATH.part` is left from before. When @done says QF_OK
 * the file is whole, its checksum is right, and it is synced. QF_ENOTFOUND: the peer does not have it
 * (any more); QF_ELIMIT: longer than fetch_bytes_max; QF_ECORRUPT: damaged on the way, and removed;
 * QF_ENOSPC, QF_EIO: our disk. */
QF_MUST_CHECK qf_rc qp_fetch(struct qp_peers *peers, const char *from, const char *queue,
                             uint64_t index, uint64_t term, const char *path, qp_done *done,
                             void *arg);
/* What a peer that fetches from this node's HTTP must show; made at random by qp_start(). */
const char *qp_token(const struct qp_peers *peers);

/* All peers known; returns how many. */
size_t qp_stat(struct qp_peers *peers, struct qp_peer_stat ret_stats[QP_PEERS_MAX]);

#endif
