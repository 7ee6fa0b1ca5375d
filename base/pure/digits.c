/* digits.c - the shortest decimal that reads back as a double. */
#include "base/pure/digits.h"

#include <stdbool.h>
#include <string.h>

#include "base/pure/number.h"

__extension__ typedef unsigned __int128 u128;

struct power {
    uint64_t high, low;
};

#define POWER_MIN (-292)
static const struct power powers[] = {
#define P(high, low) { high, low },
#include "base/pure/powers_of_ten.def"
#undef P
};

/* floor(log10(2^e)), floor(log10(3/4 * 2^e)) and floor(log2(10^e)) for all e that occur. */
static int log10_of_power_of_2(int e)
{
    return (e * 1262611) >> 22;
}

static int log10_of_three_quarters(int e)
{
    return (e * 1262611 - 524031) >> 22;
}

static int log2_of_power_of_10(int e)
{
    return (e * 1741647) >> 19;
}

/* The upper 64 bits of g * c / 2^64, with the lowest bit set if anything was cut off: which side of
 * a whole number it is on stays known. */
static uint64_t round_to_odd(struct power g, uint64_t c)
{
    u128 low = (u128)g.low * c, high = (u128)g.high * c;
    u128 sum = high + (uint64_t)(low >> 64);

    return (uint64_t)(sum >> 64) | ((uint64_t)sum > 1);
}

/* No zeros at the end: eight at a time, then one by one. */
static struct qf_decimal trimmed(uint64_t digits, int exponent)
{
    while (digits % 100000000 == 0) {
        digits /= 100000000;
        exponent += 8;
    }
    while (digits % 10 == 0) {
        digits /= 10;
        exponent++;
    }
    return (struct qf_decimal){ digits, exponent };
}

/* The double c * 2^q; @closer: its lower neighbour is half as far away as the upper one. */
static struct qf_decimal shortest(uint64_t c, int q, bool closer)
{
    bool odd = c & 1;
    int k = closer ? log10_of_three_quarters(q) : log10_of_power_of_2(q);
    int h = q + log2_of_power_of_10(-k) + 1;
    struct power g = powers[-k - POWER_MIN];
    /* Four times the double and its borders, in units of 10^k. An odd double's borders are not its own. */
    uint64_t lower = round_to_odd(g, (4 * c - 2 + closer) << h) + odd;
    uint64_t value = round_to_odd(g, (4 * c) << h);
    uint64_t upper = round_to_odd(g, (4 * c + 2) << h) - odd;
    uint64_t s = value / 4, tens = s / 10;
    bool below, above;

    if (s >= 10) {
        below = lower <= 40 * tens;
        above = 40 * tens + 40 <= upper;
        if (below != above)
            return trimmed(tens + above, k + 1);
    }
    below = lower <= 4 * s;
    above = 4 * s + 4 <= upper;
    if (below == above) /* both or none: the closer one, of equally close ones the even one */
        above = value > 4 * s + 2 || (value == 4 * s + 2 && (s & 1));
    return trimmed(s + above, k);
}

struct qf_decimal qf_shortest_decimal(double v)
{
    uint64_t bits = qf_double_bits(v), fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52) & 2047;

    if (exponent == 0)
        return shortest(fraction, -1074, false);
    return shortest(fraction | UINT64_C(1) << 52, exponent - 1075, fraction == 0 && exponent > 1);
}

/* -- Text ------------------------------------------------------------------------------------- */

static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233"
                            "34353637383940414243444546474849505152535455565758596061626364656667"
                            "6869707172737475767778798081828384858687888990919293949596979899";

static void put_pair(char *out, uint32_t value)
{
    memcpy(out, pairs + (size_t)value * 2, 2);
}

static void put_eight(char *out, uint32_t value)
{
    uint32_t high = value / 10000, low = value % 10000;

    put_pair(out, high / 100);
    put_pair(out + 2, high % 100);
    put_pair(out + 4, low / 100);
    put_pair(out + 6, low % 100);
}

static size_t length_of(uint64_t value)
{
    static const uint64_t powers_of_ten[] = { 0,
                                              10,
                                              100,
                                              1000,
                                              10000,
                                              100000,
                                              1000000,
                                              10000000,
                                              100000000,
                                              1000000000,
                                              10000000000,
                                              100000000000,
                                              1000000000000,
                                              10000000000000,
                                              100000000000000,
                                              1000000000000000,
                                              10000000000000000,
                                              100000000000000000,
                                              1000000000000000000,
                                              UINT64_C(10000000000000000000) };
    /* log10(2) is about 1233 / 4096. */
    size_t guess = (size_t)((64 - __builtin_clzll(value | 1)) * 1233) >> 12;

    return guess + 1 - (guess < 20 && value < powers_of_ten[guess]);
}

/* @value has @len digits. */
static inline void put_digits(uint64_t value, char *out, size_t len)
{
    char *at = out + len;
    uint32_t rest;

    while (value >= 100000000) {
        put_eight(at -= 8, (uint32_t)(value % 100000000));
        value /= 100000000;
    }
    for (rest = (uint32_t)value; at - out >= 2; rest /= 100)
        put_pair(at -= 2, rest % 100);
    if (at > out)
        *out = (char)('0' + rest);
}

size_t qf_digits_u64(uint64_t value, char *out)
{
    size_t len = length_of(value);

    put_digits(value, out, len);
    return len;
}

/* Digits go where those behind the point belong, and those in front of it one place to the left. */
static size_t put_fraction(struct qf_decimal d, char *out)
{
    size_t len = length_of(d.digits), behind = (size_t)-d.exponent;

    if (len > behind) { /* 123.45 */
        put_digits(d.digits, out + 1, len);
        for (size_t i = 0; i < len - behind; i++)
            out[i] = out[i + 1];
        out[len - behind] = '.';
        return len + 1;
    }
    memcpy(out, "0.000000", 8); /* 0.0012345 */
    put_digits(d.digits, out + 2 + behind - len, len);
    return 2 + behind;
}

size_t qf_digits_fixed(double v, char *out)
{
    size_t sign = qf_double_bits(v) >> 63, len;
    double size = sign ? -v : v;
    uint64_t whole = (uint64_t)size;

    *out = '-';
    out += sign;
    if ((double)whole == size)
        len = qf_digits_u64(whole, out);
    else
        len = put_fraction(qf_shortest_decimal(size), out);
    out[len] = '\0';
    return sign + len;
}
