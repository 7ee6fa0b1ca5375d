/* nhcb.c - classic to custom buckets. */
#include "tests/promqltest/nhcb.h"

#include <math.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "promql/func/buckets.h"
#include "promql/value.h"
#include "tests/promqltest/storage.h"

enum part { PART_NONE, PART_BUCKET, PART_COUNT, PART_SUM };

/* What one float series is to a histogram. */
struct piece {
    enum part part;
    double le;
    struct qf_labels labels; /* of the histogram: without le, named X */
    const struct script_series *series;
};

struct pieces {
    struct piece *items;
    size_t count;
};

static enum part part_of(struct qf_str name, struct qf_str *ret_base)
{
    static const struct {
        const char *suffix;
        enum part part;
    } parts[] = { { "_bucket", PART_BUCKET }, { "_count", PART_COUNT }, { "_sum", PART_SUM } };

    for (size_t i = 0; i < QF_COUNT_OF(parts); i++) {
        struct qf_str suffix = qf_str_from(parts[i].suffix);

        if (qf_str_ends(name, suffix)) {
            *ret_base = qf_str_sub(name, 0, name.len - suffix.len);
            return parts[i].part;
        }
    }
    return PART_NONE;
}

/* Is @series a piece of a classic histogram? */
static bool classify(struct qf_arena *arena, const struct script_series *series,
                     struct piece *ret_piece)
{
    const struct qf_str le = QF_STR("le");
    struct qf_labels labels;
    struct qf_str base;

    *ret_piece = (struct piece){ .series = series };
    ret_piece->part = part_of(qf_labels_get(series->labels, QF_STR(QF_METRIC_NAME)), &base);
    if (ret_piece->part == PART_NONE)
        return false;
    if (ret_piece->part == PART_BUCKET &&
        (!pq_fn_bucket_le(qf_labels_get(series->labels, le), &ret_piece->le) ||
         isnan(ret_piece->le)))
        return false;
    if (!qf_labels_drop(arena, series->labels, &le, 1, &labels) ||
        !qf_labels_set(arena, labels, QF_STR(QF_METRIC_NAME), base, &ret_piece->labels))
        abort(); /* no budget */
    return true;
}

static int by_labels_and_bound(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    int order = qf_labels_cmp(a->labels, b->labels);

    if (order)
        return order;
    if (a->part != b->part)
        return a->part < b->part ? -1 : 1;
    return (a->le > b->le) - (a->le < b->le);
}

static const struct pq_sequence_value *value_at(const struct piece *piece, size_t slot)
{
    const struct script_series *series = piece->series;

    if (slot >= series->count || series->values[slot].omitted || series->values[slot].histogram)
        return NULL;
    return &series->values[slot];
}

/* The histogram as it grows. */
struct making {
    double bounds[256], counts[256]; /* cumulative */
    size_t bucket_count;
    bool has_count, any;
    double count, sum;
};

static void collect(const struct pieces *group, size_t slot, struct making *ret)
{
    *ret = (struct making){ 0 };
    for (size_t i = 0; i < group->count; i++) {
        const struct piece *piece = &group->items[i];
        const struct pq_sequence_value *value = value_at(piece, slot);

        if (!value)
            continue;
        ret->any = true;
        if (piece->part == PART_COUNT) {
            ret->has_count = true;
            ret->count = value->value;
        } else if (piece->part == PART_SUM) {
            ret->sum = value->value;
        } else if (ret->bucket_count < QF_COUNT_OF(ret->bounds) &&
                   (ret->bucket_count == 0 || ret->bounds[ret->bucket_count - 1] != piece->le)) {
            ret->bounds[ret->bucket_count] = piece->le;
            ret->counts[ret->bucket_count++] = value->value;
        }
    }
}

static qf_rc finish(struct making *m, struct qf_err *err)
{
    double prev = 0;

    if (m->bucket_count == 0)
        return qf_err_set(err, QF_EINVAL, "a classic histogram without buckets");
    if (!m->has_count)
        m->count = m->counts[m->bucket_count - 1];
    if (m->bounds[m->bucket_count - 1] != INFINITY && m->bucket_count < QF_COUNT_OF(m->bounds)) {
        m->bounds[m->bucket_count] = INFINITY;
        m->counts[m->bucket_count++] = m->count;
    }
    for (size_t i = 0; i < m->bucket_count; i++) {
        if (m->counts[i] < prev)
            return qf_err_set(err, QF_EINVAL, "buckets are not cumulative or negative");
        prev = m->counts[i];
    }
    if (m->count != prev)
        return qf_err_set(err, QF_EINVAL, "the count is not that of the last bucket");
    return QF_OK;
}

/* One span over all buckets; empty ones mean the same as absent ones. */
static const struct pq_histogram *build(struct qf_arena *arena, const struct making *m)
{
    struct pq_histogram *h = QF_ARENA_NEW(arena, struct pq_histogram);
    struct pq_span *span = QF_ARENA_NEW(arena, struct pq_span);
    double *buckets = QF_ARENA_ARRAY(arena, double, m->bucket_count);
    double *bounds = QF_ARENA_ARRAY(arena, double, m->bucket_count);

    for (size_t i = 0; i < m->bucket_count; i++) {
        buckets[i] = m->counts[i] - (i > 0 ? m->counts[i - 1] : 0);
        bounds[i] = m->bounds[i];
    }
    *span = (struct pq_span){ 0, (uint32_t)m->bucket_count };
    *h = (struct pq_histogram){ .schema = PQ_SCHEMA_CUSTOM,
                                .count = m->count,
                                .sum = m->sum,
                                .positive_spans = span,
                                .positive_span_count = 1,
                                .positive_buckets = buckets,
                                .positive_bucket_count = m->bucket_count,
                                .custom_values = bounds,
                                .custom_value_count = m->bucket_count - 1 };
    return h;
}

/* All timestamps of one histogram. */
static qf_rc load_group(struct storage *storage, const struct pieces *group, int64_t gap_ms,
                        struct qf_err *err)
{
    struct making making;
    size_t slots = 0;

    if (group->items[0].part != PART_BUCKET)
        return QF_OK; /* a _count or _sum of something else */
    for (size_t i = 0; i < group->count; i++)
        if (group->items[i].series->count > slots)
            slots = group->items[i].series->count;
    for (size_t slot = 0; slot < slots; slot++) {
        struct storage_sample sample = { .ts = (int64_t)slot * gap_ms };
        qf_rc rc;

        collect(group, slot, &making);
        if (!making.any)
            continue;
        rc = finish(&making, err);
        if (rc != QF_OK)
            return rc;
        sample.histogram = build(storage_arena(storage), &making);
        rc = storage_append(storage, group->items[0].labels, sample, err);
        if (rc != QF_OK)
            return rc;
    }
    return QF_OK;
}

qf_rc nhcb_load(struct storage *storage, const struct script_load *load, struct qf_err *err)
{
    struct pieces all = { qf_xcalloc(load->series_count + 1, sizeof(struct piece)), 0 };
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < load->series_count; i++)
        all.count += classify(storage_arena(storage), &load->series[i], &all.items[all.count]);
    qsort(all.items, all.count, sizeof(*all.items), by_labels_and_bound);
    for (size_t start = 0, end; start < all.count && rc == QF_OK; start = end) {
        for (end = start + 1; end < all.count; end++)
            if (!qf_labels_eq(all.items[start].labels, all.items[end].labels))
                break;
        rc = load_group(storage, &(struct pieces){ all.items + start, end - start }, load->gap_ms,
                        err);
    }
    free(all.items);
    return rc;
}
