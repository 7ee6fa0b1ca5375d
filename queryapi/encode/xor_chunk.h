/* xor_chunk.h - floats with their times in Prometheus's XOR encoding, as its storage and its remote read
 * protocol have them.
 *
 * Two bytes with the number of samples, then bits, the highest first. The first sample: its time as a varint,
 * its value. The second: the distance in time as an unsigned varint. From then on how much that distance
 * changed, in one of five sizes. Values, from the second on: what is different from the one before in
 * bits, without the zeros at both ends where that saves room. */
#ifndef QUERYAPI_ENCODE_XOR_CHUNK_H
#define QUERYAPI_ENCODE_XOR_CHUNK_H

#include <stddef.h>
#include <stdint.h>

#include "base/pure/strbuf.h"

/* As many as Prometheus puts into one; times ascend. */
#define QA_XOR_SAMPLES 120

/* Add the chunk of @count samples, 1 to 65535, to @buf. */
void qa_xor_chunk(const int64_t *ts, const double *values, size_t count, struct qf_strbuf *buf);

#endif
