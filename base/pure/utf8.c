/* utf8.c - strict UTF-8. */
#include "base/pure/utf8.h"

#include <string.h>

#include "base/pure/macros.h"

static bool continues(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

size_t qf_utf8_decode(struct qf_str s, uint32_t *ret_rune)
{
    const unsigned char *p = (const unsigned char *)s.data;
    uint32_t rune;

    if (s.len == 0)
        return 0;
    if (p[0] < 0x80) {
        *ret_rune = p[0];
        return 1;
    }
    if (p[0] >= 0xc2 && p[0] <= 0xdf && s.len >= 2 && continues(p[1])) {
        *ret_rune = (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
        return 2;
    }
    if ((p[0] & 0xf0) == 0xe0 && s.len >= 3 && continues(p[1]) && continues(p[2])) {
        rune = (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
        if (rune < 0x800 || (rune >= 0xd800 && rune <= 0xdfff))
            return 0;
        *ret_rune = rune;
        return 3;
    }
    if ((p[0] & 0xf8) == 0xf0 && s.len >= 4 && continues(p[1]) && continues(p[2]) &&
        continues(p[3])) {
        rune = (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
               (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);
        if (rune < 0x10000 || rune > 0x10ffff)
            return 0;
        *ret_rune = rune;
        return 4;
    }
    return 0;
}

size_t qf_utf8_encode(uint32_t rune, char *out)
{
    if (rune > 0x10ffff || (rune >= 0xd800 && rune <= 0xdfff))
        rune = 0xfffd;
    if (rune < 0x80) {
        out[0] = (char)rune;
        return 1;
    }
    if (rune < 0x800) {
        out[0] = (char)(0xc0 | rune >> 6);
        out[1] = (char)(0x80 | (rune & 0x3f));
        return 2;
    }
    if (rune < 0x10000) {
        out[0] = (char)(0xe0 | rune >> 12);
        out[1] = (char)(0x80 | (rune >> 6 & 0x3f));
        out[2] = (char)(0x80 | (rune & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | rune >> 18);
    out[1] = (char)(0x80 | (rune >> 12 & 0x3f));
    out[2] = (char)(0x80 | (rune >> 6 & 0x3f));
    out[3] = (char)(0x80 | (rune & 0x3f));
    return 4;
}

/* How many of the first bytes are ASCII, eight at a time: most text is nothing else. */
static size_t skip_ascii(struct qf_str s)
{
    size_t i = 0;
    uint64_t word;

    for (; s.len - i >= sizeof(word); i += sizeof(word)) {
        memcpy(&word, s.data + i, sizeof(word));
        if (word & UINT64_C(0x8080808080808080))
            return i;
    }
    while (i < s.len && (unsigned char)s.data[i] < 0x80)
        i++;
    return i;
}

bool qf_utf8_valid(struct qf_str s)
{
    for (size_t i = s.len ? skip_ascii(s) : 0; i < s.len;) {
        uint32_t rune;
        size_t len = qf_utf8_decode(qf_str_sub(s, i, s.len), &rune);

        if (len == 0)
            return false;
        i += len;
    }
    return true;
}

bool qf_utf8_printable(uint32_t rune)
{
    /* Controls, blanks other than ' ', format characters, surrogates, private use, the ends of
     * planes and the specials: the ranges that occur in practice. */
    static const struct {
        uint32_t first, last;
    } hidden[] = {
        { 0x00, 0x1f },          { 0x7f, 0xa0 },       { 0xad, 0xad },       { 0x600, 0x605 },
        { 0x61c, 0x61c },        { 0x6dd, 0x6dd },     { 0x70f, 0x70f },     { 0x1680, 0x1680 },
        { 0x180e, 0x180e },      { 0x2000, 0x200f },   { 0x2028, 0x202f },   { 0x205f, 0x206f },
        { 0x3000, 0x3000 },      { 0xd800, 0xf8ff },   { 0xfeff, 0xfeff },   { 0xfff0, 0xfffb },
        { 0xfffe, 0xffff },      { 0x1fffe, 0x1ffff }, { 0x2fffe, 0x2ffff }, { 0x3fffe, 0xe00ff },
        { 0xe01f0, 0xffffffff },
    };

    for (size_t i = 0; i < QF_COUNT_OF(hidden); i++)
        if (rune >= hidden[i].first && rune <= hidden[i].last)
            return false;
    return true;
}
