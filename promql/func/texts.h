/* texts.h - the warnings and infos of Prometheus, word for word.
 *
 * Each adds one note; the set drops what was said before. Where a metric name is unknown (empty)
 * the texts leave it out. */
#ifndef PROMQL_FUNC_TEXTS_H
#define PROMQL_FUNC_TEXTS_H

#include "promql/func/buckets.h"
#include "promql/value.h"

/* Quantiles outside 0..1 and NaN; nothing for others. */
void pq_note_quantile(struct pq_notes *notes, struct pq_pos pos, double q);
/* limit_ratio outside -1..1; nothing for others. */
void pq_note_ratio(struct pq_notes *notes, struct pq_pos pos, double ratio);
/* rate and increase of a metric whose name does not end in _total, _sum, _count or _bucket; nothing
 * for others and for an empty name. */
void pq_note_counter_name(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric);

void pq_note_bad_le(struct pq_notes *notes, struct pq_pos pos, struct qf_str le,
                    struct qf_str metric);
void pq_note_mixed_classic_native(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric);
/* @samples were repaired between the times @from and @to. */
void pq_note_monotonicity(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric,
                          const struct pq_bucket_repair *repair, uint64_t samples, int64_t from,
                          int64_t to);
void pq_note_start_overlap(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric);
/* Any of the sort functions in a range query. */
void pq_note_sort_range(struct pq_notes *notes, struct pq_pos pos);

/* Floats and native histograms in one place. */
void pq_note_mixed_floats(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric);
void pq_note_mixed_floats_agg(struct pq_notes *notes, struct pq_pos pos);
void pq_note_histogram_ignored_agg(struct pq_notes *notes, struct pq_pos pos, const char *agg);
void pq_note_histogram_ignored_range(struct pq_notes *notes, struct pq_pos pos,
                                     struct qf_str metric);
/* Exponential and custom buckets in one place. */
/* Exponential and custom buckets on the two sides of an operator. */
void pq_note_binop_layouts(struct pq_notes *notes, struct pq_pos pos, const char *op);
void pq_note_mixed_schemas(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric);
/* A native histogram that should be a counter, or a gauge. */
void pq_note_not_counter(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric);
void pq_note_not_gauge(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric);
/* @operation: "addition", "subtraction", "aggregation". */
void pq_note_reconciled(struct pq_notes *notes, struct pq_pos pos, const char *operation);
void pq_note_reset_conflict(struct pq_notes *notes, struct pq_pos pos, const char *operation);
/* What NaN observations did to a quantile, or a fraction. */
void pq_note_quantile_nan(struct pq_notes *notes, struct pq_pos pos, bool result,
                          struct qf_str metric);
void pq_note_fraction_nan(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric);

void pq_note_binop_types(struct pq_notes *notes, struct pq_pos pos, const char *left,
                         const char *op, const char *right);

#endif
