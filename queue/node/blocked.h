/* blocked.h - for threads that may wait: an ask whose answer somebody waits for.
 *
 *     struct qn_blocked blocked;
 *     qn_blocked_begin(&blocked, ask);
 *     if (!qn_ask(node, ask))  ...             the ask is the caller's, as ever
 *     ask = qn_blocked_end(&blocked, ask, asked);     in any case; then the ask is the caller's again, answered if it was asked
 *
 * The ask that is answered need not be the one that was asked: one that the node has to keep goes on without its answer.
 * Every ask is answered once, by its time at the latest: so this ends. */
#ifndef QUEUE_NODE_BLOCKED_H
#define QUEUE_NODE_BLOCKED_H

#include "queue/node/ask.h"

struct qf_lock;

struct qn_blocked {
    struct qf_lock *lock;
    struct qn_ask *told; /* NULL: not answered yet */
};

void qn_blocked_begin(struct qn_blocked *blocked, struct qn_ask *ask);
struct qn_ask *qn_blocked_end(struct qn_blocked *blocked, struct qn_ask *ask, bool asked);

#endif
