/* manifest.h - which blobs of a partition exist: the sum of its log's entries, not what lies in folders. Pure.
 *
 *     EPOCH     the partition adopts EPOCH of the ring: SLOTS, all that were altered since SINCE, are in it now. Counts only
 *               if the partition is at SINCE or later, so that no slot is left out
 *     SEALED    a range of the log is in these blobs
 *     ADDED     an import's blobs
 *     REPLACED  compaction: the blobs of REMOVED are in those of ADDED. Counts only if all of them are named
 *     REMOVED   retention, or by hand
 *
 * Keepers hold blobs; a blob that no manifest names is garbage (keep.h), a named one that an owner lacks is repaired
 * (repair.h). So nothing is listed that is not there, and nothing that was removed comes back with a node that was away (!).
 *
 * SEALED, ADDED and REPLACED carry the epoch in which the owners that hold their blobs were counted. If the partition has
 * adopted a later epoch of a blob's slot, the entry counts for nothing (!): whoever proposed it puts again, to the owners of
 * now. Blobs that were named before lie with a majority of the owners before; who verifies newcomers looks at them behind
 * the EPOCH entry.
 *
 * A name is used once: it has the content's id and a generation in it. One that was removed is not named again, as long as it is
 * remembered: an entry that was doubled on its way brings nothing back.
 *
 * Equal logs give equal manifests. Everything is bounded. One thread owns a manifest. */
#ifndef RING_CORE_MANIFEST_H
#define RING_CORE_MANIFEST_H

#include "base/pure/err.h"
#include "ring/core/entry.h"

enum {
    RG_BLOB_NAME_MAX = 255,
    RG_BLOBS_MAX = 1 << 20,   /* named in a partition */
    RG_REMOVED_MAX = 1 << 16, /* remembered; then the older half is forgotten */
    RG_NOTE_BLOBS_MAX = 4096, /* of one entry */
};

enum rg_note_kind {
    RG_NOTE_EPOCH = 1,
    RG_NOTE_SEALED,
    RG_NOTE_ADDED,
    RG_NOTE_REPLACED,
    RG_NOTE_REMOVED,
    RG_NOTE__COUNT
};

struct rg_blob {
    struct qf_str name; /* borrowed */
    uint32_t slot;
    uint64_t bytes;
    uint64_t index;   /* of the entry that named it */
    uint64_t removed; /* of the entry that removed it; 0: it is named */
};

struct rg_note {
    enum rg_note_kind kind;
    uint64_t epoch;
    uint64_t since;              /* EPOCH */
    struct rg_slot_set slots;    /* EPOCH */
    const struct rg_blob *added; /* SEALED, ADDED, REPLACED: name, slot, bytes */
    size_t added_count;
    const struct qf_str *removed; /* REPLACED, REMOVED: names */
    size_t removed_count;
};

enum rg_noted {
    RG_NOTED,
    RG_NOTED_NOTHING,   /* it is so already */
    RG_NOTED_OLD_EPOCH, /* put again, in the epoch of now */
    RG_NOTED_GAP,       /* EPOCH: slots altered before SINCE would be left out */
    RG_NOTED_GONE,      /* REPLACED: an input is not there; ADDED: a name that was removed */
    RG_NOTED_FULL,      /* of blobs */
    RG_NOTED_BAD        /* a slot or a name that cannot be, or too many */
};

/* Rules switched off, for the simulator. */
enum rg_manifest_unsafe {
    RG_MANIFEST_UNSAFE_ANY_EPOCH = 1 << 0, /* an entry of an earlier epoch applies */
    RG_MANIFEST_UNSAFE_FORGETS = 1 << 1,   /* a removed name may be named again */
};

struct rg_manifest;

/* Bounds of 0 are RG_BLOBS_MAX and RG_REMOVED_MAX. */
struct rg_manifest *rg_manifest_new(uint32_t slots, uint32_t blobs_max, uint32_t removed_max);
struct rg_manifest *
rg_manifest_free(struct rg_manifest *manifest); /* Accepts NULL, returns NULL. */
void rg_manifest_unsafe(struct rg_manifest *manifest, uint64_t rules);

/* Apply the entry at @index of the log, which is above all before. */
enum rg_noted rg_manifest_apply(struct rg_manifest *manifest, uint64_t index,
                                const struct rg_note *note);

uint64_t rg_manifest_applied(const struct rg_manifest *manifest);
uint64_t rg_manifest_epoch(const struct rg_manifest *manifest); /* the last that was adopted */
uint64_t rg_manifest_slot_epoch(const struct rg_manifest *manifest, uint32_t slot);
size_t rg_manifest_count(const struct rg_manifest *manifest); /* named */
/* NULL: never heard of, or forgotten. Good until the next entry. */
const struct rg_blob *rg_manifest_find(const struct rg_manifest *manifest, struct qf_str name);
bool rg_manifest_names(const struct rg_manifest *manifest, struct qf_str name);

/* Walk over everything that is known, named and removed, in the order in which it was named: *@at from 0 on. NULL: the
 * end. For lists (page by page between two entries) and for changes since an index. */
const struct rg_blob *rg_manifest_next(const struct rg_manifest *manifest, size_t *at);
/* May "what changed since @index" be answered? False: removals since then were forgotten; list everything. */
bool rg_manifest_reaches(const struct rg_manifest *manifest, uint64_t index);

/* For snapshots: equal manifests give equal bytes. Decoding is strict: QF_ECORRUPT. */
void rg_manifest_encode(struct qf_strbuf *buf, const struct rg_manifest *manifest);
QF_MUST_CHECK qf_rc rg_manifest_decode(struct qf_str bytes, struct rg_manifest **ret_manifest);

/* Entries as bytes. Decoding borrows from @bytes, and from arrays of @ret_note that rg_note_done() frees. QF_ECORRUPT. */
void rg_note_encode(struct qf_strbuf *buf, const struct rg_note *note);
QF_MUST_CHECK qf_rc rg_note_decode(struct qf_str bytes, struct rg_note *ret_note);
void rg_note_done(struct rg_note *note);

#endif
