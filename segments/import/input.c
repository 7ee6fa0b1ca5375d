/* input.c - lines of a file that may be compressed. */
#include "segments/import/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/pure/alloc.h"
#include "base/pure/macros.h"

#define RAW_SIZE (256u << 10)
#define TEXT_SIZE (256u << 10)

enum codec { CODEC_UNKNOWN, CODEC_PLAIN, CODEC_GZIP, CODEC_ZSTD };

struct input {
    char *path;
    int fd;
    uint64_t bytes_done, bytes_total;
    enum codec codec;
    z_stream gzip;
    bool gzip_open;
    ZSTD_DStream *zstd;
    bool unfinished; /* in the middle of a member or frame */

    unsigned char *raw; /* bytes as stored */
    size_t raw_start, raw_end;
    bool raw_eof;

    char *text; /* decompressed; the current line starts at text_start */
    size_t text_start, text_end, text_capacity;
    bool skipping; /* passing over the rest of a line that was too long */
};

struct input *input_open(const char *path, struct qf_err *err)
{
    bool from_stdin = strcmp(path, "-") == 0;
    int fd = from_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    struct input *input;
    struct stat status;

    if (fd < 0 || fstat(fd, &status) != 0) {
        (void)qf_err_set(err, errno == ENOENT ? QF_ENOTFOUND : QF_EIO, "%s: cannot open: %s", path,
                         strerror(errno));
        if (fd > STDIN_FILENO)
            (void)close(fd);
        return NULL;
    }
    if (S_ISDIR(status.st_mode)) {
        (void)qf_err_set(err, QF_EIO, "%s: is a folder", path);
        if (!from_stdin)
            (void)close(fd);
        return NULL;
    }
    input = qf_xcalloc(1, sizeof(*input));
    input->path = qf_xstrdup(from_stdin ? "standard input" : path);
    input->fd = fd;
    input->bytes_total = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
    input->raw = qf_xmalloc(RAW_SIZE);
    input->text_capacity = TEXT_SIZE;
    input->text = qf_xmalloc(input->text_capacity);
    return input;
}

struct input *input_close(struct input *input)
{
    if (!input)
        return NULL;
    if (input->fd != STDIN_FILENO)
        (void)close(input->fd);
    if (input->gzip_open)
        (void)inflateEnd(&input->gzip);
    (void)ZSTD_freeDStream(input->zstd);
    free(input->raw);
    free(input->text);
    free(input->path);
    free(input);
    return NULL;
}

static qf_rc fill_raw(struct input *input, struct qf_err *err)
{
    if (input->raw_start == input->raw_end)
        input->raw_start = input->raw_end = 0;
    while (!input->raw_eof && input->raw_end < RAW_SIZE) {
        ssize_t got = read(input->fd, input->raw + input->raw_end, RAW_SIZE - input->raw_end);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return qf_err_set(err, QF_EIO, "%s: cannot read: %s", input->path, strerror(errno));
        input->raw_eof = got == 0;
        input->raw_end += (size_t)got;
        input->bytes_done += (uint64_t)got;
        if (input->raw_end - input->raw_start >= 4)
            break; /* enough to recognise the compression */
    }
    return QF_OK;
}

static void recognise(struct input *input)
{
    const unsigned char *at = input->raw + input->raw_start;
    size_t len = input->raw_end - input->raw_start;

    input->codec = CODEC_PLAIN;
    if (len >= 2 && at[0] == 0x1f && at[1] == 0x8b)
        input->codec = CODEC_GZIP;
    else if (len >= 4 && at[0] == 0x28 && at[1] == 0xb5 && at[2] == 0x2f && at[3] == 0xfd)
        input->codec = CODEC_ZSTD;
    if (input->codec == CODEC_GZIP) {
        if (inflateInit2(&input->gzip, 15 + 16) != Z_OK)
            abort(); /* only for lack of memory */
        input->gzip_open = true;
    }
    if (input->codec == CODEC_ZSTD) {
        input->zstd = ZSTD_createDStream();
        if (!input->zstd)
            abort();
    }
}

static qf_rc decode_gzip(struct input *input, char *out, size_t room, size_t *ret_len,
                         struct qf_err *err)
{
    z_stream *z = &input->gzip;
    int status;

    if (!input->unfinished) { /* a further member */
        (void)inflateReset(z);
        input->unfinished = true;
    }
    z->next_in = input->raw + input->raw_start;
    z->avail_in = (uInt)(input->raw_end - input->raw_start);
    z->next_out = (Bytef *)out;
    z->avail_out = (uInt)room;
    status = inflate(z, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        return qf_err_set(err, QF_ECORRUPT, "%s: broken gzip data: %s", input->path,
                          z->msg ? z->msg : "bad stream");
    input->unfinished = status != Z_STREAM_END;
    input->raw_start = input->raw_end - z->avail_in;
    *ret_len = room - z->avail_out;
    return QF_OK;
}

static qf_rc decode_zstd(struct input *input, char *out, size_t room, size_t *ret_len,
                         struct qf_err *err)
{
    ZSTD_inBuffer in = { input->raw + input->raw_start, input->raw_end - input->raw_start, 0 };
    ZSTD_outBuffer to = { out, room, 0 };
    size_t status = ZSTD_decompressStream(input->zstd, &to, &in);

    if (ZSTD_isError(status))
        return qf_err_set(err, QF_ECORRUPT, "%s: broken zstd data: %s", input->path,
                          ZSTD_getErrorName(status));
    input->unfinished = status != 0;
    input->raw_start += in.pos;
    *ret_len = to.pos;
    return QF_OK;
}

/* Up to @room bytes of text; *ret_len is 0 only at the end. */
static qf_rc decode(struct input *input, char *out, size_t room, size_t *ret_len,
                    struct qf_err *err)
{
    *ret_len = 0;
    while (*ret_len == 0) {
        size_t have = input->raw_end - input->raw_start, before;
        qf_rc rc = QF_OK;

        if (have == 0) {
            rc = fill_raw(input, err);
            have = input->raw_end - input->raw_start;
        }
        if (rc != QF_OK)
            return rc;
        if (have == 0 && input->unfinished)
            return qf_err_set(err, QF_ECORRUPT, "%s: the compressed data end too early",
                              input->path);
        if (have == 0)
            return QF_OK;
        if (input->codec == CODEC_UNKNOWN)
            recognise(input);
        before = input->raw_start;
        if (input->codec == CODEC_GZIP) {
            rc = decode_gzip(input, out, room, ret_len, err);
        } else if (input->codec == CODEC_ZSTD) {
            rc = decode_zstd(input, out, room, ret_len, err);
        } else {
            *ret_len = QF_MIN(have, room);
            memcpy(out, input->raw + input->raw_start, *ret_len);
            input->raw_start += *ret_len;
        }
        if (rc != QF_OK)
            return rc;
        if (*ret_len == 0 && input->raw_start == before)
            return qf_err_set(err, QF_ECORRUPT, "%s: broken compressed data", input->path);
    }
    return QF_OK;
}

/* Make room behind the text for more, moving or growing it. */
static void make_room(struct input *input, size_t line_max)
{
    if (input->text_start > 0) {
        memmove(input->text, input->text + input->text_start, input->text_end - input->text_start);
        input->text_end -= input->text_start;
        input->text_start = 0;
    }
    if (input->text_end == input->text_capacity && input->text_capacity < line_max + TEXT_SIZE) {
        input->text_capacity = QF_MIN(input->text_capacity * 2, line_max + TEXT_SIZE);
        input->text = qf_xrealloc(input->text, input->text_capacity);
    }
}

/* Take the line [start, start + len) and its newline off the text. */
static void take(struct input *input, size_t len, bool newline, size_t line_max,
                 struct qf_str *ret_line, bool *ret_cut)
{
    *ret_line = (struct qf_str){ input->text + input->text_start, QF_MIN(len, line_max) };
    *ret_cut = len > line_max;
    input->text_start += len + newline;
    input->skipping = !newline;
}

qf_rc input_line(struct input *input, size_t line_max, struct qf_str *ret_line, bool *ret_cut,
                 bool *ret_more, struct qf_err *err)
{
    size_t searched = 0;

    for (;;) {
        char *start = input->text + input->text_start;
        size_t have = input->text_end - input->text_start, got;
        char *newline = memchr(start + searched, '\n', have - searched);
        qf_rc rc;

        if (newline && input->skipping) {
            input->text_start += (size_t)(newline - start) + 1;
            input->skipping = false;
            searched = 0;
            continue;
        }
        if (input->skipping) {
            input->text_start = input->text_end;
            have = 0;
        }
        *ret_more = true;
        if (newline || have > line_max) {
            take(input, newline ? (size_t)(newline - start) : have, newline != NULL, line_max,
                 ret_line, ret_cut);
            return QF_OK;
        }
        searched = have;
        make_room(input, line_max);
        rc = decode(input, input->text + input->text_end, input->text_capacity - input->text_end,
                    &got, err);
        if (rc != QF_OK)
            return rc;
        input->text_end += got;
        if (got > 0)
            continue;
        *ret_more = have > 0;
        *ret_cut = false;
        take(input, have, false, line_max, ret_line, ret_cut);
        return QF_OK;
    }
}

uint64_t input_bytes_done(const struct input *input)
{
    return input->bytes_done - (input->raw_end - input->raw_start);
}

uint64_t input_bytes_total(const struct input *input)
{
    return input->bytes_total;
}
