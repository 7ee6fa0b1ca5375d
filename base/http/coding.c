/* coding.c - gzip and zstd. */
#include "base/http/coding.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>
#include <zstd.h>

#include "base/pure/alloc.h"

#define PIECE 16384
/* Answers are made on demand: the fastest levels. A window of 128 KiB keeps an encoder below a
 * megabyte, and there may be one for each of a thousand slow readers. */
#define GZIP_LEVEL 1
#define ZSTD_LEVEL 1
#define ZSTD_WINDOW_LOG 17
/* zlib counts input in 32 bits. */
#define INPUT_MAX ((size_t)1 << 30)

const char *qh_coding_name(enum qh_coding coding)
{
    switch (coding) {
    case QH_CODING_GZIP:
        return "gzip";
    case QH_CODING_ZSTD:
        return "zstd";
    case QH_CODING_IDENTITY:
    case QH_CODING__COUNT:
        break;
    }
    return NULL;
}

/* --- Accept-Encoding --- */

static bool same_word(struct qf_str text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.data, word, text.len) == 0;
}

/* Thousandths of "0", "0.5", "1.000"; -1 if it is none. */
static int read_q(struct qf_str text)
{
    int q, weight = 100;

    if (text.len == 0 || text.len > 5 || (text.data[0] != '0' && text.data[0] != '1'))
        return -1;
    q = (text.data[0] - '0') * 1000;
    if (text.len > 1 && text.data[1] != '.')
        return -1;
    for (size_t i = 2; i < text.len; i++, weight /= 10) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return -1;
        q += (text.data[i] - '0') * weight;
    }
    return q <= 1000 ? q : -1;
}

/* The part of @text before @mark, which @text then begins behind. */
static struct qf_str before(struct qf_str *text, char mark)
{
    const char *found = text->len ? memchr(text->data, mark, text->len) : NULL;
    size_t len = found ? (size_t)(found - text->data) : text->len;
    struct qf_str part = qf_str_trim(qf_str_sub(*text, 0, len));

    *text = qf_str_sub(*text, found ? len + 1 : len, text->len);
    return part;
}

/* "gzip;q=0.5": its name, and its q in thousandths, or -1. */
static int read_item(struct qf_str item, struct qf_str *ret_name)
{
    int q = 1000;

    *ret_name = before(&item, ';');
    while (item.len && q >= 0) {
        struct qf_str parameter = before(&item, ';'), value = parameter;
        struct qf_str name = before(&value, '=');

        q = same_word(name, "q") ? read_q(value) : -1;
    }
    return q;
}

/* The q of each coding in thousandths; of identity -1 if it is not named. */
static void weigh(struct qf_str accept, int q[QH_CODING__COUNT])
{
    int any = 0;

    for (int i = 0; i < QH_CODING__COUNT; i++)
        q[i] = -1;
    while (accept.len) {
        struct qf_str name;
        int value = read_item(before(&accept, ','), &name);

        if (value < 0)
            continue;
        if (same_word(name, "gzip") || same_word(name, "x-gzip"))
            q[QH_CODING_GZIP] = value;
        else if (same_word(name, "zstd"))
            q[QH_CODING_ZSTD] = value;
        else if (same_word(name, "identity"))
            q[QH_CODING_IDENTITY] = value;
        else if (same_word(name, "*"))
            any = value;
    }
    for (int i = QH_CODING_GZIP; i < QH_CODING__COUNT; i++)
        q[i] = q[i] < 0 ? any : q[i];
}

enum qh_coding qh_coding_choose(struct qf_str accept)
{
    enum qh_coding best = QH_CODING_IDENTITY;
    int q[QH_CODING__COUNT];

    weigh(accept, q);
    for (int i = QH_CODING_GZIP; i < QH_CODING__COUNT; i++)
        if (q[i] > 0 && q[i] >= q[best])
            best = (enum qh_coding)i;
    return best;
}

bool qh_coding_accepted(struct qf_str accept, const char *coding)
{
    int named = -1, any = 0;

    while (accept.len) {
        struct qf_str name;
        int value = read_item(before(&accept, ','), &name);

        if (value >= 0 && same_word(name, coding))
            named = value;
        else if (value >= 0 && same_word(name, "*"))
            any = value;
    }
    return (named < 0 ? any : named) > 0;
}

/* --- encoders --- */

struct qh_encoder {
    enum qh_coding coding;
    z_stream gzip;
    ZSTD_CCtx *zstd;
};

static bool start(struct qh_encoder *encoder)
{
    switch (encoder->coding) {
    case QH_CODING_GZIP:
        /* 15 bits of window + 16: with a gzip header. */
        return deflateInit2(&encoder->gzip, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8,
                            Z_DEFAULT_STRATEGY) == Z_OK;
    case QH_CODING_ZSTD:
        encoder->zstd = ZSTD_createCCtx();
        return encoder->zstd &&
               !ZSTD_isError(
                   ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) &&
               !ZSTD_isError(
                   ZSTD_CCtx_setParameter(encoder->zstd, ZSTD_c_windowLog, ZSTD_WINDOW_LOG));
    case QH_CODING_IDENTITY:
    case QH_CODING__COUNT:
        break;
    }
    return false;
}

struct qh_encoder *qh_encoder_new(enum qh_coding coding)
{
    struct qh_encoder *encoder = qf_xcalloc(1, sizeof(*encoder));

    encoder->coding = coding;
    return start(encoder) ? encoder : qh_encoder_free(encoder);
}

struct qh_encoder *qh_encoder_free(struct qh_encoder *encoder)
{
    if (!encoder)
        return NULL;
    if (encoder->coding == QH_CODING_GZIP)
        (void)deflateEnd(&encoder->gzip);
    (void)ZSTD_freeCCtx(encoder->zstd);
    free(encoder);
    return NULL;
}

static void add_gzip(struct qh_encoder *encoder, struct qf_str bytes, int flush,
                     struct qf_strbuf *out)
{
    z_stream *gzip = &encoder->gzip;
    char piece[PIECE];

    gzip->next_in = (Bytef *)(uintptr_t)bytes.data;
    gzip->avail_in = (uInt)bytes.len;
    do {
        gzip->next_out = (Bytef *)piece;
        gzip->avail_out = sizeof(piece);
        (void)deflate(gzip, flush);
        qf_strbuf_add(out, piece, sizeof(piece) - gzip->avail_out);
    } while (gzip->avail_out == 0);
}

static void add_zstd(struct qh_encoder *encoder, struct qf_str bytes, ZSTD_EndDirective how,
                     struct qf_strbuf *out)
{
    ZSTD_inBuffer in = { bytes.data, bytes.len, 0 };
    size_t left;

    do {
        char piece[PIECE];
        ZSTD_outBuffer to = { piece, sizeof(piece), 0 };

        left = ZSTD_compressStream2(encoder->zstd, &to, &in, how);
        qf_strbuf_add(out, piece, to.pos);
    } while (!ZSTD_isError(left) && (in.pos < in.size || (how != ZSTD_e_continue && left > 0)));
}

void qh_encoder_add(struct qh_encoder *encoder, struct qf_str bytes, enum qh_encode how,
                    struct qf_strbuf *out)
{
    static const int gzip[] = {
        [QH_ENCODE_MORE] = Z_NO_FLUSH, [QH_ENCODE_FLUSH] = Z_SYNC_FLUSH, [QH_ENCODE_END] = Z_FINISH
    };
    static const ZSTD_EndDirective zstd[] = { [QH_ENCODE_MORE] = ZSTD_e_continue,
                                              [QH_ENCODE_FLUSH] = ZSTD_e_flush,
                                              [QH_ENCODE_END] = ZSTD_e_end };

    if (encoder->coding == QH_CODING_ZSTD) {
        add_zstd(encoder, bytes, zstd[how], out);
        return;
    }
    for (; bytes.len > INPUT_MAX; bytes = qf_str_sub(bytes, INPUT_MAX, bytes.len))
        add_gzip(encoder, qf_str_sub(bytes, 0, INPUT_MAX), Z_NO_FLUSH, out);
    add_gzip(encoder, bytes, gzip[how], out);
}
