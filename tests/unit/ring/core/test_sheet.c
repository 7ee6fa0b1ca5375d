/* test_sheet.c - documents with their bytes: joined in any order, encoded, bounded; contexts and names. */
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/prng.h"
#include "ring/core/place.h"
#include "ring/core/sheet.h"
#include "tests/lib/test.h"

static struct rg_context write_to(struct rg_sheet *sheet, const struct rg_context *seen,
                                  uint64_t coordinator, uint64_t counter, int64_t now_ms,
                                  struct qf_str bytes)
{
    struct rg_value value =
        rg_context_write(seen, coordinator, counter, now_ms, rg_content_id(bytes));

    rg_sheet_add(sheet, &value, bytes);
    return (struct rg_context){ value.clock, value.time_ms };
}

static bool same(struct rg_sheet *a, struct rg_sheet *b)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf x = QF_STRBUF_INIT, y = QF_STRBUF_INIT;

    rg_sheet_encode(&x, a);
    rg_sheet_encode(&y, b);
    return qf_str_eq(qf_strbuf_view(&x), qf_strbuf_view(&y));
}

static void check_winner(const struct rg_sheet *sheet, const char *text)
{
    CHECK(sheet->document.count > 0);
    CHECK(qf_str_is(rg_sheet_bytes(sheet, &sheet->document.values[0]), text));
}

static const struct rg_context nothing;

TEST(who_has_read_replaces_and_who_has_not_stands_beside)
{
    QF_CLEANUP(rg_sheet_done) struct rg_sheet sheet = { 0 };
    struct rg_context read;

    write_to(&sheet, &nothing, 1, 1, 100, QF_STR("one"));
    write_to(&sheet, &nothing, 2, 1, 101, QF_STR("two"));
    CHECK_EQ(sheet.document.count, 2);
    check_winner(&sheet, "two");
    read = rg_sheet_context(&sheet);
    CHECK_EQ(read.time_ms, 101);
    write_to(&sheet, &read, 3, 1, 5 /* its clock is behind */, QF_STR("three"));
    CHECK_EQ(sheet.document.count, 1);
    CHECK_EQ(sheet.content_count, 1);
    check_winner(&sheet, "three");
    CHECK(sheet.document.values[0].time_ms > 101);
}

TEST(a_deletion_is_a_value_without_bytes)
{
    QF_CLEANUP(rg_sheet_done) struct rg_sheet sheet = { 0 };
    struct rg_context read = write_to(&sheet, &nothing, 1, 1, 100, QF_STR("x"));
    struct rg_value gone = rg_context_write(&read, 2, 1, 200, 0);

    rg_sheet_add(&sheet, &gone, QF_STR(""));
    CHECK_EQ(sheet.document.count, 1);
    CHECK_EQ(sheet.content_count, 0);
    CHECK_EQ(rg_sheet_bytes(&sheet, &sheet.document.values[0]).len, 0);
}

TEST(joined_in_any_order_sheets_have_equal_bytes_and_survive_them)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct rg_sheet parts[5] = { 0 }, forth = { 0 }, back = { 0 }, read = { 0 };

    for (unsigned i = 0; i < 5; i++) {
        char text[16];
        struct rg_repeat repeat = { .key = { (uint8_t)i }, .request = { 7 } };

        (void)snprintf(text, sizeof(text), "value %u", i);
        repeat.context =
            write_to(&parts[i], &nothing, 1 + i % 3, 1 + i, 100 + i % 2, qf_str_from(text));
        rg_sheet_remember(&parts[i], &repeat);
    }
    for (unsigned i = 0; i < 5; i++) {
        rg_sheet_join(&forth, &parts[i]);
        rg_sheet_join(&back, &parts[4 - i]);
        rg_sheet_join(&back, &parts[4 - i]);
    }
    CHECK(same(&forth, &back));
    CHECK_EQ(forth.document.count, 3);
    CHECK_EQ(forth.repeat_count, 5);
    rg_sheet_encode(&bytes, &forth);
    CHECK_EQ(rg_sheet_decode(qf_strbuf_view(&bytes), &read), QF_OK);
    CHECK(same(&forth, &read));
    for (unsigned i = 0; i < 5; i++)
        rg_sheet_done(&parts[i]);
    rg_sheet_done(&forth);
    rg_sheet_done(&back);
    rg_sheet_done(&read);
}

/* A client that is in a hurry asks two coordinators at once: one key, one request, one moment, two clocks. */
TEST(of_two_answers_to_one_request_all_keep_the_same)
{
    struct rg_sheet forth = { 0 }, back = { 0 };
    struct rg_repeat answers[2] = { { .key = { 1 }, .request = { 7 } },
                                    { .key = { 1 }, .request = { 7 } } };

    for (unsigned i = 0; i < 2; i++) {
        answers[i].context.time_ms = 100;
        rg_clock_see(&answers[i].context.clock, 1 + i, 1);
    }
    rg_sheet_remember(&forth, &answers[0]);
    rg_sheet_remember(&forth, &answers[1]);
    rg_sheet_remember(&back, &answers[1]);
    rg_sheet_remember(&back, &answers[0]);
    CHECK_EQ(forth.repeat_count, 1);
    CHECK(same(&forth, &back));
    rg_sheet_done(&forth);
    rg_sheet_done(&back);
}

TEST(what_has_no_room_goes_and_the_winner_stays)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    QF_CLEANUP(rg_sheet_done) struct rg_sheet sheet = { 0 };
    QF_CLEANUP(qf_freep) char *text = qf_xmalloc(RG_VALUE_BYTES_MAX);

    for (unsigned i = 0; i < RG_SIBLINGS_MAX + 2; i++) {
        memset(text, (int)('a' + i), RG_VALUE_BYTES_MAX);
        write_to(&sheet, &nothing, 1 + i, 1, 100 + i, (struct qf_str){ text, RG_VALUE_BYTES_MAX });
    }
    CHECK_EQ(sheet.document.count, RG_SIBLINGS_MAX);
    rg_sheet_encode(&bytes, &sheet);
    CHECK(bytes.len <= RG_SHEET_BYTES_MAX);
    CHECK_EQ(sheet.document.count, 2);
    CHECK_EQ(sheet.content_count, 2);
    CHECK_EQ(rg_sheet_bytes(&sheet, &sheet.document.values[0]).data[0], 'a' + RG_SIBLINGS_MAX + 1);
}

TEST(requests_are_remembered_for_a_day_the_latest_ones)
{
    struct rg_sheet sheet = { 0 };
    struct rg_repeat repeat = { .request = { 1 } };

    for (unsigned i = 0; i < RG_REPEATS_MAX + 1; i++) {
        repeat.key[0] = (uint8_t)i;
        repeat.context.time_ms = 1000 + i;
        rg_sheet_remember(&sheet, &repeat);
    }
    CHECK_EQ(sheet.repeat_count, RG_REPEATS_MAX);
    CHECK(rg_sheet_repeat(&sheet, (uint8_t[RG_DIGEST_BYTES]){ 0 }, 1000) == NULL);
    CHECK(rg_sheet_repeat(&sheet, (uint8_t[RG_DIGEST_BYTES]){ 1 }, 1000) != NULL);
    CHECK(rg_sheet_repeat(&sheet, (uint8_t[RG_DIGEST_BYTES]){ 1 }, 1001 + RG_REPEAT_MS) == NULL);
    /* Of two answers to one key the first counts, wherever it was given. */
    repeat.key[0] = 5;
    repeat.request[0] = 9;
    rg_sheet_remember(&sheet, &repeat);
    CHECK_EQ(rg_sheet_repeat(&sheet, repeat.key, 1000)->request[0], 1);
    repeat.context.time_ms = 1;
    rg_sheet_remember(&sheet, &repeat);
    CHECK_EQ(rg_sheet_repeat(&sheet, repeat.key, 1000)->request[0], 9);
}

/* Whatever comes from a disk or a network: an error, or a sheet that gives its bytes again. */
TEST(bytes_that_are_no_sheet_are_refused)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    QF_CLEANUP(rg_sheet_done) struct rg_sheet sheet = { 0 };
    struct rg_repeat repeat = { .key = { 3 } };
    struct qf_prng random = { .state = 7 };
    struct rg_sheet read;

    repeat.context = write_to(&sheet, &nothing, 1, 1, 100, QF_STR("one"));
    write_to(&sheet, &nothing, 2, 1, 101, QF_STR("two"));
    rg_sheet_remember(&sheet, &repeat);
    rg_sheet_encode(&bytes, &sheet);
    for (size_t len = 0; len < bytes.len; len++)
        CHECK_EQ(rg_sheet_decode((struct qf_str){ bytes.data, len }, &read), QF_ECORRUPT);
    for (int i = 0; i < 5000; i++) {
        size_t at = qf_prng_next(&random) % bytes.len;
        char before = bytes.data[at];

        bytes.data[at] = (char)qf_prng_next(&random);
        if (rg_sheet_decode(qf_strbuf_view(&bytes), &read) == QF_OK)
            rg_sheet_done(&read);
        bytes.data[at] = before;
    }
}

TEST(a_context_goes_to_a_client_and_back)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct rg_context context = { .time_ms = 1700000000000 }, read;

    for (uint64_t i = 1; i <= RG_CLOCK_MAX; i++)
        rg_clock_see(&context.clock, UINT64_MAX - i, INT64_MAX - (int64_t)i);
    rg_context_print(&text, &context);
    CHECK(text.len <= RG_CONTEXT_TEXT_MAX);
    CHECK_EQ(rg_context_parse(qf_strbuf_view(&text), &read), QF_OK);
    CHECK_EQ(read.time_ms, context.time_ms);
    CHECK_EQ(rg_clock_compare(&read.clock, &context.clock), RG_SAME);
    CHECK_EQ(rg_context_parse(qf_str_sub(qf_strbuf_view(&text), 0, text.len - 2), &read),
             QF_EINVAL);
    CHECK_EQ(rg_context_parse(QF_STR(""), &read), QF_EINVAL);
    CHECK_EQ(rg_context_parse(QF_STR("zz"), &read), QF_EINVAL);
    CHECK_EQ(rg_context_parse(QF_STR("010"), &read), QF_EINVAL);
    qf_strbuf_reset(&text);
    for (int i = 0; i < RG_CONTEXT_TEXT_MAX + 2; i++)
        qf_strbuf_putc(&text, '0');
    CHECK_EQ(rg_context_parse(qf_strbuf_view(&text), &read), QF_EINVAL);
}

TEST(documents_of_tenants_do_not_meet_and_spread_over_slots)
{
    char a[RG_DOC_NAME_TEXT + 1], b[RG_DOC_NAME_TEXT + 1];
    uint32_t first = rg_doc_slot(QF_STR("t"), QF_STR("0"), RG_SLOTS);
    bool others = false;

    rg_doc_name(QF_STR("t"), QF_STR("u/k"), a);
    rg_doc_name(QF_STR("tu"), QF_STR("/k"), b);
    CHECK_EQ(strlen(a), RG_DOC_NAME_TEXT);
    CHECK(strcmp(a, b) != 0);
    for (char c = '1'; c <= '9'; c++)
        others |= rg_doc_slot(QF_STR("t"), (struct qf_str){ &c, 1 }, RG_SLOTS) != first;
    CHECK(others);
}

TEST(a_write_that_is_handed_off_has_a_name_of_its_document_and_its_bytes)
{
    char name[RG_DOC_NAME_TEXT + 1], part[RG_DOC_PART_TEXT + 1], other[RG_DOC_PART_TEXT + 1];
    char back[RG_DOC_NAME_TEXT + 1];

    rg_doc_name(QF_STR("t"), QF_STR("k"), name);
    rg_doc_part(name, QF_STR("bytes"), part);
    rg_doc_part(name, QF_STR("others"), other);
    CHECK_EQ(strlen(part), RG_DOC_PART_TEXT);
    CHECK(strcmp(part, other) != 0);
    CHECK(rg_doc_of_part(qf_str_from(part), back));
    CHECK_STR(back, name);
    CHECK(!rg_doc_of_part(QF_STR("tenant=a/date=2026-01-31/1_2_s3of8_g1_9f.parquet"), back));
    CHECK(!rg_doc_of_part(qf_str_sub(qf_str_from(part), 0, RG_DOC_PART_TEXT - 1), back));
    part[0] = 'x';
    CHECK(!rg_doc_of_part(qf_str_from(part), back));
}
