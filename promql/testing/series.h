/* series.h - series as test scripts write them: metric{labels} 1 2+3x4 _x2 stale {{sum:1}}. */
#ifndef PROMQL_TESTING_SERIES_H
#define PROMQL_TESTING_SERIES_H

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/labels.h"
#include "promql/parse/lex.h"
#include "promql/value.h"

/* One value slot of a series line in a test script. */
struct pq_sequence_value {
    double value;
    struct pq_histogram *histogram; /* NULL for a float; see reset_hint_given there */
    bool omitted;
};

/* How many values one line may stand for. */
#define PQ_SEQUENCE_MAX ((size_t)1 << 20)

/* A line `metric{labels} 1 2 3+1x5 _ stale {{...}}` of a test script.
 * @ret_values may come back NULL with count 0 for a bare description. QF_EPARSE as
 * pq_parse, QF_ELIMIT for more than PQ_SEQUENCE_MAX values. */
QF_MUST_CHECK qf_rc pq_parse_series(struct qf_arena *arena, struct qf_str text,
                                    struct qf_labels *ret_labels,
                                    struct pq_sequence_value **ret_values, size_t *ret_count,
                                    struct qf_err *err);

/* The tokens of the values behind the metric: what makes a lexer one of series. */
pq_lex_values_fn pq_lex_series_value;

#endif
