/* index.c - folders and snapshots: built once, shared, freed with their last reference. */
#include "segments/catalog/index.h"

#include <assert.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "segments/parquet/segment.h"

/* --- summaries --- */

static struct index_summary *summary_ref(struct index_summary *summary)
{
    if (summary)
        atomic_fetch_add_explicit(&summary->refs, 1, memory_order_relaxed);
    return summary;
}

static void summary_drop(struct index_summary *summary)
{
    if (summary && atomic_fetch_sub_explicit(&summary->refs, 1, memory_order_acq_rel) == 1) {
        (void)sg_summary_free(summary->summary);
        free((char *)summary->contents.data);
        free((char *)summary->replaces.data);
        free((char *)summary->beside.data);
        free(summary);
    }
}

static size_t summary_cost(const struct index_summary *summary)
{
    return sizeof(*summary) + sg_summary_bytes(summary->summary) + summary->contents.len +
           summary->replaces.len + summary->beside.len;
}

static void count_summary(struct index_folder *folder, const struct index_summary *summary)
{
    if (summary->summary)
        atomic_fetch_add_explicit(&folder->summary_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&folder->summary_bytes, summary_cost(summary), memory_order_relaxed);
}

/* --- what files replace --- */

static int by_name(const void *name, const void *entry)
{
    return qf_str_cmp(*(const struct qf_str *)name,
                      ((const struct index_entry *)entry)->segment.name);
}

/* The entry of a name that a file of the folder told; NULL: it is elsewhere, or not listed. */
static struct index_entry *find_told(struct index_folder *folder, struct qf_str told)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    struct qf_str key;

    if (memchr(told.data, '/', told.len))
        return NULL;
    qf_strbuf_str(&name, folder->prefix);
    qf_strbuf_str(&name, told);
    key = qf_strbuf_view(&name);
    return folder->count
               ? bsearch(&key, folder->entries, folder->count, sizeof(folder->entries[0]), by_name)
               : NULL;
}

/* While a file is listed with all those beside it, what they replace need not be read. */
static void mark_replaced(struct index_folder *folder, const struct index_entry *by,
                          const struct index_summary *says)
{
    struct qf_str beside = says->beside, replaces = says->replaces, name;

    while (sg_names_next(&beside, &name))
        if (!find_told(folder, name))
            return;
    while (sg_names_next(&replaces, &name)) {
        struct index_entry *entry = find_told(folder, name);

        if (entry && entry != by)
            atomic_store_explicit(&entry->replaced, true, memory_order_relaxed);
    }
}

static struct qf_str own_text(struct qf_str text)
{
    return text.len ? (struct qf_str){ qf_xmemdup0(text.data, text.len), text.len }
                    : (struct qf_str){ 0 };
}

void index_entry_learn(struct index_folder *folder, struct index_entry *entry,
                       const struct index_learnt *learnt)
{
    struct index_summary *shared = qf_xcalloc(1, sizeof(*shared));

    assert(!atomic_load_explicit(&entry->summary, memory_order_relaxed));
    atomic_init(&shared->refs, 1);
    shared->summary = learnt->summary;
    shared->contents = own_text(learnt->contents);
    shared->replaces = own_text(learnt->replaces);
    shared->beside = own_text(learnt->beside);
    count_summary(folder, shared);
    mark_replaced(folder, entry, shared);
    atomic_store_explicit(&entry->summary, shared, memory_order_release);
}

/* --- building --- */

void index_builder_start(struct index_builder *builder, struct qf_str prefix)
{
    struct qf_str tenant = qf_str_sub(prefix, sizeof("tenant=") - 1, prefix.len);
    const char *slash = tenant.len ? memchr(tenant.data, '/', tenant.len) : NULL;

    *builder = (struct index_builder){ .arena = qf_arena_new(SIZE_MAX) };
    builder->prefix = qf_arena_str(builder->arena, prefix);
    builder->tenant = qf_arena_str(
        builder->arena, qf_str_sub(tenant, 0, slash ? (size_t)(slash - tenant.data) : tenant.len));
}

void index_builder_add(struct index_builder *builder, const struct sg_store_object *object)
{
    struct sg_segment_name name;
    struct index_entry *entry;

    if (!qf_str_starts(object->name, builder->prefix) ||
        !sg_segment_name_parse(object->name, &name) || !qf_str_eq(name.tenant, builder->tenant)) {
        builder->foreign++;
        return;
    }
    QF_VEC_RESERVE(&builder->entries, builder->entries.count + 1);
    entry = &builder->entries.items[builder->entries.count++];
    atomic_init(&entry->summary, NULL);
    atomic_init(&entry->replaced, false);
    entry->id = name.id;
    entry->segment = (struct sg_catalog_segment){
        .name = qf_arena_str(builder->arena, object->name),
        .etag = qf_arena_str(builder->arena, object->etag),
        .size = object->size,
        .mtime_ms = object->mtime_ms,
        .min_ts = name.min_ts,
        .max_ts = name.max_ts,
        .shard = name.shard,
        .shard_count = name.shard_count,
        .generation = name.generation,
    };
}

void index_builder_done(struct index_builder *builder)
{
    QF_VEC_DONE(&builder->entries);
    builder->arena = qf_arena_free(builder->arena);
}

static bool same_file(const struct index_entry *a, const struct index_entry *b)
{
    return a->segment.size == b->segment.size && qf_str_eq(a->segment.name, b->segment.name) &&
           qf_str_eq(a->segment.etag, b->segment.etag);
}

static bool unchanged(const struct index_builder *builder, const struct index_folder *old)
{
    if (!old || old->count != builder->entries.count || old->foreign != builder->foreign)
        return false;
    for (size_t i = 0; i < old->count; i++) {
        if (!same_file(&old->entries[i], &builder->entries.items[i]))
            return false;
    }
    return true;
}

static struct index_span widen(struct index_span a, struct index_span b)
{
    return (struct index_span){ a.min_ts < b.min_ts ? a.min_ts : b.min_ts,
                                a.max_ts > b.max_ts ? a.max_ts : b.max_ts };
}

static const struct index_span no_span = { INT64_MAX, INT64_MIN };

static void measure(struct index_folder *folder)
{
    size_t block_count = (folder->count + INDEX_BLOCK - 1) / INDEX_BLOCK;

    folder->spans = qf_xcalloc(folder->count + block_count + 1, sizeof(folder->spans[0]));
    folder->blocks = folder->spans + folder->count;
    folder->span = no_span;
    for (size_t i = 0; i < folder->count; i++) {
        const struct sg_catalog_segment *segment = &folder->entries[i].segment;
        struct index_span *block = &folder->blocks[i / INDEX_BLOCK];

        folder->spans[i] = (struct index_span){ segment->min_ts, segment->max_ts };
        *block = i % INDEX_BLOCK ? widen(*block, folder->spans[i]) : folder->spans[i];
        folder->span = widen(folder->span, folder->spans[i]);
        folder->bytes += segment->size;
    }
}

/* Both arrays are sorted by name. */
static void take_over_summaries(struct index_folder *folder, const struct index_folder *old)
{
    size_t j = 0;

    for (size_t i = 0; old && i < folder->count; i++) {
        struct index_entry *entry = &folder->entries[i];
        struct index_summary *summary;

        while (j < old->count && qf_str_cmp(old->entries[j].segment.name, entry->segment.name) < 0)
            j++;
        if (j == old->count || !same_file(&old->entries[j], entry))
            continue;
        summary = atomic_load_explicit(&old->entries[j].summary, memory_order_acquire);
        if (!summary)
            continue;
        atomic_init(&entry->summary, summary_ref(summary));
        count_summary(folder, summary);
        mark_replaced(folder, entry, summary);
    }
}

struct index_folder *index_builder_finish(struct index_builder *builder, struct index_folder *old)
{
    struct index_folder *folder;

    if (unchanged(builder, old)) {
        index_builder_done(builder);
        return index_folder_ref(old);
    }
    if (!builder->entries.count && !builder->foreign) {
        index_builder_done(builder);
        return NULL;
    }
    folder = qf_xcalloc(1, sizeof(*folder));
    atomic_init(&folder->refs, 1);
    folder->prefix = builder->prefix;
    folder->tenant = builder->tenant;
    folder->entries = builder->entries.items;
    folder->count = builder->entries.count;
    folder->foreign = builder->foreign;
    folder->arena = builder->arena;
    measure(folder);
    take_over_summaries(folder, old);
    *builder = (struct index_builder){ 0 };
    return folder;
}

struct index_folder *index_folder_ref(struct index_folder *folder)
{
    atomic_fetch_add_explicit(&folder->refs, 1, memory_order_relaxed);
    return folder;
}

struct index_folder *index_folder_drop(struct index_folder *folder)
{
    if (!folder || atomic_fetch_sub_explicit(&folder->refs, 1, memory_order_acq_rel) != 1)
        return NULL;
    for (size_t i = 0; i < folder->count; i++)
        summary_drop(atomic_load_explicit(&folder->entries[i].summary, memory_order_relaxed));
    free(folder->entries);
    free(folder->spans);
    (void)qf_arena_free(folder->arena);
    free(folder);
    return NULL;
}

struct index_folder *index_folder_strip(const struct index_folder *folder)
{
    struct index_builder builder;

    index_builder_start(&builder, folder->prefix);
    for (size_t i = 0; i < folder->count; i++) {
        const struct sg_catalog_segment *segment = &folder->entries[i].segment;

        index_builder_add(&builder, &(struct sg_store_object){ .name = segment->name,
                                                               .size = segment->size,
                                                               .mtime_ms = segment->mtime_ms,
                                                               .etag = segment->etag });
    }
    builder.foreign = folder->foreign;
    return index_builder_finish(&builder, NULL);
}

/* --- snapshots --- */

static int tenant_cmp(const void *a, const void *b)
{
    return qf_str_cmp(((const struct index_tenant *)a)->name,
                      ((const struct index_tenant *)b)->name);
}

/* Folders of one tenant are neighbours, but tenants sort by name with a '/' behind it: not quite
 * the order of their names. */
static void index_tenants(struct sg_catalog_snapshot *snapshot)
{
    QF_VEC(struct index_tenant) tenants = { 0 };

    for (size_t i = 0; i < snapshot->count; i++) {
        struct qf_str name = snapshot->folders[i]->tenant;

        if (tenants.count && qf_str_eq(tenants.items[tenants.count - 1].name, name))
            tenants.items[tenants.count - 1].count++;
        else
            QF_VEC_PUSH(&tenants, (struct index_tenant){ .name = name, .first = i, .count = 1 });
    }
    if (tenants.count)
        qsort(tenants.items, tenants.count, sizeof(tenants.items[0]), tenant_cmp);
    snapshot->tenants = tenants.items;
    snapshot->tenant_count = tenants.count;
}

struct sg_catalog_snapshot *index_snapshot_new(struct index_folder **folders, size_t count,
                                               uint64_t version)
{
    struct sg_catalog_snapshot *snapshot = qf_xcalloc(1, sizeof(*snapshot));

    atomic_init(&snapshot->refs, 1);
    snapshot->version = version;
    snapshot->folders = folders;
    snapshot->count = count;
    snapshot->spans = qf_xcalloc(count + 1, sizeof(snapshot->spans[0]));
    for (size_t i = 0; i < count; i++) {
        snapshot->spans[i] = folders[i]->span;
        snapshot->segments += folders[i]->count;
        snapshot->bytes += folders[i]->bytes;
        snapshot->foreign += folders[i]->foreign;
    }
    index_tenants(snapshot);
    return snapshot;
}

struct sg_catalog_snapshot *sg_catalog_snapshot_ref(struct sg_catalog_snapshot *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->refs, 1, memory_order_relaxed);
    return snapshot;
}

struct sg_catalog_snapshot *sg_catalog_snapshot_drop(struct sg_catalog_snapshot *snapshot)
{
    if (!snapshot || atomic_fetch_sub_explicit(&snapshot->refs, 1, memory_order_acq_rel) != 1)
        return NULL;
    for (size_t i = 0; i < snapshot->count; i++)
        (void)index_folder_drop(snapshot->folders[i]);
    free(snapshot->folders);
    free(snapshot->spans);
    free(snapshot->tenants);
    free(snapshot);
    return NULL;
}

void sg_catalog_snapshot_dropp(struct sg_catalog_snapshot **snapshot)
{
    *snapshot = sg_catalog_snapshot_drop(*snapshot);
}

uint64_t sg_catalog_snapshot_version(const struct sg_catalog_snapshot *snapshot)
{
    return snapshot->version;
}

const struct index_tenant *index_tenant_find(const struct sg_catalog_snapshot *snapshot,
                                             struct qf_str tenant)
{
    struct index_tenant key = { .name = tenant };

    return snapshot->tenant_count
               ? bsearch(&key, snapshot->tenants, snapshot->tenant_count, sizeof(key), tenant_cmp)
               : NULL;
}
