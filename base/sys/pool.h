/* pool.h - a fixed number of threads that run tasks from one bounded queue.
 *
 * A task gets its input by value or gift, posts its result as a message and polls its own cancel
 * flag. Tasks start in the order in which they were submitted. */
#ifndef BASE_SYS_POOL_H
#define BASE_SYS_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pure/macros.h"

struct qf_pool;

/* NULL if the threads cannot be started. */
struct qf_pool *qf_pool_new(const char *name, size_t thread_count, size_t queue_max);
/* Run what is queued, then stop and free. Cancel flags of tasks are the caller's business. */
struct qf_pool *qf_pool_free(struct qf_pool *pool);

/* Queue fn(arg); false if the queue is full: nothing was taken. Never blocks. */
QF_MUST_CHECK bool qf_pool_submit(struct qf_pool *pool, void (*fn)(void *arg), void *arg);
/* The same without waking a thread: it is run before the next task, or after qf_pool_nudge(). */
QF_MUST_CHECK bool qf_pool_submit_later(struct qf_pool *pool, void (*fn)(void *arg), void *arg);
void qf_pool_nudge(struct qf_pool *pool);

#endif
