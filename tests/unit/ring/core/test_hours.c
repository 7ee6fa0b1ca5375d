/* test_hours.c - the pace of migrations by the hour of the day. */
#include "ring/core/hours.h"

#include "tests/lib/test.h"

#define HOUR_MS (INT64_C(3600) * 1000)

static struct rg_hours parse(const char *text)
{
    struct rg_hours hours;
    struct qf_err err = { 0 };

    CHECK_OK(rg_hours_parse(qf_str_from(text), &hours, &err), &err);
    return hours;
}

static uint64_t rate_at(const struct rg_hours *hours, int hour)
{
    return rg_hours_rate(hours, (400 * 24 + hour) * HOUR_MS + HOUR_MS / 2);
}

static bool off_at(const struct rg_hours *hours, int hour)
{
    return rg_hours_off(hours, (400 * 24 + hour) * HOUR_MS);
}

TEST(one_rate_is_that_of_every_hour)
{
    struct rg_hours hours = parse("64MiB");

    for (int hour = 0; hour < 24; hour++) {
        CHECK_EQ(rate_at(&hours, hour), UINT64_C(64) << 20);
        CHECK(!off_at(&hours, hour));
    }
    hours = parse("0B");
    CHECK_EQ(rate_at(&hours, 3), 0);
}

TEST(hours_have_rates_of_their_own_and_the_last_that_names_one_counts)
{
    const struct rg_hours hours = parse("1MiB,8-20=64KiB,12-13=0B,22-2=8MiB");

    CHECK_EQ(rate_at(&hours, 7), 1 << 20);
    CHECK_EQ(rate_at(&hours, 8), 64 << 10);
    CHECK_EQ(rate_at(&hours, 12), 0); /* no bound */
    CHECK_EQ(rate_at(&hours, 19), 64 << 10);
    CHECK_EQ(rate_at(&hours, 20), 1 << 20);
    CHECK_EQ(rate_at(&hours, 22), 8 << 20);
    CHECK_EQ(rate_at(&hours, 0), 8 << 20);
    CHECK_EQ(rate_at(&hours, 1), 8 << 20);
    CHECK_EQ(rate_at(&hours, 2), 1 << 20);
}

TEST(an_hour_that_is_off_has_the_usual_rate_for_what_is_under_way)
{
    const struct rg_hours hours = parse("2MiB,0-24=1MiB,9-17=off");

    for (int hour = 0; hour < 24; hour++)
        CHECK_EQ(off_at(&hours, hour), hour >= 9 && hour < 17);
    CHECK_EQ(rate_at(&hours, 8), 1 << 20);
    CHECK_EQ(rate_at(&hours, 9), 2 << 20);
}

TEST(what_is_no_pace_is_refused)
{
    static const char *const bad[] = { "",
                                       "fast",
                                       "1MiB,",
                                       "1MiB,8-20",
                                       "1MiB,8=1MiB",
                                       "1MiB,8-8=1MiB",
                                       "1MiB,24-3=1MiB",
                                       "1MiB,8-25=1MiB",
                                       "1MiB,8-20=",
                                       "1MiB,8-20=on",
                                       "off",
                                       "1MiB,-1-3=1MiB",
                                       "1MiB,8-20=1MiB,x",
                                       "1MiB;8-20=1MiB",
                                       "1MiB,008-20=1MiB" };

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++) {
        struct rg_hours hours;
        struct qf_err err = { 0 };

        CHECK_EQ(rg_hours_parse(qf_str_from(bad[i]), &hours, &err), QF_EINVAL);
        CHECK(err.msg[0]);
    }
}
