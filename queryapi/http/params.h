/* params.h - the times, durations and numbers that parameters of queries hold. */
#ifndef QUERYAPI_HTTP_PARAMS_H
#define QUERYAPI_HTTP_PARAMS_H

#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/duration.h"
#include "base/pure/err.h"
#include "base/pure/slice.h"

/* Farther than any sample, far from any overflow. */
#define QA_TIME_FAR (INT64_MAX / 4)

/* Prometheus's forms. QF_EINVAL: `invalid parameter "start": cannot parse ...`. */
/* Unix seconds with a fraction, RFC 3339, or the first or last time of Prometheus as it writes them. */
QF_MUST_CHECK qf_rc qa_param_time(const char *name, struct qf_str text, qf_time_ms *ret_ms,
                                  struct qf_err *err);
/* The same for a parameter that may be absent: then *@ret_ms stays. Prometheus words the error of
 * these in another way. */
QF_MUST_CHECK qf_rc qa_param_time_optional(const char *name, struct qf_str text, qf_time_ms *ret_ms,
                                           struct qf_err *err);
/* Seconds with a fraction, or "1h30m". */
QF_MUST_CHECK qf_rc qa_param_duration(const char *name, struct qf_str text, int64_t *ret_ms,
                                      struct qf_err *err);
/* The same for lookback_delta, whose errors have other words: 0, the default, for one below zero. */
QF_MUST_CHECK qf_rc qa_param_lookback(struct qf_str text, int64_t *ret_ms, struct qf_err *err);
/* A whole number >= 0. */
QF_MUST_CHECK qf_rc qa_param_limit(struct qf_str text, uint64_t *ret_limit, struct qf_err *err);

/* The SSE endpoint's times: RFC 3339, Unix seconds or milliseconds (from 1e11 on), "now",
 * "now-1h" or "-1h", "e-1h" (before @end; only if @end is not QF_TIME_NEVER). The error says so. */
QF_MUST_CHECK qf_rc qa_param_when(const char *name, struct qf_str text, qf_time_ms now,
                                  qf_time_ms end, qf_time_ms *ret_ms, struct qf_err *err);

/* The SSE endpoint's step for a range when none is given. */
int64_t qa_default_step(int64_t range_ms);

/* A label name in Prometheus's "U__" escaping, decoded: "U__a_2e_b" is "a.b". Names without the
 * prefix, and malformed ones, come back as they are. */
struct qf_str qa_unescape_name(struct qf_arena *arena, struct qf_str name);

#endif
