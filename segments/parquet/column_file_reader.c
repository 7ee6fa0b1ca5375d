/* column_file_reader.c - open sealed Parquet files and tell what is in them. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "segments/parquet/column_file_int.h"
#include "segments/parquet/column_file_seal.h"
#include "segments/parquet/thrift_scan.h"

#define TAIL_GUESS ((uint64_t)64 << 10) /* holds most footers: one read, not two */

qf_rc colfile_corrupt(const struct colfile *file, const char *what, struct qf_err *err)
{
    return qf_err_set(err, QF_ECORRUPT, "%s: corrupt: %s", file->name, what);
}

qf_rc colfile_blame(const struct colfile *file, qf_rc rc, struct qf_err *err)
{
    return qf_err_prefix(err, rc, rc == QF_ECORRUPT ? "%s: corrupt" : "%s", file->name);
}

qf_rc colfile_read_at(const struct colfile *file, uint64_t offset, uint64_t size, char *out,
                      struct qf_err *err)
{
    if (file->bytes.data) {
        memcpy(out, file->bytes.data + offset, size);
        return QF_OK;
    }
    while (size > 0) {
        ssize_t done = pread(file->fd, out, size, (off_t)offset);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return qf_err_set(err, QF_EIO, "%s: cannot read: %s", file->name, strerror(errno));
        if (done == 0)
            return colfile_corrupt(file, "the file was cut short", err);
        out += done;
        offset += (uint64_t)done;
        size -= (uint64_t)done;
    }
    return QF_OK;
}

/* -- Opening ---------------------------------------------------------------------------------- */

static bool codec_known(int codec)
{
    return codec == SHIM_RAW || codec == SHIM_LZ4 || codec == SHIM_ZSTD;
}

/* The next chunk must start at *at; move it behind. */
static qf_rc index_chunk(const struct colfile *file, size_t group, size_t column, uint64_t *at,
                         struct qf_err *err)
{
    struct colfile_chunk *chunk = &file->chunks[group * file->column_count + column];
    struct shim_chunk *facts = &chunk->facts;
    qf_rc rc = shim_meta_chunk(file->meta, (int)group, (int)column, facts, err);
    int64_t start;

    if (rc)
        return colfile_blame(file, rc, err);
    if (facts->rows <= 0)
        return colfile_corrupt(file, "an empty row group", err);
    start = QF_MIN(facts->data_start, facts->dictionary_start);
    if (start < 0 || (uint64_t)start != *at || facts->size < 0 ||
        (uint64_t)facts->size > file->size - *at || facts->values < 0 || facts->values > INT32_MAX)
        return colfile_corrupt(file, "column chunks are out of place", err);
    if (!codec_known(facts->codec))
        return qf_err_set(err, QF_EUNSUPPORTED, "%s: a column is compressed in an unknown way",
                          file->name);
    chunk->start = *at;
    chunk->size = (uint64_t)facts->size;
    *at += chunk->size;
    return QF_OK;
}

/* Fill the tables from the parsed footer; chunks must cover [4, seal->offset) without gaps. */
static qf_rc index_file(struct colfile *file, const struct colfile_seal *seal, struct qf_err *err)
{
    uint64_t at = 4;
    qf_rc rc = QF_OK;

    file->column_count = (size_t)gparquet_file_metadata_get_n_columns(file->meta);
    file->group_count = (size_t)gparquet_file_metadata_get_n_row_groups(file->meta);
    if (file->column_count == 0 || file->group_count != seal->hash_count / file->column_count ||
        seal->hash_count % file->column_count != 0)
        return colfile_corrupt(file, "the seal does not fit the footer", err);
    file->leaves = qf_xcalloc(file->column_count, sizeof(*file->leaves));
    file->chunks = qf_xcalloc(seal->hash_count, sizeof(*file->chunks));
    for (size_t c = 0; c < file->column_count; c++)
        shim_meta_leaf(file->meta, (int)c, &file->leaves[c]);
    for (size_t i = 0; i < seal->hash_count; i++)
        file->chunks[i].hash = colfile_seal_hash(seal, i);
    for (size_t g = 0; rc == QF_OK && g < file->group_count; g++)
        for (size_t c = 0; rc == QF_OK && c < file->column_count; c++)
            rc = index_chunk(file, g, c, &at, err);
    if (rc == QF_OK && at != seal->offset)
        return colfile_corrupt(file, "column chunks do not fill the file", err);
    return rc;
}

/* Verify and parse the end of a file. QF_OK with *ret_need > 0: more of it is needed. */
static qf_rc parse_tail(struct colfile *file, struct qf_str tail, uint64_t memory_max,
                        uint64_t *ret_need, struct qf_err *err)
{
    struct colfile_seal seal;
    uint64_t cost = 0;
    qf_rc rc = colfile_seal_open(tail, file->size, &seal, ret_need, err);

    if (rc)
        return colfile_blame(file, rc, err);
    if (*ret_need > memory_max)
        return qf_err_set(err, QF_ELIMIT, "%s: the footer has more than %llu bytes", file->name,
                          (unsigned long long)memory_max);
    if (*ret_need)
        return QF_OK;
    rc = thrift_scan(seal.footer, memory_max, &cost, err);
    if (rc == QF_OK)
        rc = shim_meta_parse(seal.footer, &file->meta, err);
    if (rc)
        return colfile_blame(file, rc, err);
    file->tail_bytes = seal.size;
    return index_file(file, &seal, err);
}

static qf_rc check_magic(const struct colfile *file, struct qf_err *err)
{
    char magic[4];
    qf_rc rc = colfile_read_at(file, 0, 4, magic, err);

    if (rc == QF_OK && memcmp(magic, "PAR1", 4) != 0)
        rc = colfile_corrupt(file, "no Parquet magic at the start", err);
    return rc;
}

/* Read the last bytes of the file, as many as its footer and seal take. */
static qf_rc read_tail(struct colfile *file, uint64_t memory_max, struct qf_err *err)
{
    uint64_t want = QF_MIN(file->size, TAIL_GUESS);

    for (int round = 0; round < 3; round++) {
        size_t size = want;
        QF_CLEANUP(qf_freep) char *tail = qf_xmalloc(size + 1);
        qf_rc rc = colfile_read_at(file, file->size - size, size, tail, err);

        if (rc == QF_OK)
            rc = parse_tail(file, (struct qf_str){ tail, size }, memory_max, &want, err);
        if (rc)
            return rc;
        if (want == 0)
            return check_magic(file, err);
    }
    return colfile_corrupt(file, "the footer's length is wrong", err);
}

static struct colfile *file_new(const char *name, uint64_t size)
{
    struct colfile *file = qf_xcalloc(1, sizeof(*file));

    file->name = qf_xstrdup(name);
    file->fd = -1;
    file->size = size;
    return file;
}

struct colfile *colfile_open_fd(int fd, const char *name, uint64_t memory_max, struct qf_err *err)
{
    struct colfile *file = file_new(name, 0);
    struct stat status;

    file->fd = fd;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        (void)qf_err_set(err, QF_EIO, "%s: not a regular file", name);
        return colfile_free(file);
    }
    file->size = (uint64_t)status.st_size;
    return read_tail(file, memory_max, err) == QF_OK ? file : colfile_free(file);
}

struct colfile *colfile_open_path(const char *path, uint64_t memory_max, struct qf_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        (void)qf_err_set(err, errno == ENOENT ? QF_ENOTFOUND : QF_EIO, "%s: cannot open: %s", path,
                         strerror(errno));
        return NULL;
    }
    return colfile_open_fd(fd, path, memory_max, err);
}

struct colfile *colfile_open_memory(struct qf_str bytes, const char *name, uint64_t memory_max,
                                    struct qf_err *err)
{
    struct colfile *file = file_new(name, bytes.len);

    file->bytes = bytes.data ? bytes : QF_STR("");
    return read_tail(file, memory_max, err) == QF_OK ? file : colfile_free(file);
}

struct colfile *colfile_open_tail(struct qf_str tail, uint64_t file_size, const char *name,
                                  uint64_t *ret_need, struct qf_err *err)
{
    struct colfile *file = file_new(name, file_size);
    qf_rc rc;

    file->tail_only = true;
    rc = parse_tail(file, tail.data ? tail : QF_STR(""), COLFILE_FOOTER_MEMORY_MAX, ret_need, err);
    return rc == QF_OK && *ret_need == 0 ? file : colfile_free(file);
}

struct colfile *colfile_free(struct colfile *file)
{
    if (!file)
        return NULL;
    g_clear_object(&file->meta);
    if (file->fd >= 0)
        (void)close(file->fd);
    free(file->chunks);
    free(file->leaves);
    free(file->name);
    free(file);
    return NULL;
}

/* -- What is in it ---------------------------------------------------------------------------- */

const char *colfile_name(const struct colfile *file)
{
    return file->name;
}

size_t colfile_memory(const struct colfile *file)
{
    /* Thrift's structures take about four times their serialised form. */
    return sizeof(*file) + file->group_count * file->column_count * sizeof(*file->chunks) +
           4 * file->tail_bytes;
}

static bool same_column(const struct shim_leaf *got, const struct colfile_column *want)
{
    bool repeated = want->shape != COLFILE_FLAT && want->shape != COLFILE_OPTIONAL;

    return got->type == (int)shim_type_of(want->type) &&
           got->definition_max == (want->shape != COLFILE_FLAT) &&
           got->repetition_max == repeated && strcmp(got->name, want->name) == 0;
}

qf_rc colfile_check_schema(const struct colfile *file, const struct colfile_schema *schema,
                           struct qf_err *err)
{
    if (file->column_count != schema->column_count)
        return qf_err_set(err, QF_EUNSUPPORTED, "%s: has %zu columns where %zu are known",
                          file->name, file->column_count, schema->column_count);
    for (size_t i = 0; i < schema->column_count; i++)
        if (!same_column(&file->leaves[i], &schema->columns[i]))
            return qf_err_set(err, QF_EUNSUPPORTED, "%s: column %zu is not %s as it is known",
                              file->name, i, schema->columns[i].name);
    return QF_OK;
}

struct qf_str colfile_meta(const struct colfile *file, const char *key)
{
    return shim_meta_value(file->meta, key);
}

size_t colfile_columns(const struct colfile *file)
{
    return file->column_count;
}

size_t colfile_row_groups(const struct colfile *file)
{
    return file->group_count;
}

size_t colfile_rows(const struct colfile *file, size_t row_group)
{
    return (size_t)colfile_chunk(file, row_group, 0)->facts.rows;
}

size_t colfile_values(const struct colfile *file, size_t row_group, size_t column)
{
    return (size_t)colfile_chunk(file, row_group, column)->facts.values;
}

size_t colfile_chunk_bytes(const struct colfile *file, size_t row_group, size_t column)
{
    return colfile_chunk(file, row_group, column)->size;
}

void colfile_group_span(const struct colfile *file, size_t row_group, uint64_t *ret_start,
                        uint64_t *ret_end)
{
    const struct colfile_chunk *last = colfile_chunk(file, row_group, file->column_count - 1);

    *ret_start = colfile_chunk(file, row_group, 0)->start;
    *ret_end = last->start + last->size;
}

bool colfile_range_text(const struct colfile *file, size_t row_group, size_t column,
                        struct qf_strbuf *min, struct qf_strbuf *max)
{
    bool found = false;

    return shim_meta_range(file->meta, (int)row_group, (int)column, min, max, &found, NULL) ==
               QF_OK &&
           found;
}

bool colfile_range_i64(const struct colfile *file, size_t row_group, size_t column,
                       int64_t *ret_min, int64_t *ret_max)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf min = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf max = QF_STRBUF_INIT;

    if (file->leaves[column].type != SHIM_I64 ||
        !colfile_range_text(file, row_group, column, &min, &max) || min.len != sizeof(*ret_min) ||
        max.len != sizeof(*ret_max))
        return false;
    /* As Parquet stores numbers: little endian, as all machines we run on. */
    memcpy(ret_min, min.data, sizeof(*ret_min));
    memcpy(ret_max, max.data, sizeof(*ret_max));
    return true;
}
