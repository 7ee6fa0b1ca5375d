/* claim_log.h - claims of imports on our own nodes: names in the log of the tenant's partition (claim.h says what claims are
 * for).
 *
 *     _below/tenant=T/GENERATION-ID    the mark: no import gets this generation any more, nor a lesser one
 *     _claims/tenant=T/GENERATION-ID   an import of this generation is under way
 *
 * Both are blobs of a few bytes. What leases and conditional puts do in a bucket the order of the log does here, exactly: an
 * entry that replaces names counts only if all of them are there (ring/core/manifest.h).
 *
 *   begin   one entry replaces the mark by a greater one and adds the claim. Of several at once one counts, the others look
 *           again: no two imports have one generation
 *   end     one entry replaces the claim by all that was imported. So a reader sees everything or nothing, and an import
 *           whose claim was taken away puts nothing, whenever its entry arrives
 *
 * Whoever merges segments raises the mark in the same way and then looks at the claims: it stays below them. An import that
 * died leaves its claim; the next import or merge of the tenant takes away those that are older than CLAIM_LOG_LIFE_MS. */
#ifndef SEGMENTS_WRITE_CLAIM_LOG_H
#define SEGMENTS_WRITE_CLAIM_LOG_H

#include "base/pure/vec.h"
#include "segments/write/claim.h"

#define CLAIM_LOG_PREFIX "_claims/"
#define CLAIM_LOG_LIFE_MS (INT64_C(24) * 3600 * 1000)

/* What a listing says, and what follows from it. Pure. */
struct claim_log_view {
    QF_VEC(char *) marks;  /* names */
    QF_VEC(char *) claims; /* names, of those that are dead */
    uint64_t greatest;     /* of the marks; 0: there is none */
    uint64_t least;        /* of the claims that live; 0: there is none */
    uint64_t dead_below;   /* claims of lesser generations are dead */
};
void claim_log_view_done(struct claim_log_view *view);
/* Hear of @name. False: it is neither a mark nor a claim. */
bool claim_log_hear(struct claim_log_view *view, struct qf_str name);
/* The generation that an import may have that wants @generation. */
uint64_t claim_log_choose(const struct claim_log_view *view, uint64_t generation);
/* Below which generation nobody adds files any more, of those below @below, if a mark is there that is not below @below - 1. */
uint64_t claim_log_settled(const struct claim_log_view *view, uint64_t below);

struct claim_log;

/* Claim @generation, which is one of an import (claim_of_import()), or the least above the mark. Errors of sg_claim_new(). */
QF_MUST_CHECK qf_rc claim_log_new(struct sg_store *store, struct qf_str tenant, uint64_t generation,
                                  const struct sg_store_call *call, struct claim_log **ret_log,
                                  struct qf_err *err);
uint64_t claim_log_generation(const struct claim_log *log);
/* sg_claim_settle(): raises the mark as an import does, then looks who has a claim. */
QF_MUST_CHECK qf_rc claim_log_settle(struct sg_store *store, struct qf_str tenant, uint64_t below,
                                     const struct sg_store_call *call, uint64_t *ret_below,
                                     struct qf_err *err);
/* It is there still, or was replaced by what was imported. QF_ENOTFOUND: it was taken away. */
QF_MUST_CHECK qf_rc claim_log_check(struct claim_log *log, const struct sg_store_call *call,
                                    struct qf_err *err);
/* sg_claim_name() */
QF_MUST_CHECK qf_rc claim_log_name(struct claim_log *log, const struct sg_claim_naming *naming,
                                   const struct sg_store_call *call, struct qf_err *err);
/* Take the claim away if it is there: nothing counts with it any more. */
QF_MUST_CHECK qf_rc claim_log_drop(struct claim_log *log, const struct sg_store_call *call,
                                   struct qf_err *err);
/* The same, if that is possible: else it stays until it is too old, which does no harm. Accepts NULL, returns NULL. */
struct claim_log *claim_log_end(struct claim_log *log, const struct sg_store_call *call);

/* The generation of an import for @generation: never less, and in the same order (claim.h). */
uint64_t claim_of_import(uint64_t generation);

#endif
