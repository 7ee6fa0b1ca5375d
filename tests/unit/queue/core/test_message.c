#include "queue/core/message.h"
#include "tests/lib/test.h"

static const struct ql_entry entries[] = { { 5, 3, QL_COMMAND, QF_STR_INIT("\x01x") },
                                           { 6, 4, QL_NOOP, QF_STR_INIT("") } };

static struct qc_message append(void)
{
    return (struct qc_message){ .kind = QC_APPEND,
                                .from = 1,
                                .to = 2,
                                .term = 4,
                                .index = 4,
                                .index_term = 3,
                                .entries = entries,
                                .count = 2 };
}

/* Each field that the library would trust. */
TEST(messages_that_no_honest_peer_sends_are_not_believed)
{
    struct qc_message good = append(), bad;
    struct ql_entry list[2];

    CHECK(!qc_message_check(&good));
#define BAD(change)                                                                                \
    do {                                                                                           \
        bad = good;                                                                                \
        memcpy(list, entries, sizeof(list));                                                       \
        bad.entries = list;                                                                        \
        change;                                                                                    \
        CHECK_MSG(qc_message_check(&bad), "%s was believed", #change);                             \
    } while (0)
    BAD(bad.from = 0);
    BAD(bad.to = 0);
    BAD(bad.to = bad.from);
    BAD(bad.term = 0);
    BAD(bad.term = UINT64_MAX);
    BAD(bad.index = 0);
    BAD(bad.index_term = 0);
    BAD(bad.index_term = 5);
    BAD(bad.count = QC_ENTRIES_MAX + 1);
    BAD(bad.entries = NULL);
    BAD(list[1].index = 7);
    BAD(list[0].term = 0);
    BAD(list[0].term = 2);
    BAD(list[1].term = 5);
    BAD(list[1].type = QL_CHANGE);
    BAD(list[1].type = (enum ql_type)9);
    BAD(bad.kind = (enum qc_message_kind)0);
    BAD(bad.kind = QC_MESSAGE__COUNT);
    BAD(bad.kind = QC_CONFIRM);
    BAD((bad.kind = QC_INSTALL, bad.index = bad.index_term = 0));
    BAD((bad.kind = QC_APPEND_RESULT, bad.rejected = UINT64_MAX));
#undef BAD
}
