/* exponential.c - points of exponential histograms as native histograms.
 *
 * Scale and schema are the same number, and bounds the same: bucket i of a scale holds what is above
 * base^i and up to base^(i+1), which is bucket i+1 of a native histogram. */
#include "base/pure/varint.h"
#include "ingest/otlp/otlp_int.h"

#define SCHEMA_MIN (-4)
#define SCHEMA_MAX 8
/* Native histograms have a zero bucket of some width; a point that gives none gets the least. */
#define ZERO_THRESHOLD 1e-128
/* Empty buckets that are cheaper than another span. */
#define GAP_MAX 2

struct side {
    uint64_t *counts;
    size_t count;
    int64_t offset;
};

struct exponential {
    int64_t scale;
    uint64_t count, zero_count;
    double sum, zero_threshold;
    struct side positive, negative;
};

static bool take_side(struct in_otlp *otlp, const struct in_field *of, struct side *side)
{
    struct in_wire wire = in_wire_of(of->bytes);
    struct in_field field;

    if (of->type != IN_WIRE_BYTES)
        return false;
    while (in_wire_next(&wire, &field)) {
        if (field.number != BUCKETS_OFFSET)
            continue;
        if (field.type != IN_WIRE_VARINT)
            return false;
        side->offset = (int32_t)qf_unzigzag(field.value);
    }
    return !wire.bad && in_otlp_numbers(otlp, of->bytes, BUCKETS_COUNTS, IN_WIRE_VARINT,
                                        &side->counts, &side->count);
}

static bool take_fixed(const struct in_field *field, struct exponential *e)
{
    if (field->type != IN_WIRE_FIXED64)
        return false;
    if (field->number == POINT_COUNT)
        e->count = field->value;
    if (field->number == POINT_SUM)
        e->sum = in_wire_double(field->value);
    if (field->number == EXPONENTIAL_ZERO_COUNT)
        e->zero_count = field->value;
    if (field->number == EXPONENTIAL_ZERO_THRESHOLD)
        e->zero_threshold = in_wire_double(field->value);
    return true;
}

static bool take_fields(struct in_otlp *otlp, struct qf_str bytes, struct exponential *e)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;
    bool ok = true;

    while (ok && in_wire_next(&wire, &field))
        switch (field.number) {
        case EXPONENTIAL_SCALE:
            ok = field.type == IN_WIRE_VARINT;
            e->scale = (int32_t)qf_unzigzag(field.value);
            break;
        case EXPONENTIAL_POSITIVE:
            ok = take_side(otlp, &field, &e->positive);
            break;
        case EXPONENTIAL_NEGATIVE:
            ok = take_side(otlp, &field, &e->negative);
            break;
        case POINT_COUNT:
        case POINT_SUM:
        case EXPONENTIAL_ZERO_COUNT:
        case EXPONENTIAL_ZERO_THRESHOLD:
            ok = take_fixed(&field, e);
            break;
        default: /* not of a histogram alone, or of a later version */
            break;
        }
    return ok;
}

static const char *check(const struct exponential *e)
{
    uint64_t total = e->zero_count;
    bool over = false;

    if (e->scale < SCHEMA_MIN)
        return "an exponential histogram's scale is below -4";
    for (size_t i = 0; i < e->positive.count; i++)
        over |= __builtin_add_overflow(total, e->positive.counts[i], &total);
    for (size_t i = 0; i < e->negative.count; i++)
        over |= __builtin_add_overflow(total, e->negative.counts[i], &total);
    if (over)
        return "a histogram's bucket counts are too large";
    return total != e->count ? "a histogram's buckets do not add up to its count" : NULL;
}

/* --- buckets --- */

/* Buckets of a native histogram under construction. */
struct layout {
    struct pq_span *spans;
    double *buckets;
    size_t span_count, bucket_count;
    int64_t next; /* index behind the last bucket */
};

/* False: an index that no histogram has. */
static bool add_bucket(struct layout *layout, int64_t index, uint64_t count)
{
    int64_t gap = index - layout->next;

    if (index != (int32_t)index || gap != (int32_t)gap)
        return false;
    if (layout->span_count && gap < 0) { /* of the same coarser bucket */
        layout->buckets[layout->bucket_count - 1] += (double)count;
        return true;
    }
    if (!layout->span_count || gap > GAP_MAX) {
        layout->spans[layout->span_count++] = (struct pq_span){ (int32_t)gap, 0 };
        gap = 0;
    }
    layout->bucket_count += (size_t)gap; /* which are 0 */
    layout->buckets[layout->bucket_count++] = (double)count;
    layout->spans[layout->span_count - 1].length += (uint32_t)gap + 1;
    layout->next = index + 1;
    return true;
}

static bool lay_out(struct in_otlp *otlp, const struct side *side, int shift, struct layout *layout,
                    const char **ret_why)
{
    size_t filled = 0;

    for (size_t i = 0; i < side->count; i++)
        filled += side->counts[i] != 0;
    *layout =
        (struct layout){ .spans = QF_ARENA_ARRAY(otlp->arena, struct pq_span, filled),
                         .buckets = QF_ARENA_ARRAY(otlp->arena, double, filled *(GAP_MAX + 1)) };
    if (!layout->spans || !layout->buckets)
        return false;
    for (size_t i = 0; i < side->count; i++)
        if (side->counts[i] &&
            !add_bucket(layout, ((side->offset + (int64_t)i) >> shift) + 1, side->counts[i]))
            *ret_why = "a histogram's buckets are out of range";
    return true;
}

static bool build(struct in_otlp *otlp, const struct exponential *e,
                  const struct pq_histogram **ret_histogram, const char **ret_why)
{
    struct pq_histogram *h = QF_ARENA_NEW(otlp->arena, struct pq_histogram);
    int shift = e->scale > SCHEMA_MAX ? (int)QF_MIN(e->scale - SCHEMA_MAX, 62) : 0;
    struct layout positive, negative;

    if (!h || !lay_out(otlp, &e->positive, shift, &positive, ret_why) ||
        !lay_out(otlp, &e->negative, shift, &negative, ret_why))
        return false;
    *h = (struct pq_histogram){ .schema = (int32_t)QF_MIN(e->scale, SCHEMA_MAX),
                                .zero_threshold =
                                    e->zero_threshold > 0 ? e->zero_threshold : ZERO_THRESHOLD,
                                .zero_count = (double)e->zero_count,
                                .count = (double)e->count,
                                .sum = e->sum,
                                .positive_spans = positive.spans,
                                .positive_span_count = positive.span_count,
                                .positive_buckets = positive.buckets,
                                .positive_bucket_count = positive.bucket_count,
                                .negative_spans = negative.spans,
                                .negative_span_count = negative.span_count,
                                .negative_buckets = negative.buckets,
                                .negative_bucket_count = negative.bucket_count };
    *ret_histogram = h;
    return true;
}

bool in_otlp_exponential(struct in_otlp *otlp, struct qf_str bytes)
{
    static const struct in_otlp_numbers numbers = { EXPONENTIAL_ATTRIBUTES, EXPONENTIAL_FLAGS,
                                                    EXPONENTIAL_EXEMPLARS };
    struct exponential e = { 0 };
    struct in_otlp_point point;
    struct in_series *series;
    struct in_sample sample;
    const char *why;

    if (!in_otlp_point(otlp, bytes, &numbers, &point, &why) || !take_fields(otlp, bytes, &e))
        return false;
    sample = in_otlp_sample(&point, 0);
    if (!why && !point.stale)
        why = check(&e);
    if (!why && !point.stale && !build(otlp, &e, &sample.histogram, &why))
        return false;
    if (why) {
        in_otlp_refuse(otlp, 1, why);
        return true;
    }
    series = in_otlp_add(otlp, &point, "", (struct qf_label){ 0 }, sample);
    if (!series)
        return false;
    series->exemplars = point.exemplars;
    series->exemplar_count = point.exemplar_count;
    return true;
}
