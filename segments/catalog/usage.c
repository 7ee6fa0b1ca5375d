/* usage.c - what a snapshot says of what a tenant has stored: how much, and which names. */
#include "segments/catalog/index.h"
#include "segments/parquet/contents.h"

/* "tenant=T/date=D/": D. */
static struct qf_str date_of(const struct index_folder *folder)
{
    static const struct qf_str key = QF_STR_INIT("/date=");
    size_t from = sizeof("tenant=") - 1 + folder->tenant.len + key.len;

    return qf_str_sub(folder->prefix, from, folder->prefix.len - 1);
}

struct sg_catalog_usage sg_catalog_usage(const struct sg_catalog_snapshot *snapshot,
                                         struct qf_str tenant, struct sg_catalog_day *days,
                                         size_t day_max)
{
    const struct index_tenant *of = index_tenant_find(snapshot, tenant);
    struct sg_catalog_usage usage = { .min_ts = INT64_MAX, .max_ts = INT64_MIN };
    size_t skip = of && of->count > day_max ? of->count - day_max : 0;

    for (size_t i = 0; of && i < of->count; i++) {
        const struct index_folder *folder = snapshot->folders[of->first + i];

        if (folder->count == 0)
            continue;
        usage.segments += folder->count;
        usage.bytes += folder->bytes;
        usage.min_ts = QF_MIN(usage.min_ts, folder->span.min_ts);
        usage.max_ts = QF_MAX(usage.max_ts, folder->span.max_ts);
        if (i >= skip)
            days[usage.day_count++] = (struct sg_catalog_day){ .date = date_of(folder),
                                                               .segments = folder->count,
                                                               .bytes = folder->bytes };
    }
    return usage;
}

void sg_catalog_each(const struct sg_catalog_snapshot *snapshot, sg_catalog_each_fn *fn, void *ctx)
{
    for (size_t f = 0; f < snapshot->count; f++)
        for (size_t i = 0; i < snapshot->folders[f]->count; i++)
            fn(ctx, snapshot->folders[f]->tenant, &snapshot->folders[f]->entries[i].segment);
}

void sg_catalog_each_live(const struct sg_catalog_snapshot *snapshot, sg_catalog_each_fn *fn,
                          void *ctx)
{
    for (size_t f = 0; f < snapshot->count; f++)
        for (size_t i = 0; i < snapshot->folders[f]->count; i++) {
            const struct index_entry *entry = &snapshot->folders[f]->entries[i];

            if (!atomic_load_explicit(&entry->replaced, memory_order_relaxed))
                fn(ctx, snapshot->folders[f]->tenant, &entry->segment);
        }
}

static bool tell(const struct index_entry *entry, sg_catalog_contents_fn *fn, void *ctx)
{
    const struct index_summary *known = atomic_load_explicit(&entry->summary, memory_order_acquire);
    struct sg_contents *contents = known ? sg_contents_parse(known->contents) : NULL;

    if (!contents)
        return false;
    fn(ctx, &entry->segment, contents);
    (void)sg_contents_free(contents);
    return true;
}

size_t sg_catalog_contents(const struct sg_catalog_snapshot *snapshot, struct qf_str tenant,
                           int64_t min_ts, int64_t max_ts, sg_catalog_contents_fn *fn, void *ctx)
{
    const struct index_tenant *of = index_tenant_find(snapshot, tenant);
    size_t unknown = 0;

    for (size_t f = 0; of && min_ts <= max_ts && f < of->count; f++) {
        const struct index_folder *folder = snapshot->folders[of->first + f];

        for (size_t i = 0; i < folder->count; i++)
            if (folder->spans[i].min_ts <= max_ts && folder->spans[i].max_ts >= min_ts &&
                !atomic_load_explicit(&folder->entries[i].replaced, memory_order_relaxed))
                unknown += !tell(&folder->entries[i], fn, ctx);
    }
    return unknown;
}
