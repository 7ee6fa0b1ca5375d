/* variants.c - step-invariant variants of a query. */
#include "tests/promqltest/variants.h"

#include <string.h>

#include "base/pure/macros.h"
#include "promql/functions.h"

/* Calls whose answer depends on the time of evaluation, whatever @ says. */
static bool is_unsafe(const char *name)
{
    static const char *const names[] = {
        "days_in_month", "day_of_month", "day_of_week", "day_of_year",    "hour",
        "minute",        "month",        "year",        "predict_linear", "time",
        "timestamp",     "start",        "end",         "range",          "step",
    };

    for (size_t i = 0; i < QF_COUNT_OF(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* The children of @node that are expressions; at most two unless it is a call. */
static size_t children(struct pq_expr *node, struct pq_expr **two, struct pq_expr ***ret)
{
    *ret = two;
    switch (node->kind) {
    case PQ_CALL:
        *ret = node->call.args;
        return node->call.arg_count;
    case PQ_AGGREGATE:
        two[0] = node->aggregate.expr;
        two[1] = node->aggregate.param;
        return node->aggregate.param ? 2 : 1;
    case PQ_BINARY:
        two[0] = node->binary.lhs;
        two[1] = node->binary.rhs;
        return 2;
    case PQ_UNARY:
        two[0] = node->unary.expr;
        return 1;
    case PQ_PAREN:
        two[0] = node->paren.expr;
        return 1;
    case PQ_SUBQUERY:
        two[0] = node->subquery.expr;
        return 1;
    case PQ_MATRIX_SELECTOR:
        two[0] = node->matrix.selector;
        return 1;
    case PQ_NUMBER:
    case PQ_STRING:
    case PQ_VECTOR_SELECTOR:
    case PQ_DURATION_EXPR:
        break;
    }
    return 0;
}

static bool any_unsafe(struct pq_expr *node)
{
    struct pq_expr *two[2], **list;
    size_t count = children(node, two, &list);

    if (node->kind == PQ_CALL && is_unsafe(node->call.function->name))
        return true;
    for (size_t i = 0; i < count; i++)
        if (any_unsafe(list[i]))
            return true;
    return false;
}

static void fix_shift(struct pq_time_shift *shift, int64_t at_ms)
{
    if (shift->at == PQ_AT_TIME)
        return;
    shift->at = PQ_AT_TIME;
    shift->at_ms = at_ms;
}

static void fix(struct pq_expr *node, int64_t at_ms)
{
    struct pq_expr *two[2], **list;
    size_t count;

    if (node->kind == PQ_VECTOR_SELECTOR)
        fix_shift(&node->vector.shift, at_ms);
    if (node->kind == PQ_SUBQUERY) {
        /* Everything inside is fixed by it already. */
        fix_shift(&node->subquery.shift, at_ms);
        return;
    }
    count = children(node, two, &list);
    for (size_t i = 0; i < count; i++)
        fix(list[i], at_ms);
}

bool variant_fix_times(struct pq_expr *expr, int64_t at_ms)
{
    if (any_unsafe(expr))
        return false;
    fix(expr, at_ms);
    return true;
}

size_t variant_times(int64_t at_ms, int64_t ret_times[VARIANT_TIMES_MAX])
{
    if (at_ms == 0) {
        ret_times[0] = -1000;
        ret_times[1] = 0;
        ret_times[2] = 1000;
        return 3;
    }
    ret_times[0] = -10 * at_ms;
    ret_times[1] = 0;
    ret_times[2] = at_ms / 5;
    ret_times[3] = at_ms;
    ret_times[4] = 10 * at_ms;
    return 5;
}

bool variant_range_allowed(struct qf_str query)
{
    static const char *const words[] = { "start()", "end()", "range()", "step()" };

    for (size_t i = 0; i < QF_COUNT_OF(words); i++)
        if (memmem(query.data, query.len, words[i], strlen(words[i])))
            return false;
    return true;
}
