/* test.c - registration, running and reporting of tests. */
#include "tests/lib/test.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct test_case *first, **last = &first;
static jmp_buf escape;
static pid_t own_pid;
enum outcome { PASSED, FAILED, SKIPPED };

/* A test that ends early jumps over its clean-ups, so what it leaves behind says nothing. LSan asks
 * this function at exit. */
static bool ended_early;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return ended_early;
}

void test_register(struct test_case *test)
{
    *last = test;
    last = &test->next;
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list args;

    printf("%s:%d: ", file, line);
    va_start(args, fmt);
    (void)vprintf(fmt, args);
    va_end(args);
    printf("\n");
    if (getpid() != own_pid) /* a child that a test forked: the other tests are not for it */
        _exit(1);
    ended_early = true;
    longjmp(escape, FAILED);
}

void test_skip(const char *reason)
{
    printf("skipped: %s\n", reason);
    ended_early = true;
    longjmp(escape, SKIPPED);
}

void test_check_i64(const char *file, int line, const char *what, int64_t got, int64_t want)
{
    if (got != want)
        test_fail(file, line, "%s is %" PRId64 ", not %" PRId64, what, got, want);
}

void test_check_str(const char *file, int line, const char *what, const char *got, const char *want)
{
    if (!got || strcmp(got, want) != 0)
        test_fail(file, line, "%s is\n  \"%s\", not\n  \"%s\"", what, got ? got : "(null)", want);
}

void test_check_double(const char *file, int line, const char *what, double got, double want)
{
    if (memcmp(&got, &want, sizeof(got)) != 0)
        test_fail(file, line, "%s is %.17g, not %.17g", what, got, want);
}

static bool selected(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t len = strlen(argv[i]);

        if (strcmp(argv[i], name) == 0)
            return true;
        if (len && argv[i][len - 1] == '*' && strncmp(argv[i], name, len - 1) == 0)
            return true;
    }
    return argc < 2;
}

static enum outcome run(const struct test_case *test)
{
    int outcome = setjmp(escape);

    if (outcome == PASSED)
        test->fn();
    return (enum outcome)outcome;
}

int main(int argc, char **argv)
{
    int counts[3] = { 0 };

    own_pid = getpid();
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (const struct test_case *test = first; test; test = test->next) {
        static const char *const words[] = { "ok", "FAILED", "skipped" };
        enum outcome outcome;

        if (argc == 2 && strcmp(argv[1], "--list") == 0) {
            puts(test->name);
            continue;
        }
        if (!selected(test->name, argc, argv))
            continue;
        outcome = run(test);
        counts[outcome]++;
        printf("%-7s %s\n", words[outcome], test->name);
    }
    printf("%d passed, %d failed, %d skipped\n", counts[PASSED], counts[FAILED], counts[SKIPPED]);
    return counts[FAILED] ? 1 : 0;
}
