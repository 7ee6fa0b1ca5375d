/* peer.h - the frames between ingest nodes as plain structs, to and from bytes.
 *
 * proto/peer.proto is the manual of every field. Decoding takes any bytes whatever: it allocates from
 * the caller's arena only, and returns QF_EPROTO for what is not a frame or breaks a bound below,
 * QF_ELIMIT if the arena's budget is spent. Strings and bodies of a decoded frame live in the arena; an
 * encoder borrows them. */
#ifndef PROTO_CODEC_PEER_H
#define PROTO_CODEC_PEER_H

#include <stdint.h>

#include "base/pure/arena.h"
#include "base/pure/err.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

#define PB_PEER_METHOD "/promfabric.peer.v1.Peer/Connect"

/* Bounds of a valid frame, checked when decoding. */
#define PB_PEER_NAME_BYTES_MAX 63
#define PB_PEER_TEXT_BYTES_MAX 255
#define PB_PEER_BODY_BYTES_MAX ((32u << 20) + (64u << 10))
#define PB_PEER_FRAME_BYTES_MAX (PB_PEER_BODY_BYTES_MAX + 1024u) /* also the gRPC limit */
/* Arena budget that every valid frame fits in. */
#define PB_PEER_DECODE_BYTES_MAX (PB_PEER_FRAME_BYTES_MAX + (64u << 10))

struct pb_peer_hello {
    uint32_t protocol_version;
    uint64_t cluster;
    struct qf_str name; /* never empty */
    struct qf_str to;
    uint64_t instance; /* never 0 */
    struct qf_str http_base, http_token, software;
    uint32_t records;
    uint32_t protocol_newest; /* 0: protocol_version alone */
};

struct pb_peer_message {
    struct qf_str queue; /* never empty */
    struct qf_str body;
};

struct pb_peer_call {
    uint64_t id;
    struct qf_str method; /* never empty */
    struct qf_str body;
};

struct pb_peer_reply {
    uint64_t id;
    struct qf_str code; /* empty, or qf_rc_from_name() */
    struct qf_str body;
};

enum pb_peer_kind {
    PB_PEER_HELLO,
    PB_PEER_MESSAGE,
    PB_PEER_CALL,
    PB_PEER_REPLY,
    PB_PEER_PING,
};

struct pb_peer_frame {
    enum pb_peer_kind kind;
    union {
        struct pb_peer_hello hello;
        struct pb_peer_message message;
        struct pb_peer_call call;
        struct pb_peer_reply reply;
    } u;
};

/* Append the encoding of @frame to @buf. */
void pb_peer_encode(struct qf_strbuf *buf, const struct pb_peer_frame *frame);
/* Append what comes before the body in the encoding of a message about @queue, whose body is the end
 * of it: so that large ones need not be copied. */
void pb_peer_message_head(struct qf_strbuf *buf, struct qf_str queue, size_t body_len);
/* The reverse: a message as the above writes it, which borrows from @bytes. False: anything else, whether
 * or not it is a frame; pb_peer_decode() says. */
bool pb_peer_message_view(struct qf_str bytes, struct pb_peer_message *ret_message);
QF_MUST_CHECK qf_rc pb_peer_decode(struct qf_arena *arena, struct qf_str bytes,
                                   struct pb_peer_frame *ret_frame, struct qf_err *err);

#endif
