/* test_segment_meta.c - what decides the shard of a series. */
#include "segments/parquet/segment.h"
#include "tests/lib/test.h"

/* Series that collide once the name is dropped must meet in one shard. */
TEST(the_metric_name_does_not_decide_the_shard)
{
    struct qf_label a[] = { { QF_STR_INIT("__name__"), QF_STR_INIT("x") },
                            { QF_STR_INIT("job"), QF_STR_INIT("api") } };
    struct qf_label b[] = { { QF_STR_INIT("__name__"), QF_STR_INIT("y") },
                            { QF_STR_INIT("job"), QF_STR_INIT("api") } };

    CHECK_EQ(sg_shard_of((struct qf_labels){ a, 2 }, 1024),
             sg_shard_of((struct qf_labels){ b, 2 }, 1024));
}

/* Doubling the count splits a shard in two and moves nothing else. */
TEST(a_shard_of_twice_as_many_is_the_same_modulo_half)
{
    for (int i = 0; i < 100; i++) {
        char text[3] = { (char)('a' + i / 10), (char)('a' + i % 10), 0 };
        struct qf_label item = { QF_STR("job"), qf_str_from(text) };
        struct qf_labels labels = { &item, 1 };

        CHECK_EQ(sg_shard_of(labels, 64) % 32, sg_shard_of(labels, 32));
    }
    CHECK(sg_shard_count_valid(1));
    CHECK(!sg_shard_count_valid(0));
    CHECK(!sg_shard_count_valid(12));
    CHECK(!sg_shard_count_valid(1 << 17));
}
