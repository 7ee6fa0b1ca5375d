/* keep.h - what a keeper takes, and what it may drop. Pure.
 *
 * A keeper remembers of each slot the latest epoch it has heard of, durably and before it answers: every request carries
 * the slot's epoch as its sender knows it.
 *
 *   told      A disk that is new takes nothing before the leader of `meta`, having confirmed itself, has told it the epochs
 *             of all slots (!): it could not know what is older
 *   put       refused if its epoch is older: its owners were counted before they changed
 *   clean     refused if a later epoch of the slot is known (!): the node may be an owner again, and what it said it
 *             holds counts. If it is not known yet, nothing that counts was said in it
 *   garbage   A blob that no manifest names goes when nobody put it for the grace period. A put renews that, also of a
 *             blob that is there already (!): its sender counts on it. "No manifest names it" was asked after the last put,
 *             and not long ago. On the other side a sealer checks again, by putting again, blobs that it put longer than
 *             half a grace period ago before it proposes to name them (!); proposals older than a quarter
 *             are not appended.
 *
 * Reads of documents are asked like puts: with the epoch, and refused if it is older. */
#ifndef RING_CORE_KEEP_H
#define RING_CORE_KEEP_H

#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "ring/core/place.h"

#define RG_BLOB_GRACE_MS (INT64_C(24) * 60 * 60 * 1000)

/* Rules switched off, for the simulator. */
enum rg_keep_unsafe {
    RG_KEEP_UNSAFE_OLD_PUTS = 1 << 0,  /* puts of any epoch are taken */
    RG_KEEP_UNSAFE_OLD_CLEAN = 1 << 1, /* orders to clean of any epoch are obeyed */
    RG_KEEP_UNSAFE_NOT_TOLD = 1 << 3,  /* a new disk takes what comes */
    RG_KEEP_UNSAFE_NO_RENEWAL = 1 << 2 /* a put of a blob that is there leaves its age alone */
};

struct rg_keep {
    uint32_t slots;
    bool told;
    uint64_t unsafe;
    uint64_t epochs[RG_SLOTS]; /* 0: not heard of */
};

/* Hear of @epoch of @slot. True: it is news, to be made durable before anything is answered. */
bool rg_keep_hear(struct rg_keep *keep, uint32_t slot, uint64_t epoch);
/* Hear of the epochs of all slots. True as above. */
bool rg_keep_tell(struct rg_keep *keep, const uint64_t *epochs);
/* May a blob or a document of @slot, counted in @epoch, be taken? It is heard of by that. */
bool rg_keep_takes(struct rg_keep *keep, uint32_t slot, uint64_t epoch);
/* May what is held of @slot be dropped, as told in @epoch? */
bool rg_keep_cleans(const struct rg_keep *keep, uint32_t slot, uint64_t epoch);

/* When a blob was put last, if it was there since @before_ms (or not: INT64_MIN) and is put again at @now_ms. */
int64_t rg_keep_renew(const struct rg_keep *keep, int64_t before_ms, int64_t now_ms);
/* May a blob put last at @put_ms go at @now_ms, if it was not named when that was asked at @asked_ms? */
bool rg_keep_drops(int64_t put_ms, int64_t asked_ms, int64_t now_ms, int64_t grace_ms);
/* Must a blob put at @put_ms be put again before it is named at @now_ms? */
bool rg_put_is_old(int64_t put_ms, int64_t now_ms, int64_t grace_ms);

/* The epochs, for the keeper's disk. QF_ECORRUPT. */
void rg_keep_encode(struct qf_strbuf *buf, const struct rg_keep *keep);
QF_MUST_CHECK qf_rc rg_keep_decode(struct qf_str bytes, struct rg_keep *ret_keep);

#endif
