/* metric_type.c - what a metric is: names of types, both ways. */
#include "base/pure/metric_type.h"

static const char *const texts[QF_METRIC_TYPE__COUNT] = {
    [QF_METRIC_UNKNOWN] = "unknown",
    [QF_METRIC_COUNTER] = "counter",
    [QF_METRIC_GAUGE] = "gauge",
    [QF_METRIC_HISTOGRAM] = "histogram",
    [QF_METRIC_GAUGE_HISTOGRAM] = "gaugehistogram",
    [QF_METRIC_SUMMARY] = "summary",
    [QF_METRIC_INFO] = "info",
    [QF_METRIC_STATESET] = "stateset",
};

const char *qf_metric_type_text(enum qf_metric_type type)
{
    return texts[type];
}

bool qf_metric_type_parse(struct qf_str text, enum qf_metric_type *ret_type)
{
    for (int i = 0; i < QF_METRIC_TYPE__COUNT; i++)
        if (qf_str_is(text, texts[i])) {
            *ret_type = (enum qf_metric_type)i;
            return true;
        }
    *ret_type = QF_METRIC_UNKNOWN;
    return qf_str_is(text, "untyped");
}
