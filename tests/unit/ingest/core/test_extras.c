/* test_extras.c - exemplars and metadata as bytes. */
#include "ingest/core/extras.h"

#include "base/pure/prng.h"
#include "tests/lib/test.h"

static void build(struct qf_strbuf *buf)
{
    struct qf_label series[] = { { QF_STR_INIT("__name__"), QF_STR_INIT("up") },
                                 { QF_STR_INIT("job"), QF_STR_INIT("a") } };
    struct qf_label own[] = { { QF_STR_INIT("trace_id"), QF_STR_INIT("17") } };
    const struct in_exemplar exemplar = { .labels = own, .label_count = 1, .value = 0.5, .ts = -7 };
    const struct in_metadata metadata = { QF_STR("up"), QF_METRIC_GAUGE, QF_STR("Is it?"),
                                          QF_STR("") };

    in_extra_put_exemplar(buf, (struct qf_labels){ series, 2 }, &exemplar);
    in_extra_put_metadata(buf, &metadata);
}

TEST(extras_come_out_as_they_went_in)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 20);
    struct in_extra extra;
    struct qf_str rest;

    build(&buf);
    rest = qf_strbuf_view(&buf);
    CHECK(in_extras_valid(rest, arena));
    CHECK(in_extra_next(&rest, &extra));
    CHECK_EQ(extra.kind, IN_EXTRA_EXEMPLAR);
    CHECK_EQ(extra.ts, -7);
    CHECK_BITS(extra.value, 0.5);
    CHECK(in_extra_next(&rest, &extra));
    CHECK_EQ(extra.kind, IN_EXTRA_METADATA);
    CHECK(qf_str_is(extra.metadata.help, "Is it?"));
    CHECK_EQ(extra.metadata.type, QF_METRIC_GAUGE);
    CHECK(!in_extra_next(&rest, &extra));
    CHECK_EQ(rest.len, 0);
}

/* Damaged bytes are noticed or say something else; they never read beyond their end. */
TEST(damaged_extras_do_no_harm)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(1 << 20);
    struct qf_prng prng = { 1 };

    build(&buf);
    for (size_t cut = 1; cut < buf.len; cut++) {
        struct qf_str part = qf_str_sub(qf_strbuf_view(&buf), 0, cut);
        struct qf_str rest = part;
        struct in_extra extra;
        bool whole = in_extra_next(&rest, &extra) && !rest.len; /* where the first one ends */

        CHECK_EQ(in_extras_valid(part, arena), whole);
    }
    for (int i = 0; i < 20000; i++) {
        size_t at = qf_prng_next(&prng) % buf.len;
        char was = buf.data[at];

        buf.data[at] = (char)qf_prng_next(&prng);
        (void)in_extras_valid(qf_strbuf_view(&buf), arena);
        buf.data[at] = was;
    }
}
