/* otlp.h - bodies of OpenTelemetry's protocol (OTLP) for metrics, decompressed, as requests. Pure.
 *
 *     gauge, sum               a series (a monotonic sum: a counter, "_total")
 *     histogram                "_bucket" by "le", "_count", and "_sum" if there is one
 *     exponential histogram    a native histogram; finer than schema 8: made coarser
 *     summary                  a series by "quantile", "_sum", "_count"
 *     resource                 "job" out of service.namespace and service.name, "instance" out of
 *                              service.instance.id, all others as labels of target_info
 *
 * names.h has the names. Points without a recorded value become stale markers. Scopes are not kept. What
 * was counted since the last export (delta temporality) has no place among series that count up: such
 * metrics are refused, and named. Whatever is wrong with one metric or point is counted in
 * ret_request->refused.samples, a point each, and the first thing described; the rest is taken.
 *
 * JSON is turned into protobuf first (json.h): there is one decoder. */
#ifndef INGEST_OTLP_OTLP_H
#define INGEST_OTLP_OTLP_H

#include "base/pure/err.h"
#include "base/pure/strbuf.h"
#include "ingest/core/request.h"

/* Attributes of a point or resource: more are refused with it. */
#define IN_OTLP_ATTRIBUTES_MAX 256
/* Of values within values, as an attribute may have, and members of a map among them: of more it is refused with its point. */
#define IN_OTLP_DEPTH_MAX 16
#define IN_OTLP_MEMBERS_MAX 128

/* An ExportMetricsServiceRequest. @ret_request borrows from @body and @arena. QF_EPARSE: no such message.
 * QF_ELIMIT: the arena's budget is spent. */
QF_MUST_CHECK qf_rc in_otlp_decode(struct qf_str body, struct qf_arena *arena,
                                   struct in_request *ret_request, struct qf_err *err);

/* An ExportMetricsServiceResponse. @refused points and @why, if any, are its partial success. */
void in_otlp_put_response(struct qf_strbuf *buf, bool json, uint64_t refused, struct qf_str why);
/* A google.rpc.Status that says what is wrong with a request as a whole. */
void in_otlp_put_status(struct qf_strbuf *buf, bool json, int http_status, struct qf_str why);

#endif
