/* pattern.h - regular expressions that belong to a query and are paid by it. */
#ifndef PROMQL_PARSE_PATTERN_H
#define PROMQL_PARSE_PATTERN_H

#include "base/pure/arena.h"
#include "base/pure/err.h"

struct qf_regex;

/* Compile @text, anchored at both ends. The expression is freed with @arena, which is charged with
 * all the memory that it may ever take.
 *
 * QF_EPARSE: not valid, or larger than any may be; RE2's reason is in @msg. QF_ELIMIT: the arena's
 * budget is spent. */
QF_MUST_CHECK qf_rc pq_pattern_compile(struct qf_arena *arena, struct qf_str text,
                                       struct qf_regex **ret_regex, char *msg, size_t msg_size);

#endif
