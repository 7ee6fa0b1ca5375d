/* test_range.c - one series over all steps equals one window at a time. */
#include <math.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "promql/func/range.h"
#include "tests/lib/test.h"

#define SAMPLES_MAX 400
#define STEPS_MAX 200

struct random_series {
    int64_t ts[SAMPLES_MAX];
    double values[SAMPLES_MAX];
    int64_t start_ts[SAMPLES_MAX];
    struct pq_fn_samples samples;
    int64_t even; /* 0, or how far all timestamps are apart */
};

/* Counters with restarts, gauges, gaps, NaNs and infinities, equal values, signed zeros. Half of
 * them are scraped evenly, of which some miss scrapes. */
static void make_series(struct qf_prng *prng, struct random_series *s)
{
    double drop = qf_prng_unit(prng) * (qf_prng_chance(prng, 0.2) ? 0.9 : 0.05);
    bool odd_values = qf_prng_chance(prng, 0.2);
    int64_t at = (int64_t)qf_prng_below(prng, 100000) - 50000;
    double misses = qf_prng_chance(prng, 0.2) ? 0.02 : 0;
    double value = qf_prng_chance(prng, 0.5) ? 0 : 1e6;

    s->even = qf_prng_chance(prng, 0.5) ? 1 + (int64_t)qf_prng_below(prng, 1000) : 0;
    s->samples = (struct pq_fn_samples){ .ts = s->ts,
                                         .values = s->values,
                                         .start_ts = qf_prng_chance(prng, 0.3) ? s->start_ts : NULL,
                                         .count = qf_prng_below(prng, SAMPLES_MAX) };
    for (size_t i = 0; i < s->samples.count; i++) {
        if (s->even)
            at += s->even * (qf_prng_chance(prng, misses) ? 5 : 1);
        else
            at += 1 + (int64_t)qf_prng_below(prng, qf_prng_chance(prng, 0.05) ? 50000 : 1000);
        value = qf_prng_chance(prng, drop) ? qf_prng_unit(prng) * value
                                           : value + floor(qf_prng_unit(prng) * 3);
        s->ts[i] = at;
        s->values[i] = value;
        if (odd_values && qf_prng_chance(prng, 0.2)) {
            const double odd[] = { NAN, INFINITY, -INFINITY, -0.0, 1e300, -5 };

            s->values[i] = odd[qf_prng_below(prng, QF_COUNT_OF(odd))];
        }
        s->start_ts[i] =
            qf_prng_chance(prng, 0.2) ? 0 : at - (int64_t)qf_prng_below(prng, 3000) + 100;
    }
}

static struct pq_fn_grid make_grid(struct qf_prng *prng, int64_t even)
{
    struct pq_fn_grid grid = {
        .start = (int64_t)qf_prng_below(prng, 200000) - 100000,
        .step = 1 + (int64_t)qf_prng_below(prng, 5000),
        .count = 1 + qf_prng_below(prng, STEPS_MAX - 1),
        .offset = (int64_t)qf_prng_below(prng, 3) * 1000 - 1000,
        .fixed = qf_prng_chance(prng, 0.1),
        .at = (int64_t)qf_prng_below(prng, 100000),
    };

    if (even && qf_prng_chance(prng, 0.8))
        grid.step = even * (1 + (int64_t)qf_prng_below(prng, 4));
    return grid;
}

static void check_same(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                       const struct pq_fn_grid *grid, uint64_t seed)
{
    double fast[STEPS_MAX], plain[STEPS_MAX];
    uint8_t fast_present[STEPS_MAX], plain_present[STEPS_MAX];
    unsigned fast_flags = 0, plain_flags = 0;
    size_t points = pq_fn_range_steps_plain(call, series, grid, plain, plain_present, &plain_flags);

    CHECK_EQ(pq_fn_range_steps(call, series, grid, fast, fast_present, &fast_flags), points);
    CHECK_EQ(fast_flags, plain_flags);
    for (size_t k = 0; k < grid->count; k++) {
        CHECK_MSG(fast_present[k] == plain_present[k] &&
                      qf_double_bits(fast[k]) == qf_double_bits(plain[k]),
                  "%s, seed %llu, step %zu: got %d %.17g, want %d %.17g",
                  pq_function_get(call->fn)->name, (unsigned long long)seed, k, fast_present[k],
                  fast[k], plain_present[k], plain[k]);
    }
}

/* The heart of the matter: sliding changes no bit of any function. */
TEST(sliding_windows_equal_separate_windows)
{
    struct random_series *series = qf_xmalloc(sizeof(*series));
    double *scratch = qf_xmalloc(SAMPLES_MAX * sizeof(*scratch));
    size_t compared = 0;

    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct qf_prng prng = { seed };
        struct pq_fn_grid grid;
        int64_t range;

        make_series(&prng, series);
        grid = make_grid(&prng, series->even);
        range = 1 + (int64_t)qf_prng_below(&prng, qf_prng_chance(&prng, 0.3) ? 100000 : 10000);
        for (int fn = 0; fn < PQ_FN__COUNT; fn++) {
            for (int mode = PQ_WINDOW_PLAIN; mode <= PQ_WINDOW_SMOOTHED; mode++) {
                struct pq_fn_range_call call = { .fn = (enum pq_function_id)fn,
                                                 .mode = (enum pq_window_mode)mode,
                                                 .range_ms = range,
                                                 .lookback_ms = 3000,
                                                 .params = { 0.3, 0.6 },
                                                 .scratch = scratch };

                if (!pq_fn_range_kernel(call.fn, call.mode))
                    continue;
                check_same(&call, &series->samples, &grid, seed);
                compared++;
            }
        }
    }
    /* 27 functions of windows, 5 of them anchored, 3 smoothed; none is ever taken away. */
    CHECK(compared >= 1000 * (27 + 5 + 3));
    free(scratch);
    free(series);
}

TEST(windows_are_open_on_the_left)
{
    const int64_t ts[] = { 10, 20, 30, 40 };
    const double values[] = { 1, 2, 3, 4 };
    struct pq_fn_samples series = { .ts = ts, .values = values, .count = 4 };
    struct pq_fn_range_call call = { .fn = PQ_FN_COUNT_OVER_TIME, .range_ms = 20 };
    struct pq_fn_grid grid = { .start = 30, .step = 10, .count = 4 };
    double out[4];
    uint8_t present[4];

    CHECK_EQ(pq_fn_range_steps(&call, &series, &grid, out, present, NULL), 3);
    CHECK_BITS(out[0], 2.0); /* (10, 30] */
    CHECK_BITS(out[1], 2.0);
    CHECK_BITS(out[2], 1.0);
    CHECK_EQ(present[3], 0); /* (40, 60] */
    grid.offset = 10;
    CHECK_EQ(pq_fn_range_steps(&call, &series, &grid, out, present, NULL), 4);
    CHECK_BITS(out[3], 1.0);
    grid.fixed = true;
    grid.at = 25;
    CHECK_EQ(pq_fn_range_steps(&call, &series, &grid, out, present, NULL), 4);
    CHECK_BITS(out[0], 1.0); /* (-5, 15] at every step */
    CHECK_BITS(out[3], 1.0);
}

TEST(a_canceled_call_reads_no_further_window)
{
    const int64_t ts[] = { 10, 20, 30, 40 };
    const double values[] = { 1, 2, 3, 4 };
    atomic_bool canceled = false;
    struct pq_poll poll = { .canceled = &canceled };
    double scratch[4], out[4];
    uint8_t present[4];
    struct pq_fn_samples series = { .ts = ts, .values = values, .count = 4 };
    struct pq_fn_range_call call = { .fn = PQ_FN_QUANTILE_OVER_TIME,
                                     .range_ms = 20,
                                     .params = { 0.5 },
                                     .scratch = scratch,
                                     .poll = &poll };
    struct pq_fn_grid grid = { .start = 10, .step = 10, .count = 4 };

    CHECK_EQ(pq_fn_range_steps(&call, &series, &grid, out, present, NULL), 4);
    atomic_store(&canceled, true);
    CHECK(pq_poll_look(&poll));
    CHECK_EQ(pq_fn_range_steps(&call, &series, &grid, out, present, NULL), 0);
}

TEST(modes_are_allowed_for_some_functions_only)
{
    struct qf_err err = { 0 };

    CHECK_OK(pq_fn_range_mode_check(PQ_FN_RATE, PQ_WINDOW_SMOOTHED, &err), &err);
    CHECK_OK(pq_fn_range_mode_check(PQ_FN_DERIV, PQ_WINDOW_PLAIN, &err), &err);
    CHECK_EQ(pq_fn_range_mode_check(PQ_FN_RESETS, PQ_WINDOW_SMOOTHED, &err), QF_EEXEC);
    CHECK_STR(err.msg, "smoothed modifier can only be used with: delta, increase, rate - not with "
                       "resets");
    err = (struct qf_err){ 0 };
    CHECK_EQ(pq_fn_range_mode_check(PQ_FN_DERIV, PQ_WINDOW_ANCHORED, &err), QF_EEXEC);
    CHECK_STR(err.msg, "anchored modifier can only be used with: changes, delta, increase, rate, "
                       "resets - not with deriv");
    err = (struct qf_err){ 0 };
    CHECK_EQ(pq_fn_smoothing_check(1, 0.5, &err), QF_EEXEC);
    CHECK_STR(err.msg, "invalid smoothing factor. Expected: 0 < sf < 1, got: 1.000000");
    CHECK_OK(pq_fn_smoothing_check(0.5, 0.5, NULL), &err);
}

TEST(stale_markers_are_dropped_and_nan_kept)
{
    const double stale = qf_double_from_bits(QF_STALE_NAN_BITS);
    const int64_t ts[] = { 1, 2, 3 };
    const double values[] = { 7, stale, NAN };
    int64_t ret_ts[3];
    double ret_values[3];
    size_t first;

    CHECK(pq_fn_has_stale(values, 3));
    CHECK(!pq_fn_has_stale(values, 1));
    CHECK_EQ(pq_fn_drop_stale(ts, values, NULL, 3, ret_ts, ret_values, NULL), 2);
    CHECK_EQ(ret_ts[1], 3);
    CHECK(isnan(ret_values[1]));
    CHECK_EQ(pq_fn_find_window(ts, 3, 1, 3, &first), 2);
    CHECK_EQ(first, 1);
}
