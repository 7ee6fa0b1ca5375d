/* entry.h - what the entries of `meta` say about the ring, and their bytes. Pure.
 *
 *     FOUND    the nodes added so far become a ring of COPIES copies each; GRACE is that of cleanups
 *     ADD      a node: NAME, ZONE, URL (where it is asked), INCARNATION (of its disk). After FOUND this begins a change
 *     REMOVE   NODE: begins a change. A dead node is replaced by removing it
 *     FACTOR   COPIES from now on: begins a change
 *     CANCEL   CHANGE goes back to what was, for REASON
 *     DOWN     NODE does not answer
 *     UP       NODE answers, with the disk INCARNATION; at URL from now on, unless that is empty
 *     BEGIN    CHANGE moves SLOTS, as far as they are free
 *     HELD     NODE, with the disk INCARNATION, holds everything that the manifests name of SLOTS; they were listed
 *              when every partition had adopted EPOCH. BLOBS and BYTES were streamed for CHANGE since the last one:
 *              this entry is a migration's checkpoint
 *     FAILED   CHANGE could not go on, for REASON
 *     CLEAN    NODE may drop what it holds of the one slot in SLOTS. FORCED, with a REASON, without looking at the checks
 *     CLEANED  NODE has dropped what it held of the one slot in SLOTS, as told in EPOCH
 *     FORGET   CHANGE is over and cleaned up
 *
 * Every entry carries the time of its proposer. */
#ifndef RING_CORE_ENTRY_H
#define RING_CORE_ENTRY_H

#include "base/pure/strbuf.h"
#include "ring/core/place.h"

enum rg_entry_kind {
    RG_FOUND = 1,
    RG_ADD,
    RG_REMOVE,
    RG_FACTOR,
    RG_CANCEL,
    RG_DOWN,
    RG_UP,
    RG_BEGIN,
    RG_HELD,
    RG_FAILED,
    RG_CLEAN,
    RG_CLEANED,
    RG_FORGET,
    RG_ENTRY__COUNT
};

enum {
    RG_REASON_MAX = 120, /* bytes of a reason */
    RG_URL_MAX = 200,    /* bytes of a node's URL */
};

/* A set of slots. */
struct rg_slot_set {
    uint64_t words[RG_SLOTS / 64];
};

static inline bool rg_slot_set_has(const struct rg_slot_set *set, uint32_t slot)
{
    return set->words[slot / 64] >> (slot % 64) & 1;
}

static inline void rg_slot_set_add(struct rg_slot_set *set, uint32_t slot)
{
    set->words[slot / 64] |= UINT64_C(1) << (slot % 64);
}

static inline struct rg_slot_set rg_slot_set_of(uint32_t slot)
{
    struct rg_slot_set set = { { 0 } };

    rg_slot_set_add(&set, slot);
    return set;
}

/* The least slot in @set that is at or above @from; RG_SLOTS: none. */
uint32_t rg_slot_set_next(const struct rg_slot_set *set, uint32_t from);

/* Of the fields an entry has those that its kind needs; the others are 0. */
struct rg_entry {
    enum rg_entry_kind kind;
    int64_t time_ms;
    struct qf_str name, zone, url, reason; /* borrowed */
    uint64_t incarnation;
    uint8_t node; /* number */
    uint8_t copies;
    bool forced;
    int64_t grace_ms;
    uint64_t change; /* its id: the index of the entry that began it */
    uint64_t epoch;
    uint64_t blobs, bytes;
    struct rg_slot_set slots;
};

void rg_entry_encode(struct qf_strbuf *buf, const struct rg_entry *entry);
/* Borrows from @bytes. QF_ECORRUPT unless @bytes are exactly what encode would write. */
QF_MUST_CHECK qf_rc rg_entry_decode(struct qf_str bytes, struct rg_entry *ret_entry);

#endif
