/* test_texts.c - notes say what Prometheus says. */
#include <math.h>

#include "promql/func/texts.h"
#include "tests/lib/test.h"

static struct qf_arena *arena;
static struct pq_notes notes;
static const struct pq_pos pos = { 4, 9 };

static void reset(void)
{
    (void)qf_arena_free(arena);
    arena = qf_arena_new(SIZE_MAX);
    notes = (struct pq_notes){ .arena = arena };
}

/* The only note there is. */
static const char *said(void)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    CHECK_EQ(notes.count, 1);
    pq_note_print(&buf, &notes.items[0], QF_STR("sum(metric)"));
    notes.count = 0;
    return qf_arena_cstr(arena, qf_strbuf_view(&buf));
}

TEST(arguments_out_of_range_are_warned_of)
{
    reset();
    pq_note_quantile(&notes, pos, 0.5);
    pq_note_ratio(&notes, pos, -1);
    CHECK_EQ(notes.count, 0);
    pq_note_quantile(&notes, pos, NAN);
    CHECK_STR(said(), "PromQL warning: quantile value should be between 0 and 1, got NaN (1:5)");
    pq_note_quantile(&notes, pos, 1.01);
    CHECK_STR(said(), "PromQL warning: quantile value should be between 0 and 1, got 1.01 (1:5)");
    pq_note_ratio(&notes, pos, -1.1);
    CHECK_STR(said(), "PromQL warning: ratio value should be between -1 and 1, got -1.1, capping "
                      "to -1 (1:5)");
    arena = qf_arena_free(arena);
}

TEST(names_that_do_not_look_like_counters_are_mentioned)
{
    reset();
    pq_note_counter_name(&notes, pos, QF_STR("requests_total"));
    pq_note_counter_name(&notes, pos, QF_STR("h_bucket"));
    pq_note_counter_name(&notes, pos, QF_STR(""));
    CHECK_EQ(notes.count, 0);
    pq_note_counter_name(&notes, pos, QF_STR("requests"));
    pq_note_counter_name(&notes, pos, QF_STR("requests"));
    CHECK_STR(said(), "PromQL info: metric might not be a counter, name does not end in "
                      "_total/_sum/_count/_bucket: \"requests\" (1:5)");
    arena = qf_arena_free(arena);
}

TEST(histogram_notes_name_the_metric_if_there_is_one)
{
    const struct pq_bucket_repair repair = { true, 1, INFINITY, 10 };

    reset();
    pq_note_bad_le(&notes, pos, QF_STR("x"), QF_STR("m"));
    CHECK_STR(said(), "PromQL warning: bucket label \"le\" is missing or has a malformed value of "
                      "\"x\" for metric name \"m\" (1:5)");
    pq_note_bad_le(&notes, pos, QF_STR(""), QF_STR(""));
    CHECK_STR(said(), "PromQL warning: bucket label \"le\" is missing or has a malformed value of "
                      "\"\" for metric name \"\" (1:5)");
    pq_note_binop_layouts(&notes, pos, "-");
    CHECK_STR(said(),
              "PromQL warning: incompatible bucket layout encountered for binary operator - (1:5)");
    pq_note_mixed_classic_native(&notes, pos, QF_STR("m"));
    CHECK_STR(said(), "PromQL warning: vector contains a mix of classic and native histograms for "
                      "metric name \"m\" (1:5)");
    pq_note_monotonicity(&notes, pos, QF_STR("m"), &repair, 1, 3000000, 3000000);
    CHECK_STR(said(),
              "PromQL info: input to histogram_quantile needed to be fixed for monotonicity (see "
              "https://prometheus.io/docs/prometheus/latest/querying/functions/"
              "#histogram_quantile) for metric name \"m\", from buckets 1 to +Inf, with a max diff "
              "of 10, over 1 samples from 1970-01-01T00:50:00Z to 1970-01-01T00:50:00Z (1:5)");
    pq_note_start_overlap(&notes, pos, QF_STR("m"));
    CHECK_STR(said(), "PromQL warning: sample has start time that overlaps with previous sample "
                      "timestamp for metric \"m\" (1:5)");
    arena = qf_arena_free(arena);
}

TEST(mixtures_of_floats_and_histograms_have_their_words)
{
    reset();
    pq_note_mixed_floats(&notes, pos, QF_STR("m"));
    CHECK_STR(said(), "PromQL warning: encountered a mix of histograms and floats for metric name "
                      "\"m\" (1:5)");
    pq_note_mixed_floats_agg(&notes, pos);
    CHECK_STR(said(), "PromQL warning: encountered a mix of histograms and floats for aggregation "
                      "(1:5)");
    pq_note_histogram_ignored_agg(&notes, pos, "min");
    CHECK_STR(said(), "PromQL info: ignored histogram in min aggregation (1:5)");
    pq_note_histogram_ignored_range(&notes, pos, QF_STR("m"));
    CHECK_STR(said(), "PromQL info: ignored histograms in a range containing both floats and "
                      "histograms for metric name \"m\" (1:5)");
    pq_note_binop_types(&notes, pos, "float", "+", "histogram");
    CHECK_STR(said(), "PromQL info: incompatible sample types encountered for binary operator "
                      "\"+\": float + histogram (1:5)");
    pq_note_sort_range(&notes, pos);
    CHECK_STR(said(), "PromQL warning: sort is ineffective for range queries since results are "
                      "always ordered by labels (1:5)");
    arena = qf_arena_free(arena);
}
