/* main.c - promfabric-sim-ring: segments on our own nodes under faults, by seed.
 *
 * usage: promfabric-sim-ring [--seed N] [--seeds COUNT] [--events M] [--trace] [--without RULE]... [--world NAME]
 *        [--expect-failure]
 *
 * After M events everything is repaired and has time to come to rest. --without takes a rule out; with --expect-failure
 * the program succeeds at the first seed that finds out. Exit code 0 if every seed went well. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim_ring/world.h"

enum { QUIET_MS = 60000 };

static const struct {
    const char *name;
    struct rules off;
} rules[] = {
    { "owners-count-whether-up-or-not", { .ring = RG_UNSAFE_UP_COUNT } },
    { "old-and-new-majorities", { .ring = RG_UNSAFE_NEW_ALONE } },
    { "not-either-majority", { .ring = RG_UNSAFE_EITHER } },
    { "one-move-per-slot", { .ring = RG_UNSAFE_MOVE_OVER } },
    { "held-behind-the-epoch",
      { .ring = RG_UNSAFE_HELD_ANYWHERE, .drive = RG_DRIVE_UNSAFE_NOT_ADOPTED } },
    { "held-by-a-majority", { .ring = RG_UNSAFE_NEWCOMER_ALONE } },
    { "held-by-this-disk", { .ring = RG_UNSAFE_HELD_BY_ANY_DISK } },
    { "cleanup-if-held", { .ring = RG_UNSAFE_CLEAN_UNHELD } },
    { "cleanup-of-its-epoch", { .keep = RG_KEEP_UNSAFE_OLD_CLEAN } },
    { "hand-off-never-counts", { .ring = RG_UNSAFE_HANDED_COUNTS } },
    { "documents-after-acks", { .drive = RG_DRIVE_UNSAFE_NO_ACK } },
    { "documents-of-a-majority", { .drive = RG_DRIVE_UNSAFE_ONE_SOURCE } },
    { "entries-of-their-epoch", { .manifest = RG_MANIFEST_UNSAFE_ANY_EPOCH } },
    { "removed-names-stay-removed", { .manifest = RG_MANIFEST_UNSAFE_FORGETS } },
    { "keepers-refuse-old-epochs", { .keep = RG_KEEP_UNSAFE_OLD_PUTS } },
    { "new-disks-are-told-first", { .keep = RG_KEEP_UNSAFE_NOT_TOLD } },
    { "puts-renew-grace", { .keep = RG_KEEP_UNSAFE_NO_RENEWAL } },
    { "checked-again-before-sealed", { .sim = SIM_UNSAFE_NO_RECHECK } },
    { "manifests-list", { .sim = SIM_UNSAFE_LIST_FOLDERS } },
    { "a-dead-node-stops-no-writer", { .sim = SIM_UNSAFE_BACKPRESSURE } },
};

static bool rule_off(struct rules *all, const char *name)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (strcmp(rules[i].name, name) != 0)
            continue;
        all->ring |= rules[i].off.ring;
        all->drive |= rules[i].off.drive;
        all->manifest |= rules[i].off.manifest;
        all->keep |= rules[i].off.keep;
        all->sim |= rules[i].off.sim;
        return true;
    }
    return false;
}

static void deliver(struct world *w, const struct message *m)
{
    bool alarm = m->from == m->to;

    w->now = m->at;
    if (m->to < KEEPERS) {
        const struct keeper *k = &w->keepers[m->to];

        if (k->alive && (alarm ? m->life == k->life || m->ok : !k->isolated))
            keeper_hear(w, m->to, m);
    } else if (m->to < META) {
        const struct coordinator *c = &w->coordinators[m->to - COORDINATOR];

        if (c->alive && m->life == c->life && (alarm || !c->isolated))
            coordinator_hear(w, m->to - COORDINATOR, m);
    } else if (m->kind == CHAOS) {
        chaos_step(w);
    } else if (m->kind == OPERATE) {
        operate(w);
    } else if (m->to == META) {
        meta_hear(w, m);
    } else {
        partition_hear(w, m);
    }
}

static void step(struct world *w)
{
    struct message *m = next_message(w);

    deliver(w, m);
    free(m);
    w->figures.events++;
    check(w);
}

struct arguments {
    uint64_t seed, seeds, events;
    bool trace, expect_failure;
    const struct faults *faults;
    struct rules off;
};

static bool run(struct world *w, uint64_t seed, const struct arguments *a)
{
    int64_t end;

    world_start(w, seed, a->faults, a->off, a->trace);
    while (w->figures.events < a->events && !w->failure[0])
        step(w);
    calm(w);
    if (w->failure[0])
        return false;
    for (end = w->now + QUIET_MS; w->now < end; w->failure[0] = 0) {
        int64_t next = w->now + QUIET_MS / 20;

        while (w->now < next && !w->failure[0])
            step(w);
        if (w->failure[0])
            return false;
        check_end(w); /* it may need longer */
        if (!w->failure[0])
            return true;
        if (w->now >= end)
            return false;
    }
    return false;
}

static void add(struct figures *sum, const struct figures *one)
{
    const uint64_t *from = &one->events;
    uint64_t *to = &sum->events;

    for (size_t i = 0; i < sizeof(*one) / sizeof(uint64_t); i++)
        to[i] += from[i];
}

static void print(const struct figures *f, uint64_t seeds)
{
    printf("%" PRIu64 " seeds, %" PRIu64 " events; %" PRIu64 " blobs named, %" PRIu64
           " removed, %" PRIu64 " replaced, %" PRIu64 " entries of an old epoch refused\n",
           seeds, f->events, f->sealed, f->removed, f->replaced, f->old_epochs);
    printf("%" PRIu64 " changes asked for, %" PRIu64 " canceled, %" PRIu64
           " rounds of moves, %" PRIu64 " slots cleaned, %" PRIu64 " leaders\n",
           f->changes, f->rolled_back, f->moves, f->cleaned, f->failovers);
    printf("%" PRIu64 " handed off, %" PRIu64 " delivered, %" PRIu64 " marks, %" PRIu64
           " repairs, %" PRIu64 " pieces of garbage; documents: %" PRIu64 " writes, %" PRIu64
           " reads\n",
           f->handed, f->delivered, f->marks, f->repaired, f->garbage, f->writes, f->reads);
    printf("faults: %" PRIu64 " crashes, %" PRIu64 " isolations, %" PRIu64 " full disks, %" PRIu64
           " wiped; %" PRIu64 " messages (%" PRIu64 " lost, %" PRIu64 " doubled)\n",
           f->crashes, f->isolations, f->fills, f->wipes, f->messages, f->lost, f->doubled);
}

static const struct faults *world_of(const char *name)
{
    for (size_t i = 0; i < fault_count; i++)
        if (strcmp(faults[i].name, name) == 0)
            return &faults[i];
    return NULL;
}

static bool parse(int argc, char **argv, struct arguments *a)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--trace") == 0)
            a->trace = true;
        else if (strcmp(argv[i], "--expect-failure") == 0)
            a->expect_failure = true;
        else if (strcmp(argv[i], "--seed") == 0)
            a->seed = strtoull(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--seeds") == 0)
            a->seeds = strtoull(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--events") == 0)
            a->events = strtoull(value, NULL, 10), i++;
        else if (strcmp(argv[i], "--without") == 0 && rule_off(&a->off, value))
            i++;
        else if (strcmp(argv[i], "--world") == 0 && world_of(value))
            a->faults = world_of(value), i++;
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct world world;
    struct arguments a = { .seed = 1, .seeds = 1, .events = 6000, .faults = faults };
    struct figures sum = { 0 };

    if (!parse(argc, argv, &a)) {
        fprintf(stderr,
                "usage: promfabric-sim-ring [--seed N] [--seeds COUNT] [--events M] [--trace]"
                " [--without RULE]... [--world NAME] [--expect-failure]\nrules:");
        for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
            fprintf(stderr, " %s", rules[i].name);
        fprintf(stderr, "\nworlds:");
        for (size_t i = 0; i < fault_count; i++)
            fprintf(stderr, " %s", faults[i].name);
        fprintf(stderr, "\n");
        return 2;
    }
    for (uint64_t i = 0; i < a.seeds; i++) {
        bool well = run(&world, a.seed + i, &a);

        add(&sum, &world.figures);
        if (!well)
            printf("%s seed %" PRIu64 " after %" PRIu64
                   " events: %s\nreplay: promfabric-sim-ring --world %s"
                   " --seed %" PRIu64 " --events %" PRIu64 " --trace\n",
                   a.expect_failure ? "found by" : "FAILED", a.seed + i, world.figures.events,
                   world.failure, a.faults->name, a.seed + i, a.events);
        world_done(&world);
        if (!well)
            return a.expect_failure ? 0 : 1;
    }
    print(&sum, a.seeds);
    return a.expect_failure ? 1 : 0;
}
