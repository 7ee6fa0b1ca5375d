/* spec_queries.h - one query for every kind of leaf and stage. */
#ifndef TESTS_LIB_PROMQL_SPEC_QUERIES_H
#define TESTS_LIB_PROMQL_SPEC_QUERIES_H

static const char *const spec_queries[] = {
    "up",
    "up{a!=\"b\",c=~\"d.*\",e!~\"f|g\"} offset -5m",
    "rate(up[5m] @ 1234.567)",
    "increase(up[5m] anchored)",
    "up smoothed",
    "timestamp(up)",
    "start_timestamp(up)",
    "sum by (b, a, \"ü\") (rate(up[5m]))",
    "avg without (a) (up * 2)",
    "stddev(3 > bool up)",
    "min(clamp(up, 1, 2))",
    "max(round(up))",
    "count(up != 0)",
    "group(up)",
    "count_values(\"v\", up)",
    "topk(3, up)",
    "bottomk by (x) (3, up)",
    "limitk(3, up)",
    "quantile_over_time(0.5, up[5m])",
    "predict_linear(up[5m], 3600)",
    "double_exponential_smoothing(up[5m], 0.5, 0.25)",
    "max_over_time(abs(rate(up[1m]))[10m:30s] offset 1h)",
    "quantile_over_time(scalar(up), up[5m])",
    "-up",
};

#endif
