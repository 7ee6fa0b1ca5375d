/* aggregate.c - accumulators of the aggregators. */
#include "promql/func/aggregate.h"

/* One step of the incremental mean: the old mean loses 1/count of its weight to the value. */
static void mean_add(struct pq_avg *avg, double value)
{
    double keep = (avg->count - 1) / avg->count;
    struct pq_kahan mean = { keep * avg->mean, keep * avg->sum.compensation };

    pq_kahan_add(&mean, value / avg->count);
    avg->mean = mean.sum;
    avg->sum.compensation = mean.compensation;
}

/* From sum to mean; @count values are in the sum. */
static void become_mean(struct pq_avg *avg, double count)
{
    avg->is_mean = true;
    avg->mean = avg->sum.sum / count;
    avg->sum.sum = 0;
    avg->sum.compensation /= count;
}

void pq_avg_add(struct pq_avg *avg, double value)
{
    avg->count++;
    if (avg->count == 1) {
        avg->sum.sum = value;
        return;
    }
    if (!avg->is_mean) {
        struct pq_kahan sum = avg->sum;

        pq_kahan_add(&sum, value);
        if (!isinf(sum.sum)) {
            avg->sum = sum;
            return;
        }
        become_mean(avg, avg->count - 1);
    }
    mean_add(avg, value);
}

void pq_avg_merge(struct pq_avg *into, const struct pq_avg *from)
{
    struct pq_avg other = *from;
    struct pq_kahan mean;
    double total = into->count + other.count;

    if (other.count == 0)
        return;
    if (into->count == 0) {
        *into = other;
        return;
    }
    if (!into->is_mean && !other.is_mean) {
        struct pq_kahan sum = into->sum;

        pq_kahan_merge(&sum, &other.sum);
        if (!isinf(sum.sum)) {
            into->sum = sum;
            into->count = total;
            return;
        }
    }
    if (!into->is_mean)
        become_mean(into, into->count);
    if (!other.is_mean)
        become_mean(&other, other.count);
    mean = (struct pq_kahan){ into->mean * (into->count / total),
                              into->sum.compensation * (into->count / total) };
    pq_kahan_add(&mean, other.mean * (other.count / total));
    mean.compensation += other.sum.compensation * (other.count / total);
    into->mean = mean.sum;
    into->sum.compensation = mean.compensation;
    into->count = total;
}

/* The same sum can be split into different pairs, depending on the order of additions. The quotient
 * is computed so that it depends on the value of the pair alone: first the pair is brought into its
 * normal form, then the remainder of the division is divided as well. */
double pq_avg_value(const struct pq_avg *avg)
{
    double sum = avg->sum.sum, compensation = avg->sum.compensation;
    double high = sum + compensation, low, quotient;

    if (avg->is_mean)
        return avg->mean + compensation;
    quotient = high / avg->count;
    if (!isfinite(high) || !isfinite(quotient * avg->count))
        return sum / avg->count + compensation / avg->count;
    low =
        fabs(sum) >= fabs(compensation) ? (sum - high) + compensation : (compensation - high) + sum;
    return quotient + (fma(-quotient, avg->count, high) + low) / avg->count;
}
