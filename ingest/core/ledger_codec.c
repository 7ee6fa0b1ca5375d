/* ledger_codec.c - a ledger as bytes, for snapshots. */
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/varint.h"
#include "ingest/core/ledger_int.h"

/* The second one says up to where BELOW went, the third one who was elected, the fourth one has a manifest; as long as
 * there was none of it, nodes of before it can read it. */
enum { VERSION = 1, VERSION_BELOW = 2, VERSION_ELECT = 3, VERSION_NOTE = 4 };

/* --- writing --- */

static void put_signed(struct qf_strbuf *buf, int64_t value)
{
    qf_strbuf_varint(buf, qf_zigzag(value));
}

static void put_text(struct qf_strbuf *buf, const char *text)
{
    qf_strbuf_varint(buf, strlen(text));
    qf_strbuf_puts(buf, text);
}

static void put_amounts(struct qf_strbuf *buf, const struct in_amounts *amounts)
{
    qf_strbuf_varint(buf, amounts->series);
    qf_strbuf_varint(buf, amounts->samples);
    qf_strbuf_varint(buf, amounts->histograms);
    qf_strbuf_varint(buf, amounts->exemplars);
}

static void put_elected(struct qf_strbuf *buf, const struct in_tenant *tenant)
{
    qf_strbuf_varint(buf, tenant->elected_count);
    for (size_t i = 0; i < tenant->elected_count; i++) {
        put_text(buf, tenant->elected[i].cluster);
        put_text(buf, tenant->elected[i].replica);
        put_signed(buf, tenant->elected[i].newest_ts);
        put_signed(buf, tenant->elected[i].since_ms);
        put_signed(buf, tenant->elected[i].time_ms);
        qf_strbuf_varint(buf, tenant->elected[i].elections);
    }
}

static void put_tenant(struct qf_strbuf *buf, const struct in_tenant *tenant, uint64_t version)
{
    put_text(buf, tenant->name);
    qf_strbuf_varint(buf, tenant->sealed);
    qf_strbuf_varint(buf, tenant->generation);
    qf_strbuf_varint(buf, tenant->next_generation);
    if (version >= VERSION_BELOW)
        qf_strbuf_varint(buf, tenant->below);
    put_signed(buf, tenant->max_ts);
    qf_strbuf_varint(buf, tenant->files_after);
    qf_strbuf_varint(buf, tenant->range_count);
    for (size_t i = 0; i < tenant->range_count; i++) {
        qf_strbuf_varint(buf, tenant->ranges[i].generation);
        qf_strbuf_varint(buf, tenant->ranges[i].from);
        qf_strbuf_varint(buf, tenant->ranges[i].to);
        put_signed(buf, tenant->ranges[i].min_ts);
        put_signed(buf, tenant->ranges[i].max_ts);
        qf_strbuf_varint(buf, tenant->ranges[i].samples);
    }
    qf_strbuf_varint(buf, tenant->file_count);
    for (size_t i = 0; i < tenant->file_count; i++) {
        put_text(buf, tenant->files[i].name);
        put_text(buf, tenant->files[i].etag);
        qf_strbuf_varint(buf, tenant->files[i].size);
        qf_strbuf_varint(buf, tenant->files[i].index);
        put_signed(buf, tenant->files[i].time_ms);
    }
    if (version >= VERSION_ELECT)
        put_elected(buf, tenant);
}

static uint64_t version_of(const struct in_ledger *ledger)
{
    if (ledger->manifest)
        return VERSION_NOTE;
    if (in_ledger_knows_elect(ledger))
        return VERSION_ELECT;
    return in_ledger_knows_below(ledger) ? VERSION_BELOW : VERSION;
}

void in_ledger_encode(struct qf_strbuf *buf, const struct in_ledger *ledger)
{
    uint64_t version = version_of(ledger);

    qf_strbuf_varint(buf, version);
    qf_strbuf_varint(buf, ledger->applied);
    put_signed(buf, ledger->time_ms);
    put_signed(buf, ledger->floor_ms);
    qf_strbuf_varint(buf, ledger->tenant_count);
    for (size_t i = 0; i < ledger->tenant_count; i++)
        put_tenant(buf, ledger->tenants[i], version);
    qf_strbuf_varint(buf, ledger->keys.count);
    for (uint32_t i = 0; i < ledger->keys.count; i++) {
        const struct in_key_entry *entry = in_keys_at(&ledger->keys, i);

        qf_strbuf_add(buf, entry->key, IN_HASH_BYTES);
        qf_strbuf_add(buf, entry->body, IN_HASH_BYTES);
        put_amounts(buf, &entry->accepted);
        put_amounts(buf, &entry->refused);
        put_signed(buf, entry->time_ms);
        qf_strbuf_varint(buf, entry->index);
    }
    qf_strbuf_varint(buf, ledger->voids.count);
    for (size_t i = 0; i < ledger->voids.count; i++)
        qf_strbuf_varint(buf, ledger->voids.items[i]);
    if (version >= VERSION_NOTE) { /* at the end, without its length */
        qf_strbuf_varint(buf, ledger->manifest_changed);
        rg_manifest_encode(buf, ledger->manifest);
    }
}

/* --- reading: a cursor with a sticky failure --- */

struct cursor {
    struct qf_str rest;
    uint64_t version;
    bool bad;
};

static uint64_t get(struct cursor *c, uint64_t max)
{
    uint64_t value = 0;
    size_t used = c->bad ? 0 : qf_varint_get(c->rest, &value);

    if (!used || value > max) {
        c->bad = true;
        return 0;
    }
    c->rest = qf_str_sub(c->rest, used, c->rest.len);
    return value;
}

static int64_t get_signed(struct cursor *c)
{
    return qf_unzigzag(get(c, UINT64_MAX));
}

static struct qf_str get_bytes(struct cursor *c, size_t len)
{
    struct qf_str bytes = qf_str_sub(c->rest, 0, len);

    if (c->bad || c->rest.len < len) {
        c->bad = true;
        return QF_STR("");
    }
    c->rest = qf_str_sub(c->rest, len, c->rest.len);
    return bytes;
}

/* A text without a NUL in it, as whoever wrote it had it. */
static struct qf_str get_text(struct cursor *c)
{
    struct qf_str text = get_bytes(c, get(c, c->rest.len));

    if (memchr(text.data, 0, text.len))
        c->bad = true;
    return text;
}

static struct in_amounts get_amounts(struct cursor *c)
{
    struct in_amounts amounts;

    amounts.series = get(c, UINT64_MAX);
    amounts.samples = get(c, UINT64_MAX);
    amounts.histograms = get(c, UINT64_MAX);
    amounts.exemplars = get(c, UINT64_MAX);
    return amounts;
}

/* Ranges follow each other, and only the last one may be open. */
static void get_ranges(struct cursor *c, struct in_tenant *tenant, uint64_t applied)
{
    uint64_t count = get(c, IN_RANGES_MAX), behind = tenant->sealed;

    for (uint64_t i = 0; i < count && !c->bad; i++) {
        struct in_range *range = in_tenant_add_range(tenant);

        range->generation = get(c, tenant->generation);
        c->bad |= range->generation <= tenant->below;
        range->from = get(c, applied);
        range->to = get(c, applied);
        range->min_ts = get_signed(c);
        range->max_ts = get_signed(c);
        range->samples = get(c, UINT64_MAX);
        if (range->from <= behind || (range->to ? range->to <= range->from : i + 1 < count))
            c->bad = true;
        behind = range->to;
    }
}

static void get_files(struct cursor *c, struct in_tenant *tenant, uint64_t applied)
{
    uint64_t count = get(c, IN_RECENT_FILES_MAX);

    for (uint64_t i = 0; i < count && !c->bad; i++) {
        struct in_recent_file *file = in_tenant_add_file(tenant);
        struct qf_str name = get_text(c);
        struct qf_str etag = get_text(c);

        file->name = qf_xmemdup0(name.data, name.len);
        file->etag = qf_xmemdup0(etag.data, etag.len);
        file->size = get(c, UINT64_MAX);
        file->index = get(c, applied);
        file->time_ms = get_signed(c);
    }
}

static void get_elected(struct cursor *c, struct in_tenant *tenant)
{
    uint64_t count = get(c, IN_ELECTED_MAX);

    for (uint64_t i = 0; i < count && !c->bad; i++) {
        struct qf_str cluster = get_text(c);
        struct qf_str replica = get_text(c);
        struct in_elected *elected;

        c->bad |= !cluster.len || !replica.len || in_tenant_elected(tenant, cluster);
        elected = in_tenant_add_elected(tenant);
        elected->cluster = qf_xmemdup0(cluster.data, cluster.len);
        elected->replica = qf_xmemdup0(replica.data, replica.len);
        elected->newest_ts = get_signed(c);
        elected->since_ms = get_signed(c);
        elected->time_ms = get_signed(c);
        elected->elections = get(c, UINT64_MAX);
    }
}

static void get_tenant(struct cursor *c, struct in_ledger *ledger)
{
    size_t before = ledger->tenant_count;
    struct qf_str name = get_text(c);
    struct in_tenant *tenant = NULL;

    if (!c->bad && name.len > 0 && name.len <= IN_TENANT_MAX)
        tenant = in_ledger_make_tenant(ledger, name);
    if (!tenant || ledger->tenant_count == before) { /* or there are two of one name */
        c->bad = true;
        return;
    }
    tenant->sealed = get(c, ledger->applied);
    tenant->generation = get(c, UINT64_MAX / 2);
    tenant->next_generation = get(c, IN_GENERATION_MAX);
    tenant->below = c->version >= VERSION_BELOW ? get(c, IN_GENERATION_MAX) : 0;
    tenant->max_ts = get_signed(c);
    tenant->files_after = get(c, ledger->applied);
    get_ranges(c, tenant, ledger->applied);
    get_files(c, tenant, ledger->applied);
    if (c->version >= VERSION_ELECT)
        get_elected(c, tenant);
}

static void get_key(struct cursor *c, struct in_ledger *ledger)
{
    struct qf_str key = get_bytes(c, IN_HASH_BYTES);
    struct qf_str body = get_bytes(c, IN_HASH_BYTES);
    struct in_key_entry entry = { 0 };

    entry.accepted = get_amounts(c);
    entry.refused = get_amounts(c);
    entry.time_ms = get_signed(c);
    entry.index = get(c, ledger->applied);
    if (c->bad)
        return;
    memcpy(entry.key, key.data, IN_HASH_BYTES);
    memcpy(entry.body, body.data, IN_HASH_BYTES);
    if (in_keys_find(&ledger->keys, entry.key))
        c->bad = true;
    else
        in_keys_add(&ledger->keys, &entry);
}

static void get_voids(struct cursor *c, struct in_ledger *ledger)
{
    uint64_t count = get(c, IN_VOIDS_MAX), before = 0;

    for (uint64_t i = 0; i < count && !c->bad; i++) {
        uint64_t index = get(c, ledger->applied);

        c->bad |= index <= before;
        in_ledger_note_void(ledger, index);
        before = index;
    }
}

/* The rest of it. */
static void get_manifest(struct cursor *c, struct in_ledger *ledger)
{
    ledger->manifest_changed = get(c, ledger->applied);
    c->bad |= rg_manifest_decode(c->rest, &ledger->manifest) != QF_OK ||
              rg_manifest_applied(ledger->manifest) > ledger->applied;
    c->rest = QF_STR("");
}

qf_rc in_ledger_decode(struct qf_str bytes, struct in_ledger **ret_ledger)
{
    struct in_ledger *ledger = in_ledger_new();
    struct cursor c = { .rest = bytes };
    uint64_t count;

    c.version = get(&c, UINT64_MAX);
    if (!c.bad && c.version > VERSION_NOTE) {
        (void)in_ledger_free(ledger);
        return QF_EUNSUPPORTED;
    }
    c.bad |= c.version < VERSION;
    ledger->applied = get(&c, UINT64_MAX - 1);
    ledger->time_ms = get_signed(&c);
    ledger->floor_ms = get_signed(&c);
    count = get(&c, IN_TENANTS_MAX);
    for (uint64_t i = 0; i < count && !c.bad; i++)
        get_tenant(&c, ledger);
    count = get(&c, IN_KEYS_MAX);
    for (uint64_t i = 0; i < count && !c.bad; i++)
        get_key(&c, ledger);
    get_voids(&c, ledger);
    if (c.version >= VERSION_NOTE && !c.bad)
        get_manifest(&c, ledger);
    if (c.bad || c.rest.len) {
        (void)in_ledger_free(ledger);
        return QF_ECORRUPT;
    }
    *ret_ledger = ledger;
    return QF_OK;
}
