/* collect.h - the inside of a collection: collect.c fills it, encode.c writes it. */
#ifndef SEGMENTS_ANNEX_COLLECT_H
#define SEGMENTS_ANNEX_COLLECT_H

#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "segments/annex/annex.h"

struct sg_annex {
    size_t bytes_max;
    struct qf_arena *arena; /* texts */
    struct qf_map series;   /* each once */
    QF_VEC(struct sg_exemplar) exemplars;
    struct qf_map names; /* to places in: */
    QF_VEC(struct sg_metadata) metadata;
};

#endif
