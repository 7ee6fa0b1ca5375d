/* test_rule.c - what a rule may say by itself and of its map. */
#include "statemap/core/rule.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"

static struct sm_rule rule_of(const char *from, enum sm_rule_into into, const char *to)
{
    struct sm_rule rule = { .separator = ";", .into = into, .from_count = 1 };

    (void)snprintf(rule.from[0], sizeof(rule.from[0]), "%s", from);
    (void)snprintf(rule.to, sizeof(rule.to), "%s", to);
    return rule;
}

static bool is_fine(struct sm_rule rule)
{
    struct qf_err err = { 0 };
    qf_rc rc = sm_rule_check(&rule, &err);

    CHECK(rc == QF_OK || (rc == QF_EINVAL && err.msg[0]));
    return rc == QF_OK;
}

TEST(a_rule_names_labels_that_may_be_set)
{
    struct sm_rule two = rule_of("a", SM_INTO_NAMED, "");

    CHECK(is_fine(rule_of("a", SM_INTO_LABEL, "b")));
    CHECK(is_fine(rule_of("__name__", SM_INTO_LABEL, "b")));
    CHECK(is_fine(rule_of("on-call", SM_INTO_LABEL, "b")));
    CHECK(is_fine(rule_of("a", SM_INTO_MEMBERS, "")));
    CHECK(!is_fine(rule_of("__replica__", SM_INTO_LABEL, "b")));
    CHECK(!is_fine(rule_of("", SM_INTO_LABEL, "b")));
    CHECK(!is_fine(rule_of("a", SM_INTO_LABEL, "")));
    CHECK(!is_fine(rule_of("a", SM_INTO_LABEL, "__name__")));
    CHECK(!is_fine(rule_of("a", SM_INTO_LABEL, "\xff")));
    CHECK(!is_fine(rule_of("a", SM_INTO_MEMBERS, "__x")));
    CHECK(!is_fine(two)); /* no members */
    two.member_count = 2;
    (void)snprintf(two.members[0].label, sizeof(two.members[0].label), "b");
    (void)snprintf(two.members[1].label, sizeof(two.members[1].label), "c");
    CHECK(is_fine(two));
    (void)snprintf(two.members[1].label, sizeof(two.members[1].label), "b");
    CHECK(!is_fine(two));
    two = rule_of("a", SM_INTO_LABEL, "b");
    two.from_count = 0;
    CHECK(!is_fine(two));
    two = rule_of("a", SM_INTO_LABEL, "b");
    two.order = SM_RULE_ORDER_MAX + 1;
    CHECK(!is_fine(two));
}

TEST(members_want_values_that_may_have_some)
{
    struct sm_rule one = rule_of("a", SM_INTO_LABEL, "b"), all = rule_of("a", SM_INTO_MEMBERS, "");
    struct sm_definition any = { .name = "m", .layout.kind = SM_TEMPORAL }, text = any, json = any,
                         session = { .name = "m", .layout.kind = SM_SESSION };

    text.type = SM_STRING;
    json.type = SM_JSON;
    CHECK_EQ(sm_rule_check_map(&one, &text, NULL), QF_OK);
    CHECK_EQ(sm_rule_check_map(&one, &session, NULL), QF_OK);
    CHECK_EQ(sm_rule_check_map(&all, &any, NULL), QF_OK);
    CHECK_EQ(sm_rule_check_map(&all, &json, NULL), QF_OK);
    CHECK_EQ(sm_rule_check_map(&all, &text, NULL), QF_EINVAL);
    CHECK_EQ(sm_rule_check_map(&all, &session, NULL), QF_EINVAL);
}

TEST(ranged_maps_are_asked_for_numbers_and_addresses)
{
    static const struct {
        const char *text;
        int64_t number; /* -1: it is none */
    } cases[] = { { "5", 5 },
                  { "10.0.1.7", 167772423 },
                  { "10.0.1.7:9100", 167772423 },
                  { "0.0.0.0", 0 },
                  { "255.255.255.255", 4294967295 },
                  { "1.2.3", -1 },
                  { "1.2.3.4.5", -1 },
                  { "1.2.3.256", -1 },
                  { "1.2.3.4:", -1 },
                  { "1.2.3.4:x", -1 },
                  { "host:9100", -1 },
                  { "", -1 },
                  { "1..2.3", -1 },
                  { "1.2.3.0004", -1 },
                  { "::1", -1 } };

    for (size_t i = 0; i < QF_COUNT_OF(cases); i++) {
        int64_t number = -1;
        bool is_number = sm_rule_number(qf_str_from(cases[i].text), &number);

        CHECK_MSG(is_number == (cases[i].number >= 0), "%s", cases[i].text);
        if (is_number)
            CHECK_EQ(number, cases[i].number);
    }
}
