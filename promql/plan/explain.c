/* explain.c - plans for people and programs to read. */
#include <inttypes.h>

#include "promql/parse.h"
#include "promql/plan/plan_int.h"

static void node_details(struct qf_strbuf *buf, const struct pq_plan_node *node)
{
    switch (node->kind) {
    case PQ_PLAN_NUMBER:
        qf_strbuf_printf(buf, " %.17g", node->number);
        break;
    case PQ_PLAN_LEAF:
        qf_strbuf_printf(buf, " %" PRIu32, node->leaf->id);
        break;
    case PQ_PLAN_FUNCTION:
    case PQ_PLAN_WINDOW:
    case PQ_PLAN_BUCKETS:
    case PQ_PLAN_SORT:
    case PQ_PLAN_LABEL:
        qf_strbuf_printf(buf, " %s", pq_function_get(node->function)->name);
        break;
    case PQ_PLAN_AGGREGATE:
    case PQ_PLAN_SELECT:
        qf_strbuf_printf(buf, " %s", pq_agg_text(node->agg));
        break;
    case PQ_PLAN_BINARY:
    case PQ_PLAN_SET:
        qf_strbuf_printf(buf, " %s", pq_op_text(node->op));
        break;
    case PQ_PLAN_STRING:
    case PQ_PLAN_EMPTY:
    case PQ_PLAN_REPEAT:
    case PQ_PLAN_TIME:
    case PQ_PLAN_SCALAR_OP:
    case PQ_PLAN_COUNT_VALUES:
    case PQ_PLAN_SUBQUERY:
    case PQ_PLAN_ABSENT:
    case PQ_PLAN_TO_SCALAR:
    case PQ_PLAN_TO_VECTOR:
    case PQ_PLAN_TIMESTAMP:
    case PQ_PLAN_INFO:
    case PQ_PLAN__COUNT:
        break;
    }
}

static void explain_node(struct qf_strbuf *buf, const struct pq_plan_node *node, int depth)
{
    qf_strbuf_printf(buf, "%*s%s", 2 * depth, "", pq_plan_kind_text(node->kind));
    node_details(buf, node);
    if (node->kind == PQ_PLAN_REPEAT)
        qf_strbuf_printf(buf, " x%" PRIu64, node->grid.count);
    if (node->drops_names)
        qf_strbuf_puts(buf, " drops names");
    qf_strbuf_putc(buf, '\n');
    for (size_t i = 0; i < node->child_count; i++)
        explain_node(buf, node->children[i], depth + 1);
}

void pq_plan_explain(struct qf_strbuf *buf, const struct pq_plan *plan)
{
    explain_node(buf, plan->root, 0);
    for (size_t i = 0; i < plan->leaf_count; i++) {
        const struct pq_leaf *leaf = plan->leaves[i];
        const struct pq_grid *grid = pq_leaf_grid(leaf);

        qf_strbuf_printf(buf, "leaf %zu: %s: ", i, leaf->kind->name);
        pq_leaf_print(buf, leaf);
        qf_strbuf_printf(buf,
                         "\n  reads [%" PRId64 ", %" PRId64 "], answers %" PRIu64
                         " steps of %" PRId64 " ms from %" PRId64 "\n",
                         leaf->select.min_ts, leaf->select.max_ts, grid->count, grid->step_ms,
                         grid->start_ms);
    }
}

/* --- as JSON --- */

static void json_details(struct qf_strbuf *buf, const struct pq_plan_node *node)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    node_details(&text, node);
    if (text.len > 1) {
        qf_strbuf_puts(buf, ",\"detail\":");
        qf_strbuf_json(buf,
                       qf_str_sub(qf_strbuf_view(&text), 1, text.len)); /* begins with a blank */
    }
    qf_strbuf_done(&text);
    if (node->kind == PQ_PLAN_LEAF)
        qf_strbuf_printf(buf, ",\"leaf\":%" PRIu32, node->leaf->id);
    if (node->grouping_count == 0)
        return;
    qf_strbuf_puts(buf, node->without ? ",\"without\":[" : ",\"by\":[");
    for (size_t i = 0; i < node->grouping_count; i++) {
        if (i)
            qf_strbuf_putc(buf, ',');
        qf_strbuf_json(buf, node->grouping[i]);
    }
    qf_strbuf_putc(buf, ']');
}

/* As deep as the expression, which the parser bounds. */
static void json_node(struct qf_strbuf *buf, const struct pq_plan_node *node)
{
    qf_strbuf_printf(buf, "{\"node\":\"%s\"", pq_plan_kind_text(node->kind));
    json_details(buf, node);
    qf_strbuf_printf(buf, ",\"pos\":[%" PRIu32 ",%" PRIu32 "],\"steps\":%" PRIu64, node->pos.start,
                     node->pos.end, node->grid.count);
    if (node->child_count) {
        qf_strbuf_puts(buf, ",\"children\":[");
        for (size_t i = 0; i < node->child_count; i++) {
            if (i)
                qf_strbuf_putc(buf, ',');
            json_node(buf, node->children[i]);
        }
        qf_strbuf_putc(buf, ']');
    }
    qf_strbuf_putc(buf, '}');
}

static void json_leaf(struct qf_strbuf *buf, const struct pq_leaf *leaf)
{
    const struct pq_grid *grid = pq_leaf_grid(leaf);
    struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_printf(buf, "{\"id\":%" PRIu32 ",\"kind\":\"%s\",\"text\":", leaf->id,
                     leaf->kind->name);
    pq_leaf_print(&text, leaf);
    qf_strbuf_json(buf, qf_strbuf_view(&text));
    qf_strbuf_done(&text);
    qf_strbuf_printf(buf,
                     ",\"min_ms\":%" PRId64 ",\"max_ms\":%" PRId64 ",\"steps\":%" PRIu64
                     ",\"step_ms\":%" PRId64 "}",
                     leaf->select.min_ts, leaf->select.max_ts, grid->count, grid->step_ms);
}

void pq_plan_json(struct qf_strbuf *buf, const struct pq_plan *plan)
{
    qf_strbuf_puts(buf, "{\"tree\":");
    json_node(buf, plan->root);
    qf_strbuf_puts(buf, ",\"leaves\":[");
    for (size_t i = 0; i < plan->leaf_count; i++) {
        if (i)
            qf_strbuf_putc(buf, ',');
        json_leaf(buf, plan->leaves[i]);
    }
    qf_strbuf_puts(buf, "]}");
}
