/* bytes.c - varints, texts, runs. */
#include "ring/core/bytes.h"

#include <string.h>

#include "base/pure/varint.h"

void rg_put(struct qf_strbuf *buf, uint64_t value)
{
    qf_strbuf_varint(buf, value);
}

void rg_put_text(struct qf_strbuf *buf, struct qf_str text)
{
    rg_put(buf, text.len);
    qf_strbuf_str(buf, text);
}

/* How many slots from @from on are in (or out) like @in; up to the end. */
static uint32_t run(const struct rg_slot_set *slots, uint32_t from, bool in)
{
    uint32_t slot = from;

    while (slot < RG_SLOTS && rg_slot_set_has(slots, slot) == in)
        slot++;
    return slot - from;
}

void rg_put_slots(struct qf_strbuf *buf, const struct rg_slot_set *slots)
{
    bool in = false;

    for (uint32_t slot = 0; slot < RG_SLOTS; in = !in) {
        uint32_t len = run(slots, slot, in);

        rg_put(buf, len);
        slot += len;
    }
}

uint64_t rg_get(struct rg_cursor *cursor, uint64_t max)
{
    uint64_t value = 0;
    size_t used = cursor->bad ? 0 : qf_varint_get(cursor->rest, &value);

    if (!used || value > max || (used > 1 && cursor->rest.data[used - 1] == 0)) {
        cursor->bad = true;
        return 0;
    }
    cursor->rest = qf_str_sub(cursor->rest, used, cursor->rest.len);
    return value;
}

struct qf_str rg_get_text(struct rg_cursor *cursor, size_t max)
{
    size_t len = rg_get(cursor, max);
    struct qf_str text = qf_str_sub(cursor->rest, 0, len);

    if (cursor->bad || text.len < len || (len && memchr(text.data, 0, len))) {
        cursor->bad = true;
        return QF_STR("");
    }
    cursor->rest = qf_str_sub(cursor->rest, len, cursor->rest.len);
    return text;
}

void rg_get_slots(struct rg_cursor *cursor, struct rg_slot_set *ret_slots)
{
    bool in = false;

    *ret_slots = (struct rg_slot_set){ { 0 } };
    for (uint32_t slot = 0; slot < RG_SLOTS && !cursor->bad; in = !in) {
        uint32_t len = (uint32_t)rg_get(cursor, RG_SLOTS - slot);

        if (len == 0 && (slot > 0 || in))
            cursor->bad = true; /* only the first run may be empty */
        for (uint32_t i = 0; in && i < len; i++)
            rg_slot_set_add(ret_slots, slot + i);
        slot += len;
    }
}
