/* build.c - a closed range to segment files: one per shard and window of time that has samples. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "ingest/head/head_int.h"
#include "ingest/head/select.h"

/* Segments written at the same time, each with a row group in memory. More windows than these, which
 * takes a sender of old samples, take more walks over the range. */
enum { OPEN_MAX = 16 };

struct open_file {
    struct sg_writer *writer;
    int64_t window;
    char *path;
};

struct shard_build {
    const struct in_build *build;
    uint32_t shard;
    struct in_selection selection;
    struct in_columns columns;
    struct open_file open[OPEN_MAX];
    size_t open_count;
    QF_VEC(int64_t) done; /* windows of earlier walks */
    bool left;            /* some window found no place in this walk */
};

static int64_t window_of(const struct shard_build *b, int64_t ts)
{
    int64_t length = b->build->head->options.window_ms;

    return ts / length - (ts % length < 0);
}

static bool is_done(const struct shard_build *b, int64_t window)
{
    for (size_t i = 0; i < b->done.count; i++)
        if (b->done.items[i] == window)
            return true;
    return false;
}

/* The file of @window; *ret_file stays NULL if it has its turn in another walk. */
static qf_rc file_of(struct shard_build *b, int64_t window, struct open_file **ret_file,
                     struct qf_err *err)
{
    struct sg_writer_options options = { .tenant = b->build->tenant,
                                         .shard = b->shard,
                                         .shard_count = b->build->head->options.shards,
                                         .generation = b->build->generation,
                                         .start_ts = b->selection.has & IN_HAS_STARTS,
                                         .histograms = b->selection.has & IN_HAS_HISTOGRAMS,
                                         .unsynced = true };
    struct open_file *file;

    *ret_file = NULL;
    for (size_t i = 0; i < b->open_count && !*ret_file; i++)
        if (b->open[i].window == window)
            *ret_file = &b->open[i];
    if (*ret_file || is_done(b, window))
        return QF_OK;
    if (b->open_count == OPEN_MAX) {
        b->left = true;
        return QF_OK;
    }
    file = &b->open[b->open_count];
    *file = (struct open_file){ .window = window,
                                .path = in_head_new_path(b->build->head, ".parquet") };
    options.path = file->path;
    file->writer = sg_writer_new(&options, err);
    if (!file->writer) {
        free(file->path);
        return err->rc;
    }
    b->open_count++;
    *ret_file = file;
    return QF_OK;
}

/* The samples of a series, window by window. */
static qf_rc add_series(struct shard_build *b, struct qf_labels labels, struct qf_err *err)
{
    size_t count = b->columns.ts.count, end;
    qf_rc rc = QF_OK;

    for (size_t at = 0; at < count && rc == QF_OK; at = end) {
        int64_t window = window_of(b, b->columns.ts.items[at]);
        struct open_file *file;

        for (end = at + 1; end < count && window_of(b, b->columns.ts.items[end]) == window;)
            end++;
        rc = file_of(b, window, &file, err);
        if (rc == QF_OK && file) {
            struct sg_samples samples = in_columns_samples(&b->columns, at, end - at);

            rc = sg_writer_add_samples(file->writer, labels, &samples, err);
        }
    }
    return rc;
}

static qf_rc walk(struct shard_build *b, struct qf_err *err)
{
    const struct in_cut all = { UINT64_MAX, INT64_MIN, INT64_MAX };
    size_t next;
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < b->selection.series.count && rc == QF_OK; i = next) {
        in_columns_read(&b->columns, &b->selection, i, &all, &next);
        rc = add_series(b, in_columns_labels(&b->columns, &b->selection, i), err);
    }
    return rc;
}

static qf_rc finish_file(struct shard_build *b, struct open_file *file, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;
    struct in_files *files = b->build->files;
    struct sg_segment_name parts;
    struct stat status;
    qf_rc rc = sg_writer_finish(file->writer, &parts, err);

    if (rc != QF_OK)
        return rc;
    if (stat(file->path, &status) != 0)
        return qf_err_set(err, QF_EIO, "%s: %s", file->path, strerror(errno));
    sg_segment_name_print(&name, &parts);
    QF_VEC_PUSH(&files->items, (struct in_head_file){ .path = QF_TAKE(file->path),
                                                      .name = qf_strbuf_take(&name),
                                                      .size = (uint64_t)status.st_size,
                                                      .shard = b->shard });
    files->bytes += (uint64_t)status.st_size;
    QF_VEC_PUSH(&b->done, file->window);
    return QF_OK;
}

/* All that are open are finished, or removed after an error. */
static qf_rc close_files(struct shard_build *b, qf_rc rc, struct qf_err *err)
{
    for (size_t i = 0; i < b->open_count; i++) {
        if (rc == QF_OK)
            rc = finish_file(b, &b->open[i], err);
        (void)sg_writer_free(b->open[i].writer);
        free(b->open[i].path);
    }
    b->open_count = 0;
    return rc;
}

static qf_rc build_shard(const struct in_build *build, uint32_t shard, struct qf_err *err)
{
    struct shard_build b = { .build = build, .shard = shard };
    const struct in_select select = { .shard = shard,
                                      .shards = build->head->options.shards,
                                      .memory_bytes = UINT64_MAX };
    qf_rc rc = in_selection_make(&b.selection, build->memory, &select, err);

    do {
        b.left = false;
        if (rc == QF_OK)
            rc = walk(&b, err);
        rc = close_files(&b, rc, err);
    } while (rc == QF_OK && b.left);
    in_selection_done(&b.selection);
    in_columns_done(&b.columns);
    QF_VEC_DONE(&b.done);
    return rc;
}

qf_rc in_build_files(const struct in_build *build, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    for (uint32_t shard = 0; shard < build->head->options.shards && rc == QF_OK; shard++)
        rc = build_shard(build, shard, err);
    return rc == QF_OK ? in_build_annexes(build, err) : rc;
}
