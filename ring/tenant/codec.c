/* codec.c - settings, tenants, entries, snapshots and pages as bytes. Limits go by their names: their numbers are this
 * release's. */
#include "ring/tenant/codec.h"

#include "base/pure/base64.h"
#include "ring/tenant/page.h"

#define RECORD_BEGIN "{\"settings\":\""
#define RECORD_END "\"}"
#define LIMIT_NAME_MAX 40
#define LIMITS_MAX 256 /* that a release may have */
enum { SNAPSHOT_VERSION = 1, PAGE_VERSION = 1 };

void rg_put_settings(struct qf_strbuf *buf, const struct rg_settings *settings)
{
    uint64_t count = 0;

    for (int i = 0; i < QF_LIMIT__COUNT; i++)
        count += settings->limits.of[i] != 0;
    rg_put(buf, settings->copies);
    rg_put(buf, (uint64_t)settings->level);
    rg_put(buf, count);
    for (int i = 0; i < QF_LIMIT__COUNT; i++) {
        if (!settings->limits.of[i])
            continue;
        rg_put_text(buf, qf_str_from(qf_limit_name((enum qf_limit)i)));
        rg_put(buf, settings->limits.of[i]);
    }
}

/* Ascending by their numbers if none is unknown: equal settings have equal bytes. */
static void get_limits(struct rg_cursor *c, bool lenient, struct qf_limits *limits)
{
    uint64_t count = rg_get(c, LIMITS_MAX);
    int last = -1;

    for (uint64_t i = 0; i < count && !c->bad; i++) {
        enum qf_limit limit = qf_limit_find(rg_get_text(c, LIMIT_NAME_MAX));
        uint64_t value = rg_get(c, UINT64_MAX);

        if (limit == QF_LIMIT__COUNT) {
            c->bad |= !lenient;
            continue;
        }
        c->bad |= !value || ((int)limit <= last && !lenient);
        last = (int)limit;
        limits->of[limit] = value;
    }
}

void rg_get_settings(struct rg_cursor *c, bool lenient, struct rg_settings *ret_settings)
{
    struct rg_settings settings = { .copies = (uint8_t)rg_get(c, RG_COPIES_MAX),
                                    .level = (enum rg_tenant_level)rg_get(c, RG_TENANT_ALL) };

    get_limits(c, lenient, &settings.limits);
    *ret_settings = settings;
}

void rg_put_tenant(struct qf_strbuf *buf, const struct rg_tenant *tenant)
{
    rg_put_text(buf, qf_str_from(tenant->name));
    rg_put(buf, tenant->version);
    rg_put(buf, (uint64_t)tenant->created_ms);
    rg_put(buf, (uint64_t)tenant->updated_ms);
    rg_put_settings(buf, &tenant->settings);
}

void rg_get_tenant(struct rg_cursor *c, bool lenient, struct rg_tenant *ret_tenant)
{
    struct qf_str name = rg_get_text(c, QF_TENANT_MAX);
    struct rg_tenant tenant = { .version = rg_get(c, UINT64_MAX),
                                .created_ms = (int64_t)rg_get(c, INT64_MAX),
                                .updated_ms = (int64_t)rg_get(c, INT64_MAX) };

    rg_get_settings(c, lenient, &tenant.settings);
    c->bad |= !qf_tenant_valid(name) || !tenant.version;
    if (!c->bad)
        memcpy(tenant.name, name.data, name.len);
    *ret_tenant = tenant;
}

/* --- entries --- */

void rg_tenant_entry_encode(struct qf_strbuf *buf, const struct rg_tenant_entry *entry)
{
    rg_put(buf, entry->kind);
    rg_put(buf, (uint64_t)entry->time_ms);
    rg_put_text(buf, entry->name);
    rg_put(buf, entry->version);
    rg_put_settings(buf, &entry->settings);
}

qf_rc rg_tenant_entry_decode(struct qf_str bytes, struct rg_tenant_entry *ret_entry)
{
    struct rg_cursor c = { .rest = bytes };
    struct rg_tenant_entry entry = {
        .kind = (enum rg_tenant_kind)rg_get(&c, RG_TENANT_KIND__COUNT - 1),
        .time_ms = (int64_t)rg_get(&c, INT64_MAX),
        .name = rg_get_text(&c, QF_TENANT_MAX),
        .version = rg_get(&c, UINT64_MAX),
    };

    rg_get_settings(&c, false, &entry.settings);
    if (c.bad || c.rest.len || !entry.kind || !qf_tenant_valid(entry.name))
        return QF_ECORRUPT;
    *ret_entry = entry;
    return QF_OK;
}

void rg_tenant_record_encode(struct qf_strbuf *buf, const struct rg_tenant_entry *entry)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;

    rg_tenant_entry_encode(&bytes, entry);
    qf_strbuf_puts(buf, RECORD_BEGIN);
    qf_base64_encode(buf, qf_strbuf_view(&bytes));
    qf_strbuf_puts(buf, RECORD_END);
}

qf_rc rg_tenant_record_decode(struct qf_str record, struct qf_strbuf *bytes,
                              struct rg_tenant_entry *ret_entry)
{
    struct qf_str text;

    if (!qf_str_starts(record, QF_STR(RECORD_BEGIN)))
        return QF_ENOTFOUND;
    text = qf_str_sub(record, strlen(RECORD_BEGIN), record.len);
    if (record.len > RG_TENANT_RECORD_MAX || !qf_str_ends(text, QF_STR(RECORD_END)) ||
        !qf_base64_decode(bytes, qf_str_sub(text, 0, text.len - strlen(RECORD_END))) ||
        rg_tenant_entry_decode(qf_strbuf_view(bytes), ret_entry) != QF_OK)
        return QF_EUNSUPPORTED;
    return QF_OK;
}

/* --- snapshots --- */

void rg_tenant_table_save(struct qf_strbuf *buf, const struct rg_tenant_table *table)
{
    size_t count = rg_tenant_table_count(table);

    if (!count)
        return;
    rg_put(buf, SNAPSHOT_VERSION);
    rg_put(buf, count);
    for (size_t i = 0; i < count; i++)
        rg_put_tenant(buf, rg_tenant_table_at(table, i));
}

/* Into an empty @table. */
static void get_tenants(struct rg_cursor *c, struct rg_tenant_table *table)
{
    uint64_t count = rg_get(c, RG_TENANTS_MAX);
    struct rg_tenant tenant;

    for (uint64_t i = 0; i < count && !c->bad; i++) {
        rg_get_tenant(c, false, &tenant);
        c->bad |= c->bad || rg_tenant_table_find(table, qf_str_from(tenant.name)) ||
                  !rg_tenant_table_put(table, &tenant);
    }
}

qf_rc rg_tenant_table_decode(struct rg_tenant_table *table, struct qf_str bytes)
{
    struct rg_cursor c = { .rest = bytes };
    uint64_t version = rg_get(&c, UINT64_MAX);

    if (c.bad || !version)
        return QF_ECORRUPT;
    if (version > SNAPSHOT_VERSION)
        return QF_EUNSUPPORTED;
    get_tenants(&c, table);
    return c.bad || c.rest.len || !rg_tenant_table_count(table) ? QF_ECORRUPT : QF_OK;
}

/* --- pages --- */

void rg_tenant_page_encode(struct qf_strbuf *buf, const struct rg_tenant_page *page,
                           const struct rg_tenant_table *table, uint64_t since)
{
    size_t all = rg_tenant_table_count(table);
    uint64_t count = 0;

    for (size_t i = 0; i < all; i++)
        count += rg_tenant_table_at(table, i)->version > since;
    rg_put(buf, PAGE_VERSION);
    rg_put(buf, page->cluster);
    rg_put(buf, page->version);
    rg_put(buf, (uint64_t)page->confirmed_ms);
    rg_put(buf, count);
    for (size_t i = 0; i < all; i++)
        if (rg_tenant_table_at(table, i)->version > since)
            rg_put_tenant(buf, rg_tenant_table_at(table, i));
}

qf_rc rg_tenant_page_decode(struct qf_str bytes, struct rg_tenant_table *table,
                            struct rg_tenant_page *ret_page)
{
    struct rg_cursor c = { .rest = bytes };
    uint64_t version = rg_get(&c, UINT64_MAX), count;
    struct rg_tenant_page page = { .cluster = rg_get(&c, UINT64_MAX),
                                   .version = rg_get(&c, UINT64_MAX),
                                   .confirmed_ms = (int64_t)rg_get(&c, INT64_MAX) };
    struct rg_tenant tenant;

    if (!c.bad && version != PAGE_VERSION)
        return QF_EUNSUPPORTED;
    count = rg_get(&c, RG_TENANTS_MAX);
    for (uint64_t i = 0; i < count && !c.bad; i++) {
        rg_get_tenant(&c, true, &tenant);
        c.bad |= c.bad || !rg_tenant_table_put(table, &tenant);
    }
    if (c.bad || c.rest.len)
        return QF_ECORRUPT;
    *ret_page = page;
    return QF_OK;
}
