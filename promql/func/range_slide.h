/* range_slide.h - range functions over all steps without looking at every window again. */
#ifndef PROMQL_FUNC_RANGE_SLIDE_H
#define PROMQL_FUNC_RANGE_SLIDE_H

#include "promql/func/range.h"

typedef size_t pq_slide_fn(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                           const struct pq_fn_grid *grid, double *out, uint8_t *present);

/* NULL where there is no shortcut. */
pq_slide_fn *pq_slide_find(const struct pq_fn_range_call *call, const struct pq_fn_samples *series);

#endif
