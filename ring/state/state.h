/* state.h - what the records of `meta` about the ring amount to, and what may become one. Pure.
 *
 * A record is {"ring":"BASE64"}: an entry of ring/core/entry.h. Equal records give equal states on every node; the state
 * travels in the snapshots of `meta`.
 *
 *   wish     what an operator, or the leader's driver, wants to be so. The leader of `meta` makes an entry of it: it
 *            looks up nodes by their name, puts the time in, and tries the entry on its own ring. What would count for
 *            nothing is refused and not written
 *   verdict  what came of the entry when it was applied, which is what the asker hears: in between another entry may
 *            have come
 *
 * Records of other kinds are none of this state's business. One about the ring that cannot be read is of a newer release:
 * a node that skipped it would have another ring than the others, so it must not go on. */
#ifndef RING_STATE_STATE_H
#define RING_STATE_STATE_H

#include "ring/core/ring.h"

enum {
    RG_RECORD_MAX = 8 << 10 /* bytes of a record; the longest entries name 1024 slots in turn */
};

struct rg_state;

struct rg_state *rg_state_new(void);
struct rg_state *rg_state_free(struct rg_state *state); /* Accepts NULL, returns NULL. */
const struct rg_ring *rg_state_ring(const struct rg_state *state);

/* From now on tenants ask for @copies of their data (ring/tenant/tenant.h): FACTOR with fewer is RG_NEEDED. Every node says so
 * at the same point of the log. */
void rg_state_need(struct rg_state *state, uint8_t copies);
/* The copies that the ring has of everything, whatever becomes of the changes that run; 0: it is not founded. */
uint8_t rg_state_kept(const struct rg_state *state);

/* The record of @entry. */
void rg_record_encode(struct qf_strbuf *buf, const struct rg_entry *entry);
/* Apply the record at @index, above all before. QF_ENOTFOUND: it is about something else, nothing changed.
 * QF_EUNSUPPORTED: about the ring, and not readable. */
QF_MUST_CHECK qf_rc rg_state_apply(struct rg_state *state, uint64_t index, struct qf_str record);
/* What came of the entry at @index. False: forgotten, or it was none. */
bool rg_state_verdict(const struct rg_state *state, uint64_t index, enum rg_verdict *ret_verdict);

/* Bytes of the state; none as long as nothing was said about the ring. */
void rg_state_save(struct qf_strbuf *buf, const struct rg_state *state);
/* Become what was saved; @bytes empty: begin anew. QF_ECORRUPT; QF_EUNSUPPORTED: by a newer release. Then @state is as
 * before. */
QF_MUST_CHECK qf_rc rg_state_restore(struct rg_state *state, struct qf_str bytes);

/* --- wishes --- */

struct rg_wish {
    struct qf_str node; /* by name, for REMOVE, CLEAN; empty: as in entry. Borrowed */
    struct rg_entry entry;
};

void rg_wish_encode(struct qf_strbuf *buf, const struct rg_wish *wish);
/* Borrows from @bytes. QF_ECORRUPT. */
QF_MUST_CHECK qf_rc rg_wish_decode(struct qf_str bytes, struct rg_wish *ret_wish);
/* Make @wish's entry one of @now_ms on this ring. RG_APPLIED: it is worth a record, if nothing comes in between. */
enum rg_verdict rg_state_try(struct rg_state *state, struct rg_wish *wish, int64_t now_ms);

/* The error of an asker whose entry had @verdict, which is not RG_APPLIED. QF_OK: for RG_NOTHING. */
qf_rc rg_verdict_rc(enum rg_verdict verdict);

#endif
