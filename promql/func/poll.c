/* poll.c - the look at the cancel flag. */
#include "promql/func/poll.h"

bool pq_poll_look(struct pq_poll *poll)
{
    if (poll->stopped)
        return true;
    poll->work = 0;
    if (poll->look)
        poll->look(poll->ctx);
    if (poll->canceled && atomic_load_explicit(poll->canceled, memory_order_relaxed))
        poll->stopped = true;
    return poll->stopped;
}
