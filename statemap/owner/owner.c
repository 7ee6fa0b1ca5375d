/* owner.c - tenants' maps by the log: where it stands, who has maps, which entry means what. */
#include "statemap/owner/owner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys/small_file.h"
#include "statemap/owner/owner_int.h"

#define POSITION "position"

/* --- opening --- */

static qf_rc read_position(struct sm_owner *owner, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *path = sm_path(owner->root, POSITION, NULL);
    struct stat seen;
    qf_rc rc;

    owner->next = 1;
    if (!sm_exists(path))
        return QF_OK;
    rc = qf_small_file_read(path, "how far the log of maps was done", 64, &text, &seen, err);
    if (rc == QF_OK && (sscanf(qf_strbuf_cstr(&text), "%" SCNu64 " %" SCNu64, &owner->applied,
                               &owner->next) != 2 ||
                        !owner->next || owner->next > owner->applied + 1))
        rc = qf_err_set(err, QF_ECORRUPT, "%s is damaged", path);
    owner->saved_applied = owner->applied;
    owner->saved_needed = owner->next;
    return rc;
}

static qf_rc prepare(struct sm_owner *owner, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *receive = sm_path(owner->root, "receive", NULL);
    QF_CLEANUP(qf_freep) char *outgoing = sm_path(owner->root, "outgoing", NULL);
    QF_CLEANUP(qf_freep) char *tenants = sm_path(owner->root, "tenants", NULL);
    qf_rc rc = sm_folder_make(owner->root, err);

    if (rc == QF_OK)
        rc = sm_folder_empty(receive, err);
    if (rc == QF_OK)
        rc = sm_folder_empty(outgoing, err);
    if (rc == QF_OK)
        rc = sm_folder_make(tenants, err);
    return rc == QF_OK ? read_position(owner, err) : rc;
}

/* Parts may wait in the stores of whoever has some: so all are opened. */
static qf_rc open_tenants(struct sm_owner *owner, struct qf_err *err)
{
    QF_CLEANUP(sm_names_done) struct sm_names names = { 0 };
    qf_rc rc = sm_owner_tenants(owner, &names, err);

    for (size_t i = 0; i < names.names.count && rc == QF_OK; i++) {
        struct sm_tenant *tenant;

        rc = sm_owner_tenant(owner, qf_str_from(names.names.items[i]), false, &tenant, err);
    }
    return rc;
}

qf_rc sm_owner_open(const char *root, struct sm_owner **ret_owner, struct qf_err *err)
{
    struct sm_owner *owner = qf_xcalloc(1, sizeof(*owner));
    qf_rc rc;

    owner->root = qf_xstrdup(root);
    owner->lock = qf_lock_new();
    rc = prepare(owner, err);
    if (rc == QF_OK)
        rc = open_tenants(owner, err);
    if (rc == QF_OK)
        *ret_owner = owner;
    else
        (void)sm_owner_close(owner);
    return rc;
}

struct sm_owner *sm_owner_close(struct sm_owner *owner)
{
    if (!owner)
        return NULL;
    sm_uploads_forget(owner);
    QF_VEC_DONE(&owner->uploads);
    for (size_t i = 0; i < owner->tenants.count; i++) {
        (void)sm_store_close(owner->tenants.items[i]->store);
        free(owner->tenants.items[i]);
    }
    QF_VEC_DONE(&owner->tenants);
    (void)qf_lock_free(owner->lock);
    free(owner->root);
    free(owner);
    return NULL;
}

/* --- tenants --- */

/* With the lock. */
static struct sm_tenant *find_tenant(struct sm_owner *owner, struct qf_str name)
{
    for (size_t i = 0; i < owner->tenants.count; i++)
        if (qf_str_is(name, owner->tenants.items[i]->name))
            return owner->tenants.items[i];
    return NULL;
}

/* With the lock. */
static qf_rc open_tenant(struct sm_owner *owner, struct qf_str name, bool create,
                         struct sm_tenant **ret_tenant, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *folder = sm_path(owner->root, "tenants", NULL);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    struct sm_store_options options = { .write = true };
    struct sm_tenant *tenant;
    qf_rc rc;

    qf_strbuf_printf(&path, "%s/%.*s", folder, QF_STR_ARG(name));
    options.root = qf_strbuf_cstr(&path);
    if (!create && !sm_exists(options.root))
        return qf_err_set(err, QF_ENOTFOUND, "tenant %.*s has no maps", QF_STR_ARG(name));
    tenant = qf_xcalloc(1, sizeof(*tenant));
    (void)snprintf(tenant->name, sizeof(tenant->name), "%.*s", QF_STR_ARG(name));
    rc = sm_store_open(&options, &tenant->store, err);
    if (rc == QF_OK)
        rc = sm_folder_sync(folder, err);
    if (rc != QF_OK) {
        (void)sm_store_close(tenant->store);
        free(tenant);
        return rc;
    }
    QF_VEC_PUSH(&owner->tenants, tenant);
    *ret_tenant = tenant;
    return QF_OK;
}

qf_rc sm_owner_tenant(struct sm_owner *owner, struct qf_str name, bool create,
                      struct sm_tenant **ret_tenant, struct qf_err *err)
{
    struct sm_tenant *tenant;
    qf_rc rc = QF_OK;

    if (!qf_tenant_valid(name))
        return qf_err_set(err, QF_EINVAL, "not the name of a tenant");
    qf_lock_take(owner->lock);
    tenant = find_tenant(owner, name);
    if (!tenant)
        rc = open_tenant(owner, name, create, &tenant, err);
    qf_lock_drop(owner->lock);
    if (rc == QF_OK)
        *ret_tenant = tenant;
    return rc;
}

qf_rc sm_owner_store(struct sm_owner *owner, struct qf_str tenant, struct sm_store **ret_store,
                     struct qf_err *err)
{
    struct sm_tenant *found;
    qf_rc rc = sm_owner_tenant(owner, tenant, false, &found, err);

    if (rc == QF_OK)
        *ret_store = found->store;
    return rc;
}

char *sm_owner_outgoing(const struct sm_owner *owner, uint64_t upload)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_printf(&path, "%s/outgoing/%016" PRIx64, owner->root, upload);
    return qf_strbuf_take(&path);
}

qf_rc sm_owner_tenants(struct sm_owner *owner, struct sm_names *ret_names, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *folder = sm_path(owner->root, "tenants", NULL);

    return sm_folder_list(folder, ret_names, err);
}

/* --- merging --- */

void sm_tenant_merge(struct sm_tenant *tenant)
{
    tenant->why = (struct qf_err){ 0 };
    if (sm_store_merge(tenant->store, &tenant->waiting, &tenant->why) == QF_OK)
        tenant->why = (struct qf_err){ 0 };
}

void sm_owner_merge(struct sm_owner *owner)
{
    for (size_t i = 0; i < owner->tenants.count; i++)
        sm_tenant_merge(owner->tenants.items[i]);
}

uint64_t sm_owner_waiting(const struct sm_owner *owner, struct qf_err *ret_why)
{
    uint64_t waiting = 0;

    *ret_why = (struct qf_err){ 0 };
    for (size_t i = 0; i < owner->tenants.count; i++) {
        const struct sm_tenant *tenant = owner->tenants.items[i];

        waiting += tenant->waiting;
        if (tenant->why.rc != QF_OK && ret_why->rc == QF_OK)
            (void)qf_err_set(ret_why, tenant->why.rc, "tenant %s: %s", tenant->name,
                             tenant->why.msg);
    }
    return waiting;
}

/* --- the log --- */

uint64_t sm_owner_next(const struct sm_owner *owner)
{
    return owner->next;
}

uint64_t sm_owner_applied(const struct sm_owner *owner)
{
    return owner->applied;
}

uint64_t sm_owner_needed(const struct sm_owner *owner)
{
    uint64_t needed = QF_MAX(owner->applied + 1, owner->next);

    for (size_t i = 0; i < owner->uploads.count; i++)
        needed = QF_MIN(needed, owner->uploads.items[i].first);
    /* Entries that are read again have to be read before others may go. */
    return owner->next <= owner->applied ? QF_MIN(needed, owner->saved_needed) : needed;
}

static qf_rc apply(struct sm_owner *owner, uint64_t position, int64_t time_ms,
                   const struct sm_entry *entry, struct sm_verdict *verdict, struct qf_err *err)
{
    bool again = position <= owner->applied;

    sm_uploads_expire(owner, time_ms);
    switch (entry->kind) {
    case SM_ENTRY_DEFINE:
        return again ? QF_OK : sm_apply_define(owner, position, entry, verdict, err);
    case SM_ENTRY_DROP:
        return again ? QF_OK : sm_apply_drop(owner, position, entry, verdict, err);
    case SM_ENTRY_RULE:
        return again ? QF_OK : sm_apply_rule(owner, position, time_ms, entry, verdict, err);
    case SM_ENTRY_UNRULE:
        return again ? QF_OK : sm_apply_unrule(owner, position, time_ms, entry, verdict, err);
    case SM_ENTRY_PIECE:
        return sm_apply_piece(owner, position, time_ms, entry, err);
    case SM_ENTRY_LOAD:
        return sm_apply_load(owner, position, again, entry, verdict, err);
    }
    return QF_OK;
}

qf_rc sm_owner_apply(struct sm_owner *owner, uint64_t position, int64_t time_ms,
                     struct qf_str bytes, struct sm_verdict *ret_verdict, struct qf_err *err)
{
    struct sm_entry entry;
    qf_rc rc = QF_OK;

    *ret_verdict = (struct sm_verdict){ 0 };
    if (position < owner->next)
        return QF_OK;
    if (sm_entry_decode(bytes, &entry) != QF_OK)
        (void)qf_err_set(&ret_verdict->err, QF_EUNSUPPORTED,
                         "an entry that this release does not know");
    else
        rc = apply(owner, position, time_ms, &entry, ret_verdict, err);
    if (rc == QF_OK)
        sm_owner_pass(owner, position + 1);
    return rc;
}

void sm_owner_pass(struct sm_owner *owner, uint64_t next)
{
    owner->next = QF_MAX(owner->next, next);
    owner->applied = QF_MAX(owner->applied, owner->next - 1);
}

qf_rc sm_owner_save(struct sm_owner *owner, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    uint64_t needed = sm_owner_needed(owner);
    qf_rc rc;

    if (owner->saved_applied == owner->applied && owner->saved_needed == needed)
        return QF_OK;
    qf_strbuf_printf(&text, "%" PRIu64 " %" PRIu64 "\n", owner->applied, needed);
    rc = sm_file_replace(owner->root, POSITION, qf_strbuf_view(&text), err);
    if (rc == QF_OK) {
        owner->saved_applied = owner->applied;
        owner->saved_needed = needed;
    }
    return rc;
}
