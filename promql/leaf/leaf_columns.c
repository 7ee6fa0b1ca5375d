/* leaf_columns.c - the value columns of each kind of leaf result. */
#include <assert.h>

#include "promql/leaf_result.h"

static const struct {
    size_t count;
    const char *names[PQ_LEAF_COLUMNS_MAX];
} kinds[PQ_LEAF__COUNT] = {
    [PQ_LEAF_SERIES] = { 1, { "value" } },
    [PQ_LEAF_SAMPLES] = { 1, { "value" } },
    [PQ_LEAF_SUM] = { 2, { "sum", "compensation" } },
    [PQ_LEAF_AVG] = { 4, { "sum", "compensation", "count", "mean" } },
    [PQ_LEAF_VARIANCE] = { 3, { "count", "mean", "m2" } },
    [PQ_LEAF_MIN] = { 1, { "value" } },
    [PQ_LEAF_MAX] = { 1, { "value" } },
    [PQ_LEAF_COUNT] = { 1, { "count" } },
    [PQ_LEAF_GROUP] = { 1, { "value" } },
    [PQ_LEAF_COUNT_VALUES] = { 1, { "count" } },
    [PQ_LEAF_CANDIDATES] = { 1, { "value" } },
};

size_t pq_leaf_columns(enum pq_leaf_kind kind)
{
    assert(kind < PQ_LEAF__COUNT);
    return kinds[kind].count;
}

const char *pq_leaf_column_name(enum pq_leaf_kind kind, size_t column)
{
    assert(kind < PQ_LEAF__COUNT);
    assert(column < kinds[kind].count);
    return kinds[kind].names[column];
}
