/* aggregates.c - aggregations: into the leaf where partials are exact, above it otherwise. */
#include <math.h>

#include "promql/partial/partial.h"
#include "promql/plan/plan_int.h"

static enum pq_plan_kind node_kind(const struct pq_aggregation *agg)
{
    switch (agg->shape) {
    case PQ_AGG_FOLDS:
        return PQ_PLAN_AGGREGATE;
    case PQ_AGG_SELECTS:
        return PQ_PLAN_SELECT;
    case PQ_AGG_TALLIES:
        return PQ_PLAN_COUNT_VALUES;
    }
    return PQ_PLAN__COUNT;
}

/* Series of several names that go may become one, at the place of the first: the leaf, which has both,
 * would offer them to its heaps in another order than the node above. */
static bool joins_series(const struct pq_leaf *leaf)
{
    return pq_leaf_drops_names(leaf) && !pq_select_pins_name(&leaf->select);
}

/* A k that no shard could take is left to the node above. */
static bool constant_k(struct pq_planner *p, const struct pq_expr *expr, double *ret_k)
{
    return pq_plan_constant(p, expr->aggregate.param, ret_k) && *ret_k >= 1 &&
           *ret_k <= (double)UINT32_MAX;
}

/* Make the leaf below answer partials. */
static bool push_down(struct pq_planner *p, const struct pq_expr *expr,
                      const struct pq_plan_node *node, struct pq_plan_node *child)
{
    struct pq_leaf *leaf = pq_leaf_open(p, child);
    const struct pq_aggregation *agg = pq_aggregation_get(expr->aggregate.op);
    double param = 0;

    if (!leaf || !agg->kind)
        return false;
    if (agg->shape == PQ_AGG_SELECTS && (joins_series(leaf) || !constant_k(p, expr, &param)))
        return false;
    leaf->kind = agg->kind;
    leaf->agg = agg;
    leaf->agg_pos = agg->shape == PQ_AGG_SELECTS ? node->pos : node->child_pos[0];
    leaf->grouping = node->grouping;
    leaf->grouping_count = node->grouping_count;
    leaf->without = expr->aggregate.without;
    leaf->param = param;
    leaf->label = node->label;
    leaf->ranks = p->plan->instant && agg->shape != PQ_AGG_SELECTS;
    return true;
}

static bool count_values_label(struct pq_planner *p, const struct pq_expr *expr,
                               struct pq_plan_node *node)
{
    node->label = pq_unwrap(expr->aggregate.param)->string.value;
    if (!pq_label_name_valid(node->label)) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf quoted = QF_STRBUF_INIT;

        qf_strbuf_quote(&quoted, node->label);
        return pq_planner_fail(p, QF_EEXEC, "invalid label name %s", qf_strbuf_cstr(&quoted));
    }
    return true;
}

/* The label is set before series are grouped: one that without() takes away again leaves counts. */
static bool loses_its_label(const struct pq_plan_node *node)
{
    bool lost = qf_str_is(node->label, QF_METRIC_NAME);

    for (size_t i = 0; i < node->grouping_count; i++)
        lost |= qf_str_eq(node->grouping[i], node->label);
    return lost && node->without;
}

static struct pq_plan_node *plan_count(struct pq_planner *p, const struct pq_expr *expr,
                                       const struct pq_grid *grid)
{
    struct pq_expr *count = QF_ARENA_NEW(p->arena, struct pq_expr);

    if (!count)
        return pq_planner_fail(p, QF_ELIMIT, "the plan is too large");
    *count = *expr;
    count->aggregate.op = PQ_AGG_COUNT;
    count->aggregate.param = NULL;
    return pq_plan_aggregate(p, count, grid);
}

struct pq_plan_node *pq_plan_aggregate(struct pq_planner *p, const struct pq_expr *expr,
                                       const struct pq_grid *grid)
{
    const struct pq_aggregation *agg = pq_aggregation_get(expr->aggregate.op);
    bool varies = pq_agg_param(agg->id) == PQ_TYPE_SCALAR;
    struct pq_plan_node *node = pq_plan_node_new(p, node_kind(agg), expr, grid, varies ? 2 : 1);
    struct pq_plan_node *child;

    if (!node)
        return NULL;
    node->agg = agg->id;
    node->without = expr->aggregate.without;
    node->child_pos[0] = expr->aggregate.expr->pos;
    if (varies)
        node->child_pos[1] = pq_unwrap(expr->aggregate.param)->pos;
    node->grouping = pq_sorted_names(p, expr->aggregate.grouping, expr->aggregate.grouping_count,
                                     &node->grouping_count);
    if (agg->shape == PQ_AGG_TALLIES && !count_values_label(p, expr, node))
        return NULL;
    if (agg->shape == PQ_AGG_TALLIES && loses_its_label(node))
        return plan_count(p, expr, grid);
    child = pq_plan_expr(p, expr->aggregate.expr, grid);
    if (!child)
        return NULL;
    if (push_down(p, expr, node, child) && node->kind != PQ_PLAN_SELECT)
        return child;
    node->children[0] = child;
    if (varies)
        node->children[1] = pq_plan_expr(p, expr->aggregate.param, grid);
    return node;
}
