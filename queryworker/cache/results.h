/* results.h - results of leaves that are kept for the next time the same leaf is asked.
 *
 * A dashboard that is refreshed asks its leaves again, for a range that has moved on a little. Steps
 * whose samples are the same as last time are taken from the result that was kept (leaf_reuse.h), the
 * others are computed. Samples are the same if they come from the same segments: a name never changes
 * its content. So a result is kept with the segments it was made of, and a step can be used again if
 * every segment with samples in its window was there then and is there now. Head inputs, which are other
 * samples each time, are never the same.
 *
 * A result is kept when its leaf is asked for the second time: what is asked once takes no room. The
 * memory is bounded; what was not used for the longest time goes first. Works on all threads of the pool
 * share the results, under a lock that is held for a few instructions (decision 0046). */
#ifndef QUERYWORKER_CACHE_RESULTS_H
#define QUERYWORKER_CACHE_RESULTS_H

#include "promql/leaf_reuse.h"
#include "segments/parquet/segment_name.h"

struct qw_results;

/* What a result was made of. */
struct qw_result_input {
    struct sg_segment_name name; /* the tenant aside: it is in the key */
    bool head;
};

/* One that is kept, in use. */
struct qw_kept {
    struct pq_past *past;
    const struct qw_result_input *inputs;
    size_t input_count;
};

/* Keep up to @bytes_max bytes. */
struct qw_results *qw_results_new(uint64_t bytes_max);
/* None may be in use. Accepts NULL, returns NULL. */
struct qw_results *qw_results_free(struct qw_results *results);

/* The result of @key; NULL: there is none. It stays until it is let go. @ret_again: the key was asked
 * for before, so its next result is worth keeping. */
const struct qw_kept *qw_results_use(struct qw_results *results, struct qf_str key,
                                     bool *ret_again);
void qw_results_let_go(struct qw_results *results, const struct qw_kept *kept); /* Accepts NULL. */

/* Keep a result in place of the one with its key. @past is taken; what is larger than an eighth of the
 * memory is freed at once. */
void qw_results_keep(struct qw_results *results, struct qf_str key, struct pq_past *past,
                     const struct qw_result_input *inputs, size_t input_count);
/* The most that one may take. */
uint64_t qw_results_one_max(const struct qw_results *results);

/* How many steps @leaf begins with that have the same samples in @inputs as in @kept. */
uint64_t qw_kept_steps(const struct qw_kept *kept, const struct pq_leaf *leaf,
                       const struct qw_result_input *inputs, size_t input_count);

struct qw_results_stats {
    uint64_t bytes, count;  /* now */
    uint64_t uses, evicted; /* so far: works that used one; results that made room */
};
struct qw_results_stats qw_results_stats(struct qw_results *results);

#endif
