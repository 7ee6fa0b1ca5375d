/* natives.h - the native histograms of groups, added up beside their floats.
 *
 * A cell is one group at one step. Its floats are added up in columns (cells.h); histograms go into
 * a total of their own (histogram/total.h). Both together have no aggregate. A total travels as
 * rows with a histogram each, addends, in any number; the columns of such a row tell of the addend
 * where the kind has room: AVG its count and its scale. */
#ifndef PROMQL_PARTIAL_NATIVES_H
#define PROMQL_PARTIAL_NATIVES_H

#include "promql/func/window.h"
#include "promql/histogram/total.h"
#include "promql/partial/partial.h"

struct pq_natives {
    struct qf_arena *arena;
    const struct pq_aggregation *agg;   /* sum or avg */
    struct pq_histogram_total **totals; /* per cell, or NULL; NULL before the first one */
    size_t count;                       /* cells */
};

static inline struct pq_natives pq_natives_of(struct qf_arena *arena,
                                              const struct pq_aggregation *agg, size_t count)
{
    return (struct pq_natives){ arena, agg, NULL, count };
}

static inline bool pq_natives_has(const struct pq_natives *natives, size_t cell)
{
    return natives->totals && natives->totals[cell];
}

/* Add a histogram, or an addend, to a cell. False: budget spent. */
QF_MUST_CHECK bool pq_natives_add(struct pq_natives *natives, size_t cell,
                                  const struct pq_histogram *h);
QF_MUST_CHECK bool pq_natives_add_row(struct pq_natives *natives, size_t cell,
                                      const struct pq_histogram *h, const double *columns);

/* The columns of an addend's row. */
void pq_natives_columns(const struct pq_aggregation *agg, const struct pq_haddend *addend,
                        double *columns);

/* The aggregate of a cell in @arena, NULL if there is none: @floats of them are there too, or
 * exponential and custom buckets met. What is to be said is added to *@flags. False: budget spent.
 * The cell is void afterwards. */
QF_MUST_CHECK bool pq_natives_value(struct pq_natives *natives, size_t cell, bool floats,
                                    struct qf_arena *arena, unsigned *flags,
                                    const struct pq_histogram **ret);

/* Notes of enum pq_window_flag bits, as an aggregation words them. @metric: what is aggregated, if it
 * has a name. */
void pq_natives_notes(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric,
                      unsigned flags);

#endif
