/* utf8.h - strict UTF-8: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef BASE_PURE_UTF8_H
#define BASE_PURE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/slice.h"

/* Decode the first character of @s; returns its length in bytes, 0 if it is invalid or @s empty. */
size_t qf_utf8_decode(struct qf_str s, uint32_t *ret_rune);
/* Encode into @out (4 bytes of room); returns the length. An invalid rune becomes U+FFFD. */
size_t qf_utf8_encode(uint32_t rune, char *out);
bool qf_utf8_valid(struct qf_str s);
/* Roughly Go's unicode.IsPrint: not a control, format, space (but ' ') or unassigned character. */
bool qf_utf8_printable(uint32_t rune);

#endif
