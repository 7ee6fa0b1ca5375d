/* parse.h - PromQL text to syntax tree and back. */
#ifndef PROMQL_PARSE_H
#define PROMQL_PARSE_H

#include <stdatomic.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "promql/ast.h"

/* Prometheus's feature flags that concern syntax, and our bounds. Zero is its server's default. */
struct pq_parse_options {
    bool experimental_functions;
    bool extended_range_selectors; /* anchored, smoothed */
    bool fill_modifiers;
    bool no_duration_expressions; /* they are on by default since 3.14 */
    size_t depth_max;             /* nesting; 0: PQ_DEPTH_MAX */
    size_t length_max;            /* bytes of input; 0: PQ_LENGTH_MAX */
    const atomic_bool *canceled;  /* may be NULL; looked at before each regular expression */
};

#define PQ_DEPTH_MAX 1000
#define PQ_LENGTH_MAX ((size_t)1 << 20)
/* Levels of a tree: a chain such as 1 + 1 + 1 nests to the left without any parenthesis. Whoever
 * walks a parsed tree by recursion may rely on this bound. */
#define PQ_HEIGHT_MAX 2000

/* Parse and type-check @text into @arena, which keeps everything the tree needs (the text
 * included) and pays for the compiled regular expressions, too: "a{1000}" is seven bytes of text
 * and megabytes of program.
 *
 * QF_EPARSE: err->msg is Prometheus's message without position, err->pos_start/pos_end the range.
 * QF_ELIMIT: too long, too deep, or out of arena budget. QF_ECANCELED. */
QF_MUST_CHECK qf_rc pq_parse(struct qf_arena *arena, struct qf_str text,
                             const struct pq_parse_options *options, struct pq_expr **ret_expr,
                             struct qf_err *err);

/* Parse a bare selector, as `match[]` parameters are. Errors as above. Whether
 * it selects too much, because every matcher accepts the empty string, is for the caller to say. */
QF_MUST_CHECK qf_rc pq_parse_selector(struct qf_arena *arena, struct qf_str text,
                                      const struct pq_parse_options *options,
                                      const struct pq_matcher **ret_matchers, size_t *ret_count,
                                      struct qf_err *err);

/* "1:5: parse error: ..." as users see it; "unknown position: ..." for an empty text. */
void pq_parse_error_print(struct qf_strbuf *buf, struct qf_str text, const struct qf_err *err);

/* One line, canonical, reads back as the same tree. */
void pq_print(struct qf_strbuf *buf, const struct pq_expr *expr);
/* Indented where a line would be longer than @columns (the server uses 100). Indentation can make
 * the text much longer than the query: give @buf a limit when the query is a client's. */
void pq_pretty(struct qf_strbuf *buf, const struct pq_expr *expr, size_t columns);
/* The data of /api/v1/parse_query. */
void pq_ast_json(struct qf_strbuf *buf, const struct pq_expr *expr);

/* {a="b", c=~"d"} in the order given. */
void pq_print_matchers(struct qf_strbuf *buf, const struct pq_matcher *matchers, size_t count);

#endif
