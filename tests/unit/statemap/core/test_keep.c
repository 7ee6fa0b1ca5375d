/* test_keep.c - which rows condensation and retention let go of. */
#include "statemap/core/keep.h"
#include "statemap/core/range.h"
#include "tests/lib/test.h"

static struct sm_row at(int64_t time, const char *value)
{
    return (struct sm_row){ .time = time, .value = { SM_STRING, qf_str_from(value) } };
}

static enum sm_fate fate(struct sm_row former, struct sm_row latter, int64_t condense,
                         int64_t retain)
{
    return sm_rows_fate(&former, &latter, false, (struct sm_cutoffs){ condense, retain });
}

TEST(a_confirmation_goes_once_it_is_old)
{
    CHECK_EQ(fate(at(1, "a"), at(5, "a"), 5, INT64_MIN), SM_DROP_LATTER);
    CHECK_EQ(fate(at(1, "a"), at(6, "a"), 5, INT64_MIN), SM_KEEP_BOTH);
    CHECK_EQ(fate(at(1, "a"), at(5, "b"), 5, INT64_MIN), SM_KEEP_BOTH);
    CHECK_EQ(fate(at(1, "a"), at(5, "a"), INT64_MIN, INT64_MIN), SM_KEEP_BOTH);
}

TEST(a_confirmation_that_decides_between_ranges_stays)
{
    struct sm_row former = at(1, "a"), latter = at(5, "a");

    CHECK_EQ(sm_rows_fate(&former, &latter, true, (struct sm_cutoffs){ 9, INT64_MIN }),
             SM_KEEP_BOTH);
}

TEST(a_row_that_was_replaced_before_the_retention_goes)
{
    CHECK_EQ(fate(at(1, "a"), at(5, "b"), INT64_MIN, 5), SM_DROP_FORMER);
    CHECK_EQ(fate(at(1, "a"), at(6, "b"), INT64_MIN, 5), SM_KEEP_BOTH);
    /* Both: the latter stays as the one that is in force at the cutoff. */
    CHECK_EQ(fate(at(1, "a"), at(5, "a"), 9, 5), SM_DROP_FORMER);
}

TEST(values_of_different_types_are_not_the_same)
{
    struct sm_row text = at(1, "{}"), json = at(5, "{}");

    json.value.type = SM_JSON;
    CHECK_EQ(fate(text, json, 9, INT64_MIN), SM_KEEP_BOTH);
}

TEST(sessions_that_overlap_or_touch_are_one)
{
    struct sm_span span = { 0, 10 };
    struct sm_row inside = { .time = 2, .end = 5 }, touching = { .time = 10, .end = 12 },
                  apart = { .time = 13, .end = 15 };

    CHECK(sm_span_join(&span, &inside));
    CHECK_EQ(span.end, 10);
    CHECK(sm_span_join(&span, &touching));
    CHECK_EQ(span.end, 12);
    CHECK(!sm_span_join(&span, &apart));
    CHECK_EQ(span.end, 12);
    CHECK(sm_span_retired(&span, (struct sm_cutoffs){ INT64_MIN, 12 }));
    CHECK(!sm_span_retired(&span, (struct sm_cutoffs){ INT64_MIN, 11 }));
    CHECK(!sm_span_retired(&span, (struct sm_cutoffs){ 12, INT64_MIN }));
    CHECK(sm_session_condensable(&touching, (struct sm_cutoffs){ 12, INT64_MIN }));
    CHECK(!sm_session_condensable(&touching, (struct sm_cutoffs){ 11, INT64_MIN }));
}

TEST(equally_wide_ranges_that_overlap_contend)
{
    struct sm_row a = { .from = 1, .to = 3 }, b = { .from = 2, .to = 4 },
                  c = { .from = 4, .to = 6 }, wider = { .from = 2, .to = 5 };

    CHECK(sm_range_contends(&a, &b));
    CHECK(sm_range_contends(&b, &a));
    CHECK(!sm_range_contends(&a, &a));
    CHECK(!sm_range_contends(&a, &c));
    CHECK(!sm_range_contends(&a, &wider));
}
