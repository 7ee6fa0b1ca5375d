/* test_limits.c - the file of tenants' limits. */
#include <string.h>

#include "base/pure/limits.h"
#include "tests/lib/test.h"

static const struct qf_limits standard = { .of = { 10, 20, 30, 40, 50, 60, 70 } };

static const char *complaint(const char *text)
{
    static struct qf_err err;

    err = (struct qf_err){ 0 };
    CHECK(!qf_limits_parse(qf_str_from(text), "f", &err));
    return err.msg;
}

TEST(a_tenant_has_what_its_line_says_and_else_what_all_have)
{
    struct qf_err err = { 0 };
    struct qf_limits_table *table = qf_limits_parse(
        QF_STR("# tenants\n\n team-a\tqueries=3 memory=2KiB # small\nteam-b spool=5 samples=7"),
        "f", &err);
    struct qf_limits a, b, c;

    CHECK_MSG(table, "%s", err.msg);
    a = qf_limits_of(table, QF_STR("team-a"), &standard);
    CHECK_EQ(a.of[QF_LIMIT_QUERIES], 3);
    CHECK_EQ(a.of[QF_LIMIT_MEMORY], 2048);
    CHECK_EQ(a.of[QF_LIMIT_SPOOL], 70);
    b = qf_limits_of(table, QF_STR("team-b"), &standard);
    CHECK_EQ(b.of[QF_LIMIT_SPOOL], 5);
    CHECK_EQ(b.of[QF_LIMIT_SAMPLES], 7);
    CHECK_EQ(b.of[QF_LIMIT_QUERIES], 10);
    c = qf_limits_of(table, QF_STR("team"), &standard);
    CHECK(memcmp(&c, &standard, sizeof(c)) == 0);
    c = qf_limits_of(NULL, QF_STR("team-a"), &standard);
    CHECK(memcmp(&c, &standard, sizeof(c)) == 0);
    CHECK(!qf_limits_free(table));
}

TEST(lines_that_are_none_are_named)
{
    CHECK_STR(complaint("ok queries=1\n.hidden queries=1"), "f:2: not \"TENANT NAME=VALUE...\"");
    CHECK_STR(complaint("t quarries=1"), "f:1: no such limit");
    CHECK_STR(complaint("t queries"), "f:1: a limit is a whole number from 1");
    CHECK_STR(complaint("t queries=0"), "f:1: a limit is a whole number from 1");
    CHECK_STR(complaint("t queries=1KiB"), "f:1: a limit is a whole number from 1");
    CHECK_STR(complaint("t memory=much"), "f:1: a limit is a size, such as 512MiB");
    CHECK_STR(complaint("t memory=99999999999TiB"), "f:1: a limit is a size, such as 512MiB");
    CHECK_STR(complaint("t retention=0s"),
              "f:1: a retention is a duration such as 30d, or forever");
    CHECK_STR(complaint("t retention=30"),
              "f:1: a retention is a duration such as 30d, or forever");
    CHECK_STR(complaint("t retention=1d retention=2d"), "f:1: the same limit twice");
    CHECK_STR(complaint("t work=1 work=2"), "f:1: the same limit twice");
    CHECK_STR(complaint("t ha-pairs=1"), "f:1: a switch is on or off");
    CHECK_STR(complaint("t work=1\nt work=2"), "f: the same tenant twice");
}

TEST(a_retention_is_an_age_or_for_ever)
{
    struct qf_err err = { 0 };
    struct qf_limits none = { 0 }, month = { .of = { [QF_LIMIT_RETENTION] = 30000 } }, limits;
    struct qf_limits_table *table = qf_limits_parse(
        QF_STR("short retention=1s\nlong retention=forever\nelse work=1"), "f", &err);

    CHECK_MSG(table, "%s", err.msg);
    limits = qf_limits_of(table, QF_STR("short"), &month);
    CHECK_EQ(qf_limits_oldest(&limits, 100000), 99000);
    limits = qf_limits_of(table, QF_STR("long"), &month);
    CHECK_EQ(qf_limits_oldest(&limits, 100000), INT64_MIN);
    limits = qf_limits_of(table, QF_STR("else"), &month);
    CHECK_EQ(qf_limits_oldest(&limits, 100000), 70000);
    limits = qf_limits_of(table, QF_STR("else"), &none);
    CHECK_EQ(qf_limits_oldest(&limits, 100000), INT64_MIN);
    CHECK(!qf_limits_free(table));
}

static uint64_t retentions(const char *text, uint64_t others)
{
    struct qf_limits limits = { .of = { [QF_LIMIT_RETENTION] = others } };
    struct qf_limits_table *table = qf_limits_parse(qf_str_from(text), "f", NULL);
    uint64_t hash = qf_limits_retentions(table, NULL, &limits);

    CHECK(table);
    (void)qf_limits_free(table);
    return hash;
}

TEST(a_change_of_any_retention_shows_and_of_nothing_else)
{
    uint64_t one = retentions("a retention=1d\nb work=1", 0);

    CHECK(one != 0);
    CHECK_EQ(retentions("b work=1", 0), 0);
    CHECK_EQ(retentions("b work=2\na retention=1d queries=3", 0), one);
    CHECK(retentions("a retention=2d\nb work=1", 0) != one);
    CHECK(retentions("b retention=1d", 0) != one);
    CHECK(retentions("a retention=1d\nb retention=1d", 0) != one);
    CHECK(retentions("a retention=1d", 5) != one);
}

TEST(names_of_limits_are_those_of_the_file)
{
    CHECK_STR(qf_limit_name(QF_LIMIT_QUERIES), "queries");
    CHECK_STR(qf_limit_name(QF_LIMIT_SPOOL), "spool");
    CHECK_STR(qf_limit_name(QF_LIMIT_SAMPLES_RATE), "samples-rate");
    CHECK_STR(qf_limit_name(QF_LIMIT_VALUE_BYTES), "label-value-bytes");
}

/* What is printed is what is read. */
TEST(values_are_printed_as_they_are_read)
{
    static const struct {
        enum qf_limit limit;
        const char *text;
    } cases[] = { { QF_LIMIT_QUERIES, "4" },     { QF_LIMIT_MEMORY, "536870912" },
                  { QF_LIMIT_RETENTION, "30d" }, { QF_LIMIT_RETENTION, "forever" },
                  { QF_LIMIT_HA_PAIRS, "on" },   { QF_LIMIT_HA_PAIRS, "off" } };

    for (size_t i = 0; i < QF_COUNT_OF(cases); i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
        uint64_t value = 0, again = 0;

        CHECK(!qf_limit_read(cases[i].limit, qf_str_from(cases[i].text), &value));
        qf_limit_print(&text, cases[i].limit, value);
        CHECK(!qf_limit_read(cases[i].limit, qf_strbuf_view(&text), &again));
        CHECK_EQ(value, again);
    }
    CHECK_EQ(qf_limit_find(QF_STR("retention")), QF_LIMIT_RETENTION);
    CHECK_EQ(qf_limit_find(QF_STR("retentio")), QF_LIMIT__COUNT);
    CHECK(qf_limit_is_number(QF_LIMIT_SPOOL) && !qf_limit_is_number(QF_LIMIT_RETENTION));
}

/* What was agreed on of a tenant hides the whole line that the file has of it. */
TEST(retentions_of_settings_hide_those_of_the_file)
{
    const struct qf_limits others = { .of = { 0 } }, queries = { .of = { [QF_LIMIT_QUERIES] = 3 } };
    struct qf_limits_table *file = qf_limits_parse(QF_STR("a retention=1d"), "f", NULL);
    struct qf_limits_table *over = qf_limits_table_new();

    qf_limits_table_add(over, "a", &queries);
    qf_limits_table_add(over, "b", &others);
    qf_limits_table_seal(over);
    CHECK(qf_limits_has(over, QF_STR("a")) && qf_limits_has(over, QF_STR("b")));
    CHECK(!qf_limits_has(over, QF_STR("c")) && !qf_limits_has(NULL, QF_STR("a")));
    CHECK(qf_limits_retentions(file, NULL, &others) != 0);
    CHECK_EQ(qf_limits_retentions(file, over, &others), 0);
    (void)qf_limits_free(file);
    (void)qf_limits_free(over);
}
