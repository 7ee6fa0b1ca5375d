/* hand.c - a coordinator's hand-off with its disk, and its repairs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim_ring/world.h"

/* "b17" is blob 17. */
static int blob_of(struct qf_str name)
{
    int number = 0;

    for (size_t i = 1; i < name.len; i++)
        number = number * 10 + (name.data[i] - '0');
    return number;
}

static void put(struct world *w, int at, int keeper, int blob, enum put_purpose purpose,
                uint64_t number)
{
    struct coordinator *c = &w->coordinators[at];
    uint32_t slot = w->blobs[blob].slot;
    struct message m = { .kind = TO_PUT,
                         .from = COORDINATOR + at,
                         .to = keeper,
                         .slot = slot,
                         .blob = blob,
                         .epoch = c->ring->slots[slot].epoch,
                         .purpose = purpose,
                         .send = number };

    send(w, &m);
}

static bool owns(const struct coordinator *c, int keeper, uint32_t slot)
{
    uint8_t number = number_of(c->ring, keeper);

    return number < RG_NODES_MAX && (rg_slot_everyone(&c->ring->slots[slot]) & RG_NODE(number));
}

static void disk(struct world *w, struct coordinator *c, const struct rg_handoff_effect *effect,
                 int blob)
{
    bool any = false;

    for (int k = 0; k < KEEPERS; k++)
        any |= c->refs[k][blob];
    switch (effect->kind) {
    case RG_HANDOFF_STORE:
        if (c->stored[blob])
            fail(w, "hand-off: payload %d is stored twice", blob);
        c->stored[blob] = true;
        break;
    case RG_HANDOFF_REF:
        if (!c->stored[blob])
            fail(w, "hand-off: a reference to payload %d, which is not stored", blob);
        c->refs[effect->node][blob] = true;
        c->ref_ms[effect->node][blob] = w->now;
        break;
    case RG_HANDOFF_UNREF:
        c->refs[effect->node][blob] = false;
        break;
    case RG_HANDOFF_FREE:
        if (any)
            fail(w, "hand-off: payload %d goes before its last reference", blob);
        c->stored[blob] = false;
        break;
    case RG_HANDOFF_SEND:
    case RG_HANDOFF_MARK:
        break;
    }
}

static void perform(struct world *w, int at, const struct rg_handoff_effect *effect)
{
    struct coordinator *c = &w->coordinators[at];
    int blob = blob_of(effect->name), k = effect->node;

    disk(w, c, effect, blob);
    if (effect->kind == RG_HANDOFF_MARK) {
        w->figures.marks++;
        rg_repair_mark(c->repair, effect->node, effect->slot, effect->name, w->now);
    }
    if (effect->kind == RG_HANDOFF_SEND) {
        if (c->sending[k] >= 0)
            fail(w, "hand-off: two replays to one node");
        c->sending[k] = blob;
        c->sending_ms[k] = w->now;
        c->send[k] = effect->send;
        put(w, at, k, blob, FOR_HANDOFF, effect->send);
    }
}

qf_rc hand(struct world *w, int at, const struct rg_handoff_event *event)
{
    struct coordinator *c = &w->coordinators[at];
    struct rg_handoff_effects effects;
    struct rg_handoff_effect copy[256];
    qf_rc rc = rg_handoff_step(c->handoff, event, &effects);
    size_t count = QF_MIN(effects.count, QF_COUNT_OF(copy));

    if (effects.count > QF_COUNT_OF(copy))
        fail(w, "hand-off: more effects than the simulation takes");
    if (count)
        memcpy(copy, effects.items, count * sizeof(copy[0]));
    for (size_t i = 0; i < count; i++)
        perform(w, at, &copy[i]);
    return rc;
}

/* After a crash the disk is all there is. */
void hand_restart(struct world *w, int at)
{
    struct coordinator *c = &w->coordinators[at];
    bool refs[KEEPERS][BLOBS];

    c->handoff = rg_handoff_free(c->handoff);
    c->handoff = rg_handoff_new(&(struct rg_handoff_options){
        .node_bytes = 100,
        .store_bytes = 300,
        .quantum = 3,
        .rest_ms = 50,
        .life_ms = 15000,
        .backoff_ms = 50,
        .backoff_max_ms = 800,
        .turns = 2,
        .policy = w->rules.sim & SIM_UNSAFE_BACKPRESSURE ? RG_BACKPRESSURE : RG_DROP_OLDEST });
    memcpy(refs, c->refs, sizeof(refs));
    memset(c->refs, 0, sizeof(c->refs));
    memset(c->stored, 0, sizeof(c->stored));
    for (int k = 0; k < KEEPERS; k++) {
        c->sending[k] = -1;
        for (int b = 0; b < w->blob_count; b++) {
            int64_t since = c->ref_ms[k][b];
            struct rg_handoff_event event = { .kind = RG_HANDOFF_ADD,
                                              .node = (uint8_t)k,
                                              .name = qf_str_from(w->blobs[b].name),
                                              .slot = w->blobs[b].slot,
                                              .bytes = 10,
                                              .now_ms = w->now,
                                              .time_ms = since };

            if (!refs[k][b])
                continue;
            (void)hand(w, at, &event);
            c->ref_ms[k][b] = since;
        }
    }
}

static void sent(struct world *w, int at, int k, int blob, uint64_t number, bool ok)
{
    struct rg_handoff_event event = { .kind = RG_HANDOFF_SENT,
                                      .node = (uint8_t)k,
                                      .ok = ok,
                                      .name = qf_str_from(w->blobs[blob].name),
                                      .now_ms = w->now,
                                      .send = number };

    if (number && w->coordinators[at].send[k] == number)
        w->coordinators[at].sending[k] = -1;
    w->figures.delivered += ok;
    (void)hand(w, at, &event);
}

/* References that nobody needs: of blobs that were removed, of nodes that own them no more. */
static void sweep(struct world *w, int at)
{
    struct coordinator *c = &w->coordinators[at];

    for (int b = 0; b < w->blob_count; b++) {
        struct rg_handoff_event event = { .kind = RG_HANDOFF_UNNAMED,
                                          .now_ms = w->now,
                                          .name = qf_str_from(w->blobs[b].name) };

        if (c->stored[b] && !c->isolated && (w->blobs[b].removed || w->blobs[b].dead))
            (void)hand(w, at, &event);
        for (int k = 0; k < KEEPERS; k++)
            if (c->refs[k][b] && !owns(c, k, w->blobs[b].slot))
                sent(w, at, k, b, 0, true);
    }
}

void hand_tick(struct world *w, int at)
{
    struct coordinator *c = &w->coordinators[at];

    for (int k = 0; k < KEEPERS; k++) {
        struct rg_handoff_event event = { .kind = RG_HANDOFF_STATUS,
                                          .node = (uint8_t)k,
                                          .up = reaches(w, COORDINATOR + at, k),
                                          .now_ms = w->now };

        if (!event.up)
            c->sending[k] = -1; /* its connection is gone */
        (void)hand(w, at, &event);
        if (c->sending[k] >= 0 && w->now - c->sending_ms[k] > 1500)
            sent(w, at, k, c->sending[k], c->send[k], false); /* not heard of */
    }
    sweep(w, at);
    (void)hand(w, at, &(struct rg_handoff_event){ .kind = RG_HANDOFF_TICK, .now_ms = w->now });
}

/* --- repair --- */

/* Compare what some owner holds with what is named. */
static void compare(struct world *w, int at)
{
    struct coordinator *c = &w->coordinators[at];
    struct message m = { .kind = TO_COMPARE,
                         .from = COORDINATOR + at,
                         .to = (int)between(w, 0, KEEPERS - 1),
                         .slot = (uint32_t)between(w, 0, SLOTS - 1) };

    if (c->isolated || !owns(c, m.to, m.slot))
        return;
    m.set = named_in(w, (int)m.slot);
    send(w, &m);
}

void repair_tick(struct world *w, int at)
{
    struct coordinator *c = &w->coordinators[at];
    const struct rg_mark *mark;

    if (chance(w, 0.3))
        compare(w, at);
    for (int i = 0; i < 8 && (mark = rg_repair_next(c->repair, w->now)); i++) {
        struct rg_mark m = *mark;
        int blob = m.name[0] ? blob_of(qf_str_from(m.name)) : -1;
        bool needed =
            blob >= 0 && !w->blobs[blob].removed && !w->blobs[blob].dead && owns(c, m.node, m.slot);

        /* Whoever holds it sends it; the answer is heard of by the next comparison, if it is lost. */
        if (needed && reaches(w, COORDINATOR + at, m.node)) {
            for (int k = 0; k < KEEPERS; k++)
                if (w->keepers[k].holds[blob] && reaches(w, COORDINATOR + at, k)) {
                    put(w, at, m.node, blob, FOR_REPAIR, 0);
                    w->figures.repaired++;
                    break;
                }
        }
        rg_repair_end(c->repair, m.node, m.slot, qf_str_from(m.name), !needed, w->now);
    }
}

void hand_hear(struct world *w, int at, const struct message *m)
{
    struct coordinator *c = &w->coordinators[at];
    struct qf_str name = qf_str_from(w->blobs[m->blob].name);
    bool ok = m->answer == RG_ANSWER_HAS;

    if (m->kind == COMPARED) {
        for (int b = 0; b < w->blob_count; b++)
            if (in_set(&m->set, b))
                rg_repair_mark(c->repair, (uint8_t)m->from, m->slot, qf_str_from(w->blobs[b].name),
                               w->now);
        return;
    }
    if (m->answer == RG_ANSWER_OLD)
        follow(w, c, w->log.count);
    if (m->purpose == FOR_HANDOFF)
        sent(w, at, m->from, m->blob, m->send, ok);
    else
        rg_repair_end(c->repair, (uint8_t)m->from, m->slot, name, ok, w->now);
}
