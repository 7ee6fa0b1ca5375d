/* test_spec_codec.c - leaves survive the wire, and bytes that are no leaf do not get through. */
#include "promql/partial/partial.h"
#include "tests/unit/promql/leaf/spec_plan.h"

TEST(every_kind_of_leaf_reads_back_as_it_was)
{
    for (size_t i = 0; i < QF_COUNT_OF(spec_queries); i++) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        struct pq_plan *p = spec_plan(arena, spec_queries[i]);

        for (size_t l = 0; l < p->leaf_count; l++) {
            QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
            QF_CLEANUP(qf_strbuf_done) struct qf_strbuf again = QF_STRBUF_INIT;
            struct pq_leaf *back;
            struct qf_err err = { 0 };

            pq_leaf_encode(p->leaves[l], &bytes);
            CHECK_OK(pq_leaf_decode(arena, qf_strbuf_view(&bytes), &back, &err), &err);
            CHECK_MSG(pq_leaf_equal(p->leaves[l], back), "%s", spec_queries[i]);
            CHECK_EQ(back->id, p->leaves[l]->id);
            CHECK_EQ(back->stages[0].pos.end, p->leaves[l]->stages[0].pos.end);
            pq_leaf_encode(back, &again);
            CHECK(qf_str_eq(qf_strbuf_view(&bytes), qf_strbuf_view(&again)));
        }
    }
}

/* Under the sanitizers: whatever is cut or flipped, nothing is read or written where it must not.
 */
TEST(cut_bytes_never_crash_and_changed_ones_never_run_wild)
{
    for (size_t i = 0; i < QF_COUNT_OF(spec_queries); i++) {
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
        struct pq_leaf *back;

        pq_leaf_encode(spec_plan(arena, spec_queries[i])->leaves[0], &bytes);
        for (size_t len = 0; len < bytes.len; len++)
            (void)!pq_leaf_decode(arena, (struct qf_str){ bytes.data, len }, &back, NULL);
        for (size_t at = 0; at < bytes.len; at++)
            for (int bit = 0; bit < 8; bit++) {
                bytes.data[at] = (char)(bytes.data[at] ^ (1 << bit));
                (void)!pq_leaf_decode(arena, qf_strbuf_view(&bytes), &back, NULL);
                bytes.data[at] = (char)(bytes.data[at] ^ (1 << bit));
            }
    }
}

static void check_refused(struct pq_leaf *leaf)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct pq_leaf *back;

    pq_leaf_encode(leaf, &bytes);
    CHECK_EQ(pq_leaf_decode(arena, qf_strbuf_view(&bytes), &back, NULL), QF_ECORRUPT);
}

TEST(leaves_that_cannot_be_run_are_refused)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_leaf *leaf = spec_plan(arena, "rate(up[5m])")->leaves[0], broken;
    struct pq_stage stage = leaf->stages[0];

    broken = *leaf;
    broken.stages = &stage;
    stage.grid.count = 0;
    check_refused(&broken);
    stage.grid.count = PQ_GRID_MAX + 1;
    check_refused(&broken);
    stage = leaf->stages[0];
    stage.grid.step_ms = INT64_MAX / 2;
    check_refused(&broken);
    stage = leaf->stages[0];
    stage.function = PQ_FN_ABS; /* no range function */
    check_refused(&broken);
    stage = leaf->stages[0];
    stage.param_count = 1; /* rate takes none */
    check_refused(&broken);
    stage = leaf->stages[0];
    broken.select.min_ts = INT64_MIN; /* what is selected is calculated with */
    check_refused(&broken);
    broken.select = leaf->select;
    broken.select.max_ts = INT64_MAX;
    check_refused(&broken);
    broken.select = leaf->select;
    broken.kind = &pq_leaf_samples;
    check_refused(&broken);
    broken.kind = pq_aggregation_sum.kind;
    broken.agg = &pq_aggregation_max;
    check_refused(&broken);
}

TEST(another_version_is_told_apart_from_garbage)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qf_err err = { 0 };
    struct pq_leaf *back;

    /* Version 1 had a number where version 2 has the name of a kind. */
    CHECK_EQ(pq_leaf_decode(arena, QF_STR("\x08\x01\x18\x02"), &back, &err), QF_EPROTO);
    CHECK_STR(err.msg, "leaf spec of version 1, this program reads 2");
    CHECK_EQ(pq_leaf_decode(arena, QF_STR("\x08\x03"), &back, NULL), QF_EPROTO);
    CHECK_EQ(pq_leaf_decode(arena, QF_STR("\x08\x02\xff"), &back, NULL), QF_ECORRUPT);
    CHECK_EQ(pq_leaf_decode(arena, QF_STR("\x08\x02\x1a\x03mud"), &back, NULL), QF_ECORRUPT);
}

/* The bytes are part of the interface: older workers must read them. */
TEST(the_bytes_of_a_leaf_are_stable)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf hex = QF_STRBUF_INIT;

    pq_leaf_encode(spec_plan(arena, "sum by (a) (up)")->leaves[0], &bytes);
    for (size_t i = 0; i < bytes.len; i++)
        qf_strbuf_printf(&hex, "%02x", (unsigned char)bytes.data[i]);
    CHECK_STR(qf_strbuf_cstr(&hex), "08021a0373756d220e12085f5f6e616d655f5f1a02757028c2ddbd043080b6"
                                    "dc054a19100c180e220b0880ade20410"
                                    "d00f18e90730c0cf2438c0cf24520373756d5a016180010c88010e");
}
