/* over_time.c - native histograms of a window added up, and how often they changed. */
#include <math.h>

#include "promql/func/histogram.h"
#include "promql/func/kernels.h"
#include "promql/func/range.h"
#include "promql/histogram/total.h"
#include "promql/histogram/window.h"

static enum pq_native_result add_up(const struct pq_native_window *w, enum pq_hsum_mode mode,
                                    struct pq_value *ret_value)
{
    struct pq_histogram_sum sum;

    if (w->count == 0)
        return PQ_NATIVE_NONE;
    pq_hsum_init(&sum, w->scratch, mode);
    PQ_POLL_EACH (w->poll, i, 0, w->count) {
        enum pq_hsum_result result = pq_hsum_add(&sum, w->histograms[i], 1);

        if (result == PQ_HSUM_NO_MEMORY)
            return PQ_NATIVE_NO_MEMORY;
        if (result == PQ_HSUM_MIXED) {
            *w->flags |= PQ_WINDOW_MIXED_SCHEMAS;
            return PQ_NATIVE_NONE;
        }
    }
    if (sum.reconciled)
        *w->flags |= PQ_WINDOW_RECONCILED_AGG;
    if (pq_hints_conflict(sum.hints))
        *w->flags |= PQ_WINDOW_CONFLICT_AGG;
    *ret_value = pq_number(0);
    ret_value->histogram =
        pq_hsum_value(&sum, mode == PQ_HSUM_MEAN ? (double)w->count : 1, w->scope);
    return ret_value->histogram ? PQ_NATIVE_VALUE : PQ_NATIVE_NO_MEMORY;
}

enum pq_native_result pq_native_sum_over_time(const struct pq_native_window *w,
                                              struct pq_value *ret_value)
{
    return add_up(w, PQ_HSUM_EXACT, ret_value);
}

enum pq_native_result pq_native_avg_over_time(const struct pq_native_window *w,
                                              struct pq_value *ret_value)
{
    return add_up(w, PQ_HSUM_MEAN, ret_value);
}

/* Where a window begins to be looked at: an anchored one with the last sample at or before its
 * start. False: no sample lies inside. */
static bool begin_of(const struct pq_native_window *w, size_t *ret_first)
{
    size_t after;

    *ret_first = 0;
    if (w->count == 0 || w->mode == PQ_WINDOW_PLAIN)
        return w->count > 0;
    after = pq_fn_advance(w->ts, w->count, 0, w->range_start);
    *ret_first = after > 0 ? after - 1 : 0;
    return w->ts[w->count - 1] > w->range_start;
}

enum pq_native_result pq_native_resets(const struct pq_native_window *w, struct pq_value *ret_value)
{
    size_t first, resets = 0;

    if (!begin_of(w, &first))
        return PQ_NATIVE_NONE;
    PQ_POLL_EACH (w->poll, i, first + 1, w->count)
        resets += pq_native_is_reset(w, i);
    *ret_value = pq_number((double)resets);
    return PQ_NATIVE_VALUE;
}

static bool differ(const struct pq_native_window *w, size_t i)
{
    const struct pq_histogram *prev = w->histograms[i - 1], *h = w->histograms[i];

    if (!prev != !h)
        return true;
    if (h)
        return !pq_histogram_equal(h, prev);
    return w->values[i] != w->values[i - 1] && !(isnan(w->values[i]) && isnan(w->values[i - 1]));
}

enum pq_native_result pq_native_changes(const struct pq_native_window *w,
                                        struct pq_value *ret_value)
{
    size_t first, changes = 0;

    if (!begin_of(w, &first))
        return PQ_NATIVE_NONE;
    PQ_POLL_EACH (w->poll, i, first + 1, w->count)
        changes += differ(w, i);
    *ret_value = pq_number((double)changes);
    return PQ_NATIVE_VALUE;
}

enum pq_native_result pq_native_count_over_time(const struct pq_native_window *w,
                                                struct pq_value *ret_value)
{
    *ret_value = pq_number((double)w->count);
    return PQ_NATIVE_VALUE;
}

enum pq_native_result pq_native_present_over_time(const struct pq_native_window *w,
                                                  struct pq_value *ret_value)
{
    (void)w;
    *ret_value = pq_number(1);
    return PQ_NATIVE_VALUE;
}

enum pq_native_result pq_native_first_over_time(const struct pq_native_window *w,
                                                struct pq_value *ret_value)
{
    *ret_value = pq_value_at(w->values, w->histograms, 0);
    return PQ_NATIVE_VALUE;
}

enum pq_native_result pq_native_last_over_time(const struct pq_native_window *w,
                                               struct pq_value *ret_value)
{
    *ret_value = pq_value_at(w->values, w->histograms, w->count - 1);
    return PQ_NATIVE_VALUE;
}

enum pq_native_result pq_native_ts_of_first_over_time(const struct pq_native_window *w,
                                                      struct pq_value *ret_value)
{
    *ret_value = pq_number((double)w->ts[0] / 1000);
    return PQ_NATIVE_VALUE;
}

enum pq_native_result pq_native_ts_of_last_over_time(const struct pq_native_window *w,
                                                     struct pq_value *ret_value)
{
    *ret_value = pq_number((double)w->ts[w->count - 1] / 1000);
    return PQ_NATIVE_VALUE;
}
