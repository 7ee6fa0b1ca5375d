/* tenant.c - settings of tenants, and what changes them. */
#include "ring/tenant/tenant.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "ring/tenant/codec.h"

/* Rows do not move: the index has their names as keys. */
#define CHUNK 64

struct rg_tenant_table {
    struct rg_tenant *chunks[RG_TENANTS_MAX / CHUNK];
    size_t count;
    struct qf_map index; /* name -> number */
    uint64_t version;
};

/* --- levels --- */

static const char *const levels[] = { "", "one", "quorum", "all" };

const char *rg_tenant_level_text(enum rg_tenant_level level)
{
    return levels[level];
}

bool rg_tenant_level_parse(struct qf_str text, enum rg_tenant_level *ret_level)
{
    for (int i = RG_TENANT_ONE; i <= RG_TENANT_ALL; i++) {
        if (!qf_str_is(text, levels[i]))
            continue;
        *ret_level = (enum rg_tenant_level)i;
        return true;
    }
    return false;
}

enum rg_level rg_tenant_level_of(enum rg_tenant_level level)
{
    return level == RG_TENANT_ONE   ? RG_LEVEL_ONE
           : level == RG_TENANT_ALL ? RG_LEVEL_ALL
                                    : RG_LEVEL_QUORUM;
}

/* --- verdicts --- */

const char *rg_tenant_verdict_text(enum rg_tenant_verdict verdict)
{
    static const char *const texts[RG_TENANT_VERDICT__COUNT] = {
        [RG_TENANT_APPLIED] = "applied",
        [RG_TENANT_SAME] = "nothing to change",
        [RG_TENANT_EXISTS] = "there is a tenant of this name with other settings",
        [RG_TENANT_NO_SUCH] = "there is no such tenant: POST /v1/tenants makes one",
        [RG_TENANT_STALE] = "the tenant has another version by now: somebody was quicker; look, "
                            "and try again with its version",
        [RG_TENANT_TOO_MANY] =
            "storage nodes keep fewer copies of everything, or are about to: PUT "
            "/v1/admin/ring?copies=N first, and wait for its end",
        [RG_TENANT_NO_RING] = "there is no ring of storage nodes: nothing has copies",
        [RG_TENANT_FULL] = "there are 16384 tenants with settings: no more fit",
        [RG_TENANT_BAD] = "a value that cannot be",
    };

    return texts[verdict];
}

qf_rc rg_tenant_verdict_rc(enum rg_tenant_verdict verdict)
{
    switch (verdict) {
    case RG_TENANT_APPLIED:
    case RG_TENANT_SAME:
        return QF_OK;
    case RG_TENANT_EXISTS:
        return QF_EEXIST;
    case RG_TENANT_NO_SUCH:
        return QF_ENOTFOUND;
    case RG_TENANT_STALE:
    case RG_TENANT_TOO_MANY:
    case RG_TENANT_NO_RING:
        return QF_ECONFLICT;
    case RG_TENANT_FULL:
        return QF_ELIMIT;
    case RG_TENANT_BAD:
        return QF_EINVAL;
    case RG_TENANT_VERDICT__COUNT:
        break;
    }
    return QF_EINTERNAL;
}

/* --- the table --- */

struct rg_tenant_table *rg_tenant_table_new(void)
{
    return qf_xcalloc(1, sizeof(struct rg_tenant_table));
}

struct rg_tenant_table *rg_tenant_table_free(struct rg_tenant_table *table)
{
    if (!table)
        return NULL;
    for (size_t i = 0; i < QF_COUNT_OF(table->chunks); i++)
        free(table->chunks[i]);
    qf_map_done(&table->index);
    free(table);
    return NULL;
}

size_t rg_tenant_table_count(const struct rg_tenant_table *table)
{
    return table->count;
}

uint64_t rg_tenant_table_version(const struct rg_tenant_table *table)
{
    return table->version;
}

static struct rg_tenant *row_at(const struct rg_tenant_table *table, size_t i)
{
    return &table->chunks[i / CHUNK][i % CHUNK];
}

const struct rg_tenant *rg_tenant_table_at(const struct rg_tenant_table *table, size_t i)
{
    return row_at(table, i);
}

size_t rg_tenant_table_number(const struct rg_tenant_table *table, struct qf_str name)
{
    const uint64_t *at = qf_map_get(&table->index, name);

    return at ? *at : table->count;
}

static struct rg_tenant *find(const struct rg_tenant_table *table, struct qf_str name)
{
    size_t i = rg_tenant_table_number(table, name);

    return i < table->count ? row_at(table, i) : NULL;
}

const struct rg_tenant *rg_tenant_table_find(const struct rg_tenant_table *table,
                                             struct qf_str name)
{
    return find(table, name);
}

/* A new row of @name. NULL: there is no room. */
static struct rg_tenant *add_row(struct rg_tenant_table *table, struct qf_str name)
{
    struct rg_tenant **chunk = &table->chunks[table->count / CHUNK], *row;

    if (table->count == RG_TENANTS_MAX)
        return NULL;
    if (!*chunk)
        *chunk = qf_xcalloc(CHUNK, sizeof(**chunk));
    row = row_at(table, table->count);
    memcpy(row->name, name.data, name.len);
    (void)qf_map_put(&table->index, qf_str_from(row->name), table->count, NULL);
    table->count++;
    return row;
}

bool rg_tenant_table_put(struct rg_tenant_table *table, const struct rg_tenant *tenant)
{
    struct rg_tenant *row = find(table, qf_str_from(tenant->name));

    if (!row)
        row = add_row(table, qf_str_from(tenant->name));
    if (!row)
        return false;
    *row = *tenant;
    table->version = QF_MAX(table->version, tenant->version);
    return true;
}

uint8_t rg_tenant_table_copies(const struct rg_tenant_table *table)
{
    uint8_t most = 0;

    for (size_t i = 0; i < table->count; i++)
        if (row_at(table, i)->settings.copies > most)
            most = row_at(table, i)->settings.copies;
    return most;
}

struct qf_limits_table *rg_tenant_table_limits(const struct rg_tenant_table *table)
{
    struct qf_limits_table *limits = qf_limits_table_new();

    for (size_t i = 0; i < table->count; i++)
        qf_limits_table_add(limits, row_at(table, i)->name, &row_at(table, i)->settings.limits);
    qf_limits_table_seal(limits);
    return limits;
}

qf_rc rg_tenant_table_restore(struct rg_tenant_table *table, struct qf_str bytes)
{
    struct rg_tenant_table *made = rg_tenant_table_new(), old;
    qf_rc rc = bytes.len ? rg_tenant_table_decode(made, bytes) : QF_OK;

    if (rc == QF_OK) {
        old = *table;
        *table = *made;
        *made = old;
    }
    (void)rg_tenant_table_free(made);
    return rc;
}

/* --- entries --- */

static bool settings_eq(const struct rg_settings *a, const struct rg_settings *b)
{
    return a->copies == b->copies && a->level == b->level &&
           memcmp(a->limits.of, b->limits.of, sizeof(a->limits.of)) == 0;
}

static struct rg_settings settings_after(const struct rg_tenant *tenant,
                                         const struct rg_tenant_entry *entry)
{
    struct rg_settings settings = entry->settings;

    if (entry->kind == RG_TENANT_COPIES && tenant) {
        settings = tenant->settings;
        settings.copies = entry->settings.copies;
    }
    return settings;
}

/* Whether the version, or that there is none, is as @entry thinks. */
static enum rg_tenant_verdict check_version(const struct rg_tenant_table *table,
                                            const struct rg_tenant *tenant,
                                            const struct rg_tenant_entry *entry)
{
    bool whatever = entry->kind == RG_TENANT_COPIES && !entry->version;

    if (entry->kind == RG_TENANT_CREATE) {
        if (!tenant)
            return table->count == RG_TENANTS_MAX ? RG_TENANT_FULL : RG_TENANT_APPLIED;
        return settings_eq(&tenant->settings, &entry->settings) ? RG_TENANT_SAME : RG_TENANT_EXISTS;
    }
    if (!tenant)
        return RG_TENANT_NO_SUCH;
    return whatever || entry->version == tenant->version ? RG_TENANT_APPLIED : RG_TENANT_STALE;
}

enum rg_tenant_verdict rg_tenant_table_try(const struct rg_tenant_table *table,
                                           const struct rg_tenant_entry *entry, uint8_t kept)
{
    const struct rg_tenant *tenant = find(table, entry->name);
    const struct rg_settings settings = settings_after(tenant, entry);
    uint8_t before = tenant ? tenant->settings.copies : 0;
    enum rg_tenant_verdict verdict;

    if (!qf_tenant_valid(entry->name) || settings.copies > RG_COPIES_MAX)
        return RG_TENANT_BAD;
    verdict = check_version(table, tenant, entry);
    if (verdict != RG_TENANT_APPLIED)
        return verdict;
    if (tenant && settings_eq(&tenant->settings, &settings))
        return RG_TENANT_SAME;
    if (settings.copies && settings.copies != before && settings.copies > kept)
        return kept ? RG_TENANT_TOO_MANY : RG_TENANT_NO_RING;
    return RG_TENANT_APPLIED;
}

enum rg_tenant_verdict rg_tenant_table_apply(struct rg_tenant_table *table, uint64_t index,
                                             const struct rg_tenant_entry *entry, uint8_t kept)
{
    enum rg_tenant_verdict verdict = rg_tenant_table_try(table, entry, kept);
    struct rg_tenant *tenant = find(table, entry->name);

    if (verdict != RG_TENANT_APPLIED)
        return verdict;
    if (!tenant) {
        tenant = add_row(table, entry->name);
        tenant->created_ms = entry->time_ms;
    }
    tenant->settings = settings_after(tenant, entry);
    tenant->updated_ms = entry->time_ms;
    tenant->version = table->version = index;
    return RG_TENANT_APPLIED;
}

/* --- as JSON --- */

static void show_limits(struct qf_strbuf *buf, const struct qf_limits *limits)
{
    bool first = true;

    qf_strbuf_puts(buf, ",\"limits\":{");
    for (int i = 0; i < QF_LIMIT__COUNT; i++) {
        const char *quote = qf_limit_is_number((enum qf_limit)i) ? "" : "\"";

        if (!limits->of[i])
            continue;
        qf_strbuf_printf(buf, "%s\"%s\":%s", first ? "" : ",", qf_limit_name((enum qf_limit)i),
                         quote);
        qf_limit_print(buf, (enum qf_limit)i, limits->of[i]);
        qf_strbuf_puts(buf, quote);
        first = false;
    }
    qf_strbuf_putc(buf, '}');
}

void rg_tenant_show(struct qf_strbuf *buf, const struct rg_tenant *tenant, uint8_t copies)
{
    qf_strbuf_puts(buf, "{\"tenant\":");
    qf_strbuf_json(buf, qf_str_from(tenant->name));
    qf_strbuf_printf(buf, ",\"version\":%" PRIu64 ",\"created\":%" PRId64 ",\"updated\":%" PRId64,
                     tenant->version, tenant->created_ms, tenant->updated_ms);
    if (tenant->settings.copies)
        qf_strbuf_printf(buf, ",\"replication_factor\":%u", tenant->settings.copies);
    if (copies)
        qf_strbuf_printf(buf, ",\"copies\":%u", copies);
    if (tenant->settings.level)
        qf_strbuf_printf(buf, ",\"level\":\"%s\"", levels[tenant->settings.level]);
    show_limits(buf, &tenant->settings.limits);
    qf_strbuf_putc(buf, '}');
}

void rg_tenant_table_show(struct qf_strbuf *buf, const struct rg_tenant_table *table,
                          struct qf_str after, uint8_t copies)
{
    size_t first = after.len ? QF_MIN(rg_tenant_table_number(table, after) + 1, table->count) : 0;
    size_t end = QF_MIN(table->count, first + RG_TENANTS_SHOWN);

    qf_strbuf_puts(buf, "{\"tenants\":[");
    for (size_t i = first; i < end; i++) {
        if (i > first)
            qf_strbuf_putc(buf, ',');
        rg_tenant_show(buf, row_at(table, i), copies);
    }
    qf_strbuf_putc(buf, ']');
    if (end < table->count)
        qf_strbuf_printf(buf, ",\"next\":\"%s\"", row_at(table, end - 1)->name);
    qf_strbuf_putc(buf, '}');
}
