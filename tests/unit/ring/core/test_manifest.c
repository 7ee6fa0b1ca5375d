/* test_manifest.c - which blobs exist, by the entries of a log. */
#include <stdio.h>
#include <string.h>

#include "ring/core/manifest.h"
#include "tests/lib/test.h"

static void manifest_freep(struct rg_manifest **manifest)
{
    *manifest = rg_manifest_free(*manifest);
}
#define MANIFEST QF_CLEANUP(manifest_freep) struct rg_manifest *
#define BYTES QF_CLEANUP(qf_strbuf_done) struct qf_strbuf

static enum rg_noted name_it(struct rg_manifest *m, enum rg_note_kind kind, const char *name,
                             uint32_t slot, uint64_t epoch)
{
    struct rg_blob blob = { .name = qf_str_from(name), .slot = slot, .bytes = 5 };

    return rg_manifest_apply(
        m, rg_manifest_applied(m) + 1,
        &(struct rg_note){ .kind = kind, .epoch = epoch, .added = &blob, .added_count = 1 });
}

static enum rg_noted remove_it(struct rg_manifest *m, const char *name)
{
    struct qf_str gone = qf_str_from(name);

    return rg_manifest_apply(
        m, rg_manifest_applied(m) + 1,
        &(struct rg_note){ .kind = RG_NOTE_REMOVED, .removed = &gone, .removed_count = 1 });
}

static enum rg_noted replace(struct rg_manifest *m, const char *from, const char *to,
                             uint64_t epoch)
{
    struct rg_blob blob = { .name = qf_str_from(to), .slot = 1 };
    struct qf_str gone = qf_str_from(from);

    return rg_manifest_apply(m, rg_manifest_applied(m) + 1,
                             &(struct rg_note){ .kind = RG_NOTE_REPLACED,
                                                .epoch = epoch,
                                                .added = &blob,
                                                .added_count = 1,
                                                .removed = &gone,
                                                .removed_count = 1 });
}

static enum rg_noted adopt(struct rg_manifest *m, uint64_t since, uint64_t epoch, uint32_t slot)
{
    return rg_manifest_apply(
        m, rg_manifest_applied(m) + 1,
        &(struct rg_note){
            .kind = RG_NOTE_EPOCH, .since = since, .epoch = epoch, .slots = rg_slot_set_of(slot) });
}

TEST(what_is_sealed_and_added_is_named_until_it_is_removed)
{
    MANIFEST m = rg_manifest_new(8, 0, 0);

    CHECK_EQ(name_it(m, RG_NOTE_SEALED, "a", 1, 0), RG_NOTED);
    CHECK_EQ(name_it(m, RG_NOTE_SEALED, "a", 1, 0), RG_NOTED_NOTHING);
    CHECK_EQ(name_it(m, RG_NOTE_ADDED, "b", 1, 0), RG_NOTED);
    CHECK_EQ(rg_manifest_count(m), 2);
    CHECK_EQ(remove_it(m, "a"), RG_NOTED);
    CHECK_EQ(remove_it(m, "a"), RG_NOTED_NOTHING);
    CHECK(!rg_manifest_names(m, QF_STR("a")));
    CHECK(rg_manifest_names(m, QF_STR("b")));
    CHECK_EQ(rg_manifest_count(m), 1);
}

TEST(a_removed_name_does_not_come_back_with_a_doubled_entry)
{
    MANIFEST m = rg_manifest_new(8, 0, 0);

    CHECK_EQ(name_it(m, RG_NOTE_ADDED, "a", 1, 0), RG_NOTED);
    CHECK_EQ(remove_it(m, "a"), RG_NOTED);
    CHECK_EQ(name_it(m, RG_NOTE_ADDED, "a", 1, 0), RG_NOTED_GONE);
    CHECK_EQ(rg_manifest_count(m), 0);
}

TEST(entries_of_an_earlier_epoch_of_their_slot_do_not_apply)
{
    MANIFEST m = rg_manifest_new(8, 0, 0);

    CHECK_EQ(adopt(m, 0, 5, 1), RG_NOTED);
    CHECK_EQ(name_it(m, RG_NOTE_SEALED, "a", 1, 4), RG_NOTED_OLD_EPOCH);
    CHECK_EQ(name_it(m, RG_NOTE_SEALED, "a", 2, 4), RG_NOTED); /* its slot did not change */
    CHECK_EQ(name_it(m, RG_NOTE_SEALED, "b", 1, 5), RG_NOTED);
    CHECK_EQ(replace(m, "b", "c", 4), RG_NOTED_OLD_EPOCH);
    CHECK_EQ(replace(m, "b", "c", 6), RG_NOTED);
    CHECK_EQ(rg_manifest_slot_epoch(m, 1), 5);
    CHECK_EQ(rg_manifest_slot_epoch(m, 2), 0);
}

TEST(an_epoch_that_would_leave_out_slots_is_refused)
{
    MANIFEST m = rg_manifest_new(8, 0, 0);

    CHECK_EQ(adopt(m, 0, 5, 1), RG_NOTED);
    CHECK_EQ(adopt(m, 0, 5, 1), RG_NOTED_NOTHING);
    CHECK_EQ(adopt(m, 6, 7, 2), RG_NOTED_GAP);
    CHECK_EQ(adopt(m, 3, 7, 2), RG_NOTED);
    CHECK_EQ(adopt(m, 7, 8, 900), RG_NOTED_BAD);
    CHECK_EQ(rg_manifest_epoch(m), 7);
}

TEST(a_replacement_whose_input_is_gone_counts_for_nothing)
{
    MANIFEST m = rg_manifest_new(8, 0, 0);

    CHECK_EQ(name_it(m, RG_NOTE_SEALED, "a", 1, 0), RG_NOTED);
    CHECK_EQ(replace(m, "a", "x", 0), RG_NOTED);
    CHECK_EQ(replace(m, "a", "x", 0), RG_NOTED_NOTHING); /* doubled */
    CHECK_EQ(replace(m, "a", "y", 0), RG_NOTED_GONE);
    CHECK(rg_manifest_names(m, QF_STR("x")));
    CHECK(!rg_manifest_names(m, QF_STR("y")));
}

/* How an import names all that it put: with its claim, or not at all. */
TEST(all_that_replaces_a_claim_is_named_or_nothing)
{
    MANIFEST m = rg_manifest_new(8, 0, 0);
    struct rg_blob blobs[] = { { .name = QF_STR("x"), .slot = 1 },
                               { .name = QF_STR("y"), .slot = 2 } };
    struct qf_str claim = QF_STR("claim");
    struct rg_note note = { .kind = RG_NOTE_REPLACED,
                            .epoch = 4,
                            .added = blobs,
                            .added_count = 2,
                            .removed = &claim,
                            .removed_count = 1 };

    CHECK_EQ(rg_manifest_apply(m, 1, &note), RG_NOTED_GONE);
    CHECK_EQ(name_it(m, RG_NOTE_ADDED, "claim", 1, 0), RG_NOTED);
    CHECK_EQ(adopt(m, 0, 5, 2), RG_NOTED);
    CHECK_EQ(rg_manifest_apply(m, 4, &note), RG_NOTED_OLD_EPOCH); /* y's owners are others now */
    CHECK_EQ(rg_manifest_count(m), 1);
    note.epoch = 5;
    CHECK_EQ(rg_manifest_apply(m, 5, &note), RG_NOTED);
    CHECK_EQ(rg_manifest_apply(m, 6, &note), RG_NOTED_NOTHING); /* doubled on its way */
    CHECK(rg_manifest_names(m, QF_STR("x")) && rg_manifest_names(m, QF_STR("y")));
    CHECK_EQ(rg_manifest_count(m), 2);
}

TEST(bounds_are_kept)
{
    MANIFEST m = rg_manifest_new(8, 2, 0);

    CHECK_EQ(name_it(m, RG_NOTE_SEALED, "a", 1, 0), RG_NOTED);
    CHECK_EQ(name_it(m, RG_NOTE_SEALED, "b", 1, 0), RG_NOTED);
    CHECK_EQ(name_it(m, RG_NOTE_SEALED, "c", 1, 0), RG_NOTED_FULL);
    CHECK_EQ(name_it(m, RG_NOTE_SEALED, "", 1, 0), RG_NOTED_BAD);
    CHECK_EQ(name_it(m, RG_NOTE_SEALED, "d", 8, 0), RG_NOTED_BAD);
    CHECK_EQ(remove_it(m, "a"), RG_NOTED);
    CHECK_EQ(name_it(m, RG_NOTE_SEALED, "c", 1, 0), RG_NOTED);
}

TEST(removals_are_remembered_up_to_a_bound_and_that_is_told)
{
    MANIFEST m = rg_manifest_new(8, 0, 4);
    char name[8];
    size_t at = 0, known = 0;

    for (int i = 0; i < 12; i++) {
        (void)snprintf(name, sizeof(name), "b%d", i);
        CHECK_EQ(name_it(m, RG_NOTE_SEALED, name, 1, 0), RG_NOTED);
        CHECK_EQ(remove_it(m, name), RG_NOTED);
    }
    CHECK(!rg_manifest_reaches(m, 1));
    CHECK(rg_manifest_reaches(m, 24));
    while (rg_manifest_next(m, &at))
        known++;
    CHECK(known <= 4);
    CHECK(rg_manifest_find(m, QF_STR("b11"))); /* the newest are kept */
}

TEST(a_manifest_comes_back_the_same)
{
    MANIFEST m = rg_manifest_new(8, 100, 4);
    MANIFEST again = NULL;
    BYTES one = QF_STRBUF_INIT, two = QF_STRBUF_INIT;
    char name[8];

    CHECK_EQ(adopt(m, 0, 5, 1), RG_NOTED);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof(name), "b%d", i);
        CHECK_EQ(name_it(m, RG_NOTE_SEALED, name, 2, 1), RG_NOTED);
        if (i % 3)
            CHECK_EQ(remove_it(m, name), RG_NOTED);
    }
    rg_manifest_encode(&one, m);
    CHECK_EQ(rg_manifest_decode(qf_strbuf_view(&one), &again), QF_OK);
    CHECK_EQ(name_it(m, RG_NOTE_ADDED, "last", 1, 5), RG_NOTED);
    CHECK_EQ(name_it(again, RG_NOTE_ADDED, "last", 1, 5), RG_NOTED);
    CHECK_EQ(name_it(again, RG_NOTE_ADDED, "old", 1, 4), RG_NOTED_OLD_EPOCH);
    CHECK_EQ(name_it(m, RG_NOTE_ADDED, "old", 1, 4), RG_NOTED_OLD_EPOCH);
    qf_strbuf_reset(&one);
    rg_manifest_encode(&one, m);
    rg_manifest_encode(&two, again);
    CHECK(qf_str_eq(qf_strbuf_view(&one), qf_strbuf_view(&two)));
    for (size_t len = 0; len < one.len; len++) {
        struct rg_manifest *cut = NULL;

        CHECK_EQ(rg_manifest_decode((struct qf_str){ one.data, len }, &cut), QF_ECORRUPT);
    }
}

TEST(entries_of_manifests_come_back_the_same)
{
    struct rg_blob blobs[2] = { { .name = QF_STR_INIT("x"), .slot = 1023, .bytes = 7 },
                                { .name = QF_STR_INIT("y") } };
    struct qf_str names[1] = { QF_STR_INIT("z") };

    for (int kind = RG_NOTE_EPOCH; kind < RG_NOTE__COUNT; kind++) {
        struct rg_note note = { .kind = (enum rg_note_kind)kind,
                                .epoch = 300,
                                .since = 2,
                                .slots = rg_slot_set_of(9),
                                .added = blobs,
                                .added_count = 2,
                                .removed = names,
                                .removed_count = 1 },
                       again;
        BYTES one = QF_STRBUF_INIT, two = QF_STRBUF_INIT;

        rg_note_encode(&one, &note);
        for (size_t len = 0; len < one.len; len++)
            CHECK_EQ(rg_note_decode((struct qf_str){ one.data, len }, &again), QF_ECORRUPT);
        CHECK_EQ(rg_note_decode(qf_strbuf_view(&one), &again), QF_OK);
        rg_note_encode(&two, &again);
        rg_note_done(&again);
        CHECK(qf_str_eq(qf_strbuf_view(&one), qf_strbuf_view(&two)));
    }
}
