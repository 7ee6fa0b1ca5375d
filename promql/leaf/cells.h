/* cells.h - partial aggregates, one per step: columns of plain numbers.
 *
 * The columns are those of the leaf kind (leaf_result.h), so what a leaf accumulates is what it
 * ships, and what the other side merges. A step without any value is marked in `present`. */
#ifndef PROMQL_LEAF_CELLS_H
#define PROMQL_LEAF_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "promql/func/poll.h"
#include "promql/leaf_result.h"

struct pq_cells {
    double *columns[PQ_LEAF_COLUMNS_MAX];
    uint8_t *present;
};

/* Empty cells for @steps steps. False: budget spent. @poll may be NULL, here and below: what it
 * stops is left undone. */
QF_MUST_CHECK bool pq_cells_init(struct pq_cells *cells, enum pq_leaf_kind kind,
                                 struct qf_arena *arena, size_t steps, struct pq_poll *poll);
/* Add the values of one series; where present[k] is 0 values[k] must be finite. */
void pq_cells_add(struct pq_cells *cells, enum pq_leaf_kind kind, const double *values,
                  const uint8_t *present, size_t count, struct pq_poll *poll);

/* Merge one partial into the cell at @into (columns apart by @stride); @first: the cell is empty.
 * Partials are merged in the order of the shards. */
void pq_cell_merge(enum pq_leaf_kind kind, double *into, size_t stride, const double *partial,
                   bool first);
/* The aggregate of a cell. @agg tells stddev from stdvar. */
double pq_cell_value(enum pq_leaf_kind kind, enum pq_agg agg, const double *cell, size_t stride);

#endif
