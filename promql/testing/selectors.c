/* selectors.c - the selectors of a tree. */
#include "base/pure/macros.h"
#include "promql/testing/selectors.h"

struct found {
    struct qf_arena *arena;
    const struct pq_expr **items;
    size_t count, capacity;
};

static void walk(struct found *found, const struct pq_expr *node);

const struct pq_expr **pq_selectors(struct qf_arena *arena, const struct pq_expr *node,
                                    size_t *ret_count)
{
    struct found found = { .arena = arena };

    walk(&found, node);
    *ret_count = found.items ? found.count : 0;
    return found.items;
}

static void add(struct found *found, const struct pq_expr *node)
{
    if (found->count == found->capacity) {
        size_t capacity = found->capacity ? found->capacity * 2 : 4;

        found->items = qf_arena_grow(found->arena, found->items, found->capacity, capacity,
                                     sizeof(struct pq_expr *));
        if (!found->items)
            return;
        found->capacity = capacity;
    }
    found->items[found->count++] = node;
}

static void walk(struct found *found, const struct pq_expr *node)
{
    if (!node || qf_arena_failed(found->arena))
        return;
    switch (node->kind) {
    case PQ_VECTOR_SELECTOR:
        add(found, node);
        break;
    case PQ_MATRIX_SELECTOR:
        add(found, node->matrix.selector);
        break;
    case PQ_SUBQUERY:
        walk(found, node->subquery.expr);
        break;
    case PQ_CALL:
        for (size_t i = 0; i < node->call.arg_count; i++)
            walk(found, node->call.args[i]);
        break;
    case PQ_AGGREGATE:
        walk(found, node->aggregate.param);
        walk(found, node->aggregate.expr);
        break;
    case PQ_BINARY:
        walk(found, node->binary.lhs);
        walk(found, node->binary.rhs);
        break;
    case PQ_UNARY:
        walk(found, node->unary.expr);
        break;
    case PQ_PAREN:
        walk(found, node->paren.expr);
        break;
    case PQ_NUMBER:
    case PQ_STRING:
    case PQ_DURATION_EXPR:
        break;
    }
}
