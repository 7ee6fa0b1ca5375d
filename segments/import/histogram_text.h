/* histogram_text.h - native histograms as text: the composite value of OpenMetrics 2.0. Pure.
 *
 *     {count:17,sum:1.5,schema:0,zero_threshold:1e-4,zero_count:2,
 *      negative_spans:[0:1],negative_buckets:[3],positive_spans:[0:2,3:1],positive_buckets:[5,6,1]}
 *
 * without blanks. Spans are offset:length, buckets are absolute counts and may be fractions. Keys
 * come in any order, each once; count, sum and schema must be there. gcount and gsum stand for
 * those of a gauge. Two keys are ours:
 *
 *     custom_values:[0.5,1]           with schema -53: the upper bounds of the buckets, ascending
 *     counter_reset_hint:not_reset    or reset, gauge, unknown */
#ifndef SEGMENTS_IMPORT_HISTOGRAM_TEXT_H
#define SEGMENTS_IMPORT_HISTOGRAM_TEXT_H

#include "base/pure/arena.h"
#include "base/pure/strbuf.h"
#include "promql/value.h"

/* Read all of @text, braces included, into @arena. NULL if all is well, else why not. */
const char *sg_histogram_text_parse(struct qf_str text, struct qf_arena *arena,
                                    const struct pq_histogram **ret_histogram);

/* What reads back as the same histogram. Any NaN reads back as the normal one. */
void sg_histogram_text_print(struct qf_strbuf *buf, const struct pq_histogram *histogram);

#endif
