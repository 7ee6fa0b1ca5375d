/* schema.h - the messages of OpenTelemetry's protocol for metrics: numbers of fields, and their names in
 * JSON. Pure. */
#ifndef INGEST_OTLP_SCHEMA_H
#define INGEST_OTLP_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/slice.h"

enum { REQUEST_RESOURCES = 1 };
enum { RESOURCE_METRICS_RESOURCE = 1, RESOURCE_METRICS_SCOPES = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_METRICS_METRICS = 2 };
enum {
    METRIC_NAME = 1,
    METRIC_DESCRIPTION = 2,
    METRIC_UNIT = 3,
    METRIC_GAUGE = 5,
    METRIC_SUM = 7,
    METRIC_HISTOGRAM = 9,
    METRIC_EXPONENTIAL = 10,
    METRIC_SUMMARY = 11
};
enum { DATA_POINTS = 1, DATA_TEMPORALITY = 2, DATA_MONOTONIC = 3 };
/* The same in points of all kinds. */
enum { POINT_START = 2, POINT_TIME = 3 };
enum {
    NUMBER_DOUBLE = 4,
    NUMBER_EXEMPLARS = 5,
    NUMBER_INT = 6,
    NUMBER_ATTRIBUTES = 7,
    NUMBER_FLAGS = 8
};
/* The same in points of histograms and summaries. */
enum { POINT_COUNT = 4, POINT_SUM = 5 };
enum {
    HISTOGRAM_BUCKETS = 6,
    HISTOGRAM_BOUNDS = 7,
    HISTOGRAM_EXEMPLARS = 8,
    HISTOGRAM_ATTRIBUTES = 9,
    HISTOGRAM_FLAGS = 10
};
enum {
    EXPONENTIAL_ATTRIBUTES = 1,
    EXPONENTIAL_SCALE = 6,
    EXPONENTIAL_ZERO_COUNT = 7,
    EXPONENTIAL_POSITIVE = 8,
    EXPONENTIAL_NEGATIVE = 9,
    EXPONENTIAL_FLAGS = 10,
    EXPONENTIAL_EXEMPLARS = 11,
    EXPONENTIAL_ZERO_THRESHOLD = 14
};
enum { BUCKETS_OFFSET = 1, BUCKETS_COUNTS = 2 };
enum { SUMMARY_QUANTILES = 6, SUMMARY_ATTRIBUTES = 7, SUMMARY_FLAGS = 8 };
enum { QUANTILE_QUANTILE = 1, QUANTILE_VALUE = 2 };
enum {
    EXEMPLAR_TIME = 2,
    EXEMPLAR_DOUBLE = 3,
    EXEMPLAR_SPAN = 4,
    EXEMPLAR_TRACE = 5,
    EXEMPLAR_INT = 6,
    EXEMPLAR_ATTRIBUTES = 7
};
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum {
    ANY_STRING = 1,
    ANY_BOOL = 2,
    ANY_INT = 3,
    ANY_DOUBLE = 4,
    ANY_ARRAY = 5,
    ANY_MAP = 6,
    ANY_BYTES = 7
};
enum { LIST_VALUES = 1 };

#define TEMPORALITY_CUMULATIVE 2
#define FLAG_NO_RECORDED_VALUE 1u

/* How a field stands in JSON and on the wire. */
enum in_otlp_form {
    IN_OTLP_MESSAGE,
    IN_OTLP_TEXT,
    IN_OTLP_BASE64,
    IN_OTLP_HEX,
    IN_OTLP_DOUBLE,
    IN_OTLP_FIXED,  /* 64 bits, signed or not */
    IN_OTLP_VARINT, /* likewise */
    IN_OTLP_ZIGZAG,
    IN_OTLP_BOOL,
};

struct in_otlp_message;
struct in_otlp_field {
    const char *name;
    uint32_t number;
    enum in_otlp_form form;
    bool repeated;
    const struct in_otlp_message *message; /* of IN_OTLP_MESSAGE */
};
struct in_otlp_message {
    const struct in_otlp_field *fields;
    size_t count;
};

extern const struct in_otlp_message in_otlp_request;

/* NULL: not known. */
const struct in_otlp_field *in_otlp_find_field(const struct in_otlp_message *message,
                                               struct qf_str name);

#endif
