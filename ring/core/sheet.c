/* sheet.c - documents with their bytes: joined, encoded, named. */
#include "ring/core/sheet.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/hex.h"
#include "base/pure/sha256.h"
#include "ring/core/bytes.h"
#include "ring/core/place.h"

#define VERSION 1

/* --- contents --- */

static const struct rg_content *content_of(const struct rg_sheet *sheet, uint64_t id)
{
    for (unsigned i = 0; i < sheet->content_count; i++)
        if (sheet->contents[i].id == id)
            return &sheet->contents[i];
    return NULL;
}

static bool is_used(const struct rg_document *document, uint64_t id)
{
    for (unsigned i = 0; i < document->count; i++)
        if (document->values[i].content == id)
            return true;
    return false;
}

/* Bytes that no value has any more go. */
static void prune(struct rg_sheet *sheet)
{
    for (unsigned i = 0; i < sheet->content_count;) {
        if (is_used(&sheet->document, sheet->contents[i].id)) {
            i++;
            continue;
        }
        free(sheet->contents[i].data);
        sheet->contents[i] = sheet->contents[--sheet->content_count];
    }
}

void rg_sheet_done(struct rg_sheet *sheet)
{
    for (unsigned i = 0; i < sheet->content_count; i++)
        free(sheet->contents[i].data);
    *sheet = (struct rg_sheet){ 0 };
}

struct qf_str rg_sheet_bytes(const struct rg_sheet *sheet, const struct rg_value *value)
{
    const struct rg_content *content = content_of(sheet, value->content);

    return content ? (struct qf_str){ content->data, content->len } : QF_STR("");
}

void rg_sheet_add(struct rg_sheet *sheet, const struct rg_value *value, struct qf_str bytes)
{
    if (!rg_document_add(&sheet->document, value))
        return;
    prune(sheet); /* first: there is room for as many contents as values */
    if (value->content && !content_of(sheet, value->content))
        sheet->contents[sheet->content_count++] =
            (struct rg_content){ value->content,
                                 qf_xmemdup0(bytes.len ? bytes.data : "", bytes.len), bytes.len };
}

/* --- requests --- */

/* A total order, so that every replica keeps the same ones. */
static bool is_later(const struct rg_repeat *a, const struct rg_repeat *b)
{
    int order = memcmp(a->key, b->key, RG_DIGEST_BYTES);

    return a->context.time_ms != b->context.time_ms ? a->context.time_ms > b->context.time_ms
                                                    : order > 0;
}

/* Of two answers to one key the earlier one counts, then the lesser request, then the lesser clock, alike everywhere. */
static bool is_first(const struct rg_repeat *a, const struct rg_repeat *b)
{
    int order;

    if (a->context.time_ms != b->context.time_ms)
        return a->context.time_ms < b->context.time_ms;
    order = memcmp(a->request, b->request, RG_DIGEST_BYTES);
    return order ? order < 0 : rg_clock_rank(&a->context.clock, &b->context.clock) < 0;
}

static void take_out(struct rg_sheet *sheet, unsigned at)
{
    sheet->repeat_count--;
    memmove(&sheet->repeats[at], &sheet->repeats[at + 1],
            (sheet->repeat_count - at) * sizeof(sheet->repeats[0]));
}

void rg_sheet_remember(struct rg_sheet *sheet, const struct rg_repeat *repeat)
{
    unsigned at = 0;

    for (unsigned i = 0; i < sheet->repeat_count; i++) {
        if (memcmp(sheet->repeats[i].key, repeat->key, RG_DIGEST_BYTES) != 0)
            continue;
        if (!is_first(repeat, &sheet->repeats[i]))
            return;
        take_out(sheet, i);
        break;
    }
    while (at < sheet->repeat_count && is_later(&sheet->repeats[at], repeat))
        at++;
    if (at == RG_REPEATS_MAX)
        return;
    if (sheet->repeat_count == RG_REPEATS_MAX)
        sheet->repeat_count--;
    memmove(&sheet->repeats[at + 1], &sheet->repeats[at],
            (sheet->repeat_count - at) * sizeof(sheet->repeats[0]));
    sheet->repeats[at] = *repeat;
    sheet->repeat_count++;
}

const struct rg_repeat *rg_sheet_repeat(const struct rg_sheet *sheet,
                                        const uint8_t key[RG_DIGEST_BYTES], int64_t now_ms)
{
    for (unsigned i = 0; i < sheet->repeat_count; i++)
        if (memcmp(sheet->repeats[i].key, key, RG_DIGEST_BYTES) == 0 &&
            now_ms - sheet->repeats[i].context.time_ms < RG_REPEAT_MS)
            return &sheet->repeats[i];
    return NULL;
}

void rg_sheet_join(struct rg_sheet *sheet, const struct rg_sheet *other)
{
    for (unsigned i = 0; i < other->document.count; i++)
        rg_sheet_add(sheet, &other->document.values[i],
                     rg_sheet_bytes(other, &other->document.values[i]));
    for (unsigned i = 0; i < other->repeat_count; i++)
        rg_sheet_remember(sheet, &other->repeats[i]);
}

struct rg_context rg_sheet_context(const struct rg_sheet *sheet)
{
    struct rg_context context = { 0 };

    for (unsigned i = 0; i < sheet->document.count; i++) {
        rg_clock_join(&context.clock, &sheet->document.values[i].clock);
        if (context.time_ms < sheet->document.values[i].time_ms)
            context.time_ms = sheet->document.values[i].time_ms;
    }
    return context;
}

/* --- bytes --- */

static void put_clock(struct qf_strbuf *buf, const struct rg_clock *clock)
{
    rg_put(buf, clock->count);
    for (unsigned i = 0; i < clock->count; i++) {
        rg_put(buf, clock->entries[i].coordinator);
        rg_put(buf, clock->entries[i].counter);
    }
}

static void put_context(struct qf_strbuf *buf, const struct rg_context *context)
{
    rg_put(buf, (uint64_t)context->time_ms);
    put_clock(buf, &context->clock);
}

static void put_all(struct qf_strbuf *buf, const struct rg_sheet *sheet)
{
    rg_put(buf, VERSION);
    rg_put(buf, sheet->document.count);
    for (unsigned i = 0; i < sheet->document.count; i++) {
        const struct rg_value *value = &sheet->document.values[i];
        struct qf_str bytes = rg_sheet_bytes(sheet, value);

        put_context(buf, &(struct rg_context){ value->clock, value->time_ms });
        rg_put(buf, value->coordinator);
        rg_put(buf, value->content != 0);
        if (value->content) {
            rg_put(buf, bytes.len);
            qf_strbuf_str(buf, bytes);
        }
    }
    rg_put(buf, sheet->repeat_count);
    for (unsigned i = 0; i < sheet->repeat_count; i++) {
        qf_strbuf_add(buf, sheet->repeats[i].key, RG_DIGEST_BYTES);
        qf_strbuf_add(buf, sheet->repeats[i].request, RG_DIGEST_BYTES);
        put_context(buf, &sheet->repeats[i].context);
    }
}

void rg_sheet_encode(struct qf_strbuf *buf, struct rg_sheet *sheet)
{
    size_t before = buf->len;

    put_all(buf, sheet);
    while (buf->len - before > RG_SHEET_BYTES_MAX && sheet->document.count > 1) {
        sheet->document.count--;
        prune(sheet);
        buf->len = before;
        put_all(buf, sheet);
    }
}

static void get_clock(struct rg_cursor *cursor, struct rg_clock *clock)
{
    uint64_t count = rg_get(cursor, RG_CLOCK_MAX), last = 0;

    *clock = (struct rg_clock){ 0 };
    for (unsigned i = 0; i < count && !cursor->bad; i++) {
        struct rg_clock_entry *entry = &clock->entries[clock->count++];

        entry->coordinator = rg_get(cursor, UINT64_MAX);
        entry->counter = rg_get(cursor, INT64_MAX);
        cursor->bad |= entry->coordinator <= last || !entry->counter;
        last = entry->coordinator;
    }
}

static void get_context(struct rg_cursor *cursor, struct rg_context *context)
{
    context->time_ms = (int64_t)rg_get(cursor, INT64_MAX / 2);
    get_clock(cursor, &context->clock);
}

static struct qf_str get_bytes(struct rg_cursor *cursor, size_t len)
{
    struct qf_str bytes = qf_str_sub(cursor->rest, 0, len);

    cursor->bad |= bytes.len != len;
    cursor->rest = qf_str_sub(cursor->rest, len, cursor->rest.len);
    return cursor->bad ? QF_STR("") : bytes;
}

static void get_value(struct rg_cursor *cursor, struct rg_sheet *sheet)
{
    struct qf_str bytes = QF_STR("");
    struct rg_context context;
    struct rg_value value;
    bool live;

    get_context(cursor, &context);
    value = (struct rg_value){ .clock = context.clock, .time_ms = context.time_ms };
    value.coordinator = rg_get(cursor, UINT64_MAX);
    live = rg_get(cursor, 1);
    if (live) {
        bytes = get_bytes(cursor, rg_get(cursor, RG_VALUE_BYTES_MAX));
        value.content = rg_content_id(bytes);
    }
    if (!cursor->bad)
        rg_sheet_add(sheet, &value, bytes);
}

static void get_repeat(struct rg_cursor *cursor, struct rg_sheet *sheet)
{
    struct qf_str key = get_bytes(cursor, RG_DIGEST_BYTES);
    struct qf_str request = get_bytes(cursor, RG_DIGEST_BYTES);
    struct rg_repeat repeat = { 0 };

    get_context(cursor, &repeat.context);
    if (cursor->bad)
        return;
    memcpy(repeat.key, key.data, RG_DIGEST_BYTES);
    memcpy(repeat.request, request.data, RG_DIGEST_BYTES);
    rg_sheet_remember(sheet, &repeat);
}

qf_rc rg_sheet_decode(struct qf_str bytes, struct rg_sheet *ret_sheet)
{
    struct rg_cursor cursor = { .rest = bytes };
    struct rg_sheet sheet = { 0 };
    uint64_t values, repeats;

    cursor.bad |= rg_get(&cursor, UINT64_MAX) != VERSION;
    values = rg_get(&cursor, RG_SIBLINGS_MAX);
    for (unsigned i = 0; i < values && !cursor.bad; i++)
        get_value(&cursor, &sheet);
    repeats = rg_get(&cursor, RG_REPEATS_MAX);
    for (unsigned i = 0; i < repeats && !cursor.bad; i++)
        get_repeat(&cursor, &sheet);
    if (cursor.bad || cursor.rest.len || sheet.document.count != values ||
        sheet.repeat_count != repeats) {
        rg_sheet_done(&sheet);
        return QF_ECORRUPT;
    }
    *ret_sheet = sheet;
    return QF_OK;
}

/* --- names --- */

uint64_t rg_content_id(struct qf_str bytes)
{
    uint8_t digest[QF_SHA256_BYTES];
    uint64_t id = 0;

    qf_sha256(bytes, digest);
    for (unsigned i = 0; i < 8; i++)
        id = id << 8 | digest[i];
    return id ? id : 1;
}

void rg_digest(struct qf_str bytes, uint8_t ret_digest[RG_DIGEST_BYTES])
{
    uint8_t digest[QF_SHA256_BYTES];

    qf_sha256(bytes, digest);
    memcpy(ret_digest, digest, RG_DIGEST_BYTES);
}

/* No tenant has a NUL in its name: nobody's key looks like another tenant's. */
static void digest_of(struct qf_str tenant, struct qf_str key, uint8_t digest[QF_SHA256_BYTES])
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_str(&text, tenant);
    qf_strbuf_putc(&text, 0);
    qf_strbuf_str(&text, key);
    qf_sha256(qf_strbuf_view(&text), digest);
}

void rg_doc_name(struct qf_str tenant, struct qf_str key, char ret_name[RG_DOC_NAME_TEXT + 1])
{
    uint8_t digest[QF_SHA256_BYTES];

    digest_of(tenant, key, digest);
    qf_hex_encode(digest, sizeof(digest), ret_name);
}

uint32_t rg_doc_slot(struct qf_str tenant, struct qf_str key, uint32_t slots)
{
    uint8_t digest[QF_SHA256_BYTES];

    digest_of(tenant, key, digest);
    return rg_slot_of(tenant, digest[0], RG_PLACEMENTS) % slots;
}

#define PART "_docs/"

void rg_doc_part(const char *name, struct qf_str bytes, char ret_part[RG_DOC_PART_TEXT + 1])
{
    uint8_t digest[RG_DIGEST_BYTES];
    char text[2 * RG_DIGEST_BYTES + 1];

    rg_digest(bytes, digest);
    qf_hex_encode(digest, sizeof(digest), text);
    (void)snprintf(ret_part, RG_DOC_PART_TEXT + 1, PART "%.*s/%s", RG_DOC_NAME_TEXT, name, text);
}

bool rg_doc_of_part(struct qf_str part, char ret_name[RG_DOC_NAME_TEXT + 1])
{
    if (part.len != RG_DOC_PART_TEXT || !qf_str_starts(part, QF_STR(PART)))
        return false;
    memcpy(ret_name, part.data + sizeof(PART) - 1, RG_DOC_NAME_TEXT);
    ret_name[RG_DOC_NAME_TEXT] = '\0';
    return true;
}

/* --- contexts --- */

void rg_context_print(struct qf_strbuf *buf, const struct rg_context *context)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;

    rg_put(&bytes, VERSION);
    put_context(&bytes, context);
    qf_strbuf_hex(buf, bytes.data, bytes.len);
}

qf_rc rg_context_parse(struct qf_str text, struct rg_context *ret_context)
{
    char bytes[RG_CONTEXT_TEXT_MAX / 2];
    struct rg_cursor cursor = { .rest = { bytes, text.len / 2 } };
    struct rg_context context;

    if (text.len > RG_CONTEXT_TEXT_MAX || !qf_hex_decode(text, bytes))
        return QF_EINVAL;
    cursor.bad |= rg_get(&cursor, UINT64_MAX) != VERSION;
    get_context(&cursor, &context);
    if (cursor.bad || cursor.rest.len)
        return QF_EINVAL;
    *ret_context = context;
    return QF_OK;
}

struct rg_value rg_context_write(const struct rg_context *context, uint64_t coordinator,
                                 uint64_t counter, int64_t now_ms, uint64_t content)
{
    const struct rg_document seen = { .count = context->clock.count > 0,
                                      .values[0] = { .clock = context->clock,
                                                     .time_ms = context->time_ms } };

    return rg_document_write(&seen, coordinator, counter, now_ms, content);
}
