/* manifest_int.h - the inside of a manifest. */
#ifndef RING_CORE_MANIFEST_INT_H
#define RING_CORE_MANIFEST_INT_H

#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "ring/core/manifest.h"

struct rg_manifest {
    uint64_t applied, epoch;
    uint64_t forgotten; /* removals at or before this index may be forgotten */
    uint32_t slots, blobs_max, removed_max;
    uint64_t *slot_epochs;
    QF_VEC(struct rg_blob) blobs; /* in the order in which they were named; names are owned */
    struct qf_map by_name;        /* -> index into blobs */
    size_t named;
    uint64_t unsafe;
};

/* Add a blob, whose name is copied. */
void rg_manifest_add(struct rg_manifest *manifest, const struct rg_blob *blob);

#endif
