/* import.c - from text to samples of a batch. */
#include "segments/import/import.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "segments/annex/files.h"
#include "segments/import/extras.h"
#include "segments/import/histogram_text.h"
#include "segments/import/input.h"
#include "segments/import/text.h"

/* What reading takes beside the samples: buffers of input.c, a line, its series twice. */
#define READING_BYTES (UINT64_C(6) << 20)
/* The part of the memory that exemplars and metadata may take. */
#define EXTRAS_PART 8
/* How often progress is told. */
#define LINES_PER_TURN 8192

/* Series of the batch by their text as written, so that labels are taken apart once per series. */
struct known {
    struct qf_map numbers; /* text -> number of the series */
    struct qf_arena *arena;
};

struct sg_import {
    struct sg_import_options options;
    struct sg_batch *batch;
    struct sg_annex *annex; /* exemplars and metadata */
    struct known known;
    uint64_t exemplars;
    bool samples_stored;
    uint64_t bytes_before; /* of inputs that are done */
    uint64_t lines, malformed;
};

/* The batch's numbers of series are void. */
static void forget_known(void *ctx)
{
    struct known *known = ctx;

    qf_map_done(&known->numbers);
    (void)qf_arena_free(known->arena);
    *known = (struct known){ .arena = qf_arena_new(SIZE_MAX) };
}

struct sg_import *sg_import_new(const struct sg_import_options *options, struct qf_err *err)
{
    struct sg_batch_options batch_options = options->batch;
    struct sg_batch *batch;
    struct sg_import *import;

    batch_options.reserved_bytes += READING_BYTES + options->batch.memory_bytes / EXTRAS_PART;
    batch = sg_batch_new(&batch_options, err);
    if (!batch)
        return NULL;
    import = qf_xcalloc(1, sizeof(*import));
    import->options = *options;
    import->batch = batch;
    import->annex = sg_annex_new((size_t)(options->batch.memory_bytes / EXTRAS_PART));
    import->known.arena = qf_arena_new(SIZE_MAX);
    sg_batch_on_spill(batch, forget_known, &import->known);
    return import;
}

struct sg_import *sg_import_free(struct sg_import *import)
{
    if (!import)
        return NULL;
    (void)sg_batch_free(import->batch);
    (void)sg_annex_free(import->annex);
    qf_map_done(&import->known.numbers);
    (void)qf_arena_free(import->known.arena);
    free(import);
    return NULL;
}

/* --- reading --- */

struct reading {
    struct sg_import *import;
    const char *name;
    struct input *input;
    struct text_state state;
    uint64_t line;
    struct qf_strbuf key;
    struct qf_arena *scratch;
};

static void tell(const struct reading *r)
{
    const struct sg_import *import = r->import;
    struct sg_import_progress progress = {
        .bytes_done = import->bytes_before + input_bytes_done(r->input),
        .bytes_total = input_bytes_total(r->input),
        .lines = import->lines,
        .samples = sg_batch_summary(import->batch).samples,
        .malformed = import->malformed,
    };

    if (progress.bytes_total)
        progress.bytes_total += import->bytes_before;
    if (import->options.on_progress)
        import->options.on_progress(import->options.ctx, &progress);
}

/* The number of a sample's series; labels are taken apart only when its text is new. */
static const char *find_series(struct reading *r, const struct text_sample *sample,
                               uint32_t *ret_series)
{
    struct known *known = &r->import->known;
    struct qf_labels labels;
    const char *what;
    uint64_t *found;

    qf_strbuf_reset(&r->key);
    qf_strbuf_putc(&r->key, sample->normalize);
    qf_strbuf_putc(&r->key, (char)('0' + r->state.format));
    qf_strbuf_str(&r->key, sample->series);
    found = qf_map_get(&known->numbers, qf_strbuf_view(&r->key));
    if (found) {
        *ret_series = (uint32_t)*found;
        return NULL;
    }
    qf_arena_reset(r->scratch);
    what = text_labels(&r->state, sample, r->scratch, &labels);
    if (what)
        return what;
    *ret_series = sg_batch_series(r->import->batch, labels);
    (void)qf_map_put(&known->numbers, qf_arena_str(known->arena, qf_strbuf_view(&r->key)),
                     *ret_series, NULL);
    sg_batch_hold(r->import->batch, qf_map_bytes(&known->numbers) + qf_arena_used(known->arena));
    return NULL;
}

static qf_rc malformed(struct reading *r, const char *what, struct qf_err *err)
{
    struct sg_import *import = r->import;

    import->malformed++;
    if (import->options.on_malformed && import->options.skip_malformed)
        import->options.on_malformed(import->options.ctx, r->name, r->line, what);
    if (import->options.skip_malformed)
        return QF_OK;
    return qf_err_set(err, QF_EPARSE, "%s:%llu: %s", r->name, (unsigned long long)r->line, what);
}

static qf_rc too_much(struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT,
                      "more exemplars and metadata than memory allows: allow more, "
                      "or import less at a time");
}

static qf_rc read_metadata(struct reading *r, const struct text_metadata *metadata,
                           struct qf_err *err)
{
    struct sg_import *import = r->import;
    bool full = false;
    const char *what;

    qf_arena_reset(r->scratch);
    what = extras_metadata(import->annex, metadata, import->options.batch.generation, r->scratch,
                           &full);
    if (what)
        return malformed(r, what, err);
    return full ? too_much(err) : QF_OK;
}

static qf_rc add_sample(struct reading *r, uint32_t series, const struct text_sample *sample,
                        const struct pq_histogram *histogram, struct qf_err *err)
{
    return sg_batch_add_one(r->import->batch, series,
                            &(struct sg_sample){ .ts = sample->ts,
                                                 .start_ts = sample->start_ts,
                                                 .value = sample->value,
                                                 .histogram = histogram },
                            err);
}

static qf_rc read_line(struct reading *r, struct qf_str line, struct qf_err *err)
{
    bool full = false;
    const struct pq_histogram *histogram = NULL;
    struct text_sample sample;
    const char *what;
    uint32_t series;

    switch (text_parse_line(&r->state, line, &sample, &what)) {
    case TEXT_NOTHING:
        return QF_OK;
    case TEXT_METADATA:
        return read_metadata(r, &sample.metadata, err);
    case TEXT_MALFORMED:
        return malformed(r, what, err);
    case TEXT_SAMPLE:
        break;
    }
    what = find_series(r, &sample, &series);
    if (!what && sample.exemplar.len) {
        qf_arena_reset(r->scratch);
        what = extras_exemplar(r->import->annex, &r->state, &sample, r->scratch, &full);
        r->import->exemplars += !what && !full;
    }
    if (!what && sample.histogram.len) {
        qf_arena_reset(r->scratch);
        what = sg_histogram_text_parse(sample.histogram, r->scratch, &histogram);
    }
    if (what)
        return malformed(r, what, err);
    return full ? too_much(err) : add_sample(r, series, &sample, histogram, err);
}

static qf_rc read_lines(struct reading *r, struct qf_err *err)
{
    for (;;) {
        struct qf_str line;
        bool cut, more;
        qf_rc rc = input_line(r->input, SG_IMPORT_LINE_MAX, &line, &cut, &more, err);

        if (rc != QF_OK || !more)
            return rc;
        r->line++;
        r->import->lines++;
        rc = cut ? malformed(r, "the line is too long", err) : read_line(r, line, err);
        if (rc != QF_OK)
            return rc;
        if (r->line % LINES_PER_TURN == 0) {
            const atomic_bool *cancel = r->import->options.batch.cancel;

            tell(r);
            if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
                return qf_err_set(err, QF_ECANCELED, "canceled");
        }
    }
}

static void tell_read(const struct reading *r)
{
    const struct sg_import_options *options = &r->import->options;
    struct sg_import_read read = { .file = r->name,
                                   .format = r->state.format,
                                   .guessed = options->format == SG_IMPORT_AUTO,
                                   .ended = r->state.ended };

    if (options->on_read)
        options->on_read(options->ctx, &read);
}

qf_rc sg_import_file(struct sg_import *import, const char *path, struct qf_err *err)
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
        tell(&r);
        tell_read(&r);
        import->bytes_before += input_bytes_done(r.input);
    }
    (void)input_close(r.input);
    (void)qf_arena_free(r.scratch);
    qf_strbuf_done(&r.key);
    return rc;
}

/* Exemplars and metadata last: who reads text has samples first. */
qf_rc sg_import_commit(struct sg_import *import, struct qf_err *err)
{
    const struct sg_batch_options *o = &import->options.batch;
    const struct sg_store_call call = { .cancel = o->cancel };
    struct sg_annex_result result;
    qf_rc rc = sg_batch_commit(import->batch, err);

    if (rc != QF_OK)
        return rc;
    import->samples_stored = true;
    rc = sg_annex_put(import->annex, o->store, o->tenant, &call, &result, err);
    return rc == QF_OK ? QF_OK
                       : qf_err_prefix(err, rc,
                                       "samples are imported, exemplars and metadata are not, "
                                       "import again");
}

struct sg_import_summary sg_import_summary(const struct sg_import *import)
{
    return (struct sg_import_summary){ .lines = import->lines,
                                       .malformed = import->malformed,
                                       .exemplars = import->exemplars,
                                       .metadata = sg_annex_metadata_count(import->annex),
                                       .samples_stored = import->samples_stored,
                                       .batch = sg_batch_summary(import->batch) };
}
