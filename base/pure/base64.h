/* base64.h - RFC 4648 base64 with padding, both ways. */
#ifndef BASE_PURE_BASE64_H
#define BASE_PURE_BASE64_H

#include <stdbool.h>

#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

/* Append the text of @bytes. */
void qf_base64_encode(struct qf_strbuf *buf, struct qf_str bytes);
/* Append the bytes of @text. False if it is not base64: other characters, a length that is not a
 * multiple of four, padding elsewhere than at the end, or bits set beyond the last byte. */
bool qf_base64_decode(struct qf_strbuf *buf, struct qf_str text);

#endif
