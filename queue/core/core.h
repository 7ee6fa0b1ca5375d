/* core.h - one node of one queue, without any I/O: who leads, what is committed, what may be answered.
 *
 * Feed one event, perform the effects it returns, in their order. Equal nodes given equal events
 * give equal effects. Not thread-safe: one thread owns a core. Time is in milliseconds of a clock that
 * never goes back; a time that does is taken as no time passed.
 *
 * What the caller owes (the rules that the core cannot keep alone):
 *   QC_EFFECT_VOTE     term and vote are durable, both copies, before the next effect is performed
 *   QC_EFFECT_APPEND   the entries are written, in order; after a sync that began later the caller
 *                      says QC_EVENT_PERSISTED with the last index and term that it covers
 *   QC_EFFECT_INSTALL  what was fetched takes the place of log and state, durably; then
 *                      QC_EVENT_INSTALLED
 *   QC_EFFECT_STOP     the process ends
 *   everything else may be late or lost. A write that found no space is tried again, and no later
 *   effect of that kind before it; until it is done the log does not show what it replaces
 *   (ql_log_hide): a sync that covers the old entries says nothing about the new ones.
 *
 * Requests: each gets exactly one QC_EFFECT_DONE. QF_EUNAVAILABLE may mean that nobody knows: the
 * entry may still be committed by another leader. Commands that fall together, chained ones that are
 * refused or all that are under way when leadership is lost, end the last one first.
 *
 * Reads: a leader may have been replaced without knowing it. QC_EVENT_READ joins a round of questions
 * that has not been sent yet; when a majority of voters has answered this round's nonce as followers
 * of the leader's term, and the leader's first entry is applied, everything acknowledged before the
 * read began is below the index in QC_EFFECT_DONE. */
#ifndef QUEUE_CORE_CORE_H
#define QUEUE_CORE_CORE_H

#include "queue/core/message.h"
#include "queue/core/state.h"
#include "queue/log/store.h"

enum {
    /* Entries of one message together are at most so long, unless it has only one. */
    QC_MESSAGE_BYTES = 4 << 20,
    /* Of commands that come together: so many, so long. */
    QC_COMMANDS_MAX = 1024,
    QC_COMMANDS_BYTES = 32 << 20
};

/* When an offer is acknowledged. */
enum qc_level {
    QC_LEVEL_QUORUM, /* committed and applied: survives any minority of disks */
    QC_LEVEL_ONE,    /* on the leader's disk: may be lost with it */
    QC_LEVEL_ALL     /* committed, and on every voter's disk */
};

/* Rules switched off: the simulator shows with each what it is for. Nobody else sets them. */
enum qc_unsafe {
    QC_UNSAFE_NO_NOOP = 1 << 0,          /* a new leader serves at once */
    QC_UNSAFE_SAME_TERM = 1 << 1,        /* a sole voter starts in the term it had */
    QC_UNSAFE_VOTE_LATE = 1 << 2,        /* term and vote are saved after the messages */
    QC_UNSAFE_ANY_COMPLETION = 1 << 3,   /* writes that were replaced since are reported */
    QC_UNSAFE_CHANGE_ANYWHERE = 1 << 4,  /* changes are handed over in the middle of a batch */
    QC_UNSAFE_EARLY_CHANGE = 1 << 5,     /* a new leader changes members at once */
    QC_UNSAFE_NEW_VOTER = 1 << 6,        /* a new member may vote before it has caught up */
    QC_UNSAFE_INSTALL_FIRST = 1 << 7,    /* the library hears of a snapshot before it is here */
    QC_UNSAFE_LAST_VOTER = 1 << 8,       /* a leader may leave its cluster to one other voter */
    QC_UNSAFE_SOLE_TIMEOUT = 1 << 9,     /* a sole voter elects itself again in the same term */
    QC_UNSAFE_APPLY_EARLY = 1 << 10,     /* what is committed is applied before it is stored here */
    QC_UNSAFE_JOIN_SENT_ROUND = 1 << 11, /* reads join questions that are under way */
    QC_UNSAFE_ANY_ANSWER = 1 << 12,      /* any answer confirms a leader, whatever its term */
    QC_UNSAFE_CHANGE_PILE = 1 << 13,     /* a change is taken without settling the one before */
    QC_UNSAFE_NO_SPACE_CHECK = 1 << 14,  /* records are accepted whatever space is left */
    QC_UNSAFE_NO_GUEST_VOTE = 1 << 15,   /* who is no voter, as far as it knows, does not vote */
    QC_UNSAFE_TRIAL_TERM = 1 << 16,      /* who tries an old term does not hear of the new one */
    QC_UNSAFE_DEMOTED_FIRST = 1 << 17    /* a voter hears of its demotion like everyone else */
};

struct qc_options {
    uint64_t cluster;
    uint64_t id; /* incarnation */
    uint32_t seed;
    uint32_t election_ms;   /* 0: 1000; a follower waits this long to twice this long */
    uint32_t heartbeat_ms;  /* 0: 100 */
    uint32_t in_flight;     /* 0: 256 entries to one follower without an answer */
    uint32_t pending_max;   /* 0: 4096 requests; more are QF_EBUSY */
    uint64_t reserve_bytes; /* of the disk; for all but records */
    uint64_t unsafe;        /* enum qc_unsafe */
};

/* The node's own log, as far as it is written. Borrowed; outlives the core. */
struct qc_log {
    void *ctx;
    uint64_t (*first)(void *ctx);
    uint64_t (*last)(void *ctx);
    uint64_t (*term)(void *ctx, uint64_t index);     /* 0: not there */
    enum ql_type (*type)(void *ctx, uint64_t index); /* of one that is there */
    /* @ret_entry borrows from @buf, or from the log until it is written to. */
    qf_rc (*read)(void *ctx, uint64_t index, struct qf_strbuf *buf, struct ql_entry *ret_entry,
                  struct qf_err *err);
    /* Length of an entry's data; 0: not there. NULL: messages are as long as they come. */
    uint64_t (*length)(void *ctx, uint64_t index);
};

enum qc_event_kind {
    QC_EVENT_TICK,      /* time passed */
    QC_EVENT_MESSAGE,   /* message */
    QC_EVENT_PERSISTED, /* index, term: synced up to here */
    QC_EVENT_COMMAND,   /* request, data (command.h), level */
    QC_EVENT_COMMANDS,  /* commands, count: one write and one message for all of them */
    QC_EVENT_READ,      /* request */
    QC_EVENT_CHANGE,    /* request, change, member, name */
    QC_EVENT_TRANSFER,  /* request, member (0: any): hand leadership over */
    QC_EVENT_FETCHED,   /* snapshot: whole and verified, not yet in place; NULL: it failed */
    QC_EVENT_INSTALLED, /* snapshot: in place */
    QC_EVENT_SAVED,     /* snapshot of this node: durable */
    QC_EVENT_SPACE      /* bytes: free on this node's disk */
};

/* One of commands that come together; each is taken or refused by itself. */
struct qc_request {
    uint64_t request;
    struct qf_str data;
    enum qc_level level;
};

struct qc_event {
    enum qc_event_kind kind;
    uint64_t now;
    const struct qc_message *message;
    const struct ql_snapshot *snapshot;
    uint64_t index, term;
    uint64_t request; /* any number but 0 */
    struct qf_str data;
    enum qc_level level;
    const struct qc_request *commands; /* their data is borrowed as long as the effects are */
    uint32_t count;
    bool
        chained; /* COMMANDS: one that is refused takes those behind it with it, the last one first */
    enum qc_change change;
    uint64_t member;
    const char *name;
    uint64_t bytes;
};

enum qc_effect_kind {
    QC_EFFECT_VOTE,    /* term, vote */
    QC_EFFECT_APPEND,  /* entries, count, urgent */
    QC_EFFECT_SEND,    /* message */
    QC_EFFECT_FETCH,   /* message: get the snapshot it names from its sender */
    QC_EFFECT_INSTALL, /* index, term: put the fetched snapshot in place */
    QC_EFFECT_DROP,    /* index: entries before it are not needed */
    QC_EFFECT_APPLIED, /* index: up to here; ret_state has changed */
    QC_EFFECT_DONE,    /* request, rc, index */
    QC_EFFECT_STOP     /* rc, why */
};

struct qc_effect {
    enum qc_effect_kind kind;
    uint64_t term, vote, index, request;
    qf_rc rc;
    const char *why;
    const struct ql_entry *entries; /* borrowed from the event or the core, until the next step */
    uint32_t count;
    bool urgent;
    struct qc_message message;
};

struct qc_effects {
    const struct qc_effect *items;
    size_t count;
};

struct qc_figures {
    uint64_t dropped;   /* messages that were not for this node or not to be believed */
    uint64_t elections; /* won */
    uint64_t rounds;    /* of questions that confirmed the leader */
    uint64_t restarts;  /* of a sole voter that had become a follower */
};

struct qc_core;

/* A node as ql_store_open() found it. @sequence and @snapshot are copied. QF_ECORRUPT: the snapshot's
 * state or members, or a change in the log, cannot be read. */
QF_MUST_CHECK qf_rc qc_new(const struct qc_options *options, const struct qc_log *log,
                           const struct ql_sequence_state *sequence,
                           const struct ql_snapshot *snapshot, struct qc_core **ret_core,
                           struct qf_err *err);
struct qc_core *qc_free(struct qc_core *core); /* Returns NULL. */

/* Once, before any step. */
void qc_start(struct qc_core *core, uint64_t now, struct qc_effects *ret_effects);
/* @ret_effects borrows from @core and @event until the next step. */
void qc_step(struct qc_core *core, const struct qc_event *event, struct qc_effects *ret_effects);
/* When QC_EVENT_TICK is due. */
uint64_t qc_deadline(const struct qc_core *core);

/* The state at the applied index as a snapshot: members and state are appended to @buf, which it
 * borrows. False if nothing was applied since the last one. */
bool qc_snapshot(const struct qc_core *core, struct qf_strbuf *buf,
                 struct ql_snapshot *ret_snapshot);

const struct qc_state *qc_state(const struct qc_core *core);
bool qc_leads(const struct qc_core *core);
bool qc_serves(const struct qc_core *core);     /* leads, and its first entry is applied */
uint64_t qc_leader(const struct qc_core *core); /* who leads, as far as known; 0 */
/* When this node last had a sign that what it submits can be committed: as a leader since when a
 * majority of the voters was heard of, as a follower when its leader was. A leader steps down only
 * after one to two election timeouts without a majority; who cannot wait so long asks here. 0: never. */
uint64_t qc_heard(const struct qc_core *core, uint64_t now);
/* As of when this node has applied everything that its leader knew to be committed, as far as it was told; 0:
 * it never had. A leader, and whoever keeps up, is at most a few heartbeats behind @now; who catches up stays
 * where it was, or at 0 since it started. */
uint64_t qc_current(const struct qc_core *core, uint64_t now);
uint64_t qc_term(const struct qc_core *core);
uint64_t qc_commit(const struct qc_core *core);
void qc_members(const struct qc_core *core, struct qc_members *ret_members); /* in force */
struct qc_figures qc_figures(const struct qc_core *core);

#endif
