/* total.h - the sum or the average of a group of native histograms, whoever comes first.
 *
 * Joining schemas and zero buckets one after the other may end in other buckets if the order is
 * another (Prometheus has one order, a fabric of shards has none). So histograms are first added up
 * by kind: same schema, same zero threshold or custom bounds, same hint about resets. Only when the
 * total is asked for are the kinds joined, in an order of their own.
 *
 * A total travels as addends: histograms that add up to it exactly. Adding those to another total,
 * in any order, is the same as adding what they came from. */
#ifndef PROMQL_HISTOGRAM_TOTAL_H
#define PROMQL_HISTOGRAM_TOTAL_H

#include "promql/histogram/sum.h"

struct pq_histogram_total {
    struct qf_arena *arena;
    enum pq_hsum_mode mode; /* EXACT for a sum, MEAN for an average */
    struct pq_histogram_sum *kinds;
    size_t count, capacity;
    double added; /* histograms, for the average */
    bool custom, exponential;
    unsigned hints; /* 1 << enum pq_reset_hint of all that was added */
};

void pq_htotal_init(struct pq_histogram_total *total, struct qf_arena *arena,
                    enum pq_hsum_mode mode);
/* Add one histogram, which is not kept. False: budget spent. */
QF_MUST_CHECK bool pq_htotal_add(struct pq_histogram_total *total, const struct pq_histogram *h);

/* Exponential and custom buckets came together: there is no total. */
static inline bool pq_htotal_mixed(const struct pq_histogram_total *total)
{
    return total->custom && total->exponential;
}

/* The total, or the average if the mode is MEAN, in @arena; the total is void afterwards.
 * *@ret_reconciled: custom bounds differed. Something was added, and pq_htotal_mixed is false. NULL:
 * budget spent. */
const struct pq_histogram *pq_htotal_value(struct pq_histogram_total *total, struct qf_arena *arena,
                                           bool *ret_reconciled);

struct pq_haddend {
    const struct pq_histogram *histogram;
    double added; /* how many histograms it stands for; 0: what rounding took from the one before */
    int shift;    /* its numbers are to be multiplied by 2^shift */
};
/* The addends of a total in its arena. False: budget spent. */
QF_MUST_CHECK bool pq_htotal_addends(const struct pq_histogram_total *total,
                                     struct pq_haddend **ret_addends, size_t *ret_count);
QF_MUST_CHECK bool pq_htotal_add_addend(struct pq_histogram_total *total,
                                        const struct pq_haddend *addend);

#endif
