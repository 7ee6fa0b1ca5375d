/* events.c - the queue of events; one step of the state machine at a time. */
#include <assert.h>
#include <string.h>

#include "base/sys/clock.h"
#include "queryworker/work/work_int.h"

void qw_co_post_assign(struct qw_coordinator *co, struct wc_worker_event event,
                       struct qw_assignment *assignment)
{
    /* Room at the front is used before the queue grows. */
    if (co->events_done && co->events.count == co->events.capacity) {
        co->events.count -= co->events_done;
        memmove(co->events.items, co->events.items + co->events_done,
                co->events.count * sizeof(*co->events.items));
        co->events_done = 0;
    }
    QF_VEC_PUSH(&co->events, (struct qw_event){ event, assignment });
}

void qw_co_post(struct qw_coordinator *co, struct wc_worker_event event)
{
    qw_co_post_assign(co, event, NULL);
}

static qf_rc step(struct qw_coordinator *co, struct qw_event event)
{
    struct wc_worker_effects effects = { 0 };
    qf_rc rc;

    assert(!co->stepping); /* the effects are lent until the next step */
    co->stepping = true;
    event.core.now = qf_clock_mono_ms();
    rc = wc_worker_step(co->wc, &event.core, &effects);
    for (size_t i = 0; i < effects.count; i++)
        qw_co_perform(co, &effects.items[i], &event);
    co->stepping = false;
    (void)qw_assignment_free(event.assignment); /* NULL if a run took it */
    return rc;
}

void qw_co_run(struct qw_coordinator *co)
{
    while (co->events_done < co->events.count)
        (void)step(co, co->events.items[co->events_done++]);
    co->events.count = co->events_done = 0;
}

qf_rc qw_co_open_session(struct qw_coordinator *co, struct wc_worker_event event)
{
    qf_rc rc;

    qw_co_run(co);
    rc = step(co, (struct qw_event){ event, NULL });
    qw_co_run(co);
    return rc;
}
