/* rules.h - what HTTP demands of a request before anybody looks at what it asks for.
 *
 * The server library reads more than it should: what two readers of one request could understand
 * differently is refused here, as other servers do. */
#ifndef BASE_HTTP_RULES_H
#define BASE_HTTP_RULES_H

#include "base/http/request.h"

/* Why a request is refused. */
struct qh_refusal {
    int status;       /* 400 or 417 */
    const char *text; /* of the answer; may be empty */
};

/* False, and why, for: two lengths that differ, no Host (@host_needed: from HTTP/1.1 on), two or one
 * with a blank, an expectation other than 100-continue, a header whose name is no token. */
bool qh_request_keeps_rules(const struct qh_request *request, bool host_needed,
                            struct qh_refusal *ret_refusal);

/* The path of a request's target as the library hands it over: of "http://host/path" what follows
 * the host. */
const char *qh_target_path(const char *target);

/* @path as it should have been asked for: no empty segments, "." or "..". The slash at the end, if
 * any, stays. @path itself if it is clean; data NULL: @arena's budget is spent. */
struct qf_str qh_path_clean(struct qf_arena *arena, struct qf_str path);

#endif
