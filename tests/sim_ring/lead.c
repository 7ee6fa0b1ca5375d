/* lead.c - what a leader's driver wants, done. */
#include <stdio.h>

#include "tests/sim_ring/world.h"

static void adopt(struct world *w, int at, const struct rg_drive_effect *effect)
{
    struct coordinator *c = &w->coordinators[at];
    struct message m = { .kind = TO_NOTE,
                         .from = COORDINATOR + at,
                         .to = PARTITION + (int)effect->partition,
                         .partition = effect->partition,
                         .op = OPS,
                         .note = { .kind = RG_NOTE_EPOCH, .epoch = c->ring->epoch } };

    m.note.since = QF_MIN(c->driver.partitions[effect->partition].adopted, c->ring->epoch);
    rg_ring_altered(c->ring, m.note.since, &m.note.slots);
    send(w, &m);
}

static void to_keeper(struct world *w, int at, const struct rg_drive_effect *effect)
{
    struct coordinator *c = &w->coordinators[at];
    struct message m = { .from = COORDINATOR + at,
                         .to = keeper_of(c->ring, effect->node),
                         .slot = effect->slot,
                         .epoch = effect->epoch,
                         .sources = keepers_of(c->ring, effect->sources),
                         .incarnation = c->driver.nodes[effect->node].incarnation };

    if (m.to < 0 || m.to >= KEEPERS)
        return;
    if (effect->kind == RG_DRIVE_STREAM)
        m.kind = TO_STREAM;
    if (effect->kind == RG_DRIVE_CLEAN)
        m.kind = TO_CLEAN;
    if (effect->kind == RG_DRIVE_TELL) {
        m.kind = TO_TELL;
        if (at != w->leader || c->isolated)
            return; /* it could not confirm that it leads */
        for (int s = 0; s < SLOTS; s++)
            m.epochs[s] = c->ring->slots[s].epoch;
    }
    if (effect->kind == RG_DRIVE_VERIFY) {
        m.kind = TO_VERIFY;
        if (c->isolated)
            return;
        m.set = named_in(w, (int)effect->slot);
        m.listed = least_epoch(w);
    }
    send(w, &m);
}

static void perform(struct world *w, int at, const struct rg_drive_effect *effect)
{
    struct message m = { .kind = TO_META, .from = COORDINATOR + at, .to = META };

    switch (effect->kind) {
    case RG_DRIVE_PROPOSE:
        m.entry = effect->entry;
        send(w, &m);
        break;
    case RG_DRIVE_ADOPT:
        adopt(w, at, effect);
        break;
    case RG_DRIVE_TELL:
    case RG_DRIVE_STREAM:
    case RG_DRIVE_VERIFY:
    case RG_DRIVE_CLEAN:
        to_keeper(w, at, effect);
        break;
    }
}

void drive(struct world *w, int at, const struct rg_drive_event *event)
{
    struct coordinator *c = &w->coordinators[at];

    if (!c->leads)
        return;
    rg_drive(&c->driver, c->ring, event);
    for (size_t i = 0; i < c->driver.effect_count; i++)
        perform(w, at, &c->driver.effects[i]);
}

void drive_hear(struct world *w, int at, const struct message *m)
{
    struct rg_drive_event event = { .now_ms = w->now,
                                    .slot = m->slot,
                                    .epoch = m->epoch,
                                    .ok = m->ok,
                                    .incarnation = m->incarnation,
                                    .listed = m->listed,
                                    .blobs = 1,
                                    .bytes = 10 };

    event.node = number_of(w->coordinators[at].ring, m->from);
    if (event.node == RG_NODES_MAX)
        return;
    if (m->kind == TOLD)
        event.kind = RG_DRIVE_ACKED;
    else if (m->kind == STREAMED)
        event.kind = RG_DRIVE_STREAMED;
    else if (m->kind == VERIFIED)
        event.kind = RG_DRIVE_VERIFIED;
    else if (m->kind == CLEANED)
        event.kind = RG_DRIVE_CLEANED;
    else
        return;
    drive(w, at, &event);
}
