/* test_import.c - what is imported is what a store then holds, in bounded memory, all or nothing.
 */
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "base/pure/vec.h"
#include "segments/import/histogram_text.h"
#include "segments/import/import.h"
#include "segments/parquet/segment_reader.h"
#include "tests/lib/test.h"

struct place {
    char root[64], store_path[80], temp[80], input[80];
    struct store *store;
};

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void place_done(struct place *place)
{
    (void)store_free(place->store);
    (void)nftw(place->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static struct place place_make(void)
{
    struct place p = { .root = "/tmp/promfabric-test-XXXXXX" };
    struct store_options options = { .url = p.store_path, .create = true };
    struct qf_err err = { 0 };

    CHECK(mkdtemp(p.root));
    (void)snprintf(p.store_path, sizeof(p.store_path), "%s/store", p.root);
    (void)snprintf(p.temp, sizeof(p.temp), "%s/temp", p.root);
    (void)snprintf(p.input, sizeof(p.input), "%s/input.txt", p.root);
    CHECK_EQ(mkdir(p.temp, 0700), 0);
    CHECK_OK(store_open(&options, &p.store, &err), &err);
    return p;
}

static struct import_options options_of(const struct place *p)
{
    return (struct import_options){ .store = p->store,
                                    .tenant = QF_STR("default"),
                                    .shard_count = 2,
                                    .window_ms = 7200000,
                                    .memory_bytes = IMPORT_MEMORY_MIN,
                                    .temp_dir = p->temp,
                                    .generation = 1 };
}

static bool is_empty(const char *dir)
{
    DIR *opened = opendir(dir);
    struct dirent *entry;
    size_t entries = 0;

    CHECK(opened);
    while ((entry = readdir(opened)) != NULL)
        entries += entry->d_name[0] != '.';
    (void)closedir(opened);
    return entries == 0;
}

static void write_input(const struct place *p, const char *text)
{
    FILE *file = fopen(p->input, "w");

    CHECK(file);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ(fclose(file), 0);
}

/* Import the input file; the temporary folder must be empty after. */
static qf_rc run(const struct place *p, const struct import_options *options,
                 struct import_summary *ret_summary, struct qf_err *err)
{
    struct import *import = import_new(options, err);
    qf_rc rc;

    CHECK_MSG(import, "%s", err->msg);
    rc = import_file(import, p->input, err);
    if (rc == QF_OK)
        rc = import_commit(import, err);
    *ret_summary = import_summary(import);
    (void)import_free(import);
    CHECK(is_empty(p->temp));
    return rc;
}

struct names {
    QF_VEC(char *) items;
};

static bool add_name(void *ctx, const struct store_object *object)
{
    struct names *names = ctx;

    QF_VEC_PUSH(&names->items, qf_xmemdup0(object->name.data, object->name.len));
    return true;
}

/* Everything in the store as lines "series ts=value ts=value", shards merged. */
static char *dump(const struct place *p, size_t *ret_segments)
{
    struct names names = { 0 };
    struct qf_strbuf out = QF_STRBUF_INIT;
    struct seg_reader *readers[64];
    struct pq_select all = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct pq_source *source;
    struct pq_series series;
    struct qf_err err = { 0 };
    bool more = true;
    char path[512], number[QF_DOUBLE_TEXT_MAX];

    CHECK_OK(store_list(p->store, QF_STR(""), QF_STR(""), NULL, add_name, &names, &err), &err);
    CHECK(names.items.count <= QF_COUNT_OF(readers));
    for (size_t i = 0; i < names.items.count; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", p->store_path, names.items.items[i]);
        readers[i] = seg_reader_open(path, &err);
        CHECK_MSG(readers[i], "%s", err.msg);
        CHECK_OK(seg_reader_verify(readers[i], &err), &err);
        free(names.items.items[i]);
    }
    source = segments_source_new(readers, names.items.count, &all, NULL, 0);
    for (;;) {
        CHECK_OK(source->next(source, &series, &more, &err), &err);
        if (!more)
            break;
        qf_labels_print_series(&out, series.labels);
        for (size_t i = 0; i < series.count; i++) {
            (void)qf_double_g(series.values[i], number);
            qf_strbuf_printf(&out, " %lld=", (long long)series.ts[i]);
            if (series.histograms && series.histograms[i])
                histogram_text_print(&out, series.histograms[i]);
            else
                qf_strbuf_puts(&out, qf_is_stale(series.values[i]) ? "stale" : number);
            if (series.start_ts && series.start_ts[i])
                qf_strbuf_printf(&out, "~%lld", (long long)series.start_ts[i]);
        }
        qf_strbuf_putc(&out, '\n');
    }
    source->close(source);
    for (size_t i = 0; i < names.items.count; i++)
        (void)seg_reader_free(readers[i]);
    *ret_segments = names.items.count;
    QF_VEC_DONE(&names.items);
    return qf_strbuf_take(&out);
}

static void check_dump(const struct place *p, size_t segments, const char *want)
{
    size_t count;
    QF_CLEANUP(qf_freep) char *got = dump(p, &count);

    CHECK_STR(got, want);
    CHECK_EQ(count, segments);
}

TEST(lines_in_any_order_become_sorted_series_and_the_last_duplicate_wins)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct import_options options = options_of(&p);
    struct import_summary summary;
    struct qf_err err = { 0 };

    options.shard_count = 1;
    write_input(&p, "# TYPE b gauge\n"
                    "b{x=\"1\"} 3 7200000000000\n"
                    "a 1 7200000005000\n"
                    "b{x=\"1\"} 1 7199999990000\n"
                    "a 9 7200000001000\n"
                    "a 2 7200000001000\n");
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK_EQ(summary.samples, 5);
    CHECK_EQ(summary.stored_samples, 4);
    CHECK_EQ(summary.segments, 2);
    check_dump(&p, 2,
               "a 7200000001000=2 7200000005000=1\n"
               "b{x=\"1\"} 7199999990000=1 7200000000000=3\n");
}

#define HISTOGRAM(count)                                                                           \
    "{count:" count ",sum:1,schema:0,zero_threshold:0,zero_count:0,positive_spans:[0:1],"          \
    "positive_buckets:[" count "]}"

/* Histograms and start timestamps: sorted, deduplicated and cut into windows like any sample, and
 * the only segment without them does not have the columns. */
TEST(histograms_and_start_timestamps_are_imported)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct import_options options = options_of(&p);
    struct import_summary summary;
    struct qf_err err = { 0 };

    options.shard_count = 1;
    options.format = IMPORT_PROMETHEUS;
    write_input(&p, "h " HISTOGRAM("2") " 7200000 st@-5\n"
                                        "h " HISTOGRAM("1") " 1000\n"
                                                            "h 7 2000\n"
                                                            "h 7 3000\n"
                                                            "h " HISTOGRAM("4") " 3000\n"
                                                                                "h StaleNaN 4000\n"
                                                                                "c 5 2000 st@1\n"
                                                                                "c 4 1000\n"
                                                                                "f 1 14400000\n"
                                                                                "f 2 14400001\n");
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK_EQ(summary.stored_samples, 9);
    check_dump(
        &p, 3,
        "c 1000=4 2000=5~1\n"
        "f 14400000=1 14400001=2\n"
        "h 1000=" HISTOGRAM("1") " 2000=7 3000=" HISTOGRAM("4") " 4000=stale"
                                                                " 7200000=" HISTOGRAM("2") "~-5\n");
    options.generation = 2;
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK_EQ(summary.segments, 0);
    CHECK_EQ(summary.segments_present, 3);
    write_input(&p, "h " HISTOGRAM("3") " 1000\n");
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK_EQ(summary.segments, 1);
}

TEST(a_malformed_histogram_is_an_error_of_its_line)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct import_options options = options_of(&p);
    struct import_summary summary;
    struct qf_err err = { 0 };

    options.format = IMPORT_PROMETHEUS;
    write_input(&p, "a 1 5\nh {count:1,sum:2,schema:99} 5\n");
    CHECK_EQ(run(&p, &options, &summary, &err), QF_EPARSE);
    CHECK_MSG(strstr(err.msg, "input.txt:2: a value in a histogram is malformed"), "%s", err.msg);
    CHECK(is_empty(p.store_path));
}

/* Newest first, through several runs on disk; a third are histograms, a third have starts. */
TEST(histograms_go_through_runs_on_disk)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct import_options options = options_of(&p);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf want = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *got = NULL;
    struct import_summary summary;
    struct qf_err err = { 0 };
    int count = 220000;
    char number[QF_DOUBLE_TEXT_MAX];
    size_t segments;

    options.format = IMPORT_PROMETHEUS;
    options.window_ms = 1000000000;
    for (int i = count; i-- > 0;)
        qf_strbuf_printf(&text,
                         i % 3 == 0   ? "h {count:%d,sum:1,schema:0} %d\n"
                         : i % 3 == 1 ? "h %d %d st@7\n"
                                      : "h %d %d\n",
                         i, i * 10);
    qf_strbuf_puts(&want, "h");
    for (int i = 0; i < count; i++) {
        qf_strbuf_printf(&want, " %d=", i * 10);
        if (i % 3 == 0)
            histogram_text_print(&want, &(struct pq_histogram){ .count = i, .sum = 1 });
        else
            qf_strbuf_add(&want, number, qf_double_g(i, number));
        qf_strbuf_puts(&want, i % 3 == 1 ? "~7" : "");
    }
    qf_strbuf_putc(&want, '\n');
    write_input(&p, qf_strbuf_cstr(&text));
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK(summary.runs >= 2);
    got = dump(&p, &segments);
    CHECK(strcmp(got, qf_strbuf_cstr(&want)) == 0);
}

TEST(importing_again_changes_nothing)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct import_options options = options_of(&p);
    struct import_summary summary;
    struct qf_err err = { 0 };

    options.shard_count = 1;
    options.tenant = QF_STR("my_group"); /* "_g" also starts the generation in a name */
    write_input(&p, "a 1 7200000005000\nb 2 7200000005000\n");
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    options.generation = 2;
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK_EQ(summary.segments, 0);
    CHECK_EQ(summary.segments_present, 1);
    check_dump(&p, 1, "a 7200000005000=1\nb 7200000005000=2\n");
    options.generation = 3;
    write_input(&p, "a 5 7200000005000\n");
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    check_dump(&p, 2, "a 7200000005000=5\nb 7200000005000=2\n");
}

TEST(a_malformed_line_stops_the_import_and_nothing_stays)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct import_options options = options_of(&p);
    struct import_summary summary;
    struct qf_err err = { 0 };

    write_input(&p, "a 1 7200000005000\n\nb oops 7200000005000\n");
    CHECK_EQ(run(&p, &options, &summary, &err), QF_EPARSE);
    CHECK(strstr(err.msg, "input.txt:3: the value is not a number"));
    CHECK(is_empty(p.store_path));
}

static void count_malformed(void *ctx, const char *file, uint64_t line, const char *what)
{
    (void)file;
    (void)what;
    *(uint64_t *)ctx = *(uint64_t *)ctx * 100 + line;
}

TEST(malformed_lines_can_be_skipped_and_are_counted)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct import_options options = options_of(&p);
    struct import_summary summary;
    struct qf_err err = { 0 };
    uint64_t lines = 0;

    options.skip_malformed = true;
    options.on_malformed = count_malformed;
    options.ctx = &lines;
    write_input(&p, "a 1 7200000005000\nb oops 7200000005000\nc 3 7200000005000\nc{ 1 2\n");
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK_EQ(summary.malformed, 2);
    CHECK_EQ(lines, 204);
    check_dump(&p, 1, "a 7200000005000=1\nc 7200000005000=3\n");
}

/* The folder of the second day cannot be made: the segment of the first day must go again. */
TEST(a_commit_that_fails_half_way_takes_everything_back)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct import_options options = options_of(&p);
    struct import_summary summary;
    struct qf_err err = { 0 };
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/tenant=default", p.store_path);
    CHECK_EQ(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/tenant=default/date=1970-01-02", p.store_path);
    file = fopen(path, "w");
    CHECK(file);
    CHECK_EQ(fclose(file), 0);
    options.format = IMPORT_PROMETHEUS;
    write_input(&p, "a 1 1000\na 2 90000000\n");
    CHECK(run(&p, &options, &summary, &err) != QF_OK);
    CHECK_EQ(unlink(path), 0);
    check_dump(&p, 0, "");
}

/* 300,000 samples of 500 series, shuffled, through the least memory: several runs on disk. */
TEST(more_samples_than_memory_go_through_runs_and_come_out_the_same)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct import_options options = options_of(&p);
    struct qf_err err = { 0 };
    struct qf_prng prng = { 11 };
    size_t series_count = 500, steps = 1200, segments;
    QF_CLEANUP(qf_freep) uint32_t *order = qf_xcalloc(series_count * steps, sizeof(*order));
    struct import *import = import_new(&options, &err);
    struct qf_strbuf want = QF_STRBUF_INIT;

    CHECK(import);
    for (size_t i = 0; i < series_count * steps; i++) {
        size_t other = qf_prng_below(&prng, i + 1);

        order[i] = order[other];
        order[other] = (uint32_t)i;
    }
    for (size_t i = 0; i < series_count * steps; i++) {
        char host[16];
        struct qf_label item = { QF_STR("host"), { host, 5 } };
        int64_t ts = (int64_t)(order[i] % steps) * 15000;
        double value = order[i];

        (void)snprintf(host, sizeof(host), "h%04u", order[i] / (unsigned)steps);
        CHECK_OK(import_add(import, (struct qf_labels){ &item, 1 }, &ts, &value, 1, &err), &err);
    }
    CHECK_OK(import_commit(import, &err), &err);
    CHECK(import_summary(import).runs >= 2);
    CHECK_EQ(import_summary(import).stored_samples, series_count * steps);
    (void)import_free(import);
    for (size_t s = 0; s < series_count; s++) {
        qf_strbuf_printf(&want, "{host=\"h%04zu\"}", s);
        for (size_t k = 0; k < steps; k++)
            qf_strbuf_printf(&want, " %zu=%zu", k * 15000, s * steps + k);
        qf_strbuf_putc(&want, '\n');
    }
    QF_CLEANUP(qf_freep) char *got = dump(&p, &segments);
    CHECK_EQ(segments, 3 * 2);
    CHECK(strcmp(got, qf_strbuf_cstr(&want)) == 0);
    qf_strbuf_done(&want);
}

/* The same labels, times and values, but a sample belongs to the other series: not the same file.
 */
TEST(samples_that_change_their_series_are_another_segment)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct import_options options = options_of(&p);
    struct import_summary summary;
    struct qf_err err = { 0 };

    options.shard_count = 1;
    write_input(&p, "a 1 7200000001000\na 2 7200000002000\nb 3 7200000003000\n");
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    options.generation = 2;
    write_input(&p, "a 1 7200000001000\nb 2 7200000002000\nb 3 7200000003000\n");
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK_EQ(summary.segments, 1);
    check_dump(&p, 2, "a 7200000001000=1 7200000002000=2\nb 7200000002000=2 7200000003000=3\n");
}

/* One series with 400,000 samples in one window, twice, backwards the second time: more than fits,
 * cut into many records, and the later value of each counts. */
TEST(a_long_series_in_one_window_is_merged_piece_by_piece)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct import_options options = options_of(&p);
    struct qf_err err = { 0 };
    struct qf_label item = { QF_STR("host"), QF_STR("h") };
    struct qf_labels labels = { &item, 1 };
    struct import *import;
    const int64_t count = 400000;
    size_t segments;
    struct qf_strbuf want = QF_STRBUF_INIT;

    options.window_ms = INT64_C(1) << 40;
    import = import_new(&options, &err);
    CHECK(import);
    for (int64_t i = 0; i < 2 * count; i++) {
        int64_t ts = i < count ? i : 2 * count - 1 - i;
        double value = i < count ? -1 : (double)(ts % 100);

        CHECK_OK(import_add(import, labels, &ts, &value, 1, &err), &err);
    }
    CHECK_OK(import_commit(import, &err), &err);
    CHECK(import_summary(import).runs >= 3);
    CHECK_EQ(import_summary(import).series, 1);
    CHECK_EQ(import_summary(import).stored_samples, count);
    (void)import_free(import);
    qf_strbuf_puts(&want, "{host=\"h\"}");
    for (int64_t i = 0; i < count; i++)
        qf_strbuf_printf(&want, " %lld=%lld", (long long)i, (long long)(i % 100));
    qf_strbuf_putc(&want, '\n');
    QF_CLEANUP(qf_freep) char *got = dump(&p, &segments);
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
static void import_world(const struct import_options *options, const struct world *w)
{
    struct qf_err err = { 0 };
    struct import *import = import_new(options, &err);

    CHECK_MSG(import, "%s", err.msg);
    for (size_t k = 200; k-- > 0;)
        for (size_t i = 0; i < w->series_count; i++)
            if (k < w->counts[i])
                CHECK_OK(import_add(import, (struct qf_labels){ &w->labels[i], 1 }, &w->ts[i][k],
                                    &w->values[i][k], 1, &err),
                         &err);
    CHECK_OK(import_commit(import, &err), &err);
    CHECK_EQ(import_summary(import).stored_samples, w->samples);
    (void)import_free(import);
}

static void check_world(const struct place *p, const struct world *w)
{
    struct names names = { 0 };
    struct qf_err err = { 0 };
    struct pq_select all = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct seg_reader **readers;
    struct pq_source *source;
    struct pq_series got;
    bool more;
    char path[512];

    CHECK_OK(store_list(p->store, QF_STR(""), QF_STR(""), NULL, add_name, &names, &err), &err);
    readers = qf_xcalloc(names.items.count, sizeof(struct seg_reader *));
    for (size_t i = 0; i < names.items.count; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", p->store_path, names.items.items[i]);
        readers[i] = seg_reader_open(path, &err);
        CHECK_MSG(readers[i], "%s", err.msg);
        free(names.items.items[i]);
    }
    source = segments_source_new(readers, names.items.count, &all, NULL, 0);
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
    for (size_t i = 0; i < names.items.count; i++)
        (void)seg_reader_free(readers[i]);
    free(readers);
    QF_VEC_DONE(&names.items);
}

TEST(any_window_and_any_number_of_shards_give_the_same_series_bit_for_bit)
{
    static const int64_t windows[] = { 3600000, 7200000, 86400000, 5000011 };

    for (uint64_t seed = 1; seed <= 4; seed++) {
        QF_CLEANUP(place_done) struct place p = place_make();
        QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        struct qf_prng prng = { seed };
        struct import_options options = options_of(&p);
        struct world world = make_world(arena, &prng);

        options.window_ms = windows[qf_prng_below(&prng, QF_COUNT_OF(windows))];
        options.shard_count = 1u << qf_prng_below(&prng, 4);
        import_world(&options, &world);
        check_world(&p, &world);
    }
}

TEST(a_canceled_import_leaves_nothing)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct import_options options = options_of(&p);
    atomic_bool cancel = true;
    struct import_summary summary;
    struct qf_err err = { 0 };

    options.cancel = &cancel;
    write_input(&p, "a 1 7200000005000\n");
    CHECK_EQ(run(&p, &options, &summary, &err), QF_ECANCELED);
    CHECK(is_empty(p.store_path));
}

TEST(options_that_cannot_be_are_refused)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct import_options options = options_of(&p);
    struct qf_err err = { 0 };

    options.shard_count = 3;
    CHECK(!import_new(&options, &err));
    CHECK_EQ(err.rc, QF_EINVAL);
    options = options_of(&p);
    options.tenant = QF_STR("");
    CHECK(!import_new(&options, NULL));
    options = options_of(&p);
    options.temp_dir = "/nonexistent";
    err = (struct qf_err){ 0 };
    CHECK(!import_new(&options, &err));
    CHECK_EQ(err.rc, QF_EIO);
}
