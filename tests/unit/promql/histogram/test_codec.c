/* test_codec.c - native histograms as bytes: both forms, and that nothing else is read. */
#include "promql/histogram/codec.h"

#include <math.h>

#include "tests/lib/test.h"
#include "tests/unit/promql/histogram/literals.h"

#define ARENA(name) QF_CLEANUP(qf_arena_freep) struct qf_arena *name = qf_arena_new(SIZE_MAX)

static const double counts[] = { 0, 1, 127, 128, 16383, 16384, 9007199254740992.0 };
static const struct pq_span spans[] = { { -3, 4 }, { 2, 3 } };
static const struct pq_histogram wholes = { .reset_hint = PQ_RESET_NO,
                                            .schema = 3,
                                            .zero_threshold = 0.001,
                                            .zero_count = 5,
                                            .count = 300,
                                            .sum = -1.5,
                                            .positive_spans = spans,
                                            .positive_span_count = 2,
                                            .positive_buckets = counts,
                                            .positive_bucket_count = 7 };

static bool same(const struct pq_histogram *a, const struct pq_histogram *b)
{
    bool same = a->reset_hint == b->reset_hint && a->schema == b->schema &&
                a->zero_threshold == b->zero_threshold && a->zero_count == b->zero_count &&
                a->count == b->count && a->sum == b->sum &&
                a->positive_span_count == b->positive_span_count &&
                a->positive_bucket_count == b->positive_bucket_count;

    for (size_t i = 0; same && i < a->positive_span_count; i++)
        same = a->positive_spans[i].offset == b->positive_spans[i].offset &&
               a->positive_spans[i].length == b->positive_spans[i].length;
    for (size_t i = 0; same && i < a->positive_bucket_count; i++)
        same = a->positive_buckets[i] == b->positive_buckets[i];
    return same;
}

TEST(whole_counts_take_few_bytes_and_come_back)
{
    ARENA(arena);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    const struct pq_histogram *back;
    struct qf_err err = { 0 };

    pq_histogram_encode(&bytes, &wholes);
    CHECK_EQ(bytes.data[0], 4 + PQ_RESET_NO);
    CHECK_MSG(bytes.len < 50, "%zu bytes", bytes.len);
    CHECK_OK(pq_histogram_decode(arena, qf_strbuf_view(&bytes), &back, &err), &err);
    CHECK(same(&wholes, back));
    CHECK(pq_histogram_encodes_to(back, qf_strbuf_view(&bytes)));
}

/* What is negative, a fraction, not finite or too large for a whole number is written as doubles. */
TEST(other_counts_are_doubles)
{
    static const double others[] = { 0.5, -1, -0.0, 9007199254740994.0, INFINITY, NAN };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        ARENA(arena);
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
        struct pq_histogram h = wholes;
        const struct pq_histogram *back;
        struct qf_err err = { 0 };

        h.zero_count = others[i];
        pq_histogram_encode(&bytes, &h);
        CHECK_EQ(bytes.data[0], PQ_RESET_NO);
        CHECK_OK(pq_histogram_decode(arena, qf_strbuf_view(&bytes), &back, &err), &err);
        CHECK_BITS(back->zero_count, others[i]);
        CHECK(pq_histogram_encodes_to(back, qf_strbuf_view(&bytes)));
    }
}

/* Bytes of segments that were written before there were two forms. */
TEST(doubles_of_whole_counts_are_read_as_before)
{
    static const unsigned char old[] = {
        2, 0, 6,                        /* not reset, schema 3 */
        0, 0, 0, 0, 0, 0, 0,   0,       /* zero threshold */
        0, 0, 0, 0, 0, 0, 0,   0,       /* zero count */
        0, 0, 0, 0, 0, 0, 8,   64,      /* count 3 */
        0, 0, 0, 0, 0, 0, 240, 63,      /* sum 1 */
        1, 0, 2, 0,                     /* positive span, no negative one */
        2, 0, 0, 0, 0, 0, 0,   240, 63, /* 1 */
        0, 0, 0, 0, 0, 0, 0,   64,  0,  0
    }; /* 2; no negative bucket, no bounds */
    struct qf_str bytes = { (const char *)old, sizeof(old) };
    ARENA(arena);
    const struct pq_histogram *h;
    struct qf_err err = { 0 };

    CHECK_OK(pq_histogram_decode(arena, bytes, &h, &err), &err);
    CHECK_BITS(h->count, 3.0);
    CHECK_EQ(h->positive_bucket_count, 2);
    CHECK_BITS(h->positive_buckets[1], 2.0);
    CHECK(pq_histogram_encodes_to(h, bytes));
}

/* Every cut is noticed, and every changed byte is another histogram or none. */
TEST(damaged_bytes_are_refused_or_read_as_they_are)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;

    pq_histogram_encode(&bytes, &wholes);
    for (size_t i = 0; i < bytes.len; i++) {
        ARENA(arena);
        const struct pq_histogram *back;

        CHECK_EQ(pq_histogram_decode(arena, (struct qf_str){ bytes.data, i }, &back, NULL),
                 QF_ECORRUPT);
        for (int bit = 0; bit < 8; bit++) {
            bytes.data[i] = (char)(bytes.data[i] ^ 1 << bit);
            (void)!pq_histogram_decode(arena, qf_strbuf_view(&bytes), &back, NULL);
            bytes.data[i] = (char)(bytes.data[i] ^ 1 << bit);
        }
    }
}
