/* kahan.h - Kahan summation with Neumaier's improvement, as Prometheus adds floats.
 *
 * A running sum is a pair (sum, compensation); its value is sum + compensation, but the sum alone
 * once it is infinite. The order of the additions decides the last bits: keep it. */
#ifndef PROMQL_FUNC_KAHAN_H
#define PROMQL_FUNC_KAHAN_H

#include <math.h>

struct pq_kahan {
    double sum, compensation;
};

/* Add @value. The larger of the two terms is the one whose low bits survive in the sum, so the
 * rounding error is read off the smaller one. */
static inline void pq_kahan_add(struct pq_kahan *k, double value)
{
    double total = k->sum + value;

    if (isinf(total))
        k->compensation = 0;
    else if (fabs(k->sum) >= fabs(value))
        k->compensation += (k->sum - total) + value;
    else
        k->compensation += (value - total) + k->sum;
    k->sum = total;
}

/* Add another running sum. */
static inline void pq_kahan_merge(struct pq_kahan *into, const struct pq_kahan *from)
{
    pq_kahan_add(into, from->sum);
    if (!isinf(into->sum))
        into->compensation += from->compensation;
}

static inline double pq_kahan_value(const struct pq_kahan *k)
{
    return isinf(k->sum) ? k->sum : k->sum + k->compensation;
}

#endif
