#include "queue/core/members.h"
#include "tests/lib/test.h"

static struct qc_members three(void)
{
    return (struct qc_members){
        .count = 3,
        .items = { { 11, QC_VOTER, "a" }, { 22, QC_VOTER, "b" }, { 33, QC_STANDBY, "c" } }
    };
}

/* The library rebuilds what it knows of members by their order and number. */
TEST(a_change_touches_one_member_and_keeps_the_order_of_the_others)
{
    struct qc_members members = three(), next;
    struct qf_err err = { 0 };

    CHECK_OK(qc_members_change(&members, QC_ADD, 44, "d", &next, &err), &err);
    CHECK_EQ(next.count, 4);
    CHECK_EQ(next.items[3].role, QC_STANDBY);
    CHECK_OK(qc_members_change(&members, QC_PROMOTE, 33, NULL, &next, &err), &err);
    CHECK_EQ(next.items[2].role, QC_VOTER);
    CHECK_OK(qc_members_change(&members, QC_REMOVE, 11, NULL, &next, &err), &err);
    CHECK_EQ(next.count, 2);
    CHECK_EQ(next.items[0].id, 22);
    CHECK_EQ(next.items[1].id, 33);
    CHECK_OK(qc_members_change(&members, QC_DEMOTE, 22, NULL, &next, &err), &err);
    CHECK(qc_members_sole_voter(&next, 11));
    CHECK(!qc_members_sole_voter(&next, 22));
}

TEST(impossible_changes_say_why)
{
    struct qc_members members = three(), next;
    struct qf_err err = { 0 };

    CHECK_EQ(qc_members_change(&members, QC_ADD, 22, "z", &next, NULL), QF_EEXIST);
    CHECK_EQ(qc_members_change(&members, QC_ADD, 99, "b", &next, &err), QF_EEXIST);
    CHECK(strstr(err.msg, "remove that one first"));
    CHECK_EQ(qc_members_change(&members, QC_ADD, 99, "", &next, NULL), QF_EINVAL);
    CHECK_EQ(qc_members_change(&members, QC_ADD, 0, "z", &next, NULL), QF_EINVAL);
    CHECK_EQ(qc_members_change(&members, QC_PROMOTE, 22, NULL, &next, NULL), QF_EEXIST);
    CHECK_EQ(qc_members_change(&members, QC_REMOVE, 99, NULL, &next, NULL), QF_ENOTFOUND);
    members.items[1].role = QC_STANDBY;
    CHECK_EQ(qc_members_change(&members, QC_REMOVE, 11, NULL, &next, NULL), QF_EINVAL);
    members.count = QC_MEMBERS_MAX;
    for (uint32_t i = 0; i < members.count; i++)
        members.items[i] = (struct qc_member){ i + 1, QC_VOTER, { (char)('a' + i) } };
    CHECK_EQ(qc_members_change(&members, QC_ADD, 99, "z", &next, NULL), QF_ELIMIT);
}

TEST(members_are_read_only_as_they_are_written)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qc_members members = three(), again;

    qc_members_encode(&buf, &members);
    CHECK_EQ(qc_members_decode(qf_strbuf_view(&buf), &again), QF_OK);
    CHECK(memcmp(&members, &again, sizeof(members)) == 0);
    for (size_t len = 0; len < buf.len; len++)
        CHECK_EQ(qc_members_decode((struct qf_str){ buf.data, len }, &again), QF_ECORRUPT);
    qf_strbuf_putc(&buf, 'x');
    CHECK_EQ(qc_members_decode(qf_strbuf_view(&buf), &again), QF_ECORRUPT);
    members.items[1].id = 11;
    qf_strbuf_reset(&buf);
    qc_members_encode(&buf, &members);
    CHECK_EQ(qc_members_decode(qf_strbuf_view(&buf), &again), QF_ECORRUPT);
    members = three();
    members.items[0].role = members.items[1].role = QC_STANDBY;
    qf_strbuf_reset(&buf);
    qc_members_encode(&buf, &members);
    CHECK_EQ(qc_members_decode(qf_strbuf_view(&buf), &again), QF_ECORRUPT);
}
