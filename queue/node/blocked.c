/* blocked.c - a thread that waits for an answer. */
#include "queue/node/blocked.h"

#include "base/sys/thread.h"

static void wake(void *ctx, struct qn_ask *ask)
{
    struct qn_blocked *blocked = ctx;

    qf_lock_take(blocked->lock);
    blocked->told = ask;
    qf_lock_wake_all(blocked->lock);
    qf_lock_drop(blocked->lock);
}

void qn_blocked_begin(struct qn_blocked *blocked, struct qn_ask *ask)
{
    *blocked = (struct qn_blocked){ .lock = qf_lock_new() };
    ask->done = wake;
    ask->ctx = blocked;
}

struct qn_ask *qn_blocked_end(struct qn_blocked *blocked, struct qn_ask *ask, bool asked)
{
    qf_lock_take(blocked->lock);
    while (asked && !blocked->told)
        (void)qf_lock_wait(blocked->lock, -1);
    qf_lock_drop(blocked->lock);
    blocked->lock = qf_lock_free(blocked->lock);
    return asked ? blocked->told : ask;
}
