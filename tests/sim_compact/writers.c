/* writers.c - imports with their leases, and an ingest node with its ranges. */
#include "tests/sim_compact/world.h"

#include <stdlib.h>
#include <string.h>

/* --- imports --- */

static uint64_t clock_of(const struct world *w, int64_t offset)
{
    int64_t now = w->now + offset;

    return (uint64_t)(now > 1 ? now : 1) * 1000;
}

/* The second half of a millisecond, as segments/write/claim.c has it. */
static uint64_t of_import(uint64_t generation)
{
    return generation - generation % 1000 + 500 + generation % 1000 / 2;
}

/* The least above the mark, which nobody gets again. */
static void claim(struct world *w, struct importer *importer)
{
    if (w->rules.leases && importer->generation <= w->below_mark)
        importer->generation = of_import(w->below_mark + 1);
    if (w->rules.marks && importer->generation > w->below_mark)
        w->below_mark = importer->generation;
    if (w->rules.leases && importer->generation <= importer->above)
        fail(w, "step %d: an import has generation %d, one that ended before it began %d",
             (int)w->now, (int)importer->generation, (int)importer->above);
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
    if (importer->generation > w->last_ended)
        w->last_ended = importer->generation;
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

/* All names in the entry that gives up its claim, or none. */
static void import_at_once(struct world *w, struct importer *importer)
{
    if (!importer->lease_gone && chance(w, 0.9))
        return;
    while (!importer->lease_gone && importer->next < importer->count) {
        store_put(w, importer->files[importer->next]);
        shadow_add(w, importer->files[importer->next++]);
    }
    if (importer->lease_gone)
        importer->stage = 0;
    else
        import_end(w, importer);
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
        importer->generation = of_import(clock_of(w, importer->clock));
        importer->above = w->last_ended;
        importer->lease_put = w->now;
        importer->lease_gone = importer->ended = 0;
        importer->stage = 1;
        break;
    case 1: /* a lease is there: is the generation above what compactors have settled? */
        claim(w, importer);
        make_files(w, importer);
        importer->stage = 2;
        break;
    case 2:
        if (w->ring) {
            import_at_once(w, importer);
        } else if (importer->next < importer->count) {
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

#define TENANT QF_STR("t")

static enum in_verdict apply(struct world *w, struct in_record record)
{
    record.tenant = TENANT;
    return in_ledger_apply(w->ledger, ++w->log, &record, NULL);
}

static int64_t leader_time(const struct world *w)
{
    int64_t now = w->now + w->ingest_clock, last = in_ledger_time(w->ledger);

    now = now > 1 ? now : 1;
    return now > last ? now : last;
}

/* Another node leads, with another clock, and goes on from a snapshot. */
static void change_leader(struct world *w)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;

    in_ledger_encode(&bytes, w->ledger);
    w->ledger = in_ledger_free(w->ledger);
    if (in_ledger_decode(qf_strbuf_view(&bytes), &w->ledger) != QF_OK)
        abort();
    w->ingest_clock = chance(w, 0.5) ? 0 : between(w, -1000, 50);
}

uint64_t ingest_settle(struct world *w, uint64_t generation)
{
    const struct in_tenant *tenant = in_ledger_tenant(w->ledger, TENANT);
    uint64_t now = (uint64_t)leader_time(w) * 1000 - 1;
    struct in_record record = { .kind = IN_BELOW,
                                .time_ms = leader_time(w),
                                .keep_ms = UINT64_MAX };

    record.generation = generation < now ? generation : now;
    if (tenant && in_tenant_settled(tenant) < record.generation)
        record.generation = in_tenant_settled(tenant);
    return apply(w, record) == IN_APPLIED ? record.generation : 0;
}

static struct range *open_range(struct world *w)
{
    struct range *last = w->range_count ? &w->ranges[w->range_count - 1] : NULL;
    struct in_record record = { .kind = IN_SAMPLES, .time_ms = leader_time(w), .sample_count = 1 };
    struct range *range;

    if (w->range_count == RANGES_MAX || apply(w, record) != IN_APPLIED)
        return NULL;
    if (last && !last->closed)
        return last;
    range = &w->ranges[w->range_count++];
    memset(range, 0, sizeof(*range));
    range->generation = in_ledger_tenant(w->ledger, TENANT)->generation;
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
            if (w->now - range->opened > 80 && chance(w, 0.2) &&
                apply(w, (struct in_record){ .kind = IN_SEAL }) == IN_APPLIED)
                range->closed = w->now;
            return;
        }
        if (w->ring && range->next < range->count) { /* named with SEALED */
            if (!chance(w, 0.05))
                return;
            while (range->next < range->count)
                store_put(w, range->files[range->next++]);
        }
        if (range->next < range->count) {
            if (chance(w, 0.1)) { /* the store is away at times, and for long */
                say(w, "range g%d puts file %d", (int)(range->generation / 1000),
                    (int)range->files[range->next]);
                store_put(w, range->files[range->next++]);
            }
        } else {
            const struct in_range *oldest =
                in_tenant_next_to_seal(in_ledger_tenant(w->ledger, TENANT));

            if (apply(w, (struct in_record){ .kind = IN_SEALED,
                                             .from = oldest->from,
                                             .to = oldest->to }) != IN_APPLIED)
                abort();
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
    if (chance(w, 0.005))
        change_leader(w);
}
