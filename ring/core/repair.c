/* repair.c - a table of marks, and sets of slots for what does not fit. */
#include "ring/core/repair.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"

struct rg_repair {
    struct rg_repair_options options;
    QF_VEC(struct rg_mark) marks;           /* in no order */
    struct rg_slot_set whole[RG_NODES_MAX]; /* that have no mark yet */
};

struct rg_repair *rg_repair_new(const struct rg_repair_options *options)
{
    struct rg_repair *repair = qf_xcalloc(1, sizeof(*repair));

    repair->options = *options;
    if (!repair->options.marks_max)
        repair->options.marks_max = RG_MARKS_MAX;
    if (!repair->options.backoff_ms)
        repair->options.backoff_ms = 1000;
    if (!repair->options.backoff_max_ms)
        repair->options.backoff_max_ms = 10 * 60 * 1000;
    return repair;
}

struct rg_repair *rg_repair_free(struct rg_repair *repair)
{
    if (repair) {
        QF_VEC_DONE(&repair->marks);
        free(repair);
    }
    return NULL;
}

static struct rg_mark *find(struct rg_repair *repair, uint8_t node, uint32_t slot,
                            struct qf_str name)
{
    for (size_t i = 0; i < repair->marks.count; i++) {
        struct rg_mark *mark = &repair->marks.items[i];

        if (mark->node == node && mark->slot == slot && qf_str_is(name, mark->name))
            return mark;
    }
    return NULL;
}

static void add(struct rg_repair *repair, uint8_t node, uint32_t slot, struct qf_str name,
                int64_t now_ms)
{
    struct rg_mark mark = { .slot = slot, .node = node, .due_ms = now_ms };

    if (name.len)
        memcpy(mark.name, name.data, name.len);
    QF_VEC_PUSH(&repair->marks, mark);
}

void rg_repair_mark(struct rg_repair *repair, uint8_t node, uint32_t slot, struct qf_str name,
                    int64_t now_ms)
{
    if (rg_slot_set_has(&repair->whole[node], slot))
        return;
    if (find(repair, node, slot, name))
        return;
    if (repair->marks.count < repair->options.marks_max && name.len <= RG_BLOB_NAME_MAX)
        add(repair, node, slot, name, now_ms);
    else
        rg_slot_set_add(&repair->whole[node], slot);
}

/* Whole slots come into the table as there is room. */
static void fill(struct rg_repair *repair, int64_t now_ms)
{
    for (uint8_t n = 0; n < RG_NODES_MAX; n++)
        for (uint32_t at = rg_slot_set_next(&repair->whole[n], 0); at < RG_SLOTS;
             at = rg_slot_set_next(&repair->whole[n], at + 1)) {
            if (repair->marks.count >= repair->options.marks_max)
                return;
            repair->whole[n].words[at / 64] &= ~(UINT64_C(1) << (at % 64));
            if (!find(repair, n, at, QF_STR("")))
                add(repair, n, at, QF_STR(""), now_ms);
        }
}

const struct rg_mark *rg_repair_next(struct rg_repair *repair, int64_t now_ms)
{
    struct rg_mark *best = NULL;

    fill(repair, now_ms);
    for (size_t i = 0; i < repair->marks.count; i++) {
        struct rg_mark *mark = &repair->marks.items[i];

        if (!mark->tried && mark->due_ms <= now_ms && (!best || mark->due_ms < best->due_ms))
            best = mark;
    }
    if (best)
        best->tried = true;
    return best;
}

void rg_repair_end(struct rg_repair *repair, uint8_t node, uint32_t slot, struct qf_str name,
                   bool done, int64_t now_ms)
{
    struct rg_mark *mark = find(repair, node, slot, name);
    int64_t wait_ms = repair->options.backoff_ms;

    if (!mark)
        return;
    if (done) {
        *mark = repair->marks.items[--repair->marks.count];
        return;
    }
    for (unsigned i = 0; i < mark->tries && wait_ms < repair->options.backoff_max_ms; i++)
        wait_ms *= 2;
    if (mark->tries < UINT8_MAX)
        mark->tries++;
    mark->tried = false;
    mark->due_ms = now_ms + QF_MIN(wait_ms, repair->options.backoff_max_ms);
}

void rg_repair_hurry(struct rg_repair *repair, uint8_t node, int64_t now_ms)
{
    for (size_t i = 0; i < repair->marks.count; i++) {
        struct rg_mark *mark = &repair->marks.items[i];

        if (mark->node != node)
            continue;
        mark->tries = 0;
        mark->due_ms = QF_MIN(mark->due_ms, now_ms);
    }
}

void rg_repair_forget(struct rg_repair *repair, uint8_t node)
{
    repair->whole[node] = (struct rg_slot_set){ { 0 } };
    for (size_t i = repair->marks.count; i > 0; i--)
        if (repair->marks.items[i - 1].node == node)
            repair->marks.items[i - 1] = repair->marks.items[--repair->marks.count];
}

bool rg_repair_has(const struct rg_repair *repair, uint8_t node)
{
    for (size_t i = 0; i < repair->marks.count; i++)
        if (repair->marks.items[i].node == node)
            return true;
    return rg_slot_set_next(&repair->whole[node], 0) < RG_SLOTS;
}

size_t rg_repair_count(const struct rg_repair *repair)
{
    size_t count = repair->marks.count;

    for (uint8_t n = 0; n < RG_NODES_MAX; n++)
        for (size_t i = 0; i < RG_SLOTS / 64; i++)
            count += (size_t)__builtin_popcountll(repair->whole[n].words[i]);
    return count;
}
