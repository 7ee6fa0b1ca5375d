/* wire_histogram.c - native histograms as remote write sends them: integers with deltas between
 * neighbouring buckets, or floats with absolute counts. */
#include <math.h>
#include <string.h>

#include "base/pure/varint.h"
#include "ingest/core/remote_write_int.h"

/* Numbers of fields, the same in both versions. */
enum {
    COUNT_INT = 1,
    COUNT_FLOAT,
    SUM,
    SCHEMA,
    ZERO_THRESHOLD,
    ZERO_INT,
    ZERO_FLOAT,
    NEGATIVE_SPANS,
    NEGATIVE_DELTAS,
    NEGATIVE_COUNTS,
    POSITIVE_SPANS,
    POSITIVE_DELTAS,
    POSITIVE_COUNTS,
    RESET_HINT,
    TIME,
    CUSTOM_VALUES,
    START_TIME,
    FIELDS
};
enum { SPAN_OFFSET = 1, SPAN_LENGTH = 2 };

#define STALE_BITS UINT64_C(0x7ff0000000000002)

struct side {
    struct pq_span *spans;
    double *buckets;
    size_t span_count, bucket_count;
    int64_t last; /* of integers: the count of the last bucket */
};

struct histogram {
    struct qf_arena *arena;
    struct pq_histogram *out;
    struct in_sample *sample;
    struct side positive, negative;
    double *custom_values;
    size_t custom_count;
    uint64_t count, zero_count, total; /* of integers; total: of the buckets */
    bool integer, floating;            /* which of the two forms it has anything of */
    const char *bad;
};

/* How many numbers the fields @number hold, packed or not, of the given type. */
static size_t count_numbers(struct qf_str bytes, uint32_t number, enum in_wire_type type)
{
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;
    size_t count = 0;

    while (in_wire_next(&wire, &field))
        if (field.number == number && field.type == type)
            count++;
        else if (field.number == number && field.type == IN_WIRE_BYTES)
            count += type == IN_WIRE_VARINT ? in_wire_count_varints(field.bytes)
                                            : field.bytes.len / sizeof(uint64_t);
    return count;
}

static bool make_side(struct histogram *h, struct qf_str bytes, size_t spans, uint32_t deltas,
                      struct side *side)
{
    size_t buckets = count_numbers(bytes, deltas, IN_WIRE_VARINT) +
                     count_numbers(bytes, deltas + 1, IN_WIRE_FIXED64);

    side->spans = QF_ARENA_ARRAY(h->arena, struct pq_span, spans);
    side->buckets = QF_ARENA_ARRAY(h->arena, double, buckets);
    return side->spans && side->buckets;
}

static bool take_span(struct side *side, struct qf_str bytes)
{
    struct pq_span *span = &side->spans[side->span_count++];
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    while (in_wire_next(&wire, &field)) {
        if (field.number > SPAN_LENGTH)
            continue;
        if (field.type != IN_WIRE_VARINT || field.value > UINT32_MAX)
            return false;
        if (field.number == SPAN_OFFSET)
            span->offset = (int32_t)qf_unzigzag(field.value);
        else
            span->length = (uint32_t)field.value;
    }
    return !wire.bad;
}

static void take_delta(struct histogram *h, struct side *side, uint64_t value)
{
    h->integer = true;
    if (__builtin_add_overflow(side->last, qf_unzigzag(value), &side->last) || side->last < 0 ||
        __builtin_add_overflow(h->total, (uint64_t)side->last, &h->total)) {
        h->bad = "a histogram's bucket counts are negative or too large";
        side->last = 0;
    }
    side->buckets[side->bucket_count++] = (double)side->last;
}

static bool take_deltas(struct histogram *h, struct side *side, const struct in_field *field)
{
    struct in_wire wire = in_wire_of(field->bytes);
    uint64_t value;

    if (field->type == IN_WIRE_VARINT) {
        take_delta(h, side, field->value);
        return true;
    }
    if (field->type != IN_WIRE_BYTES)
        return false;
    while (in_wire_varint(&wire, &value))
        take_delta(h, side, value);
    return !wire.bad;
}

static bool take_doubles(double *numbers, size_t *count, const struct in_field *field)
{
    struct in_wire wire = in_wire_of(field->bytes);
    uint64_t value;

    if (field->type == IN_WIRE_FIXED64) {
        numbers[(*count)++] = in_wire_double(field->value);
        return true;
    }
    if (field->type != IN_WIRE_BYTES)
        return false;
    while (in_wire_fixed64(&wire, &value))
        numbers[(*count)++] = in_wire_double(value);
    return !wire.bad;
}

/* --- fields, by what they hold --- */

static bool take_float(struct histogram *h, const struct in_field *field)
{
    double value = in_wire_double(field->value);

    if (field->type != IN_WIRE_FIXED64)
        return false;
    if (field->number == SUM)
        h->out->sum = value;
    if (field->number == ZERO_THRESHOLD)
        h->out->zero_threshold = value;
    if (field->number == COUNT_FLOAT)
        h->out->count = value;
    if (field->number == ZERO_FLOAT)
        h->out->zero_count = value;
    h->floating |= field->number == COUNT_FLOAT;
    return true;
}

static bool take_number(struct histogram *h, const struct in_field *field)
{
    if (field->type != IN_WIRE_VARINT)
        return false;
    if (field->number == COUNT_INT)
        h->count = field->value;
    if (field->number == ZERO_INT)
        h->zero_count = field->value;
    if (field->number == SCHEMA)
        h->out->schema = (int32_t)qf_unzigzag(field->value & UINT32_MAX);
    if (field->number == RESET_HINT && field->value <= PQ_RESET_GAUGE)
        h->out->reset_hint = (enum pq_reset_hint)field->value;
    if (field->number == TIME)
        h->sample->ts = (int64_t)field->value;
    if (field->number == START_TIME)
        h->sample->start_ts = (int64_t)field->value;
    h->integer |= field->number == COUNT_INT;
    return true;
}

static bool take_buckets(struct histogram *h, const struct in_field *field)
{
    struct side *side = field->number >= POSITIVE_SPANS ? &h->positive : &h->negative;

    switch (field->number) {
    case NEGATIVE_SPANS:
    case POSITIVE_SPANS:
        return field->type == IN_WIRE_BYTES && take_span(side, field->bytes);
    case NEGATIVE_DELTAS:
    case POSITIVE_DELTAS:
        return take_deltas(h, side, field);
    case CUSTOM_VALUES:
        return take_doubles(h->custom_values, &h->custom_count, field);
    default:
        h->floating = true;
        return take_doubles(side->buckets, &side->bucket_count, field);
    }
}

static bool take_field(struct histogram *h, const struct in_field *field)
{
    switch (field->number) {
    case COUNT_FLOAT:
    case SUM:
    case ZERO_THRESHOLD:
    case ZERO_FLOAT:
        return take_float(h, field);
    case COUNT_INT:
    case SCHEMA:
    case ZERO_INT:
    case RESET_HINT:
    case TIME:
    case START_TIME:
        return take_number(h, field);
    case NEGATIVE_SPANS:
    case NEGATIVE_DELTAS:
    case NEGATIVE_COUNTS:
    case POSITIVE_SPANS:
    case POSITIVE_DELTAS:
    case POSITIVE_COUNTS:
    case CUSTOM_VALUES:
        return take_buckets(h, field);
    default: /* of a later version */
        return true;
    }
}

static bool begin(struct histogram *h, struct qf_str bytes)
{
    size_t counts[FIELDS];

    h->out = QF_ARENA_NEW(h->arena, struct pq_histogram);
    if (!h->out || !in_count_fields(bytes, counts, FIELDS))
        return false;
    h->custom_values =
        QF_ARENA_ARRAY(h->arena, double, count_numbers(bytes, CUSTOM_VALUES, IN_WIRE_FIXED64));
    return h->custom_values &&
           make_side(h, bytes, counts[NEGATIVE_SPANS], NEGATIVE_DELTAS, &h->negative) &&
           make_side(h, bytes, counts[POSITIVE_SPANS], POSITIVE_DELTAS, &h->positive);
}

/* Integers must add up, unless an observation was not a number and fell into no bucket. */
static const char *settle_integers(struct histogram *h)
{
    uint64_t total;

    if (__builtin_add_overflow(h->total, h->zero_count, &total))
        return "a histogram's bucket counts are negative or too large";
    h->out->count = (double)h->count;
    h->out->zero_count = (double)h->zero_count;
    if (isnan(h->out->sum) ? total > h->count : total != h->count)
        return "a histogram's buckets do not add up to its count";
    return NULL;
}

static bool is_stale(double sum)
{
    uint64_t bits;

    memcpy(&bits, &sum, sizeof(bits));
    return bits == STALE_BITS;
}

static void finish(struct histogram *h)
{
    struct pq_histogram *out = h->out;

    if (is_stale(out->sum)) {
        h->sample->value = out->sum;
        return;
    }
    if (h->integer && h->floating)
        h->bad = "a histogram has both integers and floats";
    else if (!h->floating && !h->bad)
        h->bad = settle_integers(h);
    out->positive_spans = h->positive.spans;
    out->positive_span_count = h->positive.span_count;
    out->positive_buckets = h->positive.buckets;
    out->positive_bucket_count = h->positive.bucket_count;
    out->negative_spans = h->negative.spans;
    out->negative_span_count = h->negative.span_count;
    out->negative_buckets = h->negative.buckets;
    out->negative_bucket_count = h->negative.bucket_count;
    out->custom_values = h->custom_values;
    out->custom_value_count = h->custom_count;
    h->sample->histogram = out;
    h->sample->bad = h->bad;
}

bool in_decode_histogram(struct qf_arena *arena, struct qf_str bytes, struct in_sample *ret_sample)
{
    struct histogram h = { .arena = arena, .sample = ret_sample };
    struct in_wire wire = in_wire_of(bytes);
    struct in_field field;

    *ret_sample = (struct in_sample){ 0 };
    if (!begin(&h, bytes))
        return false;
    while (in_wire_next(&wire, &field))
        if (!take_field(&h, &field))
            return false;
    finish(&h);
    return true;
}
