/* node.h - one node with many queues: files, threads and time around the cores (queue/core).
 *
 * One thread, the owner, drives all cores and writes all logs; others wait for the disk
 * (fdatasync): while they do, whatever comes in is written behind, and the next sync covers all of
 * that (group commit). A queue's effects are performed in the order in which core.h wants them.
 *
 * Which queues there are is said by the queue `meta` (table.h). Its members are the members of the
 * cluster: the leaders of the other queues bring theirs in line, one change at a time.
 *
 * A failed sync or write ends the process (`fatal`), and is never tried again. So does damage. A disk
 * without room refuses records and goes on. */
#ifndef QUEUE_NODE_NODE_H
#define QUEUE_NODE_NODE_H

#include <stdatomic.h>

#include "queue/node/application.h"

/* How a call or a fetch ended: see queue/peer/peer.h. */
typedef void qn_called(void *arg, qf_rc rc, struct qf_str bytes);

/* Other nodes, by name. Any thread; nothing waits. */
struct qn_transport {
    void *ctx;
    /* The bytes may be taken: what is left in the buffer is freed. */
    bool (*send)(void *ctx, const char *to, const char *queue, struct qf_strbuf *bytes);
    qf_rc (*call)(void *ctx, const char *to, const char *method, struct qf_str bytes,
                  int64_t deadline_ms, qn_called *done, void *arg);
    void (*reply)(void *reply, qf_rc rc, struct qf_str bytes);
    qf_rc (*fetch)(void *ctx, const char *from, const char *queue, uint64_t index, uint64_t term,
                   const char *path, qn_called *done, void *arg);
    void (*joined)(void *ctx, uint64_t cluster); /* this node is part of it now */
};

/* Folders, one for each queue; queue/node/folders.h has those of a real disk. A disk is
 * used by several threads at once, each with files of its own, but for `sync`. */
struct qn_folders {
    void *ctx;
    /* QF_ENOTFOUND: there is none, and @create is false. */
    qf_rc (*open)(void *ctx, const char *folder, bool create, struct ql_disk **ret_disk,
                  struct qf_err *err);
    void (*close)(void *ctx, struct ql_disk *disk);
    qf_rc (*remove)(void *ctx, const char *folder, struct qf_err *err);
    /* Where file @name of @folder is, for fetches. */
    void (*path)(void *ctx, const char *folder, const char *name, struct qf_strbuf *buf);
};

struct qn_options {
    const char *name; /* of this node; 1 to 63 bytes */
    bool bootstrap;   /* make a new cluster, unless the folder has one */
    struct qn_folders folders;
    struct qn_transport transport;       /* send NULL: this node is alone */
    struct qn_applications applications; /* open NULL: there are none */
    /* Zero means the default. */
    uint64_t reserve_bytes; /* of the disk, for all but records: 16 MiB */
    uint64_t file_bytes;    /* of a log file: 64 MiB */
    uint32_t election_ms;   /* 1000 */
    uint32_t heartbeat_ms;  /* 100 */
    /* How long an ask waits for a leader, and for a leader that hears of no majority: 2 s; a QN_WRITE:
     * as the other says, unless 0. */
    int64_t leader_wait_ms, write_wait_ms;
    uint32_t asks_max; /* under way: 8192 */
    /* Queues metrics-0, ... that a new cluster has, a power of two up to QN_PARTITIONS_MAX; 0: as many
     * as the cluster has. Another number than the cluster's: QF_EINVAL, or `fatal`. */
    uint32_t partitions, new_partitions; /* the second one: of a new cluster, if the first is 0 */
    /* Something after which the process must end; @why says what to do. On any thread. */
    void (*fatal)(void *ctx, const char *why);
    /* A sync took this long; may be NULL. On a thread that waits for the disk. */
    void (*synced)(void *ctx, double seconds);
    void *ctx;
};

/* Counted by the node, read by anyone. */
struct qn_figures {
    atomic_uint_fast64_t records, record_bytes;      /* acknowledged */
    atomic_uint_fast64_t read_records, read_bytes;   /* given out */
    atomic_uint_fast64_t refused;                    /* asks that ended with an error */
    atomic_uint_fast64_t forwarded;                  /* asks that another node answered */
    atomic_uint_fast64_t syncs, snapshots, installs; /* of all queues */
    atomic_uint_fast64_t elections;                  /* won */
    atomic_uint_fast64_t messages_dropped;           /* of peers: not for us, or no room */
    /* Now. */
    atomic_uint_fast64_t to_hand_over; /* while it drains: led, and another node could */
    atomic_uint_fast64_t queues, led, leaderless, log_bytes, space_bytes, asks;
    atomic_uint_fast64_t behind; /* queues that this node has not caught up with */
    atomic_bool member;          /* of a cluster */
};

/* Open all queues and start. QF_ECORRUPT, QF_EUNSUPPORTED, QF_EIO: @err names the file and says what
 * to do; QF_EINVAL: options that do not fit the folder. */
QF_MUST_CHECK qf_rc qn_start(const struct qn_options *options, struct qn_node **ret_node,
                             struct qf_err *err);
/* End the thread that uses the transport, which may be ended next; calls and fetches that it then ends
 * are still heard of. Asks are refused from here on. Accepts NULL. */
void qn_halt(struct qn_node *node);
/* End the rest; asks under way are answered with QF_EUNAVAILABLE. Nothing is lost: what was acknowledged
 * is on the disk. Accepts NULL, returns NULL. */
struct qn_node *qn_stop(struct qn_node *node);

/* The ask is the node's until it is answered. False: too many are under way, and it stays the
 * caller's. Any thread. */
QF_MUST_CHECK bool qn_ask(struct qn_node *node, struct qn_ask *ask);
/* From now on hand the leadership of every queue over; figures.to_hand_over says how many are left once
 * it returns. Any thread. */
void qn_drain(struct qn_node *node);

/* What the transport hears. Bytes are copied. */
void qn_hear(struct qn_node *node, const char *from, const char *queue, struct qf_str bytes);
void qn_called_by(struct qn_node *node, const char *from, const char *method, struct qf_str bytes,
                  void *reply);

/* Have the snapshot of the queue that peers call @address written to a file: @done gets its path, on
 * the node's thread or, if it is busy, this one. The path is borrowed, the file stays for minutes.
 * QF_ENOTFOUND: that snapshot is not (or no longer) there; QF_EBUSY. Any thread. */
typedef void qn_bundled(void *ctx, qf_rc rc, const char *path);
void qn_bundle(struct qn_node *node, const char *address, uint64_t index, uint64_t term,
               qn_bundled *done, void *ctx);

struct qn_figures *qn_figures(struct qn_node *node);
/* Queues metrics-0, ... of the cluster; 0: not known yet. Any thread. */
uint32_t qn_partitions(const struct qn_node *node);
uint64_t qn_cluster(const struct qn_node *node);     /* 0: none yet */
uint64_t qn_incarnation(const struct qn_node *node); /* of the folder */

#endif
