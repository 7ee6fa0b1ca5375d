/* remote_write.h - the bodies of remote write, decompressed, as requests. Pure.
 *
 * Version 1.0 is a prometheus.WriteRequest, 2.0 an io.prometheus.write.v2.Request, whose strings
 * stand once in a table of symbols. Fields that are not known are passed over, as protobuf wants
 * it; where a field has another type than it should have, or the message ends in the middle, the
 * whole body is refused. What is wrong with one series, sample or exemplar alone (a symbol that is
 * not there, a histogram whose buckets do not add up) is noted in it, for in_request_check(). */
#ifndef INGEST_CORE_REMOTE_WRITE_H
#define INGEST_CORE_REMOTE_WRITE_H

#include "base/pure/err.h"
#include "ingest/core/request.h"

enum in_remote_write { IN_REMOTE_WRITE_1, IN_REMOTE_WRITE_2 };

/* @ret_request borrows from @body and @arena. QF_EPARSE: no such message. QF_ELIMIT: the arena's
 * budget is spent. A body of n bytes takes less than 128 n of it. */
QF_MUST_CHECK qf_rc in_remote_write_decode(enum in_remote_write version, struct qf_str body,
                                           struct qf_arena *arena, struct in_request *ret_request,
                                           struct qf_err *err);

#endif
