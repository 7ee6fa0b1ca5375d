/* calls.c - function calls, all but range functions and info(). */
#include "promql/func/range.h"
#include "promql/partial/partial.h"
#include "promql/plan/plan_int.h"

static struct pq_plan_node *time_vector(struct pq_planner *p, const struct pq_grid *grid)
{
    struct pq_plan_node *vector = pq_plan_node_new(p, PQ_PLAN_TO_VECTOR, NULL, grid, 1);

    if (vector)
        vector->children[0] = pq_plan_node_new(p, PQ_PLAN_TIME, NULL, grid, 0);
    return vector;
}

static struct pq_plan_node *plan_function(struct pq_planner *p, const struct pq_expr *call,
                                          const struct pq_grid *grid)
{
    size_t count = call->call.arg_count;
    struct pq_stage stage = { .kind = PQ_STAGE_FUNCTION,
                              .pos = call->pos,
                              .function = call->call.function->id };
    struct pq_plan_node *child, *node;
    bool constant = count <= 1 + PQ_STAGE_PARAMS_MAX;

    child = count == 0 ? time_vector(p, grid) : pq_plan_expr(p, call->call.args[0], grid);
    if (!child)
        return NULL;
    for (size_t i = 1; i < count && constant; i++)
        constant = pq_plan_constant(p, call->call.args[i], &stage.params[stage.param_count++]);
    if (call->call.function->leaf && pq_leaf_open(p, child) && constant &&
        pq_leaf_push(p, child->leaf, stage)) {
        child->drops_names = !call->call.function->keeps_name;
        return child;
    }
    node = pq_plan_node_new(p, PQ_PLAN_FUNCTION, call, grid, count ? count : 1);
    if (!node)
        return NULL;
    node->function = stage.function;
    node->children[0] = child;
    for (size_t i = 1; i < count; i++)
        node->children[i] = pq_plan_expr(p, call->call.args[i], grid);
    node->drops_names = !call->call.function->keeps_name;
    return node;
}

/* timestamp() and start_timestamp() of a selector look at its samples, not at the steps. */
static struct pq_plan_node *plan_timestamp(struct pq_planner *p, const struct pq_expr *call,
                                           const struct pq_grid *grid)
{
    const struct pq_expr *arg = pq_unwrap(call->call.args[0]);
    bool start = call->call.function->id == PQ_FN_START_TIMESTAMP;
    struct pq_plan_node *child = pq_plan_expr(p, arg, grid), *node;

    if (!child)
        return NULL;
    if (arg->kind == PQ_VECTOR_SELECTOR && !arg->vector.smoothed) {
        struct pq_plan_node *leaf = child->kind == PQ_PLAN_REPEAT ? child->children[0] : child;

        leaf->leaf->stages[0].take = start ? PQ_TAKE_START_TIMESTAMP : PQ_TAKE_TIMESTAMP;
        leaf->drops_names = true;
        return child;
    }
    if (start) /* only samples have one */
        return pq_plan_node_new(p, PQ_PLAN_EMPTY, call, grid, 0);
    node = pq_plan_node_new(p, PQ_PLAN_TIMESTAMP, call, grid, 1);
    if (!node)
        return NULL;
    node->children[0] = child;
    node->drops_names = true;
    return node;
}

/* The labels absent() can know: the first equality matcher of a name sets it, unless a further
 * matcher of that name follows. What stands before it does not matter. */
static struct qf_labels absent_labels(struct pq_planner *p, const struct pq_expr *selector)
{
    size_t count = selector->vector.matcher_count, kept = 0;
    struct qf_label *items = QF_ARENA_ARRAY(p->arena, struct qf_label, count);

    for (size_t i = 0; i < count && items; i++) {
        const struct pq_matcher *m = &selector->vector.matchers[i];
        bool known = m->type == PQ_MATCH_EQUAL;

        for (size_t j = 0; j < count; j++) {
            const struct pq_matcher *other = &selector->vector.matchers[j];

            if (j != i && (j > i || other->type == PQ_MATCH_EQUAL))
                known &= !qf_str_eq(other->name, m->name);
        }
        if (known && !qf_str_is(m->name, QF_METRIC_NAME))
            items[kept++] = (struct qf_label){ m->name, m->value };
    }
    return items ? qf_labels_normalize(items, kept) : (struct qf_labels){ 0 };
}

/* Only whether there is any series matters: that travels as one group per shard. */
static void any_series(struct pq_planner *p, struct pq_plan_node *child)
{
    struct pq_leaf *leaf = pq_leaf_open(p, child);

    if (!leaf)
        return;
    leaf->agg = &pq_aggregation_group;
    leaf->kind = leaf->agg->kind;
    child->drops_names = false;
}

static struct pq_plan_node *plan_absent(struct pq_planner *p, const struct pq_expr *call,
                                        const struct pq_grid *grid)
{
    const struct pq_expr *arg = pq_unwrap(call->call.args[0]);
    struct pq_plan_node *node = pq_plan_node_new(p, PQ_PLAN_ABSENT, call, grid, 1), *child;

    if (!node)
        return NULL;
    child = pq_function_arg_type(call->call.function, 0) == PQ_TYPE_MATRIX
                ? pq_plan_range_call(p, call, grid)
                : pq_plan_expr(p, arg, grid);
    if (!child)
        return NULL;
    if (arg->kind == PQ_MATRIX_SELECTOR)
        arg = arg->matrix.selector;
    if (arg->kind == PQ_VECTOR_SELECTOR)
        node->labels = absent_labels(p, arg);
    any_series(p, child);
    node->children[0] = child;
    return node;
}

/* What follows the vector: any number of strings. NULL after an error. */
static const struct qf_str *string_args(struct pq_planner *p, const struct pq_expr *call)
{
    size_t count = call->call.arg_count - 1;
    struct qf_str *strings = QF_ARENA_ARRAY(p->arena, struct qf_str, count);

    if (!strings)
        return pq_planner_fail(p, QF_ELIMIT, "the plan is too large");
    for (size_t i = 0; i < count; i++)
        strings[i] = pq_unwrap(call->call.args[i + 1])->string.value;
    return strings;
}

static struct pq_plan_node *plan_label(struct pq_planner *p, const struct pq_expr *call,
                                       const struct pq_grid *grid)
{
    const struct pq_label_function *label = pq_kernels_of(call->call.function->id)->label;
    struct pq_plan_node *node = pq_plan_node_new(p, PQ_PLAN_LABEL, call, grid, 1);
    const struct qf_str *strings = string_args(p, call);

    if (!node || !strings)
        return NULL;
    node->function = call->call.function->id;
    if (p->plan->params.canceled &&
        atomic_load_explicit(p->plan->params.canceled, memory_order_relaxed))
        return pq_planner_fail(p, QF_ECANCELED, "query was canceled");
    node->label_call =
        (struct pq_label_call){ .strings = strings, .count = call->call.arg_count - 1 };
    p->rc = label->prepare(&node->label_call, p->arena, p->err);
    if (p->rc != QF_OK)
        return NULL;
    node->children[0] = pq_plan_expr(p, call->call.args[0], grid);
    return node;
}

static struct pq_plan_node *plan_sort(struct pq_planner *p, const struct pq_expr *call,
                                      const struct pq_grid *grid)
{
    struct pq_plan_node *node = pq_plan_node_new(p, PQ_PLAN_SORT, call, grid, 1);

    if (!node)
        return NULL;
    node->strings = string_args(p, call);
    node->string_count = call->call.arg_count - 1;
    node->function = call->call.function->id;
    if (node->strings)
        node->children[0] = pq_plan_expr(p, call->call.args[0], grid);
    return node;
}

/* histogram_quantile(q, v), histogram_fraction(lower, upper, v), histogram_quantiles(v, "label",
 * q...), histogram_count(v) and the like: child 0 is the vector, the scalars follow. */
static struct pq_plan_node *plan_buckets(struct pq_planner *p, const struct pq_expr *call,
                                         const struct pq_grid *grid)
{
    struct pq_plan_node *node = pq_plan_node_new(p, PQ_PLAN_BUCKETS, call, grid, 0);
    size_t count = call->call.arg_count, next = 1;
    bool outer = p->stats_only;

    if (!node)
        return NULL;
    node->children = QF_ARENA_ARRAY(p->arena, struct pq_plan_node *, count);
    node->child_pos = QF_ARENA_ARRAY(p->arena, struct pq_pos, count);
    if (!node->children || !node->child_pos)
        return pq_planner_fail(p, QF_ELIMIT, "the plan is too large");
    node->function = call->call.function->id;
    p->stats_only = call->call.function->stats;
    for (size_t i = 0; i < count && p->rc == QF_OK; i++) {
        const struct pq_expr *arg = pq_unwrap(call->call.args[i]);
        size_t child = pq_expr_type(arg) == PQ_TYPE_VECTOR ? 0 : next;

        if (pq_expr_type(arg) == PQ_TYPE_STRING) {
            node->label = arg->string.value;
            continue;
        }
        node->children[child] = pq_plan_expr(p, arg, grid);
        node->child_pos[child] = child == 0 ? arg->pos : call->call.args[i]->pos;
        next += child != 0;
    }
    p->stats_only = outer;
    node->child_count = next;
    node->drops_names = !call->call.function->keeps_name;
    return node;
}

static struct pq_plan_node *plan_children(struct pq_planner *p, const struct pq_expr *call,
                                          const struct pq_grid *grid, enum pq_plan_kind kind)
{
    struct pq_plan_node *node = pq_plan_node_new(p, kind, call, grid, call->call.arg_count);

    if (!node)
        return NULL;
    node->function = call->call.function->id;
    for (size_t i = 0; i < call->call.arg_count; i++)
        node->children[i] = pq_plan_expr(p, call->call.args[i], grid);
    return node;
}

struct pq_plan_node *pq_plan_call(struct pq_planner *p, const struct pq_expr *call,
                                  const struct pq_grid *grid)
{
    switch (call->call.function->kind) {
    case PQ_CLASS_VALUE:
        return plan_function(p, call, grid);
    case PQ_CLASS_RANGE:
        return pq_plan_range_call(p, call, grid);
    case PQ_CLASS_ABSENT:
        return plan_absent(p, call, grid);
    case PQ_CLASS_LABEL:
        return plan_label(p, call, grid);
    case PQ_CLASS_SORT:
        return plan_sort(p, call, grid);
    case PQ_CLASS_HISTOGRAM:
    case PQ_CLASS_BUCKETS:
        return plan_buckets(p, call, grid);
    case PQ_CLASS_SCALARS:
        return plan_children(p, call, grid, PQ_PLAN_SCALAR_OP);
    case PQ_CLASS_TIME:
        return pq_plan_node_new(p, PQ_PLAN_TIME, call, grid, 0);
    case PQ_CLASS_TIMESTAMP:
        return plan_timestamp(p, call, grid);
    case PQ_CLASS_TO_SCALAR:
        return plan_children(p, call, grid, PQ_PLAN_TO_SCALAR);
    case PQ_CLASS_TO_VECTOR:
        return plan_children(p, call, grid, PQ_PLAN_TO_VECTOR);
    case PQ_CLASS_INFO:
        return pq_plan_info(p, call, grid);
    case PQ_CLASS_CONSTANT: /* rewrite_constant.c made a number of it */
        break;
    }
    return pq_planner_fail(p, QF_EUNSUPPORTED, "function %s is not known to the planner",
                           call->call.function->name);
}
