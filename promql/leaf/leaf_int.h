/* leaf_int.h - inside the leaf executor: one series at a time through the stages, then a sink. */
#ifndef PROMQL_LEAF_LEAF_INT_H
#define PROMQL_LEAF_LEAF_INT_H

#include "base/pure/map.h"
#include "promql/func/poll.h"
#include "promql/func/range.h"
#include "promql/leaf.h"
#include "promql/leaf/grouping.h"
#include "promql/partial/natives.h"
#include "promql/leaf/values.h"
#include "promql/partial/cells.h"

/* The values of one series on a grid. present[k] is 0 or 1. */
struct pq_lane {
    double *values;
    uint8_t *present;
    size_t count;  /* steps */
    size_t points; /* how many are present */
    /* NULL, or per step NULL for a float. Those of the series, or made in the chain's scope. */
    const struct pq_histogram **histograms;
};

/* chain.c: the stages. Buffers grow to the longest series and the finest grid and are reused. */
struct pq_chain {
    const struct pq_leaf *leaf;
    struct pq_notes *notes;
    uint64_t samples_max;
    uint64_t points; /* values that came out of stages that look at time, all series so far */
    uint32_t *points_by_step; /* NULL, or the same per step, of leaves with one such stage */
    struct pq_poll *poll;
    /* NULL until there is a histogram: those of the series in work, and what one step needs. */
    struct qf_arena *scope, *scratch;
    /* Room for samples without stale markers, or for the values of a lower grid. */
    int64_t *ts, *start_ts;
    double *values, *order;
    size_t capacity;
    struct pq_lane lanes[2];
    size_t lane_capacity;
};

void pq_chain_init(struct pq_chain *chain, const struct pq_leaf *leaf, uint64_t samples_max,
                   struct pq_notes *notes, struct pq_poll *poll);
void pq_chain_done(struct pq_chain *chain);
/* Run @series through all stages; the lane is borrowed until the next call. */
QF_MUST_CHECK qf_rc pq_chain_run(struct pq_chain *chain, const struct pq_series *series,
                                 struct pq_lane *ret_lane, struct qf_err *err);

/* Room for the samples of a series in the buffers. */
void pq_chain_reserve(struct pq_chain *chain, size_t count);

/* mixed.c: where there are native histograms. The chain's scope; NULL: budget spent. */
struct qf_arena *pq_chain_scope(struct pq_chain *chain);
/* Put a value that is there at step @k; counts the point. */
QF_MUST_CHECK qf_rc pq_lane_put(struct pq_chain *chain, struct pq_lane *lane, size_t k,
                                struct pq_value value, struct qf_err *err);
/* Take all steps with a histogram away; returns how many there were. */
size_t pq_lane_drop_histograms(struct pq_lane *lane);
/* What a BINARY stage makes of the histograms of a lane (func/value_op.h). */
QF_MUST_CHECK qf_rc pq_lane_binary_histograms(struct pq_chain *chain, const struct pq_stage *stage,
                                              struct pq_lane *lane, struct qf_err *err);
/* What is known of resets, for leaves that find out; the histograms are borrowed from the series
 * and the scope. */
QF_MUST_CHECK qf_rc pq_chain_find_resets(struct pq_chain *chain, struct pq_series *series,
                                         struct qf_err *err);
/* A WINDOW or smoothed INSTANT stage over a series, or over the values below. */
QF_MUST_CHECK qf_rc pq_chain_run_mixed(struct pq_chain *chain, const struct pq_stage *stage,
                                       struct qf_str name, const struct pq_series *series,
                                       struct pq_lane *out, struct qf_err *err);

/* A series kept as it is. */
struct pq_kept {
    struct qf_labels labels;
    double *values;
    uint8_t *present;
    const struct pq_histogram **histograms; /* or NULL */
};

struct pq_group {
    struct qf_labels labels;
    struct pq_cells cells;
    struct pq_natives natives; /* sum, avg: the histograms */
};

/* One value seen by count_values. */
struct pq_counted {
    uint32_t step, group;
};

/* sink.c: where lanes go. */
struct pq_sink {
    const struct pq_leaf *leaf;
    struct qf_arena *arena;
    struct pq_poll *poll;
    struct pq_notes *notes;
    size_t steps;
    struct pq_grouping grouping;
    bool unnames;  /* metric names go before grouping */
    bool one_name; /* an equality matcher pins the name: no two series differ by name alone */

    /* SERIES, CANDIDATES; in the order of the source, that is sorted. */
    struct pq_kept *kept;
    size_t kept_count, kept_capacity;

    /* The other kinds: groups in the order they were first met. */
    struct qf_map groups; /* encoded labels -> index */
    struct pq_group *group_list;
    size_t group_count, group_capacity;
    struct pq_counted *counted; /* COUNT_VALUES */
    size_t counted_count, counted_capacity;

    struct qf_map unnamed; /* encoded labels without name -> uint8_t *, steps with a value */
    struct qf_strbuf key, text;
};

/* False: budget spent. */
QF_MUST_CHECK bool pq_sink_init(struct pq_sink *sink, const struct pq_leaf *leaf,
                                struct qf_arena *arena, struct pq_notes *notes,
                                struct pq_poll *poll);
void pq_sink_done(struct pq_sink *sink);
QF_MUST_CHECK qf_rc pq_sink_add(struct pq_sink *sink, struct qf_labels labels, struct pq_lane *lane,
                                struct qf_err *err);
/* rows.c: everything as rows, sorted. */
QF_MUST_CHECK qf_rc pq_sink_rows(struct pq_sink *sink, struct pq_leaf_result *result,
                                 struct qf_err *err);

/* samples.c: leaves that pass on raw samples. */
QF_MUST_CHECK qf_rc pq_samples_run(const struct pq_leaf *leaf, struct pq_source *source,
                                   const struct pq_leaf_limits *limits, struct pq_poll *poll,
                                   struct qf_arena *arena, struct pq_leaf_result *result,
                                   struct qf_err *err);
/* run.c: pq_leaf_run with the poll in the caller's hands. */
QF_MUST_CHECK qf_rc pq_leaf_run_polled(const struct pq_leaf *leaf, struct pq_source *source,
                                       const struct pq_leaf_limits *limits, struct pq_poll *poll,
                                       struct qf_arena *arena, struct pq_leaf_result *ret_result,
                                       struct qf_err *err);

/* spec_check.c: the stages and numbers of a leaf make sense together. */
bool pq_leaf_valid(const struct pq_leaf *leaf);

enum pq_window_mode pq_stage_window_mode(const struct pq_stage *stage);
bool pq_stage_drops_names(const struct pq_stage *stage);

/* info() reads floats alone: a native histogram where a step of the first stage looks is QF_EEXEC. */
QF_MUST_CHECK qf_rc pq_leaf_check_series(const struct pq_leaf *leaf, const struct pq_series *series,
                                         struct qf_err *err);
static inline qf_rc pq_leaf_canceled(struct qf_err *err)
{
    return qf_err_set(err, QF_ECANCELED, "canceled");
}
static inline qf_rc pq_leaf_no_memory(struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT, "the leaf needs more memory than its limit");
}

#endif
