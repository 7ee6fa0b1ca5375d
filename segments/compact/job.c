/* job.c - some files of a shard and a window become one. */
#include "segments/compact/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "promql/histogram/codec.h"
#include "segments/catalog/catalog.h"
#include "segments/catalog/changes.h"
#include "segments/compact/fetch.h"
#include "segments/compact/trade.h"
#include "segments/parquet/segment_reader.h"
#include "segments/parquet/segment_writer.h"
#include "segments/store/ring.h"
#include "segments/store/turn.h"
#include "segments/write/sweep.h"

#define PROGRESS_SAMPLES (1u << 20)
/* What was put longer ago may be all that is left of the inputs: it is not taken back. Less than any grace (pass.h) that
 * leaves readers time, more than it takes until a job counts as dead (segments/store/turn.h). */
#define TAKE_BACK_MS (2 * SG_TURN_TTL_MS)
#define LOOK_MS 10000 /* for a lease to be looked at, by a job that was told to stop, too */

struct output {
    char *path, *name;
    bool put; /* by this job, and not over an input */
};

struct running {
    const struct sg_job *job;
    const struct sg_job_options *options;
    struct sg_store_call call;
    char *dir;
    int dir_fd;
    QF_VEC(struct sg_reader *) readers;
    QF_VEC(struct output) outputs;
    struct sg_writer *writer; /* of the output that is not finished yet */
    bool new_window;          /* the next series begins another one */
    int64_t output_min;       /* first timestamp of that output */
    struct qf_strbuf encoded; /* histograms of a series */
    QF_VEC(struct qf_str) histograms;
    struct sg_job_result result;
    uint64_t told;
    int64_t turn_ms; /* since when it puts, by the store's clock */
};

/* --- inputs --- */

static void pace(const struct running *r, uint64_t bytes)
{
    if (r->options->pace)
        r->options->pace(r->options->ctx, bytes);
}

static qf_rc open_inputs(struct running *r, struct qf_err *err)
{
    for (size_t i = 0; i < r->job->input_count; i++) {
        uint64_t before = r->result.bytes_read;
        struct sg_reader *reader = sg_fetch(r->options->store, r->job->inputs[i], r->dir, &r->call,
                                            &r->result.bytes_read, err);

        pace(r, r->result.bytes_read - before);
        if (!reader) {
            qf_err_about(err, i);
            return err->rc;
        }
        QF_VEC_PUSH(&r->readers, reader);
    }
    return QF_OK;
}

/* --- outputs --- */

static qf_rc begin_output(struct running *r, struct qf_err *err)
{
    struct qf_strbuf path = QF_STRBUF_INIT;
    struct sg_writer_options options = { .tenant = r->job->tenant,
                                         .shard = r->job->shard,
                                         .shard_count = r->job->shard_count,
                                         .generation = r->job->generation };

    for (size_t i = 0; i < r->readers.count; i++) {
        options.start_ts |= sg_reader_meta(r->readers.items[i])->has_start_ts;
        options.histograms |= sg_reader_meta(r->readers.items[i])->has_histograms;
    }
    qf_strbuf_printf(&path, "%s/output-%zu", r->dir, r->outputs.count);
    QF_VEC_PUSH(&r->outputs, (struct output){ .path = qf_strbuf_take(&path) });
    options.path = r->outputs.items[r->outputs.count - 1].path;
    r->output_min = INT64_MAX;
    r->writer = sg_writer_new(&options, err);
    return r->writer ? QF_OK : err->rc;
}

static qf_rc finish_output(struct running *r, struct qf_err *err)
{
    struct output *output;
    struct sg_segment_name parts;
    struct qf_strbuf name = QF_STRBUF_INIT;
    qf_rc rc;

    if (!r->writer)
        return QF_OK;
    output = &r->outputs.items[r->outputs.count - 1];
    r->result.series += sg_writer_series(r->writer);
    rc = sg_writer_finish(r->writer, &parts, err);
    if (rc == QF_OK) {
        sg_segment_name_print(&name, &parts);
        output->name = qf_strbuf_take(&name);
    }
    r->writer = sg_writer_free(r->writer);
    return rc;
}

/* Histograms of the series as bytes; NULL if it has none. */
static const struct qf_str *encode(struct running *r, const struct pq_series *series)
{
    size_t at = 0;

    if (!series->histograms)
        return NULL;
    qf_strbuf_reset(&r->encoded);
    r->histograms.count = 0;
    for (size_t i = 0; i < series->count; i++) {
        size_t before = r->encoded.len;

        if (series->histograms[i])
            pq_histogram_encode(&r->encoded, series->histograms[i]);
        QF_VEC_PUSH(&r->histograms, (struct qf_str){ "", r->encoded.len - before });
    }
    for (size_t i = 0; i < series->count; i++) { /* the bytes do not move any more */
        if (r->histograms.items[i].len)
            r->histograms.items[i].data = r->encoded.data + at;
        at += r->histograms.items[i].len;
    }
    return r->histograms.items;
}

static qf_rc add_series(struct running *r, const struct pq_series *series, struct qf_err *err)
{
    struct sg_samples samples = { .ts = series->ts,
                                  .values = series->values,
                                  .count = series->count,
                                  .start_ts = series->start_ts,
                                  .histograms = encode(r, series) };
    qf_rc rc = QF_OK;

    pace(r, 0);
    if (series->count == 0)
        return QF_OK;
    if (r->writer && (r->new_window || sg_writer_bytes(r->writer) >= r->options->file_bytes))
        rc = finish_output(r, err);
    r->new_window = false;
    if (rc == QF_OK && !r->writer)
        rc = begin_output(r, err);
    if (rc == QF_OK)
        rc = sg_writer_add_samples(r->writer, series->labels, &samples, err);
    r->result.samples += series->count;
    r->output_min = QF_MIN(r->output_min, series->ts[0]);
    if (r->options->on_progress && r->result.samples - r->told >= PROGRESS_SAMPLES) {
        r->told = r->result.samples;
        r->options->on_progress(r->options->ctx, &r->result);
    }
    return rc;
}

static qf_rc merge_window(struct running *r, int64_t min_ts, int64_t max_ts, struct qf_err *err)
{
    struct pq_select select = { .min_ts = min_ts, .max_ts = max_ts };
    struct pq_source *source = sg_source_new(r->readers.items, r->readers.count, &select,
                                             r->options->cancel, r->options->memory_bytes);
    struct pq_series series;
    bool more = true;
    qf_rc rc = QF_OK;

    while (rc == QF_OK && more) {
        rc = source->next(source, &series, &more, err);
        if (rc == QF_OK && more)
            rc = add_series(r, &series, err);
    }
    source->close(source);
    return rc;
}

static int64_t window_of(int64_t ts, int64_t length)
{
    return ts / length - (ts % length < 0);
}

/* Window by window, of which there is one as a rule. The last output stays open. */
static qf_rc merge(struct running *r, struct qf_err *err)
{
    int64_t length = r->job->window_ms, first = INT64_MAX, last = INT64_MIN;
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < r->readers.count; i++) {
        first = QF_MIN(first, window_of(sg_reader_meta(r->readers.items[i])->name.min_ts, length));
        last = QF_MAX(last, window_of(sg_reader_meta(r->readers.items[i])->name.max_ts, length));
    }
    for (int64_t w = first; w <= last && rc == QF_OK; w++) {
        r->new_window = true;
        rc = merge_window(r, w * length, (w + 1) * length - 1, err);
    }
    return rc;
}

/* --- what the last one says of the others --- */

/* Add @name as the output calls it: without its folder if that is the output's own. */
static void add_name(struct qf_strbuf *text, struct qf_str folder, struct qf_str name)
{
    qf_strbuf_str(text,
                  qf_str_starts(name, folder) ? qf_str_sub(name, folder.len, name.len) : name);
    qf_strbuf_putc(text, '\n');
}

static bool is_output(const struct running *r, struct qf_str name)
{
    for (size_t i = 0; i + 1 < r->outputs.count; i++)
        if (qf_str_is(name, r->outputs.items[i].name))
            return true;
    return false;
}

/* A result that equals an input has that input's name: it stays. (The last output may name itself, which counts for
 * nothing.) */
static void say_what_it_replaces(struct running *r, int64_t min_ts)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf folder = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf replaces = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf beside = QF_STRBUF_INIT;
    const struct sg_job *job = r->job;

    sg_segment_name_print_folder(&folder, job->tenant, min_ts);
    for (size_t i = 0; i < job->input_count; i++)
        if (!is_output(r, job->inputs[i]))
            add_name(&replaces, qf_strbuf_view(&folder), job->inputs[i]);
    for (size_t i = 0; i < job->dead_count; i++)
        if (!is_output(r, job->dead[i]))
            add_name(&replaces, qf_strbuf_view(&folder), job->dead[i]);
    for (size_t i = 0; i + 1 < r->outputs.count; i++)
        add_name(&beside, qf_strbuf_view(&folder), qf_str_from(r->outputs.items[i].name));
    sg_writer_replaces(r->writer, qf_strbuf_view(&replaces), qf_strbuf_view(&beside));
}

/* --- the store --- */

static qf_rc check_inputs(struct running *r, struct qf_err *err)
{
    for (size_t i = 0; i < r->job->input_count; i++) {
        struct sg_store_info info;
        qf_rc rc = sg_store_stat(r->options->store, r->job->inputs[i], &r->call, &info, err);

        if (rc)
            return rc;
    }
    return QF_OK;
}

static bool is_input(const struct running *r, const char *name)
{
    for (size_t i = 0; i < r->job->input_count; i++)
        if (qf_str_is(r->job->inputs[i], name))
            return true;
    return false;
}

/* Does the store have the output, saying all that this one says? QF_ENOTFOUND: it is one of the inputs, and gone since. */
static qf_rc is_present(struct running *r, const struct output *output, bool *ret_present,
                        struct qf_err *err)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct sg_reader *reader = sg_reader_open(output->path, err);
    struct sg_meta there;
    struct qf_err why = { 0 };
    qf_rc rc;

    *ret_present = false;
    if (!reader)
        return err->rc;
    rc = sg_catalog_read_meta(r->options->store, qf_str_from(output->name), &r->call, arena, &there,
                              &why);
    if (rc == QF_OK)
        *ret_present = there.schema_version == SG_SCHEMA_VERSION &&
                       qf_str_eq(there.replaces, sg_reader_meta(reader)->replaces) &&
                       qf_str_eq(there.beside, sg_reader_meta(reader)->beside);
    (void)sg_reader_free(reader);
    if (rc == QF_ENOTFOUND && is_input(r, output->name))
        return qf_err_set(err, rc, "%s", why.msg);
    /* One that cannot be read is put over. */
    return rc == QF_OK || rc == QF_ENOTFOUND || rc == QF_ECORRUPT || rc == QF_EUNSUPPORTED
               ? QF_OK
               : qf_err_set(err, rc, "%s", why.msg);
}

static qf_rc put_output(struct running *r, struct output *output, struct qf_err *err)
{
    int fd = open(output->path, O_RDONLY | O_CLOEXEC);
    bool present = false;
    struct stat status;
    qf_rc rc;

    if (fd < 0 || fstat(fd, &status) != 0) {
        rc = qf_err_set(err, QF_EIO, "%s: %s", output->path, strerror(errno));
    } else {
        r->result.bytes_written += (uint64_t)status.st_size;
        rc = is_present(r, output, &present, err);
        /* One that was put though nobody said so is taken back as well. */
        output->put = rc == QF_OK && !present && !is_input(r, output->name);
        if (rc == QF_OK && !present)
            rc = sg_store_put_fd(r->options->store, qf_str_from(output->name), fd,
                                 (uint64_t)status.st_size, &r->call, err);
        r->result.present += rc == QF_OK && present;
        r->result.outputs += rc == QF_OK && !present;
    }
    if (fd >= 0)
        (void)close(fd);
    return rc;
}

/* Wait until so much may be put: not while others wait for this job. */
static void pace_outputs(const struct running *r)
{
    struct stat status;

    for (size_t i = 0; i < r->outputs.count; i++)
        if (stat(r->outputs.items[i].path, &status) == 0)
            pace(r, (uint64_t)status.st_size);
}

static qf_rc begin_turn(struct running *r, struct sg_turn **ret_turn, struct qf_err *err)
{
    int64_t min_ts = INT64_MAX, max_ts = INT64_MIN;
    qf_rc rc = sg_store_clock(r->options->store, &r->call, &r->turn_ms, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < r->readers.count; i++) {
        min_ts = QF_MIN(min_ts, sg_reader_meta(r->readers.items[i])->name.min_ts);
        max_ts = QF_MAX(max_ts, sg_reader_meta(r->readers.items[i])->name.max_ts);
    }
    return sg_turn_merge(r->options->store, r->job->tenant, min_ts, max_ts, &r->call, ret_turn,
                         err);
}

/* Can inputs that are gone have been replaced by these outputs, and deleted for it? */
static bool is_too_late(const struct running *r)
{
    int64_t now;

    return sg_store_clock(r->options->store, NULL, &now, NULL) != QF_OK ||
           now - r->turn_ms >= TAKE_BACK_MS;
}

/* Somebody thinks that this job is dead, and removes segments: theirs may be among the inputs. */
static qf_rc take_back(struct running *r, struct qf_err *why)
{
    qf_rc rc = why->rc == QF_ENOTFOUND || why->rc == QF_ETIMEOUT ? QF_EBUSY : why->rc;
    const char *name = "nothing";

    if (is_too_late(r))
        return qf_err_prefix(why, rc,
                             "what was merged stays, though segments may have been removed");
    for (size_t i = 0; i < r->outputs.count; i++) {
        if (!r->outputs.items[i].put)
            continue;
        name = r->outputs.items[i].name;
        (void)!sg_store_delete(r->options->store, qf_str_from(name), NULL, NULL);
    }
    return qf_err_prefix(why, rc, "what was merged was taken back, %s last", name);
}

/* Whoever was told to stop still looks whether what it put may stay: taking back what nobody removed would make it vanish
 * under queries, and under whoever does the same job again and found it there. */
static qf_rc put_all(struct running *r, struct sg_turn *turn, struct sg_changes_note *note,
                     struct qf_err *err)
{
    struct sg_store_call unhurried = { .timeout_ms = LOOK_MS };
    struct qf_err why = { 0 };
    qf_rc rc = check_inputs(r, err);

    for (size_t i = 0; i < r->outputs.count && rc == QF_OK; i++) {
        if (sg_turn_tick(turn, &unhurried, &why) != QF_OK)
            break;
        rc = put_output(r, &r->outputs.items[i], err);
        sg_changes_note_add(note, qf_str_from(r->outputs.items[i].name));
    }
    if (why.rc == QF_OK && sg_turn_check(turn, &unhurried, &why) == QF_OK)
        return rc;
    *err = why;
    return take_back(r, err);
}

static qf_rc put_outputs(struct running *r, struct qf_err *err)
{
    struct sg_changes_note note = { 0 };
    struct sg_turn *turn = NULL;
    qf_rc rc;

    pace_outputs(r);
    rc = begin_turn(r, &turn, err);
    if (rc == QF_OK)
        rc = put_all(r, turn, &note, err);
    (void)sg_turn_end(turn);
    /* Also if all were there: whoever put them may not have come to that. */
    if (rc == QF_OK)
        rc = sg_changes_note_put(&note, r->options->store, &r->call, err);
    sg_changes_note_done(&note);
    return rc;
}

/* On our own nodes: in one step. */
static qf_rc trade_outputs(struct running *r, struct qf_err *err)
{
    QF_VEC(struct sg_trade_output) outputs = { 0 };
    struct sg_traded traded = { 0 };
    struct sg_trade trade = { .store = r->options->store,
                              .inputs = r->job->inputs,
                              .input_count = r->job->input_count,
                              .call = &r->call };
    qf_rc rc;

    pace_outputs(r);
    for (size_t i = 0; i < r->outputs.count; i++)
        QF_VEC_PUSH(&outputs, (struct sg_trade_output){ .name = r->outputs.items[i].name,
                                                        .path = r->outputs.items[i].path });
    trade.outputs = outputs.items;
    trade.output_count = outputs.count;
    rc = sg_trade(&trade, &traded, err);
    r->result.outputs = traded.put;
    r->result.present = traded.present;
    r->result.bytes_written = traded.bytes;
    QF_VEC_DONE(&outputs);
    return rc;
}

/* --- all of it --- */

static qf_rc run(struct running *r, struct qf_err *err)
{
    bool trades = sg_store_is_ring(r->options->store);
    qf_rc rc = open_inputs(r, err);

    if (rc == QF_OK)
        rc = merge(r, err);
    if (rc == QF_OK && !r->writer)
        rc = qf_err_set(err, QF_ECORRUPT, "files without samples");
    if (rc == QF_OK && !trades) /* else the log says it */
        say_what_it_replaces(r, r->output_min);
    if (rc == QF_OK)
        rc = finish_output(r, err);
    if (rc == QF_OK && r->options->on_progress)
        r->options->on_progress(r->options->ctx, &r->result);
    if (rc)
        return rc;
    return trades ? trade_outputs(r, err) : put_outputs(r, err);
}

static void clean_up(struct running *r)
{
    r->writer = sg_writer_free(r->writer);
    for (size_t i = 0; i < r->readers.count; i++)
        (void)sg_reader_free(r->readers.items[i]);
    QF_VEC_DONE(&r->readers);
    for (size_t i = 0; i < r->outputs.count; i++) {
        (void)unlink(r->outputs.items[i].path);
        free(r->outputs.items[i].path);
        free(r->outputs.items[i].name);
    }
    QF_VEC_DONE(&r->outputs);
    QF_VEC_DONE(&r->histograms);
    qf_strbuf_done(&r->encoded);
    (void)rmdir(r->dir);
    free(r->dir);
    (void)close(r->dir_fd);
}

qf_rc sg_job_run(const struct sg_job *job, const struct sg_job_options *options,
                 struct sg_job_result *ret_result, struct qf_err *err)
{
    struct running r = { .job = job, .options = options, .call = { .cancel = options->cancel } };
    struct qf_err own = { 0 };
    qf_rc rc;

    if (!err)
        err = &own;
    r.dir = sg_sweep_make_folder(options->temp_dir, &r.dir_fd, err);
    if (!r.dir)
        return err->rc;
    rc = run(&r, err);
    if (rc == QF_ECORRUPT && err->subject)
        rc = sg_fetch_blame(options->store, job->inputs[err->subject - 1], err);
    clean_up(&r);
    if (rc == QF_OK)
        *ret_result = r.result;
    return rc;
}
