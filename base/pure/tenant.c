/* tenant.c - names of tenants. */
#include "base/pure/tenant.h"

#include <string.h>

static bool tenant_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("!_.*'()-", c));
}

bool qf_tenant_valid(struct qf_str tenant)
{
    if (!tenant.len || tenant.len > QF_TENANT_MAX || tenant.data[0] == '.')
        return false;
    for (size_t i = 0; i < tenant.len; i++) {
        if (!tenant_char(tenant.data[i]))
            return false;
    }
    return true;
}
