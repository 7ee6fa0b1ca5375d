/* arith.c - operators on native histograms. */
#include "promql/histogram/arith.h"

#include <string.h>

#include "promql/histogram/build.h"

/* A number times or divided by @by. */
static double scaled(double value, double by, bool divide)
{
    return divide ? value / by : value * by;
}

static bool scale_side(struct qf_arena *arena, const struct pq_histogram *from, enum pq_side side,
                       double by, bool divide, struct pq_histogram *to)
{
    struct pq_side_walk walk = pq_side_begin(from, side);
    struct pq_side_writer writer;
    int64_t index;
    double count;

    if (!pq_side_write(&writer, arena, walk.bucket_count))
        return false;
    while (pq_side_step(&walk, &index, &count)) /* an empty bucket times NaN is not empty */
        pq_side_put(&writer, index, scaled(count, by, divide));
    pq_side_set(to, side, &writer);
    return true;
}

static struct pq_histogram *scale_by(struct qf_arena *arena, const struct pq_histogram *from,
                                     double by, bool divide)
{
    struct pq_histogram *h = pq_histogram_like(arena, from);

    if (!h)
        return NULL;
    if (by < 0)
        h->reset_hint = PQ_RESET_GAUGE;
    h->zero_count = scaled(from->zero_count, by, divide);
    h->count = scaled(from->count, by, divide);
    h->sum = scaled(from->sum, by, divide);
    /* A division by zero leaves nothing in the buckets that could be told apart. */
    if (divide && by == 0)
        return h;
    return scale_side(arena, from, PQ_POSITIVE, by, divide, h) &&
                   scale_side(arena, from, PQ_NEGATIVE, by, divide, h)
               ? h
               : NULL;
}

/* Both have the same buckets, or could have. */
static bool fit(const struct pq_histogram *a, const struct pq_histogram *b)
{
    bool same = a->custom_value_count == b->custom_value_count;

    if (a->schema != b->schema || a->zero_threshold != b->zero_threshold)
        return false;
    for (size_t i = 0; same && i < a->custom_value_count; i++)
        same = a->custom_values[i] == b->custom_values[i];
    return same;
}

/* Histograms of one series mostly list the same buckets. */
static bool same_spans(const struct pq_side_walk *x, const struct pq_side_walk *y)
{
    return x->span_count == y->span_count && x->bucket_count == y->bucket_count &&
           (x->spans == y->spans || x->span_count == 0 ||
            memcmp(x->spans, y->spans, x->span_count * sizeof(*x->spans)) == 0);
}

static void combine_alike(const struct pq_side_walk *x, const struct pq_side_walk *y, double factor,
                          double scale, struct pq_side_writer *writer)
{
    size_t at = 0;
    int64_t index = 0;

    for (size_t s = 0; s < x->span_count; s++) {
        size_t end = QF_MIN(at + x->spans[s].length, x->bucket_count);

        index += x->spans[s].offset;
        for (; at < end; at++)
            pq_side_put(writer, index++, (x->buckets[at] + factor * y->buckets[at]) * scale);
    }
}

/* Both sides at once, bucket by bucket. */
static bool combine_side(struct qf_arena *arena, const struct pq_histogram *a,
                         const struct pq_histogram *b, enum pq_side side, double factor,
                         double scale, struct pq_histogram *to)
{
    struct pq_side_walk x = pq_side_begin(a, side), y = pq_side_begin(b, side);
    struct pq_side_writer writer;
    int64_t x_index, y_index;
    double x_count, y_count;
    bool x_more, y_more;

    if (!pq_side_write(&writer, arena, x.bucket_count + y.bucket_count))
        return false;
    if (same_spans(&x, &y)) {
        combine_alike(&x, &y, factor, scale, &writer);
        pq_side_set(to, side, &writer);
        return true;
    }
    x_more = pq_side_ahead(&x, &x_index, &x_count);
    y_more = pq_side_ahead(&y, &y_index, &y_count);
    while (x_more || y_more) {
        int64_t index = !y_more || (x_more && x_index < y_index) ? x_index : y_index;
        double count = 0;

        if (x_more && x_index == index) {
            count = x_count;
            x_more = pq_side_ahead(&x, &x_index, &x_count);
        }
        if (y_more && y_index == index) {
            count += factor * y_count;
            y_more = pq_side_ahead(&y, &y_index, &y_count);
        }
        pq_side_put(&writer, index, count * scale);
    }
    pq_side_set(to, side, &writer);
    return true;
}

static struct pq_histogram *combine_fitting(struct qf_arena *arena, const struct pq_histogram *a,
                                            const struct pq_histogram *b, double factor,
                                            double scale)
{
    struct pq_histogram *h = pq_histogram_like(arena, a);

    if (!h)
        return NULL;
    h->zero_count = (a->zero_count + factor * b->zero_count) * scale;
    h->count = (a->count + factor * b->count) * scale;
    h->sum = (a->sum + factor * b->sum) * scale;
    return combine_side(arena, a, b, PQ_POSITIVE, factor, scale, h) &&
                   combine_side(arena, a, b, PQ_NEGATIVE, factor, scale, h)
               ? h
               : NULL;
}

/* Buckets have to be brought together first. */
static bool combine_summed(struct qf_arena *arena, const struct pq_histogram *a,
                           const struct pq_histogram *b, double factor, double scale,
                           struct pq_histogram_joined *ret)
{
    struct pq_histogram_sum sum;
    enum pq_hsum_result result;

    pq_hsum_init(&sum, arena, PQ_HSUM_PLAIN);
    result = pq_hsum_add(&sum, a, 1);
    if (result == PQ_HSUM_OK)
        result = pq_hsum_add(&sum, b, factor);
    if (result == PQ_HSUM_OK)
        ret->histogram = pq_hsum_value(&sum, 1, arena);
    ret->mixed = result == PQ_HSUM_MIXED;
    ret->reconciled = sum.reconciled;
    if (ret->histogram && scale != 1)
        ret->histogram = scale_by(arena, ret->histogram, scale, false);
    return ret->mixed || ret->histogram;
}

bool pq_histogram_combine(struct qf_arena *arena, const struct pq_histogram *a,
                          const struct pq_histogram *b, double factor, double scale,
                          struct pq_histogram_joined *ret)
{
    unsigned hints = 1u << a->reset_hint | 1u << b->reset_hint;

    *ret = (struct pq_histogram_joined){ .conflict = pq_hints_conflict(hints) };
    if (!fit(a, b))
        return combine_summed(arena, a, b, factor, scale, ret);
    ret->histogram = combine_fitting(arena, a, b, factor, scale);
    if (ret->histogram)
        ret->histogram->reset_hint = pq_hints_combined(hints);
    return ret->histogram != NULL;
}

bool pq_histogram_add(struct qf_arena *arena, const struct pq_histogram *a,
                      const struct pq_histogram *b, struct pq_histogram_joined *ret)
{
    return pq_histogram_combine(arena, a, b, 1, 1, ret);
}

bool pq_histogram_sub(struct qf_arena *arena, const struct pq_histogram *a,
                      const struct pq_histogram *b, struct pq_histogram_joined *ret)
{
    bool ok = pq_histogram_combine(arena, a, b, -1, 1, ret);

    if (ret->histogram)
        ret->histogram->reset_hint = PQ_RESET_GAUGE;
    return ok;
}

const struct pq_histogram *pq_histogram_mul(struct qf_arena *arena, const struct pq_histogram *h,
                                            double factor)
{
    return scale_by(arena, h, factor, false);
}

const struct pq_histogram *pq_histogram_div(struct qf_arena *arena, const struct pq_histogram *h,
                                            double divisor)
{
    return scale_by(arena, h, divisor, true);
}

const struct pq_histogram *pq_histogram_hinted(struct qf_arena *arena, const struct pq_histogram *h,
                                               enum pq_reset_hint hint)
{
    struct pq_histogram *hinted = QF_ARENA_NEW(arena, struct pq_histogram);

    if (!hinted)
        return NULL;
    *hinted = *h;
    hinted->reset_hint = hint;
    return hinted;
}
