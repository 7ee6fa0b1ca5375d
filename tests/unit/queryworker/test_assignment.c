/* test_assignment.c - what a worker does not do for an API. */
#include <string.h>

#include "queryworker/work/assignment.h"
#include "tests/lib/test.h"

static qf_rc check(const char *tenant, const char *name, uint64_t size, struct qf_err *err)
{
    struct pb_segment segments[] = {
        { .name = QF_STR("tenant=a/date=1970-01-01/1.parquet"), .size_bytes = 1000 },
        { .name = qf_str_from(name), .size_bytes = size },
    };
    struct pb_assign message = { .tenant = qf_str_from(tenant),
                                 .segments = segments,
                                 .segment_count = 2 };

    *err = (struct qf_err){ 0 };
    return qw_assignment_check(&message, err);
}

/* Each segment lies in the folder of the work's tenant. */
TEST(a_segment_of_another_tenant_is_refused)
{
    struct qf_err err;

    CHECK_EQ(check("a", "tenant=a/date=1970-01-01/2.parquet", 1, &err), QF_OK);
    CHECK_EQ(check("a", "tenant=b/date=1970-01-01/2.parquet", 1, &err), QF_EDENIED);
    CHECK_MSG(strstr(err.msg, "tenant=b/"), "%s", err.msg);
    CHECK_EQ(check("a", "tenant=ab/date=1970-01-01/2.parquet", 1, &err), QF_EDENIED);
    CHECK_EQ(check("a", "tenant=a", 1, &err), QF_EDENIED);
    CHECK_EQ(check("a", "a/date=1970-01-01/2.parquet", 1, &err), QF_EDENIED);
    CHECK_EQ(check("a", "x/tenant=a/2.parquet", 1, &err), QF_EDENIED);
    CHECK_EQ(check("", "tenant=/2.parquet", 1, &err), QF_EINVAL);
    CHECK_EQ(check("a", "tenant=a/../tenant=b/2.parquet", 1, &err), QF_EINVAL);
    CHECK_EQ(check("a", "", 1, &err), QF_EINVAL);
}

/* Sizes add up to one that a disk can have. */
TEST(sizes_that_wrap_round_are_refused)
{
    struct qf_err err;

    CHECK_EQ(check("a", "tenant=a/2", INT64_MAX - 1000, &err), QF_OK);
    CHECK_EQ(check("a", "tenant=a/2", INT64_MAX - 999, &err), QF_EINVAL);
    CHECK_EQ(check("a", "tenant=a/2", UINT64_MAX, &err), QF_EINVAL);
    CHECK_EQ(check("a", "tenant=a/2", UINT64_MAX - 999, &err), QF_EINVAL);
}

/* What becomes a path and a header of a request is a name, and nothing else. */
TEST(names_of_state_maps_are_names)
{
    static const char *const bad[] = { "", "Team", "a/b", "a?b", "1a", "a b" };
    struct pb_map map = { .name = QF_STR("team") };
    struct pb_assign message = { .tenant = QF_STR("a"), .maps = { .inputs = &map, .count = 1 } };
    struct qf_err err = { 0 };

    CHECK_OK(qw_assignment_check(&message, &err), &err);
    for (size_t i = 0; i < QF_COUNT_OF(bad); i++) {
        map.name = qf_str_from(bad[i]);
        CHECK_EQ(qw_assignment_check(&message, &err), QF_EINVAL);
    }
    map.name = QF_STR("team");
    message.tenant = QF_STR("a\r\nX: y");
    CHECK_EQ(qw_assignment_check(&message, &err), QF_EINVAL);
}
