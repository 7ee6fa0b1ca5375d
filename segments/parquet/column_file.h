/* column_file.h - Parquet files as plain arrays, with every byte under a checksum.
 *
 * It knows columns, row groups and bytes; what they mean is the business of segment_*.c and
 * artifact.c. Below it are Arrow GLib (streams, writer properties, metadata) and shim.h, the few
 * calls of Parquet's C++ library which decode straight into our arrays and let us choose encodings,
 * as GLib cannot.
 *
 * Checksums. Parquet's page checksums leave page headers and footer open, where one flipped bit can
 * change an encoding or a statistic and so the data. So between the last row group and the footer,
 * where no Parquet reader looks, lies a seal (little endian):
 *
 *     u64 hash[n]     XXH3 of each column chunk, row group by row group
 *     u32 "PFCK"
 *     u32 n
 *     u64 offset      where the seal starts: the chunks cover [4, offset) without gaps
 *     u64 hash        XXH3 of the bytes above and of the footer with its length and magic
 *
 * Opening verifies the last hash and that nothing lies between the chunks; reading a chunk verifies
 * its hash before Arrow sees a byte of it. No byte but the four of the magic at the start is
 * uncovered, and those are compared.
 *
 * Budgets. A seal is no signature: whoever writes a file can seal it, and what it says of its own
 * size (counts in the footer, sizes of pages, lengths of runs) may be a lie. So nothing takes memory
 * on a file's word alone: opening and reading are given a number of bytes and fail with QF_ELIMIT
 * before they hold more. Codecs and encodings are those that colfile_writer uses, and no others. */
#ifndef SEGMENTS_PARQUET_COLUMN_FILE_H
#define SEGMENTS_PARQUET_COLUMN_FILE_H

#ifdef __cplusplus
extern "C" {
#endif

#ifndef __cplusplus
#include <stdbool.h>
#endif
#include <stddef.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

enum colfile_type { COLFILE_I32, COLFILE_I64, COLFILE_F64, COLFILE_TEXT, COLFILE_BYTES };

enum colfile_shape {
    COLFILE_FLAT,      /* one value per row */
    COLFILE_OPTIONAL,  /* none or one */
    COLFILE_LIST,      /* one or more */
    COLFILE_MAP_KEY,   /* none or more; */
    COLFILE_MAP_VALUE, /* the column after a key, under the same name */
};

enum colfile_encoding {
    COLFILE_PLAIN,
    COLFILE_DICTIONARY,
    COLFILE_DELTA, /* DELTA_BINARY_PACKED */
    COLFILE_SPLIT, /* BYTE_STREAM_SPLIT */
};

enum colfile_codec {
    COLFILE_RAW,
    COLFILE_LZ4,  /* little to gain, little to pay */
    COLFILE_ZSTD, /* each chunk costs some 20 us to set up the decompressor */
};

struct colfile_column {
    const char *name;
    enum colfile_type type;
    enum colfile_shape shape;
    enum colfile_encoding encoding;
    enum colfile_codec codec;
    bool statistics;
    /* A page stays as it is unless compression leaves less than this part of it, in percent; 0: it
     * is always compressed. Only with pages of version 2. */
    unsigned compress_below;
};

struct colfile_schema {
    const struct colfile_column *columns;
    size_t column_count;
    size_t page_bytes;
    bool page_checksums; /* for the sake of other readers */
    bool pages_v2;       /* levels beside the values and not compressed */
};

/* -- Writing ---------------------------------------------------------------------------------- */

struct colfile_writer;

/* Write to the new file @path, or to memory if it is NULL. NULL and @err filled: QF_EEXIST, QF_EIO.
 */
struct colfile_writer *colfile_writer_new(const struct colfile_schema *schema, const char *path,
                                          struct qf_err *err);
/* Removes the file unless it was finished. Accepts NULL, returns NULL. */
struct colfile_writer *colfile_writer_free(struct colfile_writer *writer);

struct colfile_data {
    const void *values;      /* int32_t, int64_t, double or struct qf_str, by type of the column */
    size_t count;            /* of values that are there */
    size_t rows;             /* == count for flat columns */
    const uint32_t *lengths; /* per row, for lists, maps and optional values (0 or 1) */
};

/* A row group is written column by column, in the order of the schema; the first column begins it.
 * All columns have the same number of rows. QF_ENOSPC, QF_EIO. */
QF_MUST_CHECK qf_rc colfile_write(struct colfile_writer *writer, const struct colfile_data *data,
                                  struct qf_err *err);
void colfile_set_meta(struct colfile_writer *writer, struct qf_str key, struct qf_str value);
uint64_t colfile_writer_bytes(const struct colfile_writer *writer); /* written so far */

struct colfile_written {
    uint64_t size;
    unsigned char hash[16]; /* XXH3-128 of the whole, in canonical order */
};
/* Write seal and footer. A file is closed, and synced if @sync; memory is appended to @buf. */
QF_MUST_CHECK qf_rc colfile_finish(struct colfile_writer *writer, bool sync, struct qf_strbuf *buf,
                                   struct colfile_written *ret_written, struct qf_err *err);

/* -- Reading ---------------------------------------------------------------------------------- */

struct colfile; /* Immutable: any number of threads may read at once. */

/* What a footer, and what a column chunk may take where the caller has no limit of its own. A footer
 * of this size describes more than a thousand million samples. */
#define COLFILE_FOOTER_MEMORY_MAX ((uint64_t)256 << 20)
#define COLFILE_CHUNK_MEMORY_MAX ((uint64_t)1 << 30)

/* NULL and @err filled on failure: QF_ENOTFOUND, QF_EIO, QF_ECORRUPT, QF_EUNSUPPORTED (a codec),
 * QF_ELIMIT (the footer would take more than @memory_max bytes). @bytes are borrowed. */
struct colfile *colfile_open_path(const char *path, uint64_t memory_max, struct qf_err *err);
/* The same for a file that is open; @fd is taken, also on failure. */
struct colfile *colfile_open_fd(int fd, const char *name, uint64_t memory_max, struct qf_err *err);
struct colfile *colfile_open_memory(struct qf_str bytes, const char *name, uint64_t memory_max,
                                    struct qf_err *err);
/* The metadata alone from the last bytes of a file; columns cannot be read. NULL with @err not
 * filled and *ret_need > 0: that many last bytes are needed, which are never more than
 * COLFILE_FOOTER_MEMORY_MAX. */
struct colfile *colfile_open_tail(struct qf_str tail, uint64_t file_size, const char *name,
                                  uint64_t *ret_need, struct qf_err *err);
struct colfile *colfile_free(struct colfile *file); /* Accepts NULL, returns NULL. */

const char *colfile_name(const struct colfile *file);
size_t colfile_memory(const struct colfile *file); /* estimate of the heap it holds */
/* QF_EUNSUPPORTED if the columns are not exactly those of @schema (encodings may differ). */
QF_MUST_CHECK qf_rc colfile_check_schema(const struct colfile *file,
                                         const struct colfile_schema *schema, struct qf_err *err);
/* Empty data pointer if the key is not there. Borrowed from @file. */
struct qf_str colfile_meta(const struct colfile *file, const char *key);

size_t colfile_columns(const struct colfile *file);
size_t colfile_row_groups(const struct colfile *file);
size_t colfile_rows(const struct colfile *file, size_t row_group);
size_t colfile_values(const struct colfile *file, size_t row_group, size_t column);
size_t colfile_chunk_bytes(const struct colfile *file, size_t row_group, size_t column);
/* Where the chunks of a row group lie, which are one behind the other: [*ret_start, *ret_end). */
void colfile_group_span(const struct colfile *file, size_t row_group, uint64_t *ret_start,
                        uint64_t *ret_end);
/* Statistics of a chunk; false if there are none. Texts are appended to the buffers. */
bool colfile_range_i64(const struct colfile *file, size_t row_group, size_t column,
                       int64_t *ret_min, int64_t *ret_max);
bool colfile_range_text(const struct colfile *file, size_t row_group, size_t column,
                        struct qf_strbuf *min, struct qf_strbuf *max);

/* A row group to read, and what one of its chunks may take: its bytes with what decompressing and
 * decoding need, and as much again for the texts that come out. Over it QF_ELIMIT. */
struct colfile_group {
    const struct colfile *file;
    size_t index;
    uint64_t memory_max;
};

/* Decode the values of a number column into @out. QF_ECORRUPT also if the chunk does not hold
 * exactly @count values. */
QF_MUST_CHECK qf_rc colfile_read_numbers(const struct colfile_group *group, size_t column,
                                         void *out, size_t count, struct qf_err *err);
/* The same by Arrow's decoders alone, for those who check ours. */
QF_MUST_CHECK qf_rc colfile_decode_numbers(const struct colfile_group *group, size_t column,
                                           void *out, size_t count, struct qf_err *err);

/* A number column, verified and decompressed but not decoded, of which any part can be read. It
 * never changes and may be shared by threads. Where the file is in memory it borrows from it, else
 * it does not need the file any more. */
struct colfile_numbers;

/* @count: how many values are there, which is not how many rows where lists may be empty. NULL and
 * @err filled on failure; QF_ECORRUPT also if the chunk holds another number of values. */
struct colfile_numbers *colfile_load_numbers(const struct colfile_group *group, size_t column,
                                             size_t count, struct qf_err *err);
struct colfile_numbers *colfile_numbers_free(struct colfile_numbers *numbers);
size_t colfile_numbers_memory(const struct colfile_numbers *numbers);
/* Values [@start, @start + @count) as the file has them. */
void colfile_numbers_read(const struct colfile_numbers *numbers, size_t start, size_t count,
                          void *out);
/* The same for a column of 64-bit integers of which only the differences are wanted: the last value
 * comes out as @last, and those before it as far from it as they are in the file. Where the column
 * is encoded as differences nothing else is decoded. @count > 0. */
void colfile_numbers_read_back(const struct colfile_numbers *numbers, size_t start, size_t count,
                               int64_t last, int64_t *out);

/* A text column: values as indexes into the different ones. */
struct colfile_texts {
    const struct qf_str *distinct;
    size_t distinct_count;
    const uint32_t *index; /* per value, each < distinct_count */
    size_t count;
    const uint32_t *starts; /* per row the first value; rows + 1 of them. NULL for flat columns */
    size_t rows;
};
struct colfile_texts *colfile_read_texts(const struct colfile_group *group, size_t column,
                                         struct qf_err *err);
struct colfile_texts *colfile_texts_free(struct colfile_texts *texts);

#ifdef __cplusplus
}
#endif

#endif
