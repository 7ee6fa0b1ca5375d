/* shortest.h - C interface to C++17's std::to_chars for doubles: shortest round-trip digits. */
#ifndef BASE_PURE_SHORTEST_H
#define BASE_PURE_SHORTEST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Finite @v only. NUL-terminated; returns the length. The exponent has at least two digits. */
size_t qf_shortest_fixed(double v, char *out, size_t size);
size_t qf_shortest_scientific(double v, char *out, size_t size);

#ifdef __cplusplus
}
#endif

#endif
