/* check.h - the invariants of a core's own tables, for tests to assert after every step. */
#ifndef TESTS_LIB_CORE_CHECK_H
#define TESTS_LIB_CORE_CHECK_H

#include "workcoord/api.h"
#include "workcoord/life.h"
#include "workcoord/worker.h"

/* NULL, or which invariant is broken: every item in exactly one place, none on an unavailable
 * worker beyond what it may finish, none pending while a worker is free to take it, gauges true. */
const char *core_check_api(const struct wc_api *wc);

/* NULL, or which invariant is broken: every query in exactly one place, no more active than may be,
 * none queued while there is a place, none stopped without a reason. */
const char *core_check_life(const struct wc_life *life);

/* NULL, or which invariant is broken: slots never oversubscribed nor idle while work is queued,
 * every run in exactly one place, every kept artifact has an end. */
const char *core_check_worker(const struct wc_worker *wc);

#endif
