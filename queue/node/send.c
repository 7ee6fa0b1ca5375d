/* send.c - messages to peers. Appends that follow each other become one message: it leaves at the end
 * of the owner's round, or when it is long enough. What is in it was read when the core asked for it. */
#include <stdlib.h>

#include "queue/node/node_int.h"
#include "queue/peer/wire.h"

/* A message that has so much leaves at once: the peer writes while this node goes on. */
#define LEAVE_BYTES ((size_t)256 << 10)
/* Of the entries in one message, but always one. */
#define MESSAGE_BYTES_MAX ((size_t)QC_MESSAGE_BYTES)

static void drop_message(struct qn_node *node)
{
    atomic_fetch_add(&node->figures.messages_dropped, 1);
}

/* Hand over what waits for one peer. */
static void leave(struct qn_queue *queue, struct qn_outgoing *outgoing)
{
    const struct qn_transport *transport = &queue->node->options.transport;
    const char *to = qn_name_of(queue, outgoing->message.to);

    qp_message_end(&outgoing->bytes, &outgoing->message);
    outgoing->message.to = 0;
    if (!transport->send || !to ||
        !transport->send(transport->ctx, to, queue->address, &outgoing->bytes))
        drop_message(queue->node);
    qf_strbuf_done(&outgoing->bytes);
}

void qn_send_flush(struct qn_queue *queue)
{
    for (size_t i = 0; i < QF_COUNT_OF(queue->outgoing); i++)
        if (queue->outgoing[i].message.to)
            leave(queue, &queue->outgoing[i]);
}

void qn_send_forget(struct qn_queue *queue)
{
    for (size_t i = 0; i < QF_COUNT_OF(queue->outgoing); i++) {
        queue->outgoing[i].message.to = 0;
        qf_strbuf_done(&queue->outgoing[i].bytes);
    }
}

bool qn_send_waits(const struct qn_queue *queue)
{
    for (size_t i = 0; i < QF_COUNT_OF(queue->outgoing); i++)
        if (queue->outgoing[i].message.to)
            return true;
    return false;
}

/* Add the entries of @message from the log, as many as fit; false: the first is not there. */
static bool add_entries(struct qn_queue *queue, struct qn_outgoing *outgoing,
                        const struct qc_message *message)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct ql_log *log = queue->store.log;
    size_t start = outgoing->bytes.len;

    for (uint32_t i = 0; i < message->count; i++) {
        uint64_t index = message->index + 1 + i;
        struct ql_entry entry;

        if (i && outgoing->bytes.len - start >= MESSAGE_BYTES_MAX)
            break;
        qf_strbuf_reset(&buf);
        if (!ql_log_recent(log, index, &entry) &&
            ql_log_read(log, index, &buf, &entry, NULL) != QF_OK)
            return i > 0;
        qp_message_entry(&outgoing->bytes, &entry);
        outgoing->message.count++;
        outgoing->last_term = entry.term;
    }
    return true;
}

/* Can @message go on where @outgoing ends? */
static bool follows(const struct qn_outgoing *outgoing, const struct qc_message *message)
{
    const struct qc_message *before = &outgoing->message;

    return message->kind == QC_APPEND && message->term == before->term &&
           message->index == before->index + before->count &&
           message->index_term == outgoing->last_term &&
           before->count + message->count <= QC_ENTRIES_MAX;
}

/* Where appends to @to wait, or may wait. */
static struct qn_outgoing *place_of(struct qn_queue *queue, uint64_t to)
{
    struct qn_outgoing *free_one = NULL;

    for (size_t i = 0; i < QF_COUNT_OF(queue->outgoing); i++) {
        if (queue->outgoing[i].message.to == to)
            return &queue->outgoing[i];
        if (!queue->outgoing[i].message.to && !free_one)
            free_one = &queue->outgoing[i];
    }
    return free_one;
}

void qn_send(struct qn_queue *queue, const struct qc_message *message)
{
    struct qn_outgoing *outgoing = place_of(queue, message->to);

    if (!outgoing) { /* members come and go: make room */
        qn_send_flush(queue);
        outgoing = &queue->outgoing[0];
    }
    if (outgoing->message.to && !follows(outgoing, message))
        leave(queue, outgoing);
    if (!outgoing->message.to) {
        outgoing->message = *message;
        outgoing->message.count = 0;
        outgoing->last_term = message->index_term;
        qp_message_begin(&outgoing->bytes);
    }
    outgoing->message.commit = message->commit;
    outgoing->message.space = message->space;
    if (!add_entries(queue, outgoing, message) && !outgoing->message.count) {
        outgoing->message.to = 0;
        qf_strbuf_done(&outgoing->bytes);
        drop_message(queue->node);
    } else if (message->kind != QC_APPEND || outgoing->bytes.len >= LEAVE_BYTES) {
        leave(queue, outgoing);
    }
}
