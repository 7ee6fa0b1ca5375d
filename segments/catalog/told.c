/* told.c - sets of told segments: built once, shared, freed with their last reference. */
#include "segments/catalog/told.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "segments/catalog/catalog_int.h"

struct sg_catalog_told *sg_catalog_told_drop(struct sg_catalog_told *told)
{
    if (!told || atomic_fetch_sub_explicit(&told->refs, 1, memory_order_acq_rel) != 1)
        return NULL;
    free(told->entries);
    (void)qf_arena_free(told->arena);
    free(told);
    return NULL;
}

static struct sg_catalog_told *told_new(size_t capacity)
{
    struct sg_catalog_told *told = qf_xcalloc(1, sizeof(*told));

    atomic_init(&told->refs, 1);
    told->entries = qf_xcalloc(QF_MAX(capacity, (size_t)1), sizeof(*told->entries));
    told->arena = qf_arena_new(SIZE_MAX);
    return told;
}

static void put(struct sg_catalog_told *told, const struct sg_segment_name *name,
                const struct sg_catalog_file *file, uint64_t number)
{
    struct told_entry *entry = &told->entries[told->count++];
    struct sg_catalog_segment *segment = &entry->entry.segment;

    atomic_init(&entry->entry.summary, NULL);
    entry->entry.id = name->id;
    *segment = (struct sg_catalog_segment){ .name = qf_arena_str(told->arena, file->name),
                                            .etag = qf_arena_str(told->arena, file->etag),
                                            .size = file->size,
                                            .min_ts = name->min_ts,
                                            .max_ts = name->max_ts,
                                            .shard = name->shard,
                                            .shard_count = name->shard_count,
                                            .generation = name->generation };
    entry->tenant = qf_arena_str(told->arena, name->tenant);
    entry->folder = sg_catalog_folder_of(segment->name);
    entry->number = number;
}

static void copy(struct sg_catalog_told *told, const struct told_entry *from)
{
    const struct sg_catalog_segment *segment = &from->entry.segment;
    struct sg_segment_name name = { .tenant = from->tenant,
                                    .min_ts = segment->min_ts,
                                    .max_ts = segment->max_ts,
                                    .shard = segment->shard,
                                    .shard_count = segment->shard_count,
                                    .generation = segment->generation,
                                    .id = from->entry.id };
    struct sg_catalog_file file = { segment->name, segment->etag, segment->size };

    put(told, &name, &file, from->number);
}

/* By name; of one name the youngest first. */
static int by_name(const void *a, const void *b)
{
    const struct told_entry *x = a, *y = b;
    int order = qf_str_cmp(x->entry.segment.name, y->entry.segment.name);

    if (order)
        return order;
    return x->number > y->number ? -1 : x->number < y->number;
}

static void sort_unique(struct sg_catalog_told *told)
{
    size_t kept = 0;

    qsort(told->entries, told->count, sizeof(told->entries[0]), by_name);
    for (size_t i = 0; i < told->count; i++) {
        if (kept && qf_str_eq(told->entries[kept - 1].entry.segment.name,
                              told->entries[i].entry.segment.name))
            continue;
        if (kept != i)
            memcpy(&told->entries[kept], &told->entries[i], sizeof(told->entries[i]));
        kept++;
    }
    told->count = kept;
}

struct sg_catalog_told *told_add(const struct sg_catalog_told *old,
                                 const struct sg_catalog_file *files, size_t count, uint64_t number,
                                 struct qf_err *err)
{
    size_t before = old ? old->count : 0;
    struct sg_catalog_told *told;

    if (count > SG_CATALOG_TOLD_MAX || before > SG_CATALOG_TOLD_MAX - count) {
        (void)qf_err_set(err, QF_ELIMIT, "more than %d segments that no listing has shown",
                         SG_CATALOG_TOLD_MAX);
        return NULL;
    }
    told = told_new(before + count);
    for (size_t i = 0; i < before; i++)
        copy(told, &old->entries[i]);
    for (size_t i = 0; i < count; i++) {
        struct sg_segment_name name;

        if (!sg_segment_name_parse(files[i].name, &name)) {
            (void)qf_err_set(err, QF_EINVAL, "%.*s is not the name of a segment",
                             QF_STR_ARG(files[i].name));
            return sg_catalog_told_drop(told);
        }
        put(told, &name, &files[i], number);
    }
    sort_unique(told);
    return told;
}

struct sg_catalog_told *told_without(const struct sg_catalog_told *old, told_gone_fn *gone,
                                     const void *ctx)
{
    struct sg_catalog_told *told = told_new(old->count);

    for (size_t i = 0; i < old->count; i++)
        if (!gone(ctx, &old->entries[i]))
            copy(told, &old->entries[i]);
    return told->count ? told : sg_catalog_told_drop(told);
}
