/* plan.c - the planner's way down the syntax tree. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "promql/plan/plan_int.h"

static bool check_params(struct pq_planner *p, const struct pq_expr *expr)
{
    struct pq_query_params *params = &p->plan->params;
    enum pq_type type = pq_expr_type(expr);

    if (params->lookback_ms == 0)
        params->lookback_ms = PQ_LOOKBACK_DEFAULT_MS;
    if (params->subquery_step_ms == 0)
        params->subquery_step_ms = PQ_SUBQUERY_STEP_DEFAULT_MS;
    if (params->step_ms < 0 || params->lookback_ms < 0 || params->subquery_step_ms < 0)
        return pq_planner_fail(p, QF_EINVAL, "step, lookback and resolution must be positive");
    if (params->end_ms < params->start_ms)
        return pq_planner_fail(p, QF_EINVAL, "end timestamp must not be before start time");
    if (params->step_ms == 0 && params->end_ms != params->start_ms)
        return pq_planner_fail(p, QF_EINVAL, "a range query needs a step");
    p->plan->instant = params->step_ms == 0;
    if (!p->plan->instant && type != PQ_TYPE_VECTOR && type != PQ_TYPE_SCALAR)
        return pq_planner_fail(
            p, QF_EINVAL,
            "invalid expression type \"%s\" for range query, must be Scalar or instant Vector",
            pq_type_text(type));
    p->plan->type = p->plan->instant ? type : PQ_TYPE_MATRIX;
    return true;
}

static struct pq_plan_node *plan_string(struct pq_planner *p, const struct pq_expr *expr,
                                        const struct pq_grid *grid)
{
    struct pq_plan_node *node = pq_plan_node_new(p, PQ_PLAN_STRING, expr, grid, 0);

    if (node)
        node->string = expr->string.value;
    return node;
}

static struct pq_plan_node *plan_root(struct pq_planner *p, const struct pq_expr *expr,
                                      const struct pq_grid *grid)
{
    switch (pq_expr_type(expr)) {
    case PQ_TYPE_STRING:
        return plan_string(p, pq_unwrap(expr), grid);
    case PQ_TYPE_MATRIX:
        return pq_plan_bare_matrix(p, pq_unwrap(expr), grid);
    case PQ_TYPE_NONE:
    case PQ_TYPE_SCALAR:
    case PQ_TYPE_VECTOR:
        break;
    }
    return pq_plan_expr(p, expr, grid);
}

qf_rc pq_plan_new(struct qf_arena *arena, const struct pq_expr *expr, struct qf_str query,
                  const struct pq_query_params *params, struct pq_plan **ret_plan,
                  struct qf_err *err)
{
    struct pq_planner p = { .arena = arena, .err = err };
    struct pq_plan *plan = QF_ARENA_NEW(arena, struct pq_plan);
    struct pq_grid grid;

    if (!plan)
        return qf_err_set(err, QF_ELIMIT, "the plan is too large");
    *plan = (struct pq_plan){ .query = query, .params = *params, .arena = arena };
    p.plan = plan;
    if (!check_params(&p, expr))
        return p.rc;
    grid = (struct pq_grid){ .start_ms = params->start_ms, .step_ms = 1, .count = 1 };
    if (!plan->instant) {
        grid.step_ms = params->step_ms;
        grid.count = (uint64_t)((params->end_ms - params->start_ms) / params->step_ms) + 1;
    }
    if (grid.count > PQ_GRID_MAX)
        return qf_err_set(err, QF_ELIMIT, "the query has more than %llu steps",
                          (unsigned long long)PQ_GRID_MAX);
    plan->root = plan_root(&p, expr, &grid);
    if (plan->root && p.rc == QF_OK)
        pq_leaves_number(&p, plan->root);
    if (p.rc == QF_OK && (!plan->root || qf_arena_failed(arena)))
        pq_planner_fail(&p, QF_ELIMIT, "the plan is too large");
    if (p.rc == QF_OK)
        *ret_plan = plan;
    return p.rc;
}

void *pq_planner_fail(struct pq_planner *p, qf_rc rc, const char *fmt, ...)
{
    char text[QF_ERR_MSG_SIZE];
    va_list args;

    if (p->rc != QF_OK)
        return NULL;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    p->rc = qf_err_set(p->err, rc, "%s", text);
    return NULL;
}

struct pq_plan_node *pq_plan_node_new(struct pq_planner *p, enum pq_plan_kind kind,
                                      const struct pq_expr *expr, const struct pq_grid *grid,
                                      size_t child_count)
{
    struct pq_plan_node *node = QF_ARENA_NEW(p->arena, struct pq_plan_node);
    struct pq_plan_node **children = QF_ARENA_ARRAY(p->arena, struct pq_plan_node *, child_count);
    struct pq_pos *child_pos = QF_ARENA_ARRAY(p->arena, struct pq_pos, child_count);

    if (!node || !children || !child_pos)
        return pq_planner_fail(p, QF_ELIMIT, "the plan is too large");
    *node = (struct pq_plan_node){ .kind = kind,
                                   .grid = *grid,
                                   .children = children,
                                   .child_pos = child_pos,
                                   .child_count = child_count };
    if (expr)
        node->pos = expr->pos;
    return node;
}

const char *pq_plan_kind_text(enum pq_plan_kind kind)
{
    static const char *const texts[] = {
#define PQ_PLAN_TEXT(kind, name) [PQ_PLAN_##kind] = name,
        PQ_PLAN_KINDS(PQ_PLAN_TEXT)
#undef PQ_PLAN_TEXT
    };

    return (size_t)kind < QF_COUNT_OF(texts) ? texts[kind] : "";
}

static struct pq_plan_node *plan_selector(struct pq_planner *p, const struct pq_expr *expr,
                                          const struct pq_grid *grid)
{
    struct pq_times times;
    struct pq_stage stage = {
        .kind = PQ_STAGE_INSTANT,
        .pos = expr->pos,
        .range_ms = p->plan->params.lookback_ms,
        .lookback_ms = p->plan->params.lookback_ms,
        .smoothed = expr->vector.smoothed,
        .anchored = expr->vector.anchored,
    };

    if (!pq_plan_shift(p, &expr->vector.shift, &times))
        return NULL;
    stage.grid = *grid;
    stage.offset_ms = times.offset_ms;
    /* Under a fixed time the caller asks for one step; normal form, so that equal leaves are. */
    if (times.fixed) {
        stage.grid = (struct pq_grid){ times.fixed_ms, 1, 1 };
        stage.offset_ms = 0;
    }
    return pq_leaf_draft(p, expr, grid, stage);
}

/* Vector and scalar, on either side. */
static struct pq_plan_node *plan_scalar_op(struct pq_planner *p, const struct pq_expr *expr,
                                           const struct pq_grid *grid)
{
    bool left = pq_expr_type(expr->binary.lhs) == PQ_TYPE_SCALAR;
    const struct pq_expr *scalar = left ? expr->binary.lhs : expr->binary.rhs;
    const struct pq_expr *vector = left ? expr->binary.rhs : expr->binary.lhs;
    enum pq_op op = expr->binary.op;
    bool trims = op == PQ_OP_TRIM_UPPER || op == PQ_OP_TRIM_LOWER;
    bool drops = (!pq_op_keeps_name(op) || expr->binary.return_bool) &&
                 pq_expr_type(vector) == PQ_TYPE_VECTOR;
    struct pq_plan_node *child = pq_plan_expr(p, vector, grid), *node;
    struct pq_stage stage = { .kind = PQ_STAGE_BINARY,
                              .pos = expr->pos,
                              .op = op,
                              .scalar_left = left,
                              .return_bool = expr->binary.return_bool,
                              .param_count = 1 };
    struct pq_leaf *leaf;

    if (!child)
        return NULL;
    if (trims && pq_expr_type(vector) == PQ_TYPE_SCALAR)
        return pq_planner_fail(p, QF_EEXEC, "operator \"%s\" not allowed for Scalar operations",
                               pq_op_text(op));
    leaf = pq_leaf_open(p, child);
    if (leaf && !trims && pq_plan_constant(p, scalar, &stage.params[0]) &&
        pq_leaf_push(p, leaf, stage)) {
        child->drops_names |= drops;
        return child;
    }
    node = pq_plan_node_new(p, PQ_PLAN_SCALAR_OP, expr, grid, 2);
    if (!node)
        return NULL;
    node->op = op;
    /* Of two scalars the left one is taken for the vector. */
    node->scalar_left = pq_expr_type(expr->binary.rhs) == PQ_TYPE_VECTOR;
    /* Scalars compare with bool only, whatever the flag says. */
    node->return_bool = expr->binary.return_bool || pq_expr_type(expr) == PQ_TYPE_SCALAR;
    node->children[left ? 1 : 0] = child;
    node->children[left ? 0 : 1] = pq_plan_expr(p, scalar, grid);
    node->drops_names = drops;
    return node;
}

static struct pq_plan_node *plan_binary(struct pq_planner *p, const struct pq_expr *expr,
                                        const struct pq_grid *grid)
{
    enum pq_op op = expr->binary.op;
    bool set = op == PQ_OP_AND || op == PQ_OP_OR || op == PQ_OP_UNLESS;
    struct pq_plan_node *node;

    if (pq_expr_type(expr->binary.lhs) == PQ_TYPE_SCALAR ||
        pq_expr_type(expr->binary.rhs) == PQ_TYPE_SCALAR)
        return plan_scalar_op(p, expr, grid);
    node = pq_plan_node_new(p, set ? PQ_PLAN_SET : PQ_PLAN_BINARY, expr, grid, 2);
    if (!node)
        return NULL;
    node->children[0] = pq_plan_expr(p, expr->binary.lhs, grid);
    node->children[1] = pq_plan_expr(p, expr->binary.rhs, grid);
    node->op = op;
    node->return_bool = expr->binary.return_bool;
    node->matching = expr->binary.matching;
    node->drops_names = expr->binary.return_bool;
    if (expr->binary.matching)
        node->grouping = pq_sorted_names(p, expr->binary.matching->labels,
                                         expr->binary.matching->label_count, &node->grouping_count);
    return node;
}

/* -v is -1 * v, bit for bit. */
static struct pq_plan_node *plan_negation(struct pq_planner *p, const struct pq_expr *expr,
                                          const struct pq_grid *grid)
{
    struct pq_plan_node *child = pq_plan_expr(p, expr->unary.expr, grid), *node, *number;
    struct pq_stage stage = { .kind = PQ_STAGE_BINARY,
                              .pos = expr->pos,
                              .op = PQ_OP_MUL,
                              .params = { -1 },
                              .param_count = 1 };
    bool drops = pq_expr_type(expr) == PQ_TYPE_VECTOR;

    if (!child || expr->unary.op == PQ_OP_ADD)
        return child;
    if (pq_leaf_open(p, child) && pq_leaf_push(p, child->leaf, stage)) {
        child->drops_names |= drops;
        return child;
    }
    node = pq_plan_node_new(p, PQ_PLAN_SCALAR_OP, expr, grid, 2);
    number = pq_plan_node_new(p, PQ_PLAN_NUMBER, NULL, grid, 0);
    if (!node || !number)
        return NULL;
    number->number = -1;
    node->op = PQ_OP_MUL;
    node->children[0] = child;
    node->children[1] = number;
    node->drops_names = drops;
    return node;
}

static struct pq_plan_node *plan_kind(struct pq_planner *p, const struct pq_expr *expr,
                                      const struct pq_grid *grid)
{
    switch (expr->kind) {
    case PQ_VECTOR_SELECTOR:
        return plan_selector(p, expr, grid);
    case PQ_CALL:
        return pq_plan_call(p, expr, grid);
    case PQ_AGGREGATE:
        return pq_plan_aggregate(p, expr, grid);
    case PQ_BINARY:
        return plan_binary(p, expr, grid);
    case PQ_UNARY:
        return plan_negation(p, expr, grid);
    case PQ_NUMBER:
    case PQ_STRING:
    case PQ_MATRIX_SELECTOR:
    case PQ_SUBQUERY:
    case PQ_PAREN:
    case PQ_DURATION_EXPR:
        break;
    }
    return pq_planner_fail(p, QF_EINTERNAL, "an expression of this kind has no value by step");
}

struct pq_plan_node *pq_plan_expr(struct pq_planner *p, const struct pq_expr *expr,
                                  const struct pq_grid *grid)
{
    struct pq_grid once = { grid->start_ms, grid->step_ms, 1 };
    struct pq_plan_node *node;
    double number;

    expr = pq_unwrap(expr);
    if (p->rc != QF_OK)
        return NULL;
    if (pq_expr_type(expr) == PQ_TYPE_SCALAR && pq_plan_constant(p, expr, &number)) {
        node = pq_plan_node_new(p, PQ_PLAN_NUMBER, expr, grid, 0);
        if (node)
            node->number = number;
        return node;
    }
    if (grid->count == 1 || !pq_plan_invariant(expr))
        return plan_kind(p, expr, grid);
    node = pq_plan_node_new(p, PQ_PLAN_REPEAT, NULL, grid, 1);
    if (!node)
        return NULL;
    node->pos = expr->pos;
    node->children[0] = plan_kind(p, expr, &once);
    return node;
}

static int compare_names(const void *a, const void *b)
{
    return qf_str_cmp(*(const struct qf_str *)a, *(const struct qf_str *)b);
}

const struct qf_str *pq_sorted_names(struct pq_planner *p, const struct qf_str *names, size_t count,
                                     size_t *ret_count)
{
    struct qf_str *sorted = QF_ARENA_ARRAY(p->arena, struct qf_str, count);
    size_t kept = 0;

    *ret_count = 0;
    if (!sorted)
        return pq_planner_fail(p, QF_ELIMIT, "the plan is too large");
    for (size_t i = 0; i < count; i++)
        sorted[i] = names[i];
    qsort(sorted, count, sizeof(*sorted), compare_names);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || !qf_str_eq(sorted[kept - 1], sorted[i]))
            sorted[kept++] = sorted[i];
    *ret_count = kept;
    return sorted;
}
