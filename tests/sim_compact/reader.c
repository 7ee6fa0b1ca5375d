/* reader.c - a query: what is not sealed yet, then a listing, then the files; compared with the shadow. */
#include "tests/sim_compact/world.h"

#include <string.h>

/* What ingest nodes tell: ranges that are not sealed. */
static void take_heads(struct world *w, struct reader *r)
{
    memset(r->heads, 0, sizeof(r->heads));
    for (size_t i = 0; i < w->range_count; i++) {
        const struct range *range = &w->ranges[i];

        if (range->sealed)
            continue;
        for (size_t f = 0; f < range->count; f++)
            for (int s = 0; s < SERIES; s++)
                for (int t = 0; t < TIMES; t++)
                    if (w->files[range->files[f]].values[s][t]) {
                        r->heads[s][t] = w->files[range->files[f]].values[s][t];
                        r->head_generation[s][t] = range->generation;
                    }
    }
}

static bool was_right(const struct world *w, int series, int at, uint32_t value, int64_t since)
{
    size_t count = w->versions[series][at];

    if (!count || w->history[series][at][0].since >= since) /* nothing was there at first */
        if (value == 0)
            return true;
    for (size_t i = 0; i < count; i++)
        if (w->history[series][at][i].value == value &&
            (i + 1 == count || w->history[series][at][i + 1].since >= since))
            return true;
    return false;
}

/* Files that are put while a listing is under way may be in it or not, in any mixture; and what becomes of the samples of
 * an import that lost its lease is open. */
static bool may_be(const struct world *w, int series, int at, uint32_t value, int64_t since)
{
    for (size_t i = 0; i < w->file_count; i++) {
        const struct file *file = &w->files[i];

        if (file->values[series][at] &&
            (file->disowned ||
             (w->in_shadow[i] && file->values[series][at] == value && file->put >= since)))
            return true;
    }
    return false;
}

static bool taken_back_soon(const struct world *w)
{
    for (int i = 0; i < COMPACTORS; i++)
        if (compactor_is_unaware(&w->compactors[i]))
            return true;
    return false;
}

static void check_point(struct world *w, const struct reader *r, const size_t *files, size_t count,
                        int s, int t)
{
    const struct file *best = NULL;
    uint32_t value;

    for (size_t i = 0; i < count; i++) {
        const struct file *file = &w->files[files[i]];

        if (file->values[s][t] && (!best || newer(file, best)))
            best = file;
    }
    value = best ? best->values[s][t] : 0;
    if (r->heads[s][t] && (!best || r->head_generation[s][t] >= best->generation))
        value = r->heads[s][t];
    if (w->removed[value] && w->removed[value] < r->listing.began && !taken_back_soon(w))
        fail(w, "step %d: series %d at %d: a reader got %u, which was removed at %d", (int)w->now,
             s, t * GRAIN, value, (int)w->removed[value]);
    /* What a removal is about may go, and what it had overwritten be seen again. */
    if (!w->touched[t] && !was_right(w, s, t, value, r->listing.began) &&
        !may_be(w, s, t, value, r->listing.began))
        fail(w, "step %d: series %d at %d: a reader got %u, which %s", (int)w->now, s, t * GRAIN,
             value, value ? "does not count" : "is nothing");
}

void reader_step(struct world *w, struct reader *r)
{
    static size_t files[FILES_MAX];
    size_t count = 0;

    if (!r->listing.active) {
        take_heads(w, r);
        listing_start(w, &r->listing);
    }
    if (!listing_step(w, &r->listing))
        return;
    for (size_t i = 0; i < r->listing.seen_count; i++) {
        size_t index = r->listing.seen[i];

        if (replaced_by(w, &r->listing, index) != SG_PLAN_NONE)
            continue;
        if (!store_has(w, index))
            return; /* vanished: plan again */
        files[count++] = index;
    }
    w->answers++;
    for (int s = 0; s < SERIES; s++)
        for (int t = 0; t < TIMES; t++)
            check_point(w, r, files, count, s, t);
}
