/* remote_read.c - requests of remote read, out of their messages. */
#include "proto/codec/remote_read.h"

#include "proto/codec/codec_int.h"
#include "remote_read.pb-c.h"

typedef Promfabric__Read__V1__ReadRequest request_msg;
typedef Promfabric__Read__V1__Query query_msg;

enum { RESPONSE_SAMPLES = 0, RESPONSE_CHUNKS = 1 };

static qf_rc take_query(struct qf_arena *arena, const query_msg *in, struct pb_read_query *out,
                        struct qf_err *err)
{
    struct pb_read_matcher *matchers =
        QF_ARENA_ARRAY(arena, struct pb_read_matcher, in->n_matchers + 1);

    if (!matchers)
        return qf_err_set(err, QF_ELIMIT, "the request is too large");
    for (size_t i = 0; i < in->n_matchers; i++) {
        const Promfabric__Read__V1__Matcher *from = in->matchers[i];

        if (from->type > PB_READ_NOT_REGEX)
            return qf_err_set(err, QF_EPROTO, "invalid matcher type");
        matchers[i] = (struct pb_read_matcher){
            .type = (enum pb_read_match)from->type,
            .name = { (const char *)from->name.data, from->name.len },
            .value = { (const char *)from->value.data, from->value.len },
        };
    }
    *out = (struct pb_read_query){ .start_ms = in->start_timestamp_ms,
                                   .end_ms = in->end_timestamp_ms,
                                   .matchers = matchers,
                                   .matcher_count = in->n_matchers };
    return QF_OK;
}

/* The first form that both know counts. */
static void take_forms(const request_msg *in, struct pb_read_request *out)
{
    out->takes_samples = in->n_accepted_response_types == 0;
    for (size_t i = 0; i < in->n_accepted_response_types; i++) {
        if (in->accepted_response_types[i] == RESPONSE_CHUNKS && !out->takes_samples)
            out->takes_chunks = true;
        else if (in->accepted_response_types[i] == RESPONSE_SAMPLES)
            out->takes_samples = true;
    }
}

qf_rc pb_read_decode(struct qf_arena *arena, struct qf_str bytes,
                     struct pb_read_request *ret_request, struct qf_err *err)
{
    struct pb_read_request request = { 0 };
    struct pb_read_query *queries;
    ProtobufCMessage *unpacked;
    const request_msg *in;
    qf_rc rc = pb_unpack_within(arena, bytes, PB_READ_BYTES_MAX,
                                &promfabric__read__v1__read_request__descriptor, &unpacked, err);

    if (rc)
        return rc;
    in = (const request_msg *)unpacked;
    queries = QF_ARENA_ARRAY(arena, struct pb_read_query, in->n_queries + 1);
    if (!queries)
        return qf_err_set(err, QF_ELIMIT, "the request is too large");
    for (size_t i = 0; rc == QF_OK && i < in->n_queries; i++)
        rc = take_query(arena, in->queries[i], &queries[i], err);
    take_forms(in, &request);
    request.queries = queries;
    request.query_count = in->n_queries;
    if (rc == QF_OK)
        *ret_request = request;
    return rc;
}
