/* covered.c - the table of what is covered, tenant by tenant. */
#include "queryapi/fresh/covered.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"

struct part {
    char *queue;
    uint64_t index;
    int64_t floor;
};

struct entry {
    uint64_t hash;
    char *tenant, *cluster;
    struct part *parts;
    size_t part_count;
    uint64_t used; /* the last time */
};

struct qa_covered {
    struct entry entries[QA_COVERED_TENANTS_MAX];
    size_t count;
    uint64_t uses;
    struct entry all; /* of every tenant, whether it has an entry or not */
};

struct qa_covered *qa_covered_new(void)
{
    return qf_xcalloc(1, sizeof(struct qa_covered));
}

static void entry_clear(struct entry *entry)
{
    for (size_t i = 0; i < entry->part_count; i++)
        free(entry->parts[i].queue);
    free(entry->parts);
    free(entry->tenant);
    free(entry->cluster);
    *entry = (struct entry){ 0 };
}

struct qa_covered *qa_covered_free(struct qa_covered *covered)
{
    if (!covered)
        return NULL;
    for (size_t i = 0; i < covered->count; i++)
        entry_clear(&covered->entries[i]);
    entry_clear(&covered->all);
    free(covered);
    return NULL;
}

static struct entry *find(struct qa_covered *covered, struct qf_str tenant)
{
    uint64_t hash = qf_hash_bytes(tenant);

    for (size_t i = 0; i < covered->count; i++) {
        struct entry *entry = &covered->entries[i];

        if (entry->hash == hash && qf_str_is(tenant, entry->tenant)) {
            entry->used = ++covered->uses;
            return entry;
        }
    }
    return NULL;
}

/* A new entry; that of the tenant asked for longest ago makes room. */
static struct entry *add(struct qa_covered *covered, struct qf_str tenant)
{
    struct entry *entry = &covered->entries[0];

    if (covered->count < QA_COVERED_TENANTS_MAX) {
        entry = &covered->entries[covered->count++];
    } else {
        for (size_t i = 1; i < covered->count; i++)
            if (covered->entries[i].used < entry->used)
                entry = &covered->entries[i];
        entry_clear(entry);
    }
    entry->hash = qf_hash_bytes(tenant);
    entry->tenant = qf_xmemdup0(tenant.data, tenant.len);
    entry->used = ++covered->uses;
    return entry;
}

/* What is covered of @tenant: by itself, or with all others if that is more. */
static const struct entry *entry_of(struct qa_covered *covered, struct qf_str tenant)
{
    const struct entry *own = find(covered, tenant), *all = &covered->all;

    if (!own)
        return all;
    if (own->part_count != all->part_count || strcmp(own->cluster, all->cluster) != 0)
        return own;
    for (size_t i = 0; i < all->part_count; i++)
        if (!own->parts[i].queue || strcmp(own->parts[i].queue, all->parts[i].queue) != 0 ||
            own->parts[i].index >= all->parts[i].index)
            return own;
    return all;
}

void qa_covered_ask(struct qa_covered *covered, struct qf_str tenant, int64_t min_ts,
                    int64_t max_ts, struct qf_strbuf *ret_body)
{
    const struct entry *entry = entry_of(covered, tenant);

    qf_strbuf_puts(ret_body, "{\"tenant\":");
    qf_strbuf_json(ret_body, tenant);
    qf_strbuf_printf(ret_body, ",\"min_ts\":%" PRId64 ",\"max_ts\":%" PRId64 ",\"covered\":[",
                     min_ts, max_ts);
    for (size_t i = 0; i < entry->part_count; i++) {
        qf_strbuf_printf(ret_body, "%s{\"partition\":%zu,\"queue\":", i ? "," : "", i);
        qf_strbuf_json(ret_body, qf_str_from(entry->parts[i].queue));
        qf_strbuf_printf(ret_body, ",\"index\":%" PRIu64 "}", entry->parts[i].index);
    }
    qf_strbuf_puts(ret_body, "]}");
}

/* Another cluster, or another number of partitions, begins from nothing. */
static bool same_cluster(const struct entry *entry, const struct qa_status *status)
{
    return qf_str_is(status->cluster, entry->cluster) && entry->part_count == status->count;
}

static void begin(struct entry *entry, const struct qa_status *status)
{
    char *tenant = QF_TAKE(entry->tenant);
    uint64_t hash = entry->hash, used = entry->used;

    entry_clear(entry);
    *entry = (struct entry){ .hash = hash, .tenant = tenant, .used = used };
    entry->cluster = qf_xmemdup0(status->cluster.data, status->cluster.len);
    entry->parts = qf_xcalloc(status->count, sizeof(*entry->parts));
    entry->part_count = status->count;
    for (size_t i = 0; i < status->count; i++)
        entry->parts[i].floor = INT64_MIN;
}

/* Answers may come in another order than they were given: an index never goes back. */
static void raise_to(struct entry *entry, const struct qa_status *status)
{
    if (!entry->cluster || !same_cluster(entry, status))
        begin(entry, status);
    for (size_t i = 0; i < status->count; i++) {
        const struct qa_fresh_partition *from = &status->partitions[i];
        struct part *part = &entry->parts[i];

        if (!part->queue || !qf_str_is(from->queue, part->queue)) {
            free(part->queue);
            *part = (struct part){ .queue = qf_xmemdup0(from->queue.data, from->queue.len),
                                   .floor = INT64_MIN };
        }
        part->index = QF_MAX(part->index, from->sealed_index);
        part->floor = QF_MAX(part->floor, from->floor);
    }
}

void qa_covered_now(struct qa_covered *covered, struct qf_str tenant,
                    const struct qa_status *status)
{
    struct entry *entry = find(covered, tenant);

    if (status->count)
        raise_to(entry ? entry : add(covered, tenant), status);
}

/* Is all that @entry has of the logs that @status tells of? */
static bool same_logs(const struct entry *entry, const struct qa_status *status)
{
    if (!same_cluster(entry, status))
        return false;
    for (size_t i = 0; i < status->count; i++)
        if (!qf_str_is(status->partitions[i].queue, entry->parts[i].queue))
            return false;
    return true;
}

/* What a tenant has of a log that is gone would stand in front of what all have of the new one. */
static void forget_other_logs(struct qa_covered *covered, const struct qa_status *status)
{
    for (size_t i = covered->count; i-- > 0;) {
        if (same_logs(&covered->entries[i], status))
            continue;
        entry_clear(&covered->entries[i]);
        covered->entries[i] = covered->entries[--covered->count];
        covered->entries[covered->count] = (struct entry){ 0 };
    }
}

void qa_covered_listed(struct qa_covered *covered, const struct qa_status *status)
{
    if (status->count == 0)
        return;
    raise_to(&covered->all, status);
    forget_other_logs(covered, status);
}

bool qa_covered_below(struct qa_covered *covered, struct qf_str tenant, int64_t max_ts)
{
    const struct entry *entry = entry_of(covered, tenant);

    for (size_t i = 0; i < entry->part_count; i++)
        if (max_ts >= entry->parts[i].floor)
            return false;
    return entry->part_count > 0;
}
