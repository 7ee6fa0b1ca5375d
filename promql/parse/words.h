/* words.h - the fixed words of PromQL, recognised in any case. */
#ifndef PROMQL_PARSE_WORDS_H
#define PROMQL_PARSE_WORDS_H

#include "promql/parse/lex.h"

/* The keyword's type, PQ_T_NUMBER for inf and nan, or PQ_T_IDENTIFIER for any other word. */
enum pq_token_type pq_word_find(struct qf_str word);
/* The key of a histogram literal, or PQ_T_IDENTIFIER. */
enum pq_token_type pq_field_find(struct qf_str word);
/* A counter reset hint of a histogram literal, or PQ_T_IDENTIFIER. */
enum pq_token_type pq_hint_find(struct qf_str word);

#endif
