/* job_task.c - a background job on its thread. */
#include "queryworker/work/job_task.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "base/sys/clock.h"
#include "base/sys/thread.h"

/* How long a paused job sleeps before it looks again. */
#define LOOK_MS 5
/* The longest sleep for the rate's sake: a cancel is heard after it. */
#define NAP_MS 100

static void nap(int64_t ms)
{
    struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    (void)nanosleep(&time, NULL);
}

static bool stand_aside(const struct qw_gate *gate, const atomic_bool *cancel,
                        _Atomic uint64_t *paused_ms)
{
    while (atomic_load_explicit(&gate->closed, memory_order_relaxed) &&
           !atomic_load_explicit(cancel, memory_order_relaxed)) {
        int64_t since = qf_clock_mono_ms();

        nap(LOOK_MS);
        atomic_fetch_add_explicit(paused_ms, (uint64_t)(qf_clock_mono_ms() - since),
                                  memory_order_relaxed);
    }
    return !atomic_load_explicit(cancel, memory_order_relaxed);
}

/* When this may go on, after all that was let through before. */
static int64_t book(struct qw_gate *gate, uint64_t bytes)
{
    int64_t cost = (int64_t)((double)bytes / (double)gate->rate * 1e9);
    int64_t now = qf_clock_mono_ns(), from = atomic_load(&gate->free_ns), until;

    do
        until = QF_MAX(from, now) + cost;
    while (!atomic_compare_exchange_weak(&gate->free_ns, &from, until));
    return until;
}

bool qw_gate_pass(struct qw_gate *gate, uint64_t bytes, const atomic_bool *cancel,
                  _Atomic uint64_t *paused_ms)
{
    int64_t until;

    if (!stand_aside(gate, cancel, paused_ms))
        return false;
    if (!bytes || !gate->rate)
        return true;
    until = book(gate, bytes);
    while (!atomic_load_explicit(cancel, memory_order_relaxed)) {
        int64_t left_ms = (until - qf_clock_mono_ns()) / 1000000;

        if (left_ms <= 0)
            return true;
        nap(QF_MIN(left_ms, (int64_t)NAP_MS));
    }
    return false;
}

static void pace(void *ctx, uint64_t bytes)
{
    struct qw_job_task *task = ctx;

    (void)qw_gate_pass(task->gate, bytes, &task->cancel, &task->paused_ms);
    atomic_fetch_add_explicit(&task->bytes_read, bytes, memory_order_relaxed);
}

static void on_progress(void *ctx, const struct sg_job_result *so_far)
{
    struct qw_job_task *task = ctx;

    atomic_store_explicit(&task->samples, so_far->samples, memory_order_relaxed);
}

void qw_job_task_run(void *arg)
{
    struct qw_job_task *task = arg;
    const struct pb_job *given = &task->job;
    struct sg_job job = { .tenant = given->tenant,
                          .inputs = given->inputs,
                          .input_count = given->input_count,
                          .dead = given->dead,
                          .dead_count = given->dead_count,
                          .window_ms = given->window_ms,
                          .shard = given->shard,
                          .shard_count = given->shard_count,
                          .generation = given->generation };
    struct sg_job_options options = { .store = task->store,
                                      .temp_dir = task->temp_dir,
                                      .memory_bytes = task->memory_bytes,
                                      .file_bytes = given->file_bytes,
                                      .cancel = &task->cancel,
                                      .on_progress = on_progress,
                                      .pace = pace,
                                      .ctx = task };
    bool sent;

    qf_thread_yield_to_others();
    task->rc = atomic_load(&task->cancel) ? QF_ECANCELED
                                          : sg_job_run(&job, &options, &task->result, &task->err);
    sent = qf_mailbox_send(task->mailbox, &task->message, -1);
    assert(sent); /* the coordinator outlives its tasks */
    (void)sent;
}

struct qw_job_task *qw_job_task_free(struct qw_job_task *task)
{
    if (!task)
        return NULL;
    (void)qf_arena_free(task->arena);
    free(task);
    return NULL;
}
