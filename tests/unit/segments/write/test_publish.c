/* test_publish.c - what a commit does in a store that behaves like a bucket, and like a bad one. */
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "segments/catalog/changes.h"
#include "segments/write/batch.h"
#include "tests/lib/segments/memory_store.h"
#include "tests/lib/test.h"

static struct sg_batch *batch_make(struct memory_store *memory, uint64_t generation,
                                   struct sg_batch_options extra)
{
    struct sg_batch_options options = { .store = memory_store_base(memory),
                                        .tenant = QF_STR("t"),
                                        .shard_count = 1,
                                        .window_ms = 3600000,
                                        .memory_bytes = SG_BATCH_MEMORY_MIN,
                                        .generation = generation,
                                        .on_progress = extra.on_progress,
                                        .ctx = extra.ctx };
    struct qf_err err = { 0 };
    struct sg_batch *batch = sg_batch_new(&options, &err);

    CHECK_MSG(batch, "%s", err.msg);
    return batch;
}

/* One sample on each of @days days. */
static void add_days(struct sg_batch *batch, int days)
{
    struct qf_label item = { QF_STR("host"), QF_STR("a") };
    struct qf_err err = { 0 };

    for (int i = 0; i < days; i++) {
        struct sg_sample sample = { .ts = (int64_t)i * 86400000 + 5, .value = i };

        CHECK_OK(sg_batch_add(batch, (struct qf_labels){ &item, 1 }, &sample, 1, &err), &err);
    }
}

struct found {
    size_t count;
    char last[256];
};

static bool count_object(void *ctx, const struct sg_store_object *object)
{
    struct found *found = ctx;

    found->count++;
    (void)snprintf(found->last, sizeof(found->last), "%.*s", QF_STR_ARG(object->name));
    return true;
}

static struct found look(struct memory_store *memory, const char *prefix)
{
    struct found found = { 0 };
    struct qf_err err = { 0 };

    CHECK_OK(sg_store_list(memory_store_base(memory), qf_str_from(prefix), QF_STR(""), NULL,
                           count_object, &found, &err),
             &err);
    return found;
}

TEST(a_commit_notes_the_folders_it_touched)
{
    struct memory_store *memory = memory_store_new();
    struct sg_batch *batch = batch_make(memory, 1, (struct sg_batch_options){ 0 });
    struct qf_err err = { 0 };
    struct found note;
    char *text;
    size_t len;

    add_days(batch, 2);
    CHECK_EQ(look(memory, "").count, 0);
    CHECK_OK(sg_batch_commit(batch, &err), &err);
    CHECK_EQ(look(memory, "tenant=t/").count, 2);
    note = look(memory, SG_CHANGES_PREFIX);
    CHECK_EQ(note.count, 1);
    CHECK_OK(sg_store_read_all(memory_store_base(memory), qf_str_from(note.last), 4096, NULL, &text,
                               &len, &err),
             &err);
    CHECK_STR(text, "tenant=t/date=1970-01-01/\ntenant=t/date=1970-01-02/\n");
    free(text);
    (void)sg_batch_free(batch);
    (void)sg_store_free(memory_store_base(memory));
}

TEST(a_commit_of_what_is_there_puts_nothing_and_notes_nothing)
{
    struct memory_store *memory = memory_store_new();
    struct qf_err err = { 0 };

    for (uint64_t generation = 1; generation <= 2; generation++) {
        struct sg_batch *batch = batch_make(memory, generation, (struct sg_batch_options){ 0 });

        add_days(batch, 2);
        CHECK_OK(sg_batch_commit(batch, &err), &err);
        CHECK_EQ(sg_batch_summary(batch).segments, generation == 1 ? 2 : 0);
        CHECK_EQ(look(memory, "").count, 3);
        (void)sg_batch_free(batch);
    }
    (void)sg_store_free(memory_store_base(memory));
}

struct thief {
    struct memory_store *memory;
    char name[256];
};

static void take_away(void *ctx, const struct sg_batch_summary *summary)
{
    struct thief *thief = ctx;

    if (summary->segments_present)
        (void)memory_store_remove(thief->memory, thief->name);
}

/* Another writer put the same segment and rolls back after ours relied on it. */
TEST(a_segment_that_was_there_and_goes_meanwhile_fails_the_commit)
{
    struct memory_store *memory = memory_store_new();
    struct thief thief = { .memory = memory };
    struct sg_batch *batch = batch_make(memory, 1, (struct sg_batch_options){ 0 });
    struct qf_err err = { 0 };

    add_days(batch, 1);
    CHECK_OK(sg_batch_commit(batch, &err), &err);
    (void)sg_batch_free(batch);
    (void)snprintf(thief.name, sizeof(thief.name), "%s", look(memory, "tenant=t/").last);
    batch =
        batch_make(memory, 2, (struct sg_batch_options){ .on_progress = take_away, .ctx = &thief });
    add_days(batch, 1);
    CHECK_EQ(sg_batch_commit(batch, &err), QF_ENOTFOUND);
    CHECK_MSG(strstr(err.msg, "was there and is gone"), "%s", err.msg);
    (void)sg_batch_free(batch);
    (void)sg_store_free(memory_store_base(memory));
}

TEST(a_put_that_fails_rolls_back_what_was_put_and_notes_it)
{
    struct memory_store *memory = memory_store_new();
    struct sg_batch *batch = batch_make(memory, 1, (struct sg_batch_options){ 0 });
    struct qf_err err = { 0 };

    add_days(batch, 4);
    memory_store_fail_puts(memory, 2, QF_EDENIED);
    CHECK_EQ(sg_batch_commit(batch, &err), QF_EDENIED);
    CHECK_EQ(sg_batch_summary(batch).segments, 2);
    CHECK_EQ(sg_batch_summary(batch).segments_left, 0);
    CHECK_EQ(look(memory, "tenant=t/").count, 0);
    (void)sg_batch_free(batch);
    (void)sg_store_free(memory_store_base(memory));
}

/* Then the same samples again: as if nothing had failed. */
TEST(segments_that_cannot_be_taken_back_are_counted_and_completed_by_the_next_commit)
{
    struct memory_store *memory = memory_store_new();
    struct sg_batch *batch = batch_make(memory, 1, (struct sg_batch_options){ 0 });
    struct qf_err err = { 0 };

    add_days(batch, 4);
    memory_store_fail_puts(memory, 2, QF_EIO);
    memory_store_fail_removals(memory, QF_EIO);
    CHECK_EQ(sg_batch_commit(batch, &err), QF_EIO);
    CHECK_EQ(sg_batch_summary(batch).segments_left, 3); /* the put that failed may have happened */
    CHECK_MSG(strstr(err.msg, "3 segments could not be taken back"), "%s", err.msg);
    (void)sg_batch_free(batch);
    memory_store_fail_puts(memory, 0, QF_OK);
    batch = batch_make(memory, 2, (struct sg_batch_options){ 0 });
    add_days(batch, 4);
    err = (struct qf_err){ 0 };
    CHECK_OK(sg_batch_commit(batch, &err), &err);
    CHECK_EQ(sg_batch_summary(batch).segments_present, 2);
    CHECK_EQ(sg_batch_summary(batch).segments, 2);
    CHECK_EQ(look(memory, "tenant=t/").count, 4);
    (void)sg_batch_free(batch);
    (void)sg_store_free(memory_store_base(memory));
}
