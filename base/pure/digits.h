/* digits.h - the shortest decimal that reads back as a double, faster than the standard library.
 *
 * Answers consist of doubles as text, and std::to_chars takes twice as long
 * (docs/measurements.md). The method is Raffaello Giulietti's ("The Schubfach way to render doubles",
 * 2020): of the decimals between the two neighbours' midpoints, those with one digit less are preferred,
 * which takes three products with a power of ten in 128 bits and no loop. Of several equally short ones it
 * is the closest to the double, which is what std::to_chars and Go's strconv choose as well. Digits become
 * text eight at a time, and zeros at the end are counted in the text, not divided away. */
#ifndef BASE_PURE_DIGITS_H
#define BASE_PURE_DIGITS_H

#include <stddef.h>
#include <stdint.h>

struct qf_decimal {
    uint64_t digits; /* without zeros at the end; at most 17 of them */
    int exponent;    /* the value is digits * 10^exponent */
};

/* Of a finite @v > 0. */
struct qf_decimal qf_shortest_decimal(double v);

/* As std::to_chars writes it in fixed notation. |@v| < 2^53 and at least 1e-7, or 0; NUL-terminated.
 * Returns the length, at most 32; @out has room for QF_DIGITS_ROOM bytes, any of which may be written. */
enum { QF_DIGITS_ROOM = 40 };
size_t qf_digits_fixed(double v, char *out);

/* @value in decimal at @out, not terminated. Returns the length, at most 20. */
size_t qf_digits_u64(uint64_t value, char *out);

#endif
