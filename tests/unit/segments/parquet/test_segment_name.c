/* test_segment_name.c - what a name says is what was put into it. */
#include "base/pure/prng.h"
#include "segments/parquet/segment_name.h"
#include "tests/lib/test.h"

static const struct sg_segment_name sample = {
    .tenant = QF_STR_INIT("default"),
    .min_ts = INT64_C(1769817600000),
    .max_ts = INT64_C(1769824799999),
    .shard = 3,
    .shard_count = 8,
    .generation = UINT64_C(1769900000000000),
    .id = UINT64_C(0x9f3a),
};

/* The form is part of the file format: other programs list by it. */
TEST(a_name_has_its_documented_form)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    sg_segment_name_print(&buf, &sample);
    CHECK_STR(qf_strbuf_cstr(&buf),
              "tenant=default/date=2026-01-31/1769817600000_1769824799999_s3of8_"
              "g1769900000000000_0000000000009f3a.parquet");
}

/* Any valid fields survive, negative and extreme times included. */
TEST(names_read_back_as_the_fields_they_were_made_of)
{
    struct qf_prng prng = { 42 };

    for (int i = 0; i < 2000; i++) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
        struct sg_segment_name in = sample, out;
        int64_t a = (int64_t)qf_prng_next(&prng) >> (6 + qf_prng_below(&prng, 40));
        int64_t b = (int64_t)qf_prng_next(&prng) >> (6 + qf_prng_below(&prng, 40));

        in.min_ts = a < b ? a : b;
        in.max_ts = a < b ? b : a;
        in.shard_count = 1u << qf_prng_below(&prng, 17);
        in.shard = (uint32_t)qf_prng_below(&prng, in.shard_count);
        in.generation = qf_prng_next(&prng);
        in.id = qf_prng_next(&prng);
        in.tenant = i % 2 ? QF_STR("a-B.9_!*'()") : QF_STR("t");
        sg_segment_name_print(&buf, &in);
        CHECK_MSG(sg_segment_name_parse(qf_strbuf_view(&buf), &out), "%s", buf.data);
        CHECK(qf_str_eq(in.tenant, out.tenant));
        CHECK_EQ(out.min_ts, in.min_ts);
        CHECK_EQ(out.max_ts, in.max_ts);
        CHECK_EQ(out.shard, in.shard);
        CHECK_EQ(out.shard_count, in.shard_count);
        CHECK(out.generation == in.generation);
        CHECK(out.id == in.id);
    }
}

/* A stray file must not be taken for data, whatever it is called. */
TEST(other_files_are_not_segments)
{
    static const char *const others[] = {
        "",
        "x.parquet",
        "tenant=/date=2026-01-31/1_2_s0of1_g1_0000000000000001.parquet",
        "tenant=a b/date=2026-01-31/1_2_s0of1_g1_0000000000000001.parquet",
        "tenant=../date=2026-01-31/1_2_s0of1_g1_0000000000000001.parquet",
        "tenant=t/date=2026/1_2_s0of1_g1_0000000000000001.parquet",
        "tenant=t/date=2026-01-31/2_1_s0of1_g1_0000000000000001.parquet",
        "tenant=t/date=2026-01-31/1_2_s1of1_g1_0000000000000001.parquet",
        "tenant=t/date=2026-01-31/1_2_s0of3_g1_0000000000000001.parquet",
        "tenant=t/date=2026-01-31/1_2_s0of131072_g1_0000000000000001.parquet",
        "tenant=t/date=2026-01-31/1_2_s0of1_1_0000000000000001.parquet",
        "tenant=t/date=2026-01-31/1_2_s0of1_g1_00000000000001.parquet",
        "tenant=t/date=2026-01-31/1_2_s0of1_g1_000000000000000G.parquet",
        "tenant=t/date=2026-01-31/1_2_s0of1_g1_0000000000000001.parquet.tmp",
        "tenant=t/date=2026-01-31/99999999999999999999_2_s0of1_g1_0000000000000001.parquet",
    };
    struct sg_segment_name name;

    for (size_t i = 0; i < QF_COUNT_OF(others); i++)
        CHECK_MSG(!sg_segment_name_parse(qf_str_from(others[i]), &name), "%s", others[i]);
}

/* Every cut and every changed byte of a good name is refused or read as other valid fields. */
TEST(damaged_names_never_give_fields_out_of_range)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct sg_segment_name name;

    sg_segment_name_print(&buf, &sample);
    for (size_t i = 0; i < buf.len; i++)
        CHECK(!sg_segment_name_parse(qf_str_sub(qf_strbuf_view(&buf), 0, i), &name));
    for (size_t i = 0; i < buf.len; i++) {
        char old = buf.data[i];

        for (int c = 0; c < 256; c++) {
            buf.data[i] = (char)c;
            if (!sg_segment_name_parse(qf_strbuf_view(&buf), &name))
                continue;
            CHECK(name.min_ts <= name.max_ts);
            CHECK(name.shard < name.shard_count);
            CHECK(qf_tenant_valid(name.tenant));
        }
        buf.data[i] = old;
    }
}

/* Names come from whoever may write to the store, and their times are calculated with. */
TEST(times_beyond_all_times_are_no_segments)
{
    struct sg_segment_name name;

    CHECK(sg_segment_name_parse(
        QF_STR("tenant=t/date=2026-01-01/-288230376151711744_288230376151711744_s0of1_g1_"
               "0123456789abcdef.parquet"),
        &name));
    CHECK(!sg_segment_name_parse(
        QF_STR("tenant=t/date=2026-01-01/-288230376151711745_1_s0of1_g1_0123456789abcdef.parquet"),
        &name));
    CHECK(!sg_segment_name_parse(
        QF_STR("tenant=t/date=2026-01-01/0_9223372036854775807_s0of1_g1_0123456789abcdef.parquet"),
        &name));
}
