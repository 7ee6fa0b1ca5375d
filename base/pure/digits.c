/* digits.c - the shortest decimal that reads back as a double. */
#include "base/pure/digits.h"

#include <endian.h>
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

/* Of 2^60: more than what is cut off from two numbers that are compared, and than what powers of ten are
 * rounded by. */
#define DOUBT UINT64_C(4)

/* The upper 64 bits of g * c / 2^64, with the lowest bit set if anything was cut off: which side of
 * a whole number it is on stays known. */
static uint64_t round_to_odd(struct power g, uint64_t c)
{
    u128 low = (u128)g.low * c, high = (u128)g.high * c;
    u128 sum = high + (uint64_t)(low >> 64);

    return (uint64_t)(sum >> 64) | ((uint64_t)sum > 1);
}

/* The double c * 2^q; @closer: its lower neighbour is half as far away as the upper one. The digits may
 * end in zeros. */
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
    /* Which one it is cannot be foreseen: both are made and one is taken, without a jump. */
    bool tens_below = lower <= 40 * tens, tens_above = 40 * tens + 40 <= upper;
    bool below = lower <= 4 * s, above = 4 * s + 4 <= upper;
    /* Both or none: the closer one, of equally close ones the even one. */
    bool up = below != above ? above : value + (s & 1) > 4 * s + 2;
    bool shorter = (tens_below != tens_above) & (s >= 10);

    return (struct qf_decimal){ shorter ? (tens + tens_above) * 10 : s + up, k };
}

/* No zeros at the end: eight at a time, then one by one. */
static struct qf_decimal trimmed(struct qf_decimal d)
{
    while (d.digits % 100000000 == 0) {
        d.digits /= 100000000;
        d.exponent += 8;
    }
    while (d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }
    return d;
}

/* @yes ? @a : @b, without a jump: which one it is cannot be foreseen. */
static inline uint64_t either(bool yes, uint64_t a, uint64_t b)
{
    return b ^ ((a ^ b) & -(uint64_t)yes);
}

/* The digits but the last one, and the last one. */
struct split_decimal {
    uint64_t tens, ones;
    int exponent; /* of the last one */
};

/* As shortest() for almost all doubles, with a third of the work: from the double in units of 10^k and
 * half the distance to its neighbours, both cut off behind 60 bits. Where what was cut off could decide,
 * and for powers of two, shortest() does. */
static inline struct split_decimal shortest_quickly(uint64_t c, int q, bool closer)
{
    int k = log10_of_power_of_2(q);
    int h = q + log2_of_power_of_10(-k) + 1;
    struct power g = powers[-k - POWER_MIN];
    u128 value = (u128)g.high * (c << (h + 2)) + (uint64_t)((u128)g.low * (c << (h + 2)) >> 64);
    uint64_t high = (uint64_t)(value >> 64), tens = high / 40, ones = high / 4 - tens * 10;
    uint64_t behind = (high & 3) << 58 | (uint64_t)value >> 6, half = UINT64_C(1) << 59;
    uint64_t above = ones << 60 | behind, below = (UINT64_C(10) << 60) - above;
    uint64_t border = g.high >> (5 - h);
    bool up = below < border, down = above < border;

    if ((above - border + DOUBT < 2 * DOUBT) | (below - border + DOUBT < 2 * DOUBT) |
        (behind - half + DOUBT < 2 * DOUBT) | closer) {
        struct qf_decimal d = shortest(c, q, closer);

        return (struct split_decimal){ d.digits / 10, d.digits % 10, d.exponent };
    }
    return (struct split_decimal){ tens + up, either(up | down, 0, ones + (behind > half)), k };
}

/* Of a normal double: 16 or 17 digits, for it is 2^52 to 2^53 times one to ten units of 10^k. */
static inline struct split_decimal shortest_of_normal(uint64_t bits)
{
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52) & 2047;

    return shortest_quickly(fraction | UINT64_C(1) << 52, exponent - 1075,
                            fraction == 0 && exponent > 1);
}

struct qf_decimal qf_shortest_decimal(double v)
{
    uint64_t bits = qf_double_bits(v);
    struct split_decimal d;

    if (bits >> 52 == 0)
        return trimmed(shortest(bits, -1074, false));
    d = shortest_of_normal(bits);
    return trimmed((struct qf_decimal){ d.tens * 10 + d.ones, d.exponent });
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

/* The eight digits of @value as bytes 0 to 9, the first one lowest: four digits in each half, then two in
 * each quarter, then one in each byte. Quotients by 100 and 10 are products and shifts that are exact
 * for as many digits as there are. */
static inline uint64_t eight_bytes(uint32_t value)
{
    uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = (fours * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
    uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
    uint64_t tens = (twos * 103 >> 10) & UINT64_C(0x000f000f000f000f);

    return tens | (twos - tens * 10) << 8;
}

static inline void store_eight(char *out, uint64_t bytes)
{
    bytes = htole64(bytes | UINT64_C(0x3030303030303030));
    memcpy(out, &bytes, sizeof(bytes));
}

/* Without zeros at the end, which not all of them are. */
static inline size_t significant(uint64_t bytes)
{
    return 8 - (size_t)__builtin_clzll(bytes) / 8;
}

static inline char digit(uint64_t value)
{
    return (char)('0' + value);
}

/* The text of 0.@digits times 10^@point, in eight digits at most: no whole number. */
static inline size_t put_short(char *out, uint64_t digits, int point)
{
    uint64_t bytes = eight_bytes((uint32_t)digits), before;

    if (point <= 0) { /* 0.0012345 */
        memcpy(out, "0.000000", 8);
        store_eight(out + 2 - point, bytes);
        return significant(bytes) + (size_t)(2 - point);
    }
    before = (UINT64_C(1) << 8 * point) - 1;
    store_eight(out, (bytes & before) | (bytes & ~before) << 8); /* 123.45 */
    out[8] = digit(bytes >> 56);
    out[point] = '.';
    return significant(bytes) + 1;
}

/* The same of 17 digits: eight, eight and the last one. All are written to where those before the point
 * belong, and those behind it once more, one place on; nothing is read back. */
static inline size_t put_long(char *out, uint64_t upper, uint64_t lower, uint64_t last, int point)
{
    uint64_t bytes = eight_bytes((uint32_t)upper), more = eight_bytes((uint32_t)lower);
    char *at = point > 0 ? out : out + 2 - point;
    size_t count = last ? 17 : 8 + significant(more);
    u128 behind = (u128)more << 64 | bytes;

    if (point <= 0)
        memcpy(out, "0.000000", 8);
    store_eight(at, bytes);
    store_eight(at + 8, more);
    at[16] = digit(last);
    if (point <= 0)
        return count + (size_t)(2 - point);
    out[point] = '.';
    behind = behind >> 8 * (point - 1) >> 8;
    store_eight(out + point + 1, (uint64_t)behind);
    store_eight(out + point + 9, (uint64_t)(behind >> 64));
    out[17] = digit(last);
    return count + 1;
}

/* A normal double that is no whole number and at least 1e-7. */
static size_t put_fraction(double v, char *out)
{
    struct split_decimal d = shortest_of_normal(qf_double_bits(v));
    bool sixteen = d.tens < 1000000000000000;
    uint64_t first = either(sixteen, d.tens * 10 + d.ones, d.tens),
             last = either(sixteen, 0, d.ones);
    uint64_t upper = first / 100000000, lower = first - upper * 100000000;
    int point = 17 + d.exponent - sixteen;

    if ((lower | last) == 0)
        return put_short(out, upper, point);
    return put_long(out, upper, lower, last, point);
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
        len = put_fraction(size, out);
    out[len] = '\0';
    return sign + len;
}
