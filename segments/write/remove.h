/* remove.h - take whole segments of a tenant and a time range out of a store, and its annexes.
 *
 * A segment goes if all of its samples are in the range; one that the range cuts stays as it is and
 * is counted. So do annexes (segments/annex/annex.h), by the times of exemplars and those at which metadata was told. Names alone decide, so a damaged segment goes like any other. Removing is harmless to
 * repeat, to interrupt anywhere and to do twice at once. Readers of a bucket are told by notes
 * (changes.h), at least every second and at the end; a query that misses a segment meanwhile plans
 * again. Compaction takes turns with a removal that says so (segments/store/turn.h): else a merge under way could bring back what goes, which
 * does not matter where nobody looks at it any more (behind a retention). */
#ifndef SEGMENTS_WRITE_REMOVE_H
#define SEGMENTS_WRITE_REMOVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "segments/parquet/segment_name.h"
#include "segments/store/store.h"

/* Deletions a second, so that a large removal leaves the store to others. */
#define SG_REMOVE_PER_SECOND 100

struct sg_remove_options {
    struct sg_store *store;
    struct qf_str tenant;
    int64_t min_ts, max_ts; /* inclusive */
    /* What is above max_ts is still told: of metadata SG_ANNEX_TOLD_MS more stays. */
    bool retention;
    bool dry_run;               /* delete nothing, tell what would go */
    bool for_good;              /* take turns with compaction, for which it may wait */
    void (*on_wait)(void *ctx); /* told once if it does; or NULL */
    unsigned per_second;        /* 0: SG_REMOVE_PER_SECOND */
    const atomic_bool *cancel;  /* or NULL */
    /* Called for each segment before it goes (@cut: that stays because the range cuts it), and for each annex,
     * without a @name; false ends the removal, which is no error. May be NULL. */
    bool (*on_segment)(void *ctx, const struct sg_store_object *object,
                       const struct sg_segment_name *name, bool cut);
    void *ctx;
};

struct sg_remove_figures {
    uint64_t segments, bytes;
    int64_t min_ts, max_ts; /* of their samples; min_ts > max_ts: there are none */
    uint64_t annexes;
};

struct sg_remove_result {
    struct sg_remove_figures gone; /* or would go */
    struct sg_remove_figures cut;  /* stay because the range cuts them */
    bool ended;                    /* on_segment() ended it early */
};

/* Errors of the store; QF_ENOTFOUND, QF_ETIMEOUT: it took so long over a request that compaction went on, do it again. @ret_result says how far it came, also after an error. */
QF_MUST_CHECK qf_rc sg_remove(const struct sg_remove_options *options,
                              struct sg_remove_result *ret_result, struct qf_err *err);

/* Call @fn for each tenant that the store has segments or annexes of, in order; return false to end. */
typedef bool sg_remove_tenant_fn(void *ctx, struct qf_str tenant);
QF_MUST_CHECK qf_rc sg_remove_tenants(struct sg_store *store, const struct sg_store_call *call,
                                      sg_remove_tenant_fn *fn, void *ctx, struct qf_err *err);

#endif
