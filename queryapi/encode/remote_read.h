/* remote_read.h - answers of Prometheus's remote read protocol, in both of its forms.
 *
 * Samples: one message for all queries, which is sent as one block of snappy:
 *
 *     ReadResponse { repeated QueryResult results = 1; }      one for each query, in order
 *     QueryResult { repeated TimeSeries timeseries = 1; }
 *     TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; repeated Histogram histograms = 4; }
 *
 * Streamed chunks: a frame for each series. A frame is the length of its message as a varint, the message's
 * CRC-32C (four bytes, the highest first) and the message:
 *
 *     ChunkedReadResponse { repeated ChunkedSeries chunked_series = 1; int64 query_index = 2; }
 *     ChunkedSeries { repeated Label labels = 1; repeated Chunk chunks = 2; }
 *     Chunk { int64 min_time_ms = 1; int64 max_time_ms = 2; Encoding type = 3; bytes data = 4; }
 *
 * Chunks hold floats (xor_chunk.h). An answer with native histograms is given as samples. */
#ifndef QUERYAPI_ENCODE_REMOTE_READ_H
#define QUERYAPI_ENCODE_REMOTE_READ_H

#include <stddef.h>
#include <stdint.h>

#include "base/pure/strbuf.h"
#include "promql/eval.h"

#define QA_READ_SAMPLES_TYPE "application/x-protobuf"
#define QA_READ_CHUNKS_TYPE "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse"

/* The samples of one query, as a part of a ReadResponse. */
void qa_read_result(struct qf_strbuf *buf, const struct pq_result *result);

/* A frame with samples [@from, @to) of a series, floats all of them, of query @index. */
void qa_read_frame(struct qf_strbuf *buf, const struct pq_result_series *series, size_t from,
                   size_t to, size_t index);

#endif
