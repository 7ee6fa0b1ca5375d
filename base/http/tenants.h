/* tenants.h - who asks: API keys and tenants.
 *
 * Without a key file every request is served; its tenant is X-Scope-OrgID, or "default". With one,
 * a request needs `Authorization: Bearer KEY` and its tenant is the key's; X-Scope-OrgID may repeat
 * it, and chooses freely if the key's tenant is "*".
 *
 * The file has one "KEY TENANT" per line; '#' starts a comment. */
#ifndef BASE_HTTP_TENANTS_H
#define BASE_HTTP_TENANTS_H

#include "base/pure/err.h"
#include "base/http/request.h"

struct qh_tenants;

#define QH_TENANT_DEFAULT "default"

/* @key_file may be NULL. NULL and @err filled: QF_EIO, QF_EINVAL. */
struct qh_tenants *qh_tenants_new(const char *key_file, struct qf_err *err);
struct qh_tenants *qh_tenants_free(struct qh_tenants *tenants);

/* The tenant of a request. QF_EAUTH: no key or a wrong one; QF_EDENIED: another tenant's data;
 * QF_EINVAL: not the name of a tenant. */
QF_MUST_CHECK qf_rc qh_tenants_of(const struct qh_tenants *tenants,
                                  const struct qh_request *request, struct qf_str *ret_tenant,
                                  struct qf_err *err);

/* The request's key is good for one tenant only: it must not see what others do. Without keys the
 * header is no more than a word, and whoever may ask at all may see everything. */
bool qh_tenants_confine(const struct qh_tenants *tenants, const struct qh_request *request);

#endif
