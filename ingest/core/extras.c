/* extras.c - exemplars and metadata as bytes. */
#include "ingest/core/extras.h"

#include <string.h>

#include "base/pure/varint.h"

static void put_text(struct qf_strbuf *buf, struct qf_str text)
{
    qf_strbuf_varint(buf, text.len);
    qf_strbuf_str(buf, text);
}

static void put_labels(struct qf_strbuf *buf, struct qf_labels labels)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    qf_labels_encode(&text, labels);
    put_text(buf, qf_strbuf_view(&text));
    qf_strbuf_done(&text);
}

void in_extra_put_exemplar(struct qf_strbuf *buf, struct qf_labels series,
                           const struct in_exemplar *exemplar)
{
    qf_strbuf_varint(buf, IN_EXTRA_EXEMPLAR);
    put_labels(buf, series);
    put_labels(buf, (struct qf_labels){ exemplar->labels, exemplar->label_count });
    qf_strbuf_add(buf, &exemplar->value, sizeof(exemplar->value));
    qf_strbuf_varint(buf, qf_zigzag(exemplar->ts));
}

void in_extra_put_metadata(struct qf_strbuf *buf, const struct in_metadata *metadata)
{
    qf_strbuf_varint(buf, IN_EXTRA_METADATA);
    put_text(buf, metadata->name);
    qf_strbuf_varint(buf, metadata->type);
    put_text(buf, metadata->help);
    put_text(buf, metadata->unit);
}

static bool get_text(struct qf_str *rest, struct qf_str *ret_text)
{
    uint64_t len;

    if (!qf_varint_take(rest, &len) || len > rest->len)
        return false;
    *ret_text = qf_str_sub(*rest, 0, (size_t)len);
    *rest = qf_str_sub(*rest, (size_t)len, rest->len);
    return true;
}

static bool get_exemplar(struct qf_str *rest, struct in_extra *extra)
{
    uint64_t ts;

    if (!get_text(rest, &extra->series) || !get_text(rest, &extra->labels) ||
        rest->len < sizeof(extra->value))
        return false;
    memcpy(&extra->value, rest->data, sizeof(extra->value));
    *rest = qf_str_sub(*rest, sizeof(extra->value), rest->len);
    if (!qf_varint_take(rest, &ts))
        return false;
    extra->ts = qf_unzigzag(ts);
    return true;
}

static bool get_metadata(struct qf_str *rest, struct in_metadata *metadata)
{
    uint64_t type;

    if (!get_text(rest, &metadata->name) || !qf_varint_take(rest, &type) ||
        type >= QF_METRIC_TYPE__COUNT || !get_text(rest, &metadata->help) ||
        !get_text(rest, &metadata->unit))
        return false;
    metadata->type = (enum qf_metric_type)type;
    return true;
}

bool in_extra_next(struct qf_str *rest, struct in_extra *ret_extra)
{
    struct in_extra extra = { 0 };
    struct qf_str left = *rest;
    uint64_t kind;

    if (!left.len || !qf_varint_take(&left, &kind))
        return false;
    extra.kind = (enum in_extra_kind)kind;
    if (kind == IN_EXTRA_EXEMPLAR   ? !get_exemplar(&left, &extra)
        : kind == IN_EXTRA_METADATA ? !get_metadata(&left, &extra.metadata)
                                    : true)
        return false;
    extra.bytes = qf_str_sub(*rest, 0, rest->len - left.len);
    *rest = left;
    *ret_extra = extra;
    return true;
}

bool in_extras_valid(struct qf_str bytes, struct qf_arena *arena)
{
    struct in_extra extra;
    struct qf_labels labels;

    while (in_extra_next(&bytes, &extra)) {
        qf_arena_reset(arena);
        if (extra.kind == IN_EXTRA_EXEMPLAR &&
            (qf_labels_decode(arena, extra.series, &labels, NULL) != QF_OK || !labels.count ||
             qf_labels_decode(arena, extra.labels, &labels, NULL) != QF_OK))
            return false;
    }
    return bytes.len == 0;
}
