/* test_number.c - doubles as text. */
#include "base/pure/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/pure/prng.h"
#include "tests/lib/test.h"

static const char *json(double v)
{
    static char text[QF_DOUBLE_TEXT_MAX];

    (void)qf_double_json(v, text);
    return text;
}

/* Prometheus JSON: shortest digits, exponent below 1e-6 and from 1e21 on, two exponent digits. */
TEST(number_json_form)
{
    CHECK_STR(json(0), "0");
    CHECK_STR(json(-0.0), "-0");
    CHECK_STR(json(0.1), "0.1");
    CHECK_STR(json(1.5), "1.5");
    CHECK_STR(json(100), "100");
    CHECK_STR(json(1e20), "100000000000000000000");
    CHECK_STR(json(1e21), "1e+21");
    CHECK_STR(json(0.000001), "0.000001");
    CHECK_STR(json(0.0000001), "1e-07");
    CHECK_STR(json(5e-324), "5e-324");
    CHECK_STR(json(1.7976931348623157e308), "1.7976931348623157e+308");
    CHECK_STR(json(NAN), "NaN");
    CHECK_STR(json(INFINITY), "+Inf");
    CHECK_STR(json(-INFINITY), "-Inf");
}

/* Go's %v switches at 1e-4 and 1e6, 'f' never. */
TEST(number_g_and_f_forms)
{
    char text[QF_DOUBLE_TEXT_MAX];

    (void)qf_double_g(0.00001, text);
    CHECK_STR(text, "1e-05");
    (void)qf_double_g(0.0001, text);
    CHECK_STR(text, "0.0001");
    (void)qf_double_g(999999.5, text);
    CHECK_STR(text, "999999.5");
    (void)qf_double_g(1000000, text);
    CHECK_STR(text, "1e+06");
    (void)qf_double_g(-123456789, text);
    CHECK_STR(text, "-1.23456789e+08");
    (void)qf_double_f(1e-7, text);
    CHECK_STR(text, "0.0000001");
    CHECK_EQ(qf_double_f(1.7976931348623157e308, text), 309);
    CHECK(strncmp(text, "1797693134862315700000", 22) == 0);
    CHECK_EQ(qf_double_f(-1e308, text), 310);
    CHECK(strspn(text + 2, "0") == 308);
    (void)qf_double_f(123456789012345683968.0, text);
    CHECK_STR(text, "123456789012345680000");
    (void)qf_double_f(9007199254740993.0, text);
    CHECK_STR(text, "9007199254740992");
    (void)qf_double_json(123456789012345683968.0, text);
    CHECK_STR(text, "123456789012345680000");
    (void)qf_double_f(-0.0, text);
    CHECK_STR(text, "-0");
    CHECK(qf_double_f(-5e-324, text) < QF_DOUBLE_TEXT_MAX);
}

/* Any double reads back as itself, and no shorter digit string would. */
TEST(number_text_round_trips_and_is_shortest)
{
    struct qf_prng prng = { 7 };

    for (int i = 0; i < 20000; i++) {
        double v = qf_double_from_bits(qf_prng_next(&prng)), back;
        char text[QF_DOUBLE_TEXT_MAX], shorter[64];
        size_t digits = 0;

        if (isnan(v) || isinf(v))
            continue;
        (void)qf_double_json(v, text);
        CHECK(qf_parse_double(qf_str_from(text), &back));
        CHECK_BITS(back, v);
        for (const char *p = text; *p && *p != 'e'; p++)
            digits += *p >= '0' && *p <= '9';
        if (digits < 2 || !strchr(text, 'e'))
            continue;
        (void)snprintf(shorter, sizeof(shorter), "%.*e", (int)digits - 2, v);
        CHECK(qf_parse_double(qf_str_from(shorter), &back));
        CHECK(qf_double_bits(back) != qf_double_bits(v));
    }
}

/* Parsing takes the whole text or nothing. */
TEST(number_parsing_is_strict)
{
    static const char *const bad[] = { "", " 1", "1 ", "1x", "nan(1)", "--1", "0x", "1e" };
    double v;
    int64_t i;
    uint64_t u;

    for (size_t n = 0; n < QF_COUNT_OF(bad); n++)
        CHECK_MSG(!qf_parse_double(qf_str_from(bad[n]), &v), "accepted \"%s\"", bad[n]);
    CHECK(qf_parse_double(QF_STR("-Inf"), &v) && isinf(v) && v < 0);
    CHECK(qf_parse_double(QF_STR("nAn"), &v));
    CHECK_EQ(qf_double_bits(v), QF_NORMAL_NAN_BITS);
    CHECK(qf_parse_double(QF_STR("1e999"), &v) && isinf(v));
    CHECK(qf_parse_i64(QF_STR("-9223372036854775808"), &i));
    CHECK_EQ(i, INT64_MIN);
    CHECK(!qf_parse_i64(QF_STR("9223372036854775808"), &i));
    CHECK(qf_parse_u64(QF_STR("18446744073709551615"), &u));
    CHECK(!qf_parse_u64(QF_STR("18446744073709551616"), &u));
    CHECK(!qf_parse_u64(QF_STR("-1"), &u));
}

/* The stale marker is a NaN of its own. */
TEST(number_stale_marker_is_one_bit_pattern)
{
    CHECK(qf_is_stale(qf_double_from_bits(QF_STALE_NAN_BITS)));
    CHECK(isnan(qf_double_from_bits(QF_STALE_NAN_BITS)));
    CHECK(!qf_is_stale(NAN));
    CHECK(!qf_is_stale(qf_double_from_bits(QF_NORMAL_NAN_BITS)));
}
