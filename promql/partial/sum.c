/* sum.c - sum and avg: partial sums that come out the same in any order. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "promql/func/aggregate.h"
#include "promql/func/pair.h"
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

/* sum_add() for two steps that both have a value. Where the total is not finite, what was lost is no
 * number. */
struct sum_pair {
    pq_pair sum, lost, lost_low;
};

static inline struct sum_pair add_pair(double *const *columns, size_t k, const double *values)
{
    pq_pair sum = pq_pair_load(columns[0] + k), value = pq_pair_load(values + k);
    pq_pair lost = pq_pair_load(columns[1] + k), total = sum + value;
    pq_pair error = pq_pair_error(sum, value, total), sum_of_lost = lost + error;
    pq_pair low = pq_pair_load(columns[2] + k) + pq_pair_error(lost, error, sum_of_lost);

    return (struct sum_pair){ total, sum_of_lost, low };
}

/* Returns how many steps were done. */
static size_t add_sum_pairs(double *const *columns, const double *values, size_t count)
{
    size_t k = 0;

    for (; k + 2 <= count; k += 2) {
        struct sum_pair s = add_pair(columns, k, values);
        pq_pair_mask finite = pq_pair_finite(s.sum);

        pq_pair_store(columns[0] + k, s.sum);
        pq_pair_store(columns[1] + k, pq_pair_where(finite, s.lost));
        pq_pair_store(columns[2] + k, pq_pair_where(finite, s.lost_low));
    }
    return k;
}

/* A value that is not there is added as zero, which changes nothing. */
static void add_sum(double *const *columns, const uint8_t *seen, const double *values,
                    const uint8_t *present, size_t count)
{
    double *sum = columns[0], *lost = columns[1], *lost_low = columns[2];
    size_t k = memchr(present, 0, count) ? 0 : add_sum_pairs(columns, values, count);

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

static void add_one_average(double *const *columns, size_t k, double value)
{
    double partial[5];
    struct average avg;

    for (size_t c = 0; c < 5; c++)
        partial[c] = columns[c][k];
    avg = average_add(load_average(partial), value);
    store_average(&avg, partial);
    for (size_t c = 0; c < 5; c++)
        columns[c][k] = partial[c];
}

/* average_add() for steps that all have a value: while sums are finite there is no mean to carry on.
 * A first value is taken as it is, with its sign if it is a zero. */
static void add_average_pairs(double *const *columns, const double *values, size_t count)
{
    size_t k = 0;

    for (; k + 2 <= count; k += 2) {
        struct sum_pair s = add_pair(columns, k, values);
        pq_pair seen = pq_pair_load(columns[3] + k), value = pq_pair_load(values + k);
        pq_pair_mask first = seen == 0, finite = pq_pair_finite(s.sum);

        if (!pq_pair_all(finite)) {
            add_one_average(columns, k, values[k]);
            add_one_average(columns, k + 1, values[k + 1]);
            continue;
        }
        pq_pair_store(columns[0] + k, pq_pair_either(first, value, s.sum));
        pq_pair_store(columns[1] + k, s.lost);
        pq_pair_store(columns[2] + k, s.lost_low);
        pq_pair_store(columns[3] + k, seen + 1);
    }
    if (k < count)
        add_one_average(columns, k, values[k]);
}

static void add_average(double *const *columns, const uint8_t *seen, const double *values,
                        const uint8_t *present, size_t count)
{
    (void)seen;
    if (!memchr(present, 0, count)) {
        add_average_pairs(columns, values, count);
        return;
    }
    for (size_t k = 0; k < count; k++)
        if (present[k])
            add_one_average(columns, k, values[k]);
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
