/* range_slide.h - windows that move over the samples of a series. */
#ifndef PROMQL_FUNC_RANGE_SLIDE_H
#define PROMQL_FUNC_RANGE_SLIDE_H

#include "promql/func/range.h"

/* The window (start, end] as [low, high); both only ever move forward. */
static inline void pq_slide(const struct pq_fn_samples *series, int64_t start, int64_t end,
                            size_t *low, size_t *high)
{
    *high = pq_fn_advance(series->ts, series->count, *high, end);
    *low = pq_fn_advance(series->ts, *high, *low, start);
}

#endif
