/* test_files.c - annexes in a store: found by time, merged without losing anything. */
#include <stdio.h>
#include <string.h>

#include "base/pure/labels.h"
#include "segments/annex/files.h"
#include "segments/store/turn.h"
#include "segments/write/remove.h"
#include "tests/lib/segments/memory_store.h"
#include "tests/lib/test.h"

#define DAY_MS INT64_C(86400000)

struct rig {
    struct memory_store *memory;
    struct sg_store *store;
};

static struct rig new_rig(void)
{
    struct rig rig = { .memory = memory_store_new() };

    rig.store = memory_store_base(rig.memory);
    return rig;
}

static void rig_done(struct rig *rig)
{
    rig->store = sg_store_free(rig->store);
}

/* A file with one exemplar, and perhaps metadata of a generation. */
static void put(struct rig *rig, int64_t ts, const char *name, const char *help,
                uint64_t generation)
{
    struct sg_annex *annex = sg_annex_new(1 << 20);
    const struct sg_exemplar exemplar = { .series = QF_STR("\001a\001b"), .ts = ts, .value = 1 };
    const struct sg_metadata metadata = { .name = qf_str_from(name),
                                          .help = qf_str_from(help),
                                          .generation = generation };
    struct sg_annex_result result;
    struct qf_err err = { 0 };

    CHECK(sg_annex_add_exemplar(annex, &exemplar));
    if (name[0])
        CHECK(sg_annex_add_metadata(annex, &metadata, true));
    CHECK_OK(sg_annex_put(annex, rig->store, QF_STR("t"), NULL, &result, &err), &err);
    annex = sg_annex_free(annex);
}

static size_t count_files(struct rig *rig, enum sg_annex_kind kind, int64_t min_ts, int64_t max_ts)
{
    const struct sg_annex_find find = {
        .tenant = QF_STR("t"), .kind = kind, .min_ts = min_ts, .max_ts = max_ts, .files_max = 1000
    };
    struct sg_annex_list list;
    struct qf_err err = { 0 };
    size_t count;

    CHECK_OK(sg_annex_find(rig->store, &find, NULL, &list, &err), &err);
    count = list.files.count;
    sg_annex_list_done(&list);
    return count;
}

/* All that the files of a kind have, as one collection's bytes would. */
static struct sg_annex *read_all(struct rig *rig, enum sg_annex_kind kind)
{
    const struct sg_annex_find find = { .tenant = QF_STR("t"),
                                        .kind = kind,
                                        .min_ts = INT64_MIN,
                                        .max_ts = INT64_MAX,
                                        .files_max = 1000 };
    struct sg_annex *annex = sg_annex_new(SIZE_MAX);
    struct sg_annex_list list;
    struct qf_err err = { 0 };

    CHECK_OK(sg_annex_find(rig->store, &find, NULL, &list, &err), &err);
    for (size_t i = 0; i < list.files.count; i++) {
        struct qf_arena *arena = qf_arena_new(SIZE_MAX);
        struct sg_annex_contents contents;
        char *data;
        size_t len;

        CHECK_OK(sg_store_read_all(rig->store, qf_str_from(list.files.items[i].name),
                                   SG_ANNEX_BYTES_MAX, NULL, &data, &len, &err),
                 &err);
        CHECK_OK(sg_annex_decode((struct qf_str){ data, len }, &list.files.items[i].parts, arena,
                                 &contents, &err),
                 &err);
        CHECK(sg_annex_add_contents(annex, &contents));
        free(data);
        (void)qf_arena_free(arena);
    }
    sg_annex_list_done(&list);
    return annex;
}

static qf_rc add_name(void *ctx, const char *name, struct qf_str bytes, struct qf_err *err)
{
    (void)bytes;
    (void)err;
    qf_strbuf_puts(ctx, name);
    qf_strbuf_putc(ctx, '\n');
    return QF_OK;
}

/* Names have hashes of contents: equal names, equal contents. */
static char *describe(struct rig *rig, enum sg_annex_kind kind)
{
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct sg_annex *annex = read_all(rig, kind);
    const struct sg_annex_files files = { .tenant = QF_STR("t"), .file = add_name, .ctx = &text };
    struct qf_err err = { 0 };

    CHECK_OK(sg_annex_write(annex, &files, &err), &err);
    annex = sg_annex_free(annex);
    return qf_strbuf_take(&text);
}

static struct sg_annex_merged merge(struct rig *rig, int64_t before_ms, bool dry_run)
{
    struct sg_annex_merge options = {
        .store = rig->store, .tenant = QF_STR("t"), .before_ms = before_ms, .dry_run = dry_run
    };
    struct sg_annex_merged merged;
    struct qf_err err = { 0 };

    CHECK_OK(sg_annex_merge(&options, &merged, &err), &err);
    return merged;
}

TEST(files_are_found_by_time_and_kind)
{
    QF_CLEANUP(rig_done) struct rig rig = new_rig();
    struct sg_annex_find find = { .tenant = QF_STR("t"),
                                  .kind = SG_ANNEX_EXEMPLARS,
                                  .min_ts = 0,
                                  .max_ts = INT64_MAX,
                                  .files_max = 2 };
    struct sg_annex_list list;

    for (int day = 0; day < 4; day++)
        put(&rig, day * DAY_MS + 1000, "", "", 0);
    put(&rig, 1000, "up", "help", 2 * (uint64_t)DAY_MS * 1000);
    CHECK_EQ(count_files(&rig, SG_ANNEX_EXEMPLARS, INT64_MIN, INT64_MAX), 4);
    CHECK_EQ(count_files(&rig, SG_ANNEX_EXEMPLARS, DAY_MS, 2 * DAY_MS + 1000), 2);
    CHECK_EQ(count_files(&rig, SG_ANNEX_EXEMPLARS, DAY_MS, 2 * DAY_MS + 999), 1);
    CHECK_EQ(count_files(&rig, SG_ANNEX_EXEMPLARS, 3 * DAY_MS + 1000, INT64_MAX), 1);
    CHECK_EQ(count_files(&rig, SG_ANNEX_METADATA, DAY_MS, INT64_MAX), 1);
    CHECK_EQ(count_files(&rig, SG_ANNEX_METADATA, 3 * DAY_MS, INT64_MAX), 0);
    CHECK_EQ(sg_annex_find(rig.store, &find, NULL, &list, NULL), QF_ELIMIT);
    sg_annex_list_done(&list);
}

TEST(what_is_there_is_not_put_again)
{
    QF_CLEANUP(rig_done) struct rig rig = new_rig();

    put(&rig, 1000, "up", "help", 1000);
    put(&rig, 1000, "up", "help", 1000);
    CHECK_EQ(count_files(&rig, SG_ANNEX_EXEMPLARS, INT64_MIN, INT64_MAX), 1);
    CHECK_EQ(count_files(&rig, SG_ANNEX_METADATA, INT64_MIN, INT64_MAX), 1);
}

TEST(merged_files_have_what_the_files_had_and_are_fewer)
{
    QF_CLEANUP(rig_done) struct rig rig = new_rig();
    char *exemplars[2], *metadata[2], name[16];
    struct sg_annex_merged merged;

    for (int i = 0; i < 60; i++) {
        (void)snprintf(name, sizeof(name), "m%d", i % 7);
        put(&rig, i * DAY_MS / 20, name, i % 2 ? "a" : "b", (uint64_t)(i * DAY_MS / 20) * 1000);
    }
    exemplars[0] = describe(&rig, SG_ANNEX_EXEMPLARS);
    metadata[0] = describe(&rig, SG_ANNEX_METADATA);
    merged = merge(&rig, 2 * DAY_MS, true);
    CHECK(merged.inputs == 80 && merged.outputs == 0);
    CHECK_EQ(count_files(&rig, SG_ANNEX_EXEMPLARS, INT64_MIN, INT64_MAX), 60);
    merged = merge(&rig, 2 * DAY_MS, false);
    CHECK(merged.inputs == 80 && merged.outputs == 3);
    /* The third day is not over. */
    CHECK_EQ(count_files(&rig, SG_ANNEX_EXEMPLARS, INT64_MIN, INT64_MAX), 22);
    CHECK_EQ(count_files(&rig, SG_ANNEX_METADATA, INT64_MIN, INT64_MAX), 21);
    merged = merge(&rig, 2 * DAY_MS, false);
    CHECK_EQ(merged.inputs, 0);
    merged = merge(&rig, 100 * DAY_MS, false);
    CHECK_EQ(count_files(&rig, SG_ANNEX_EXEMPLARS, INT64_MIN, INT64_MAX), 3);
    CHECK_EQ(count_files(&rig, SG_ANNEX_METADATA, INT64_MIN, INT64_MAX), 1);
    exemplars[1] = describe(&rig, SG_ANNEX_EXEMPLARS);
    metadata[1] = describe(&rig, SG_ANNEX_METADATA);
    CHECK_STR(exemplars[1], exemplars[0]);
    CHECK_STR(metadata[1], metadata[0]);
    for (int i = 0; i < 2; i++) {
        free(exemplars[i]);
        free(metadata[i]);
    }
}

/* At whatever put or removal the store fails: nothing is lost, and the next merge ends it. Each of two days is a word that it
 * merges, a file, and a look at that word. */
TEST(a_merge_that_ends_anywhere_loses_nothing)
{
    for (unsigned puts = 0; puts < 8; puts++) {
        QF_CLEANUP(rig_done) struct rig rig = new_rig();
        struct sg_annex_merge options = { .store = rig.store,
                                          .tenant = QF_STR("t"),
                                          .before_ms = 100 * DAY_MS };
        struct sg_annex_merged merged;
        char *before, *after;

        for (int i = 0; i < 40; i++)
            put(&rig, i * DAY_MS / 20, "", "", 0);
        before = describe(&rig, SG_ANNEX_EXEMPLARS);
        if (puts < 7)
            memory_store_fail_puts(rig.memory, puts, QF_EIO);
        else
            memory_store_fail_removals(rig.memory, QF_EIO);
        CHECK_EQ(sg_annex_merge(&options, &merged, NULL), puts == 6 ? QF_OK : QF_EIO);
        memory_store_fail_puts(rig.memory, 0, QF_OK);
        memory_store_fail_removals(rig.memory, QF_OK);
        after = describe(&rig, SG_ANNEX_EXEMPLARS);
        CHECK_STR(after, before);
        free(after);
        (void)merge(&rig, 100 * DAY_MS, false);
        CHECK_EQ(count_files(&rig, SG_ANNEX_EXEMPLARS, INT64_MIN, INT64_MAX), 2);
        after = describe(&rig, SG_ANNEX_EXEMPLARS);
        CHECK_STR(after, before);
        free(after);
        free(before);
    }
}

TEST(a_damaged_file_is_left_alone)
{
    QF_CLEANUP(rig_done) struct rig rig = new_rig();
    struct sg_annex_merged merged;

    put(&rig, 1000, "", "", 0);
    put(&rig, 2000, "", "", 0);
    memory_store_put(rig.memory,
                     "annex/tenant=t/exemplars/date=1970-01-01/"
                     "0000000001500_0000000001500_0123456789abcdef.annex",
                     QF_STR("PFANNEX"));
    merged = merge(&rig, DAY_MS, false);
    CHECK(merged.damaged == 1 && merged.inputs == 2 && merged.outputs == 1);
    CHECK_EQ(count_files(&rig, SG_ANNEX_EXEMPLARS, INT64_MIN, INT64_MAX), 2);
}

/* --- in turn with removals --- */

static void remove_all(void *ctx)
{
    const struct rig *rig = ctx;
    struct sg_remove_options options = { .store = rig->store,
                                         .tenant = QF_STR("t"),
                                         .min_ts = INT64_MIN,
                                         .max_ts = INT64_MAX,
                                         .for_good = true };
    struct sg_remove_result result;
    struct qf_err err = { 0 };

    CHECK_OK(sg_remove(&options, &result, &err), &err);
    CHECK_EQ(result.gone.annexes, 3);
}

/* The files were read, then they went: what was merged of them is not put. */
TEST(what_was_removed_while_it_was_merged_stays_away)
{
    QF_CLEANUP(rig_done) struct rig rig = new_rig();

    for (int i = 0; i < 3; i++)
        put(&rig, 1000 * i, "", "", 0);
    memory_store_after_reads(rig.memory, 3, remove_all, &rig);
    CHECK_EQ(merge(&rig, DAY_MS, false).outputs, 0);
    CHECK_EQ(count_files(&rig, SG_ANNEX_EXEMPLARS, INT64_MIN, INT64_MAX), 0);
}

TEST(what_is_being_removed_is_not_merged)
{
    QF_CLEANUP(rig_done) struct rig rig = new_rig();
    struct sg_annex_merge options = { .store = rig.store,
                                      .tenant = QF_STR("t"),
                                      .before_ms = 2 * DAY_MS };
    struct sg_annex_merged merged;
    struct sg_turn *turn;
    struct qf_err err = { 0 };

    for (int i = 0; i < 3; i++) {
        put(&rig, 1000 * i, "", "", 0);
        put(&rig, DAY_MS + 1000 * i, "", "", 0);
    }
    CHECK_OK(sg_turn_remove(rig.store, QF_STR("t"), 0, DAY_MS - 1, NULL, NULL, NULL, &turn, &err),
             &err);
    CHECK_EQ(sg_annex_merge(&options, &merged, &err), QF_EBUSY);
    CHECK(merged.inputs == 3 && merged.outputs == 1); /* the other day */
    CHECK_EQ(count_files(&rig, SG_ANNEX_EXEMPLARS, INT64_MIN, INT64_MAX), 4);
    (void)sg_turn_end(turn);
    (void)merge(&rig, 2 * DAY_MS, false);
    CHECK_EQ(count_files(&rig, SG_ANNEX_EXEMPLARS, INT64_MIN, INT64_MAX), 2);
}
