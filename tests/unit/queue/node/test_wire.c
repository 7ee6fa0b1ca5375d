/* test_wire.c - asks and answers between nodes. */
#include "queue/node/wire.h"
#include "tests/lib/test.h"

static struct qn_ask *sample(void)
{
    struct qn_ask *ask = qn_ask_new(QN_OFFER, QF_STR("orders"));

    (void)snprintf(ask->tenant, sizeof(ask->tenant), "t");
    (void)snprintf(ask->consumer, sizeof(ask->consumer), "c");
    (void)snprintf(ask->member, sizeof(ask->member), "m");
    ask->operates = ask->level_set = true;
    ask->level = QC_LEVEL_ALL;
    ask->change = QC_REMOVE;
    ask->from = 7;
    ask->max = 9;
    ask->member_id = UINT64_MAX;
    ask->options = (struct qn_queue_options){ true, QC_LEVEL_ONE, 1, 2, 3 };
    qn_ask_add(ask, QF_STR("first"));
    qn_ask_add(ask, QF_STR(""));
    return ask;
}

/* Records are where qn_ask_begin() puts them. */
static void encode(struct qn_ask *ask, struct qf_strbuf *buf)
{
    for (size_t i = 0; i < ask->records.count; i++)
        ask->records.items[i].data = ask->bytes.data + (size_t)ask->records.items[i].data;
    qn_ask_encode(buf, ask);
}

TEST(an_ask_comes_out_as_it_went_in)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT, again = QF_STRBUF_INIT;
    struct qn_ask *ask = sample(), *copy = NULL;

    encode(ask, &bytes);
    CHECK_EQ(qn_ask_decode(qf_strbuf_view(&bytes), &copy), QF_OK);
    CHECK_EQ(copy->verb, QN_OFFER);
    CHECK_STR(copy->queue, "orders");
    CHECK_EQ(copy->records.count, 2);
    CHECK_EQ(copy->member_id, UINT64_MAX);
    encode(copy, &again);
    CHECK(qf_str_eq(qf_strbuf_view(&bytes), qf_strbuf_view(&again)));
    (void)qn_ask_free(ask);
    (void)qn_ask_free(copy);
}

/* How long a poll waits is behind the rest, and left out if it does not. */
TEST(how_long_a_poll_waits_comes_out_as_it_went_in)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf without = QF_STRBUF_INIT, bytes = QF_STRBUF_INIT;
    struct qn_ask *ask = qn_ask_new(QN_POLL, QF_STR("orders")), *copy = NULL;

    encode(ask, &without);
    ask->wait_ms = 5000;
    encode(ask, &bytes);
    CHECK_EQ(bytes.len, without.len + 4);
    CHECK_EQ(qn_ask_decode(qf_strbuf_view(&bytes), &copy), QF_OK);
    CHECK_EQ(copy->wait_ms, 5000);
    copy = qn_ask_free(copy);
    ask->wait_ms = QN_WAIT_MS_MAX + 1;
    qf_strbuf_reset(&bytes);
    encode(ask, &bytes);
    CHECK_EQ(qn_ask_decode(qf_strbuf_view(&bytes), &copy), QF_EPROTO);
    (void)qn_ask_free(ask);
}

/* Neither shorter, nor longer, nor with a number where none belongs. */
TEST(bytes_that_are_no_ask_are_refused)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct qn_ask *ask = sample(), *copy = NULL;

    encode(ask, &bytes);
    for (size_t len = 0; len < bytes.len; len++)
        CHECK_EQ(qn_ask_decode((struct qf_str){ bytes.data, len }, &copy), QF_EPROTO);
    for (size_t at = 0; at < 8; at++) {
        char was = bytes.data[at];

        bytes.data[at] = (char)0xff;
        CHECK_EQ(qn_ask_decode(qf_strbuf_view(&bytes), &copy), QF_EPROTO);
        bytes.data[at] = was;
    }
    qf_strbuf_putc(&bytes, 0);
    CHECK_EQ(qn_ask_decode(qf_strbuf_view(&bytes), &copy), QF_EPROTO);
    (void)qn_ask_free(ask);
}

static void answer_done(struct qn_answer *answer)
{
    QF_VEC_DONE(&answer->records);
    qf_strbuf_done(&answer->bytes);
    qf_strbuf_done(&answer->text);
}

TEST(an_answer_comes_out_as_it_went_in)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    QF_CLEANUP(answer_done)
    struct qn_answer answer = {
        .gone = true, .count = 1, .first = 2, .last = 3, .next = 4, .end = 5
    };
    QF_CLEANUP(answer_done) struct qn_answer copy = { 0 };

    (void)qf_err_set(&answer.err, QF_ENOTFOUND, "why");
    qf_strbuf_puts(&answer.text, "{}");
    QF_VEC_PUSH(&answer.records, (struct qn_record){ 8, -9, QF_STR("abc") });
    QF_VEC_PUSH(&answer.records, (struct qn_record){ 9, 10, QF_STR("") });
    qn_answer_encode(&bytes, &answer);
    CHECK_EQ(qn_answer_decode(qf_strbuf_view(&bytes), &copy), QF_OK);
    CHECK_EQ(copy.err.rc, QF_ENOTFOUND);
    CHECK_STR(copy.err.msg, "why");
    CHECK(copy.gone);
    CHECK(!copy.unknown);
    CHECK_EQ(copy.end, 5);
    CHECK_EQ(copy.records.count, 2);
    CHECK_EQ(copy.records.items[0].time_ms, -9);
    CHECK(qf_str_is(copy.records.items[0].data, "abc"));
    CHECK_EQ(copy.records.items[1].offset, 9);
    for (size_t len = 0; len < bytes.len; len++) {
        QF_CLEANUP(answer_done) struct qn_answer none = { 0 };

        CHECK_EQ(qn_answer_decode((struct qf_str){ bytes.data, len }, &none), QF_EPROTO);
        CHECK_EQ(none.records.count, 0);
    }
}
