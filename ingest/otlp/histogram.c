/* histogram.c - points of histograms with explicit bounds, and of summaries, as classic series. */
#include <math.h>

#include "ingest/otlp/otlp_int.h"

/* What both have. */
struct totals {
    uint64_t count;
    double sum;
    bool has_sum;
};

static bool take_totals(struct qf_str bytes, struct totals *ret_totals)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    *ret_totals = (struct totals){ 0 };
    while (in_wire_next(&wire, &field)) {
        if (field.number != POINT_COUNT && field.number != POINT_SUM)
            continue;
        if (field.type != IN_WIRE_FIXED64)
            return false;
        if (field.number == POINT_COUNT) {
            ret_totals->count = field.value;
        } else {
            ret_totals->sum = in_wire_double(field.value);
            ret_totals->has_sum = true;
        }
    }
    return true;
}

/* "_sum" if there is one, and "_count". */
static bool add_totals(struct in_otlp *otlp, const struct in_otlp_point *point,
                       const struct totals *totals)
{
    const struct qf_label none = { 0 };

    if (totals->has_sum &&
        !in_otlp_add(otlp, point, "_sum", none, in_otlp_sample(point, totals->sum)))
        return false;
    return in_otlp_add(otlp, point, "_count", none, in_otlp_sample(point, (double)totals->count)) !=
           NULL;
}

static struct qf_str bound_text(struct in_otlp *otlp, double bound)
{
    char text[QF_DOUBLE_TEXT_MAX];

    return qf_arena_str(otlp->arena, (struct qf_str){ text, qf_double_f(bound, text) });
}

/* --- histograms --- */

struct buckets {
    uint64_t *counts, *bounds; /* bounds are the bits of doubles */
    size_t count_count, bound_count;
};

static const char *check_buckets(const struct buckets *buckets, const struct totals *totals)
{
    uint64_t total = 0;

    if (buckets->count_count && buckets->count_count != buckets->bound_count + 1)
        return "a histogram's buckets do not go with its bounds";
    for (size_t i = 0; i < buckets->bound_count; i++) {
        double bound = in_wire_double(buckets->bounds[i]);

        if (isnan(bound) || (i && bound <= in_wire_double(buckets->bounds[i - 1])))
            return "a histogram's bounds do not ascend";
    }
    for (size_t i = 0; i < buckets->count_count; i++)
        if (__builtin_add_overflow(total, buckets->counts[i], &total))
            return "a histogram's bucket counts are too large";
    return buckets->count_count && total != totals->count
               ? "a histogram's buckets do not add up to its count"
               : NULL;
}

/* Give each exemplar between the bounds to @series, the bucket it fell into. */
static bool add_exemplars(struct in_otlp *otlp, const struct in_otlp_point *point, double below,
                          double bound, struct in_series *series)
{
    size_t count = 0;

    for (size_t i = 0; i < point->exemplar_count; i++)
        count += point->exemplars[i].value > below && point->exemplars[i].value <= bound;
    if (!count)
        return true;
    series->exemplars = QF_ARENA_ARRAY(otlp->arena, struct in_exemplar, count);
    for (size_t i = 0; series->exemplars && i < point->exemplar_count; i++)
        if (point->exemplars[i].value > below && point->exemplars[i].value <= bound)
            series->exemplars[series->exemplar_count++] = point->exemplars[i];
    return series->exemplars != NULL;
}

static bool add_bucket(struct in_otlp *otlp, const struct in_otlp_point *point, double below,
                       double bound, uint64_t count)
{
    const struct qf_label le = { QF_STR("le"), bound_text(otlp, bound) };
    struct in_series *series;

    if (!le.value.data)
        return false;
    series = in_otlp_add(otlp, point, "_bucket", le, in_otlp_sample(point, (double)count));
    return series && add_exemplars(otlp, point, below, bound, series);
}

static bool add_buckets(struct in_otlp *otlp, const struct in_otlp_point *point,
                        const struct buckets *buckets, uint64_t count)
{
    double below = -INFINITY;
    uint64_t so_far = 0;

    for (size_t i = 0; i < buckets->bound_count && i < buckets->count_count; i++) {
        double bound = in_wire_double(buckets->bounds[i]);

        so_far += buckets->counts[i];
        if (isinf(bound))
            break; /* the last, which is there in any case */
        if (!add_bucket(otlp, point, below, bound, so_far))
            return false;
        below = bound;
    }
    return add_bucket(otlp, point, below, INFINITY, count);
}

bool in_otlp_histogram(struct in_otlp *otlp, struct qf_str bytes)
{
    static const struct in_otlp_numbers numbers = { HISTOGRAM_ATTRIBUTES, HISTOGRAM_FLAGS,
                                                    HISTOGRAM_EXEMPLARS };
    struct in_otlp_point point;
    struct buckets buckets;
    struct totals totals;
    const char *why;

    if (!in_otlp_point(otlp, bytes, &numbers, &point, &why) || !take_totals(bytes, &totals) ||
        !in_otlp_numbers(otlp, bytes, HISTOGRAM_BUCKETS, IN_WIRE_FIXED64, &buckets.counts,
                         &buckets.count_count) ||
        !in_otlp_numbers(otlp, bytes, HISTOGRAM_BOUNDS, IN_WIRE_FIXED64, &buckets.bounds,
                         &buckets.bound_count))
        return false;
    if (!why && !point.stale)
        why = check_buckets(&buckets, &totals);
    if (why) {
        in_otlp_refuse(otlp, 1, why);
        return true;
    }
    return add_totals(otlp, &point, &totals) && add_buckets(otlp, &point, &buckets, totals.count);
}

/* --- summaries --- */

static bool add_quantile(struct in_otlp *otlp, const struct in_otlp_point *point,
                         struct qf_str bytes)
{
    struct in_wire wire = in_wire_of(bytes);
    struct qf_label label = { QF_STR("quantile"), { 0 } };
    double quantile = 0, value = 0;
    struct in_field field;

    while (in_wire_next(&wire, &field)) {
        if (field.number != QUANTILE_QUANTILE && field.number != QUANTILE_VALUE)
            continue;
        if (field.type != IN_WIRE_FIXED64)
            return false;
        if (field.number == QUANTILE_QUANTILE)
            quantile = in_wire_double(field.value);
        else
            value = in_wire_double(field.value);
    }
    label.value = bound_text(otlp, quantile);
    return !wire.bad && label.value.data &&
           in_otlp_add(otlp, point, "", label, in_otlp_sample(point, value));
}

bool in_otlp_summary(struct in_otlp *otlp, struct qf_str bytes)
{
    static const struct in_otlp_numbers numbers = { SUMMARY_ATTRIBUTES, SUMMARY_FLAGS, 0 };
    struct in_wire wire = in_wire_of(bytes);
    struct in_otlp_point point;
    struct in_field field;
    struct totals totals;
    const char *why;

    if (!in_otlp_point(otlp, bytes, &numbers, &point, &why) || !take_totals(bytes, &totals))
        return false;
    if (why) {
        in_otlp_refuse(otlp, 1, why);
        return true;
    }
    totals.has_sum = true; /* a sum of 0 is not sent */
    if (!add_totals(otlp, &point, &totals))
        return false;
    while (in_wire_next(&wire, &field))
        if (field.number == SUMMARY_QUANTILES &&
            (field.type != IN_WIRE_BYTES || !add_quantile(otlp, &point, field.bytes)))
            return false;
    return true;
}
