/* figures.c - what each node of a plan took. */
#include "promql/eval/exec.h"

/* A node may be wrapped to drop names: the wrapper's time is the node's. */
static const struct pq_exec *unwrap(const struct pq_exec *exec)
{
    while (exec && exec->child_count == 1 && exec->children[0] &&
           exec->children[0]->plan == exec->plan)
        exec = exec->children[0];
    return exec;
}

struct walk {
    struct pq_node_figures *figures;
    size_t max, count;
};

/* As deep as the expression, which the parser bounds. @exec is NULL for a node that nobody asks. */
static void visit(struct walk *walk, const struct pq_plan_node *node, const struct pq_exec *exec)
{
    const struct pq_exec *inner = unwrap(exec);
    struct pq_node_figures figures = { 0 };
    size_t at = walk->count++;
    uint64_t below_ns = 0;

    for (size_t i = 0; i < node->child_count; i++) {
        const struct pq_exec *child = inner && i < inner->child_count ? inner->children[i] : NULL;

        below_ns += child ? child->spent_ns : 0;
        visit(walk, node->children[i], child);
    }
    if (exec) {
        figures.self_ns = exec->spent_ns > below_ns ? exec->spent_ns - below_ns : 0;
        figures.series = exec->set.count;
        figures.blocks = exec->blocks;
    }
    if (at < walk->max)
        walk->figures[at] = figures;
}

size_t pq_eval_figures(const struct pq_eval *eval, struct pq_node_figures *figures, size_t max)
{
    struct walk walk = { .figures = figures, .max = max };
    const struct pq_plan_node *root = eval->plan->root;

    if (root->kind == PQ_PLAN_SUBQUERY) { /* is the values of its expression */
        if (max > 0)
            figures[0] = (struct pq_node_figures){ 0 };
        walk.count = 1;
        root = root->children[0];
    }
    visit(&walk, root, eval->root);
    return walk.count;
}
