/* shim.h - the calls of Parquet's C++ library that Arrow GLib does not offer, for C.
 *
 * Arrow GLib gives us streams, writer properties and the metadata of files and row groups; it has
 * no way to choose encodings, to write columns from arrays and to decode them into arrays. Each
 * function here is one such call and nothing else: what it means, what is checked and what is
 * counted is the business of column_file_*.c.
 *
 * Exceptions end here: they become QF_ENOMEM, or QF_EIO when writing and QF_ECORRUPT when reading,
 * with the library's words as the message. */
#ifndef SEGMENTS_PARQUET_SHIM_H
#define SEGMENTS_PARQUET_SHIM_H

#include "segments/parquet/arrow_glib.h"
#include "segments/parquet/column_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A text as Parquet's C++ library lays it out. */
struct shim_bytes {
    uint32_t len;
    const uint8_t *data;
};

/* -- Writing (shim_write.cc, shim_schema.cc) -------------------------------------------------- */

struct shim_writer;

/* @properties hold what Arrow GLib can set; the rest is taken from @schema. @paths: the dotted path
 * of each column. */
struct shim_writer *shim_writer_new(GArrowOutputStream *sink, GParquetWriterProperties *properties,
                                    const struct colfile_schema *schema, char *const *paths,
                                    struct qf_err *err);
/* Closes the file first if shim_writer_close() did not. */
void shim_writer_free(struct shim_writer *writer);

struct shim_values {
    const void *values; /* int32_t, int64_t, double or struct shim_bytes */
    const int16_t *definition, *repetition;
    size_t count; /* of levels, or of values where there are none */
};
QF_MUST_CHECK qf_rc shim_group_begin(struct shim_writer *writer, struct qf_err *err);
/* The next column of the group, whole. */
QF_MUST_CHECK qf_rc shim_column_write(struct shim_writer *writer, enum colfile_type type,
                                      const struct shim_values *values, struct qf_err *err);
QF_MUST_CHECK qf_rc shim_group_end(struct shim_writer *writer, struct qf_err *err);
void shim_writer_meta(struct shim_writer *writer, struct qf_str key, struct qf_str value);
/* Write the footer. */
QF_MUST_CHECK qf_rc shim_writer_close(struct shim_writer *writer, struct qf_err *err);

#ifdef __cplusplus
}
#endif

#endif
