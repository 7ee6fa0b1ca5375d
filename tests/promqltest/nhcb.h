/* nhcb.h - native histograms with custom buckets, made of the classic ones of a load block. */
#ifndef TESTS_PROMQLTEST_NHCB_H
#define TESTS_PROMQLTEST_NHCB_H

#include "base/pure/err.h"
#include "tests/promqltest/script.h"

struct storage;

/* For every classic histogram X of the block (X_bucket by le, X_count, X_sum) append to series X
 * one histogram per timestamp. QF_EINVAL: counts that are negative, not cumulative or contradict
 * the total. */
QF_MUST_CHECK qf_rc nhcb_load(struct storage *storage, const struct script_load *load,
                              struct qf_err *err);

#endif
