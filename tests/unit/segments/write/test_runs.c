/* test_runs.c - many runs become few, level by level, and the later sample still wins. */
#include "segments/write/runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/strbuf.h"
#include "tests/lib/segments/place.h"
#include "tests/lib/test.h"

/* A run with one sample of the series {host="@host"} in window 0 of shard 0. */
static void add_run(struct runs *runs, const char *host, int64_t ts, double value)
{
    struct qf_label item = { QF_STR("host"), qf_str_from(host) };
    struct run_record record = { .labels = { &item, 1 }, .ts = &ts, .values = &value, .count = 1 };
    struct qf_err err = { 0 };
    struct run_writer *writer = run_writer_new(runs_add(runs), &err);

    CHECK_MSG(writer, "%s", err.msg);
    CHECK_OK(run_writer_add(writer, &record, &err), &err);
    CHECK_OK(run_writer_finish(writer, &err), &err);
    (void)run_writer_free(writer);
}

/* "host ts=value", a line per sample: a series may come in several records. */
static qf_rc print_record(void *ctx, const struct run_record *record, struct qf_err *err)
{
    (void)err;
    for (size_t i = 0; i < record->count; i++)
        qf_strbuf_printf(ctx, "%.*s %lld=%g\n", QF_STR_ARG(record->labels.items[0].value),
                         (long long)record->ts[i], record->values[i]);
    return QF_OK;
}

static void check_merged(struct runs *runs, size_t fan_in, const char *want)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf got = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    CHECK_OK(runs_merge_all(runs, fan_in, print_record, &got, &err), &err);
    CHECK_STR(qf_strbuf_cstr(&got), want);
}

/* With a fan-in of 3, n runs are kept as the digits of n to base 3: never more than two of a level,
 * the oldest with the highest level. */
TEST(runs_are_merged_level_by_level)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(runs_done) struct runs runs = { .dir = p.temp };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf want = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    for (unsigned n = 1; n <= 32; n++) {
        unsigned digits = 0;

        add_run(&runs, "a", n, n);
        CHECK_OK(runs_settle(&runs, 3, &err), &err);
        for (unsigned rest = n; rest; rest /= 3)
            digits += rest % 3;
        CHECK_EQ(runs.items.count, digits);
        for (size_t i = 1; i < runs.items.count; i++)
            CHECK(runs.items.items[i - 1].level >= runs.items.items[i].level);
        qf_strbuf_printf(&want, "a %u=%u\n", n, n);
    }
    check_merged(&runs, 3, qf_strbuf_cstr(&want));
}

/* The samples of ten runs have the same timestamp, on several levels and in the rest. */
TEST(of_equal_timestamps_the_sample_of_the_latest_run_counts_on_any_level)
{
    for (size_t fan_in = 2; fan_in <= 11; fan_in++) {
        QF_CLEANUP(place_done) struct place p = place_make();
        QF_CLEANUP(runs_done) struct runs runs = { .dir = p.temp };
        struct qf_err err = { 0 };

        for (int n = 1; n <= 10; n++) {
            add_run(&runs, n % 2 ? "a" : "b", 5, n);
            CHECK_OK(runs_settle(&runs, fan_in, &err), &err);
        }
        check_merged(&runs, fan_in, "a 5=9\nb 5=10\n");
    }
}

/* Without runs_settle() in between: the end merges as often as the fan-in asks. */
TEST(more_runs_than_the_fan_in_are_merged_in_turns)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(runs_done) struct runs runs = { .dir = p.temp };

    for (int n = 1; n <= 7; n++)
        add_run(&runs, "a", n % 3, n);
    check_merged(&runs, 2, "a 0=6\na 1=7\na 2=5\n");
}

TEST(runs_leave_no_file_behind)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct runs runs = { .dir = p.temp };
    struct qf_err err = { 0 };

    for (int n = 1; n <= 5; n++) {
        add_run(&runs, "a", n, n);
        CHECK_OK(runs_settle(&runs, 2, &err), &err);
    }
    CHECK(!place_is_empty(p.temp));
    runs_done(&runs);
    CHECK(place_is_empty(p.temp));
}

TEST(a_canceled_merge_says_so)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    atomic_bool cancel = true;
    QF_CLEANUP(runs_done) struct runs runs = { .dir = p.temp, .cancel = &cancel };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf got = QF_STRBUF_INIT;
    struct qf_err err = { 0 };

    add_run(&runs, "a", 1, 1);
    add_run(&runs, "a", 2, 2);
    CHECK_EQ(runs_merge_all(&runs, 2, print_record, &got, &err), QF_ECANCELED);
    CHECK_EQ(got.len, 0);
}

TEST(the_fan_in_follows_memory_within_bounds)
{
    CHECK_EQ(runs_fan_in(0, 0), 2);
    CHECK_EQ(runs_fan_in(UINT64_MAX, 100), 128);
    CHECK_EQ(runs_fan_in(10 * (uint64_t)MERGE_RUN_BYTES, 0), 10);
    CHECK(runs_fan_in(10 * (uint64_t)MERGE_RUN_BYTES, 100000) < 10);
}
