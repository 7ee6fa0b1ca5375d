/* blocked.h - for threads that may wait: an ask whose answer somebody waits for.
 *
 *     struct qn_blocked blocked;
 *     qn_blocked_begin(&blocked, ask);
 *     if (!qn_ask(node, ask))  ...             the ask is the caller's, as ever
 *     qn_blocked_end(&blocked, asked);         in any case; then the ask is the caller's again, answered if it was asked
 *
 * Every ask is answered once, by its time at the latest: so this ends. */
#ifndef QUEUE_NODE_BLOCKED_H
#define QUEUE_NODE_BLOCKED_H

#include "queue/node/ask.h"

struct qf_lock;

struct qn_blocked {
    struct qf_lock *lock;
    bool answered;
};

void qn_blocked_begin(struct qn_blocked *blocked, struct qn_ask *ask);
void qn_blocked_end(struct qn_blocked *blocked, bool asked);

#endif
