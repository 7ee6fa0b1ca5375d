/* influx.h - InfluxDB's line protocol as a request. Pure.
 *
 *     MEASUREMENT[,TAG=VALUE...] FIELD=VALUE[,FIELD=VALUE...] [TIME]
 *
 * Every field that is a number or a truth value is a sample of the series MEASUREMENT_FIELD, whose labels are
 * the tags; texts are passed over. '\' escapes ',', '=', ' ' in names and tags and '"', '\' in texts; '#'
 * begins a line of comment. */
#ifndef INGEST_CORE_INFLUX_H
#define INGEST_CORE_INFLUX_H

#include "base/pure/err.h"
#include "ingest/core/request.h"

/* What times are counted in: "ns" (or "n", or nothing), "us" ("u"), "ms", "s", "m", "h". False: no such
 * unit. */
enum in_influx_precision {
    IN_INFLUX_NS,
    IN_INFLUX_US,
    IN_INFLUX_MS,
    IN_INFLUX_S,
    IN_INFLUX_M,
    IN_INFLUX_H
};
bool in_influx_precision_parse(struct qf_str text, enum in_influx_precision *ret_precision);

/* Lines of @text. Each that cannot be read is counted as a refused sample, and the first is described.
 * Samples without a time are from @now_ms; *@ret_timeless: there were such. Borrows from @text and
 * @arena. QF_ELIMIT: the arena is spent. */
QF_MUST_CHECK qf_rc in_influx_decode(struct qf_str text, enum in_influx_precision precision,
                                     int64_t now_ms, struct qf_arena *arena,
                                     struct in_request *ret_request, bool *ret_timeless,
                                     struct qf_err *err);

#endif
