/* column_file_writer.c - Parquet out: arrays to column chunks, sealed. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/vec.h"
#include "segments/parquet/column_file.h"
#include "segments/parquet/column_file_seal.h"
#include "segments/parquet/column_file_sink.h"
#include "segments/parquet/shim.h"

/* One dictionary per chunk, however many label values it has. */
#define DICTIONARY_BYTES_MAX ((gint64)64 << 20)

struct colfile_writer {
    char *path; /* NULL: memory */
    int fd;
    bool finished;
    struct colfile_column *columns; /* their names are not kept */
    size_t column_count, next_column;
    struct colfile_sink *sink;
    GArrowOutputStream *stream; /* the sink, as Arrow sees it */
    struct shim_writer *shim;
    struct qf_strbuf hashes; /* the seal grows here */
    uint32_t hash_count;
    QF_VEC(int16_t) definition;
    QF_VEC(int16_t) repetition;
    QF_VEC(struct shim_bytes) texts;
};

static qf_rc failure(const struct colfile_writer *writer, const char *what, struct qf_err *err)
{
    int error = writer->sink->error;
    qf_rc rc = error == ENOSPC || error == EDQUOT ? QF_ENOSPC : QF_EIO;

    return qf_err_set(err, rc, "%s: cannot write: %s", writer->path ? writer->path : "memory",
                      error ? strerror(error) : what);
}

/* -- Schema ----------------------------------------------------------------------------------- */

static char *path_of(const struct colfile_column *column)
{
    static const char *const below[] = {
        [COLFILE_FLAT] = "",
        [COLFILE_OPTIONAL] = "",
        [COLFILE_LIST] = ".list.element",
        [COLFILE_MAP_KEY] = ".key_value.key",
        [COLFILE_MAP_VALUE] = ".key_value.value",
    };

    return g_strconcat(column->name, below[column->shape], NULL);
}

static GParquetWriterProperties *properties_new(const struct colfile_schema *schema,
                                                char *const *paths)
{
    GParquetWriterProperties *properties = gparquet_writer_properties_new();

    gparquet_writer_properties_set_data_page_size(properties, (gint64)schema->page_bytes);
    gparquet_writer_properties_set_dictionary_page_size_limit(properties, DICTIONARY_BYTES_MAX);
    gparquet_writer_properties_disable_dictionary(properties, NULL);
    for (size_t i = 0; i < schema->column_count; i++) {
        const struct colfile_column *column = &schema->columns[i];

        if (column->encoding == COLFILE_DICTIONARY)
            gparquet_writer_properties_enable_dictionary(properties, paths[i]);
        if (column->codec == COLFILE_LZ4)
            gparquet_writer_properties_set_compression(properties, GARROW_COMPRESSION_TYPE_LZ4,
                                                       paths[i]);
        else if (column->codec == COLFILE_ZSTD)
            gparquet_writer_properties_set_compression(properties, GARROW_COMPRESSION_TYPE_ZSTD,
                                                       paths[i]);
    }
    return properties;
}

static struct shim_writer *shim_new(const struct colfile_writer *writer,
                                    const struct colfile_schema *schema, struct qf_err *err)
{
    g_auto(GStrv) paths = g_new0(char *, schema->column_count + 1);
    g_autoptr(GParquetWriterProperties) properties = NULL;
    struct qf_err why = { 0 };
    struct shim_writer *shim = NULL;

    for (size_t i = 0; i < schema->column_count; i++)
        paths[i] = path_of(&schema->columns[i]);
    properties = properties_new(schema, paths);
    if (shim_writer_new(writer->stream, properties, schema, paths, &shim, &why))
        (void)failure(writer, why.msg, err);
    return shim;
}

/* -- Life ------------------------------------------------------------------------------------- */

static int create(const char *path, struct qf_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0)
        (void)qf_err_set(err,
                         errno == EEXIST   ? QF_EEXIST
                         : errno == ENOSPC ? QF_ENOSPC
                                           : QF_EIO,
                         "%s: cannot create: %s", path, strerror(errno));
    return fd;
}

struct colfile_writer *colfile_writer_new(const struct colfile_schema *schema, const char *path,
                                          struct qf_err *err)
{
    int fd = path ? create(path, err) : -1;
    size_t columns_size = schema->column_count * sizeof(*schema->columns);
    struct colfile_writer *writer;

    if (path && fd < 0)
        return NULL;
    writer = qf_xcalloc(1, sizeof(*writer));
    writer->fd = fd;
    writer->path = path ? qf_xstrdup(path) : NULL;
    writer->column_count = schema->column_count;
    writer->columns = qf_xmalloc(columns_size);
    memcpy(writer->columns, schema->columns, columns_size);
    writer->sink = colfile_sink_new(fd);
    writer->stream =
        GARROW_OUTPUT_STREAM(garrow_gio_output_stream_new(G_OUTPUT_STREAM(writer->sink)));
    writer->shim = shim_new(writer, schema, err);
    if (!writer->shim)
        return colfile_writer_free(writer);
    return writer;
}

struct colfile_writer *colfile_writer_free(struct colfile_writer *writer)
{
    if (!writer)
        return NULL;
    /* Arrow closes an unfinished file, which nobody wants any more. */
    writer->sink->discarding = true;
    shim_writer_free(writer->shim);
    g_object_unref(writer->stream);
    g_object_unref(writer->sink);
    if (writer->fd >= 0)
        (void)close(writer->fd);
    if (writer->path && !writer->finished)
        (void)unlink(writer->path);
    QF_VEC_DONE(&writer->definition);
    QF_VEC_DONE(&writer->repetition);
    QF_VEC_DONE(&writer->texts);
    qf_strbuf_done(&writer->hashes);
    free(writer->columns);
    free(writer->path);
    free(writer);
    return NULL;
}

/* -- Columns ---------------------------------------------------------------------------------- */

/* Levels of lists, maps and optional values: 1 (present) per value, 0 for an empty row; a row's
 * first value repeats nothing. */
static void build_levels(struct colfile_writer *writer, const struct colfile_data *data)
{
    size_t count = 0, at = 0;

    for (size_t row = 0; row < data->rows; row++)
        count += QF_MAX(data->lengths[row], 1U);
    QF_VEC_RESERVE(&writer->definition, count);
    QF_VEC_RESERVE(&writer->repetition, count);
    for (size_t row = 0; row < data->rows; row++) {
        uint32_t length = data->lengths[row];

        writer->definition.items[at] = length > 0;
        writer->repetition.items[at++] = 0;
        for (uint32_t i = 1; i < length; i++, at++)
            writer->definition.items[at] = writer->repetition.items[at] = 1;
    }
    writer->definition.count = writer->repetition.count = count;
}

static void build_texts(struct colfile_writer *writer, const struct colfile_data *data)
{
    const struct qf_str *strings = data->values;

    QF_VEC_RESERVE(&writer->texts, data->count);
    for (size_t i = 0; i < data->count; i++)
        writer->texts.items[i] =
            (struct shim_bytes){ (uint32_t)strings[i].len, (const uint8_t *)strings[i].data };
    writer->texts.count = data->count;
}

static qf_rc write_chunk(struct colfile_writer *writer, const struct colfile_column *column,
                         const struct colfile_data *data, struct qf_err *err)
{
    struct shim_values values = { .values = data->values, .count = (int64_t)data->count };

    if (column->shape != COLFILE_FLAT) {
        build_levels(writer, data);
        values.count = (int64_t)writer->definition.count;
        values.definition = writer->definition.items;
        values.repetition = column->shape == COLFILE_OPTIONAL ? NULL : writer->repetition.items;
    }
    if (column->type == COLFILE_TEXT || column->type == COLFILE_BYTES) {
        build_texts(writer, data);
        values.values = writer->texts.items;
    }
    return shim_column_write(writer->shim, shim_type_of(column->type), &values, err);
}

qf_rc colfile_write(struct colfile_writer *writer, const struct colfile_data *data,
                    struct qf_err *err)
{
    const struct colfile_column *column = &writer->columns[writer->next_column];
    struct qf_err why = { 0 };
    qf_rc rc = QF_OK;

    if (writer->next_column == 0)
        rc = shim_group_begin(writer->shim, &why);
    colfile_sink_begin_chunk(writer->sink);
    if (rc == QF_OK)
        rc = write_chunk(writer, column, data, &why);
    if (rc)
        return failure(writer, why.msg, err);
    colfile_seal_add_hash(&writer->hashes, XXH3_64bits_digest(writer->sink->chunk));
    writer->hash_count++;
    writer->next_column = (writer->next_column + 1) % writer->column_count;
    return QF_OK;
}

/* -- The end ---------------------------------------------------------------------------------- */

void colfile_set_meta(struct colfile_writer *writer, struct qf_str key, struct qf_str value)
{
    shim_writer_meta(writer->shim, key, value);
}

static qf_rc close_file(struct colfile_writer *writer, bool sync, struct qf_err *err)
{
    int fd = writer->fd;

    if (sync && fsync(fd) != 0)
        return failure(writer, strerror(errno), err);
    writer->fd = -1;
    if (close(fd) != 0)
        return failure(writer, strerror(errno), err);
    return QF_OK;
}

/* The footer, and the seal in front of it. */
static qf_rc write_tail(struct colfile_writer *writer, struct qf_err *err)
{
    struct colfile_sink *sink = writer->sink;
    uint64_t offset = sink->written;
    struct qf_err why = { 0 };

    colfile_sink_hold(sink);
    if (shim_writer_close(writer->shim, &why))
        return failure(writer, why.msg, err);
    colfile_seal_close(&writer->hashes, writer->hash_count, offset, qf_strbuf_view(&sink->tail));
    if (!colfile_sink_append(sink, writer->hashes.data, writer->hashes.len) ||
        !colfile_sink_append(sink, sink->tail.data, sink->tail.len) || !colfile_sink_flush(sink))
        return failure(writer, "", err);
    return QF_OK;
}

uint64_t colfile_writer_bytes(const struct colfile_writer *writer)
{
    return writer->sink->written;
}

qf_rc colfile_finish(struct colfile_writer *writer, bool sync, struct qf_strbuf *buf,
                     struct colfile_written *ret_written, struct qf_err *err)
{
    const struct colfile_sink *sink = writer->sink;
    XXH128_canonical_t canonical;
    qf_rc rc = write_tail(writer, err);

    if (rc == QF_OK && writer->fd >= 0)
        rc = close_file(writer, sync, err);
    else if (rc == QF_OK)
        qf_strbuf_add(buf, sink->buffer.data, sink->buffer.len);
    if (rc)
        return rc;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(sink->whole));
    memcpy(ret_written->hash, canonical.digest, sizeof(ret_written->hash));
    ret_written->size = sink->written;
    writer->finished = true;
    return QF_OK;
}
