/* metric_type.h - what a metric is, as remote write numbers it and as Prometheus calls it. */
#ifndef BASE_PURE_METRIC_TYPE_H
#define BASE_PURE_METRIC_TYPE_H

#include <stdbool.h>

#include "base/pure/slice.h"

/* As the protocols number them; anything else is QF_METRIC_UNKNOWN. */
enum qf_metric_type {
    QF_METRIC_UNKNOWN,
    QF_METRIC_COUNTER,
    QF_METRIC_GAUGE,
    QF_METRIC_HISTOGRAM,
    QF_METRIC_GAUGE_HISTOGRAM,
    QF_METRIC_SUMMARY,
    QF_METRIC_INFO,
    QF_METRIC_STATESET,
    QF_METRIC_TYPE__COUNT
};

/* "counter", "gaugehistogram", ...: as Prometheus calls it. */
const char *qf_metric_type_text(enum qf_metric_type type);
/* The other way; "untyped" is unknown, too. False: no type is called that. */
bool qf_metric_type_parse(struct qf_str text, enum qf_metric_type *ret_type);

#endif
