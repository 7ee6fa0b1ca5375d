/* world.c - the store, its listings and the shadow. */
#include "tests/sim_compact/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool chance(struct world *w, double probability)
{
    return qf_prng_chance(&w->prng, probability);
}

int64_t between(struct world *w, int64_t from, int64_t to)
{
    return from + (int64_t)qf_prng_below(&w->prng, (uint64_t)(to - from + 1));
}

void say(const struct world *w, const char *format, ...)
{
    va_list args;

    if (!w->trace)
        return;
    printf("[%5d] ", (int)w->now);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

void fail(struct world *w, const char *format, ...)
{
    va_list args;

    if (w->failure[0])
        return;
    va_start(args, format);
    (void)vsnprintf(w->failure, sizeof(w->failure), format, args);
    va_end(args);
}

/* --- files --- */

size_t file_new(struct world *w, uint32_t shard, uint64_t generation)
{
    struct file *file;

    if (w->file_count == FILES_MAX)
        abort();
    file = &w->files[w->file_count];
    memset(file, 0, sizeof(*file));
    file->shard = shard;
    file->generation = generation;
    file->min_ts = INT64_MAX;
    file->max_ts = INT64_MIN;
    return w->file_count++;
}

void file_set(struct file *file, int series, int at, uint32_t value)
{
    int64_t ts = (int64_t)at * GRAIN;

    if (value >= WRITES_MAX)
        abort();
    file->values[series][at] = value;
    file->min_ts = ts < file->min_ts ? ts : file->min_ts;
    file->max_ts = ts > file->max_ts ? ts : file->max_ts;
}

/* The id is a hash of the content, as in the product. */
void file_seal(struct file *file)
{
    uint64_t hash = 1469598103934665603u;

    file->size = 0;
    for (int s = 0; s < SERIES; s++)
        for (int t = 0; t < TIMES; t++)
            if (file->values[s][t]) {
                file->size += 10;
                hash = (hash ^ (uint64_t)(s * TIMES + t)) * 1099511628211u;
                hash = (hash ^ file->values[s][t]) * 1099511628211u;
            }
    file->id = hash ^ (hash >> 29);
}

bool same_name(const struct file *a, const struct file *b)
{
    return a->id == b->id && a->generation == b->generation && a->min_ts == b->min_ts &&
           a->max_ts == b->max_ts && a->shard == b->shard;
}

/* A name that is there is put over: the content is the same. So it keeps one place here. */
void store_put(struct world *w, size_t index)
{
    struct file *file = &w->files[index];

    for (size_t i = 0; i < w->file_count; i++)
        if (i != index && w->files[i].put && !w->files[i].gone && same_name(&w->files[i], file)) {
            w->files[i].gone = w->files[i].gone_seen = w->now;
            file->put_seen = w->files[i].put_seen;
        }
    file->put = w->now;
    if (!file->put_seen)
        file->put_seen = w->now + between(w, 0, LATE_MAX);
    file->gone = file->gone_seen = 0;
}

void store_delete(struct world *w, size_t index)
{
    struct file *file = &w->files[index];

    if (!file->put || file->gone)
        return;
    file->gone = w->now;
    file->gone_seen = w->now + between(w, 0, LATE_MAX);
}

bool store_has(const struct world *w, size_t index)
{
    return w->files[index].put && !w->files[index].gone;
}

bool newer(const struct file *a, const struct file *b)
{
    if (a->generation != b->generation)
        return a->generation > b->generation;
    return a->id > b->id;
}

/* --- the shadow --- */

static uint32_t shadow_value(const struct world *w, int series, int at)
{
    const struct file *winner = NULL;

    for (size_t i = 0; i < w->file_count; i++)
        if (w->in_shadow[i] && w->files[i].values[series][at] &&
            (!winner || newer(&w->files[i], winner)))
            winner = &w->files[i];
    return winner ? winner->values[series][at] : 0;
}

static void shadow_changed(struct world *w, const struct file *file)
{
    for (int s = 0; s < SERIES; s++)
        for (int t = 0; t < TIMES; t++) {
            uint32_t value = file->values[s][t] ? shadow_value(w, s, t) : 0;
            size_t *count = &w->versions[s][t];

            if (!file->values[s][t] || (*count && w->history[s][t][*count - 1].value == value))
                continue;
            if (*count == VERSIONS_MAX)
                abort();
            w->history[s][t][(*count)++] = (struct version){ w->now, value };
        }
}

void shadow_add(struct world *w, size_t file)
{
    w->in_shadow[file] = true;
    shadow_changed(w, &w->files[file]);
}

void shadow_remove(struct world *w, size_t file)
{
    w->in_shadow[file] = false;
    shadow_changed(w, &w->files[file]);
}

/* --- listings --- */

static const struct world *sorting;

static int by_name(const void *a, const void *b)
{
    const struct file *x = &sorting->files[*(const size_t *)a],
                      *y = &sorting->files[*(const size_t *)b];

    if (x->min_ts != y->min_ts)
        return x->min_ts < y->min_ts ? -1 : 1;
    if (x->max_ts != y->max_ts)
        return x->max_ts < y->max_ts ? -1 : 1;
    if (x->generation != y->generation)
        return x->generation < y->generation ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

void listing_start(struct world *w, struct listing *listing)
{
    listing->active = true;
    listing->began = w->now;
    listing->next = listing->seen_count = 0;
}

/* The order is made anew each time: names that were put meanwhile come up if their place is still ahead. */
static void order(struct world *w, struct listing *listing)
{
    listing->count = 0;
    for (size_t i = 0; i < w->file_count; i++)
        if (w->files[i].put)
            listing->order[listing->count++] = i;
    sorting = w;
    qsort(listing->order, listing->count, sizeof(listing->order[0]), by_name);
}

/* A log has it or has it not. */
static bool list_at_once(struct world *w, struct listing *listing)
{
    for (size_t i = 0; i < w->file_count; i++)
        if (store_has(w, i))
            listing->seen[listing->seen_count++] = i;
    listing->active = false;
    return true;
}

bool listing_step(struct world *w, struct listing *listing)
{
    size_t last = listing->next ? listing->order[listing->next - 1] : SG_PLAN_NONE;
    int64_t pieces = between(w, 1, 60);

    if (w->ring)
        return list_at_once(w, listing);
    if (w->now - listing->began > LIST_MAX) {
        listing->active = false;
        return false;
    }
    order(w, listing);
    for (listing->next = 0; last != SG_PLAN_NONE && listing->order[listing->next++] != last;)
        ;
    for (; pieces > 0 && listing->next < listing->count; listing->next++, pieces--) {
        const struct file *file = &w->files[listing->order[listing->next]];

        if (listing->late ? file->put_seen <= w->now && (!file->gone || file->gone_seen > w->now)
                          : !file->gone)
            listing->seen[listing->seen_count++] = listing->order[listing->next];
    }
    if (listing->next < listing->count)
        return false;
    listing->active = false;
    return true;
}

static bool is_seen(const struct listing *listing, size_t file)
{
    for (size_t i = 0; i < listing->seen_count; i++)
        if (listing->seen[i] == file)
            return true;
    return false;
}

size_t replaced_by(const struct world *w, const struct listing *listing, size_t index)
{
    for (size_t i = 0; i < listing->seen_count; i++) {
        const struct file *by = &w->files[listing->seen[i]];
        bool named = false, whole = true;

        for (size_t j = 0; j < by->replaces_count; j++)
            named |= same_name(&w->files[by->replaces[j]], &w->files[index]);
        for (size_t j = 0; named && w->rules.beside && j < by->beside_count; j++) {
            bool found = is_seen(listing, by->beside[j]);

            for (size_t k = 0; !found && k < listing->seen_count; k++)
                found = same_name(&w->files[listing->seen[k]], &w->files[by->beside[j]]);
            whole &= found;
        }
        if (named && whole && !by->damaged && !same_name(by, &w->files[index]))
            return listing->seen[i];
    }
    return SG_PLAN_NONE;
}
