/* leaf_reuse.h - a leaf that was answered before, for a range that has moved on since.
 *
 * A dashboard asks the same leaf again and again, each time for a range that ends a little later. What
 * a leaf answers for a step is a function of the leaf, of the step's time and of the samples that the
 * step looks at, and of nothing else: steps at which both ranges have the same samples have the same
 * rows. So whoever kept the rows needs to run the leaf for the other steps only (pq_leaf_rest) and
 * joins both to what a run of the whole leaf would have given, row by row and series by series.
 *
 * Which steps have the same samples is for the caller to know (pq_leaf_reads). Left out are leaves for
 * which "a function of" needs more care than it is worth: subqueries, windows that look beyond their
 * ends, start timestamps, leaves that are cut (they may not read all that their windows cover); and results with notes or native histograms, of which nobody knows which steps
 * they are due to. */
#ifndef PROMQL_LEAF_REUSE_H
#define PROMQL_LEAF_REUSE_H

#include "base/pure/strbuf.h"
#include "promql/leaf.h"

/* May steps of its results be used again? */
bool pq_leaf_reusable(const struct pq_leaf *leaf);

/* Append bytes that are equal for reusable leaves that differ in start, end and positions alone, and
 * whose grids have steps in common. */
void pq_leaf_reuse_key(const struct pq_leaf *leaf, struct qf_strbuf *buf);

/* The times of the samples that step @step of a reusable leaf looks at, both inclusive. */
void pq_leaf_reads(const struct pq_leaf *leaf, uint64_t step, int64_t *ret_min, int64_t *ret_max);

/* The leaf without its first @skip steps, which are not all; the rest is borrowed. QF_ELIMIT. */
QF_MUST_CHECK qf_rc pq_leaf_rest(struct qf_arena *arena, const struct pq_leaf *leaf, uint64_t skip,
                                 struct pq_leaf **ret_leaf, struct qf_err *err);

/* A result that is kept. */
struct pq_past;

/* Copy @result of @leaf, run with points_by_step, into at most @bytes_max bytes. NULL: it does not fit,
 * or is none that can be used again. */
struct pq_past *pq_past_new(const struct pq_leaf *leaf, const struct pq_leaf_result *result,
                            uint64_t bytes_max);
struct pq_past *pq_past_free(struct pq_past *past); /* Accepts NULL, returns NULL. */
uint64_t pq_past_bytes(const struct pq_past *past);

/* How many steps @leaf, whose key is that of @past, begins with that @past has. */
uint64_t pq_past_steps(const struct pq_past *past, const struct pq_leaf *leaf);

/* The result of @leaf: its first @skip steps out of @past, the others are those of @fresh, the result of
 * pq_leaf_rest(), which has no native histograms, or of no steps at all. samples_read is that of @fresh. Lives in @arena and borrows from
 * both. QF_ELIMIT: the arena's budget is spent, or there are more points than @samples_max (0: no limit),
 * as a run would have found. */
QF_MUST_CHECK qf_rc pq_past_join(struct qf_arena *arena, const struct pq_leaf *leaf,
                                 const struct pq_past *past, uint64_t skip,
                                 const struct pq_leaf_result *fresh, uint64_t samples_max,
                                 struct pq_leaf_result *ret_result, struct qf_err *err);

#endif
