/* remover.c - `segments rm` of a range of times, step by step: what it took out of the store must not come back. */
#include "tests/sim_compact/world.h"

#include <string.h>

enum stage { IDLE, WAIT, LIST, DELETE, DEAD };

static bool overlaps(const struct remover *r, const struct compactor *c)
{
    return c->turn && c->turn_min <= r->max_ts && c->turn_max >= r->min_ts;
}

bool removal_under_way(const struct world *w, const struct compactor *c)
{
    const struct remover *r = &w->remover;

    return r->lease && w->now - r->renewed <= TURN_LIFE && overlaps(r, c);
}

/* Merges that put have to end first; those of the dead are told that they are. */
static bool must_wait(struct world *w, const struct remover *r)
{
    bool wait = false;

    for (int i = 0; w->rules.turns && i < COMPACTORS; i++) {
        struct compactor *c = &w->compactors[i];

        if (!overlaps(r, c))
            continue;
        if (w->now - c->turn_renewed > TURN_LIFE) {
            say(w, "rm breaks the turn of c%d", i);
            c->turn = false;
        } else {
            wait = true;
        }
    }
    return wait;
}

/* Often where somebody merges just now: that is when it matters. */
static int64_t choose_start(struct world *w)
{
    const struct compactor *c = &w->compactors[between(w, 0, COMPACTORS - 1)];

    return c->input_count && chance(w, 0.7) ? w->files[c->inputs[0]].min_ts / GRAIN
                                            : between(w, 0, TIMES * 3 / 4);
}

static void begin(struct world *w, struct remover *r)
{
    int64_t from = choose_start(w), length = between(w, 4, 24);

    memset(r, 0, sizeof(*r));
    r->min_ts = from * GRAIN;
    r->max_ts = (from + length) * GRAIN;
    r->lease = true;
    r->renewed = w->now;
    r->stage = WAIT;
    w->removals_left--;
    for (int64_t t = from; t <= from + length && t < TIMES; t++)
        w->touched[t] = true;
    say(w, "rm of %d to %d", (int)r->min_ts, (int)r->max_ts);
}

static void list(struct world *w, struct remover *r)
{
    if (!r->listing.active)
        listing_start(w, &r->listing);
    if (!listing_step(w, &r->listing))
        return;
    for (size_t i = 0; i < r->listing.seen_count; i++) {
        const struct file *file = &w->files[r->listing.seen[i]];

        if (file->min_ts >= r->min_ts && file->max_ts <= r->max_ts)
            r->files[r->count++] = r->listing.seen[i];
    }
    r->stage = DELETE;
}

/* Samples of a range that is not sealed are with the ingest nodes, and stay. */
static bool is_sealed(const struct world *w, size_t file)
{
    for (size_t i = 0; i < w->range_count; i++)
        for (size_t f = 0; f < w->ranges[i].count; f++)
            if (w->ranges[i].files[f] == file)
                return w->ranges[i].sealed;
    return true;
}

static bool is_stored(const struct world *w, int series, int at, uint32_t value)
{
    for (size_t i = 0; i < w->file_count; i++)
        if (store_has(w, i) && w->files[i].values[series][at] == value)
            return true;
    return false;
}

/* Whoever asked hears that these are gone. */
static void end(struct world *w, struct remover *r)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct file *file = &w->files[r->files[i]];

        for (int s = 0; s < SERIES && is_sealed(w, r->files[i]); s++)
            for (int t = 0; t < TIMES; t++)
                if (file->values[s][t] && !is_stored(w, s, t, file->values[s][t])) {
                    w->removed[file->values[s][t]] = w->now;
                    w->samples_removed++;
                }
    }
    say(w, "rm has ended, %d files", (int)r->count);
    r->lease = false;
    r->stage = IDLE;
}

void remover_step(struct world *w, struct remover *r)
{
    if (r->stage != IDLE && r->stage != DEAD && chance(w, 0.01)) { /* killed: its lease stays */
        say(w, "rm killed");
        r->stage = DEAD;
    }
    switch ((enum stage)r->stage) {
    case IDLE:
        if (w->removals_left && chance(w, 0.01))
            begin(w, r);
        break;
    case WAIT:
        r->renewed = w->now;
        if (!must_wait(w, r))
            r->stage = LIST;
        break;
    case LIST:
        list(w, r);
        break;
    case DELETE:
        if (r->next == r->count && w->now - r->renewed > TURN_LIFE) {
            r->stage = DEAD; /* it took too long, and says so */
        } else if (r->next == r->count) {
            end(w, r);
        } else {
            r->renewed = w->now - r->renewed > TURN_LIFE ? r->renewed : w->now;
            say(w, "rm deletes %d", (int)r->files[r->next]);
            store_delete(w, r->files[r->next++]);
        }
        break;
    case DEAD:
        if (w->now - r->renewed > TURN_LIFE)
            r->stage = IDLE;
        break;
    }
}
