/* range.h - the Range header of HTTP. */
#ifndef BASE_HTTP_RANGE_H
#define BASE_HTTP_RANGE_H

#include <stdint.h>

#include "base/pure/slice.h"

enum qh_range { QH_RANGE_WHOLE, QH_RANGE_PART, QH_RANGE_UNSATISFIABLE };

/* What a Range header (empty: none) asks of @size bytes, RFC 9110 section 14.1.2. More than one
 * range, other units and bad syntax count as no header, as the RFC allows. PART fills offset and
 * length. */
enum qh_range qh_range_parse(struct qf_str header, uint64_t size, uint64_t *ret_offset,
                             uint64_t *ret_length);

#endif
