/* claim.h - which generations may still get files: agreed between writers and compactors, in the store.
 *
 * A compactor may merge files only if nobody can put another one of a generation among theirs (segments/plan/plan.h). So a
 * writer claims its generation before it puts anything, and a compactor says up to where it will go before it looks who
 * has claimed what:
 *
 *     writer      1. adds its lease, which names the generation       2. looks at the mark: at or below it, it takes a
 *                                                                         greater generation
 *                 3. raises the mark to its generation
 *     compactor   1. puts the mark                                    2. looks at the leases: it stays below them
 *
 * So each import has a generation of its own, above those of all that began before it, whatever clocks say: of samples that
 * two imports have the later one's count. (Where a server has no conditional puts, two that begin at the same moment may
 * share one.) A clock that is ahead of the store's does not count.
 *
 * Generations are times in microseconds. Those of imports are of the second half of a millisecond, those of ranges of ingest
 * nodes of the first (ingest/core/ledger.h): where both rise above what a compactor has settled they never meet.
 *
 * Whoever comes second sees the other. A writer that has put all its files looks whether its lease is still there: if it
 * was broken, which happens to those that seem dead, it takes its files back.
 *
 *     _leases/import/tenant=T/ID        segments/store/lease.h; text "generation N", or "ended N" for a while after the end
 *     _below/tenant=T/GENERATION        the mark, 20 digits: no import gets this any more, nor a lesser one; the greatest counts
 *     _ingest/tenant=T                  ingest nodes seal ranges of this tenant, whose generations only they know
 *     _ingest/clusters/tenant=T/HEX     of which cluster these are
 *
 * On our own nodes there are no leases: the log of ingest nodes says who was first (claim_log.h), and an import names all its
 * files in the entry that gives up its claim. */
#ifndef SEGMENTS_WRITE_CLAIM_H
#define SEGMENTS_WRITE_CLAIM_H

#include "segments/store/store.h"

#define SG_CLAIM_MARK_PREFIX "_below/"
#define SG_CLAIM_INGEST_PREFIX "_ingest/"
/* How long a writer that does not renew its claim counts as alive. */
#define SG_CLAIM_TTL_MS INT64_C(600000)
/* A claim that ended is remembered at least as long: listings may show files late. */
#define SG_CLAIM_ENDED_MS INT64_C(3600000)

struct sg_claim;

/* Is it a generation of imports? Whatever is merged of files of imports alone has one as well, and likewise of ranges. */
bool sg_claim_is_import(uint64_t generation);

/* Claim @generation of @tenant, or the least above the mark; either way one that an import may have, and no later than the
 * store's time by more than a minute. QF_EBUSY: too many begin at once; else the errors of the store. */
QF_MUST_CHECK qf_rc sg_claim_new(struct sg_store *store, struct qf_str tenant, uint64_t generation,
                                 const struct sg_store_call *call, struct sg_claim **ret_claim,
                                 struct qf_err *err);
uint64_t sg_claim_generation(const struct sg_claim *claim);
/* Renew it if a third of its time is over; to be called now and then. Whether it went well sg_claim_check() tells. */
void sg_claim_tick(struct sg_claim *claim, const struct sg_store_call *call);
/* Files put so far are safe. QF_ENOTFOUND: the claim was broken: take them back. QF_ETIMEOUT: it was not renewed in time:
 * likewise. Else the errors of the store. */
QF_MUST_CHECK qf_rc sg_claim_check(struct sg_claim *claim, const struct sg_store_call *call,
                                   struct qf_err *err);

/* Blobs that lie with their owners on our own nodes (segments/store/ring.h). */
struct rg_blob;
struct sg_claim_naming {
    const struct rg_blob *blobs;
    size_t count;
    uint64_t epoch; /* the least in which owners were counted */
    bool more;      /* the claim goes on: others follow */
};
/* At most so many at once. */
#define SG_CLAIM_NAMES_MAX 4000
/* Name all of them, if the claim is there, and give it up in the same step. To do it again is harmless. QF_ENOTFOUND: the
 * claim was broken, nothing was named. QF_EGONE: nothing was named, owners changed: place them again. Others: whether they
 * were named is not known. */
QF_MUST_CHECK qf_rc sg_claim_name(struct sg_claim *claim, const struct sg_claim_naming *naming,
                                  const struct sg_store_call *call, struct qf_err *err);
/* Before names are taken back: no entry of sg_claim_name() that is still on its way counts from now on. */
QF_MUST_CHECK qf_rc sg_claim_drop(struct sg_claim *claim, const struct sg_store_call *call,
                                  struct qf_err *err);
/* All files are there, or none. Accepts NULL, returns NULL. */
struct sg_claim *sg_claim_end(struct sg_claim *claim);

/* For a compactor: generations below *ret_below get no more files of writers that claim theirs. It is at most @below, and
 * everything that was put under one of these shows in a listing that begins now. @settle_ms: how long a file may take to
 * show in a listing; at most SG_CLAIM_ENDED_MS. Claims of the dead are broken. */
QF_MUST_CHECK qf_rc sg_claim_settle(struct sg_store *store, struct qf_str tenant, uint64_t below,
                                    int64_t settle_ms, const struct sg_store_call *call,
                                    uint64_t *ret_below, struct qf_err *err);

/* Ranges of ingest nodes have generations that were fixed when they opened, long before they are put. Their nodes leave
 * word of it in the store before they put the first file of a tenant. */
QF_MUST_CHECK qf_rc sg_claim_ingest(struct sg_store *store, struct qf_str tenant, uint64_t cluster,
                                    const struct sg_store_call *call, struct qf_err *err);
QF_MUST_CHECK qf_rc sg_claim_has_ingest(struct sg_store *store, struct qf_str tenant,
                                        const struct sg_store_call *call, bool *ret_has,
                                        struct qf_err *err);
/* QF_EINVAL: nodes of another cluster than @cluster (hex) have sealed ranges of the tenant, and @err names it: whoever asked
 * these nodes alone does not know what those have not sealed. */
QF_MUST_CHECK qf_rc sg_claim_only_cluster(struct sg_store *store, struct qf_str tenant,
                                          const char *cluster, const struct sg_store_call *call,
                                          struct qf_err *err);

#endif
