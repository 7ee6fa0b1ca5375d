/* codec.c - native histograms as bytes. */
#include "promql/histogram/codec.h"

#include <math.h>

#include "base/pure/varint.h"

#define WHOLES 4 /* added to the hint */
#define WHOLE_MAX ((uint64_t)1 << 53)

static void put_varint(struct qf_strbuf *buf, uint64_t value)
{
    unsigned char bytes[QF_VARINT_MAX];

    qf_strbuf_add(buf, bytes, qf_varint_put(bytes, value));
}

static void put_double(struct qf_strbuf *buf, double value)
{
    qf_strbuf_add(buf, &value, sizeof(value));
}

static void put_spans(struct qf_strbuf *buf, const struct pq_span *spans, size_t count)
{
    put_varint(buf, count);
    for (size_t i = 0; i < count; i++) {
        put_varint(buf, qf_zigzag(spans[i].offset));
        put_varint(buf, spans[i].length);
    }
}

static bool is_whole(double value)
{
    return value >= 0 && value <= (double)WHOLE_MAX && value == floor(value) && !signbit(value);
}

static bool all_whole(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!is_whole(values[i]))
            return false;
    return true;
}

static bool counts_wholes(const struct pq_histogram *h)
{
    return is_whole(h->count) && is_whole(h->zero_count) &&
           all_whole(h->positive_buckets, h->positive_bucket_count) &&
           all_whole(h->negative_buckets, h->negative_bucket_count);
}

static void put_count(struct qf_strbuf *buf, double value, bool wholes)
{
    if (wholes)
        put_varint(buf, (uint64_t)value);
    else
        put_double(buf, value);
}

static void put_counts(struct qf_strbuf *buf, const double *values, size_t count, bool wholes)
{
    put_varint(buf, count);
    for (size_t i = 0; i < count; i++)
        put_count(buf, values[i], wholes);
}

static void encode(struct qf_strbuf *buf, const struct pq_histogram *h, bool wholes)
{
    put_varint(buf, (uint64_t)h->reset_hint + (wholes ? WHOLES : 0));
    put_varint(buf, h->reset_hint_given);
    put_varint(buf, qf_zigzag(h->schema));
    put_double(buf, h->zero_threshold);
    put_count(buf, h->zero_count, wholes);
    put_count(buf, h->count, wholes);
    put_double(buf, h->sum);
    put_spans(buf, h->positive_spans, h->positive_span_count);
    put_spans(buf, h->negative_spans, h->negative_span_count);
    put_counts(buf, h->positive_buckets, h->positive_bucket_count, wholes);
    put_counts(buf, h->negative_buckets, h->negative_bucket_count, wholes);
    put_counts(buf, h->custom_values, h->custom_value_count, false);
}

void pq_histogram_encode(struct qf_strbuf *buf, const struct pq_histogram *histogram)
{
    encode(buf, histogram, counts_wholes(histogram));
}

bool pq_histogram_encodes_to(const struct pq_histogram *histogram, struct qf_str bytes)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf again = QF_STRBUF_INIT;
    bool wholes = bytes.len > 0 && bytes.data[0] >= WHOLES;

    if (wholes && !counts_wholes(histogram))
        return false;
    encode(&again, histogram, wholes);
    return qf_str_eq(bytes, qf_strbuf_view(&again));
}

/* A reader with a sticky failure: check once at the end. */
struct cursor {
    struct qf_arena *arena;
    struct qf_str rest;
    bool bad, spent;
};

static uint64_t get_varint(struct cursor *c, uint64_t max)
{
    uint64_t value = 0;
    size_t used = c->bad ? 0 : qf_varint_get(c->rest, &value);

    if (!used || value > max) {
        c->bad = true;
        return 0;
    }
    c->rest = qf_str_sub(c->rest, used, c->rest.len);
    return value;
}

static double get_double(struct cursor *c)
{
    double value;

    if (c->bad || c->rest.len < sizeof(value)) {
        c->bad = true;
        return 0;
    }
    memcpy(&value, c->rest.data, sizeof(value));
    c->rest = qf_str_sub(c->rest, sizeof(value), c->rest.len);
    return value;
}

static int32_t get_i32(struct cursor *c)
{
    return (int32_t)qf_unzigzag(get_varint(c, UINT32_MAX));
}

static double get_count(struct cursor *c, bool wholes)
{
    return wholes ? (double)get_varint(c, WHOLE_MAX) : get_double(c);
}

/* Buckets are most of a histogram, and most of them take one or two bytes. */
static void get_wholes(struct cursor *c, double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const unsigned char *at = (const unsigned char *)c->rest.data;

        if (c->rest.len < 2 || (at[0] & at[1] & 0x80)) {
            values[i] = (double)get_varint(c, WHOLE_MAX);
        } else {
            unsigned more = at[0] >> 7;

            values[i] = (double)((at[0] & 0x7fu) | (more ? (unsigned)at[1] << 7 : 0));
            c->rest = (struct qf_str){ c->rest.data + 1 + more, c->rest.len - 1 - more };
        }
    }
}

static const double *get_counts(struct cursor *c, bool wholes, size_t *ret_count)
{
    size_t least = wholes ? 1 : sizeof(double); /* bytes that a count takes */
    size_t count = get_varint(c, c->rest.len / least);
    double *values = count ? qf_arena_alloc(c->arena, count * sizeof(*values)) : NULL;

    *ret_count = 0;
    if (count && !values) {
        c->bad = c->spent = true;
        return NULL;
    }
    if (count * least > c->rest.len) {
        c->bad = true;
        return NULL;
    }
    if (wholes) {
        get_wholes(c, values, count);
    } else if (count) {
        memcpy(values, c->rest.data, count * sizeof(*values));
        c->rest = qf_str_sub(c->rest, count * sizeof(*values), c->rest.len);
    }
    *ret_count = count;
    return values;
}

static const struct pq_span *get_spans(struct cursor *c, size_t *ret_count)
{
    size_t count = get_varint(c, c->rest.len / 2);
    struct pq_span *spans = count ? QF_ARENA_ARRAY(c->arena, struct pq_span, count) : NULL;

    *ret_count = 0;
    if (count && !spans) {
        c->bad = c->spent = true;
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        spans[i].offset = get_i32(c);
        spans[i].length = (uint32_t)get_varint(c, UINT32_MAX);
    }
    *ret_count = count;
    return spans;
}

/* Every bucket belongs to a span and every span has its buckets. */
static bool spans_fit(const struct pq_span *spans, size_t span_count, size_t bucket_count)
{
    uint64_t total = 0;

    for (size_t i = 0; i < span_count; i++)
        total += spans[i].length;
    return total == bucket_count;
}

qf_rc pq_histogram_decode(struct qf_arena *arena, struct qf_str bytes,
                          const struct pq_histogram **ret_histogram, struct qf_err *err)
{
    struct cursor c = { .arena = arena, .rest = bytes };
    struct pq_histogram *h = QF_ARENA_NEW(arena, struct pq_histogram);
    uint64_t hint;
    bool wholes;

    if (!h)
        return qf_err_set(err, QF_ELIMIT, "too little memory for a histogram");
    hint = get_varint(&c, WHOLES + PQ_RESET_GAUGE);
    wholes = hint >= WHOLES;
    h->reset_hint = (enum pq_reset_hint)(wholes ? hint - WHOLES : hint);
    h->reset_hint_given = get_varint(&c, 1) == 1;
    h->schema = get_i32(&c);
    h->zero_threshold = get_double(&c);
    h->zero_count = get_count(&c, wholes);
    h->count = get_count(&c, wholes);
    h->sum = get_double(&c);
    h->positive_spans = get_spans(&c, &h->positive_span_count);
    h->negative_spans = get_spans(&c, &h->negative_span_count);
    h->positive_buckets = get_counts(&c, wholes, &h->positive_bucket_count);
    h->negative_buckets = get_counts(&c, wholes, &h->negative_bucket_count);
    h->custom_values = get_counts(&c, false, &h->custom_value_count);
    if (c.spent)
        return qf_err_set(err, QF_ELIMIT, "too little memory for a histogram");
    if (c.bad || c.rest.len ||
        !spans_fit(h->positive_spans, h->positive_span_count, h->positive_bucket_count) ||
        !spans_fit(h->negative_spans, h->negative_span_count, h->negative_bucket_count))
        return qf_err_set(err, QF_ECORRUPT, "a histogram is malformed");
    *ret_histogram = h;
    return QF_OK;
}
