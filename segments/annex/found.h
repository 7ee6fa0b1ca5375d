/* found.h - exemplars that somebody asked for: put in order, and as Prometheus's JSON. Pure. */
#ifndef SEGMENTS_ANNEX_FOUND_H
#define SEGMENTS_ANNEX_FOUND_H

#include "base/pure/labels.h"

struct sg_found_exemplar {
    struct qf_labels series, labels;
    double value;
    int64_t ts;
};
struct sg_found {
    struct sg_found_exemplar *items; /* in the arena of the question */
    size_t count;
};

/* Append a copy; what it points to stays where it is. False: the arena is spent. */
QF_MUST_CHECK bool sg_found_add(struct sg_found *found, struct qf_arena *arena,
                                const struct sg_found_exemplar *exemplar);
/* By series and time, equal ones once. */
void sg_found_sort(struct sg_found *found);
/* [{"seriesLabels":{},"exemplars":[{"labels":{},"value":"1","timestamp":1.234}]}], of what is in order; of at most @limit
 * series, 0: of all. */
void sg_found_print(struct qf_strbuf *buf, const struct sg_found *found, uint64_t limit);

#endif
