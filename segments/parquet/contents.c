/* contents.c - the names in a segment.
 *
 * Text: "1:" and base64 of
 *     varint count of metrics, and of each: string, varint samples;
 *     varint count of labels, and of each: string, varint 0 if open, else 1 + count of values, and these.
 * A string is a varint length and its bytes. */
#include "segments/parquet/contents.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/arena.h"
#include "base/pure/base64.h"
#include "base/pure/map.h"
#include "base/pure/varint.h"
#include "base/pure/vec.h"

#define VERSION "1:"
/* What is decoded takes a few times its bytes: an empty string is one of them. */
#define PARSED_BYTES_MAX (SG_CONTENTS_BYTES_MAX * 64)

/* --- building --- */

struct label {
    struct qf_str name;
    QF_VEC(struct qf_str) values;
    size_t bytes; /* of the values, encoded */
    bool open;
};

struct sg_contents_builder {
    struct qf_arena *arena;
    struct qf_map metric_index, label_index, pairs; /* name, name, index of label and value */
    QF_VEC(struct sg_contents_metric) metrics;
    QF_VEC(struct label) labels;
    struct qf_strbuf key;
    size_t bytes; /* of metrics and names of labels, encoded: at least */
    size_t last;  /* the metric of the last series */
    bool full;
};

struct sg_contents_builder *sg_contents_builder_new(void)
{
    struct sg_contents_builder *builder = qf_xcalloc(1, sizeof(*builder));

    builder->arena = qf_arena_new(SIZE_MAX);
    return builder;
}

struct sg_contents_builder *sg_contents_builder_free(struct sg_contents_builder *builder)
{
    if (!builder)
        return NULL;
    for (size_t i = 0; i < builder->labels.count; i++)
        QF_VEC_DONE(&builder->labels.items[i].values);
    QF_VEC_DONE(&builder->labels);
    QF_VEC_DONE(&builder->metrics);
    qf_map_done(&builder->metric_index);
    qf_map_done(&builder->label_index);
    qf_map_done(&builder->pairs);
    qf_strbuf_done(&builder->key);
    (void)qf_arena_free(builder->arena);
    free(builder);
    return NULL;
}

/* Room for @name among the names, without which there is nothing to tell. */
static bool take_name(struct sg_contents_builder *builder, struct qf_str name)
{
    builder->bytes += name.len + 3;
    builder->full |= builder->bytes > SG_CONTENTS_BYTES_MAX;
    return !builder->full;
}

static void add_metric(struct sg_contents_builder *builder, struct qf_str name)
{
    uint64_t *index = qf_map_get(&builder->metric_index, name);

    if (!index) {
        struct qf_str copy;

        if (!take_name(builder, name))
            return;
        copy = qf_arena_str(builder->arena, name);
        index = qf_map_put(&builder->metric_index, copy, builder->metrics.count, NULL);
        QF_VEC_PUSH(&builder->metrics, (struct sg_contents_metric){ .name = copy });
    }
    builder->last = (size_t)*index;
}

static struct label *label_of(struct sg_contents_builder *builder, struct qf_str name)
{
    uint64_t *index = qf_map_get(&builder->label_index, name);

    if (!index) {
        struct qf_str copy;

        if (!take_name(builder, name))
            return NULL;
        copy = qf_arena_str(builder->arena, name);
        index = qf_map_put(&builder->label_index, copy, builder->labels.count, NULL);
        QF_VEC_PUSH(&builder->labels, (struct label){ .name = copy });
    }
    return &builder->labels.items[*index];
}

static void add_value(struct sg_contents_builder *builder, struct label *label, struct qf_str value)
{
    uint64_t index = (uint64_t)(label - builder->labels.items);

    if (label->open)
        return;
    qf_strbuf_reset(&builder->key);
    qf_strbuf_add(&builder->key, &index, sizeof(index));
    qf_strbuf_str(&builder->key, value);
    if (qf_map_get(&builder->pairs, qf_strbuf_view(&builder->key)))
        return;
    label->bytes += value.len + 2;
    if (label->bytes > SG_CONTENTS_BYTES_MAX) {
        label->open = true;
        return;
    }
    (void)qf_map_put(&builder->pairs, qf_arena_str(builder->arena, qf_strbuf_view(&builder->key)),
                     0, NULL);
    QF_VEC_PUSH(&label->values, qf_arena_str(builder->arena, value));
}

void sg_contents_builder_add(struct sg_contents_builder *builder, struct qf_labels labels)
{
    if (!builder->full)
        add_metric(builder, qf_labels_get(labels, QF_STR(QF_METRIC_NAME)));
    for (size_t i = 0; i < labels.count && !builder->full; i++) {
        struct label *label;

        if (qf_str_is(labels.items[i].name, QF_METRIC_NAME))
            continue;
        label = label_of(builder, labels.items[i].name);
        if (label)
            add_value(builder, label, labels.items[i].value);
    }
}

void sg_contents_builder_count(struct sg_contents_builder *builder, uint64_t samples)
{
    if (!builder->full)
        builder->metrics.items[builder->last].samples += samples;
}

static int metrics_by_name(const void *a, const void *b)
{
    return qf_str_cmp(((const struct sg_contents_metric *)a)->name,
                      ((const struct sg_contents_metric *)b)->name);
}

static int labels_by_name(const void *a, const void *b)
{
    return qf_str_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

static int labels_by_bytes(const void *a, const void *b)
{
    const struct label *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return labels_by_name(a, b);
}

static int strings(const void *a, const void *b)
{
    return qf_str_cmp(*(const struct qf_str *)a, *(const struct qf_str *)b);
}

static void put_varint(struct qf_strbuf *buf, uint64_t value)
{
    unsigned char bytes[QF_VARINT_MAX];

    qf_strbuf_add(buf, bytes, qf_varint_put(bytes, value));
}

static void put_string(struct qf_strbuf *buf, struct qf_str text)
{
    put_varint(buf, text.len);
    qf_strbuf_str(buf, text);
}

static void put_metrics(struct sg_contents_builder *builder, struct qf_strbuf *buf)
{
    if (builder->metrics.count)
        qsort(builder->metrics.items, builder->metrics.count, sizeof(builder->metrics.items[0]),
              metrics_by_name);
    put_varint(buf, builder->metrics.count);
    for (size_t i = 0; i < builder->metrics.count; i++) {
        put_string(buf, builder->metrics.items[i].name);
        put_varint(buf, builder->metrics.items[i].samples);
    }
}

static void put_label(struct label *label, struct qf_strbuf *buf)
{
    put_string(buf, label->name);
    put_varint(buf, label->open ? 0 : label->values.count + 1);
    if (label->open)
        return;
    if (label->values.count)
        qsort(label->values.items, label->values.count, sizeof(label->values.items[0]), strings);
    for (size_t i = 0; i < label->values.count; i++)
        put_string(buf, label->values.items[i]);
}

/* Open the labels whose values do not fit beside the rest; the smallest stay. */
static void fit_labels(struct sg_contents_builder *builder, size_t used)
{
    if (builder->labels.count)
        qsort(builder->labels.items, builder->labels.count, sizeof(builder->labels.items[0]),
              labels_by_bytes);
    for (size_t i = 0; i < builder->labels.count; i++) {
        struct label *label = &builder->labels.items[i];

        label->open |= used + label->bytes > SG_CONTENTS_BYTES_MAX;
        used += label->open ? 0 : label->bytes;
    }
    if (builder->labels.count)
        qsort(builder->labels.items, builder->labels.count, sizeof(builder->labels.items[0]),
              labels_by_name);
}

void sg_contents_builder_print(struct sg_contents_builder *builder, struct qf_strbuf *buf)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf raw = QF_STRBUF_INIT;
    size_t names = 0;

    if (builder->full)
        return;
    put_metrics(builder, &raw);
    for (size_t i = 0; i < builder->labels.count; i++)
        names += builder->labels.items[i].name.len + 6;
    fit_labels(builder, raw.len + names);
    put_varint(&raw, builder->labels.count);
    for (size_t i = 0; i < builder->labels.count; i++)
        put_label(&builder->labels.items[i], &raw);
    if (raw.len > SG_CONTENTS_BYTES_MAX)
        return;
    qf_strbuf_puts(buf, VERSION);
    qf_base64_encode(buf, qf_strbuf_view(&raw));
}

/* --- reading --- */

static bool get_varint(struct qf_str *bytes, uint64_t max, uint64_t *ret_value)
{
    size_t used = qf_varint_get(*bytes, ret_value);

    if (!used || *ret_value > max)
        return false;
    *bytes = qf_str_sub(*bytes, used, bytes->len);
    return true;
}

/* No more of anything than there are bytes left. */
static bool get_count(struct qf_str *bytes, uint64_t *ret_count)
{
    return get_varint(bytes, bytes->len, ret_count);
}

static bool get_string(struct qf_str *bytes, struct qf_str *ret_text)
{
    uint64_t len;

    if (!get_varint(bytes, bytes->len, &len) || len > bytes->len)
        return false;
    *ret_text = qf_str_sub(*bytes, 0, (size_t)len);
    *bytes = qf_str_sub(*bytes, (size_t)len, bytes->len);
    return true;
}

static bool get_metrics(struct sg_contents *contents, struct qf_str *bytes)
{
    struct sg_contents_metric *metrics;
    uint64_t count;

    if (!get_count(bytes, &count))
        return false;
    metrics = QF_ARENA_ARRAY(contents->arena, struct sg_contents_metric, (size_t)count);
    if (count && !metrics)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!get_string(bytes, &metrics[i].name) ||
            !get_varint(bytes, INT64_MAX, &metrics[i].samples) ||
            metrics[i].samples > INT64_MAX - contents->samples)
            return false;
        contents->samples += metrics[i].samples;
    }
    contents->metrics = metrics;
    contents->metric_count = (size_t)count;
    return true;
}

static bool get_label(struct sg_contents *contents, struct qf_str *bytes,
                      struct sg_contents_label *label)
{
    struct qf_str *values;
    uint64_t count;

    if (!get_string(bytes, &label->name) || !get_varint(bytes, bytes->len + 1, &count))
        return false;
    label->open = count == 0;
    label->value_count = (size_t)(count ? count - 1 : 0);
    values = QF_ARENA_ARRAY(contents->arena, struct qf_str, label->value_count);
    if (label->value_count && !values)
        return false;
    for (size_t i = 0; i < label->value_count; i++)
        if (!get_string(bytes, &values[i]))
            return false;
    label->values = values;
    return true;
}

static bool get_labels(struct sg_contents *contents, struct qf_str *bytes)
{
    struct sg_contents_label *labels;
    uint64_t count;

    if (!get_count(bytes, &count))
        return false;
    labels = QF_ARENA_ARRAY(contents->arena, struct sg_contents_label, (size_t)count);
    if (count && !labels)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!get_label(contents, bytes, &labels[i]))
            return false;
    contents->labels = labels;
    contents->label_count = (size_t)count;
    return true;
}

static bool decode(struct sg_contents *contents, struct qf_str bytes)
{
    struct qf_str kept = qf_arena_str(contents->arena, bytes);

    return kept.data && get_metrics(contents, &kept) && get_labels(contents, &kept) &&
           kept.len == 0;
}

struct sg_contents *sg_contents_parse(struct qf_str text)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf raw = QF_STRBUF_INIT;
    struct sg_contents *contents;

    if (!qf_str_starts(text, QF_STR(VERSION)) || text.len > 2 + (SG_CONTENTS_BYTES_MAX + 2) / 3 * 4)
        return NULL;
    if (!qf_base64_decode(&raw, qf_str_sub(text, 2, text.len)))
        return NULL;
    contents = qf_xcalloc(1, sizeof(*contents));
    contents->arena = qf_arena_new(PARSED_BYTES_MAX);
    return decode(contents, qf_strbuf_view(&raw)) ? contents : sg_contents_free(contents);
}

struct sg_contents *sg_contents_free(struct sg_contents *contents)
{
    if (!contents)
        return NULL;
    (void)qf_arena_free(contents->arena);
    free(contents);
    return NULL;
}

size_t sg_contents_bytes(const struct sg_contents *contents)
{
    return contents ? sizeof(*contents) + qf_arena_used(contents->arena) : 0;
}
