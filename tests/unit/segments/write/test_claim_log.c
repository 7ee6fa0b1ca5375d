/* test_claim_log.c - which generation an import on our own nodes gets, and whose claims are dead. */
#include "segments/write/claim_log.h"

#include "tests/lib/test.h"

#define NOW UINT64_C(1700000000000500)

static void hear(struct claim_log_view *view, const char *name, bool known)
{
    CHECK_EQ(claim_log_hear(view, qf_str_from(name)), known);
}

TEST(an_import_is_above_all_marks_and_otherwise_where_its_clock_is)
{
    QF_CLEANUP(claim_log_view_done) struct claim_log_view view = { 0 };

    CHECK_EQ(claim_log_choose(&view, NOW), NOW);
    hear(&view, "_below/tenant=t/00000000000000000000", true);
    CHECK_EQ(claim_log_choose(&view, NOW), NOW);
    hear(&view, "_below/tenant=t/01700000000000500-0123456789abcdef-1", false); /* too short */
    hear(&view, "_below/tenant=t/00001700000000000500-0123456789abcdef-1", true);
    CHECK(claim_log_choose(&view, NOW) > NOW);
    CHECK_EQ(claim_log_choose(&view, NOW + 1000), NOW + 1000);
    CHECK_EQ(view.marks.count, 2); /* all of them are replaced */
}

/* Whatever has been taken, what is chosen is above it, and none that a range of an ingest node may have. */
TEST(each_next_one_is_greater_and_one_of_an_import)
{
    QF_CLEANUP(claim_log_view_done) struct claim_log_view view = { .greatest = NOW };

    for (int i = 0; i < 2000; i++) {
        uint64_t next = claim_log_choose(&view, NOW - 5000);

        CHECK(next > view.greatest && next % 1000 >= 500);
        view.greatest = next;
    }
    CHECK(view.greatest < NOW + 2000 * 1000);
}

TEST(claims_of_those_that_are_too_old_are_dead_and_nothing_else_is)
{
    QF_CLEANUP(claim_log_view_done) struct claim_log_view view = { .dead_below = NOW };

    hear(&view, "_claims/tenant=t/00001700000000000499-0123456789abcdef-1", true);
    hear(&view, "_claims/tenant=t/00001700000000000500-0123456789abcdef-1", true);
    hear(&view, "_claims/tenant=t/x", false);
    hear(&view, "_claims", false);
    hear(&view, "", false);
    hear(&view, "tenant=t/date=2026-01-31/00001700000000000499", false);
    CHECK_EQ(view.claims.count, 1);
    CHECK_EQ(view.marks.count, 0);
    CHECK_EQ(claim_log_choose(&view, NOW), NOW); /* a claim is no mark */
}

TEST(who_merges_stays_below_all_claims_that_live)
{
    QF_CLEANUP(claim_log_view_done) struct claim_log_view view = { .dead_below = NOW };

    CHECK_EQ(claim_log_settled(&view, NOW + 9), NOW + 9);
    hear(&view, "_claims/tenant=t/00001700000000000499-0123456789abcdef-1", true); /* dead */
    CHECK_EQ(claim_log_settled(&view, NOW + 9), NOW + 9);
    hear(&view, "_claims/tenant=t/00001700000000000507-0123456789abcdef-1", true);
    hear(&view, "_claims/tenant=t/00001700000000000503-0123456789abcdef-2", true);
    hear(&view, "_claims/tenant=t/00001700000000000505-0123456789abcdef-3", true);
    CHECK_EQ(claim_log_settled(&view, NOW + 9), NOW + 3);
    CHECK_EQ(claim_log_settled(&view, NOW + 1), NOW + 1);
}
