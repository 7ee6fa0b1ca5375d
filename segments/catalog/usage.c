/* usage.c - what a snapshot says of how much a tenant has stored. */
#include "segments/catalog/index.h"

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
