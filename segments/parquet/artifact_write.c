/* artifact_write.c - leaf results as Parquet files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "base/pure/hex.h"
#include "base/pure/varint.h"
#include "segments/parquet/artifact_int.h"
#include "segments/parquet/plain_file.h"
#include "promql/histogram/codec.h"

/* Rows up to which plain timestamps cost less than what Arrow makes of them. */
#define SMALL_ROWS_MAX 1024
#define FACTS_MAX 6

/* Timestamps and series differ little from row to row, so deltas take few bits and decode fast;
 * values are sent as they are: an artifact lives for one query on a fast network. */
void artifact_schema_init(struct artifact_schema *schema, const struct pq_leaf_kind *kind,
                          bool histograms)
{
    size_t values = kind->column_count, count = 0;

    schema->columns[count++] =
        (struct colfile_column){ .name = "ts", .type = COLFILE_I64, .encoding = COLFILE_DELTA };
    schema->columns[count++] =
        (struct colfile_column){ .name = "series", .type = COLFILE_I32, .encoding = COLFILE_DELTA };
    for (size_t i = 0; i < values; i++)
        schema->columns[count++] = (struct colfile_column){ .name = kind->columns[i],
                                                            .type = COLFILE_F64,
                                                            .encoding = COLFILE_PLAIN };
    if (histograms)
        schema->columns[count++] = (struct colfile_column){ .name = "histogram",
                                                            .type = COLFILE_BYTES,
                                                            .shape = COLFILE_OPTIONAL,
                                                            .encoding = COLFILE_PLAIN };
    schema->file = (struct colfile_schema){ .columns = schema->columns,
                                            .column_count = count,
                                            .page_bytes = 1u << 20 };
}

static void put_varint(struct qf_strbuf *buf, uint64_t value)
{
    unsigned char bytes[QF_VARINT_MAX];

    qf_strbuf_add(buf, bytes, qf_varint_put(bytes, value));
}

static void put_text(struct qf_strbuf *buf, struct qf_str text)
{
    put_varint(buf, text.len);
    qf_strbuf_str(buf, text);
}

/* What the metadata say of a result: texts behind each other in one buffer. */
struct facts {
    struct qf_strbuf texts;
    size_t ends[FACTS_MAX];
    const char *keys[FACTS_MAX];
    size_t count;
};

static void facts_done(struct facts *facts)
{
    qf_strbuf_done(&facts->texts);
}

/* The text that was added to the buffer is that of @key. */
static void add_fact(struct facts *facts, const char *key)
{
    facts->keys[facts->count] = key;
    facts->ends[facts->count++] = facts->texts.len;
}

static struct plain_meta fact(const struct facts *facts, size_t i)
{
    size_t start = i ? facts->ends[i - 1] : 0;

    return (struct plain_meta){ qf_str_from(facts->keys[i]),
                                { facts->texts.data + start, facts->ends[i] - start } };
}

static void add_number(struct facts *facts, const char *key, uint64_t value)
{
    qf_strbuf_printf(&facts->texts, "%llu", (unsigned long long)value);
    add_fact(facts, key);
}

static void add_series(struct facts *facts, const struct pq_leaf_result *result)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf labels = QF_STRBUF_INIT;

    put_varint(&facts->texts, result->series_count);
    for (size_t i = 0; i < result->series_count; i++) {
        qf_strbuf_reset(&labels);
        qf_labels_encode(&labels, result->series[i]);
        put_text(&facts->texts, qf_strbuf_view(&labels));
    }
    add_fact(facts, ARTIFACT_KEY_SERIES);
}

static void add_notes(struct facts *facts, const struct pq_notes *notes)
{
    struct qf_strbuf *buf = &facts->texts;

    if (!notes->count && !notes->omitted)
        return;
    put_varint(buf, notes->omitted);
    put_varint(buf, notes->count);
    for (size_t i = 0; i < notes->count; i++) {
        put_varint(buf, notes->items[i].level);
        put_varint(buf, notes->items[i].pos.start);
        put_varint(buf, notes->items[i].pos.end);
        put_text(buf, notes->items[i].text);
    }
    add_fact(facts, ARTIFACT_KEY_NOTES);
}

static void collect_facts(const struct pq_leaf_result *result, struct facts *facts)
{
    add_number(facts, ARTIFACT_KEY_VERSION, SG_ARTIFACT_SCHEMA_VERSION);
    qf_strbuf_puts(&facts->texts, result->kind->name);
    add_fact(facts, ARTIFACT_KEY_KIND);
    add_number(facts, ARTIFACT_KEY_SAMPLES_READ, result->samples_read);
    add_number(facts, ARTIFACT_KEY_POINTS, result->points);
    add_series(facts, result);
    add_notes(facts, &result->notes);
}

static qf_rc write_histograms(struct colfile_writer *writer,
                              const struct pq_histogram *const *histograms, size_t count,
                              struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) struct qf_str *values = qf_xcalloc(count, sizeof(*values));
    QF_CLEANUP(qf_freep) uint32_t *lengths = qf_xcalloc(count, sizeof(*lengths));
    struct colfile_data data = { .values = values, .rows = count, .lengths = lengths };
    size_t start = 0;

    for (size_t i = 0; i < count; i++) {
        if (!histograms[i])
            continue;
        start = bytes.len;
        pq_histogram_encode(&bytes, histograms[i]);
        values[data.count++].len = bytes.len - start;
        lengths[i] = 1;
    }
    start = 0;
    for (size_t i = 0; i < data.count; i++) { /* only now that the bytes no longer move */
        values[i].data = bytes.data + start;
        start += values[i].len;
    }
    return colfile_write(writer, &data, err);
}

static qf_rc write_rows(struct colfile_writer *writer, const struct pq_leaf_result *result,
                        size_t start, size_t count, struct qf_err *err)
{
    const struct pq_rows *rows = &result->rows;
    struct colfile_data data = { .count = count, .rows = count, .values = rows->ts + start };
    qf_rc rc = colfile_write(writer, &data, err);

    data.values = rows->series + start;
    if (rc == QF_OK)
        rc = colfile_write(writer, &data, err);
    for (size_t i = 0; i < result->kind->column_count && rc == QF_OK; i++) {
        data.values = rows->columns[i] + start;
        rc = colfile_write(writer, &data, err);
    }
    if (rows->histograms && rc == QF_OK)
        rc = write_histograms(writer, rows->histograms + start, count, err);
    return rc;
}

static void print_checksum(const unsigned char *hash, char *out)
{
    out += snprintf(out, 6, "xxh3:");
    qf_hex_encode(hash, 16, out);
}

static qf_rc write_all_rows(struct colfile_writer *writer, const struct pq_leaf_result *result,
                            const atomic_bool *canceled, struct qf_err *err)
{
    size_t total = result->rows.count;
    qf_rc rc = QF_OK;

    for (size_t at = 0; at < total && rc == QF_OK; at += SG_ARTIFACT_ROW_GROUP_ROWS) {
        if (canceled && atomic_load_explicit(canceled, memory_order_relaxed))
            return qf_err_set(err, QF_ECANCELED, "canceled");
        rc = write_rows(writer, result, at, QF_MIN(total - at, (size_t)SG_ARTIFACT_ROW_GROUP_ROWS),
                        err);
    }
    return rc;
}

static void tell(const struct pq_leaf_result *result, uint64_t size, struct sg_artifact_info *info)
{
    const struct pq_rows *rows = &result->rows;

    info->size_bytes = size;
    info->row_count = rows->count;
    info->min_ts = rows->count ? rows->ts[0] : 0;
    info->max_ts = rows->count ? rows->ts[rows->count - 1] : 0;
    info->schema_version = SG_ARTIFACT_SCHEMA_VERSION;
}

static qf_rc write_result(struct colfile_writer *writer, const struct pq_leaf_result *result,
                          const atomic_bool *canceled, struct qf_strbuf *buf,
                          struct sg_artifact_info *info, struct qf_err *err)
{
    QF_CLEANUP(facts_done) struct facts facts = { 0 };
    struct colfile_written written;
    qf_rc rc = write_all_rows(writer, result, canceled, err);

    if (rc != QF_OK)
        return rc;
    collect_facts(result, &facts);
    for (size_t i = 0; i < facts.count; i++)
        colfile_set_meta(writer, fact(&facts, i).key, fact(&facts, i).value);
    rc = colfile_finish(writer, false, buf, &written, err);
    if (rc != QF_OK)
        return rc;
    tell(result, written.size, info);
    print_checksum(written.hash, info->checksum);
    return QF_OK;
}

/* Large results, and those with histograms, by Arrow. */
static qf_rc write_large(const struct pq_leaf_result *result, const char *path,
                         struct qf_strbuf *buf, const atomic_bool *canceled,
                         struct sg_artifact_info *info, struct qf_err *err)
{
    struct artifact_schema schema;
    struct colfile_writer *writer;
    qf_rc rc;

    artifact_schema_init(&schema, result->kind, result->rows.histograms != NULL);
    writer = colfile_writer_new(&schema.file, path, err);
    if (!writer)
        return err->rc;
    rc = write_result(writer, result, canceled, buf, info, err);
    (void)colfile_writer_free(writer);
    return rc;
}

/* -- Small results ---------------------------------------------------------------------------- */

static bool is_small(const struct pq_leaf_result *result)
{
    return result->rows.count <= SMALL_ROWS_MAX && !result->rows.histograms;
}

static void write_small(const struct pq_leaf_result *result, struct qf_strbuf *buf,
                        struct sg_artifact_info *info)
{
    QF_CLEANUP(facts_done) struct facts facts = { 0 };
    const void *values[ARTIFACT_COLUMNS_MAX] = { result->rows.ts, result->rows.series };
    struct plain_column columns[ARTIFACT_COLUMNS_MAX];
    struct plain_meta meta[FACTS_MAX];
    struct artifact_schema schema;
    struct plain_file file = { .columns = columns, .rows = result->rows.count, .meta = meta };
    size_t start = buf->len;

    artifact_schema_init(&schema, result->kind, false);
    for (size_t c = 0; c < result->kind->column_count; c++)
        values[2 + c] = result->rows.columns[c];
    for (size_t c = 0; c < schema.file.column_count; c++)
        columns[c] =
            (struct plain_column){ schema.columns[c].name, schema.columns[c].type, values[c] };
    file.column_count = schema.file.column_count;
    collect_facts(result, &facts);
    for (; file.meta_count < facts.count; file.meta_count++)
        meta[file.meta_count] = fact(&facts, file.meta_count);
    plain_file_write(&file, buf);
    tell(result, buf->len - start, info);
    sg_artifact_checksum((struct qf_str){ buf->data + start, buf->len - start }, info->checksum);
}

static qf_rc file_error(const char *path, const char *what, struct qf_err *err)
{
    qf_rc rc = errno == EEXIST                      ? QF_EEXIST
               : errno == ENOSPC || errno == EDQUOT ? QF_ENOSPC
                                                    : QF_EIO;

    return qf_err_set(err, rc, "%s: cannot %s: %s", path, what, strerror(errno));
}

/* The bytes as a new file, which is removed if they cannot all be written. */
static qf_rc put_file(const char *path, struct qf_str bytes, struct qf_err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    qf_rc rc = QF_OK;

    if (fd < 0)
        return file_error(path, "create", err);
    while (rc == QF_OK && bytes.len > 0) {
        ssize_t done = write(fd, bytes.data, bytes.len);

        errno = done == 0 ? EIO : errno;
        if (done == 0 || (done < 0 && errno != EINTR))
            rc = file_error(path, "write", err);
        bytes = qf_str_sub(bytes, done < 0 ? 0 : (size_t)done, bytes.len);
    }
    if (close(fd) != 0 && rc == QF_OK)
        rc = file_error(path, "write", err);
    if (rc)
        (void)unlink(path);
    return rc;
}

qf_rc sg_artifact_write_file(const struct pq_leaf_result *result, const char *path,
                             const atomic_bool *canceled, struct sg_artifact_info *ret_info,
                             struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct sg_artifact_info info;
    struct qf_err own = { 0 };
    qf_rc rc;

    err = err ? err : &own;
    if (!is_small(result)) {
        rc = write_large(result, path, NULL, canceled, &info, err);
    } else if (canceled && atomic_load_explicit(canceled, memory_order_relaxed)) {
        return qf_err_set(err, QF_ECANCELED, "canceled");
    } else {
        write_small(result, &bytes, &info);
        rc = put_file(path, qf_strbuf_view(&bytes), err);
    }
    if (rc == QF_OK && ret_info)
        *ret_info = info;
    return rc;
}

qf_rc sg_artifact_write_memory(const struct pq_leaf_result *result, struct qf_strbuf *buf,
                               struct sg_artifact_info *ret_info, struct qf_err *err)
{
    struct sg_artifact_info info;
    struct qf_err own = { 0 };
    qf_rc rc = QF_OK;

    if (is_small(result))
        write_small(result, buf, &info);
    else
        rc = write_large(result, NULL, buf, NULL, &info, err ? err : &own);
    if (rc == QF_OK && ret_info)
        *ret_info = info;
    return rc;
}

void sg_artifact_checksum(struct qf_str bytes, char *out)
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data, bytes.len));
    print_checksum(canonical.digest, out);
}
