/* prom_json.h - Prometheus's JSON: numbers, times, histograms and the envelope.
 *
 * Values are strings of the shortest decimal that reads back; times are seconds with three decimals
 * unless whole. */
#ifndef QUERYAPI_ENCODE_PROM_JSON_H
#define QUERYAPI_ENCODE_PROM_JSON_H

#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "promql/value.h"

/* 1.500, 2, -0.001 */
void qa_json_time(struct qf_strbuf *buf, int64_t ms);
/* "1.5", "NaN", "+Inf", "1e-07" with the quotes */
void qa_json_value(struct qf_strbuf *buf, double value);
/* Scalars and strings go another way through Prometheus: 1.5 as their time, "0.0000001" with never an
 * exponent as their value. */
void qa_json_scalar_time(struct qf_strbuf *buf, int64_t ms);
void qa_json_scalar(struct qf_strbuf *buf, double value);
/* {"count":"","sum":"","buckets":[[0,"lo","hi","n"]...]} */
void qa_json_histogram(struct qf_strbuf *buf, const struct pq_histogram *histogram);
/* [time,"value"] or [time,{histogram}] */
void qa_json_point(struct qf_strbuf *buf, int64_t ms, double value,
                   const struct pq_histogram *histogram);

/* Texts of times that were written, by their place in a series: series of one query have the same. */
struct qa_json_times {
    struct qa_json_time_text *items;
    size_t count;
};
void qa_json_times_done(struct qa_json_times *times);
/* [time,"value"], point number @index of its series. */
void qa_json_float(struct qf_strbuf *buf, struct qa_json_times *times, size_t index, int64_t ms,
                   double value);

/* ,"warnings":[...],"infos":[...]; nothing if there are none. At most 10 of each; a last line tells
 * how many were left out. @query is for line and column; @limited adds the truncation warning. */
void qa_json_notes(struct qf_strbuf *buf, const struct pq_notes *notes, struct qf_str query,
                   bool limited);

/* {"status":"error","errorType":"...","error":"..."} */
void qa_json_error(struct qf_strbuf *buf, const char *type, struct qf_str message);

#endif
