/* test_ahead.c - what is written ahead by several threads is what one would write. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "queryapi/encode/prom_json.h"
#include "queryapi/query/ahead.h"
#include "tests/lib/test.h"

#define SERIES 300

struct world {
    struct qf_arena *arena;
    struct pq_result_series series[SERIES];
};

/* Mostly at the same times, some with gaps, one very long, one empty. */
static struct world world_make(void)
{
    struct world world = { .arena = qf_arena_new(SIZE_MAX) };
    struct qf_prng prng = { 1 };

    for (size_t i = 0; i < SERIES; i++) {
        struct pq_result_series *s = &world.series[i];
        struct qf_label *label = QF_ARENA_NEW(world.arena, struct qf_label);
        size_t count = i == 7 ? 20000 : i == 9 ? 0 : 1 + qf_prng_below(&prng, 400);
        int64_t ms = i % 5 ? 1700000000000 : -1500 + (int64_t)i;
        int64_t *ts = QF_ARENA_ARRAY(world.arena, int64_t, count + 1);
        double *values = QF_ARENA_ARRAY(world.arena, double, count + 1);

        *label = (struct qf_label){ QF_STR("series"),
                                    qf_str_from(qf_arena_printf(world.arena, "é\"%zu", i)) };
        for (size_t k = 0; k < count; k++) {
            ts[k] = ms;
            ms += i % 3 || k % 17 ? 15000 : 30000 + (int64_t)(i % 2);
            values[k] = k % 50 ? qf_prng_unit(&prng) * (double)(k + 1)
                               : qf_double_from_bits(qf_prng_next(&prng));
        }
        *s = (struct pq_result_series){
            .labels = { label, 1 }, .ts = ts, .values = values, .count = count
        };
    }
    return world;
}

static void write_plainly(struct qf_strbuf *out, const struct pq_result_series *s, bool first)
{
    qf_strbuf_puts(out, first ? "{\"metric\":" : ",{\"metric\":");
    qf_labels_json(out, s->labels);
    for (size_t k = 0; k < s->count; k++) {
        qf_strbuf_puts(out, k ? "," : ",\"values\":[");
        qa_json_point(out, s->ts[k], s->values[k], NULL);
    }
    qf_strbuf_puts(out, s->count ? "]}" : "}");
}

/* All windows one after another, taken in pieces of @piece bytes. */
static void write_ahead(struct qf_strbuf *out, const struct world *world, struct qf_pool *pool,
                        size_t piece)
{
    size_t at = 0;

    while (at < SERIES) {
        size_t end = 0;
        struct qa_ahead *ahead = qa_ahead_new(world->series, at, SERIES, pool, &end);
        struct qf_str text;

        CHECK(end > at);
        while ((text = qa_ahead_text(ahead, piece)).len) {
            CHECK(text.len <= piece);
            qf_strbuf_str(out, text);
            qa_ahead_take(ahead, text.len);
        }
        (void)qa_ahead_free(ahead);
        at = end;
    }
}

TEST(what_is_written_ahead_is_the_same_however_many_help)
{
    struct world world = world_make();
    struct qf_strbuf want = QF_STRBUF_INIT;

    for (size_t i = 0; i < SERIES; i++)
        write_plainly(&want, &world.series[i], i == 0);
    CHECK(want.len > 2 * QA_AHEAD_WINDOW_BYTES);
    for (size_t threads = 0; threads <= 4; threads++) {
        struct qf_pool *pool = threads ? qf_pool_new("help", threads, 4) : NULL;
        struct qf_strbuf got = QF_STRBUF_INIT;

        write_ahead(&got, &world, pool, 1000 + threads * 50000);
        CHECK_EQ(got.len, want.len);
        CHECK(memcmp(got.data, want.data, want.len) == 0);
        qf_strbuf_done(&got);
        (void)qf_pool_free(pool);
    }
    qf_strbuf_done(&want);
    (void)qf_arena_free(world.arena);
}

/* A client that leaves: helpers that come late find nothing to do and nothing to hold on to. */
TEST(a_window_may_be_given_up_while_helpers_are_on_their_way)
{
    struct world world = world_make();
    struct qf_pool *pool = qf_pool_new("help", 2, 64);

    for (int i = 0; i < 20; i++) {
        size_t end;

        (void)qa_ahead_free(qa_ahead_new(world.series, 0, SERIES, pool, &end));
    }
    (void)qf_pool_free(pool);
    (void)qf_arena_free(world.arena);
}
