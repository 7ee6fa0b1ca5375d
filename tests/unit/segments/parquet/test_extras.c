/* test_extras.c - start timestamps and native histograms in segments come back as they were
 * written, and cost nothing where there are none. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "base/pure/strbuf.h"
#include "promql/histogram/codec.h"
#include "segments/parquet/segment_reader.h"
#include "segments/parquet/segment_writer.h"
#include "tests/lib/test.h"

#define FILES 4
#define SERIES 20
#define SAMPLES 40

/* One sample with everything it can have. */
struct sample {
    int64_t ts, start_ts;
    double value;
    struct qf_str histogram; /* encoded; empty for a float */
};

struct world {
    char dir[64];
    const char *paths[FILES];
    struct qf_arena *arena;
    struct sample samples[SERIES][SAMPLES];
    struct qf_labels labels[SERIES];
    struct sg_reader *readers[FILES];
    size_t reader_count;
};

static void world_done(struct world *world)
{
    for (size_t i = 0; i < world->reader_count; i++)
        (void)sg_reader_free(world->readers[i]);
    for (size_t i = 0; i < FILES; i++)
        if (world->paths[i])
            (void)unlink(world->paths[i]);
    (void)rmdir(world->dir);
    (void)qf_arena_free(world->arena);
}

static double any_double(struct qf_prng *prng)
{
    switch (qf_prng_below(prng, 4)) {
    case 0:
        return qf_double_from_bits(qf_prng_next(prng));
    case 1:
        return -0.0;
    default:
        return (double)qf_prng_below(prng, 100000) / 16;
    }
}

static const double *any_doubles(struct qf_arena *arena, struct qf_prng *prng, size_t count)
{
    double *values = QF_ARENA_ARRAY(arena, double, count + 1);

    for (size_t i = 0; i < count; i++)
        values[i] = any_double(prng);
    return values;
}

static const struct pq_span *any_spans(struct qf_arena *arena, struct qf_prng *prng, size_t *count,
                                       size_t *buckets)
{
    struct pq_span *spans = QF_ARENA_ARRAY(arena, struct pq_span, 4);

    *count = qf_prng_below(prng, 4);
    *buckets = 0;
    for (size_t i = 0; i < *count; i++) {
        spans[i].offset = (int32_t)qf_prng_below(prng, 2000) - 1000;
        spans[i].length = (uint32_t)qf_prng_below(prng, 6);
        *buckets += spans[i].length;
    }
    return spans;
}

static struct qf_str any_histogram(struct qf_arena *arena, struct qf_prng *prng)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct pq_histogram h = { .reset_hint = (enum pq_reset_hint)qf_prng_below(prng, 4),
                              .reset_hint_given = qf_prng_chance(prng, 0.5),
                              .schema = (int32_t)qf_prng_below(prng, 13) - 4,
                              .zero_threshold = any_double(prng),
                              .zero_count = any_double(prng),
                              .count = any_double(prng),
                              .sum = any_double(prng) };

    h.positive_spans = any_spans(arena, prng, &h.positive_span_count, &h.positive_bucket_count);
    h.negative_spans = any_spans(arena, prng, &h.negative_span_count, &h.negative_bucket_count);
    h.positive_buckets = any_doubles(arena, prng, h.positive_bucket_count);
    h.negative_buckets = any_doubles(arena, prng, h.negative_bucket_count);
    if (qf_prng_chance(prng, 0.2)) {
        h.schema = PQ_SCHEMA_CUSTOM;
        h.custom_value_count = qf_prng_below(prng, 9);
        h.custom_values = any_doubles(arena, prng, h.custom_value_count);
    }
    pq_histogram_encode(&buf, &h);
    return qf_arena_str(arena, qf_strbuf_view(&buf));
}

/* Every third series has histograms, every second start timestamps, neither in all samples. */
static struct sample any_sample(struct world *world, struct qf_prng *prng, size_t series, size_t i)
{
    struct sample sample = { .ts = 1000 + (int64_t)i * 500, .value = any_double(prng) };

    if (series % 2 == 1 && qf_prng_chance(prng, 0.7))
        sample.start_ts = (int64_t)qf_prng_below(prng, 5000) - 2500;
    if (series % 3 == 1 && qf_prng_chance(prng, 0.6)) {
        sample.histogram = any_histogram(world->arena, prng);
        sample.value = 0;
    }
    return sample;
}

static struct world world_make(uint64_t seed)
{
    struct world world = { .dir = "/tmp/promfabric-test-XXXXXX" };
    struct qf_prng prng = { seed };

    CHECK(mkdtemp(world.dir));
    world.arena = qf_arena_new(SIZE_MAX);
    for (size_t s = 0; s < SERIES; s++) {
        struct qf_label *items = QF_ARENA_ARRAY(world.arena, struct qf_label, 2);

        items[0] = (struct qf_label){ QF_STR("__name__"), QF_STR("m") };
        items[1] = (struct qf_label){ QF_STR("host"),
                                      qf_str_from(qf_arena_printf(world.arena, "h%03zu", s)) };
        world.labels[s] = (struct qf_labels){ items, 2 };
        for (size_t i = 0; i < SAMPLES; i++)
            world.samples[s][i] = any_sample(&world, &prng, s, i);
    }
    return world;
}

/* Columns for the writer. */
struct columns {
    int64_t ts[SAMPLES], start_ts[SAMPLES];
    double values[SAMPLES];
    struct qf_str histograms[SAMPLES];
    size_t count;
};

static void columns_add(struct columns *columns, struct sample sample)
{
    columns->ts[columns->count] = sample.ts;
    columns->start_ts[columns->count] = sample.start_ts;
    columns->values[columns->count] = sample.value;
    columns->histograms[columns->count++] = sample.histogram;
}

static struct sg_writer *writer_make(struct world *world, size_t file, bool extras)
{
    const char *path = qf_arena_printf(world->arena, "%s/%zu.parquet", world->dir, file);
    struct sg_writer_options options = { .path = path,
                                         .tenant = QF_STR("default"),
                                         .shard_count = 1,
                                         .generation = 100 + file,
                                         .start_ts = extras,
                                         .histograms = extras };
    struct qf_err err = { 0 };
    struct sg_writer *writer;

    world->paths[file] = path;
    writer = sg_writer_new(&options, &err);
    CHECK_MSG(writer, "%s", err.msg);
    return writer;
}

static void add_columns(struct sg_writer *writer, struct qf_labels labels,
                        const struct columns *columns)
{
    struct sg_samples samples = { .ts = columns->ts,
                                  .values = columns->values,
                                  .count = columns->count,
                                  .start_ts = columns->start_ts,
                                  .histograms = columns->histograms };
    struct qf_err err = { 0 };

    if (columns->count)
        CHECK_OK(sg_writer_add_samples(writer, labels, &samples, &err), &err);
}

static void finish(struct world *world, struct sg_writer *writer, size_t file)
{
    struct qf_err err = { 0 };
    struct sg_segment_name name;
    struct sg_reader *reader;

    CHECK_OK(sg_writer_finish(writer, &name, &err), &err);
    (void)sg_writer_free(writer);
    reader = sg_reader_open(world->paths[file], &err);
    CHECK_MSG(reader, "%s", err.msg);
    CHECK_OK(sg_reader_verify(reader, &err), &err);
    CHECK_EQ(sg_reader_meta(reader)->name.id, name.id);
    world->readers[world->reader_count++] = reader;
}

/* Each sample is in one file or, with other values, in older ones too: the newest one counts. */
static void write_split(struct world *world, uint64_t seed, size_t files)
{
    for (size_t file = 0; file < files; file++) {
        struct sg_writer *writer = writer_make(world, file, true);
        struct qf_prng prng = { seed }, noise = { seed + 1 + file };

        for (size_t s = 0; s < SERIES; s++) {
            struct columns columns = { .count = 0 };

            for (size_t i = 0; i < SAMPLES; i++) {
                size_t owner = qf_prng_below(&prng, files);
                struct sample other = any_sample(world, &noise, s + i, i);

                if (owner == file)
                    columns_add(&columns, world->samples[s][i]);
                else if (owner > file && i % 2)
                    columns_add(&columns, other);
            }
            add_columns(writer, world->labels[s], &columns);
        }
        finish(world, writer, file);
    }
}

static void check_sample(const struct pq_series *got, size_t at, const struct sample *want)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;

    CHECK_EQ(got->ts[at], want->ts);
    CHECK_EQ(qf_double_bits(got->values[at]), qf_double_bits(want->value));
    CHECK_EQ(got->start_ts ? got->start_ts[at] : 0, want->start_ts);
    if (got->histograms && got->histograms[at])
        pq_histogram_encode(&bytes, got->histograms[at]);
    CHECK_EQ(bytes.len, want->histogram.len);
    CHECK(qf_str_eq(qf_strbuf_view(&bytes), want->histogram));
}

static void check_world(struct world *world, int64_t min_ts, int64_t max_ts)
{
    struct pq_select select = { .min_ts = min_ts, .max_ts = max_ts };
    struct pq_source *source = sg_source_new(world->readers, world->reader_count, &select, NULL, 0);
    struct qf_err err = { 0 };
    struct pq_series got;
    bool more;

    for (size_t s = 0; s < SERIES; s++) {
        size_t at = 0;

        CHECK_OK(source->next(source, &got, &more, &err), &err);
        CHECK(more);
        CHECK(qf_labels_eq(got.labels, world->labels[s]));
        for (size_t i = 0; i < SAMPLES; i++)
            if (world->samples[s][i].ts >= min_ts && world->samples[s][i].ts <= max_ts)
                check_sample(&got, at++, &world->samples[s][i]);
        CHECK_EQ(got.count, at);
    }
    CHECK_OK(source->next(source, &got, &more, &err), &err);
    CHECK(!more);
    source->close(source);
}

TEST(histograms_and_start_timestamps_come_back_whatever_the_split)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        QF_CLEANUP(world_done) struct world world = world_make(seed);

        write_split(&world, seed, 1 + seed % FILES);
        check_world(&world, INT64_MIN, INT64_MAX);
        check_world(&world, 1000 + 7 * 500, 1000 + 30 * 500 + (int64_t)seed);
    }
}

/* The series that have samples in a range, as a bit for each; with @ret_bytes that were read. */
static uint64_t series_in(struct world *world, int64_t min_ts, int64_t max_ts, bool presence,
                          uint64_t *ret_bytes)
{
    struct pq_select select = { .min_ts = min_ts, .max_ts = max_ts };
    struct pq_source *source = sg_source_new(world->readers, world->reader_count, &select, NULL, 0);
    struct qf_err err = { 0 };
    struct pq_series got;
    uint64_t found = 0;
    bool more;

    if (presence)
        sg_source_presence_only(source);
    for (;;) {
        CHECK_OK(source->next(source, &got, &more, &err), &err);
        if (!more)
            break;
        CHECK(got.count > 0);
        CHECK(!presence || !got.histograms);
        CHECK(got.ts[0] >= min_ts && got.ts[got.count - 1] <= max_ts);
        for (size_t i = 1; i < got.count; i++)
            CHECK(got.ts[i - 1] < got.ts[i]);
        for (size_t s = 0; s < SERIES; s++)
            if (qf_labels_eq(got.labels, world->labels[s]))
                found |= UINT64_C(1) << s;
    }
    *ret_bytes = sg_source_stats(source).bytes;
    source->close(source);
    return found;
}

/* Which series there are is told without reading samples, and told right at any end of a range: also
 * where a row begins before and ends after it and has nothing in between. */
TEST(presence_is_exact_and_reads_no_samples)
{
    uint64_t none = 0, bytes[2];

    for (uint64_t seed = 0; seed < 30; seed++) {
        QF_CLEANUP(world_done) struct world world = world_make(seed);
        struct qf_prng prng = { seed };

        write_split(&world, seed, 1 + seed % FILES);
        CHECK_EQ(series_in(&world, INT64_MIN, INT64_MAX, true, &bytes[1]),
                 series_in(&world, INT64_MIN, INT64_MAX, false, &bytes[0]));
        CHECK(bytes[1] == 0);
        CHECK(bytes[0] > 0);
        for (size_t i = 0; i < 40; i++) {
            int64_t from = 1000 + (int64_t)qf_prng_below(&prng, SAMPLES * 500);
            int64_t to = from + (int64_t)qf_prng_below(&prng, i % 2 ? 700 : 20000);
            uint64_t want = series_in(&world, from, to, false, &bytes[0]);

            CHECK_EQ(series_in(&world, from, to, true, &bytes[1]), want);
            none += !want;
        }
    }
    CHECK(none > 0);
}

/* A file with them and a file without are read together. */
TEST(files_with_and_without_the_columns_are_merged)
{
    QF_CLEANUP(world_done) struct world world = world_make(5);

    for (size_t file = 0; file < 2; file++) {
        struct sg_writer *writer = writer_make(&world, file, file == 1);

        for (size_t s = 0; s < SERIES; s++) {
            struct columns columns = { .count = 0 };

            for (size_t i = 0; i < SAMPLES; i++) {
                const struct sample *sample = &world.samples[s][i];

                if ((sample->start_ts || sample->histogram.len) == (file == 1))
                    columns_add(&columns, *sample);
            }
            add_columns(writer, world.labels[s], &columns);
        }
        finish(&world, writer, file);
        CHECK(sg_reader_meta(world.readers[file])->has_histograms == (file == 1));
        CHECK(sg_reader_meta(world.readers[file])->has_start_ts == (file == 1));
    }
    check_world(&world, INT64_MIN, INT64_MAX);
}

static char *read_whole(const char *path, size_t *ret_size)
{
    int fd = open(path, O_RDONLY);
    char *bytes;

    *ret_size = (size_t)lseek(fd, 0, SEEK_END);
    bytes = qf_xmalloc(*ret_size);
    CHECK_EQ(pread(fd, bytes, *ret_size, 0), (ssize_t)*ret_size);
    CHECK_EQ(close(fd), 0);
    return bytes;
}

/* Nothing but floats: the same bytes, whichever way they were added. */
TEST(a_file_of_floats_does_not_know_of_the_columns)
{
    QF_CLEANUP(world_done) struct world world = world_make(6);
    QF_CLEANUP(qf_freep) char *first = NULL;
    QF_CLEANUP(qf_freep) char *second = NULL;
    size_t sizes[2];
    struct qf_err err = { 0 };

    for (size_t file = 0; file < 2; file++) {
        struct sg_writer *writer = writer_make(&world, 0, false);
        struct columns columns = { .count = 0 };

        for (size_t i = 0; i < SAMPLES; i++)
            columns_add(&columns, (struct sample){ .ts = (int64_t)i, .value = (double)i });
        if (file)
            add_columns(writer, world.labels[0], &columns);
        else
            CHECK_OK(
                sg_writer_add(writer, world.labels[0], columns.ts, columns.values, SAMPLES, &err),
                &err);
        finish(&world, writer, 0);
        *(file ? &second : &first) = read_whole(world.paths[0], &sizes[file]);
        CHECK_EQ(unlink(world.paths[0]), 0);
    }
    CHECK_EQ(sizes[0], sizes[1]);
    CHECK(memcmp(first, second, sizes[0]) == 0);
    CHECK(!memmem(first, sizes[0], "start_ts", 8));
    CHECK(!memmem(first, sizes[0], "histogram", 9));
}

TEST(what_has_no_column_is_refused_rather_than_dropped)
{
    QF_CLEANUP(world_done) struct world world = world_make(7);
    struct sg_writer *writer = writer_make(&world, 0, false);
    int64_t ts = 1, start = 1;
    double value = 0;
    struct sg_samples samples = { .ts = &ts, .values = &value, .count = 1, .start_ts = &start };
    struct qf_str bytes = any_histogram(world.arena, &(struct qf_prng){ 1 });

    CHECK_EQ(sg_writer_add_samples(writer, world.labels[0], &samples, NULL), QF_EINVAL);
    (void)sg_writer_free(writer);
    writer = writer_make(&world, 0, false);
    samples.start_ts = NULL;
    samples.histograms = &bytes;
    CHECK_EQ(sg_writer_add_samples(writer, world.labels[0], &samples, NULL), QF_EINVAL);
    (void)sg_writer_free(writer);
    world.paths[0] = NULL;
}

/* Row groups end at a number of bytes too, in the middle of a series if need be. */
TEST(large_histograms_make_small_row_groups)
{
    QF_CLEANUP(world_done) struct world world = world_make(8);
    size_t buckets = 20000;
    double *counts = QF_ARENA_ARRAY(world.arena, double, buckets); /* zeros */
    struct pq_span span = { 0, (uint32_t)buckets };
    struct pq_histogram h = { .positive_spans = &span,
                              .positive_span_count = 1,
                              .positive_buckets = counts,
                              .positive_bucket_count = buckets,
                              .zero_count = 0.5 /* so that counts are written as doubles */ };
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct sg_writer *writer = writer_make(&world, 0, true);
    struct columns columns = { .count = 0 };
    struct pq_select select = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct pq_source *source;
    struct pq_series got;
    struct qf_err err = { 0 };
    bool more;

    pq_histogram_encode(&bytes, &h);
    for (size_t i = 0; i < SAMPLES; i++)
        columns_add(&columns,
                    (struct sample){ .ts = (int64_t)i, .histogram = qf_strbuf_view(&bytes) });
    add_columns(writer, world.labels[0], &columns);
    finish(&world, writer, 0);
    source = sg_source_new(world.readers, 1, &select, NULL, 0);
    CHECK_OK(source->next(source, &got, &more, &err), &err);
    CHECK_EQ(got.count, SAMPLES);
    for (size_t i = 0; i < SAMPLES; i++)
        CHECK_EQ(got.histograms[i]->positive_bucket_count, buckets);
    CHECK(sg_source_stats(source).row_groups_read >= 3);
    source->close(source);
}

/* A limit counts decoded histograms as well. */
TEST(histograms_count_towards_the_memory_of_a_scan)
{
    QF_CLEANUP(world_done) struct world world = world_make(9);
    struct pq_select select = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct pq_source *source;
    struct pq_series got;
    bool more;

    write_split(&world, 9, 1);
    source = sg_source_new(world.readers, 1, &select, NULL, 40 << 10);
    CHECK_EQ(source->next(source, &got, &more, NULL), QF_ELIMIT);
    source->close(source);
}

static qf_rc scan(const char *path, struct qf_err *err)
{
    struct pq_select select = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct sg_reader *reader = sg_reader_open(path, err);
    struct pq_source *source;
    struct pq_series got;
    bool more = true;
    qf_rc rc = QF_OK;

    if (!reader)
        return err->rc;
    source = sg_source_new(&reader, 1, &select, NULL, 0);
    while (rc == QF_OK && more)
        rc = source->next(source, &got, &more, err);
    source->close(source);
    (void)sg_reader_free(reader);
    return rc;
}

TEST(every_flipped_byte_of_a_segment_with_histograms_is_found)
{
    QF_CLEANUP(world_done) struct world world = world_make(10);
    struct sg_writer *writer = writer_make(&world, 0, true);
    QF_CLEANUP(qf_freep) char *bytes = NULL;
    size_t size;
    int fd;

    for (size_t s = 0; s < 5; s++) {
        struct columns columns = { .count = 0 };

        for (size_t i = 0; i < 4; i++) {
            struct sample sample = world.samples[s][i];

            if (!sample.histogram.len) /* decimals and others, so that all columns are read */
                sample.value = (double)i / (s == 0 ? 1 : 3);
            columns_add(&columns, sample);
        }
        add_columns(writer, world.labels[s], &columns);
    }
    finish(&world, writer, 0);
    bytes = read_whole(world.paths[0], &size);
    fd = open(world.paths[0], O_WRONLY);
    for (size_t i = 0; i < size; i++) {
        char flipped = (char)(bytes[i] ^ (1 << (i * 5 % 8)));
        struct qf_err err = { 0 };

        CHECK_EQ(pwrite(fd, &flipped, 1, (off_t)i), 1);
        CHECK_MSG(scan(world.paths[0], &err) == QF_ECORRUPT, "byte %zu: %s", i, err.msg);
        CHECK_MSG(strstr(err.msg, world.paths[0]), "%s", err.msg);
        CHECK_EQ(pwrite(fd, &bytes[i], 1, (off_t)i), 1);
    }
    CHECK_EQ(close(fd), 0);
}

/* Two metrics of a row group each; the first may have a histogram. Returns what it takes to read
 * the second one. */
static uint64_t bytes_of_floats(struct world *world, size_t file, bool extras)
{
    size_t count = SG_ROW_GROUP_SAMPLES_MIN;
    int64_t *ts = QF_ARENA_ARRAY(world->arena, int64_t, count);
    double *values = QF_ARENA_ARRAY(world->arena, double, count);
    struct qf_str *histograms = QF_ARENA_ARRAY(world->arena, struct qf_str, count);
    int64_t *start_ts = QF_ARENA_ARRAY(world->arena, int64_t, count);
    struct qf_label items[] = { { QF_STR("__name__"), QF_STR("a") } };
    struct sg_samples samples = { ts, values, count, start_ts, histograms };
    struct pq_matcher matcher = { .type = PQ_MATCH_EQUAL,
                                  .name = QF_STR("__name__"),
                                  .value = QF_STR("b") };
    struct pq_select select = { &matcher, 1, INT64_MIN, INT64_MAX };
    struct sg_writer *writer = writer_make(world, file, extras);
    struct qf_err err = { 0 };
    struct pq_source *source;
    struct pq_series got;
    uint64_t bytes;
    bool more;

    for (size_t i = 0; i < count; i++)
        ts[i] = (int64_t)i;
    if (extras) {
        histograms[5] = any_histogram(world->arena, &(struct qf_prng){ 1 });
        start_ts[6] = -1;
    }
    CHECK_OK(sg_writer_add_samples(writer, (struct qf_labels){ items, 1 }, &samples, &err), &err);
    histograms[5].len = 0;
    start_ts[6] = 0;
    items[0].value = QF_STR("b");
    CHECK_OK(sg_writer_add_samples(writer, (struct qf_labels){ items, 1 }, &samples, &err), &err);
    finish(world, writer, file);
    source = sg_source_new(&world->readers[file], 1, &select, NULL, 0);
    CHECK_OK(source->next(source, &got, &more, &err), &err);
    CHECK(more);
    CHECK_EQ(got.count, count);
    CHECK(!got.histograms);
    CHECK(!got.start_ts);
    bytes = sg_source_stats(source).bytes;
    source->close(source);
    return bytes;
}

TEST(a_row_group_of_floats_costs_the_same_in_a_file_with_histograms)
{
    QF_CLEANUP(world_done) struct world world = world_make(11);
    uint64_t plain = bytes_of_floats(&world, 0, false);

    CHECK_EQ(bytes_of_floats(&world, 1, true), plain);
}
