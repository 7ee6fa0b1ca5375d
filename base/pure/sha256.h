/* sha256.h - SHA-256 (FIPS 180-4) of a few bytes, without a library: for positions that must be the same everywhere.
 *
 * Plain and portable; a megabyte of input takes some milliseconds. Large files are digested by segments/store/digest.h. */
#ifndef BASE_PURE_SHA256_H
#define BASE_PURE_SHA256_H

#include <stdint.h>

#include "base/pure/slice.h"

#define QF_SHA256_BYTES 32

/* The digest of @bytes. */
void qf_sha256(struct qf_str bytes, uint8_t ret_digest[QF_SHA256_BYTES]);

#endif
