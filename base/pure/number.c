/* number.c - doubles as text. */
#include "base/pure/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/digits.h"
#include "base/pure/shortest.h"

static size_t put(char *out, const char *text)
{
    size_t len = strlen(text);

    memcpy(out, text, len + 1);
    return len;
}

static bool special(double v, char *out, size_t *ret_len)
{
    if (isnan(v))
        *ret_len = put(out, "NaN");
    else if (isinf(v))
        *ret_len = put(out, v > 0 ? "+Inf" : "-Inf");
    else
        return false;
    return true;
}

/* Without exponent. Most numbers by our own digits; those with many zeros, and from 2^53 on, where std::to_chars writes all digits of the exact value; what is wanted
 * are the shortest ones that read back as it, followed by zeros, by others. */
static size_t fixed(double v, char *out)
{
    char text[64], *exponent;
    size_t len = 0, digits = 0, wanted = 0;

    if (fabs(v) < 0x1p53)
        return fabs(v) >= 1e-7 || v == 0 ? qf_digits_fixed(v, out)
                                         : qf_shortest_fixed(v, out, QF_DOUBLE_TEXT_MAX);
    (void)qf_shortest_scientific(v, text, sizeof(text));
    exponent = strchr(text, 'e');
    for (const char *c = exponent + 2; *c; c++) /* behind "e+" */
        wanted = wanted * 10 + (size_t)(*c - '0');
    wanted++;
    for (const char *c = text; c < exponent; c++) {
        if (*c == '.')
            continue;
        out[len++] = *c;
        digits += *c != '-';
    }
    for (; digits < wanted; digits++)
        out[len++] = '0';
    out[len] = '\0';
    return len;
}

size_t qf_double_f(double v, char *out)
{
    size_t len;

    if (special(v, out, &len))
        return len;
    return fixed(v, out);
}

static size_t with_exponent_outside(double v, double low, double high, char *out)
{
    double size = fabs(v);
    size_t len;

    if (special(v, out, &len))
        return len;
    if (size != 0 && (size < low || size >= high))
        return qf_shortest_scientific(v, out, QF_DOUBLE_TEXT_MAX);
    return fixed(v, out);
}

size_t qf_double_g(double v, char *out)
{
    return with_exponent_outside(v, 1e-4, 1e6, out);
}

size_t qf_double_json(double v, char *out)
{
    return with_exponent_outside(v, 1e-6, 1e21, out);
}

bool qf_parse_double(struct qf_str s, double *ret_value)
{
    char small[64];
    char *text = small, *end;
    double value;
    bool whole;

    if (s.len == 0 || strchr(" \t\n\v\f\r", s.data[0]) != NULL || memchr(s.data, 0, s.len))
        return false;
    if (memchr(s.data, '(', s.len)) /* strtod's nan(...) is not ours */
        return false;
    if (s.len >= sizeof(small)) {
        text = malloc(s.len + 1);
        if (!text)
            return false;
    }
    memcpy(text, s.data, s.len);
    text[s.len] = '\0';
    value = strtod(text, &end);
    whole = end == text + s.len;
    if (text != small)
        free(text);
    if (!whole)
        return false;
    *ret_value = isnan(value) ? qf_double_from_bits(QF_NORMAL_NAN_BITS) : value;
    return true;
}

bool qf_parse_u64(struct qf_str s, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(s.data[i] - '0'), &value))
            return false;
    }
    *ret_value = value;
    return true;
}

bool qf_parse_i64(struct qf_str s, int64_t *ret_value)
{
    bool negative = s.len && s.data[0] == '-';
    uint64_t size;

    if (!qf_parse_u64(negative ? qf_str_sub(s, 1, s.len) : s, &size))
        return false;
    if (size > (uint64_t)INT64_MAX + negative)
        return false;
    *ret_value = negative ? (int64_t)(0 - size) : (int64_t)size;
    return true;
}

bool qf_parse_bytes(struct qf_str s, uint64_t *ret_bytes)
{
    static const struct {
        const char *suffix;
        unsigned shift;
    } units[] = { { "KiB", 10 }, { "MiB", 20 }, { "GiB", 30 }, { "TiB", 40 }, { "B", 0 } };
    unsigned shift = 0;
    uint64_t number;

    for (size_t i = 0; i < QF_COUNT_OF(units); i++) {
        struct qf_str suffix = qf_str_from(units[i].suffix);

        if (!qf_str_ends(s, suffix))
            continue;
        shift = units[i].shift;
        s = qf_str_sub(s, 0, s.len - suffix.len);
        break;
    }
    if (!qf_parse_u64(s, &number) || number > UINT64_MAX >> shift)
        return false;
    *ret_bytes = number << shift;
    return true;
}
