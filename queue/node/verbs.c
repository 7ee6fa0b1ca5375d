/* verbs.c - from a verb to the file that does it, and back when a request of the core has ended. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "queue/node/ask_int.h"

void qn_submit(struct qn_queue *queue, struct qn_ask *ask, struct qc_event *event)
{
    if (!ask->parts)
        ask->parts = qf_xcalloc(1, sizeof(*ask->parts));
    ask->parts->ask = ask;
    ask->parts_open++;
    event->request = (uint64_t)(uintptr_t)ask->parts;
    qn_step(queue, event);
}

void qn_submit_command(struct qn_queue *queue, struct qn_ask *ask, const struct qc_command *command)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    qc_command_encode(&buf, command);
    qn_submit(queue, ask,
              &(struct qc_event){ .kind = QC_EVENT_COMMAND,
                                  .data = qf_strbuf_view(&buf),
                                  .level = QC_LEVEL_QUORUM });
}

const char *qn_refusal(qf_rc rc)
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

void qn_verb_begin(struct qn_queue *queue, struct qn_ask *ask)
{
    switch (ask->verb) {
    case QN_OFFER:
        qn_offer_begin(queue, ask);
        break;
    case QN_POLL:
    case QN_PEEK:
    case QN_OFFSETS:
        qn_read_begin(queue, ask);
        break;
    case QN_TAKE:
        qn_take_begin(queue, ask);
        break;
    case QN_OFFSET:
        qn_offset_begin(queue, ask);
        break;
    case QN_CREATE:
        qn_create_begin(queue, ask);
        break;
    case QN_DELETE:
        qn_delete_begin(queue, ask);
        break;
    case QN_CHANGE:
        qn_change_begin(queue, ask);
        break;
    case QN_TRANSFER:
        qn_transfer_begin(queue, ask);
        break;
    case QN_WRITE:
        qn_write_begin(queue, ask);
        break;
    case QN_QUESTION:
        qn_read_begin(queue, ask);
        break;
    case QN_LIST:
    case QN_SHOW:
    case QN_LOOK:
    case QN_FOUND:
    case QN_VERB__COUNT:
        qn_ask_fail(ask, QF_EINTERNAL, "not for a leader");
        break;
    }
}

static void verb_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end)
{
    switch (ask->verb) {
    case QN_OFFER:
        qn_offer_ended(queue, ask, end);
        break;
    case QN_POLL:
    case QN_PEEK:
    case QN_OFFSETS:
        qn_read_ended(queue, ask, end);
        break;
    case QN_TAKE:
        qn_take_ended(queue, ask, end);
        break;
    case QN_OFFSET:
        qn_offset_ended(queue, ask, end);
        break;
    case QN_CREATE:
    case QN_DELETE:
        qn_table_ended(queue, ask, end);
        break;
    case QN_CHANGE:
    case QN_TRANSFER:
        qn_change_ended(ask, end);
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
    case QN_FOUND:
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
