/* peer_frame.c - frames between ingest nodes. */
#include "peer.pb-c.h"
#include "proto/codec/codec_int.h"
#include "proto/codec/peer.h"

typedef Promfabric__Peer__V1__Frame frame_msg;
typedef Promfabric__Peer__V1__Hello hello_msg;

static ProtobufCBinaryData borrow(struct qf_str bytes)
{
    return (ProtobufCBinaryData){ bytes.len, (uint8_t *)(uintptr_t)bytes.data };
}

static void fill_hello(struct qf_arena *arena, const struct pb_peer_hello *in, hello_msg *out)
{
    out->protocol_version = in->protocol_version;
    out->cluster = in->cluster;
    out->name = pb_cstr(arena, in->name);
    out->to = pb_cstr(arena, in->to);
    out->instance = in->instance;
    out->http_base = pb_cstr(arena, in->http_base);
    out->http_token = pb_cstr(arena, in->http_token);
    out->software = pb_cstr(arena, in->software);
    out->records = in->records;
    out->protocol_newest = in->protocol_newest;
}

void pb_peer_encode(struct qf_strbuf *buf, const struct pb_peer_frame *frame)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    frame_msg out = PROMFABRIC__PEER__V1__FRAME__INIT;
    hello_msg hello = PROMFABRIC__PEER__V1__HELLO__INIT;
    Promfabric__Peer__V1__Message message = PROMFABRIC__PEER__V1__MESSAGE__INIT;
    Promfabric__Peer__V1__Call call = PROMFABRIC__PEER__V1__CALL__INIT;
    Promfabric__Peer__V1__Reply reply = PROMFABRIC__PEER__V1__REPLY__INIT;
    Promfabric__Peer__V1__Ping ping = PROMFABRIC__PEER__V1__PING__INIT;

    switch (frame->kind) {
    case PB_PEER_HELLO:
        fill_hello(arena, &frame->u.hello, &hello);
        out.hello = &hello;
        out.body_case = PROMFABRIC__PEER__V1__FRAME__BODY_HELLO;
        break;
    case PB_PEER_MESSAGE:
        message.queue = pb_cstr(arena, frame->u.message.queue);
        message.body = borrow(frame->u.message.body);
        out.message = &message;
        out.body_case = PROMFABRIC__PEER__V1__FRAME__BODY_MESSAGE;
        break;
    case PB_PEER_CALL:
        call.id = frame->u.call.id;
        call.method = pb_cstr(arena, frame->u.call.method);
        call.body = borrow(frame->u.call.body);
        out.call = &call;
        out.body_case = PROMFABRIC__PEER__V1__FRAME__BODY_CALL;
        break;
    case PB_PEER_REPLY:
        reply.id = frame->u.reply.id;
        reply.code = pb_cstr(arena, frame->u.reply.code);
        reply.body = borrow(frame->u.reply.body);
        out.reply = &reply;
        out.body_case = PROMFABRIC__PEER__V1__FRAME__BODY_REPLY;
        break;
    case PB_PEER_PING:
        out.ping = &ping;
        out.body_case = PROMFABRIC__PEER__V1__FRAME__BODY_PING;
        break;
    }
    pb_pack(buf, &out.base);
}

/* Tags of length-delimited fields: Frame.message, Message.queue, Message.body. */
enum { TAG_MESSAGE = 0x12, TAG_QUEUE = 0x0a, TAG_BODY = 0x12 };

static size_t varint_len(size_t value)
{
    size_t len = 1;

    for (; value >= 0x80; value >>= 7)
        len++;
    return len;
}

static void put_varint(struct qf_strbuf *buf, size_t value)
{
    for (; value >= 0x80; value >>= 7)
        qf_strbuf_putc(buf, (char)(value | 0x80));
    qf_strbuf_putc(buf, (char)value);
}

void pb_peer_message_head(struct qf_strbuf *buf, struct qf_str queue, size_t body_len)
{
    size_t inner = 1 + varint_len(queue.len) + queue.len;

    if (body_len) /* an empty one is left out */
        inner += 1 + varint_len(body_len) + body_len;
    qf_strbuf_putc(buf, TAG_MESSAGE);
    put_varint(buf, inner);
    qf_strbuf_putc(buf, TAG_QUEUE);
    put_varint(buf, queue.len);
    qf_strbuf_str(buf, queue);
    if (body_len) {
        qf_strbuf_putc(buf, TAG_BODY);
        put_varint(buf, body_len);
    }
}

/* A field of @tag that begins at *@at, which moves behind it. */
static bool get_field(struct qf_str bytes, size_t *at, char tag, struct qf_str *ret_value)
{
    uint64_t len = 0;
    unsigned shift = 0;

    if (*at >= bytes.len || bytes.data[(*at)++] != tag)
        return false;
    for (unsigned char byte = 0x80; byte & 0x80; shift += 7) {
        if (*at >= bytes.len || shift > 28)
            return false;
        byte = (unsigned char)bytes.data[(*at)++];
        len |= (uint64_t)(byte & 0x7f) << shift;
    }
    if (len > bytes.len - *at)
        return false;
    *ret_value = qf_str_sub(bytes, *at, *at + (size_t)len);
    *at += (size_t)len;
    return true;
}

bool pb_peer_message_view(struct qf_str bytes, struct pb_peer_message *ret_message)
{
    struct pb_peer_message message;
    struct qf_str inner;
    size_t at = 0, inside = 0;

    if (!get_field(bytes, &at, TAG_MESSAGE, &inner) || at != bytes.len ||
        !get_field(inner, &inside, TAG_QUEUE, &message.queue) ||
        !get_field(inner, &inside, TAG_BODY, &message.body) || inside != inner.len)
        return false;
    if (!message.queue.len || message.queue.len > PB_PEER_NAME_BYTES_MAX ||
        message.body.len > PB_PEER_BODY_BYTES_MAX ||
        memchr(message.queue.data, 0, message.queue.len))
        return false;
    *ret_message = message;
    return true;
}

static struct qf_str view(ProtobufCBinaryData bytes)
{
    return (struct qf_str){ (const char *)bytes.data, bytes.len };
}

static qf_rc check_text(struct qf_str text, size_t min, size_t max, const char *what,
                        struct qf_err *err)
{
    if (text.len < min || text.len > max)
        return qf_err_set(err, QF_EPROTO, "%s of %zu bytes", what, text.len);
    return QF_OK;
}

static qf_rc check_body(struct qf_str body, struct qf_err *err)
{
    if (body.len > PB_PEER_BODY_BYTES_MAX)
        return qf_err_set(err, QF_EPROTO, "a body of %zu bytes", body.len);
    return QF_OK;
}

static qf_rc take_hello(const hello_msg *in, struct pb_peer_hello *out, struct qf_err *err)
{
    *out = (struct pb_peer_hello){ .protocol_version = in->protocol_version,
                                   .cluster = in->cluster,
                                   .name = qf_str_from(in->name),
                                   .to = qf_str_from(in->to),
                                   .instance = in->instance,
                                   .http_base = qf_str_from(in->http_base),
                                   .http_token = qf_str_from(in->http_token),
                                   .software = qf_str_from(in->software),
                                   .records = in->records,
                                   .protocol_newest = in->protocol_newest };
    if (!out->instance)
        return qf_err_set(err, QF_EPROTO, "a hello without an instance");
    if (out->protocol_newest && out->protocol_newest < out->protocol_version)
        return qf_err_set(err, QF_EPROTO, "a hello of protocol versions %u to %u",
                          (unsigned)out->protocol_version, (unsigned)out->protocol_newest);
    if (check_text(out->name, 1, PB_PEER_NAME_BYTES_MAX, "a node name", err) ||
        check_text(out->to, 0, PB_PEER_NAME_BYTES_MAX, "a node name", err) ||
        check_text(out->http_base, 0, PB_PEER_TEXT_BYTES_MAX, "an HTTP base", err) ||
        check_text(out->http_token, 0, PB_PEER_NAME_BYTES_MAX, "an HTTP token", err) ||
        check_text(out->software, 0, PB_PEER_TEXT_BYTES_MAX, "a software name", err))
        return QF_EPROTO;
    return QF_OK;
}

static qf_rc take_named(const char *name, ProtobufCBinaryData bytes, struct qf_str *ret_name,
                        struct qf_str *ret_body, struct qf_err *err)
{
    qf_rc rc;

    *ret_name = qf_str_from(name);
    *ret_body = view(bytes);
    rc = check_text(*ret_name, 1, PB_PEER_NAME_BYTES_MAX, "a name", err);
    return rc ? rc : check_body(*ret_body, err);
}

static qf_rc take_reply(const Promfabric__Peer__V1__Reply *in, struct pb_peer_reply *out,
                        struct qf_err *err)
{
    qf_rc rc;

    *out = (struct pb_peer_reply){ .id = in->id,
                                   .code = qf_str_from(in->code),
                                   .body = view(in->body) };
    rc = check_text(out->code, 0, PB_PEER_NAME_BYTES_MAX, "an error's name", err);
    return rc ? rc : check_body(out->body, err);
}

static qf_rc take_body(const frame_msg *in, struct pb_peer_frame *out, struct qf_err *err)
{
    switch (in->body_case) {
    case PROMFABRIC__PEER__V1__FRAME__BODY_HELLO:
        out->kind = PB_PEER_HELLO;
        return take_hello(in->hello, &out->u.hello, err);
    case PROMFABRIC__PEER__V1__FRAME__BODY_MESSAGE:
        out->kind = PB_PEER_MESSAGE;
        return take_named(in->message->queue, in->message->body, &out->u.message.queue,
                          &out->u.message.body, err);
    case PROMFABRIC__PEER__V1__FRAME__BODY_CALL:
        out->kind = PB_PEER_CALL;
        out->u.call.id = in->call->id;
        return take_named(in->call->method, in->call->body, &out->u.call.method, &out->u.call.body,
                          err);
    case PROMFABRIC__PEER__V1__FRAME__BODY_REPLY:
        out->kind = PB_PEER_REPLY;
        return take_reply(in->reply, &out->u.reply, err);
    case PROMFABRIC__PEER__V1__FRAME__BODY_PING:
        out->kind = PB_PEER_PING;
        return QF_OK;
    case PROMFABRIC__PEER__V1__FRAME__BODY__NOT_SET:
    default: /* no kind of this version */
        break;
    }
    return qf_err_set(err, QF_EPROTO, "a frame without a body that is known");
}

qf_rc pb_peer_decode(struct qf_arena *arena, struct qf_str bytes, struct pb_peer_frame *ret_frame,
                     struct qf_err *err)
{
    ProtobufCMessage *message;
    struct pb_peer_frame frame;
    qf_rc rc = pb_unpack_within(arena, bytes, PB_PEER_FRAME_BYTES_MAX,
                                &promfabric__peer__v1__frame__descriptor, &message, err);

    if (rc == QF_OK)
        rc = take_body((const frame_msg *)message, &frame, err);
    if (rc == QF_OK)
        *ret_frame = frame;
    return rc;
}
