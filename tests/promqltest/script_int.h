/* script_int.h - lines and words of a script, shared by its readers. */
#ifndef TESTS_PROMQLTEST_SCRIPT_INT_H
#define TESTS_PROMQLTEST_SCRIPT_INT_H

#include "tests/promqltest/script.h"

/* The trimmed lines of a file; comments are empty lines. */
struct lines {
    struct qf_str *items;
    size_t count;
};

/* Take the first word off @rest. */
struct qf_str next_word(struct qf_str *rest);
/* "1h30m" or "0"; QF_EINVAL otherwise. */
QF_MUST_CHECK qf_rc read_duration(struct qf_str word, int64_t *ret_ms, struct qf_err *err);

/* The block that begins at lines[*at]; *at is left behind its last line. */
QF_MUST_CHECK qf_rc read_load(struct qf_arena *arena, const struct lines *lines, size_t *at,
                              struct script_load *ret, struct qf_err *err);
QF_MUST_CHECK qf_rc read_eval(struct qf_arena *arena, const struct lines *lines, size_t *at,
                              struct script_eval *ret, struct qf_err *err);

#endif
