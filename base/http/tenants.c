/* tenants.c - API keys and tenants. */
#include "base/http/tenants.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pure/alloc.h"
#include "base/pure/base64.h"
#include "base/sys/small_file.h"
#include "base/sys/thread.h"

struct qh_tenants {
    char *file; /* NULL: no keys are needed */
    struct qf_lock *lock;
    struct qh_keys *keys; /* under the lock */
    struct stat seen;     /* of whoever refreshes: the file as it was read */
};

struct qh_tenants *qh_tenants_free(struct qh_tenants *tenants)
{
    if (!tenants)
        return NULL;
    (void)qh_keys_free(tenants->keys);
    (void)qf_lock_free(tenants->lock);
    free(tenants->file);
    free(tenants);
    return NULL;
}

/* Who else may write or read the file. */
static qf_rc check_mode(const struct stat *file, const struct qh_keys *keys, const char *name,
                        struct qf_err *err)
{
    if (file->st_mode & (S_IWGRP | S_IWOTH))
        return qf_err_set(err, QF_EINVAL, "%s can be written by others: chmod go-w it", name);
    if ((file->st_mode & S_IROTH) && qh_keys_have_secrets(keys))
        return qf_err_set(err, QF_EINVAL,
                          "%s has keys that everybody can read: chmod o-r it, or keep their "
                          "digests (sha256:...) instead",
                          name);
    return QF_OK;
}

static struct qh_keys *read_keys(const char *name, struct stat *ret_seen, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct qh_keys *keys;

    if (qf_small_file_read(name, "the API keys", QH_KEY_FILE_BYTES_MAX, &text, ret_seen, err) !=
        QF_OK)
        return NULL;
    keys = qh_keys_parse(qf_strbuf_view(&text), name, err);
    if (keys && check_mode(ret_seen, keys, name, err) != QF_OK)
        keys = qh_keys_free(keys);
    return keys;
}

struct qh_tenants *qh_tenants_new(const char *key_file, struct qf_err *err)
{
    struct qh_tenants *tenants = qf_xcalloc(1, sizeof(*tenants));

    if (!key_file)
        return tenants;
    tenants->file = qf_xmemdup0(key_file, strlen(key_file));
    tenants->lock = qf_lock_new();
    tenants->keys = read_keys(key_file, &tenants->seen, err);
    return tenants->keys ? tenants : qh_tenants_free(tenants);
}

qf_rc qh_tenants_refresh(struct qh_tenants *tenants, bool *ret_changed, struct qf_err *err)
{
    struct qf_err cause = { 0 };
    struct qh_keys *keys, *old;
    struct stat now;

    *ret_changed = false;
    if (!tenants->file || !qf_small_file_changed(tenants->file, &tenants->seen))
        return QF_OK;
    keys = read_keys(tenants->file, &now, &cause);
    if (!keys)
        return qf_err_set(err, cause.rc, "%s", cause.msg);
    tenants->seen = now;
    *ret_changed = true;
    qf_lock_take(tenants->lock);
    old = tenants->keys;
    tenants->keys = keys;
    qf_lock_drop(tenants->lock);
    (void)qh_keys_free(old);
    return QF_OK;
}

/* What stands behind the name of a scheme, which counts in any case; data NULL: it is another one. */
static struct qf_str behind(struct qf_str authorization, const char *scheme)
{
    size_t len = strlen(scheme);

    if (authorization.len <= len || strncasecmp(authorization.data, scheme, len) != 0 ||
        authorization.data[len] != ' ')
        return (struct qf_str){ NULL, 0 };
    return qf_str_trim(qf_str_sub(authorization, len, authorization.len));
}

/* The key in an Authorization header: a bearer's token, or the password of basic authentication,
 * whatever the user's name; that is decoded into @plain. data NULL: there is none. */
static struct qf_str key_in(struct qf_str authorization, struct qf_strbuf *plain)
{
    struct qf_str coded = behind(authorization, "Basic"), pair;
    const char *colon;

    if (!coded.data)
        return behind(authorization, "Bearer");
    if (!qf_base64_decode(plain, coded) || plain->len == 0)
        return (struct qf_str){ NULL, 0 };
    pair = qf_strbuf_view(plain);
    colon = memchr(pair.data, ':', pair.len);
    return colon ? qf_str_sub(pair, (size_t)(colon - pair.data) + 1, pair.len)
                 : (struct qf_str){ NULL, 0 };
}

/* The key's owner, copied: the table may be another one a moment later. */
static bool find_owner(struct qh_tenants *tenants, const struct qh_request *request,
                       struct qh_key_owner *ret_owner)
{
    const struct qh_key_owner *owner;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf plain = QF_STRBUF_INIT;
    struct qf_str key = key_in(qh_request_header(request, "Authorization"), &plain);

    if (!key.data)
        return false;
    qf_lock_take(tenants->lock);
    owner = qh_keys_find(tenants->keys, key);
    if (owner)
        *ret_owner = *owner;
    qf_lock_drop(tenants->lock);
    return owner != NULL;
}

qf_rc qh_tenants_of(struct qh_tenants *tenants, const struct qh_request *request,
                    struct qh_caller *ret_caller, struct qf_err *err)
{
    struct qf_str asked = qf_str_trim(qh_request_header(request, "X-Scope-OrgID"));
    struct qh_key_owner owner = { .tenant = "*" };

    if (tenants->file && !find_owner(tenants, request, &owner))
        return qf_err_set(err, QF_EAUTH, "an API key is needed");
    ret_caller->sees_all = strcmp(owner.tenant, "*") == 0;
    memcpy(ret_caller->key_name, owner.name, sizeof(owner.name));
    if (!ret_caller->sees_all) {
        if (asked.len && !qf_str_is(asked, owner.tenant))
            return qf_err_set(err, QF_EDENIED, "the API key is not valid for this tenant");
        asked = qf_str_from(owner.tenant);
    }
    if (asked.len == 0)
        asked = QF_STR(QH_TENANT_DEFAULT);
    if (!qf_tenant_valid(asked))
        return qf_err_set(err, QF_EINVAL, "invalid tenant in X-Scope-OrgID");
    memcpy(ret_caller->tenant, asked.data, asked.len);
    ret_caller->tenant[asked.len] = '\0';
    return QF_OK;
}
