/* rates.c - rate, increase, delta, irate and idelta of native histograms. */
#include "promql/histogram/rates.h"

#include "promql/histogram/reset.h"

static bool starts_anew(const struct pq_native_window *w, size_t i)
{
    return w->start_ts &&
           pq_fn_start_says_reset(w->ts[i - 1], w->start_ts[i - 1], w->ts[i], w->start_ts[i]);
}

bool pq_native_is_reset(const struct pq_native_window *w, size_t i)
{
    const struct pq_histogram *prev = w->histograms[i - 1], *h = w->histograms[i];

    if (!prev != !h)
        return true;
    if (h ? pq_histogram_is_reset(h, prev) : w->values[i] < w->values[i - 1])
        return true;
    return starts_anew(w, i);
}

void pq_native_check_hints(const struct pq_native_window *w, size_t first, size_t last,
                           bool counter)
{
    if (!counter) {
        if (w->histograms[first]->reset_hint != PQ_RESET_GAUGE ||
            w->histograms[last]->reset_hint != PQ_RESET_GAUGE)
            pq_native_flag(w, PQ_WINDOW_NOT_GAUGE);
        return;
    }
    for (size_t i = first; i <= last; i++)
        if (w->histograms[i]->reset_hint == PQ_RESET_GAUGE)
            pq_native_flag(w, PQ_WINDOW_NOT_COUNTER);
}

bool pq_native_same_schemas(const struct pq_native_window *w, size_t a, size_t b)
{
    bool same =
        pq_histogram_is_custom(w->histograms[a]) == pq_histogram_is_custom(w->histograms[b]);

    if (!same)
        pq_native_flag(w, PQ_WINDOW_MIXED_SCHEMAS);
    return same;
}

bool pq_native_add(const struct pq_native_window *w, struct pq_histogram_sum *sum,
                   const struct pq_histogram *h, double factor)
{
    if (pq_hsum_add(sum, h, factor) != PQ_HSUM_OK)
        return false; /* kinds of schemas were looked at before: memory */
    if (sum->reconciled)
        pq_native_flag(w, factor < 0 ? PQ_WINDOW_RECONCILED_SUB : PQ_WINDOW_RECONCILED_ADD);
    sum->reconciled = false; /* the next addition tells of itself */
    return true;
}

enum pq_native_result pq_native_scaled(const struct pq_native_window *w,
                                       const struct pq_histogram_sum *sum, double factor,
                                       struct pq_value *ret_value)
{
    const struct pq_histogram *h = pq_hsum_value(sum, 1, w->scratch);

    if (h)
        h = pq_histogram_mul(w->scope, h, factor);
    if (h)
        h = pq_histogram_hinted(w->scope, h, PQ_RESET_GAUGE);
    *ret_value = (struct pq_value){ .histogram = h };
    return h ? PQ_NATIVE_VALUE : PQ_NATIVE_NO_MEMORY;
}

double pq_native_seconds(const struct pq_native_window *w)
{
    struct pq_window times = { .range_start = w->range_start, .range_end = w->range_end };

    return pq_window_seconds(&times);
}

/* The counter's own start lies inside the window, before the first sample: it was zero there. */
static bool starts_inside(const struct pq_native_window *w)
{
    return w->start_ts && w->start_ts[0] != 0 && w->start_ts[0] > w->range_start &&
           w->start_ts[0] < w->ts[0];
}

static void flag_overlaps(const struct pq_native_window *w)
{
    for (size_t i = 1; w->start_ts && i < w->count; i++)
        if (w->start_ts[i] != 0 && w->start_ts[i] < w->ts[i - 1] &&
            w->start_ts[i] != w->start_ts[i - 1])
            pq_native_flag(w, PQ_WINDOW_START_OVERLAP);
}

/* How a counter's window begins. */
struct beginning {
    bool from_zero;  /* it was zero at its start, inside the window */
    bool void_first; /* the first sample does not count: a reset follows at once */
};

/* What is added up can be added up: all from the first sample that counts on. */
static bool check_schemas(const struct pq_native_window *w, bool counter, size_t first)
{
    size_t last = w->count - 1;

    if (!pq_native_same_schemas(w, first, last))
        return false;
    for (size_t i = first + 1; counter && i < last; i++)
        if (!pq_native_same_schemas(w, first, i))
            return false;
    return true;
}

/* last - first, plus what stood before each reset, in the order Prometheus has. */
static enum pq_native_result summed(const struct pq_native_window *w, struct beginning begin,
                                    bool counter, struct pq_rate_ends *ends,
                                    struct pq_histogram_sum *sum)
{
    size_t last = w->count - 1;
    bool ok;

    pq_hsum_init(sum, w->scratch, PQ_HSUM_PLAIN);
    ok = pq_native_add(w, sum, w->histograms[last], 1);
    if (ok && !begin.from_zero && !begin.void_first)
        ok = pq_native_add(w, sum, w->histograms[0], -1);
    for (size_t i = begin.void_first && !begin.from_zero ? 2 : 1; counter && ok && i <= last; i++)
        if (pq_native_is_reset(w, i))
            ok = pq_native_add(w, sum, w->histograms[i - 1], 1);
    ends->change = pq_hsum_term_value(sum->count);
    return ok ? PQ_NATIVE_VALUE : PQ_NATIVE_NO_MEMORY;
}

static bool any_reset(const struct pq_native_window *w)
{
    for (size_t i = 1; i < w->count; i++)
        if (pq_native_is_reset(w, i))
            return true;
    return false;
}

/* Without any reset the change is one subtraction: buckets are read and written once. */
static enum pq_native_result subtracted(const struct pq_native_window *w, struct pq_rate_ends *ends,
                                        enum pq_rate_kind kind, struct pq_value *ret_value)
{
    const struct pq_histogram *first = w->histograms[0], *last = w->histograms[w->count - 1];
    struct pq_histogram_joined joined;

    ends->change = last->count - first->count;
    if (!pq_histogram_combine(w->scope, last, first, -1,
                              pq_rate_factor(ends, kind, pq_native_seconds(w)), &joined))
        return PQ_NATIVE_NO_MEMORY;
    if (joined.reconciled)
        pq_native_flag(w, PQ_WINDOW_RECONCILED_SUB);
    joined.histogram->reset_hint = PQ_RESET_GAUGE;
    *ret_value = (struct pq_value){ .histogram = joined.histogram };
    return PQ_NATIVE_VALUE;
}

static enum pq_native_result extrapolated(const struct pq_native_window *w, enum pq_rate_kind kind,
                                          struct pq_value *ret_value)
{
    bool counter = kind != PQ_RATE_DELTA;
    struct beginning begin = { .from_zero = counter && starts_inside(w) };
    size_t last = w->count - 1;
    struct pq_histogram_sum sum;
    enum pq_native_result result;
    struct pq_rate_ends ends;

    if (w->count < 2 && !begin.from_zero)
        return PQ_NATIVE_NONE;
    begin.void_first = counter && last > 0 && pq_native_is_reset(w, 1);
    pq_native_check_hints(w, 0, last, counter);
    if (!check_schemas(w, counter, begin.void_first ? 1 : 0))
        return PQ_NATIVE_NONE;
    ends = (struct pq_rate_ends){
        .to_start = (double)(w->ts[0] - w->range_start),
        .to_end = (double)(w->range_end - w->ts[last]),
        .sampled = (double)(w->ts[last] - w->ts[0]),
        .intervals = (double)last,
        .first_value = w->histograms[0]->count,
        .zero = begin.from_zero ? (double)(w->ts[0] - w->start_ts[0]) : -1,
    };
    if (counter)
        flag_overlaps(w);
    if (!begin.from_zero && !begin.void_first && !(counter && any_reset(w)))
        return subtracted(w, &ends, kind, ret_value);
    result = summed(w, begin, counter, &ends, &sum);
    return result == PQ_NATIVE_VALUE
               ? pq_native_scaled(w, &sum, pq_rate_factor(&ends, kind, pq_native_seconds(w)),
                                  ret_value)
               : result;
}

static enum pq_native_result rate_of(const struct pq_native_window *w, enum pq_rate_kind kind,
                                     struct pq_value *ret_value)
{
    return w->mode == PQ_WINDOW_PLAIN ? extrapolated(w, kind, ret_value)
                                      : pq_native_extended(w, kind, ret_value);
}

enum pq_native_result pq_native_rate(const struct pq_native_window *w, struct pq_value *ret_value)
{
    return rate_of(w, PQ_RATE_RATE, ret_value);
}

enum pq_native_result pq_native_increase(const struct pq_native_window *w,
                                         struct pq_value *ret_value)
{
    return rate_of(w, PQ_RATE_INCREASE, ret_value);
}

enum pq_native_result pq_native_delta(const struct pq_native_window *w, struct pq_value *ret_value)
{
    return rate_of(w, PQ_RATE_DELTA, ret_value);
}

/* @h, divided by @divisor, as a gauge in the window's scope. */
static enum pq_native_result divided(const struct pq_native_window *w, const struct pq_histogram *h,
                                     double divisor, struct pq_value *ret_value)
{
    h = pq_histogram_div(w->scope, h, divisor);
    if (h)
        h = pq_histogram_hinted(w->scope, h, PQ_RESET_GAUGE);
    *ret_value = (struct pq_value){ .histogram = h };
    return h ? PQ_NATIVE_VALUE : PQ_NATIVE_NO_MEMORY;
}

/* The last two samples alone. */
static enum pq_native_result instant(const struct pq_native_window *w, bool counter,
                                     struct pq_value *ret_value)
{
    size_t last = w->count - 1;
    struct pq_histogram_joined joined;
    double seconds = 1;

    if (w->count < 2)
        return PQ_NATIVE_NONE;
    if (counter)
        seconds = (double)(w->ts[last] - w->ts[last - 1]) / 1000;
    pq_native_check_hints(w, last - 1, last, counter);
    if (counter && pq_native_is_reset(w, last))
        return divided(w, w->histograms[last], seconds, ret_value);
    if (!pq_native_same_schemas(w, last - 1, last))
        return PQ_NATIVE_NONE;
    if (!pq_histogram_sub(w->scratch, w->histograms[last], w->histograms[last - 1], &joined))
        return PQ_NATIVE_NO_MEMORY;
    if (joined.reconciled)
        pq_native_flag(w, PQ_WINDOW_RECONCILED_SUB);
    return divided(w, joined.histogram, seconds, ret_value);
}

enum pq_native_result pq_native_irate(const struct pq_native_window *w, struct pq_value *ret_value)
{
    return instant(w, true, ret_value);
}

enum pq_native_result pq_native_idelta(const struct pq_native_window *w, struct pq_value *ret_value)
{
    return instant(w, false, ret_value);
}
