/* test_tenants.c - who may ask for what. */
#include "base/http/tenants.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test.h"

static qf_rc ask(struct qh_tenants *tenants, const char *authorization, const char *tenant,
                 struct qh_caller *ret_caller)
{
    struct qh_param headers[] = { { QF_STR("authorization"), qf_str_from(authorization) },
                                  { QF_STR("X-Scope-OrgID"), qf_str_from(tenant) } };
    struct qh_request request = { .headers = { .items = headers, .count = 2 } };

    return qh_tenants_of(tenants, &request, ret_caller, NULL);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    char fresh[200];
    FILE *file;

    (void)snprintf(fresh, sizeof(fresh), "%s.new", path);
    file = fopen(fresh, "w");
    CHECK(file);
    (void)fputs(text, file);
    (void)fclose(file);
    CHECK_EQ(chmod(fresh, mode), 0);
    CHECK_EQ(rename(fresh, path), 0);
}

/* A folder of this test alone, and a file in it. */
static const char *new_path(void)
{
    static char path[100];
    char folder[] = "/tmp/pf-keys-XXXXXX";

    CHECK(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/keys", folder);
    return path;
}

static void remove_path(const char *path)
{
    char folder[100];

    (void)unlink(path);
    (void)snprintf(folder, sizeof(folder), "%s", path);
    *strrchr(folder, '/') = '\0';
    (void)rmdir(folder);
}

TEST(without_keys_the_header_names_the_tenant)
{
    struct qh_tenants *tenants = qh_tenants_new(NULL, NULL);
    struct qh_caller caller;
    bool changed;

    CHECK_EQ(ask(tenants, "", "", &caller), QF_OK);
    CHECK_STR(caller.tenant, "default");
    CHECK(caller.sees_all);
    CHECK_STR(caller.key_name, "");
    CHECK_EQ(ask(tenants, "Bearer whatever", "team-a", &caller), QF_OK);
    CHECK_STR(caller.tenant, "team-a");
    CHECK_EQ(ask(tenants, "", "../etc", &caller), QF_EINVAL);
    CHECK_EQ(ask(tenants, "", "a/b", &caller), QF_EINVAL);
    CHECK_EQ(qh_tenants_refresh(tenants, &changed, NULL), QF_OK);
    CHECK(!changed);
    (void)qh_tenants_free(tenants);
}

TEST(a_key_opens_its_own_tenant_only)
{
    const char *path = new_path();
    struct qh_tenants *tenants;
    struct qf_err err = { 0 };
    struct qh_caller caller;

    write_file(path, "# comment\n\nsecret1 team-a alice\nroot *  # any\n", 0600);
    tenants = qh_tenants_new(path, &err);
    CHECK_MSG(tenants, "%s", err.msg);
    CHECK_EQ(ask(tenants, "", "", &caller), QF_EAUTH);
    CHECK_EQ(ask(tenants, "Bearer secret", "", &caller), QF_EAUTH);
    CHECK_EQ(ask(tenants, "Bearer secret1secret1", "", &caller), QF_EAUTH);
    CHECK_EQ(ask(tenants, "Basic secret1", "", &caller), QF_EAUTH);
    CHECK_EQ(ask(tenants, "Bearer secret1", "", &caller), QF_OK);
    CHECK_STR(caller.tenant, "team-a");
    CHECK_STR(caller.key_name, "alice");
    CHECK(!caller.sees_all);
    CHECK_EQ(ask(tenants, "Bearer secret1", "team-a", &caller), QF_OK);
    CHECK_EQ(ask(tenants, "bearer  secret1", "", &caller), QF_OK);
    CHECK_EQ(ask(tenants, "Bearersecret1", "", &caller), QF_EAUTH);
    CHECK_EQ(ask(tenants, "basic YW55OnNlY3JldDE=", "", &caller), QF_OK); /* any:secret1 */
    CHECK_STR(caller.tenant, "team-a");
    CHECK_EQ(ask(tenants, "Basic c2VjcmV0MQ==", "", &caller), QF_EAUTH); /* secret1, no user */
    CHECK_EQ(ask(tenants, "Basic !", "", &caller), QF_EAUTH);
    CHECK_EQ(ask(tenants, "Bearer secret1", "team-b", &caller), QF_EDENIED);
    CHECK_EQ(ask(tenants, "Bearer root", "team-b", &caller), QF_OK);
    CHECK_STR(caller.tenant, "team-b");
    CHECK_STR(caller.key_name, "key-4");
    CHECK(caller.sees_all);
    (void)qh_tenants_free(tenants);
    remove_path(path);
    CHECK(!qh_tenants_new("/nonexistent/keys", &err));
}

/* A key that was taken away is worthless at once; a file that makes no sense changes nothing. */
TEST(a_changed_file_is_read_again)
{
    const char *path = new_path();
    struct qh_tenants *tenants;
    struct qf_err err = { 0 };
    struct qh_caller caller;
    bool changed;

    write_file(path, "old team-a\n", 0600);
    tenants = qh_tenants_new(path, &err);
    CHECK_EQ(qh_tenants_refresh(tenants, &changed, &err), QF_OK);
    CHECK(!changed);
    write_file(path, "new team-a\n", 0600);
    CHECK_EQ(qh_tenants_refresh(tenants, &changed, &err), QF_OK);
    CHECK(changed);
    CHECK_EQ(ask(tenants, "Bearer old", "", &caller), QF_EAUTH);
    CHECK_EQ(ask(tenants, "Bearer new", "", &caller), QF_OK);
    write_file(path, "nonsense\n", 0600);
    CHECK_EQ(qh_tenants_refresh(tenants, &changed, &err), QF_EINVAL);
    CHECK_EQ(ask(tenants, "Bearer new", "", &caller), QF_OK);
    (void)unlink(path);
    CHECK_EQ(qh_tenants_refresh(tenants, &changed, &err), QF_EIO);
    CHECK_EQ(ask(tenants, "Bearer new", "", &caller), QF_OK);
    (void)qh_tenants_free(tenants);
    remove_path(path);
}

TEST(a_file_that_others_may_change_or_read_is_refused)
{
    static const struct {
        const char *text;
        mode_t mode;
        bool good;
    } cases[] = {
        { "secret team-a\n", 0600, true },
        { "secret team-a\n", 0640, true },
        { "secret team-a\n", 0644, false },
        { "secret team-a\n", 0660, false },
        { "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b team-a\n", 0644,
          true },
        { "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b team-a\n", 0666,
          false },
    };
    const char *path = new_path();

    for (size_t i = 0; i < QF_COUNT_OF(cases); i++) {
        struct qf_err err = { 0 };
        struct qh_caller caller;
        struct qh_tenants *tenants;

        write_file(path, cases[i].text, cases[i].mode);
        tenants = qh_tenants_new(path, &err);
        CHECK_MSG(!tenants == !cases[i].good, "case %zu: %s", i, err.msg);
        if (tenants)
            CHECK_EQ(ask(tenants, "Bearer secret", "", &caller), QF_OK);
        else
            CHECK_EQ(err.rc, QF_EINVAL);
        (void)qh_tenants_free(tenants);
    }
    remove_path(path);
}
