/* tenants.c - tenants that have queries. */
#include "queryapi/tenant/tenants.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/sys/small_file.h"
#include "base/sys/thread.h"

#define BUCKETS 256

struct qa_tenants {
    struct qa_tenants_options options;
    struct stat seen;     /* of whoever refreshes: the file as it was read */
    struct qf_lock *lock; /* guards all below */
    struct qa_limits_table *table;
    struct qa_tenant *buckets[BUCKETS];
    uint64_t ids;
};

static struct qa_limits_table *read_table(const char *file, struct stat *ret_seen,
                                          struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    if (qf_small_file_read(file, "the tenants' limits", QA_LIMITS_FILE_BYTES_MAX, &text, ret_seen,
                           err) != QF_OK)
        return NULL;
    return qa_limits_parse(qf_strbuf_view(&text), file, err);
}

struct qa_tenants *qa_tenants_new(const struct qa_tenants_options *options, struct qf_err *err)
{
    struct qa_tenants *tenants = qf_xcalloc(1, sizeof(*tenants));

    tenants->options = *options;
    tenants->lock = qf_lock_new();
    if (!options->file)
        return tenants;
    tenants->table = read_table(options->file, &tenants->seen, err);
    return tenants->table ? tenants : qa_tenants_free(tenants);
}

struct qa_tenants *qa_tenants_free(struct qa_tenants *tenants)
{
    if (!tenants)
        return NULL;
    (void)qa_limits_free(tenants->table);
    (void)qf_lock_free(tenants->lock);
    free(tenants);
    return NULL;
}

static size_t memory_of(const struct qa_limits *limits)
{
    return limits->of[QA_LIMIT_MEMORY] ? limits->of[QA_LIMIT_MEMORY] : SIZE_MAX;
}

static void set_memory(struct qa_tenants *tenants)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct qa_tenant *at = tenants->buckets[i]; at; at = at->next) {
            struct qa_limits limits =
                qa_limits_of(tenants->table, qf_str_from(at->name), &tenants->options.limits);

            at->purse.limit = memory_of(&limits);
        }
    }
}

qf_rc qa_tenants_refresh(struct qa_tenants *tenants, bool *ret_changed, struct qf_err *err)
{
    const char *file = tenants->options.file;
    struct qa_limits_table *table, *old;
    struct qf_err cause = { 0 };
    struct stat now;

    *ret_changed = false;
    if (!file || !qf_small_file_changed(file, &tenants->seen))
        return QF_OK;
    table = read_table(file, &now, &cause);
    if (!table)
        return qf_err_set(err, cause.rc, "%s", cause.msg);
    tenants->seen = now;
    *ret_changed = true;
    qf_lock_take(tenants->lock);
    old = tenants->table;
    tenants->table = table;
    set_memory(tenants);
    qf_lock_drop(tenants->lock);
    (void)qa_limits_free(old);
    return QF_OK;
}

/* The place of the link to the tenant called @name, or of the end of its chain. Under the lock. */
static struct qa_tenant **find(struct qa_tenants *tenants, struct qf_str name)
{
    struct qa_tenant **at = &tenants->buckets[qf_hash_bytes(name) % BUCKETS];

    while (*at && !qf_str_is(name, (*at)->name))
        at = &(*at)->next;
    return at;
}

static struct qa_tenant *tenant_new(struct qa_tenants *tenants, struct qf_str name, size_t memory)
{
    struct qa_tenant *tenant = qf_xcalloc(1, sizeof(*tenant));

    tenant->of = tenants;
    tenant->id = ++tenants->ids;
    memcpy(tenant->name, name.data, QF_MIN(name.len, sizeof(tenant->name) - 1));
    tenant->purse.limit = memory;
    tenant->purse.parent = tenants->options.purse;
    return tenant;
}

struct qa_limits qa_tenants_limits(struct qa_tenants *tenants, struct qf_str name)
{
    struct qa_limits limits;

    qf_lock_take(tenants->lock);
    limits = qa_limits_of(tenants->table, name, &tenants->options.limits);
    qf_lock_drop(tenants->lock);
    return limits;
}

uint64_t qa_tenants_retentions(struct qa_tenants *tenants)
{
    uint64_t hash;

    qf_lock_take(tenants->lock);
    hash = qa_limits_retentions(tenants->table, &tenants->options.limits);
    qf_lock_drop(tenants->lock);
    return hash;
}

struct qa_tenant *qa_tenants_take(struct qa_tenants *tenants, struct qf_str name,
                                  struct qa_limits *ret_limits)
{
    struct qa_tenant **at, *tenant;

    qf_lock_take(tenants->lock);
    *ret_limits = qa_limits_of(tenants->table, name, &tenants->options.limits);
    at = find(tenants, name);
    if (!*at)
        *at = tenant_new(tenants, name, memory_of(ret_limits));
    tenant = *at;
    tenant->holders++;
    qf_lock_drop(tenants->lock);
    return tenant;
}

struct qa_tenant *qa_tenant_drop(struct qa_tenant *tenant)
{
    struct qa_tenants *tenants = tenant ? tenant->of : NULL;
    struct qa_tenant **at;

    if (!tenant)
        return NULL;
    qf_lock_take(tenants->lock);
    if (--tenant->holders == 0) {
        at = find(tenants, qf_str_from(tenant->name));
        *at = tenant->next;
        free(tenant);
    }
    qf_lock_drop(tenants->lock);
    return NULL;
}
