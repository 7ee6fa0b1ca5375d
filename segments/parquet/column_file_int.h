/* column_file_int.h - what the files that read column files share. */
#ifndef SEGMENTS_PARQUET_COLUMN_FILE_INT_H
#define SEGMENTS_PARQUET_COLUMN_FILE_INT_H

#include "segments/parquet/column_file.h"
#include "segments/parquet/shim.h"

struct colfile_chunk {
    uint64_t start, size; /* where it lies: inside of the file, right behind the one before */
    uint64_t hash;
    struct shim_chunk facts; /* some rows, and at most INT32_MAX values */
};

struct colfile {
    char *name;
    int fd;
    struct qf_str bytes; /* if it is in memory */
    uint64_t size;
    bool tail_only;
    uint64_t tail_bytes;
    GParquetFileMetadata *meta;
    size_t column_count, group_count;
    struct shim_leaf *leaves;     /* per column */
    struct colfile_chunk *chunks; /* row group by row group */
};

static inline const struct colfile_chunk *colfile_chunk(const struct colfile *file,
                                                        size_t row_group, size_t column)
{
    return &file->chunks[row_group * file->column_count + column];
}

/* "NAME: corrupt: @what" */
qf_rc colfile_corrupt(const struct colfile *file, const char *what, struct qf_err *err);
/* Say which file an error of the shim or the seal is about. */
qf_rc colfile_blame(const struct colfile *file, qf_rc rc, struct qf_err *err);
/* All @size bytes at @offset. QF_EIO, QF_ECORRUPT. */
QF_MUST_CHECK qf_rc colfile_read_at(const struct colfile *file, uint64_t offset, uint64_t size,
                                    char *out, struct qf_err *err);

/* A chunk in memory, verified. */
struct colfile_bytes {
    char *buffer; /* NULL if the file is in memory */
    const char *data;
    uint64_t size;
    uint64_t left; /* of what may be held */
};
/* What is behind the bytes of a buffer may be read by decoders that take whole words. */
#define COLFILE_PADDING 64u
QF_MUST_CHECK qf_rc colfile_bytes_read(struct colfile_bytes *bytes,
                                       const struct colfile_group *group, size_t column,
                                       struct qf_err *err);
void colfile_bytes_done(struct colfile_bytes *bytes);
/* Decode verified bytes with Arrow. *ret_exact: they hold @count values. */
QF_MUST_CHECK qf_rc colfile_bytes_decode(const struct colfile_bytes *bytes,
                                         const struct colfile_group *group, size_t column,
                                         void *out, size_t count, struct qf_err *err);
/* "NAME: decoding a column takes more memory than it may" */
qf_rc colfile_over(const struct colfile *file, struct qf_err *err);

#endif
