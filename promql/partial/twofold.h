/* twofold.h - numbers of twice the precision: the unevaluated sum of two doubles.
 *
 * Partial aggregates meet in another order whenever the number of shards changes. With 106 bits in
 * between, the 53 that are shown come out the same. Infinities and NaN carry no low part. */
#ifndef PROMQL_PARTIAL_TWOFOLD_H
#define PROMQL_PARTIAL_TWOFOLD_H

#include <math.h>

struct pq_twofold {
    double high, low; /* |low| is at most half a unit in the last place of high */
};

/* a + b, exactly (Knuth). */
static inline struct pq_twofold pq_two_sum(double a, double b)
{
    double sum = a + b, part = sum - a;

    if (!isfinite(sum))
        return (struct pq_twofold){ sum, 0 };
    return (struct pq_twofold){ sum, (a - (sum - part)) + (b - part) };
}

static inline struct pq_twofold pq_twofold_add(struct pq_twofold x, struct pq_twofold y)
{
    struct pq_twofold high = pq_two_sum(x.high, y.high), low = pq_two_sum(x.low, y.low);

    high = pq_two_sum(high.high, high.low + low.high);
    return pq_two_sum(high.high, high.low + low.low);
}

static inline struct pq_twofold pq_twofold_neg(struct pq_twofold x)
{
    return (struct pq_twofold){ -x.high, -x.low };
}

static inline struct pq_twofold pq_twofold_mul(struct pq_twofold x, struct pq_twofold y)
{
    double product = x.high * y.high;

    if (!isfinite(product))
        return (struct pq_twofold){ product, 0 };
    return pq_two_sum(product, fma(x.high, y.high, -product) + (x.high * y.low + x.low * y.high));
}

static inline struct pq_twofold pq_twofold_div(struct pq_twofold x, double divisor)
{
    double first = x.high / divisor;
    struct pq_twofold rest;

    if (!isfinite(first))
        return (struct pq_twofold){ first, 0 };
    rest = pq_twofold_add(x, pq_twofold_neg(pq_twofold_mul((struct pq_twofold){ first, 0 },
                                                           (struct pq_twofold){ divisor, 0 })));
    return pq_two_sum(first, rest.high / divisor);
}

#endif
