/* test_pool.c - tasks on threads. */
#include "base/sys/pool.h"

#include <stdatomic.h>

#include "base/sys/thread.h"
#include "tests/lib/test.h"

static _Atomic int ran;

static void count(void *arg)
{
    atomic_fetch_add(&ran, *(int *)arg);
}

/* Freeing a pool runs what is queued first. */
TEST(pool_runs_every_task_before_it_ends)
{
    struct qf_pool *pool = qf_pool_new("test", 3, 1000);
    int one = 1;

    CHECK(pool != NULL);
    atomic_store(&ran, 0);
    for (int i = 0; i < 1000; i++)
        CHECK(qf_pool_submit(pool, count, &one));
    (void)qf_pool_free(pool);
    CHECK_EQ(atomic_load(&ran), 1000);
}

static void hold(void *arg)
{
    qf_lock_take(arg);
    qf_lock_drop(arg);
}

/* A full queue refuses at once. */
TEST(pool_refuses_when_its_queue_is_full)
{
    struct qf_pool *pool = qf_pool_new("test", 1, 2);
    struct qf_lock *lock = qf_lock_new();
    int accepted = 0;

    qf_lock_take(lock);
    while (qf_pool_submit(pool, hold, lock) && accepted < 10)
        accepted++;
    CHECK(accepted >= 2 && accepted <= 3);
    qf_lock_drop(lock);
    (void)qf_pool_free(pool);
    (void)qf_lock_free(lock);
}
