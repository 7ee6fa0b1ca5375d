/* test_limits.c - the file of tenants' limits, and the tenants that have them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queryapi/tenant/tenants.h"
#include "tests/lib/test.h"

static const struct qa_limits standard = { .of = { 10, 20, 30, 40, 50, 60, 70 } };

static const char *complaint(const char *text)
{
    static struct qf_err err;

    err = (struct qf_err){ 0 };
    CHECK(!qa_limits_parse(qf_str_from(text), "f", &err));
    return err.msg;
}

TEST(a_tenant_has_what_its_line_says_and_else_what_all_have)
{
    struct qf_err err = { 0 };
    struct qa_limits_table *table = qa_limits_parse(
        QF_STR("# tenants\n\n team-a\tqueries=3 memory=2KiB # small\nteam-b spool=5 samples=7"),
        "f", &err);
    struct qa_limits a, b, c;

    CHECK_MSG(table, "%s", err.msg);
    a = qa_limits_of(table, QF_STR("team-a"), &standard);
    CHECK_EQ(a.of[QA_LIMIT_QUERIES], 3);
    CHECK_EQ(a.of[QA_LIMIT_MEMORY], 2048);
    CHECK_EQ(a.of[QA_LIMIT_SPOOL], 70);
    b = qa_limits_of(table, QF_STR("team-b"), &standard);
    CHECK_EQ(b.of[QA_LIMIT_SPOOL], 5);
    CHECK_EQ(b.of[QA_LIMIT_SAMPLES], 7);
    CHECK_EQ(b.of[QA_LIMIT_QUERIES], 10);
    c = qa_limits_of(table, QF_STR("team"), &standard);
    CHECK(memcmp(&c, &standard, sizeof(c)) == 0);
    c = qa_limits_of(NULL, QF_STR("team-a"), &standard);
    CHECK(memcmp(&c, &standard, sizeof(c)) == 0);
    CHECK(!qa_limits_free(table));
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
    CHECK_STR(complaint("t work=1\nt work=2"), "f: the same tenant twice");
}

TEST(a_retention_is_an_age_or_for_ever)
{
    struct qf_err err = { 0 };
    struct qa_limits none = { 0 }, month = { .of = { [QA_LIMIT_RETENTION] = 30000 } }, limits;
    struct qa_limits_table *table = qa_limits_parse(
        QF_STR("short retention=1s\nlong retention=forever\nelse work=1"), "f", &err);

    CHECK_MSG(table, "%s", err.msg);
    limits = qa_limits_of(table, QF_STR("short"), &month);
    CHECK_EQ(qa_limits_oldest(&limits, 100000), 99000);
    limits = qa_limits_of(table, QF_STR("long"), &month);
    CHECK_EQ(qa_limits_oldest(&limits, 100000), INT64_MIN);
    limits = qa_limits_of(table, QF_STR("else"), &month);
    CHECK_EQ(qa_limits_oldest(&limits, 100000), 70000);
    limits = qa_limits_of(table, QF_STR("else"), &none);
    CHECK_EQ(qa_limits_oldest(&limits, 100000), INT64_MIN);
    CHECK(!qa_limits_free(table));
}

static uint64_t retentions(const char *text, uint64_t others)
{
    struct qa_limits limits = { .of = { [QA_LIMIT_RETENTION] = others } };
    struct qa_limits_table *table = qa_limits_parse(qf_str_from(text), "f", NULL);
    uint64_t hash = qa_limits_retentions(table, &limits);

    CHECK(table);
    (void)qa_limits_free(table);
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
    CHECK_STR(qa_limit_name(QA_LIMIT_QUERIES), "queries");
    CHECK_STR(qa_limit_name(QA_LIMIT_SPOOL), "spool");
}

static void write_file(const char *path, const char *text)
{
    char fresh[200];
    FILE *file;

    (void)snprintf(fresh, sizeof(fresh), "%s.new", path);
    file = fopen(fresh, "w");
    CHECK(file);
    (void)fputs(text, file);
    (void)fclose(file);
    CHECK_EQ(rename(fresh, path), 0);
}

/* A file that is replaced counts from the next look; one that is broken leaves all as it was. */
TEST(limits_follow_their_file)
{
    char folder[] = "/tmp/pf-limits-XXXXXX", path[100];
    struct qf_purse all = { .limit = 100000 };
    struct qa_tenants_options options = { .limits = standard, .file = path, .purse = &all };
    struct qf_err err = { 0 };
    struct qa_tenants *tenants;
    struct qa_tenant *tenant, *same;
    struct qa_limits limits;
    bool changed;

    CHECK(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/limits", folder);
    CHECK(!qa_tenants_new(&options, &err));
    CHECK_EQ(err.rc, QF_EIO);
    write_file(path, "a memory=1000\n");
    tenants = qa_tenants_new(&options, NULL);
    CHECK(tenants);
    tenant = qa_tenants_take(tenants, QF_STR("a"), &limits);
    CHECK_EQ(limits.of[QA_LIMIT_MEMORY], 1000);
    CHECK(!qf_purse_take(&tenant->purse, 1001));
    CHECK_EQ(qa_tenants_refresh(tenants, &changed, NULL), QF_OK);
    CHECK(!changed);
    write_file(path, "a memory=2000 queries=1\n");
    CHECK_EQ(qa_tenants_refresh(tenants, &changed, NULL), QF_OK);
    CHECK(changed);
    CHECK(qf_purse_take(&tenant->purse, 1001));
    same = qa_tenants_take(tenants, QF_STR("a"), &limits);
    CHECK(same == tenant);
    CHECK_EQ(limits.of[QA_LIMIT_QUERIES], 1);
    write_file(path, "a memory\n");
    CHECK_EQ(qa_tenants_refresh(tenants, &changed, NULL), QF_EINVAL);
    CHECK(!changed);
    (void)unlink(path);
    CHECK_EQ(qa_tenants_refresh(tenants, &changed, NULL), QF_EIO);
    (void)qa_tenant_drop(same);
    same = qa_tenants_take(tenants, QF_STR("a"), &limits);
    CHECK_EQ(limits.of[QA_LIMIT_QUERIES], 1);
    qf_purse_give(&tenant->purse, 1001);
    CHECK_EQ(qf_purse_used(&all), 0);
    (void)qa_tenant_drop(same);
    CHECK(!qa_tenant_drop(tenant));
    CHECK(!qa_tenants_free(tenants));
    (void)rmdir(folder);
}

/* A tenant without queries is forgotten: the next one of its name is another. */
TEST(tenants_are_known_while_they_are_held)
{
    struct qf_purse all = { .limit = 100 };
    struct qa_tenants_options options = { .limits = standard, .purse = &all };
    struct qa_tenants *tenants = qa_tenants_new(&options, NULL);
    struct qa_limits limits;
    struct qa_tenant *a = qa_tenants_take(tenants, QF_STR("a"), &limits);
    struct qa_tenant *b = qa_tenants_take(tenants, QF_STR("b"), &limits);
    uint64_t id = a->id;

    CHECK(a->id != b->id);
    CHECK(qf_purse_take(&a->purse, 60));
    CHECK(!qf_purse_take(&b->purse, 50)); /* all of them together */
    CHECK(qf_purse_empty_ancestor(&b->purse) == &all);
    qf_purse_give(&a->purse, 60);
    (void)qa_tenant_drop(a);
    a = qa_tenants_take(tenants, QF_STR("a"), &limits);
    CHECK(a->id != id);
    (void)qa_tenant_drop(a);
    (void)qa_tenant_drop(b);
    (void)qa_tenants_free(tenants);
}
