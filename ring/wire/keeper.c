/* keeper.c - names, queries and bodies of requests to keepers. */
#include "ring/wire/keeper.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/path_name.h"
#include "ring/core/bytes.h"
#include "ring/core/manifest.h"

enum { VERSION = 1, NAME_PART_MAX = 200 };

/* --- names --- */

bool rg_blob_name_valid(struct qf_str name)
{
    static const struct qf_path_name_rule rule = { RG_BLOB_NAME_MAX, NAME_PART_MAX, '~' };

    return qf_path_name_valid(name, &rule);
}

/* What stands behind "tenant=" at the beginning of a part; empty: there is no such part. */
static struct qf_str tenant_in(struct qf_str name)
{
    const struct qf_str mark = QF_STR("tenant=");

    for (size_t i = 0; i + mark.len <= name.len; i++) {
        struct qf_str rest = qf_str_sub(name, i, name.len);
        const char *slash;

        if (!qf_str_starts(rest, mark) || (i && name.data[i - 1] != '/'))
            continue;
        rest = qf_str_sub(rest, mark.len, rest.len);
        slash = rest.len ? memchr(rest.data, '/', rest.len) : NULL;
        return slash ? qf_str_sub(rest, 0, (size_t)(slash - rest.data)) : rest;
    }
    return QF_STR("");
}

static size_t digits(struct qf_str text, uint32_t *ret_value)
{
    size_t len = 0;

    *ret_value = 0;
    while (len < text.len && len < 6 && text.data[len] >= '0' && text.data[len] <= '9')
        *ret_value = *ret_value * 10 + (uint32_t)(text.data[len++] - '0');
    return len;
}

/* S of "_sSofN" in the last part. */
static uint32_t shard_in(struct qf_str name)
{
    size_t i = name.len;

    while (i > 0 && name.data[i - 1] != '/')
        i--;
    for (; i + 2 < name.len; i++) {
        struct qf_str rest = qf_str_sub(name, i, name.len);
        uint32_t shard;
        size_t len;

        if (!qf_str_starts(rest, QF_STR("_s")))
            continue;
        len = digits(qf_str_sub(rest, 2, rest.len), &shard);
        if (len && qf_str_starts(qf_str_sub(rest, 2 + len, rest.len), QF_STR("of")))
            return shard;
    }
    return 0;
}

uint32_t rg_blob_slot(struct qf_str name, uint32_t placements, uint32_t slots)
{
    return rg_slot_of(tenant_in(name), shard_in(name), placements) % slots;
}

/* --- checksums --- */

void rg_sum_print(const struct rg_sum *sum, char ret_text[RG_SUM_TEXT + 1])
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < RG_SUM_BYTES; i++) {
        ret_text[2 * i] = hex[sum->bytes[i] >> 4];
        ret_text[2 * i + 1] = hex[sum->bytes[i] & 15];
    }
    ret_text[RG_SUM_TEXT] = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool rg_sum_parse(struct qf_str text, struct rg_sum *ret_sum)
{
    if (text.len != RG_SUM_TEXT)
        return false;
    for (size_t i = 0; i < RG_SUM_BYTES; i++) {
        int high = hex_value(text.data[2 * i]), low = hex_value(text.data[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        ret_sum->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* --- queries --- */

static void put_escaped(struct qf_strbuf *buf, struct qf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            (c && strchr("-._/", c)))
            qf_strbuf_putc(buf, (char)c);
        else
            qf_strbuf_printf(buf, "%%%02X", c);
    }
}

void rg_keep_query_print(struct qf_strbuf *buf, const struct rg_keep_query *query)
{
    char sum[RG_SUM_TEXT + 1];

    qf_strbuf_printf(buf, "?slot=%" PRIu32 "&epoch=%" PRIu64, query->slot, query->epoch);
    if (query->name.len) {
        qf_strbuf_puts(buf, "&name=");
        put_escaped(buf, query->name);
    }
    if (query->after.len) {
        qf_strbuf_puts(buf, "&after=");
        put_escaped(buf, query->after);
    }
    if (query->was) {
        rg_sum_print(query->was, sum);
        qf_strbuf_printf(buf, "&was=%s", sum);
    }
    if (!query->upload)
        return;
    rg_sum_print(&query->sum, sum);
    qf_strbuf_printf(buf, "&size=%" PRIu64 "&from=%" PRIu64 "&upload=%016" PRIx64 "&sum=%s",
                     query->size, query->from, query->upload_id, sum);
}

/* --- bodies --- */

static struct rg_cursor begin(struct qf_str bytes)
{
    struct rg_cursor cursor = { .rest = bytes };

    cursor.bad = rg_get(&cursor, UINT64_MAX) != VERSION || cursor.bad;
    return cursor;
}

static bool ended(const struct rg_cursor *cursor)
{
    return !cursor->bad && cursor->rest.len == 0;
}

void rg_told_encode(struct qf_strbuf *buf, const uint64_t *epochs, uint32_t count)
{
    rg_put(buf, VERSION);
    rg_put(buf, count);
    for (uint32_t i = 0; i < count; i++)
        rg_put(buf, epochs[i]);
}

qf_rc rg_told_decode(struct qf_str bytes, uint64_t ret_epochs[RG_SLOTS], uint32_t *ret_count)
{
    struct rg_cursor c = begin(bytes);
    uint32_t count = (uint32_t)rg_get(&c, RG_SLOTS);

    for (uint32_t i = 0; i < count && !c.bad; i++)
        ret_epochs[i] = rg_get(&c, UINT64_MAX);
    if (!ended(&c) || !count)
        return QF_ECORRUPT;
    *ret_count = count;
    return QF_OK;
}

void rg_names_encode(struct qf_strbuf *buf, const struct rg_names *names)
{
    rg_put(buf, VERSION);
    rg_put(buf, names->count);
    for (size_t i = 0; i < names->count; i++)
        rg_put_text(buf, names->names[i]);
    rg_put(buf, names->source_count);
    for (size_t i = 0; i < names->source_count; i++)
        rg_put_text(buf, names->sources[i]);
}

qf_rc rg_names_decode(struct qf_str bytes, struct rg_names *ret_names)
{
    struct rg_cursor c = begin(bytes);
    struct rg_names names = { .count = rg_get(&c, RG_KEEP_NAMES_MAX) };

    names.names = qf_xcalloc(names.count + 1, sizeof(*names.names));
    for (size_t i = 0; i < names.count && !c.bad; i++) {
        names.names[i] = rg_get_text(&c, RG_BLOB_NAME_MAX);
        c.bad |= !rg_blob_name_valid(names.names[i]);
    }
    names.source_count = rg_get(&c, RG_KEEP_SOURCES_MAX);
    for (size_t i = 0; i < names.source_count && !c.bad; i++)
        names.sources[i] = rg_get_text(&c, RG_KEEP_URL_MAX);
    if (!ended(&c)) {
        rg_names_done(&names);
        return QF_ECORRUPT;
    }
    *ret_names = names;
    return QF_OK;
}

void rg_names_done(struct rg_names *names)
{
    free(names->names);
    *names = (struct rg_names){ 0 };
}

void rg_held_encode(struct qf_strbuf *buf, const struct rg_held *held)
{
    rg_put(buf, VERSION);
    rg_put(buf, held->incarnation);
    rg_put(buf, held->blobs);
    rg_put(buf, held->bytes);
    rg_put(buf, held->missing_count);
    for (size_t i = 0; i < held->missing_count; i++)
        rg_put(buf, held->missing[i]);
}

qf_rc rg_held_decode(struct qf_str bytes, struct rg_held *ret_held)
{
    struct rg_cursor c = begin(bytes);
    struct rg_held held = { .incarnation = rg_get(&c, UINT64_MAX),
                            .blobs = rg_get(&c, UINT64_MAX),
                            .bytes = rg_get(&c, UINT64_MAX) };

    held.missing_count = rg_get(&c, RG_KEEP_NAMES_MAX);
    held.missing = qf_xcalloc(held.missing_count + 1, sizeof(*held.missing));
    for (size_t i = 0; i < held.missing_count && !c.bad; i++) {
        held.missing[i] = (uint32_t)rg_get(&c, RG_KEEP_NAMES_MAX - 1);
        c.bad |= i && held.missing[i] <= held.missing[i - 1];
    }
    if (!ended(&c)) {
        rg_held_done(&held);
        return QF_ECORRUPT;
    }
    *ret_held = held;
    return QF_OK;
}

void rg_held_done(struct rg_held *held)
{
    free(held->missing);
    *held = (struct rg_held){ 0 };
}

static struct qf_str get_bytes(struct rg_cursor *c, size_t max)
{
    size_t len = rg_get(c, max);
    struct qf_str bytes = qf_str_sub(c->rest, 0, len);

    c->bad |= bytes.len < len;
    c->rest = qf_str_sub(c->rest, len, c->rest.len);
    return bytes;
}

void rg_docs_encode(struct qf_strbuf *buf, const struct rg_docs *docs)
{
    rg_put(buf, VERSION);
    rg_put(buf, docs->more);
    rg_put(buf, docs->count);
    for (size_t i = 0; i < docs->count; i++) {
        rg_put_text(buf, docs->items[i].name);
        rg_put_text(buf, docs->items[i].bytes);
    }
}

qf_rc rg_docs_decode(struct qf_str bytes, struct rg_docs *ret_docs)
{
    struct rg_cursor c = begin(bytes);
    struct rg_docs docs = { .more = rg_get(&c, 1) == 1 };

    docs.count = rg_get(&c, RG_KEEP_DOCS_MAX);
    docs.items = qf_xcalloc(docs.count + 1, sizeof(*docs.items));
    for (size_t i = 0; i < docs.count && !c.bad; i++) {
        docs.items[i].name = rg_get_text(&c, RG_BLOB_NAME_MAX);
        docs.items[i].bytes = get_bytes(&c, RG_KEEP_DOC_BYTES_MAX);
        c.bad |= !rg_blob_name_valid(docs.items[i].name) ||
                 (i && qf_str_cmp(docs.items[i].name, docs.items[i - 1].name) <= 0);
    }
    if (!ended(&c)) {
        rg_docs_done(&docs);
        return QF_ECORRUPT;
    }
    *ret_docs = docs;
    return QF_OK;
}

void rg_docs_done(struct rg_docs *docs)
{
    free(docs->items);
    *docs = (struct rg_docs){ 0 };
}

void rg_digests_encode(struct qf_strbuf *buf, const struct rg_digests *digests)
{
    rg_put(buf, VERSION);
    rg_put(buf, digests->count);
    for (size_t i = 0; i < digests->count; i++) {
        rg_put(buf, digests->items[i].slot);
        rg_put(buf, digests->items[i].known);
        qf_strbuf_add(buf, digests->items[i].sum.bytes, RG_SUM_BYTES);
    }
}

qf_rc rg_digests_decode(struct qf_str bytes, struct rg_digests *ret_digests)
{
    struct rg_cursor c = begin(bytes);
    struct rg_digests digests = { .count = rg_get(&c, RG_SLOTS) };

    digests.items = qf_xcalloc(digests.count + 1, sizeof(*digests.items));
    for (size_t i = 0; i < digests.count && !c.bad; i++) {
        struct rg_digest *digest = &digests.items[i];

        digest->slot = (uint32_t)rg_get(&c, RG_SLOTS - 1);
        digest->known = rg_get(&c, 1) == 1;
        c.bad |= c.rest.len < RG_SUM_BYTES || (i && digest->slot <= digest[-1].slot);
        if (!c.bad)
            memcpy(digest->sum.bytes, c.rest.data, RG_SUM_BYTES);
        c.rest = qf_str_sub(c.rest, RG_SUM_BYTES, c.rest.len);
    }
    if (!ended(&c)) {
        rg_digests_done(&digests);
        return QF_ECORRUPT;
    }
    *ret_digests = digests;
    return QF_OK;
}

void rg_digests_done(struct rg_digests *digests)
{
    free(digests->items);
    *digests = (struct rg_digests){ 0 };
}

const struct rg_digest *rg_digests_of(const struct rg_digests *digests, uint32_t slot)
{
    size_t from = 0, to = digests->count;

    while (from < to) {
        size_t at = from + (to - from) / 2;

        if (digests->items[at].slot == slot)
            return &digests->items[at];
        if (digests->items[at].slot < slot)
            from = at + 1;
        else
            to = at;
    }
    return NULL;
}
