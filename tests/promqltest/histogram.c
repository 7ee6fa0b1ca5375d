/* histogram.c - native histograms as scripts see them. */
#include "tests/promqltest/histogram.h"

#include <math.h>

#include "base/pure/number.h"
#include "tests/promqltest/judge.h"

/* Buckets in order of their index. */
struct walk {
    const struct pq_span *spans;
    size_t span_count, span;
    const double *buckets;
    size_t bucket_count, bucket;
    uint32_t done; /* of the span */
    int64_t index;
};

static struct walk walk_begin(const struct pq_histogram *h, bool positive)
{
    if (positive)
        return (struct walk){ .spans = h->positive_spans,
                              .span_count = h->positive_span_count,
                              .buckets = h->positive_buckets,
                              .bucket_count = h->positive_bucket_count };
    return (struct walk){ .spans = h->negative_spans,
                          .span_count = h->negative_span_count,
                          .buckets = h->negative_buckets,
                          .bucket_count = h->negative_bucket_count };
}

/* The next bucket that is not empty; false at the end. */
static bool walk_next(struct walk *walk, int64_t *ret_index, double *ret_count)
{
    while (walk->span < walk->span_count && walk->bucket < walk->bucket_count) {
        const struct pq_span *span = &walk->spans[walk->span];

        if (walk->done == 0)
            walk->index += span->offset;
        if (walk->done == span->length) {
            walk->span++;
            walk->done = 0;
            continue;
        }
        walk->done++;
        *ret_index = walk->index++;
        *ret_count = walk->buckets[walk->bucket++];
        if (*ret_count != 0)
            return true;
    }
    return false;
}

static bool buckets_match(const struct pq_histogram *got, const struct pq_histogram *want,
                          bool positive)
{
    struct walk x = walk_begin(got, positive), y = walk_begin(want, positive);

    for (;;) {
        int64_t x_index, y_index;
        double x_count, y_count;
        bool x_more = walk_next(&x, &x_index, &x_count), y_more = walk_next(&y, &y_index, &y_count);

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

static double exponential_bound(int32_t schema, int64_t index)
{
    return exp2((double)index * exp2(-schema));
}

struct bounds {
    double low, high, count;
};

static struct bounds bounds_of(const struct pq_histogram *h, int64_t index, double count,
                               bool positive)
{
    int64_t last = (int64_t)h->custom_value_count;
    struct bounds b = { exponential_bound(h->schema, index - 1),
                        exponential_bound(h->schema, index), count };

    if (h->schema == PQ_SCHEMA_CUSTOM) {
        b.low = index > 0 && index <= last ? h->custom_values[index - 1] : -INFINITY;
        b.high = index >= 0 && index < last ? h->custom_values[index] : INFINITY;
    }
    return positive ? b : (struct bounds){ -b.high, -b.low, count };
}

/* @got, which has bounds only, has this bucket. */
static bool has_bucket(const struct pq_histogram *got, struct bounds want)
{
    for (size_t i = 0; i + 2 < got->custom_value_count; i += 3)
        if (judge_float(got->custom_values[i], want.low) &&
            judge_float(got->custom_values[i + 1], want.high) &&
            judge_float(got->custom_values[i + 2], want.count))
            return true;
    return false;
}

static bool bounds_match(const struct pq_histogram *got, const struct pq_histogram *want)
{
    size_t buckets = 0;

    if (!judge_float(got->count, want->count) || !judge_float(got->sum, want->sum))
        return false;
    for (int positive = 0; positive <= 1; positive++) {
        struct walk walk = walk_begin(want, positive);
        int64_t index;
        double count;

        for (; walk_next(&walk, &index, &count); buckets++)
            if (!has_bucket(got, bounds_of(want, index, count, positive)))
                return false;
    }
    if (want->zero_count != 0) {
        buckets++;
        if (!has_bucket(got, (struct bounds){ -want->zero_threshold, want->zero_threshold,
                                              want->zero_count }))
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
           buckets_match(got, want, true) && buckets_match(got, want, false) &&
           (!want->reset_hint_given || got->reset_hint == want->reset_hint);
}

/* Every bucket that has something has at least as much afterwards. */
static bool buckets_grow(const struct pq_histogram *prev, const struct pq_histogram *next,
                         bool positive)
{
    struct walk x = walk_begin(prev, positive), y = walk_begin(next, positive);
    int64_t x_index, y_index = INT64_MIN;
    double x_count, y_count = 0;

    while (walk_next(&x, &x_index, &x_count)) {
        while (y_index < x_index)
            if (!walk_next(&y, &y_index, &y_count))
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
           next->zero_count >= prev->zero_count && buckets_grow(prev, next, true) &&
           buckets_grow(prev, next, false);
}

static void print_buckets(struct qf_strbuf *buf, const struct pq_histogram *h, bool positive)
{
    struct walk walk = walk_begin(h, positive);
    int64_t index;
    double count;

    qf_strbuf_puts(buf, positive ? " buckets:[" : " n_buckets:[");
    while (walk_next(&walk, &index, &count))
        qf_strbuf_printf(buf, "%lld=%.17g ", (long long)index, count);
    qf_strbuf_putc(buf, ']');
}

void histogram_print(struct qf_strbuf *buf, const struct pq_histogram *histogram)
{
    qf_strbuf_printf(buf, "{{schema:%d count:%.17g sum:%.17g z_bucket:%.17g z_bucket_w:%.17g",
                     histogram->schema, histogram->count, histogram->sum, histogram->zero_count,
                     histogram->zero_threshold);
    print_buckets(buf, histogram, true);
    print_buckets(buf, histogram, false);
    for (size_t i = 0; i < histogram->custom_value_count; i++)
        qf_strbuf_printf(buf, " le:%.17g", histogram->custom_values[i]);
    qf_strbuf_printf(buf, " hint:%d}}", (int)histogram->reset_hint);
}
