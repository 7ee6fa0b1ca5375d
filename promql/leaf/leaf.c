/* leaf.c - what can be said about a leaf without running it. */
#include "promql/leaf/leaf_int.h"

#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "promql/func/range.h"

static bool has_grid(const struct pq_stage *stage)
{
    return stage->kind == PQ_STAGE_INSTANT || stage->kind == PQ_STAGE_WINDOW ||
           stage->kind == PQ_STAGE_SAMPLES;
}

/* The times at which the first @count stages answer: the grid of the last one that has any. */
static const struct pq_grid *grid_of(const struct pq_leaf *leaf, size_t count)
{
    while (count > 1 && !has_grid(&leaf->stages[count - 1]))
        count--;
    return &leaf->stages[count - 1].grid;
}

const struct pq_grid *pq_leaf_grid(const struct pq_leaf *leaf)
{
    return grid_of(leaf, leaf->stage_count);
}

bool pq_stage_drops_names(const struct pq_stage *stage)
{
    switch (stage->kind) {
    case PQ_STAGE_INSTANT:
        return stage->take != PQ_TAKE_VALUE;
    case PQ_STAGE_WINDOW:
    case PQ_STAGE_FUNCTION:
        return !pq_function_get(stage->function)->keeps_name;
    case PQ_STAGE_BINARY:
        return !pq_op_compares(stage->op) || stage->return_bool;
    case PQ_STAGE_SAMPLES:
    case PQ_STAGE__COUNT:
        break;
    }
    return false;
}

bool pq_leaf_drops_names(const struct pq_leaf *leaf)
{
    for (size_t i = 0; i < leaf->stage_count; i++)
        if (pq_stage_drops_names(&leaf->stages[i]))
            return true;
    return false;
}

static bool grid_equal(const struct pq_grid *a, const struct pq_grid *b)
{
    return a->start_ms == b->start_ms && a->step_ms == b->step_ms && a->count == b->count;
}

static bool stage_equal(const struct pq_stage *a, const struct pq_stage *b)
{
    bool equal = a->kind == b->kind && grid_equal(&a->grid, &b->grid) &&
                 a->offset_ms == b->offset_ms && a->range_ms == b->range_ms &&
                 a->lookback_ms == b->lookback_ms && a->anchored == b->anchored &&
                 a->smoothed == b->smoothed && a->take == b->take && a->function == b->function &&
                 a->op == b->op && a->scalar_left == b->scalar_left &&
                 a->return_bool == b->return_bool && a->param_count == b->param_count;

    for (size_t i = 0; i < a->param_count && equal; i++)
        equal = qf_double_bits(a->params[i]) == qf_double_bits(b->params[i]);
    return equal;
}

static bool matchers_equal(const struct pq_select *a, const struct pq_select *b)
{
    if (a->matcher_count != b->matcher_count)
        return false;
    for (size_t i = 0; i < a->matcher_count; i++) {
        const struct pq_matcher *x = &a->matchers[i], *y = &b->matchers[i];

        if (x->type != y->type || !qf_str_eq(x->name, y->name) || !qf_str_eq(x->value, y->value))
            return false;
    }
    return true;
}

bool pq_leaf_equal(const struct pq_leaf *a, const struct pq_leaf *b)
{
    if (a->kind != b->kind || a->stage_count != b->stage_count || a->agg != b->agg ||
        a->without != b->without || a->grouping_count != b->grouping_count ||
        qf_double_bits(a->param) != qf_double_bits(b->param) || !qf_str_eq(a->label, b->label) ||
        a->start_timestamps != b->start_timestamps || a->ranks != b->ranks ||
        a->finds_resets != b->finds_resets || a->delayed_name_removal != b->delayed_name_removal ||
        a->select.min_ts != b->select.min_ts || a->select.max_ts != b->select.max_ts ||
        !matchers_equal(&a->select, &b->select))
        return false;
    for (size_t i = 0; i < a->grouping_count; i++)
        if (!qf_str_eq(a->grouping[i], b->grouping[i]))
            return false;
    for (size_t i = 0; i < a->stage_count; i++)
        if (!stage_equal(&a->stages[i], &b->stages[i]))
            return false;
    return true;
}

static void print_matchers(struct qf_strbuf *buf, const struct pq_select *select)
{
    static const char *const ops[] = { "=", "!=", "=~", "!~" };

    qf_strbuf_putc(buf, '{');
    for (size_t i = 0; i < select->matcher_count; i++) {
        const struct pq_matcher *m = &select->matchers[i];

        qf_strbuf_printf(buf, "%s%.*s%s", i ? "," : "", QF_STR_ARG(m->name), ops[m->type]);
        qf_strbuf_quote(buf, m->value);
    }
    qf_strbuf_putc(buf, '}');
}

/* @inner: what a subquery was computed at; or NULL. */
static void print_times(struct qf_strbuf *buf, const struct pq_stage *stage,
                        const struct pq_grid *inner)
{
    if (stage->kind != PQ_STAGE_INSTANT) {
        qf_strbuf_putc(buf, '[');
        qf_duration_print(buf, stage->range_ms);
        if (inner) {
            qf_strbuf_putc(buf, ':');
            qf_duration_print(buf, inner->step_ms);
        }
        qf_strbuf_putc(buf, ']');
    }
    if (stage->anchored)
        qf_strbuf_puts(buf, " anchored");
    if (stage->smoothed)
        qf_strbuf_puts(buf, " smoothed");
    if (stage->offset_ms) {
        qf_strbuf_puts(buf, " offset ");
        qf_duration_print(buf, stage->offset_ms);
    }
}

/* Inside out: the last stage is printed first, the selector in the middle. */
static void print_stages(struct qf_strbuf *buf, const struct pq_leaf *leaf, size_t count)
{
    const struct pq_stage *stage = &leaf->stages[count - 1];
    static const char *const takes[] = { "", "timestamp(", "start_timestamp(", "info(" };

    if (stage->kind == PQ_STAGE_FUNCTION || stage->kind == PQ_STAGE_WINDOW)
        qf_strbuf_printf(buf, "%s(", pq_function_get(stage->function)->name);
    else if (stage->kind == PQ_STAGE_INSTANT)
        qf_strbuf_puts(buf, takes[stage->take]);
    else if (stage->kind == PQ_STAGE_BINARY && stage->scalar_left)
        qf_strbuf_printf(buf, "(%.17g %s ", stage->params[0], pq_op_text(stage->op));
    else if (stage->kind == PQ_STAGE_BINARY)
        qf_strbuf_putc(buf, '(');
    if (count == 1)
        print_matchers(buf, &leaf->select);
    else
        print_stages(buf, leaf, count - 1);
    if (has_grid(stage))
        print_times(buf, stage, count > 1 ? grid_of(leaf, count - 1) : NULL);
    if (stage->kind == PQ_STAGE_BINARY && !stage->scalar_left)
        qf_strbuf_printf(buf, " %s%s %.17g", pq_op_text(stage->op),
                         stage->return_bool ? " bool" : "", stage->params[0]);
    if (stage->kind == PQ_STAGE_FUNCTION || stage->kind == PQ_STAGE_WINDOW)
        for (size_t i = 0; i < stage->param_count; i++)
            qf_strbuf_printf(buf, ", %.17g", stage->params[i]);
    if ((stage->kind != PQ_STAGE_INSTANT || stage->take != PQ_TAKE_VALUE) &&
        stage->kind != PQ_STAGE_SAMPLES)
        qf_strbuf_putc(buf, ')');
}

void pq_leaf_print(struct qf_strbuf *buf, const struct pq_leaf *leaf)
{
    if (leaf->agg) {
        qf_strbuf_printf(buf, "%s %s (", pq_agg_text(leaf->agg->id),
                         leaf->without ? "without" : "by");
        for (size_t i = 0; i < leaf->grouping_count; i++)
            qf_strbuf_printf(buf, "%s%.*s", i ? ", " : "", QF_STR_ARG(leaf->grouping[i]));
        qf_strbuf_puts(buf, ") (");
        if (leaf->agg->shape == PQ_AGG_SELECTS)
            qf_strbuf_printf(buf, "%.17g, ", leaf->param);
        if (leaf->agg->shape == PQ_AGG_TALLIES) {
            qf_strbuf_quote(buf, leaf->label);
            qf_strbuf_puts(buf, ", ");
        }
    }
    print_stages(buf, leaf, leaf->stage_count);
    if (leaf->agg)
        qf_strbuf_putc(buf, ')');
}
