/* test_plan.c - which files become fewer: rule by rule. Times are in seconds here. */
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

#include "base/pure/strbuf.h"
#include "segments/plan/plan.h"

#define H 3600
static const int64_t windows[] = { 2 * H, 24 * H };

static struct sg_plan_options standard(void)
{
    return (struct sg_plan_options){ .windows_ms = windows,
                                     .window_count = 2,
                                     .now_ms = 1000 * 24 * H,
                                     .below = 1000,
                                     .file_bytes = 1000,
                                     .memory_bytes = UINT64_C(256) << 20,
                                     .inputs_max = 64 };
}

static struct sg_plan_file file(int64_t min_ts, int64_t max_ts, uint64_t generation)
{
    return (struct sg_plan_file){ .min_ts = min_ts,
                                  .max_ts = max_ts,
                                  .shard_count = 1,
                                  .generation = generation,
                                  .size = 10,
                                  .replaced_by = SG_PLAN_NONE };
}

/* "window: inputs (dead); ..." */
static const char *plan_text(const struct sg_plan_options *options,
                             const struct sg_plan_file *files, size_t count)
{
    static char text[2000];
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct sg_plan plan;
    struct qf_err err = { 0 };

    CHECK_OK(sg_plan_make(options, files, count, arena, &plan, &err), &err);
    for (size_t j = 0; j < plan.job_count; j++) {
        const struct sg_plan_job *job = &plan.jobs[j];

        qf_strbuf_printf(&buf, "%s%dh g%d:", j ? "; " : "", (int)(job->window_ms / H),
                         (int)job->generation);
        for (size_t i = 0; i < job->input_count; i++)
            qf_strbuf_printf(&buf, " %zu", job->inputs[i]);
        for (size_t i = 0; i < job->dead_count; i++)
            qf_strbuf_printf(&buf, " (%zu)", job->dead[i]);
    }
    (void)snprintf(text, sizeof(text), "%s", qf_strbuf_cstr(&buf));
    return text;
}

TEST(pieces_of_a_window_that_is_over_become_one)
{
    struct sg_plan_options options = standard();
    struct sg_plan_file files[] = { file(0, 299, 1), file(300, 599, 2), file(600, 899, 3) };

    options.now_ms = 2 * H; /* the day is not over */
    CHECK_STR(plan_text(&options, files, 3), "2h g3: 0 1 2");
    options.now_ms = 2 * H - 1;
    CHECK_STR(plan_text(&options, files, 3), "");
    options.now_ms = 2 * H + 59;
    options.settle_ms = 60;
    CHECK_STR(plan_text(&options, files, 3), "");
}

TEST(a_day_that_is_over_becomes_one_file_per_shard)
{
    struct sg_plan_options options = standard();
    struct sg_plan_file files[] = { file(0, 7199, 1), file(7200, 9000, 2), file(0, 7199, 1),
                                    file(7200, 9000, 2), file(24 * H, 25 * H, 9) };

    files[0].shard_count = files[1].shard_count = files[2].shard_count = files[3].shard_count = 2;
    files[2].shard = files[3].shard = 1;
    CHECK_STR(plan_text(&options, files, 5), "24h g2: 0 1; 24h g2: 2 3");
}

TEST(what_is_one_file_already_is_left_alone)
{
    struct sg_plan_options options = standard();
    struct sg_plan_file files[] = { file(0, 24 * H - 1, 5) };

    CHECK_STR(plan_text(&options, files, 1), "");
    files[0].outdated = true;
    CHECK_STR(plan_text(&options, files, 1), "24h g5: 0");
}

/* A file that may still get an older neighbour is not taken; nor is anything newer. */
TEST(generations_at_or_above_the_bound_are_not_taken)
{
    struct sg_plan_options options = standard();
    struct sg_plan_file files[] = { file(0, 10, 1), file(0, 10, 2), file(0, 10, 3),
                                    file(0, 10, 4) };

    options.below = 3;
    CHECK_STR(plan_text(&options, files, 4), "24h g2: 0 1");
    options.below = 2;
    CHECK_STR(plan_text(&options, files, 4), "");
}

TEST(the_bound_is_below_everything_that_may_still_come)
{
    uint64_t unsealed[] = { 70, 60 }, imports[] = { 80, 65 };

    CHECK_EQ(sg_plan_below(90, NULL, 0, NULL, 0), 90);
    CHECK_EQ(sg_plan_below(90, unsealed, 2, imports, 2), 60);
    CHECK_EQ(sg_plan_below(90, NULL, 0, imports, 2), 65);
    CHECK_EQ(sg_plan_below(50, unsealed, 2, imports, 2), 50);
}

TEST(a_damaged_file_ends_a_run)
{
    struct sg_plan_options options = standard();
    struct sg_plan_file files[] = { file(0, 10, 1), file(5, 15, 2), file(0, 10, 3), file(0, 10, 4),
                                    file(0, 10, 5) };

    files[2].damaged = true;
    CHECK_STR(plan_text(&options, files, 5), "24h g2: 0 1; 24h g5: 3 4");
    /* Of the same generation: nobody can tell which of the two is newer than the output. */
    files[3].generation = 3;
    CHECK_STR(plan_text(&options, files, 5), "24h g2: 0 1");
}

TEST(files_of_another_number_of_shards_end_a_run_if_they_share_series)
{
    struct sg_plan_options options = standard();
    struct sg_plan_file files[] = { file(0, 10, 1), file(0, 10, 2), file(0, 10, 3) };

    files[0].shard_count = files[2].shard_count = 4;
    files[1].shard_count = 2;
    CHECK_STR(plan_text(&options, files, 3), "");
    files[1].shard = 1;
    CHECK_STR(plan_text(&options, files, 3), "24h g3: 0 2");
}

TEST(a_file_over_the_end_of_a_short_window_waits_for_the_long_one)
{
    struct sg_plan_options options = standard();
    struct sg_plan_file files[] = { file(0, 10, 1), file(2 * H - 5, 2 * H + 5, 2), file(0, 10, 3),
                                    file(0, 10, 4) };

    options.now_ms = 5 * H;
    CHECK_STR(plan_text(&options, files, 4), "2h g4: 2 3");
    options.now_ms = 24 * H;
    CHECK_STR(plan_text(&options, files, 4), "24h g4: 0 1 2 3");
}

TEST(a_file_over_the_end_of_the_longest_window_is_cut)
{
    struct sg_plan_options options = standard();
    struct sg_plan_file files[] = { file(0, 10, 1), file(5, 25 * H, 2), file(0, 10, 3) };

    CHECK_STR(plan_text(&options, files, 3), "24h g2: 1");
    files[0].generation = 2;
    CHECK_STR(plan_text(&options, files, 3), "");
}

TEST(files_that_are_replaced_do_not_count_and_are_named_again)
{
    struct sg_plan_options options = standard();
    struct sg_plan_file files[] = { file(0, 10, 1), file(0, 10, 2), file(0, 10, 2),
                                    file(0, 10, 3) };

    files[0].replaced_by = files[1].replaced_by = 2;
    CHECK_STR(plan_text(&options, files, 3), "");
    CHECK_STR(plan_text(&options, files, 4), "24h g3: 2 3 (0) (1)");
}

TEST(outputs_are_capped_and_full_files_stay)
{
    struct sg_plan_options options = standard();
    struct sg_plan_file files[] = { file(0, 10, 1), file(0, 10, 2), file(0, 10, 3),
                                    file(0, 10, 4) };

    files[0].size = 1000;
    CHECK_STR(plan_text(&options, files, 2), "");
    CHECK_STR(plan_text(&options, files, 4), "24h g4: 1 2 3");
    files[0].size = files[1].size = 600;
    CHECK_STR(plan_text(&options, files, 2), "");
}

TEST(more_files_than_one_job_takes_are_several_jobs)
{
    struct sg_plan_options options = standard();
    struct sg_plan_file files[6];

    options.inputs_max = 3;
    for (int i = 0; i < 6; i++)
        files[i] = file(i < 3 ? 0 : 2 * H, i < 3 ? 10 : 2 * H + 10, (uint64_t)i + 1);
    CHECK_STR(plan_text(&options, files, 6), "2h g3: 0 1 2; 2h g6: 3 4 5");
    /* One file in each of the short windows: the long one takes as many as it may. */
    for (int i = 0; i < 6; i++)
        files[i] = file(i * 2 * H, i * 2 * H + 10, (uint64_t)i + 1);
    CHECK_STR(plan_text(&options, files, 6), "24h g3: 0 1 2; 24h g6: 3 4 5");
    /* Those of one generation go together, even if they are one more. */
    for (int i = 0; i < 4; i++)
        files[i] = file(i < 2 ? 0 : 2 * H, i < 2 ? 10 : 2 * H + 10, 1);
    CHECK_STR(plan_text(&options, files, 4), "2h g1: 0 1; 2h g1: 2 3");
    for (int i = 0; i < 5; i++)
        files[i] = file(0, 10, i < 4 ? 1 : 2);
    CHECK_STR(plan_text(&options, files, 5), "2h g1: 0 1 2 3");
}

TEST(inputs_are_deleted_later_by_the_stores_clock)
{
    CHECK(!sg_plan_deletable(1000, 1999, 1000));
    CHECK(sg_plan_deletable(1000, 2000, 1000));
    CHECK(!sg_plan_deletable(0, 2000, 1000)); /* the store does not tell */
    CHECK(!sg_plan_deletable(5000, 2000, 1000));
}

TEST(options_that_cannot_be_are_refused)
{
    struct sg_plan_options options = standard();
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    const int64_t odd[] = { 7, 10 };
    struct sg_plan plan;

    options.windows_ms = odd;
    CHECK_EQ(sg_plan_make(&options, NULL, 0, arena, &plan, NULL), QF_EINVAL);
}

/* Ranges of two logs have different series; an import has all of them. */
TEST(a_job_takes_files_of_one_log_and_stops_at_files_of_others_that_may_have_its_series)
{
    struct sg_plan_options options = standard();
    struct sg_plan_file files[] = { file(0, 299, 1),   file(300, 599, 2), file(600, 899, 3),
                                    file(900, 999, 4), file(0, 999, 5),   file(0, 999, 6),
                                    file(0, 999, 7),   file(0, 999, 8) };
    uint32_t sources[] = { 1, 3, 1, 3, 4, 4, 1, 3 };

    options.now_ms = 2 * H;
    for (size_t i = 0; i < 8; i++) {
        files[i].source = sources[i];
        files[i].apart = sources[i] % 2 == 1;
    }
    CHECK_STR(plan_text(&options, files, 8), "2h g3: 0 2; 2h g6: 4 5; 2h g4: 1 3");
    files[4].generation = files[5].generation = 9; /* behind all of them */
    CHECK_STR(plan_text(&options, files, 8), "2h g7: 0 2 6; 2h g8: 1 3 7; 2h g9: 4 5");
    files[4].generation = files[5].generation =
        2; /* of the same one as a range: who counts is open */
    CHECK_STR(plan_text(&options, files, 8), "2h g7: 2 6; 2h g8: 3 7");
}

TEST(where_folders_are_listed_one_by_one_a_file_over_the_end_of_a_day_is_not_cut)
{
    struct sg_plan_options options = standard();
    struct sg_plan_file files[] = { file(23 * H, 25 * H, 1) };

    CHECK_STR(plan_text(&options, files, 1), "24h g1: 0");
    options.whole = true;
    CHECK_STR(plan_text(&options, files, 1), "");
}
