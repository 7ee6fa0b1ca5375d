/* results.c - results of leaves that are kept for the next time the same leaf is asked. */
#include "queryworker/cache/results.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/sys/thread.h"

#define BUCKETS 1024u /* of results, by the hash of their keys */
#define SEEN 4096u    /* hashes of keys that were asked for once; a newer one takes the place */

struct entry {
    struct qw_kept kept; /* first: what users hold */
    char *key;
    size_t key_len;
    uint64_t hash, bytes;
    size_t users;
    bool listed; /* else the last user frees it */
    struct entry *next, *newer, *older;
};

struct qw_results {
    struct qf_lock *lock;
    uint64_t bytes_max;
    struct entry *buckets[BUCKETS], *newest, *oldest;
    uint64_t seen[SEEN];
    struct qw_results_stats stats;
};

struct qw_results *qw_results_new(uint64_t bytes_max)
{
    struct qw_results *results = qf_xcalloc(1, sizeof(*results));

    results->lock = qf_lock_new();
    results->bytes_max = bytes_max;
    return results;
}

uint64_t qw_results_one_max(const struct qw_results *results)
{
    return results->bytes_max / 8;
}

static void free_entry(struct entry *entry)
{
    (void)pq_past_free(entry->kept.past);
    free((void *)(uintptr_t)entry->kept.inputs);
    free(entry->key);
    free(entry);
}

/* -- With the lock taken ---------------------------------------------------------------------- */

static struct entry **place_of(struct qw_results *results, struct qf_str key, uint64_t hash)
{
    struct entry **at = &results->buckets[hash % BUCKETS];

    while (*at &&
           !((*at)->hash == hash && qf_str_eq((struct qf_str){ (*at)->key, (*at)->key_len }, key)))
        at = &(*at)->next;
    return at;
}

static void put_first(struct qw_results *results, struct entry *entry)
{
    entry->newer = NULL;
    entry->older = results->newest;
    *(results->newest ? &results->newest->newer : &results->oldest) = entry;
    results->newest = entry;
}

static void take_out(struct qw_results *results, struct entry *entry)
{
    *(entry->newer ? &entry->newer->older : &results->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &results->oldest) = entry->newer;
}

/* Take @entry off all lists; returned if nobody uses it, to be freed without the lock. */
static struct entry *unlist(struct qw_results *results, struct entry *entry)
{
    *place_of(results, (struct qf_str){ entry->key, entry->key_len }, entry->hash) = entry->next;
    take_out(results, entry);
    results->stats.bytes -= entry->bytes;
    results->stats.count--;
    entry->listed = false;
    entry->next = NULL;
    return entry->users ? NULL : entry;
}

/* Unlist the oldest ones until @bytes more fit; a list of what is to be freed. */
static struct entry *make_room(struct qw_results *results, uint64_t bytes)
{
    struct entry *freed = NULL;

    while (results->oldest && results->stats.bytes + bytes > results->bytes_max) {
        struct entry *gone = unlist(results, results->oldest);

        results->stats.evicted++;
        if (gone) {
            gone->next = freed;
            freed = gone;
        }
    }
    return freed;
}

/* -- Without ---------------------------------------------------------------------------------- */

static void free_list(struct entry *entry)
{
    while (entry) {
        struct entry *next = entry->next;

        free_entry(entry);
        entry = next;
    }
}

struct qw_results *qw_results_free(struct qw_results *results)
{
    if (!results)
        return NULL;
    free_list(make_room(results, results->bytes_max + 1));
    (void)qf_lock_free(results->lock);
    free(results);
    return NULL;
}

const struct qw_kept *qw_results_use(struct qw_results *results, struct qf_str key, bool *ret_again)
{
    uint64_t hash = qf_hash_bytes(key), *seen = &results->seen[hash / BUCKETS % SEEN];
    struct entry *entry;

    qf_lock_take(results->lock);
    *ret_again = *seen == hash;
    *seen = hash;
    entry = *place_of(results, key, hash);
    if (entry) {
        entry->users++;
        results->stats.uses++;
        *ret_again = true;
        take_out(results, entry);
        put_first(results, entry);
    }
    qf_lock_drop(results->lock);
    return entry ? &entry->kept : NULL;
}

void qw_results_let_go(struct qw_results *results, const struct qw_kept *kept)
{
    struct entry *entry = (struct entry *)(uintptr_t)kept;
    bool last;

    if (!kept)
        return;
    qf_lock_take(results->lock);
    assert(entry->users > 0);
    last = --entry->users == 0 && !entry->listed;
    qf_lock_drop(results->lock);
    if (last)
        free_entry(entry);
}

static struct entry *new_entry(struct qf_str key, struct pq_past *past,
                               const struct qw_result_input *inputs, size_t count)
{
    struct entry *entry = qf_xcalloc(1, sizeof(*entry));
    struct qw_result_input *copies = qf_xcalloc(count + 1, sizeof(*copies));

    for (size_t i = 0; i < count; i++) {
        copies[i] = inputs[i];
        copies[i].name.tenant = (struct qf_str){ 0 }; /* the reader's, who may be gone */
    }
    entry->kept = (struct qw_kept){ past, copies, count };
    entry->key = qf_xmemdup0(key.data, key.len);
    entry->key_len = key.len;
    entry->hash = qf_hash_bytes(key);
    entry->bytes = sizeof(*entry) + key.len + (count + 1) * sizeof(*copies) + pq_past_bytes(past);
    entry->listed = true;
    return entry;
}

void qw_results_keep(struct qw_results *results, struct qf_str key, struct pq_past *past,
                     const struct qw_result_input *inputs, size_t input_count)
{
    struct entry *entry = new_entry(key, past, inputs, input_count), *before, *freed = NULL;

    if (entry->bytes > qw_results_one_max(results)) {
        free_entry(entry);
        return;
    }
    qf_lock_take(results->lock);
    before = *place_of(results, key, entry->hash);
    if (before)
        before = unlist(results, before);
    freed = make_room(results, entry->bytes);
    entry->next = results->buckets[entry->hash % BUCKETS];
    results->buckets[entry->hash % BUCKETS] = entry;
    put_first(results, entry);
    results->stats.bytes += entry->bytes;
    results->stats.count++;
    qf_lock_drop(results->lock);
    if (before)
        free_entry(before);
    free_list(freed);
}

struct qw_results_stats qw_results_stats(struct qw_results *results)
{
    struct qw_results_stats stats;

    qf_lock_take(results->lock);
    stats = results->stats;
    qf_lock_drop(results->lock);
    return stats;
}

/* -- Which steps are the same ------------------------------------------------------------------ */

static bool same_segment(const struct qw_result_input *a, const struct qw_result_input *b)
{
    const struct sg_segment_name *x = &a->name, *y = &b->name;

    return !a->head && !b->head && x->id == y->id && x->generation == y->generation &&
           x->min_ts == y->min_ts && x->max_ts == y->max_ts && x->shard == y->shard &&
           x->shard_count == y->shard_count;
}

/* How many of the first @steps steps come before the first one that looks at @segment. */
static uint64_t steps_before(const struct pq_leaf *leaf, uint64_t steps,
                             const struct sg_segment_name *segment)
{
    const struct pq_grid *grid = pq_leaf_grid(leaf);
    int64_t first_min, first_max;

    pq_leaf_reads(leaf, 0, &first_min, &first_max);
    if (segment->max_ts < first_min)
        return steps;
    if (segment->min_ts <= first_max)
        return 0;
    return QF_MIN(steps, (uint64_t)((segment->min_ts - first_max - 1) / grid->step_ms) + 1);
}

/* How many of the first @steps steps look at none of @inputs that is not among @others. */
static uint64_t steps_without(const struct pq_leaf *leaf, uint64_t steps,
                              const struct qw_result_input *inputs, size_t count,
                              const struct qw_result_input *others, size_t other_count)
{
    size_t hint = 0; /* plans list segments in one order: the next one is where the last one was */

    for (size_t i = 0; i < count && steps; i++) {
        size_t tried = 0;

        while (tried < other_count &&
               !same_segment(&inputs[i], &others[(hint + tried) % other_count]))
            tried++;
        if (tried == other_count)
            steps = steps_before(leaf, steps, &inputs[i].name);
        else
            hint = (hint + tried + 1) % other_count;
    }
    return steps;
}

uint64_t qw_kept_steps(const struct qw_kept *kept, const struct pq_leaf *leaf,
                       const struct qw_result_input *inputs, size_t input_count)
{
    uint64_t steps = pq_past_steps(kept->past, leaf);

    steps = steps_without(leaf, steps, inputs, input_count, kept->inputs, kept->input_count);
    return steps_without(leaf, steps, kept->inputs, kept->input_count, inputs, input_count);
}
