/* strbuf.c - growing byte strings. */
#include "base/pure/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/utf8.h"
#include "base/pure/varint.h"

void qf_strbuf_done(struct qf_strbuf *buf)
{
    free(buf->data);
    *buf = (struct qf_strbuf){ .limit = buf->limit };
}

void qf_strbuf_reset(struct qf_strbuf *buf)
{
    buf->len = 0;
    buf->overflowed = false;
    if (buf->data)
        buf->data[0] = '\0';
}

char *qf_strbuf_reserve(struct qf_strbuf *buf, size_t len)
{
    size_t need = buf->len + len + 1;

    if (need <= len || (buf->limit && buf->len + len > buf->limit)) {
        buf->overflowed = true;
        return NULL;
    }
    if (need > buf->capacity) {
        size_t capacity = buf->capacity ? buf->capacity * 2 : 64;

        if (capacity < need)
            capacity = need;
        buf->data = qf_xrealloc(buf->data, capacity);
        buf->capacity = capacity;
    }
    return buf->data + buf->len;
}

void qf_strbuf_add(struct qf_strbuf *buf, const void *data, size_t len)
{
    char *room = qf_strbuf_reserve(buf, len);

    if (!room)
        return;
    if (len)
        memcpy(room, data, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
}

void qf_strbuf_str(struct qf_strbuf *buf, struct qf_str s)
{
    qf_strbuf_add(buf, s.data, s.len);
}

void qf_strbuf_puts(struct qf_strbuf *buf, const char *cstr)
{
    qf_strbuf_add(buf, cstr, strlen(cstr));
}

void qf_strbuf_putc(struct qf_strbuf *buf, char c)
{
    qf_strbuf_add(buf, &c, 1);
}

void qf_strbuf_printf(struct qf_strbuf *buf, const char *fmt, ...)
{
    char small[256];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(small, sizeof(small), fmt, args);
    va_end(args);
    if (len < 0) {
        buf->overflowed = true;
        return;
    }
    if ((size_t)len < sizeof(small)) {
        qf_strbuf_add(buf, small, (size_t)len);
        return;
    }
    if (!qf_strbuf_reserve(buf, (size_t)len))
        return;
    va_start(args, fmt);
    (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, fmt, args);
    va_end(args);
    buf->len += (size_t)len;
}

void qf_strbuf_u64(struct qf_strbuf *buf, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    qf_strbuf_add(buf, digits + at, sizeof(digits) - at);
}

void qf_strbuf_i64(struct qf_strbuf *buf, int64_t value)
{
    if (value < 0)
        qf_strbuf_putc(buf, '-');
    qf_strbuf_u64(buf, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void qf_strbuf_varint(struct qf_strbuf *buf, uint64_t value)
{
    unsigned char bytes[QF_VARINT_MAX];

    qf_strbuf_add(buf, bytes, qf_varint_put(bytes, value));
}

static void json_ascii(struct qf_strbuf *buf, char c)
{
    switch (c) {
    case '"':
        qf_strbuf_puts(buf, "\\\"");
        break;
    case '\\':
        qf_strbuf_puts(buf, "\\\\");
        break;
    case '\n':
        qf_strbuf_puts(buf, "\\n");
        break;
    case '\r':
        qf_strbuf_puts(buf, "\\r");
        break;
    case '\t':
        qf_strbuf_puts(buf, "\\t");
        break;
    default:
        if ((unsigned char)c < 0x20)
            qf_strbuf_printf(buf, "\\u%04x", (unsigned)c);
        else
            qf_strbuf_putc(buf, c);
    }
}

void qf_strbuf_json(struct qf_strbuf *buf, struct qf_str s)
{
    size_t plain = 0, i = 0;

    qf_strbuf_putc(buf, '"');
    while (i < s.len) {
        unsigned char c = (unsigned char)s.data[i];
        uint32_t rune;
        size_t len = 1;

        if (c < 0x80 && c >= 0x20 && c != '"' && c != '\\') {
            i++;
            continue;
        }
        if (c >= 0x80 && (len = qf_utf8_decode(qf_str_sub(s, i, s.len), &rune)) > 0) {
            i += len;
            continue;
        }
        qf_strbuf_add(buf, s.data + plain, i - plain);
        if (c < 0x80)
            json_ascii(buf, s.data[i]);
        else
            qf_strbuf_puts(buf, "\xef\xbf\xbd");
        plain = ++i;
    }
    if (plain < s.len) /* an empty slice may have no data to add to */
        qf_strbuf_add(buf, s.data + plain, s.len - plain);
    qf_strbuf_putc(buf, '"');
}

static void quote_rune(struct qf_strbuf *buf, struct qf_str raw, uint32_t rune)
{
    static const char short_of[] = { ['\a'] = 'a', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n',
                                     ['\r'] = 'r', ['\t'] = 't', ['\v'] = 'v' };

    if (rune == '"' || rune == '\\')
        qf_strbuf_printf(buf, "\\%c", (char)rune);
    else if (rune < QF_COUNT_OF(short_of) && short_of[rune])
        qf_strbuf_printf(buf, "\\%c", short_of[rune]);
    else if (qf_utf8_printable(rune))
        qf_strbuf_str(buf, raw);
    else if (rune < 0x20 || rune == 0x7f)
        qf_strbuf_printf(buf, "\\x%02x", (unsigned)rune);
    else if (rune < 0x10000)
        qf_strbuf_printf(buf, "\\u%04x", (unsigned)rune);
    else
        qf_strbuf_printf(buf, "\\U%08x", (unsigned)rune);
}

void qf_strbuf_quote(struct qf_strbuf *buf, struct qf_str s)
{
    qf_strbuf_putc(buf, '"');
    for (size_t i = 0; i < s.len;) {
        uint32_t rune;
        size_t len = qf_utf8_decode(qf_str_sub(s, i, s.len), &rune);

        if (len == 0) {
            qf_strbuf_printf(buf, "\\x%02x", (unsigned)(unsigned char)s.data[i]);
            i++;
            continue;
        }
        quote_rune(buf, qf_str_sub(s, i, i + len), rune);
        i += len;
    }
    qf_strbuf_putc(buf, '"');
}

const char *qf_strbuf_cstr(const struct qf_strbuf *buf)
{
    return buf->data ? buf->data : "";
}

char *qf_strbuf_take(struct qf_strbuf *buf)
{
    char *text = buf->data ? buf->data : qf_xmemdup0("", 0);

    *buf = (struct qf_strbuf){ .limit = buf->limit };
    return text;
}
