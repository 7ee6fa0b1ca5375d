/* log.c - `meta` and the partitions: what is appended is applied. */
#include <stdio.h>
#include <string.h>

#include "tests/sim_ring/world.h"

void meta_append(struct world *w, const struct rg_entry *entry)
{
    uint64_t epoch = w->ring->epoch;
    enum rg_verdict verdict;

    QF_VEC_PUSH(&w->log, *entry);
    verdict = rg_ring_apply(w->ring, w->log.count, entry);
    for (int s = 0; s < SLOTS; s++)
        w->held_ms[s] = !w->ring->slots[s].held ? INT64_MAX : QF_MIN(w->held_ms[s], w->now);
    if (entry->kind == RG_CLEAN && verdict == RG_APPLIED)
        check_cleanup(w, entry);
    if (entry->kind == RG_BEGIN && w->ring->epoch > epoch)
        w->figures.moves++;
    w->figures.changes +=
        verdict == RG_APPLIED &&
        (entry->kind == RG_ADD || entry->kind == RG_REMOVE || entry->kind == RG_FACTOR);
    say(w, "meta %d: kind %d node %d change %d: %s, epoch %d", (int)w->log.count, entry->kind,
        entry->node, (int)entry->change, rg_verdict_text(verdict), (int)w->ring->epoch);
}

void meta_hear(struct world *w, const struct message *m)
{
    /* Who was deposed since it sent this has its proposal refused. */
    if (m->from != COORDINATOR + w->leader)
        return;
    meta_append(w, &m->entry);
}

static void took_effect(struct world *w, const struct message *m, enum rg_note_kind kind)
{
    struct blob *blob = &w->blobs[m->blob];

    if (kind == RG_NOTE_REMOVED) {
        blob->named = false;
        blob->removed = true;
        blob->removed_ms = w->now;
        w->figures.removed++;
        return;
    }
    if (blob->removed)
        fail(w, "%s was removed and is named again", blob->name);
    blob->named = true;
    blob->named_ms = w->now;
    w->figures.sealed++;
    for (int i = 0; i < 2; i++)
        if (blob->inputs[i] >= 0) {
            struct blob *input = &w->blobs[blob->inputs[i]];

            input->named = false;
            input->removed = true;
            input->removed_ms = w->now;
            w->figures.replaced++;
        }
}

void partition_hear(struct world *w, const struct message *m)
{
    struct rg_manifest *manifest = w->manifests[m->partition];
    struct rg_note note = m->note;
    struct rg_blob added = { 0 };
    struct qf_str removed[2];
    struct message reply = { .kind = NOTED,
                             .from = m->to,
                             .to = m->from,
                             .op = m->op,
                             .generation = m->generation,
                             .partition = m->partition,
                             .life = m->life };

    if (w->now - m->sent_ms > BLOB_GRACE_MS / 4)
        return; /* too old to be appended */
    if (note.kind != RG_NOTE_EPOCH) {
        const struct blob *blob = &w->blobs[m->blob];

        added = (struct rg_blob){ .name = qf_str_from(blob->name), .slot = blob->slot };
        note.added = &added;
        note.added_count = note.kind != RG_NOTE_REMOVED;
        removed[0] = qf_str_from(blob->name);
        note.removed = removed;
        note.removed_count = note.kind == RG_NOTE_REMOVED;
        for (int i = 0; note.kind == RG_NOTE_REPLACED && i < 2; i++)
            removed[note.removed_count++] = qf_str_from(w->blobs[blob->inputs[i]].name);
    }
    reply.noted = rg_manifest_apply(manifest, ++w->indexes[m->partition], &note);
    reply.epoch = rg_manifest_epoch(manifest);
    if (reply.noted == RG_NOTED && note.kind != RG_NOTE_EPOCH)
        took_effect(w, m, note.kind);
    w->figures.old_epochs += reply.noted == RG_NOTED_OLD_EPOCH;
    say(w, "partition %d: kind %d blob %d epoch %d: %d", (int)m->partition, note.kind, m->blob,
        (int)note.epoch, reply.noted);
    send(w, &reply);
}
