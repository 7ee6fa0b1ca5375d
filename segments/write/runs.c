/* runs.c - the runs of a batch: kept few by merging them, level by level. */
#include "segments/write/runs.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/pure/strbuf.h"

/* Runs merged at once: each costs a descriptor and MERGE_RUN_BYTES. */
#define FAN_IN_MAX 128

/* Remove the newest @count runs. */
static void drop_newest(struct runs *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct runs_item *run = &runs->items.items[--runs->items.count];

        (void)unlink(run->path);
        free(run->path);
    }
}

void runs_done(struct runs *runs)
{
    drop_newest(runs, runs->items.count);
    QF_VEC_DONE(&runs->items);
}

static char *new_path(struct runs *runs)
{
    struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_printf(&path, "%s/run-%zu", runs->dir, runs->number++);
    return qf_strbuf_take(&path);
}

const char *runs_add(struct runs *runs)
{
    struct runs_item run = { .path = new_path(runs) };

    QF_VEC_PUSH(&runs->items, run);
    return run.path;
}

size_t runs_fan_in(uint64_t memory_bytes, size_t labels_bytes_max)
{
    uint64_t fit = memory_bytes / (MERGE_RUN_BYTES + 4 * (uint64_t)labels_bytes_max);

    if (fit > FAN_IN_MAX)
        return FAN_IN_MAX;
    return fit < 2 ? 2 : (size_t)fit;
}

static qf_rc merge_newest(const struct runs *runs, size_t count, merge_fn *fn, void *ctx,
                          struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char **paths = qf_xcalloc(count + 1, sizeof(*paths));

    for (size_t i = 0; i < count; i++)
        paths[i] = runs->items.items[runs->items.count - count + i].path;
    return merge_runs(paths, count, runs->cancel, fn, ctx, err);
}

static qf_rc add_record(void *ctx, const struct run_record *record, struct qf_err *err)
{
    return run_writer_add(ctx, record, err);
}

/* Make the newest @count runs one, which is then the newest. */
static qf_rc make_one(struct runs *runs, size_t count, struct qf_err *err)
{
    struct runs_item run = { .path = new_path(runs),
                             .level = runs->items.items[runs->items.count - count].level + 1 };
    struct run_writer *writer = run_writer_new(run.path, err);
    qf_rc rc = writer ? merge_newest(runs, count, add_record, writer, err) : QF_EIO;

    if (rc == QF_OK)
        rc = run_writer_finish(writer, err);
    (void)run_writer_free(writer);
    if (rc == QF_OK)
        drop_newest(runs, count);
    QF_VEC_PUSH(&runs->items, run); /* in any case: it is on disk */
    return rc;
}

qf_rc runs_settle(struct runs *runs, size_t fan_in, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    while (rc == QF_OK && runs->items.count >= fan_in) {
        const struct runs_item *newest = &runs->items.items[runs->items.count - 1];

        if (newest[1 - (ptrdiff_t)fan_in].level != newest->level)
            break;
        rc = make_one(runs, fan_in, err);
    }
    return rc;
}

qf_rc runs_merge_all(struct runs *runs, size_t fan_in, merge_fn *fn, void *ctx, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    while (rc == QF_OK && runs->items.count > fan_in)
        rc = make_one(runs, fan_in, err);
    return rc == QF_OK ? merge_newest(runs, runs->items.count, fn, ctx, err) : rc;
}
