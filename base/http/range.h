/* range.h - the Range header of HTTP. */
#ifndef BASE_HTTP_RANGE_H
#define BASE_HTTP_RANGE_H

#include <stdint.h>

#include "base/http/stream.h"

enum qh_range { QH_RANGE_WHOLE, QH_RANGE_PART, QH_RANGE_UNSATISFIABLE };

/* What a Range header (empty: none) asks of @size bytes, RFC 9110 section 14.1.2. More than one
 * range, other units and bad syntax count as no header, as the RFC allows. PART fills offset and
 * length. */
enum qh_range qh_range_parse(struct qf_str header, uint64_t size, uint64_t *ret_offset,
                             uint64_t *ret_length);

/* Answer with @body, @size bytes from the start of a file or in memory, or with the part of it that @header asks for, or that
 * there is no such part. @content_type is static. Takes the body; returns how many bytes go out. */
uint64_t qh_range_send(struct qh_stream *stream, struct qf_str header, const char *content_type,
                       const struct qh_body *body, uint64_t size);

#endif
