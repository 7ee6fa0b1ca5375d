/* state.c - records in, a ring and verdicts out. */
#include "ring/state/state.h"

#include <assert.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/base64.h"
#include "ring/core/bytes.h"
#include "ring/core/verdicts.h"

#define RECORD_BEGIN "{\"ring\":\""
#define RECORD_END "\"}"
enum { VERSION = 1 };

struct rg_state {
    struct rg_ring *ring, *trial;
    struct rg_verdicts verdicts;
    uint8_t needed; /* copies */
};

struct rg_state *rg_state_new(void)
{
    struct rg_state *state = qf_xcalloc(1, sizeof(*state));

    state->ring = rg_ring_new(RG_SLOTS);
    state->trial = rg_ring_new(RG_SLOTS);
    return state;
}

struct rg_state *rg_state_free(struct rg_state *state)
{
    if (state) {
        (void)rg_ring_free(state->ring);
        (void)rg_ring_free(state->trial);
        free(state);
    }
    return NULL;
}

const struct rg_ring *rg_state_ring(const struct rg_state *state)
{
    return state->ring;
}

void rg_state_need(struct rg_state *state, uint8_t copies)
{
    state->needed = copies;
}

uint8_t rg_state_kept(const struct rg_state *state)
{
    const struct rg_ring *ring = state->ring;
    uint8_t kept = ring->founded ? ring->copies : 0;

    for (size_t i = 0; i < RG_CHANGES_MAX; i++) {
        const struct rg_change *change = &ring->changes[i];

        if (change->kind != RG_CHANGE_FACTOR || !rg_change_runs(change))
            continue;
        kept = change->from < kept ? change->from : kept;
        kept = change->to < kept ? change->to : kept;
    }
    return kept;
}

static bool is_too_few(const struct rg_state *state, const struct rg_entry *entry)
{
    return entry->kind == RG_FACTOR && entry->copies < state->needed;
}

void rg_record_encode(struct qf_strbuf *buf, const struct rg_entry *entry)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;

    rg_entry_encode(&bytes, entry);
    qf_strbuf_puts(buf, RECORD_BEGIN);
    qf_base64_encode(buf, qf_strbuf_view(&bytes));
    qf_strbuf_puts(buf, RECORD_END);
}

qf_rc rg_state_apply(struct rg_state *state, uint64_t index, struct qf_str record)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct rg_entry entry;
    struct qf_str text;

    if (!qf_str_starts(record, QF_STR(RECORD_BEGIN)))
        return QF_ENOTFOUND;
    text = qf_str_sub(record, strlen(RECORD_BEGIN), record.len);
    if (record.len > RG_RECORD_MAX || !qf_str_ends(text, QF_STR(RECORD_END)) ||
        !qf_base64_decode(&bytes, qf_str_sub(text, 0, text.len - strlen(RECORD_END))) ||
        rg_entry_decode(qf_strbuf_view(&bytes), &entry) != QF_OK)
        return QF_EUNSUPPORTED;
    rg_verdicts_keep(&state->verdicts, index,
                     is_too_few(state, &entry) ? RG_NEEDED
                                               : rg_ring_apply(state->ring, index, &entry));
    return QF_OK;
}

bool rg_state_verdict(const struct rg_state *state, uint64_t index, enum rg_verdict *ret_verdict)
{
    unsigned verdict;

    if (!rg_verdicts_find(&state->verdicts, index, &verdict))
        return false;
    *ret_verdict = (enum rg_verdict)verdict;
    return true;
}

void rg_state_save(struct qf_strbuf *buf, const struct rg_state *state)
{
    if (!state->ring->applied)
        return;
    rg_put(buf, VERSION);
    rg_ring_encode(buf, state->ring);
}

qf_rc rg_state_restore(struct rg_state *state, struct qf_str bytes)
{
    struct rg_cursor cursor = { .rest = bytes };
    struct rg_ring *ring = NULL;
    uint64_t version;

    if (bytes.len) {
        version = rg_get(&cursor, UINT64_MAX);
        if (cursor.bad || !version)
            return QF_ECORRUPT;
        if (version > VERSION)
            return QF_EUNSUPPORTED;
        /* A trial has the slots of the ring that it stands for. */
        if (rg_ring_decode(cursor.rest, &ring) != QF_OK || ring->slot_count != RG_SLOTS ||
            !ring->applied) {
            (void)rg_ring_free(ring);
            return QF_ECORRUPT;
        }
    }
    (void)rg_ring_free(state->ring);
    state->ring = ring ? ring : rg_ring_new(RG_SLOTS);
    state->verdicts = (struct rg_verdicts){ .next = 0 };
    return QF_OK;
}

/* --- wishes --- */

void rg_wish_encode(struct qf_strbuf *buf, const struct rg_wish *wish)
{
    rg_put_text(buf, qf_str_sub(wish->node, 0, RG_NAME_MAX));
    rg_entry_encode(buf, &wish->entry);
}

qf_rc rg_wish_decode(struct qf_str bytes, struct rg_wish *ret_wish)
{
    struct rg_cursor cursor = { .rest = bytes };
    struct rg_wish wish = { .node = rg_get_text(&cursor, RG_NAME_MAX) };

    if (cursor.bad || rg_entry_decode(cursor.rest, &wish.entry) != QF_OK)
        return QF_ECORRUPT;
    *ret_wish = wish;
    return QF_OK;
}

enum rg_verdict rg_state_try(struct rg_state *state, struct rg_wish *wish, int64_t now_ms)
{
    struct rg_ring *trial = state->trial;

    if (wish->node.len) {
        wish->entry.node = rg_ring_node(state->ring, wish->node);
        if (wish->entry.node == RG_NODES_MAX)
            return RG_NO_SUCH;
    }
    wish->entry.time_ms = now_ms;
    if (is_too_few(state, &wish->entry))
        return RG_NEEDED;
    rg_ring_copy(trial, state->ring);
    return rg_ring_apply(trial, state->ring->applied + 1, &wish->entry);
}

qf_rc rg_verdict_rc(enum rg_verdict verdict)
{
    switch (verdict) {
    case RG_APPLIED:
    case RG_NOTHING:
        return QF_OK;
    case RG_NO_SUCH:
        return QF_ENOTFOUND;
    case RG_FULL:
        return QF_ELIMIT;
    case RG_NO_REASON:
    case RG_BAD:
        return QF_EINVAL;
    case RG_EXISTS:
        return QF_EEXIST;
    case RG_LOCKED:
    case RG_TOO_FEW:
    case RG_EARLY:
    case RG_OTHER_DISK:
    case RG_OTHER_EPOCH:
    case RG_IS_OWNER:
    case RG_MOVING:
    case RG_NOT_HELD:
    case RG_NEEDED:
        return QF_ECONFLICT;
    case RG_VERDICT__COUNT:
        break;
    }
    return QF_EINTERNAL;
}
