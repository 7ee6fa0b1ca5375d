/* sum.h - adding up native histograms.
 *
 * A running sum holds the buckets of both sides as cells in order of their index. What is added is
 * first brought to buckets that both have:
 *   - the coarser of two exponential schemas; neighbours are joined;
 *   - the wider zero bucket. A populated bucket that the wider threshold would cut widens it
 *     further, to that bucket's own end;
 *   - the custom bounds that both have (reconciled is set if they differ).
 * Exponential and custom buckets have nothing in common and are never added.
 *
 * How exact a sum is, is its mode. PLAIN adds doubles, as operators and rates of Prometheus do.
 * EXACT keeps what is lost in rounding, and what is lost in keeping that: whatever the order of the
 * additions, the same bits come out (Prometheus compensates less, and has one order only). MEAN is
 * EXACT for sums that will be divided: where one would overflow, all numbers are held at a power of
 * two of their size.
 *
 * Memory is taken from the arena given at the start; a sum itself owns nothing. */
#ifndef PROMQL_HISTOGRAM_SUM_H
#define PROMQL_HISTOGRAM_SUM_H

#include "promql/histogram/layout.h"

enum pq_hsum_mode { PQ_HSUM_PLAIN, PQ_HSUM_EXACT, PQ_HSUM_MEAN };

/* The shift of a mean that would overflow: 2^64 is more than any count of addends, and so little
 * that only numbers near the smallest ones lose digits. */
#define PQ_HSUM_MEAN_SHIFT 64

/* A number as it is added up: its value is the sum of the three. */
struct pq_hsum_term {
    double sum, lost, low;
};

struct pq_hsum_cell {
    int64_t index;
    struct pq_hsum_term term;
};

struct pq_hsum_side {
    struct pq_hsum_cell *cells;
    size_t count, capacity;
};

struct pq_histogram_sum {
    struct qf_arena *arena;
    enum pq_hsum_mode mode;
    bool any;        /* something was added */
    bool reconciled; /* custom bounds differed */
    unsigned hints;  /* 1 << enum pq_reset_hint of all that was added */
    int32_t schema;
    double zero_threshold;
    struct pq_hsum_term zero, count, sum;
    struct pq_hsum_side sides[PQ_SIDE__COUNT];
    const double *bounds; /* of custom buckets */
    size_t bound_count;
    double peak; /* MEAN: no number is larger than this */
    int shift;   /* MEAN: numbers are held divided by 2^shift */
};

enum pq_hsum_result {
    PQ_HSUM_OK,
    PQ_HSUM_MIXED,     /* exponential and custom buckets: nothing was added */
    PQ_HSUM_NO_MEMORY, /* the arena's budget is spent: the sum is void */
};

void pq_hsum_init(struct pq_histogram_sum *sum, struct qf_arena *arena, enum pq_hsum_mode mode);

/* Add @factor times @h, which is not kept. */
QF_MUST_CHECK enum pq_hsum_result pq_hsum_add(struct pq_histogram_sum *sum,
                                              const struct pq_histogram *h, double factor);
/* Add all of @from, which is void afterwards. Both have the same mode and arena. */
QF_MUST_CHECK enum pq_hsum_result pq_hsum_merge(struct pq_histogram_sum *sum,
                                                struct pq_histogram_sum *from);
/* The sum divided by @divisor (1: the sum itself) as a histogram in @arena, without empty buckets.
 * NULL: budget spent. */
struct pq_histogram *pq_hsum_value(const struct pq_histogram_sum *sum, double divisor,
                                   struct qf_arena *arena);

/* One of the three parts that the numbers of a sum are held in, as a histogram in its arena; the
 * parts add up to the sum divided by 2^shift. NULL: budget spent. */
enum pq_hsum_part { PQ_HSUM_HIGH, PQ_HSUM_LOST, PQ_HSUM_LOW, PQ_HSUM_PART__COUNT };
const struct pq_histogram *pq_hsum_part(const struct pq_histogram_sum *sum, enum pq_hsum_part part);

/* What is known of resets after adding up: gauge wins, equal hints stay, others say nothing. */
enum pq_reset_hint pq_hints_combined(unsigned hints);
/* One says there was a reset, another that there was none. */
bool pq_hints_conflict(unsigned hints);

/* What sums are made of; see sum_fit.c and above. */
bool pq_hsum_load(struct pq_histogram_sum *sum, const struct pq_histogram *h, double factor);
void pq_hsum_term_merge(struct pq_hsum_term *into, struct pq_hsum_term from, bool exact);
double pq_hsum_term_value(struct pq_hsum_term term);
/* Bring both to the same schema, zero bucket or bounds. Both are exponential, or both custom. */
QF_MUST_CHECK bool pq_hsum_fit(struct pq_histogram_sum *a, struct pq_histogram_sum *b);

#endif
