/* arith.h - operators on native histograms; each makes a new one.
 *
 * Operands are borrowed, the result lives in @arena: what it shares with an operand is copied.
 * Buckets that come out empty are left out. NULL or false: the arena's budget is spent. */
#ifndef PROMQL_HISTOGRAM_ARITH_H
#define PROMQL_HISTOGRAM_ARITH_H

#include "promql/histogram/sum.h"

/* What is to be said of an addition or subtraction. */
struct pq_histogram_joined {
    struct pq_histogram *histogram; /* NULL if mixed */
    bool mixed;                     /* exponential and custom buckets: no result */
    bool reconciled;                /* custom bounds differed; the common ones are left */
    bool conflict;                  /* one operand is a reset, the other is none */
};

/* (a + factor * b) * scale, with what is to be said of it and a hint as for a + b. Additions that
 * need no reconciliation take no memory but the result's. */
QF_MUST_CHECK bool pq_histogram_combine(struct qf_arena *arena, const struct pq_histogram *a,
                                        const struct pq_histogram *b, double factor, double scale,
                                        struct pq_histogram_joined *ret);

/* a + b; a - b, which is always a gauge. */
QF_MUST_CHECK bool pq_histogram_add(struct qf_arena *arena, const struct pq_histogram *a,
                                    const struct pq_histogram *b, struct pq_histogram_joined *ret);
QF_MUST_CHECK bool pq_histogram_sub(struct qf_arena *arena, const struct pq_histogram *a,
                                    const struct pq_histogram *b, struct pq_histogram_joined *ret);

/* All counts and the sum by @factor. A negative factor makes a gauge. */
const struct pq_histogram *pq_histogram_mul(struct qf_arena *arena, const struct pq_histogram *h,
                                            double factor);
/* By zero: the counts are infinite or NaN, and no bucket is left but the zero bucket. */
const struct pq_histogram *pq_histogram_div(struct qf_arena *arena, const struct pq_histogram *h,
                                            double divisor);

/* A copy with another hint; buckets and bounds are shared with @h. */
const struct pq_histogram *pq_histogram_hinted(struct qf_arena *arena, const struct pq_histogram *h,
                                               enum pq_reset_hint hint);

#endif
