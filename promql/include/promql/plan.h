/* plan.h - from syntax tree to plan: BaseExpr leaves for the workers, ExecNodes above them.
 *
 *     parse -> pq_plan_new -> run plan->leaves[i] on every shard -> pq_eval_new(plan, readers)
 *
 * The plan borrows the syntax tree and lives in the same arena. It depends on the expression, the
 * times and the options alone, never on data or on the number of shards. */
#ifndef PROMQL_PLAN_H
#define PROMQL_PLAN_H

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "promql/ast.h"
#include "promql/leaf.h"

#define PQ_LOOKBACK_DEFAULT_MS (5 * 60 * 1000)
#define PQ_SUBQUERY_STEP_DEFAULT_MS (60 * 1000)

/* Zero is the server's default everywhere but for the times. */
struct pq_query_params {
    int64_t start_ms, end_ms; /* equal: one point */
    int64_t step_ms;          /* 0: an instant query at start_ms */
    int64_t lookback_ms;      /* 0: PQ_LOOKBACK_DEFAULT_MS */
    int64_t subquery_step_ms; /* of subqueries that name none; 0: PQ_SUBQUERY_STEP_DEFAULT_MS */

    /* Prometheus's feature flags. */
    bool delayed_name_removal;
    bool start_timestamps;

    /* Limits; 0: none. */
    uint64_t samples_max; /* values of one leaf, held at once, or of the result */
    uint64_t series_max;  /* series of one leaf or of the result */

    const atomic_bool *canceled; /* may be NULL; looked at before each regular expression */

    /* For comparison and debugging: leaves are selectors with their range function, no more. */
    bool no_pushdown;
};

#define PQ_PLAN_LEAVES_MAX 1024

struct pq_plan_node; /* promql/plan/node.h */

struct pq_plan {
    struct qf_str query;
    struct pq_query_params params; /* defaults filled in */
    enum pq_type type;             /* of the result; a range query of a scalar answers a matrix */
    bool instant;
    struct pq_leaf **leaves; /* leaves[i]->id == i */
    size_t leaf_count;
    struct pq_plan_node *root;
    struct qf_arena *arena;
};

/* Plan @expr, parsed from @query.
 *
 * QF_EINVAL: an expression that a range query cannot answer (a string, a range vector), a bad time
 * range, or a duration that came out as not positive: with Prometheus's text and position.
 * QF_EEXEC: an error that needs no data, such as a bad label name in label_replace.
 * QF_ELIMIT: too many leaves or points, or the arena's budget is spent. QF_ECANCELED. */
QF_MUST_CHECK qf_rc pq_plan_new(struct qf_arena *arena, const struct pq_expr *expr,
                                struct qf_str query, const struct pq_query_params *params,
                                struct pq_plan **ret_plan, struct qf_err *err);

/* The plan as an indented tree of nodes and a list of leaves. */
void pq_plan_explain(struct qf_strbuf *buf, const struct pq_plan *plan);

/* The same for programs: {"tree":{"node","detail"?,"leaf"?,"by"?,"without"?,"pos":[start,end],
 * "steps","children"?},"leaves":[{"id","kind","text","min_ms","max_ms","steps","step_ms"}]}. Positions
 * are bytes of the query's text. */
void pq_plan_json(struct qf_strbuf *buf, const struct pq_plan *plan);

#endif
