/* entry.c - which fields each kind of entry has, and their bytes. */
#include "ring/core/entry.h"

#include "base/pure/varint.h"
#include "ring/core/bytes.h"

enum field {
    NAME = 1 << 0,
    ZONE = 1 << 1,
    REASON = 1 << 2,
    INCARNATION = 1 << 3,
    NODE = 1 << 4,
    COPIES = 1 << 5,
    FORCED = 1 << 6,
    GRACE = 1 << 7,
    CHANGE = 1 << 8,
    EPOCH = 1 << 9,
    AMOUNTS = 1 << 10,
    SLOTS = 1 << 11,
    URL = 1 << 12
};

static const unsigned fields[RG_ENTRY__COUNT] = {
    [RG_FOUND] = COPIES | GRACE,
    [RG_ADD] = NAME | ZONE | URL | INCARNATION,
    [RG_REMOVE] = NODE,
    [RG_FACTOR] = COPIES,
    [RG_CANCEL] = CHANGE | REASON,
    [RG_DOWN] = NODE,
    [RG_UP] = NODE | URL | INCARNATION,
    [RG_BEGIN] = CHANGE | SLOTS,
    [RG_HELD] = CHANGE | NODE | INCARNATION | EPOCH | AMOUNTS | SLOTS,
    [RG_FAILED] = CHANGE | REASON,
    [RG_CLEAN] = NODE | FORCED | REASON | SLOTS,
    [RG_CLEANED] = NODE | EPOCH | SLOTS,
    [RG_FORGET] = CHANGE,
};

uint32_t rg_slot_set_next(const struct rg_slot_set *set, uint32_t from)
{
    for (uint32_t slot = from; slot < RG_SLOTS; slot = (slot / 64 + 1) * 64) {
        uint64_t rest = set->words[slot / 64] >> (slot % 64);

        if (rest)
            return slot + (uint32_t)__builtin_ctzll(rest);
    }
    return RG_SLOTS;
}

void rg_entry_encode(struct qf_strbuf *buf, const struct rg_entry *entry)
{
    unsigned has = fields[entry->kind];

    rg_put(buf, entry->kind);
    rg_put(buf, qf_zigzag(entry->time_ms));
    if (has & NAME)
        rg_put_text(buf, entry->name);
    if (has & ZONE)
        rg_put_text(buf, entry->zone);
    if (has & URL)
        rg_put_text(buf, entry->url);
    if (has & REASON)
        rg_put_text(buf, qf_str_sub(entry->reason, 0, RG_REASON_MAX));
    if (has & INCARNATION)
        rg_put(buf, entry->incarnation);
    if (has & NODE)
        rg_put(buf, entry->node);
    if (has & COPIES)
        rg_put(buf, entry->copies);
    if (has & FORCED)
        rg_put(buf, entry->forced);
    if (has & GRACE)
        rg_put(buf, qf_zigzag(entry->grace_ms));
    if (has & CHANGE)
        rg_put(buf, entry->change);
    if (has & EPOCH)
        rg_put(buf, entry->epoch);
    if (has & AMOUNTS)
        rg_put(buf, entry->blobs), rg_put(buf, entry->bytes);
    if (has & SLOTS)
        rg_put_slots(buf, &entry->slots);
}

static void read_fields(struct rg_cursor *cursor, unsigned has, struct rg_entry *entry)
{
    if (has & NAME)
        entry->name = rg_get_text(cursor, RG_NAME_MAX);
    if (has & ZONE)
        entry->zone = rg_get_text(cursor, RG_NAME_MAX);
    if (has & URL)
        entry->url = rg_get_text(cursor, RG_URL_MAX);
    if (has & REASON)
        entry->reason = rg_get_text(cursor, RG_REASON_MAX);
    if (has & INCARNATION)
        entry->incarnation = rg_get(cursor, UINT64_MAX);
    if (has & NODE)
        entry->node = (uint8_t)rg_get(cursor, RG_NODES_MAX - 1);
    if (has & COPIES)
        entry->copies = (uint8_t)rg_get(cursor, RG_COPIES_MAX);
    if (has & FORCED)
        entry->forced = rg_get(cursor, 1);
    if (has & GRACE)
        entry->grace_ms = qf_unzigzag(rg_get(cursor, UINT64_MAX));
    if (has & CHANGE)
        entry->change = rg_get(cursor, UINT64_MAX);
    if (has & EPOCH)
        entry->epoch = rg_get(cursor, UINT64_MAX);
    if (has & AMOUNTS) {
        entry->blobs = rg_get(cursor, UINT64_MAX);
        entry->bytes = rg_get(cursor, UINT64_MAX);
    }
    if (has & SLOTS)
        rg_get_slots(cursor, &entry->slots);
}

qf_rc rg_entry_decode(struct qf_str bytes, struct rg_entry *ret_entry)
{
    struct rg_cursor cursor = { .rest = bytes };
    struct rg_entry entry = { 0 };
    uint64_t kind = rg_get(&cursor, RG_ENTRY__COUNT - 1);

    if (kind == 0)
        return QF_ECORRUPT;
    entry.kind = (enum rg_entry_kind)kind;
    entry.time_ms = qf_unzigzag(rg_get(&cursor, UINT64_MAX));
    read_fields(&cursor, fields[kind], &entry);
    if (cursor.bad || cursor.rest.len)
        return QF_ECORRUPT;
    *ret_entry = entry;
    return QF_OK;
}
