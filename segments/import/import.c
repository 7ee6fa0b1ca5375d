/* import.c - from text to segments: read, collect, spill, merge, put. */
#include "segments/import/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "segments/import/collect.h"
#include "segments/import/histogram_text.h"
#include "segments/import/input.h"
#include "segments/import/merge.h"
#include "segments/import/publish.h"
#include "segments/import/sweep.h"
#include "segments/import/text.h"
#include "segments/parquet/histogram_codec.h"
#include "segments/parquet/segment.h"

/* Runs merged at once: each costs a descriptor and MERGE_RUN_BYTES. */
#define RUNS_MAX 128
/* What reading takes beside the samples: buffers of input.c, a line, its series twice. */
#define READING_BYTES (UINT64_C(6) << 20)
/* Places in a run are counted in 32 bits. */
#define SAMPLES_MAX (UINT32_C(1) << 31)
/* How often progress is told and the cancel flag looked at. */
#define LINES_PER_TURN 8192
#define SAMPLES_PER_TURN 65536

struct run {
    char *path;
    unsigned level; /* how many times its samples were merged */
};

struct import {
    struct import_options options;
    char *tenant;
    char *dir;  /* temporary; holds runs and the segment being written */
    int dir_fd; /* holds its lock */
    struct collect collect;
    struct needs needs;
    QF_VEC(struct run) runs; /* oldest first; levels never grow towards the end */
    size_t run_number;
    uint64_t bytes_before;  /* of inputs that are done */
    uint64_t written, told; /* samples handed to segments; those that progress was told of */
    struct import_summary summary;
};

struct import *import_new(const struct import_options *options, struct qf_err *err)
{
    struct import *import;
    char *dir;
    int dir_fd;

    if (!qf_tenant_valid(options->tenant) || !seg_shard_count_valid(options->shard_count) ||
        options->window_ms <= 0 || options->memory_bytes < IMPORT_MEMORY_MIN) {
        (void)qf_err_set(err, QF_EINVAL,
                         "import needs a valid tenant, a power of two up to %u as number of "
                         "shards, a window and at least %llu bytes of memory",
                         SEGMENT_SHARDS_MAX, (unsigned long long)IMPORT_MEMORY_MIN);
        return NULL;
    }
    dir = sweep_make_folder(options->temp_dir, &dir_fd, err);
    if (!dir)
        return NULL;
    import = qf_xcalloc(1, sizeof(*import));
    import->options = *options;
    import->tenant = qf_xmemdup0(options->tenant.data, options->tenant.len);
    import->options.tenant.data = import->tenant;
    import->dir = dir;
    import->dir_fd = dir_fd;
    import->summary.min_ts = INT64_MAX;
    import->summary.max_ts = INT64_MIN;
    collect_init(&import->collect, options->shard_count, options->window_ms);
    needs_init(&import->needs);
    return import;
}

/* Remove the newest @count runs. */
static void drop_runs(struct import *import, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct run *run = &import->runs.items[--import->runs.count];

        (void)unlink(run->path);
        free(run->path);
    }
}

struct import *import_free(struct import *import)
{
    if (!import)
        return NULL;
    drop_runs(import, import->runs.count);
    QF_VEC_DONE(&import->runs);
    collect_done(&import->collect);
    needs_done(&import->needs);
    (void)rmdir(import->dir);
    (void)close(import->dir_fd);
    free(import->dir);
    free(import->tenant);
    free(import);
    return NULL;
}

static char *new_path(struct import *import)
{
    struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_printf(&path, "%s/run-%zu", import->dir, import->run_number++);
    return qf_strbuf_take(&path);
}

static qf_rc add_record(void *ctx, const struct run_record *record, struct qf_err *err)
{
    return run_writer_add(ctx, record, err);
}

/* How many runs fit into half of the memory; the other half is the segment being written. */
static size_t fan_in(const struct import *import)
{
    uint64_t labels = 4 * (uint64_t)import->collect.labels_bytes_max;
    uint64_t fit = import->options.memory_bytes / 2 / (MERGE_RUN_BYTES + labels);

    if (fit > RUNS_MAX)
        return RUNS_MAX;
    return fit < 2 ? 2 : (size_t)fit;
}

static qf_rc merge_newest_runs(struct import *import, size_t count, merge_fn *fn, void *ctx,
                               struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char **paths = qf_xcalloc(count + 1, sizeof(*paths));

    for (size_t i = 0; i < count; i++)
        paths[i] = import->runs.items[import->runs.count - count + i].path;
    return merge_runs(paths, count, import->options.cancel, fn, ctx, err);
}

/* Make the newest @count runs one, which is then the newest. */
static qf_rc make_one_run(struct import *import, size_t count, struct qf_err *err)
{
    struct run run = { .path = new_path(import),
                       .level = import->runs.items[import->runs.count - count].level + 1 };
    struct run_writer *writer = run_writer_new(run.path, err);
    qf_rc rc = writer ? merge_newest_runs(import, count, add_record, writer, err) : QF_EIO;

    if (rc == QF_OK)
        rc = run_writer_finish(writer, err);
    (void)run_writer_free(writer);
    if (rc == QF_OK)
        drop_runs(import, count);
    QF_VEC_PUSH(&import->runs, run); /* in any case: it is on disk */
    return rc;
}

/* As many runs of a level as can be merged at once become one of the next: so a sample is written
 * again only as often as the number of runs has digits. */
static qf_rc merge_full_levels(struct import *import, struct qf_err *err)
{
    size_t many = fan_in(import);
    qf_rc rc = QF_OK;

    while (rc == QF_OK && import->runs.count >= many) {
        const struct run *newest = &import->runs.items[import->runs.count - 1];

        if (newest[1 - (ptrdiff_t)many].level != newest->level)
            break;
        rc = make_one_run(import, many, err);
    }
    return rc;
}

static qf_rc spill(struct import *import, struct qf_err *err)
{
    struct run run = { 0 };
    qf_rc rc;

    if (import->collect.sample_ts.count == 0)
        return QF_OK;
    run.path = new_path(import);
    QF_VEC_PUSH(&import->runs, run);
    import->summary.runs++;
    rc = collect_spill(&import->collect, run.path, &import->needs, err);
    return rc == QF_OK ? merge_full_levels(import, err) : rc;
}

/* Called after each sample. *ret_spilled: the numbers of series are void. */
static qf_rc spill_if_full(struct import *import, bool *ret_spilled, struct qf_err *err)
{
    *ret_spilled =
        collect_memory(&import->collect) + READING_BYTES > import->options.memory_bytes ||
        import->collect.sample_ts.count >= SAMPLES_MAX;
    return *ret_spilled ? spill(import, err) : QF_OK;
}

static void tell(struct import *import, const char *phase, const struct input *input)
{
    struct import_progress progress = {
        .phase = phase,
        .bytes_done = import->bytes_before + (input ? input_bytes_done(input) : 0),
        .bytes_total = input ? input_bytes_total(input) : 0,
        .lines = import->summary.lines,
        .samples = import->summary.samples,
        .malformed = import->summary.malformed,
        .samples_written = import->written,
        .segments = import->summary.segments + import->summary.segments_present,
    };

    if (progress.bytes_total)
        progress.bytes_total += import->bytes_before;
    if (import->options.on_progress)
        import->options.on_progress(import->options.ctx, &progress);
}

static bool canceled(const struct import *import)
{
    return import->options.cancel &&
           atomic_load_explicit(import->options.cancel, memory_order_relaxed);
}

static void note_sample(struct import *import, uint32_t series, const struct collect_sample *sample)
{
    collect_add(&import->collect, series, sample);
    import->summary.samples++;
    import->summary.min_ts = QF_MIN(import->summary.min_ts, sample->ts);
    import->summary.max_ts = QF_MAX(import->summary.max_ts, sample->ts);
}

/* The number of a sample's series; labels are taken apart only when its text is new. */
static const char *find_series(struct import *import, const struct text_state *state,
                               const struct text_sample *sample, struct qf_strbuf *key,
                               struct qf_arena *scratch, uint32_t *ret_series)
{
    struct collect *c = &import->collect;
    struct qf_labels labels;
    const char *what;
    uint64_t *found;

    qf_strbuf_reset(key);
    qf_strbuf_putc(key, sample->normalize);
    qf_strbuf_putc(key, (char)('0' + state->format));
    qf_strbuf_str(key, sample->series);
    found = qf_map_get(&c->by_text, qf_strbuf_view(key));
    if (found) {
        *ret_series = (uint32_t)*found;
        return NULL;
    }
    qf_arena_reset(scratch);
    what = text_labels(state, sample, scratch, &labels);
    if (what)
        return what;
    *ret_series = collect_series(c, labels);
    (void)qf_map_put(&c->by_text, qf_arena_str(c->arena, qf_strbuf_view(key)), *ret_series, NULL);
    return NULL;
}

struct reading {
    struct import *import;
    const char *name;
    struct input *input;
    struct text_state state;
    uint64_t line;
    struct qf_strbuf key, histogram;
    struct qf_arena *scratch;
};

static qf_rc malformed(struct reading *r, const char *what, struct qf_err *err)
{
    struct import *import = r->import;

    import->summary.malformed++;
    if (import->options.on_malformed && import->options.skip_malformed)
        import->options.on_malformed(import->options.ctx, r->name, r->line, what);
    if (import->options.skip_malformed)
        return QF_OK;
    return qf_err_set(err, QF_EPARSE, "%s:%llu: %s", r->name, (unsigned long long)r->line, what);
}

/* The histogram of a sample, encoded into r->histogram; empty if it is a float. */
static const char *read_histogram(struct reading *r, const struct text_sample *sample)
{
    const struct pq_histogram *histogram;
    const char *what;

    qf_strbuf_reset(&r->histogram);
    if (!sample->histogram.len)
        return NULL;
    qf_arena_reset(r->scratch);
    what = histogram_text_parse(sample->histogram, r->scratch, &histogram);
    if (!what)
        histogram_encode(&r->histogram, histogram);
    return what;
}

static qf_rc read_line(struct reading *r, struct qf_str line, struct qf_err *err)
{
    struct text_sample sample;
    const char *what;
    uint32_t series;

    switch (text_parse_line(&r->state, line, &sample, &what)) {
    case TEXT_NOTHING:
        return QF_OK;
    case TEXT_MALFORMED:
        return malformed(r, what, err);
    case TEXT_SAMPLE:
        break;
    }
    what = find_series(r->import, &r->state, &sample, &r->key, r->scratch, &series);
    if (!what)
        what = read_histogram(r, &sample);
    if (what)
        return malformed(r, what, err);
    note_sample(r->import, series,
                &(struct collect_sample){ .ts = sample.ts,
                                          .start_ts = sample.start_ts,
                                          .value = sample.value,
                                          .histogram = qf_strbuf_view(&r->histogram) });
    return QF_OK;
}

static qf_rc read_lines(struct reading *r, struct qf_err *err)
{
    struct import *import = r->import;

    for (;;) {
        struct qf_str line;
        bool cut, more, spilled;
        qf_rc rc = input_line(r->input, IMPORT_LINE_MAX, &line, &cut, &more, err);

        if (rc != QF_OK || !more)
            return rc;
        r->line++;
        import->summary.lines++;
        rc = cut ? malformed(r, "the line is too long", err) : read_line(r, line, err);
        if (rc == QF_OK)
            rc = spill_if_full(import, &spilled, err);
        if (rc != QF_OK)
            return rc;
        if (r->line % LINES_PER_TURN == 0) {
            tell(import, "reading", r->input);
            if (canceled(import))
                return qf_err_set(err, QF_ECANCELED, "canceled");
        }
    }
}

qf_rc import_file(struct import *import, const char *path, struct qf_err *err)
{
    struct reading r = { .import = import,
                         .name = path,
                         .state = { .format = import->options.format },
                         .input = input_open(path, err) };
    struct qf_err own = { 0 };
    qf_rc rc;

    if (!r.input)
        return err ? err->rc : QF_EIO;
    if (!err)
        err = &own;
    r.scratch = qf_arena_new(SIZE_MAX);
    rc = read_lines(&r, err);
    if (rc == QF_OK) {
        tell(import, "reading", r.input);
        import->bytes_before += input_bytes_done(r.input);
    }
    (void)input_close(r.input);
    (void)qf_arena_free(r.scratch);
    qf_strbuf_done(&r.key);
    qf_strbuf_done(&r.histogram);
    return rc;
}

qf_rc import_add(struct import *import, struct qf_labels labels, const int64_t *ts,
                 const double *values, size_t count, struct qf_err *err)
{
    uint32_t series = collect_series(&import->collect, labels);
    bool spilled;

    if (canceled(import))
        return qf_err_set(err, QF_ECANCELED, "canceled");
    for (size_t i = 0; i < count; i++) {
        qf_rc rc;

        note_sample(import, series, &(struct collect_sample){ .ts = ts[i], .value = values[i] });
        rc = spill_if_full(import, &spilled, err);
        if (rc != QF_OK)
            return rc;
        if (spilled && i + 1 < count)
            series = collect_series(&import->collect, labels);
    }
    return QF_OK;
}

static void on_segment(void *ctx, const struct publish_result *result)
{
    struct import *import = ctx;
    struct import_summary *s = &import->summary;

    s->segments = result->segments;
    s->segments_present = result->segments_present;
    s->bytes = result->bytes;
    s->series = result->series;
    s->stored_samples = result->samples;
    tell(import, "writing", NULL);
}

struct writing {
    struct import *import;
    struct publish *publish;
};

static qf_rc put_record(void *ctx, const struct run_record *record, struct qf_err *err)
{
    const struct writing *writing = ctx;
    struct import *import = writing->import;

    import->written += record->count;
    if (import->written - import->told >= SAMPLES_PER_TURN) {
        import->told = import->written;
        tell(import, "writing", NULL);
    }
    return publish_record(writing->publish, record, err);
}

qf_rc import_commit(struct import *import, struct qf_err *err)
{
    struct publish *publish;
    struct qf_err own = { 0 };
    qf_rc rc;

    if (!err)
        err = &own;
    rc = spill(import, err);
    while (rc == QF_OK && import->runs.count > fan_in(import))
        rc = make_one_run(import, fan_in(import), err);
    if (rc != QF_OK)
        return rc;
    publish = publish_new(&import->options, &import->needs, import->dir, on_segment, import);
    rc = merge_newest_runs(import, import->runs.count, put_record,
                           &(struct writing){ import, publish }, err);
    if (rc == QF_OK)
        rc = publish_finish(publish, err);
    if (rc != QF_OK) {
        size_t left = publish_roll_back(publish);

        import->summary.segments_left = left;
        if (left)
            (void)qf_err_prefix(err, rc, "%zu segments could not be taken back", left);
    }
    (void)publish_free(publish);
    return rc;
}

struct import_summary import_summary(const struct import *import)
{
    return import->summary;
}
