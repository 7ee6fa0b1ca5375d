/* tenant.h - names of tenants: the rule is the same in requests, in segments and in work. */
#ifndef BASE_PURE_TENANT_H
#define BASE_PURE_TENANT_H

#include <stdbool.h>

#include "base/pure/slice.h"

#define QF_TENANT_MAX 150

/* 1 to QF_TENANT_MAX of [A-Za-z0-9!_.*'()-], not starting with '.': what may stand in a path, a
 * URL and a header without escapes. */
bool qf_tenant_valid(struct qf_str tenant);

#endif
