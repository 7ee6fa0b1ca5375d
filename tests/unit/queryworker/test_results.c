/* test_results.c - a work that begins with the result of an earlier one answers as one that does not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/prng.h"
#include "promql/parse.h"
#include "promql/plan.h"
#include "queryworker/work/executor.h"
#include "segments/parquet/segment_writer.h"
#include "tests/lib/test.h"

#define SCRAPE_MS 15000
#define STEP_MS 60000
#define WINDOW_MS 1200000 /* of a segment */
#define SAMPLES_MAX 100   /* of a series in it, or in a head */
#define FILES 24
#define SERIES 6

static const char *const queries[] = {
    "sum by (g) (rate(m_total[5m]))", "m_total",
    "topk(2, rate(m_total[2m]))",     "max_over_time(m_total[10m] offset 3m)",
    "count(m_total > 500)",
};

/* Segments of one shard as they come and go. */
struct bench {
    struct qf_prng prng;
    char dir[32];
    struct qf_mailbox *mailbox;
    struct qw_spool *spool;
    struct file {
        char path[64];
        struct sg_reader *reader;
        bool head;
    } files[FILES];
    size_t count;
    uint64_t generation;
};

static void begin(struct bench *bench, uint64_t seed)
{
    struct qf_err err = { 0 };
    char dir[64];

    *bench = (struct bench){ .prng = { seed }, .mailbox = qf_mailbox_new(4) };
    (void)snprintf(bench->dir, sizeof(bench->dir), "/tmp/pf-results-XXXXXX");
    CHECK(mkdtemp(bench->dir));
    (void)snprintf(dir, sizeof(dir), "%s/spool", bench->dir);
    bench->spool = qw_spool_open(dir, 64 << 20, &err);
    CHECK_MSG(bench->spool, "%s", err.msg);
}

static void drop_file(struct bench *bench, size_t i)
{
    (void)sg_reader_free(bench->files[i].reader);
    (void)unlink(bench->files[i].path);
    bench->files[i] = bench->files[--bench->count];
}

static void end(struct bench *bench)
{
    char dir[64];

    while (bench->count)
        drop_file(bench, 0);
    (void)snprintf(dir, sizeof(dir), "%s/spool", bench->dir);
    bench->spool = qw_spool_free(bench->spool);
    bench->mailbox = qf_mailbox_free(bench->mailbox, NULL);
    (void)rmdir(dir);
    (void)rmdir(bench->dir);
}

/* Random samples from @min_ts until before @max_ts; the newest file wins where several have one. */
static void add_file(struct bench *bench, int64_t min_ts, int64_t max_ts, bool head)
{
    struct file *file = &bench->files[bench->count];
    struct sg_writer_options options = {
        .path = file->path, .tenant = QF_STR("t"), .shard_count = 1, .unsynced = true
    };
    struct sg_segment_name name;
    struct sg_writer *writer;
    struct qf_err err = { 0 };

    CHECK(bench->count < FILES);
    options.generation = ++bench->generation;
    (void)snprintf(file->path, sizeof(file->path), "%s/%llu", bench->dir,
                   (unsigned long long)bench->generation);
    writer = sg_writer_new(&options, &err);
    CHECK_MSG(writer, "%s", err.msg);
    for (int s = 0; s < SERIES; s++) {
        char i[2] = { (char)('0' + s), 0 };
        struct qf_label labels[] = { { QF_STR("__name__"), QF_STR("m_total") },
                                     { QF_STR("g"), qf_str_from(s < SERIES / 2 ? "0" : "1") },
                                     { QF_STR("i"), qf_str_from(i) } };
        double values[SAMPLES_MAX], total = qf_prng_unit(&bench->prng) * 100;
        int64_t ts[SAMPLES_MAX];
        size_t count = 0;

        for (int64_t t = min_ts; t < max_ts; t += SCRAPE_MS) {
            total += qf_prng_unit(&bench->prng) * 10;
            if (qf_prng_below(&bench->prng, 10) == 0)
                continue;
            ts[count] = t;
            values[count++] = total;
        }
        if (count)
            CHECK_OK(sg_writer_add(writer, (struct qf_labels){ .items = labels, .count = 3 }, ts,
                                   values, count, &err),
                     &err);
    }
    CHECK_OK(sg_writer_finish(writer, &name, &err), &err);
    writer = sg_writer_free(writer);
    file->reader = sg_reader_open(file->path, &err);
    CHECK_MSG(file->reader, "%s", err.msg);
    file->head = head;
    bench->count++;
}

/* The bytes of the leaf of @query, from @start on. */
static struct qf_str make_spec(struct qf_arena *arena, const char *query, int64_t start,
                               uint64_t steps, struct pq_select *ret_select)
{
    struct pq_parse_options options = { 0 };
    struct pq_query_params params = { .start_ms = start,
                                      .end_ms = start + (int64_t)(steps - 1) * STEP_MS,
                                      .step_ms = STEP_MS };
    struct qf_strbuf spec = QF_STRBUF_INIT;
    struct pq_expr *expr;
    struct pq_plan *plan;
    struct qf_err err = { 0 };
    struct qf_str copy;

    CHECK_OK(pq_parse(arena, qf_str_from(query), &options, &expr, &err), &err);
    CHECK_OK(pq_plan_new(arena, expr, qf_str_from(query), &params, &plan, &err), &err);
    CHECK_EQ(plan->leaf_count, 1);
    pq_leaf_encode(plan->leaves[0], &spec);
    *ret_select = plan->leaves[0]->select;
    copy = qf_arena_str(arena, qf_strbuf_view(&spec));
    qf_strbuf_done(&spec);
    return copy;
}

/* Run it over the files whose times it reads, as a plan would have it. */
static struct qw_task *run(struct bench *bench, struct qf_str spec, const struct pq_select *select,
                           struct qw_results *results)
{
    struct qw_task *task = qf_xcalloc(1, sizeof(*task));

    *task = (struct qw_task){ .mailbox = bench->mailbox,
                              .spool = bench->spool,
                              .token = qw_spool_token(),
                              .spec = spec,
                              .tenant = QF_STR("t"),
                              .limits = { 1000000, 64 << 20, 16 << 20 },
                              .results = results };
    task->segments = qf_xcalloc(FILES, sizeof(*task->segments));
    for (size_t i = 0; i < bench->count; i++) {
        const struct sg_segment_name *name = &sg_reader_meta(bench->files[i].reader)->name;

        if (name->max_ts < select->min_ts || name->min_ts > select->max_ts)
            continue;
        task->segments[task->segment_count++] =
            (struct qw_task_segment){ .path = bench->files[i].path,
                                      .label = bench->files[i].path,
                                      .reader = bench->files[i].reader,
                                      .head = bench->files[i].head };
    }
    qw_task_run(task);
    CHECK(qf_mailbox_try_receive(bench->mailbox) == task);
    CHECK_MSG(task->rc == QF_OK, "%s", task->err.msg);
    CHECK(task->in_memory);
    return task;
}

static struct pq_leaf_reader *read_back(struct bench *bench, const struct qw_task *task,
                                        struct qw_shelf_item **ret_item)
{
    struct pq_leaf_reader *reader;
    struct qf_err err = { 0 };

    *ret_item = qw_spool_find(bench->spool, qf_str_from(task->token.text));
    CHECK(*ret_item);
    reader = sg_artifact_open_memory(qw_shelf_bytes(*ret_item), "artifact", NULL, &err);
    CHECK_MSG(reader, "%s", err.msg);
    return reader;
}

static void check_rows(struct pq_leaf_reader *a, struct pq_leaf_reader *b)
{
    struct qf_err err = { 0 };
    struct pq_rows x, y;

    CHECK_EQ(a->series_count, b->series_count);
    for (size_t i = 0; i < a->series_count; i++)
        CHECK_EQ(qf_labels_cmp(a->series[i], b->series[i]), 0);
    CHECK_EQ(a->points, b->points);
    CHECK_EQ(a->notes.count, b->notes.count);
    do {
        CHECK_OK(a->next(a, &x, &err), &err);
        CHECK_OK(b->next(b, &y, &err), &err);
        CHECK_EQ(x.count, y.count);
        for (size_t i = 0; i < x.count; i++) {
            CHECK_EQ(x.ts[i], y.ts[i]);
            CHECK_EQ(x.series[i], y.series[i]);
            for (size_t c = 0; c < a->kind->column_count; c++)
                CHECK_BITS(x.columns[c][i], y.columns[c][i]);
        }
    } while (x.count);
}

/* The same rows with and without; returns how many samples less were looked at. */
static uint64_t check_same(struct bench *bench, struct qw_results *results, const char *query,
                           int64_t start, uint64_t steps)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_select select;
    struct qf_str spec = make_spec(arena, query, start, steps, &select);
    struct qw_task *plain = run(bench, spec, &select, NULL);
    struct qw_task *again = run(bench, spec, &select, results);
    struct qw_shelf_item *items[2];
    struct pq_leaf_reader *a = read_back(bench, plain, &items[0]);
    struct pq_leaf_reader *b = read_back(bench, again, &items[1]);
    uint64_t saved = plain->samples_read - again->samples_read;

    check_rows(a, b);
    a->close(a);
    b->close(b);
    qw_shelf_drop(items[0]);
    qw_shelf_drop(items[1]);
    qw_spool_remove(bench->spool, &plain->token);
    qw_spool_remove(bench->spool, &again->token);
    qw_task_free(plain);
    qw_task_free(again);
    return saved;
}

/* Time goes on; now and then a file comes late, one goes, and the head is another one. */
static void happen(struct bench *bench, int64_t now)
{
    int64_t late =
        now - (int64_t)qf_prng_below(&bench->prng, 4 * WINDOW_MS) / SCRAPE_MS * SCRAPE_MS;

    for (size_t i = 0; i < bench->count; i++)
        if (bench->files[i].head)
            drop_file(bench, i--);
    if (now % WINDOW_MS == 0)
        add_file(bench, now - WINDOW_MS, now, false);
    if (qf_prng_below(&bench->prng, 6) == 0)
        add_file(bench, late, late + 5 * SCRAPE_MS, false);
    if (bench->count > FILES - 6 || qf_prng_below(&bench->prng, 12) == 0)
        drop_file(bench, (size_t)qf_prng_below(&bench->prng, bench->count));
    if (qf_prng_below(&bench->prng, 3))
        add_file(bench, now / WINDOW_MS * WINDOW_MS - 3 * SCRAPE_MS, now + SCRAPE_MS, true);
}

TEST(refreshes_answer_the_same_with_and_without_what_was_kept)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct qw_results *results = qw_results_new(1 << 20);
        struct bench bench;
        uint64_t saved = 0;

        begin(&bench, seed);
        for (int64_t k = 0; k < 4; k++)
            add_file(&bench, k * WINDOW_MS, (k + 1) * WINDOW_MS, false);
        for (int64_t now = 4 * WINDOW_MS; now < 7 * WINDOW_MS;
             now += (int64_t)(1 + qf_prng_below(&bench.prng, 3)) * STEP_MS) {
            const char *query = queries[qf_prng_below(&bench.prng, 2 + seed)];

            happen(&bench, now);
            saved += check_same(&bench, results, query, now - 60 * STEP_MS,
                                55 + qf_prng_below(&bench.prng, 7));
        }
        CHECK_MSG(saved > 1000, "only %llu samples were not read again", (unsigned long long)saved);
        end(&bench);
        results = qw_results_free(results);
    }
}

/* The second time it is kept, the third time only what is new is read, and nothing at all of the same. */
TEST(a_refresh_reads_what_is_new)
{
    struct qw_results *results = qw_results_new(1 << 20);
    struct bench bench;

    begin(&bench, 9);
    for (int64_t k = 0; k < 4; k++)
        add_file(&bench, k * WINDOW_MS, (k + 1) * WINDOW_MS, false);
    CHECK_EQ(check_same(&bench, results, "sum(m_total)", 600000, 60), 0);
    CHECK_EQ(qw_results_stats(results).count, 0);
    CHECK_EQ(check_same(&bench, results, "sum(m_total)", 600000, 60), 0);
    CHECK_EQ(qw_results_stats(results).count, 1);
    CHECK(check_same(&bench, results, "sum(m_total)", 660000, 60) > 1000);
    CHECK_EQ(qw_results_stats(results).uses, 1);
    /* A file that covers everything: nothing is as it was. */
    add_file(&bench, 0, SCRAPE_MS * 60, false);
    CHECK_EQ(check_same(&bench, results, "sum(m_total)", 660000, 60), 0);
    end(&bench);
    results = qw_results_free(results);
}

static struct pq_past *some_past(struct qf_arena *arena, struct pq_leaf **ret_leaf)
{
    struct pq_select select;
    struct qf_err err = { 0 };
    uint32_t points[10] = { 0 };
    struct pq_leaf_result result = { .points_by_step = points };

    CHECK_OK(pq_leaf_decode(arena, make_spec(arena, "rate(m_total[5m])", 600000, 10, &select),
                            ret_leaf, &err),
             &err);
    result.kind = (*ret_leaf)->kind;
    return pq_past_new(*ret_leaf, &result, 1 << 20);
}

/* Steps read (t - 5m, t]; the first one stands at 10 minutes. */
TEST(steps_are_the_same_up_to_the_first_segment_that_differs)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct qw_result_input now[] = { { { .min_ts = 0, .max_ts = 659999, .id = 1 }, false },
                                     { { .min_ts = 660001, .max_ts = 1320000, .id = 2 }, false } };
    struct pq_leaf *leaf;
    struct qw_kept kept = { some_past(arena, &leaf), now, 2 };

    CHECK_EQ(qw_kept_steps(&kept, leaf, now, 2), 10);
    CHECK_EQ(qw_kept_steps(&kept, leaf, now, 1), 2); /* gone, from the step at 12 minutes on */
    kept.input_count = 1;
    CHECK_EQ(qw_kept_steps(&kept, leaf, now, 2), 2); /* come */
    now[1].name.min_ts = 660000;
    CHECK_EQ(qw_kept_steps(&kept, leaf, now, 2), 1); /* seen at 11 minutes */
    now[1].name.max_ts = 300000;
    now[1].name.min_ts = 0;
    CHECK_EQ(qw_kept_steps(&kept, leaf, now, 2), 10); /* too old for the first one */
    now[1].name.max_ts = 300001;
    CHECK_EQ(qw_kept_steps(&kept, leaf, now, 2), 0);
    now[0].head = true; /* never the same */
    now[0].name.min_ts = 720001;
    now[0].name.max_ts = 900000;
    CHECK_EQ(qw_kept_steps(&kept, leaf, now, 1), 3);
    (void)pq_past_free(kept.past);
}

/* What was used last stays; what is in use outlives its place; and what is too large does not come in. */
TEST(results_make_room_for_newer_ones)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct pq_leaf *leaf;
    struct pq_past *past = some_past(arena, &leaf);
    uint64_t one = pq_past_bytes(past);
    struct qw_results *results = qw_results_new(12 * one);
    struct qw_results *small = qw_results_new(one);
    const struct qw_kept *first;
    bool again;

    past = pq_past_free(past);
    CHECK(!qw_results_use(results, QF_STR("a"), &again));
    CHECK(!again);
    CHECK(!qw_results_use(results, QF_STR("a"), &again));
    CHECK(again);
    qw_results_keep(results, QF_STR("a"), some_past(arena, &leaf), NULL, 0);
    first = qw_results_use(results, QF_STR("a"), &again);
    CHECK(first);
    for (int i = 0; i < 40; i++) {
        char key[8];

        (void)snprintf(key, sizeof(key), "%d", i);
        qw_results_keep(results, qf_str_from(key), some_past(arena, &leaf), NULL, 0);
        CHECK(qw_results_stats(results).bytes <= 12 * one);
    }
    CHECK(qw_results_stats(results).evicted > 20);
    CHECK(!qw_results_use(results, QF_STR("a"), &again));
    CHECK(pq_past_bytes(first->past) == one); /* still there for who has it */
    qw_results_let_go(results, first);
    first = qw_results_use(results, QF_STR("39"), &again);
    CHECK(first);
    qw_results_let_go(results, first);
    qw_results_keep(small, QF_STR("a"), some_past(arena, &leaf), NULL, 0);
    CHECK_EQ(qw_results_stats(small).count, 0);
    small = qw_results_free(small);
    results = qw_results_free(results);
}
