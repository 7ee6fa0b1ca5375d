/* codec.h - native histograms as bytes, exact and checked on the way back. */
#ifndef PROMQL_HISTOGRAM_CODEC_H
#define PROMQL_HISTOGRAM_CODEC_H

#include "base/pure/arena.h"
#include "base/pure/strbuf.h"
#include "promql/value.h"

/* Append the encoding: varints for counts, spans and schema, doubles in little endian. */
void pq_histogram_encode(struct qf_strbuf *buf, const struct pq_histogram *histogram);

/* Decode all of @bytes into @arena. QF_ECORRUPT for anything pq_histogram_encode does not write,
 * QF_ELIMIT if the arena's budget is spent. */
QF_MUST_CHECK qf_rc pq_histogram_decode(struct qf_arena *arena, struct qf_str bytes,
                                        const struct pq_histogram **ret_histogram,
                                        struct qf_err *err);

#endif
