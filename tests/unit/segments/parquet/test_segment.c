/* test_segment.c - series written to segments come back the same, however they were split. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "base/pure/vec.h"
#include "base/regex/regex.h"
#include "segments/parquet/summary.h"
#include "segments/parquet/segment_reader.h"
#include "segments/parquet/segment_writer.h"
#include "tests/lib/test.h"

#define FILES_MAX 16

/* A folder of its own for one test, and the files written there. */
struct folder {
    char path[64];
    struct qf_arena *arena;
    char *files[FILES_MAX];
    size_t count;
};

static void folder_done(struct folder *folder)
{
    for (size_t i = 0; i < folder->count; i++)
        (void)unlink(folder->files[i]);
    (void)rmdir(folder->path);
    (void)qf_arena_free(folder->arena);
}

static struct folder folder_make(void)
{
    struct folder folder = { .path = "/tmp/promfabric-test-XXXXXX" };

    CHECK(mkdtemp(folder.path));
    folder.arena = qf_arena_new(SIZE_MAX);
    return folder;
}

static char *folder_file(struct folder *folder)
{
    CHECK(folder->count < FILES_MAX);
    folder->files[folder->count] =
        qf_arena_printf(folder->arena, "%s/%zu.parquet", folder->path, folder->count);
    return folder->files[folder->count++];
}

struct series {
    struct qf_labels labels;
    int64_t *ts;
    double *values;
    size_t count;
};

static int by_labels(const void *a, const void *b)
{
    return qf_labels_cmp(((const struct series *)a)->labels, ((const struct series *)b)->labels);
}

/* Labels of any kind Prometheus allows: no name, capitals before __name__, UTF-8, long values. */
static struct qf_labels make_labels(struct qf_arena *arena, struct qf_prng *prng, size_t number)
{
    struct qf_label *items = QF_ARENA_ARRAY(arena, struct qf_label, 8);
    size_t count = 0;

    if (!qf_prng_chance(prng, 0.05))
        items[count++] = (struct qf_label){
            QF_STR(QF_METRIC_NAME),
            qf_str_from(qf_arena_printf(arena, "metric_%02d", (int)qf_prng_below(prng, 12)))
        };
    items[count++] = (struct qf_label){ QF_STR("instance"),
                                        qf_str_from(qf_arena_printf(arena, "h%zu", number)) };
    if (qf_prng_chance(prng, 0.3))
        items[count++] = (struct qf_label){ QF_STR("Zone"), QF_STR("é\n\"x\"") };
    if (qf_prng_chance(prng, 0.5))
        items[count++] = (struct qf_label){
            QF_STR("job"), qf_str_from(qf_arena_printf(arena, "j%d", (int)qf_prng_below(prng, 3)))
        };
    return qf_labels_normalize(items, count);
}

static double make_value(struct qf_prng *prng)
{
    switch (qf_prng_below(prng, 5)) {
    case 0:
        return qf_double_from_bits(QF_STALE_NAN_BITS);
    case 1:
        return qf_double_from_bits(qf_prng_next(prng)); /* any bits, odd NaNs included */
    case 2:
        return -0.0;
    default:
        return (double)qf_prng_below(prng, 1000);
    }
}

/* Of one scale for a series, growing or not. */
static double make_decimal(struct qf_prng *prng, size_t number)
{
    static const double powers[] = { 1, 1000, 1e9 };

    return (double)((int64_t)qf_prng_below(prng, 1000000) - (number % 2 ? 0 : 500000)) /
           powers[number / 3 % 3];
}

static struct series *make_world(struct qf_arena *arena, struct qf_prng *prng, size_t count,
                                 size_t samples_max)
{
    struct series *world = QF_ARENA_ARRAY(arena, struct series, count);

    for (size_t i = 0; i < count; i++) {
        struct series *s = &world[i];
        int64_t ts = 1700000000000 + (int64_t)qf_prng_below(prng, 100000);

        s->labels = make_labels(arena, prng, i);
        s->count = 1 + qf_prng_below(prng, samples_max);
        s->ts = QF_ARENA_ARRAY(arena, int64_t, s->count);
        s->values = QF_ARENA_ARRAY(arena, double, s->count);
        for (size_t k = 0; k < s->count; k++) {
            s->ts[k] = ts;
            s->values[k] = i % 3 ? make_value(prng) : make_decimal(prng, i);
            ts += 1 + (int64_t)qf_prng_below(prng, 30000);
        }
    }
    qsort(world, count, sizeof(*world), by_labels);
    return world;
}

/* Write those samples that @pick chooses; returns NULL if there are none. */
static char *write_part(struct folder *folder, const struct series *world, size_t count,
                        struct sg_writer_options options,
                        bool (*pick)(void *ctx, size_t series, size_t sample, double *value),
                        void *ctx)
{
    struct qf_err err = { 0 };
    struct sg_segment_name name;
    struct sg_writer *writer;
    size_t written = 0;
    char *path = folder_file(folder);

    options.path = path;
    if (!options.schema_version) /* files of both versions, side by side */
        options.schema_version = 1 + (uint32_t)folder->count % 2;
    writer = sg_writer_new(&options, &err);
    CHECK_MSG(writer, "%s", err.msg);
    for (size_t i = 0; i < count; i++) {
        const struct series *s = &world[i];
        QF_CLEANUP(qf_freep) int64_t *ts = qf_xcalloc(s->count, sizeof(*ts));
        QF_CLEANUP(qf_freep) double *values = qf_xcalloc(s->count, sizeof(*values));
        size_t n = 0;

        if (sg_shard_of(s->labels, options.shard_count) != options.shard)
            continue;
        for (size_t k = 0; k < s->count; k++) {
            values[n] = s->values[k];
            if (pick && !pick(ctx, i, k, &values[n]))
                continue;
            ts[n++] = s->ts[k];
        }
        if (!n)
            continue;
        CHECK_OK(sg_writer_add(writer, s->labels, ts, values, n, &err), &err);
        written += n;
    }
    if (written) {
        CHECK_OK(sg_writer_finish(writer, &name, &err), &err);
        CHECK_EQ(name.shard, options.shard);
    }
    (void)sg_writer_free(writer);
    CHECK_EQ(access(path, F_OK), written ? 0 : -1);
    return written ? path : NULL;
}

static const struct sg_writer_options plain = { .tenant = QF_STR_INIT("default"),
                                                .shard_count = 1,
                                                .generation = 1 };

struct readers {
    struct sg_reader *items[FILES_MAX];
    size_t count;
};

static void readers_done(struct readers *readers)
{
    for (size_t i = 0; i < readers->count; i++)
        (void)sg_reader_free(readers->items[i]);
}

static void readers_add(struct readers *readers, const char *path)
{
    struct qf_err err = { 0 };

    if (!path)
        return;
    readers->items[readers->count] = sg_reader_open(path, &err);
    CHECK_MSG(readers->items[readers->count], "%s", err.msg);
    CHECK_OK(sg_reader_verify(readers->items[readers->count], &err), &err);
    readers->count++;
}

/* What a source gives must be the world cut to the selection. Returns the series seen. */
static size_t check_source(const struct readers *readers, const struct series *world, size_t count,
                           const struct pq_select *select)
{
    struct pq_source *source = sg_source_new(readers->items, readers->count, select, NULL, 0);
    struct qf_err err = { 0 };
    size_t seen = 0;

    for (size_t i = 0; i <= count; i++) {
        struct pq_series got;
        bool more;
        size_t first = 0, end = 0;

        if (i < count) {
            if (!pq_matchers_match(select->matchers, select->matcher_count, world[i].labels))
                continue;
            while (first < world[i].count && world[i].ts[first] < select->min_ts)
                first++;
            end = first;
            while (end < world[i].count && world[i].ts[end] <= select->max_ts)
                end++;
            if (first == end)
                continue;
        }
        CHECK_OK(source->next(source, &got, &more, &err), &err);
        CHECK(more == (i < count));
        if (!more)
            break;
        CHECK(qf_labels_eq(got.labels, world[i].labels));
        CHECK_EQ(got.count, end - first);
        CHECK(memcmp(got.ts, world[i].ts + first, got.count * sizeof(*got.ts)) == 0);
        CHECK(memcmp(got.values, world[i].values + first, got.count * sizeof(double)) == 0);
        seen++;
    }
    source->close(source);
    return seen;
}

static const struct pq_select everything = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };

TEST(a_segment_gives_back_what_was_written_bit_for_bit)
{
    QF_CLEANUP(folder_done) struct folder folder = folder_make();
    QF_CLEANUP(readers_done) struct readers readers = { 0 };
    struct qf_prng prng = { 1 };
    struct series *world = make_world(folder.arena, &prng, 300, 400);
    const struct sg_meta *meta;

    readers_add(&readers, write_part(&folder, world, 300, plain, NULL, NULL));
    CHECK_EQ(check_source(&readers, world, 300, &everything), 300);
    meta = sg_reader_meta(readers.items[0]);
    CHECK_EQ(meta->series_count, 300);
    CHECK_EQ(meta->name.generation, 1);
    CHECK(qf_str_is(meta->name.tenant, "default"));
    CHECK(meta->summary.len > 0);
}

/* A series longer than a row group is split into rows and must come back as one. */
TEST(a_series_longer_than_a_row_group_comes_back_as_one)
{
    QF_CLEANUP(folder_done) struct folder folder = folder_make();
    QF_CLEANUP(readers_done) struct readers readers = { 0 };
    struct qf_prng prng = { 2 };
    struct series *world = make_world(folder.arena, &prng, 3, 100);
    struct series *s = &world[1];

    s->count = SG_ROW_GROUP_SAMPLES * 2 + 17;
    s->ts = QF_ARENA_ARRAY(folder.arena, int64_t, s->count);
    s->values = QF_ARENA_ARRAY(folder.arena, double, s->count);
    for (size_t i = 0; i < s->count; i++) {
        s->ts[i] = (int64_t)i * 1000;
        s->values[i] = (double)i;
    }
    readers_add(&readers, write_part(&folder, world, 3, plain, NULL, NULL));
    CHECK_EQ(check_source(&readers, world, 3, &everything), 3);
    CHECK_EQ(sg_reader_meta(readers.items[0])->series_count, 3);
}

struct split {
    uint64_t seed;
    size_t files, file;
    bool overlap;
};

/* Each sample belongs to one file; with overlap, older files hold it as well, with another value.
 */
static bool pick_split(void *ctx, size_t series, size_t sample, double *value)
{
    struct split *split = ctx;
    struct qf_prng prng = { split->seed ^ (series * 1000003 + sample) };
    size_t owner = qf_prng_below(&prng, split->files);

    if (owner == split->file)
        return true;
    if (!split->overlap || split->file > owner || qf_prng_chance(&prng, 0.5))
        return false;
    *value = 12345.5;
    return true;
}

TEST(any_split_into_files_gives_the_same_answer_and_the_newest_wins)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        QF_CLEANUP(folder_done) struct folder folder = folder_make();
        QF_CLEANUP(readers_done) struct readers readers = { 0 };
        struct qf_prng prng = { seed };
        size_t count = 1 + qf_prng_below(&prng, 120);
        struct series *world = make_world(folder.arena, &prng, count, 60);
        struct split split = { seed, 1 + qf_prng_below(&prng, 6), 0, seed % 2 == 0 };
        struct pq_select select = everything;

        for (split.file = split.files;
             split.file-- > 0;) { /* newest first: order must not matter */
            struct sg_writer_options options = plain;

            options.generation = 100 + split.file;
            readers_add(&readers, write_part(&folder, world, count, options, pick_split, &split));
        }
        CHECK_EQ(check_source(&readers, world, count, &everything), count);
        select.min_ts = 1700000000000 + 300000;
        select.max_ts = select.min_ts + (int64_t)qf_prng_below(&prng, 600000);
        (void)check_source(&readers, world, count, &select);
    }
}

/* Rows of many samples at uneven distances, of which a window is read from the end. */
TEST(any_window_of_long_rows_has_its_samples_and_no_others)
{
    QF_CLEANUP(folder_done) struct folder folder = folder_make();
    QF_CLEANUP(readers_done) struct readers readers = { 0 };
    struct qf_prng prng = { 77 };
    struct series *world = make_world(folder.arena, &prng, 30, 3000);
    int64_t first = 1700000000000;

    for (size_t i = 0; i < 30; i++) /* most of them at the start, or at the end */
        for (size_t k = 0; k < world[i].count; k++)
            world[i].ts[k] = i % 3 == 0   ? first + (int64_t)(k * k)
                             : i % 3 == 1 ? first + 9000000 - (int64_t)((3000 - k) * (3000 - k))
                                          : world[i].ts[k];
    readers_add(&readers, write_part(&folder, world, 30, plain, NULL, NULL));
    for (int round = 0; round < 60; round++) {
        struct pq_select select = everything;

        select.min_ts = first - 1000 + (int64_t)qf_prng_below(&prng, 50000000);
        if (round % 3)
            select.min_ts = first + 9000000 - (int64_t)qf_prng_below(&prng, 9000000);
        if (round % 2)
            select.max_ts = select.min_ts + (int64_t)qf_prng_below(&prng, 2000000);
        (void)check_source(&readers, world, 30, &select);
    }
}

TEST(any_number_of_shards_holds_every_series_once)
{
    for (uint32_t shards = 1; shards <= 8; shards *= 2) {
        QF_CLEANUP(folder_done) struct folder folder = folder_make();
        QF_CLEANUP(readers_done) struct readers readers = { 0 };
        struct qf_prng prng = { shards };
        struct series *world = make_world(folder.arena, &prng, 90, 20);

        for (uint32_t shard = 0; shard < shards; shard++) {
            struct sg_writer_options options = plain;

            options.shard = shard;
            options.shard_count = shards;
            readers_add(&readers, write_part(&folder, world, 90, options, NULL, NULL));
        }
        CHECK_EQ(check_source(&readers, world, 90, &everything), 90);
    }
}

TEST(matchers_select_the_series_prometheus_would)
{
    QF_CLEANUP(folder_done) struct folder folder = folder_make();
    QF_CLEANUP(readers_done) struct readers readers = { 0 };
    struct qf_prng prng = { 5 };
    struct series *world = make_world(folder.arena, &prng, 400, 30);
    char msg[100];
    struct qf_regex *hosts = qf_regex_new("h1.*", 4, msg, sizeof(msg));
    struct pq_matcher sets[][2] = {
        { { PQ_MATCH_EQUAL, QF_STR("__name__"), QF_STR("metric_03"), NULL },
          { PQ_MATCH_EQUAL, QF_STR("job"), QF_STR("j1"), NULL } },
        { { PQ_MATCH_EQUAL, QF_STR("__name__"), QF_STR(""), NULL },
          { PQ_MATCH_NOT_EQUAL, QF_STR("job"), QF_STR("j1"), NULL } },
        { { PQ_MATCH_NOT_EQUAL, QF_STR("Zone"), QF_STR(""), NULL },
          { PQ_MATCH_EQUAL, QF_STR("job"), QF_STR(""), NULL } },
        { { PQ_MATCH_REGEX, QF_STR("instance"), QF_STR("h1.*"), hosts },
          { PQ_MATCH_NOT_EQUAL, QF_STR("nobody"), QF_STR("x"), NULL } },
        { { PQ_MATCH_NOT_REGEX, QF_STR("instance"), QF_STR("h1.*"), hosts },
          { PQ_MATCH_EQUAL, QF_STR("__name__"), QF_STR("metric_11"), NULL } },
        { { PQ_MATCH_EQUAL, QF_STR("__name__"), QF_STR("zzz"), NULL },
          { PQ_MATCH_EQUAL, QF_STR("nobody"), QF_STR("x"), NULL } },
    };

    CHECK(hosts);
    readers_add(&readers, write_part(&folder, world, 400, plain, NULL, NULL));
    for (size_t i = 0; i < QF_COUNT_OF(sets); i++) {
        struct pq_select select = everything;
        size_t seen;

        select.matchers = sets[i];
        select.matcher_count = 2;
        seen = check_source(&readers, world, 400, &select);
        CHECK(i == 5 ? seen == 0 : seen > 0);
    }
    (void)qf_regex_free(hosts);
}

static struct series *make_metrics(struct qf_arena *arena, size_t metrics, size_t hosts,
                                   size_t samples)
{
    struct series *world = QF_ARENA_ARRAY(arena, struct series, metrics * hosts);

    for (size_t i = 0; i < metrics * hosts; i++) {
        struct qf_label *items = QF_ARENA_ARRAY(arena, struct qf_label, 2);
        struct series *s = &world[i];

        items[0].name = QF_STR(QF_METRIC_NAME);
        items[0].value = qf_str_from(qf_arena_printf(arena, "m%03zu", i / hosts));
        items[1].name = QF_STR("host");
        items[1].value = qf_str_from(qf_arena_printf(arena, "h%05zu", i % hosts));
        *s = (struct series){ .labels = { items, 2 }, .count = samples };
        s->ts = QF_ARENA_ARRAY(arena, int64_t, samples);
        s->values = QF_ARENA_ARRAY(arena, double, samples);
        for (size_t k = 0; k < samples; k++) {
            s->ts[k] = (int64_t)k * 15000;
            s->values[k] = (double)(k * i % 1000);
        }
    }
    return world;
}

TEST(a_selector_on_one_metric_touches_few_row_groups)
{
    QF_CLEANUP(folder_done) struct folder folder = folder_make();
    QF_CLEANUP(readers_done) struct readers readers = { 0 };
    struct series *world = make_metrics(folder.arena, 20, 150, 480);
    struct pq_matcher name = { PQ_MATCH_EQUAL, QF_STR("__name__"), QF_STR("m007"), NULL };
    struct pq_select select = { &name, 1, 0, INT64_MAX };
    struct qf_err err = { 0 };
    struct sg_source_stats stats;
    struct pq_source *source;
    struct pq_series series;
    bool more = true;

    readers_add(&readers, write_part(&folder, world, 3000, plain, NULL, NULL));
    source = sg_source_new(readers.items, 1, &select, NULL, 0);
    while (more)
        CHECK_OK(source->next(source, &series, &more, &err), &err);
    stats = sg_source_stats(source);
    source->close(source);
    CHECK_EQ(stats.series, 150);
    CHECK_EQ(stats.samples, 150 * 480);
    CHECK_EQ(stats.row_groups_pruned, 19); /* 72,000 samples each: a row group per metric */
    CHECK_EQ(stats.row_groups_read, 1);
    /* Of a row group only what is wanted is kept. */
    CHECK(stats.memory_peak < 1u << 20); /* encoded, and one series decoded */
}

TEST(a_scan_over_its_memory_limit_ends_with_a_clear_error)
{
    QF_CLEANUP(folder_done) struct folder folder = folder_make();
    QF_CLEANUP(readers_done) struct readers readers = { 0 };
    struct series *world = make_metrics(folder.arena, 2, 100, 480);
    struct qf_err err = { 0 };
    struct pq_source *source;
    struct pq_series series;
    bool more = true;

    readers_add(&readers, write_part(&folder, world, 200, plain, NULL, NULL));
    source = sg_source_new(readers.items, 1, &everything, NULL, 1u << 16);
    CHECK_EQ(source->next(source, &series, &more, &err), QF_ELIMIT);
    CHECK(strstr(err.msg, "0.parquet"));
    source->close(source);
}

TEST(a_canceled_scan_stops)
{
    QF_CLEANUP(folder_done) struct folder folder = folder_make();
    QF_CLEANUP(readers_done) struct readers readers = { 0 };
    struct series *world = make_metrics(folder.arena, 1, 10, 10);
    struct qf_err err = { 0 };
    atomic_bool cancel = false;
    struct pq_source *source;
    struct pq_series series;
    bool more = true;

    readers_add(&readers, write_part(&folder, world, 10, plain, NULL, NULL));
    source = sg_source_new(readers.items, 1, &everything, &cancel, 0);
    CHECK_OK(source->next(source, &series, &more, &err), &err);
    atomic_store(&cancel, true);
    CHECK_EQ(source->next(source, &series, &more, &err), QF_ECANCELED);
    source->close(source);
}

TEST(a_writer_refuses_what_is_out_of_order)
{
    QF_CLEANUP(folder_done) struct folder folder = folder_make();
    struct series *world = make_metrics(folder.arena, 1, 3, 5);
    struct sg_writer_options options = plain;
    struct qf_err err = { 0 };
    struct sg_segment_name name;
    struct sg_writer *writer;
    int64_t backwards[] = { 5, 4 };
    double values[] = { 1, 2 };

    options.path = folder_file(&folder);
    writer = sg_writer_new(&options, &err);
    CHECK(writer);
    CHECK_EQ(sg_writer_finish(writer, &name, &err), QF_EINVAL);
    CHECK_EQ(sg_writer_add(writer, world[1].labels, backwards, values, 2, NULL), QF_EINVAL);
    CHECK_EQ(sg_writer_add(writer, world[1].labels, world[1].ts, values, 2, NULL), QF_OK);
    CHECK_EQ(sg_writer_add(writer, world[0].labels, world[0].ts, values, 2, NULL), QF_EINVAL);
    CHECK_EQ(sg_writer_add(writer, world[1].labels, world[1].ts, values, 2, NULL), QF_EINVAL);
    (void)sg_writer_free(writer);
    CHECK_EQ(access(options.path, F_OK), -1);
    options.shard_count = 3;
    CHECK(!sg_writer_new(&options, NULL));
    options.shard_count = 1;
    options.tenant = QF_STR("../x");
    CHECK(!sg_writer_new(&options, NULL));
}

TEST(metadata_can_be_read_from_the_tail_alone)
{
    QF_CLEANUP(folder_done) struct folder folder = folder_make();
    struct series *world = make_metrics(folder.arena, 3, 30, 100);
    struct qf_err err = { 0 };
    struct sg_meta meta;
    char *path = write_part(&folder, world, 90, plain, NULL, NULL);
    int fd = open(path, O_RDONLY);
    off_t size = lseek(fd, 0, SEEK_END);
    QF_CLEANUP(qf_freep) char *bytes = qf_xmalloc((size_t)size);
    uint64_t need;

    CHECK_EQ(pread(fd, bytes, (size_t)size, 0), size);
    CHECK_EQ(close(fd), 0);
    CHECK_OK(sg_meta_from_tail(folder.arena, path, (struct qf_str){ bytes + size - 100, 100 },
                               (uint64_t)size, &meta, &need, &err),
             &err);
    CHECK(need > 100);
    CHECK_OK(sg_meta_from_tail(folder.arena, path,
                               (struct qf_str){ bytes + size - (off_t)need, need }, (uint64_t)size,
                               &meta, &need, &err),
             &err);
    if (need) /* the hashes lie in front of what the first answer could know of */
        CHECK_OK(sg_meta_from_tail(folder.arena, path,
                                   (struct qf_str){ bytes + size - (off_t)need, need },
                                   (uint64_t)size, &meta, &need, &err),
                 &err);
    CHECK_EQ(need, 0);
    CHECK_EQ(meta.series_count, 90);
    CHECK_EQ(meta.sample_count, 9000);
    CHECK_EQ(meta.name.max_ts, 99 * 15000);
    struct sg_summary *summary = sg_summary_parse(meta.summary);
    struct pq_matcher known = { PQ_MATCH_EQUAL, QF_STR("host"), QF_STR("h00007"), NULL };
    struct pq_matcher unknown = { PQ_MATCH_EQUAL, QF_STR("host"), QF_STR("other"), NULL };

    CHECK(summary);
    CHECK(sg_summary_may_match(summary, &known, 1));
    CHECK(!sg_summary_may_match(summary, &unknown, 1));
    (void)sg_summary_free(summary);
}
