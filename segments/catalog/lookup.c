/* lookup.c - from a snapshot and a question to groups of segments. No I/O, no locks. */
#include <stdlib.h>

#include "base/pure/vec.h"
#include "segments/catalog/index.h"
#include "segments/catalog/told.h"

struct search {
    const struct sg_catalog_query *query;
    struct sg_summary_probe *probe;
    QF_VEC(const struct index_entry *) entries;
    uint32_t shard_count;
    size_t pruned;
};

static bool overlaps(struct index_span span, const struct sg_catalog_query *query)
{
    return span.min_ts <= query->max_ts && span.max_ts >= query->min_ts;
}

static void consider(struct search *search, const struct index_entry *entry)
{
    const struct index_summary *summary =
        atomic_load_explicit(&entry->summary, memory_order_acquire);

    if (atomic_load_explicit(&entry->replaced, memory_order_relaxed))
        return;
    if (summary && !sg_summary_probe_may_match(search->probe, summary->summary)) {
        search->pruned++;
        return;
    }
    if (!search->entries.count || entry->segment.shard_count < search->shard_count)
        search->shard_count = entry->segment.shard_count;
    QF_VEC_PUSH(&search->entries, entry);
}

static void search_folder(struct search *search, const struct index_folder *folder)
{
    for (size_t block = 0; block * INDEX_BLOCK < folder->count; block++) {
        size_t end = (block + 1) * INDEX_BLOCK;

        if (!overlaps(folder->blocks[block], search->query))
            continue;
        for (size_t i = block * INDEX_BLOCK; i < end && i < folder->count; i++) {
            if (overlaps(folder->spans[i], search->query))
                consider(search, &folder->entries[i]);
        }
    }
}

/* --- told segments --- */

static int entry_cmp(const void *name, const void *entry)
{
    return qf_str_cmp(*(const struct qf_str *)name,
                      ((const struct index_entry *)entry)->segment.name);
}

/* Does a listing show the segment already? */
static bool is_listed(const struct sg_catalog_snapshot *snapshot, const struct index_tenant *tenant,
                      const struct told_entry *told)
{
    size_t low = tenant ? tenant->first : 0, high = tenant ? tenant->first + tenant->count : 0;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct index_folder *folder = snapshot->folders[middle];
        int order = qf_str_cmp(folder->prefix, told->folder);

        if (order == 0)
            return folder->count && bsearch(&told->entry.segment.name, folder->entries,
                                            folder->count, sizeof(folder->entries[0]), entry_cmp);
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static void search_told(struct search *search, const struct sg_catalog_snapshot *snapshot,
                        const struct index_tenant *tenant)
{
    const struct sg_catalog_told *told = search->query->told;

    for (size_t i = 0; told && i < told->count; i++) {
        const struct told_entry *entry = &told->entries[i];
        struct index_span span = { entry->entry.segment.min_ts, entry->entry.segment.max_ts };

        if (qf_str_eq(entry->tenant, search->query->tenant) && overlaps(span, search->query) &&
            !is_listed(snapshot, tenant, entry))
            consider(search, &entry->entry);
    }
}

/* --- grouping --- */

/* Oldest first; names make the order total. */
static int by_age(const void *a, const void *b)
{
    const struct index_entry *x = *(const struct index_entry *const *)a;
    const struct index_entry *y = *(const struct index_entry *const *)b;

    if (x->segment.generation != y->segment.generation)
        return x->segment.generation < y->segment.generation ? -1 : 1;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return qf_str_cmp(x->segment.name, y->segment.name);
}

static uint32_t group_of(const struct search *search, const struct index_entry *entry)
{
    return entry->segment.shard & (search->shard_count - 1);
}

/* Bring the entries of each group together: a counting sort by shard. Returns the number of groups
 * that are not empty; starts[g] is where group g begins. */
static size_t sort_by_group(const struct search *search, size_t *starts,
                            const struct index_entry **sorted)
{
    size_t groups = 0, at = 0;

    for (size_t i = 0; i < search->entries.count; i++)
        starts[group_of(search, search->entries.items[i])]++;
    for (uint32_t g = 0; g < search->shard_count; g++) {
        size_t count = starts[g];

        groups += count > 0;
        starts[g] = at;
        at += count;
    }
    starts[search->shard_count] = at;
    for (size_t i = 0; i < search->entries.count; i++) {
        const struct index_entry *entry = search->entries.items[i];

        sorted[starts[group_of(search, entry)]++] = entry;
    }
    /* Each start has moved to the end of its group, which is where the next one began. */
    for (uint32_t g = search->shard_count; g > 0; g--)
        starts[g] = starts[g - 1];
    starts[0] = 0;
    return groups;
}

static void fill_group(struct sg_catalog_group *group, const struct index_entry **entries,
                       size_t count, struct sg_catalog_segment *segments)
{
    qsort(entries, count, sizeof(entries[0]), by_age);
    for (size_t i = 0; i < count; i++) {
        segments[i] = entries[i]->segment;
        group->bytes += segments[i].size;
    }
    group->segments = segments;
    group->segment_count = count;
}

static qf_rc group(const struct search *search, struct qf_arena *arena,
                   struct sg_catalog_answer *answer, struct qf_err *err)
{
    size_t count = search->entries.count;
    size_t *starts = QF_ARENA_ARRAY(arena, size_t, (size_t)search->shard_count + 1);
    const struct index_entry **sorted = QF_ARENA_ARRAY(arena, const struct index_entry *, count);
    struct sg_catalog_segment *segments = QF_ARENA_ARRAY(arena, struct sg_catalog_segment, count);
    struct sg_catalog_group *groups = NULL;
    size_t group_count, at = 0;

    if (!starts || !sorted || !segments)
        return qf_err_set(err, QF_ELIMIT, "too many segments (%zu) for the memory allowed", count);
    group_count = sort_by_group(search, starts, sorted);
    groups = QF_ARENA_ARRAY(arena, struct sg_catalog_group, group_count);
    if (!groups)
        return qf_err_set(err, QF_ELIMIT, "too many segments (%zu) for the memory allowed", count);
    for (uint32_t g = 0; g < search->shard_count; g++) {
        if (starts[g] == starts[g + 1])
            continue;
        groups[at].shard = g;
        groups[at].shard_count = search->shard_count;
        fill_group(&groups[at], sorted + starts[g], starts[g + 1] - starts[g],
                   segments + starts[g]);
        answer->bytes += groups[at++].bytes;
    }
    answer->groups = groups;
    answer->group_count = group_count;
    answer->segment_count = count;
    return QF_OK;
}

qf_rc sg_catalog_lookup(const struct sg_catalog_snapshot *snapshot,
                        const struct sg_catalog_query *query, struct qf_arena *arena,
                        struct sg_catalog_answer *ret_answer, struct qf_err *err)
{
    const struct index_tenant *tenant = index_tenant_find(snapshot, query->tenant);
    struct search search = { .query = query,
                             .probe = sg_summary_probe_new(query->matchers, query->matcher_count) };
    struct sg_catalog_answer answer = { .tenant_known = tenant != NULL };
    qf_rc rc = QF_OK;

    for (size_t i = 0; tenant && query->min_ts <= query->max_ts && i < tenant->count; i++) {
        if (overlaps(snapshot->spans[tenant->first + i], query))
            search_folder(&search, snapshot->folders[tenant->first + i]);
    }
    if (query->min_ts <= query->max_ts)
        search_told(&search, snapshot, tenant);
    answer.pruned = search.pruned;
    if (search.entries.count)
        rc = group(&search, arena, &answer, err);
    QF_VEC_DONE(&search.entries);
    (void)sg_summary_probe_free(search.probe);
    if (!rc)
        *ret_answer = answer;
    return rc;
}
