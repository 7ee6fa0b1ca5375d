/* test_params.c - times, durations and numbers in request parameters. */
#include "queryapi/http/params.h"

#include "tests/lib/test.h"

static const char *cstr(struct qf_arena *arena, struct qf_str s)
{
    return qf_arena_cstr(arena, s);
}

TEST(times_are_seconds_or_rfc3339)
{
    struct qf_err err = { 0 };
    int64_t ms;

    CHECK_OK(qa_param_time("time", QF_STR("1.5"), &ms, &err), &err);
    CHECK_EQ(ms, 1500);
    CHECK_OK(qa_param_time("time", QF_STR("1435781430.7814"), &ms, &err), &err);
    CHECK_EQ(ms, 1435781430781);
    CHECK_OK(qa_param_time("time", QF_STR("-0.001"), &ms, &err), &err);
    CHECK_EQ(ms, -1);
    CHECK_OK(qa_param_time("time", QF_STR("2015-07-01T20:10:30.781Z"), &ms, &err), &err);
    CHECK_EQ(ms, 1435781430781);
    CHECK_EQ(qa_param_time("time", QF_STR("NaN"), &ms, NULL), QF_EINVAL);
    CHECK_EQ(qa_param_time("time", QF_STR("1e300"), &ms, NULL), QF_EINVAL);
    CHECK_EQ(qa_param_time("start", QF_STR("x"), &ms, &err), QF_EINVAL);
    CHECK_STR(err.msg, "invalid parameter \"start\": cannot parse \"x\" to a valid timestamp");
}

TEST(durations_are_seconds_or_units)
{
    struct qf_err err = { 0 };
    int64_t ms;

    CHECK_OK(qa_param_duration("step", QF_STR("0.5"), &ms, &err), &err);
    CHECK_EQ(ms, 500);
    CHECK_OK(qa_param_duration("step", QF_STR("1h30m"), &ms, &err), &err);
    CHECK_EQ(ms, 5400000);
    CHECK_EQ(qa_param_duration("step", QF_STR(""), &ms, NULL), QF_EINVAL);
    CHECK_EQ(qa_param_duration("step", QF_STR("1e99"), &ms, NULL), QF_EINVAL);
    CHECK_EQ(qa_param_limit(QF_STR("-1"), &(uint64_t){ 0 }, NULL), QF_EINVAL);
    CHECK_EQ(qa_param_limit(QF_STR("x"), &(uint64_t){ 0 }, NULL), QF_EINVAL);
}

TEST(the_event_stream_takes_relative_times)
{
    const qf_time_ms now = 1700000000000;
    struct qf_err err = { 0 };
    int64_t ms;

    CHECK_OK(qa_param_when("e", QF_STR("now"), now, QF_TIME_NEVER, &ms, &err), &err);
    CHECK_EQ(ms, now);
    CHECK_OK(qa_param_when("e", QF_STR("now-1h"), now, QF_TIME_NEVER, &ms, &err), &err);
    CHECK_EQ(ms, now - 3600000);
    CHECK_OK(qa_param_when("s", QF_STR("-1h30m"), now, 5000000, &ms, &err), &err);
    CHECK_EQ(ms, now - 5400000);
    CHECK_OK(qa_param_when("s", QF_STR("-30"), now, 5000000, &ms, &err), &err); /* seconds */
    CHECK_EQ(ms, -30000);
    CHECK_OK(qa_param_when("s", QF_STR("e-30m"), now, 5000000, &ms, &err), &err);
    CHECK_EQ(ms, 5000000 - 1800000);
    CHECK_OK(qa_param_when("s", QF_STR("1700000000"), now, now, &ms, &err), &err);
    CHECK_EQ(ms, now);
    CHECK_OK(qa_param_when("s", QF_STR("1700000000123"), now, now, &ms, &err), &err);
    CHECK_EQ(ms, now + 123);
    CHECK_EQ(qa_param_when("e", QF_STR("e-1h"), now, QF_TIME_NEVER, &ms, NULL), QF_EINVAL);
    CHECK_EQ(qa_param_when("e", QF_STR("now+1h"), now, QF_TIME_NEVER, &ms, NULL), QF_EINVAL);
    CHECK_EQ(qa_param_when("e", QF_STR("tomorrow"), now, now, &ms, NULL), QF_EINVAL);
    CHECK_EQ(qa_param_when("e", QF_STR(""), now, now, &ms, NULL), QF_EINVAL);
    CHECK_EQ(qa_param_when("e", QF_STR("-"), now, now, &ms, NULL), QF_EINVAL);
}

TEST(what_is_no_time_is_told_what_one_looks_like)
{
    char text[300];
    struct qf_err err = { 0 };
    int64_t ms;

    CHECK_EQ(qa_param_when("s", QF_STR("yesterday"), 0, 0, &ms, &err), QF_EINVAL);
    CHECK_STR(err.msg,
              "cannot parse \"s\": \"yesterday\" is not a time. Times are now, -30m, now-30m, "
              "e-30m (before the end), 2026-01-31T12:00:00Z or Unix seconds");
    memset(text, 'x', sizeof(text));
    err = (struct qf_err){ 0 };
    CHECK_EQ(qa_param_when("from", (struct qf_str){ text, sizeof(text) }, 0, 0, &ms, &err),
             QF_EINVAL);
    CHECK(strstr(err.msg, "or Unix seconds"));
}

TEST(the_step_follows_the_range)
{
    const int64_t hour = 3600000;

    CHECK_EQ(qa_default_step(0), 10000);
    CHECK_EQ(qa_default_step(65 * 60000), 10000);
    CHECK_EQ(qa_default_step(65 * 60000 + 1), 60000);
    CHECK_EQ(qa_default_step(12 * hour), 60000);
    CHECK_EQ(qa_default_step(24 * hour), 300000);
    CHECK_EQ(qa_default_step(72 * hour), 1200000);
    CHECK_EQ(qa_default_step(72 * hour + 1), hour);
}

TEST(escaped_label_names_are_decoded)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 20);

    CHECK_STR(cstr(arena, qa_unescape_name(arena, QF_STR("U__http_2e_status__code"))),
              "http.status_code");
    CHECK_STR(cstr(arena, qa_unescape_name(arena, QF_STR("job"))), "job");
    CHECK_STR(cstr(arena, qa_unescape_name(arena, QF_STR("U__a_zz_"))), "U__a_zz_");
    CHECK_STR(cstr(arena, qa_unescape_name(arena, QF_STR("U__a_1F600_"))), "a\xf0\x9f\x98\x80");
}
