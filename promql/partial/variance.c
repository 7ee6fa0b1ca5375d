/* variance.c - stddev and stdvar. */
#include <math.h>

#include "promql/partial/partial.h"
#include "promql/partial/twofold_pair.h"

static const struct pq_leaf_kind variance_kind = {
    "variance", 5, { "count", "mean", "mean_low", "m2", "m2_low" }
};

/* Count, mean and sum of squared distances to it (M2), the last two in twice the precision. */
struct variance {
    double count;
    struct pq_twofold mean, m2;
};

static struct variance load(const double *partial)
{
    return (struct variance){ partial[0], { partial[1], partial[2] }, { partial[3], partial[4] } };
}

static void store(const struct variance *v, double *partial)
{
    partial[0] = v->count;
    partial[1] = v->mean.high;
    partial[2] = v->mean.low;
    partial[3] = v->m2.high;
    partial[4] = v->m2.low;
}

/* Welford's recurrence. A NaN or an infinity makes the result NaN. */
static void variance_add(struct variance *v, double value)
{
    struct pq_twofold x = { value, 0 }, delta;

    v->count++;
    if (v->count == 1) {
        v->mean = x;
        v->m2 = (struct pq_twofold){ isfinite(value) ? 0 : NAN, 0 };
        return;
    }
    delta = pq_twofold_add(x, pq_twofold_neg(v->mean));
    v->mean = pq_twofold_add(v->mean, pq_twofold_div(delta, v->count));
    x = pq_twofold_add(x, pq_twofold_neg(v->mean));
    v->m2 = pq_twofold_add(v->m2, pq_twofold_mul(delta, x));
}

/* Chan's formula for joining two sets. */
static void variance_merge(struct variance *into, const struct variance *from)
{
    double total = into->count + from->count;
    struct pq_twofold delta = pq_twofold_add(from->mean, pq_twofold_neg(into->mean));
    struct pq_twofold share =
        pq_twofold_div(pq_twofold_mul(delta, (struct pq_twofold){ from->count, 0 }), total);
    struct pq_twofold between = pq_twofold_mul(delta, (struct pq_twofold){ into->count, 0 });

    into->mean = pq_twofold_add(into->mean, share);
    into->m2 = pq_twofold_add(pq_twofold_add(into->m2, from->m2), pq_twofold_mul(between, share));
    into->count = total;
}

static void add_one(double *const *columns, size_t k, double value)
{
    double partial[5];
    struct variance v;

    for (size_t c = 0; c < 5; c++)
        partial[c] = columns[c][k];
    v = load(partial);
    variance_add(&v, value);
    store(&v, partial);
    for (size_t c = 0; c < 5; c++)
        columns[c][k] = partial[c];
}

/* variance_add() for two steps that have values already. False, and nothing is stored, if a number on
 * the way may be none or too small for the errors of products to be exact. */
static bool add_pair(double *const *columns, size_t k, pq_pair value)
{
    pq_pair count = pq_pair_load(columns[0] + k) + 1;
    struct pq_twofold_pair mean = { pq_pair_load(columns[1] + k), pq_pair_load(columns[2] + k) };
    struct pq_twofold_pair m2 = { pq_pair_load(columns[3] + k), pq_pair_load(columns[4] + k) };
    pq_pair_mask good = count > 1;
    struct pq_twofold_pair delta = pq_twofold_pair_less(value, mean), distance;

    mean = pq_twofold_pair_add(mean, pq_twofold_pair_div(delta, count, &good));
    distance = pq_twofold_pair_less(value, mean);
    m2 = pq_twofold_pair_add(m2, pq_twofold_pair_mul(delta, distance, &good));
    good &= pq_pair_finite(mean.high) & pq_pair_finite(mean.low);
    good &= pq_pair_finite(m2.high) & pq_pair_finite(m2.low);
    if (!pq_pair_all(good))
        return false;
    pq_pair_store(columns[0] + k, count);
    pq_pair_store(columns[1] + k, mean.high);
    pq_pair_store(columns[2] + k, mean.low);
    pq_pair_store(columns[3] + k, m2.high);
    pq_pair_store(columns[4] + k, m2.low);
    return true;
}

static void add(double *const *columns, const uint8_t *seen, const double *values,
                const uint8_t *present, size_t count)
{
    size_t k = 0;

    (void)seen;
    while (k < count) {
        if (k + 2 <= count && present[k] && present[k + 1] &&
            add_pair(columns, k, pq_pair_load(values + k))) {
            k += 2;
            continue;
        }
        if (present[k])
            add_one(columns, k, values[k]);
        k++;
    }
}

static void merge(double *into, const double *from)
{
    struct variance v = load(into), other = load(from);

    variance_merge(&v, &other);
    store(&v, into);
}

static double stdvar(const double *partial)
{
    struct variance v = load(partial);

    return pq_twofold_div(v.m2, v.count).high;
}

static double stddev(const double *partial)
{
    return sqrt(stdvar(partial));
}

const struct pq_aggregation pq_aggregation_stdvar = {
    .id = PQ_AGG_STDVAR,
    .shape = PQ_AGG_FOLDS,
    .kind = &variance_kind,
    .histograms = PQ_HISTOGRAMS_IGNORE,
    .add = add,
    .merge = merge,
    .value = stdvar,
};

const struct pq_aggregation pq_aggregation_stddev = {
    .id = PQ_AGG_STDDEV,
    .shape = PQ_AGG_FOLDS,
    .kind = &variance_kind,
    .histograms = PQ_HISTOGRAMS_IGNORE,
    .add = add,
    .merge = merge,
    .value = stddev,
};
