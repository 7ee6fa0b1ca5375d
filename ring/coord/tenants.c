/* tenants.c - settings of tenants, changed by one thread and read by many. */
#include "ring/coord/tenants.h"

#include <limits.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "ring/core/verdicts.h"

struct waiter {
    struct qh_stream *stream;
    uint64_t since;
    int64_t due_ms;
};

struct rg_tenants {
    struct rg_verdicts verdicts; /* of the node's thread */
    /* Changed by the node's thread alone, with the lock; it reads without. */
    struct rg_tenant_table *table;
    struct qf_lock *lock; /* of that and of what follows */
    uint64_t cluster;
    int64_t confirmed_ms; /* -1: never */
    size_t count;
    struct waiter waiters[RG_TENANT_WAITERS_MAX];
};

struct rg_tenants *rg_tenants_new(void)
{
    struct rg_tenants *tenants = qf_xcalloc(1, sizeof(*tenants));

    tenants->table = rg_tenant_table_new();
    tenants->lock = qf_lock_new();
    tenants->confirmed_ms = -1;
    return tenants;
}

struct rg_tenants *rg_tenants_free(struct rg_tenants *tenants)
{
    if (tenants) {
        rg_tenants_tick(tenants, 0, true);
        tenants->table = rg_tenant_table_free(tenants->table);
        tenants->lock = qf_lock_free(tenants->lock);
        free(tenants);
    }
    return NULL;
}

/* --- the node's thread --- */

qf_rc rg_tenants_restore(struct rg_tenants *tenants, uint64_t index, struct qf_str bytes)
{
    struct rg_tenant_table *made = rg_tenant_table_new(), *old = made;
    qf_rc rc = rg_tenant_table_restore(made, bytes);

    if (rc == QF_OK && rg_tenant_table_version(made) > index)
        rc = QF_ECORRUPT;
    if (rc == QF_OK) {
        qf_lock_take(tenants->lock);
        old = tenants->table;
        tenants->table = made;
        qf_lock_drop(tenants->lock);
        tenants->verdicts = (struct rg_verdicts){ .next = 0 };
    }
    (void)rg_tenant_table_free(old);
    return rc;
}

/* A verdict, and the number of the tenant that it is about. */
static unsigned remembered(size_t number, enum rg_tenant_verdict verdict)
{
    _Static_assert((RG_TENANTS_MAX + 1) < UINT_MAX / RG_TENANT_VERDICT__COUNT, "both fit");
    return (unsigned)number * RG_TENANT_VERDICT__COUNT + (unsigned)verdict;
}

qf_rc rg_tenants_apply(struct rg_tenants *tenants, uint64_t index, struct qf_str record,
                       uint8_t kept)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct rg_tenant_entry entry;
    enum rg_tenant_verdict verdict;
    qf_rc rc = rg_tenant_record_decode(record, &bytes, &entry);

    if (rc != QF_OK)
        return rc;
    qf_lock_take(tenants->lock);
    verdict = rg_tenant_table_apply(tenants->table, index, &entry, kept);
    qf_lock_drop(tenants->lock);
    rg_verdicts_keep(&tenants->verdicts, index,
                     remembered(rg_tenant_table_number(tenants->table, entry.name), verdict));
    if (verdict == RG_TENANT_APPLIED)
        rg_tenants_tick(tenants, INT64_MIN, false);
    return QF_OK;
}

void rg_tenants_save(struct qf_strbuf *buf, const struct rg_tenants *tenants)
{
    rg_tenant_table_save(buf, tenants->table);
}

enum rg_tenant_verdict rg_tenants_try(const struct rg_tenants *tenants,
                                      const struct rg_tenant_entry *entry, uint8_t kept)
{
    return rg_tenant_table_try(tenants->table, entry, kept);
}

void rg_tenants_tell(const struct rg_tenants *tenants, enum rg_tenant_verdict verdict,
                     struct qf_str name, uint8_t copies, struct qn_answer *answer)
{
    const struct rg_tenant *tenant = rg_tenant_table_find(tenants->table, name);
    qf_rc rc;

    if (!tenant && rg_tenant_verdict_rc(verdict) == QF_OK)
        verdict = RG_TENANT_NO_SUCH;
    rc = rg_tenant_verdict_rc(verdict);
    if (rc != QF_OK)
        (void)qf_err_set(&answer->err, rc, "%s", rg_tenant_verdict_text(verdict));
    else
        rg_tenant_show(&answer->text, tenant, copies);
}

bool rg_tenants_ended(const struct rg_tenants *tenants, uint64_t index, uint8_t copies,
                      struct qn_answer *answer)
{
    struct qf_str name = QF_STR("");
    unsigned of;

    if (!rg_verdicts_find(&tenants->verdicts, index, &of))
        return false;
    if (of / RG_TENANT_VERDICT__COUNT < rg_tenant_table_count(tenants->table))
        name = qf_str_from(rg_tenant_table_at(tenants->table, of / RG_TENANT_VERDICT__COUNT)->name);
    rg_tenants_tell(tenants, (enum rg_tenant_verdict)(of % RG_TENANT_VERDICT__COUNT), name, copies,
                    answer);
    return true;
}

void rg_tenants_show(const struct rg_tenants *tenants, struct qf_str after, uint8_t copies,
                     struct qn_answer *answer)
{
    rg_tenant_table_show(&answer->text, tenants->table, after, copies);
}

uint8_t rg_tenants_copies(const struct rg_tenants *tenants)
{
    return rg_tenant_table_copies(tenants->table);
}

/* --- any thread --- */

uint64_t rg_tenants_version(const struct rg_tenants *tenants)
{
    uint64_t version;

    qf_lock_take(tenants->lock);
    version = rg_tenant_table_version(tenants->table);
    qf_lock_drop(tenants->lock);
    return version;
}

size_t rg_tenants_count(struct rg_tenants *tenants)
{
    size_t count;

    qf_lock_take(tenants->lock);
    count = rg_tenant_table_count(tenants->table);
    qf_lock_drop(tenants->lock);
    return count;
}

enum rg_level rg_tenants_level(struct rg_tenants *tenants, struct qf_str name)
{
    const struct rg_tenant *tenant;
    enum rg_level level;

    qf_lock_take(tenants->lock);
    tenant = rg_tenant_table_find(tenants->table, name);
    level = rg_tenant_level_of(tenant ? tenant->settings.level : RG_TENANT_ANY);
    qf_lock_drop(tenants->lock);
    return level;
}

struct qf_limits_table *rg_tenants_limits(struct rg_tenants *tenants, uint64_t *ret_version)
{
    struct qf_limits_table *limits;

    qf_lock_take(tenants->lock);
    limits = rg_tenant_table_limits(tenants->table);
    *ret_version = rg_tenant_table_version(tenants->table);
    qf_lock_drop(tenants->lock);
    return limits;
}

void rg_tenants_confirm(struct rg_tenants *tenants, uint64_t cluster, uint64_t version,
                        int64_t mono_ms)
{
    qf_lock_take(tenants->lock);
    if (version <= rg_tenant_table_version(tenants->table)) {
        tenants->cluster = cluster;
        tenants->confirmed_ms = QF_MAX(mono_ms, tenants->confirmed_ms);
    }
    qf_lock_drop(tenants->lock);
}

/* With the lock. */
static int64_t age_ms(const struct rg_tenants *tenants, int64_t mono_ms)
{
    return tenants->confirmed_ms < 0 ? -1 : QF_MAX(mono_ms - tenants->confirmed_ms, INT64_C(0));
}

int64_t rg_tenants_age_ms(struct rg_tenants *tenants, int64_t mono_ms)
{
    int64_t age;

    qf_lock_take(tenants->lock);
    age = age_ms(tenants, mono_ms);
    qf_lock_drop(tenants->lock);
    return age;
}

/* --- who waits --- */

static void send_page(struct rg_tenants *tenants, struct qh_stream *stream, uint64_t since)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct rg_tenant_page page;

    qf_lock_take(tenants->lock);
    page = (struct rg_tenant_page){ .cluster = tenants->cluster,
                                    .version = rg_tenant_table_version(tenants->table),
                                    .confirmed_ms =
                                        QF_MAX(age_ms(tenants, qf_clock_mono_ms()), INT64_C(0)) };
    rg_tenant_page_encode(&bytes, &page, tenants->table, since);
    qf_lock_drop(tenants->lock);
    qh_stream_answer(stream, 200, RG_TENANT_PAGE_TYPE, qf_strbuf_view(&bytes));
}

qf_rc rg_tenants_wait(struct rg_tenants *tenants, struct qh_stream *stream, uint64_t cluster,
                      uint64_t since, int64_t due_ms)
{
    bool now = false;
    qf_rc rc = QF_OK;

    qf_lock_take(tenants->lock);
    if (cluster != tenants->cluster)
        since = 0;
    if (tenants->confirmed_ms < 0)
        rc = QF_EUNAVAILABLE;
    else if (cluster != tenants->cluster || rg_tenant_table_version(tenants->table) > since ||
             due_ms <= qf_clock_mono_ms())
        now = true;
    else if (tenants->count == RG_TENANT_WAITERS_MAX)
        rc = QF_EBUSY;
    else
        tenants->waiters[tenants->count++] =
            (struct waiter){ qh_stream_ref(stream), since, due_ms };
    qf_lock_drop(tenants->lock);
    if (now)
        send_page(tenants, stream, since);
    return rc;
}

void rg_tenants_tick(struct rg_tenants *tenants, int64_t now_ms, bool all)
{
    struct waiter due[RG_TENANT_WAITERS_MAX];
    size_t count = 0, left = 0;

    qf_lock_take(tenants->lock);
    for (size_t i = 0; i < tenants->count; i++) {
        const struct waiter *waiter = &tenants->waiters[i];

        if (all || rg_tenant_table_version(tenants->table) > waiter->since ||
            now_ms >= waiter->due_ms || qh_stream_gone(waiter->stream))
            due[count++] = *waiter;
        else
            tenants->waiters[left++] = *waiter;
    }
    tenants->count = left;
    qf_lock_drop(tenants->lock);
    for (size_t i = 0; i < count; i++) {
        send_page(tenants, due[i].stream, due[i].since);
        (void)qh_stream_drop(due[i].stream);
    }
}
