/* test_job.c - files become one, and what the store answers stays the same to the bit. */
#include "segments/compact/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/prng.h"
#include "segments/catalog/catalog.h"
#include "segments/parquet/segment_writer.h"
#include "segments/store/store_int.h"
#include "tests/lib/test.h"
#include "tests/unit/segments/compact/pieces.h"

/* Run a job of all files @names into one. */
static qf_rc run_with(const struct names *names, int64_t window_ms,
                      const struct sg_job_options *options, struct sg_job_result *result,
                      struct qf_err *err)
{
    struct qf_str inputs[200];
    struct sg_job job = {
        .tenant = QF_STR("t"), .inputs = inputs, .shard_count = 1, .window_ms = window_ms
    };

    for (size_t i = 0; i < names->items.count; i++) {
        struct sg_segment_name parts;

        inputs[i] = qf_str_from(names->items.items[i]);
        CHECK(sg_segment_name_parse(inputs[i], &parts));
        job.generation = QF_MAX(job.generation, parts.generation);
        job.shard_count = parts.shard_count;
    }
    job.input_count = names->items.count;
    return sg_job_run(&job, options, result, err);
}

static qf_rc run(const struct place *p, const struct names *names, int64_t window_ms,
                 uint64_t file_bytes, struct sg_job_result *result, struct qf_err *err)
{
    struct sg_job_options options = {
        .store = p->store, .temp_dir = p->temp, .memory_bytes = 64 << 20, .file_bytes = file_bytes
    };

    return run_with(names, window_ms, &options, result, err);
}

static qf_rc run_until(const struct place *p, const struct names *names, const atomic_bool *cancel,
                       struct sg_job_result *result, struct qf_err *err)
{
    struct sg_job_options options = { .store = p->store,
                                      .temp_dir = p->temp,
                                      .memory_bytes = 64 << 20,
                                      .file_bytes = 1 << 30,
                                      .cancel = cancel };

    return run_with(names, 2 * HOUR, &options, result, err);
}

static void delete_all(const struct place *p, const struct names *names)
{
    for (size_t i = 0; i < names->items.count; i++)
        CHECK_EQ(sg_store_delete(p->store, qf_str_from(names->items.items[i]), NULL, NULL), QF_OK);
}

static void check_dump(const struct place *p, const char *want, size_t segments)
{
    size_t count;
    QF_CLEANUP(qf_freep) char *now = place_dump(p, &count);

    CHECK_STR(now, want);
    CHECK_EQ(count, segments);
}

/* The number of segments that a reader of the tenant opens. */
static size_t looked_up(const struct place *p)
{
    struct sg_catalog *catalog = sg_catalog_new(&(struct sg_catalog_options){ .store = p->store });
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct sg_catalog_query query = { .tenant = QF_STR("t"),
                                      .min_ts = INT64_MIN,
                                      .max_ts = INT64_MAX };
    struct sg_catalog_answer answer;
    struct sg_catalog_snapshot *snapshot;
    struct qf_err err = { 0 };

    CHECK_OK(sg_catalog_refresh(catalog, SG_CATALOG_REFRESH_TIMER, NULL, &err), &err);
    snapshot = sg_catalog_snapshot(catalog);
    CHECK_OK(sg_catalog_lookup(snapshot, &query, arena, &answer, &err), &err);
    (void)sg_catalog_snapshot_drop(snapshot);
    (void)sg_catalog_free(catalog);
    return answer.segment_count;
}

/* Overlapping pieces of every kind of sample: before, beside and instead of its inputs the output answers alike. */
TEST(what_is_merged_answers_as_its_inputs_did)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        QF_CLEANUP(place_done) struct place p = place_make();
        QF_CLEANUP(names_done) struct names inputs = { 0 };
        QF_CLEANUP(qf_freep) char *before = NULL;
        struct qf_prng prng = { seed };
        struct sg_job_result result;
        struct qf_err err = { 0 };
        size_t count;

        for (uint64_t i = 0; i < 6; i++)
            piece_put(&p, seed * 100 + i, 10 + i / 2, (int64_t)qf_prng_below(&prng, 60) * 60000,
                      40);
        inputs = names_in(p.store);
        before = place_dump(&p, &count);
        CHECK_EQ(looked_up(&p), count);
        CHECK_OK(run(&p, &inputs, 2 * HOUR, 1 << 30, &result, &err), &err);
        CHECK_EQ(result.outputs, 1);
        check_dump(&p, before, count + 1);
        CHECK_EQ(looked_up(&p), 1);
        delete_all(&p, &inputs);
        check_dump(&p, before, 1);
        CHECK(place_is_empty(p.temp));
    }
}

TEST(the_same_job_again_changes_nothing)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(names_done) struct names inputs = { 0 }, after = { 0 };
    struct sg_job_result result;
    struct qf_err err = { 0 };

    piece_put(&p, 1, 10, 0, 30);
    piece_put(&p, 2, 11, 0, 30);
    inputs = names_in(p.store);
    CHECK_OK(run(&p, &inputs, 2 * HOUR, 1 << 30, &result, &err), &err);
    CHECK_OK(run(&p, &inputs, 2 * HOUR, 1 << 30, &result, &err), &err);
    CHECK_EQ(result.outputs, 0);
    CHECK_EQ(result.present, 1);
    after = names_in(p.store);
    CHECK_EQ(after.items.count, 3);
}

/* The newest input has everything: the output has its name, and must outlive the others. */
TEST(an_output_that_equals_an_input_replaces_the_others)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(names_done) struct names inputs = { 0 }, after = { 0 };
    struct sg_job_result result;
    struct qf_err err = { 0 };

    piece_put(&p, 7, 10, 0, 20);
    piece_put(&p, 7, 11, 0, 30); /* the same samples and more */
    inputs = names_in(p.store);
    CHECK_EQ(inputs.items.count, 2);
    CHECK_OK(run(&p, &inputs, 2 * HOUR, 1 << 30, &result, &err), &err);
    after = names_in(p.store);
    CHECK_EQ(after.items.count, 2);
    CHECK_EQ(looked_up(&p), 1);
}

TEST(a_large_output_is_several_files_that_count_together)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(names_done) struct names inputs = { 0 };
    QF_CLEANUP(qf_freep) char *before = NULL;
    struct sg_job_result result;
    struct qf_err err = { 0 };
    size_t count;

    for (uint64_t i = 0; i < 4; i++)
        piece_put(&p, 50 + i, 10 + i, 0, 60);
    inputs = names_in(p.store);
    before = place_dump(&p, &count);
    CHECK_OK(run(&p, &inputs, 2 * HOUR, 1, &result, &err), &err); /* a file per series */
    CHECK_EQ(result.outputs, 5);
    check_dump(&p, before, 9);
    CHECK_EQ(looked_up(&p), 5);
    delete_all(&p, &inputs);
    check_dump(&p, before, 5);
    /* If one of them is missing, the others replace nothing. */
    piece_put(&p, 50, 10, 0, 60);
    CHECK_EQ(looked_up(&p), 5);
    names_done(&inputs);
    inputs = names_in(p.store);
    for (size_t i = 0; i < inputs.items.count; i++) {
        struct sg_segment_name parts;

        CHECK(sg_segment_name_parse(qf_str_from(inputs.items.items[i]), &parts));
        if (parts.generation == 13) {
            CHECK_EQ(sg_store_delete(p.store, qf_str_from(inputs.items.items[i]), NULL, NULL),
                     QF_OK);
            break;
        }
    }
    CHECK_EQ(looked_up(&p), 5); /* four outputs, and the piece */
}

TEST(a_file_over_several_windows_is_cut)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(names_done) struct names inputs = { 0 }, after = { 0 };
    QF_CLEANUP(qf_freep) char *before = NULL;
    struct sg_job_result result;
    struct qf_err err = { 0 };
    size_t count;

    piece_put_as(&p, (struct piece){ .seed = 3,
                                     .generation = 10,
                                     .from_ms = 20 * HOUR,
                                     .window_ms = 240 * HOUR,
                                     .count = 500,
                                     .series = 3,
                                     .shards = 1 });
    inputs = names_in(p.store);
    before = place_dump(&p, &count);
    CHECK_EQ(count, 1);
    CHECK_OK(run(&p, &inputs, 2 * HOUR, 1 << 30, &result, &err), &err);
    CHECK_EQ(result.outputs, 5); /* from 20:00 to 04:19 */
    check_dump(&p, before, 6);
    delete_all(&p, &inputs);
    check_dump(&p, before, 5);
    after = names_in(p.store);
    for (size_t i = 0; i < after.items.count; i++) {
        struct sg_segment_name parts;

        CHECK(sg_segment_name_parse(qf_str_from(after.items.items[i]), &parts));
        CHECK_EQ(parts.min_ts / (2 * HOUR), parts.max_ts / (2 * HOUR));
    }
}

TEST(a_damaged_input_is_named_and_nothing_is_put)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(names_done) struct names inputs = { 0 }, after = { 0 };
    struct sg_job_result result;
    struct qf_err err = { 0 };

    piece_put(&p, 1, 10, 0, 30);
    piece_put(&p, 2, 11, 0, 30);
    inputs = names_in(p.store);
    damage(&p, inputs.items.items[1]);
    CHECK_EQ(run(&p, &inputs, 2 * HOUR, 1 << 30, &result, &err), QF_ECORRUPT);
    CHECK_EQ(err.subject, 2);
    CHECK_MSG(strstr(err.msg, inputs.items.items[1]), "%s", err.msg);
    after = names_in(p.store);
    CHECK_EQ(after.items.count, 2);
    CHECK(place_is_empty(p.temp));
}

TEST(an_input_that_vanished_ends_the_job)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(names_done) struct names inputs = { 0 };
    struct sg_job_result result;
    struct qf_err err = { 0 };

    piece_put(&p, 1, 10, 0, 30);
    piece_put(&p, 2, 11, 0, 30);
    inputs = names_in(p.store);
    CHECK_EQ(sg_store_delete(p.store, qf_str_from(inputs.items.items[0]), NULL, NULL), QF_OK);
    CHECK_EQ(run(&p, &inputs, 2 * HOUR, 1 << 30, &result, &err), QF_ENOTFOUND);
}

/* --- told to stop between putting an output and looking at its turn --- */

static const struct sg_store_ops *real_ops;
static atomic_bool stop;

static qf_rc put_and_stop(struct sg_store *store, struct qf_str name,
                          const struct sg_store_bytes *bytes, const struct sg_store_limit *limit,
                          struct qf_err *err)
{
    qf_rc rc = real_ops->put(store, name, bytes, limit, err);

    if (qf_str_starts(name, QF_STR("tenant=")))
        atomic_store(&stop, true);
    return rc;
}

TEST(a_job_that_is_told_to_stop_leaves_what_it_put)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(names_done) struct names inputs = { 0 };
    struct sg_store_ops ops;
    struct sg_job_result result;
    struct qf_err err = { 0 };
    size_t files;

    piece_put(&p, 1, 10, 0, 30);
    piece_put(&p, 2, 11, 0, 30);
    inputs = names_in(p.store);
    real_ops = p.store->ops;
    ops = *real_ops;
    ops.put = put_and_stop;
    p.store->ops = &ops;
    atomic_store(&stop, false);
    CHECK_OK(run_until(&p, &inputs, &stop, &result, &err), &err);
    p.store->ops = real_ops;
    CHECK(atomic_load(&stop));
    free(place_dump(&p, &files));
    CHECK_EQ(files, 3);
    CHECK_EQ(looked_up(&p), 1);
    CHECK_OK(run(&p, &inputs, 2 * HOUR, 1 << 30, &result, &err), &err);
    CHECK_EQ(result.present, 1);
}
