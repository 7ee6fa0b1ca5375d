/* bench_digits.c - what the text of a double costs, one behind the other as an answer has them.
 *
 * usage: bench_digits [ROUNDS]
 *
 * Prints nanoseconds of processor time a number, ours and std::to_chars in turn, the best of ROUNDS
 * (1,000) rounds of 2,000 numbers each: short enough that some are not disturbed. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/pure/digits.h"
#include "base/pure/macros.h"
#include "base/pure/prng.h"
#include "base/pure/shortest.h"

#define COUNT 2000

static double of_seventeen_digits(double unit)
{
    return unit * 1000;
}

static double rate_of_a_counter(double unit)
{
    return (double)(int64_t)(unit * 1e6) / 285;
}

static double with_three_decimals(double unit)
{
    return (double)(int64_t)(unit * 1e7) / 1000;
}

static double whole(double unit)
{
    return (double)(int64_t)(unit * 1e9);
}

static const struct kind {
    const char *name;
    double (*make)(double unit);
} kinds[] = {
    { "17 digits", of_seventeen_digits },
    { "rates of counters", rate_of_a_counter },
    { "three decimals", with_three_decimals },
    { "whole numbers", whole },
};

static size_t to_chars(double v, char *out)
{
    return qf_shortest_fixed(v, out, QF_DIGITS_ROOM);
}

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Nanoseconds a number of one round. */
static double round_ns(size_t (*print)(double, char *), const double *values)
{
    static char text[COUNT * QF_DIGITS_ROOM];
    double start = now_ns();
    char *at = text;

    for (size_t i = 0; i < COUNT; i++)
        at += print(values[i], at);
    return (now_ns() - start) / COUNT;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    struct qf_prng prng = { 1 };

    for (size_t i = 0; i < QF_COUNT_OF(kinds); i++) {
        double values[COUNT], ours = 1e9, theirs = 1e9;

        for (size_t n = 0; n < COUNT; n++)
            values[n] = kinds[i].make(qf_prng_unit(&prng));
        for (long r = 0; r < rounds; r++) {
            ours = QF_MIN(ours, round_ns(qf_digits_fixed, values));
            theirs = QF_MIN(theirs, round_ns(to_chars, values));
        }
        printf("%-18s %5.1f ns, std::to_chars %5.1f ns\n", kinds[i].name, ours, theirs);
    }
    return 0;
}
