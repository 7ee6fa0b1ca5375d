/* number.h - doubles as text, both ways, exact and independent of the locale. */
#ifndef BASE_PURE_NUMBER_H
#define BASE_PURE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

/* NaN with these bits marks the end of a series; it is never a value. */
#define QF_STALE_NAN_BITS UINT64_C(0x7ff0000000000002)
/* The NaN that arithmetic and literals produce in Prometheus. */
#define QF_NORMAL_NAN_BITS UINT64_C(0x7ff8000000000001)

static inline uint64_t qf_double_bits(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

static inline double qf_double_from_bits(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static inline bool qf_is_stale(double v)
{
    return qf_double_bits(v) == QF_STALE_NAN_BITS;
}

enum { QF_DOUBLE_TEXT_MAX = 400 }; /* Enough for any double in 'f' form. */

/* The shortest text that reads back as the same double. Infinities are "+Inf" and "-Inf", any NaN
 * is "NaN". Each returns the length; @out has QF_DOUBLE_TEXT_MAX bytes and is NUL-terminated. */
size_t qf_double_f(double v, char *out); /* Go's 'f': never an exponent. */
size_t qf_double_g(double v, char *out); /* Go's %v, %g: exponent below 1e-4, from 1e6 on. */
size_t qf_double_json(double v,
                      char *out); /* Prometheus JSON: exponent below 1e-6, from 1e21 on. */

/* Read all of @s as strtod would in the C locale: decimal or hex floating point, "inf", "infinity",
 * "nan" in any case, optional sign. Overflow gives an infinity. False if anything is left over. */
bool qf_parse_double(struct qf_str s, double *ret_value);
/* Decimal only, optional '-'; false on overflow or leftovers. */
bool qf_parse_i64(struct qf_str s, int64_t *ret_value);
bool qf_parse_u64(struct qf_str s, uint64_t *ret_value);
/* A whole number of bytes, with B, KiB, MiB, GiB or TiB behind it or nothing. */
bool qf_parse_bytes(struct qf_str s, uint64_t *ret_bytes);

/* 0 to 15, either case; -1 if @c is no hexadecimal digit. */
static inline int qf_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

#endif
