/* json.h - JSON of OpenTelemetry's protocol as protobuf. Pure.
 *
 * The members' names, in lowerCamelCase, say which fields they are; 64-bit numbers may be text, bytes are
 * base64, ids of traces and spans are hexadecimal, enums are numbers. Members that are not known, and
 * null, are passed over. */
#ifndef INGEST_OTLP_JSON_H
#define INGEST_OTLP_JSON_H

#include "base/pure/err.h"
#include "base/pure/strbuf.h"

/* Values within values, known or not. */
#define IN_OTLP_JSON_DEPTH_MAX 64

/* Append the ExportMetricsServiceRequest that @text is. QF_EPARSE: it is none, @err says at which byte;
 * QF_ELIMIT: more than @bytes_max. */
QF_MUST_CHECK qf_rc in_otlp_json_decode(struct qf_str text, size_t bytes_max, struct qf_strbuf *buf,
                                        struct qf_err *err);

#endif
