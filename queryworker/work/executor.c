/* executor.c - run one leaf over its segments and write the artifact. */
#include "queryworker/work/executor.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "promql/leaf.h"

static qf_rc open_file(const struct qw_task_segment *segment, int *ret_fd, struct qf_err *err)
{
    qf_rc rc;

    if (segment->store) {
        rc = sg_store_open_file(segment->store, qf_str_from(segment->name), ret_fd, err);
        return rc ? qf_err_prefix(err, rc, "%s", segment->path) : QF_OK;
    }
    *ret_fd = open(segment->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret_fd >= 0)
        return QF_OK;
    return qf_err_set(err, errno == ENOENT ? QF_ENOTFOUND : QF_EIO, "%s: cannot open: %s",
                      segment->path, strerror(errno));
}

static qf_rc open_segment(struct qw_task_segment *segment, struct sg_hot *hot, struct qf_err *err)
{
    struct stat info;
    int fd = -1;
    qf_rc rc = open_file(segment, &fd, err);

    if (rc)
        return rc;
    /* A file of another size is not the one the query was planned over. */
    if (segment->size && fstat(fd, &info) == 0 && (uint64_t)info.st_size != segment->size) {
        (void)close(fd);
        return qf_err_set(err, QF_ECORRUPT, "segment %s has %lld bytes, not %llu", segment->label,
                          (long long)info.st_size, (unsigned long long)segment->size);
    }
    segment->reader = sg_reader_open_fd(fd, segment->label, err);
    if (!segment->reader)
        return err->rc ? err->rc : QF_EIO;
    sg_hot_join(hot, segment->reader);
    segment->opened = true;
    return QF_OK;
}

/* Its name says whose it is; so must the file. */
static qf_rc check_tenant(struct qw_task *task, const struct qw_task_segment *segment)
{
    if (qf_str_eq(sg_reader_meta(segment->reader)->name.tenant, task->tenant))
        return QF_OK;
    return qf_err_set(&task->err, QF_EDENIED, "segment %s is not of the work's tenant",
                      segment->label);
}

static qf_rc open_segments(struct qw_task *task, struct qf_arena *arena,
                           struct sg_reader ***ret_readers)
{
    struct sg_reader **readers = QF_ARENA_ARRAY(arena, struct sg_reader *, task->segment_count + 1);

    if (!readers)
        return qf_err_set(&task->err, QF_ELIMIT, "the work's memory limit of %llu bytes is reached",
                          (unsigned long long)task->limits.memory_bytes_max);
    for (size_t i = 0; i < task->segment_count; i++) {
        qf_rc rc = QF_OK;

        if (atomic_load_explicit(&task->cancel, memory_order_relaxed))
            return qf_err_set(&task->err, QF_ECANCELED, "canceled");
        if (!task->segments[i].reader)
            rc = open_segment(&task->segments[i], task->hot, &task->err);
        if (rc == QF_OK)
            rc = check_tenant(task, &task->segments[i]);
        if (rc) {
            qf_err_about(&task->err, i);
            return rc;
        }
        readers[i] = task->segments[i].reader;
    }
    *ret_readers = readers;
    return QF_OK;
}

static qf_rc scan(struct qw_task *task, struct qf_arena *arena, struct pq_leaf_result *ret_result)
{
    struct pq_leaf_limits limits = { .samples_max = task->limits.samples_max };
    struct sg_reader **readers;
    struct pq_source *source;
    struct pq_leaf *leaf;
    qf_rc rc = pq_leaf_decode(arena, task->spec, &leaf, &task->err);

    if (rc == QF_OK)
        rc = open_segments(task, arena, &readers);
    if (rc)
        return rc;
    source = sg_source_new(readers, task->segment_count, &leaf->select, &task->cancel,
                           task->limits.memory_bytes_max);
    if (leaf->stages[0].kind == PQ_STAGE_WINDOW && leaf->stages[0].take != PQ_TAKE_VALUE)
        sg_source_presence_only(source); /* as lists of series and labels ask */
    rc = pq_leaf_run(leaf, source, &limits, &task->cancel, arena, ret_result, &task->err);
    source->close(source);
    return rc;
}

/* Will it fit into memory? A guess is enough: what turns out too large is written again. */
static bool looks_small(const struct qw_task *task, const struct pq_leaf_result *result)
{
    size_t row = sizeof(double) * (2 + result->kind->column_count);

    return qw_spool_uses_memory(task->spool) && !result->rows.histograms &&
           result->rows.count < QW_MEMORY_ARTIFACT_MAX / row &&
           result->series_count < QW_MEMORY_ARTIFACT_MAX / 64;
}

static qf_rc check_size(struct qw_task *task)
{
    if (task->info.size_bytes <= task->limits.artifact_bytes_max)
        return QF_OK;
    return qf_err_set(&task->err, QF_ELIMIT,
                      "the artifact has %llu bytes, more than the limit of %llu",
                      (unsigned long long)task->info.size_bytes,
                      (unsigned long long)task->limits.artifact_bytes_max);
}

/* *ret_kept false: it was too large, or memory is full. */
static qf_rc keep_artifact(struct qw_task *task, const struct pq_leaf_result *result,
                           bool *ret_kept)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    qf_rc rc = sg_artifact_write_memory(result, &bytes, &task->info, &task->err);

    *ret_kept = false;
    if (rc == QF_OK)
        rc = check_size(task);
    if (rc == QF_OK)
        *ret_kept = qw_spool_keep(task->spool, &task->token, &bytes);
    return rc;
}

static qf_rc write_artifact(struct qw_task *task, const struct pq_leaf_result *result)
{
    QF_CLEANUP(qf_freep) char *path = NULL;
    qf_rc rc = QF_OK;

    if (atomic_load(&task->cancel))
        return qf_err_set(&task->err, QF_ECANCELED, "canceled");
    if (looks_small(task, result))
        rc = keep_artifact(task, result, &task->in_memory);
    if (rc || task->in_memory)
        return rc;
    path = qw_spool_temp_path(task->spool, &task->token);
    rc = sg_artifact_write_file(result, path, &task->cancel, &task->info, &task->err);
    if (rc == QF_OK)
        rc = check_size(task);
    if (rc == QF_OK)
        rc = qw_spool_publish(task->spool, &task->token, &task->err);
    if (rc)
        qw_spool_remove(task->spool, &task->token);
    return rc;
}

void qw_task_run(void *arg)
{
    struct qw_task *task = arg;
    struct qf_arena *arena = qf_arena_new(task->limits.memory_bytes_max);
    struct pq_leaf_result result = { 0 };
    bool sent;

    task->started_ns = qf_clock_mono_ns();
    task->rc = scan(task, arena, &result);
    task->scanned_ns = qf_clock_mono_ns();
    if (task->rc == QF_OK) {
        task->series_count = result.series_count;
        task->samples_read = result.samples_read;
        task->rc = write_artifact(task, &result);
    }
    task->ended_ns = qf_clock_mono_ns();
    (void)qf_arena_free(arena);
    sent = qf_mailbox_send(task->mailbox, task, -1);
    assert(sent); /* the coordinator outlives its tasks */
    (void)sent;
}

void qw_task_free(struct qw_task *task)
{
    if (!task)
        return;
    free(task->segments);
    free(task);
}
