/* sum.c - sum and avg: partial sums that come out the same in any order. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "promql/func/aggregate.h"
#include "promql/partial/partial.h"
#include "promql/partial/twofold.h"

static const struct pq_leaf_kind sum_kind = { "sum",
                                              3,
                                              { "sum", "compensation", "compensation_low" } };
static const struct pq_leaf_kind avg_kind = {
    "avg", 5, { "sum", "compensation", "compensation_low", "count", "mean" }
};

/* A running sum, what was lost in adding to it, and what was lost in adding that up: so much that
 * even where large numbers cancel out the order of the additions does not show. The first two are
 * the compensated sum of Prometheus. */
struct sum {
    double sum, lost, lost_low;
};

/* The exact error of total = a + b (Knuth). */
static inline double sum_error(double a, double b, double total)
{
    double part = total - a;

    return (a - (total - part)) + (b - part);
}

static inline struct sum sum_add(struct sum s, double value)
{
    double total = s.sum + value;
    double error = sum_error(s.sum, value, total);
    double lost = s.lost + error;
    double low = s.lost_low + sum_error(s.lost, error, lost);
    bool finite = fabs(total) <= DBL_MAX;

    return (struct sum){ total, finite ? lost : 0, finite ? low : 0 };
}

static struct sum sum_merge(struct sum s, struct sum other)
{
    double lost;

    s = sum_add(s, other.sum);
    if (!isfinite(s.sum))
        return s;
    lost = s.lost + other.lost;
    s.lost_low += sum_error(s.lost, other.lost, lost) + other.lost_low;
    s.lost = lost;
    return s;
}

/* In normal form: how a sum is split up depends on the order of the additions. */
static struct pq_twofold sum_value(struct sum s)
{
    struct pq_twofold value = pq_two_sum(s.sum, s.lost);

    return isfinite(value.high) ? pq_two_sum(value.high, value.low + s.lost_low) : value;
}

/* Two steps at once: compilers do not find this by themselves without reordering additions. */
typedef double pair __attribute__((vector_size(16)));
typedef long long pair_mask __attribute__((vector_size(16)));

static inline pair load_pair(const double *from)
{
    pair p;

    memcpy(&p, from, sizeof(p));
    return p;
}

static inline void store_pair(double *to, pair p)
{
    memcpy(to, &p, sizeof(p));
}

static inline pair pair_error(pair a, pair b, pair total)
{
    pair part = total - a;

    return (a - (total - part)) + (b - part);
}

/* sum_add() for steps that all have a value; returns how many were done. */
static size_t add_sum_pairs(double *sum, double *lost, double *lost_low, const double *values,
                            size_t count)
{
    size_t k = 0;

    for (; k + 2 <= count; k += 2) {
        pair s = load_pair(sum + k), v = load_pair(values + k), l = load_pair(lost + k);
        pair total = s + v;
        pair error = pair_error(s, v, total), sum_of_lost = l + error;
        pair low = load_pair(lost_low + k) + pair_error(l, error, sum_of_lost);
        pair_mask finite = (total <= DBL_MAX) & (total >= -DBL_MAX);

        store_pair(sum + k, total);
        store_pair(lost + k, (pair)((pair_mask)sum_of_lost & finite));
        store_pair(lost_low + k, (pair)((pair_mask)low & finite));
    }
    return k;
}

/* A value that is not there is added as zero, which changes nothing. */
static void add_sum(double *const *columns, const uint8_t *seen, const double *values,
                    const uint8_t *present, size_t count)
{
    double *sum = columns[0], *lost = columns[1], *lost_low = columns[2];
    size_t k = memchr(present, 0, count) ? 0 : add_sum_pairs(sum, lost, lost_low, values, count);

    (void)seen;
    for (; k < count; k++) {
        struct sum s =
            sum_add((struct sum){ sum[k], lost[k], lost_low[k] }, present[k] ? values[k] : 0);

        sum[k] = s.sum;
        lost[k] = s.lost;
        lost_low[k] = s.lost_low;
    }
}

static void merge_sum(double *into, const double *from)
{
    struct sum sum = sum_merge((struct sum){ into[0], into[1], into[2] },
                               (struct sum){ from[0], from[1], from[2] });

    into[0] = sum.sum;
    into[1] = sum.lost;
    into[2] = sum.lost_low;
}

static double value_of_sum(const double *partial)
{
    return sum_value((struct sum){ partial[0], partial[1], partial[2] }).high;
}

const struct pq_aggregation pq_aggregation_sum = {
    .id = PQ_AGG_SUM,
    .shape = PQ_AGG_FOLDS,
    .kind = &sum_kind,
    .histograms = PQ_HISTOGRAMS_EITHER,
    .add = add_sum,
    .merge = merge_sum,
    .value = value_of_sum,
};

/* Once a sum overflows, the average goes on with the running mean (func/aggregate.h); its sum
 * column then is an infinity, which no average of two values or more has otherwise. */
struct average {
    struct sum sum;
    double count, mean;
};

static struct average load_average(const double *partial)
{
    return (struct average){ { partial[0], partial[1], partial[2] }, partial[3], partial[4] };
}

static void store_average(const struct average *avg, double *partial)
{
    partial[0] = avg->sum.sum;
    partial[1] = avg->sum.lost;
    partial[2] = avg->sum.lost_low;
    partial[3] = avg->count;
    partial[4] = avg->mean;
}

static bool has_overflowed(const struct average *avg)
{
    return isinf(avg->sum.sum) && avg->count > 1;
}

static struct pq_avg to_running_mean(const struct average *avg)
{
    bool is_mean = has_overflowed(avg);

    return (struct pq_avg){ .sum = { is_mean ? 0 : avg->sum.sum, avg->sum.lost },
                            .count = avg->count,
                            .mean = avg->mean,
                            .is_mean = is_mean };
}

static struct average from_running_mean(const struct pq_avg *avg)
{
    return (struct average){ { avg->is_mean ? (double)INFINITY : avg->sum.sum,
                               avg->sum.compensation, 0 },
                             avg->count,
                             avg->mean };
}

static struct average average_add(struct average avg, double value)
{
    struct sum sum = sum_add(avg.sum, value);
    struct pq_avg running;

    if (avg.count == 0 || (!has_overflowed(&avg) && !isinf(sum.sum)))
        return (struct average){ avg.count == 0 ? (struct sum){ value, 0, 0 } : sum, avg.count + 1,
                                 0 };
    running = to_running_mean(&avg);
    pq_avg_add(&running, value);
    return from_running_mean(&running);
}

static struct average average_merge(struct average avg, struct average other)
{
    struct sum sum = sum_merge(avg.sum, other.sum);
    struct pq_avg running = to_running_mean(&avg), add = to_running_mean(&other);

    if (!has_overflowed(&avg) && !has_overflowed(&other) && !isinf(sum.sum))
        return (struct average){ sum, avg.count + other.count, 0 };
    pq_avg_merge(&running, &add);
    return from_running_mean(&running);
}

static double average_value(const struct average *avg)
{
    struct pq_twofold sum = sum_value(avg->sum);
    struct pq_avg running;

    if (!has_overflowed(avg))
        return sum.high / avg->count + sum.low / avg->count;
    running = to_running_mean(avg);
    return pq_avg_value(&running);
}

static void add_average(double *const *columns, const uint8_t *seen, const double *values,
                        const uint8_t *present, size_t count)
{
    (void)seen;
    for (size_t k = 0; k < count; k++) {
        double partial[5];
        struct average avg;

        if (!present[k])
            continue;
        for (size_t c = 0; c < 5; c++)
            partial[c] = columns[c][k];
        avg = average_add(load_average(partial), values[k]);
        store_average(&avg, partial);
        for (size_t c = 0; c < 5; c++)
            columns[c][k] = partial[c];
    }
}

static void merge_average(double *into, const double *from)
{
    struct average avg = average_merge(load_average(into), load_average(from));

    store_average(&avg, into);
}

static double value_of_average(const double *partial)
{
    struct average avg = load_average(partial);

    return average_value(&avg);
}

const struct pq_aggregation pq_aggregation_avg = {
    .id = PQ_AGG_AVG,
    .shape = PQ_AGG_FOLDS,
    .kind = &avg_kind,
    .histograms = PQ_HISTOGRAMS_EITHER,
    .add = add_average,
    .merge = merge_average,
    .value = value_of_average,
};
