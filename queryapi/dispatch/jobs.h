/* jobs.h - background jobs: from a thread that waits for them to workers, and back.
 *
 * Which worker runs which job is decided by workcoord/lane.h, on the coordinator's thread; nothing of it meets the work of
 * queries. One thread at a time may have jobs run. */
#ifndef QUERYAPI_DISPATCH_JOBS_H
#define QUERYAPI_DISPATCH_JOBS_H

#include "queryapi/dispatch/coordinator.h"

struct qa_job {
    struct pb_job job;    /* what is to be done; its number and attempt are chosen here */
    uint32_t owner_count; /* workers that keep its inputs; 0: none, or all */
    uint64_t owners[WC_OWNERS_MAX];

    /* When it is over: */
    qf_rc rc;
    struct qf_err err; /* its subject is an input */
    struct pb_job_done done;
    uint32_t attempts;
    char worker[PB_ID_BYTES_MAX + 1]; /* who had it last, or has it */
    double seconds;                   /* since that one was given it */

    /* Of the coordinator: */
    int64_t sent_ns;
    struct pb_job_progress progress;
};

/* The worker of this id keeps its inputs: @job goes to it, or to another one that does. At most WC_OWNERS_MAX count. */
void qa_job_add_owner(struct qa_job *job, struct qf_str worker_id);

/* Run all of them, each on some worker, and wait until they are over. Those that are not when *@cancel becomes true end with
 * QF_ECANCELED soon. QF_EQUARANTINED: workers died of it. */
void qa_coord_run_jobs(struct qa_coord *coord, struct qa_job *jobs, size_t count,
                       const atomic_bool *cancel);

/* As it was a moment ago; from any thread. */
struct qa_lane_figures {
    uint32_t workers; /* that take jobs */
    uint32_t slots, pending, sent;
};
struct qa_lane_figures qa_coord_lane(const struct qa_coord *coord);

/* What QA_INSPECT_COMPACTION shows beside the jobs: members of a JSON object, without braces. Taken. */
void qa_coord_tell_compaction(struct qa_coord *coord, char *members);

#endif
