/* thread.c - named threads and locks. */
#include "base/sys/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/pure/alloc.h"

struct qf_thread {
    pthread_t id;
    void (*fn)(void *arg);
    void *arg;
};

static void *run(void *arg)
{
    struct qf_thread *thread = arg;

    thread->fn(thread->arg);
    return NULL;
}

struct qf_thread *qf_thread_start(const char *name, void (*fn)(void *arg), void *arg)
{
    struct qf_thread *thread = qf_xcalloc(1, sizeof(*thread));
    sigset_t all, old;
    char shown[16];
    int failed;

    thread->fn = fn;
    thread->arg = arg;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    failed = pthread_create(&thread->id, NULL, run, thread);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed) {
        free(thread);
        return NULL;
    }
    (void)snprintf(shown, sizeof(shown), "%s", name);
    (void)pthread_setname_np(thread->id, shown);
    return thread;
}

struct qf_thread *qf_thread_join(struct qf_thread *thread)
{
    if (!thread)
        return NULL;
    (void)pthread_join(thread->id, NULL);
    free(thread);
    return NULL;
}

void qf_thread_yield_to_others(void)
{
    const struct sched_param param = { 0 };

    /* On Linux both are about the thread alone. The first decides about the order of its I/O as well; with the second
     * it gives way at once when another one wakes, instead of at the end of its turn. */
    (void)setpriority(PRIO_PROCESS, 0, 19);
    (void)sched_setscheduler(0, SCHED_IDLE, &param);
}

struct qf_lock {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
};

struct qf_lock *qf_lock_new(void)
{
    struct qf_lock *lock = qf_xcalloc(1, sizeof(*lock));
    pthread_condattr_t attr;

    (void)pthread_mutex_init(&lock->mutex, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&lock->cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    return lock;
}

struct qf_lock *qf_lock_free(struct qf_lock *lock)
{
    if (!lock)
        return NULL;
    (void)pthread_cond_destroy(&lock->cond);
    (void)pthread_mutex_destroy(&lock->mutex);
    free(lock);
    return NULL;
}

void qf_lock_take(struct qf_lock *lock)
{
    (void)pthread_mutex_lock(&lock->mutex);
}

void qf_lock_drop(struct qf_lock *lock)
{
    (void)pthread_mutex_unlock(&lock->mutex);
}

bool qf_lock_wait(struct qf_lock *lock, int64_t timeout_ms)
{
    struct timespec at;

    if (timeout_ms < 0)
        return pthread_cond_wait(&lock->cond, &lock->mutex) == 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += timeout_ms / 1000;
    at.tv_nsec += (timeout_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return pthread_cond_timedwait(&lock->cond, &lock->mutex, &at) != ETIMEDOUT;
}

void qf_lock_wake_all(struct qf_lock *lock)
{
    (void)pthread_cond_broadcast(&lock->cond);
}
