/* source.h - where a leaf gets its samples: the series of one shard, one at a time. */
#ifndef PROMQL_SOURCE_H
#define PROMQL_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/labels.h"
#include "promql/value.h"

/* What a leaf wants to read. Times are inclusive milliseconds. */
struct pq_select {
    const struct pq_matcher *matchers;
    size_t matcher_count;
    int64_t min_ts, max_ts;
};

/* One series with all its samples in the selected time range, ascending, no duplicate timestamps.
 * Stale markers are included. Borrowed until the next call. */
struct pq_series {
    struct qf_labels labels;
    const int64_t *ts;
    const double *values;
    const struct pq_histogram *const *histograms; /* NULL, or per sample NULL for a float */
    const int64_t *start_ts;                      /* NULL, or per sample; 0: unknown */
    size_t count;
    bool no_stale; /* none of the samples is a stale marker, which is known; false: look */
};

/* Series come sorted by qf_labels_cmp, each once; ones without samples in range may be left out. */
struct pq_source {
    /* *ret_more false: no further series. QF_ECANCELED when the work was canceled. */
    qf_rc (*next)(struct pq_source *source, struct pq_series *ret_series, bool *ret_more,
                  struct qf_err *err);
    void (*close)(struct pq_source *source);
};

/* The series of both, of one shard. Of two samples of a series at one time that of @first counts. Closing it closes both.
 * Never NULL. */
struct pq_source *pq_source_both(struct pq_source *first, struct pq_source *second);

#endif
