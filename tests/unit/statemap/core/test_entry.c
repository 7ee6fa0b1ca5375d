/* test_entry.c - entries of the log of maps, there and back. */
#include "statemap/core/entry.h"

#include "tests/lib/test.h"

static struct sm_entry there_and_back(const struct sm_entry *entry, struct qf_strbuf *buf)
{
    struct sm_entry back = { 0 };

    qf_strbuf_reset(buf);
    sm_entry_encode(buf, entry);
    CHECK_EQ(sm_entry_decode(qf_strbuf_view(buf), &back), QF_OK);
    /* No beginning of it is one, but for those whose end is text. */
    for (size_t len = 0; len < buf->len; len++) {
        struct sm_entry part;
        qf_rc rc = sm_entry_decode((struct qf_str){ buf->data, len }, &part);

        if (len + entry->bytes.len < buf->len || entry->kind == SM_ENTRY_LOAD)
            CHECK_EQ(rc, QF_EPROTO);
    }
    return back;
}

TEST(entries_come_back_as_they_were)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct sm_entry define = { .kind = SM_ENTRY_DEFINE,
                               .tenant = QF_STR("acme"),
                               .expected = SM_EXPECT_ANY,
                               .bytes = QF_STR("{}") };
    struct sm_entry drop = {
        .kind = SM_ENTRY_DROP, .tenant = QF_STR("a"), .expected = 7, .bytes = QF_STR("team")
    };
    struct sm_entry piece = {
        .kind = SM_ENTRY_PIECE, .upload = 9, .offset = 1 << 20, .bytes = QF_STR("PFSTATE1")
    };
    struct sm_entry load = {
        .kind = SM_ENTRY_LOAD, .tenant = QF_STR("acme"), .upload = 9, .size = 77, .sum = 88
    };
    struct sm_entry back = there_and_back(&define, &buf);

    CHECK(qf_str_is(back.tenant, "acme") && qf_str_is(back.bytes, "{}"));
    CHECK_EQ(back.expected, SM_EXPECT_ANY);
    back = there_and_back(&drop, &buf);
    CHECK(back.expected == 7 && qf_str_is(back.bytes, "team"));
    back = there_and_back(&piece, &buf);
    CHECK(back.upload == 9 && back.offset == 1 << 20 && qf_str_is(back.bytes, "PFSTATE1"));
    back = there_and_back(&load, &buf);
    CHECK(back.upload == 9 && back.size == 77 && back.sum == 88 && qf_str_is(back.tenant, "acme"));
}

TEST(what_is_no_entry_is_refused)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct sm_entry empty = { .kind = SM_ENTRY_PIECE, .upload = 1 };
    struct sm_entry outside = { .kind = SM_ENTRY_DROP,
                                .tenant = QF_STR("../acme"),
                                .bytes = QF_STR("team") };
    struct sm_entry back;

    CHECK_EQ(sm_entry_decode(QF_STR(""), &back), QF_EPROTO);
    CHECK_EQ(sm_entry_decode(QF_STR("Z and what a later release says"), &back), QF_EPROTO);
    sm_entry_encode(&buf, &empty);
    CHECK_EQ(sm_entry_decode(qf_strbuf_view(&buf), &back), QF_EPROTO);
    qf_strbuf_reset(&buf);
    sm_entry_encode(&buf, &outside);
    CHECK_EQ(sm_entry_decode(qf_strbuf_view(&buf), &back), QF_EPROTO);
}
