/* check.c - what must hold: always, and when everything has been quiet for a while. */
#include <stdio.h>

#include "tests/sim_ring/world.h"

/* Do a majority of @owners have @blob, those counted that had it and lost their disks? */
static bool has_majority(const struct world *w, const struct rg_owners *owners, int blob)
{
    unsigned have = 0;

    for (unsigned i = 0; i < owners->count; i++) {
        int k = keeper_of(w->ring, owners->nodes[i]);

        have += k >= 0 && (w->keepers[k].holds[blob] || w->keepers[k].lost[blob]);
    }
    return have >= rg_quorum(owners->count);
}

static bool is_anywhere(const struct world *w, int blob)
{
    for (int k = 0; k < KEEPERS; k++)
        if (w->keepers[k].holds[blob])
            return true;
    return false;
}

/* Cleanup never goes below a quorum: of what @entry lets a node drop, a quorum of the owners has each named blob, unless a disk
 * was lost that the log has not heard of yet. */
void check_cleanup(struct world *w, const struct rg_entry *entry)
{
    uint32_t at = rg_slot_set_next(&entry->slots, 0);
    const struct rg_slot *slot = &w->ring->slots[at];
    int leaver = keeper_of(w->ring, entry->node);

    for (int b = 0; b < w->blob_count; b++) {
        unsigned have = 0;

        /* What was named after the listing of who said HELD, which may be so long ago, has its own majority. */
        if (!w->blobs[b].named || w->blobs[b].slot != at || !w->keepers[leaver].holds[b] ||
            (slot->held && w->blobs[b].named_ms > w->held_ms[at] - 6 * LATE_MS))
            continue;
        for (unsigned i = 0; i < slot->owners.count; i++) {
            const struct keeper *k = &w->keepers[keeper_of(w->ring, slot->owners.nodes[i])];

            have +=
                k->holds[b] || k->incarnation != w->ring->nodes[slot->owners.nodes[i]].incarnation;
        }
        if (have < rg_quorum(slot->owners.count))
            fail(w, "cleanup of %s by %s leaves less than a quorum", w->blobs[b].name,
                 w->keepers[leaver].name);
    }
}

/* What a list would show if it were made of folders: blobs that some reachable owner has. */
static void check_folders(struct world *w)
{
    for (int b = 0; b < w->blob_count; b++) {
        const struct blob *blob = &w->blobs[b];
        rg_nodes owners = keepers_of(w->ring, rg_slot_everyone(&w->ring->slots[blob->slot]));

        for (int k = 0; k < KEEPERS; k++)
            if (blob->removed && blob->removed_ms == w->now &&
                reaches(w, COORDINATOR + w->leader, k))
                w->keepers[k].holds[b] = false; /* who can be reached is told to remove it */
        for (int k = 0; k < KEEPERS; k++)
            if (blob->removed && w->now - blob->removed_ms > 2 * LATE_MS && (owners & RG_NODE(k)) &&
                w->keepers[k].holds[b] && reaches(w, COORDINATOR + w->leader, k))
                fail(w, "%s was removed and is back with %s", blob->name, w->keepers[k].name);
    }
}

void check(struct world *w)
{
    for (int b = 0; b < w->blob_count; b++) {
        const struct blob *blob = &w->blobs[b];
        const struct rg_slot *slot = &w->ring->slots[blob->slot];

        if (!blob->named)
            continue;
        if (!is_anywhere(w, b))
            fail(w, "%s is named and nobody has it", blob->name);
        else if (!has_majority(w, &slot->owners, b))
            fail(w, "%s is named, and no majority of the owners of slot %u has it in epoch %d",
                 blob->name, blob->slot, (int)slot->epoch);
    }
    if (w->rules.sim & SIM_UNSAFE_LIST_FOLDERS)
        check_folders(w);
}

static void check_blob(struct world *w, int b)
{
    const struct blob *blob = &w->blobs[b];
    rg_nodes owners = keepers_of(w->ring, rg_slot_everyone(&w->ring->slots[blob->slot]));

    if (!blob->named && !blob->removed && !blob->dead)
        fail(w, "after quiet: %s is not named yet", blob->name);
    for (int k = 0; k < KEEPERS; k++) {
        bool holds = w->keepers[k].holds[b];

        if (blob->named && (owners & RG_NODE(k)) && !holds)
            fail(w, "after quiet: %s does not have %s", w->keepers[k].name, blob->name);
        if (!blob->named && holds)
            fail(w, "after quiet: %s still has %s, which nothing names", w->keepers[k].name,
                 blob->name);
    }
}

static void check_document(struct world *w, int d)
{
    rg_nodes owners = keepers_of(w->ring, rg_slot_everyone(&w->ring->slots[w->document_slot[d]]));
    const struct rg_document *first = NULL;

    for (int k = 0; k < KEEPERS; k++) {
        struct rg_document copy;

        if (!(owners & RG_NODE(k)))
            continue;
        copy = w->keepers[k].documents[d];
        first = first ? first : &w->keepers[k].documents[d];
        if (rg_document_join(&copy, first) || copy.count != first->count)
            fail(w, "after quiet: document %d differs between its owners", d);
    }
}

static void check_coordinator(struct world *w, int at)
{
    const struct coordinator *c = &w->coordinators[at];
    struct rg_handoff_figures figures = rg_handoff_figures(c->handoff);

    if (figures.references || figures.payloads)
        fail(w, "after quiet: c%d still has %d references", at, (int)figures.references);
    for (int b = 0; b < w->blob_count; b++)
        if (c->stored[b])
            fail(w, "after quiet: c%d still stores a payload", at);
}

void check_end(struct world *w)
{
    for (size_t i = 0; i < RG_CHANGES_MAX; i++)
        if (w->ring->changes[i].kind != RG_CHANGE_NONE)
            fail(w, "after quiet: change %d is not over and cleaned up",
                 (int)w->ring->changes[i].id);
    for (int b = 0; b < w->blob_count; b++)
        check_blob(w, b);
    for (int d = 0; d < DOCUMENTS; d++)
        check_document(w, d);
    for (int c = 0; c < COORDINATORS; c++)
        check_coordinator(w, c);
}
