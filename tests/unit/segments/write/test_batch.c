/* test_batch.c - samples added in any order are what a store then holds, in bounded memory, all or
 * nothing; without any text. */
#include "segments/write/batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "segments/import/histogram_text.h"
#include "tests/lib/segments/place.h"
#include "tests/lib/test.h"

static struct sg_batch_options options_of(const struct place *p)
{
    return (struct sg_batch_options){ .store = p->store,
                                      .tenant = QF_STR("default"),
                                      .shard_count = 2,
                                      .window_ms = 7200000,
                                      .memory_bytes = SG_BATCH_MEMORY_MIN,
                                      .temp_dir = p->temp,
                                      .generation = 1 };
}

static struct sg_batch *batch_make(const struct sg_batch_options *options)
{
    struct qf_err err = { 0 };
    struct sg_batch *batch = sg_batch_new(options, &err);

    CHECK_MSG(batch, "%s", err.msg);
    return batch;
}

static void batch_freep(struct sg_batch **batch)
{
    *batch = sg_batch_free(*batch);
}

/* Add one sample of the series {host="@host"}. */
static void add(struct sg_batch *batch, const char *host, struct sg_sample sample)
{
    struct qf_label item = { QF_STR("host"), qf_str_from(host) };
    struct qf_err err = { 0 };

    CHECK_OK(sg_batch_add(batch, (struct qf_labels){ &item, 1 }, &sample, 1, &err), &err);
}

/* Commit what @fill adds to a new batch. */
static struct sg_batch_summary write_all(const struct sg_batch_options *options,
                                         void (*fill)(struct sg_batch *batch))
{
    QF_CLEANUP(batch_freep) struct sg_batch *batch = batch_make(options);
    struct qf_err err = { 0 };

    fill(batch);
    CHECK_OK(sg_batch_commit(batch, &err), &err);
    return sg_batch_summary(batch);
}

static void fill_any_order(struct sg_batch *batch)
{
    add(batch, "b", (struct sg_sample){ .ts = 7200000, .value = 3 });
    add(batch, "a", (struct sg_sample){ .ts = 7205000, .value = 1 });
    add(batch, "b", (struct sg_sample){ .ts = 7199999, .value = 1 });
    add(batch, "a", (struct sg_sample){ .ts = 7201000, .value = 9 });
    add(batch, "a", (struct sg_sample){ .ts = 7201000, .value = 2 });
}

TEST(samples_in_any_order_become_sorted_series_and_the_last_duplicate_wins)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_batch_options options = options_of(&p);
    struct sg_batch_summary summary;

    options.shard_count = 1;
    summary = write_all(&options, fill_any_order);
    CHECK_EQ(summary.samples, 5);
    CHECK_EQ(summary.stored_samples, 4);
    CHECK_EQ(summary.merged_samples, 4);
    CHECK_EQ(summary.segments, 2);
    CHECK_EQ(summary.min_ts, 7199999);
    CHECK_EQ(summary.max_ts, 7205000);
    CHECK(place_is_empty(p.temp));
    place_check(&p, 2,
                "{host=\"a\"} 7201000=2 7205000=1\n"
                "{host=\"b\"} 7199999=1 7200000=3\n");
}

static void fill_whole_samples(struct sg_batch *batch)
{
    static const double bucket = 2;
    static const struct pq_span span = { .offset = 0, .length = 1 };
    struct pq_histogram histogram = { .count = 2,
                                      .sum = 1,
                                      .positive_spans = &span,
                                      .positive_span_count = 1,
                                      .positive_buckets = &bucket,
                                      .positive_bucket_count = 1 };

    add(batch, "h", (struct sg_sample){ .ts = 7200000, .start_ts = -5, .histogram = &histogram });
    add(batch, "h", (struct sg_sample){ .ts = 3000, .value = 7, .histogram = &histogram });
    add(batch, "h", (struct sg_sample){ .ts = 2000, .value = 7 });
    add(batch, "h",
        (struct sg_sample){ .ts = 4000, .value = qf_double_from_bits(QF_STALE_NAN_BITS) });
    add(batch, "c", (struct sg_sample){ .ts = 2000, .start_ts = 1, .value = 5 });
    add(batch, "f", (struct sg_sample){ .ts = 14400000, .value = 1 });
}

#define HISTOGRAM                                                                                  \
    "{count:2,sum:1,schema:0,zero_threshold:0,zero_count:0,positive_spans:[0:1],"                  \
    "positive_buckets:[2]}"

/* And the only segment that needs neither column has neither. */
TEST(floats_histograms_and_start_timestamps_are_one_kind_of_sample)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_batch_options options = options_of(&p);
    size_t plain = 0;

    options.shard_count = 1;
    CHECK_EQ(write_all(&options, fill_whole_samples).segments, 3);
    place_check(&p, 3,
                "{host=\"c\"} 2000=5~1\n"
                "{host=\"f\"} 14400000=1\n"
                "{host=\"h\"} 2000=7 3000=" HISTOGRAM " 4000=stale 7200000=" HISTOGRAM "~-5\n");
    QF_CLEANUP(place_readers_done) struct place_readers readers = place_readers(&p);
    for (size_t i = 0; i < readers.items.count; i++) {
        const struct sg_meta *meta = sg_reader_meta(readers.items.items[i]);

        plain += !meta->has_start_ts && !meta->has_histograms;
    }
    CHECK_EQ(plain, 1);
}

static void fill_one(struct sg_batch *batch)
{
    add(batch, "a", (struct sg_sample){ .ts = 5000, .value = 1 });
    add(batch, "b", (struct sg_sample){ .ts = 5000, .value = 2 });
}

static void fill_other(struct sg_batch *batch)
{
    add(batch, "a", (struct sg_sample){ .ts = 5000, .value = 5 });
}

TEST(committing_the_same_samples_again_changes_nothing_and_newer_ones_win)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_batch_options options = options_of(&p);
    struct sg_batch_summary summary;

    options.shard_count = 1;
    CHECK_EQ(write_all(&options, fill_one).segments, 1);
    options.generation = 3;
    CHECK_EQ(write_all(&options, fill_other).segments, 1);
    options.generation = 4;
    summary = write_all(&options, fill_one);
    CHECK_EQ(summary.segments, 0);
    CHECK_EQ(summary.segments_present, 1);
    CHECK_EQ(summary.bytes, 0);
    place_check(&p, 2, "{host=\"a\"} 5000=5\n{host=\"b\"} 5000=2\n");
}

TEST(a_batch_that_is_not_committed_leaves_nothing)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_batch_options options = options_of(&p);
    struct sg_batch *batch = batch_make(&options);

    fill_one(batch);
    CHECK(!place_is_empty(p.temp));
    batch = sg_batch_free(batch);
    CHECK(place_is_empty(p.temp));
    CHECK(place_is_empty(p.store_path));
}

TEST(a_batch_without_samples_commits_nothing)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_batch_options options = options_of(&p);
    QF_CLEANUP(batch_freep) struct sg_batch *batch = batch_make(&options);
    struct qf_err err = { 0 };

    CHECK_OK(sg_batch_commit(batch, &err), &err);
    CHECK_EQ(sg_batch_summary(batch).segments, 0);
    CHECK(place_is_empty(p.store_path));
}

/* The folder of the second day cannot be made: the segment of the first day must go again, and
 * every further call says why. */
TEST(a_commit_that_fails_half_way_rolls_back_and_the_batch_stays_failed)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_batch_options options = options_of(&p);
    QF_CLEANUP(batch_freep) struct sg_batch *batch = batch_make(&options);
    struct qf_err err = { 0 }, again = { 0 };
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/tenant=default", p.store_path);
    CHECK_EQ(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/tenant=default/date=1970-01-02", p.store_path);
    file = fopen(path, "w");
    CHECK(file);
    CHECK_EQ(fclose(file), 0);
    add(batch, "a", (struct sg_sample){ .ts = 1000, .value = 1 });
    add(batch, "a", (struct sg_sample){ .ts = 90000000, .value = 2 });
    CHECK(sg_batch_commit(batch, &err) != QF_OK);
    CHECK_EQ(sg_batch_summary(batch).segments_left, 0);
    CHECK_EQ(unlink(path), 0);
    place_check(&p, 0, "");
    CHECK_EQ(sg_batch_commit(batch, &again), err.rc);
    CHECK_STR(again.msg, err.msg);
}

TEST(a_committed_batch_takes_no_more)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_batch_options options = options_of(&p);
    QF_CLEANUP(batch_freep) struct sg_batch *batch = batch_make(&options);
    struct sg_sample sample = { .ts = 9, .value = 1 };
    struct qf_label item = { QF_STR("host"), QF_STR("a") };
    struct qf_err err = { 0 };

    fill_one(batch);
    CHECK_OK(sg_batch_commit(batch, &err), &err);
    CHECK_EQ(sg_batch_add(batch, (struct qf_labels){ &item, 1 }, &sample, 1, NULL), QF_EINVAL);
    CHECK_EQ(sg_batch_commit(batch, NULL), QF_EINVAL);
    place_check(&p, 1, "{host=\"a\"} 5000=1\n{host=\"b\"} 5000=2\n");
}

/* 300,000 samples of 500 series, shuffled, through the least memory: several runs on disk. */
TEST(more_samples_than_memory_go_through_runs_and_come_out_the_same)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_batch_options options = options_of(&p);
    struct qf_err err = { 0 };
    struct qf_prng prng = { 11 };
    size_t series_count = 500, steps = 1200, segments;
    QF_CLEANUP(qf_freep) uint32_t *order = qf_xcalloc(series_count * steps, sizeof(*order));
    struct sg_batch *batch = batch_make(&options);
    struct qf_strbuf want = QF_STRBUF_INIT;

    for (size_t i = 0; i < series_count * steps; i++) {
        size_t other = qf_prng_below(&prng, i + 1);

        order[i] = order[other];
        order[other] = (uint32_t)i;
    }
    for (size_t i = 0; i < series_count * steps; i++) {
        char host[16];

        (void)snprintf(host, sizeof(host), "h%04u", order[i] / (unsigned)steps);
        add(batch, host,
            (struct sg_sample){ .ts = (int64_t)(order[i] % steps) * 15000, .value = order[i] });
    }
    CHECK_OK(sg_batch_commit(batch, &err), &err);
    CHECK(sg_batch_summary(batch).runs >= 2);
    CHECK_EQ(sg_batch_summary(batch).stored_samples, series_count * steps);
    (void)sg_batch_free(batch);
    for (size_t s = 0; s < series_count; s++) {
        qf_strbuf_printf(&want, "{host=\"h%04zu\"}", s);
        for (size_t k = 0; k < steps; k++)
            qf_strbuf_printf(&want, " %zu=%zu", k * 15000, s * steps + k);
        qf_strbuf_putc(&want, '\n');
    }
    QF_CLEANUP(qf_freep) char *got = place_dump(&p, &segments);
    CHECK_EQ(segments, 3 * 2);
    CHECK(strcmp(got, qf_strbuf_cstr(&want)) == 0);
    qf_strbuf_done(&want);
}

static void fill_shared(struct sg_batch *batch)
{
    add(batch, "a", (struct sg_sample){ .ts = 1000, .value = 1 });
    add(batch, "a", (struct sg_sample){ .ts = 2000, .value = 2 });
    add(batch, "b", (struct sg_sample){ .ts = 3000, .value = 3 });
}

static void fill_moved(struct sg_batch *batch)
{
    add(batch, "a", (struct sg_sample){ .ts = 1000, .value = 1 });
    add(batch, "b", (struct sg_sample){ .ts = 2000, .value = 2 });
    add(batch, "b", (struct sg_sample){ .ts = 3000, .value = 3 });
}

/* The same labels, times and values, but a sample belongs to the other series: another file. */
TEST(samples_that_change_their_series_are_another_segment)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_batch_options options = options_of(&p);

    options.shard_count = 1;
    CHECK_EQ(write_all(&options, fill_shared).segments, 1);
    options.generation = 2;
    CHECK_EQ(write_all(&options, fill_moved).segments, 1);
    place_check(&p, 2, "{host=\"a\"} 1000=1 2000=2\n{host=\"b\"} 2000=2 3000=3\n");
}

/* One series with 400,000 samples in one window, twice, backwards the second time: more than fits,
 * cut into many records, and the later value of each counts. */
TEST(a_long_series_in_one_window_is_merged_piece_by_piece)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_batch_options options = options_of(&p);
    struct qf_err err = { 0 };
    struct sg_batch *batch;
    const int64_t count = 400000;
    size_t segments;
    struct qf_strbuf want = QF_STRBUF_INIT;

    options.window_ms = INT64_C(1) << 40;
    batch = batch_make(&options);
    for (int64_t i = 0; i < 2 * count; i++) {
        int64_t ts = i < count ? i : 2 * count - 1 - i;
        double value = i < count ? -1 : (double)(ts % 100);

        add(batch, "h", (struct sg_sample){ .ts = ts, .value = value });
    }
    CHECK_OK(sg_batch_commit(batch, &err), &err);
    CHECK(sg_batch_summary(batch).runs >= 3);
    CHECK_EQ(sg_batch_summary(batch).series, 1);
    CHECK_EQ(sg_batch_summary(batch).stored_samples, count);
    (void)sg_batch_free(batch);
    qf_strbuf_puts(&want, "{host=\"h\"}");
    for (int64_t i = 0; i < count; i++)
        qf_strbuf_printf(&want, " %lld=%lld", (long long)i, (long long)(i % 100));
    qf_strbuf_putc(&want, '\n');
    QF_CLEANUP(qf_freep) char *got = place_dump(&p, &segments);
    CHECK_EQ(segments, 1);
    CHECK(strcmp(got, qf_strbuf_cstr(&want)) == 0);
    qf_strbuf_done(&want);
}

struct world {
    size_t series_count, samples;
    struct qf_label *labels;
    int64_t *ts[40];
    double *values[40];
    size_t counts[40];
};

/* Series of any bits, some dense, some with days between samples, before and after 1970. */
static struct world make_world(struct qf_arena *arena, struct qf_prng *prng)
{
    struct world w = { .series_count = 1 + qf_prng_below(prng, 40) };

    w.labels = QF_ARENA_ARRAY(arena, struct qf_label, w.series_count);
    for (size_t i = 0; i < w.series_count; i++) {
        uint64_t gap = qf_prng_chance(prng, 0.2) ? 1000000 : 20000;
        int64_t ts = (int64_t)qf_prng_below(prng, 10000000) - 5000000;

        w.labels[i] =
            (struct qf_label){ QF_STR("host"), qf_str_from(qf_arena_printf(arena, "h%02zu", i)) };
        w.counts[i] = 1 + qf_prng_below(prng, 200);
        w.ts[i] = QF_ARENA_ARRAY(arena, int64_t, w.counts[i]);
        w.values[i] = QF_ARENA_ARRAY(arena, double, w.counts[i]);
        for (size_t k = 0; k < w.counts[i]; k++) {
            ts += 1 + (int64_t)qf_prng_below(prng, gap);
            w.ts[i][k] = ts;
            w.values[i][k] = qf_double_from_bits(qf_prng_chance(prng, 0.2) ? QF_STALE_NAN_BITS
                                                                           : qf_prng_next(prng));
        }
        w.samples += w.counts[i];
    }
    return w;
}

/* Samples one by one, series by turns, each series backwards. */
static void write_world(const struct sg_batch_options *options, const struct world *w)
{
    QF_CLEANUP(batch_freep) struct sg_batch *batch = batch_make(options);
    struct qf_err err = { 0 };

    for (size_t k = 200; k-- > 0;)
        for (size_t i = 0; i < w->series_count; i++)
            if (k < w->counts[i])
                CHECK_OK(
                    sg_batch_add(batch, (struct qf_labels){ &w->labels[i], 1 },
                                 &(struct sg_sample){ .ts = w->ts[i][k], .value = w->values[i][k] },
                                 1, &err),
                    &err);
    CHECK_OK(sg_batch_commit(batch, &err), &err);
    CHECK_EQ(sg_batch_summary(batch).stored_samples, w->samples);
}

static void check_world(const struct place *p, const struct world *w)
{
    QF_CLEANUP(place_readers_done) struct place_readers readers = place_readers(p);
    struct pq_select all = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct pq_source *source =
        sg_source_new(readers.items.items, readers.items.count, &all, NULL, 0);
    struct qf_err err = { 0 };
    struct pq_series got;
    bool more;

    for (size_t i = 0; i < w->series_count; i++) {
        CHECK_OK(source->next(source, &got, &more, &err), &err);
        CHECK(more);
        CHECK(qf_labels_eq(got.labels, (struct qf_labels){ &w->labels[i], 1 }));
        CHECK_EQ(got.count, w->counts[i]);
        CHECK(memcmp(got.ts, w->ts[i], got.count * sizeof(*got.ts)) == 0);
        CHECK(memcmp(got.values, w->values[i], got.count * sizeof(double)) == 0);
    }
    CHECK_OK(source->next(source, &got, &more, &err), &err);
    CHECK(!more);
    source->close(source);
}

TEST(any_window_and_any_number_of_shards_give_the_same_series_bit_for_bit)
{
    static const int64_t windows[] = { 3600000, 7200000, 86400000, 5000011 };

    for (uint64_t seed = 1; seed <= 4; seed++) {
        QF_CLEANUP(place_done) struct place p = place_make();
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        struct qf_prng prng = { seed };
        struct sg_batch_options options = options_of(&p);
        struct world world = make_world(arena, &prng);

        options.window_ms = windows[qf_prng_below(&prng, QF_COUNT_OF(windows))];
        options.shard_count = 1u << qf_prng_below(&prng, 4);
        write_world(&options, &world);
        check_world(&p, &world);
    }
}

/* Who holds memory by the numbers of series hears of each spill, and what it holds counts. */
struct holder {
    struct sg_batch *batch;
    size_t spills;
    uint32_t series;
};

static void on_spill(void *ctx)
{
    struct holder *holder = ctx;

    holder->spills++;
    holder->series = UINT32_MAX;
}

static uint64_t spills_with(const struct place *p, uint64_t held)
{
    struct sg_batch_options options = options_of(p);
    QF_CLEANUP(batch_freep) struct sg_batch *batch = batch_make(&options);
    struct holder holder = { .batch = batch, .series = UINT32_MAX };
    struct qf_label item = { QF_STR("host"), QF_STR("a") };
    struct qf_err err = { 0 };

    sg_batch_on_spill(batch, on_spill, &holder);
    for (int64_t i = 0; i < 600000; i++) {
        if (holder.series == UINT32_MAX) {
            holder.series = sg_batch_series(batch, (struct qf_labels){ &item, 1 });
            sg_batch_hold(batch, held);
        }
        CHECK_OK(sg_batch_add_one(batch, holder.series,
                                  &(struct sg_sample){ .ts = i, .value = (double)i }, &err),
                 &err);
    }
    CHECK_EQ(holder.spills, sg_batch_summary(batch).runs);
    return holder.spills;
}

TEST(holders_of_series_numbers_hear_of_spills_and_their_memory_counts)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    uint64_t without = spills_with(&p, 0), with = spills_with(&p, UINT64_C(12) << 20);

    CHECK(without >= 1);
    CHECK(with >= 2 * without);
}

TEST(a_canceled_batch_leaves_nothing)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_batch_options options = options_of(&p);
    atomic_bool cancel = false;
    struct qf_err err = { 0 };

    options.cancel = &cancel;
    QF_CLEANUP(batch_freep) struct sg_batch *batch = batch_make(&options);
    fill_one(batch);
    atomic_store(&cancel, true);
    CHECK_EQ(sg_batch_commit(batch, &err), QF_ECANCELED);
    CHECK(place_is_empty(p.store_path));
}

static void cancel_at_first_segment(void *ctx, const struct sg_batch_summary *summary)
{
    if (summary->segments)
        atomic_store((atomic_bool *)ctx, true);
}

TEST(a_commit_canceled_after_a_segment_takes_it_back)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_batch_options options = options_of(&p);
    atomic_bool cancel = false;
    struct qf_err err = { 0 };

    options.cancel = &cancel;
    options.on_progress = cancel_at_first_segment;
    options.ctx = &cancel;
    QF_CLEANUP(batch_freep) struct sg_batch *batch = batch_make(&options);
    fill_whole_samples(batch);
    CHECK_EQ(sg_batch_commit(batch, &err), QF_ECANCELED);
    CHECK(sg_batch_summary(batch).segments >= 1);
    CHECK_EQ(sg_batch_summary(batch).segments_left, 0);
    place_check(&p, 0, "");
}

TEST(options_that_cannot_be_are_refused)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_batch_options options = options_of(&p);
    struct qf_err err = { 0 };

    options.shard_count = 3;
    CHECK(!sg_batch_new(&options, &err));
    CHECK_EQ(err.rc, QF_EINVAL);
    options = options_of(&p);
    options.tenant = QF_STR("");
    CHECK(!sg_batch_new(&options, NULL));
    options = options_of(&p);
    options.reserved_bytes = options.memory_bytes / 2 + 1;
    CHECK(!sg_batch_new(&options, NULL));
    options = options_of(&p);
    options.memory_bytes--;
    CHECK(!sg_batch_new(&options, NULL));
    options = options_of(&p);
    options.temp_dir = "/nonexistent";
    err = (struct qf_err){ 0 };
    CHECK(!sg_batch_new(&options, &err));
    CHECK_EQ(err.rc, QF_EIO);
}
