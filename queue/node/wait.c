/* wait.c - polls that found no records, and wait for some: each tries again when records were applied. */
#include "queue/node/ask_int.h"

/* Of all queues; more are answered at once. */
#define WAITING_MAX 2048
/* How often it is looked whose time is over. */
#define SWEEP_MS 50

bool qn_wait_begin(struct qn_queue *queue, struct qn_ask *ask)
{
    struct qn_node *node = queue->node;

    if (!ask->wait_ms || ask->answer.records.count || qn_now() >= ask->wait_due_ms ||
        node->waiting_count >= WAITING_MAX || node->draining)
        return false;
    if (!queue->waiting)
        queue->wait_seen = qc_state(queue->core)->applied;
    ask->waiting = true;
    ask->next = queue->waiting;
    queue->waiting = ask;
    node->waiting_count++;
    return true;
}

static struct qn_ask *take_all(struct qn_queue *queue)
{
    struct qn_ask *first = queue->waiting;

    queue->waiting = NULL;
    for (struct qn_ask *ask = first; ask; ask = ask->next)
        queue->node->waiting_count--;
    return first;
}

/* Of the entries behind what was seen: is there a record among them? */
static bool has_records(struct qn_queue *queue, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i <= to; i++) {
        struct ql_entry entry;

        if (!ql_log_recent(queue->store.log, i, &entry) ||
            (entry.type == QL_COMMAND && !qc_command_urgent(entry.data)))
            return true;
    }
    return false;
}

void qn_wait_wake(struct qn_queue *queue)
{
    uint64_t applied = qc_state(queue->core)->applied, seen = queue->wait_seen;

    if (!queue->waiting || applied <= seen)
        return;
    queue->wait_seen = applied;
    if (!has_records(queue, seen + 1, applied))
        return;
    for (struct qn_ask *ask = take_all(queue), *next; ask; ask = next) {
        next = ask->next;
        ask->next = NULL;
        ask->waiting = false;
        qf_strbuf_reset(&ask->answer.bytes);
        if (ask->answered)
            (void)qn_ask_free(ask);
        else if (!qc_serves(queue->core))
            qn_ask_fail(ask, QF_EUNAVAILABLE, "the leader has changed: try again");
        else
            qn_verb_begin(queue, ask);
    }
}

void qn_wait_tick(struct qn_queue *queue, int64_t now)
{
    struct qn_ask *ask, *next;

    if (!queue->waiting || now < queue->wait_sweep_ms)
        return;
    queue->wait_sweep_ms = now + SWEEP_MS;
    for (ask = take_all(queue); ask; ask = next) {
        next = ask->next;
        if (!ask->answered && now < ask->wait_due_ms && !queue->node->draining) {
            ask->next = queue->waiting;
            queue->waiting = ask;
            queue->node->waiting_count++;
            continue;
        }
        ask->next = NULL;
        ask->waiting = false;
        if (ask->answered)
            (void)qn_ask_free(ask);
        else
            qn_ask_answer(ask);
    }
}

void qn_wait_fail(struct qn_queue *queue, const char *why)
{
    for (struct qn_ask *ask = take_all(queue), *next; ask; ask = next) {
        next = ask->next;
        ask->next = NULL;
        ask->waiting = false;
        if (ask->answered)
            (void)qn_ask_free(ask);
        else
            qn_ask_fail(ask, QF_EUNAVAILABLE, why);
    }
}
