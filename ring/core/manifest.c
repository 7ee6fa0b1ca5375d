/* manifest.c - applying entries, and what is remembered of them. */
#include "ring/core/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "ring/core/manifest_int.h"

struct rg_manifest *rg_manifest_new(uint32_t slots, uint32_t blobs_max, uint32_t removed_max)
{
    struct rg_manifest *manifest = qf_xcalloc(1, sizeof(*manifest));

    manifest->slots = slots;
    manifest->blobs_max = blobs_max ? blobs_max : RG_BLOBS_MAX;
    manifest->removed_max = removed_max ? removed_max : RG_REMOVED_MAX;
    manifest->slot_epochs = qf_xcalloc(slots, sizeof(*manifest->slot_epochs));
    return manifest;
}

struct rg_manifest *rg_manifest_free(struct rg_manifest *manifest)
{
    if (!manifest)
        return NULL;
    for (size_t i = 0; i < manifest->blobs.count; i++)
        free((void *)(uintptr_t)manifest->blobs.items[i].name.data);
    QF_VEC_DONE(&manifest->blobs);
    qf_map_done(&manifest->by_name);
    free(manifest->slot_epochs);
    free(manifest);
    return NULL;
}

void rg_manifest_unsafe(struct rg_manifest *manifest, uint64_t rules)
{
    manifest->unsafe = rules;
}

uint64_t rg_manifest_applied(const struct rg_manifest *manifest)
{
    return manifest->applied;
}

uint64_t rg_manifest_epoch(const struct rg_manifest *manifest)
{
    return manifest->epoch;
}

uint64_t rg_manifest_slot_epoch(const struct rg_manifest *manifest, uint32_t slot)
{
    return manifest->slot_epochs[slot];
}

size_t rg_manifest_count(const struct rg_manifest *manifest)
{
    return manifest->named;
}

static struct rg_blob *find(const struct rg_manifest *manifest, struct qf_str name)
{
    uint64_t *at = qf_map_get(&manifest->by_name, name);

    return at ? &manifest->blobs.items[*at] : NULL;
}

const struct rg_blob *rg_manifest_find(const struct rg_manifest *manifest, struct qf_str name)
{
    return find(manifest, name);
}

bool rg_manifest_names(const struct rg_manifest *manifest, struct qf_str name)
{
    const struct rg_blob *blob = find(manifest, name);

    return blob && !blob->removed;
}

const struct rg_blob *rg_manifest_next(const struct rg_manifest *manifest, size_t *at)
{
    return *at < manifest->blobs.count ? &manifest->blobs.items[(*at)++] : NULL;
}

bool rg_manifest_reaches(const struct rg_manifest *manifest, uint64_t index)
{
    return index >= manifest->forgotten;
}

void rg_manifest_add(struct rg_manifest *manifest, const struct rg_blob *blob)
{
    struct rg_blob own = *blob;

    own.name.data = qf_xmemdup0(blob->name.data, blob->name.len);
    *qf_map_put(&manifest->by_name, own.name, 0, NULL) = manifest->blobs.count;
    QF_VEC_PUSH(&manifest->blobs, own);
    manifest->named += !own.removed;
}

static int by_removal(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The removal up to which the older half of those remembered lies. */
static uint64_t median_removal(const struct rg_manifest *manifest)
{
    uint64_t *removals = qf_xcalloc(manifest->blobs.count, sizeof(*removals)), median;
    size_t count = 0;

    for (size_t i = 0; i < manifest->blobs.count; i++)
        if (manifest->blobs.items[i].removed)
            removals[count++] = manifest->blobs.items[i].removed;
    qsort(removals, count, sizeof(*removals), by_removal);
    median = removals[count / 2];
    free(removals);
    return median;
}

static void forget_some(struct rg_manifest *manifest)
{
    size_t kept = 0;

    if (manifest->blobs.count - manifest->named <= manifest->removed_max)
        return;
    manifest->forgotten = median_removal(manifest);
    qf_map_clear(&manifest->by_name);
    for (size_t i = 0; i < manifest->blobs.count; i++) {
        struct rg_blob *blob = &manifest->blobs.items[i];

        if (blob->removed && blob->removed <= manifest->forgotten) {
            free((void *)(uintptr_t)blob->name.data);
            continue;
        }
        manifest->blobs.items[kept] = *blob;
        *qf_map_put(&manifest->by_name, blob->name, 0, NULL) = kept++;
    }
    manifest->blobs.count = kept;
}

static enum rg_noted on_epoch(struct rg_manifest *manifest, const struct rg_note *note)
{
    if (rg_slot_set_next(&note->slots, manifest->slots) < RG_SLOTS || note->since > note->epoch)
        return RG_NOTED_BAD;
    if (note->epoch <= manifest->epoch)
        return RG_NOTED_NOTHING;
    if (note->since > manifest->epoch)
        return RG_NOTED_GAP;
    for (uint32_t at = rg_slot_set_next(&note->slots, 0); at < manifest->slots;
         at = rg_slot_set_next(&note->slots, at + 1))
        manifest->slot_epochs[at] = note->epoch;
    manifest->epoch = note->epoch;
    return RG_NOTED;
}

/* Can what @note adds be added? *@ret_new: how much of it is not named yet. */
static enum rg_noted check_added(const struct rg_manifest *manifest, const struct rg_note *note,
                                 size_t *ret_new)
{
    *ret_new = 0;
    for (size_t i = 0; i < note->added_count; i++) {
        const struct rg_blob *blob = &note->added[i], *known = find(manifest, blob->name);

        if (blob->slot >= manifest->slots || blob->name.len == 0 ||
            blob->name.len > RG_BLOB_NAME_MAX)
            return RG_NOTED_BAD;
        if (note->epoch < manifest->slot_epochs[blob->slot] &&
            !(manifest->unsafe & RG_MANIFEST_UNSAFE_ANY_EPOCH))
            return RG_NOTED_OLD_EPOCH;
        if (known && known->removed && !(manifest->unsafe & RG_MANIFEST_UNSAFE_FORGETS))
            return RG_NOTED_GONE;
        *ret_new += !known || known->removed;
    }
    return manifest->named + *ret_new > manifest->blobs_max ? RG_NOTED_FULL : RG_NOTED;
}

static void add_all(struct rg_manifest *manifest, uint64_t index, const struct rg_note *note)
{
    for (size_t i = 0; i < note->added_count; i++) {
        struct rg_blob blob = note->added[i], *known = find(manifest, blob.name);

        blob.index = index;
        blob.removed = 0;
        if (!known) {
            rg_manifest_add(manifest, &blob);
        } else if (known->removed) { /* only with the rule off */
            known->removed = 0;
            manifest->named++;
        }
    }
}

static size_t remove_all(struct rg_manifest *manifest, uint64_t index, const struct rg_note *note)
{
    size_t gone = 0;

    for (size_t i = 0; i < note->removed_count; i++) {
        struct rg_blob *blob = find(manifest, note->removed[i]);

        if (!blob || blob->removed)
            continue;
        blob->removed = index;
        manifest->named--;
        gone++;
    }
    forget_some(manifest);
    return gone;
}

static size_t named_among(const struct rg_manifest *manifest, const struct rg_note *note)
{
    size_t named = 0;

    for (size_t i = 0; i < note->removed_count; i++)
        named += rg_manifest_names(manifest, note->removed[i]);
    return named;
}

static enum rg_noted on_added(struct rg_manifest *manifest, uint64_t index,
                              const struct rg_note *note)
{
    size_t fresh, inputs;
    enum rg_noted noted = check_added(manifest, note, &fresh);

    if (noted != RG_NOTED)
        return noted;
    inputs = named_among(manifest, note);
    if (fresh == 0 && inputs == 0)
        return RG_NOTED_NOTHING;
    if (note->kind == RG_NOTE_REPLACED && inputs < note->removed_count)
        return RG_NOTED_GONE;
    add_all(manifest, index, note);
    if (note->kind == RG_NOTE_REPLACED)
        (void)remove_all(manifest, index, note);
    return RG_NOTED;
}

enum rg_noted rg_manifest_apply(struct rg_manifest *manifest, uint64_t index,
                                const struct rg_note *note)
{
    manifest->applied = index;
    if (note->added_count + note->removed_count > RG_NOTE_BLOBS_MAX)
        return RG_NOTED_BAD;
    switch (note->kind) {
    case RG_NOTE_EPOCH:
        return on_epoch(manifest, note);
    case RG_NOTE_SEALED:
    case RG_NOTE_ADDED:
    case RG_NOTE_REPLACED:
        return on_added(manifest, index, note);
    case RG_NOTE_REMOVED:
        return remove_all(manifest, index, note) ? RG_NOTED : RG_NOTED_NOTHING;
    case RG_NOTE__COUNT:
        break;
    }
    return RG_NOTED_BAD;
}
