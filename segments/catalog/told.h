/* told.h - segments that are in the store although no listing has shown them yet.
 *
 * Who puts segments may tell of them at once (an ingest node does, in what it says of its heads),
 * while a listing of a bucket takes its time. A told segment counts in lookups until a listing of
 * its folder that began later has ended: from then on the listing knows better. A set is immutable
 * and shared, like a snapshot. */
#ifndef SEGMENTS_CATALOG_TOLD_H
#define SEGMENTS_CATALOG_TOLD_H

#include "segments/catalog/index.h"

struct sg_catalog_told {
    atomic_uint refs;
    struct told_entry {
        struct index_entry entry; /* without a summary */
        struct qf_str tenant, folder;
        uint64_t number; /* grows with each call of sg_catalog_tell() */
    } * entries;         /* by name */
    size_t count;
    struct qf_arena *arena;
};

/* @old (or NULL) and @files, which replace those of the same names. NULL and @err filled: QF_EINVAL
 * for a name that is not a segment's, QF_ELIMIT for more than SG_CATALOG_TOLD_MAX. */
struct sg_catalog_told *told_add(const struct sg_catalog_told *old,
                                 const struct sg_catalog_file *files, size_t count, uint64_t number,
                                 struct qf_err *err);
/* @old without what @gone says of, or NULL if that is all of it. */
typedef bool told_gone_fn(const void *ctx, const struct told_entry *entry);
struct sg_catalog_told *told_without(const struct sg_catalog_told *old, told_gone_fn *gone,
                                     const void *ctx);

#endif
