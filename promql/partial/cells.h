/* cells.h - the partials of one group, one per step: columns of plain numbers.
 *
 * The columns are those of the aggregation's kind, so what a leaf accumulates is what it ships. A
 * step without any value is marked in `present`. */
#ifndef PROMQL_PARTIAL_CELLS_H
#define PROMQL_PARTIAL_CELLS_H

#include "base/pure/arena.h"
#include "promql/func/poll.h"
#include "promql/partial/partial.h"

struct pq_cells {
    double *columns[PQ_LEAF_COLUMNS_MAX];
    uint8_t *present;
};

/* Empty cells for @steps steps of an aggregation that folds and has a kind. False: budget spent.
 * @poll may be NULL, here and below: what it stops is left undone. */
QF_MUST_CHECK bool pq_cells_init(struct pq_cells *cells, const struct pq_aggregation *agg,
                                 struct qf_arena *arena, size_t steps, struct pq_poll *poll);
void pq_cells_clear(struct pq_cells *cells, const struct pq_aggregation *agg, size_t steps);
/* Add the values of one series; where present[k] is 0 values[k] must be finite. */
void pq_cells_add(struct pq_cells *cells, const struct pq_aggregation *agg, const double *values,
                  const uint8_t *present, size_t count, struct pq_poll *poll);
/* The aggregate at @step, which is present. */
double pq_cells_value(const struct pq_cells *cells, const struct pq_aggregation *agg, size_t step);

#endif
