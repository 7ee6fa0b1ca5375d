/* words.h - the fixed words of PromQL, recognised in any case. */
#ifndef PROMQL_PARSE_WORDS_H
#define PROMQL_PARSE_WORDS_H

#include "promql/parse/lex.h"

/* The keyword's type, PQ_T_NUMBER for inf and nan, or PQ_T_IDENTIFIER for any other word. */
enum pq_token_type pq_word_find(struct qf_str word);
/* The token from @first to @last that is written like that, or PQ_T_IDENTIFIER. */
enum pq_token_type pq_word_among(struct qf_str word, enum pq_token_type first,
                                 enum pq_token_type last);

#endif
