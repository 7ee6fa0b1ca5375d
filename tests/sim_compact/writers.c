/* writers.c - imports with their leases, and an ingest node with its ranges. */
#include "tests/sim_compact/world.h"

#include <string.h>

/* --- imports --- */

static uint64_t clock_of(const struct world *w, int64_t offset)
{
    int64_t now = w->now + offset;

    return (uint64_t)(now > 1 ? now : 1) * 1000;
}

/* Files of a few windows, some of them reaching over the end of one or of a day. */
static void make_files(struct world *w, struct importer *importer)
{
    int64_t from = between(w, 0, TIMES * 3 / 4),
            length = chance(w, 0.2) ? between(w, 8, 40) : between(w, 1, 8);

    importer->count = importer->next = 0;
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        size_t index = file_new(w, shard, importer->generation);

        for (int64_t t = from; t < from + length && t < TIMES; t++)
            for (int s = (int)shard; s < SERIES; s += SHARDS)
                if (chance(w, 0.6))
                    file_set(&w->files[index], s, (int)t, ++w->last_write);
        if (w->files[index].min_ts > w->files[index].max_ts)
            file_set(&w->files[index], (int)shard, (int)from, ++w->last_write);
        file_seal(&w->files[index]);
        w->files[index].damaged = chance(w, 0.03);
        importer->files[importer->count++] = index;
    }
}

static void import_end(struct world *w, struct importer *importer)
{
    importer->lease_gone = w->now;
    importer->ended = w->now;
    importer->stage = 0;
}

static void import_roll_back(struct world *w, struct importer *importer)
{
    say(w, "import g%d: lease gone, rolled back", (int)(importer->generation / 1000));
    for (size_t i = 0; i < importer->next; i++) {
        store_delete(w, importer->files[i]);
        shadow_remove(w, importer->files[i]);
    }
    importer->stage = 0;
}

void importer_step(struct world *w, struct importer *importer)
{
    if (importer->stage && chance(w, 0.01)) { /* killed: lease and files stay */
        say(w, "import g%d killed", (int)(importer->generation / 1000));
        importer->stage = importer->lease_gone ? 0 : -1;
        return;
    }
    switch (importer->stage) {
    case -1: /* dead; another takes its place when its lease is gone */
        if (importer->lease_gone)
            importer->stage = 0;
        break;
    case 0:
        if (!chance(w, 0.02) || (importer->ended && w->now - importer->ended <= SETTLE))
            break;
        importer->generation = clock_of(w, importer->clock) + (uint64_t)(importer - w->importers);
        importer->lease_put = w->now;
        importer->lease_gone = importer->ended = 0;
        importer->stage = 1;
        break;
    case 1: /* a lease is there: is the generation above what compactors have settled? */
        if (w->rules.leases && importer->generation <= w->below_mark)
            importer->generation = w->below_mark + 1 + (uint64_t)(importer - w->importers);
        make_files(w, importer);
        importer->stage = 2;
        break;
    case 2:
        if (importer->next < importer->count) {
            say(w, "import g%d puts file %d", (int)(importer->generation / 1000),
                (int)importer->files[importer->next]);
            store_put(w, importer->files[importer->next]);
            shadow_add(w, importer->files[importer->next++]);
        } else if (importer->lease_gone) {
            import_roll_back(w, importer);
        } else {
            import_end(w, importer);
        }
        break;
    }
}

void sweep_step(struct world *w)
{
    for (int i = 0; i < IMPORTERS; i++) {
        struct importer *importer = &w->importers[i];

        if (importer->lease_put && !importer->lease_gone &&
            w->now - importer->lease_put > LEASE_LIFE) {
            say(w, "lease of g%d removed", (int)(importer->generation / 1000));
            importer->lease_gone = importer->ended = w->now;
            for (size_t j = 0; importer->stage > 1 && j < importer->count; j++)
                w->files[importer->files[j]].disowned = true;
        }
    }
}

/* --- ingest --- */

static struct range *open_range(struct world *w)
{
    struct range *last = w->range_count ? &w->ranges[w->range_count - 1] : NULL;
    uint64_t generation = clock_of(w, w->ingest_clock);
    struct range *range;

    if (last && !last->closed)
        return last;
    if (w->range_count == RANGES_MAX)
        return NULL;
    if (last && generation <= last->generation)
        generation = last->generation + 1;
    if (generation <= w->ledger_below)
        generation = w->ledger_below + 1;
    while (generation % 10 != 7) /* in microseconds no import has the same */
        generation++;
    range = &w->ranges[w->range_count++];
    memset(range, 0, sizeof(*range));
    range->generation = generation;
    range->opened = w->now;
    return range;
}

/* The file of a range that a sample belongs to: one per shard and window. */
static size_t file_of(struct world *w, struct range *range, uint32_t shard, int at)
{
    int64_t window = (int64_t)at * GRAIN / WINDOW;

    for (size_t i = 0; i < range->count; i++) {
        const struct file *file = &w->files[range->files[i]];

        if (file->shard == shard && file->min_ts / WINDOW == window)
            return range->files[i];
    }
    if (range->count == sizeof(range->files) / sizeof(range->files[0]))
        return SG_PLAN_NONE;
    range->files[range->count] = file_new(w, shard, range->generation);
    return range->files[range->count++];
}

static void write_sample(struct world *w)
{
    struct range *range = open_range(w);
    int at = (int)(w->now / GRAIN - between(w, 0, 6)), series = (int)between(w, 0, SERIES - 1);
    size_t index;

    if (!range || at < 0)
        return;
    index = file_of(w, range, (uint32_t)series % SHARDS, at);
    if (index == SG_PLAN_NONE)
        return;
    file_set(&w->files[index], series, at, ++w->last_write);
    file_seal(&w->files[index]);
    shadow_add(w, index);
}

static void seal_step(struct world *w)
{
    for (size_t i = 0; i < w->range_count; i++) {
        struct range *range = &w->ranges[i];

        if (range->sealed)
            continue;
        if (!range->closed) {
            if (w->now - range->opened > 80 && chance(w, 0.2))
                range->closed = w->now;
            return;
        }
        if (range->next < range->count) {
            if (chance(w, 0.1)) { /* the store is away at times, and for long */
                say(w, "range g%d puts file %d", (int)(range->generation / 1000),
                    (int)range->files[range->next]);
                store_put(w, range->files[range->next++]);
            }
        } else {
            range->sealed = w->now;
        }
        return; /* one after another, as the ledger has it */
    }
}

void ingest_step(struct world *w)
{
    if (w->now < STEPS * 3 / 4 && chance(w, 0.4))
        write_sample(w);
    seal_step(w);
}
