/* aggregates.c - aggregations: into the leaf where partials are exact, above it otherwise. */
#include <math.h>

#include "promql/plan/plan_int.h"

/* What a leaf answers for an aggregation, or PQ_LEAF_SERIES where partials would not do. */
static enum pq_leaf_kind partial_kind(enum pq_agg op)
{
    switch (op) {
    case PQ_AGG_SUM:
        return PQ_LEAF_SUM;
    case PQ_AGG_AVG:
        return PQ_LEAF_AVG;
    case PQ_AGG_COUNT:
        return PQ_LEAF_COUNT;
    case PQ_AGG_MIN:
        return PQ_LEAF_MIN;
    case PQ_AGG_MAX:
        return PQ_LEAF_MAX;
    case PQ_AGG_GROUP:
        return PQ_LEAF_GROUP;
    case PQ_AGG_STDDEV:
    case PQ_AGG_STDVAR:
        return PQ_LEAF_VARIANCE;
    case PQ_AGG_TOPK:
    case PQ_AGG_BOTTOMK:
    case PQ_AGG_LIMITK:
        return PQ_LEAF_CANDIDATES;
    case PQ_AGG_COUNT_VALUES:
        return PQ_LEAF_COUNT_VALUES;
    case PQ_AGG_QUANTILE:
    case PQ_AGG_LIMIT_RATIO:
    case PQ_AGG__COUNT:
        break;
    }
    return PQ_LEAF_SERIES;
}

static enum pq_plan_kind node_kind(enum pq_agg op)
{
    switch ((int)op) {
    case PQ_AGG_TOPK:
    case PQ_AGG_BOTTOMK:
    case PQ_AGG_LIMITK:
    case PQ_AGG_LIMIT_RATIO:
        return PQ_PLAN_SELECT;
    case PQ_AGG_COUNT_VALUES:
        return PQ_PLAN_COUNT_VALUES;
    default:
        return PQ_PLAN_AGGREGATE;
    }
}

/* Make the leaf below answer partials. A k that no shard could take is left to the node above. */
static bool push_down(struct pq_planner *p, const struct pq_expr *expr,
                      const struct pq_plan_node *node, struct pq_plan_node *child)
{
    struct pq_leaf *leaf = pq_leaf_open(p, child);
    enum pq_leaf_kind kind = partial_kind(expr->aggregate.op);
    double param = 0;

    if (!leaf || kind == PQ_LEAF_SERIES)
        return false;
    if (kind == PQ_LEAF_CANDIDATES && (!pq_plan_constant(p, expr->aggregate.param, &param) ||
                                       !(param >= 1 && param <= (double)UINT32_MAX)))
        return false;
    leaf->kind = kind;
    leaf->agg = expr->aggregate.op;
    leaf->grouping = node->grouping;
    leaf->grouping_count = node->grouping_count;
    leaf->without = expr->aggregate.without;
    leaf->param = param;
    leaf->label = node->label;
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
    enum pq_agg op = expr->aggregate.op;
    bool varies = expr->aggregate.param && op != PQ_AGG_COUNT_VALUES;
    struct pq_plan_node *node = pq_plan_node_new(p, node_kind(op), expr, grid, varies ? 2 : 1);
    struct pq_plan_node *child;

    if (!node)
        return NULL;
    node->agg = op;
    node->without = expr->aggregate.without;
    node->child_pos[0] = pq_unwrap(expr->aggregate.expr)->pos;
    if (varies)
        node->child_pos[1] = pq_unwrap(expr->aggregate.param)->pos;
    node->grouping = pq_sorted_names(p, expr->aggregate.grouping, expr->aggregate.grouping_count,
                                     &node->grouping_count);
    if (op == PQ_AGG_COUNT_VALUES && !count_values_label(p, expr, node))
        return NULL;
    if (op == PQ_AGG_COUNT_VALUES && loses_its_label(node))
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
