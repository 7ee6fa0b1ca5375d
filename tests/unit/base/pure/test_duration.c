/* test_duration.c - durations and times as text. */
#include "base/pure/duration.h"

#include "base/pure/macros.h"
#include "base/pure/prng.h"
#include "tests/lib/test.h"

/* The forms PromQL writes. */
TEST(duration_parses_promql_forms)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = { { "0", 0 },
                 { "0s", 0 },
                 { "5ms", 5 },
                 { "1s", 1000 },
                 { "1m30s", 90000 },
                 { "1h30m", 5400000 },
                 { "10s53ms", 10053 },
                 { "1y2w3d4h5m6s7ms",
                   (((INT64_C(365) + 14 + 3) * 24 + 4) * 60 + 5) * 60000 + 6007 } };
    static const char *const bad[] = { "",    "1",    "s",     "1s1m", "1s1s", "-1s",
                                       "1 s", "1.5s", "1ms1s", "1x",   "01",   "1s " };
    int64_t ms;

    for (size_t i = 0; i < QF_COUNT_OF(good); i++) {
        CHECK_EQ(qf_duration_parse(qf_str_from(good[i].text), &ms), QF_DURATION_OK);
        CHECK_EQ(ms, good[i].ms);
    }
    for (size_t i = 0; i < QF_COUNT_OF(bad); i++)
        CHECK_MSG(qf_duration_parse(qf_str_from(bad[i]), &ms) == QF_DURATION_BAD, "accepted \"%s\"",
                  bad[i]);
    CHECK_EQ(qf_duration_parse(QF_STR("300y"), &ms), QF_DURATION_OVERFLOW);
    CHECK_EQ(qf_duration_parse(QF_STR("99999999999999999999s"), &ms), QF_DURATION_OVERFLOW);
}

/* Printing uses years and weeks only when exact; what is printed reads back. */
TEST(duration_prints_and_reads_back)
{
    struct qf_prng prng = { 3 };
    struct qf_strbuf buf = QF_STRBUF_INIT;
    int64_t back;

    qf_duration_print(&buf, 0);
    qf_strbuf_putc(&buf, ' ');
    qf_duration_print(&buf, 5400000);
    qf_strbuf_putc(&buf, ' ');
    qf_duration_print(&buf, -7 * INT64_C(86400000));
    qf_strbuf_putc(&buf, ' ');
    qf_duration_print(&buf, 8 * INT64_C(86400000));
    qf_strbuf_putc(&buf, ' ');
    qf_duration_print(&buf, 365 * INT64_C(86400000));
    CHECK_STR(qf_strbuf_cstr(&buf), "0s 1h30m -1w 8d 1y");
    for (int i = 0; i < 2000; i++) {
        int64_t ms = (int64_t)qf_prng_below(&prng, UINT64_C(1) << qf_prng_below(&prng, 42));

        qf_strbuf_reset(&buf);
        qf_duration_print(&buf, ms);
        CHECK_EQ(qf_duration_parse(qf_strbuf_view(&buf), &back), QF_DURATION_OK);
        CHECK_EQ(back, ms);
    }
    qf_strbuf_done(&buf);
}

/* RFC 3339 with fractions and offsets; impossible dates are refused. */
TEST(time_parses_rfc3339)
{
    static const char *const bad[] = {
        "2026-02-29T00:00:00Z",    "2026-13-01T00:00:00Z", "2026-01-01",
        "2026-01-01T00:00:00",     "2026-01-01T24:00:00Z", "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+2500"
    };
    qf_time_ms t;

    CHECK(qf_time_parse_rfc3339(QF_STR("1970-01-01T00:00:00Z"), &t));
    CHECK_EQ(t, 0);
    CHECK(qf_time_parse_rfc3339(QF_STR("2026-11-16T01:02:03.4567+02:00"), &t));
    CHECK_EQ(t, INT64_C(1794783723456));
    CHECK(qf_time_parse_rfc3339(QF_STR("1969-12-31T23:59:59.999Z"), &t));
    CHECK_EQ(t, -1);
    for (size_t i = 0; i < QF_COUNT_OF(bad); i++)
        CHECK_MSG(!qf_time_parse_rfc3339(qf_str_from(bad[i]), &t), "accepted %s", bad[i]);
}

/* Every day of four centuries converts both ways, and weekdays follow each other. */
TEST(civil_dates_follow_the_calendar)
{
    int64_t first = qf_civil_to_days(1800, 1, 1), last = qf_civil_to_days(2200, 12, 31);
    int weekday = qf_civil_from_seconds(first * 86400).weekday;

    for (int64_t day = first; day <= last; day++, weekday = (weekday + 1) % 7) {
        struct qf_civil c = qf_civil_from_seconds(day * 86400 + 3723);

        CHECK_EQ(qf_civil_to_days(c.year, c.month, c.day), day);
        CHECK_EQ(c.weekday, weekday);
        CHECK(c.hour == 1 && c.minute == 2 && c.second == 3);
        CHECK(c.day <= qf_civil_days_in_month(c.year, c.month));
    }
    CHECK_EQ(qf_civil_from_seconds(0).weekday, 4); /* a Thursday */
    CHECK_EQ(qf_civil_days_in_month(2000, 2), 29);
    CHECK_EQ(qf_civil_days_in_month(1900, 2), 28);
}

/* Division that rounds down keeps subquery steps aligned before 1970 too. */
TEST(floor_division_rounds_down)
{
    CHECK_EQ(qf_floor_div(-1, 60), -1);
    CHECK_EQ(qf_floor_mod(-1, 60), 59);
    CHECK_EQ(qf_floor_div(-60, 60), -1);
    CHECK_EQ(qf_floor_mod(-60, 60), 0);
    CHECK_EQ(qf_floor_div(61, 60), 1);
}

/* Remainders of the smallest numbers do not overflow on the way. */
TEST(floor_mod_takes_any_number)
{
    CHECK_EQ(qf_floor_mod(-1, 1000), 999);
    CHECK_EQ(qf_floor_mod(-1000, 1000), 0);
    CHECK_EQ(qf_floor_mod(7, 5), 2);
    CHECK_EQ(qf_floor_mod(INT64_MIN, 86400), 30592);
    CHECK_EQ(qf_floor_mod(INT64_MAX, 86400), 55807);
}
