/* test_coding.c - what clients accept, and that they can read what they get, when they get it. */
#include "base/http/coding.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/http/stream.h"
#include "base/pure/alloc.h"
#include "tests/lib/test.h"

TEST(the_coding_with_the_largest_q_is_chosen)
{
    static const struct {
        const char *accept;
        enum qh_coding want;
    } rows[] = {
        { "", QH_CODING_IDENTITY },
        { "gzip", QH_CODING_GZIP },
        { "x-gzip", QH_CODING_GZIP },
        { "GZip", QH_CODING_GZIP },
        { "zstd", QH_CODING_ZSTD },
        { "gzip, zstd", QH_CODING_ZSTD },
        { "br, deflate", QH_CODING_IDENTITY },
        { "gzip, deflate, br, zstd", QH_CODING_ZSTD },
        { "zstd;q=0.5, gzip;q=0.8", QH_CODING_GZIP },
        { "zstd;q=0.001,gzip;q=0", QH_CODING_ZSTD },
        { "gzip;q=0", QH_CODING_IDENTITY },
        { "gzip;q=0.000", QH_CODING_IDENTITY },
        { "*", QH_CODING_ZSTD },
        { "*;q=0", QH_CODING_IDENTITY },
        { "gzip, *;q=0", QH_CODING_GZIP },
        { "zstd;q=0, *;q=0.3", QH_CODING_GZIP },
        { "identity", QH_CODING_IDENTITY },
        { "identity;q=1, gzip;q=0.5", QH_CODING_IDENTITY },
        { "identity;q=0.5, gzip ; q=0.5", QH_CODING_GZIP },
        { "gzip;Q=1.000", QH_CODING_GZIP },
        { "gzip;q=2", QH_CODING_IDENTITY },
        { "gzip;q=1.001", QH_CODING_IDENTITY },
        { "gzip;q=0.1234", QH_CODING_IDENTITY },
        { "gzip;q=x, zstd;q", QH_CODING_IDENTITY },
        { "gzip;level=9", QH_CODING_IDENTITY },
        { "gzipped, ,;q=1,,", QH_CODING_IDENTITY },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CHECK_MSG(qh_coding_choose(qf_str_from(rows[i].accept)) == rows[i].want, "%s",
                  rows[i].accept);
    CHECK(qh_coding_accepted(QF_STR("zstd, gzip;q=0.1"), "gzip"));
    CHECK(qh_coding_accepted(QF_STR("gzip, deflate, BR, zstd"), "br"));
    CHECK(qh_coding_accepted(QF_STR("*"), "br"));
    CHECK(!qh_coding_accepted(QF_STR("*, br;q=0"), "br"));
    CHECK(!qh_coding_accepted(QF_STR("zstd, gzip;q=0"), "gzip"));
    CHECK(!qh_coding_accepted(QF_STR("gzip"), "br"));
    CHECK(!qh_coding_accepted(QF_STR(""), "gzip"));
    CHECK(!qh_coding_name(QH_CODING_IDENTITY));
    CHECK(!qh_encoder_new(QH_CODING_IDENTITY));
}

/* A reader that decodes what it has as soon as it has it. */
struct reader {
    enum qh_coding coding;
    z_stream gzip;
    ZSTD_DStream *zstd;
    struct qf_strbuf text;
    bool ended;
};

/* zlib remembers where its stream is: it does not move. */
static void reader_init(struct reader *reader, enum qh_coding coding)
{
    *reader = (struct reader){ .coding = coding };
    CHECK_EQ(inflateInit2(&reader->gzip, 15 + 16), Z_OK);
    reader->zstd = ZSTD_createDStream();
}

static void reader_done(struct reader *reader)
{
    (void)inflateEnd(&reader->gzip);
    (void)ZSTD_freeDStream(reader->zstd);
    qf_strbuf_done(&reader->text);
}

static void decode(struct reader *reader, struct qf_str bytes)
{
    static char out[1 << 20];

    if (reader->coding == QH_CODING_GZIP) {
        int rc;

        reader->gzip.next_in = (Bytef *)(uintptr_t)bytes.data;
        reader->gzip.avail_in = (uInt)bytes.len;
        reader->gzip.next_out = (Bytef *)out;
        reader->gzip.avail_out = sizeof(out);
        rc = inflate(&reader->gzip, Z_SYNC_FLUSH);
        CHECK(rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR);
        reader->ended |= rc == Z_STREAM_END;
        qf_strbuf_add(&reader->text, out, sizeof(out) - reader->gzip.avail_out);
    } else {
        ZSTD_inBuffer in = { bytes.data, bytes.len, 0 };
        ZSTD_outBuffer to = { out, sizeof(out), 0 };
        size_t left = 1;

        while (in.pos < in.size) {
            left = ZSTD_decompressStream(reader->zstd, &to, &in);
            CHECK(!ZSTD_isError(left));
        }
        reader->ended |= left == 0;
        qf_strbuf_add(&reader->text, out, to.pos);
    }
}

TEST(encoded_bytes_decode_to_what_they_were)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    for (int i = 0; i < 20000; i++)
        qf_strbuf_printf(&text, "{\"v\":%d},", i * 7919);
    for (int coding = QH_CODING_GZIP; coding < QH_CODING__COUNT; coding++) {
        struct qh_encoder *encoder = qh_encoder_new((enum qh_coding)coding);
        struct reader reader;
        struct qf_strbuf out = QF_STRBUF_INIT;

        reader_init(&reader, (enum qh_coding)coding);
        for (size_t at = 0; at < text.len; at += 9999)
            qh_encoder_add(encoder, qf_str_sub(qf_strbuf_view(&text), at, at + 9999),
                           QH_ENCODE_MORE, &out);
        qh_encoder_add(encoder, QF_STR(""), QH_ENCODE_END, &out);
        CHECK(out.len < text.len / 2);
        decode(&reader, qf_strbuf_view(&out));
        CHECK(reader.ended);
        CHECK_EQ(reader.text.len, text.len);
        CHECK(memcmp(reader.text.data, text.data, text.len) == 0);
        qf_strbuf_done(&out);
        reader_done(&reader);
        (void)qh_encoder_free(encoder);
    }
    qf_strbuf_done(&text);
}

static void ignore(void *connection)
{
    (void)connection;
}

/* Take all there is now. */
static ssize_t drain(struct qh_stream *stream, struct reader *reader)
{
    char piece[333];
    ssize_t got;

    while ((got = qh_stream_take(stream, piece, sizeof(piece))) > 0)
        decode(reader, (struct qf_str){ piece, (size_t)got });
    return got;
}

/* Each event can be decoded once it was taken, keep-alives among them; the end ends the coding too. */
TEST(events_can_be_read_as_soon_as_they_are_sent)
{
    struct qh_stream_hooks hooks = { .suspend = ignore, .resume = ignore, .fd = -1 };

    for (int coding = QH_CODING_GZIP; coding < QH_CODING__COUNT; coding++) {
        struct qh_stream *stream = qh_stream_new(1 << 16);
        struct reader reader;
        struct qh_stream_head head;
        struct qf_strbuf want = QF_STRBUF_INIT;

        reader_init(&reader, (enum qh_coding)coding);
        qh_stream_attach(stream, &hooks);
        qh_stream_allow(stream, (enum qh_coding)coding);
        qh_stream_begin(stream, 200, "text/event-stream");
        CHECK(qh_stream_head(stream, &head));
        CHECK_EQ(head.header_count, 2);
        CHECK_STR(head.names[0], "Vary");
        CHECK_STR(head.values[1], qh_coding_name((enum qh_coding)coding));
        for (int i = 0; i < 50; i++) {
            qf_strbuf_printf(&want, "data: {\"value\":%d}\n\n", i);
            CHECK(qh_stream_write(stream,
                                  qf_str_sub(qf_strbuf_view(&want), reader.text.len, want.len)));
            CHECK_EQ(drain(stream, &reader), 0);
            CHECK_STR(qf_strbuf_cstr(&reader.text), qf_strbuf_cstr(&want));
        }
        qh_stream_tick(stream, INT64_MAX, 1, false);
        CHECK_EQ(drain(stream, &reader), 0);
        CHECK(strstr(qf_strbuf_cstr(&reader.text), ": keep-alive\n\n"));
        CHECK(!reader.ended);
        CHECK(qh_stream_write(stream, QF_STR("data: last\n\n")));
        qh_stream_end(stream);
        CHECK_EQ(drain(stream, &reader), QH_STREAM_END);
        CHECK(reader.ended);
        CHECK(strstr(qf_strbuf_cstr(&reader.text), "data: last\n\n"));
        CHECK_EQ(drain(stream, &reader), QH_STREAM_END);
        qf_strbuf_done(&want);
        reader_done(&reader);
        (void)qh_stream_drop(stream);
    }
}

/* More than fits a piece at once: nothing is lost, nothing stays inside. */
TEST(a_burst_of_events_is_encoded_whole)
{
    struct qh_stream_hooks hooks = { .suspend = ignore, .resume = ignore, .fd = -1 };
    struct qh_stream *stream = qh_stream_new(1 << 20);
    struct reader reader;
    struct qf_strbuf want = QF_STRBUF_INIT;
    struct qh_stream_head head;

    reader_init(&reader, QH_CODING_ZSTD);
    for (int i = 0; i < 16384; i++) /* a multiple of what is encoded at once */
        qf_strbuf_puts(&want, "0123456789abcdef");
    qh_stream_attach(stream, &hooks);
    qh_stream_allow(stream, QH_CODING_ZSTD);
    qh_stream_begin(stream, 200, "text/event-stream");
    CHECK(qh_stream_write(stream, qf_strbuf_view(&want)));
    CHECK(qh_stream_head(stream, &head));
    CHECK(!head.whole);
    CHECK_EQ(drain(stream, &reader), 0);
    CHECK_EQ(reader.text.len, want.len);
    qh_stream_abort(stream);
    CHECK_EQ(drain(stream, &reader), QH_STREAM_CUT);
    qf_strbuf_done(&want);
    reader_done(&reader);
    (void)qh_stream_drop(stream);
}
