/* chaos.c - what goes wrong, and an operator who goes on working meanwhile. */
#include <stdio.h>
#include <string.h>

#include "tests/sim_ring/world.h"

const struct faults faults[] = {
    { .name = "plain",
      .deaf_draws = 1,
      .deaf = 0.3,
      .deaf_keeper = 0.5,
      .deaf_ms = 2000,
      .late = 0.05,
      .later_ms = 4 * LATE_MS,
      .wipes = 1,
      .operate_ms = 1500,
      .seals = 0.5 },
    { .name = "deaf",
      .deaf_draws = 3,
      .deaf = 0.5,
      .deaf_keeper = 1,
      .deaf_ms = 4000,
      .stale = 0.6,
      .late = 0.05,
      .later_ms = 4 * LATE_MS,
      .wipes = 0,
      .operate_ms = 1000,
      .seals = 0.1,
      .leader_idles = true },
    { .name = "untold",
      .deaf_draws = 2,
      .deaf = 0.4,
      .deaf_keeper = 1,
      .deaf_ms = 5000,
      .deaf_to_leader = true,
      .untold = true,
      .stale = 0.8,
      .late = 0.05,
      .later_ms = 4 * LATE_MS,
      .wipes = 2,
      .operate_ms = 1500,
      .seals = 0.02,
      .leader_idles = true },
    { .name = "wiped",
      .deaf_draws = 1,
      .deaf = 0.3,
      .deaf_keeper = 0.5,
      .deaf_ms = 1000,
      .late = 0.05,
      .late_held = 0.5,
      .later_ms = 4 * LATE_MS,
      .wipes = 4,
      .in_move = 0.7,
      .operate_ms = 4000,
      .seals = 0.7 },
    { .name = "late",
      .deaf_draws = 1,
      .deaf = 0.3,
      .deaf_keeper = 0.5,
      .deaf_ms = 2000,
      .late = 0.05,
      .late_clean = 0.6,
      .later_ms = 12 * LATE_MS,
      .wipes = 1,
      .operate_ms = 600,
      .seals = 0.5 },
};
const size_t fault_count = QF_COUNT_OF(faults);

/* --- keepers --- */

static bool stays_minority(const struct world *w, const struct rg_owners *owners, int keeper,
                           int blob)
{
    unsigned lost = 0;

    for (unsigned i = 0; i < owners->count; i++) {
        int k = keeper_of(w->ring, owners->nodes[i]);

        lost += k >= 0 && (w->keepers[k].lost[blob] || k == keeper);
    }
    return lost <= owners->count - rg_quorum(owners->count);
}

/* Would the loss of this disk cost any blob a majority of its owners' disks? */
static bool may_wipe(const struct world *w, int keeper)
{
    for (int b = 0; b < w->blob_count; b++) {
        const struct rg_slot *slot = &w->ring->slots[w->blobs[b].slot];

        if (!w->keepers[keeper].holds[b] || w->blobs[b].removed || w->blobs[b].dead)
            continue;
        if (!stays_minority(w, &slot->owners, keeper, b) ||
            (slot->change && !stays_minority(w, &slot->to, keeper, b)))
            return false;
    }
    return true;
}

static void wipe(struct world *w, int at)
{
    struct keeper *k = &w->keepers[at];

    if (!may_wipe(w, at))
        return;
    say(w, "%s loses its disk", k->name);
    w->figures.wipes++;
    for (int b = 0; b < w->blob_count; b++) {
        k->lost[b] |= k->holds[b];
        k->holds[b] = false;
    }
    memset(k->documents, 0, sizeof(k->documents));
    k->keep = (struct rg_keep){ .slots = SLOTS, .unsafe = w->rules.keep };
    k->incarnation = ++w->incarnations;
    keeper_start(w, at);
    /* What only a quorum had may be seen by a quorum no more: documents are promised from here on. */
    memset(w->acknowledged, 0, sizeof(w->acknowledged));
    for (int c = 0; c < COORDINATORS; c++)
        for (int i = 0; i < OPS; i++)
            w->coordinators[c].ops[i].tainted = true;
}

static int down(const struct world *w)
{
    int count = 0;

    for (int k = 0; k < KEEPERS; k++)
        count += !w->keepers[k].alive || w->keepers[k].isolated;
    return count;
}

static void crash_or_start(struct world *w, int at)
{
    struct keeper *k = &w->keepers[at];

    if (!k->alive) {
        say(w, "%s starts", k->name);
        keeper_start(w, at);
    } else if (down(w) < 3) {
        say(w, "%s dies", k->name);
        k->alive = false;
        k->life++;
        w->figures.crashes++;
    }
}

/* Whom a move is for, if the world is after these. */
static int whom(struct world *w)
{
    int at = (int)between(w, 0, KEEPERS - 1);
    const struct coordinator *leader = &w->coordinators[w->leader];

    if (w->faults->in_move <= 0 || !chance(w, w->faults->in_move))
        return at;
    for (size_t i = 0, from = (size_t)between(w, 0, 7); i < RG_JOBS_MAX; i++) {
        const struct rg_job *job = &leader->driver.jobs[(from + i) % RG_JOBS_MAX];

        if (job->stage != RG_JOB_FREE && keeper_of(leader->ring, job->node) >= 0)
            return keeper_of(leader->ring, job->node);
    }
    return at;
}

static void trouble_keeper(struct world *w)
{
    int at = whom(w);
    struct keeper *k = &w->keepers[at];
    int64_t what = between(w, 0, 9);

    if (what >= 10 - w->faults->wipes) {
        wipe(w, at);
    } else if (what < 4) {
        crash_or_start(w, at);
    } else if (what < 7) {
        if (k->isolated || down(w) < 3) {
            k->isolated = !k->isolated;
            w->figures.isolations += k->isolated;
            say(w, "%s is %s", k->name, k->isolated ? "isolated" : "back");
        }
    } else {
        k->full = !k->full && chance(w, 0.5);
        w->figures.fills += k->full;
    }
}

/* --- coordinators --- */

/* Somebody who can be reached leads; who led before may not know. */
static void elect(struct world *w)
{
    int next = (int)between(w, 0, COORDINATORS - 1);
    struct coordinator *c = &w->coordinators[next];

    if (next == w->leader || !c->alive || c->isolated)
        return;
    say(w, "c%d leads", next);
    w->figures.failovers++;
    w->leader = next;
    c->leads = true;
    follow(w, c, w->log.count);
    drive(w, next, &(struct rg_drive_event){ .kind = RG_DRIVE_LEAD, .now_ms = w->now });
}

static void trouble_coordinator(struct world *w)
{
    int at = (int)between(w, 0, COORDINATORS - 1);
    struct coordinator *c = &w->coordinators[at];

    if (!c->alive) {
        coordinator_start(w, at);
    } else if (chance(w, 0.5)) {
        say(w, "c%d dies", at);
        c->alive = false;
        c->life++;
        c->leads = false;
        w->figures.crashes++;
    } else {
        c->isolated = !c->isolated;
        w->figures.isolations += c->isolated;
    }
}

static void learn_who_leads(struct world *w)
{
    for (int i = 0; i < COORDINATORS; i++)
        if (i != w->leader && !w->coordinators[i].isolated && chance(w, 0.3))
            w->coordinators[i].leads = false;
}

/* Keepers and partitions do not hear of epochs, coordinators not of the ring. */
static void deafen(struct world *w)
{
    for (int i = 0; i < w->faults->deaf_draws; i++) {
        int deaf = chance(w, w->faults->deaf_keeper)
                       ? (int)between(w, 0, KEEPERS - 1)
                       : PARTITION + (int)between(w, 0, PARTITIONS - 1);

        if (chance(w, w->faults->deaf))
            w->deaf_ms[deaf] = w->now + between(w, 0, w->faults->deaf_ms);
    }
    if (w->faults->stale > 0 && chance(w, w->faults->stale))
        w->deaf_ms[COORDINATOR + between(w, 0, COORDINATORS - 1)] =
            w->now + between(w, 0, w->faults->deaf_ms);
}

/* --- a disk that knows of nothing --- */

enum { LONG_MS = 3000 };

static uint64_t heard(const struct world *w, uint8_t number, uint32_t slot)
{
    int k = keeper_of(w->ring, number);

    return k < 0 ? UINT64_MAX : w->keepers[k].keep.epochs[slot];
}

/* An owner before and after that has not heard of the slot's epoch goes on like that, and so do coordinators. */
static void hold_back(struct world *w, uint32_t at)
{
    const struct rg_slot *slot = &w->ring->slots[at];
    rg_nodes both = rg_owners_set(&slot->owners) & rg_owners_set(&slot->to);

    for (uint8_t n = 0; n < RG_NODES_MAX; n++)
        if ((both & RG_NODE(n)) && heard(w, n, at) < slot->epoch) {
            w->deaf_ms[keeper_of(w->ring, n)] = w->now + LONG_MS;
            break;
        }
    for (int c = 0; c < COORDINATORS; c++)
        if (c != w->leader && w->coordinators[c].ring->slots[at].epoch < slot->epoch)
            w->deaf_ms[COORDINATOR + c] = w->now + LONG_MS;
}

/* Who is in @gone loses its disk, and is not told anything for a while. */
static void rob(struct world *w, rg_nodes gone)
{
    for (uint8_t n = 0; n < RG_NODES_MAX; n++) {
        int k = gone & RG_NODE(n) ? keeper_of(w->ring, n) : -1;

        if (k < 0 || !w->keepers[k].keep.told)
            continue;
        wipe(w, k);
        w->deaf_ms[k] = w->now + LONG_MS;
    }
}

/* The slot has left an owner that a coordinator still counts, beside one that has not heard of it either. */
static void forget(struct world *w, uint32_t at)
{
    const struct rg_slot *slot = &w->ring->slots[at];

    for (int c = 0; c < COORDINATORS; c++) {
        const struct rg_slot *before = &w->coordinators[c].ring->slots[at];
        rg_nodes old = rg_owners_set(&before->owners), deaf = 0;

        if (!w->coordinators[c].alive || before->change || before->epoch >= slot->epoch)
            continue;
        for (unsigned i = 0; i < slot->owners.count; i++)
            if (heard(w, slot->owners.nodes[i], at) <= before->epoch)
                deaf |= RG_NODE(slot->owners.nodes[i]);
        if (!(deaf & old) || !(old & ~rg_owners_set(&slot->owners)))
            continue;
        rob(w, old & ~rg_owners_set(&slot->owners));
        w->deaf_ms[COORDINATOR + c] = w->now + LONG_MS;
    }
}

static void conspire(struct world *w)
{
    for (uint32_t at = 0; at < SLOTS; at++)
        if (w->ring->slots[at].change)
            hold_back(w, at);
        else
            forget(w, at);
}

void chaos_step(struct world *w)
{
    const struct coordinator *leader = &w->coordinators[w->leader];

    if (!leader->alive || (leader->isolated && chance(w, 0.5)) || chance(w, 0.03))
        elect(w);
    learn_who_leads(w);
    if (!w->quiet) {
        deafen(w);
        if (w->faults->untold)
            conspire(w);
        if (chance(w, 0.7))
            trouble_keeper(w);
        else if (chance(w, 0.5))
            trouble_coordinator(w);
    }
    alarm_at(w, META, CHAOS, between(w, 30, 400), 0);
}

void calm(struct world *w)
{
    w->quiet = true;
    memset(w->deaf_ms, 0, sizeof(w->deaf_ms));
    for (int k = 0; k < KEEPERS; k++) {
        w->keepers[k].isolated = w->keepers[k].full = false;
        if (!w->keepers[k].alive)
            keeper_start(w, k);
    }
    for (int c = 0; c < COORDINATORS; c++) {
        w->coordinators[c].isolated = false;
        if (!w->coordinators[c].alive)
            coordinator_start(w, c);
        if (c == w->leader && !w->coordinators[c].leads) {
            w->coordinators[c].leads = true;
            drive(w, c, &(struct rg_drive_event){ .kind = RG_DRIVE_LEAD, .now_ms = w->now });
        }
    }
}

/* --- the operator --- */

static uint64_t some_change(struct world *w)
{
    size_t at = (size_t)between(w, 0, RG_CHANGES_MAX - 1);

    for (size_t i = 0; i < RG_CHANGES_MAX; i++) {
        const struct rg_change *change = &w->ring->changes[(at + i) % RG_CHANGES_MAX];

        if (rg_change_runs(change))
            return change->id;
    }
    return 0;
}

void operate(struct world *w)
{
    int k = (int)between(w, 0, KEEPERS - 1);
    struct rg_entry entry = { .time_ms = w->now,
                              .node = number_of(w->ring, k),
                              .incarnation = w->keepers[k].incarnation,
                              .name = qf_str_from(w->keepers[k].name),
                              .reason = QF_STR("asked for") };
    int64_t what = between(w, 0, 9);

    if (w->quiet)
        return;
    if (what < 7) {
        bool is_in = entry.node < RG_NODES_MAX;

        entry.kind = is_in ? RG_REMOVE : RG_ADD;
        if (is_in || w->keepers[k].alive)
            meta_append(w, &entry);
    } else if (what < 8) {
        entry.kind = RG_FACTOR;
        entry.copies = (uint8_t)between(w, 1, 5);
        if (entry.copies != 4 && (entry.copies == 3 || chance(w, 0.4)))
            meta_append(w, &entry);
    } else if (some_change(w) && chance(w, 0.3)) {
        entry.kind = RG_CANCEL;
        entry.change = some_change(w);
        w->figures.rolled_back++;
        meta_append(w, &entry);
    }
    alarm_at(w, META, OPERATE, between(w, 50, w->faults->operate_ms), 0);
}
