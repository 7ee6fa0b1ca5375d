/* tenants.c - API keys and tenants. */
#include "base/http/tenants.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/tenant.h"
#include "base/pure/vec.h"

struct key {
    char *key, *tenant;
};

struct qh_tenants {
    QF_VEC(struct key) keys;
    bool keys_needed;
};

struct qh_tenants *qh_tenants_free(struct qh_tenants *tenants)
{
    if (!tenants)
        return NULL;
    for (size_t i = 0; i < tenants->keys.count; i++) {
        free(tenants->keys.items[i].key);
        free(tenants->keys.items[i].tenant);
    }
    QF_VEC_DONE(&tenants->keys);
    free(tenants);
    return NULL;
}

/* "KEY TENANT"; false if it is something else. Comments and blank lines are fine. */
static bool add_line(struct qh_tenants *tenants, struct qf_str line)
{
    const char *hash = memchr(line.data, '#', line.len);
    struct qf_str key, tenant;
    size_t end = 0;

    if (hash)
        line = qf_str_sub(line, 0, (size_t)(hash - line.data));
    line = qf_str_trim(line);
    if (line.len == 0)
        return true;
    while (end < line.len && line.data[end] != ' ' && line.data[end] != '\t')
        end++;
    key = qf_str_sub(line, 0, end);
    tenant = qf_str_trim(qf_str_sub(line, end, line.len));
    if (!qf_str_is(tenant, "*") && !qf_tenant_valid(tenant))
        return false;
    QF_VEC_PUSH(&tenants->keys, (struct key){ qf_xmemdup0(key.data, key.len),
                                              qf_xmemdup0(tenant.data, tenant.len) });
    return true;
}

struct qh_tenants *qh_tenants_new(const char *key_file, struct qf_err *err)
{
    struct qh_tenants *tenants = qf_xcalloc(1, sizeof(*tenants));
    char line[1024];
    int number = 0;
    FILE *file;

    if (!key_file)
        return tenants;
    tenants->keys_needed = true;
    file = fopen(key_file, "re");
    if (!file) {
        (void)qf_err_set(err, QF_EIO, "cannot read the API keys in %s", key_file);
        return qh_tenants_free(tenants);
    }
    while (fgets(line, sizeof(line), file)) {
        number++;
        if (add_line(tenants, qf_str_from(line)))
            continue;
        (void)qf_err_set(err, QF_EINVAL, "%s:%d: not \"KEY TENANT\"", key_file, number);
        (void)fclose(file);
        return qh_tenants_free(tenants);
    }
    (void)fclose(file);
    return tenants;
}

/* Equal, in a time that tells nothing about where they differ. */
static bool same_secret(struct qf_str given, const char *key)
{
    size_t len = strlen(key);
    unsigned char difference = given.len != len;

    for (size_t i = 0; i < given.len; i++)
        difference |= (unsigned char)(given.data[i] ^ key[len ? i % len : 0]);
    return difference == 0;
}

static const char *tenant_of_key(const struct qh_tenants *tenants, struct qf_str authorization)
{
    const char *found = NULL;
    struct qf_str key;

    if (!qf_str_starts(authorization, QF_STR("Bearer ")))
        return NULL;
    key = qf_str_trim(qf_str_sub(authorization, 7, authorization.len));
    for (size_t i = 0; i < tenants->keys.count; i++)
        if (same_secret(key, tenants->keys.items[i].key))
            found = tenants->keys.items[i].tenant;
    return found;
}

bool qh_tenants_confine(const struct qh_tenants *tenants, const struct qh_request *request)
{
    const char *own = NULL;

    if (tenants->keys_needed)
        own = tenant_of_key(tenants, qh_request_header(request, "Authorization"));
    return own && strcmp(own, "*") != 0;
}

qf_rc qh_tenants_of(const struct qh_tenants *tenants, const struct qh_request *request,
                    struct qf_str *ret_tenant, struct qf_err *err)
{
    struct qf_str asked = qf_str_trim(qh_request_header(request, "X-Scope-OrgID"));
    const char *own = NULL;

    if (tenants->keys_needed) {
        own = tenant_of_key(tenants, qh_request_header(request, "Authorization"));
        if (!own)
            return qf_err_set(err, QF_EAUTH, "an API key is needed");
        if (strcmp(own, "*") == 0)
            own = NULL;
        else if (asked.len && !qf_str_is(asked, own))
            return qf_err_set(err, QF_EDENIED, "the API key is not valid for this tenant");
    }
    if (own)
        asked = qf_str_from(own);
    else if (asked.len == 0)
        asked = QF_STR(QH_TENANT_DEFAULT);
    if (!qf_tenant_valid(asked))
        return qf_err_set(err, QF_EINVAL, "invalid tenant in X-Scope-OrgID");
    *ret_tenant = asked;
    return QF_OK;
}
