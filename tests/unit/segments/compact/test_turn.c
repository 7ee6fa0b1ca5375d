/* test_turn.c - merging and removing take turns: what was removed does not come back. */
#include "segments/store/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/sys/thread.h"
#include "segments/compact/pass.h"
#include "segments/write/remove.h"
#include "tests/lib/test.h"
#include "tests/unit/segments/compact/pieces.h"

#define TENANT QF_STR("t")

struct scene {
    struct place *place;
    struct sg_turn *turn;
    size_t left_for_later, vanished;
    bool remove; /* at once, instead of only having the turn */
};

static void on_event(void *ctx, enum sg_pass_event event, const char *text)
{
    struct scene *scene = ctx;

    (void)text;
    scene->left_for_later += event == SG_PASS_REMOVED;
    scene->vanished += event == SG_PASS_VANISHED;
}

static void remove_everything(struct sg_store *store)
{
    struct sg_remove_options options = {
        .store = store, .tenant = TENANT, .min_ts = INT64_MIN, .max_ts = INT64_MAX, .for_good = true
    };
    struct sg_remove_result result;
    struct qf_err err = { 0 };

    CHECK_OK(sg_remove(&options, &result, &err), &err);
}

/* A merge has read its inputs and is about to put what it made. */
static void on_progress(void *ctx, const struct sg_job_result *so_far)
{
    struct scene *scene = ctx;
    struct qf_err err = { 0 };

    (void)so_far;
    if (scene->remove)
        remove_everything(scene->place->store);
    else if (!scene->turn)
        CHECK_OK(sg_turn_remove(scene->place->store, TENANT, 0, HOUR, NULL, NULL, NULL,
                                &scene->turn, &err),
                 &err);
}

static struct sg_pass_result pass(struct scene *scene)
{
    struct sg_pass_options options = { .store = scene->place->store,
                                       .temp_dir = scene->place->temp,
                                       .memory_bytes = 64 << 20,
                                       .file_bytes = 64 << 20,
                                       .on_event = on_event,
                                       .on_progress = on_progress,
                                       .ctx = scene };
    struct sg_pass_result result;
    struct qf_err err = { 0 };

    CHECK_OK(sg_pass_run(&options, TENANT, &result, &err), &err);
    return result;
}

static size_t count(const struct place *p)
{
    QF_CLEANUP(names_done) struct names names = names_in(p->store);

    return names.items.count;
}

TEST(what_is_being_removed_is_not_merged)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct scene scene = { .place = &p };

    for (uint64_t i = 0; i < 3; i++)
        piece_put(&p, i, 10 + i, (int64_t)i * 60000, 20);
    CHECK_EQ(pass(&scene).jobs, 0);
    CHECK_EQ(scene.left_for_later, 1);
    CHECK_EQ(count(&p), 3);
    scene.turn = sg_turn_end(scene.turn);
    remove_everything(p.store);
    CHECK_EQ(count(&p), 0);
}

TEST(what_was_removed_while_it_was_merged_stays_away)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct scene scene = { .place = &p, .remove = true };

    for (uint64_t i = 0; i < 3; i++)
        piece_put(&p, i, 10 + i, (int64_t)i * 60000, 20);
    CHECK_EQ(pass(&scene).jobs, 0);
    CHECK_EQ(scene.vanished, 1);
    CHECK_EQ(count(&p), 0);
}

/* --- who comes second waits --- */

struct remover {
    struct sg_store *store;
    atomic_bool waits, done;
};

static void note_wait(void *ctx)
{
    atomic_store(&((struct remover *)ctx)->waits, true);
}

static void run_remover(void *arg)
{
    struct remover *remover = arg;
    struct sg_remove_options options = { .store = remover->store,
                                         .tenant = TENANT,
                                         .min_ts = INT64_MIN,
                                         .max_ts = INT64_MAX,
                                         .for_good = true,
                                         .on_wait = note_wait,
                                         .ctx = remover };
    struct sg_remove_result result;
    struct qf_err err = { 0 };

    CHECK_OK(sg_remove(&options, &result, &err), &err);
    atomic_store(&remover->done, true);
}

TEST(a_removal_waits_for_a_merge_and_takes_what_that_put)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct remover remover = { .store = p.store };
    struct qf_thread *thread;
    struct sg_turn *turn;
    struct qf_err err = { 0 };

    CHECK_OK(sg_turn_merge(p.store, TENANT, 0, HOUR, NULL, &turn, &err), &err);
    thread = qf_thread_start("remover", run_remover, &remover);
    CHECK(thread);
    while (!atomic_load(&remover.waits))
        (void)usleep(1000);
    piece_put(&p, 1, 10, 0, 20);
    CHECK(!atomic_load(&remover.done));
    CHECK_OK(sg_turn_check(turn, NULL, &err), &err);
    (void)sg_turn_end(turn);
    (void)qf_thread_join(thread);
    CHECK_EQ(count(&p), 0);
}

TEST(other_times_and_tenants_do_not_wait)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_turn *merge, *remove, *other;
    struct qf_err err = { 0 };

    CHECK_OK(sg_turn_merge(p.store, TENANT, 0, HOUR, NULL, &merge, &err), &err);
    CHECK_OK(sg_turn_remove(p.store, TENANT, HOUR + 1, 2 * HOUR, NULL, NULL, NULL, &remove, &err),
             &err);
    CHECK_OK(sg_turn_merge(p.store, QF_STR("u"), HOUR, 2 * HOUR, NULL, &other, &err), &err);
    (void)sg_turn_end(other);
    CHECK_EQ(sg_turn_merge(p.store, TENANT, 2 * HOUR, 3 * HOUR, NULL, &other, &err), QF_EBUSY);
    (void)sg_turn_end(remove);
    (void)sg_turn_end(merge);
    CHECK_OK(sg_turn_merge(p.store, TENANT, 2 * HOUR, 3 * HOUR, NULL, &other, &err), &err);
    (void)sg_turn_end(other);
}

/* Its lease is broken before segments are listed: if it lives after all it takes back what it puts. */
TEST(a_merge_that_seems_dead_hears_of_it)
{
    QF_CLEANUP(place_done) struct place p = place_make();
    struct sg_turn *merge, *remove;
    struct qf_err err = { 0 };
    char command[300];

    CHECK_OK(sg_turn_merge(p.store, TENANT, 0, HOUR, NULL, &merge, &err), &err);
    (void)snprintf(command, sizeof(command),
                   "find '%s/_leases' -type f -exec touch -d '1 hour ago' {} +", p.store_path);
    CHECK_EQ(system(command), 0);
    CHECK_OK(sg_turn_remove(p.store, TENANT, 0, HOUR, NULL, NULL, NULL, &remove, &err), &err);
    CHECK_EQ(sg_turn_check(merge, NULL, &err), QF_ENOTFOUND);
    (void)sg_turn_end(merge);
    (void)sg_turn_end(remove);
}
