/* meta.c - what follows from the records and members of `meta`: which queues are open, who is in them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queue/log/bytes.h"
#include "queue/node/node_int.h"

/* So many records of meta are replaced by one with the whole table. */
#define COMPACT_AFTER 1000
/* Between two proposals of the same partition. */
#define PARTITION_MS 200
/* For meta's leader to say how far meta is. */
#define FOLLOW_MS 5000

static bool in_table(const struct qn_node *node, uint64_t id)
{
    for (size_t i = 0; i < node->table.rows.count; i++)
        if (node->table.rows.items[i].id == id)
            return true;
    return false;
}

/* Answer whoever waits for a queue that is gone, and remove its files. */
static void remove_queue(struct qn_queue *queue)
{
    struct qn_node *node = queue->node;
    struct ql_disk *meta = qn_meta(node)->disk;
    struct qf_err err = { 0 };
    char folder[QN_FOLDER_SIZE], made[QL_NAME_SIZE];

    QF_LOG_INFO("queue deleted", QF_KV_STR("queue", queue->name));
    memcpy(folder, queue->folder, sizeof(folder));
    (void)snprintf(made, sizeof(made), "made-%" PRIu64, queue->id);
    queue->closing = true;
    for (struct qn_ask *ask = node->open, *next; ask; ask = next) {
        next = ask->open_next;
        if (strcmp(ask->queue, queue->name) == 0 && ask->verb != QN_DELETE &&
            ask->verb != QN_CREATE)
            qn_ask_fail(ask, QF_ENOTFOUND, "the queue was deleted");
    }
    qn_takers_fail(queue, "the queue was deleted");
    qn_app_retry(queue, "the queue was deleted");
    qn_offers_fail(queue, "the queue was deleted");
    qn_wait_fail(queue, "the queue was deleted");
    qn_queue_close_if_idle(queue);
    /* Files that are still open go when they are closed. */
    if (node->options.folders.remove(node->options.folders.ctx, folder, &err) != QF_OK)
        QF_LOG_WARN("the folder of a deleted queue stays: remove it", QF_KV_STR("reason", err.msg));
    (void)meta->ops->remove(meta, made, NULL);
}

static void open_queue(struct qn_node *node, const struct qn_row *row, bool tell)
{
    struct qf_err err = { 0 };
    qf_rc rc = qn_queue_open(node, row, &err);

    if (rc == QF_ENOSPC) {
        node->short_of_room = true;
        if (tell)
            QF_LOG_WARN("no room to make a queue here: it waits for some",
                        QF_KV_STR("queue", row->name), QF_KV_STR("reason", err.msg));
    } else if (rc != QF_OK) {
        qn_fatal(node, &err);
    }
}

static void open_missing(struct qn_node *node, bool tell)
{
    node->short_of_room = false;
    for (size_t i = 0; i < node->table.rows.count && !atomic_load(&node->dead); i++) {
        const struct qn_row *row = &node->table.rows.items[i];

        if (!qn_queue_by_id(node, row->id) && node->queue_count <= QN_QUEUES_MAX)
            open_queue(node, row, tell);
    }
}

void qn_meta_open_late(struct qn_node *node)
{
    if (node->short_of_room)
        open_missing(node, false);
}

/* Open what is in the table and remove what is not. */
static void reconcile(struct qn_node *node)
{
    for (size_t i = node->queue_count; i > 1; i--) {
        struct qn_queue *queue = node->queues[i - 1];

        if (!queue->closing && !in_table(node, queue->id))
            remove_queue(queue);
    }
    open_missing(node, true);
}

void qn_meta_fold(struct qn_node *node)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qn_queue *meta = qn_meta(node);
    const struct qc_state *state = qc_state(meta->core);
    uint64_t at = QF_MAX(node->folded + 1, state->first);
    bool changed = false;

    at = QF_MAX(at, ql_log_first(meta->store.log));
    for (; at <= state->applied; at++) {
        struct qn_record record;

        if (qn_record_at(meta, at, at + 1, &buf, &record))
            changed |= qn_table_apply(&node->table, at, record.data);
    }
    node->folded = state->applied;
    if (changed) {
        struct qf_err err = { 0 };

        atomic_store(&node->partitions, node->table.partitions);
        node->partitions_ms = 0;
        if (node->running && qn_meta_check_partitions(node, &err) != QF_OK)
            qn_fatal(node, &err);
        reconcile(node);
        qn_snapshot_if_due(meta, true); /* so that a restart knows its queues without a leader */
    }
}

void qn_meta_forget(struct qn_node *node)
{
    node->folded = 0;
    node->table.rows.count = 0;
    node->table.partitions = 0;
}

qf_rc qn_meta_check_partitions(const struct qn_node *node, struct qf_err *err)
{
    uint32_t wanted = node->options.partitions, are = node->table.partitions;

    if (!wanted || !are || wanted == are)
        return QF_OK;
    return qf_err_set(err, QF_EINVAL,
                      "--partitions %" PRIu32 ": the cluster has %" PRIu32
                      ", and their number is fixed when it is made: leave the flag out",
                      wanted, are);
}

static void propose_record(struct qn_queue *meta, struct qf_str record)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf data = QF_STRBUF_INIT, buf = QF_STRBUF_INIT;
    unsigned char envelope[QN_ENVELOPE];

    ql_put(envelope, (uint64_t)qf_clock_wall_ms(), sizeof(envelope));
    qf_strbuf_add(&data, envelope, sizeof(envelope));
    qf_strbuf_str(&data, record);
    qc_command_encode(&buf,
                      &(struct qc_command){ .kind = QC_OFFER, .data = qf_strbuf_view(&data) });
    qn_propose(meta, &(struct qc_event){ .kind = QC_EVENT_COMMAND, .data = qf_strbuf_view(&buf) });
}

/* The first partition that has no queue; their number if all have one. */
static uint32_t first_missing(const struct qn_table *table)
{
    uint32_t i;

    for (i = 0; i < table->partitions; i++) {
        char name[QN_NAME_SIZE];

        qn_partition_name(i, name);
        if (!qn_table_find(table, name))
            break;
    }
    return i;
}

void qn_meta_partitions(struct qn_node *node, int64_t now)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;
    struct qn_queue *meta = qn_meta(node);
    struct qn_row row = { 0 };
    uint32_t missing = first_missing(&node->table), wanted = node->options.partitions
                                                                 ? node->options.partitions
                                                                 : node->options.new_partitions;

    if (!qc_serves(meta->core) || now < node->partitions_ms)
        return;
    if (!node->table.partitions && wanted) {
        qn_record_partitions(&record, wanted);
    } else if (missing < node->table.partitions && node->table.rows.count < QN_QUEUES_MAX) {
        qn_partition_name(missing, row.name);
        qc_members(meta->core, &row.members);
        qn_record_create(&record, &row);
    } else {
        return;
    }
    node->partitions_ms = now + PARTITION_MS;
    propose_record(meta, qf_strbuf_view(&record));
}

void qn_meta_compact(struct qn_node *node)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf data = QF_STRBUF_INIT, buf = QF_STRBUF_INIT;
    struct qn_queue *meta = qn_meta(node);
    const struct qc_state *state = qc_state(meta->core);

    /* With nothing under way: the table must say all that is before it. */
    if (!qc_serves(meta->core) || state->applied < meta->trim_asked + COMPACT_AFTER ||
        state->applied - state->first < COMPACT_AFTER || meta->held.count ||
        state->applied != ql_log_last(meta->store.log))
        return;
    meta->trim_asked = state->applied;
    qn_record_table(&data, &node->table);
    propose_record(meta, qf_strbuf_view(&data));
    if (ql_log_last(meta->store.log) != meta->trim_asked + 1)
        return;
    /* If this one is lost the first does no harm. */
    qf_strbuf_reset(&buf);
    qc_command_encode(
        &buf, &(struct qc_command){ .kind = QC_TRIM, .offset = ql_log_last(meta->store.log) });
    qn_propose(meta, &(struct qc_event){ .kind = QC_EVENT_COMMAND, .data = qf_strbuf_view(&buf) });
}

static const struct qc_member *find_name(const struct qc_members *members, const char *name)
{
    for (uint32_t i = 0; i < members->count; i++)
        if (strcmp(members->items[i].name, name) == 0)
            return &members->items[i];
    return NULL;
}

/* The first difference between the members of a queue and those of meta, as a change; adding comes
 * first, removing last, so that there are never fewer than need be. But a node that came back with
 * another folder takes its name from the one it was. */
static bool next_change(const struct qc_members *have, const struct qc_members *want,
                        struct qc_event *ret_event)
{
    for (uint32_t i = 0; i < want->count; i++) {
        const struct qc_member *member = &want->items[i], *here = qc_members_find(have, member->id);

        *ret_event = (struct qc_event){ .kind = QC_EVENT_CHANGE,
                                        .member = member->id,
                                        .name = member->name };
        ret_event->change = !here ? QC_ADD : member->role == QC_VOTER ? QC_PROMOTE : QC_DEMOTE;
        if (!here && find_name(have, member->name)) {
            ret_event->change = QC_REMOVE;
            ret_event->member = find_name(have, member->name)->id;
        }
        if (!here || here->role != member->role)
            return true;
    }
    for (uint32_t i = 0; i < have->count; i++) {
        if (qc_members_find(want, have->items[i].id))
            continue;
        *ret_event = (struct qc_event){ .kind = QC_EVENT_CHANGE,
                                        .change = QC_REMOVE,
                                        .member = have->items[i].id,
                                        .name = have->items[i].name };
        return true;
    }
    return false;
}

/* --- is this node's meta new enough to be followed? --- */

/* Who asked for the members of meta. */
struct following {
    struct qn_node *node;
    uint64_t queue, term;
};

static void hear_meta(void *ctx, struct qn_ask *ask)
{
    struct following *following = ctx;
    struct qn_queue *queue = qn_queue_by_id(following->node, following->queue);

    if (queue && queue->follow.term == following->term) {
        queue->follow.asked = false;
        if (ask->answer.err.rc == QF_OK)
            queue->follow.behind = ask->answer.end;
    }
    free(following);
    (void)qn_ask_free(ask);
}

static void ask_meta(struct qn_queue *queue)
{
    struct following *following = qf_xcalloc(1, sizeof(*following));
    struct qn_ask *ask = qn_ask_new(QN_PEEK, qf_str_from(qn_meta(queue->node)->name));

    *following =
        (struct following){ .node = queue->node, .queue = queue->id, .term = queue->follow.term };
    ask->operates = true;
    ask->max = 1;
    ask->timeout_ms = FOLLOW_MS;
    ask->done = hear_meta;
    ask->ctx = following;
    queue->follow.asked = true;
    qn_ask_begin(queue->node, ask);
}

/* Leaders of this queue before may have followed a newer meta than this node has: after a restart its own is as old as its
 * snapshot. To follow that would undo what they did, and a voter that is demoted does not count when the next disk is lost.
 * So meta's leader, confirmed after this one began to lead, says how far meta was: nobody else has followed a newer one. */
static bool may_follow(struct qn_queue *queue)
{
    uint64_t term = qc_term(queue->core);

    if (queue->follow.term != term) {
        queue->follow.term = term;
        queue->follow.asked = false;
        queue->follow.behind = 0;
    }
    if (!queue->follow.behind && !queue->follow.asked && !queue->node->draining)
        ask_meta(queue);
    return queue->follow.behind &&
           qc_state(qn_meta(queue->node)->core)->applied + 1 >= queue->follow.behind;
}

void qn_meta_follow(struct qn_queue *queue)
{
    struct qc_members have, want = qc_state(qn_meta(queue->node)->core)->members;
    struct qc_event event;

    if (!qc_serves(queue->core) || !want.count)
        return;
    qc_members(queue->core, &have);
    if (next_change(&have, &want, &event) && may_follow(queue))
        qn_propose(queue, &event);
}
