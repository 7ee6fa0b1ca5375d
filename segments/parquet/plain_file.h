/* plain_file.h - small Parquet files of flat numbers, written without Arrow.
 *
 * Arrow's writer takes the better part of a tenth of a millisecond for a file of a few rows, most of it to look
 * up the properties of each column by name, again and again. A file of one row group with one page of plain
 * numbers a column is little more than its arrays: pages, seal (column_file.h) and a footer in Thrift's
 * compact form are written here. Any Parquet reader reads it. */
#ifndef SEGMENTS_PARQUET_PLAIN_FILE_H
#define SEGMENTS_PARQUET_PLAIN_FILE_H

#include <stddef.h>

#include "base/pure/slice.h"
#include "base/pure/strbuf.h"
#include "segments/parquet/column_file.h"

/* Bytes of one column at most: sizes of pages are 32-bit numbers. */
#define PLAIN_FILE_COLUMN_BYTES_MAX ((size_t)1 << 30)

struct plain_column {
    const char *name;
    enum colfile_type type; /* COLFILE_I32, COLFILE_I64 or COLFILE_F64 */
    const void *values;     /* as many as there are rows */
};

struct plain_meta {
    struct qf_str key, value;
};

struct plain_file {
    const struct plain_column *columns;
    size_t column_count, rows;
    const struct plain_meta *meta;
    size_t meta_count;
};

/* Append the file to @out. */
void plain_file_write(const struct plain_file *file, struct qf_strbuf *out);

#endif
