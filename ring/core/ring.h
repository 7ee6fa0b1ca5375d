/* ring.h - nodes, epochs, changes and moves: what the entries of `meta` amount to. Pure.
 *
 * Equal entries give equal rings on every node; rg_ring_encode() and _decode() carry one over in a snapshot. Entries that
 * cannot be are refused, with a reason, alike everywhere. One thread owns a ring.
 *
 *   node     BOOTSTRAPPING (written at once, holds not everything yet) -> NORMAL -> LEAVING (still written, still read)
 *            -> REMOVED. DOWN is one that does not answer, in whichever of these states; it stays an owner.
 *   change   A node more, a node less, another number of copies. One at a time for a node (its lock), any number beside
 *            each other. Runs until no slot has anything left to do, or is rolled back by the same means.
 *   slot     Knows among which nodes and with how many copies it is placed. A change alters that slot by slot:
 *
 *            settled --BEGIN--> moving: puts need majorities of the old AND of the new owners
 *               ^                  |--CANCEL--> settled with the old owners, who have everything
 *               |                  |
 *               +------------------+ HELD by every newcomer and by a majority of the new owners
 *
 *            A slot is in one move at a time (!): another change waits for it, without holding up its other slots. If a
 *            change does not alter a slot's owners, the slot takes note without a move.
 *   epoch    Counts whatever alters owners. A slot's epoch is the one that altered its own. A put carries the epoch in
 *            which its owners were counted; once a partition has adopted a slot's epoch, manifest entries of earlier
 *            ones do not apply (manifest.h). HELD counts only if the listing it rests on was taken behind that
 *            adoption (!): a blob named later had majorities of old and new owners.
 *   stale    Nodes that were owners of a slot, or nearly, and may still hold its blobs: what cleanup is for.
 *
 * Rules that callers keep: an incarnation is one life of a disk and never used again; a node that lost data says UP with another. */
#ifndef RING_CORE_RING_H
#define RING_CORE_RING_H

#include "ring/core/entry.h"

enum {
    RG_CHANGES_MAX = 64, /* records of changes, running and waiting for their cleanup */
    RG_FAILURES_MAX = 5, /* of a node's addition; then it is rolled back */
};
#define RG_GRACE_MS (INT64_C(24) * 60 * 60 * 1000) /* of cleanups, unless FOUND says otherwise */

enum rg_node_state {
    RG_NODE_NONE, /* the number is free */
    RG_NODE_BOOTSTRAPPING,
    RG_NODE_NORMAL,
    RG_NODE_LEAVING,
    RG_NODE_REMOVED, /* until the record of its change goes */
    RG_NODE_DOWN     /* only as an answer of rg_node_state() */
};

struct rg_node {
    char name[RG_NAME_MAX + 1], zone[RG_NAME_MAX + 1];
    char url[RG_URL_MAX + 1]; /* where it is asked; empty: nobody said */
    uint64_t incarnation;
    enum rg_node_state state;
    bool down;
    int64_t down_ms; /* since when */
};

enum rg_change_kind { RG_CHANGE_NONE, RG_CHANGE_ADD, RG_CHANGE_REMOVE, RG_CHANGE_FACTOR };

enum rg_change_state { RG_RUNNING, RG_ROLLING_BACK, RG_COMPLETED, RG_ROLLED_BACK };

struct rg_change {
    uint64_t id;              /* index of the entry that began it */
    enum rg_change_kind kind; /* NONE: the row is free */
    enum rg_change_state state;
    uint8_t node;     /* ADD, REMOVE */
    uint8_t from, to; /* FACTOR: copies */
    uint32_t failures;
    char reason[RG_REASON_MAX + 1]; /* of the last failure, or of going back */
    int64_t started_ms, completed_ms;
    uint64_t blobs, bytes;    /* streamed so far */
    struct rg_slot_set slots; /* whose owners it altered */
};

struct rg_slot {
    uint64_t epoch; /* that altered its owners last */
    rg_nodes members;
    uint8_t copies;
    uint8_t change;      /* 1 + row of the change that moves it; 0: settled */
    rg_nodes to_members; /* while it moves */
    uint8_t to_copies;
    rg_nodes held;           /* who said HELD since its epoch, or since cleanup was due */
    rg_nodes stale;          /* may still hold blobs of it */
    rg_nodes cleaning;       /* of these: told to drop them */
    struct rg_owners owners; /* made from the above: settled, or old */
    struct rg_owners to;     /* new, while it moves */
};

/* Rules switched off: the simulator shows with each what it is for. Nobody else sets them. */
enum rg_unsafe {
    RG_UNSAFE_NEW_ALONE = 1 << 0, /* while a slot moves, a majority of its new owners is enough */
    RG_UNSAFE_EITHER = 1 << 1,    /* ... or one of its old owners */
    RG_UNSAFE_UP_COUNT = 1 << 2,  /* a quorum is one of the owners that are up */
    RG_UNSAFE_MOVE_OVER = 1 << 3, /* a slot that moves may begin another move */
    RG_UNSAFE_HELD_ANYWHERE = 1 << 4,    /* HELD counts wherever its listing was taken */
    RG_UNSAFE_HELD_BY_ANY_DISK = 1 << 5, /* HELD counts whichever disk it was */
    RG_UNSAFE_CLEAN_UNHELD = 1 << 6,  /* cleanup without asking whether a quorum holds everything */
    RG_UNSAFE_HANDED_COUNTS = 1 << 7, /* hand-off counts as a copy */
    RG_UNSAFE_NEWCOMER_ALONE =
        1 << 8, /* the old owners are left once the newcomers hold everything */
};

struct rg_ring {
    uint64_t applied; /* index of the last entry */
    int64_t time_ms;  /* greatest time of an entry */
    bool founded;
    uint64_t epoch;
    uint8_t copies;   /* wanted */
    int64_t grace_ms; /* from a change's end to its cleanup */
    rg_nodes members; /* wanted */
    struct rg_node nodes[RG_NODES_MAX];
    struct rg_change changes[RG_CHANGES_MAX];
    uint32_t slot_count;
    struct rg_slot *slots;
    struct rg_walks walks;
    uint64_t unsafe; /* enum rg_unsafe */
};

/* Why an entry counts for nothing. */
enum rg_verdict {
    RG_APPLIED,
    RG_NOTHING, /* all that it says is so already */
    RG_NO_SUCH, /* node, change or slot */
    RG_EXISTS,  /* a node of this name */
    RG_LOCKED,  /* a change of this node, or of the factor, is running */
    RG_TOO_FEW, /* nodes for the copies */
    RG_FULL,    /* of nodes or changes */
    RG_EARLY, /* the ring is not founded, or is already; the change is running; the grace period is not over */
    RG_OTHER_DISK,  /* the incarnation is another */
    RG_OTHER_EPOCH, /* it speaks of an epoch that is not the slot's */
    RG_IS_OWNER,    /* of what would be cleaned */
    RG_MOVING,      /* the slot moves: data is streamed */
    RG_NOT_HELD,    /* no quorum is known to hold everything */
    RG_NO_REASON,   /* a force needs one */
    RG_BAD,         /* a value that cannot be */
    RG_NEEDED,      /* tenants ask for more copies (ring/state/state.h) */
    RG_VERDICT__COUNT
};

/* A ring without nodes, of @slots slots: RG_SLOTS, or fewer in tests. */
struct rg_ring *rg_ring_new(uint32_t slots);
struct rg_ring *rg_ring_free(struct rg_ring *ring); /* Accepts NULL, returns NULL. */
/* Make @to what @from is; both have the same number of slots. */
void rg_ring_copy(struct rg_ring *to, const struct rg_ring *from);

/* Apply @entry, the one at @index of the log, above all before. */
enum rg_verdict rg_ring_apply(struct rg_ring *ring, uint64_t index, const struct rg_entry *entry);
const char *rg_verdict_text(enum rg_verdict verdict);

/* As it is shown: DOWN if it does not answer. */
enum rg_node_state rg_node_state(const struct rg_ring *ring, uint8_t node);
const char *rg_node_state_name(enum rg_node_state state);
/* Number of the node with @name; RG_NODES_MAX: none. */
uint8_t rg_ring_node(const struct rg_ring *ring, struct qf_str name);
/* NULL: no such change. */
const struct rg_change *rg_ring_change(const struct rg_ring *ring, uint64_t id);
static inline bool rg_change_runs(const struct rg_change *change)
{
    return change->kind != RG_CHANGE_NONE &&
           (change->state == RG_RUNNING || change->state == RG_ROLLING_BACK);
}

/* The slots that @change could begin to move now. False: none. */
bool rg_ring_ready(const struct rg_ring *ring, const struct rg_change *change,
                   struct rg_slot_set *ret_slots);
/* How many slots @change has before it, moving ones too: 0 when it is done. */
uint32_t rg_ring_left(const struct rg_ring *ring, const struct rg_change *change);
/* All of whom a put into @slot must reach: old and new owners. */
rg_nodes rg_slot_everyone(const struct rg_slot *slot);
/* New owners that were none before. */
rg_nodes rg_slot_newcomers(const struct rg_slot *slot);
/* Do @yes, who have a blob, make it safe: majorities of the old and of the new owners, all of them counted? */
bool rg_slot_quorum(const struct rg_ring *ring, const struct rg_slot *slot, rg_nodes yes);

/* The four checks before @node's blobs of @slot may go at @now_ms: RG_APPLIED, or the first that fails.
 *   RG_MOVING      a stream is under way
 *   RG_EARLY       a change that altered the slot is running, or its grace period is
 *   RG_NOT_HELD    no quorum of the owners said HELD after that
 * and beside them RG_IS_OWNER and RG_NOTHING (it has left nothing there). */
enum rg_verdict rg_clean_check(const struct rg_ring *ring, uint32_t slot, uint8_t node,
                               int64_t now_ms);
/* Is HELD of @slot asked for: because it moves, or because its cleanup is due at @now_ms? */
bool rg_slot_asks_held(const struct rg_ring *ring, uint32_t slot, int64_t now_ms);

/* Slots whose epoch is above @since: what an EPOCH entry of a partition that is at @since has to name. */
void rg_ring_altered(const struct rg_ring *ring, uint64_t since, struct rg_slot_set *ret_slots);

struct rg_health {
    uint32_t moving;    /* slots */
    uint32_t down;      /* slots with an owner that does not answer */
    uint32_t dead;      /* ... for longer than @dead_ms: under-replicated */
    uint32_t no_quorum; /* slots that cannot be written now */
    uint32_t stale;     /* slots that wait for cleanup */
    rg_nodes dead_nodes;
};
struct rg_health rg_ring_health(const struct rg_ring *ring, int64_t now_ms, int64_t dead_ms);

/* For snapshots: equal rings give equal bytes. Decoding is strict: QF_ECORRUPT. */
void rg_ring_encode(struct qf_strbuf *buf, const struct rg_ring *ring);
QF_MUST_CHECK qf_rc rg_ring_decode(struct qf_str bytes, struct rg_ring **ret_ring);

#endif
