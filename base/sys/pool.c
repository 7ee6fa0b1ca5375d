/* pool.c - threads that run tasks. */
#include "base/sys/pool.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/mailbox.h"
#include "base/sys/thread.h"

struct task {
    void (*fn)(void *arg);
    void *arg;
};

struct qf_pool {
    struct qf_mailbox *tasks;
    size_t thread_count;
    struct qf_thread *threads[];
};

static void work(void *arg)
{
    struct qf_pool *pool = arg;
    struct task *task;

    while ((task = qf_mailbox_receive(pool->tasks, -1)) != NULL) {
        task->fn(task->arg);
        free(task);
    }
}

struct qf_pool *qf_pool_new(const char *name, size_t thread_count, size_t queue_max)
{
    struct qf_pool *pool = qf_xcalloc(1, sizeof(*pool) + thread_count * sizeof(struct qf_thread *));

    pool->tasks = qf_mailbox_new(queue_max);
    for (; pool->thread_count < thread_count; pool->thread_count++) {
        pool->threads[pool->thread_count] = qf_thread_start(name, work, pool);
        if (!pool->threads[pool->thread_count])
            return qf_pool_free(pool);
    }
    return pool;
}

struct qf_pool *qf_pool_free(struct qf_pool *pool)
{
    if (!pool)
        return NULL;
    qf_mailbox_close(pool->tasks);
    for (size_t i = 0; i < pool->thread_count; i++)
        (void)qf_thread_join(pool->threads[i]);
    (void)qf_mailbox_free(pool->tasks, free);
    free(pool);
    return NULL;
}

static bool submit(struct qf_pool *pool, void (*fn)(void *arg), void *arg,
                   bool (*send)(struct qf_mailbox *box, void *message))
{
    struct task *task = qf_xmalloc(sizeof(*task));

    *task = (struct task){ fn, arg };
    if (send(pool->tasks, task))
        return true;
    free(task);
    return false;
}

bool qf_pool_submit(struct qf_pool *pool, void (*fn)(void *arg), void *arg)
{
    return submit(pool, fn, arg, qf_mailbox_try_send);
}

bool qf_pool_submit_later(struct qf_pool *pool, void (*fn)(void *arg), void *arg)
{
    return submit(pool, fn, arg, qf_mailbox_try_send_later);
}

void qf_pool_nudge(struct qf_pool *pool)
{
    qf_mailbox_nudge(pool->tasks);
}
