/* range_slide.h - range functions over all steps without looking at every window again. */
#ifndef PROMQL_FUNC_RANGE_SLIDE_H
#define PROMQL_FUNC_RANGE_SLIDE_H

#include "promql/func/range.h"

typedef size_t pq_slide_fn(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                           const struct pq_fn_grid *grid, double *out, uint8_t *present);

/* NULL where there is no shortcut. */
pq_slide_fn *pq_slide_find(const struct pq_fn_range_call *call, const struct pq_fn_samples *series);

pq_slide_fn pq_slide_rate; /* rate, increase, delta */

/* The window (start, end] as [low, high); both only ever move forward. */
static inline void pq_slide(const struct pq_fn_samples *series, int64_t start, int64_t end,
                            size_t *low, size_t *high)
{
    *high = pq_fn_advance(series->ts, series->count, *high, end);
    *low = pq_fn_advance(series->ts, *high, *low, start);
}

#endif
