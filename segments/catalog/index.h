/* index.h - what a snapshot of the catalogue is made of.
 *
 * A snapshot is a sorted array of folders, one per tenant and day, shared with the snapshots before
 * and after it; a folder is an array of entries. Both are immutable but for counters of references
 * and for summaries, which appear once and then stay. */
#ifndef SEGMENTS_CATALOG_INDEX_H
#define SEGMENTS_CATALOG_INDEX_H

#include <stdatomic.h>

#include "base/pure/vec.h"
#include "segments/catalog/catalog.h"
#include "segments/parquet/segment_name.h"
#include "segments/parquet/summary.h"

/* A summary that several versions of a folder may hold. `summary` NULL: the file was looked at and
 * says nothing of its labels. */
struct index_summary {
    atomic_uint refs;
    struct sg_summary *summary;
    struct qf_str contents;         /* owned text for sg_contents_parse(); empty: there is none */
    struct qf_str replaces, beside; /* owned texts for sg_names_next(), likewise */
};

/* What a file says of itself, as far as the catalogue keeps it. */
struct index_learnt {
    struct sg_summary *summary; /* NULL: nothing of its labels */
    struct qf_str contents, replaces, beside;
};

struct index_entry {
    struct sg_catalog_segment segment;       /* strings in the folder's arena */
    uint64_t id;                             /* breaks ties of generation */
    _Atomic(struct index_summary *) summary; /* NULL: not known yet; written once */
    /* Its samples are in files of the same folder that replace it: lookups leave it out. */
    atomic_bool replaced;
};

struct index_span {
    int64_t min_ts, max_ts;
};

/* Entries per block of a folder: a block outside of the range asked for costs one comparison. */
#define INDEX_BLOCK 64

struct index_folder {
    atomic_uint refs;
    struct qf_str prefix; /* "tenant=T/date=D/" */
    struct qf_str tenant;
    struct index_entry *entries; /* by name */
    struct index_span *spans;    /* of the entries: what lookups scan */
    struct index_span *blocks;   /* of INDEX_BLOCK entries each */
    size_t count;
    struct index_span span;
    uint64_t bytes;
    size_t foreign;
    atomic_size_t summary_count, summary_bytes;
    struct qf_arena *arena;
};

struct index_tenant {
    struct qf_str name;
    size_t first, count; /* folders */
};

struct sg_catalog_snapshot {
    atomic_uint refs;
    uint64_t version;
    struct index_folder **folders; /* by prefix; each has entries or foreign files */
    struct index_span *spans;      /* of the folders */
    size_t count;
    struct index_tenant *tenants; /* by name */
    size_t tenant_count;
    uint64_t segments, bytes, foreign;
};

/* --- building a folder --- */

struct index_builder {
    struct qf_arena *arena;
    struct qf_str prefix, tenant;
    QF_VEC(struct index_entry) entries;
    size_t foreign;
};

void index_builder_start(struct index_builder *builder, struct qf_str prefix);
/* Add an object; objects come in order of name. One that is not a segment of this folder is counted
 * as foreign. */
void index_builder_add(struct index_builder *builder, const struct sg_store_object *object);
/* The folder, with summaries taken over from @old (may be NULL) for segments that did not change;
 * @old itself, with another reference, if nothing did. NULL if the folder is empty. */
struct index_folder *index_builder_finish(struct index_builder *builder, struct index_folder *old);
void index_builder_done(struct index_builder *builder); /* Forget a folder that was not finished. */

struct index_folder *index_folder_ref(struct index_folder *folder);
struct index_folder *index_folder_drop(struct index_folder *folder); /* Returns NULL. */
/* The same folder with no summary known. */
struct index_folder *index_folder_strip(const struct index_folder *folder);

/* Tell what the file of an entry says of itself; takes the summary and copies the texts. Only one thread at a time does
 * this. */
void index_entry_learn(struct index_folder *folder, struct index_entry *entry,
                       const struct index_learnt *learnt);

/* --- snapshots --- */

/* Takes the references in @folders (sorted by prefix) and the array. One reference is returned. */
struct sg_catalog_snapshot *index_snapshot_new(struct index_folder **folders, size_t count,
                                               uint64_t version);
/* The tenant's entry, or NULL. */
const struct index_tenant *index_tenant_find(const struct sg_catalog_snapshot *snapshot,
                                             struct qf_str tenant);

#endif
