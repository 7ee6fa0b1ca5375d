/* extras.h - exemplars and metadata of a partition: the newest ones, in memory, for all tenants.
 *
 * They answer questions until what was asked for is in the store (annex.h), and as long as there is room.
 *
 * Of exemplars there is a number in all: when it is reached, the oldest of the tenant go that adds, or,
 * while that has less than its share, of the one that has most. Metadata is the newest of each metric's name; a name too many is not kept, and
 * counted. One thread (the queue's) adds, any thread reads: a lock is held for some hundred entries
 * at a time. */
#ifndef INGEST_HEAD_EXTRAS_H
#define INGEST_HEAD_EXTRAS_H

#include "ingest/core/extras.h"
#include "promql/ast.h"
#include "segments/annex/found.h"

struct in_extras;

struct in_extras_limits {
    /* Zero means the default. */
    uint32_t exemplars_max; /* 100000, and of one 4 KiB at most */
    uint32_t metadata_max;  /* 400000, of one tenant a quarter of them */
};

struct in_extras *in_extras_new(const struct in_extras_limits *limits);
struct in_extras *in_extras_free(struct in_extras *extras); /* Accepts NULL, returns NULL. */
void in_extras_clear(struct in_extras *extras);

/* Everything in @bytes, of a record of a range of @tenant. */
void in_extras_add(struct in_extras *extras, struct qf_str tenant, uint64_t generation,
                   struct qf_str bytes);
/* So many found no place on their way into the store (annex.h). */
void in_extras_drop(struct in_extras *extras, uint64_t count);

struct in_extras_figures {
    uint64_t exemplars, metadata;
    uint64_t exemplars_dropped, metadata_refused; /* since the start */
    uint64_t not_sealed;                          /* since the start */
};
struct in_extras_figures in_extras_figures(struct in_extras *extras);

struct in_exemplars_ask {
    struct qf_str tenant;
    int64_t min_ts, max_ts;
    /* Selectors: a series that one of them matches counts. */
    const struct pq_matcher *const *matchers;
    const size_t *matcher_counts;
    size_t selector_count;
};
/* Those that match are added to @found, in no order. QF_ELIMIT: more than the arena holds. */
QF_MUST_CHECK qf_rc in_extras_exemplars(struct in_extras *extras,
                                        const struct in_exemplars_ask *ask, struct qf_arena *arena,
                                        struct sg_found *found, struct qf_err *err);
/* Metadata, and which range told it. */
struct in_found_metadata {
    struct in_metadata is;
    uint64_t generation;
};
/* The metadata of @tenant, of @metric alone if it is not empty, by name. QF_ELIMIT. */
QF_MUST_CHECK qf_rc in_extras_metadata(struct in_extras *extras, struct qf_str tenant,
                                       struct qf_str metric, struct qf_arena *arena,
                                       struct in_found_metadata **ret_metadata, size_t *ret_count,
                                       struct qf_err *err);

#endif
