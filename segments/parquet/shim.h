/* shim.h - the calls of Parquet's C++ library that Arrow GLib does not offer, for C.
 *
 * Arrow GLib gives us streams, writer properties and an object for the metadata of a file; it has
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

/* Parquet's own numbers of the types we know. */
enum shim_type { SHIM_I32 = 1, SHIM_I64 = 2, SHIM_F64 = 5, SHIM_BYTES = 6 };

/* Arrow's own numbers of the codecs we use. */
enum shim_codec { SHIM_RAW = 0, SHIM_ZSTD = 4, SHIM_LZ4 = 5 };

static inline enum shim_type shim_type_of(enum colfile_type type)
{
    return type == COLFILE_I32   ? SHIM_I32
           : type == COLFILE_I64 ? SHIM_I64
           : type == COLFILE_F64 ? SHIM_F64
                                 : SHIM_BYTES;
}

/* A text as Parquet's C++ library lays it out. */
struct shim_bytes {
    uint32_t len;
    const uint8_t *data;
};

/* -- Writing (shim_write.cc, shim_schema.cc) -------------------------------------------------- */

struct shim_writer;

/* @properties hold what Arrow GLib can set; the rest is taken from @schema. @paths: the dotted path
 * of each column. */
QF_MUST_CHECK qf_rc shim_writer_new(GArrowOutputStream *sink, GParquetWriterProperties *properties,
                                    const struct colfile_schema *schema, char *const *paths,
                                    struct shim_writer **ret_writer, struct qf_err *err);
/* Accepts NULL. */
void shim_writer_free(struct shim_writer *writer);

struct shim_values {
    const void *values; /* int32_t, int64_t, double or struct shim_bytes */
    const int16_t *definition, *repetition;
    int64_t count; /* of levels, or of values where there are none */
};
/* Begin a row group; the one before is complete. */
QF_MUST_CHECK qf_rc shim_group_begin(struct shim_writer *writer, struct qf_err *err);
/* The next column of the group, whole. */
QF_MUST_CHECK qf_rc shim_column_write(struct shim_writer *writer, enum shim_type type,
                                      const struct shim_values *values, struct qf_err *err);
void shim_writer_meta(struct shim_writer *writer, struct qf_str key, struct qf_str value);
/* Write the footer. */
QF_MUST_CHECK qf_rc shim_writer_close(struct shim_writer *writer, struct qf_err *err);

/* -- Metadata (shim_meta.cc) ------------------------------------------------------------------ */

struct shim_leaf {
    const char *name; /* of the column at the top; lives as long as the metadata */
    int type;         /* enum shim_type, or one we do not know */
    int definition_max, repetition_max;
};
/* As the file says: nothing is checked. */
struct shim_chunk {
    int64_t rows;                         /* of its row group */
    int64_t data_start, dictionary_start; /* in the file; INT64_MAX: there is none */
    int64_t size;
    int64_t values;
    int codec;
    bool only_indexes; /* all data pages are encoded with a dictionary */
};

QF_MUST_CHECK qf_rc shim_meta_parse(struct qf_str footer, GParquetFileMetadata **ret_meta,
                                    struct qf_err *err);
/* Empty data pointer if the key is not there. Borrowed from @meta. */
struct qf_str shim_meta_value(GParquetFileMetadata *meta, const char *key);
void shim_meta_leaf(GParquetFileMetadata *meta, int column, struct shim_leaf *ret_leaf);
/* (GLib's objects for row groups do not free what they hold.) */
QF_MUST_CHECK qf_rc shim_meta_chunk(GParquetFileMetadata *meta, int row_group, int column,
                                    struct shim_chunk *ret_chunk, struct qf_err *err);
/* Append the smallest and the largest value as the file has them. (GLib's statistics decode them,
 * and end the process when they are malformed: no C function above catches what is thrown.) */
QF_MUST_CHECK qf_rc shim_meta_range(GParquetFileMetadata *meta, int row_group, int column,
                                    struct qf_strbuf *min, struct qf_strbuf *max, bool *ret_found,
                                    struct qf_err *err);

/* -- Reading (shim_read.cc) ------------------------------------------------------------------- */

struct shim_reader;

/* A reader of the chunk whose @bytes are borrowed until it is freed. What it decompresses and
 * decodes takes at most @memory_max bytes at once: a call that needs more is QF_ELIMIT. A page in an
 * encoding that shim_schema.cc does not write is QF_ECORRUPT. */
QF_MUST_CHECK qf_rc shim_reader_new(GParquetFileMetadata *meta, int column,
                                    const struct shim_chunk *chunk, const char *bytes,
                                    uint64_t memory_max, struct shim_reader **ret_reader,
                                    struct qf_err *err);
void shim_reader_free(struct shim_reader *reader); /* Accepts NULL. */

struct shim_batch {
    int64_t room;                      /* how many levels, or values, there is space for */
    int16_t *definition, *repetition;  /* NULL: not wanted */
    void *values;                      /* int32_t, int64_t, double, shim_bytes; int32_t indexes */
    int64_t levels, count;             /* what came */
    const struct shim_bytes *distinct; /* what indexes point into */
    int32_t distinct_count;
};
QF_MUST_CHECK qf_rc shim_reader_more(struct shim_reader *reader, bool *ret_more,
                                     struct qf_err *err);
/* @type must be the column's. Texts live until the next call. */
QF_MUST_CHECK qf_rc shim_reader_read(struct shim_reader *reader, enum shim_type type,
                                     struct shim_batch *batch, struct qf_err *err);
/* For SHIM_BYTES: indexes instead of texts. */
QF_MUST_CHECK qf_rc shim_reader_read_indexes(struct shim_reader *reader, struct shim_batch *batch,
                                             struct qf_err *err);

#ifdef __cplusplus
}
#endif

#endif
