/* status.h - what ingest nodes say of samples that are in no segment a listing shows: one answer of
 * POST /v1/heads/status (docs/PROTOCOL.md), for one tenant.
 *
 * A partition's leader has confirmed itself before it answers. So the answer has everything that was
 * acknowledged before the question was asked: in segments up to sealed_index, and up to the log
 * position `applied` in its unsealed ranges, which any replica can be asked for. */
#ifndef QUERYAPI_FRESH_STATUS_H
#define QUERYAPI_FRESH_STATUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "segments/catalog/catalog.h"

/* Bounds of an answer. */
#define QA_STATUS_BYTES_MAX ((size_t)32 << 20)
#define QA_PARTITIONS_MAX 4096
#define QA_REPLICAS_MAX 16

/* A part of the log of one generation that is not in the store yet. */
struct qa_fresh_range {
    uint64_t generation;
    int64_t min_ts, max_ts; /* of its samples */
    uint64_t samples;
};

struct qa_fresh_partition {
    uint32_t number;
    struct qf_str queue; /* id of its queue: another one is another log */
    uint64_t applied;
    uint64_t sealed_index;
    bool list;       /* the files below are not all there are: list the store */
    int64_t floor;   /* older samples are in segments; INT64_MIN: there is no such time */
    uint32_t shards; /* of the segments that its samples become */
    const struct sg_catalog_file *files; /* sealed after what was said to be covered */
    size_t file_count;
    const struct qa_fresh_range *ranges;
    size_t range_count;
    const struct qf_str *replicas; /* base URLs, best first */
    size_t replica_count;
};

struct qa_status {
    atomic_uint refs;
    struct qf_arena *arena;
    struct qf_str cluster;
    uint64_t epoch;           /* rises whenever somebody joins or leaves a partition; 0: not told */
    int64_t query_timeout_ms; /* heads stay readable for so long; 0: not told */
    const struct qa_fresh_partition *partitions; /* by number, none missing; a power of two */
    size_t count;                                /* 0: nothing in heads concerns the query */
    bool list;                                   /* of one of them */
};

/* Read an answer. NULL and @err filled: QF_EPROTO for one that is not as documented, QF_ELIMIT for
 * one beyond the bounds. */
struct qa_status *qa_status_parse(struct qf_str json, struct qf_err *err);
/* That heads hold nothing of interest. */
struct qa_status *qa_status_none(void);
struct qa_status *qa_status_ref(struct qa_status *status);
/* Accepts NULL, returns NULL. */
struct qa_status *qa_status_drop(struct qa_status *status);

/* Does any unsealed range have samples in [@min_ts, @max_ts]? */
bool qa_range_overlaps(const struct qa_fresh_range *range, int64_t min_ts, int64_t max_ts);

#endif
