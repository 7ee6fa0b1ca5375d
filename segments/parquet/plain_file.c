/* plain_file.c - pages, seal and footer of a small file. */
#include "segments/parquet/plain_file.h"

#include <assert.h>
#include <endian.h>
#include <string.h>
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "base/pure/varint.h"
#include "segments/parquet/column_file_seal.h"
#include "segments/parquet/shim.h"

/* Numbers of parquet.thrift. */
#define FORMAT_VERSION 2
#define PAGE_TYPE_DATA 0
#define REPETITION_REQUIRED 0
#define ENCODING_PLAIN 0
#define ENCODING_RLE 3
#define CODEC_UNCOMPRESSED 0

/* -- Thrift's compact form -------------------------------------------------------------------- */

enum thrift {
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_STRUCT = 12
};

/* A structure on its way out: fields go by how far their number is from the one before. */
struct structure {
    struct qf_strbuf *out;
    unsigned last;
};

static void put_byte(struct qf_strbuf *out, unsigned byte)
{
    char c = (char)byte;

    qf_strbuf_add(out, &c, 1);
}

static void put_unsigned(struct qf_strbuf *out, uint64_t value)
{
    unsigned char bytes[QF_VARINT_MAX];

    qf_strbuf_add(out, bytes, qf_varint_put(bytes, value));
}

static void put_signed(struct qf_strbuf *out, int64_t value)
{
    put_unsigned(out, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

static void put_text(struct qf_strbuf *out, struct qf_str text)
{
    put_unsigned(out, text.len);
    qf_strbuf_str(out, text);
}

static void begin_field(struct structure *s, unsigned number, enum thrift type)
{
    assert(number > s->last && number - s->last < 16);
    put_byte(s->out, (number - s->last) << 4 | type);
    s->last = number;
}

static void number_field(struct structure *s, unsigned number, enum thrift type, int64_t value)
{
    begin_field(s, number, type);
    put_signed(s->out, value);
}

static void text_field(struct structure *s, unsigned number, struct qf_str text)
{
    begin_field(s, number, THRIFT_BINARY);
    put_text(s->out, text);
}

static void list_field(struct structure *s, unsigned number, enum thrift of, size_t count)
{
    begin_field(s, number, THRIFT_LIST);
    put_byte(s->out, (unsigned)(count < 15 ? count : 15) << 4 | of);
    if (count >= 15)
        put_unsigned(s->out, count);
}

static struct structure inner(const struct structure *s)
{
    return (struct structure){ .out = s->out };
}

static void end(struct structure *s)
{
    put_byte(s->out, 0);
}

/* -- Chunks ----------------------------------------------------------------------------------- */

struct chunk {
    size_t at, size; /* in the file: the page's header and its values */
};

static size_t width_of(enum colfile_type type)
{
    return type == COLFILE_I32 ? sizeof(int32_t) : sizeof(int64_t);
}

static void put_page_header(struct qf_strbuf *out, size_t rows, size_t bytes)
{
    struct structure header = { .out = out }, data;

    number_field(&header, 1, THRIFT_I32, PAGE_TYPE_DATA);
    number_field(&header, 2, THRIFT_I32, (int64_t)bytes);
    number_field(&header, 3, THRIFT_I32, (int64_t)bytes);
    begin_field(&header, 5, THRIFT_STRUCT);
    data = inner(&header);
    number_field(&data, 1, THRIFT_I32, (int64_t)rows);
    number_field(&data, 2, THRIFT_I32, ENCODING_PLAIN);
    number_field(&data, 3, THRIFT_I32, ENCODING_RLE); /* levels: there are none */
    number_field(&data, 4, THRIFT_I32, ENCODING_RLE);
    end(&data);
    end(&header);
}

/* Numbers as Parquet stores them: little endian, as all machines we run on. */
static struct chunk put_chunk(struct qf_strbuf *out, size_t start,
                              const struct plain_column *column, size_t rows)
{
    size_t bytes = rows * width_of(column->type), at = out->len;

    assert(bytes <= PLAIN_FILE_COLUMN_BYTES_MAX);
    put_page_header(out, rows, bytes);
    qf_strbuf_add(out, column->values, bytes);
    return (struct chunk){ at - start, out->len - at };
}

/* -- Footer ----------------------------------------------------------------------------------- */

static void put_schema(struct structure *meta, const struct plain_file *file)
{
    struct structure element = inner(meta);

    list_field(meta, 2, THRIFT_STRUCT, 1 + file->column_count);
    number_field(&element, 3, THRIFT_I32, REPETITION_REQUIRED);
    text_field(&element, 4, QF_STR("schema"));
    number_field(&element, 5, THRIFT_I32, (int64_t)file->column_count);
    end(&element);
    for (size_t c = 0; c < file->column_count; c++) {
        element = inner(meta);
        number_field(&element, 1, THRIFT_I32, shim_type_of(file->columns[c].type));
        number_field(&element, 3, THRIFT_I32, REPETITION_REQUIRED);
        text_field(&element, 4, qf_str_from(file->columns[c].name));
        end(&element);
    }
}

static void put_column_meta(struct structure meta, const struct plain_column *column, size_t rows,
                            const struct chunk *chunk)
{
    number_field(&meta, 1, THRIFT_I32, shim_type_of(column->type));
    list_field(&meta, 2, THRIFT_I32, 2);
    put_signed(meta.out, ENCODING_PLAIN);
    put_signed(meta.out, ENCODING_RLE);
    list_field(&meta, 3, THRIFT_BINARY, 1);
    put_text(meta.out, qf_str_from(column->name));
    number_field(&meta, 4, THRIFT_I32, CODEC_UNCOMPRESSED);
    number_field(&meta, 5, THRIFT_I64, (int64_t)rows);
    number_field(&meta, 6, THRIFT_I64, (int64_t)chunk->size);
    number_field(&meta, 7, THRIFT_I64, (int64_t)chunk->size);
    number_field(&meta, 9, THRIFT_I64, (int64_t)chunk->at);
    end(&meta);
}

static void put_group(struct structure group, const struct plain_file *file,
                      const struct chunk *chunks)
{
    const struct chunk *last = &chunks[file->column_count - 1];
    size_t bytes = last->at + last->size - chunks[0].at;

    list_field(&group, 1, THRIFT_STRUCT, file->column_count);
    for (size_t c = 0; c < file->column_count; c++) {
        struct structure chunk = inner(&group);

        number_field(&chunk, 2, THRIFT_I64, (int64_t)chunks[c].at);
        begin_field(&chunk, 3, THRIFT_STRUCT);
        put_column_meta(inner(&chunk), &file->columns[c], file->rows, &chunks[c]);
        end(&chunk);
    }
    number_field(&group, 2, THRIFT_I64, (int64_t)bytes);
    number_field(&group, 3, THRIFT_I64, (int64_t)file->rows);
    end(&group);
}

static void put_footer(struct qf_strbuf *out, const struct plain_file *file,
                       const struct chunk *chunks)
{
    struct structure meta = { .out = out };
    uint32_t size;

    number_field(&meta, 1, THRIFT_I32, FORMAT_VERSION);
    put_schema(&meta, file);
    number_field(&meta, 3, THRIFT_I64, (int64_t)file->rows);
    list_field(&meta, 4, THRIFT_STRUCT, file->rows ? 1 : 0);
    if (file->rows)
        put_group(inner(&meta), file, chunks);
    list_field(&meta, 5, THRIFT_STRUCT, file->meta_count);
    for (size_t i = 0; i < file->meta_count; i++) {
        struct structure pair = inner(&meta);

        text_field(&pair, 1, file->meta[i].key);
        text_field(&pair, 2, file->meta[i].value);
        end(&pair);
    }
    text_field(&meta, 6, QF_STR("promfabric"));
    end(&meta);
    size = htole32((uint32_t)out->len);
    qf_strbuf_add(out, &size, sizeof(size));
    qf_strbuf_str(out, QF_STR("PAR1"));
}

void plain_file_write(const struct plain_file *file, struct qf_strbuf *out)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf hashes = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf footer = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep)
    struct chunk *chunks = qf_xcalloc(file->column_count, sizeof(*chunks));
    size_t start = out->len, count = file->rows ? file->column_count : 0;

    qf_strbuf_str(out, QF_STR("PAR1"));
    for (size_t c = 0; c < count; c++) {
        chunks[c] = put_chunk(out, start, &file->columns[c], file->rows);
        colfile_seal_add_hash(&hashes,
                              XXH3_64bits(out->data + start + chunks[c].at, chunks[c].size));
    }
    put_footer(&footer, file, chunks);
    colfile_seal_close(&hashes, (uint32_t)count, out->len - start, qf_strbuf_view(&footer));
    qf_strbuf_str(out, qf_strbuf_view(&hashes));
    qf_strbuf_str(out, qf_strbuf_view(&footer));
}
