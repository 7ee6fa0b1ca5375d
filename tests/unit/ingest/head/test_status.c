#include "ingest/head/status.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/test.h"
#include "tests/unit/ingest/head/rig.h"

static const struct in_status_of of = { 3, 0xabc, 4, "n1" };

/* The answer to a question of tenant t. */
static char *status(const struct rig *rig, struct in_status_ask ask)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf question = QF_STRBUF_INIT;
    struct qf_strbuf text = QF_STRBUF_INIT;

    if (!ask.tenant.len)
        ask.tenant = QF_STR("t");
    in_status_ask_encode(&question, &ask);
    CHECK_EQ(in_status_answer(qf_strbuf_view(&question), rig->ledger, &of, &text), QF_OK);
    return qf_strbuf_take(&text);
}

#define CHECK_STATUS(rig, ask, want)                                                               \
    do {                                                                                           \
        char *text_ = status(rig, (struct in_status_ask)ask);                                      \
        CHECK_STR(text_, want);                                                                    \
        free(text_);                                                                               \
    } while (0)
#define ALL                                                                                        \
    {                                                                                              \
        .min_ts = INT64_MIN, .max_ts = INT64_MAX                                                   \
    }
#define HEAD "{\"partition\":3,\"queue\":\"0000000000000abc\",\"leader\":\"n1\""

TEST(ranges_that_are_not_sealed_are_told_if_they_overlap)
{
    struct rig rig;

    rig_now = 5;
    rig_begin(&rig, 1);
    CHECK_STATUS(&rig, ALL,
                 HEAD
                 ",\"applied\":0,\"sealed_index\":0,\"list\":false,\"files\":[],\"floor\":null,"
                 "\"shards\":4,\"ranges\":[]");
    (void)rig_sample(&rig, "t", 0, true, 100, 1);
    (void)rig_seal(&rig, "t");
    (void)rig_sample(&rig, "t", 0, true, 200, 1);
    (void)rig_sample(&rig, "u", 0, true, 100, 1);
    CHECK_STATUS(&rig, ALL,
                 HEAD
                 ",\"applied\":4,\"sealed_index\":4,\"list\":false,\"files\":[],\"floor\":null,"
                 "\"shards\":4,\"ranges\":["
                 "{\"generation\":5000,\"from\":1,\"to\":2,\"min_ts\":100,\"max_ts\":100,"
                 "\"samples\":1},"
                 "{\"generation\":5001,\"from\":3,\"to\":0,\"min_ts\":200,\"max_ts\":200,"
                 "\"samples\":1}]");
    for (int64_t ts = 99; ts <= 101; ts++) {
        char *text = status(&rig, (struct in_status_ask){ .min_ts = ts, .max_ts = ts });

        CHECK((strstr(text, "\"generation\":5000") != NULL) == (ts == 100));
        CHECK(!strstr(text, "\"generation\":5001"));
        free(text);
    }
    rig_end(&rig);
}

/* What the caller covers is not told again, unless it is of another queue. */
TEST(sealed_files_are_told_after_what_is_covered)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct in_sealed_file file = { QF_STR("d/a"), QF_STR("e\"1"), 7 };
    struct in_status_ask ask = ALL;
    struct rig rig;
    char *text;

    rig_begin(&rig, 1);
    (void)rig_sample(&rig, "t", 0, true, 100, 1);
    (void)rig_seal(&rig, "t");
    in_record_put_sealed(&buf, QF_STR("t"), 1, 2, &file, 1);
    CHECK_EQ(rig_append(&rig, qf_strbuf_view(&buf)), IN_APPLIED);
    for (int i = 0; i < 4; i++) { /* nothing, before it, it, it of another queue */
        ask.covered_queue = i == 3 ? 0xabd : 0xabc;
        ask.covered_index = i == 3 ? 3 : (uint64_t)i + 1;
        text = status(&rig, ask);
        if (i == 2)
            CHECK(strstr(text, "\"list\":false,\"files\":[],"));
        else
            CHECK(strstr(text, "\"files\":[{\"name\":\"d/a\",\"size\":7,\"etag\":\"e\\\"1\","
                               "\"index\":3}]"));
        CHECK(strstr(text, "\"ranges\":[]"));
        free(text);
    }
    rig_end(&rig);
}

/* Whoever covers less than what is remembered has to list. */
TEST(forgotten_files_are_said_to_be)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    static struct in_sealed_file files[IN_RECENT_FILES_MAX + 1];
    struct in_status_ask ask = ALL;
    struct rig rig;
    char *text;

    for (size_t i = 0; i < QF_COUNT_OF(files); i++)
        files[i] = (struct in_sealed_file){ QF_STR("d/a"), QF_STR("e"), 7 };
    rig_begin(&rig, 1);
    (void)rig_sample(&rig, "t", 0, true, 100, 1);
    (void)rig_seal(&rig, "t");
    in_record_put_sealed(&buf, QF_STR("t"), 1, 2, files, QF_COUNT_OF(files));
    CHECK_EQ(rig_append(&rig, qf_strbuf_view(&buf)), IN_APPLIED);
    ask.covered_queue = 0xabc;
    for (uint64_t covered = 2; covered <= 3; covered++) {
        ask.covered_index = covered;
        text = status(&rig, ask);
        CHECK(strstr(text, covered == 2 ? "\"list\":true" : "\"list\":false"));
        free(text);
    }
    rig_end(&rig);
}

TEST(a_floor_is_told)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct rig rig;
    char *text;

    rig_begin(&rig, 1);
    in_record_put_floor(&buf, -150);
    CHECK_EQ(rig_append(&rig, qf_strbuf_view(&buf)), IN_APPLIED);
    text = status(&rig, (struct in_status_ask)ALL);
    CHECK(strstr(text, "\"floor\":-150,"));
    free(text);
    rig_end(&rig);
}

TEST(what_is_no_question_is_refused)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf question = QF_STRBUF_INIT, text = QF_STRBUF_INIT;
    struct in_status_ask ask = ALL;
    struct rig rig;

    rig_begin(&rig, 1);
    ask.tenant = QF_STR("t");
    in_status_ask_encode(&question, &ask);
    for (size_t len = 0; len < question.len; len++)
        CHECK_EQ(in_status_answer((struct qf_str){ question.data, len }, rig.ledger, &of, &text),
                 QF_ECORRUPT);
    question.data[0] = 'T';
    CHECK_EQ(in_status_answer(qf_strbuf_view(&question), rig.ledger, &of, &text), QF_ECORRUPT);
    CHECK_EQ(text.len, 0);
    rig_end(&rig);
}

TEST(a_status_says_who_is_in_the_partition)
{
    static const struct in_status_of own = { .partition = 3,
                                             .queue_id = 0xabc,
                                             .shards = 4,
                                             .node = "n1",
                                             .members = { "n1", "n2" },
                                             .member_count = 2,
                                             .epoch = 9 };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf question = QF_STRBUF_INIT, text = QF_STRBUF_INIT;
    struct in_status_ask ask = { .tenant = QF_STR("t") };
    struct rig rig;

    rig_begin(&rig, 1);
    in_status_ask_encode(&question, &ask);
    CHECK_EQ(in_status_answer(qf_strbuf_view(&question), rig.ledger, &own, &text), QF_OK);
    CHECK(qf_str_starts(qf_strbuf_view(&text),
                        QF_STR(HEAD ",\"epoch\":9,\"members\":[\"n1\",\"n2\"]")));
    rig_end(&rig);
}
