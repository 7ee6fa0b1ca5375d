/* test_keeper.c - what is said to keepers and what they say, as text and bytes. */
#include "ring/wire/keeper.h"

#include <stdlib.h>

#include "ring/core/manifest.h"
#include "tests/lib/test.h"

#define BYTES QF_CLEANUP(qf_strbuf_done) struct qf_strbuf

TEST(names_of_blobs_are_paths_that_lead_nowhere_else)
{
    char longest[RG_BLOB_NAME_MAX + 2];

    CHECK(rg_blob_name_valid(QF_STR("tenant=a/date=2026-01-31/1_2_s3of8_g1_9f.parquet")));
    CHECK(rg_blob_name_valid(QF_STR("a")));
    CHECK(!rg_blob_name_valid(QF_STR("")));
    CHECK(!rg_blob_name_valid(QF_STR("/a")));
    CHECK(!rg_blob_name_valid(QF_STR("a/")));
    CHECK(!rg_blob_name_valid(QF_STR("a//b")));
    CHECK(!rg_blob_name_valid(QF_STR("a/../b")));
    CHECK(!rg_blob_name_valid(QF_STR("a/.b")));
    CHECK(!rg_blob_name_valid(QF_STR("a~b")));
    CHECK(!rg_blob_name_valid(QF_STR("a\\b")));
    CHECK(!rg_blob_name_valid(QF_STR("a\nb")));
    CHECK(!rg_blob_name_valid(QF_STR("a\xff")));
    memset(longest, 'a', sizeof(longest));
    longest[100] = '/';
    CHECK(rg_blob_name_valid((struct qf_str){ longest, RG_BLOB_NAME_MAX }));
    CHECK(!rg_blob_name_valid((struct qf_str){ longest, RG_BLOB_NAME_MAX + 1 }));
    longest[100] = 'a';
    CHECK(!rg_blob_name_valid((struct qf_str){ longest, 201 }));
}

static uint32_t slot_of(const char *name)
{
    return rg_blob_slot(qf_str_from(name), RG_PLACEMENTS, RG_SLOTS);
}

TEST(all_blobs_of_a_shard_lie_in_its_slot)
{
    uint32_t slot = rg_slot_of(QF_STR("team-a"), 3, RG_PLACEMENTS);

    CHECK_EQ(slot_of("tenant=team-a/date=2026-01-31/1_2_s3of8_g1_9f.parquet"), slot);
    CHECK_EQ(slot_of("tenant=team-a/date=2027-01-31/7_9_s67of128_g5_00.parquet"), slot);
    slot = rg_slot_of(QF_STR("team-a"), 0, RG_PLACEMENTS);
    CHECK_EQ(slot_of("annex/tenant=team-a/exemplars/date=2026-01-31/1_2_9f.annex"), slot);
    CHECK_EQ(slot_of("_below/tenant=team-a"), slot);
    CHECK_EQ(slot_of("tenant=team-a/_s9/x"), slot); /* a folder says no shard */
    slot = rg_slot_of(QF_STR(""), 0, RG_PLACEMENTS);
    CHECK_EQ(slot_of("xtenant=team-a/y"), slot);
    CHECK(rg_blob_slot(QF_STR("tenant=team-a/y"), RG_PLACEMENTS, 8) < 8);
}

TEST(a_checksum_is_32_digits)
{
    struct rg_sum sum = { { 0 } }, read = { { 0 } };
    char text[RG_SUM_TEXT + 1];

    for (size_t i = 0; i < RG_SUM_BYTES; i++)
        sum.bytes[i] = (uint8_t)(17 * i + 3);
    rg_sum_print(&sum, text);
    CHECK(rg_sum_parse(qf_str_from(text), &read));
    CHECK(memcmp(&sum, &read, sizeof(sum)) == 0);
    text[5] = 'G';
    CHECK(!rg_sum_parse(qf_str_from(text), &read));
    CHECK(!rg_sum_parse(QF_STR("00"), &read));
}

TEST(a_query_escapes_what_a_name_may_have)
{
    BYTES buf = QF_STRBUF_INIT;
    struct rg_keep_query query = { .name = QF_STR("tenant=a&b/c d"), .slot = 7, .epoch = 12 };

    rg_keep_query_print(&buf, &query);
    CHECK_STR(qf_strbuf_cstr(&buf), "?slot=7&epoch=12&name=tenant%3Da%26b/c%20d");
    qf_strbuf_reset(&buf);
    query = (struct rg_keep_query){ .upload = true, .size = 5, .from = 1, .upload_id = 0xab };
    rg_keep_query_print(&buf, &query);
    CHECK_STR(qf_strbuf_cstr(&buf), "?slot=0&epoch=0&size=5&from=1&upload=00000000000000ab"
                                    "&sum=00000000000000000000000000000000");
}

TEST(epochs_of_all_slots_are_read_back)
{
    BYTES buf = QF_STRBUF_INIT;
    uint64_t epochs[RG_SLOTS] = { 0 }, read[RG_SLOTS];
    uint32_t count = 0;

    for (uint32_t i = 0; i < RG_SLOTS; i++)
        epochs[i] = i * UINT64_C(1000000007);
    rg_told_encode(&buf, epochs, RG_SLOTS);
    CHECK_EQ(rg_told_decode(qf_strbuf_view(&buf), read, &count), QF_OK);
    CHECK_EQ(count, RG_SLOTS);
    CHECK(memcmp(epochs, read, sizeof(read)) == 0);
    buf.len--;
    CHECK_EQ(rg_told_decode(qf_strbuf_view(&buf), read, &count), QF_ECORRUPT);
    CHECK_EQ(rg_told_decode(QF_STR(""), read, &count), QF_ECORRUPT);
}

TEST(names_and_where_to_fetch_them_are_read_back)
{
    BYTES buf = QF_STRBUF_INIT;
    struct qf_str items[] = { QF_STR_INIT("a/b"), QF_STR_INIT("c") };
    struct rg_names names = { .names = items, .count = 2, .source_count = 1 }, read;

    names.sources[0] = QF_STR("http://127.0.0.1:1");
    rg_names_encode(&buf, &names);
    CHECK_EQ(rg_names_decode(qf_strbuf_view(&buf), &read), QF_OK);
    CHECK_EQ(read.count, 2);
    CHECK(qf_str_is(read.names[1], "c"));
    CHECK(qf_str_is(read.sources[0], "http://127.0.0.1:1"));
    rg_names_done(&read);
    qf_strbuf_reset(&buf);
    items[1] = QF_STR("../c");
    rg_names_encode(&buf, &names);
    CHECK_EQ(rg_names_decode(qf_strbuf_view(&buf), &read), QF_ECORRUPT);
}

TEST(what_is_missing_is_read_back)
{
    BYTES buf = QF_STRBUF_INIT;
    uint32_t missing[] = { 1, 7 };
    struct rg_held held = {
        .incarnation = 9, .blobs = 3, .bytes = 1000, .missing = missing, .missing_count = 2
    };
    struct rg_held read;

    rg_held_encode(&buf, &held);
    CHECK_EQ(rg_held_decode(qf_strbuf_view(&buf), &read), QF_OK);
    CHECK_EQ(read.incarnation, 9);
    CHECK_EQ(read.bytes, 1000);
    CHECK_EQ(read.missing_count, 2);
    CHECK_EQ(read.missing[1], 7);
    rg_held_done(&read);
    missing[0] = 7; /* twice the same */
    qf_strbuf_reset(&buf);
    rg_held_encode(&buf, &held);
    CHECK_EQ(rg_held_decode(qf_strbuf_view(&buf), &read), QF_ECORRUPT);
}

TEST(digests_of_slots_are_read_back_and_found_by_slot)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct rg_digest items[] = { { .slot = 0, .known = true, .sum = { { 1, 2 } } },
                                 { .slot = 7 },
                                 { .slot = RG_SLOTS - 1, .known = true, .sum = { { 9 } } } };
    struct rg_digests back;

    rg_digests_encode(&buf, &(struct rg_digests){ items, 3 });
    CHECK_EQ(rg_digests_decode(qf_strbuf_view(&buf), &back), QF_OK);
    CHECK_EQ(back.count, 3);
    CHECK(rg_digests_of(&back, 0)->known && rg_digests_of(&back, 0)->sum.bytes[1] == 2);
    CHECK(!rg_digests_of(&back, 7)->known);
    CHECK_EQ(rg_digests_of(&back, RG_SLOTS - 1)->sum.bytes[0], 9);
    CHECK(!rg_digests_of(&back, 8) && !rg_digests_of(&back, 1));
    rg_digests_done(&back);
    for (size_t len = 0; len < buf.len; len++)
        CHECK_EQ(rg_digests_decode(qf_str_sub(qf_strbuf_view(&buf), 0, len), &back), QF_ECORRUPT);
    items[1].slot = 0; /* out of order */
    qf_strbuf_reset(&buf);
    rg_digests_encode(&buf, &(struct rg_digests){ items, 3 });
    CHECK_EQ(rg_digests_decode(qf_strbuf_view(&buf), &back), QF_ECORRUPT);
    qf_strbuf_reset(&buf);
    rg_digests_encode(&buf, &(struct rg_digests){ NULL, 0 });
    CHECK_EQ(rg_digests_decode(qf_strbuf_view(&buf), &back), QF_OK);
    CHECK(!rg_digests_of(&back, 0));
    rg_digests_done(&back);
}

TEST(documents_are_read_back_in_the_order_of_their_names)
{
    BYTES buf = QF_STRBUF_INIT;
    struct rg_doc items[] = { { QF_STR_INIT("a"), QF_STR_INIT("\0x") },
                              { QF_STR_INIT("b"), QF_STR_INIT("") } };
    struct rg_docs docs = { .items = items, .count = 2, .more = true }, read;

    rg_docs_encode(&buf, &docs);
    CHECK_EQ(rg_docs_decode(qf_strbuf_view(&buf), &read), QF_OK);
    CHECK_EQ(read.count, 2);
    CHECK(read.more);
    CHECK_EQ(read.items[0].bytes.len, 2);
    rg_docs_done(&read);
    qf_strbuf_reset(&buf);
    items[0].name = QF_STR("c");
    rg_docs_encode(&buf, &docs);
    CHECK_EQ(rg_docs_decode(qf_strbuf_view(&buf), &read), QF_ECORRUPT);
}
