/* range_sums.c - sums over the samples of sliding windows.
 *
 * A compensated sum cannot forget values without ending in other last bits, so every window is added
 * up from its beginning. But windows do not wait for each other: eight are added up side by side, two
 * to a register, and where the processor would wait for one addition it does those of the others. */
#include <math.h>

#include "base/pure/macros.h"
#include "promql/func/kahan.h"
#include "promql/func/kernels.h"
#include "promql/func/pair.h"
#include "promql/func/range_slide.h"

#define WINDOWS 8
/* Fewer windows than this are added up one by one. */
#define WINDOWS_MIN 3
/* Samples of each window between two looks at the poll. */
#define PIECE ((size_t)256)

/* Windows that are computed together. */
struct crew {
    const double *values[WINDOWS];
    size_t samples[WINDOWS], steps[WINDOWS];
    size_t count;
    struct pq_poll *poll;
};

/* The result of each window out of its samples; where it is no finite number it does not count. */
typedef void crew_fn(const struct crew *crew, double *ret_results);

/* The samples that all windows have. */
static size_t common_samples(const struct crew *crew)
{
    size_t common = crew->samples[0];

    for (size_t w = 1; w < WINDOWS; w++)
        common = QF_MIN(common, crew->samples[w]);
    return common;
}

/* As pq_poll_piece(), for samples of all windows. */
static size_t piece_end(const struct crew *crew, size_t from, size_t count)
{
    size_t piece = QF_MIN(count - from, PIECE);

    return pq_poll_work(crew->poll, WINDOWS * piece) ? from : from + piece;
}

static inline pq_pair sample_pair(const struct crew *crew, size_t window, size_t i)
{
    return (pq_pair){ crew->values[window][i], crew->values[window + 1][i] };
}

/* pq_kahan_add() while sums are finite: the error is the same however it is found. */
struct sums {
    pq_pair sum, lost;
};

static inline void add_pair(struct sums *s, pq_pair value)
{
    pq_pair total = s->sum + value;

    s->lost += pq_pair_error(s->sum, value, total);
    s->sum = total;
}

static struct pq_kahan sums_half(const struct sums *s, size_t half)
{
    return (struct pq_kahan){ s->sum[half], s->lost[half] };
}

/* The sum of each window. */
static void add_up(const struct crew *crew, struct pq_kahan *ret_sums)
{
    struct sums s[4] = { 0 }, a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
    size_t common = common_samples(crew);

    for (size_t i = 0, end; (end = piece_end(crew, i, common)) > i;)
        for (; i < end; i++) {
            add_pair(&a, sample_pair(crew, 0, i));
            add_pair(&b, sample_pair(crew, 2, i));
            add_pair(&c, sample_pair(crew, 4, i));
            add_pair(&d, sample_pair(crew, 6, i));
        }
    s[0] = a, s[1] = b, s[2] = c, s[3] = d;
    for (size_t w = 0; w < crew->count; w++) {
        ret_sums[w] = sums_half(&s[w / 2], w % 2);
        PQ_POLL_EACH (crew->poll, i, common, crew->samples[w])
            pq_kahan_add(&ret_sums[w], crew->values[w][i]);
    }
}

static void sum_crew(const struct crew *crew, double *ret_results)
{
    struct pq_kahan sums[WINDOWS];

    add_up(crew, sums);
    for (size_t w = 0; w < crew->count; w++)
        ret_results[w] = sums[w].sum + sums[w].compensation;
}

static void avg_crew(const struct crew *crew, double *ret_results)
{
    struct pq_kahan sums[WINDOWS];

    add_up(crew, sums);
    for (size_t w = 0; w < crew->count; w++)
        ret_results[w] = sums[w].sum / (double)crew->samples[w] +
                         sums[w].compensation / (double)crew->samples[w];
}

/* The mean and the sum of squares of stdvar_over_time (over_time.c). */
struct spread {
    struct sums mean, squares;
};

static inline void spread_pair(struct spread *s, pq_pair value, double count)
{
    pq_pair delta = value - (s->mean.sum + s->mean.lost);

    add_pair(&s->mean, delta / count);
    add_pair(&s->squares, delta * (value - (s->mean.sum + s->mean.lost)));
}

/* The rest of a window that has more samples than the others. */
static double rest_of_spread(const struct crew *crew, size_t w, size_t from,
                             const struct spread *pair)
{
    struct pq_kahan mean = sums_half(&pair->mean, w % 2);
    struct pq_kahan squares = sums_half(&pair->squares, w % 2);

    PQ_POLL_EACH (crew->poll, i, from, crew->samples[w]) {
        double value = crew->values[w][i], delta = value - (mean.sum + mean.compensation);

        pq_kahan_add(&mean, delta / (double)(i + 1));
        pq_kahan_add(&squares, delta * (value - (mean.sum + mean.compensation)));
    }
    return (squares.sum + squares.compensation) / (double)crew->samples[w];
}

static void stdvar_crew(const struct crew *crew, double *ret_results)
{
    struct spread s[4] = { 0 }, a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
    size_t common = common_samples(crew);

    for (size_t i = 0, end; (end = piece_end(crew, i, common)) > i;)
        for (; i < end; i++) {
            spread_pair(&a, sample_pair(crew, 0, i), (double)(i + 1));
            spread_pair(&b, sample_pair(crew, 2, i), (double)(i + 1));
            spread_pair(&c, sample_pair(crew, 4, i), (double)(i + 1));
            spread_pair(&d, sample_pair(crew, 6, i), (double)(i + 1));
        }
    s[0] = a, s[1] = b, s[2] = c, s[3] = d;
    for (size_t w = 0; w < crew->count; w++)
        ret_results[w] = rest_of_spread(crew, w, common, &s[w / 2]);
}

static void stddev_crew(const struct crew *crew, double *ret_results)
{
    stdvar_crew(crew, ret_results);
    for (size_t w = 0; w < crew->count; w++)
        ret_results[w] = sqrt(ret_results[w]);
}

/* One window by itself: few of them, or numbers that overflow. */
static void run_alone(const struct pq_fn_range_call *call, const struct crew *crew, size_t w,
                      double *out)
{
    struct pq_window window = { .values = crew->values[w],
                                .count = crew->samples[w],
                                .poll = crew->poll };

    (void)pq_fn_range_kernel(call->fn, PQ_WINDOW_PLAIN)(&window, &out[crew->steps[w]]);
}

static void run_crew(const struct pq_fn_range_call *call, struct crew *crew, crew_fn *fn,
                     double *out)
{
    double results[WINDOWS];
    bool together = crew->count >= WINDOWS_MIN;

    if (together) {
        for (size_t w = crew->count; w < WINDOWS; w++) {
            crew->values[w] = crew->values[0];
            crew->samples[w] = crew->samples[0];
        }
        fn(crew, results);
    }
    for (size_t w = 0; w < crew->count; w++) {
        if (together && isfinite(results[w]))
            out[crew->steps[w]] = results[w];
        else
            run_alone(call, crew, w, out);
    }
    crew->count = 0;
}

static size_t slide_crews(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                          const struct pq_fn_grid *grid, double *out, uint8_t *present, crew_fn *fn)
{
    struct crew crew = { .poll = call->poll };
    size_t low = 0, high = 0, points = 0;

    for (size_t k = 0; k < grid->count; k++) {
        int64_t end = pq_fn_grid_window_end(grid, k);

        pq_slide(series, end - call->range_ms, end, &low, &high);
        if (pq_poll_work(call->poll, 1))
            break;
        out[k] = 0;
        present[k] = high > low;
        points += present[k];
        if (high == low)
            continue;
        crew.values[crew.count] = series->values + low;
        crew.samples[crew.count] = high - low;
        crew.steps[crew.count++] = k;
        if (crew.count == WINDOWS)
            run_crew(call, &crew, fn, out);
    }
    if (crew.count > 0)
        run_crew(call, &crew, fn, out);
    return points;
}

size_t pq_slide_sum(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                    const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide_crews(call, series, grid, out, present, sum_crew);
}

size_t pq_slide_avg(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                    const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide_crews(call, series, grid, out, present, avg_crew);
}

size_t pq_slide_stddev(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                       const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide_crews(call, series, grid, out, present, stddev_crew);
}

size_t pq_slide_stdvar(const struct pq_fn_range_call *call, const struct pq_fn_samples *series,
                       const struct pq_fn_grid *grid, double *out, uint8_t *present)
{
    return slide_crews(call, series, grid, out, present, stdvar_crew);
}
