/* test_read.c - answers out of annexes while these are merged. */
#include <stdlib.h>

#include "queryapi/annex/annex_int.h"
#include "tests/lib/segments/memory_store.h"
#include "tests/lib/test.h"

struct rig {
    struct memory_store *memory;
    struct sg_store *store;
    struct qf_purse purse;
    struct qa_annex *annex;
    struct qh_stream *stream;
    char *late; /* what is merged away in the middle of a listing */
};

static struct rig new_rig(void)
{
    struct rig rig = { .memory = memory_store_new(), .stream = qh_stream_new(1 << 10) };

    rig.store = memory_store_base(rig.memory);
    return rig;
}

static void begin(struct rig *rig)
{
    const struct qa_annex_options options = { .store = rig->store,
                                              .purse = &rig->purse,
                                              .memory_bytes_max = 1 << 20 };

    atomic_init(&rig->purse.limit, (size_t)1 << 20);
    rig->annex = qa_annex_new(&options);
    CHECK(rig->annex);
}

static void rig_done(struct rig *rig)
{
    rig->annex = qa_annex_free(rig->annex);
    rig->store = sg_store_free(rig->store);
    (void)qh_stream_drop(rig->stream);
    free(rig->late);
}

static qf_rc keep_name(void *ctx, const char *name, struct qf_str bytes, struct qf_err *err)
{
    struct rig *rig = ctx;

    (void)err;
    memory_store_put(rig->memory, name, bytes);
    free(rig->late);
    rig->late = strdup(name);
    return QF_OK;
}

/* A file of the metadata of one or two metrics, each told in a second of its own. Its name is in rig->late. */
static void put(struct rig *rig, const char *first, int first_s, const char *second, int second_s)
{
    const struct sg_annex_files files = { .tenant = QF_STR("t"), .file = keep_name, .ctx = rig };
    struct sg_annex *annex = sg_annex_new(1 << 20);
    const struct sg_metadata a = { .name = qf_str_from(first),
                                   .generation = (uint64_t)first_s * 1000000 };
    const struct sg_metadata b = { .name = qf_str_from(second),
                                   .generation = (uint64_t)second_s * 1000000 };
    struct qf_err err = { 0 };

    CHECK(sg_annex_add_metadata(annex, &a, true));
    if (second[0])
        CHECK(sg_annex_add_metadata(annex, &b, true));
    CHECK_OK(sg_annex_write(annex, &files, &err), &err);
    annex = sg_annex_free(annex);
}

/* The names that an answer has: how many, and whether "late" is one. */
static size_t names(struct rig *rig, bool *ret_late)
{
    struct qa_annex_ask *ask =
        qa_annex_ask_new(rig->annex, SG_ANNEX_METADATA, rig->stream, QF_STR("t"));
    struct qa_annex_answer answer = { .ask = ask, .metadata = sg_annex_new(1 << 20) };
    struct qf_err err = { 0 };
    size_t count;

    CHECK_OK(qa_annex_read(&answer, &err), &err);
    count = sg_annex_metadata_count(answer.metadata);
    *ret_late = sg_annex_find_metadata(answer.metadata, QF_STR("late")) != NULL;
    answer.metadata = sg_annex_free(answer.metadata);
    ask = qa_annex_ask_free(ask);
    return count;
}

/* Somebody merges the first and the last file while the one between is listed: the merged one stands before it. */
static void merge_away(void *ctx, struct qf_str name)
{
    struct rig *rig = ctx;
    char *late = rig->late;

    (void)name;
    memory_store_hook(rig->memory, NULL, NULL);
    rig->late = NULL;
    CHECK(memory_store_remove(rig->memory, late)); /* nobody looks in between */
    put(rig, "early", 1, "late", 5);
    free(late);
}

static void wait_for_middle(void *ctx, struct qf_str name)
{
    struct rig *rig = ctx;

    (void)name;
    memory_store_hook(rig->memory, merge_away, rig);
}

TEST(what_is_merged_in_the_middle_of_a_listing_is_answered)
{
    struct rig rig = new_rig();
    bool late;

    put(&rig, "early", 1, "", 0);
    put(&rig, "middle", 3, "", 0);
    put(&rig, "late", 5, "", 0);
    begin(&rig);
    memory_store_hook(rig.memory, wait_for_middle, &rig);
    CHECK_EQ(names(&rig, &late), 3);
    CHECK(late);
    rig_done(&rig);
}

TEST(a_store_that_is_quiet_is_listed_twice)
{
    struct rig rig = new_rig();
    struct memory_counts before;
    bool late;

    put(&rig, "late", 5, "", 0);
    begin(&rig);
    before = memory_store_counts(rig.memory);
    CHECK_EQ(names(&rig, &late), 1);
    CHECK(late);
    CHECK_EQ(memory_store_counts(rig.memory).lists - before.lists, 2);
    rig_done(&rig);
}
