/* merge.h - several sorted runs as one sequence of records. */
#ifndef SEGMENTS_WRITE_MERGE_H
#define SEGMENTS_WRITE_MERGE_H

#include <stdatomic.h>

#include "segments/write/run.h"

typedef qf_rc merge_fn(void *ctx, const struct run_record *record, struct qf_err *err);

/* Memory that merging takes for each run: its buffer, its record, its share of the merged samples,
 * and room to sort them. Labels come on top, twice. */
#define MERGE_RUN_BYTES                                                                            \
    (RUN_BUFFER_BYTES + RUN_RECORD_SAMPLES * (44 + 40 + 64) + 2 * RUN_RECORD_HISTOGRAM_BYTES)

/* Call @fn for each record, in order; those of one series and window follow each other in time. Of
 * samples with equal timestamps the one of the later run counts. Ends with the first error of @fn.
 * Errors of run.h, QF_ECANCELED. */
QF_MUST_CHECK qf_rc merge_runs(char *const *paths, size_t count, const atomic_bool *cancel,
                               merge_fn *fn, void *ctx, struct qf_err *err);

#endif
