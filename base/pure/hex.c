/* hex.c - bytes as hexadecimal digits. */
#include "base/pure/hex.h"

#include "base/pure/number.h"

void qf_hex_encode(const void *bytes, size_t count, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;

    for (size_t i = 0; i < count; i++) {
        *out++ = digits[from[i] >> 4];
        *out++ = digits[from[i] & 15];
    }
    *out = '\0';
}

void qf_strbuf_hex(struct qf_strbuf *buf, const void *bytes, size_t count)
{
    const unsigned char *from = bytes;
    char pair[3];

    for (size_t i = 0; i < count; i++) {
        qf_hex_encode(from + i, 1, pair);
        qf_strbuf_add(buf, pair, 2);
    }
}

bool qf_hex_decode(struct qf_str text, void *out)
{
    unsigned char *to = out;

    if (text.len % 2)
        return false;
    for (size_t i = 0; i < text.len; i += 2) {
        int high = qf_hex_digit(text.data[i]), low = qf_hex_digit(text.data[i + 1]);

        if (high < 0 || low < 0)
            return false;
        to[i / 2] = (unsigned char)(high << 4 | low);
    }
    return true;
}

bool qf_hex_u64(struct qf_str text, uint64_t *ret_value)
{
    unsigned char bytes[8];
    uint64_t value = 0;

    if (text.len != 2 * sizeof(bytes) || !qf_hex_decode(text, bytes))
        return false;
    for (size_t i = 0; i < sizeof(bytes); i++)
        value = value << 8 | bytes[i];
    *ret_value = value;
    return true;
}
