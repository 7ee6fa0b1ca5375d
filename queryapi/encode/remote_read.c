/* remote_read.c - messages of remote read, written field by field. */
#include "queryapi/encode/remote_read.h"

#include "base/pure/crc32c.h"
#include "base/pure/number.h"
#include "base/pure/varint.h"
#include "queryapi/encode/fields.h"
#include "queryapi/encode/xor_chunk.h"

enum { ENCODING_XOR = 1 };

static void put_labels(struct qf_strbuf *buf, struct qf_labels labels, struct qf_strbuf *inner)
{
    for (size_t i = 0; i < labels.count; i++) {
        qa_put_bytes(inner, 1, labels.items[i].name);
        qa_put_bytes(inner, 2, labels.items[i].value);
        qa_put_inner(buf, 1, inner);
    }
}

/* --- samples --- */

static void put_spans(struct qf_strbuf *buf, unsigned field, const struct pq_span *spans,
                      size_t count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf inner = QF_STRBUF_INIT;

    for (size_t i = 0; i < count; i++) {
        qa_put_uint(&inner, 1, qf_zigzag(spans[i].offset));
        qa_put_uint(&inner, 2, spans[i].length);
        qa_put_inner(buf, field, &inner);
    }
}

static void put_doubles(struct qf_strbuf *buf, unsigned field, const double *values, size_t count)
{
    if (!count)
        return;
    qa_put_tag(buf, field, QA_WIRE_BYTES);
    qa_put_number(buf, count * sizeof(*values));
    for (size_t i = 0; i < count; i++)
        qa_put_bits(buf, qf_double_bits(values[i]));
}

static uint64_t hint_number(enum pq_reset_hint hint)
{
    switch (hint) {
    case PQ_RESET_UNKNOWN:
        return 0;
    case PQ_RESET_YES:
        return 1;
    case PQ_RESET_NO:
        return 2;
    case PQ_RESET_GAUGE:
        return 3;
    }
    return 0;
}

/* Counts are floats: the fields of a oneof are written also if they are zero. */
static void put_histogram(struct qf_strbuf *buf, const struct pq_histogram *h, int64_t ts)
{
    qa_put_fixed(buf, 2, h->count);
    qa_put_double(buf, 3, h->sum);
    qa_put_uint(buf, 4, (uint32_t)qf_zigzag(h->schema));
    qa_put_double(buf, 5, h->zero_threshold);
    qa_put_fixed(buf, 7, h->zero_count);
    put_spans(buf, 8, h->negative_spans, h->negative_span_count);
    put_doubles(buf, 10, h->negative_buckets, h->negative_bucket_count);
    put_spans(buf, 11, h->positive_spans, h->positive_span_count);
    put_doubles(buf, 13, h->positive_buckets, h->positive_bucket_count);
    qa_put_uint(buf, 14, hint_number(h->reset_hint));
    qa_put_uint(buf, 15, (uint64_t)ts);
    put_doubles(buf, 16, h->custom_values, h->custom_value_count);
}

/* The end of a series of histograms is a histogram too, in Prometheus's storage, and its readers look for
 * it there: @room, with a sum that is a stale marker. */
static const struct pq_histogram *histogram_at(const struct pq_result_series *series, size_t i,
                                               struct pq_histogram *room)
{
    const struct pq_histogram *histogram = pq_histogram_at(series->histograms, i);

    if (histogram || i == 0 || !qf_is_stale(series->values[i]) ||
        !pq_histogram_at(series->histograms, i - 1))
        return histogram;
    *room = (struct pq_histogram){ .sum = series->values[i] };
    return room;
}

static void put_series(struct qf_strbuf *buf, const struct pq_result_series *series,
                       struct qf_strbuf *inner)
{
    put_labels(buf, series->labels, inner);
    for (size_t i = 0; i < series->count; i++) {
        struct pq_histogram room;
        const struct pq_histogram *histogram = histogram_at(series, i, &room);

        if (histogram) {
            put_histogram(inner, histogram, series->ts[i]);
        } else {
            qa_put_double(inner, 1, series->values[i]);
            qa_put_uint(inner, 2, (uint64_t)series->ts[i]);
        }
        qa_put_inner(buf, histogram ? 4 : 2, inner);
    }
}

void qa_read_result(struct qf_strbuf *buf, const struct pq_result *result)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf all = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf one = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf inner = QF_STRBUF_INIT;

    for (size_t i = 0; i < result->series_count; i++) {
        put_series(&one, &result->series[i], &inner);
        qa_put_inner(&all, 1, &one);
    }
    qa_put_inner(buf, 1, &all);
}

/* --- chunks --- */

static void put_chunks(struct qf_strbuf *buf, const struct pq_result_series *series, size_t from,
                       size_t to)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf data = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf chunk = QF_STRBUF_INIT;

    while (from < to) {
        size_t count = QF_MIN(to - from, (size_t)QA_XOR_SAMPLES);

        qa_xor_chunk(series->ts + from, series->values + from, count, &data);
        qa_put_uint(&chunk, 1, (uint64_t)series->ts[from]);
        qa_put_uint(&chunk, 2, (uint64_t)series->ts[from + count - 1]);
        qa_put_uint(&chunk, 3, ENCODING_XOR);
        qa_put_inner(&chunk, 4, &data);
        qa_put_inner(buf, 2, &chunk);
        from += count;
    }
}

void qa_read_frame(struct qf_strbuf *buf, const struct pq_result_series *series, size_t from,
                   size_t to, size_t index)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf one = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf message = QF_STRBUF_INIT;
    uint32_t crc;

    put_labels(&one, series->labels, &message);
    put_chunks(&one, series, from, to);
    qa_put_inner(&message, 1, &one);
    qa_put_uint(&message, 2, index);
    qa_put_number(buf, message.len);
    crc = qf_crc32c(qf_strbuf_view(&message));
    for (int shift = 24; shift >= 0; shift -= 8)
        qf_strbuf_putc(buf, (char)(crc >> shift));
    qf_strbuf_str(buf, qf_strbuf_view(&message));
}
