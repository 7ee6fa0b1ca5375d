/* encode.c - a collection as files. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/duration.h"
#include "base/pure/varint.h"
#include "segments/annex/annex_int.h"
#include "segments/annex/collect.h"

/* The file under way. */
struct encoding {
    const struct sg_annex_files *files;
    enum sg_annex_kind kind;
    struct qf_strbuf bytes;
    uint32_t count;
    int64_t min_ts, max_ts;
};

static void put_text(struct qf_strbuf *buf, struct qf_str text)
{
    qf_strbuf_varint(buf, text.len);
    qf_strbuf_str(buf, text);
}

static void set_u64(struct encoding *e, size_t at, uint64_t value)
{
    value = htole64(value);
    memcpy(e->bytes.data + at, &value, sizeof(value));
}

static void begin(struct encoding *e)
{
    static const char header[ANNEX_HEADER] = ANNEX_MAGIC;

    qf_strbuf_reset(&e->bytes);
    qf_strbuf_add(&e->bytes, header, sizeof(header));
    e->count = 0;
    e->min_ts = INT64_MAX;
    e->max_ts = INT64_MIN;
}

/* Hand the file over, if there is one, and begin another. */
static qf_rc finish(struct encoding *e, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    struct sg_annex_name parts = {
        .tenant = e->files->tenant, .kind = e->kind, .min_ts = e->min_ts, .max_ts = e->max_ts
    };
    uint32_t count = htole32(e->count);
    uint64_t trailer;
    qf_rc rc;

    if (!e->count)
        return QF_OK;
    e->bytes.data[ANNEX_AT_VERSION] = ANNEX_VERSION;
    e->bytes.data[ANNEX_AT_KIND] = (char)e->kind;
    memcpy(e->bytes.data + ANNEX_AT_COUNT, &count, sizeof(count));
    set_u64(e, ANNEX_AT_MIN, (uint64_t)e->min_ts);
    set_u64(e, ANNEX_AT_MAX, (uint64_t)e->max_ts);
    set_u64(e, ANNEX_AT_LENGTH, e->bytes.len - ANNEX_HEADER);
    parts.id = qf_hash_bytes(qf_strbuf_view(&e->bytes));
    trailer = htole64(parts.id);
    qf_strbuf_add(&e->bytes, &trailer, sizeof(trailer));
    sg_annex_name_print(&name, &parts);
    rc = e->files->file(e->files->ctx, qf_strbuf_cstr(&name), qf_strbuf_view(&e->bytes), err);
    begin(e);
    return rc;
}

static void count_one(struct encoding *e, int64_t ts)
{
    e->count++;
    e->min_ts = QF_MIN(e->min_ts, ts);
    e->max_ts = QF_MAX(e->max_ts, ts);
}

/* --- exemplars --- */

static int64_t day_of(const struct sg_exemplar *exemplar)
{
    return qf_floor_div(exemplar->ts, ANNEX_DAY_MS);
}

static int by_day(const void *a, const void *b)
{
    int64_t x = day_of(a), y = day_of(b);

    return x != y ? (x > y) - (x < y) : annex_exemplar_cmp(a, b);
}

/* Those of one series and day, as many as the file takes; returns how many. */
static size_t put_series(struct encoding *e, const struct sg_exemplar *items, size_t count)
{
    size_t len = 0, taken = 0;
    int64_t ts = 0;

    while (taken < count && day_of(&items[taken]) == day_of(items) &&
           qf_str_eq(items[taken].series, items->series) &&
           (!taken || e->bytes.len + len < SG_ANNEX_BYTES_AIM))
        len += items[taken++].labels.len + 2 * QF_VARINT_MAX + sizeof(items->value);
    put_text(&e->bytes, items->series);
    qf_strbuf_varint(&e->bytes, taken);
    for (size_t i = 0; i < taken; i++) {
        qf_strbuf_varint(&e->bytes, qf_zigzag(items[i].ts - ts));
        qf_strbuf_add(&e->bytes, &items[i].value, sizeof(items[i].value));
        put_text(&e->bytes, items[i].labels);
        ts = items[i].ts;
        count_one(e, ts);
    }
    return taken;
}

/* Sorted, each once. */
static void sort_exemplars(struct sg_annex *annex)
{
    struct sg_exemplar *items = annex->exemplars.items;
    size_t kept = 0;

    if (annex->exemplars.count)
        qsort(items, annex->exemplars.count, sizeof(*items), by_day);
    for (size_t i = 0; i < annex->exemplars.count; i++)
        if (!kept || annex_exemplar_cmp(&items[kept - 1], &items[i]) != 0)
            items[kept++] = items[i];
    annex->exemplars.count = kept;
}

static qf_rc write_exemplars(struct sg_annex *annex, struct encoding *e, struct qf_err *err)
{
    const struct sg_exemplar *items = annex->exemplars.items;
    qf_rc rc = QF_OK;

    sort_exemplars(annex);
    e->kind = SG_ANNEX_EXEMPLARS;
    for (size_t i = 0; i < annex->exemplars.count && rc == QF_OK;) {
        if ((i && day_of(&items[i]) != day_of(&items[i - 1])) || e->bytes.len >= SG_ANNEX_BYTES_AIM)
            rc = finish(e, err);
        if (rc == QF_OK)
            i += put_series(e, &items[i], annex->exemplars.count - i);
    }
    return rc == QF_OK ? finish(e, err) : rc;
}

/* --- metadata --- */

static qf_rc write_metadata(struct sg_annex *annex, struct encoding *e, struct qf_err *err)
{
    size_t count;
    const struct sg_metadata **wanted =
        sg_annex_metadata(annex, e->files->wants, e->files->ctx, &count);
    qf_rc rc = QF_OK;

    e->kind = SG_ANNEX_METADATA;
    for (size_t i = 0; i < count && rc == QF_OK; i++) {
        const struct sg_metadata *metadata = wanted[i];

        put_text(&e->bytes, metadata->name);
        qf_strbuf_varint(&e->bytes, metadata->type);
        put_text(&e->bytes, metadata->help);
        put_text(&e->bytes, metadata->unit);
        qf_strbuf_varint(&e->bytes, metadata->generation);
        count_one(e, annex_told_ms(metadata->generation));
        if (e->bytes.len >= SG_ANNEX_BYTES_AIM)
            rc = finish(e, err);
    }
    free(wanted);
    return rc == QF_OK ? finish(e, err) : rc;
}

qf_rc sg_annex_write(struct sg_annex *annex, const struct sg_annex_files *files, struct qf_err *err)
{
    struct encoding e = { .files = files };
    qf_rc rc;

    begin(&e);
    rc = write_exemplars(annex, &e, err);
    if (rc == QF_OK)
        rc = write_metadata(annex, &e, err);
    qf_strbuf_done(&e.bytes);
    return rc;
}
