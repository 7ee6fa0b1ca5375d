/* run.c - sorted runs of samples on disk. */
#include "segments/write/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"

int run_record_cmp(const struct run_record *a, const struct run_record *b)
{
    if (a->window != b->window)
        return a->window < b->window ? -1 : 1;
    if (a->shard != b->shard)
        return a->shard < b->shard ? -1 : 1;
    return qf_labels_cmp(a->labels, b->labels);
}

/* The header of a record, as in memory: runs never leave the machine that wrote them. */
struct header {
    int64_t window;
    uint64_t count;
    uint32_t shard;
    uint32_t labels_len;
    uint32_t has_start_ts, has_histograms;
};

static qf_rc failed(const char *path, const char *what, struct qf_err *err)
{
    int error = errno;

    return qf_err_set(err, error == ENOSPC || error == EDQUOT ? QF_ENOSPC : QF_EIO,
                      "%s: cannot %s: %s", path, what, strerror(error));
}

struct run_writer {
    FILE *file;
    char *path;
    struct qf_strbuf labels;
};

static bool put(struct run_writer *writer, const void *data, size_t size)
{
    return size == 0 || fwrite(data, 1, size, writer->file) == size;
}

/* The lengths, then the bytes. */
static bool put_histograms(struct run_writer *writer, const struct qf_str *histograms, size_t count)
{
    bool good = true;

    for (size_t i = 0; i < count && good; i++) {
        uint32_t len = (uint32_t)histograms[i].len;

        good = put(writer, &len, sizeof(len));
    }
    for (size_t i = 0; i < count && good; i++)
        good = put(writer, histograms[i].data, histograms[i].len);
    return good;
}

struct run_writer *run_writer_new(const char *path, struct qf_err *err)
{
    FILE *file = fopen(path, "wxe");
    struct run_writer *writer;

    if (!file) {
        (void)failed(path, "create", err);
        return NULL;
    }
    writer = qf_xcalloc(1, sizeof(*writer));
    writer->file = file;
    writer->path = qf_xstrdup(path);
    (void)setvbuf(file, NULL, _IOFBF, RUN_BUFFER_BYTES);
    return writer;
}

/* How many samples from @start on make the next piece. */
static size_t piece_of(const struct run_record *record, size_t start)
{
    size_t count = QF_MIN(record->count - start, (size_t)RUN_RECORD_SAMPLES), bytes = 0;

    for (size_t i = 0; record->histograms && i < count; i++) {
        bytes += record->histograms[start + i].len;
        if (bytes >= RUN_RECORD_HISTOGRAM_BYTES)
            return i + 1;
    }
    return count;
}

static qf_rc write_piece(struct run_writer *writer, const struct run_record *record, size_t start,
                         size_t count, struct qf_err *err)
{
    struct header header = { .window = record->window,
                             .count = count,
                             .shard = record->shard,
                             .labels_len = (uint32_t)writer->labels.len,
                             .has_start_ts = record->start_ts != NULL,
                             .has_histograms = record->histograms != NULL };

    if (!put(writer, &header, sizeof(header)) ||
        !put(writer, writer->labels.data, writer->labels.len) ||
        !put(writer, record->ts + start, count * sizeof(*record->ts)) ||
        !put(writer, record->values + start, count * sizeof(*record->values)) ||
        (record->start_ts &&
         !put(writer, record->start_ts + start, count * sizeof(*record->start_ts))) ||
        (record->histograms && !put_histograms(writer, record->histograms + start, count)))
        return failed(writer->path, "write", err);
    return QF_OK;
}

qf_rc run_writer_add(struct run_writer *writer, const struct run_record *record, struct qf_err *err)
{
    qf_rc rc = QF_OK;

    qf_strbuf_reset(&writer->labels);
    qf_labels_encode(&writer->labels, record->labels);
    for (size_t start = 0, count; start < record->count && rc == QF_OK; start += count) {
        count = piece_of(record, start);
        rc = write_piece(writer, record, start, count, err);
    }
    return rc;
}

qf_rc run_writer_finish(struct run_writer *writer, struct qf_err *err)
{
    FILE *file = writer->file;

    writer->file = NULL;
    return fclose(file) == 0 ? QF_OK : failed(writer->path, "write", err);
}

struct run_writer *run_writer_free(struct run_writer *writer)
{
    if (!writer)
        return NULL;
    if (writer->file)
        (void)fclose(writer->file);
    qf_strbuf_done(&writer->labels);
    free(writer->path);
    free(writer);
    return NULL;
}

struct run_reader {
    FILE *file;
    char *path;
    struct qf_arena *arena;
    struct run_record record;
    char *labels;
    size_t labels_capacity;
    int64_t ts[RUN_RECORD_SAMPLES];
    double values[RUN_RECORD_SAMPLES];
    int64_t start_ts[RUN_RECORD_SAMPLES];
    struct qf_str histograms[RUN_RECORD_SAMPLES];
    uint32_t lengths[RUN_RECORD_SAMPLES];
    char *bytes; /* of histograms */
    size_t bytes_capacity;
};

struct run_reader *run_reader_new(const char *path, struct qf_err *err)
{
    FILE *file = fopen(path, "re");
    struct run_reader *reader;

    if (!file) {
        (void)failed(path, "open", err);
        return NULL;
    }
    reader = qf_xcalloc(1, sizeof(*reader));
    reader->file = file;
    reader->path = qf_xstrdup(path);
    reader->arena = qf_arena_new(SIZE_MAX);
    (void)setvbuf(file, NULL, _IOFBF, RUN_BUFFER_BYTES);
    return reader;
}

struct run_reader *run_reader_free(struct run_reader *reader)
{
    if (!reader)
        return NULL;
    (void)fclose(reader->file);
    (void)qf_arena_free(reader->arena);
    free(reader->labels);
    free(reader->bytes);
    free(reader->path);
    free(reader);
    return NULL;
}

static bool read_all(struct run_reader *reader, void *out, size_t size)
{
    return fread(out, 1, size, reader->file) == size;
}

static bool read_histograms(struct run_reader *reader, size_t count)
{
    size_t total = 0;
    const char *at;

    if (!read_all(reader, reader->lengths, count * sizeof(*reader->lengths)))
        return false;
    for (size_t i = 0; i < count; i++)
        total += reader->lengths[i];
    if (total > reader->bytes_capacity) {
        reader->bytes_capacity = total;
        reader->bytes = qf_xrealloc(reader->bytes, total);
    }
    at = reader->bytes;
    for (size_t i = 0; i < count; i++) {
        reader->histograms[i] = (struct qf_str){ at, reader->lengths[i] };
        at += reader->lengths[i];
    }
    return total == 0 || read_all(reader, reader->bytes, total);
}

/* Read start timestamps and histograms, which only some records have. */
static bool read_extras(struct run_reader *reader, const struct header *header)
{
    if (header->has_start_ts &&
        !read_all(reader, reader->start_ts, header->count * sizeof(*reader->start_ts)))
        return false;
    return !header->has_histograms || read_histograms(reader, header->count);
}

qf_rc run_reader_next(struct run_reader *reader, const struct run_record **ret_record,
                      struct qf_err *err)
{
    struct header header;
    size_t got = fread(&header, 1, sizeof(header), reader->file);

    *ret_record = NULL;
    if (got == 0 && feof(reader->file))
        return QF_OK;
    if (got != sizeof(header))
        return failed(reader->path, "read", err);
    if (header.count > RUN_RECORD_SAMPLES)
        return qf_err_set(err, QF_ECORRUPT, "%s: not a run", reader->path);
    if (header.labels_len >= reader->labels_capacity) {
        reader->labels_capacity = header.labels_len + 1;
        reader->labels = qf_xrealloc(reader->labels, reader->labels_capacity);
    }
    if (!read_all(reader, reader->labels, header.labels_len) ||
        !read_all(reader, reader->ts, header.count * sizeof(*reader->ts)) ||
        !read_all(reader, reader->values, header.count * sizeof(*reader->values)) ||
        !read_extras(reader, &header))
        return failed(reader->path, "read", err);
    reader->record =
        (struct run_record){ .window = header.window,
                             .shard = header.shard,
                             .ts = reader->ts,
                             .values = reader->values,
                             .start_ts = header.has_start_ts ? reader->start_ts : NULL,
                             .histograms = header.has_histograms ? reader->histograms : NULL,
                             .count = header.count };
    qf_arena_reset(reader->arena);
    *ret_record = &reader->record;
    return qf_labels_decode(reader->arena, (struct qf_str){ reader->labels, header.labels_len },
                            &reader->record.labels, err);
}
