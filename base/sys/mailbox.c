/* mailbox.c - bounded queue between threads. */
#include "base/sys/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/pure/alloc.h"

struct qf_mailbox {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    int event_fd; /* -1 until somebody asks; counter is 1 while there is something to see */
    bool signaled;
    bool closed;
    size_t sleepers;   /* readers that wait for a message */
    atomic_int waking; /* writers that are about to wake one, without the lock */
    size_t capacity, count, head;
    void *messages[];
};

static void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
}

struct qf_mailbox *qf_mailbox_new(size_t capacity)
{
    struct qf_mailbox *box = qf_xcalloc(1, sizeof(*box) + capacity * sizeof(void *));

    assert(capacity > 0);
    (void)pthread_mutex_init(&box->lock, NULL);
    cond_init(&box->not_empty);
    cond_init(&box->not_full);
    box->event_fd = -1;
    box->capacity = capacity;
    return box;
}

struct qf_mailbox *qf_mailbox_free(struct qf_mailbox *box, void (*drop)(void *message))
{
    void *message;

    if (!box)
        return NULL;
    while ((message = qf_mailbox_try_receive(box)) != NULL)
        if (drop)
            drop(message);
    while (atomic_load(&box->waking) > 0) /* what they wake is not there any more, but the box is */
        (void)sched_yield();
    if (box->event_fd >= 0)
        (void)close(box->event_fd);
    (void)pthread_cond_destroy(&box->not_empty);
    (void)pthread_cond_destroy(&box->not_full);
    (void)pthread_mutex_destroy(&box->lock);
    free(box);
    return NULL;
}

/* Keep the eventfd readable exactly while there is something to see. Under the lock. */
static void signal_fd(struct qf_mailbox *box)
{
    bool want = box->count > 0 || box->closed;
    eventfd_t drained;

    if (want == box->signaled || box->event_fd < 0)
        return;
    if (want)
        (void)eventfd_write(box->event_fd, 1);
    else
        (void)eventfd_read(box->event_fd, &drained);
    box->signaled = want;
}

static struct timespec deadline_in(int64_t timeout_ms)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += timeout_ms / 1000;
    at.tv_nsec += (timeout_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* False on timeout. Under the lock. */
static bool wait_on(struct qf_mailbox *box, pthread_cond_t *cond, int64_t timeout_ms,
                    const struct timespec *deadline)
{
    if (timeout_ms < 0)
        return pthread_cond_wait(cond, &box->lock) == 0;
    return pthread_cond_timedwait(cond, &box->lock, deadline) != ETIMEDOUT;
}

/* Under the lock. */
static bool put(struct qf_mailbox *box, void *message)
{
    if (box->closed || box->count == box->capacity)
        return false;
    box->messages[(box->head + box->count) % box->capacity] = message;
    box->count++;
    return true;
}

/* Drop the lock and wake a reader, in this order: one that wakes while the lock is held goes to sleep
 * once more, for the lock. */
static void unlock_and_wake(struct qf_mailbox *box)
{
    bool wake = box->sleepers > 0;

    signal_fd(box);
    if (wake)
        (void)atomic_fetch_add(&box->waking, 1);
    (void)pthread_mutex_unlock(&box->lock);
    if (!wake)
        return;
    (void)pthread_cond_signal(&box->not_empty);
    (void)atomic_fetch_sub(&box->waking, 1);
}

bool qf_mailbox_try_send(struct qf_mailbox *box, void *message)
{
    bool sent;

    (void)pthread_mutex_lock(&box->lock);
    sent = put(box, message);
    unlock_and_wake(box);
    return sent;
}

bool qf_mailbox_try_send_later(struct qf_mailbox *box, void *message)
{
    bool sent;

    (void)pthread_mutex_lock(&box->lock);
    sent = put(box, message);
    (void)pthread_mutex_unlock(&box->lock);
    return sent;
}

void qf_mailbox_nudge(struct qf_mailbox *box)
{
    (void)pthread_mutex_lock(&box->lock);
    if (box->count > 0)
        unlock_and_wake(box);
    else
        (void)pthread_mutex_unlock(&box->lock);
}

bool qf_mailbox_send(struct qf_mailbox *box, void *message, int64_t timeout_ms)
{
    struct timespec deadline = deadline_in(timeout_ms < 0 ? 0 : timeout_ms);
    bool sent;

    (void)pthread_mutex_lock(&box->lock);
    while (!box->closed && box->count == box->capacity)
        if (!wait_on(box, &box->not_full, timeout_ms, &deadline))
            break;
    sent = put(box, message);
    unlock_and_wake(box);
    return sent;
}

static void *take(struct qf_mailbox *box)
{
    void *message;

    if (box->count == 0)
        return NULL;
    message = box->messages[box->head];
    box->head = (box->head + 1) % box->capacity;
    box->count--;
    signal_fd(box);
    (void)pthread_cond_signal(&box->not_full);
    return message;
}

void *qf_mailbox_try_receive(struct qf_mailbox *box)
{
    void *message;

    (void)pthread_mutex_lock(&box->lock);
    message = take(box);
    (void)pthread_mutex_unlock(&box->lock);
    return message;
}

void *qf_mailbox_receive(struct qf_mailbox *box, int64_t timeout_ms)
{
    struct timespec deadline = deadline_in(timeout_ms < 0 ? 0 : timeout_ms);
    void *message;

    (void)pthread_mutex_lock(&box->lock);
    box->sleepers++;
    while (box->count == 0 && !box->closed)
        if (!wait_on(box, &box->not_empty, timeout_ms, &deadline))
            break;
    box->sleepers--;
    message = take(box);
    (void)pthread_mutex_unlock(&box->lock);
    return message;
}

void qf_mailbox_close(struct qf_mailbox *box)
{
    (void)pthread_mutex_lock(&box->lock);
    box->closed = true;
    signal_fd(box);
    (void)pthread_cond_broadcast(&box->not_empty);
    (void)pthread_cond_broadcast(&box->not_full);
    (void)pthread_mutex_unlock(&box->lock);
}

size_t qf_mailbox_count(struct qf_mailbox *box)
{
    size_t count;

    (void)pthread_mutex_lock(&box->lock);
    count = box->count;
    (void)pthread_mutex_unlock(&box->lock);
    return count;
}

int qf_mailbox_fd(struct qf_mailbox *box)
{
    int fd;

    (void)pthread_mutex_lock(&box->lock);
    if (box->event_fd < 0) {
        box->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        signal_fd(box);
    }
    fd = box->event_fd;
    (void)pthread_mutex_unlock(&box->lock);
    return fd;
}
