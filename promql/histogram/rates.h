/* rates.h - what plain and extended windows of native histograms share. */
#ifndef PROMQL_HISTOGRAM_RATES_H
#define PROMQL_HISTOGRAM_RATES_H

#include "promql/func/rate.h"
#include "promql/histogram/arith.h"
#include "promql/histogram/window.h"

static inline void pq_native_flag(const struct pq_native_window *w, unsigned bits)
{
    *w->flags |= bits;
}

/* Flag hints of samples [first, last] that are not those of a counter; of a gauge both ends have to
 * be. */
void pq_native_check_hints(const struct pq_native_window *w, size_t first, size_t last,
                           bool counter);
/* Exponential or custom, samples @a and @b are the same; flagged otherwise. */
bool pq_native_same_schemas(const struct pq_native_window *w, size_t a, size_t b);

/* A sum of plain doubles that flags reconciled bounds. */
QF_MUST_CHECK bool pq_native_add(const struct pq_native_window *w, struct pq_histogram_sum *sum,
                                 const struct pq_histogram *h, double factor);

/* The sum times @factor as a gauge in the window's scope. */
enum pq_native_result pq_native_scaled(const struct pq_native_window *w,
                                       const struct pq_histogram_sum *sum, double factor,
                                       struct pq_value *ret_value);

/* As pq_window_seconds. */
double pq_native_seconds(const struct pq_native_window *w);

/* rate and its kin over `anchored` and `smoothed` windows (func/extended.h). */
enum pq_native_result pq_native_extended(const struct pq_native_window *w, enum pq_rate_kind kind,
                                         struct pq_value *ret_value);

#endif
