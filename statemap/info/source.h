/* source.h - copies of maps as a source of series, beside segments: see statemap/core/info.h for what their rows are.
 *
 * A copy is a file that a node of ours made and whose sum was compared (docs/maps.md, "Over HTTP"). LMDB follows what stands in
 * it: a file that somebody else made up could end the process, so nobody else's is ever opened here. */
#ifndef STATEMAP_INFO_SOURCE_H
#define STATEMAP_INFO_SOURCE_H

#include <stdatomic.h>

#include "promql/source.h"
#include "statemap/core/definition.h"

struct sm_info_map {
    const char *file; /* the copy */
    const char *name;
    struct sm_layout layout; /* of a keyed kind */
    const char *metric;
    int64_t interval_ms;
    uint64_t version; /* what the copy says of itself: QF_ECORRUPT if it is of another one */
};

struct sm_info_options {
    const struct sm_info_map *maps; /* of series that two maps have those of the first one count */
    size_t count;
    const struct pq_select *select;
    uint32_t shard, shard_count;
    uint64_t
        memory_max; /* of labels and rows, and of a series' samples; over it QF_ELIMIT. 0: none */
    bool presence;  /* one sample of each series is enough */
    const atomic_bool *cancel; /* or NULL */
    size_t about;              /* errors of a map are about its index and so much more */
};

/* All of it is borrowed until close, which frees the source. One thread. Errors of next() that are a map's:
 * QF_ENOTFOUND, QF_ECORRUPT, QF_EUNSUPPORTED, QF_EIO of its file. Never NULL. */
struct pq_source *sm_info_source_new(const struct sm_info_options *options);

#endif
