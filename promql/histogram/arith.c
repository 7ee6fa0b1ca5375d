/* arith.c - operators on native histograms. */
#include "promql/histogram/arith.h"

#include "promql/histogram/build.h"

static bool join(struct qf_arena *arena, const struct pq_histogram *a, const struct pq_histogram *b,
                 double factor, struct pq_histogram_joined *ret)
{
    struct pq_histogram_sum sum;
    enum pq_hsum_result result;

    *ret = (struct pq_histogram_joined){ 0 };
    pq_hsum_init(&sum, arena, PQ_HSUM_PLAIN);
    result = pq_hsum_add(&sum, a, 1);
    if (result == PQ_HSUM_OK)
        result = pq_hsum_add(&sum, b, factor);
    if (result == PQ_HSUM_NO_MEMORY)
        return false;
    ret->mixed = result == PQ_HSUM_MIXED;
    if (ret->mixed)
        return true;
    ret->reconciled = sum.reconciled;
    ret->conflict = pq_hints_conflict(sum.hints);
    if (factor < 0)
        sum.hints = 1u << PQ_RESET_GAUGE;
    ret->histogram = pq_hsum_value(&sum, 1);
    return ret->histogram != NULL;
}

bool pq_histogram_add(struct qf_arena *arena, const struct pq_histogram *a,
                      const struct pq_histogram *b, struct pq_histogram_joined *ret)
{
    return join(arena, a, b, 1, ret);
}

bool pq_histogram_sub(struct qf_arena *arena, const struct pq_histogram *a,
                      const struct pq_histogram *b, struct pq_histogram_joined *ret)
{
    return join(arena, a, b, -1, ret);
}

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
    while (pq_side_next(&walk, &index, &count))
        pq_side_put(&writer, index, scaled(count, by, divide));
    pq_side_set(to, side, &writer);
    return true;
}

static const struct pq_histogram *scale(struct qf_arena *arena, const struct pq_histogram *from,
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

const struct pq_histogram *pq_histogram_mul(struct qf_arena *arena, const struct pq_histogram *h,
                                            double factor)
{
    return scale(arena, h, factor, false);
}

const struct pq_histogram *pq_histogram_div(struct qf_arena *arena, const struct pq_histogram *h,
                                            double divisor)
{
    return scale(arena, h, divisor, true);
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
