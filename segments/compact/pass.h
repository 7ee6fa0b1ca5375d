/* pass.h - bring the files of a tenant into shape: merge what can be merged, delete what was replaced long enough ago.
 *
 * A pass holds no state but what is in the store: it may be killed at any moment, and two may run at once; answers do
 * not change (segments/plan/plan.h says why). In order:
 *
 *   1. settle up to which generation nobody can add files (segments/write/claim.h, ranges.h)
 *   2. list the tenant's files, and read from their ends what they replace
 *   3. plan and run jobs, list again, until there is nothing to do
 *   4. verify outputs that are older than the grace by the store's clock, delete what they replace, leave a note
 *   5. merge files of exemplars and metadata of days that are over (segments/annex/files.h)
 *
 * On our own nodes a job trades its outputs for its inputs in one entry of a log (trade.h): files say nothing of each other,
 * 4 has nothing to do and no time has to pass until something shows in a listing. */
#ifndef SEGMENTS_COMPACT_PASS_H
#define SEGMENTS_COMPACT_PASS_H

#include "segments/compact/agree.h"
#include "segments/compact/job.h"
#include "segments/plan/plan.h"

enum sg_pass_event {
    SG_PASS_JOB,      /* is about to run, or would: @text says what */
    SG_PASS_DAMAGED,  /* a file that cannot be read, and why: it is left alone */
    SG_PASS_VANISHED, /* an input was gone: planned again */
    SG_PASS_SKIPPED,  /* a job needs more memory than it may have */
    SG_PASS_REMOVED,  /* segments of its times are being removed: later */
    SG_PASS_DELETE,   /* a replaced file goes, or would */
};

/* A job of a plan, for who runs it elsewhere: names live until run_jobs() is back. */
struct sg_pass_job {
    struct sg_job job;
    uint64_t bytes; /* of its inputs */
    /* To be filled in, as sg_job_run() does: */
    qf_rc rc;
    struct sg_job_result result;
    struct qf_err err;
};

struct sg_pass_options {
    struct sg_store *store; /* borrowed */
    const char *temp_dir;   /* NULL: $TMPDIR, else /tmp */
    uint64_t memory_bytes;
    uint64_t file_bytes;
    int64_t
        settle_ms; /* files whose generation is younger are left alone, and windows that ended since */
    int64_t grace_ms; /* how long files stay after they were replaced */
    const struct sg_agree
        *agree; /* borrowed: who is asked what ingest nodes have sealed; NULL: nobody. On our own
                         * nodes it does not matter: those that say what there is are asked */
    bool ingest_stopped; /* without anybody to ask: they are known to have sealed everything */
    bool dry_run;        /* change nothing */
    const atomic_bool *cancel;
    /* All may be NULL. */
    void (*on_event)(void *ctx, enum sg_pass_event event, const char *text);
    void (*on_progress)(void *ctx, const struct sg_job_result *so_far); /* of the job under way */
    /* Run all jobs of a plan, in any order, and come back when they are over: none of them has a file of another. NULL:
     * the pass runs them itself, one by one. */
    void (*run_jobs)(void *ctx, struct sg_pass_job *jobs, size_t count);
    void *ctx;
};

struct sg_pass_result {
    uint64_t files_before, bytes_before, files_after,
        bytes_after; /* that count: replaced ones do not */
    uint64_t jobs, merged,
        written; /* jobs done, or planned in a dry run; their inputs and outputs */
    uint64_t samples, bytes_read, bytes_written;
    uint64_t damaged;         /* files left alone */
    uint64_t skipped;         /* jobs that need more memory */
    uint64_t deleted, doomed; /* replaced files that went, and that wait for their time */
    uint64_t annexes_merged,
        annexes_written; /* files of exemplars and metadata; in a dry run, that would be */
    uint64_t waiting; /* files in windows that are over, of generations that may still get others */
};

/* Where @file, called @name, comes from: on our own nodes of which partition's log, and whether of its ranges or of imports,
 * which have series of all partitions. Elsewhere it does not matter. Does not wait. */
void sg_pass_set_source(struct sg_store *store, struct qf_str name, struct sg_plan_file *file);

/* How a pass with these options plans at @now_ms, if every generation that has settled may be taken: for who wants to know
 * what there is to do, without asking the store. */
struct sg_plan_options sg_pass_planning(const struct sg_pass_options *options, int64_t now_ms);

/* Errors of the store and of sg_ranges_settle(); QF_ENOSPC and QF_EIO for temporary files; QF_ELIMIT; QF_ECANCELED.
 * QF_EUNSUPPORTED: ingest nodes write to the tenant, and there is nobody to ask. What was done before an error is done, and is
 * in *ret_result as well. */
QF_MUST_CHECK qf_rc sg_pass_run(const struct sg_pass_options *options, struct qf_str tenant,
                                struct sg_pass_result *ret_result, struct qf_err *err);

#endif
