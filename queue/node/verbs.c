/* verbs.c - what a leader does for each verb: requests to the core, and answers out of their ends. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "queue/log/bytes.h"
#include "queue/node/ask_int.h"

/* Where an ask with several requests stands. */
enum phase { PHASE_FIRST, PHASE_READ, PHASE_MOVE };

/* Entries of a log that are kept free for all but records (ql_options.entries_max is 16 million). */
#define LOG_ENTRIES_MAX (UINT64_C(15) << 20)

static void submit(struct qn_queue *queue, struct qn_ask *ask, struct qn_part *part,
                   struct qc_event *event)
{
    part->ask = ask;
    ask->parts_open++;
    event->request = (uint64_t)(uintptr_t)part;
    qn_step(queue, event);
}

/* The one request of an ask that needs one at a time. */
static void submit_one(struct qn_queue *queue, struct qn_ask *ask, struct qc_event *event)
{
    if (!ask->parts)
        ask->parts = qf_xcalloc(1, sizeof(*ask->parts));
    submit(queue, ask, ask->parts, event);
}

static void submit_command(struct qn_queue *queue, struct qn_ask *ask,
                           const struct qc_command *command)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    qc_command_encode(&buf, command);
    submit_one(queue, ask,
               &(struct qc_event){ .kind = QC_EVENT_COMMAND,
                                   .data = qf_strbuf_view(&buf),
                                   .level = QC_LEVEL_QUORUM });
}

/* --- offers --- */

/* The time of a record never goes back while one node leads. */
static int64_t record_time(struct qn_queue *queue)
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

void qn_submit_record(struct qn_queue *queue, struct qn_ask *ask, struct qf_strbuf *record)
{
    ql_put((unsigned char *)record->data, (uint64_t)record_time(queue), QN_ENVELOPE);
    submit_command(queue, ask,
                   &(struct qc_command){ .kind = QC_OFFER, .data = qf_strbuf_view(record) });
}

static void begin_offer(struct qn_queue *queue, struct qn_ask *ask)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    int64_t now = record_time(queue);
    enum qc_level level = ask->level_set ? ask->level : queue->options.level;
    size_t count = ask->records.count;

    if (queue->has_app) {
        qn_ask_fail(ask, QF_EINVAL, "the records of this queue are written by its own role");
        return;
    }
    if (!count) {
        qn_ask_answer(ask);
        return;
    }
    if (!qn_log_has_room(queue, ask))
        return;
    ask->parts = qf_xcalloc(count, sizeof(*ask->parts));
    ask->parts_open = 1; /* until all are submitted: an ask that is refused must not end before */
    for (size_t i = 0; i < count; i++) {
        qf_strbuf_reset(&buf);
        ql_put((unsigned char *)(uintptr_t)ask->records.items[i].data, (uint64_t)now, QN_ENVELOPE);
        qc_command_encode(&buf,
                          &(struct qc_command){ .kind = QC_OFFER, .data = ask->records.items[i] });
        submit(queue, ask, &ask->parts[i],
               &(struct qc_event){
                   .kind = QC_EVENT_COMMAND, .data = qf_strbuf_view(&buf), .level = level });
    }
    qn_ask_ended(queue, &(struct qn_end){ .part = &(struct qn_part){ ask }, .rc = QF_OK });
}

static const char *refusal(qf_rc rc)
{
    switch (rc) {
    case QF_ENOSPC:
        return "no space: a majority of the nodes has less than the reserve left on its disk";
    case QF_EBUSY:
        return "too many requests are under way: try again";
    case QF_ELIMIT:
        return "the record is too large";
    case QF_EUNAVAILABLE:
        return "leadership was lost on the way: the records may have been appended all the same";
    default:
        return qf_rc_text(rc);
    }
}

static void offer_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end)
{
    struct qn_answer *answer = &ask->answer;

    if (end->rc != QF_OK) {
        answer->unknown |= end->rc == QF_EUNAVAILABLE;
        (void)qf_err_set(&answer->err, end->rc, "%s", refusal(end->rc));
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
                         ask->bytes.len - ask->records.count * QN_ENVELOPE);
    qn_ask_answer(ask);
}

/* --- reads --- */

static void begin_read(struct qn_queue *queue, struct qn_ask *ask)
{
    ask->phase = PHASE_READ;
    submit_one(queue, ask, &(struct qc_event){ .kind = QC_EVENT_READ });
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

static void read_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end)
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
    if (!read_records(queue, ask, end->index + 1))
        return;
    count_read(queue, ask);
    qn_ask_answer(ask);
}

/* --- taking: reads, then moves the position, one at a time --- */

static void taken(struct qn_queue *queue, struct qn_ask *ask)
{
    if (queue->taking == ask)
        queue->taking = NULL;
    qn_ask_answer(ask);
    qn_take_next(queue);
}

static void take_failed(struct qn_queue *queue, struct qn_ask *ask, qf_rc rc, const char *why)
{
    ask->answer.records.count = 0;
    (void)qf_err_set(&ask->answer.err, rc, "%s", why);
    taken(queue, ask);
}

static void begin_take(struct qn_queue *queue, struct qn_ask *ask)
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
    begin_read(queue, ask);
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
            begin_take(queue, ask);
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
    submit_command(queue, ask, &command);
}

static void take_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end)
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

static void begin_offset(struct qn_queue *queue, struct qn_ask *ask)
{
    submit_command(queue, ask,
                   &(struct qc_command){ .kind = QC_OFFSET,
                                         .data = qf_str_from(ask->consumer),
                                         .offset = ask->from });
}

static void offset_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end)
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

/* --- queues --- */

static void submit_record(struct qn_queue *meta, struct qn_ask *ask, struct qf_str record)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf data = QF_STRBUF_INIT;
    unsigned char envelope[QN_ENVELOPE];

    ql_put(envelope, (uint64_t)record_time(meta), sizeof(envelope));
    qf_strbuf_add(&data, envelope, sizeof(envelope));
    qf_strbuf_str(&data, record);
    submit_command(meta, ask,
                   &(struct qc_command){ .kind = QC_OFFER, .data = qf_strbuf_view(&data) });
}

/* True: @row is what @ask wants. */
static bool created(const struct qn_row *row, struct qn_ask *ask)
{
    char why[160];

    if (strcmp(row->tenant, ask->tenant) == 0 &&
        qn_queue_options_equal(&row->options, &ask->options)) {
        ask->answer.first = row->id;
        qn_ask_answer(ask);
        return true;
    }
    (void)snprintf(why, sizeof(why), "there is a queue %s already, with other options", ask->queue);
    qn_ask_fail(ask, QF_EEXIST, why);
    return false;
}

static void begin_create(struct qn_queue *meta, struct qn_ask *ask)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;
    const struct qn_table *table = &meta->node->table;
    const struct qn_row *row = qn_table_find(table, ask->queue);
    struct qn_row wanted = { .options = ask->options };

    if (row) {
        (void)created(row, ask);
        return;
    }
    if (table->rows.count >= QN_QUEUES_MAX ||
        qn_table_owned(table, ask->tenant) >= QN_TENANT_QUEUES_MAX) {
        qn_ask_fail(ask, QF_ELIMIT,
                    "too many queues: 32 of one tenant, 256 in all; delete one first");
        return;
    }
    memcpy(wanted.name, ask->queue, sizeof(wanted.name));
    memcpy(wanted.tenant, ask->tenant, sizeof(wanted.tenant));
    qc_members(meta->core, &wanted.members);
    qn_record_create(&record, &wanted);
    submit_record(meta, ask, qf_strbuf_view(&record));
}

static void begin_delete(struct qn_queue *meta, struct qn_ask *ask)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;
    const struct qn_row *row = qn_table_find(&meta->node->table, ask->queue);

    if (!row || (!ask->operates && strcmp(row->tenant, ask->tenant) != 0)) {
        qn_ask_fail(ask, QF_ENOTFOUND, "there is no such queue");
        return;
    }
    if (qn_queue_find(meta->node, ask->queue) && qn_queue_find(meta->node, ask->queue)->has_app) {
        qn_ask_fail(ask, QF_EINVAL, "this queue belongs to the cluster: it cannot be deleted");
        return;
    }
    qn_record_delete(&record, ask->queue);
    submit_record(meta, ask, qf_strbuf_view(&record));
}

static void table_ended(struct qn_queue *meta, struct qn_ask *ask, const struct qn_end *end)
{
    const struct qn_row *row;

    if (end->rc != QF_OK) {
        ask->answer.unknown = end->rc == QF_EUNAVAILABLE;
        qn_ask_fail(ask, end->rc, refusal(end->rc));
        return;
    }
    row = qn_table_find(&meta->node->table, ask->queue);
    if (ask->verb == QN_DELETE)
        qn_ask_answer(ask);
    else if (row)
        (void)created(row, ask);
    else
        qn_ask_fail(ask, QF_EBUSY, "the queue was deleted at the same time");
}

/* --- members --- */

static void begin_change(struct qn_queue *meta, struct qn_ask *ask)
{
    struct qf_err err = { 0 };
    struct qc_members members, next;
    qf_rc rc;

    qc_members(meta->core, &members);
    for (uint32_t i = 0; i < members.count; i++) {
        if (strcmp(members.items[i].name, ask->member) != 0)
            continue;
        if (ask->change == QC_ADD && ask->member_id && ask->member_id != members.items[i].id) {
            qn_ask_fail(ask, QF_EEXIST,
                        "a member of that name is there already, with another data folder: if that "
                        "folder was emptied, remove the old member first");
            return;
        }
        if (ask->change != QC_ADD)
            ask->member_id = members.items[i].id;
    }
    if (ask->change == QC_ADD && !ask->member_id) {
        if (!qn_invite(meta->node, ask))
            qn_ask_fail(
                ask, QF_EUNAVAILABLE,
                "the leader of meta has no stream to that node: start it, and give each the "
                "address of the other (--peer NAME=HOST:PORT)");
        return;
    }
    rc = qc_members_change(&members, ask->change, ask->member_id, ask->member, &next, &err);
    if (rc != QF_OK) {
        qn_ask_fail(ask, rc, err.msg);
        return;
    }
    submit_one(meta, ask,
               &(struct qc_event){ .kind = QC_EVENT_CHANGE,
                                   .change = ask->change,
                                   .member = ask->member_id,
                                   .name = ask->member });
}

static void change_ended(struct qn_ask *ask, const struct qn_end *end)
{
    if (end->rc == QF_OK) {
        qn_ask_answer(ask);
        return;
    }
    ask->answer.unknown = end->rc == QF_EUNAVAILABLE;
    qn_ask_fail(ask, end->rc,
                end->rc == QF_EBUSY    ? "another change is under way, or the node has not caught "
                                         "up yet: try again"
                : end->rc == QF_EINVAL ? "the leader would leave its cluster to one other voter: "
                                         "transfer leadership to that one first"
                                       : "the leader could not change the members: try again");
}

static void begin_transfer(struct qn_queue *queue, struct qn_ask *ask)
{
    struct qc_members members;
    uint64_t id = 0;

    qc_members(queue->core, &members);
    for (uint32_t i = 0; i < members.count; i++)
        if (strcmp(members.items[i].name, ask->member) == 0 && members.items[i].role == QC_VOTER)
            id = members.items[i].id;
    if (id == queue->node->incarnation) {
        qn_ask_answer(ask);
        return;
    }
    if ((ask->member[0] && !id) || qc_members_voters(&members) < 2) {
        qn_ask_fail(ask, QF_EINVAL, "leadership can only go to another voter of the queue");
        return;
    }
    submit_one(queue, ask, &(struct qc_event){ .kind = QC_EVENT_TRANSFER, .member = id });
}

void qn_verb_begin(struct qn_queue *queue, struct qn_ask *ask)
{
    switch (ask->verb) {
    case QN_OFFER:
        begin_offer(queue, ask);
        break;
    case QN_POLL:
    case QN_PEEK:
    case QN_OFFSETS:
        begin_read(queue, ask);
        break;
    case QN_TAKE:
        begin_take(queue, ask);
        break;
    case QN_OFFSET:
        begin_offset(queue, ask);
        break;
    case QN_CREATE:
        begin_create(queue, ask);
        break;
    case QN_DELETE:
        begin_delete(queue, ask);
        break;
    case QN_CHANGE:
        begin_change(queue, ask);
        break;
    case QN_TRANSFER:
        begin_transfer(queue, ask);
        break;
    case QN_WRITE:
        qn_write_begin(queue, ask);
        break;
    case QN_QUESTION:
        begin_read(queue, ask);
        break;
    case QN_LIST:
    case QN_SHOW:
    case QN_LOOK:
    case QN_VERB__COUNT:
        qn_ask_fail(ask, QF_EINTERNAL, "not for a leader");
        break;
    }
}

static void verb_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end)
{
    switch (ask->verb) {
    case QN_OFFER:
        offer_ended(queue, ask, end);
        break;
    case QN_POLL:
    case QN_PEEK:
    case QN_OFFSETS:
        read_ended(queue, ask, end);
        break;
    case QN_TAKE:
        take_ended(queue, ask, end);
        break;
    case QN_OFFSET:
        offset_ended(queue, ask, end);
        break;
    case QN_CREATE:
    case QN_DELETE:
        table_ended(queue, ask, end);
        break;
    case QN_CHANGE:
    case QN_TRANSFER:
        change_ended(ask, end);
        break;
    case QN_WRITE:
        qn_write_ended(queue, ask, end);
        break;
    case QN_QUESTION:
        qn_question_ended(queue, ask, end);
        break;
    case QN_LIST:
    case QN_SHOW:
    case QN_LOOK:
    case QN_VERB__COUNT:
        break;
    }
}

void qn_ask_ended(struct qn_queue *queue, const struct qn_end *end)
{
    struct qn_ask *ask = end->part->ask;

    if (!ask) /* the node's own: TRIM, a follower's place */
        return;
    ask->parts_open--;
    if (!ask->answered) {
        verb_ended(queue, ask, end);
    } else if (!ask->parts_open) {
        if (ask->verb == QN_WRITE) /* nobody waits, but the application does */
            qn_write_ended(queue, ask, end);
        if (queue->taking == ask) {
            queue->taking = NULL;
            qn_take_next(queue);
        }
        qn_ask_bury(ask);
    }
}
