/* batch.c - samples in any order to segments: collect, spill, merge, publish. */
#include "segments/write/batch.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "promql/histogram/codec.h"
#include "segments/parquet/segment.h"
#include "segments/write/collect.h"
#include "segments/write/publish.h"
#include "segments/write/runs.h"
#include "segments/write/sweep.h"

/* Places in a run are counted in 32 bits. */
#define SAMPLES_MAX (UINT32_C(1) << 31)
/* How often commit tells of its progress. */
#define SAMPLES_PER_TURN 65536

struct sg_batch {
    struct sg_batch_options options;
    char *tenant;
    char *dir;  /* temporary; holds runs and the segment being written */
    int dir_fd; /* holds its lock */
    struct collect collect;
    struct needs needs;
    struct runs runs;
    struct qf_strbuf histogram; /* the one being added, encoded */
    void (*on_spill)(void *ctx);
    void *spill_ctx;
    bool committed;
    struct qf_err failed; /* what every further call answers */
    uint64_t told;        /* merged samples of which progress was told */
    struct sg_batch_summary summary;
};

static bool options_valid(const struct sg_batch_options *options)
{
    return qf_tenant_valid(options->tenant) && sg_shard_count_valid(options->shard_count) &&
           options->window_ms > 0 && options->memory_bytes >= SG_BATCH_MEMORY_MIN &&
           options->reserved_bytes <= options->memory_bytes / 2;
}

struct sg_batch *sg_batch_new(const struct sg_batch_options *options, struct qf_err *err)
{
    struct sg_batch *batch;
    char *dir;
    int dir_fd;

    if (!options_valid(options)) {
        (void)qf_err_set(err, QF_EINVAL,
                         "segments need a valid tenant, a power of two up to %u as number of "
                         "shards, a window and at least %llu bytes of memory",
                         SG_SHARDS_MAX, (unsigned long long)SG_BATCH_MEMORY_MIN);
        return NULL;
    }
    dir = sg_sweep_make_folder(options->temp_dir, &dir_fd, err);
    if (!dir)
        return NULL;
    batch = qf_xcalloc(1, sizeof(*batch));
    batch->options = *options;
    batch->tenant = qf_xmemdup0(options->tenant.data, options->tenant.len);
    batch->options.tenant.data = batch->tenant;
    batch->dir = dir;
    batch->dir_fd = dir_fd;
    batch->runs.dir = dir;
    batch->runs.cancel = options->cancel;
    batch->summary.min_ts = INT64_MAX;
    batch->summary.max_ts = INT64_MIN;
    collect_init(&batch->collect, options->shard_count, options->window_ms);
    needs_init(&batch->needs);
    return batch;
}

struct sg_batch *sg_batch_free(struct sg_batch *batch)
{
    if (!batch)
        return NULL;
    runs_done(&batch->runs);
    collect_done(&batch->collect);
    needs_done(&batch->needs);
    qf_strbuf_done(&batch->histogram);
    (void)rmdir(batch->dir);
    (void)close(batch->dir_fd);
    free(batch->dir);
    free(batch->tenant);
    free(batch);
    return NULL;
}

/* The error of an earlier call, or of one that comes too late. */
static qf_rc check_usable(const struct sg_batch *batch, struct qf_err *err)
{
    if (batch->failed.rc)
        return qf_err_set(err, batch->failed.rc, "%s", batch->failed.msg);
    if (batch->committed)
        return qf_err_set(err, QF_EINVAL, "the batch is committed already");
    if (batch->options.cancel && atomic_load_explicit(batch->options.cancel, memory_order_relaxed))
        return qf_err_set(err, QF_ECANCELED, "canceled");
    return QF_OK;
}

/* Remember the error in batch->failed and hand it to the caller. */
static qf_rc fail(struct sg_batch *batch, qf_rc rc, struct qf_err *err)
{
    if (rc == QF_OK)
        return QF_OK;
    if (batch->failed.rc == QF_OK)
        batch->failed.rc = rc;
    return qf_err_set(err, batch->failed.rc, "%s", batch->failed.msg);
}

/* --- adding --- */

static size_t fan_in(const struct sg_batch *batch)
{
    /* The other half is the segment being written. */
    return runs_fan_in(batch->options.memory_bytes / 2, batch->collect.labels_bytes_max);
}

/* Errors go to batch->failed. */
static qf_rc spill(struct sg_batch *batch)
{
    qf_rc rc;

    if (batch->collect.sample_ts.count == 0)
        return QF_OK;
    if (batch->on_spill)
        batch->on_spill(batch->spill_ctx);
    batch->collect.held_bytes = 0;
    batch->summary.runs++;
    rc = collect_spill(&batch->collect, runs_add(&batch->runs), &batch->needs, &batch->failed);
    return rc == QF_OK ? runs_settle(&batch->runs, fan_in(batch), &batch->failed) : rc;
}

static bool full(const struct sg_batch *batch)
{
    return collect_memory(&batch->collect) + batch->options.reserved_bytes >
               batch->options.memory_bytes ||
           batch->collect.sample_ts.count >= SAMPLES_MAX;
}

static void keep(struct sg_batch *batch, uint32_t series, const struct sg_sample *sample)
{
    struct sg_batch_summary *s = &batch->summary;
    struct collect_sample kept = { .ts = sample->ts, .start_ts = sample->start_ts };

    qf_strbuf_reset(&batch->histogram);
    if (sample->histogram)
        pq_histogram_encode(&batch->histogram, sample->histogram);
    else
        kept.value = sample->value;
    kept.histogram = qf_strbuf_view(&batch->histogram);
    collect_add(&batch->collect, series, &kept);
    s->samples++;
    s->min_ts = QF_MIN(s->min_ts, sample->ts);
    s->max_ts = QF_MAX(s->max_ts, sample->ts);
}

uint32_t sg_batch_series(struct sg_batch *batch, struct qf_labels labels)
{
    return collect_series(&batch->collect, labels);
}

qf_rc sg_batch_add_one(struct sg_batch *batch, uint32_t series, const struct sg_sample *sample,
                       struct qf_err *err)
{
    qf_rc rc = check_usable(batch, err);

    if (rc != QF_OK)
        return rc;
    keep(batch, series, sample);
    return full(batch) ? fail(batch, spill(batch), err) : QF_OK;
}

qf_rc sg_batch_add(struct sg_batch *batch, struct qf_labels labels, const struct sg_sample *samples,
                   size_t count, struct qf_err *err)
{
    uint64_t runs = batch->summary.runs;
    uint32_t series = 0;
    qf_rc rc = check_usable(batch, err);

    for (size_t i = 0; i < count && rc == QF_OK; i++) {
        if (i == 0 || batch->summary.runs != runs)
            series = sg_batch_series(batch, labels);
        runs = batch->summary.runs;
        rc = sg_batch_add_one(batch, series, &samples[i], err);
    }
    return rc;
}

void sg_batch_on_spill(struct sg_batch *batch, void (*fn)(void *ctx), void *ctx)
{
    batch->on_spill = fn;
    batch->spill_ctx = ctx;
}

void sg_batch_hold(struct sg_batch *batch, uint64_t bytes)
{
    batch->collect.held_bytes = bytes;
}

/* --- committing --- */

static void tell(const struct sg_batch *batch)
{
    if (batch->options.on_progress)
        batch->options.on_progress(batch->options.ctx, &batch->summary);
}

static void on_segment(void *ctx, const struct publish_result *result)
{
    struct sg_batch *batch = ctx;
    struct sg_batch_summary *s = &batch->summary;

    s->segments = result->segments;
    s->segments_present = result->segments_present;
    s->bytes = result->bytes;
    s->series = result->series;
    s->stored_samples = result->samples;
    tell(batch);
}

struct committing {
    struct sg_batch *batch;
    struct publish *publish;
};

static qf_rc publish_merged(void *ctx, const struct run_record *record, struct qf_err *err)
{
    const struct committing *c = ctx;
    struct sg_batch *batch = c->batch;

    batch->summary.merged_samples += record->count;
    if (batch->summary.merged_samples - batch->told >= SAMPLES_PER_TURN) {
        batch->told = batch->summary.merged_samples;
        tell(batch);
    }
    return publish_record(c->publish, record, err);
}

static qf_rc publish_all(struct sg_batch *batch)
{
    struct publish *publish = publish_new(&(struct publish_options){ .batch = &batch->options,
                                                                     .needs = &batch->needs,
                                                                     .dir = batch->dir,
                                                                     .on_segment = on_segment,
                                                                     .ctx = batch });
    qf_rc rc = runs_merge_all(&batch->runs, fan_in(batch), publish_merged,
                              &(struct committing){ batch, publish }, &batch->failed);

    if (rc == QF_OK)
        rc = publish_finish(publish, &batch->failed);
    if (rc != QF_OK) {
        size_t left = publish_roll_back(publish);

        batch->summary.segments_left = left;
        if (left)
            (void)qf_err_prefix(&batch->failed, rc, "%zu segments could not be taken back", left);
    }
    (void)publish_free(publish);
    return rc;
}

qf_rc sg_batch_commit(struct sg_batch *batch, struct qf_err *err)
{
    qf_rc rc = check_usable(batch, err);

    if (rc != QF_OK)
        return rc;
    rc = spill(batch);
    if (rc == QF_OK)
        rc = publish_all(batch);
    batch->committed = rc == QF_OK;
    return fail(batch, rc, err);
}

struct sg_batch_summary sg_batch_summary(const struct sg_batch *batch)
{
    return batch->summary;
}
