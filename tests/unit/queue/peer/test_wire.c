#include "queue/peer/wire.h"
#include "tests/lib/test.h"

static const struct ql_entry entries[] = { { 5, 3, QL_COMMAND, QF_STR_INIT("\x01x") },
                                           { 6, 4, QL_NOOP, QF_STR_INIT("") } };

static struct qc_message append(void)
{
    return (struct qc_message){ .kind = QC_APPEND,
                                .cluster = 77,
                                .from = 1,
                                .to = 2,
                                .term = 4,
                                .space = 1000,
                                .index = 4,
                                .index_term = 3,
                                .commit = 3,
                                .entries = entries,
                                .count = 2 };
}

TEST(a_message_comes_back_as_it_was)
{
    struct qc_message sent = append(), got;
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qp_entries scratch = { 0 };

    qp_message_encode(&buf, &sent);
    CHECK_EQ(buf.len, qp_message_bytes(&sent));
    CHECK_EQ(qp_message_decode(qf_strbuf_view(&buf), &scratch, &got, NULL), QF_OK);
    CHECK_EQ(got.kind, QC_APPEND);
    CHECK_EQ(got.cluster, 77);
    CHECK_EQ(got.from, 1);
    CHECK_EQ(got.to, 2);
    CHECK_EQ(got.term, 4);
    CHECK_EQ(got.space, 1000);
    CHECK_EQ(got.index, 4);
    CHECK_EQ(got.index_term, 3);
    CHECK_EQ(got.commit, 3);
    CHECK_EQ(got.count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_EQ(got.entries[i].index, entries[i].index);
        CHECK_EQ(got.entries[i].term, entries[i].term);
        CHECK_EQ(got.entries[i].type, entries[i].type);
        CHECK(qf_str_eq(got.entries[i].data, entries[i].data));
    }
    qp_entries_done(&scratch);
    qf_strbuf_done(&buf);
}

TEST(every_number_and_flag_of_an_answer_comes_back)
{
    struct qc_message sent = { .kind = QC_APPEND_RESULT,
                               .from = 9,
                               .to = 8,
                               .term = 7,
                               .rejected = 6,
                               .change_index = 5,
                               .nonce = 4,
                               .pre_vote = true,
                               .granted = true };
    struct qc_message got;
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qp_entries scratch = { 0 };

    qp_message_encode(&buf, &sent);
    CHECK_EQ(qp_message_decode(qf_strbuf_view(&buf), &scratch, &got, NULL), QF_OK);
    CHECK_EQ(got.rejected, 6);
    CHECK_EQ(got.change_index, 5);
    CHECK_EQ(got.nonce, 4);
    CHECK(got.pre_vote);
    CHECK(!got.disrupt);
    CHECK(got.granted);
    CHECK_EQ(got.count, 0);
    qp_entries_done(&scratch);
    qf_strbuf_done(&buf);
}

/* Cut anywhere, or with bytes behind, it is no message. */
TEST(a_message_of_another_length_is_refused)
{
    struct qc_message sent = append(), got;
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qp_entries scratch = { 0 };

    qp_message_encode(&buf, &sent);
    for (size_t len = 0; len < buf.len; len++)
        CHECK_EQ(qp_message_decode((struct qf_str){ buf.data, len }, &scratch, &got, NULL),
                 QF_EPROTO);
    qf_strbuf_putc(&buf, 'x');
    CHECK_EQ(qp_message_decode(qf_strbuf_view(&buf), &scratch, &got, NULL), QF_EPROTO);
    qp_entries_done(&scratch);
    qf_strbuf_done(&buf);
}

/* What a byte may be in a place where nothing is left to choice. */
TEST(flags_nobody_knows_and_entries_of_other_kinds_are_refused)
{
    struct qc_message sent = append(), got;
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qp_entries scratch = { 0 };
    static const struct {
        size_t at;
        char value;
    } changes[] = { { 0, 0 },   { 0, QC_VOTE }, { 0, QC_MESSAGE__COUNT },
                    { 1, 8 },   { 2, 1 },       { 3, 1 },
                    { 5, 127 }, { 4, 3 } };

    qp_message_encode(&buf, &sent);
    for (size_t i = 0; i < QF_COUNT_OF(changes); i++) {
        char old = buf.data[changes[i].at];

        buf.data[changes[i].at] = changes[i].value;
        CHECK_MSG(qp_message_decode(qf_strbuf_view(&buf), &scratch, &got, NULL) == QF_EPROTO,
                  "change %zu was taken", i);
        buf.data[changes[i].at] = old;
    }
    qp_entries_done(&scratch);
    qf_strbuf_done(&buf);
}
