/* decode.c - what an annex has: checked whole before anything of it is believed. */
#include <endian.h>
#include <string.h>

#include "base/pure/labels.h"
#include "base/pure/map.h"
#include "base/pure/utf8.h"
#include "base/pure/varint.h"
#include "segments/annex/annex_int.h"
#include "segments/parquet/segment_name.h"

struct decoding {
    struct qf_str rest;
    uint32_t count;
    int64_t min_ts, max_ts; /* as told by the header */
    int64_t seen_min, seen_max;
    struct qf_arena *arena, *scratch;
    struct sg_annex_contents *out;
};

int annex_exemplar_cmp(const struct sg_exemplar *a, const struct sg_exemplar *b)
{
    int order = qf_str_cmp(a->series, b->series);

    if (order == 0)
        order = (a->ts > b->ts) - (a->ts < b->ts);
    if (order == 0)
        order = qf_str_cmp(a->labels, b->labels);
    return order ? order : memcmp(&a->value, &b->value, sizeof(a->value));
}

static uint64_t u64_at(struct qf_str bytes, size_t at)
{
    uint64_t value;

    memcpy(&value, bytes.data + at, sizeof(value));
    return le64toh(value);
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

static void see_time(struct decoding *d, int64_t ts)
{
    d->seen_min = QF_MIN(d->seen_min, ts);
    d->seen_max = QF_MAX(d->seen_max, ts);
}

/* --- exemplars --- */

static bool labels_valid(struct decoding *d, struct qf_str bytes, bool may_be_empty)
{
    struct qf_labels labels;

    qf_arena_reset(d->scratch);
    return qf_labels_decode(d->scratch, bytes, &labels, NULL) == QF_OK &&
           (labels.count || may_be_empty);
}

static bool read_exemplar(struct decoding *d, struct sg_exemplar *exemplar)
{
    uint64_t difference;

    if (!qf_varint_take(&d->rest, &difference) || d->rest.len < sizeof(exemplar->value))
        return false;
    /* Unsigned: whatever the bytes say, the sum is looked at afterwards. */
    exemplar->ts = (int64_t)((uint64_t)exemplar->ts + (uint64_t)qf_unzigzag(difference));
    memcpy(&exemplar->value, d->rest.data, sizeof(exemplar->value));
    d->rest = qf_str_sub(d->rest, sizeof(exemplar->value), d->rest.len);
    if (!get_text(&d->rest, &exemplar->labels) || !sg_times_fit(exemplar->ts, exemplar->ts) ||
        !labels_valid(d, exemplar->labels, true))
        return false;
    see_time(d, exemplar->ts);
    return true;
}

static bool read_exemplars(struct decoding *d)
{
    struct sg_exemplar *items = d->out->exemplars;
    size_t at = 0;

    while (at < d->count) {
        struct sg_exemplar exemplar = { 0 };
        uint64_t count;

        if (!get_text(&d->rest, &exemplar.series) || !labels_valid(d, exemplar.series, false) ||
            !qf_varint_take(&d->rest, &count) || !count || count > d->count - at)
            return false;
        for (; count; count--, at++) {
            if (!read_exemplar(d, &exemplar) ||
                (at && annex_exemplar_cmp(&items[at - 1], &exemplar) >= 0))
                return false;
            items[at] = exemplar;
        }
    }
    return true;
}

/* --- metadata --- */

static bool read_metadata(struct decoding *d)
{
    struct sg_metadata *items = d->out->metadata;

    for (size_t i = 0; i < d->count; i++) {
        uint64_t type;

        if (!get_text(&d->rest, &items[i].name) || !items[i].name.len ||
            !qf_varint_take(&d->rest, &type) || type >= QF_METRIC_TYPE__COUNT ||
            !get_text(&d->rest, &items[i].help) || !get_text(&d->rest, &items[i].unit) ||
            !qf_varint_take(&d->rest, &items[i].generation) || !qf_utf8_valid(items[i].name) ||
            !qf_utf8_valid(items[i].help) || !qf_utf8_valid(items[i].unit) ||
            (i && qf_str_cmp(items[i - 1].name, items[i].name) >= 0))
            return false;
        items[i].type = (enum qf_metric_type)type;
        see_time(d, annex_told_ms(items[i].generation));
    }
    return true;
}

/* --- the whole --- */

/* What can be told without looking at the entries. */
static qf_rc check_frame(struct qf_str bytes, const struct sg_annex_name *name, struct qf_err *err)
{
    if (bytes.len < ANNEX_HEADER + ANNEX_TRAILER || bytes.len > SG_ANNEX_BYTES_MAX ||
        memcmp(bytes.data, ANNEX_MAGIC, ANNEX_AT_VERSION) != 0)
        return qf_err_set(err, QF_ECORRUPT, "not an annex");
    if (bytes.data[ANNEX_AT_VERSION] != ANNEX_VERSION)
        return qf_err_set(err, QF_EUNSUPPORTED, "an annex of version %d, known is %d",
                          bytes.data[ANNEX_AT_VERSION], ANNEX_VERSION);
    if (u64_at(bytes, ANNEX_AT_LENGTH) != bytes.len - ANNEX_HEADER - ANNEX_TRAILER ||
        u64_at(bytes, bytes.len - ANNEX_TRAILER) !=
            qf_hash_bytes(qf_str_sub(bytes, 0, bytes.len - ANNEX_TRAILER)))
        return qf_err_set(err, QF_ECORRUPT, "the annex is damaged: its checksum is wrong");
    if (name && ((int)name->kind != bytes.data[ANNEX_AT_KIND] ||
                 name->id != u64_at(bytes, bytes.len - ANNEX_TRAILER) ||
                 name->min_ts != (int64_t)u64_at(bytes, ANNEX_AT_MIN) ||
                 name->max_ts != (int64_t)u64_at(bytes, ANNEX_AT_MAX)))
        return qf_err_set(err, QF_ECORRUPT, "the name does not fit the content");
    return QF_OK;
}

static bool make_room(struct decoding *d)
{
    size_t shortest = d->out->kind == SG_ANNEX_EXEMPLARS ? ANNEX_EXEMPLAR_MIN : ANNEX_METADATA_MIN;

    if (d->count > d->rest.len / shortest)
        return false; /* more than the bytes can hold */
    d->out->count = d->count;
    if (d->out->kind == SG_ANNEX_EXEMPLARS)
        d->out->exemplars = QF_ARENA_ARRAY(d->arena, struct sg_exemplar, d->count);
    else
        d->out->metadata = QF_ARENA_ARRAY(d->arena, struct sg_metadata, d->count);
    return true;
}

qf_rc sg_annex_decode(struct qf_str bytes, const struct sg_annex_name *name, struct qf_arena *arena,
                      struct sg_annex_contents *ret_contents, struct qf_err *err)
{
    struct sg_annex_contents contents = { 0 };
    struct decoding d = {
        .arena = arena, .out = &contents, .seen_min = INT64_MAX, .seen_max = INT64_MIN
    };
    qf_rc rc = check_frame(bytes, name, err);
    bool ok;

    if (rc != QF_OK)
        return rc;
    memcpy(&d.count, bytes.data + ANNEX_AT_COUNT, sizeof(d.count));
    d.count = le32toh(d.count);
    d.min_ts = (int64_t)u64_at(bytes, ANNEX_AT_MIN);
    d.max_ts = (int64_t)u64_at(bytes, ANNEX_AT_MAX);
    d.rest = qf_str_sub(bytes, ANNEX_HEADER, bytes.len - ANNEX_TRAILER);
    contents.kind = (enum sg_annex_kind)bytes.data[ANNEX_AT_KIND];
    ok = (contents.kind == SG_ANNEX_EXEMPLARS || contents.kind == SG_ANNEX_METADATA) && d.count &&
         memcmp(bytes.data + ANNEX_AT_KIND + 1, "\0\0\0", 3) == 0 && make_room(&d);
    if (ok && !contents.exemplars && !contents.metadata)
        return qf_err_set(err, QF_ELIMIT, "more exemplars and metadata than memory allows");
    d.scratch = qf_arena_new(SIZE_MAX); /* bounded by the bytes */
    ok = ok && (contents.exemplars ? read_exemplars(&d) : read_metadata(&d)) && !d.rest.len &&
         d.seen_min == d.min_ts && d.seen_max == d.max_ts;
    (void)qf_arena_free(d.scratch);
    if (!ok)
        return qf_err_set(err, QF_ECORRUPT, "the annex is malformed");
    *ret_contents = contents;
    return QF_OK;
}
