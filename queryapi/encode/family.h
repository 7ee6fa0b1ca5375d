/* family.h - the newest samples of series as messages of Prometheus's exposition in protobuf:
 *
 *     MetricFamily { string name = 1; MetricType type = 3; repeated Metric metric = 4; }
 *     Metric { repeated LabelPair label = 1; Untyped untyped = 5; int64 timestamp_ms = 6; Histogram histogram = 7; }
 *     Untyped { double value = 1; }
 *     LabelPair { string name = 1; string value = 2; }
 *     Histogram { double sample_sum = 2; double sample_count_float = 4; sint32 schema = 5; double zero_threshold = 6;
 *                 double zero_count_float = 8; repeated BucketSpan negative_span = 9; repeated double negative_count = 11;
 *                 repeated BucketSpan positive_span = 12; repeated double positive_count = 14; }
 *     BucketSpan { sint32 offset = 1; uint32 length = 2; }
 *
 * It is proto2: fields are there also if they are zero. A float is untyped; histograms are of type HISTOGRAM
 * or GAUGE_HISTOGRAM, and one metric that has both, or floats, is several families.
 *
 * Histograms of custom bounds cannot be told so: there is no field for the bounds. */
#ifndef QUERYAPI_ENCODE_FAMILY_H
#define QUERYAPI_ENCODE_FAMILY_H

#include <stdbool.h>
#include <stddef.h>

#include "promql/eval.h"
#include "queryapi/encode/exposition.h"

/* Whether the newest sample of @series can be told: it is no stale marker, and no histogram of custom bounds. */
bool qa_family_takes(const struct pq_result_series *series);

/* The family that @series[0] begins, behind its length: the newest samples of the series of one metric and type
 * that stand beside each other, of @count at most. A family ends with the series that made it longer than
 * QA_FAMILY_BYTES, and the next one goes on. Returns how many series are in it. All of them are such as
 * qa_family_takes() takes. */
#define QA_FAMILY_BYTES ((size_t)1 << 20)
size_t qa_family_put(struct qf_strbuf *buf, const struct pq_result_series *const *series,
                     size_t count, enum qa_escaping escaping);

#endif
