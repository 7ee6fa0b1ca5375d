#include "ingest/head/head.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "promql/parse.h"
#include "tests/lib/test.h"
#include "tests/unit/ingest/head/rig.h"

#define ONE "{__name__=\"m\", s=\"0\"}"

/* --- cuts --- */

TEST(a_read_is_cut_at_its_position)
{
    struct rig rig;
    uint64_t g;

    rig_begin(&rig, 4);
    CHECK_EQ(rig_sample(&rig, "t", 0, true, 100, 1), IN_APPLIED);
    CHECK_EQ(rig_sample(&rig, "t", 0, false, 200, 2), IN_APPLIED);
    CHECK_EQ(rig_sample(&rig, "t", 0, false, 200, 3), IN_APPLIED);
    g = rig_generation(&rig, "t");
    CHECK_READ(&rig, "t", g, 1, ONE " 100:1\n");
    CHECK_READ(&rig, "t", g, 2, ONE " 100:1 200:2\n");
    CHECK_READ(&rig, "t", g, 3, ONE " 100:1 200:3\n");
    CHECK_READ(&rig, "t", g, 0, "");
    CHECK_READ(&rig, "t", g, 4, "unavailable");
    CHECK_READ(&rig, "u", g, 3, "not_found");
    CHECK_READ(&rig, "t", g + 1, 3, "not_found");
    in_head_advance(rig.head, 4);
    CHECK_READ(&rig, "t", g, 4, ONE " 100:1 200:3\n");
    rig_end(&rig);
}

/* The later position wins, whatever the order of times. */
TEST(samples_out_of_order_are_put_in_order)
{
    struct rig rig;

    rig_begin(&rig, 1);
    (void)rig_sample(&rig, "t", 0, true, 300, 1);
    (void)rig_sample(&rig, "t", 0, false, 100, 2);
    (void)rig_sample(&rig, "t", 0, false, 200, 3);
    (void)rig_sample(&rig, "t", 0, false, 100, 4);
    CHECK_READ(&rig, "t", rig_generation(&rig, "t"), 3, ONE " 100:2 200:3 300:1\n");
    CHECK_READ(&rig, "t", rig_generation(&rig, "t"), 4, ONE " 100:4 200:3 300:1\n");
    rig_end(&rig);
}

/* A new leader numbers series it already had anew. */
TEST(a_series_with_two_numbers_is_one)
{
    struct rig rig;
    struct qf_label labels[] = { { QF_STR_INIT("__name__"), QF_STR_INIT("m") },
                                 { QF_STR_INIT("s"), QF_STR_INIT("0") } };
    struct in_sample sample = { .ts = 200, .value = 5 };
    struct in_record_series again = {
        .number = 9, .fresh = true, .labels = { labels, 2 }, .samples = &sample, .sample_count = 1
    };

    rig_begin(&rig, 1);
    (void)rig_sample(&rig, "t", 0, true, 100, 1);
    (void)rig_sample(&rig, "t", 0, false, 200, 2);
    CHECK_EQ(rig_samples(&rig, "t", &again, 1), IN_APPLIED);
    (void)rig_sample(&rig, "t", 0, false, 300, 3);
    CHECK_READ(&rig, "t", rig_generation(&rig, "t"), 4, ONE " 100:1 200:5 300:3\n");
    rig_end(&rig);
}

TEST(samples_of_a_series_that_nobody_defined_are_counted)
{
    struct rig rig;

    rig_begin(&rig, 1);
    (void)rig_sample(&rig, "t", 0, true, 100, 1);
    (void)rig_sample(&rig, "t", 3, false, 100, 1);
    CHECK_EQ(in_head_figures(rig.head).unknown_series, 1);
    CHECK_READ(&rig, "t", rig_generation(&rig, "t"), 2, ONE " 100:1\n");
    rig_end(&rig);
}

TEST(samples_below_the_floor_count_for_nothing)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct rig rig;

    rig_begin(&rig, 1);
    in_record_put_floor(&buf, 150);
    CHECK_EQ(rig_append(&rig, qf_strbuf_view(&buf)), IN_APPLIED);
    (void)rig_sample(&rig, "t", 0, true, 149, 1);
    (void)rig_sample(&rig, "t", 0, false, 150, 2);
    CHECK_READ(&rig, "t", rig_generation(&rig, "t"), 3, ONE " 150:2\n");
    rig_end(&rig);
}

/* --- values --- */

TEST(values_keep_their_bits)
{
    static const double values[] = {
        0.0,       -0.0, 1, 1,      -5,     1e15, 9007199254740992.0, 1e16, 0.1, 0.2, NAN, INFINITY,
        -INFINITY, 3,    4, 1e-300, 5e-324, -7.5, 12345678901234.5,   0
    };
    struct rig rig;
    struct sg_reader *reader;
    struct pq_source *source;
    struct pq_series series;
    struct in_head_answer answer;
    struct qf_err err = { 0 };
    char path[128];
    bool more;

    rig_begin(&rig, 1);
    for (size_t i = 0; i < QF_COUNT_OF(values); i++)
        (void)rig_sample(&rig, "t", 0, i == 0, (int64_t)(i * i) - 50, values[i]);
    (void)snprintf(path, sizeof(path), "%s/x", rig.dir);
    CHECK_OK(in_head_read(rig.head,
                          &(struct in_head_ask){ .tenant = QF_STR("t"),
                                                 .generation = rig_generation(&rig, "t"),
                                                 .cut = rig.index,
                                                 .shards = 1,
                                                 .min_ts = INT64_MIN,
                                                 .max_ts = INT64_MAX,
                                                 .memory_bytes = 1 << 20,
                                                 .path = path },
                          &answer, &err),
             &err);
    CHECK(answer.series == 1 && answer.samples == QF_COUNT_OF(values));
    reader = sg_reader_open(path, &err);
    CHECK_MSG(reader, "%s", err.msg);
    source = sg_source_new(
        &reader, 1, &(struct pq_select){ .min_ts = INT64_MIN, .max_ts = INT64_MAX }, NULL, 0);
    CHECK_OK(source->next(source, &series, &more, &err), &err);
    CHECK_EQ(series.count, QF_COUNT_OF(values));
    for (size_t i = 0; i < QF_COUNT_OF(values); i++) {
        CHECK_BITS(series.values[i], values[i]);
        CHECK_EQ(series.ts[i], (int64_t)(i * i) - 50);
    }
    source->close(source);
    (void)sg_reader_free(reader);
    CHECK(remove(path) == 0);
    rig_end(&rig);
}

TEST(histograms_and_start_times_are_kept)
{
    static double buckets[] = { 1, 2, 4 };
    static struct pq_span spans[] = { { 0, 3 } };
    struct pq_histogram histogram = { .schema = 0,
                                      .zero_threshold = 0.001,
                                      .count = 7,
                                      .sum = 11,
                                      .positive_spans = spans,
                                      .positive_span_count = 1,
                                      .positive_buckets = buckets,
                                      .positive_bucket_count = 3 };
    struct in_sample samples[] = { { .ts = 100, .start_ts = 50, .histogram = &histogram },
                                   { .ts = 200, .start_ts = 50, .value = 3 },
                                   { .ts = 300, .value = 3 } };
    struct qf_label label = { QF_STR_INIT("__name__"), QF_STR_INIT("h") };
    struct in_record_series series = {
        .fresh = true, .labels = { &label, 1 }, .samples = samples, .sample_count = 3
    };
    struct rig rig;
    bool built;
    uint64_t g;

    rig_begin(&rig, 2);
    CHECK_EQ(rig_samples(&rig, "t", &series, 1), IN_APPLIED);
    g = rig_generation(&rig, "t");
    CHECK_READ(&rig, "t", g, 1, "{__name__=\"h\"} 100:h7@50 200:3@50 300:3\n");
    (void)rig_seal(&rig, "t");
    CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
    rig_now += RIG_KEEP_MS;
    in_head_tick(rig.head);
    CHECK_READ(&rig, "t", g, 2, "{__name__=\"h\"} 100:h7@50 200:3@50 300:3\n");
    CHECK_READ(&rig, "t", g, 1, "not_found");
    rig_end(&rig);
}

/* --- what is asked for --- */

static char *ask_for(struct rig *rig, const char *selector, uint32_t shard, uint32_t shards)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct in_head_ask ask = { .tenant = QF_STR("t"),
                               .generation = rig_generation(rig, "t"),
                               .cut = rig->index,
                               .shard = shard,
                               .shards = shards,
                               .min_ts = 100,
                               .max_ts = 200 };
    struct qf_err err = { 0 };
    char *text;

    CHECK_OK(pq_parse_selector(arena, qf_str_from(selector), NULL, &ask.matchers,
                               &ask.matcher_count, &err),
             &err);
    text = rig_ask(rig, ask);
    (void)qf_arena_free(arena);
    return text;
}

static void check_matches(struct rig *rig)
{
    static const struct {
        const char *selector, *want;
    } cases[] = {
        { "{s=\"1\"}", "{__name__=\"m\", s=\"1\"} 101:1\n" },
        { "m{s=~\"[12]\"}", "{__name__=\"m\", s=\"1\"} 101:1\n{__name__=\"m\", s=\"2\"} 102:2\n" },
        { "m{s!~\"[0-8]\"}", "{__name__=\"m\", s=\"9\"} 109:9\n" },
        { "m{s=~\"[0-4]\",s!=\"0\",s=~\".*[04]\"}", "{__name__=\"m\", s=\"4\"} 104:4\n" },
        { "m{s=\"1\",absent=\"\"}", "{__name__=\"m\", s=\"1\"} 101:1\n" },
        { "m{s=\"1\",absent!=\"\"}", "" },
        { "m{s=\"\"}", "" },
        { "n{s=\"1\"}", "" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(cases); i++) {
        char *text = ask_for(rig, cases[i].selector, 0, 1);

        CHECK_STR(text, cases[i].want);
        free(text);
    }
}

TEST(matchers_select_series_in_memory_and_in_files)
{
    struct rig rig;
    bool built;

    rig_begin(&rig, 4);
    for (uint32_t i = 0; i < 10; i++)
        (void)rig_sample(&rig, "t", i, true, 100 + i, i);
    (void)rig_sample(&rig, "t", 1, false, 99, 0); /* outside of the times asked for */
    check_matches(&rig);
    (void)rig_seal(&rig, "t");
    CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
    CHECK(built);
    rig_now += RIG_KEEP_MS;
    in_head_tick(rig.head);
    CHECK_EQ(in_head_figures(rig.head).memory_bytes, 0);
    check_matches(&rig);
    rig_end(&rig);
}

/* Whatever the number of shards asked for, all of them together are everything, each once. */
TEST(shards_of_any_number_make_up_the_whole)
{
    struct rig rig;
    bool built;

    rig_begin(&rig, 4);
    for (uint32_t i = 0; i < 50; i++)
        (void)rig_sample(&rig, "t", i, true, 150, i);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t shards = 1; shards <= 16; shards *= 2) {
            size_t lines = 0;

            for (uint32_t shard = 0; shard < shards; shard++) {
                char *text = ask_for(&rig, "m", shard, shards);

                for (const char *at = text; *at; at++)
                    lines += *at == '\n';
                free(text);
            }
            CHECK_EQ(lines, 50);
        }
        (void)rig_seal(&rig, "t");
        CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
        rig_now += RIG_KEEP_MS;
        in_head_tick(rig.head);
    }
    rig_end(&rig);
}

TEST(a_read_of_more_series_than_its_memory_is_refused)
{
    struct rig rig;
    char *text;

    rig_begin(&rig, 1);
    for (uint32_t i = 0; i < 50; i++)
        (void)rig_sample(&rig, "t", i, true, 150, i);
    text = rig_ask(&rig, (struct in_head_ask){ .tenant = QF_STR("t"),
                                               .generation = rig_generation(&rig, "t"),
                                               .cut = rig.index,
                                               .shards = 1,
                                               .min_ts = INT64_MIN,
                                               .max_ts = INT64_MAX,
                                               .memory_bytes = 49 * 24 });
    CHECK_STR(text, "limit");
    free(text);
    rig_end(&rig);
}

/* --- closed and sealed --- */

/* Files as many as windows, and no sample twice: also with more windows than are written at once. */
TEST(a_closed_range_becomes_files_by_shard_and_window)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct in_head_sealable sealable;
    struct rig rig;
    bool built;
    size_t lines = 0;

    rig_begin(&rig, 2);
    for (uint32_t i = 0; i < 8; i++)
        for (int64_t w = -20; w < 20; w++)
            (void)rig_sample(&rig, "t", i, w == -20, w * 7200000 + i, (double)w);
    CHECK(!in_head_next_sealable(rig.head, NULL, &sealable));
    (void)rig_seal(&rig, "t");
    CHECK(!in_head_next_sealable(rig.head, NULL, &sealable));
    CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
    CHECK(built);
    CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
    CHECK(!built);
    CHECK(in_head_next_sealable(rig.head, NULL, &sealable));
    CHECK(sealable.from == 1 && sealable.to == rig.index && sealable.file_count == 80);
    CHECK_STR(sealable.tenant, "t");
    for (size_t i = 0; i < sealable.file_count; i++) {
        struct sg_segment_name name;

        CHECK(sg_segment_name_parse(qf_str_from(sealable.files[i].name), &name));
        CHECK(name.generation == sealable.generation && name.shard == sealable.files[i].shard);
        CHECK(name.max_ts - name.min_ts < 7200000 && name.shard_count == 2);
        rig_print_segment(sealable.files[i].path, &text);
    }
    for (size_t i = 0; i < text.len; i++)
        lines += text.data[i] == '\n';
    CHECK_EQ(lines, 8 * 40);
    in_head_sealable_done(&sealable);
    CHECK(!in_head_next_sealable(rig.head, "t", &sealable));
    rig_end(&rig);
}

/* A query planned before the end of a range reads it with its cut; one planned before SEALED reads
 * its files; both for as long as a query may take. */
TEST(what_a_query_may_still_ask_for_stays)
{
    struct rig rig;
    bool built;
    uint64_t g;

    rig_begin(&rig, 1);
    (void)rig_sample(&rig, "t", 0, true, 100, 1);
    (void)rig_sample(&rig, "t", 0, false, 100, 2);
    (void)rig_seal(&rig, "t"); /* 3 */
    g = rig_generation(&rig, "t");
    CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
    rig_now += RIG_KEEP_MS - 1;
    in_head_tick(rig.head);
    CHECK_READ(&rig, "t", g, 1, ONE " 100:1\n");
    rig_now += 1;
    in_head_tick(rig.head);
    CHECK_READ(&rig, "t", g, 1, "not_found");
    CHECK_READ(&rig, "t", g, 3, ONE " 100:2\n");
    rig_now += 100 * RIG_KEEP_MS; /* the store is away */
    in_head_tick(rig.head);
    CHECK_READ(&rig, "t", g, 3, ONE " 100:2\n");
    CHECK_EQ(rig_sealed(&rig, "t"), IN_APPLIED);
    rig_now += RIG_KEEP_MS - 1;
    in_head_tick(rig.head);
    CHECK_READ(&rig, "t", g, 4, ONE " 100:2\n");
    rig_now += 1;
    in_head_tick(rig.head);
    CHECK_READ(&rig, "t", g, 4, "not_found");
    CHECK_EQ(in_head_figures(rig.head).sealed_ranges, 0);
    rig_end(&rig);
}

/* Memory that is short is not kept for cuts of queries that may plan again. */
TEST(positions_of_closed_ranges_are_given_up_for_want_of_memory)
{
    struct rig rig;
    uint64_t g[3];
    bool built;

    rig_begin(&rig, 1);
    for (int i = 0; i < 3; i++) {
        (void)rig_sample(&rig, "t", 0, true, 100, i);
        g[i] = rig_generation(&rig, "t");
        if (i < 2)
            (void)rig_seal(&rig, "t");
        rig_now++;
    }
    CHECK(!in_head_give_up(rig.head)); /* nothing has files yet */
    CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
    CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
    CHECK(in_head_give_up(rig.head));
    CHECK_READ(&rig, "t", g[0], 1, "not_found");
    CHECK_READ(&rig, "t", g[0], 5, ONE " 100:0\n");
    CHECK_READ(&rig, "t", g[1], 3, ONE " 100:1\n");
    CHECK(in_head_give_up(rig.head));
    CHECK(!in_head_give_up(rig.head)); /* what is open stays */
    CHECK_READ(&rig, "t", g[2], 5, ONE " 100:2\n");
    rig_end(&rig);
}

TEST(ranges_are_sealed_oldest_first)
{
    struct in_head_sealable sealable;
    struct rig rig;
    bool built;

    rig_begin(&rig, 1);
    for (int i = 0; i < 2; i++) {
        (void)rig_sample(&rig, "b", 0, true, 100, 1);
        (void)rig_sample(&rig, "a", 0, true, 100, 1);
        (void)rig_seal(&rig, "b");
        (void)rig_seal(&rig, "a");
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
        CHECK(built);
    }
    CHECK(in_head_next_sealable(rig.head, NULL, &sealable));
    CHECK_STR(sealable.tenant, "a");
    CHECK_EQ(sealable.from, 2);
    in_head_sealable_done(&sealable);
    CHECK(in_head_next_sealable(rig.head, "a", &sealable));
    CHECK_STR(sealable.tenant, "b");
    CHECK_EQ(sealable.from, 1);
    in_head_sealable_done(&sealable);
    CHECK_EQ(rig_sealed(&rig, "b"), IN_APPLIED);
    CHECK(in_head_next_sealable(rig.head, "a", &sealable));
    CHECK_EQ(sealable.from, 5);
    in_head_sealable_done(&sealable);
    rig_end(&rig);
}

/* --- again from the log --- */

TEST(a_restart_gives_the_same_head)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct in_sample sample = { .ts = 100, .value = 77 };
    struct in_record_series series = { .number = 0, .samples = &sample, .sample_count = 1 };
    struct in_record record = { .tenant = QF_STR("t"), .time_ms = 1, .key = { .given = true } };
    struct rig rig;
    uint64_t g[3];

    rig_begin(&rig, 1);
    for (int i = 0; i < 3; i++) {
        (void)rig_sample(&rig, "t", 0, true, 100, i);
        g[i] = rig_generation(&rig, "t");
        for (int j = 0; i == 1 && j < 2; j++) { /* the second one counts for nothing */
            record.key.body[0] = (uint8_t)j;
            sample.value = 70 + j;
            qf_strbuf_reset(&buf);
            in_record_put_samples(&buf, &record, &series, 1);
            CHECK_EQ(rig_append(&rig, qf_strbuf_view(&buf)), j ? IN_OTHER_BODY : IN_APPLIED);
        }
        if (i < 2)
            (void)rig_seal(&rig, "t");
    }
    CHECK_EQ(rig_sealed(&rig, "t"), IN_APPLIED);
    for (int i = 0; i < 2; i++) {
        CHECK_READ(&rig, "t", g[1], rig.index, ONE " 100:70\n");
        CHECK_READ(&rig, "t", g[2], rig.index, ONE " 100:2\n");
        CHECK_READ(&rig, "t", g[0], rig.index, i ? "not_found" : ONE " 100:0\n");
        rig_restart(&rig);
    }
    (void)rig_sample(&rig, "t", 0, false, 200, 9);
    CHECK_READ(&rig, "t", g[2], rig.index, ONE " 100:2 200:9\n");
    rig_end(&rig);
}

static size_t count_files(const struct rig *rig)
{
    DIR *dir = opendir(rig->dir);
    struct dirent *entry;
    size_t count = 0;

    while ((entry = readdir(dir)))
        count += entry->d_name[0] != '.';
    (void)closedir(dir);
    return count;
}

/* Its samples are not held in memory meanwhile, however many closed ranges wait for the store. */
TEST(files_of_a_closed_range_outlive_the_process)
{
    struct in_head_sealable sealable;
    struct rig rig;
    uint64_t g;
    bool built;

    rig_begin(&rig, 1);
    (void)rig_sample(&rig, "t", 0, true, 100, 1);
    (void)rig_sample(&rig, "t", 0, false, 200, 2);
    g = rig_generation(&rig, "t");
    (void)rig_seal(&rig, "t");
    CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
    CHECK_EQ(count_files(&rig), 2);
    rig_restart(&rig);
    CHECK_EQ(in_head_figures(rig.head).memory_bytes, 0);
    CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
    CHECK(!built);
    CHECK_READ(&rig, "t", g, 3, ONE " 100:1 200:2\n");
    CHECK_READ(&rig, "t", g, 1, "not_found");
    CHECK(in_head_next_sealable(rig.head, NULL, &sealable));
    CHECK(sealable.from == 1 && sealable.to == 3 && sealable.file_count == 1);
    in_head_sealable_done(&sealable);
    CHECK_EQ(rig_sealed(&rig, "t"), IN_APPLIED);
    rig_now += RIG_KEEP_MS;
    in_head_tick(rig.head);
    CHECK_EQ(count_files(&rig), 0);
    rig_end(&rig);
}

/* A file that is missing, cut or of another boot: the range comes out of the log. */
TEST(what_is_not_whole_is_made_again)
{
    for (int wrong = 0; wrong < 3; wrong++) {
        struct rig rig;
        char command[256];
        uint64_t g;
        bool built;

        rig_begin(&rig, 1);
        (void)rig_sample(&rig, "t", 0, true, 100, 1);
        g = rig_generation(&rig, "t");
        (void)rig_seal(&rig, "t");
        CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
        (void)snprintf(command, sizeof(command),
                       wrong == 0   ? "rm %s/*.parquet"
                       : wrong == 1 ? "echo x >> $(echo %s/*.parquet)"
                                    : "sed -i 's/range 2 ./range 2 x/' %s/*.range",
                       rig.dir);
        CHECK_EQ(system(command), 0);
        rig_restart(&rig);
        CHECK_EQ(count_files(&rig), 0);
        CHECK_READ(&rig, "t", g, 2, ONE " 100:1\n");
        CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
        CHECK(built);
        rig_end(&rig);
    }
}

/* Sealed by another node while this one was away. */
TEST(files_of_a_range_that_was_sealed_meanwhile_go)
{
    struct rig rig;
    bool built;

    rig_begin(&rig, 1);
    (void)rig_sample(&rig, "t", 0, true, 100, 1);
    (void)rig_seal(&rig, "t");
    CHECK_EQ(in_head_build(rig.head, &built, &(struct qf_err){ 0 }), QF_OK);
    rig_restart(&rig);
    CHECK_EQ(rig_sealed(&rig, "t"), IN_APPLIED);
    rig_restart(&rig); /* the ledger has it sealed, the head never hears of it */
    in_head_tick(rig.head);
    CHECK_EQ(count_files(&rig), 0);
    rig_end(&rig);
}
