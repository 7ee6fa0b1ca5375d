/* test_digits.c - digits of doubles are those std::to_chars writes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/digits.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "base/pure/shortest.h"
#include "tests/lib/test.h"

static void check_fixed(double v)
{
    char got[QF_DOUBLE_TEXT_MAX], want[QF_DOUBLE_TEXT_MAX];
    size_t len = qf_digits_fixed(v, got);

    CHECK_EQ(qf_shortest_fixed(v, want, sizeof(want)), len);
    CHECK_STR(got, want);
}

/* Any finite double: digits and exponent against scientific notation. */
static void check_any(double v)
{
    char got[64], want[64], digits[32];
    struct qf_decimal d = qf_shortest_decimal(v);
    size_t len = qf_digits_u64(d.digits, digits);

    (void)snprintf(got, sizeof(got), "%c%s%.*se%+03d", digits[0], len > 1 ? "." : "", (int)len - 1,
                   digits + 1, d.exponent + (int)len - 1);
    (void)qf_shortest_scientific(v, want, sizeof(want));
    CHECK_STR(got, want);
}

TEST(every_power_of_two_and_its_neighbours_have_the_shortest_digits)
{
    for (int e = -1074; e <= 1023; e++) {
        double v = ldexp(1, e);

        check_any(v);
        if (e > -1074)
            check_any(nextafter(v, 0));
        check_any(nextafter(v, INFINITY));
    }
    check_any(5e-324);
    check_any(1.7976931348623157e308);
    check_any(2.2250738585072014e-308);
    check_any(9007199254740993.0);
    check_any(2e23);
    check_any(9.5e-5);
}

TEST(powers_of_ten_are_one_digit)
{
    for (int e = -300; e <= 300; e++) {
        char text[16];

        (void)snprintf(text, sizeof(text), "1e%d", e);
        struct qf_decimal d = qf_shortest_decimal(strtod(text, NULL));
        CHECK_EQ(d.digits, 1);
        CHECK_EQ(d.exponent, e);
    }
}

TEST(any_doubles_have_the_digits_of_to_chars)
{
    const char *rounds = getenv("PROMFABRIC_DIGITS");
    long count = rounds ? strtol(rounds, NULL, 10) : 300000;
    struct qf_prng prng = { 1 };

    for (long i = 0; i < count; i++) {
        double v = fabs(qf_double_from_bits(qf_prng_next(&prng)));

        if (isfinite(v) && v > 0)
            check_any(v);
    }
}

/* What answers are made of: decimals, rates, whole numbers. */
TEST(numbers_as_they_occur_have_the_digits_of_to_chars)
{
    const char *rounds = getenv("PROMFABRIC_DIGITS");
    long count = rounds ? strtol(rounds, NULL, 10) : 300000;
    struct qf_prng prng = { 2 };

    check_fixed(0);
    check_fixed(-0.0);
    check_fixed(1e-7);
    check_fixed(-1.5);
    check_fixed(9007199254740991);
    check_fixed(0.000001);
    check_fixed(123456789.125);
    for (long i = 0; i < count; i++) {
        double size = pow(10, (double)qf_prng_below(&prng, 22) - 6), v = qf_prng_unit(&prng) * size;

        if (i % 3 == 1)
            v = round(v * 1000) / 1000;
        if (i % 3 == 2)
            v = (double)qf_prng_below(&prng, 1000000) / (double)(1 + qf_prng_below(&prng, 1000));
        if (fabs(v) < 0x1p53 && fabs(v) >= 1e-7)
            check_fixed(i % 2 ? v : -v);
    }
}

TEST(whole_numbers_of_any_length)
{
    uint64_t v = 1;

    for (int len = 1; len <= 20; len++) {
        char text[24], want[24];

        for (int around = -1; around <= 1; around++) {
            uint64_t number = v + (uint64_t)(int64_t)around;

            text[qf_digits_u64(number, text)] = '\0';
            (void)snprintf(want, sizeof(want), "%llu", (unsigned long long)number);
            CHECK_STR(text, want);
        }
        v *= 10;
    }
    char text[24];
    text[qf_digits_u64(UINT64_MAX, text)] = '\0';
    CHECK_STR(text, "18446744073709551615");
}
