/* test_pass.c - a store is brought into shape; whatever happens, it answers as before. */
#include "segments/compact/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/prng.h"
#include "segments/parquet/segment_name.h"
#include "segments/store/lease.h"
#include "segments/write/batch.h"
#include "segments/write/claim.h"
#include "tests/lib/test.h"
#include "tests/unit/segments/compact/pieces.h"

struct heard {
    size_t jobs, damaged, deleted;
    char last[2048];
};

static void on_event(void *ctx, enum sg_pass_event event, const char *text)
{
    struct heard *heard = ctx;

    heard->jobs += event == SG_PASS_JOB;
    heard->damaged += event == SG_PASS_DAMAGED;
    heard->deleted += event == SG_PASS_DELETE;
    (void)snprintf(heard->last, sizeof(heard->last), "%s", text);
}

static struct sg_pass_options options_of(const struct place *p, struct heard *heard)
{
    return (struct sg_pass_options){ .store = p->store,
                                     .temp_dir = p->temp,
                                     .memory_bytes = 64 << 20,
                                     .file_bytes = 64 << 20,
                                     .on_event = on_event,
                                     .ctx = heard };
}

static struct sg_pass_result pass(const struct sg_pass_options *options)
{
    struct sg_pass_result result;
    struct qf_err err = { 0 };

    CHECK_OK(sg_pass_run(options, QF_STR("t"), &result, &err), &err);
    return result;
}

static void check_same(const struct place *p, const char *want, size_t segments)
{
    size_t count;
    QF_CLEANUP(qf_freep) char *now = place_dump(p, &count);

    CHECK_STR(now, want);
    CHECK_EQ(count, segments);
}

/* Five-minute pieces of two days and two shards, some of them late. */
static void put_pieces(const struct place *p, int64_t hours)
{
    struct qf_prng prng = { 11 };

    for (int64_t i = 0; i < hours * 2; i++)
        piece_put_as(p, (struct piece){ .seed = (uint64_t)i,
                                        .generation = 100 + (uint64_t)i,
                                        .from_ms = i * HOUR / 2 -
                                                   (int64_t)qf_prng_below(&prng, 20) * 60000 + HOUR,
                                        .window_ms = 2 * HOUR,
                                        .count = 40,
                                        .series = 6,
                                        .shards = 2 });
}

TEST(pieces_become_a_file_per_shard_and_day_and_nothing_changes)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(qf_freep) char *before = NULL;
    struct heard heard = { 0 };
    struct sg_pass_options options = options_of(&p, &heard);
    struct sg_pass_result result;
    size_t count;

    put_pieces(&p, 30);
    before = place_dump(&p, &count);
    options.grace_ms = 3600000;
    options.dry_run = true;
    result = pass(&options);
    CHECK(result.jobs > 0);
    check_same(&p, before, count);
    options.dry_run = false;
    result = pass(&options);
    CHECK_EQ(result.files_before, count);
    CHECK_EQ(result.files_after, 4);
    CHECK(result.doomed >= count);
    CHECK_EQ(result.deleted, 0);
    check_same(&p, before, 4 + result.doomed);
    /* Again: nothing to do, and replaced files still wait. */
    result = pass(&options);
    CHECK_EQ(result.jobs, 0);
    CHECK_EQ(result.deleted, 0);
    options.grace_ms = 0;
    result = pass(&options);
    CHECK_EQ(result.jobs, 0);
    check_same(&p, before, 4);
    CHECK(place_is_empty(p.temp));
}

struct elsewhere {
    const struct place *place;
    size_t jobs;
    bool failing; /* the last one of each plan is lost, the first time */
};

/* In any order, as workers would. */
static void run_elsewhere(void *ctx, struct sg_pass_job *jobs, size_t count)
{
    struct elsewhere *e = ctx;
    struct sg_job_options options = { .store = e->place->store,
                                      .temp_dir = e->place->temp,
                                      .memory_bytes = 64 << 20,
                                      .file_bytes = 64 << 20 };

    for (size_t i = count; i-- > 0;) {
        e->jobs++;
        if (e->failing && i + 1 == count)
            jobs[i].rc = qf_err_set(&jobs[i].err, QF_EUNAVAILABLE, "nobody is there");
        else
            jobs[i].rc = sg_job_run(&jobs[i].job, &options, &jobs[i].result, &jobs[i].err);
    }
}

TEST(jobs_that_run_elsewhere_do_the_same_and_one_that_fails_costs_no_other)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(qf_freep) char *before = NULL;
    struct elsewhere elsewhere = { .place = &p, .failing = true };
    struct sg_pass_options options = options_of(&p, NULL);
    struct sg_pass_result result;
    struct qf_err err = { 0 };
    size_t count;

    put_pieces(&p, 30);
    before = place_dump(&p, &count);
    options.on_event = NULL;
    options.run_jobs = run_elsewhere;
    options.ctx = &elsewhere;
    options.grace_ms = 3600000;
    CHECK_EQ(sg_pass_run(&options, QF_STR("t"), &result, &err), QF_EUNAVAILABLE);
    CHECK_STR(err.msg, "nobody is there");
    CHECK_EQ(result.jobs, elsewhere.jobs - 1);
    elsewhere.failing = false;
    result = pass(&options);
    CHECK_EQ(result.files_after, 4);
    options.grace_ms = 0;
    (void)pass(&options);
    check_same(&p, before, 4);
}

/* Outputs that are split or cut count together: whoever says what they replace covers only a part of it. */
TEST(several_outputs_replace_their_inputs_once_and_for_all)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(qf_freep) char *before = NULL;
    struct heard heard = { 0 };
    struct sg_pass_options options = options_of(&p, &heard);
    struct sg_pass_result result;
    size_t count;

    for (uint64_t i = 0; i < 12; i++)
        piece_put(&p, i, 10 + i, (int64_t)i * 60000, 3);
    piece_put_as(&p, (struct piece){ .seed = 3,
                                     .generation = 40,
                                     .from_ms = 44 * HOUR,
                                     .window_ms = 240 * HOUR,
                                     .count = 500,
                                     .series = 3,
                                     .shards = 1 });
    before = place_dump(&p, &count);
    CHECK_EQ(count, 13);
    options.grace_ms = 3600000;
    options.file_bytes = 20000;
    result = pass(&options);
    CHECK_EQ(result.jobs, 2);
    CHECK_EQ(result.doomed, 13);
    result = pass(&options);
    CHECK_EQ(result.jobs, 0);
    options.grace_ms = 0;
    result = pass(&options);
    CHECK_EQ(result.deleted, 13);
    check_same(&p, before, result.files_after);
}

TEST(a_damaged_file_is_named_and_left_alone_and_the_others_are_merged)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(names_done) struct names names = { 0 };
    struct heard heard = { 0 };
    struct sg_pass_options options = options_of(&p, &heard);
    struct sg_pass_result result;

    for (uint64_t i = 0; i < 5; i++)
        piece_put(&p, i, 10 + i, (int64_t)i * 60000, 20);
    names = names_in(p.store);
    CHECK_EQ(names.items.count, 5);
    damage(&p, names.items.items[2]); /* of generation 12 */
    result = pass(&options);
    CHECK_EQ(result.damaged, 1);
    CHECK_EQ(heard.damaged, 1);
    CHECK_EQ(result.files_after, 3); /* before it, itself, after it */
    CHECK_EQ(sg_store_delete(p.store, qf_str_from(names.items.items[2]), NULL, NULL), QF_OK);
}

TEST(an_output_that_is_damaged_later_costs_nothing)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(names_done) struct names before = { 0 }, after = { 0 };
    QF_CLEANUP(qf_freep) char *text = NULL;
    struct heard heard = { 0 };
    struct sg_pass_options options = options_of(&p, &heard);
    struct sg_pass_result result;
    size_t count;

    for (uint64_t i = 0; i < 3; i++)
        piece_put(&p, i, 10 + i, (int64_t)i * 60000, 20);
    text = place_dump(&p, &count);
    before = names_in(p.store);
    options.grace_ms = 3600000;
    (void)pass(&options);
    after = names_in(p.store);
    CHECK_EQ(after.items.count, 4);
    for (size_t i = 0; i < 4; i++) {
        bool old = false;

        for (size_t j = 0; j < 3; j++)
            old |= strcmp(after.items.items[i], before.items.items[j]) == 0;
        if (!old)
            damage(&p, after.items.items[i]);
    }
    /* It is read back before its inputs go, found damaged, and they are merged once more over it. */
    options.grace_ms = 0;
    result = pass(&options);
    CHECK_EQ(result.deleted, 0);
    CHECK_EQ(result.damaged, 1);
}

TEST(an_import_under_way_keeps_compaction_below_it)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct heard heard = { 0 };
    struct sg_pass_options options = options_of(&p, &heard);
    struct sg_claim *claim;
    struct sg_pass_result result;
    struct qf_err err = { 0 };

    for (uint64_t i = 0; i < 4; i++)
        piece_put(&p, i, 10 + 300 * i, (int64_t)i * 60000, 20);
    CHECK_OK(sg_claim_new(p.store, QF_STR("t"), 12, NULL, &claim, &err), &err);
    CHECK_EQ(sg_claim_generation(claim), 506); /* the second half of a millisecond */
    result = pass(&options);
    CHECK_EQ(result.merged, 2); /* 10 and 310 */
    CHECK_EQ(result.waiting, 2);
    CHECK_OK(sg_claim_check(claim, NULL, &err), &err);
    claim = sg_claim_end(claim);
    /* It may take a while until a listing shows what it put. */
    options.settle_ms = 60000;
    result = pass(&options);
    CHECK_EQ(result.jobs, 0);
    options.settle_ms = 0;
    result = pass(&options);
    CHECK_EQ(result.files_after, 1);
    /* Whoever comes now with a clock that is behind is above what was merged. */
    CHECK_OK(sg_claim_new(p.store, QF_STR("t"), 12, NULL, &claim, &err), &err);
    CHECK(sg_claim_generation(claim) > 910 && sg_claim_generation(claim) % 1000 >= 500);
    claim = sg_claim_end(claim);
}

static bool break_it(void *ctx, const struct sg_lease_info *info)
{
    struct qf_err err = { 0 };

    CHECK_OK(sg_lease_break(ctx, info->object, NULL, &err), &err);
    return true;
}

TEST(an_import_whose_claim_was_broken_takes_its_files_back)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    QF_CLEANUP(names_done) struct names names = { 0 };
    struct qf_err err = { 0 };
    struct sg_claim *claim;
    struct sg_batch *batch;
    struct qf_label label = { QF_STR("a"), QF_STR("b") };
    struct sg_sample sample = { .ts = 5, .value = 1 };

    CHECK_OK(sg_claim_new(p.store, QF_STR("t"), 12, NULL, &claim, &err), &err);
    batch = sg_batch_new(&(struct sg_batch_options){ .store = p.store,
                                                     .tenant = QF_STR("t"),
                                                     .shard_count = 1,
                                                     .window_ms = HOUR,
                                                     .memory_bytes = SG_BATCH_MEMORY_MIN,
                                                     .temp_dir = p.temp,
                                                     .generation = sg_claim_generation(claim),
                                                     .claim = claim },
                         &err);
    CHECK(batch);
    CHECK_OK(sg_batch_add(batch, (struct qf_labels){ &label, 1 }, &sample, 1, &err), &err);
    CHECK_OK(sg_lease_list(p.store, "import", NULL, break_it, p.store, &err), &err);
    CHECK_EQ(sg_batch_commit(batch, &err), QF_ENOTFOUND);
    (void)sg_batch_free(batch);
    claim = sg_claim_end(claim);
    names = names_in(p.store);
    CHECK_EQ(names.items.count, 0);
}

TEST(ingest_nodes_leave_word_that_they_write)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct qf_err err = { 0 };
    bool has;

    CHECK_OK(sg_claim_has_ingest(p.store, QF_STR("t"), NULL, &has, &err), &err);
    CHECK(!has);
    CHECK_OK(sg_claim_ingest(p.store, QF_STR("t"), 7, NULL, &err), &err);
    CHECK_OK(sg_claim_ingest(p.store, QF_STR("t"), 7, NULL, &err), &err);
    CHECK_OK(sg_claim_has_ingest(p.store, QF_STR("t"), NULL, &has, &err), &err);
    CHECK(has);
    CHECK_OK(sg_claim_only_cluster(p.store, QF_STR("t"), "0000000000000007", NULL, &err), &err);
    CHECK_EQ(sg_claim_only_cluster(p.store, QF_STR("t"), "0000000000000008", NULL, &err),
             QF_EINVAL);
    CHECK_OK(sg_claim_has_ingest(p.store, QF_STR("u"), NULL, &has, &err), &err);
    CHECK(!has);
}
