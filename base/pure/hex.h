/* hex.h - bytes as hexadecimal digits: two each, lower case; read in either case. */
#ifndef BASE_PURE_HEX_H
#define BASE_PURE_HEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

/* 2 * @count digits and a NUL into @out. */
void qf_hex_encode(const void *bytes, size_t count, char *out);
void qf_strbuf_hex(struct qf_strbuf *buf, const void *bytes, size_t count);

/* text.len / 2 bytes into @out. False: something is no digit, or there is half a byte. */
bool qf_hex_decode(struct qf_str text, void *out);
/* A number of exactly 16 digits. */
bool qf_hex_u64(struct qf_str text, uint64_t *ret_value);

#endif
