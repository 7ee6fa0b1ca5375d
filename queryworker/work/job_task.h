/* job_task.h - a background job on its thread: files become fewer (segments/compact/job.h), without being felt.
 *
 * Its thread has the lowest priority. Between two series it stands aside while queries need every slot, and what it reads and
 * writes is bounded in bytes a second, over all jobs of this worker. */
#ifndef QUERYWORKER_WORK_JOB_TASK_H
#define QUERYWORKER_WORK_JOB_TASK_H

#include <stdatomic.h>

#include "base/pure/arena.h"
#include "base/sys/mailbox.h"
#include "proto/codec/control.h"
#include "queryworker/work/message.h"
#include "segments/compact/job.h"

/* What all jobs of a worker share. */
struct qw_gate {
    atomic_bool closed;      /* queries need every slot */
    uint64_t rate;           /* bytes a second; 0: any number */
    _Atomic int64_t free_ns; /* when what was let through so far is paid for */
};

struct qw_job_task {
    struct qw_message message; /* QW_MESSAGE_JOB, when it is over */
    struct qf_mailbox *mailbox;
    struct qw_gate *gate;
    uint32_t slot;
    uint64_t session;
    struct qf_arena *arena; /* owned: holds what the job points to */
    struct pb_job job;
    struct sg_store *store;
    const char *temp_dir;
    uint64_t memory_bytes;
    int64_t started_ns;
    atomic_bool cancel;

    /* So far; read by the coordinator while it runs. */
    _Atomic uint64_t samples, bytes_read, paused_ms;

    struct sg_job_result result;
    qf_rc rc;
    struct qf_err err;
};

/* For a pool: @task goes to its mailbox when it is over. */
void qw_job_task_run(void *task);
/* Accepts NULL, returns NULL. */
struct qw_job_task *qw_job_task_free(struct qw_job_task *task);

/* Let @bytes through: waits while the gate is closed, and until they fit the rate. False: canceled. *@paused_ms grows while
 * queries are in the way. */
bool qw_gate_pass(struct qw_gate *gate, uint64_t bytes, const atomic_bool *cancel,
                  _Atomic uint64_t *paused_ms);

#endif
