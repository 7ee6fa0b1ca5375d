/* events.h - the event stream's encoder.
 *
 * An answer is a sequence of server-sent events, each one line `data: {"type":T,"data":D}` and a
 * blank one: results in the order of time, progress in between if it was asked for, notes and
 * errors at the end, and exactly one `done`. */
#ifndef QUERYAPI_ENCODE_EVENTS_H
#define QUERYAPI_ENCODE_EVENTS_H

#include <stdint.h>

#include "base/pure/labels.h"
#include "base/pure/strbuf.h"
#include "promql/value.h"

/* result: one value of a series. @tags_and_label is what qa_sse_series() made of the series, once.
 */
void qa_sse_series(struct qf_strbuf *buf, struct qf_labels labels);
void qa_sse_result(struct qf_strbuf *buf, struct qf_str tags_and_label, int64_t ms, double value,
                   const struct pq_histogram *histogram);
/* error {"code","message"} followed by done {"status":"error"}. */
void qa_sse_error(struct qf_strbuf *buf, const char *code, struct qf_str message);
/* How much of an answer came from heads of ingest nodes: from no segment. */
struct qa_head_figures {
    uint64_t inputs, samples, bytes;
};
/* ,"heads":{"inputs","samples","bytes"}; nothing for NULL: there are no ingest nodes. */
void qa_json_heads(struct qf_strbuf *buf, const struct qa_head_figures *heads);
/* done {"status":"ok"}, with warnings and infos if there are any, and with heads. */
void qa_sse_done(struct qf_strbuf *buf, const struct pq_notes *notes, struct qf_str query,
                 const struct qa_head_figures *heads);
/* progress {"segments_total","work_total","work_done","workers"} */
void qa_sse_progress(struct qf_strbuf *buf, uint64_t segments, uint64_t total, uint64_t done,
                     uint64_t workers);

#endif
