/* aggregate.h - accumulators of the aggregators: add values, merge partial results, read the value.
 *
 * A zeroed accumulator is empty; reading an empty one is meaningless. Adding values one by one in
 * the order of the series gives what Prometheus gives. A partial is what a leaf ships; the members
 * are the columns of its artifact (leaf_result.h). */
#ifndef PROMQL_FUNC_AGGREGATE_H
#define PROMQL_FUNC_AGGREGATE_H

#include <math.h>
#include <stdbool.h>

#include "promql/func/kahan.h"

/* avg, avg_over_time. Until an addition overflows it is a compensated sum; from then on `sum` holds
 * zero and `mean` the running mean, with the same compensation. */
struct pq_avg {
    struct pq_kahan sum;
    double count;
    double mean;
    bool is_mean; /* set once the sum overflowed */
};

void pq_avg_add(struct pq_avg *avg, double value);
void pq_avg_merge(struct pq_avg *into, const struct pq_avg *from);
/* Equal to the last bit however the values were split into partials (short of an overflow). */
double pq_avg_value(const struct pq_avg *avg);

/* min, max: the first value, or a smaller (larger) one, or anything after a NaN. */
static inline double pq_min_add(double min, double value)
{
    return min > value || isnan(min) ? value : min;
}
static inline double pq_max_add(double max, double value)
{
    return max < value || isnan(max) ? value : max;
}

#endif
