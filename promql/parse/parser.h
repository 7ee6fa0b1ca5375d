/* parser.h - what the files of the parser share.
 *
 * A parser stops at the first error: `failed` is sticky, every rule returns NULL or false then and
 * no further token is read. Errors of syntax win over errors of type, so the latter are only noted
 * (`check`) and reported once the whole text has parsed. */
#ifndef PROMQL_PARSE_PARSER_H
#define PROMQL_PARSE_PARSER_H

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "promql/ast.h"
#include "promql/parse.h"
#include "promql/parse/lex.h"

/* What the innermost rule says when a token does not fit: "unexpected X in CONTEXT, expected
 * EXPECTED"; empty strings leave their part out. */
struct pq_context {
    const char *context, *expected;
};

/* A type error. The position is that of @node if there is one: it may still grow by a modifier. */
struct pq_check {
    const struct pq_expr *node;
    struct pq_pos pos;
    const char *msg;
};

struct pq_parser {
    struct qf_arena *arena;
    struct pq_parse_options options;
    struct pq_lexer lex;
    struct pq_token token; /* the next one, if have_token */
    bool have_token;
    struct pq_pos last; /* the token read last */
    struct pq_context context;
    size_t depth;
    bool failed;
    struct qf_err error;
    const struct pq_check *check;
};

/* @values as in struct pq_lexer. */
void pq_parser_init(struct pq_parser *p, struct qf_arena *arena, struct qf_str text,
                    const struct pq_parse_options *options, pq_lex_values_fn *values);
/* The end of a parse: copy the first error to @err and return its code. */
qf_rc pq_parser_finish(const struct pq_parser *p, struct qf_err *err);

enum pq_token_type pq_parser_peek(struct pq_parser *p);
struct pq_token pq_parser_next(struct pq_parser *p);
/* Read the next token if it is a @type. */
bool pq_parser_accept(struct pq_parser *p, enum pq_token_type type);
/* The same, but anything else is an error. */
bool pq_parser_expect(struct pq_parser *p, enum pq_token_type type);
struct qf_str pq_parser_text(const struct pq_parser *p, struct pq_pos pos);
/* Whether the character behind the next token, blanks aside, is a left parenthesis. */
bool pq_parser_call_follows(struct pq_parser *p);

/* Replace the context and return the old one, to be put back. */
struct pq_context pq_parser_context(struct pq_parser *p, const char *context, const char *expected);
void pq_parser_unexpected(struct pq_parser *p);
void pq_parser_fail(struct pq_parser *p, struct pq_pos pos, const char *fmt, ...) QF_PRINTF(3, 4);
void pq_parser_out_of_memory(struct pq_parser *p);
/* Enter a level of nesting; false, and an error, beyond the limit. Leave with p->depth--. */
bool pq_parser_enter(struct pq_parser *p);
/* Note a type error at @node, or at @pos if @node is NULL, unless one is noted already. */
void pq_parser_check(struct pq_parser *p, const struct pq_expr *node, struct pq_pos pos,
                     const char *fmt, ...) QF_PRINTF(4, 5);

/* A zeroed node; NULL and a failed parser if the arena's budget is spent. */
struct pq_expr *pq_parser_node(struct pq_parser *p, enum pq_expr_kind kind, struct pq_pos pos);
/* Append to a growing array in the arena: returns the slot, NULL when out of memory. */
void *pq_parser_push(struct pq_parser *p, void **items, size_t *count, size_t size);

/* literal.c: the values of tokens. */
double pq_parser_number(struct pq_parser *p, struct pq_pos pos);
double pq_parser_duration(struct pq_parser *p, struct pq_pos pos); /* seconds */
struct qf_str pq_parser_string(struct pq_parser *p, struct pq_pos pos);
/* Text quoted as Go's %q does, in the arena. */
const char *pq_parser_quote(struct pq_parser *p, struct qf_str text);

/* parse.c */
struct pq_expr *pq_parse_expr(struct pq_parser *p);
/* A NUMBER or DURATION token as a number node. */
struct pq_expr *pq_parse_number(struct pq_parser *p);

/* parse_labels.c: matchers in braces, lists of labels in parentheses. */
bool pq_parse_matchers(struct pq_parser *p, struct pq_matcher **matchers, size_t *count);
bool pq_parse_grouping(struct pq_parser *p, const struct qf_str **ret_labels, size_t *ret_count);

/* parse_binary.c: the modifiers of a binary operator, and its node. */
bool pq_parse_matching(struct pq_parser *p, bool *ret_bool, struct pq_matching *ret_matching);
struct pq_expr *pq_make_binary(struct pq_parser *p, struct pq_expr *proto,
                               const struct pq_matching *matching);

/* parse_postfix.c: [range], [range:step], offset, @, anchored, smoothed. */
struct pq_expr *pq_parse_postfix(struct pq_parser *p, struct pq_expr *node);

/* parse_duration.c */
struct pq_expr *pq_parse_positive_duration(struct pq_parser *p);
struct pq_expr *pq_parse_offset_duration(struct pq_parser *p);

/* check.c: type checks of finished nodes, in Prometheus's words. */
void pq_check_selector(struct pq_parser *p, const struct pq_expr *node);
/* @param_check: what was noted inside the parameter, which comes after the expression. */
void pq_check_aggregate(struct pq_parser *p, const struct pq_expr *node,
                        const struct pq_check *param_check);
void pq_check_unary(struct pq_parser *p, const struct pq_expr *node);
void pq_check_subquery(struct pq_parser *p, const struct pq_expr *node);
void pq_check_binary(struct pq_parser *p, struct pq_expr *node, struct pq_matching *matching);
void pq_check_call_count(struct pq_parser *p, const struct pq_expr *node);
void pq_check_argument(struct pq_parser *p, const struct pq_function *function, size_t index,
                       const struct pq_expr *arg);

#endif
