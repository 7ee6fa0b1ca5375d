#include "queue/core/state.h"
#include "tests/lib/test.h"

static enum qc_applied apply(struct qc_state *state, struct qc_command command)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct ql_entry entry = { state->applied + 1, 1, QL_COMMAND, { NULL, 0 } };

    qc_command_encode(&buf, &command);
    entry.data = qf_strbuf_view(&buf);
    return qc_state_apply(state, &entry);
}

static const struct qc_command offer = { .kind = QC_OFFER, .data = QF_STR_INIT("record") };

static struct qc_command offset(const char *consumer, uint64_t to)
{
    return (struct qc_command){ .kind = QC_OFFSET, .data = qf_str_from(consumer), .offset = to };
}

TEST(a_consumers_offset_never_goes_back)
{
    struct qc_state state;

    qc_state_init(&state);
    CHECK_EQ(apply(&state, offset("c", 5)), QC_APPLIED);
    CHECK_EQ(apply(&state, offset("c", 5)), QC_APPLIED);
    CHECK_EQ(apply(&state, offset("c", 4)), QC_APPLIED_NOT);
    CHECK_EQ(qc_state_consumer(&state, QF_STR("c"))->offset, 5);
    CHECK(!qc_state_consumer(&state, QF_STR("d")));
}

TEST(the_table_of_consumers_is_bounded)
{
    struct qc_state state;
    char name[16];

    qc_state_init(&state);
    for (int i = 0; i <= QC_CONSUMERS_MAX; i++) {
        snprintf(name, sizeof(name), "c%d", i);
        CHECK_EQ(apply(&state, offset(name, 1)), QC_APPLIED);
    }
    CHECK_EQ(state.consumer_count, QC_CONSUMERS_MAX);
    CHECK(!qc_state_consumer(&state, QF_STR("c0")));
    CHECK(qc_state_consumer(&state, QF_STR("c1")));
    CHECK(qc_state_consumer(&state, qf_str_from(name)));
}

/* Two clients ask for the same records: one gets them. */
TEST(records_are_handed_out_once)
{
    struct qc_state state;
    const struct qc_command consume = { .kind = QC_CONSUME, .from = 1, .to = 2 };

    qc_state_init(&state);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(apply(&state, offer), QC_APPLIED);
    CHECK_EQ(apply(&state, consume), QC_APPLIED);
    CHECK_EQ(apply(&state, consume), QC_APPLIED_NOT);
    CHECK_EQ(state.position, 3);
    CHECK_EQ(apply(&state, (struct qc_command){ .kind = QC_CONSUME, .from = 3, .to = 6 }),
             QC_APPLIED_NOT);
}

TEST(trimming_moves_ahead_only_and_takes_positions_along)
{
    struct qc_state state;

    qc_state_init(&state);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(apply(&state, offer), QC_APPLIED);
    CHECK_EQ(apply(&state, (struct qc_command){ .kind = QC_TRIM, .offset = 4 }), QC_APPLIED);
    CHECK_EQ(state.first, 4);
    CHECK_EQ(state.position, 4);
    CHECK_EQ(apply(&state, (struct qc_command){ .kind = QC_TRIM, .offset = 3 }), QC_APPLIED_NOT);
    CHECK_EQ(apply(&state, (struct qc_command){ .kind = QC_TRIM, .offset = 99 }), QC_APPLIED_NOT);
}

TEST(an_entry_that_cannot_be_read_counts_for_nothing)
{
    struct qc_state state;
    struct ql_entry entry = { 1, 1, QL_COMMAND, QF_STR_INIT("\x07nonsense") };

    qc_state_init(&state);
    CHECK_EQ(qc_state_apply(&state, &entry), QC_APPLIED_BAD);
    CHECK_EQ(state.applied, 1);
}

TEST(a_state_comes_back_from_its_snapshot)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf second = QF_STRBUF_INIT;
    struct qc_state state, again;

    qc_state_init(&state);
    CHECK_EQ(apply(&state, offer), QC_APPLIED);
    CHECK_EQ(apply(&state, offset("reader", 2)), QC_APPLIED);
    qc_state_encode(&buf, &state);
    qc_state_init(&again);
    CHECK_EQ(qc_state_decode(qf_strbuf_view(&buf), &again), QF_OK);
    qc_state_encode(&second, &again);
    CHECK(qf_str_eq(qf_strbuf_view(&buf), qf_strbuf_view(&second)));
    for (size_t len = 0; len < buf.len; len++)
        CHECK_EQ(qc_state_decode((struct qf_str){ buf.data, len }, &again), QF_ECORRUPT);
}

TEST(commands_are_read_only_as_they_are_written)
{
    struct qc_command command;

    CHECK_EQ(qc_command_decode(QF_STR(""), &command), QF_ECORRUPT);
    CHECK_EQ(qc_command_decode(QF_STR("\x01"), &command), QF_OK);
    CHECK_EQ(qc_command_decode(QF_STR("\x04short"), &command), QF_ECORRUPT);
    CHECK_EQ(qc_command_decode(QF_STR("\x03\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"), &command),
             QF_ECORRUPT);
    CHECK_EQ(qc_command_decode(QF_STR("\x02\x02\0\0\0\0\0\0\0a\0b"), &command), QF_ECORRUPT);
    CHECK(!qc_command_urgent(QF_STR("\x01record")));
    CHECK(qc_command_urgent(QF_STR("\x04")));
}
