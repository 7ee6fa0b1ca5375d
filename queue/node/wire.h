/* wire.h - asks and answers as bytes, for another node to answer.
 *
 * Integers are little-endian. Decoding believes nothing: QF_EPROTO unless @bytes are what encoding
 * could have written, within the bounds of ask.h. */
#ifndef QUEUE_NODE_WIRE_H
#define QUEUE_NODE_WIRE_H

#include "queue/node/ask.h"

void qn_ask_encode(struct qf_strbuf *buf, const struct qn_ask *ask);
/* *@ret_ask is the caller's. */
QF_MUST_CHECK qf_rc qn_ask_decode(struct qf_str bytes, struct qn_ask **ret_ask);

void qn_answer_encode(struct qf_strbuf *buf, const struct qn_answer *answer);
/* Into an answer that is empty. */
QF_MUST_CHECK qf_rc qn_answer_decode(struct qf_str bytes, struct qn_answer *ret_answer);

#endif
