/* remote_read.h - a request of Prometheus's remote read protocol. */
#ifndef PROTO_CODEC_REMOTE_READ_H
#define PROTO_CODEC_REMOTE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/slice.h"

#define PB_READ_BYTES_MAX (4u << 20)

/* In the protocol's order. */
enum pb_read_match { PB_READ_EQUAL, PB_READ_NOT_EQUAL, PB_READ_REGEX, PB_READ_NOT_REGEX };

struct pb_read_matcher {
    enum pb_read_match type;
    struct qf_str name, value;
};

struct pb_read_query {
    int64_t start_ms, end_ms; /* inclusive */
    const struct pb_read_matcher *matchers;
    size_t matcher_count;
};

struct pb_read_request {
    const struct pb_read_query *queries;
    size_t query_count;
    bool takes_chunks;  /* streamed chunks before anything else */
    bool takes_samples; /* at all; so does who says nothing */
};

/* Strings borrow from @arena. QF_EPROTO, QF_ELIMIT. */
QF_MUST_CHECK qf_rc pb_read_decode(struct qf_arena *arena, struct qf_str bytes,
                                   struct pb_read_request *ret_request, struct qf_err *err);

#endif
