/* select.h - which series of a range in memory somebody wants, and their samples as columns. */
#ifndef INGEST_HEAD_SELECT_H
#define INGEST_HEAD_SELECT_H

#include "base/pure/vec.h"
#include "ingest/head/memory.h"
#include "promql/ast.h"
#include "segments/parquet/segment_writer.h"

/* Label names in the matchers of one question. */
enum { IN_MATCH_NAMES_MAX = 64 };

struct in_selection {
    struct in_memory_view view;
    QF_VEC(struct in_memory_series *) series; /* by labels; equal ones are neighbours */
    unsigned has;                             /* what some of them has: IN_HAS_... */
};

struct in_select {
    uint32_t shard, shards;
    const struct pq_matcher *matchers;
    size_t matcher_count;
    uint64_t memory_bytes; /* that the selection may take */
};

/* The series of @memory that @select asks for. QF_ELIMIT: too many for its memory, or more than
 * IN_MATCH_NAMES_MAX names. */
QF_MUST_CHECK qf_rc in_selection_make(struct in_selection *selection,
                                      const struct in_memory *memory,
                                      const struct in_select *select, struct qf_err *err);
void in_selection_done(struct in_selection *selection);

struct in_point {
    int64_t ts, start_ts;
    double value;
    uint64_t position;
    size_t histogram, histogram_len; /* in the bytes of all */
    size_t order;                    /* in which they were read */
};

/* Samples of one series, ready for a segment. */
struct in_columns {
    QF_VEC(struct in_point) points;
    struct qf_strbuf histogram_bytes;
    QF_VEC(int64_t) ts;
    QF_VEC(double) values;
    QF_VEC(int64_t) start_ts;
    QF_VEC(struct qf_str) histograms;
    QF_VEC(struct qf_label) labels;
};
void in_columns_done(struct in_columns *columns);

/* What is asked of the samples. */
struct in_cut {
    uint64_t position; /* none behind it */
    int64_t min_ts, max_ts;
};

/* The series at @i and those of the same labels behind it: *ret_next is the first one that is
 * another. Samples ascend in time; of equal times the one with the later position stands. */
void in_columns_read(struct in_columns *columns, const struct in_selection *selection, size_t i,
                     const struct in_cut *cut, size_t *ret_next);
/* Labels and samples of it; they borrow from @columns. */
struct qf_labels in_columns_labels(struct in_columns *columns, const struct in_selection *selection,
                                   size_t i);
/* The samples from @first on, @count of them. */
struct sg_samples in_columns_samples(const struct in_columns *columns, size_t first, size_t count);

#endif
