/* leaf.h - a BaseExpr leaf: the part of a query that one shard can answer alone.
 *
 * A leaf selects series and runs each of them through a short chain of stages; the last stage's
 * values leave per series, or go into a partial aggregation. Two kinds of stage look at time:
 *
 *     INSTANT   the newest sample of (t - range, t], for every step t of the stage's grid
 *     WINDOW    a range function over (t - range, t], for every step t
 *
 * The first stage reads the series' own samples. A WINDOW further up reads the values below it as
 * if they were samples: that is a subquery over the same series. FUNCTION and BINARY work value by
 * value on the grid of the stage below. SAMPLES stands alone and passes on the raw samples.
 *
 * A leaf is plain data. It travels as the bytes of proto/leaf_spec.proto. Running a leaf needs no
 * more than the leaf and the samples; the answer does not depend on how series are spread over
 * shards. */
#ifndef PROMQL_LEAF_H
#define PROMQL_LEAF_H

#include <stdatomic.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "promql/ast.h"
#include "promql/functions.h"
#include "promql/leaf_result.h"
#include "promql/source.h"

/* Evenly spaced times: start, start + step, ... */
struct pq_grid {
    int64_t start_ms;
    int64_t step_ms; /* > 0, also for a single point */
    uint64_t count;
};

/* More points than any query may ask of one grid (subqueries are finer than the query itself). */
#define PQ_GRID_MAX ((uint64_t)1 << 24)

static inline int64_t pq_grid_time(const struct pq_grid *grid, uint64_t index)
{
    return grid->start_ms + (int64_t)index * grid->step_ms;
}

enum pq_stage_kind {
    PQ_STAGE_INSTANT,
    PQ_STAGE_WINDOW,
    PQ_STAGE_FUNCTION,
    PQ_STAGE_BINARY,
    PQ_STAGE_SAMPLES,
    PQ_STAGE__COUNT,
};

/* What an INSTANT stage takes from the sample it finds. INFO is the timestamp of a sample that must
 * be a float: what info() wants to know of its info metrics. A WINDOW that does not take values is
 * asked for the presence of series alone: what it answers means nothing. SAMPLES that take ALL pass on
 * stale markers too. */
enum pq_take {
    PQ_TAKE_VALUE,
    PQ_TAKE_TIMESTAMP,
    PQ_TAKE_START_TIMESTAMP,
    PQ_TAKE_INFO,
    PQ_TAKE_ALL,
    PQ_TAKE__COUNT
};

#define PQ_STAGE_PARAMS_MAX 2

struct pq_stage {
    enum pq_stage_kind kind;
    struct pq_pos pos; /* where notes of this stage point to */

    /* INSTANT, WINDOW, SAMPLES: step t looks at time t - offset. */
    struct pq_grid grid;
    int64_t offset_ms;
    int64_t range_ms;    /* INSTANT: the lookback */
    int64_t lookback_ms; /* anchored and smoothed selectors look this far beyond the window */
    bool anchored, smoothed;
    enum pq_take take;

    /* WINDOW, FUNCTION: the function and its constant scalar arguments in order. */
    enum pq_function_id function;
    double params[PQ_STAGE_PARAMS_MAX];
    size_t param_count;

    /* BINARY: value op params[0], or params[0] op value. */
    enum pq_op op;
    bool scalar_left, return_bool;
};

struct pq_aggregation; /* promql/partial/partial.h */

#define PQ_LEAF_STAGES_MAX 64
#define PQ_LEAF_MATCHERS_MAX 1024
#define PQ_LEAF_GROUPING_MAX 1024

struct pq_leaf {
    uint32_t id; /* its index in the plan */
    const struct pq_leaf_kind *kind;

    /* What to read. Times are inclusive and cover all that any stage looks at. */
    struct pq_select select;
    bool start_timestamps; /* sample start times count for rate, resets and the like */
    /* Whether a native histogram is a reset is found out by looking at the sample before it, where
     * nothing says so: what Prometheus does for queries that need counts and sums alone, and may
     * warn of. */
    bool finds_resets;

    struct pq_stage *stages; /* bottom first */
    size_t stage_count;

    /* The aggregation whose partials it answers; NULL: it answers series or samples. */
    const struct pq_aggregation *agg;
    struct pq_pos agg_pos;         /* what is aggregated: where notes of the aggregation point to */
    const struct qf_str *grouping; /* sorted, no duplicates */
    size_t grouping_count;
    bool without;
    double param;        /* k of topk, bottomk, limitk */
    struct qf_str label; /* of count_values */
    /* Groups say which of their series came first (partial/rank.h): of instant queries. */
    bool ranks;

    /* Metric names that a stage drops are kept until the end of the query. Otherwise they go before
     * grouping, and two series that differ by name alone are an error at any step at which both
     * have a value. */
    bool delayed_name_removal;
};

/* The wire form: versioned protobuf bytes, equal for equal leaves (ids and positions aside). */
void pq_leaf_encode(const struct pq_leaf *leaf, struct qf_strbuf *buf);

/* Read a leaf back into @arena; strings are copied, regular expressions compiled (and freed with
 * the arena). QF_ECORRUPT for anything pq_leaf_encode does not write or that pq_leaf_run could not
 * run: bad order of stages, unknown functions, empty or huge grids. QF_EPROTO: another version.
 * QF_ELIMIT: the arena's budget is spent. */
QF_MUST_CHECK qf_rc pq_leaf_decode(struct qf_arena *arena, struct qf_str bytes,
                                   struct pq_leaf **ret_leaf, struct qf_err *err);

/* Same question: all but id and positions are equal. */
bool pq_leaf_equal(const struct pq_leaf *a, const struct pq_leaf *b);

/* The stages drop the metric name. */
bool pq_leaf_drops_names(const struct pq_leaf *leaf);

/* An equality matcher says the name: no two series differ by name alone. */
bool pq_select_pins_name(const struct pq_select *select);

/* The metric that an equality matcher names; nothing if none does. */
struct qf_str pq_select_metric(const struct pq_select *select);

/* The grid on which the leaf answers (that of its last time stage). */
const struct pq_grid *pq_leaf_grid(const struct pq_leaf *leaf);

/* "sum by (job) (rate({__name__="up"}[5m] offset 1m))" and the like, for explain and logs. */
void pq_leaf_print(struct qf_strbuf *buf, const struct pq_leaf *leaf);

struct pq_leaf_limits {
    /* Values that windows give, over all series and steps, and the samples of one window; 0: no
     * limit. What all shards together give is checked by the evaluation again, so that the number
     * of shards does not matter. */
    uint64_t samples_max;
    uint64_t series_max; /* 0: no limit */
    bool points_by_step; /* no limit: tell the points of each step too (leaf_reuse.h) */
};

/* Prometheus's words for samples_max. */
#define PQ_TOO_MANY_SAMPLES                                                                        \
    "query processing would load too many samples into memory in query execution"

/* Prometheus's words for two series that differed by name alone, and lost it. */
#define PQ_SAME_LABELSET "vector cannot contain metrics with the same labelset"

/* Run @leaf over one shard. @source is read to its end and not closed. The result lives in @arena.
 * @canceled (may be NULL) is looked at every few milliseconds of work, also inside one series.
 *
 * QF_ECANCELED, QF_ELIMIT (samples, series or arena), QF_EEXEC
 * (PromQL run-time errors with Prometheus's text), or what the source returned. */
QF_MUST_CHECK qf_rc pq_leaf_run(const struct pq_leaf *leaf, struct pq_source *source,
                                const struct pq_leaf_limits *limits, const atomic_bool *canceled,
                                struct qf_arena *arena, struct pq_leaf_result *ret_result,
                                struct qf_err *err);

#endif
