/* codec.c - protobuf-c on top of arenas. */
#include "proto/codec/codec_int.h"

#include "proto/codec/control.h"

static void *arena_alloc(void *arena, size_t size)
{
    return qf_arena_alloc(arena, size);
}

static void arena_free(void *arena, void *ptr)
{
    (void)arena; /* everything goes at once, with the arena */
    (void)ptr;
}

qf_rc pb_unpack(struct qf_arena *arena, struct qf_str bytes,
                const ProtobufCMessageDescriptor *descriptor, ProtobufCMessage **ret_message,
                struct qf_err *err)
{
    return pb_unpack_within(arena, bytes, PB_MESSAGE_BYTES_MAX, descriptor, ret_message, err);
}

qf_rc pb_unpack_within(struct qf_arena *arena, struct qf_str bytes, uint32_t bytes_max,
                       const ProtobufCMessageDescriptor *descriptor, ProtobufCMessage **ret_message,
                       struct qf_err *err)
{
    ProtobufCAllocator allocator = { arena_alloc, arena_free, arena };
    ProtobufCMessage *message;

    if (bytes.len > bytes_max)
        return qf_err_set(err, QF_EPROTO, "message of %zu bytes is over the limit of %u", bytes.len,
                          bytes_max);
    message = protobuf_c_message_unpack(descriptor, &allocator, bytes.len,
                                        (const uint8_t *)(bytes.len ? bytes.data : ""));
    if (!message && qf_arena_failed(arena))
        return qf_err_set(err, QF_ELIMIT, "message of %zu bytes needs too much memory", bytes.len);
    if (!message)
        return qf_err_set(err, QF_EPROTO, "%zu bytes are not a %s message", bytes.len,
                          descriptor->short_name);
    *ret_message = message;
    return QF_OK;
}

void pb_pack(struct qf_strbuf *buf, const ProtobufCMessage *message)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    char *out = qf_strbuf_reserve(buf, len);

    if (out)
        buf->len += protobuf_c_message_pack(message, (uint8_t *)out);
}

char *pb_cstr(struct qf_arena *arena, struct qf_str s)
{
    return qf_arena_cstr(arena, s.data ? s : QF_STR(""));
}
