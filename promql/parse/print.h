/* print.h - the parts of a printed expression that the one-line and the indented form share. */
#ifndef PROMQL_PARSE_PRINT_H
#define PROMQL_PARSE_PRINT_H

#include "base/pure/strbuf.h"
#include "promql/ast.h"

/* "sum by (a) " up to the parenthesis. */
void pq_print_aggregation(struct qf_strbuf *buf, const struct pq_expr *node);
/* "+ bool on (a) group_left (b)" */
void pq_print_operator(struct qf_strbuf *buf, const struct pq_expr *node);
/* The left side of @node if that is an infinity raised to a power: without its sign, which would be
 * read as one of the whole power. False, and nothing printed, for anything else. */
bool pq_print_base(struct qf_strbuf *buf, const struct pq_expr *node);
/* "[5m:1m] @ 3.000 offset 1m" */
void pq_print_subquery_suffix(struct qf_strbuf *buf, const struct pq_expr *node);

#endif
