/* codec_int.h - protobuf-c on top of arenas: shared by the codecs. */
#ifndef PROTO_CODEC_CODEC_INT_H
#define PROTO_CODEC_CODEC_INT_H

#include <protobuf-c/protobuf-c.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

/* Unpack @bytes, at most PB_MESSAGE_BYTES_MAX, inside @arena. QF_EPROTO, or QF_ELIMIT if the budget
 * is spent. */
QF_MUST_CHECK qf_rc pb_unpack(struct qf_arena *arena, struct qf_str bytes,
                              const ProtobufCMessageDescriptor *descriptor,
                              ProtobufCMessage **ret_message, struct qf_err *err);
/* The same for at most @bytes_max. */
QF_MUST_CHECK qf_rc pb_unpack_within(struct qf_arena *arena, struct qf_str bytes,
                                     uint32_t bytes_max,
                                     const ProtobufCMessageDescriptor *descriptor,
                                     ProtobufCMessage **ret_message, struct qf_err *err);
void pb_pack(struct qf_strbuf *buf, const ProtobufCMessage *message);

/* A copy that ends in NUL, as protobuf-c wants its strings. */
char *pb_cstr(struct qf_arena *arena, struct qf_str s);

#endif
