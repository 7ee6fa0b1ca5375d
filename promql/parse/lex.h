/* lex.h - PromQL text to tokens.
 *
 * The lexer is modal, as Prometheus's is: what a character means depends on whether it stands
 * inside braces, inside brackets or in the values of a series description. Tokens borrow from the
 * text; an error is a token too (PQ_T_ERROR), the last one, and its message stays in the lexer.
 * Every call moves forward or ends, so a text costs linear time. */
#ifndef PROMQL_PARSE_LEX_H
#define PROMQL_PARSE_LEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/slice.h"
#include "base/pure/strbuf.h"
#include "promql/ast.h"

enum pq_token_type {
#define PQ_TOKEN(name, text) PQ_T_##name,
#define PQ_SIGN(name, text) PQ_T_##name,
#define PQ_WORD(name, word, class) PQ_T_##name,
#define PQ_FIELD(name, word) PQ_T_##name,
#define PQ_HINT(name, word) PQ_T_##name,
#include "promql/parse/tokens.def"
#undef PQ_TOKEN
#undef PQ_SIGN
#undef PQ_WORD
#undef PQ_FIELD
#undef PQ_HINT
    PQ_T__COUNT,
};

struct pq_token {
    enum pq_token_type type;
    struct pq_pos pos;
};

enum pq_lex_mode {
    PQ_LEX_STATEMENT,
    PQ_LEX_VALUES,         /* after the metric of a series description */
    PQ_LEX_HISTOGRAM,      /* inside {{ }} */
    PQ_LEX_BUCKETS,        /* inside [ ] of a histogram */
    PQ_LEX_AFTER_HISTOGRAM /* a x, + or - directly behind }} */
};

struct pq_lexer;
typedef struct pq_token pq_lex_values_fn(struct pq_lexer *lexer);

struct pq_lexer {
    struct qf_str text;
    size_t pos;
    size_t start; /* of the token being read; where an error is reported */
    enum pq_lex_mode mode;
    /* Reads the values behind the metric of a series description, as tests write them
     * (testing/series.h); NULL for a query. */
    pq_lex_values_fn *values;
    bool brace_open, bracket_open, got_colon, got_duration;
    bool expects_duration; /* inside brackets, before the first number */
    int64_t paren_depth;
    char error[512];
};

void pq_lex_init(struct pq_lexer *lexer, struct qf_str text, pq_lex_values_fn *values);
/* The next token; comments are tokens. After PQ_T_EOF or PQ_T_ERROR there is no further one. */
struct pq_token pq_lex_next(struct pq_lexer *lexer);

/* The name of a token's type, as in tokens.def. */
const char *pq_token_name(enum pq_token_type type);
/* How a message calls the token: `identifier "foo"`, `<op:+>`, `end of input`, `"]"`. */
void pq_token_describe(struct qf_strbuf *buf, struct qf_str text, struct pq_token token);
bool pq_token_is_keyword(enum pq_token_type type);
bool pq_token_is_aggregator(enum pq_token_type type);

/* What the modes share; those of series descriptions are in testing/. */
enum { PQ_RUNE_EOF = -1 };
int32_t pq_lex_rune(struct pq_lexer *lexer);   /* read one character; invalid UTF-8 is U+FFFD */
int pq_lex_peek(const struct pq_lexer *lexer); /* the next byte, PQ_RUNE_EOF at the end */
struct pq_token pq_lex_emit(struct pq_lexer *lexer, enum pq_token_type type);
struct pq_token pq_lex_fail(struct pq_lexer *lexer, const char *fmt, ...) QF_PRINTF(2, 3);
/* Fail with @what and the character as Go's %q prints it. */
struct pq_token pq_lex_fail_rune(struct pq_lexer *lexer, const char *what, int32_t rune);
bool pq_lex_scan_number(struct pq_lexer *lexer);
struct pq_token pq_lex_word(struct pq_lexer *lexer);
struct pq_token pq_lex_string(struct pq_lexer *lexer, char quote);

static inline bool pq_is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
static inline bool pq_is_digit(int c)
{
    return c >= '0' && c <= '9';
}
static inline bool pq_is_alpha(int c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
static inline bool pq_is_alnum(int c)
{
    return pq_is_alpha(c) || pq_is_digit(c);
}

#endif
