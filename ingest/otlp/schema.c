/* schema.c - the messages of OpenTelemetry's protocol for metrics, as JSON names them. */
#include "ingest/otlp/schema.h"

#include "base/pure/macros.h"

#define MESSAGE(name)                                                                              \
    static const struct in_otlp_message name = { name##_fields, QF_COUNT_OF(name##_fields) }
#define ONE(name, number, form)                                                                    \
    {                                                                                              \
        name, number, IN_OTLP_##form, false, NULL                                                  \
    }
#define MANY(name, number, form)                                                                   \
    {                                                                                              \
        name, number, IN_OTLP_##form, true, NULL                                                   \
    }
#define SUB(name, number, message)                                                                 \
    {                                                                                              \
        name, number, IN_OTLP_MESSAGE, false, &message                                             \
    }
#define SUBS(name, number, message)                                                                \
    {                                                                                              \
        name, number, IN_OTLP_MESSAGE, true, &message                                              \
    }

/* A value may hold values. */
static const struct in_otlp_message any;
static const struct in_otlp_field key_value_fields[] = {
    ONE("key", KEY_VALUE_KEY, TEXT),
    SUB("value", KEY_VALUE_VALUE, any),
};
MESSAGE(key_value);
static const struct in_otlp_field array_fields[] = { SUBS("values", LIST_VALUES, any) };
MESSAGE(array);
static const struct in_otlp_field map_fields[] = { SUBS("values", LIST_VALUES, key_value) };
MESSAGE(map);
static const struct in_otlp_field any_fields[] = {
    ONE("stringValue", ANY_STRING, TEXT), ONE("boolValue", ANY_BOOL, BOOL),
    ONE("intValue", ANY_INT, VARINT),     ONE("doubleValue", ANY_DOUBLE, DOUBLE),
    SUB("arrayValue", ANY_ARRAY, array),  SUB("kvlistValue", ANY_MAP, map),
    ONE("bytesValue", ANY_BYTES, BASE64),
};
MESSAGE(any);

static const struct in_otlp_field exemplar_fields[] = {
    SUBS("filteredAttributes", EXEMPLAR_ATTRIBUTES, key_value),
    ONE("timeUnixNano", EXEMPLAR_TIME, FIXED),
    ONE("asDouble", EXEMPLAR_DOUBLE, DOUBLE),
    ONE("asInt", EXEMPLAR_INT, FIXED),
    ONE("spanId", EXEMPLAR_SPAN, HEX),
    ONE("traceId", EXEMPLAR_TRACE, HEX),
};
MESSAGE(exemplar);

static const struct in_otlp_field number_fields[] = {
    SUBS("attributes", NUMBER_ATTRIBUTES, key_value),
    ONE("startTimeUnixNano", POINT_START, FIXED),
    ONE("timeUnixNano", POINT_TIME, FIXED),
    ONE("asDouble", NUMBER_DOUBLE, DOUBLE),
    ONE("asInt", NUMBER_INT, FIXED),
    SUBS("exemplars", NUMBER_EXEMPLARS, exemplar),
    ONE("flags", NUMBER_FLAGS, VARINT),
};
MESSAGE(number);

static const struct in_otlp_field histogram_fields[] = {
    SUBS("attributes", HISTOGRAM_ATTRIBUTES, key_value),
    ONE("startTimeUnixNano", POINT_START, FIXED),
    ONE("timeUnixNano", POINT_TIME, FIXED),
    ONE("count", POINT_COUNT, FIXED),
    ONE("sum", POINT_SUM, DOUBLE),
    MANY("bucketCounts", HISTOGRAM_BUCKETS, FIXED),
    MANY("explicitBounds", HISTOGRAM_BOUNDS, DOUBLE),
    SUBS("exemplars", HISTOGRAM_EXEMPLARS, exemplar),
    ONE("flags", HISTOGRAM_FLAGS, VARINT),
};
MESSAGE(histogram);

static const struct in_otlp_field buckets_fields[] = {
    ONE("offset", BUCKETS_OFFSET, ZIGZAG),
    MANY("bucketCounts", BUCKETS_COUNTS, VARINT),
};
MESSAGE(buckets);
static const struct in_otlp_field exponential_fields[] = {
    SUBS("attributes", EXPONENTIAL_ATTRIBUTES, key_value),
    ONE("startTimeUnixNano", POINT_START, FIXED),
    ONE("timeUnixNano", POINT_TIME, FIXED),
    ONE("count", POINT_COUNT, FIXED),
    ONE("sum", POINT_SUM, DOUBLE),
    ONE("scale", EXPONENTIAL_SCALE, ZIGZAG),
    ONE("zeroCount", EXPONENTIAL_ZERO_COUNT, FIXED),
    SUB("positive", EXPONENTIAL_POSITIVE, buckets),
    SUB("negative", EXPONENTIAL_NEGATIVE, buckets),
    ONE("flags", EXPONENTIAL_FLAGS, VARINT),
    SUBS("exemplars", EXPONENTIAL_EXEMPLARS, exemplar),
    ONE("zeroThreshold", EXPONENTIAL_ZERO_THRESHOLD, DOUBLE),
};
MESSAGE(exponential);

static const struct in_otlp_field quantile_fields[] = {
    ONE("quantile", QUANTILE_QUANTILE, DOUBLE),
    ONE("value", QUANTILE_VALUE, DOUBLE),
};
MESSAGE(quantile);
static const struct in_otlp_field summary_fields[] = {
    SUBS("attributes", SUMMARY_ATTRIBUTES, key_value),
    ONE("startTimeUnixNano", POINT_START, FIXED),
    ONE("timeUnixNano", POINT_TIME, FIXED),
    ONE("count", POINT_COUNT, FIXED),
    ONE("sum", POINT_SUM, DOUBLE),
    SUBS("quantileValues", SUMMARY_QUANTILES, quantile),
    ONE("flags", SUMMARY_FLAGS, VARINT),
};
MESSAGE(summary);

static const struct in_otlp_field gauge_data_fields[] = { SUBS("dataPoints", DATA_POINTS, number) };
MESSAGE(gauge_data);
static const struct in_otlp_field sum_data_fields[] = {
    SUBS("dataPoints", DATA_POINTS, number),
    ONE("aggregationTemporality", DATA_TEMPORALITY, VARINT),
    ONE("isMonotonic", DATA_MONOTONIC, BOOL),
};
MESSAGE(sum_data);
static const struct in_otlp_field histogram_data_fields[] = {
    SUBS("dataPoints", DATA_POINTS, histogram),
    ONE("aggregationTemporality", DATA_TEMPORALITY, VARINT),
};
MESSAGE(histogram_data);
static const struct in_otlp_field exponential_data_fields[] = {
    SUBS("dataPoints", DATA_POINTS, exponential),
    ONE("aggregationTemporality", DATA_TEMPORALITY, VARINT),
};
MESSAGE(exponential_data);
static const struct in_otlp_field summary_data_fields[] = { SUBS("dataPoints", DATA_POINTS,
                                                                 summary) };
MESSAGE(summary_data);

static const struct in_otlp_field metric_fields[] = {
    ONE("name", METRIC_NAME, TEXT),
    ONE("description", METRIC_DESCRIPTION, TEXT),
    ONE("unit", METRIC_UNIT, TEXT),
    SUB("gauge", METRIC_GAUGE, gauge_data),
    SUB("sum", METRIC_SUM, sum_data),
    SUB("histogram", METRIC_HISTOGRAM, histogram_data),
    SUB("exponentialHistogram", METRIC_EXPONENTIAL, exponential_data),
    SUB("summary", METRIC_SUMMARY, summary_data),
};
MESSAGE(metric);
static const struct in_otlp_field scope_metrics_fields[] = { SUBS("metrics", SCOPE_METRICS_METRICS,
                                                                  metric) };
MESSAGE(scope_metrics);
static const struct in_otlp_field resource_fields[] = { SUBS("attributes", RESOURCE_ATTRIBUTES,
                                                             key_value) };
MESSAGE(resource);
static const struct in_otlp_field resource_metrics_fields[] = {
    SUB("resource", RESOURCE_METRICS_RESOURCE, resource),
    SUBS("scopeMetrics", RESOURCE_METRICS_SCOPES, scope_metrics),
};
MESSAGE(resource_metrics);
static const struct in_otlp_field request_fields[] = { SUBS("resourceMetrics", REQUEST_RESOURCES,
                                                            resource_metrics) };
const struct in_otlp_message in_otlp_request = { request_fields, QF_COUNT_OF(request_fields) };

const struct in_otlp_field *in_otlp_find_field(const struct in_otlp_message *message,
                                               struct qf_str name)
{
    for (size_t i = 0; i < message->count; i++)
        if (qf_str_is(name, message->fields[i].name))
            return &message->fields[i];
    return NULL;
}
