/* manage.c - which queues there are, who is a member, who leads. */
#include <stdio.h>

#include "queue/log/bytes.h"
#include "queue/node/ask_int.h"

/* --- queues --- */

static void submit_record(struct qn_queue *meta, struct qn_ask *ask, struct qf_str record)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf data = QF_STRBUF_INIT;
    unsigned char envelope[QN_ENVELOPE];

    ql_put(envelope, (uint64_t)qn_record_time(meta), sizeof(envelope));
    qf_strbuf_add(&data, envelope, sizeof(envelope));
    qf_strbuf_str(&data, record);
    qn_submit_command(meta, ask,
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

void qn_create_begin(struct qn_queue *meta, struct qn_ask *ask)
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

void qn_delete_begin(struct qn_queue *meta, struct qn_ask *ask)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;
    const struct qn_row *row = qn_table_find(&meta->node->table, ask->queue);
    const struct qn_queue *queue = qn_queue_find(meta->node, ask->queue);

    if (!row || (!ask->operates && strcmp(row->tenant, ask->tenant) != 0)) {
        qn_ask_fail(ask, QF_ENOTFOUND, "there is no such queue");
        return;
    }
    if (qn_name_is_system(ask->queue) || (queue && queue->has_app)) {
        qn_ask_fail(ask, QF_EINVAL, "this queue belongs to the cluster: it cannot be deleted");
        return;
    }
    qn_record_delete(&record, ask->queue);
    submit_record(meta, ask, qf_strbuf_view(&record));
}

void qn_table_ended(struct qn_queue *meta, struct qn_ask *ask, const struct qn_end *end)
{
    const struct qn_row *row;

    if (end->rc != QF_OK) {
        ask->answer.unknown = end->rc == QF_EUNAVAILABLE;
        qn_ask_fail(ask, end->rc, qn_refusal(end->rc));
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

void qn_change_begin(struct qn_queue *meta, struct qn_ask *ask)
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
    qn_submit(meta, ask,
              &(struct qc_event){ .kind = QC_EVENT_CHANGE,
                                  .change = ask->change,
                                  .member = ask->member_id,
                                  .name = ask->member });
}

void qn_change_ended(struct qn_ask *ask, const struct qn_end *end)
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

void qn_transfer_begin(struct qn_queue *queue, struct qn_ask *ask)
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
    qn_submit(queue, ask, &(struct qc_event){ .kind = QC_EVENT_TRANSFER, .member = id });
}
