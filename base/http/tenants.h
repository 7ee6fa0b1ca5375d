/* tenants.h - who asks: API keys and tenants.
 *
 * Without a key file every request is served; its tenant is X-Scope-OrgID, or "default". With one,
 * a request needs `Authorization: Bearer KEY`, or `Basic` with the key as password, and its tenant is the key's; X-Scope-OrgID may repeat
 * it, and chooses freely if the key's tenant is "*". keys.h has the file's form.
 *
 * The file is read again when it has changed. Whoever could write it could open every tenant's data:
 * a file that others may write is refused, and so is one with keys in the clear that others may
 * read. */
#ifndef BASE_HTTP_TENANTS_H
#define BASE_HTTP_TENANTS_H

#include "base/http/keys.h"
#include "base/http/request.h"
#include "base/pure/err.h"

struct qh_tenants;

#define QH_TENANT_DEFAULT "default"
#define QH_KEY_FILE_BYTES_MAX ((size_t)16 << 20)

/* @key_file may be NULL. NULL and @err filled: QF_EIO, QF_EINVAL. */
struct qh_tenants *qh_tenants_new(const char *key_file, struct qf_err *err);
struct qh_tenants *qh_tenants_free(struct qh_tenants *tenants); /* Accepts NULL, returns NULL. */

/* Read the key file again if it is another one than last time; *ret_changed says so. QF_EIO,
 * QF_EINVAL: it is not usable now, the keys read before stay. Any thread, one at a time. */
QF_MUST_CHECK qf_rc qh_tenants_refresh(struct qh_tenants *tenants, bool *ret_changed,
                                       struct qf_err *err);

/* Who sent a request. */
struct qh_caller {
    char tenant[QF_TENANT_MAX + 1];
    char key_name[QH_KEY_NAME_MAX + 1]; /* "" if there are no keys */
    /* May see what all tenants do: the key opens every tenant, or there are no keys (the header is no
     * more than a word then, and whoever may ask at all may see everything). */
    bool sees_all;
};

/* QF_EAUTH: no key or a wrong one; QF_EDENIED: another tenant's data; QF_EINVAL: not the name of a
 * tenant. Any thread. */
QF_MUST_CHECK qf_rc qh_tenants_of(struct qh_tenants *tenants, const struct qh_request *request,
                                  struct qh_caller *ret_caller, struct qf_err *err);

#endif
