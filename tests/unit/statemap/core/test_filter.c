/* test_filter.c - which rows somebody who browses a map wants to see. */
#include "statemap/core/filter.h"
#include "tests/lib/test.h"

static bool passes(struct sm_filter filter, enum sm_kind kind, struct sm_row row)
{
    return sm_filter_passes(&filter, kind, &row);
}

static qf_rc check(struct sm_filter filter, enum sm_kind kind)
{
    struct qf_err err = { 0 };
    qf_rc rc = sm_filter_check(&filter, kind, &err);

    CHECK_EQ(rc == QF_OK, err.msg[0] == '\0');
    return rc;
}

TEST(keys_are_asked_for_whole_or_by_their_beginning)
{
    struct sm_row row = { .key = QF_STR("checkout") };

    CHECK(passes((struct sm_filter){ 0 }, SM_STATE, row));
    CHECK(passes((struct sm_filter){ .key = QF_STR("checkout") }, SM_STATE, row));
    CHECK(!passes((struct sm_filter){ .key = QF_STR("check") }, SM_STATE, row));
    CHECK(passes((struct sm_filter){ .prefix = QF_STR("check") }, SM_STATE, row));
    CHECK(!passes((struct sm_filter){ .prefix = QF_STR("out") }, SM_STATE, row));
}

TEST(ranges_are_asked_for_by_a_number_that_is_in_them)
{
    struct sm_row row = { .from = -1, .to = 5 };

    CHECK(passes((struct sm_filter){ .has_number = true, .number = -1 }, SM_RANGED, row));
    CHECK(passes((struct sm_filter){ .has_number = true, .number = 5 }, SM_RANGED, row));
    CHECK(!passes((struct sm_filter){ .has_number = true, .number = 6 }, SM_RANGED, row));
    CHECK(!passes((struct sm_filter){ .has_number = true, .number = -2 }, SM_RANGED, row));
}

TEST(rows_are_asked_for_by_when_they_are_effective)
{
    struct sm_row row = { .time = 10 };

    CHECK(passes((struct sm_filter){ .has_since = true, .since = 10 }, SM_TEMPORAL, row));
    CHECK(!passes((struct sm_filter){ .has_since = true, .since = 11 }, SM_TEMPORAL, row));
    CHECK(passes((struct sm_filter){ .has_until = true, .until = 11 }, SM_TEMPORAL, row));
    CHECK(!passes((struct sm_filter){ .has_until = true, .until = 10 }, SM_TEMPORAL, row));
}

TEST(sessions_are_asked_for_by_any_of_their_moments)
{
    struct sm_row row = { .time = 10, .end = 20 };

    CHECK(passes((struct sm_filter){ .has_since = true, .since = 19 }, SM_SESSION, row));
    CHECK(!passes((struct sm_filter){ .has_since = true, .since = 20 }, SM_SESSION, row));
    CHECK(passes((struct sm_filter){ .has_until = true, .until = 11 }, SM_SESSION, row));
    CHECK(!passes((struct sm_filter){ .has_until = true, .until = 10 }, SM_SESSION, row));
}

TEST(what_rows_of_a_kind_do_not_have_is_not_asked_for)
{
    CHECK_EQ(check((struct sm_filter){ .key = QF_STR("a") }, SM_SESSION), QF_OK);
    CHECK_EQ(check((struct sm_filter){ .key = QF_STR("a") }, SM_RANGED), QF_EINVAL);
    CHECK_EQ(check((struct sm_filter){ .prefix = QF_STR("a") }, SM_TEMPORAL_RANGED), QF_EINVAL);
    CHECK_EQ(check((struct sm_filter){ .has_number = true }, SM_STATE), QF_EINVAL);
    CHECK_EQ(check((struct sm_filter){ .has_since = true }, SM_STATE), QF_EINVAL);
    CHECK_EQ(check((struct sm_filter){ .has_until = true }, SM_RANGED), QF_EINVAL);
    CHECK_EQ(check((struct sm_filter){ .has_until = true }, SM_TEMPORAL), QF_OK);
}
