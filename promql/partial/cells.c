/* cells.c - the partials of a group. */
#include "promql/partial/cells.h"

#include <string.h>

bool pq_cells_init(struct pq_cells *cells, const struct pq_aggregation *agg, struct qf_arena *arena,
                   size_t steps, struct pq_poll *poll)
{
    *cells = (struct pq_cells){ .present = qf_arena_calloc(arena, steps, 1) };
    if (!cells->present)
        return false;
    for (size_t c = 0; c < agg->kind->column_count; c++) {
        double *column = qf_arena_alloc(arena, steps * sizeof(double));

        if (!column)
            return false;
        for (size_t k = 0, end; (end = pq_poll_piece(poll, k, steps)) > k; k = end)
            memset(column + k, 0, (end - k) * sizeof(double));
        cells->columns[c] = column;
    }
    return true;
}

void pq_cells_clear(struct pq_cells *cells, const struct pq_aggregation *agg, size_t steps)
{
    memset(cells->present, 0, steps);
    for (size_t c = 0; c < agg->kind->column_count; c++)
        memset(cells->columns[c], 0, steps * sizeof(double));
}

void pq_cells_add(struct pq_cells *cells, const struct pq_aggregation *agg, const double *values,
                  const uint8_t *present, size_t count, struct pq_poll *poll)
{
    for (size_t k = 0, end; (end = pq_poll_piece(poll, k, count)) > k; k = end) {
        double *columns[PQ_LEAF_COLUMNS_MAX];

        for (size_t c = 0; c < agg->kind->column_count; c++)
            columns[c] = cells->columns[c] + k;
        agg->add(columns, cells->present + k, values + k, present + k, end - k);
        for (size_t i = k; i < end; i++)
            cells->present[i] |= present[i];
    }
}

double pq_cells_value(const struct pq_cells *cells, const struct pq_aggregation *agg, size_t step)
{
    double partial[PQ_LEAF_COLUMNS_MAX];

    for (size_t c = 0; c < agg->kind->column_count; c++)
        partial[c] = cells->columns[c][step];
    return agg->value(partial);
}
