/* trim.c - the part of a native histogram below or above a value. */
#include "promql/histogram/trim.h"

#include <math.h>

#include "promql/histogram/build.h"
#include "promql/histogram/stats.h"

struct trimming {
    const struct pq_histogram *histogram;
    double value;
    bool upper; /* keep what is below the value */
    double count, sum;
    bool changed;
};

/* Where the observations of a part of a bucket are. */
static double middle(const struct pq_histogram *h, struct pq_interval part)
{
    if (isinf(part.low))
        return part.high;
    if (isinf(part.high))
        return part.low;
    if (part.zero || pq_histogram_is_custom(h))
        return part.low + (part.high - part.low) / 2;
    return copysign(sqrt(part.low * part.high), part.high > 0 ? 1 : -1);
}

/* A bucket that is open below cannot be cut. Seen from above it is kept whole, but nothing of it
 * lies above the value; seen from below it goes. */
static struct pq_interval cut_open_below(const struct trimming *t, struct pq_interval b)
{
    if (!t->upper || t->value == -(double)INFINITY || isinf(b.high))
        b.count = 0;
    b.high = fmin(b.high, t->value);
    return b;
}

static struct pq_interval cut(const struct trimming *t, struct pq_interval b)
{
    double share;

    if (isinf(b.low))
        return cut_open_below(t, b);
    if (isinf(b.high)) { /* open above: kept whole from below, nothing of it from above */
        if (t->upper)
            b.count = 0;
        b.low = t->value;
        return b;
    }
    share = pq_interval_share(t->histogram, &b, t->value);
    b.count *= t->upper ? share : 1 - share;
    if (t->upper)
        b.high = t->value;
    else
        b.low = t->value;
    return b;
}

/* What is left of a bucket. */
static double trim_bucket(struct trimming *t, struct pq_interval b)
{
    bool custom = pq_histogram_is_custom(t->histogram);
    struct pq_interval part = b;

    /* The first bucket starts at zero unless it ends there or below. A value below that is still
     * inside it: what is above the value is not known. */
    if (custom && isinf(b.low) && b.low < 0 && b.high > 0 && !isinf(b.high) &&
        (t->value >= 0 || t->upper))
        part.low = b.low = 0;
    if (t->upper ? b.low >= t->value && !isinf(b.low) : b.high <= t->value)
        part.count = 0;
    else if (t->upper ? b.high > t->value : b.low < t->value)
        part = cut(t, b);
    t->changed |= part.count != b.count;
    t->count += part.count;
    if (part.count != 0)
        t->sum += part.count * middle(t->histogram, part);
    return part.count;
}

static bool trim_side(struct trimming *t, struct qf_arena *arena, enum pq_side side,
                      struct pq_histogram *to)
{
    const struct pq_histogram *h = t->histogram;
    struct pq_side_walk walk = pq_side_begin(h, side);
    struct pq_side_writer writer;
    int64_t index;
    double count;

    if (!pq_side_write(&writer, arena, walk.bucket_count))
        return false;
    while (pq_side_next(&walk, &index, &count))
        pq_side_put(&writer, index, trim_bucket(t, pq_interval_at(h, side, index, count)));
    pq_side_set(to, side, &writer);
    return true;
}

static const struct pq_histogram *trim(struct qf_arena *arena, struct trimming t)
{
    const struct pq_histogram *h = t.histogram;
    struct pq_histogram *trimmed;

    if (t.value == (t.upper ? (double)INFINITY : -(double)INFINITY))
        return h;
    trimmed = pq_histogram_like(arena, h);
    if (!trimmed || !trim_side(&t, arena, PQ_NEGATIVE, trimmed))
        return NULL;
    if (h->zero_count != 0 && !pq_histogram_is_custom(h))
        trimmed->zero_count = trim_bucket(&t, pq_zero_interval(h));
    if (!trim_side(&t, arena, PQ_POSITIVE, trimmed))
        return NULL;
    trimmed->count = t.count;
    trimmed->sum = t.sum;
    return t.changed ? trimmed : h;
}

const struct pq_histogram *pq_histogram_trim_upper(struct qf_arena *arena,
                                                   const struct pq_histogram *h, double value)
{
    return trim(arena, (struct trimming){ .histogram = h, .value = value, .upper = true });
}

const struct pq_histogram *pq_histogram_trim_lower(struct qf_arena *arena,
                                                   const struct pq_histogram *h, double value)
{
    return trim(arena, (struct trimming){ .histogram = h, .value = value });
}
