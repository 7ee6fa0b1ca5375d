/* health.c - messages of the standard gRPC health service. */
#include "proto/codec/health.h"

#include "health.pb-c.h"
#include "proto/codec/codec_int.h"
#include "proto/codec/control.h"

qf_rc pb_health_request_decode(struct qf_arena *arena, struct qf_str bytes,
                               struct qf_str *ret_service, struct qf_err *err)
{
    ProtobufCMessage *message;
    struct qf_str service;
    qf_rc rc =
        pb_unpack(arena, bytes, &grpc__health__v1__health_check_request__descriptor, &message, err);

    if (rc)
        return rc;
    service = qf_str_from(((Grpc__Health__V1__HealthCheckRequest *)message)->service);
    if (service.len > PB_TEXT_BYTES_MAX)
        return qf_err_set(err, QF_EPROTO, "service name of %zu bytes", service.len);
    *ret_service = service;
    return QF_OK;
}

void pb_health_response_encode(struct qf_strbuf *buf, enum pb_health health)
{
    Grpc__Health__V1__HealthCheckResponse response = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;

    response.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)health;
    pb_pack(buf, &response.base);
}
