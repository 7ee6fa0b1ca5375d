/* coordinator.c - puts, and what they are for: sealing, compacting, removing. */
#include <stdio.h>
#include <string.h>

#include "tests/sim_ring/world.h"

void follow(struct world *w, struct coordinator *c, uint64_t up_to)
{
    while (c->follows < up_to && c->follows < w->log.count) {
        (void)rg_ring_apply(c->ring, c->follows + 1, &w->log.items[c->follows]);
        c->follows++;
    }
}

void op_put(struct world *w, int at, struct op *op)
{
    struct coordinator *c = &w->coordinators[at];
    uint32_t slot = op->kind == OP_SEAL ? w->blobs[op->blob].slot : w->document_slot[op->document];
    rg_nodes everyone;

    rg_tally_begin(&op->tally, c->ring, slot, RG_LEVEL_QUORUM);
    everyone = keepers_of(c->ring, rg_slot_everyone(&op->tally.slot));
    op->stage = PUTTING;
    op->generation = ++c->generation;
    op->put_ms = w->now;
    op->until_ms = w->now + 300;
    for (int k = 0; k < KEEPERS; k++) {
        struct message m = { .kind = op->kind == OP_SEAL    ? TO_PUT
                                     : op->kind == OP_WRITE ? TO_WRITE
                                                            : TO_READ,
                             .from = COORDINATOR + at,
                             .to = k,
                             .slot = slot,
                             .op = (uint32_t)(op - c->ops),
                             .generation = op->generation,
                             .blob = op->blob,
                             .document = op->document,
                             .epoch = op->tally.slot.epoch,
                             .purpose = FOR_OP };

        if (!(everyone & RG_NODE(k)))
            continue;
        if (op->kind == OP_WRITE)
            m.value = op->seen;
        if (op->kind == OP_SEAL) {
            struct rg_handoff_event live = { .kind = RG_HANDOFF_LIVE,
                                             .node = (uint8_t)k,
                                             .name = qf_str_from(w->blobs[op->blob].name),
                                             .now_ms = w->now };

            (void)hand(
                w, at,
                &live); /* a replay of it may be under way: a put renews, so it goes anyway */
        }
        send(w, &m);
    }
}

void op_start(struct world *w, int at, struct op *op, enum op_kind kind, int subject)
{
    *op = (struct op){ .kind = kind, .blob = subject, .document = subject };
    op_put(w, at, op);
}

/* Hand over what is missing. False: a cap refuses it. */
static bool hand_over(struct world *w, int at, struct op *op)
{
    struct coordinator *c = &w->coordinators[at];
    rg_nodes missing = keepers_of(c->ring, rg_tally_missing(&op->tally));

    for (int k = 0; k < KEEPERS; k++) {
        struct rg_handoff_event event = { .kind = RG_HANDOFF_LIVE_ENDED,
                                          .node = (uint8_t)k,
                                          .name = qf_str_from(w->blobs[op->blob].name),
                                          .slot = w->blobs[op->blob].slot,
                                          .bytes = 10,
                                          .now_ms = w->now,
                                          .time_ms = w->now };
        uint8_t number = number_of(c->ring, k);

        event.ok = !(missing & RG_NODE(k));
        (void)hand(w, at, &event);
        if (event.ok)
            continue;
        event.kind = RG_HANDOFF_ADD;
        w->figures.handed += !rg_handoff_has(c->handoff, event.node, event.name);
        if (hand(w, at, &event) != QF_OK)
            return false;
        if (number < RG_NODES_MAX)
            rg_tally_hear(&op->tally, number, RG_ANSWER_HANDED);
    }
    return true;
}

static void propose(struct world *w, int at, struct op *op)
{
    struct coordinator *c = &w->coordinators[at];
    const struct blob *blob = &w->blobs[op->blob];
    struct message m = { .kind = TO_NOTE,
                         .from = COORDINATOR + at,
                         .to = PARTITION + (int)blob->partition,
                         .partition = blob->partition,
                         .op = (uint32_t)(op - c->ops),
                         .generation = op->generation,
                         .blob = op->blob };

    if (rg_put_is_old(op->put_ms, w->now, BLOB_GRACE_MS) &&
        !(w->rules.sim & SIM_UNSAFE_NO_RECHECK)) {
        op_put(w, at, op);
        return;
    }
    op->stage = NAMING;
    op->until_ms = w->now + 400;
    m.note.kind = blob->inputs[0] >= 0 ? RG_NOTE_REPLACED : RG_NOTE_SEALED;
    m.note.epoch = op->tally.epoch;
    send(w, &m);
}

/* The level is reached: hand over the rest, and wait a little, or long. */
static void enough(struct world *w, int at, struct op *op)
{
    if (op->kind != OP_SEAL) {
        documents_enough(w, at, op);
        return;
    }
    if (!hand_over(w, at, op)) {
        fail(w, "a put with its quorum met was refused: one node that is away stops writers");
        return;
    }
    op->stage = LINGERING;
    op->until_ms = w->now + (chance(w, 0.15) ? between(w, 0, 6000) : 0);
}

static void on_answer(struct world *w, int at, const struct message *m)
{
    struct coordinator *c = &w->coordinators[at];
    struct op *op = &c->ops[m->op];
    uint8_t number = number_of(c->ring, m->from);

    if (op->kind == OP_NONE || op->generation != m->generation || op->stage != PUTTING ||
        number == RG_NODES_MAX)
        return;
    if (m->kind == READ && m->answer == RG_ANSWER_HAS)
        (void)rg_document_join(&op->seen, &m->value);
    rg_tally_hear(&op->tally, number, m->answer);
    switch (rg_tally_state(&op->tally, c->ring)) {
    case RG_TALLY_WAITS:
        break;
    case RG_TALLY_ENOUGH:
        /* A segment's put waits for those that are slow, up to its time. */
        if (op->kind != OP_SEAL || !rg_tally_missing(&op->tally))
            enough(w, at, op);
        break;
    case RG_TALLY_FAILED:
        op->until_ms = QF_MIN(op->until_ms, w->now + 50);
        break;
    case RG_TALLY_OLD:
        if (!w->faults->untold || w->now >= w->deaf_ms[COORDINATOR + at])
            follow(w, c, w->log.count);
        op->until_ms = w->now;
        break;
    }
}

static void on_noted(struct world *w, int at, const struct message *m)
{
    struct coordinator *c = &w->coordinators[at];
    struct op *op = &c->ops[m->op % OPS];

    if (m->op == OPS) { /* of an epoch */
        drive(w, at,
              &(struct rg_drive_event){ .kind = RG_DRIVE_ADOPTED,
                                        .now_ms = w->now,
                                        .partition = m->partition,
                                        .epoch = m->epoch });
        return;
    }
    if (m->op > OPS || op->kind != OP_SEAL || op->stage != NAMING ||
        op->generation != m->generation)
        return;
    if (m->noted == RG_NOTED_OLD_EPOCH) {
        follow(w, c, w->log.count);
        op_put(w, at, op);
        return;
    }
    if (m->noted == RG_NOTED_GONE && !w->blobs[op->blob].named)
        w->blobs[op->blob].dead = true;
    op->kind = OP_NONE;
}

/* --- what there is to do --- */

static int new_blob(struct world *w)
{
    struct blob *blob = &w->blobs[w->blob_count];

    if (w->blob_count == BLOBS)
        return -1;
    (void)snprintf(blob->name, sizeof(blob->name), "b%d", w->blob_count);
    blob->used = true;
    blob->slot = (uint32_t)between(w, 0, SLOTS - 1);
    blob->partition = (uint32_t)between(w, 0, PARTITIONS - 1);
    blob->inputs[0] = blob->inputs[1] = -1;
    return w->blob_count++;
}

static int some_named(struct world *w, int like)
{
    for (int tries = 0; tries < 12 && w->blob_count; tries++) {
        int b = (int)between(w, 0, w->blob_count - 1);

        if (w->blobs[b].named && b != like &&
            (like < 0 || (w->blobs[b].slot == w->blobs[like].slot &&
                          w->blobs[b].partition == w->blobs[like].partition)))
            return b;
    }
    return -1;
}

/* A new segment, one that another coordinator has not named yet, or two that become one. */
static int something_to_seal(struct world *w)
{
    int a, b, made;

    if (w->quiet || chance(w, 0.4)) {
        for (int i = 0; i < w->blob_count; i++)
            if (!w->blobs[i].named && !w->blobs[i].removed && !w->blobs[i].dead &&
                (w->quiet || chance(w, 0.3)))
                return i;
    }
    if (w->quiet)
        return -1;
    if (chance(w, 0.2) && (a = some_named(w, -1)) >= 0 && (b = some_named(w, a)) >= 0 &&
        (made = new_blob(w)) >= 0) {
        w->blobs[made].slot = w->blobs[a].slot;
        w->blobs[made].partition = w->blobs[a].partition;
        w->blobs[made].inputs[0] = a;
        w->blobs[made].inputs[1] = b;
        return made;
    }
    return new_blob(w);
}

static void remove_some(struct world *w, int at)
{
    int b = some_named(w, -1);
    struct message m = { .kind = TO_NOTE,
                         .from = COORDINATOR + at,
                         .op = OPS + 1,
                         .blob = b,
                         .note = { .kind = RG_NOTE_REMOVED } };

    if (b < 0)
        return;
    m.partition = w->blobs[b].partition;
    m.to = PARTITION + (int)m.partition;
    send(w, &m);
}

static void begin_something(struct world *w, int at, struct op *op)
{
    int subject;

    if (chance(w, w->faults->seals)) {
        subject = something_to_seal(w);
        if (subject >= 0)
            op_start(w, at, op, OP_SEAL, subject);
        return;
    }
    if (!w->quiet && chance(w, 0.3))
        remove_some(w, at);
    op_start(w, at, op, OP_READ, (int)between(w, 0, DOCUMENTS - 1));
    op->expected = w->acknowledged[op->document];
    op->repair = w->quiet || chance(w, 0.2);
}

static void op_tick(struct world *w, int at, struct op *op)
{
    struct coordinator *c = &w->coordinators[at];

    if (op->kind == OP_NONE) {
        if (w->faults->leader_idles && c->leads && !w->quiet)
            return;
        if (chance(w, w->quiet ? 0.5 : 0.25))
            begin_something(w, at, op);
        return;
    }
    if (w->now < op->until_ms)
        return;
    if (op->stage == PUTTING && op->kind == OP_SEAL &&
        rg_tally_state(&op->tally, c->ring) == RG_TALLY_ENOUGH) {
        enough(w, at, op);
    } else if (op->stage == LINGERING || op->stage == NAMING) {
        propose(w, at, op);
    } else if (op->kind == OP_SEAL) {
        if (hand_over(w, at, op) && (w->rules.ring & RG_UNSAFE_HANDED_COUNTS) &&
            rg_tally_state(&op->tally, c->ring) == RG_TALLY_ENOUGH)
            enough(w, at, op);
        else
            op_put(w, at, op);
    } else {
        op->kind = OP_NONE; /* a document's: its client gives up */
    }
}

static void tick(struct world *w, int at)
{
    struct coordinator *c = &w->coordinators[at];

    if (!c->isolated && w->now >= w->deaf_ms[COORDINATOR + at] && (w->quiet || chance(w, 0.3)))
        follow(
            w, c,
            w->log.count -
                (uint64_t)(w->quiet ? 0 : between(w, 0, (int64_t)QF_MIN(w->log.count, (size_t)3))));
    hand_tick(w, at);
    repair_tick(w, at);
    for (int k = 0; k < KEEPERS; k++) {
        uint8_t number = number_of(c->ring, k);

        if (number < RG_NODES_MAX && c->leads)
            drive(w, at,
                  &(struct rg_drive_event){ .kind = RG_DRIVE_STATUS,
                                            .now_ms = w->now,
                                            .node = number,
                                            .up = reaches(w, COORDINATOR + at, k),
                                            .incarnation = w->keepers[k].incarnation });
    }
    if (c->leads && !c->isolated && at == w->leader)
        follow(w, c, w->log.count); /* it applies what it appends */
    if (c->leads)
        drive(w, at, &(struct rg_drive_event){ .kind = RG_DRIVE_TICK, .now_ms = w->now });
    for (int i = 0; i < OPS; i++)
        op_tick(w, at, &c->ops[i]);
    alarm_at(w, COORDINATOR + at, TICK, between(w, 30, 80), 0);
}

void coordinator_start(struct world *w, int at)
{
    struct coordinator *c = &w->coordinators[at];
    struct rg_drive_options options = { .partitions = PARTITIONS,
                                        .retry_ms = 150,
                                        .timeout_ms = 2500,
                                        .dead_ms = chance(w, 0.5) ? 6000 : 0,
                                        .unsafe = w->rules.drive };

    c->alive = true;
    c->leads = false;
    c->life++;
    memset(c->ops, 0, sizeof(c->ops));
    c->ring = rg_ring_free(c->ring);
    c->ring = rg_ring_new(SLOTS);
    c->ring->unsafe = w->rules.ring;
    c->follows = 0;
    follow(w, c, w->log.count);
    rg_driver_init(&c->driver, &options);
    c->repair = rg_repair_free(c->repair);
    c->repair = rg_repair_new(
        &(struct rg_repair_options){ .marks_max = 64, .backoff_ms = 100, .backoff_max_ms = 1000 });
    hand_restart(w, at);
    alarm_at(w, COORDINATOR + at, TICK, between(w, 1, 80), 0);
}

void coordinator_hear(struct world *w, int at, const struct message *m)
{
    if (m->kind == TICK)
        tick(w, at);
    else if (m->kind == PUT_DONE && m->purpose != FOR_OP)
        hand_hear(w, at, m);
    else if (m->kind == COMPARED)
        hand_hear(w, at, m);
    else if (m->kind == PUT_DONE || m->kind == WRITTEN || m->kind == READ)
        on_answer(w, at, m);
    else if (m->kind == NOTED)
        on_noted(w, at, m);
    else
        drive_hear(w, at, m);
}
