/* collect.c - exemplars and metadata, collected in memory. */
#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/pure/utf8.h"
#include "segments/annex/annex_int.h"
#include "segments/annex/collect.h"
#include "segments/parquet/segment_name.h"

struct sg_annex *sg_annex_new(size_t bytes_max)
{
    struct sg_annex *annex = qf_xcalloc(1, sizeof(*annex));

    annex->bytes_max = bytes_max;
    annex->arena = qf_arena_new(SIZE_MAX); /* sg_annex_bytes() is looked at instead */
    return annex;
}

struct sg_annex *sg_annex_free(struct sg_annex *annex)
{
    if (!annex)
        return NULL;
    QF_VEC_DONE(&annex->exemplars);
    QF_VEC_DONE(&annex->metadata);
    qf_map_done(&annex->series);
    qf_map_done(&annex->names);
    (void)qf_arena_free(annex->arena);
    free(annex);
    return NULL;
}

size_t sg_annex_metadata_count(const struct sg_annex *annex)
{
    return annex->metadata.count;
}

bool sg_annex_is_empty(const struct sg_annex *annex)
{
    return !annex->exemplars.count && !annex->metadata.count;
}

size_t sg_annex_bytes(const struct sg_annex *annex)
{
    return qf_arena_used(annex->arena) + (size_t)qf_map_bytes(&annex->series) +
           (size_t)qf_map_bytes(&annex->names) +
           annex->exemplars.capacity * sizeof(*annex->exemplars.items) +
           annex->metadata.capacity * sizeof(*annex->metadata.items);
}

static bool has_room(const struct sg_annex *annex, size_t len)
{
    return len <= SG_ANNEX_ENTRY_MAX && sg_annex_bytes(annex) + len <= annex->bytes_max;
}

/* A text that is kept once, however many name it. */
static struct qf_str keep_series(struct sg_annex *annex, struct qf_str series)
{
    const uint64_t *known = qf_map_get(&annex->series, series);

    if (known)
        return annex->series.entries[*known].key;
    series = qf_arena_str(annex->arena, series);
    (void)qf_map_put(&annex->series, series, annex->series.count, NULL);
    return series;
}

bool sg_annex_add_exemplar(struct sg_annex *annex, const struct sg_exemplar *exemplar)
{
    struct sg_exemplar kept = *exemplar;

    if (!has_room(annex, exemplar->series.len + exemplar->labels.len) ||
        !sg_times_fit(exemplar->ts, exemplar->ts))
        return false;
    kept.series = keep_series(annex, exemplar->series);
    kept.labels = qf_arena_str(annex->arena, exemplar->labels);
    QF_VEC_PUSH(&annex->exemplars, kept);
    return true;
}

/* By generation, then by what it says. */
static int compare(const struct sg_metadata *a, const struct sg_metadata *b)
{
    int order = (a->generation > b->generation) - (a->generation < b->generation);

    if (order == 0)
        order = (int)a->type - (int)b->type;
    if (order == 0)
        order = qf_str_cmp(a->help, b->help);
    return order ? order : qf_str_cmp(a->unit, b->unit);
}

static void replace(struct sg_annex *annex, struct sg_metadata *entry,
                    const struct sg_metadata *metadata)
{
    struct qf_str help = entry->help, unit = entry->unit;

    entry->type = metadata->type;
    entry->generation = metadata->generation;
    entry->help =
        qf_str_eq(help, metadata->help) ? help : qf_arena_str(annex->arena, metadata->help);
    entry->unit =
        qf_str_eq(unit, metadata->unit) ? unit : qf_arena_str(annex->arena, metadata->unit);
}

bool sg_annex_add_metadata(struct sg_annex *annex, const struct sg_metadata *metadata, bool later)
{
    const uint64_t *known = qf_map_get(&annex->names, metadata->name);
    struct sg_metadata kept = { .name = metadata->name };

    if (!metadata->name.len || !qf_utf8_valid(metadata->name) || !qf_utf8_valid(metadata->help) ||
        !qf_utf8_valid(metadata->unit) ||
        !has_room(annex, metadata->name.len + metadata->help.len + metadata->unit.len))
        return false;
    if (known) {
        struct sg_metadata *entry = &annex->metadata.items[*known];

        if (later ? metadata->generation >= entry->generation : compare(metadata, entry) > 0)
            replace(annex, entry, metadata);
        return true;
    }
    kept.name = qf_arena_str(annex->arena, metadata->name);
    replace(annex, &kept, metadata);
    (void)qf_map_put(&annex->names, kept.name, annex->metadata.count, NULL);
    QF_VEC_PUSH(&annex->metadata, kept);
    return true;
}

const struct sg_metadata *sg_annex_find_metadata(const struct sg_annex *annex, struct qf_str name)
{
    const uint64_t *known = qf_map_get(&annex->names, name);

    return known ? &annex->metadata.items[*known] : NULL;
}

bool sg_annex_add_contents(struct sg_annex *annex, const struct sg_annex_contents *contents)
{
    bool ok = true;

    for (size_t i = 0; i < contents->count && ok; i++)
        ok = contents->kind == SG_ANNEX_EXEMPLARS
                 ? sg_annex_add_exemplar(annex, &contents->exemplars[i])
                 : sg_annex_add_metadata(annex, &contents->metadata[i], false);
    return ok;
}

static int by_name(const void *a, const void *b)
{
    return qf_str_cmp((*(const struct sg_metadata *const *)a)->name,
                      (*(const struct sg_metadata *const *)b)->name);
}

const struct sg_metadata **sg_annex_metadata(const struct sg_annex *annex,
                                             bool (*wants)(void *ctx,
                                                           const struct sg_metadata *metadata),
                                             void *ctx, size_t *ret_count)
{
    const struct sg_metadata **found =
        qf_xcalloc(annex->metadata.count + 1, sizeof(const struct sg_metadata *));
    size_t count = 0;

    for (size_t i = 0; i < annex->metadata.count; i++)
        if (!wants || wants(ctx, &annex->metadata.items[i]))
            found[count++] = &annex->metadata.items[i];
    qsort(found, count, sizeof(const struct sg_metadata *), by_name);
    *ret_count = count;
    return found;
}
