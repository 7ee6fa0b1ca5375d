/* node_int.h - the inside of a node. Everything here belongs to the owner's thread. */
#ifndef QUEUE_NODE_NODE_INT_H
#define QUEUE_NODE_NODE_INT_H

#include "base/sys/mailbox.h"
#include "base/sys/pool.h"
#include "base/sys/thread.h"
#include "queue/core/core.h"
#include "queue/node/node.h"

enum {
    QN_FOLDER_SIZE = 32,
    QN_ADDRESS_SIZE = 63,
    QN_ENVELOPE = 8, /* of a record: when the leader took it */
    QN_MARK_MS = 100,
    QN_HOUSEKEEPING_MS = 1000,
    QN_SYNCERS = 4, /* so many queues' syncs at a time */
    QN_TIMEOUT_MS = 10000
};

struct qn_queue;

/* One request to a core: its address is the request's number. */
struct qn_part {
    struct qn_ask *ask;
};

/* A request has ended; dealt with after all effects of the step. */
struct qn_end {
    struct qn_part *part;
    qf_rc rc;
    uint64_t index;
};

/* What the thread that waits for the disk is given, and gives back. */
struct qn_sync {
    struct qn_queue *queue;
    struct ql_disk *disk;
    struct ql_sync sync;
    qf_rc rc;
    struct qf_err err;
    atomic_bool finished;
    bool taken; /* the owner has waited for it: its note says nothing new */
};

/* When a consumer was last seen to move. */
struct qn_seen {
    char name[QC_CONSUMER_SIZE];
    uint64_t changed;
    int64_t at_ms;
};

/* Entries that found no room on the disk. */
struct qn_held {
    struct ql_entry entry; /* its data is owned */
    bool urgent;
};

/* Appends to one peer that wait for the end of the owner's round. */
struct qn_outgoing {
    struct qc_message message; /* without entries; to 0: there is none */
    uint64_t last_term;        /* of its last entry, or of the one before */
    struct qf_strbuf bytes;    /* queue/peer/wire.h */
};

struct qp_bundle;
struct qn_bundling;

/* A record of an application that waits for the end of the round. */
struct qn_write {
    struct qn_ask *ask;
    size_t at, len;
};

/* A snapshot that a peer wants as a file. */
struct qn_wanted {
    uint64_t index, term;
    qn_bundled *done;
    void *ctx;
};

struct qn_queue {
    struct qn_node *node;
    uint64_t id; /* 0: meta */
    char name[QN_NAME_SIZE];
    char tenant[QF_TENANT_MAX + 1];
    char folder[QN_FOLDER_SIZE];
    char address[QN_ADDRESS_SIZE]; /* what peers call it */
    struct qn_queue_options options;
    struct ql_disk *disk;
    struct ql_store store;
    struct qc_core *core; /* NULL: meta of a node in no cluster yet */
    bool led, space_low;
    bool closing; /* deleted: goes when no sync is under way */

    struct qn_outgoing outgoing[QC_MEMBERS_MAX];
    struct qn_sync sync;
    bool syncing;
    uint64_t drop_below; /* waits for the end of a sync; 0: nothing */
    QF_VEC(struct qn_held) held;
    int64_t held_due_ms, appended_ms, hand_over_ms;
    int64_t current_ms; /* as of then nothing was missing here; 0: since the start something was */

    QF_VEC(struct qn_end) ends; /* those from `ends_start` on, in the order of the core */
    size_t ends_start;
    bool stepping;

    struct {
        uint64_t term;   /* of this leader; what is below belongs to it */
        bool asked;      /* meta's leader, which has not answered yet */
        uint64_t behind; /* meta as it was behind this index may be followed; 0: not known yet */
    } follow;

    uint64_t snapshot_bytes; /* of the log at the last snapshot */
    uint64_t trim_asked;     /* the last TRIM this leader proposed */
    int64_t trim_due_ms;
    struct qn_seen seen[QC_CONSUMERS_MAX];
    uint32_t seen_count;
    int64_t record_time_ms; /* of the last record this leader took */

    struct qn_application app;
    bool has_app;
    uint64_t app_index; /* what was applied to it */
    uint64_t app_term;  /* in which it was told that this node leads; 0: it does not */
    QF_VEC(struct qn_write)
    writes; /* proposed in this round of the owner; records in write_bytes */
    struct qf_strbuf write_bytes;
    struct qn_ask *deferred, **deferred_end; /* WRITEs that wait for others */
    uint32_t deferred_count;

    struct qn_ask *waiting; /* polls that found nothing: wait.c */
    uint64_t wait_seen;     /* entries up to here do not wake them */
    int64_t wait_sweep_ms;
    struct qn_ask *offers, **offers_end; /* of this round of the owner; not submitted yet */
    size_t offers_bytes;
    struct qn_ask *taking; /* the one TAKE under way, and those behind it */
    struct qn_ask *takers, **takers_end;
    uint32_t taker_count;

    bool fetching, fetch_failed;
    bool clearing;                      /* what was fetched before is being removed */
    bool saving, save_again;            /* a snapshot of its own; another one when that is done */
    uint32_t bundling;                  /* jobs of the other thread that read this queue */
    const struct qp_bundle *bundle;     /* what was fetched, while it is installed; */
    struct ql_log *bundle_log;          /* and its log, written already */
    struct qn_wanted wanted;            /* the peer for whom one is written */
    uint64_t served_index, served_term; /* of the one that is written */
    int64_t served_ms;
};

enum qn_note_kind {
    QN_NOTE_ASK,
    QN_NOTE_SYNCED,
    QN_NOTE_MESSAGE,
    QN_NOTE_CALL,
    QN_NOTE_CALLED,
    QN_NOTE_FETCHED,
    QN_NOTE_BUNDLE,
    QN_NOTE_BUNDLED,
    QN_NOTE_DRAIN,
    QN_NOTE_STOP
};

struct qn_note {
    enum qn_note_kind kind;
    struct qn_ask *ask;
    struct qn_sync *sync;
    char from[QC_NAME_SIZE], what[QC_NAME_SIZE]; /* a node; a queue's address or a method */
    char *bytes;
    size_t len;
    qf_rc rc;
    void *reply;
    uint64_t queue_id;
    struct qn_wanted wanted;
    struct qn_bundling *job;
};

/* Who an incarnation is, as messages say. */
struct qn_known {
    uint64_t id;
    char name[QC_NAME_SIZE];
};

struct qn_node {
    struct qn_options options;
    char name[QC_NAME_SIZE];
    atomic_uint_fast64_t cluster;
    uint64_t incarnation;
    struct qn_figures figures;
    struct qf_mailbox *box, *sync_box;
    struct qf_thread *owner, *syncers[QN_SYNCERS];
    struct qf_pool *bundler;
    struct qn_queue *queues[QN_QUEUES_MAX + 1]; /* the first is meta */
    size_t queue_count;
    struct qn_table table;
    uint64_t folded; /* how far of meta is in the table */
    atomic_uint_fast32_t partitions;
    int64_t partitions_ms; /* when they were last asked for */
    bool short_of_room;    /* a queue could not be made: its row waits */
    struct qn_ask *parked;
    uint32_t parked_count, waiting_count;
    struct qn_ask *open;   /* all that were taken and not answered: for their deadlines */
    struct qn_ask *ghosts; /* answered, but a core has yet to end their requests */
    int64_t housekeeping_ms, asks_ms;
    struct qc_members members_scratch; /* of the last qn_name_of() */
    struct qn_known known[32];
    uint32_t known_next;
    struct qn_part own; /* of requests that no ask made */
    atomic_bool dead, halted;
    bool running; /* the owner has begun: set by itself */
    bool draining, stopping;
};

int64_t qn_now(void);
/* The process must end: say why; nothing is done any more from here on. */
void qn_fatal(struct qn_node *node, const struct qf_err *err);

/* queue.c: one queue's files and core. */
qf_rc qn_queue_open_meta(struct qn_node *node, struct qf_err *err);
/* Make a cluster of this node, which is in none, while it runs. */
qf_rc qn_queue_found(struct qn_queue *meta, struct qf_err *err);
/* QF_ENOSPC: there was no room to make it and nothing is left of it, so that it can be tried again. With any
 * other error the node must end. */
qf_rc qn_queue_open(struct qn_node *node, const struct qn_row *row, struct qf_err *err);
void qn_queue_close(struct qn_queue *queue);
void qn_queue_close_if_idle(struct qn_queue *queue); /* no other thread reads or syncs it */
struct qn_queue *qn_queue_find(struct qn_node *node, const char *name);
struct qn_queue *qn_queue_by_address(struct qn_node *node, const char *address);
struct qn_queue *qn_queue_by_id(struct qn_node *node, uint64_t id);
static inline struct qn_queue *qn_meta(const struct qn_node *node)
{
    return node->queues[0];
}
qf_rc qn_queue_begin(struct qn_queue *queue, struct qf_err *err); /* make and start its core */

/* perform.c: events in, effects performed. */
void qn_step(struct qn_queue *queue, struct qc_event *event);
void qn_perform(struct qn_queue *queue, struct qc_effects effects);
void qn_retry_held(struct qn_queue *queue);
void qn_flush_drop(struct qn_queue *queue);
void qn_forget_held(struct qn_queue *queue);

/* sync.c */
void qn_sync_begin(struct qn_queue *queue); /* if there is something to sync, and none under way */
void qn_sync_wait(struct qn_queue *queue);  /* for the one under way */
void qn_on_synced(struct qn_sync *sync);
void qn_syncer_run(void *node);

/* meta.c */
void qn_meta_fold(struct qn_node *node);
void qn_meta_open_late(struct qn_node *node); /* queues for which there was no room */
void qn_meta_forget(struct qn_node *node); /* the log was replaced: fold again from its beginning */
void qn_meta_follow(struct qn_queue *queue);
void qn_meta_compact(struct qn_node *node);
void qn_meta_partitions(struct qn_node *node, int64_t now); /* see that they are there */
/* Whether the options fit what the cluster has. */
qf_rc qn_meta_check_partitions(const struct qn_node *node, struct qf_err *err);

void qn_tell_space(struct qn_queue *queue); /* node.c: to its core */

/* keep.c: snapshots, marks, retention. */
void qn_keep(struct qn_queue *queue, int64_t now);
void qn_snapshot_if_due(struct qn_queue *queue, bool now);

/* app.c: the queue's application, if it has one. */
void qn_app_open(struct qn_queue *queue);
void qn_app_close(struct qn_queue *queue);
qf_rc qn_app_restore(struct qn_queue *queue, struct qf_err *err); /* from the store's snapshot */
void qn_app_feed(struct qn_queue *queue);                         /* with what was applied */
void qn_app_lead(struct qn_queue *queue);                         /* or not any more */
void qn_app_tick(struct qn_queue *queue);
void qn_writes_flush(struct qn_queue *queue); /* what was proposed goes to the core */
/* Propose what was deferred again; @failure not NULL: fail it. */
void qn_app_retry(struct qn_queue *queue, const char *failure);

/* ask.c */
void qn_ask_begin(struct qn_node *node, struct qn_ask *ask);
void qn_ask_ended(struct qn_queue *queue, const struct qn_end *end);
void qn_ask_fail(struct qn_ask *ask, qf_rc rc, const char *why);
void qn_ask_answer(struct qn_ask *ask);
void qn_ask_bury(struct qn_ask *ask); /* free a ghost */
void qn_ask_tick(struct qn_node *node, int64_t now);
/* A request that nobody waits for. */
void qn_propose(struct qn_queue *queue, struct qc_event *event);
void qn_take_next(struct qn_queue *queue);
void qn_takers_fail(struct qn_queue *queue, const char *why);
/* wait.c: @ask, which has read nothing, waits for records; false: it must be answered. */
bool qn_wait_begin(struct qn_queue *queue, struct qn_ask *ask);
void qn_wait_wake(struct qn_queue *queue); /* something was applied */
void qn_wait_tick(struct qn_queue *queue, int64_t now);
void qn_wait_fail(struct qn_queue *queue, const char *why);
/* offer.c: submit what was offered in this round; or refuse it. */
void qn_offers_flush(struct qn_queue *queue);
void qn_offers_fail(struct qn_queue *queue, const char *why);
/* read.c: the record in @entry; false: it is none. */
bool qn_entry_record(const struct ql_entry *entry, struct qn_record *ret_record);
/* Records from @from to below @end into the answer. */
qf_rc qn_read(struct qn_queue *queue, struct qn_ask *ask, uint64_t from, uint64_t end);
/* The envelope of the record at @index, or of the first one behind it up to @end. */
bool qn_record_at(struct qn_queue *queue, uint64_t index, uint64_t end, struct qf_strbuf *buf,
                  struct qn_record *ret_record);
/* show.c: as JSON. */
void qn_show_all(struct qn_node *node, const struct qn_ask *ask, struct qf_strbuf *buf);
void qn_show(struct qn_queue *queue, struct qf_strbuf *buf);
void qn_show_offsets(struct qn_queue *queue, struct qf_strbuf *buf);

/* send.c: appends wait until qn_send_flush(), which comes with the end of a round. */
void qn_send(struct qn_queue *queue, const struct qc_message *message);
void qn_send_flush(struct qn_queue *queue);
void qn_send_forget(struct qn_queue *queue);
bool qn_send_waits(const struct qn_queue *queue);

/* peers.c */
void qn_on_note_of_peer(struct qn_node *node, struct qn_note *note);
const char *qn_name_of(const struct qn_queue *queue, uint64_t id); /* NULL: nobody knows */
bool qn_forward(struct qn_queue *queue, struct qn_ask *ask, const char *leader);
/* Ask the node that @ask wants to add who it is, and tell it which cluster this is. */
bool qn_invite(struct qn_node *node, struct qn_ask *ask);
void qn_found(struct qn_node *node, struct qn_ask *ask);

/* snapshot.c */
void qn_fetch(struct qn_queue *queue, const struct qc_message *message);
void qn_fetch_failed(struct qn_queue *queue); /* not from within a step */
void qn_on_fetched(struct qn_node *node, const struct qn_note *note);
bool qn_install(struct qn_queue *queue);
/* Begin to make @snapshot durable; false: not now. */
bool qn_save(struct qn_queue *queue, const struct ql_snapshot *snapshot);
void qn_on_wanted(struct qn_node *node, const struct qn_note *note);
void qn_on_bundled(struct qn_node *node, struct qn_bundling *job);
void qn_served_expire(struct qn_queue *queue, int64_t now);

#endif
