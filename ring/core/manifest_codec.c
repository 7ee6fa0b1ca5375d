/* manifest_codec.c - a manifest and its entries as bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "ring/core/bytes.h"
#include "ring/core/manifest_int.h"

enum { VERSION = 1 };

void rg_manifest_encode(struct qf_strbuf *buf, const struct rg_manifest *manifest)
{
    rg_put(buf, VERSION);
    rg_put(buf, manifest->applied);
    rg_put(buf, manifest->epoch);
    rg_put(buf, manifest->forgotten);
    rg_put(buf, manifest->blobs_max);
    rg_put(buf, manifest->removed_max);
    rg_put(buf, manifest->slots);
    for (uint32_t i = 0; i < manifest->slots; i++)
        rg_put(buf, manifest->slot_epochs[i]);
    rg_put(buf, manifest->blobs.count);
    for (size_t i = 0; i < manifest->blobs.count; i++) {
        const struct rg_blob *blob = &manifest->blobs.items[i];

        rg_put_text(buf, blob->name);
        rg_put(buf, blob->slot);
        rg_put(buf, blob->bytes);
        rg_put(buf, blob->index);
        rg_put(buf, blob->removed);
    }
}

static void get_blobs(struct rg_cursor *c, struct rg_manifest *manifest)
{
    uint64_t count = rg_get(c, (uint64_t)manifest->blobs_max + manifest->removed_max), last = 0;

    for (uint64_t i = 0; i < count && !c->bad; i++) {
        struct rg_blob blob = { .name = rg_get_text(c, RG_BLOB_NAME_MAX) };

        blob.slot = (uint32_t)rg_get(c, manifest->slots - 1);
        blob.bytes = rg_get(c, UINT64_MAX);
        blob.index = rg_get(c, manifest->applied);
        blob.removed = rg_get(c, manifest->applied);
        if (blob.name.len == 0 || rg_manifest_find(manifest, blob.name) || blob.index < last ||
            blob.index == 0 ||
            (blob.removed && (blob.removed < blob.index || blob.removed <= manifest->forgotten)))
            c->bad = true;
        if (!c->bad)
            rg_manifest_add(manifest, &blob);
        last = blob.index;
    }
    if (manifest->named > manifest->blobs_max ||
        manifest->blobs.count - manifest->named > manifest->removed_max)
        c->bad = true;
}

qf_rc rg_manifest_decode(struct qf_str bytes, struct rg_manifest **ret_manifest)
{
    struct rg_cursor c = { .rest = bytes };
    struct rg_manifest *manifest = rg_manifest_new(RG_SLOTS, 0, 0);

    if (rg_get(&c, VERSION) != VERSION)
        c.bad = true;
    manifest->applied = rg_get(&c, UINT64_MAX);
    manifest->epoch = rg_get(&c, UINT64_MAX);
    manifest->forgotten = rg_get(&c, manifest->applied);
    manifest->blobs_max = (uint32_t)rg_get(&c, RG_BLOBS_MAX);
    manifest->removed_max = (uint32_t)rg_get(&c, RG_REMOVED_MAX);
    manifest->slots = (uint32_t)rg_get(&c, RG_SLOTS);
    if (!manifest->blobs_max || !manifest->removed_max || !manifest->slots)
        c.bad = true;
    for (uint32_t i = 0; i < manifest->slots && !c.bad; i++)
        manifest->slot_epochs[i] = rg_get(&c, manifest->epoch);
    if (!c.bad)
        get_blobs(&c, manifest);
    if (c.bad || c.rest.len) {
        (void)rg_manifest_free(manifest);
        return QF_ECORRUPT;
    }
    *ret_manifest = manifest;
    return QF_OK;
}

static bool adds(enum rg_note_kind kind)
{
    return kind == RG_NOTE_SEALED || kind == RG_NOTE_ADDED || kind == RG_NOTE_REPLACED;
}

static bool removes(enum rg_note_kind kind)
{
    return kind == RG_NOTE_REPLACED || kind == RG_NOTE_REMOVED;
}

void rg_note_encode(struct qf_strbuf *buf, const struct rg_note *note)
{
    rg_put(buf, note->kind);
    if (note->kind != RG_NOTE_REMOVED)
        rg_put(buf, note->epoch);
    if (note->kind == RG_NOTE_EPOCH) {
        rg_put(buf, note->since);
        rg_put_slots(buf, &note->slots);
    }
    if (adds(note->kind)) {
        rg_put(buf, note->added_count);
        for (size_t i = 0; i < note->added_count; i++) {
            rg_put_text(buf, note->added[i].name);
            rg_put(buf, note->added[i].slot);
            rg_put(buf, note->added[i].bytes);
        }
    }
    if (removes(note->kind)) {
        rg_put(buf, note->removed_count);
        for (size_t i = 0; i < note->removed_count; i++)
            rg_put_text(buf, note->removed[i]);
    }
}

static void get_added(struct rg_cursor *c, struct rg_note *note)
{
    /* A blob has three bytes at least. */
    size_t count = rg_get(c, QF_MIN((size_t)RG_NOTE_BLOBS_MAX, c->rest.len / 3));
    struct rg_blob *blobs = qf_xcalloc(count ? count : 1, sizeof(*blobs));

    for (size_t i = 0; i < count; i++) {
        blobs[i].name = rg_get_text(c, RG_BLOB_NAME_MAX);
        blobs[i].slot = (uint32_t)rg_get(c, RG_SLOTS - 1);
        blobs[i].bytes = rg_get(c, UINT64_MAX);
    }
    note->added = blobs;
    note->added_count = count;
}

static void get_removed(struct rg_cursor *c, struct rg_note *note)
{
    size_t count = rg_get(c, QF_MIN((size_t)RG_NOTE_BLOBS_MAX, c->rest.len));
    struct qf_str *names = qf_xcalloc(count ? count : 1, sizeof(*names));

    for (size_t i = 0; i < count; i++)
        names[i] = rg_get_text(c, RG_BLOB_NAME_MAX);
    note->removed = names;
    note->removed_count = count;
}

qf_rc rg_note_decode(struct qf_str bytes, struct rg_note *ret_note)
{
    struct rg_cursor c = { .rest = bytes };
    struct rg_note note = { .kind = (enum rg_note_kind)rg_get(&c, RG_NOTE__COUNT - 1) };

    if (!note.kind)
        return QF_ECORRUPT;
    if (note.kind != RG_NOTE_REMOVED)
        note.epoch = rg_get(&c, UINT64_MAX);
    if (note.kind == RG_NOTE_EPOCH) {
        note.since = rg_get(&c, UINT64_MAX);
        rg_get_slots(&c, &note.slots);
    }
    if (adds(note.kind))
        get_added(&c, &note);
    if (removes(note.kind))
        get_removed(&c, &note);
    if (c.bad || c.rest.len) {
        rg_note_done(&note);
        return QF_ECORRUPT;
    }
    *ret_note = note;
    return QF_OK;
}

void rg_note_done(struct rg_note *note)
{
    free((void *)(uintptr_t)note->added);
    free((void *)(uintptr_t)note->removed);
    note->added = NULL;
    note->removed = NULL;
}
