/* codec.h - native histograms as bytes, exact and checked on the way back.
 *
 * Hint, schema, threshold, counts, sum, spans, buckets, custom bounds, in the order that codec.c has
 * them: varints for small integers and spans, doubles in little endian. Two forms differ in the
 * counts (of all, of the zero bucket, of each bucket):
 *
 *     fractions  doubles
 *     wholes     varints, where every count is a whole number from 0 to 2^53: what clients count
 *
 * The first byte tells them apart: the hint, or the hint plus 4. Before there were two forms
 * everything was written as fractions; both are read whatever the counts are. */
#ifndef PROMQL_HISTOGRAM_CODEC_H
#define PROMQL_HISTOGRAM_CODEC_H

#include "base/pure/arena.h"
#include "base/pure/strbuf.h"
#include "promql/value.h"

/* Append the encoding, of wholes if all counts are. */
void pq_histogram_encode(struct qf_strbuf *buf, const struct pq_histogram *histogram);

/* @bytes are what the encoder makes of @histogram, in either form. */
bool pq_histogram_encodes_to(const struct pq_histogram *histogram, struct qf_str bytes);

/* Decode all of @bytes into @arena. QF_ECORRUPT for anything pq_histogram_encode does not write,
 * QF_ELIMIT if the arena's budget is spent. */
QF_MUST_CHECK qf_rc pq_histogram_decode(struct qf_arena *arena, struct qf_str bytes,
                                        const struct pq_histogram **ret_histogram,
                                        struct qf_err *err);

#endif
