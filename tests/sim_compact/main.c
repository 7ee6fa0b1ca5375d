/* main.c - promfabric-sim-compact: ageing under delay, loss and crashes, by seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim_compact/world.h"

static struct world world;
static struct file files[FILES_MAX];

static void start(uint64_t seed, struct rules rules, bool ring, bool trace)
{
    (void)in_ledger_free(world.ledger);
    memset(&world, 0, sizeof(world));
    world.ledger = in_ledger_new();
    world.files = files;
    world.prng.state = seed;
    world.rules = rules;
    world.ring = ring;
    world.trace = trace;
    for (int i = 0; i < IMPORTERS; i++)
        world.importers[i].clock = chance(&world, 0.5) ? 0 : between(&world, -1500, 100);
    world.ingest_clock = chance(&world, 0.5) ? 0 : between(&world, -1000, 50);
    world.removals_left = chance(&world, 0.5) ? 4 : 0;
    world.remover.listing.late = true;
    for (int i = 0; i < COMPACTORS; i++) {
        world.compactors[i].clock = between(&world, -3000, 3000);
        world.compactors[i].listing.late = true;
    }
}

static void step(struct world *w)
{
    int64_t who = between(w, 0, 18);

    w->now++;
    if (who < 2)
        importer_step(w, &w->importers[who]);
    else if (who < 7)
        compactor_step(w, &w->compactors[who & 1]);
    else if (who < 11)
        reader_step(w, &w->readers[who & 1]);
    else if (who < 15)
        ingest_step(w);
    else if (who < 16)
        sweep_step(w);
    else
        remover_step(w, &w->remover);
}

static bool run(uint64_t seed, struct rules rules, bool ring, bool trace)
{
    start(seed, rules, ring, trace);
    for (int i = 0; i < STEPS && !world.failure[0] && world.file_count < FILES_MAX - 64; i++)
        step(&world);
    if (!world.failure[0])
        return true;
    printf("FAILED seed %llu at %s\nreplay: promfabric-sim-compact --seed %llu%s --trace\n",
           (unsigned long long)seed, world.failure, (unsigned long long)seed,
           ring ? " --ring" : "");
    return false;
}

static bool take_out(struct rules *rules, const char *name)
{
    bool *const places[] = { &rules->below, &rules->leases,  &rules->ranges, &rules->words,
                             &rules->grace, &rules->clock,   &rules->beside, &rules->runs,
                             &rules->marks, &rules->turns,   &rules->again,  &rules->back,
                             &rules->late,  &rules->sources, &rules->trade };
    static const char *const names[] = { "below", "leases", "ranges", "words",   "grace",
                                         "clock", "beside", "runs",   "marks",   "turns",
                                         "again", "back",   "late",   "sources", "trade" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0) {
            *places[i] = false;
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    struct rules rules = { true, true, true, true, true, true, true, true,
                           true, true, true, true, true, true, true };
    uint64_t seed = 1, seeds = 1, answers = 0, jobs = 0, deleted = 0, removed = 0;
    bool ring = false, trace = false;

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--trace") == 0) {
            trace = true;
            continue;
        }
        if (strcmp(argv[i], "--ring") == 0) {
            ring = true;
            continue;
        }
        if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--seeds") == 0)
            seeds = strtoull(value, NULL, 10);
        else if (strcmp(argv[i], "--without") != 0 || !take_out(&rules, value)) {
            fprintf(stderr,
                    "usage: promfabric-sim-compact [--seed N] [--seeds N] [--ring] [--trace] "
                    "[--without RULE]\n");
            return 2;
        }
        i++;
    }
    for (uint64_t i = 0; i < seeds; i++) {
        if (!run(seed + i, rules, ring, trace)) {
            (void)in_ledger_free(world.ledger);
            return 1;
        }
        answers += world.answers;
        jobs += world.jobs;
        deleted += world.deleted;
        removed += world.samples_removed;
    }
    world.ledger = in_ledger_free(world.ledger);
    printf("%llu seeds: %llu answers, %llu jobs, %llu files deleted, %llu samples removed\n",
           (unsigned long long)seeds, (unsigned long long)answers, (unsigned long long)jobs,
           (unsigned long long)deleted, (unsigned long long)removed);
    if (seeds >= 100 &&
        (answers < seeds * 5 || jobs < seeds * 5 || deleted < seeds * 5 || removed < seeds * 5)) {
        printf("FAILED: too little happened to show anything\n");
        return 1;
    }
    return 0;
}
