/* call.h - what every request to a server is given: when to end early, and the bytes to send. */
#ifndef SEGMENTS_STORE_CALL_H
#define SEGMENTS_STORE_CALL_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/pure/err.h"
#include "base/pure/slice.h"

/* Where the bytes of a put come from: memory, or a file read with pread so that a retry can start
 * again. */
struct sg_store_bytes {
    const char *data; /* NULL: the file */
    int fd;
    uint64_t size;
};

/* When a call ends early. */
struct sg_store_limit {
    const atomic_bool *cancel;
    int64_t deadline_ms; /* monotonic; QF_TIME_NEVER: none */
};

/* QF_ECANCELED or QF_ETIMEOUT if the call is to end now; @what names the object. */
qf_rc sg_store_limit_check(const struct sg_store_limit *limit, struct qf_str what,
                           struct qf_err *err);
/* Milliseconds until the deadline, at most @most_ms, at least 0. */
int64_t sg_store_limit_left(const struct sg_store_limit *limit, int64_t most_ms);

#endif
