/* test_input.c - lines of plain, gzip and zstd files. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "segments/import/input.h"
#include "tests/lib/test.h"

static char path[64];

static void write_file(const void *data, size_t len)
{
    FILE *file;
    int fd;

    (void)snprintf(path, sizeof(path), "/tmp/promfabric-test-XXXXXX");
    fd = mkstemp(path);
    CHECK(fd >= 0);
    file = fdopen(fd, "w");
    CHECK_EQ(fwrite(data, 1, len, file), len);
    CHECK_EQ(fclose(file), 0);
}

/* All lines joined with '|', and how reading ended. */
static qf_rc read_all(size_t line_max, struct qf_strbuf *out, struct qf_err *err)
{
    struct input *input = input_open(path, err);
    qf_rc rc;

    CHECK(input);
    for (;;) {
        struct qf_str line;
        bool cut, more;

        rc = input_line(input, line_max, &line, &cut, &more, err);
        if (rc != QF_OK || !more)
            break;
        qf_strbuf_str(out, line);
        qf_strbuf_puts(out, cut ? "~|" : "|");
    }
    if (rc == QF_OK)
        CHECK_EQ(input_bytes_done(input), input_bytes_total(input));
    (void)input_close(input);
    CHECK_EQ(unlink(path), 0);
    return rc;
}

static void check_lines(const void *data, size_t len, size_t line_max, const char *want)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf out = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    write_file(data, len);
    CHECK_OK(read_all(line_max, &out, &err), &err);
    CHECK_STR(qf_strbuf_cstr(&out), want);
}

static size_t gzip_member(const char *text, unsigned char *out, size_t room)
{
    z_stream z = { 0 };

    CHECK_EQ(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)strlen(text);
    z.next_out = out;
    z.avail_out = (uInt)room;
    CHECK_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    (void)deflateEnd(&z);
    return room - z.avail_out;
}

TEST(plain_lines_with_and_without_a_last_newline)
{
    check_lines("", 0, 100, "");
    check_lines("a\n\nbc\n", 6, 100, "a||bc|");
    check_lines("a\nb", 3, 100, "a|b|");
    check_lines("\n", 1, 100, "|");
}

TEST(several_gzip_members_are_one_file)
{
    unsigned char bytes[500];
    size_t len = gzip_member("a\nb", bytes, sizeof(bytes));

    len += gzip_member("c\nd\n", bytes + len, sizeof(bytes) - len);
    check_lines(bytes, len, 100, "a|bc|d|");
}

TEST(several_zstd_frames_are_one_file)
{
    char bytes[500];
    size_t len = ZSTD_compress(bytes, sizeof(bytes), "a\nb", 3, 1);

    len += ZSTD_compress(bytes + len, sizeof(bytes) - len, "c\nd\n", 4, 1);
    check_lines(bytes, len, 100, "a|bc|d|");
}

TEST(a_line_that_is_too_long_comes_cut_and_the_next_one_whole)
{
    size_t len = 3u << 20;
    QF_CLEANUP(qf_freep) char *text = qf_xmalloc(len);

    memset(text, 'x', len);
    memcpy(text, "ab\n", 3);
    memcpy(text + len - 4, "\ncd\n", 4);
    check_lines(text, len, 5, "ab|xxxxx~|cd|");
}

TEST(unfinished_or_broken_compression_is_an_error)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf out = QF_STRBUF_INIT;
    struct qf_err err = { 0 };
    unsigned char gzip[500];
    char zstd[500];
    size_t gzip_len = gzip_member("some text\nand more\n", gzip, sizeof(gzip));
    size_t zstd_len = ZSTD_compress(zstd, sizeof(zstd), "some text\nand more\n", 19, 1);

    write_file(gzip, gzip_len - 4);
    CHECK_EQ(read_all(100, &out, &err), QF_ECORRUPT);
    gzip[gzip_len - 6] ^= 1; /* its checksum */
    write_file(gzip, gzip_len);
    CHECK_EQ(read_all(100, &out, &err), QF_ECORRUPT);
    write_file(zstd, zstd_len - 2);
    CHECK_EQ(read_all(100, &out, &err), QF_ECORRUPT);
    zstd[4] ^= 8;
    err = (struct qf_err){ 0 };
    write_file(zstd, zstd_len);
    CHECK_EQ(read_all(100, &out, &err), QF_ECORRUPT);
    CHECK(strstr(err.msg, path));
}

TEST(a_missing_file_or_a_folder_is_an_error)
{
    struct qf_err err = { 0 };

    CHECK(!input_open("/nonexistent/file", &err));
    CHECK_EQ(err.rc, QF_ENOTFOUND);
    err = (struct qf_err){ 0 };
    CHECK(!input_open("/", &err));
    CHECK_EQ(err.rc, QF_EIO);
}
