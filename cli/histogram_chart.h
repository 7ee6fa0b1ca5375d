/* histogram_chart.h - a native histogram as bars, one line for each bucket. */
#ifndef CLI_HISTOGRAM_CHART_H
#define CLI_HISTOGRAM_CHART_H

#include <jansson.h>

#include "base/pure/strbuf.h"
#include "cli/look.h"

#define CLI_HISTOGRAM_LINES_MAX 24

/* Append @histogram, an object {"count", "sum", "buckets"} as answers have it: a line with count and
 * sum, then a line for each bucket with its bounds, what it counts and a bar; the fullest ends where
 * the line does. Of more buckets than CLI_HISTOGRAM_LINES_MAX neighbours share a line. What is no
 * histogram is appended as it is. */
void cli_histogram_chart(struct qf_strbuf *buf, const json_t *histogram,
                         const struct cli_look *look);

#endif
