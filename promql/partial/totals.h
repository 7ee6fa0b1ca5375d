/* totals.h - the native histograms of a group, added up step by step.
 *
 * They are kept apart from the floats: a group that has both at a step has no value there. A total
 * travels as addends (histogram/total.h), one row each: the histogram, and in the first two value
 * columns how many histograms it stands for and its shift. */
#ifndef PROMQL_PARTIAL_TOTALS_H
#define PROMQL_PARTIAL_TOTALS_H

#include "promql/histogram/total.h"
#include "promql/partial/partial.h"

/* Value columns of a row that is an addend; the others are 0. */
enum { PQ_ADDEND_ADDED, PQ_ADDEND_SHIFT };

/* The total at @i of @count; array and total are made in @arena when they are first asked for.
 * NULL: budget spent. */
struct pq_histogram_total *pq_total_at(struct pq_histogram_total ***totals, size_t count, size_t i,
                                       const struct pq_aggregation *agg, struct qf_arena *arena);

/* Where the value of a total goes, and what is to be said of it. */
struct pq_total_reader {
    struct qf_arena *scope;
    struct pq_notes *notes;
    struct pq_pos pos;
};

/* The value of a group that has histograms, and floats as well if @floats. The total is void
 * afterwards. ret_value->histogram NULL: there is none, and a note says why. False: budget spent. */
QF_MUST_CHECK bool pq_total_value(const struct pq_total_reader *reader,
                                  struct pq_histogram_total *total, bool floats,
                                  struct pq_value *ret_value);

#endif
