/* extended.h - range functions of `anchored` and `smoothed` selectors, and smoothed instant ones.
 *
 * An anchored window begins with the last sample at or before its start and is not extrapolated. A
 * smoothed window has its values at both ends interpolated between the samples around them; where
 * there is no sample beyond an end, the nearest one inside stands for it. Both need a sample after
 * the start of the range.
 *
 * The window's arrays hold the samples of (range_start - lookback, range_end] for anchored, and up
 * to range_end + lookback for smoothed. */
#ifndef PROMQL_FUNC_EXTENDED_H
#define PROMQL_FUNC_EXTENDED_H

#include "promql/func/kernels.h"

/* A smoothed instant selector at time @at: the sample there, else between its neighbours, else the
 * one before. The samples are those of (at - lookback, at + lookback]. */
bool pq_fn_smoothed_at(const int64_t *ts, const double *values, size_t count, int64_t at,
                       double *ret_value);

#endif
