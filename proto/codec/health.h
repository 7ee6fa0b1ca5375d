/* health.h - messages of the standard gRPC health service. */
#ifndef PROTO_CODEC_HEALTH_H
#define PROTO_CODEC_HEALTH_H

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

#define PB_HEALTH_CHECK_METHOD "/grpc.health.v1.Health/Check"
#define PB_HEALTH_WATCH_METHOD "/grpc.health.v1.Health/Watch"

enum pb_health {
    PB_HEALTH_UNKNOWN = 0,
    PB_HEALTH_SERVING = 1,
    PB_HEALTH_NOT_SERVING = 2,
    PB_HEALTH_SERVICE_UNKNOWN = 3,
};

/* The service asked for ("" = the whole server), in @arena. QF_EPROTO for other bytes. */
QF_MUST_CHECK qf_rc pb_health_request_decode(struct qf_arena *arena, struct qf_str bytes,
                                             struct qf_str *ret_service, struct qf_err *err);
void pb_health_response_encode(struct qf_strbuf *buf, enum pb_health health);

#endif
