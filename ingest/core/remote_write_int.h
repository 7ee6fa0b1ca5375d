/* remote_write_int.h - what the files of the decoder share. Every function returns false for bytes
 * that are no such message and when the arena is spent; which of the two, the arena knows. */
#ifndef INGEST_CORE_REMOTE_WRITE_INT_H
#define INGEST_CORE_REMOTE_WRITE_INT_H

#include "ingest/core/request.h"
#include "ingest/core/wire.h"

struct in_decoder {
    enum { IN_LABELS_SPELLED, IN_LABELS_BY_SYMBOL } labels; /* version 1, version 2 */
    const struct qf_str *symbols;
    size_t symbol_count;
    struct qf_arena *arena;
};

/* remote_write.c: how many fields of @bytes, a message, have each number below @count. */
bool in_count_fields(struct qf_str bytes, size_t counts[], size_t count);

/* wire_histogram.c: a Histogram message as a sample. One that marks its series as stale becomes the
 * float that does so. */
bool in_decode_histogram(struct qf_arena *arena, struct qf_str bytes, struct in_sample *ret_sample);

/* wire_series.c: one TimeSeries. Its metadata, of version 2, are in *@ret_metadata if *@ret_has. */
bool in_decode_series(struct in_decoder *decoder, struct qf_str bytes, struct in_series *ret_series,
                      struct in_metadata *ret_metadata, bool *ret_has);

#endif
