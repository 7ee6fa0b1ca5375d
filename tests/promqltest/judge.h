/* judge.h - does an answer meet the expectations of an eval?
 *
 * Each function answers true, or says in @why what was expected and what came. */
#ifndef TESTS_PROMQLTEST_JUDGE_H
#define TESTS_PROMQLTEST_JUDGE_H

#include <stdbool.h>

#include "base/pure/strbuf.h"
#include "promql/eval.h"
#include "tests/promqltest/script.h"

/* Floats are equal within a millionth of their sum; see the format's description. */
bool judge_float(double got, double want);

/* An instant or range answer, by its type. */
bool judge_result(const struct script_eval *eval, const struct pq_result *result,
                  struct qf_strbuf *why);
/* The points at @at_ms of a range answer, as the vector (or, with @scalar, the scalar) that an
 * instant query would have answered. */
bool judge_point(const struct script_eval *eval, const struct pq_result *result, int64_t at_ms,
                 bool scalar, struct qf_strbuf *why);
/* The message of a failure that was expected. */
bool judge_failure(const struct script_eval *eval, const char *message, struct qf_strbuf *why);
/* Two answers are the same, bit for bit: types, labels, order, times, values and notes. */
bool judge_same(const struct pq_result *got, const struct pq_result *want, struct qf_strbuf *why);
bool judge_notes(const struct script_eval *eval, const struct pq_notes *notes, struct qf_str query,
                 struct qf_strbuf *why);

#endif
