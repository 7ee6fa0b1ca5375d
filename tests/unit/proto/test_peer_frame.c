#include "proto/codec/peer.h"
#include "tests/lib/test.h"

static qf_rc round_trip(struct qf_arena *arena, const struct pb_peer_frame *in,
                        struct pb_peer_frame *out)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    qf_rc rc;

    pb_peer_encode(&buf, in);
    rc = pb_peer_decode(arena, qf_strbuf_view(&buf), out, NULL);
    qf_strbuf_done(&buf);
    return rc;
}

static struct pb_peer_frame hello_frame(void)
{
    struct pb_peer_frame frame = { .kind = PB_PEER_HELLO };

    frame.u.hello = (struct pb_peer_hello){ .protocol_version = 1,
                                            .protocol_newest = 3,
                                            .cluster = 7,
                                            .name = QF_STR("a"),
                                            .to = QF_STR("b"),
                                            .instance = 9,
                                            .http_base = QF_STR("http://a:1"),
                                            .http_token = QF_STR("t"),
                                            .software = QF_STR("s") };
    return frame;
}

TEST(every_kind_of_frame_comes_back)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_PEER_DECODE_BYTES_MAX);
    struct pb_peer_frame in = hello_frame(), out;

    CHECK_EQ(round_trip(arena, &in, &out), QF_OK);
    CHECK_EQ(out.kind, PB_PEER_HELLO);
    CHECK_EQ(out.u.hello.protocol_version, 1);
    CHECK_EQ(out.u.hello.protocol_newest, 3);
    CHECK_EQ(out.u.hello.cluster, 7);
    CHECK_EQ(out.u.hello.instance, 9);
    CHECK(qf_str_is(out.u.hello.name, "a"));
    CHECK(qf_str_is(out.u.hello.to, "b"));
    CHECK(qf_str_is(out.u.hello.http_base, "http://a:1"));
    CHECK(qf_str_is(out.u.hello.http_token, "t"));
    in = (struct pb_peer_frame){ .kind = PB_PEER_MESSAGE };
    in.u.message = (struct pb_peer_message){ QF_STR("q"), QF_STR("a\0b") };
    CHECK_EQ(round_trip(arena, &in, &out), QF_OK);
    CHECK_EQ(out.kind, PB_PEER_MESSAGE);
    CHECK(qf_str_is(out.u.message.queue, "q"));
    CHECK(qf_str_eq(out.u.message.body, QF_STR("a\0b")));
    in = (struct pb_peer_frame){ .kind = PB_PEER_CALL };
    in.u.call = (struct pb_peer_call){ 5, QF_STR("offer"), QF_STR("x") };
    CHECK_EQ(round_trip(arena, &in, &out), QF_OK);
    CHECK_EQ(out.u.call.id, 5);
    CHECK(qf_str_is(out.u.call.method, "offer"));
    in = (struct pb_peer_frame){ .kind = PB_PEER_REPLY };
    in.u.reply = (struct pb_peer_reply){ 5, QF_STR("busy"), QF_STR("why") };
    CHECK_EQ(round_trip(arena, &in, &out), QF_OK);
    CHECK_EQ(out.u.reply.id, 5);
    CHECK(qf_str_is(out.u.reply.code, "busy"));
    in = (struct pb_peer_frame){ .kind = PB_PEER_PING };
    CHECK_EQ(round_trip(arena, &in, &out), QF_OK);
    CHECK_EQ(out.kind, PB_PEER_PING);
}

/* Large messages are written and read without the library, as it would write them. */
TEST(a_message_in_two_pieces_is_the_same_bytes)
{
    static char body[70000];

    for (size_t i = 0; i < sizeof(body); i++)
        body[i] = (char)(i * 31);
    for (size_t len = 0; len <= sizeof(body); len = len < 130 ? len + 1 : len + 13973) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf whole = QF_STRBUF_INIT, pieces = QF_STRBUF_INIT;
        struct pb_peer_frame frame = { .kind = PB_PEER_MESSAGE };
        struct pb_peer_message view;

        frame.u.message = (struct pb_peer_message){ QF_STR("metrics-0.17"), { body, len } };
        pb_peer_encode(&whole, &frame);
        pb_peer_message_head(&pieces, QF_STR("metrics-0.17"), len);
        qf_strbuf_add(&pieces, body, len);
        CHECK(qf_str_eq(qf_strbuf_view(&whole), qf_strbuf_view(&pieces)));
        CHECK_EQ(pb_peer_message_view(qf_strbuf_view(&whole), &view), len > 0);
        if (len) {
            CHECK(qf_str_is(view.queue, "metrics-0.17"));
            CHECK(qf_str_eq(view.body, frame.u.message.body));
        }
        for (size_t cut = 0; cut < whole.len && len < 130; cut++)
            CHECK(!pb_peer_message_view((struct qf_str){ whole.data, cut }, &view));
    }
}

TEST(what_is_no_plain_message_is_not_viewed)
{
    static const struct qf_str other[] = {
        QF_STR_INIT(""),
        QF_STR_INIT("\x12\x00"),
        QF_STR_INIT("\x12\x04\x0a\x00\x12\x00"),           /* no queue */
        QF_STR_INIT("\x12\x06\x12\x01x\x0a\x01q"),         /* another order */
        QF_STR_INIT("\x12\x06\x0a\x01\0\x12\x01x"),        /* a NUL in the name */
        QF_STR_INIT("\x12\x06\x0a\x01q\x12\x01x\x2a\x00"), /* something behind it */
        QF_STR_INIT("\x12\xff\xff\xff\xff\xff\x0f\x0a\x01q\x12\x01x"),
        QF_STR_INIT("\x1a\x06\x0a\x01q\x12\x01x") /* a call */
    };
    struct pb_peer_message view;

    for (size_t i = 0; i < QF_COUNT_OF(other); i++)
        CHECK_MSG(!pb_peer_message_view(other[i], &view), "%zu", i);
    CHECK(pb_peer_message_view(QF_STR("\x12\x06\x0a\x01q\x12\x01x"), &view));
}

TEST(frames_beyond_their_bounds_are_refused)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_PEER_DECODE_BYTES_MAX);
    static char long_text[300];
    struct pb_peer_frame in = hello_frame(), out;

    memset(long_text, 'x', sizeof(long_text));
    in.u.hello.name = (struct qf_str){ long_text, 64 };
    CHECK_EQ(round_trip(arena, &in, &out), QF_EPROTO);
    in = hello_frame();
    in.u.hello.name = QF_STR("");
    CHECK_EQ(round_trip(arena, &in, &out), QF_EPROTO);
    in = hello_frame();
    in.u.hello.instance = 0;
    CHECK_EQ(round_trip(arena, &in, &out), QF_EPROTO);
    in = hello_frame();
    in.u.hello.http_base = (struct qf_str){ long_text, 256 };
    CHECK_EQ(round_trip(arena, &in, &out), QF_EPROTO);
    in = (struct pb_peer_frame){ .kind = PB_PEER_MESSAGE };
    in.u.message = (struct pb_peer_message){ QF_STR(""), QF_STR("x") };
    CHECK_EQ(round_trip(arena, &in, &out), QF_EPROTO);
    in = (struct pb_peer_frame){ .kind = PB_PEER_CALL };
    in.u.call = (struct pb_peer_call){ 5, (struct qf_str){ long_text, 64 }, QF_STR("x") };
    CHECK_EQ(round_trip(arena, &in, &out), QF_EPROTO);
}

/* No body, a body of a kind that this version does not know, and no protobuf at all. */
TEST(bytes_that_are_no_frame_are_refused)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(PB_PEER_DECODE_BYTES_MAX);
    struct pb_peer_frame out;

    CHECK_EQ(pb_peer_decode(arena, QF_STR(""), &out, NULL), QF_EPROTO);
    CHECK_EQ(pb_peer_decode(arena, QF_STR("\x7a\x00"), &out, NULL), QF_EPROTO);
    CHECK_EQ(pb_peer_decode(arena, QF_STR("\xff\xff\xff"), &out, NULL), QF_EPROTO);
    CHECK_EQ(pb_peer_decode(arena, QF_STR("\x0a\x7f"), &out, NULL), QF_EPROTO);
}
