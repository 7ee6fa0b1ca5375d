/* perform.c - events into a core, and its effects performed in their order. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "queue/node/node_int.h"

/* How soon entries that found no room are tried again. */
#define HELD_RETRY_MS 200

void qn_forget_held(struct qn_queue *queue)
{
    for (size_t i = 0; i < queue->held.count; i++)
        free((char *)queue->held.items[i].entry.data.data);
    queue->held.count = 0;
}

/* What they replace is not shown meanwhile: syncs of that are none of theirs. */
static void hide_replaced(struct qn_queue *queue)
{
    uint64_t lowest = 0;

    for (size_t i = 0; i < queue->held.count; i++)
        if (!lowest || queue->held.items[i].entry.index < lowest)
            lowest = queue->held.items[i].entry.index;
    ql_log_hide(queue->store.log, lowest);
}

/* No room: keep the entries, and all that come after them, until there is. */
static void hold(struct qn_queue *queue, const struct qc_effect *effect)
{
    for (uint32_t i = 0; i < effect->count; i++) {
        struct qn_held held = { effect->entries[i], effect->urgent };

        held.entry.data.data = qf_xmemdup0(held.entry.data.data, held.entry.data.len);
        QF_VEC_PUSH(&queue->held, held);
    }
    hide_replaced(queue);
    queue->held_due_ms = qn_now() + HELD_RETRY_MS;
    queue->space_low = true;
}

static bool is_full(qf_rc rc)
{
    return rc == QF_ENOSPC || rc == QF_ELIMIT;
}

void qn_retry_held(struct qn_queue *queue)
{
    struct qf_err err = { 0 };
    size_t done = 0;
    qf_rc rc = QF_OK;

    while (done < queue->held.count && rc == QF_OK) {
        const struct qn_held *held = &queue->held.items[done];

        rc = ql_log_append(queue->store.log, &held->entry, 1, held->urgent, &err);
        if (rc == QF_OK)
            free((char *)queue->held.items[done++].entry.data.data);
    }
    queue->held.count -= done;
    if (queue->held.count)
        memmove(queue->held.items, queue->held.items + done,
                queue->held.count * sizeof(queue->held.items[0]));
    hide_replaced(queue);
    if (done)
        queue->appended_ms = qn_now();
    queue->held_due_ms = qn_now() + HELD_RETRY_MS;
    if (rc != QF_OK && !is_full(rc))
        qn_fatal(queue->node, &err);
}

static bool append(struct qn_queue *queue, const struct qc_effect *effect)
{
    struct qf_err err = { 0 };
    qf_rc rc = QF_ENOSPC;

    if (!queue->held.count)
        rc = ql_log_append(queue->store.log, effect->entries, effect->count, effect->urgent, &err);
    if (is_full(rc)) {
        hold(queue, effect);
        return true;
    }
    if (rc != QF_OK) {
        qn_fatal(queue->node, &err);
        return false;
    }
    queue->appended_ms = qn_now();
    return true;
}

static bool vote(struct qn_queue *queue, const struct qc_effect *effect)
{
    struct qf_err err = { 0 };
    qf_rc rc = ql_store_vote(&queue->store, effect->term, effect->vote, &err);

    if (rc != QF_OK)
        qn_fatal(queue->node, &err);
    return rc == QF_OK;
}

void qn_flush_drop(struct qn_queue *queue)
{
    struct qf_err err = { 0 };
    uint64_t below = queue->drop_below;

    if (!below || queue->syncing)
        return;
    queue->drop_below = 0;
    if (ql_log_drop_before(queue->store.log, below, &err) != QF_OK)
        qn_fatal(queue->node, &err);
}

static void stop(struct qn_queue *queue, const struct qc_effect *effect)
{
    struct qf_err err = { 0 };

    (void)qf_err_set(&err, effect->rc, "queue %s (%s): %s", queue->name, queue->disk->label,
                     effect->why);
    qn_fatal(queue->node, &err);
}

static bool perform(struct qn_queue *queue, const struct qc_effect *effect)
{
    switch (effect->kind) {
    case QC_EFFECT_VOTE:
        return vote(queue, effect);
    case QC_EFFECT_APPEND:
        return append(queue, effect);
    case QC_EFFECT_SEND:
        qn_send(queue, &effect->message);
        return true;
    case QC_EFFECT_FETCH:
        qn_fetch(queue, &effect->message);
        return true;
    case QC_EFFECT_INSTALL:
        return qn_install(queue);
    case QC_EFFECT_DROP:
        queue->drop_below = effect->index;
        qn_flush_drop(queue);
        return true;
    case QC_EFFECT_APPLIED:
        return true;
    case QC_EFFECT_DONE:
        QF_VEC_PUSH(&queue->ends, (struct qn_end){ (struct qn_part *)(uintptr_t)effect->request,
                                                   effect->rc, effect->index });
        return true;
    case QC_EFFECT_STOP:
        stop(queue, effect);
        return false;
    }
    return false;
}

static void note_leadership(struct qn_queue *queue)
{
    bool leads = qc_leads(queue->core);

    if (leads && !queue->led) {
        atomic_fetch_add(&queue->node->figures.elections, 1);
        queue->seen_count = 0;
        queue->trim_asked = 0;
    }
    if (!leads && queue->led)
        qn_wait_fail(queue, "the leader has changed: try again");
    queue->led = leads;
    qn_app_lead(queue);
}

/* In the order in which the core ended them. One that asks for more steps the core again, which then
 * goes on with those that are left here. */
static void end_requests(struct qn_queue *queue)
{
    while (queue->ends_start < queue->ends.count && !atomic_load(&queue->node->dead)) {
        struct qn_end end = queue->ends.items[queue->ends_start++];

        if (queue->ends_start == queue->ends.count)
            queue->ends_start = queue->ends.count = 0;
        qn_ask_ended(queue, &end);
    }
}

void qn_perform(struct qn_queue *queue, struct qc_effects effects)
{
    struct qn_node *node = queue->node;
    bool installed = false, applied = false, ended;

    assert(!queue->stepping);
    queue->stepping = true;
    for (size_t i = 0; i < effects.count && !atomic_load(&node->dead); i++) {
        installed |= effects.items[i].kind == QC_EFFECT_INSTALL;
        applied |= effects.items[i].kind == QC_EFFECT_APPLIED;
        if (!perform(queue, &effects.items[i]))
            break;
    }
    queue->stepping = false;
    if (atomic_load(&node->dead))
        return;
    if (installed)
        qn_step(queue, &(struct qc_event){ .kind = QC_EVENT_INSTALLED,
                                           .snapshot = &queue->store.snapshot });
    if (queue->fetch_failed) {
        queue->fetch_failed = false;
        qn_fetch_failed(queue);
    }
    if (applied)
        qn_app_feed(queue);
    note_leadership(queue);
    if (applied && queue == qn_meta(node))
        qn_meta_fold(node);
    ended = queue->ends_start < queue->ends.count;
    end_requests(queue);
    if (applied && !atomic_load(&node->dead))
        qn_wait_wake(queue);
    if (queue->deferred && (applied || ended) && !atomic_load(&node->dead))
        qn_app_retry(queue, NULL);
}

void qn_step(struct qn_queue *queue, struct qc_event *event)
{
    struct qc_effects effects;

    if (!queue->core || atomic_load(&queue->node->dead))
        return;
    event->now = (uint64_t)qn_now();
    qc_step(queue->core, event, &effects);
    qn_perform(queue, effects);
}

void qn_propose(struct qn_queue *queue, struct qc_event *event)
{
    event->request = (uint64_t)(uintptr_t)&queue->node->own;
    qn_step(queue, event);
}
