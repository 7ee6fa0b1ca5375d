/* histogram.c - native histograms as scripts see them. */
#include "tests/promqltest/histogram.h"

#include <math.h>

#include "base/pure/number.h"
#include "promql/histogram/layout.h"
#include "tests/promqltest/judge.h"

static bool buckets_match(const struct pq_histogram *got, const struct pq_histogram *want,
                          enum pq_side side)
{
    struct pq_side_walk x = pq_side_begin(got, side), y = pq_side_begin(want, side);

    for (;;) {
        int64_t x_index, y_index;
        double x_count, y_count;
        bool x_more = pq_side_next(&x, &x_index, &x_count);
        bool y_more = pq_side_next(&y, &y_index, &y_count);

        if (!x_more || !y_more)
            return x_more == y_more;
        if (x_index != y_index || !judge_float(x_count, y_count))
            return false;
    }
}

static bool same_shape(const struct pq_histogram *a, const struct pq_histogram *b)
{
    bool same = a->schema == b->schema && a->zero_threshold == b->zero_threshold;

    if (!same || a->schema != PQ_SCHEMA_CUSTOM)
        return same;
    same = a->custom_value_count == b->custom_value_count;
    for (size_t i = 0; same && i < a->custom_value_count; i++)
        same = a->custom_values[i] == b->custom_values[i];
    return same;
}

/* @got, which has bounds only, has this bucket. */
static bool has_bucket(const struct pq_histogram *got, struct pq_interval want)
{
    for (size_t i = 0; i + 2 < got->custom_value_count; i += 3)
        if (judge_float(got->custom_values[i], want.low) &&
            judge_float(got->custom_values[i + 1], want.high) &&
            judge_float(got->custom_values[i + 2], want.count))
            return true;
    return false;
}

/* An answer in JSON lists the buckets that a walk finds, with the zero bucket as it is defined. */
static bool bounds_match(const struct pq_histogram *got, const struct pq_histogram *want)
{
    struct pq_interval_walk walk = pq_intervals_begin(want);
    struct pq_interval bucket;
    size_t buckets = 0;

    if (!judge_float(got->count, want->count) || !judge_float(got->sum, want->sum))
        return false;
    for (; pq_intervals_next(&walk, &bucket); buckets++) {
        if (bucket.zero) {
            bucket.low = -want->zero_threshold;
            bucket.high = want->zero_threshold;
        }
        if (!has_bucket(got, bucket))
            return false;
    }
    return got->custom_value_count == 3 * buckets;
}

bool histogram_matches(const struct pq_histogram *got, const struct pq_histogram *want)
{
    if (got->schema == HISTOGRAM_BOUNDS)
        return bounds_match(got, want);
    return same_shape(got, want) && judge_float(got->count, want->count) &&
           judge_float(got->sum, want->sum) && judge_float(got->zero_count, want->zero_count) &&
           buckets_match(got, want, PQ_POSITIVE) && buckets_match(got, want, PQ_NEGATIVE) &&
           (!want->reset_hint_given || got->reset_hint == want->reset_hint);
}

/* Every bucket that has something has at least as much afterwards. */
static bool buckets_grow(const struct pq_histogram *prev, const struct pq_histogram *next,
                         enum pq_side side)
{
    struct pq_side_walk x = pq_side_begin(prev, side), y = pq_side_begin(next, side);
    int64_t x_index, y_index = INT64_MIN;
    double x_count, y_count = 0;

    while (pq_side_next(&x, &x_index, &x_count)) {
        while (y_index < x_index)
            if (!pq_side_next(&y, &y_index, &y_count))
                return false;
        if (y_index != x_index || y_count < x_count)
            return false;
    }
    return true;
}

bool histogram_extends(const struct pq_histogram *prev, const struct pq_histogram *next)
{
    bool gauge = next->reset_hint == PQ_RESET_GAUGE;

    if ((prev->reset_hint == PQ_RESET_GAUGE) != gauge || !same_shape(prev, next))
        return false;
    if (gauge)
        return true;
    return next->reset_hint != PQ_RESET_YES && next->count >= prev->count &&
           next->zero_count >= prev->zero_count && buckets_grow(prev, next, PQ_POSITIVE) &&
           buckets_grow(prev, next, PQ_NEGATIVE);
}

static void print_buckets(struct qf_strbuf *buf, const struct pq_histogram *h, enum pq_side side)
{
    struct pq_side_walk walk = pq_side_begin(h, side);
    int64_t index;
    double count;

    qf_strbuf_puts(buf, side == PQ_POSITIVE ? " buckets:[" : " n_buckets:[");
    while (pq_side_next(&walk, &index, &count))
        qf_strbuf_printf(buf, "%lld=%.17g ", (long long)index, count);
    qf_strbuf_putc(buf, ']');
}

void histogram_print(struct qf_strbuf *buf, const struct pq_histogram *histogram)
{
    qf_strbuf_printf(buf, "{{schema:%d count:%.17g sum:%.17g z_bucket:%.17g z_bucket_w:%.17g",
                     histogram->schema, histogram->count, histogram->sum, histogram->zero_count,
                     histogram->zero_threshold);
    print_buckets(buf, histogram, PQ_POSITIVE);
    print_buckets(buf, histogram, PQ_NEGATIVE);
    for (size_t i = 0; i < histogram->custom_value_count; i++)
        qf_strbuf_printf(buf, " le:%.17g", histogram->custom_values[i]);
    qf_strbuf_printf(buf, " hint:%d}}", (int)histogram->reset_hint);
}
