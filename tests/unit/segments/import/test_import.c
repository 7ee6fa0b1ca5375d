/* test_import.c - what the lines of a file say is what a store then holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "segments/annex/annex.h"
#include "segments/import/histogram_text.h"
#include "segments/import/import.h"
#include "tests/lib/segments/place.h"
#include "tests/lib/test.h"

static struct sg_import_options options_of(const struct place *p)
{
    return (struct sg_import_options){ .batch = { .store = p->store,
                                                  .tenant = QF_STR("default"),
                                                  .shard_count = 2,
                                                  .window_ms = 7200000,
                                                  .memory_bytes = SG_IMPORT_MEMORY_MIN,
                                                  .temp_dir = p->temp,
                                                  .generation = 1 } };
}

static void write_input(const struct place *p, const char *text)
{
    FILE *file = fopen(p->input, "w");

    CHECK(file);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQ(fclose(file), 0);
}

/* Import the input file; the temporary folder must be empty after. */
static qf_rc run(const struct place *p, const struct sg_import_options *options,
                 struct sg_import_summary *ret_summary, struct qf_err *err)
{
    struct sg_import *import = sg_import_new(options, err);
    qf_rc rc;

    CHECK_MSG(import, "%s", err->msg);
    rc = sg_import_file(import, p->input, err);
    if (rc == QF_OK)
        rc = sg_import_commit(import, err);
    *ret_summary = sg_import_summary(import);
    (void)sg_import_free(import);
    CHECK(place_is_empty(p->temp));
    return rc;
}

TEST(lines_in_any_order_become_sorted_series_and_the_last_duplicate_wins)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_import_options options = options_of(&p);
    struct sg_import_summary summary;
    struct qf_err err = { 0 };

    options.batch.shard_count = 1;
    write_input(&p, "# TYPE b gauge\n"
                    "b{x=\"1\"} 3 7200000000000\n"
                    "a 1 7200000005000\n"
                    "b{x=\"1\"} 1 7199999990000\n"
                    "a 9 7200000001000\n"
                    "a 2 7200000001000\n");
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK_EQ(summary.batch.samples, 5);
    CHECK_EQ(summary.batch.stored_samples, 4);
    CHECK_EQ(summary.batch.segments, 2);
    place_check(&p, 2,
                "a 7200000001000=2 7200000005000=1\n"
                "b{x=\"1\"} 7199999990000=1 7200000000000=3\n");
}

static bool describe(void *ctx, const struct sg_store_object *object)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    const struct place *p = ((void **)ctx)[0];
    struct qf_strbuf *text = ((void **)ctx)[1];
    struct sg_annex_contents contents;
    struct sg_annex_name name;
    struct qf_err err = { 0 };
    char *data;
    size_t len;

    CHECK(sg_annex_name_parse(object->name, &name));
    CHECK_OK(sg_store_read_all(p->store, object->name, SG_ANNEX_BYTES_MAX, NULL, &data, &len, &err),
             &err);
    CHECK_OK(sg_annex_decode((struct qf_str){ data, len }, &name, arena, &contents, &err), &err);
    for (size_t i = 0; i < contents.count; i++) {
        struct qf_labels series;

        if (contents.kind == SG_ANNEX_METADATA) {
            qf_strbuf_printf(
                text, "%.*s %s \"%.*s\" \"%.*s\"\n", QF_STR_ARG(contents.metadata[i].name),
                qf_metric_type_text(contents.metadata[i].type),
                QF_STR_ARG(contents.metadata[i].help), QF_STR_ARG(contents.metadata[i].unit));
            continue;
        }
        CHECK_OK(qf_labels_decode(arena, contents.exemplars[i].series, &series, &err), &err);
        qf_labels_print_series(text, series);
        qf_strbuf_printf(text, " %g %lld\n", contents.exemplars[i].value,
                         (long long)contents.exemplars[i].ts);
    }
    free(data);
    (void)qf_arena_free(arena);
    return true;
}

/* Imported again, exemplars are where they were. */
TEST(exemplars_and_metadata_are_imported)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct sg_import_options options = options_of(&p);
    struct sg_import_summary summary;
    struct qf_err err = { 0 };

    options.format = SG_IMPORT_OPENMETRICS;
    options.batch.generation = 1000;
    write_input(&p, "# HELP a_seconds How\\nlong\n"
                    "# TYPE a_seconds histogram\n"
                    "# UNIT a_seconds seconds\n"
                    "a_seconds_bucket{le=\"1\"} 3 7200000000 # {trace_id=\"x\"} 0.5\n"
                    "a_seconds_bucket{le=\"1\"} 4 7200000060 # {trace_id=\"y\"} 0.7 7200000059\n"
                    "# TYPE b gauge\n"
                    "# HELP b\n"
                    "b 1 7200000000\n"
                    "# EOF\n");
    for (int i = 0; i < 2; i++) {
        CHECK_OK(run(&p, &options, &summary, &err), &err);
        CHECK(summary.exemplars == 2 && summary.metadata == 2 && summary.samples_stored);
        qf_strbuf_reset(&text);
        CHECK_OK(sg_store_list(p.store, QF_STR(SG_ANNEX_PREFIX), QF_STR(""), NULL, describe,
                               (void *[]){ &p, &text }, &err),
                 &err);
        CHECK_STR(qf_strbuf_cstr(&text), "a_seconds_bucket{le=\"1.0\"} 0.5 7200000000000\n"
                                         "a_seconds_bucket{le=\"1.0\"} 0.7 7200000059000\n"
                                         "a_seconds histogram \"How\nlong\" \"seconds\"\n"
                                         "b gauge \"\" \"\"\n");
    }
}

/* What is malformed is told with its line, and nothing is stored. */
TEST(malformed_exemplars_and_metadata_end_an_import)
{
    static const char *const texts[] = { "# TYPE a meter\n", "# HELP\n", "a 1 5 # {b=\"c\"} x\n",
                                         "a 1 5 # b\n" };

    for (size_t i = 0; i < QF_COUNT_OF(texts); i++) {
        QF_CLEANUP(place_done) struct place p = place_make();
        struct sg_import_options options = options_of(&p);
        struct sg_import_summary summary;
        struct qf_err err = { 0 };
        char text[128];

        options.format = SG_IMPORT_OPENMETRICS;
        (void)snprintf(text, sizeof(text), "# TYPE b gauge\nb 1 5 # {c=\"d\"} 1\n%s", texts[i]);
        write_input(&p, text);
        CHECK_EQ(run(&p, &options, &summary, &err), QF_EPARSE);
        CHECK_MSG(strstr(err.msg, ":3: "), "%s", err.msg);
        place_check(&p, 0, "");
        CHECK(!summary.samples_stored);
    }
}

TEST(more_exemplars_than_memory_allows_are_an_error)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct sg_import_options options = options_of(&p);
    struct sg_import_summary summary;
    struct qf_err err = { 0 };

    options.format = SG_IMPORT_OPENMETRICS;
    options.batch.memory_bytes = SG_IMPORT_MEMORY_MIN;
    for (int i = 0; i < 40000; i++)
        qf_strbuf_printf(&text, "a 1 %d # {trace_id=\"%032d\"} 1\n", i, i);
    write_input(&p, qf_strbuf_cstr(&text));
    CHECK_EQ(run(&p, &options, &summary, &err), QF_ELIMIT);
    CHECK(strstr(err.msg, "exemplars"));
}

#define HISTOGRAM(count)                                                                           \
    "{count:" count ",sum:1,schema:0,zero_threshold:0,zero_count:0,positive_spans:[0:1],"          \
    "positive_buckets:[" count "]}"

/* Histograms and start timestamps: sorted, deduplicated and cut into windows like any sample, and
 * the only segment without them does not have the columns. */
TEST(histograms_and_start_timestamps_are_imported)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_import_options options = options_of(&p);
    struct sg_import_summary summary;
    struct qf_err err = { 0 };

    options.batch.shard_count = 1;
    options.format = SG_IMPORT_PROMETHEUS;
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
    CHECK_EQ(summary.batch.stored_samples, 9);
    place_check(
        &p, 3,
        "c 1000=4 2000=5~1\n"
        "f 14400000=1 14400001=2\n"
        "h 1000=" HISTOGRAM("1") " 2000=7 3000=" HISTOGRAM("4") " 4000=stale"
                                                                " 7200000=" HISTOGRAM("2") "~-5\n");
    options.batch.generation = 2;
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK_EQ(summary.batch.segments, 0);
    CHECK_EQ(summary.batch.segments_present, 3);
    write_input(&p, "h " HISTOGRAM("3") " 1000\n");
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK_EQ(summary.batch.segments, 1);
}

TEST(a_malformed_histogram_is_an_error_of_its_line)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_import_options options = options_of(&p);
    struct sg_import_summary summary;
    struct qf_err err = { 0 };

    options.format = SG_IMPORT_PROMETHEUS;
    write_input(&p, "a 1 5\nh {count:1,sum:2,schema:99} 5\n");
    CHECK_EQ(run(&p, &options, &summary, &err), QF_EPARSE);
    CHECK_MSG(strstr(err.msg, "input.txt:2: a value in a histogram is malformed"), "%s", err.msg);
    CHECK(place_is_empty(p.store_path));
}

/* Newest first, through several runs on disk; a third are histograms, a third have starts. */
TEST(histograms_go_through_runs_on_disk)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_import_options options = options_of(&p);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf want = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *got = NULL;
    struct sg_import_summary summary;
    struct qf_err err = { 0 };
    int count = 220000;
    char number[QF_DOUBLE_TEXT_MAX];
    size_t segments;

    options.format = SG_IMPORT_PROMETHEUS;
    options.batch.window_ms = 1000000000;
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
            sg_histogram_text_print(&want, &(struct pq_histogram){ .count = i, .sum = 1 });
        else
            qf_strbuf_add(&want, number, qf_double_g(i, number));
        qf_strbuf_puts(&want, i % 3 == 1 ? "~7" : "");
    }
    qf_strbuf_putc(&want, '\n');
    write_input(&p, qf_strbuf_cstr(&text));
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK(summary.batch.runs >= 2);
    got = place_dump(&p, &segments);
    CHECK(strcmp(got, qf_strbuf_cstr(&want)) == 0);
}

TEST(importing_again_changes_nothing)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_import_options options = options_of(&p);
    struct sg_import_summary summary;
    struct qf_err err = { 0 };

    options.batch.shard_count = 1;
    options.batch.tenant = QF_STR("my_group"); /* "_g" also starts the generation in a name */
    write_input(&p, "a 1 7200000005000\nb 2 7200000005000\n");
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    options.batch.generation = 2;
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK_EQ(summary.batch.segments, 0);
    CHECK_EQ(summary.batch.segments_present, 1);
    place_check(&p, 1, "a 7200000005000=1\nb 7200000005000=2\n");
    options.batch.generation = 3;
    write_input(&p, "a 5 7200000005000\n");
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    place_check(&p, 2, "a 7200000005000=5\nb 7200000005000=2\n");
}

TEST(a_malformed_line_stops_the_import_and_nothing_stays)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_import_options options = options_of(&p);
    struct sg_import_summary summary;
    struct qf_err err = { 0 };

    write_input(&p, "a 1 7200000005000\n\nb oops 7200000005000\n");
    CHECK_EQ(run(&p, &options, &summary, &err), QF_EPARSE);
    CHECK(strstr(err.msg, "input.txt:3: the value is not a number"));
    CHECK(place_is_empty(p.store_path));
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
    struct sg_import_options options = options_of(&p);
    struct sg_import_summary summary;
    struct qf_err err = { 0 };
    uint64_t lines = 0;

    options.skip_malformed = true;
    options.on_malformed = count_malformed;
    options.ctx = &lines;
    write_input(&p, "a 1 7200000005000\nb oops 7200000005000\nc 3 7200000005000\nc{ 1 2\n");
    CHECK_OK(run(&p, &options, &summary, &err), &err);
    CHECK_EQ(summary.malformed, 2);
    CHECK_EQ(lines, 204);
    place_check(&p, 1, "a 7200000005000=1\nc 7200000005000=3\n");
}

TEST(a_canceled_import_leaves_nothing)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_import_options options = options_of(&p);
    atomic_bool cancel = true;
    struct sg_import_summary summary;
    struct qf_err err = { 0 };

    options.batch.cancel = &cancel;
    write_input(&p, "a 1 7200000005000\n");
    CHECK_EQ(run(&p, &options, &summary, &err), QF_ECANCELED);
    CHECK(place_is_empty(p.store_path));
}
