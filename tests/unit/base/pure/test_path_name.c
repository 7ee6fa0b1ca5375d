/* test_path_name.c - names that are paths below a folder. */
#include "base/pure/path_name.h"
#include "tests/lib/test.h"

static const struct qf_path_name_rule rule = { 20, 8, '~' }, other = { 20, 8, 0 };

TEST(names_are_parts_between_single_slashes)
{
    CHECK(qf_path_name_valid(QF_STR("a/b=1/c.d"), &rule));
    CHECK(qf_path_name_valid(QF_STR("a"), &rule));
    CHECK(qf_path_name_valid(QF_STR("\xc3\xa9"), &rule));
    CHECK(!qf_path_name_valid(QF_STR(""), &rule));
    CHECK(!qf_path_name_valid((struct qf_str){ 0 }, &rule));
    CHECK(!qf_path_name_valid(QF_STR("/a"), &rule));
    CHECK(!qf_path_name_valid(QF_STR("a/"), &rule));
    CHECK(!qf_path_name_valid(QF_STR("a//b"), &rule));
}

TEST(names_do_not_lead_out_of_their_folder)
{
    CHECK(!qf_path_name_valid(QF_STR(".."), &rule));
    CHECK(!qf_path_name_valid(QF_STR("a/../b"), &rule));
    CHECK(!qf_path_name_valid(QF_STR("a/.b"), &rule));
    CHECK(!qf_path_name_valid(QF_STR("a\\b"), &rule));
}

TEST(names_are_text)
{
    CHECK(!qf_path_name_valid(QF_STR("a\nb"), &rule));
    CHECK(!qf_path_name_valid(QF_STR("a\x7f"), &rule));
    CHECK(!qf_path_name_valid((struct qf_str){ "a\0b", 3 }, &other));
    CHECK(!qf_path_name_valid(QF_STR("a\xff"), &rule));
}

TEST(names_have_bounds_and_a_character_may_be_taken)
{
    CHECK(qf_path_name_valid(QF_STR("12345678/12345678/12"), &rule));
    CHECK(!qf_path_name_valid(QF_STR("12345678/12345678/123"), &rule));
    CHECK(!qf_path_name_valid(QF_STR("123456789"), &rule));
    CHECK(!qf_path_name_valid(QF_STR("a~b"), &rule));
    CHECK(qf_path_name_valid(QF_STR("a~b"), &other));
}
