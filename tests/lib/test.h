/* test.h - tests as named functions: TEST(a_sentence) { CHECK(...); }
 *
 * A test program is one or more files of TEST()s linked with test.c, which has main(). A failed
 * check prints file, line and values, ends its test and fails the program; a skipped test prints
 * its reason and is counted. Arguments: --list, or names (with a trailing * as a wildcard) to run.
 */
#ifndef TESTS_LIB_TEST_H
#define TESTS_LIB_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/macros.h"

struct test_case {
    const char *name;
    void (*fn)(void);
    struct test_case *next;
};

void test_register(struct test_case *test);

#define TEST(test_name)                                                                            \
    static void test_name(void);                                                                   \
    __attribute__((constructor)) static void test_register_##test_name(void)                       \
    {                                                                                              \
        static struct test_case test = { #test_name, test_name, NULL };                            \
        test_register(&test);                                                                      \
    }                                                                                              \
    static void test_name(void)

/* End the running test: as failed, or as skipped with a reason. */
_Noreturn void test_fail(const char *file, int line, const char *fmt, ...) QF_PRINTF(3, 4);
_Noreturn void test_skip(const char *reason);

void test_check_i64(const char *file, int line, const char *what, int64_t got, int64_t want);
void test_check_str(const char *file, int line, const char *what, const char *got,
                    const char *want);
/* Same bits; all NaNs with equal bits only. */
void test_check_double(const char *file, int line, const char *what, double got, double want);

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond))                                                                               \
            test_fail(__FILE__, __LINE__, "not true: %s", #cond);                                  \
    } while (0)
#define CHECK_MSG(cond, ...)                                                                       \
    do {                                                                                           \
        if (!(cond))                                                                               \
            test_fail(__FILE__, __LINE__, __VA_ARGS__);                                            \
    } while (0)
#define CHECK_EQ(got, want)                                                                        \
    test_check_i64(__FILE__, __LINE__, #got, (int64_t)(got), (int64_t)(want))
#define CHECK_STR(got, want) test_check_str(__FILE__, __LINE__, #got, (got), (want))
#define CHECK_BITS(got, want) test_check_double(__FILE__, __LINE__, #got, (got), (want))
/* A qf_rc of QF_OK; @err is a struct qf_err * whose message is shown. */
#define CHECK_OK(call, err)                                                                        \
    do {                                                                                           \
        int test_rc_ = (call);                                                                     \
        if (test_rc_ != 0)                                                                         \
            test_fail(__FILE__, __LINE__, "%s: rc %d: %s", #call, test_rc_, (err)->msg);           \
    } while (0)

#endif
