/* ledger_elected.c - clusters of senders, and the replica of each whose samples are written. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "ingest/core/ledger_int.h"

static struct in_elected *find(const struct in_tenant *tenant, struct qf_str cluster)
{
    for (size_t i = 0; i < tenant->elected_count; i++)
        if (qf_str_is(cluster, tenant->elected[i].cluster))
            return &tenant->elected[i];
    return NULL;
}

const struct in_elected *in_tenant_elected(const struct in_tenant *tenant, struct qf_str cluster)
{
    return find(tenant, cluster);
}

bool in_ledger_knows_elect(const struct in_ledger *ledger)
{
    for (size_t i = 0; i < ledger->tenant_count; i++)
        if (ledger->tenants[i]->elected_count)
            return true;
    return false;
}

struct in_elected *in_tenant_add_elected(struct in_tenant *tenant)
{
    if (tenant->elected_count == tenant->elected_capacity) {
        tenant->elected_capacity = tenant->elected_capacity ? 2 * tenant->elected_capacity : 4;
        tenant->elected =
            qf_xrealloc(tenant->elected, tenant->elected_capacity * sizeof(*tenant->elected));
    }
    tenant->elected[tenant->elected_count] = (struct in_elected){ 0 };
    return &tenant->elected[tenant->elected_count++];
}

static void drop_at(struct in_tenant *tenant, size_t at)
{
    free(tenant->elected[at].cluster);
    free(tenant->elected[at].replica);
    tenant->elected_count--;
    memmove(&tenant->elected[at], &tenant->elected[at + 1],
            (tenant->elected_count - at) * sizeof(*tenant->elected));
}

void in_tenant_drop_elected(struct in_tenant *tenant)
{
    while (tenant->elected_count)
        drop_at(tenant, tenant->elected_count - 1);
    free(tenant->elected);
    tenant->elected = NULL;
    tenant->elected_capacity = 0;
}

/* The cluster that was not heard of for longest, if that is long enough; else elected_count. */
static size_t find_idle(const struct in_ledger *ledger, const struct in_tenant *tenant)
{
    size_t oldest = 0;

    for (size_t i = 1; i < tenant->elected_count; i++)
        if (tenant->elected[i].time_ms < tenant->elected[oldest].time_ms)
            oldest = i;
    return tenant->elected_count && tenant->elected[oldest].time_ms < ledger->time_ms &&
                   ledger->time_ms - IN_ELECTED_LIFE_MS > tenant->elected[oldest].time_ms
               ? oldest
               : tenant->elected_count;
}

bool in_ledger_room_to_elect(const struct in_ledger *ledger, struct qf_str name)
{
    const struct in_tenant *tenant = in_ledger_tenant(ledger, name);

    if (!tenant)
        return ledger->tenant_count < IN_TENANTS_MAX;
    return tenant->elected_count < IN_ELECTED_MAX ||
           find_idle(ledger, tenant) < tenant->elected_count;
}

static struct in_elected *make(struct in_ledger *ledger, struct in_tenant *tenant,
                               struct qf_str cluster)
{
    struct in_elected *elected = find(tenant, cluster);

    if (elected)
        return elected;
    if (tenant->elected_count == IN_ELECTED_MAX) {
        size_t idle = find_idle(ledger, tenant);

        if (idle == tenant->elected_count)
            return NULL;
        drop_at(tenant, idle);
    }
    elected = in_tenant_add_elected(tenant);
    elected->cluster = qf_xmemdup0(cluster.data, cluster.len);
    elected->newest_ts = INT64_MIN;
    return elected;
}

enum in_verdict in_ledger_elect(struct in_ledger *ledger, const struct in_record *record)
{
    struct in_tenant *tenant = in_ledger_make_tenant(ledger, record->tenant);
    struct in_elected *elected = tenant ? make(ledger, tenant, record->cluster) : NULL;

    if (!elected)
        return IN_NO_ROOM;
    elected->time_ms = ledger->time_ms;
    if (elected->replica && qf_str_is(record->replica, elected->replica)) {
        elected->newest_ts = QF_MAX(elected->newest_ts, record->newest_ts);
        return IN_APPLIED;
    }
    free(elected->replica);
    elected->replica = qf_xmemdup0(record->replica.data, record->replica.len);
    elected->newest_ts = record->newest_ts;
    elected->since_ms = ledger->time_ms;
    elected->elections++;
    return IN_APPLIED;
}
