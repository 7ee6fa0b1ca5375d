/* series_int.h - what the files of the series parser share. */
#ifndef PROMQL_TESTING_SERIES_INT_H
#define PROMQL_TESTING_SERIES_INT_H

#include "promql/parse/parser.h"
#include "promql/testing/series.h"

/* histogram_literal.c: {{schema:1 sum:2}} after its opening braces were read; NULL and an error if it
 * is wrong. */
struct pq_histogram *pq_parse_histogram(struct pq_parser *p);
/* series.c: a number with an optional sign. */
bool pq_parse_signed(struct pq_parser *p, double *ret_value);
bool pq_parse_uint(struct pq_parser *p, uint64_t *ret_value);

/* combine.c: @base plus (@factor 1) or minus (-1) @inc, a new histogram in the arena. NULL and an
 * error if they do not fit together. */
struct pq_histogram *pq_literal_combine(struct pq_parser *p, const struct pq_histogram *base,
                                        const struct pq_histogram *inc, double factor);

#endif
