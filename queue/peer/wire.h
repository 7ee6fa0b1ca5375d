/* wire.h - messages of consensus (queue/core/message.h) as bytes.
 *
 *     kind 1  flags 1  zero 2  count 4, then cluster from to term space index index_term commit
 *     rejected change_index nonce, 8 each; then @count entries:  term 8  length 4  type 4  data
 *
 * Integers are little-endian; entry i has index `index + 1 + i`. */
#ifndef QUEUE_PEER_WIRE_H
#define QUEUE_PEER_WIRE_H

#include "queue/core/message.h"

struct qp_entries {
    struct ql_entry *items;
    size_t count, capacity;
};

/* Append @message with its entries (@message->entries holds @message->count of them). */
void qp_message_encode(struct qf_strbuf *buf, const struct qc_message *message);
/* The same into an empty @buf whose entries come one after the other: begin, entries, end. */
void qp_message_begin(struct qf_strbuf *buf);
void qp_message_entry(struct qf_strbuf *buf, const struct ql_entry *entry);
void qp_message_end(struct qf_strbuf *buf, const struct qc_message *message);
/* The bytes that encode would append. */
size_t qp_message_bytes(const struct qc_message *message);

/* @ret_message borrows its data from @bytes and its entries from @scratch, which is reused. QF_EPROTO
 * unless @bytes are exactly what encode would write and qc_message_check() believes them. */
QF_MUST_CHECK qf_rc qp_message_decode(struct qf_str bytes, struct qp_entries *scratch,
                                      struct qc_message *ret_message, struct qf_err *err);
void qp_entries_done(struct qp_entries *scratch);

#endif
