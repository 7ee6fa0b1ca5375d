/* base64.c - base64, both ways. */
#include "base/pure/base64.h"

#include <stdint.h>

void qf_base64_encode(struct qf_strbuf *buf, struct qf_str bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *data = (const unsigned char *)bytes.data;

    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t group = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                         (left > 2 ? data[i + 2] : 0);
        char text[4] = { digits[group >> 18], digits[group >> 12 & 63],
                         left > 1 ? digits[group >> 6 & 63] : '=',
                         left > 2 ? digits[group & 63] : '=' };

        qf_strbuf_add(buf, text, sizeof(text));
    }
}

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool qf_base64_decode(struct qf_strbuf *buf, struct qf_str text)
{
    if (text.len % 4)
        return false;
    for (int i = 0; i < 2 && text.len && text.data[text.len - 1] == '='; i++)
        text.len--;
    for (size_t i = 0; i < text.len; i += 4) {
        size_t digits = text.len - i < 4 ? text.len - i : 4;
        uint32_t group = 0;

        for (size_t j = 0; j < digits; j++) {
            int value = digit(text.data[i + j]);

            if (value < 0)
                return false;
            group |= (uint32_t)value << (18 - 6 * j);
        }
        if (digits == 1 || (digits == 2 && (group & 0xffff)) || (digits == 3 && (group & 0xff)))
            return false;
        for (size_t j = 0; j + 1 < digits; j++)
            qf_strbuf_putc(buf, (char)(group >> (16 - 8 * j)));
    }
    return true;
}
