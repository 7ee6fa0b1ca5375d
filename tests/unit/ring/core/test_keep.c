/* test_keep.c - what keepers take and drop, what a put needs, what is repaired. */
#include "ring/core/keep.h"
#include "ring/core/repair.h"
#include "ring/core/tally.h"
#include "tests/unit/ring/core/ring_help.h"

#define RING QF_CLEANUP(ring_freep) struct rg_ring *

TEST(a_keeper_refuses_puts_of_an_epoch_before_the_one_it_knows)
{
    struct rg_keep keep = { .slots = 8, .told = true };

    CHECK(rg_keep_takes(&keep, 1, 5));
    CHECK(!rg_keep_takes(&keep, 1, 4));
    CHECK(rg_keep_takes(&keep, 2, 4));
    CHECK(rg_keep_hear(&keep, 1, 6));
    CHECK(!rg_keep_hear(&keep, 1, 6));
    CHECK(!rg_keep_takes(&keep, 1, 5));
}

TEST(a_new_disk_takes_nothing_before_it_is_told_the_epochs)
{
    struct rg_keep keep = { .slots = 2 };

    CHECK(!rg_keep_takes(&keep, 1, 5));
    CHECK(rg_keep_tell(&keep, (const uint64_t[]){ 1, 6 }));
    CHECK(!rg_keep_tell(&keep, (const uint64_t[]){ 1, 6 }));
    CHECK(!rg_keep_takes(&keep, 1, 5));
    CHECK(rg_keep_takes(&keep, 1, 6));
}

TEST(an_order_to_clean_that_comes_late_is_refused)
{
    struct rg_keep keep = { .slots = 8, .told = true };

    CHECK(rg_keep_cleans(&keep, 1, 5));
    CHECK(rg_keep_takes(&keep, 1, 6)); /* it is an owner again */
    CHECK(!rg_keep_cleans(&keep, 1, 5));
    CHECK(rg_keep_cleans(&keep, 1, 6));
}

TEST(a_put_renews_the_age_of_a_blob_that_is_there)
{
    struct rg_keep keep = { .slots = 8, .told = true };

    CHECK_EQ(rg_keep_renew(&keep, INT64_MIN, 10), 10);
    CHECK_EQ(rg_keep_renew(&keep, 10, 20), 20);
    CHECK_EQ(rg_keep_renew(&keep, 20, 15), 20); /* a clock that went back */
}

TEST(garbage_is_old_and_was_asked_about_since_and_lately)
{
    CHECK(rg_keep_drops(0, 100, 100, 100));
    CHECK(!rg_keep_drops(0, 99, 99, 100));   /* too young */
    CHECK(!rg_keep_drops(50, 50, 200, 100)); /* put after the question, or with it */
    CHECK(!rg_keep_drops(0, 100, 126, 100)); /* the answer is old */
    CHECK(rg_put_is_old(0, 50, 100));
    CHECK(!rg_put_is_old(0, 49, 100));
}

TEST(epochs_of_a_keeper_come_back)
{
    struct rg_keep keep = { .slots = 8, .told = true }, again;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;

    CHECK(rg_keep_hear(&keep, 7, 1 << 20));
    rg_keep_encode(&bytes, &keep);
    CHECK_EQ(rg_keep_decode(qf_strbuf_view(&bytes), &again), QF_OK);
    CHECK(!rg_keep_takes(&again, 7, 5));
    for (size_t len = 0; len < bytes.len; len++)
        CHECK_EQ(rg_keep_decode((struct qf_str){ bytes.data, len }, &again), QF_ECORRUPT);
}

TEST(a_put_waits_for_its_level_and_no_longer)
{
    RING ring = found(4, 3, 3);
    struct rg_tally tally;

    rg_tally_begin(&tally, ring, 0, RG_LEVEL_QUORUM);
    rg_tally_hear(&tally, 0, RG_ANSWER_HAS);
    rg_tally_hear(&tally, 9, RG_ANSWER_HAS); /* no owner */
    CHECK_EQ(rg_tally_state(&tally, ring), RG_TALLY_WAITS);
    rg_tally_hear(&tally, 1, RG_ANSWER_HAS);
    CHECK_EQ(rg_tally_state(&tally, ring), RG_TALLY_ENOUGH);
    CHECK_EQ(rg_tally_missing(&tally), RG_NODE(2));
    rg_tally_begin(&tally, ring, 0, RG_LEVEL_ONE);
    rg_tally_hear(&tally, 1, RG_ANSWER_HAS);
    CHECK_EQ(rg_tally_state(&tally, ring), RG_TALLY_ENOUGH);
    rg_tally_begin(&tally, ring, 0, RG_LEVEL_ALL);
    rg_tally_hear(&tally, 0, RG_ANSWER_HAS);
    rg_tally_hear(&tally, 1, RG_ANSWER_HAS);
    CHECK_EQ(rg_tally_state(&tally, ring), RG_TALLY_WAITS);
    rg_tally_hear(&tally, 2, RG_ANSWER_FAILED);
    CHECK_EQ(rg_tally_state(&tally, ring), RG_TALLY_FAILED);
    rg_tally_hear(&tally, 2, RG_ANSWER_HAS); /* after all */
    CHECK_EQ(rg_tally_state(&tally, ring), RG_TALLY_ENOUGH);
}

TEST(hand_off_never_counts)
{
    RING ring = found(4, 3, 3);
    struct rg_tally tally;

    rg_tally_begin(&tally, ring, 0, RG_LEVEL_QUORUM);
    rg_tally_hear(&tally, 0, RG_ANSWER_HAS);
    rg_tally_hear(&tally, 1, RG_ANSWER_HANDED);
    rg_tally_hear(&tally, 2, RG_ANSWER_HANDED);
    CHECK_EQ(rg_tally_state(&tally, ring), RG_TALLY_FAILED);
}

TEST(a_put_of_an_old_epoch_begins_again)
{
    RING ring = found(4, 3, 3);
    struct rg_tally tally;

    rg_tally_begin(&tally, ring, 0, RG_LEVEL_QUORUM);
    rg_tally_hear(&tally, 0, RG_ANSWER_HAS);
    rg_tally_hear(&tally, 1, RG_ANSWER_OLD);
    CHECK_EQ(rg_tally_state(&tally, ring), RG_TALLY_OLD);
}

static void repair_freep(struct rg_repair **repair)
{
    *repair = rg_repair_free(*repair);
}

TEST(marks_are_tried_in_turn_and_back_off)
{
    QF_CLEANUP(repair_freep)
    struct rg_repair *repair = rg_repair_new(&(struct rg_repair_options){ .backoff_ms = 10 });
    const struct rg_mark *mark;

    rg_repair_mark(repair, 1, 5, QF_STR("a"), 100);
    rg_repair_mark(repair, 1, 5, QF_STR("a"), 101);
    rg_repair_mark(repair, 2, 5, QF_STR("a"), 102);
    CHECK_EQ(rg_repair_count(repair), 2);
    mark = rg_repair_next(repair, 200);
    CHECK_EQ(mark->node, 1);
    CHECK_EQ(rg_repair_next(repair, 200)->node, 2);
    CHECK(!rg_repair_next(repair, 200));
    rg_repair_end(repair, 1, 5, QF_STR("a"), false, 200);
    rg_repair_end(repair, 2, 5, QF_STR("a"), true, 200);
    CHECK(!rg_repair_next(repair, 209));
    CHECK_EQ(rg_repair_next(repair, 210)->node, 1);
    rg_repair_end(repair, 1, 5, QF_STR("a"), false, 210);
    CHECK(!rg_repair_next(repair, 229));
    rg_repair_forget(repair, 1);
    CHECK_EQ(rg_repair_count(repair), 0);
}

/* Who is back gets what it lacks at once, however often that failed before. */
TEST(marks_of_a_node_that_is_back_are_due_at_once)
{
    QF_CLEANUP(repair_freep)
    struct rg_repair *repair = rg_repair_new(&(struct rg_repair_options){ .backoff_ms = 1000 });

    rg_repair_mark(repair, 1, 5, QF_STR("a"), 0);
    rg_repair_mark(repair, 2, 5, QF_STR("a"), 0);
    for (int i = 0; i < 2; i++) {
        CHECK(rg_repair_next(repair, 10));
        rg_repair_end(repair, (uint8_t)(1 + i), 5, QF_STR("a"), false, 10);
    }
    CHECK(!rg_repair_next(repair, 20));
    rg_repair_hurry(repair, 2, 20);
    CHECK_EQ(rg_repair_next(repair, 20)->node, 2);
    CHECK(!rg_repair_next(repair, 20));
    CHECK(rg_repair_has(repair, 1) && rg_repair_has(repair, 2) && !rg_repair_has(repair, 3));
    rg_repair_forget(repair, 1);
    CHECK(!rg_repair_has(repair, 1));
}

TEST(marks_that_do_not_fit_become_marks_of_their_slot)
{
    QF_CLEANUP(repair_freep)
    struct rg_repair *repair = rg_repair_new(&(struct rg_repair_options){ .marks_max = 2 });
    char name[8];

    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof(name), "b%d", i);
        rg_repair_mark(repair, 3, 7, qf_str_from(name), i);
    }
    CHECK_EQ(rg_repair_count(repair), 3);
    rg_repair_end(repair, 3, 7, QF_STR("b0"), true, 20);
    rg_repair_end(repair, 3, 7, QF_STR("b1"), true, 20);
    CHECK_STR(rg_repair_next(repair, 20)->name, "");
    rg_repair_end(repair, 3, 7, QF_STR(""), true, 20);
    CHECK_EQ(rg_repair_count(repair), 0);
}
