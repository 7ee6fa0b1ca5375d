/* family.c - families of metrics, written field by field. */
#include "queryapi/encode/family.h"

#include "base/pure/number.h"
#include "base/pure/varint.h"
#include "queryapi/encode/fields.h"

/* Numbers of MetricType. */
enum family_type { UNTYPED = 3, HISTOGRAM = 4, GAUGE_HISTOGRAM = 5 };

/* Buffers for messages inside of messages, by how deep they are. */
struct inner {
    struct qf_strbuf metric, part, span;
};

static const struct pq_histogram *newest_histogram(const struct pq_result_series *series)
{
    return pq_histogram_at(series->histograms, series->count - 1);
}

bool qa_family_takes(const struct pq_result_series *series)
{
    const struct pq_histogram *histogram = newest_histogram(series);

    return histogram ? histogram->schema != PQ_SCHEMA_CUSTOM
                     : !qf_is_stale(series->values[series->count - 1]);
}

static enum family_type type_of(const struct pq_result_series *series)
{
    const struct pq_histogram *histogram = newest_histogram(series);

    if (!histogram)
        return UNTYPED;
    return histogram->reset_hint == PQ_RESET_GAUGE ? GAUGE_HISTOGRAM : HISTOGRAM;
}

static struct qf_str name_of(const struct pq_result_series *series)
{
    return qf_labels_get(series->labels, QF_STR(QF_METRIC_NAME));
}

static void put_label(struct inner *inner, struct qf_str name, struct qf_str value,
                      enum qa_escaping escaping)
{
    qa_exposition_name(&inner->span, name, escaping);
    qa_put_inner(&inner->part, 1, &inner->span);
    qa_put_bytes(&inner->part, 2, value);
    qa_put_inner(&inner->metric, 1, &inner->part);
}

/* A series without the label `instance` gets it empty, as in text. */
static void put_labels(struct inner *inner, struct qf_labels labels, enum qa_escaping escaping)
{
    bool instance = false;

    for (size_t i = 0; i < labels.count; i++) {
        if (qf_str_is(labels.items[i].name, QF_METRIC_NAME))
            continue;
        instance |= qf_str_is(labels.items[i].name, "instance");
        put_label(inner, labels.items[i].name, labels.items[i].value, escaping);
    }
    if (!instance)
        put_label(inner, QF_STR("instance"), QF_STR(""), escaping);
}

static void put_spans(struct inner *inner, unsigned field, const struct pq_span *spans,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        qa_put_varint(&inner->span, 1, (uint32_t)qf_zigzag(spans[i].offset));
        qa_put_varint(&inner->span, 2, spans[i].length);
        qa_put_inner(&inner->part, field, &inner->span);
    }
}

static void put_counts(struct inner *inner, unsigned field, const double *counts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        qa_put_fixed(&inner->part, field, counts[i]);
}

static void put_histogram(struct inner *inner, const struct pq_histogram *h)
{
    qa_put_fixed(&inner->part, 2, h->sum);
    qa_put_fixed(&inner->part, 4, h->count);
    qa_put_varint(&inner->part, 5, (uint32_t)qf_zigzag(h->schema));
    qa_put_fixed(&inner->part, 6, h->zero_threshold);
    qa_put_fixed(&inner->part, 8, h->zero_count);
    put_spans(inner, 9, h->negative_spans, h->negative_span_count);
    put_counts(inner, 11, h->negative_buckets, h->negative_bucket_count);
    put_spans(inner, 12, h->positive_spans, h->positive_span_count);
    put_counts(inner, 14, h->positive_buckets, h->positive_bucket_count);
    qa_put_inner(&inner->metric, 7, &inner->part);
}

static void put_metric(struct inner *inner, const struct pq_result_series *series,
                       enum qa_escaping escaping)
{
    const struct pq_histogram *histogram = newest_histogram(series);

    put_labels(inner, series->labels, escaping);
    if (!histogram) {
        qa_put_fixed(&inner->part, 1, series->values[series->count - 1]);
        qa_put_inner(&inner->metric, 5, &inner->part);
    }
    qa_put_varint(&inner->metric, 6, (uint64_t)series->ts[series->count - 1]);
    if (histogram)
        put_histogram(inner, histogram);
}

size_t qa_family_put(struct qf_strbuf *buf, const struct pq_result_series *const *series,
                     size_t count, enum qa_escaping escaping)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf family = QF_STRBUF_INIT;
    struct qf_str name = name_of(series[0]);
    enum family_type type = type_of(series[0]);
    struct inner inner = { 0 };
    size_t used = 0;

    qa_exposition_name(&inner.part, name, escaping);
    qa_put_inner(&family, 1, &inner.part);
    qa_put_varint(&family, 3, type);
    while (used < count && family.len <= QA_FAMILY_BYTES && type_of(series[used]) == type &&
           qf_str_eq(name_of(series[used]), name)) {
        put_metric(&inner, series[used++], escaping);
        qa_put_inner(&family, 4, &inner.metric);
    }
    qf_strbuf_done(&inner.metric);
    qf_strbuf_done(&inner.part);
    qf_strbuf_done(&inner.span);
    qa_put_number(buf, family.len);
    qf_strbuf_str(buf, qf_strbuf_view(&family));
    return used;
}
