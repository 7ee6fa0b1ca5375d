/* test_tenants.c - who may ask for what. */
#include "base/http/tenants.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/test.h"

static qf_rc ask(const struct qh_tenants *tenants, const char *authorization, const char *tenant,
                 struct qf_str *ret_tenant)
{
    struct qh_param headers[] = { { QF_STR("authorization"), qf_str_from(authorization) },
                                  { QF_STR("X-Scope-OrgID"), qf_str_from(tenant) } };
    struct qh_request request = { .headers = { .items = headers, .count = 2 } };

    return qh_tenants_of(tenants, &request, ret_tenant, NULL);
}

TEST(without_keys_the_header_names_the_tenant)
{
    struct qh_tenants *tenants = qh_tenants_new(NULL, NULL);
    struct qf_str tenant;

    CHECK_EQ(ask(tenants, "", "", &tenant), QF_OK);
    CHECK(qf_str_is(tenant, "default"));
    CHECK_EQ(ask(tenants, "Bearer whatever", "team-a", &tenant), QF_OK);
    CHECK(qf_str_is(tenant, "team-a"));
    CHECK_EQ(ask(tenants, "", "../etc", &tenant), QF_EINVAL);
    CHECK_EQ(ask(tenants, "", "a/b", &tenant), QF_EINVAL);
    (void)qh_tenants_free(tenants);
}

TEST(a_key_opens_its_own_tenant_only)
{
    char path[] = "/tmp/pf-keys-XXXXXX";
    struct qh_tenants *tenants;
    struct qf_err err = { 0 };
    struct qf_str tenant;
    FILE *file = fdopen(mkstemp(path), "w");

    CHECK(file);
    (void)fputs("# comment\n\nsecret1 team-a\nroot *  # any\n", file);
    (void)fclose(file);
    tenants = qh_tenants_new(path, &err);
    CHECK_MSG(tenants, "%s", err.msg);
    CHECK_EQ(ask(tenants, "", "", &tenant), QF_EAUTH);
    CHECK_EQ(ask(tenants, "Bearer secret", "", &tenant), QF_EAUTH);
    CHECK_EQ(ask(tenants, "Bearer secret1secret1", "", &tenant), QF_EAUTH);
    CHECK_EQ(ask(tenants, "Basic secret1", "", &tenant), QF_EAUTH);
    CHECK_EQ(ask(tenants, "Bearer secret1", "", &tenant), QF_OK);
    CHECK(qf_str_is(tenant, "team-a"));
    CHECK_EQ(ask(tenants, "Bearer secret1", "team-a", &tenant), QF_OK);
    CHECK_EQ(ask(tenants, "Bearer secret1", "team-b", &tenant), QF_EDENIED);
    CHECK_EQ(ask(tenants, "Bearer root", "team-b", &tenant), QF_OK);
    CHECK(qf_str_is(tenant, "team-b"));
    (void)qh_tenants_free(tenants);
    (void)unlink(path);
    CHECK(!qh_tenants_new("/nonexistent/keys", &err));
}
