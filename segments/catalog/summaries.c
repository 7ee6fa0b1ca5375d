/* summaries.c - what files say of their labels, fetched from their footers when there is time. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "segments/catalog/catalog_int.h"
#include "segments/parquet/segment.h"

/* Memory a summary takes, until some are known. */
#define SUMMARY_GUESS 4096
/* A footer larger than that is not worth its bytes. */
#define TAIL_BYTES_MAX ((uint64_t)8 << 20)

qf_rc sg_catalog_read_meta(struct sg_store *store, struct qf_str name,
                           const struct sg_store_call *call, struct qf_arena *arena,
                           struct sg_meta *ret_meta, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *file = qf_xmemdup0(name.data, name.len);
    uint64_t want = SG_TAIL_BYTES;

    for (int i = 0; i < 2 && want && want <= TAIL_BYTES_MAX; i++) {
        QF_CLEANUP(qf_freep) char *tail = qf_xmalloc((size_t)want);
        uint64_t size, need = 0;
        size_t len;
        qf_rc rc = sg_store_read_tail(store, name, tail, (size_t)want, call, &len, &size, err);

        if (!rc)
            rc = sg_meta_from_tail(arena, file, (struct qf_str){ tail, len }, size, ret_meta, &need,
                                   err);
        if (rc || !need)
            return rc;
        want = need;
    }
    return qf_err_set(err, QF_ELIMIT, "%s: its footer is too large", file);
}

static qf_rc learn(struct sg_catalog *catalog, const struct sg_catalog_segment *segment,
                   const struct sg_store_call *call, struct qf_arena *arena,
                   struct index_learnt *ret_learnt)
{
    struct sg_meta meta;
    qf_rc rc = sg_catalog_read_meta(catalog->store, segment->name, call, arena, &meta, NULL);

    if (rc == QF_OK)
        *ret_learnt = (struct index_learnt){ .summary = sg_summary_parse(meta.summary),
                                             .contents = meta.contents,
                                             .replaces = meta.replaces,
                                             .beside = meta.beside };
    return rc;
}

/* True if the trouble is with the store, not with this file: better try again later. */
static bool passing(qf_rc rc)
{
    return rc == QF_EIO || rc == QF_ETIMEOUT || rc == QF_ECANCELED || rc == QF_EDENIED ||
           rc == QF_EAUTH || rc == QF_EUNAVAILABLE;
}

/* False to stop. A damaged file is reported by the query that reads it; here it only means that its
 * summary is not known. */
static bool learn_folder(struct sg_catalog *catalog, struct index_folder *folder,
                         const struct sg_store_call *call, size_t room, int64_t until_ms)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(TAIL_BYTES_MAX * 2);

    for (size_t i = folder->count; i-- > 0;) {
        struct index_entry *entry = &folder->entries[i];
        struct index_learnt learnt = { 0 };
        qf_rc rc;

        if (atomic_load_explicit(&entry->summary, memory_order_relaxed))
            continue;
        if (atomic_load_explicit(&folder->summary_bytes, memory_order_relaxed) >= room)
            return true; /* as much as may be known of it */
        if (qf_clock_mono_ms() >= until_ms)
            return false;
        qf_arena_reset(arena);
        rc = learn(catalog, &entry->segment, call, arena, &learnt);
        if (passing(rc))
            return false;
        index_entry_learn(folder, entry, &learnt);
    }
    return true;
}

static int newest_first(const void *a, const void *b)
{
    const struct index_folder *x = *(struct index_folder *const *)a;
    const struct index_folder *y = *(struct index_folder *const *)b;

    if (x->span.max_ts != y->span.max_ts)
        return x->span.max_ts > y->span.max_ts ? -1 : 1;
    return qf_str_cmp(x->prefix, y->prefix);
}

bool sg_catalog_learn(struct sg_catalog *catalog, struct sg_catalog_snapshot *snapshot,
                      const struct sg_store_call *call)
{
    int64_t until_ms = qf_clock_mono_ms() + catalog->summary_time_ms;
    struct index_folder **folders = qf_xcalloc(snapshot->count + 1, sizeof(*folders));
    size_t bytes = 0, known = 0, most = catalog->summary_bytes_max / 10 * 9;
    bool complete = true;

    for (size_t i = 0; i < snapshot->count; i++)
        folders[i] = snapshot->folders[i];
    if (snapshot->count)
        qsort(folders, snapshot->count, sizeof(*folders), newest_first);
    for (size_t i = 0; complete && i < snapshot->count; i++) {
        size_t guess = known ? bytes / known : SUMMARY_GUESS;

        /* Stop short of the limit: summaries beyond it would be dropped by the next refresh. */
        if (bytes + guess * folders[i]->count > most)
            break;
        complete = learn_folder(catalog, folders[i], call, most - bytes, until_ms);
        bytes += atomic_load_explicit(&folders[i]->summary_bytes, memory_order_relaxed);
        known += folders[i]->count;
    }
    free(folders);
    return complete;
}
