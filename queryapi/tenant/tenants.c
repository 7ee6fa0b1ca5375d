/* tenants.c - tenants that have queries. */
#include "queryapi/tenant/tenants.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/sys/limits_file.h"
#include "base/sys/thread.h"

#define BUCKETS 256
#define NEVER INT64_MIN

struct qa_tenants {
    struct qa_tenants_options options;
    struct qf_limits_file *limits;
    struct qf_lock *lock; /* guards all below */
    struct qa_tenant *buckets[BUCKETS];
    uint64_t ids;
    atomic_bool awaits;               /* settings */
    atomic_int_fast64_t confirmed_ms; /* NEVER: not heard of yet */
    atomic_size_t settled;
};

struct qa_tenants *qa_tenants_new(const struct qa_tenants_options *options, struct qf_err *err)
{
    struct qa_tenants *tenants = qf_xcalloc(1, sizeof(*tenants));

    tenants->options = *options;
    tenants->lock = qf_lock_new();
    atomic_store(&tenants->confirmed_ms, NEVER);
    tenants->limits = qf_limits_file_new(options->file, &options->limits, err);
    return tenants->limits ? tenants : qa_tenants_free(tenants);
}

struct qa_tenants *qa_tenants_free(struct qa_tenants *tenants)
{
    if (!tenants)
        return NULL;
    (void)qf_limits_file_free(tenants->limits);
    (void)qf_lock_free(tenants->lock);
    free(tenants);
    return NULL;
}

static size_t memory_of(const struct qf_limits *limits)
{
    return limits->of[QF_LIMIT_MEMORY] ? limits->of[QF_LIMIT_MEMORY] : SIZE_MAX;
}

static void set_memory(struct qa_tenants *tenants)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct qa_tenant *at = tenants->buckets[i]; at; at = at->next) {
            struct qf_limits limits = qf_limits_file_of(tenants->limits, qf_str_from(at->name));

            at->purse.limit = memory_of(&limits);
        }
    }
}

qf_rc qa_tenants_refresh(struct qa_tenants *tenants, bool *ret_changed, struct qf_err *err)
{
    qf_rc rc = qf_limits_file_refresh(tenants->limits, ret_changed, err);

    if (!*ret_changed)
        return rc;
    qf_lock_take(tenants->lock);
    set_memory(tenants);
    qf_lock_drop(tenants->lock);
    return rc;
}

/* --- settings --- */

void qa_tenants_await(struct qa_tenants *tenants)
{
    atomic_store(&tenants->awaits, true);
}

void qa_tenants_settle(struct qa_tenants *tenants, struct qf_limits_table *settings, size_t count)
{
    qf_limits_file_settle(tenants->limits, settings);
    atomic_store(&tenants->settled, count);
    qf_lock_take(tenants->lock);
    set_memory(tenants);
    qf_lock_drop(tenants->lock);
}

void qa_tenants_confirm(struct qa_tenants *tenants, int64_t mono_ms)
{
    if (mono_ms > atomic_load(&tenants->confirmed_ms)) /* one thread follows them */
        atomic_store(&tenants->confirmed_ms, mono_ms);
}

bool qa_tenants_known(const struct qa_tenants *tenants)
{
    return !atomic_load(&tenants->awaits) || atomic_load(&tenants->confirmed_ms) != NEVER;
}

int64_t qa_tenants_age_ms(const struct qa_tenants *tenants, int64_t mono_ms)
{
    int64_t confirmed_ms = atomic_load(&tenants->confirmed_ms);

    if (!atomic_load(&tenants->awaits))
        return 0;
    return confirmed_ms == NEVER ? -1 : QF_MAX(mono_ms - confirmed_ms, INT64_C(0));
}

size_t qa_tenants_settled(const struct qa_tenants *tenants)
{
    return atomic_load(&tenants->settled);
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

struct qf_limits qa_tenants_limits(struct qa_tenants *tenants, struct qf_str name)
{
    return qf_limits_file_of(tenants->limits, name);
}

uint64_t qa_tenants_retentions(struct qa_tenants *tenants)
{
    return qf_limits_file_retentions(tenants->limits);
}

struct qa_tenant *qa_tenants_take(struct qa_tenants *tenants, struct qf_str name,
                                  struct qf_limits *ret_limits)
{
    struct qa_tenant **at, *tenant;

    qf_lock_take(tenants->lock);
    *ret_limits = qf_limits_file_of(tenants->limits, name);
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
