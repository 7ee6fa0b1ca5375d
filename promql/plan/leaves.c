/* leaves.c - leaves are drafted from selectors upwards and numbered once the tree stands. */
#include "promql/leaf/values.h"
#include "promql/plan/plan_int.h"

/* All a leaf's first stage can look at. Windows are open on the left, hence the + 1. */
static void select_times(const struct pq_stage *stage, struct pq_select *ret)
{
    int64_t before =
        stage->range_ms + (stage->anchored || stage->smoothed ? stage->lookback_ms : 0);

    if (stage->kind == PQ_STAGE_INSTANT)
        before = stage->range_ms;
    ret->min_ts = stage->grid.start_ms - stage->offset_ms - before + 1;
    ret->max_ts = pq_grid_end(&stage->grid) - stage->offset_ms;
    if (stage->smoothed)
        ret->max_ts += stage->lookback_ms;
}

struct pq_plan_node *pq_leaf_draft(struct pq_planner *p, const struct pq_expr *selector,
                                   const struct pq_grid *grid, struct pq_stage stage)
{
    struct pq_plan_node *node = pq_plan_node_new(p, PQ_PLAN_LEAF, selector, grid, 0);
    struct pq_leaf *leaf = QF_ARENA_NEW(p->arena, struct pq_leaf);

    if (!node || !leaf)
        return pq_planner_fail(p, QF_ELIMIT, "the plan is too large");
    leaf->kind = stage.kind == PQ_STAGE_SAMPLES ? &pq_leaf_samples : &pq_leaf_series;
    leaf->select.matchers = selector->vector.matchers;
    leaf->select.matcher_count = selector->vector.matcher_count;
    leaf->delayed_name_removal = p->plan->params.delayed_name_removal;
    leaf->start_timestamps = p->plan->params.start_timestamps;
    leaf->finds_resets = p->stats_only && !p->in_subquery;
    select_times(&stage, &leaf->select);
    node->leaf = leaf;
    if (!pq_leaf_push(p, leaf, stage))
        return pq_planner_fail(p, QF_ELIMIT, "the plan is too large");
    return node;
}

struct pq_leaf *pq_leaf_open(const struct pq_planner *p, const struct pq_plan_node *node)
{
    if (p->plan->params.no_pushdown)
        return NULL;
    return node->kind == PQ_PLAN_LEAF && node->leaf->kind == &pq_leaf_series ? node->leaf : NULL;
}

/* Series that lost their names clash wherever two with the same labels have a value. That is seen
 * when the leaf is done, so nothing may take values away in between. */
static bool hides_clash(const struct pq_leaf *leaf, const struct pq_stage *stage)
{
    bool filters =
        stage->kind == PQ_STAGE_BINARY && pq_op_compares(stage->op) && !stage->return_bool;

    return (filters || stage->kind == PQ_STAGE_WINDOW) && !leaf->delayed_name_removal &&
           pq_leaf_drops_names(leaf) && !pq_select_pins_name(&leaf->select);
}

bool pq_leaf_push(struct pq_planner *p, struct pq_leaf *leaf, struct pq_stage stage)
{
    struct pq_stage *grown;

    if (leaf->stage_count == PQ_LEAF_STAGES_MAX || hides_clash(leaf, &stage))
        return false;
    grown = qf_arena_grow(p->arena, leaf->stages, leaf->stage_count, leaf->stage_count + 1,
                          sizeof(stage));
    if (!grown)
        return false;
    grown[leaf->stage_count++] = stage;
    leaf->stages = grown;
    return true;
}

static struct pq_leaf *number(struct pq_planner *p, struct pq_leaf *leaf)
{
    struct pq_plan *plan = p->plan;

    /* Raw samples are handed over as they are read: each reader has its own. */
    for (size_t i = 0; i < plan->leaf_count && leaf->kind != &pq_leaf_samples; i++)
        if (pq_leaf_equal(plan->leaves[i], leaf)) {
            /* Notes point to the last place. */
            for (size_t s = 0; s < leaf->stage_count; s++)
                plan->leaves[i]->stages[s].pos = leaf->stages[s].pos;
            plan->leaves[i]->agg_pos = leaf->agg_pos;
            return plan->leaves[i];
        }
    if (plan->leaf_count == PQ_PLAN_LEAVES_MAX)
        return pq_planner_fail(p, QF_ELIMIT, "the query has more than %d different selectors",
                               PQ_PLAN_LEAVES_MAX);
    if (plan->leaf_count == p->leaf_capacity) {
        size_t capacity = p->leaf_capacity ? p->leaf_capacity * 2 : 8;
        void *grown = qf_arena_grow(p->arena, plan->leaves, p->leaf_capacity, capacity,
                                    sizeof(*plan->leaves));

        if (!grown)
            return pq_planner_fail(p, QF_ELIMIT, "the plan is too large");
        plan->leaves = grown;
        p->leaf_capacity = capacity;
    }
    leaf->id = (uint32_t)plan->leaf_count;
    plan->leaves[plan->leaf_count++] = leaf;
    return leaf;
}

void pq_leaves_number(struct pq_planner *p, struct pq_plan_node *root)
{
    if (root->leaf)
        root->leaf = number(p, root->leaf);
    for (size_t i = 0; i < root->child_count && p->rc == QF_OK; i++)
        pq_leaves_number(p, root->children[i]);
}
