/* crc32c.h - the CRC-32 with Castagnoli's polynomial, as iSCSI and Prometheus's chunks have it. */
#ifndef BASE_PURE_CRC32C_H
#define BASE_PURE_CRC32C_H

#include <stdint.h>

#include "base/pure/slice.h"

uint32_t qf_crc32c(struct qf_str bytes);

#endif
