/* offer.c - records in: all that come in one round of the owner go to the core together. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "queue/log/bytes.h"
#include "queue/node/ask_int.h"

/* Entries of a log that are kept free for all but records (ql_options.entries_max is 16 million). */
#define LOG_ENTRIES_MAX (UINT64_C(15) << 20)
/* Records that wait for the end of a round are together at most so long, but for one offer. */
#define ROUND_BYTES ((size_t)4 << 20)

/* The time of a record never goes back while one node leads. */
int64_t qn_record_time(struct qn_queue *queue)
{
    int64_t now = qf_clock_wall_ms();

    if (now > queue->record_time_ms)
        queue->record_time_ms = now;
    return queue->record_time_ms;
}

bool qn_log_has_room(struct qn_queue *queue, struct qn_ask *ask)
{
    if (ql_log_last(queue->store.log) - ql_log_first(queue->store.log) > LOG_ENTRIES_MAX) {
        qn_ask_fail(ask, QF_ENOSPC,
                    "the queue holds 15 million entries: consume or trim records first");
        return false;
    }
    if (queue->space_low)
        qn_tell_space(queue);
    return true;
}

void qn_offer_begin(struct qn_queue *queue, struct qn_ask *ask)
{
    if (queue->has_app) {
        qn_ask_fail(ask, QF_EINVAL, "the records of this queue are written by its own role");
        return;
    }
    if (!ask->records.count) {
        qn_ask_answer(ask);
        return;
    }
    if (!qn_log_has_room(queue, ask))
        return;
    ask->next = NULL;
    ask->waiting = true;
    *queue->offers_end = ask;
    queue->offers_end = &ask->next;
    queue->offers_bytes += ask->bytes.len;
    if (queue->offers_bytes >= ROUND_BYTES)
        qn_offers_flush(queue);
}

/* The records that wait; the list is empty then. */
static struct qn_ask *take_offers(struct qn_queue *queue)
{
    struct qn_ask *first = queue->offers;

    queue->offers = NULL;
    queue->offers_end = &queue->offers;
    queue->offers_bytes = 0;
    return first;
}

/* What the core is given next, out of one offer or several. */
struct round {
    struct qn_queue *queue;
    struct qc_request items[QC_COMMANDS_MAX];
    uint32_t count;
    size_t bytes;
};

static void send_round(struct round *round)
{
    if (round->count)
        qn_step(round->queue, &(struct qc_event){ .kind = QC_EVENT_COMMANDS,
                                                  .commands = round->items,
                                                  .count = round->count });
    round->count = 0;
    round->bytes = 0;
}

static void add_records(struct round *round, struct qn_ask *ask, int64_t now)
{
    enum qc_level level = ask->level_set ? ask->level : round->queue->options.level;
    size_t count = ask->records.count;

    ask->parts = qf_xcalloc(count, sizeof(*ask->parts));
    ask->parts_open = 1; /* until all are submitted: an ask that is refused must not end before */
    for (size_t i = 0; i < count; i++) {
        struct qf_str command = ask->records.items[i];

        if (round->count == QC_COMMANDS_MAX || round->bytes + command.len > QC_COMMANDS_BYTES)
            send_round(round);
        ql_put((unsigned char *)(uintptr_t)command.data + QC_OFFER_HEADER, (uint64_t)now,
               QN_ENVELOPE);
        ask->parts[i].ask = ask;
        ask->parts_open++;
        round->items[round->count++] = (struct qc_request){
            .request = (uint64_t)(uintptr_t)&ask->parts[i], .data = command, .level = level
        };
        round->bytes += command.len;
    }
}

void qn_offers_flush(struct qn_queue *queue)
{
    struct qn_ask *ask = take_offers(queue), *sent = NULL, *next;
    struct round *round;
    int64_t now;

    if (!ask)
        return;
    round = qf_xmalloc(sizeof(*round));
    round->queue = queue;
    round->count = 0;
    round->bytes = 0;
    now = qn_record_time(queue);
    for (; ask; ask = next) {
        next = ask->next;
        ask->next = NULL;
        ask->waiting = false;
        if (ask->answered) {
            (void)qn_ask_free(ask);
        } else if (!qc_serves(queue->core)) {
            qn_ask_fail(ask, QF_EUNAVAILABLE, "the leader has changed: try again");
        } else {
            add_records(round, ask, now);
            ask->next = sent;
            sent = ask;
        }
    }
    send_round(round);
    free(round);
    for (; sent; sent = next) {
        next = sent->next;
        qn_ask_ended(queue, &(struct qn_end){ .part = &(struct qn_part){ sent }, .rc = QF_OK });
    }
}

void qn_offers_fail(struct qn_queue *queue, const char *why)
{
    for (struct qn_ask *ask = take_offers(queue), *next; ask; ask = next) {
        next = ask->next;
        ask->waiting = false;
        if (ask->answered)
            (void)qn_ask_free(ask);
        else
            qn_ask_fail(ask, QF_EUNAVAILABLE, why);
    }
}

void qn_offer_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end)
{
    struct qn_answer *answer = &ask->answer;

    if (end->rc != QF_OK) {
        answer->unknown |= end->rc == QF_EUNAVAILABLE;
        (void)qf_err_set(&answer->err, end->rc, "%s", qn_refusal(end->rc));
    } else if (end->index) {
        answer->count++;
        if (!answer->first || end->index < answer->first)
            answer->first = end->index;
        answer->last = QF_MAX(answer->last, end->index);
    }
    if (ask->parts_open)
        return;
    atomic_fetch_add(&queue->node->figures.records, answer->count);
    if (answer->err.rc == QF_OK)
        atomic_fetch_add(&queue->node->figures.record_bytes,
                         ask->bytes.len - ask->records.count * (QC_OFFER_HEADER + QN_ENVELOPE));
    qn_ask_answer(ask);
}
