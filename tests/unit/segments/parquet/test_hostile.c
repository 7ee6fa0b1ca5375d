/* test_hostile.c - files whose seal is right and whose words are lies: they cost what they may and
 * no more. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/pure/alloc.h"
#include "segments/parquet/arrow_glib.h"
#include "segments/parquet/column_file.h"
#include "segments/parquet/column_file_seal.h"
#include "segments/parquet/segment_reader.h"
#include "segments/parquet/thrift_scan.h"
#include "tests/lib/test.h"

#define MIB (UINT64_C(1) << 20)

static const struct colfile_column plain_text = {
    .name = "text", .type = COLFILE_TEXT, .encoding = COLFILE_PLAIN, .codec = COLFILE_RAW
};

/* A file of one chunk: @rows times @text in one column. */
static void write_texts(struct colfile_column column, struct qf_str text, size_t rows,
                        struct qf_strbuf *out)
{
    struct colfile_schema schema = { &column, 1, 1 << 30, false };
    struct qf_err err = { 0 };
    struct colfile_writer *writer = colfile_writer_new(&schema, NULL, &err);
    struct qf_str *texts = qf_xcalloc(rows, sizeof(*texts));
    struct colfile_written written;

    CHECK_MSG(writer, "%s", err.msg);
    for (size_t i = 0; i < rows; i++)
        texts[i] = text;
    CHECK_OK(colfile_write(writer, &(struct colfile_data){ texts, rows, rows, NULL }, &err), &err);
    CHECK_OK(colfile_finish(writer, false, out, &written, &err), &err);
    (void)colfile_writer_free(writer);
    free(texts);
}

/* Read the first column within @memory_max. */
static qf_rc try_texts(const struct qf_strbuf *file, uint64_t memory_max, struct qf_err *err)
{
    struct colfile *opened =
        colfile_open_memory(qf_strbuf_view(file), "hostile", COLFILE_FOOTER_MEMORY_MAX, err);
    struct colfile_texts *texts;

    if (!opened)
        return err->rc;
    texts = colfile_read_texts(&(struct colfile_group){ opened, 0, memory_max }, 0, err);
    CHECK_MSG(texts || strstr(err->msg, "hostile"), "%s", err->msg); /* the file is named */
    (void)colfile_texts_free(texts);
    (void)colfile_free(opened);
    return err->rc;
}

static qf_rc read_texts(const struct qf_strbuf *file, uint64_t memory_max)
{
    struct qf_err err = { 0 };

    return try_texts(file, memory_max, &err);
}

/* 64 MiB of zeros are a page of some kilobytes; the page header says what it will be. */
TEST(a_page_is_not_decompressed_beyond_the_budget)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf file = QF_STRBUF_INIT;
    struct colfile_column column = plain_text;
    char *zeros = qf_xcalloc(64, MIB);
    struct qf_err err = { 0 };

    column.codec = COLFILE_ZSTD;
    write_texts(column, (struct qf_str){ zeros, 64 * MIB }, 1, &file);
    free(zeros);
    CHECK_MSG(file.len < MIB, "%zu", file.len);
    CHECK_EQ(read_texts(&file, MIB), QF_ELIMIT);
    CHECK_EQ(try_texts(&file, 63 * MIB, &err), QF_ELIMIT);
    CHECK_MSG(strstr(err.msg, "decoding a page"), "%s", err.msg); /* before its texts are counted */
    CHECK_EQ(read_texts(&file, 100 * MIB), QF_OK);
}

/* Two million equal values are a dictionary of one and a run of some bytes. */
TEST(runs_are_not_expanded_beyond_the_budget)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf file = QF_STRBUF_INIT;
    struct colfile_column column = plain_text;

    column.encoding = COLFILE_DICTIONARY;
    write_texts(column, QF_STR("again"), 2000000, &file);
    CHECK_MSG(file.len < 4096, "%zu", file.len);
    CHECK_EQ(read_texts(&file, MIB), QF_ELIMIT);
    CHECK_EQ(read_texts(&file, 64 * MIB), QF_OK);
}

/* The same file with the bytes at @from (the first that match) changed, and sealed again. */
static void forge(struct qf_strbuf *file, const char *from, const char *to, size_t len)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf seal_text = QF_STRBUF_INIT;
    struct colfile_seal seal;
    struct qf_err err = { 0 };
    uint64_t need;
    char *place, *footer;
    size_t footer_len;

    CHECK_OK(colfile_seal_open(qf_strbuf_view(file), file->len, &seal, &need, &err), &err);
    CHECK_EQ(seal.hash_count, 1);
    place = memmem(file->data, file->len, from, len);
    CHECK(place);
    memcpy(place, to, len);
    footer_len = seal.footer.len + 8;
    footer = qf_xmemdup0(seal.footer.data, footer_len);
    colfile_seal_add_hash(&seal_text, XXH3_64bits(file->data + 4, seal.offset - 4));
    colfile_seal_close(&seal_text, 1, seal.offset, (struct qf_str){ footer, footer_len });
    file->len = seal.offset;
    qf_strbuf_str(file, qf_strbuf_view(&seal_text));
    qf_strbuf_add(file, footer, footer_len);
    free(footer);
}

/* Of all that Arrow can decode a file gets what we write and nothing else. */
TEST(codecs_and_encodings_come_from_a_list)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf file = QF_STRBUF_INIT;
    struct colfile_column column = plain_text;

    write_texts(column, QF_STR("a"), 1, &file);
    CHECK_EQ(read_texts(&file, MIB), QF_OK);
    /* DataPageHeader: one value, PLAIN, levels RLE; 7 is DELTA_BYTE_ARRAY (zigzag: twice). */
    forge(&file, "\x15\x02\x15\x00\x15\x06\x15\x06", "\x15\x02\x15\x0e\x15\x06\x15\x06", 8);
    CHECK_EQ(read_texts(&file, MIB), QF_ECORRUPT);
    qf_strbuf_reset(&file);
    column.codec = COLFILE_ZSTD;
    write_texts(column, QF_STR("a"), 1, &file);
    /* ColumnMetaData: the end of the path, then the codec: 6 is ZSTD, 2 is GZIP, 4 is BROTLI. */
    forge(&file, "text\x15\x0c", "text\x15\x04", 6);
    CHECK_EQ(read_texts(&file, MIB), QF_EUNSUPPORTED);
    forge(&file, "text\x15\x04", "text\x15\x08", 6);
    CHECK_EQ(read_texts(&file, MIB), QF_EUNSUPPORTED);
}

static qf_rc scan(const char *bytes, size_t len, uint64_t cost_max)
{
    uint64_t cost = 0;
    qf_rc rc = thrift_scan((struct qf_str){ bytes, len }, cost_max, &cost, NULL);

    CHECK(cost <= cost_max);
    return rc;
}
#define SCAN(bytes, cost_max) scan(bytes, sizeof(bytes) - 1, cost_max)

/* What is announced is counted, whether it is there or not; what is no structure is none. */
TEST(announced_structures_are_counted_before_they_are_built)
{
    CHECK_EQ(SCAN("\x00", MIB), QF_OK);
    CHECK_EQ(SCAN("", MIB), QF_ECORRUPT);
    CHECK_EQ(SCAN("\x00\x00", MIB), QF_ECORRUPT); /* something behind it */
    /* field 4, a list of 900,000 structures, and no more bytes */
    CHECK_EQ(SCAN("\x49\xfc\xa0\xf7\x36", 256 * MIB), QF_ELIMIT);
    CHECK_EQ(SCAN("\x49\xfc\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 256 * MIB), QF_ELIMIT);
    /* two structures, which are there */
    CHECK_EQ(SCAN("\x49\x2c\x00\x00\x00", MIB), QF_OK);
    CHECK_EQ(SCAN("\x49\x2c\x00\x00\x00", 1000), QF_ELIMIT);
    /* texts: three bytes; more than there are; as list elements */
    CHECK_EQ(SCAN("\x18\x03"
                  "abc\x00",
                  MIB),
             QF_OK);
    CHECK_EQ(SCAN("\x18\x7f"
                  "abc\x00",
                  MIB),
             QF_ECORRUPT);
    CHECK_EQ(SCAN("\x18\x03"
                  "abc\x00",
                  66),
             QF_ELIMIT);
    /* maps, numbers, truths, far field numbers */
    CHECK_EQ(SCAN("\x1b\x01\x85\x01"
                  "k\x02\x00",
                  MIB),
             QF_OK);
    CHECK_EQ(SCAN("\x1b\x00\x00", MIB), QF_OK);
    CHECK_EQ(SCAN("\x11\x12\x13\x07\x14\x01\x17"
                  "12345678\x05\xac\x02\x01\x00",
                  MIB),
             QF_OK);
    CHECK_EQ(SCAN("\x1f\x00", MIB), QF_ECORRUPT); /* no such type */
    CHECK_EQ(SCAN("\x15\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", MIB), QF_ECORRUPT);
}

/* Structures in structures end where no footer goes. */
TEST(nesting_is_bounded)
{
    char bytes[100000];

    memset(bytes, 0x1c, sizeof(bytes)); /* field 1, a structure */
    CHECK_EQ(scan(bytes, sizeof(bytes), MIB), QF_ECORRUPT);
    memset(bytes, 0x19, sizeof(bytes)); /* a list of one list of one list... */
    CHECK_EQ(scan(bytes, sizeof(bytes), 1000 * MIB), QF_ECORRUPT);
}

/* A sealed file whose footer announces what is not there is refused for what it announces. */
TEST(a_footer_that_lies_is_refused_before_it_is_built)
{
    static const char footer[] = "\x49\xfc\xa0\xf7\x36\x05\x00\x00\x00PAR1";
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf file = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf seal = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    qf_strbuf_puts(&file, "PAR1");
    colfile_seal_close(&seal, 0, 4, (struct qf_str){ footer, sizeof(footer) - 1 });
    qf_strbuf_str(&file, qf_strbuf_view(&seal));
    qf_strbuf_add(&file, footer, sizeof(footer) - 1);
    CHECK(!colfile_open_memory(qf_strbuf_view(&file), "liar", COLFILE_FOOTER_MEMORY_MAX, &err));
    CHECK_EQ(err.rc, QF_ELIMIT);
    CHECK_MSG(strstr(err.msg, "liar: the footer would take more than"), "%s", err.msg);
}

/* The footer's own size counts too, before it is read. */
TEST(a_footer_larger_than_the_budget_is_not_read)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf file = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    write_texts(plain_text, QF_STR("a"), 1, &file);
    CHECK(!colfile_open_memory(qf_strbuf_view(&file), "small", 100, &err));
    CHECK_EQ(err.rc, QF_ELIMIT);
}
