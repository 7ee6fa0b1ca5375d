/* test_numbers.c - number columns are read in any parts as Arrow reads them whole. */
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "segments/parquet/column_file.h"
#include "segments/parquet/decimals.h"
#include "segments/parquet/delta.h"
#include "tests/lib/test.h"

/* A file in memory with one column of lists, some of them empty. */
struct made {
    struct qf_strbuf bytes;
    struct colfile *file;
    struct colfile_group group;
};

static void made_done(struct made *made)
{
    (void)colfile_free(made->file);
    qf_strbuf_done(&made->bytes);
}

static struct made make(struct colfile_column column, bool pages_v2, size_t page_bytes,
                        const void *values, size_t count)
{
    struct made made = { .bytes = QF_STRBUF_INIT };
    struct colfile_schema schema = { &column, 1, page_bytes, true, pages_v2 };
    struct qf_err err = { 0 };
    struct colfile_writer *writer = colfile_writer_new(&schema, NULL, &err);
    struct colfile_written written;
    uint32_t *lengths = qf_xcalloc(count + 1, sizeof(*lengths));
    size_t rows = 0, left = count;
    struct qf_prng prng = { count };

    /* Empty lists only where pages tell how many there are. */
    while (left > 0) {
        size_t most = QF_MIN(left, (size_t)100);

        lengths[rows] = (uint32_t)(pages_v2 && rows % 7 == 3 ? 0 : 1 + qf_prng_below(&prng, most));
        left -= lengths[rows++];
    }
    CHECK_MSG(writer, "%s", err.msg);
    CHECK_OK(colfile_write(writer, &(struct colfile_data){ values, count, rows, lengths }, &err),
             &err);
    CHECK_OK(colfile_finish(writer, false, &made.bytes, &written, &err), &err);
    (void)colfile_writer_free(writer);
    free(lengths);
    made.file =
        colfile_open_memory(qf_strbuf_view(&made.bytes), "made", COLFILE_FOOTER_MEMORY_MAX, &err);
    CHECK_MSG(made.file, "%s", err.msg);
    made.group = (struct colfile_group){ made.file, 0, COLFILE_CHUNK_MEMORY_MAX };
    return made;
}

/* All of it, Arrow's all of it, and parts. */
static void check(const struct made *made, const int64_t *values, size_t count)
{
    QF_CLEANUP(qf_freep) int64_t *got = qf_xcalloc(count, sizeof(*got));
    struct qf_err err = { 0 };
    struct qf_prng prng = { 5 };
    struct colfile_numbers *numbers;

    CHECK_OK(colfile_decode_numbers(&made->group, 0, got, count, &err), &err);
    CHECK(memcmp(got, values, count * sizeof(*got)) == 0);
    memset(got, 0, count * sizeof(*got));
    CHECK_OK(colfile_read_numbers(&made->group, 0, got, count, &err), &err);
    CHECK(memcmp(got, values, count * sizeof(*got)) == 0);
    CHECK_EQ(colfile_read_numbers(&made->group, 0, got, count - 1, &err), QF_ECORRUPT);
    CHECK_EQ(colfile_decode_numbers(&made->group, 0, got, count - 1, &err), QF_ECORRUPT);
    numbers = colfile_load_numbers(&made->group, 0, count, &err);
    CHECK_MSG(numbers, "%s", err.msg);
    for (int i = 0; i < 50; i++) {
        size_t start = qf_prng_below(&prng, count), part = 1 + qf_prng_below(&prng, count - start);
        int64_t shift = i % 2 ? (int64_t)(qf_prng_next(&prng) >> 20) : 0;

        colfile_numbers_read(numbers, start, part, got);
        CHECK(memcmp(got, values + start, part * sizeof(*got)) == 0);
        colfile_numbers_read_back(numbers, start, part,
                                  (int64_t)((uint64_t)values[start + part - 1] + (uint64_t)shift),
                                  got);
        for (size_t k = 0; k < part; k++)
            CHECK_EQ(got[k], (int64_t)((uint64_t)values[start + k] + (uint64_t)shift));
    }
    (void)colfile_numbers_free(numbers);
}

/* Differences of every width, and numbers that wrap around. */
TEST(differences_of_any_width_are_read_in_any_parts)
{
    for (unsigned width = 0; width <= 64; width++) {
        size_t count = 1 + width * 37 % 1000;
        QF_CLEANUP(qf_freep) int64_t *values = qf_xcalloc(count, sizeof(*values));
        struct qf_prng prng = { width };
        uint64_t value = qf_prng_next(&prng);

        for (size_t i = 0; i < count; i++) {
            values[i] = (int64_t)value;
            value += width ? qf_prng_next(&prng) >> (64 - width) : 15000;
        }
        for (int codec = COLFILE_RAW; codec <= COLFILE_ZSTD; codec++) {
            struct colfile_column column = {
                "n", COLFILE_I64, COLFILE_LIST, COLFILE_DELTA, (enum colfile_codec)codec, false, 0
            };
            QF_CLEANUP(made_done) struct made v1 = make(column, false, 1 << 20, values, count);
            QF_CLEANUP(made_done) struct made v2 = make(column, true, 1 << 20, values, count);

            check(&v1, values, count);
            check(&v2, values, count);
        }
    }
}

/* Plain and split numbers, and columns of many pages, which rows may span. */
TEST(columns_of_many_pages_are_read_in_any_parts)
{
    static const enum colfile_encoding encodings[] = { COLFILE_PLAIN, COLFILE_SPLIT,
                                                       COLFILE_DELTA };
    QF_CLEANUP(qf_freep) int64_t *values = qf_xcalloc(5000, sizeof(*values));
    struct qf_prng prng = { 3 };

    for (size_t i = 0; i < 5000; i++)
        values[i] = (int64_t)qf_prng_below(&prng, i % 3 ? 1000 : UINT64_MAX);
    for (size_t e = 0; e < QF_COUNT_OF(encodings); e++)
        for (int v2 = 0; v2 < 2; v2++) {
            struct colfile_column column = { "n",          COLFILE_I64, COLFILE_LIST, encodings[e],
                                             COLFILE_ZSTD, false,       v2 ? 90 : 0 };
            QF_CLEANUP(made_done) struct made made = make(column, v2, 2000, values, 5000);

            check(&made, values, 5000);
        }
}

/* Compressed where it pays, page by page: the file is the same to readers. */
TEST(pages_that_gain_little_stay_as_they_are)
{
    QF_CLEANUP(qf_freep) int64_t *even = qf_xcalloc(20000, sizeof(*even));
    QF_CLEANUP(qf_freep) int64_t *noise = qf_xcalloc(20000, sizeof(*noise));
    struct colfile_column column = { "n",   COLFILE_I64, COLFILE_LIST, COLFILE_DELTA, COLFILE_LZ4,
                                     false, 80 };
    struct qf_prng prng = { 3 };
    struct colfile_column always = column;

    always.compress_below = 0;
    for (size_t i = 0; i < 20000; i++) {
        even[i] = (int64_t)i * 15000 - (int64_t)(i / 480) * 7200000;
        noise[i] = (int64_t)(qf_prng_next(&prng) >> 8);
    }
    QF_CLEANUP(made_done) struct made a = make(column, true, 1 << 20, even, 20000);
    QF_CLEANUP(made_done) struct made b = make(always, true, 1 << 20, even, 20000);
    QF_CLEANUP(made_done) struct made c = make(column, true, 1 << 20, noise, 20000);

    check(&a, even, 20000);
    check(&c, noise, 20000);
    CHECK_EQ(a.bytes.len, b.bytes.len); /* it pays */
    /* Mostly levels: lists of random lengths. */
    CHECK_MSG(colfile_chunk_bytes(a.file, 0, 0) < 6000, "%zu", colfile_chunk_bytes(a.file, 0, 0));
    CHECK(colfile_chunk_bytes(c.file, 0, 0) > (size_t)20000 * 7);
}

/* Encoded bytes that are cut, longer or changed never make the decoder read elsewhere (ASan). */
TEST(malformed_differences_are_refused_or_harmless)
{
    QF_CLEANUP(qf_freep) int64_t *values = qf_xcalloc(700, sizeof(*values));
    QF_CLEANUP(qf_freep) int64_t *out = qf_xcalloc(5000, sizeof(*out));
    struct colfile_column column = {
        "n", COLFILE_I64, COLFILE_FLAT, COLFILE_DELTA, COLFILE_RAW, false, 0
    };
    struct qf_prng prng = { 11 };
    struct delta delta;
    size_t opened = 0, size;

    for (size_t i = 0; i < 700; i++)
        values[i] = (int64_t)qf_prng_below(&prng, 100000);
    QF_CLEANUP(made_done) struct made made = make(column, true, 1 << 20, values, 700);
    size = colfile_chunk_bytes(made.file, 0, 0);
    for (int round = 0; round < 20000; round++) {
        /* The values lie at the end of the chunk, which begins behind the magic. */
        size_t cut = qf_prng_below(&prng, 60), len = size - cut;
        QF_CLEANUP(qf_freep) char *bytes = qf_xcalloc(1, len + DELTA_PADDING);

        memcpy(bytes, made.bytes.data + 4 + cut, len);
        for (size_t k = qf_prng_below(&prng, 4); k > 0; k--)
            bytes[qf_prng_below(&prng, 20)] = (char)qf_prng_next(&prng);
        if (!delta_open(&delta, bytes, len, 5000))
            continue;
        opened++;
        delta_read(&delta, out);
        delta_read_back(&delta, delta.count / 3, delta.count - delta.count / 3, -1, out);
        delta_close(&delta);
    }
    CHECK_MSG(opened > 10, "%zu", opened);
}

static void check_decimals(const double *values, size_t count, int want_scale)
{
    int64_t numbers[64];
    double back[64];
    int scale = -1;

    CHECK(decimals_encode(values, count, numbers, &scale));
    if (want_scale >= 0)
        CHECK_EQ(scale, want_scale);
    decimals_decode(numbers, count, scale, back);
    for (size_t i = 0; i < count; i++)
        CHECK_BITS(back[i], values[i]);
}

TEST(decimals_come_back_bit_for_bit)
{
    struct qf_prng prng = { 17 };
    size_t encoded = 0;

    check_decimals((double[]){ 1, 2, 3 }, 3, 0);
    check_decimals((double[]){ 0.1, 2, -3.25, 1e15 / 7 - 1e15 / 7 }, 4, 2);
    check_decimals((double[]){ 1e-22 }, 1, 22);
    check_decimals((double[]){ 9007199254740992 }, 1, 0);
    check_decimals((double[]){ -9007199254740992 }, 1, 0);
    check_decimals((double[]){ 9007199254740991, 9007199254740990, 0.0 + 9007199254740989 }, 3, 0);
    check_decimals((double[]){ 0, 0, 0 }, 3, 0);
    for (int round = 0; round < 20000; round++) {
        int digits = (int)qf_prng_below(&prng, 16), scale = (int)qf_prng_below(&prng, 23);
        double values[37], power = 1;
        int64_t numbers[37];
        int got;

        for (int i = 0; i < scale; i++)
            power *= 10;
        for (size_t i = 0; i < QF_COUNT_OF(values); i++) {
            uint64_t most = 1;

            for (int k = 0; k < digits; k++)
                most *= 10;
            values[i] = (double)(int64_t)qf_prng_below(&prng, most) * (i % 5 ? 1 : -1) / power;
            if (values[i] == 0)
                values[i] = 0; /* not -0 */
        }
        if (!decimals_encode(values, QF_COUNT_OF(values), numbers, &got))
            continue;
        encoded++;
        CHECK(got <= scale);
        check_decimals(values, QF_COUNT_OF(values), got);
    }
    CHECK_MSG(encoded > 10000, "%zu", encoded);
}

TEST(what_is_no_decimal_is_not_taken_for_one)
{
    double odd[] = { qf_double_from_bits(QF_STALE_NAN_BITS),
                     __builtin_nan(""),
                     __builtin_inf(),
                     -__builtin_inf(),
                     -0.0,
                     5e-324,
                     1.7976931348623157e308,
                     0.1 + 0.2,
                     1.0 / 3,
                     9007199254740994 };
    int64_t numbers[3];
    int scale;

    for (size_t i = 0; i < QF_COUNT_OF(odd); i++)
        for (size_t place = 0; place < 3; place++) {
            double values[] = { 1, 2, 3 };

            values[place] = odd[i];
            CHECK_MSG(!decimals_encode(values, 3, numbers, &scale), "%zu at %zu", i, place);
        }
}

/* Any doubles: whatever is taken comes back. */
TEST(no_double_changes_by_being_a_decimal)
{
    struct qf_prng prng = { 23 };

    for (int round = 0; round < 200000; round++) {
        double value = qf_double_from_bits(qf_prng_next(&prng)), back;
        int64_t number;
        int scale;

        if (round % 2)
            value = qf_prng_unit(&prng) * (double)(1 + qf_prng_below(&prng, 100000));
        if (!decimals_encode(&value, 1, &number, &scale))
            continue;
        decimals_decode(&number, 1, scale, &back);
        CHECK_BITS(back, value);
    }
}
