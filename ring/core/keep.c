/* keep.c - epochs of slots, ages of blobs. */
#include "ring/core/keep.h"

#include "ring/core/bytes.h"

enum { VERSION = 1 };

bool rg_keep_hear(struct rg_keep *keep, uint32_t slot, uint64_t epoch)
{
    if (epoch <= keep->epochs[slot])
        return false;
    keep->epochs[slot] = epoch;
    return true;
}

bool rg_keep_tell(struct rg_keep *keep, const uint64_t *epochs)
{
    bool news = !keep->told;

    keep->told = true;
    for (uint32_t i = 0; i < keep->slots; i++)
        news |= rg_keep_hear(keep, i, epochs[i]);
    return news;
}

bool rg_keep_takes(struct rg_keep *keep, uint32_t slot, uint64_t epoch)
{
    if (!keep->told && !(keep->unsafe & RG_KEEP_UNSAFE_NOT_TOLD))
        return false;
    if (epoch < keep->epochs[slot] && !(keep->unsafe & RG_KEEP_UNSAFE_OLD_PUTS))
        return false;
    (void)rg_keep_hear(keep, slot, epoch);
    return true;
}

bool rg_keep_cleans(const struct rg_keep *keep, uint32_t slot, uint64_t epoch)
{
    return epoch >= keep->epochs[slot] || (keep->unsafe & RG_KEEP_UNSAFE_OLD_CLEAN);
}

int64_t rg_keep_renew(const struct rg_keep *keep, int64_t before_ms, int64_t now_ms)
{
    if (before_ms != INT64_MIN && (keep->unsafe & RG_KEEP_UNSAFE_NO_RENEWAL))
        return before_ms;
    return now_ms > before_ms ? now_ms : before_ms;
}

bool rg_keep_drops(int64_t put_ms, int64_t asked_ms, int64_t now_ms, int64_t grace_ms)
{
    return put_ms < asked_ms && now_ms - put_ms >= grace_ms && now_ms - asked_ms <= grace_ms / 4;
}

bool rg_put_is_old(int64_t put_ms, int64_t now_ms, int64_t grace_ms)
{
    return now_ms - put_ms >= grace_ms / 2;
}

void rg_keep_encode(struct qf_strbuf *buf, const struct rg_keep *keep)
{
    rg_put(buf, VERSION);
    rg_put(buf, keep->told);
    rg_put(buf, keep->slots);
    for (uint32_t i = 0; i < keep->slots; i++)
        rg_put(buf, keep->epochs[i]);
}

qf_rc rg_keep_decode(struct qf_str bytes, struct rg_keep *ret_keep)
{
    struct rg_cursor c = { .rest = bytes };
    struct rg_keep keep = { 0 };

    if (rg_get(&c, VERSION) != VERSION)
        return QF_ECORRUPT;
    keep.told = rg_get(&c, 1);
    keep.slots = (uint32_t)rg_get(&c, RG_SLOTS);
    for (uint32_t i = 0; i < keep.slots; i++)
        keep.epochs[i] = rg_get(&c, UINT64_MAX);
    if (c.bad || c.rest.len || keep.slots == 0)
        return QF_ECORRUPT;
    *ret_keep = keep;
    return QF_OK;
}
