/* test_range.c - Range headers. */
#include "base/http/range.h"

#include "tests/lib/test.h"

static void check_part(const char *header, uint64_t size, uint64_t offset, uint64_t length)
{
    uint64_t got_offset = 99, got_length = 99;

    CHECK_EQ(qh_range_parse(qf_str_from(header), size, &got_offset, &got_length), QH_RANGE_PART);
    CHECK_EQ(got_offset, offset);
    CHECK_EQ(got_length, length);
}

TEST(single_ranges_are_parsed)
{
    check_part("bytes=0-0", 10, 0, 1);
    check_part("bytes=2-5", 10, 2, 4);
    check_part("bytes=2-", 10, 2, 8);
    check_part("bytes=-3", 10, 7, 3);
    check_part("bytes=-30", 10, 0, 10);
    check_part("bytes=9-100", 10, 9, 1);
}

TEST(ranges_outside_the_file_are_unsatisfiable)
{
    uint64_t offset, length;

    CHECK_EQ(qh_range_parse(QF_STR("bytes=10-"), 10, &offset, &length), QH_RANGE_UNSATISFIABLE);
    CHECK_EQ(qh_range_parse(QF_STR("bytes=-0"), 10, &offset, &length), QH_RANGE_UNSATISFIABLE);
    CHECK_EQ(qh_range_parse(QF_STR("bytes=0-"), 0, &offset, &length), QH_RANGE_UNSATISFIABLE);
    CHECK_EQ(qh_range_parse(QF_STR("bytes=18446744073709551615-"), 10, &offset, &length),
             QH_RANGE_UNSATISFIABLE);
}

TEST(other_range_headers_count_as_none)
{
    static const char *const headers[] = { "",          "bytes=",    "bytes=-",       "bytes=5-2",
                                           "lines=1-2", "bytes=a-b", "bytes=0-1,3-4", "bytes=1" };
    uint64_t offset, length;

    for (size_t i = 0; i < QF_COUNT_OF(headers); i++)
        CHECK_MSG(qh_range_parse(qf_str_from(headers[i]), 10, &offset, &length) == QH_RANGE_WHOLE,
                  "%s", headers[i]);
}
