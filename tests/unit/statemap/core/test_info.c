/* test_info.c - rows as info series: labels, and samples against a plain model. */
#include "statemap/core/info.h"

#include <string.h>

#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "tests/lib/test.h"

static bool is_member(const char *name)
{
    return sm_info_member(qf_str_from(name));
}

TEST(members_that_can_be_no_labels_are_left_out)
{
    CHECK(is_member("team") && is_member("on-call") && is_member("_x"));
    CHECK(!is_member("") && !is_member("__name__") && !is_member("__x") && !is_member("key"));
    CHECK(!is_member("\xff"));
}

/* The key is the row's whatever the value says; empty values are no labels. */
TEST(a_row_has_its_key_and_what_its_value_says)
{
    struct qf_label members[5] = { { QF_STR("team"), QF_STR("payments") },
                                   { QF_STR("floor"), QF_STR("") },
                                   { QF_STR("alpha"), QF_STR("1") } };
    struct qf_labels labels = sm_info_labels(QF_STR("team_info"), QF_STR("checkout"), members, 3);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    qf_labels_print(&text, labels);
    CHECK_STR(qf_strbuf_cstr(&text),
              "{__name__=\"team_info\", alpha=\"1\", key=\"checkout\", team=\"payments\"}");
}

TEST(a_row_is_in_force_as_its_kind_says)
{
    struct sm_row row = { .time = 10, .end = 30 }, next = { .time = 20 };
    struct sm_info_span span = sm_info_span(SM_STATE, &row, NULL);

    CHECK(span.start == INT64_MIN && span.end == INT64_MAX);
    span = sm_info_span(SM_TEMPORAL, &row, &next);
    CHECK(span.start == 10 && span.end == 20);
    span = sm_info_span(SM_TEMPORAL, &row, NULL);
    CHECK(span.start == 10 && span.end == INT64_MAX);
    span = sm_info_span(SM_SESSION, &row, &next);
    CHECK(span.start == 10 && span.end == 30);
}

enum { MODEL_MIN = -60, MODEL_MAX = 140, SPANS = 5 };

/* Whether the series exists at @time: in a span. */
static bool exists(const struct sm_info_span *spans, size_t count, int64_t time)
{
    for (size_t i = 0; i < count; i++)
        if (time >= spans[i].start && time < spans[i].end)
            return true;
    return false;
}

/* Time by time: 1 scraped, 2 a marker, 0 nothing. */
static int model(const struct sm_info_span *spans, size_t count, int64_t interval, int64_t time)
{
    bool here = exists(spans, count, time);

    if (here)
        return time % interval == 0;
    for (size_t i = 0; i < count; i++)
        if (spans[i].end == time)
            return 2;
    return 0;
}

static void check(const struct sm_info_span *spans, size_t count, int64_t interval, int64_t min_ts,
                  int64_t max_ts)
{
    struct sm_info_span joined[SPANS];
    int64_t ts[MODEL_MAX - MODEL_MIN + 1];
    double values[MODEL_MAX - MODEL_MIN + 1];
    size_t kept, at = 0, total;
    bool stale, markers = false;

    memcpy(joined, spans, count * sizeof(*spans));
    kept = sm_info_join(joined, count);
    total = sm_info_count(joined, kept, interval, min_ts, max_ts);
    CHECK(total <= QF_COUNT_OF(ts));
    sm_info_fill(joined, kept, interval, min_ts, max_ts, ts, values, &stale);
    for (int64_t time = min_ts; time <= max_ts; time++) {
        int what = model(spans, count, interval, time);

        if (!what)
            continue;
        CHECK_MSG(at < total && ts[at] == time, "at %lld", (long long)time);
        CHECK(what == 2 ? qf_is_stale(values[at]) : values[at] == 1);
        markers |= what == 2;
        at++;
    }
    CHECK_EQ(at, total);
    CHECK(stale == markers);
}

TEST(samples_are_those_of_a_plain_model)
{
    struct qf_prng prng = { 11 };

    for (int round = 0; round < 20000; round++) {
        struct sm_info_span spans[SPANS];
        size_t count = qf_prng_below(&prng, SPANS + 1);
        int64_t interval = 1 + (int64_t)qf_prng_below(&prng, 20);
        int64_t from = MODEL_MIN + (int64_t)qf_prng_below(&prng, 120);

        for (size_t i = 0; i < count; i++) {
            spans[i].start = MODEL_MIN - 20 + (int64_t)qf_prng_below(&prng, 200);
            spans[i].end = spans[i].start + 1 + (int64_t)qf_prng_below(&prng, 50);
            if (qf_prng_below(&prng, 20) == 0)
                spans[i].end = INT64_MAX;
            if (qf_prng_below(&prng, 40) == 0)
                spans[i].start = INT64_MIN;
        }
        check(spans, count, interval, from, from + (int64_t)qf_prng_below(&prng, 80));
    }
}

/* Whatever lies outside of the range of times and is left out changes nothing inside of it. */
TEST(spans_that_do_not_concern_a_range_are_not_missed)
{
    struct qf_prng prng = { 12 };

    for (int round = 0; round < 5000; round++) {
        struct sm_info_span all[SPANS], some[SPANS];
        int64_t min_ts = (int64_t)qf_prng_below(&prng, 50),
                max_ts = min_ts + (int64_t)qf_prng_below(&prng, 30);
        size_t kept = 0, count;

        for (size_t i = 0; i < SPANS; i++) {
            all[i].start = (int64_t)qf_prng_below(&prng, 100);
            all[i].end = all[i].start + 1 + (int64_t)qf_prng_below(&prng, 20);
            if (sm_info_concerns(all[i], min_ts, max_ts))
                some[kept++] = all[i];
        }
        count = sm_info_join(all, SPANS);
        kept = sm_info_join(some, kept);
        CHECK_EQ(sm_info_count(all, count, 7, min_ts, max_ts),
                 sm_info_count(some, kept, 7, min_ts, max_ts));
    }
}

/* Ends of time, and more samples than anybody can have. */
TEST(ranges_as_wide_as_time_are_counted)
{
    struct sm_info_span ever = { INT64_MIN, INT64_MAX }, late = { INT64_MAX - 5, INT64_MAX };

    CHECK_EQ(sm_info_count(&ever, 1, 1, INT64_MIN, INT64_MAX), UINT32_MAX);
    CHECK_EQ(sm_info_count(&ever, 1, 60000, 0, 600000), 11);
    CHECK_EQ(sm_info_count(&late, 1, 60000, 0, INT64_MAX), 0);
    CHECK_EQ(sm_info_count(&ever, 1, 60000, 10, 5), 0);
}
