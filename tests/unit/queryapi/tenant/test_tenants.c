/* test_tenants.c - tenants that have queries, and their limits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "queryapi/tenant/tenants.h"
#include "tests/lib/test.h"

static const struct qf_limits standard = { .of = { 10, 20, 30, 40, 50, 60, 70 } };

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
    struct qf_limits limits;
    bool changed;

    CHECK(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/limits", folder);
    CHECK(!qa_tenants_new(&options, &err));
    CHECK_EQ(err.rc, QF_EIO);
    write_file(path, "a memory=1000\n");
    tenants = qa_tenants_new(&options, NULL);
    CHECK(tenants);
    tenant = qa_tenants_take(tenants, QF_STR("a"), &limits);
    CHECK_EQ(limits.of[QF_LIMIT_MEMORY], 1000);
    CHECK(!qf_purse_take(&tenant->purse, 1001));
    CHECK_EQ(qa_tenants_refresh(tenants, &changed, NULL), QF_OK);
    CHECK(!changed);
    write_file(path, "a memory=2000 queries=1\n");
    CHECK_EQ(qa_tenants_refresh(tenants, &changed, NULL), QF_OK);
    CHECK(changed);
    CHECK(qf_purse_take(&tenant->purse, 1001));
    same = qa_tenants_take(tenants, QF_STR("a"), &limits);
    CHECK(same == tenant);
    CHECK_EQ(limits.of[QF_LIMIT_QUERIES], 1);
    write_file(path, "a memory\n");
    CHECK_EQ(qa_tenants_refresh(tenants, &changed, NULL), QF_EINVAL);
    CHECK(!changed);
    (void)unlink(path);
    CHECK_EQ(qa_tenants_refresh(tenants, &changed, NULL), QF_EIO);
    (void)qa_tenant_drop(same);
    same = qa_tenants_take(tenants, QF_STR("a"), &limits);
    CHECK_EQ(limits.of[QF_LIMIT_QUERIES], 1);
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
    struct qf_limits limits;
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

/* Settings that were agreed on count before the file, whole; before they are heard of nobody knows. */
TEST(settings_count_before_the_file)
{
    char folder[] = "/tmp/pf-limits-XXXXXX", path[100];
    struct qf_purse all = { .limit = 100000 };
    struct qa_tenants_options options = { .limits = standard, .file = path, .purse = &all };
    const struct qf_limits of_a = { .of = { [QF_LIMIT_MEMORY] = 500 } };
    struct qf_limits_table *settings = qf_limits_table_new();
    struct qa_tenants *tenants;
    struct qa_tenant *a;
    struct qf_limits limits;

    CHECK(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/limits", folder);
    write_file(path, "a memory=1000 queries=2 retention=1d\nb queries=3\n");
    tenants = qa_tenants_new(&options, NULL);
    CHECK(tenants && qa_tenants_known(tenants));
    CHECK_EQ(qa_tenants_age_ms(tenants, 5000), 0);
    qa_tenants_await(tenants);
    CHECK(!qa_tenants_known(tenants));
    CHECK_EQ(qa_tenants_age_ms(tenants, 5000), -1);
    a = qa_tenants_take(tenants, QF_STR("a"), &limits);
    CHECK_EQ(limits.of[QF_LIMIT_QUERIES], 2);
    qf_limits_table_add(settings, "a", &of_a);
    qf_limits_table_seal(settings);
    qa_tenants_settle(tenants, settings, 1);
    qa_tenants_confirm(tenants, 4000);
    qa_tenants_confirm(tenants, 3000); /* a node that knows less */
    CHECK(qa_tenants_known(tenants));
    CHECK_EQ(qa_tenants_age_ms(tenants, 5000), 1000);
    CHECK_EQ(qa_tenants_settled(tenants), 1);
    CHECK(!qf_purse_take(&a->purse, 501)); /* at once */
    limits = qa_tenants_limits(tenants, QF_STR("a"));
    CHECK_EQ(limits.of[QF_LIMIT_QUERIES], standard.of[QF_LIMIT_QUERIES]);
    CHECK_EQ(limits.of[QF_LIMIT_RETENTION], 0);
    limits = qa_tenants_limits(tenants, QF_STR("b"));
    CHECK_EQ(limits.of[QF_LIMIT_QUERIES], 3);
    CHECK_EQ(qa_tenants_retentions(tenants), 0);
    (void)qa_tenant_drop(a);
    (void)qa_tenants_free(tenants);
    (void)unlink(path);
    (void)rmdir(folder);
}
