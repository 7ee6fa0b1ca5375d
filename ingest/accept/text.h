/* text.h - Prometheus text and OpenMetrics as a request. */
#ifndef INGEST_ACCEPT_TEXT_H
#define INGEST_ACCEPT_TEXT_H

#include "base/pure/err.h"
#include "ingest/core/request.h"

/* Lines of @text: samples, exemplars, HELP, TYPE and UNIT. Each that cannot be read is counted as a refused sample, and the
 * first is described.
 * @open_metrics: times are seconds, else milliseconds. Samples without a time are from @now_ms;
 * *@ret_timeless: there were such. Borrows from @text and @arena. QF_ELIMIT: the arena is spent. */
QF_MUST_CHECK qf_rc in_text_decode(struct qf_str text, bool open_metrics, int64_t now_ms,
                                   struct qf_arena *arena, struct in_request *ret_request,
                                   bool *ret_timeless, struct qf_err *err);

#endif
