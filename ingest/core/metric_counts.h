/* metric_counts.h - how many series of each metric there are, and which metrics have most. Pure. */
#ifndef INGEST_CORE_METRIC_COUNTS_H
#define INGEST_CORE_METRIC_COUNTS_H

#include <stdint.h>

#include "base/pure/map.h"
#include "base/pure/vec.h"

/* Names known at once; series of more are counted together. */
#define IN_METRICS_MAX 65536

struct in_metric_count {
    char *name; /* NULL: the place is free */
    size_t len;
    uint64_t series;
    uint32_t next_free; /* of a free place; 0: the last */
};

/* A zeroed one is empty. */
struct in_metric_counts {
    QF_VEC(struct in_metric_count) places; /* the first: of names for which there was no room */
    struct qf_map names;                   /* to places; those without series are still in it */
    uint32_t unused, first_free;           /* places without series that are not free */
};

void in_metric_counts_done(struct in_metric_counts *counts);

/* One more series of the metric: returns the number to say when it goes. */
uint32_t in_metric_counts_add(struct in_metric_counts *counts, struct qf_str name);
void in_metric_counts_remove(struct in_metric_counts *counts, uint32_t number);

/* The metrics with the most series, most first, equal ones by name; at most @max, returns how many. */
size_t in_metric_counts_top(const struct in_metric_counts *counts, size_t max,
                            const struct in_metric_count **ret_top);

#endif
