/* consume.c - records out, and the positions of who reads them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "queue/node/ask_int.h"

/* Where an ask with several requests stands. */
enum phase { PHASE_FIRST, PHASE_READ, PHASE_MOVE };

/* --- reads --- */

void qn_read_begin(struct qn_queue *queue, struct qn_ask *ask)
{
    ask->phase = PHASE_READ;
    qn_submit(queue, ask, &(struct qc_event){ .kind = QC_EVENT_READ });
}

/* Where an ask begins to read. */
static uint64_t read_start(const struct qn_queue *queue, const struct qn_ask *ask)
{
    const struct qc_state *state = qc_state(queue->core);
    const struct qc_consumer *consumer;

    if (queue->options.delete_on_consume && ask->verb != QN_POLL)
        return QF_MAX(state->position, state->first);
    if (ask->from)
        return ask->from;
    consumer = ask->consumer[0] ? qc_state_consumer(state, qf_str_from(ask->consumer)) : NULL;
    return consumer ? consumer->offset : state->first;
}

/* False: it was answered. */
static bool read_records(struct qn_queue *queue, struct qn_ask *ask, uint64_t end)
{
    const struct qc_state *state = qc_state(queue->core);
    uint64_t from = read_start(queue, ask);

    ask->answer.first = state->first;
    ask->answer.end = end;
    if (from < state->first) {
        char why[160];

        ask->answer.gone = true;
        (void)snprintf(why, sizeof(why),
                       "offset %" PRIu64 " is no longer kept: the first one left is %" PRIu64, from,
                       state->first);
        qn_ask_fail(ask, QF_ENOTFOUND, why);
        return false;
    }
    if (qn_read(queue, ask, from, end) != QF_OK) {
        qn_ask_fail(ask, QF_EIO, "the log cannot be read back");
        return false;
    }
    return true;
}

static void count_read(struct qn_queue *queue, const struct qn_ask *ask)
{
    atomic_fetch_add(&queue->node->figures.read_records, ask->answer.records.count);
    atomic_fetch_add(&queue->node->figures.read_bytes, ask->answer.bytes.len);
}

void qn_read_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end)
{
    if (end->rc != QF_OK) {
        qn_ask_fail(ask, end->rc, "the leader could not confirm itself: try again");
        return;
    }
    if (ask->verb == QN_OFFSETS) {
        qn_show_offsets(queue, &ask->answer.text);
        qn_ask_answer(ask);
        return;
    }
    if (!read_records(queue, ask, end->index + 1) || qn_wait_begin(queue, ask))
        return;
    count_read(queue, ask);
    qn_ask_answer(ask);
}

/* --- taking: reads, then moves the position, one at a time --- */

static void taken(struct qn_queue *queue, struct qn_ask *ask)
{
    if (queue->taking == ask)
        queue->taking = NULL;
    if (ask->answer.err.rc != QF_OK || !qn_wait_begin(queue, ask))
        qn_ask_answer(ask);
    qn_take_next(queue);
}

static void take_failed(struct qn_queue *queue, struct qn_ask *ask, qf_rc rc, const char *why)
{
    ask->answer.records.count = 0;
    (void)qf_err_set(&ask->answer.err, rc, "%s", why);
    taken(queue, ask);
}

void qn_take_begin(struct qn_queue *queue, struct qn_ask *ask)
{
    if (!queue->options.delete_on_consume && !ask->consumer[0]) {
        qn_ask_fail(ask, QF_EINVAL, "a consumer is needed: each has a position of its own");
        return;
    }
    if (queue->options.delete_on_consume && queue->taking) {
        if (queue->taker_count >= QN_TAKERS_MAX) {
            qn_ask_fail(ask, QF_EBUSY, "too many consumers wait for this queue: try again");
            return;
        }
        queue->taker_count++;
        ask->next = NULL;
        ask->waiting = true;
        *queue->takers_end = ask;
        queue->takers_end = &ask->next;
        return;
    }
    if (queue->options.delete_on_consume)
        queue->taking = ask;
    qn_read_begin(queue, ask);
}

void qn_take_next(struct qn_queue *queue)
{
    while (!queue->taking && queue->takers) {
        struct qn_ask *ask = queue->takers;

        queue->takers = ask->next;
        if (!queue->takers)
            queue->takers_end = &queue->takers;
        queue->taker_count--;
        ask->next = NULL;
        ask->waiting = false;
        if (ask->answered)
            (void)qn_ask_free(ask);
        else if (!qc_serves(queue->core))
            qn_ask_fail(ask, QF_EUNAVAILABLE, "the leader has changed: try again");
        else
            qn_take_begin(queue, ask);
    }
}

void qn_takers_fail(struct qn_queue *queue, const char *why)
{
    while (queue->takers) {
        struct qn_ask *ask = queue->takers;

        queue->takers = ask->next;
        ask->waiting = false;
        if (ask->answered)
            (void)qn_ask_free(ask);
        else
            qn_ask_fail(ask, QF_EUNAVAILABLE, why);
    }
    queue->takers_end = &queue->takers;
    queue->taker_count = 0;
}

static void move_position(struct qn_queue *queue, struct qn_ask *ask)
{
    const struct qn_answer *answer = &ask->answer;
    struct qc_command command = { .kind = QC_OFFSET,
                                  .data = qf_str_from(ask->consumer),
                                  .offset = answer->next };

    ask->phase = PHASE_MOVE;
    if (queue->options.delete_on_consume) {
        command = (struct qc_command){ .kind = QC_CONSUME,
                                       .from = qc_state(queue->core)->position,
                                       .to = answer->next - 1 };
    }
    qn_submit_command(queue, ask, &command);
}

void qn_take_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end)
{
    if (end->rc != QF_OK) {
        ask->answer.unknown = ask->phase == PHASE_MOVE && end->rc == QF_EUNAVAILABLE;
        take_failed(queue, ask, end->rc == QF_EBUSY ? QF_EBUSY : end->rc,
                    "the position could not be moved: try again");
        return;
    }
    if (ask->phase == PHASE_MOVE) {
        count_read(queue, ask);
        taken(queue, ask);
        return;
    }
    if (!read_records(queue, ask, end->index + 1)) {
        if (queue->taking == ask)
            queue->taking = NULL;
        qn_take_next(queue);
    } else if (ask->answer.records.count) {
        move_position(queue, ask);
    } else {
        taken(queue, ask);
    }
}

/* --- offsets --- */

void qn_offset_begin(struct qn_queue *queue, struct qn_ask *ask)
{
    qn_submit_command(queue, ask,
                      &(struct qc_command){ .kind = QC_OFFSET,
                                            .data = qf_str_from(ask->consumer),
                                            .offset = ask->from });
}

void qn_offset_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end)
{
    const struct qc_consumer *consumer =
        qc_state_consumer(qc_state(queue->core), qf_str_from(ask->consumer));
    char why[160];

    ask->answer.next = consumer ? consumer->offset : ask->from;
    if (end->rc == QF_OK || ask->answer.next == ask->from) {
        qn_ask_answer(ask);
    } else if (end->rc == QF_EBUSY && consumer && consumer->offset > ask->from) {
        (void)snprintf(why, sizeof(why),
                       "offsets never go back: %s is at %" PRIu64 "; read with from=%" PRIu64,
                       ask->consumer, consumer->offset, ask->from);
        qn_ask_fail(ask, QF_EEXIST, why);
    } else {
        ask->answer.unknown = end->rc == QF_EUNAVAILABLE;
        qn_ask_fail(ask, end->rc, "the offset could not be moved: try again");
    }
}
