/* artifact.c - leaf results out of Parquet files. */
#include "segments/parquet/artifact.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/varint.h"
#include "segments/parquet/artifact_int.h"
#include "promql/histogram/codec.h"

struct reader {
    struct pq_leaf_reader base; /* first member */
    struct colfile *file;
    struct qf_arena *arena; /* series table and notes */
    struct qf_arena *batch; /* histograms of the current row group */
    struct artifact_schema schema;
    bool histograms;
    size_t next_group;
    struct qf_purse *purse; /* or NULL */
    size_t capacity;        /* rows the buffers have room for */
    size_t paid;            /* what they took from the purse */
    size_t table_paid;      /* and what the series table did */
    int64_t *ts;
    uint32_t *series;
    double *columns[PQ_LEAF_COLUMNS_MAX];
    const struct pq_histogram **histogram_rows;
    int64_t last_ts; /* of the row before the next batch */
    uint32_t last_series;
    bool started;
};

static qf_rc corrupt(const struct reader *reader, const char *what, struct qf_err *err)
{
    return qf_err_set(err, QF_ECORRUPT, "%s: corrupt: %s", colfile_name(reader->file), what);
}

static qf_rc no_memory(const struct reader *reader, struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT, "%s: the query needs more memory than its limit",
                      colfile_name(reader->file));
}

static bool meta_number(const struct colfile *file, const char *key, uint64_t *ret_value)
{
    struct qf_str text = colfile_meta(file, key);

    return text.data && qf_parse_u64(text, ret_value);
}

static bool get_varint(struct qf_str *rest, uint64_t max, uint64_t *ret_value)
{
    size_t used = qf_varint_get(*rest, ret_value);

    if (!used || *ret_value > max)
        return false;
    *rest = qf_str_sub(*rest, used, rest->len);
    return true;
}

static bool get_text(struct qf_str *rest, struct qf_str *ret_text)
{
    uint64_t len;

    if (!get_varint(rest, rest->len, &len) || len > rest->len)
        return false;
    *ret_text = qf_str_sub(*rest, 0, len);
    *rest = qf_str_sub(*rest, len, rest->len);
    return true;
}

/* Strings stay in the file's metadata, which lives as long as the reader. */
static qf_rc read_series(struct reader *reader, struct qf_err *err)
{
    struct qf_str rest = colfile_meta(reader->file, ARTIFACT_KEY_SERIES), bytes;
    struct qf_labels *series;
    uint64_t count;

    if (!rest.data || !get_varint(&rest, QF_MIN(rest.len, (size_t)UINT32_MAX), &count))
        return corrupt(reader, "no series table", err);
    /* It is there twice: as Thrift read it and as Arrow hands it out. */
    if (reader->purse) {
        if (!qf_purse_take(reader->purse, 2 * rest.len))
            return no_memory(reader, err);
        reader->table_paid = 2 * rest.len;
    }
    series = QF_ARENA_ARRAY(reader->arena, struct qf_labels, count ? count : 1);
    if (!series)
        return no_memory(reader, err);
    for (uint64_t i = 0; i < count; i++) {
        qf_rc rc;

        if (!get_text(&rest, &bytes))
            return corrupt(reader, "the series table is cut short", err);
        rc = qf_labels_decode(reader->arena, bytes, &series[i], err);
        if (rc == QF_ELIMIT)
            return no_memory(reader, err);
        if (rc != QF_OK)
            return qf_err_prefix(err, rc, "%s: corrupt", colfile_name(reader->file));
        if (i && qf_labels_cmp(series[i - 1], series[i]) >= 0)
            return corrupt(reader, "the series table is not sorted", err);
    }
    if (rest.len)
        return corrupt(reader, "the series table is too long", err);
    reader->base.series = series;
    reader->base.series_count = count;
    return QF_OK;
}

static qf_rc read_notes(struct reader *reader, struct qf_err *err)
{
    struct qf_str rest = colfile_meta(reader->file, ARTIFACT_KEY_NOTES), text;
    uint64_t omitted, count, level, start, end;

    reader->base.notes.arena = reader->arena;
    if (!rest.data)
        return QF_OK;
    if (!get_varint(&rest, UINT64_MAX, &omitted) || !get_varint(&rest, PQ_NOTES_MAX, &count))
        return corrupt(reader, "malformed notes", err);
    for (uint64_t i = 0; i < count; i++) {
        if (!get_varint(&rest, PQ_NOTE_INFO, &level) || !get_varint(&rest, UINT32_MAX, &start) ||
            !get_varint(&rest, UINT32_MAX, &end) || !get_text(&rest, &text))
            return corrupt(reader, "malformed notes", err);
        pq_note_add(&reader->base.notes, (enum pq_note_level)level,
                    (struct pq_pos){ (uint32_t)start, (uint32_t)end }, "%.*s", QF_STR_ARG(text));
    }
    if (rest.len)
        return corrupt(reader, "malformed notes", err);
    reader->base.notes.omitted += omitted;
    return QF_OK;
}

static qf_rc grow(struct reader *reader, size_t rows, struct qf_err *err)
{
    size_t columns = reader->base.kind->column_count + 1 + (reader->histograms ? 1 : 0);
    size_t bytes = rows * (columns * 8 + sizeof(*reader->series));

    if (rows <= reader->capacity)
        return QF_OK;
    if (reader->purse) {
        if (!qf_purse_take(reader->purse, bytes - reader->paid))
            return no_memory(reader, err);
        reader->paid = bytes;
    }
    reader->capacity = rows;
    reader->ts = qf_xrealloc(reader->ts, rows * sizeof(*reader->ts));
    reader->series = qf_xrealloc(reader->series, rows * sizeof(*reader->series));
    for (size_t i = 0; i < reader->base.kind->column_count; i++)
        reader->columns[i] = qf_xrealloc(reader->columns[i], rows * sizeof(double));
    if (reader->histograms)
        reader->histogram_rows =
            qf_xrealloc(reader->histogram_rows, rows * sizeof(*reader->histogram_rows));
    return QF_OK;
}

/* A row may repeat time and series of the one before it: a further addend of native histograms that
 * were added up. Only sums have those. */
static bool may_repeat(const struct reader *reader, size_t row)
{
    return reader->histograms && reader->base.kind->column_count > 1 && reader->histogram_rows[row];
}

/* Rows ascend by (timestamp, series), across row groups too, and name series that exist. */
static bool rows_in_order(struct reader *reader, size_t rows)
{
    const int64_t *ts = reader->ts;
    const uint32_t *series = reader->series;
    uint32_t largest = 0;
    bool bad =
        reader->started && (ts[0] < reader->last_ts ||
                            (ts[0] == reader->last_ts &&
                             (series[0] < reader->last_series ||
                              (series[0] == reader->last_series && !may_repeat(reader, 0)))));

    for (size_t i = 0; i < rows; i++)
        largest = series[i] > largest ? series[i] : largest;
    for (size_t i = 1; i < rows; i++)
        bad |= (ts[i] < ts[i - 1]) | ((ts[i] == ts[i - 1]) & (series[i] < series[i - 1]));
    for (size_t i = 1; i < rows; i++)
        if (ts[i] == ts[i - 1] && series[i] == series[i - 1])
            bad |= !may_repeat(reader, i);
    reader->started = true;
    reader->last_ts = ts[rows - 1];
    reader->last_series = series[rows - 1];
    return !bad && largest < reader->base.series_count;
}

static void texts_freep(struct colfile_texts **texts)
{
    (void)colfile_texts_free(*texts);
}

static qf_rc read_histograms(struct reader *reader, const struct colfile_group *group,
                             size_t column, size_t rows, struct qf_err *err)
{
    QF_CLEANUP(texts_freep)
    struct colfile_texts *texts = colfile_read_texts(group, column, err);

    if (!texts)
        return err->rc;
    qf_arena_reset(reader->batch);
    for (size_t i = 0; i < rows; i++) {
        qf_rc rc;

        reader->histogram_rows[i] = NULL;
        if (texts->starts[i] == texts->starts[i + 1])
            continue;
        rc = pq_histogram_decode(reader->batch, texts->distinct[texts->index[texts->starts[i]]],
                                 &reader->histogram_rows[i], err);
        if (rc == QF_ELIMIT)
            return no_memory(reader, err);
        if (rc != QF_OK)
            return qf_err_prefix(err, rc, "%s: corrupt", colfile_name(reader->file));
    }
    return QF_OK;
}

static qf_rc reader_next(struct pq_leaf_reader *base, struct pq_rows *ret_rows, struct qf_err *err)
{
    struct reader *reader = (struct reader *)base;
    struct colfile_group group = { reader->file, reader->next_group, 0 };
    size_t values = base->kind->column_count, rows;
    struct qf_err own = { 0 };
    qf_rc rc;

    if (!err)
        err = &own;
    if (group.index == colfile_row_groups(reader->file)) {
        *ret_rows = (struct pq_rows){ 0 };
        return QF_OK;
    }
    rows = colfile_rows(reader->file, group.index);
    if (rows > SG_ARTIFACT_ROW_GROUP_ROWS)
        return corrupt(reader, "a row group is too large", err);
    rc = grow(reader, rows, err);
    group.memory_max = QF_MIN(qf_purse_left(reader->purse), COLFILE_CHUNK_MEMORY_MAX);
    if (rc == QF_OK)
        rc = colfile_read_numbers(&group, 0, reader->ts, rows, err);
    if (rc == QF_OK)
        rc = colfile_read_numbers(&group, 1, reader->series, rows, err);
    for (size_t i = 0; i < values && rc == QF_OK; i++)
        rc = colfile_read_numbers(&group, 2 + i, reader->columns[i], rows, err);
    if (reader->histograms && rc == QF_OK)
        rc = read_histograms(reader, &group, 2 + values, rows, err);
    if (rc == QF_ELIMIT && reader->purse)
        qf_purse_blame(reader->purse);
    if (rc != QF_OK)
        return rc;
    if (!rows_in_order(reader, rows))
        return corrupt(reader, "rows are out of order", err);
    reader->next_group++;
    *ret_rows = (struct pq_rows){ .count = rows, .ts = reader->ts, .series = reader->series };
    for (size_t i = 0; i < values; i++)
        ret_rows->columns[i] = reader->columns[i];
    if (reader->histograms)
        ret_rows->histograms = reader->histogram_rows;
    return QF_OK;
}

static void reader_close(struct pq_leaf_reader *base)
{
    struct reader *reader = (struct reader *)base;

    (void)colfile_free(reader->file);
    (void)qf_arena_free(reader->arena);
    (void)qf_arena_free(reader->batch);
    free(reader->ts);
    free(reader->series);
    for (size_t i = 0; i < PQ_LEAF_COLUMNS_MAX; i++)
        free(reader->columns[i]);
    free(reader->histogram_rows);
    if (reader->purse)
        qf_purse_give(reader->purse, reader->paid + reader->table_paid);
    free(reader);
}

static qf_rc reader_start(struct reader *reader, struct qf_err *err)
{
    uint64_t version;
    qf_rc rc;

    if (!meta_number(reader->file, ARTIFACT_KEY_VERSION, &version) ||
        !meta_number(reader->file, ARTIFACT_KEY_SAMPLES_READ, &reader->base.samples_read) ||
        !meta_number(reader->file, ARTIFACT_KEY_POINTS, &reader->base.points))
        return corrupt(reader, "not an artifact", err);
    if (version != SG_ARTIFACT_SCHEMA_VERSION)
        return qf_err_set(err, QF_EUNSUPPORTED, "%s: artifact version %llu; this build reads %d",
                          colfile_name(reader->file), (unsigned long long)version,
                          SG_ARTIFACT_SCHEMA_VERSION);
    reader->base.kind = pq_leaf_kind_find(colfile_meta(reader->file, ARTIFACT_KEY_KIND));
    if (!reader->base.kind)
        return corrupt(reader, "no such kind of leaf", err);
    reader->histograms = colfile_columns(reader->file) == 2 + reader->base.kind->column_count + 1;
    artifact_schema_init(&reader->schema, reader->base.kind, reader->histograms);
    rc = colfile_check_schema(reader->file, &reader->schema.file, err);
    if (rc == QF_OK)
        rc = read_series(reader, err);
    if (rc == QF_OK)
        rc = read_notes(reader, err);
    return rc;
}

static struct pq_leaf_reader *reader_new(struct colfile *file, struct qf_purse *purse,
                                         struct qf_err *err)
{
    struct reader *reader;

    if (!file)
        return NULL;
    reader = qf_xcalloc(1, sizeof(*reader));
    reader->base.next = reader_next;
    reader->base.close = reader_close;
    reader->file = file;
    reader->purse = purse;
    reader->arena = purse ? qf_arena_new_from(purse) : qf_arena_new(SIZE_MAX);
    reader->batch = purse ? qf_arena_new_from(purse) : qf_arena_new(SIZE_MAX);
    if (reader_start(reader, err) != QF_OK) {
        reader_close(&reader->base);
        return NULL;
    }
    return &reader->base;
}

/* The series table is in the footer, and may be most of the file. */
static uint64_t footer_max(const struct qf_purse *purse)
{
    return QF_MIN(qf_purse_left(purse), COLFILE_CHUNK_MEMORY_MAX);
}

struct pq_leaf_reader *sg_artifact_open_file(const char *path, struct qf_purse *purse,
                                             struct qf_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        (void)qf_err_set(err, errno == ENOENT ? QF_ENOTFOUND : QF_EIO, "%s: cannot open: %s", path,
                         strerror(errno));
        return NULL;
    }
    return reader_new(colfile_open_fd(fd, "artifact", footer_max(purse), err), purse, err);
}

struct pq_leaf_reader *sg_artifact_open_memory(struct qf_str bytes, const char *name,
                                               struct qf_purse *purse, struct qf_err *err)
{
    return reader_new(colfile_open_memory(bytes, name, footer_max(purse), err), purse, err);
}
