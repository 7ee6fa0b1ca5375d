/* codec.c - native histograms as bytes. */
#include "promql/histogram/codec.h"

#include "base/pure/varint.h"

static void put_varint(struct qf_strbuf *buf, uint64_t value)
{
    unsigned char bytes[QF_VARINT_MAX];

    qf_strbuf_add(buf, bytes, qf_varint_put(bytes, value));
}

static void put_double(struct qf_strbuf *buf, double value)
{
    qf_strbuf_add(buf, &value, sizeof(value));
}

static void put_doubles(struct qf_strbuf *buf, const double *values, size_t count)
{
    put_varint(buf, count);
    for (size_t i = 0; i < count; i++)
        put_double(buf, values[i]);
}

static void put_spans(struct qf_strbuf *buf, const struct pq_span *spans, size_t count)
{
    put_varint(buf, count);
    for (size_t i = 0; i < count; i++) {
        put_varint(buf, qf_zigzag(spans[i].offset));
        put_varint(buf, spans[i].length);
    }
}

void pq_histogram_encode(struct qf_strbuf *buf, const struct pq_histogram *histogram)
{
    put_varint(buf, histogram->reset_hint);
    put_varint(buf, histogram->reset_hint_given);
    put_varint(buf, qf_zigzag(histogram->schema));
    put_double(buf, histogram->zero_threshold);
    put_double(buf, histogram->zero_count);
    put_double(buf, histogram->count);
    put_double(buf, histogram->sum);
    put_spans(buf, histogram->positive_spans, histogram->positive_span_count);
    put_spans(buf, histogram->negative_spans, histogram->negative_span_count);
    put_doubles(buf, histogram->positive_buckets, histogram->positive_bucket_count);
    put_doubles(buf, histogram->negative_buckets, histogram->negative_bucket_count);
    put_doubles(buf, histogram->custom_values, histogram->custom_value_count);
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

static const double *get_doubles(struct cursor *c, size_t *ret_count)
{
    size_t count = get_varint(c, c->rest.len / sizeof(double));
    size_t size = count * sizeof(double);
    double *values = count ? qf_arena_alloc(c->arena, size) : NULL;

    *ret_count = 0;
    if (count && !values) {
        c->bad = c->spent = true;
        return NULL;
    }
    if (size > c->rest.len) {
        c->bad = true;
        return NULL;
    }
    if (count)
        memcpy(values, c->rest.data, size);
    c->rest = qf_str_sub(c->rest, size, c->rest.len);
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

    if (!h)
        return qf_err_set(err, QF_ELIMIT, "too little memory for a histogram");
    h->reset_hint = (enum pq_reset_hint)get_varint(&c, PQ_RESET_GAUGE);
    h->reset_hint_given = get_varint(&c, 1) == 1;
    h->schema = get_i32(&c);
    h->zero_threshold = get_double(&c);
    h->zero_count = get_double(&c);
    h->count = get_double(&c);
    h->sum = get_double(&c);
    h->positive_spans = get_spans(&c, &h->positive_span_count);
    h->negative_spans = get_spans(&c, &h->negative_span_count);
    h->positive_buckets = get_doubles(&c, &h->positive_bucket_count);
    h->negative_buckets = get_doubles(&c, &h->negative_bucket_count);
    h->custom_values = get_doubles(&c, &h->custom_value_count);
    if (c.spent)
        return qf_err_set(err, QF_ELIMIT, "too little memory for a histogram");
    if (c.bad || c.rest.len ||
        !spans_fit(h->positive_spans, h->positive_span_count, h->positive_bucket_count) ||
        !spans_fit(h->negative_spans, h->negative_span_count, h->negative_bucket_count))
        return qf_err_set(err, QF_ECORRUPT, "a histogram is malformed");
    *ret_histogram = h;
    return QF_OK;
}
