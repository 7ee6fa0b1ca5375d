/* thread.h - named threads and the one lock type, so that pthreads stay in this folder. */
#ifndef BASE_SYS_THREAD_H
#define BASE_SYS_THREAD_H

#include <stdbool.h>
#include <stdint.h>

struct qf_thread;

/* Run fn(arg) on a new thread called @name (at most 15 characters are shown). NULL if the system
 * has no more threads to give. Signals are blocked in it: the main thread handles them. */
struct qf_thread *qf_thread_start(const char *name, void (*fn)(void *arg), void *arg);
/* Wait for its end and free it. Accepts NULL, returns NULL. */
struct qf_thread *qf_thread_join(struct qf_thread *thread);

/* The calling thread gives way to all others from now on, at the processor and at disks. */
void qf_thread_yield_to_others(void);

/* A mutex with a condition. For base/sys, and for places that a decision record names. */
struct qf_lock;
struct qf_lock *qf_lock_new(void);
struct qf_lock *qf_lock_free(struct qf_lock *lock);
void qf_lock_take(struct qf_lock *lock);
void qf_lock_drop(struct qf_lock *lock);
/* With the lock taken: wait for a wake-up, up to @timeout_ms (-1: for ever). False on timeout. */
bool qf_lock_wait(struct qf_lock *lock, int64_t timeout_ms);
void qf_lock_wake_all(struct qf_lock *lock);

#endif
