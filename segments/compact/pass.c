/* pass.c - bring the files of a tenant into shape. */
#include "segments/compact/pass.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "segments/catalog/changes.h"
#include "segments/compact/pass_int.h"
#include "segments/compact/ranges.h"
#include "segments/plan/plan.h"
#include "segments/store/ring.h"
#include "segments/write/claim.h"

static const int64_t windows[] = { INT64_C(2) * 3600 * 1000, INT64_C(24) * 3600 * 1000 };

/* Jobs make fewer files each round; this many are never needed. */
#define ROUNDS_MAX 64
#define INPUTS_MAX 128

void sg_pass_tell(const struct pass *p, enum sg_pass_event event, const char *format, ...)
{
    char text[2048];
    va_list args;

    if (!p->options->on_event)
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    p->options->on_event(p->options->ctx, event, text);
}

/* --- up to where --- */

/* Is there a tenant whose ranges nobody can tell about? */
static qf_rc check_ingest(struct pass *p, struct qf_err *err)
{
    bool ingest = false;
    qf_rc rc = QF_OK;

    if (!p->agree && !p->options->ingest_stopped)
        rc = sg_claim_has_ingest(p->options->store, p->tenant, &p->call, &ingest, err);
    if (!ingest)
        return rc;
    return qf_err_set(
        err, QF_EUNSUPPORTED,
        "tenant %.*s is written by ingest nodes, and what they have not sealed is not "
        "known here: name them with --ingest; or, if they are stopped for good and "
        "have sealed everything, say --ingest-stopped",
        QF_STR_ARG(p->tenant));
}

static qf_rc settle(struct pass *p, struct qf_err *err)
{
    const struct sg_pass_options *o = p->options;
    /* Logs show what they have at once. */
    int64_t late_ms = sg_store_is_ring(o->store) ? 0 : o->settle_ms, now;
    uint64_t below, of_ranges;
    qf_rc rc = check_ingest(p, err);

    if (rc == QF_OK)
        rc = sg_store_clock(o->store, &p->call, &now, err);
    if (rc)
        return rc;
    p->now_ms = now;
    below = sg_plan_below(now > o->settle_ms ? (uint64_t)(now - o->settle_ms) * 1000 : 0, NULL, 0,
                          NULL, 0);
    if (o->dry_run) {
        p->below = below;
        return QF_OK;
    }
    rc = sg_claim_settle(o->store, p->tenant, below, o->settle_ms, &p->call, &p->below, err);
    if (rc || !p->agree)
        return rc;
    rc = sg_ranges_settle(o->store, p->agree, p->tenant, now, late_ms, o->grace_ms, &p->call,
                          &of_ranges, err);
    if (rc == QF_OK)
        p->below = QF_MIN(p->below, of_ranges);
    return rc;
}

/* --- jobs --- */

void sg_pass_set_source(struct sg_store *store, struct qf_str name, struct sg_plan_file *file)
{
    uint32_t partition;

    if (!sg_ring_partition(store, name, &partition))
        return;
    file->apart = !sg_claim_is_import(file->generation);
    file->source = 2 * partition + (file->apart ? 1 : 2);
}

static struct sg_plan_file plan_file(const struct pass *p, const struct pass_file *file)
{
    struct sg_plan_file made = { .min_ts = file->parts.min_ts,
                                 .max_ts = file->parts.max_ts,
                                 .shard = file->parts.shard,
                                 .shard_count = file->parts.shard_count,
                                 .generation = file->parts.generation,
                                 .size = file->size,
                                 .replaced_by = file->replaced_by,
                                 .damaged = file->damaged,
                                 .outdated = file->known && file->outdated };

    sg_pass_set_source(p->options->store, file->name, &made);
    return made;
}

struct sg_plan_options sg_pass_planning(const struct sg_pass_options *o, int64_t now_ms)
{
    int64_t settled = now_ms - o->settle_ms;

    return (struct sg_plan_options){
        .windows_ms = windows,
        .window_count = QF_COUNT_OF(windows),
        .now_ms = now_ms,
        .settle_ms = o->settle_ms,
        .below = sg_plan_below(settled > 0 ? (uint64_t)settled * 1000 : 0, NULL, 0, NULL, 0),
        .file_bytes = o->file_bytes,
        .memory_bytes = o->memory_bytes / 2,
        .inputs_max = INPUTS_MAX,
        /* Pieces in folders of several days, which are listed one after another. */
        .whole = sg_store_is_ring(o->store),
    };
}

static qf_rc plan(struct pass *p, struct sg_plan *ret_plan, struct qf_err *err)
{
    struct sg_plan_options options = sg_pass_planning(p->options, p->now_ms);
    struct sg_plan_file *files = QF_ARENA_ARRAY(p->arena, struct sg_plan_file, p->files.count + 1);

    options.below = p->below;
    for (size_t i = 0; i < p->files.count; i++)
        files[i] = plan_file(p, &p->files.items[i]);
    return sg_plan_make(&options, files, p->files.count, p->arena, ret_plan, err);
}

static struct qf_str *names_of(struct pass *p, const size_t *indexes, size_t count)
{
    struct qf_str *names = QF_ARENA_ARRAY(p->arena, struct qf_str, count + 1);

    for (size_t i = 0; i < count; i++)
        names[i] = p->files.items[indexes[i]].name;
    return names;
}

static void count_job(struct pass *p, const struct sg_plan_job *planned,
                      const struct sg_job_result *result)
{
    p->result.jobs++;
    p->result.merged += planned->input_count;
    p->result.written += result->outputs + result->present;
    p->result.samples += result->samples;
    p->result.bytes_read += result->bytes_read;
    p->result.bytes_written += result->bytes_written;
}

static struct sg_pass_job make_job(struct pass *p, const struct sg_plan_job *planned)
{
    return (struct sg_pass_job){
        .job = { .tenant = p->tenant,
                 .inputs = names_of(p, planned->inputs, planned->input_count),
                 .input_count = planned->input_count,
                 .dead = names_of(p, planned->dead, planned->dead_count),
                 .dead_count = planned->dead_count,
                 .window_ms = planned->window_ms,
                 .shard = planned->shard,
                 .shard_count = planned->shard_count,
                 .generation = planned->generation },
        .bytes = planned->bytes,
    };
}

static void tell_job(struct pass *p, const struct sg_pass_job *job)
{
    sg_pass_tell(p, SG_PASS_JOB, "%zu files of shard %u of %u, %" PRIu64 " bytes, from %.*s on",
                 job->job.input_count, job->job.shard, job->job.shard_count, job->bytes,
                 QF_STR_ARG(job->job.inputs[0]));
}

static void run_here(struct pass *p, struct sg_pass_job *job)
{
    const struct sg_pass_options *o = p->options;
    struct sg_job_options options = { .store = o->store,
                                      .temp_dir = o->temp_dir,
                                      .memory_bytes = o->memory_bytes,
                                      .file_bytes = o->file_bytes,
                                      .cancel = o->cancel,
                                      .on_progress = o->on_progress,
                                      .ctx = o->ctx };

    job->rc = sg_job_run(&job->job, &options, &job->result, &job->err);
}

/* What became of it. *ret_again: files changed, or more is known of them. */
static qf_rc take_result(struct pass *p, const struct sg_plan_job *planned,
                         const struct sg_pass_job *job, bool *ret_again, struct qf_err *err)
{
    qf_rc rc = job->rc;

    if (rc == QF_OK)
        count_job(p, planned, &job->result);
    *ret_again |= rc == QF_OK;
    if ((rc == QF_ECORRUPT || rc == QF_EUNSUPPORTED) && job->err.subject) {
        sg_pass_damaged(p, planned->inputs[job->err.subject - 1], job->err.msg);
        *ret_again = true;
        return QF_OK;
    }
    if (rc == QF_ENOTFOUND) {
        sg_pass_tell(p, SG_PASS_VANISHED, "%s", job->err.msg);
        *ret_again = true;
        return QF_OK;
    }
    if (rc == QF_ELIMIT || rc == QF_EQUARANTINED) {
        sg_pass_tell(p, SG_PASS_SKIPPED, "%s", job->err.msg);
        p->result.skipped++;
        return QF_OK;
    }
    if (rc == QF_EBUSY) {
        sg_pass_tell(p, SG_PASS_REMOVED, "%s", job->err.msg);
        return QF_OK;
    }
    return rc ? qf_err_set(err, rc, "%s", job->err.msg) : QF_OK;
}

/* All at once, elsewhere: one that failed does not keep the others from being counted. */
static qf_rc run_elsewhere(struct pass *p, const struct sg_plan *made, bool *ret_again,
                           struct qf_err *err)
{
    struct sg_pass_job *jobs = QF_ARENA_ARRAY(p->arena, struct sg_pass_job, made->job_count + 1);
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < made->job_count; i++) {
        jobs[i] = make_job(p, &made->jobs[i]);
        tell_job(p, &jobs[i]);
    }
    if (made->job_count)
        p->options->run_jobs(p->options->ctx, jobs, made->job_count);
    for (size_t i = 0; i < made->job_count; i++) {
        qf_rc one = take_result(p, &made->jobs[i], &jobs[i], ret_again, rc ? NULL : err);

        rc = rc ? rc : one;
    }
    return rc;
}

static qf_rc run_jobs(struct pass *p, const struct sg_plan *made, bool *ret_again,
                      struct qf_err *err)
{
    qf_rc rc = QF_OK;

    *ret_again = false;
    if (p->options->run_jobs && !p->options->dry_run)
        return run_elsewhere(p, made, ret_again, err);
    for (size_t i = 0; i < made->job_count && rc == QF_OK; i++) {
        struct sg_pass_job job = make_job(p, &made->jobs[i]);

        tell_job(p, &job);
        if (p->options->dry_run) {
            count_job(p, &made->jobs[i], &job.result);
            continue;
        }
        run_here(p, &job);
        rc = take_result(p, &made->jobs[i], &job, ret_again, err);
    }
    return rc;
}

static void measure(const struct pass *p, uint64_t *ret_files, uint64_t *ret_bytes)
{
    *ret_files = *ret_bytes = 0;
    for (size_t i = 0; i < p->files.count; i++)
        if (p->files.items[i].replaced_by == SG_PLAN_NONE) {
            (*ret_files)++;
            *ret_bytes += p->files.items[i].size;
        }
}

static qf_rc merge_all(struct pass *p, struct qf_err *err)
{
    bool again = true;
    qf_rc rc = QF_OK;

    for (int round = 0; rc == QF_OK && again; round++) {
        struct sg_plan made = { 0 };

        qf_arena_reset(p->arena);
        rc = sg_pass_look(p, err);
        if (rc == QF_OK && round == 0)
            measure(p, &p->result.files_before, &p->result.bytes_before);
        again = false;
        if (rc == QF_OK && round < ROUNDS_MAX)
            rc = plan(p, &made, err);
        p->result.waiting = made.waiting;
        if (rc == QF_OK)
            rc = run_jobs(p, &made, &again, err);
    }
    if (rc == QF_OK)
        measure(p, &p->result.files_after, &p->result.bytes_after);
    return rc;
}

/* --- replaced files --- */

static qf_rc delete_file(struct pass *p, const struct pass_file *file, struct sg_changes_note *note,
                         struct qf_err *err)
{
    qf_rc rc = QF_OK;

    sg_pass_tell(p, SG_PASS_DELETE, "%.*s", QF_STR_ARG(file->name));
    if (!p->options->dry_run)
        rc = sg_store_delete(p->options->store, file->name, &p->call, err);
    p->result.deleted += rc == QF_OK;
    sg_changes_note_add(note, file->name);
    return rc;
}

static qf_rc delete_replaced(struct pass *p, struct qf_err *err)
{
    struct sg_changes_note note = { 0 };
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < p->files.count && rc == QF_OK; i++) {
        struct pass_file *file = &p->files.items[i], *by;

        if (file->replaced_by == SG_PLAN_NONE)
            continue;
        by = &p->files.items[file->replaced_by];
        if (!sg_plan_deletable(by->mtime_ms, p->now_ms, p->options->grace_ms)) {
            p->result.doomed++;
            continue;
        }
        rc = sg_pass_verify(p, by, err);
        if (rc == QF_OK && by->verified)
            rc = delete_file(p, file, &note, err);
    }
    if (rc == QF_OK && !p->options->dry_run)
        rc = sg_changes_note_put(&note, p->options->store, &p->call, err);
    sg_changes_note_done(&note);
    return rc;
}

/* --- all of it --- */

static qf_rc run(struct pass *p, struct qf_err *err)
{
    qf_rc rc = settle(p, err);

    if (rc == QF_OK)
        rc = merge_all(p, err);
    /* What time it is now: jobs may have taken long. */
    if (rc == QF_OK)
        rc = sg_store_clock(p->options->store, &p->call, &p->now_ms, err);
    if (rc == QF_OK)
        rc = delete_replaced(p, err);
    return rc == QF_OK ? sg_pass_annexes(p, err) : rc;
}

qf_rc sg_pass_run(const struct sg_pass_options *options, struct qf_str tenant,
                  struct sg_pass_result *ret_result, struct qf_err *err)
{
    struct pass p = { .options = options,
                      .agree = options->agree,
                      .tenant = tenant,
                      .call = { .cancel = options->cancel },
                      .arena = qf_arena_new(SIZE_MAX),
                      .names = qf_arena_new(SIZE_MAX) };
    struct qf_err own = { 0 };
    qf_rc rc = QF_OK;

    err = err ? err : &own;
    if (sg_store_is_ring(options->store)) {
        rc = sg_agree_of_ring(options->store, &p.own_agree, err);
        p.agree = p.own_agree;
    }
    if (rc == QF_OK)
        rc = run(&p, err);
    *ret_result = p.result;
    (void)sg_agree_free(p.own_agree);
    QF_VEC_DONE(&p.files);
    QF_VEC_DONE(&p.learnt);
    (void)qf_arena_free(p.arena);
    (void)qf_arena_free(p.names);
    return rc;
}
