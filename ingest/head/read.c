/* read.c - what a query wants of a range, as a segment: out of memory, or out of the range's files. */
#include <stdlib.h>

#include "ingest/head/head_int.h"
#include "ingest/head/select.h"
#include "promql/histogram/codec.h"
#include "segments/parquet/segment_reader.h"

/* What was found under the head's lock, held by reference. */
struct found {
    struct in_memory *memory;
    struct in_files *files;
};

/* The file being written, begun with its first series. */
struct output {
    const struct in_head_ask *ask;
    bool starts, histograms;
    struct sg_writer *writer;
    struct in_head_answer answer;
};

static qf_rc check(const struct in_head *head, const struct in_head_ask *ask, struct qf_err *err)
{
    if (!sg_shard_count_valid(ask->shards) || ask->shard >= ask->shards)
        return qf_err_set(err, QF_EINVAL, "shard %u of %u cannot be", ask->shard, ask->shards);
    if (!qf_tenant_valid(ask->tenant))
        return qf_err_set(err, QF_EINVAL, "not a valid tenant");
    if (ask->cut > in_head_applied(head))
        return qf_err_set(err, QF_EUNAVAILABLE, "not applied up to %llu yet",
                          (unsigned long long)ask->cut);
    return QF_OK;
}

static qf_rc find(struct in_head *head, const struct in_head_ask *ask, struct found *ret_found,
                  struct qf_err *err)
{
    const struct in_head_range *range;

    *ret_found = (struct found){ 0 };
    qf_lock_take(head->lock);
    range = in_head_range(in_head_tenant(head, ask->tenant), ask->generation);
    if (range && range->memory)
        ret_found->memory = in_memory_ref(range->memory);
    else if (range && range->files && range->to && range->to <= ask->cut)
        ret_found->files = in_files_ref(range->files);
    qf_lock_drop(head->lock);
    if (!ret_found->memory && !ret_found->files)
        return qf_err_set(err, QF_ENOTFOUND, "the range of generation %llu is not here%s",
                          (unsigned long long)ask->generation,
                          range ? " with the positions of its samples" : "");
    return QF_OK;
}

static bool is_canceled(const struct in_head_ask *ask)
{
    return ask->cancel && atomic_load_explicit(ask->cancel, memory_order_relaxed);
}

static qf_rc write_series(struct output *out, struct qf_labels labels,
                          const struct sg_samples *samples, uint64_t generation, struct qf_err *err)
{
    const struct in_head_ask *ask = out->ask;
    const struct sg_writer_options options = { .path = ask->path,
                                               .tenant = ask->tenant,
                                               .shard = ask->shard,
                                               .shard_count = ask->shards,
                                               .generation = generation,
                                               .start_ts = out->starts,
                                               .histograms = out->histograms,
                                               .unsynced = true };

    if (!out->writer)
        out->writer = sg_writer_new(&options, err);
    if (!out->writer)
        return err->rc;
    out->answer.series++;
    out->answer.samples += samples->count;
    return sg_writer_add_samples(out->writer, labels, samples, err);
}

/* --- out of memory --- */

static qf_rc read_memory(const struct in_memory *memory, struct output *out, struct qf_err *err)
{
    const struct in_head_ask *ask = out->ask;
    const struct in_cut cut = { ask->cut, ask->min_ts, ask->max_ts };
    const struct in_select select = { ask->shard, ask->shards, ask->matchers, ask->matcher_count,
                                      ask->memory_bytes };
    struct in_columns columns = { 0 };
    struct in_selection selection;
    qf_rc rc = in_selection_make(&selection, memory, &select, err);
    size_t next;

    out->starts = selection.has & IN_HAS_STARTS;
    out->histograms = selection.has & IN_HAS_HISTOGRAMS;
    for (size_t i = 0; i < selection.series.count && rc == QF_OK; i = next) {
        struct sg_samples samples;

        in_columns_read(&columns, &selection, i, &cut, &next);
        if (is_canceled(ask))
            rc = qf_err_set(err, QF_ECANCELED, "canceled");
        if (rc != QF_OK || columns.ts.count == 0)
            continue;
        samples = in_columns_samples(&columns, 0, columns.ts.count);
        rc = write_series(out, in_columns_labels(&columns, &selection, i), &samples,
                          ask->generation, err);
    }
    in_selection_done(&selection);
    in_columns_done(&columns);
    return rc;
}

/* --- out of files --- */

struct readers {
    QF_VEC(struct sg_reader *) items;
};

/* A file may hold series of the shard asked for: one of the two numbers of shards divides the
 * other. */
static bool may_hold(const struct in_head *head, const struct in_head_ask *ask,
                     const struct in_head_file *file)
{
    uint32_t shards = QF_MIN(head->options.shards, ask->shards);

    return (file->shard & (shards - 1)) == (ask->shard & (shards - 1));
}

static qf_rc open_files(const struct in_head *head, const struct in_files *files,
                        struct output *out, struct readers *readers, struct qf_err *err)
{
    for (size_t i = 0; i < files->items.count; i++) {
        struct sg_reader *reader;

        if (!may_hold(head, out->ask, &files->items.items[i]))
            continue;
        reader = sg_reader_open(files->items.items[i].path, err);
        if (!reader)
            return err->rc;
        out->starts |= sg_reader_meta(reader)->has_start_ts;
        out->histograms |= sg_reader_meta(reader)->has_histograms;
        QF_VEC_PUSH(&readers->items, reader);
    }
    return QF_OK;
}

/* Histograms as bytes: the bytes in @bytes, where they are in @views. */
struct encoded {
    struct qf_strbuf bytes;
    QF_VEC(size_t) ends;
    QF_VEC(struct qf_str) views;
};

static const struct qf_str *encode(struct encoded *encoded, const struct pq_series *series)
{
    size_t at = 0;

    qf_strbuf_reset(&encoded->bytes);
    encoded->ends.count = encoded->views.count = 0;
    for (size_t i = 0; i < series->count; i++) {
        if (series->histograms[i])
            pq_histogram_encode(&encoded->bytes, series->histograms[i]);
        QF_VEC_PUSH(&encoded->ends, encoded->bytes.len);
    }
    for (size_t i = 0; i < series->count; i++) {
        QF_VEC_PUSH(&encoded->views,
                    qf_str_sub(qf_strbuf_view(&encoded->bytes), at, encoded->ends.items[i]));
        at = encoded->ends.items[i];
    }
    return encoded->views.items;
}

static qf_rc copy_series(struct pq_source *source, struct output *out, struct encoded *encoded,
                         struct qf_err *err)
{
    struct pq_series series;
    bool more = false;
    qf_rc rc;

    while ((rc = source->next(source, &series, &more, err)) == QF_OK && more) {
        struct sg_samples samples = { .ts = series.ts,
                                      .values = series.values,
                                      .count = series.count,
                                      .start_ts = series.start_ts };

        if (series.count == 0 || sg_shard_of(series.labels, out->ask->shards) != out->ask->shard)
            continue;
        if (series.histograms)
            samples.histograms = encode(encoded, &series);
        rc = write_series(out, series.labels, &samples, out->ask->generation, err);
        if (rc != QF_OK)
            break;
    }
    return rc;
}

static qf_rc read_files(const struct in_head *head, const struct in_files *files,
                        struct output *out, struct qf_err *err)
{
    const struct in_head_ask *ask = out->ask;
    const struct pq_select select = { ask->matchers, ask->matcher_count, ask->min_ts, ask->max_ts };
    struct encoded encoded = { 0 };
    struct readers readers = { 0 };
    qf_rc rc = open_files(head, files, out, &readers, err);

    if (rc == QF_OK && readers.items.count) {
        struct pq_source *source = sg_source_new(readers.items.items, readers.items.count, &select,
                                                 ask->cancel, ask->memory_bytes);

        rc = copy_series(source, out, &encoded, err);
        source->close(source);
    }
    for (size_t i = 0; i < readers.items.count; i++)
        (void)sg_reader_free(readers.items.items[i]);
    QF_VEC_DONE(&readers.items);
    qf_strbuf_done(&encoded.bytes);
    QF_VEC_DONE(&encoded.ends);
    QF_VEC_DONE(&encoded.views);
    return rc;
}

qf_rc in_head_read(struct in_head *head, const struct in_head_ask *ask,
                   struct in_head_answer *ret_answer, struct qf_err *err)
{
    struct output out = { .ask = ask };
    struct sg_segment_name name;
    struct found found;
    qf_rc rc = check(head, ask, err);

    if (rc == QF_OK)
        rc = find(head, ask, &found, err);
    if (rc != QF_OK)
        return rc;
    if (found.memory)
        rc = read_memory(found.memory, &out, err);
    else
        rc = read_files(head, found.files, &out, err);
    if (rc == QF_OK && out.writer)
        rc = sg_writer_finish(out.writer, &name, err);
    (void)sg_writer_free(out.writer);
    (void)in_memory_drop(found.memory);
    (void)in_files_drop(found.files);
    if (rc == QF_OK)
        *ret_answer = out.answer;
    return rc;
}
