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
#include "statemap/info/source.h"

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
    /* A file of another size is not the one the query was planned over: in the store it was replaced
     * since, and the query is planned anew; a copy of ours is spoilt. */
    if (segment->size && fstat(fd, &info) == 0 && (uint64_t)info.st_size != segment->size) {
        (void)close(fd);
        return qf_err_set(err, segment->store ? QF_ENOTFOUND : QF_ECORRUPT,
                          "segment %s has %lld bytes, not %llu", segment->label,
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

/* What a scan has at hand. */
struct scan {
    struct qw_task *task;
    struct qf_arena *arena;
    struct sg_reader **readers;
    struct sm_info_map *maps;
};

/* What a work says of a map, as it is read. A kind that is not known is of a later release. */
static qf_rc read_map(const struct qw_task *task, struct qf_arena *arena, size_t index,
                      struct sm_info_map *ret_map, struct qf_err *err)
{
    const struct pb_map *map = &task->maps.inputs[index];

    *ret_map = (struct sm_info_map){ .file = task->map_files[index],
                                     .name = qf_arena_cstr(arena, map->name),
                                     .layout = { .direct = map->short_keys },
                                     .metric = qf_arena_cstr(arena, map->metric),
                                     .interval_ms = map->interval_ms,
                                     .version = map->version };
    if (!sm_kind_parse(map->kind, &ret_map->layout.kind) || !sm_kind_keyed(ret_map->layout.kind))
        return qf_err_set(err, QF_EINVAL, "state map %.*s: a %.*s map cannot be read as series",
                          QF_STR_ARG(map->name), QF_STR_ARG(map->kind));
    if (!ret_map->name || !ret_map->metric)
        return qf_err_set(err, QF_ELIMIT, "the work's memory limit of %llu bytes is reached",
                          (unsigned long long)task->limits.memory_bytes_max);
    return QF_OK;
}

static qf_rc read_maps(struct scan *scan)
{
    struct qw_task *task = scan->task;
    qf_rc rc = QF_OK;

    scan->maps = QF_ARENA_ARRAY(scan->arena, struct sm_info_map, task->maps.count + 1);
    if (!scan->maps)
        return qf_err_set(&task->err, QF_ELIMIT, "the work's memory limit of %llu bytes is reached",
                          (unsigned long long)task->limits.memory_bytes_max);
    for (size_t i = 0; i < task->maps.count && rc == QF_OK; i++)
        rc = read_map(task, scan->arena, i, &scan->maps[i], &task->err);
    return rc;
}

/* Only what is asked of a series matters: as lists of series and labels ask. */
static bool wants_presence(const struct pq_leaf *leaf)
{
    return leaf->stages[0].kind == PQ_STAGE_WINDOW && leaf->stages[0].take != PQ_TAKE_VALUE;
}

/* @segments, and the info series of the maps beside them. */
static struct pq_source *beside_maps(const struct scan *scan, const struct pq_leaf *leaf,
                                     struct pq_source *segments)
{
    struct qw_task *task = scan->task;
    struct sm_info_options options = { .maps = scan->maps,
                                       .count = task->maps.count,
                                       .select = &leaf->select,
                                       .shard = task->maps.shard,
                                       .shard_count = task->maps.shard_count,
                                       .memory_max = task->limits.memory_bytes_max,
                                       .presence = wants_presence(leaf),
                                       .cancel = &task->cancel,
                                       .about = task->segment_count };

    return task->maps.count ? pq_source_both(segments, sm_info_source_new(&options)) : segments;
}

static qf_rc run_leaf(const struct scan *scan, const struct pq_leaf *leaf, bool points_by_step,
                      struct pq_leaf_result *ret_result)
{
    struct qw_task *task = scan->task;
    struct pq_leaf_limits limits = { .samples_max = task->limits.samples_max,
                                     .points_by_step = points_by_step };
    struct pq_source *source = sg_source_new(scan->readers, task->segment_count, &leaf->select,
                                             &task->cancel, task->limits.memory_bytes_max);
    qf_rc rc;

    if (wants_presence(leaf))
        sg_source_presence_only(source);
    source = beside_maps(scan, leaf, source);
    rc = pq_leaf_run(leaf, source, &limits, &task->cancel, scan->arena, ret_result, &task->err);
    source->close(source);
    return rc;
}

/* The first @skip steps from @kept, the others from the segments. *ret_joined false: there are native
 * histograms among them, which are not joined. */
static qf_rc run_rest(const struct scan *scan, const struct pq_leaf *leaf,
                      const struct qw_kept *kept, uint64_t skip, struct pq_leaf_result *ret_result,
                      bool *ret_joined)
{
    struct qw_task *task = scan->task;
    struct pq_leaf_result fresh = { .kind = leaf->kind };
    struct pq_leaf *rest;
    qf_rc rc = QF_OK;

    if (skip < pq_leaf_grid(leaf)->count) {
        rc = pq_leaf_rest(scan->arena, leaf, skip, &rest, &task->err);
        if (rc == QF_OK)
            rc = run_leaf(scan, rest, true, &fresh);
    }
    *ret_joined = rc == QF_OK && !fresh.rows.histograms;
    if (!*ret_joined)
        return rc;
    return pq_past_join(scan->arena, leaf, kept->past, skip, &fresh, task->limits.samples_max,
                        ret_result, &task->err);
}

static struct qw_result_input *inputs_of(const struct scan *scan)
{
    size_t count = scan->task->segment_count;
    struct qw_result_input *inputs = qf_xcalloc(count + 1, sizeof(*inputs));

    for (size_t i = 0; i < count; i++)
        inputs[i] = (struct qw_result_input){ sg_reader_meta(scan->readers[i])->name,
                                              scan->task->segments[i].head };
    return inputs;
}

/* Whose leaf it is, what limits it may run into, and the leaf but for its start and end. */
static void put_key(const struct qw_task *task, const struct pq_leaf *leaf, struct qf_strbuf *key)
{
    qf_strbuf_printf(key, "%.*s %llu ", QF_STR_ARG(task->tenant),
                     (unsigned long long)task->limits.samples_max);
    for (size_t i = 0; i < task->segment_count; i++)
        if (!task->segments[i].head) { /* of one shard, as a rule */
            qf_strbuf_printf(key, "%u ", sg_reader_meta(task->segments[i].reader)->name.shard);
            break;
        }
    for (size_t i = 0; i < task->maps.count; i++) { /* of one version they say the same for ever */
        const struct pb_map *map = &task->maps.inputs[i];

        qf_strbuf_printf(key, "%.*s %llu %llu %.*s %lld of %u/%u ", QF_STR_ARG(map->name),
                         (unsigned long long)map->created, (unsigned long long)map->version,
                         QF_STR_ARG(map->metric), (long long)map->interval_ms, task->maps.shard,
                         task->maps.shard_count);
    }
    pq_leaf_reuse_key(leaf, key);
}

/* As run_leaf, with what is known of an earlier time. */
static qf_rc run_again(const struct scan *scan, const struct pq_leaf *leaf,
                       struct pq_leaf_result *ret_result)
{
    struct qw_task *task = scan->task;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf key = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) struct qw_result_input *inputs = inputs_of(scan);
    struct pq_past *past = NULL;
    bool again, joined = false;
    uint64_t skip = 0;
    qf_rc rc = QF_OK;

    put_key(task, leaf, &key);
    task->kept = qw_results_use(task->results, qf_strbuf_view(&key), &again);
    if (task->kept)
        skip = qw_kept_steps(task->kept, leaf, inputs, task->segment_count);
    if (skip)
        rc = run_rest(scan, leaf, task->kept, skip, ret_result, &joined);
    if (rc == QF_OK && !joined)
        rc = run_leaf(scan, leaf, again, ret_result);
    if (rc == QF_OK && again)
        past = pq_past_new(leaf, ret_result, qw_results_one_max(task->results));
    if (past)
        qw_results_keep(task->results, qf_strbuf_view(&key), past, inputs, task->segment_count);
    return rc;
}

/* Fewer steps than these are not worth keeping. */
#define STEPS_MIN 8

static qf_rc scan(struct qw_task *task, struct qf_arena *arena, struct pq_leaf_result *ret_result)
{
    struct scan scan = { .task = task, .arena = arena };
    struct pq_leaf *leaf;
    qf_rc rc = pq_leaf_decode(arena, task->spec, &leaf, &task->err);

    if (rc == QF_OK)
        rc = open_segments(task, arena, &scan.readers);
    if (rc == QF_OK)
        rc = read_maps(&scan);
    if (rc)
        return rc;
    if (task->results && pq_leaf_reusable(leaf) && pq_leaf_grid(leaf)->count >= STEPS_MIN)
        return run_again(&scan, leaf, ret_result);
    return run_leaf(&scan, leaf, false, ret_result);
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
    if (task->kept) /* the result borrowed from it until now */
        qw_results_let_go(task->results, task->kept);
    sent = qf_mailbox_send(task->mailbox, task, -1);
    assert(sent); /* the coordinator outlives its tasks */
    (void)sent;
}

void qw_task_free(struct qw_task *task)
{
    if (!task)
        return;
    free(task->segments);
    free(task->map_files);
    free(task);
}
