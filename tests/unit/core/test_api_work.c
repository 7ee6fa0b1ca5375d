/* test_api_work.c - assignment, reassignment, idempotency and the life of queries. */
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

#include "api_int.h"
#include "tests/lib/core/check.h"
#include "tests/lib/core/world.h"

/* Leak detection and sanitizers must let a test ask for more memory than there is. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static const struct wc_api_stats *stats(struct world *world)
{
    CHECK_MSG(!core_check_api(world->wc), "%s", core_check_api(world->wc));
    return wc_api_stats(world->wc);
}

/* From begin to end, in the order the specification gives. */
TEST(a_query_runs_from_assignment_to_commit)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_begin(world, 1, 1, 1, 1);
    CHECK_STR(world->did, "assign k1#1 w1 s1");
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_say(world, WC_API_EV_READY, 1, 1, 1);
    CHECK_STR(world->did, "fetch k1#1 w1 s1");
    world_fetched(world, 1, 1, 1);
    CHECK_STR(world->did, "ack k1#1 w1 s1; committed k1#1; ended q1 ok");
    CHECK_EQ(stats(world)->queries_ok, 1);
}

/* Rejected work goes to another worker; the rejecter is out of rotation until it reports. */
TEST(rejected_work_goes_to_another_worker)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_up(world, 2);
    world_begin(world, 1, 1, 1, 1);
    world_say(world, WC_API_EV_REJECTED, 1, 1, 1);
    CHECK_STR(world->did, "assign k1#2 w2 s2");
    CHECK_EQ(stats(world)->workers_available, 1);
    CHECK_EQ(stats(world)->rejected, 1);
}

/* On worker @w: it fails while it runs, expires while it is fetched, or cannot be fetched. */
static void fail_run(struct world *world, uint64_t w, uint32_t attempt, int way)
{
    world_say(world, WC_API_EV_ACCEPTED, w, 1, attempt);
    CHECK_EQ(stats(world)->accepted, attempt);
    if (way > 0)
        world_say(world, WC_API_EV_READY, w, 1, attempt);
    if (way == 2)
        world_fetch_failed(world, 1, attempt, WC_FETCH_IO);
    else
        world_failed(world, w, 1, attempt, QF_EIO, true);
}

/* A run that fails after its acceptance costs an attempt, its worker is avoided, and among workers
 * that all failed it the item holds back. */
TEST(a_failed_run_costs_avoids_and_holds)
{
    for (int way = 0; way < 3; way++) {
        struct wc_api_limits limits = { .workers_max = 4, .items_max = 4, .retry_delay_ms = 200 };
        QF_CLEANUP(world_freep) struct world *world = world_new(&limits);
        struct wc_api_item_view view;

        world_up(world, 1);
        world_up(world, 2);
        world_begin(world, 1, 1, 1, 1);
        fail_run(world, 1, 1, way);
        CHECK_STR(world_item_text(world, 1), "assigned w2 #2");
        fail_run(world, 2, 2, way);
        CHECK_STR(world_item_text(world, 1), "pending #2");
        CHECK(wc_api_item(world->wc, (struct wc_work_id){ 1 }, &view));
        CHECK_EQ(view.failures, 2);
        world_tick(world, 200);
        CHECK_STR(world->did, "assign k1#3 w1 s1");
    }
}

/* Losing what was ready costs an attempt; a download of it that is under way may still commit,
 * also if the artifact is said to have expired. */
TEST(what_was_ready_and_is_gone_costs_an_attempt)
{
    for (int expired = 0; expired < 2; expired++) {
        QF_CLEANUP(world_freep) struct world *world = world_new(NULL);
        struct wc_api_item_view view;

        world_up(world, 1);
        world_up(world, 2);
        world_begin(world, 1, 1, 1, 1);
        world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
        world_say(world, WC_API_EV_READY, 1, 1, 1);
        if (expired)
            world_failed(world, 1, 1, 1, QF_ENOTFOUND, true);
        else
            world_peer(world, WC_API_EV_DISCONNECTED, 1, 1);
        CHECK(wc_api_item(world->wc, (struct wc_work_id){ 1 }, &view));
        CHECK_EQ(view.failures, 1);
        world_fetched(world, 1, 1, 1);
        CHECK_STR(world->did, "cancel k1#2 w2 s2; committed k1#1; ended q1 ok");
    }
}

/* A rejecter that accepts again is still the last choice for what it rejected. */
TEST(a_rejecter_is_avoided_after_it_accepts_again)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);
    struct wc_api_item_view view;
    uint64_t second;

    for (uint64_t w = 1; w <= 3; w++)
        world_up(world, w);
    world_begin(world, 1, 1, 1, 1);
    world_say(world, WC_API_EV_REJECTED, 1, 1, 1);
    CHECK(wc_api_item(world->wc, (struct wc_work_id){ 1 }, &view));
    second = view.worker.v;
    world_status(world, 1, 1, true, false);
    world_peer(world, WC_API_EV_DISCONNECTED, second, second);
    CHECK(wc_api_item(world->wc, (struct wc_work_id){ 1 }, &view));
    CHECK_EQ(view.worker.v, 5 - second);
}

/* Never back to the rejecter while there is another, even if it is the first choice and willing. */
TEST(work_does_not_return_to_a_rejecter_while_another_exists)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_begin(world, 1, 1, 1, 1);
    world_say(world, WC_API_EV_REJECTED, 1, 1, 1);
    CHECK_STR(world_item_text(world, 1), "pending #1");
    world_up(world, 2);
    CHECK_STR(world_item_text(world, 1), "assigned w2 #2");
    world_status(world, 1, 1, true, false);
    world_peer(world, WC_API_EV_DISCONNECTED, 2, 2);
    CHECK_STR(world_item_text(world, 1), "assigned w1 #3"); /* there is no other now */
}

/* Among workers that have all failed it, the one that failed longest ago comes first. */
TEST(the_longest_forgiven_worker_is_tried_again_first)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    for (uint64_t w = 1; w <= 3; w++)
        world_up(world, w);
    world_begin(world, 1, 1, 1, 1);
    for (uint32_t attempt = 1; attempt <= 6; attempt++) {
        struct wc_api_item_view view;

        CHECK(wc_api_item(world->wc, (struct wc_work_id){ 1 }, &view));
        if (attempt > 3) { /* the same order again */
            static uint64_t first[3];

            if (attempt == 4)
                first[0] = view.worker.v;
            CHECK_EQ(first[0], 1);
        }
        world_failed(world, view.worker.v, 1, attempt, QF_EIO, true);
    }
    CHECK_STR(world_item_text(world, 1), "assigned w1 #7");
}

/* More failed workers than an item remembers: the oldest are forgotten, nothing breaks. */
TEST(an_item_forgets_its_oldest_failures)
{
    struct wc_api_limits limits = { .workers_max = 16, .items_max = 4, .attempts_max = 50 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);

    for (uint64_t w = 1; w <= 12; w++)
        world_up(world, w);
    world_begin(world, 1, 1, 1, 1);
    for (uint32_t attempt = 1; attempt <= 40; attempt++) {
        struct wc_api_item_view view, next;

        CHECK(wc_api_item(world->wc, (struct wc_work_id){ 1 }, &view));
        world_failed(world, view.worker.v, 1, attempt, QF_EIO, true);
        CHECK(wc_api_item(world->wc, (struct wc_work_id){ 1 }, &next));
        CHECK(next.worker.v != view.worker.v);
    }
    CHECK_EQ(stats(world)->reassigned, 40);
}

/* A drain notice moves what is not accepted at once and lets the rest finish. */
TEST(draining_moves_unstarted_work_and_lets_accepted_work_finish)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_up(world, 2);
    world_begin(world, 1, 1, 3, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_status(world, 1, 1, false, true);
    CHECK_STR(world->did, "cancel k2#1 w1 s1; cancel k3#1 w1 s1; assign k2#2 w2 s2; "
                          "assign k3#2 w2 s2");
    CHECK_STR(world_item_text(world, 1), "accepted w1 #1");
    world_say(world, WC_API_EV_READY, 1, 1, 1);
    world_fetched(world, 1, 1, 1);
    CHECK_STR(world->did, "ack k1#1 w1 s1; committed k1#1");
    CHECK_EQ(stats(world)->items_fetched, 1);
}

/* Draining and non-accepting workers never get work, however high they score. */
TEST(unavailable_workers_never_get_work)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    for (uint64_t w = 1; w <= 3; w++)
        world_up(world, w);
    world_status(world, 1, 1, true, true);
    world_status(world, 2, 2, false, false);
    for (uint64_t q = 1; q <= 4; q++) {
        world_begin(world, q, q, 1, 1 + q % 2);
        CHECK_EQ(world->effects.items[0].worker.v, 3);
    }
    CHECK_EQ(stats(world)->affinity_misses, 4);
}

/* No worker: pending; the moment one appears it has the work. */
TEST(without_a_worker_items_wait_for_the_first_to_appear)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_begin(world, 1, 1, 2, 1);
    CHECK_STR(world->did, "");
    CHECK_EQ(stats(world)->items_pending, 2);
    world_up(world, 1);
    CHECK_STR(world->did, "assign k1#1 w1 s1; assign k2#1 w1 s1");
}

/* With a bound on that wait the query fails as unavailable. */
TEST(waiting_for_any_worker_is_bounded)
{
    struct wc_api_limits limits = { .items_max = 4, .worker_wait_ms = 30000 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);

    world_begin(world, 1, 1, 2, 1);
    CHECK_EQ(wc_api_deadline(world->wc), 30000);
    world_tick(world, 30000);
    CHECK_STR(world->did, "ended q1 unavailable k1");
    CHECK_EQ(stats(world)->queries_failed, 1);
}

/* A retryable failure, a failed fetch, wrong bytes and an expired artifact all run again elsewhere.
 */
TEST(worthless_runs_run_again_elsewhere)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_up(world, 2);
    world_begin(world, 1, 1, 1, 1);
    world_failed(world, 1, 1, 1, QF_ENOSPC, true);
    CHECK_STR(world->did, "assign k1#2 w2 s2");
    world_say(world, WC_API_EV_ACCEPTED, 2, 1, 2);
    world_say(world, WC_API_EV_READY, 2, 1, 2);
    world_fetch_failed(world, 1, 2, WC_FETCH_IO);
    CHECK_STR(world->did, "cancel k1#2 w2 s2; assign k1#3 w1 s1");
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 3);
    world_say(world, WC_API_EV_READY, 1, 1, 3);
    world_fetched(world, 1, 3, 999);
    CHECK_STR(world->did, "cancel k1#3 w1 s1; assign k1#4 w2 s2");
    world_say(world, WC_API_EV_ACCEPTED, 2, 1, 4);
    world_say(world, WC_API_EV_READY, 2, 1, 4);
    world_failed(world, 2, 1, 4, QF_ENOTFOUND, true);
    CHECK_STR(world->did, "assign k1#5 w1 s1");
    CHECK_EQ(stats(world)->fetch_failed[WC_FETCH_IO], 1);
    CHECK_EQ(stats(world)->fetch_failed[WC_FETCH_CHECKSUM], 1);
    CHECK_EQ(stats(world)->failed_retryable, 2);
}

/* Attempts are bounded; the query then fails with the last reason. */
TEST(attempts_are_bounded_and_the_last_reason_is_told)
{
    static const struct {
        enum wc_fetch_error error;
        const char *told;
    } cases[] = {
        { WC_FETCH_IO, "cancel k1#1 w1 s1; ended q1 io k1" },
        { WC_FETCH_CHECKSUM, "cancel k1#1 w1 s1; ended q1 corrupt k1" },
        { WC_FETCH_EXPIRED, "cancel k1#1 w1 s1; ended q1 not_found k1" },
    };
    struct wc_api_limits limits = { .items_max = 4, .attempts_max = 1 };

    for (size_t i = 0; i < QF_COUNT_OF(cases); i++) {
        QF_CLEANUP(world_freep) struct world *world = world_new(&limits);

        world_up(world, 1);
        world_begin(world, 1, 1, 1, 1);
        world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
        world_say(world, WC_API_EV_READY, 1, 1, 1);
        world_fetch_failed(world, 1, 1, cases[i].error);
        CHECK_STR(world->did, cases[i].told);
        world_begin(world, 2, 2, 1, 1);
        world_say(world, WC_API_EV_ACCEPTED, 1, 2, 1);
        world_say(world, WC_API_EV_READY, 1, 2, 1);
        world_fetched(world, 2, 1, 999);
        CHECK_STR(world->did, "cancel k2#1 w1 s1; ended q2 corrupt k2");
        world_begin(world, 3, 3, 1, 1);
        world_failed(world, 1, 3, 1, QF_ENOSPC, true);
        CHECK_STR(world->did, "ended q3 no_space k3");
        world_begin(world, 4, 4, 1, 1);
        world_say(world, WC_API_EV_ACCEPTED, 1, 4, 1);
        world_peer(world, WC_API_EV_DISCONNECTED, 1, 1);
        CHECK_STR(world->did, "lost w1 s1; ended q4 unavailable k4");
    }
}

/* Rejections, moves and losses before acceptance cost nothing: a rolling restart fails no query. */
TEST(unstarted_attempts_cost_nothing)
{
    struct wc_api_limits limits = { .workers_max = 4, .items_max = 4, .attempts_max = 1 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);

    world_up(world, 1);
    world_begin(world, 1, 1, 1, 1);
    for (uint64_t session = 10; session < 20; session++) {
        world_peer(world, WC_API_EV_CONNECTED, 1, session);
        world_status(world, 1, session, true, false);
    }
    CHECK_STR(world_item_text(world, 1), "assigned w1 #11");
}

/* With one worker only, a failed item goes back to it after a delay, not in a tight loop. */
TEST(a_failed_item_waits_before_it_returns_to_the_same_worker)
{
    struct wc_api_limits limits = { .workers_max = 4, .items_max = 4, .retry_delay_ms = 200 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);

    world_up(world, 1);
    world_begin(world, 1, 1, 1, 1);
    world_failed(world, 1, 1, 1, QF_ENOSPC, true);
    CHECK_STR(world->did, "");
    CHECK_EQ(stats(world)->items_pending, 1);
    CHECK_EQ(wc_api_deadline(world->wc), 200);
    world_tick(world, 200);
    CHECK_STR(world->did, "assign k1#2 w1 s1");
    world_failed(world, 1, 1, 2, QF_ENOSPC, true);
    CHECK_STR(world->did, "");
    world_up(world, 2); /* somebody else: at once */
    CHECK_STR(world_item_text(world, 1), "assigned w2 #3");
    world_failed(world, 2, 1, 3, QF_ENOSPC, true);
    world_up(world, 3); /* woken, and another is there */
    CHECK_STR(world_item_text(world, 1), "assigned w3 #4");
}

/* A new worker wakes a held item that has failed there too: it goes on waiting. */
TEST(a_held_item_is_not_given_to_a_worker_it_has_failed_on)
{
    struct wc_api_limits limits = { .workers_max = 4, .items_max = 4, .retry_delay_ms = 200 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);

    world_up(world, 1);
    world_up(world, 2);
    world_begin(world, 1, 1, 1, 1);
    world_failed(world, 1, 1, 1, QF_EIO, true);
    world_failed(world, 2, 1, 2, QF_EIO, true);
    world_status(world, 1, 1, false, false);
    world_status(world, 1, 1, true, false);
    CHECK_EQ(stats(world)->items_pending, 1);
    world_tick(world, 200);
    CHECK_STR(world_item_text(world, 1), "assigned w1 #3");
}

/* Bad data or an exceeded limit fails the query at once and cancels what else it runs. */
TEST(a_deterministic_failure_fails_the_query)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_begin(world, 1, 1, 3, 1);
    world_finish(world, 1, 1, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 2, 1);
    world_failed(world, 1, 2, 1, QF_ELIMIT, false);
    CHECK_STR(world->did, "cancel k3#1 w1 s1; ended q1 limit k2");
    CHECK_EQ(stats(world)->items_fetched, 0);
    world_begin(world, 2, 4, 1, 1);
    world_failed(world, 1, 4, 1, QF_OK, false); /* no reason given: still not ok */
    CHECK_STR(world->did, "ended q2 internal k4");
}

/* Ready on a lost worker but not fetched: run again. */
TEST(ready_on_a_lost_worker_runs_again)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_up(world, 2);
    world_begin(world, 1, 1, 1, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_say(world, WC_API_EV_READY, 1, 1, 1);
    world_peer(world, WC_API_EV_DISCONNECTED, 1, 1);
    CHECK_STR(world->did, "lost w1 s1; assign k1#2 w2 s2");
    world_fetch_failed(world, 1, 1, WC_FETCH_IO); /* as it had to */
    CHECK_STR(world_item_text(world, 1), "assigned w2 #2");
    world_fetched(world, 1, 1, 1); /* too late for that one */
    CHECK_EQ(stats(world)->stale, 1);
    world_finish(world, 2, 1, 2);
    CHECK_STR(world->did, "ack k1#2 w2 s2; committed k1#2; ended q1 ok");
}

/* The download of the older attempt comes through after all, in every state of the newer one. */
TEST(a_late_download_commits_in_every_state_of_the_newer_attempt)
{
    static const char *const did[] = {
        [WC_ITEM_PENDING] = "committed k1#1; ended q1 ok",
        [WC_ITEM_ASSIGNED] = "cancel k1#2 w2 s2; committed k1#1; ended q1 ok",
        [WC_ITEM_ACCEPTED] = "cancel k1#2 w2 s2; committed k1#1; ended q1 ok",
        [WC_ITEM_READY] = "cancel k1#2 w2 s2; committed k1#1; ended q1 ok",
    };

    for (int state = WC_ITEM_PENDING; state <= WC_ITEM_READY; state++) {
        QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

        world_up(world, 1);
        world_begin(world, 1, 1, 1, 1);
        world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
        world_say(world, WC_API_EV_READY, 1, 1, 1);
        world_peer(world, WC_API_EV_DISCONNECTED, 1, 1);
        if (state >= WC_ITEM_ASSIGNED)
            world_up(world, 2);
        if (state >= WC_ITEM_ACCEPTED)
            world_say(world, WC_API_EV_ACCEPTED, 2, 1, 2);
        if (state >= WC_ITEM_READY)
            world_say(world, WC_API_EV_READY, 2, 1, 2);
        CHECK_EQ(world_item(world, 1), state);
        world_fetched(world, 1, 1, 1);
        CHECK_STR(world->did, did[state]);
        CHECK_EQ(stats(world)->late, 1);
    }
}

/* A late download with other bytes than announced is dropped, not believed. */
TEST(a_late_download_with_wrong_bytes_is_dropped)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_up(world, 1);
    world_begin(world, 1, 1, 1, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_say(world, WC_API_EV_READY, 1, 1, 1);
    world_peer(world, WC_API_EV_DISCONNECTED, 1, 1);
    world_fetched(world, 1, 1, 999);
    CHECK_STR(world_item_text(world, 1), "pending #1");
    world_fetched(world, 1, 1, 1); /* it was the only one */
    CHECK_STR(world_item_text(world, 1), "pending #1");
}

/* Completions after the first are acknowledged and dropped; other bytes are counted apart. */
TEST(duplicate_completions_are_acknowledged_and_dropped)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);
    struct wc_api_event other = { .type = WC_API_EV_FETCHED, .work = { 1 }, .attempt = 1 };

    world_up(world, 1);
    world_begin(world, 1, 1, 2, 1);
    world_finish(world, 1, 1, 1);
    world_say(world, WC_API_EV_READY, 1, 1, 1);
    CHECK_STR(world->did, "ack k1#1 w1 s1");
    CHECK_EQ(stats(world)->duplicates, 1);
    world_fetched(world, 1, 1, 1);
    CHECK_STR(world->did, "");
    CHECK_EQ(stats(world)->duplicates, 2);
    world_fetched(world, 1, 1, 999);
    CHECK_EQ(stats(world)->conflicts, 1);
    other.checksum = (struct wc_checksum){ .high = 5, .low = 1 };
    world_step(world, &other);
    CHECK_EQ(stats(world)->conflicts, 2);
    world_fetch_failed(world, 1, 1, WC_FETCH_IO);
    CHECK_EQ(stats(world)->committed, 1);
    world_say(world, WC_API_EV_READY, 1, 2, 7); /* of an attempt that never was */
    CHECK_STR(world->did, "ack k2#7 w1 s1");
    world_fetched(world, 2, 1, 2); /* not ready yet */
    CHECK_STR(world_item_text(world, 2), "assigned w1 #1");
}

/* Canceling tells exactly the workers that have something, in every state of the items. */
TEST(a_query_can_be_canceled_in_every_state_of_its_items)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_begin(world, 9, 9, 1, 1); /* pending */
    world_cancel(world, 9);
    CHECK_STR(world->did, "ended q9 canceled");
    world_up(world, 1);
    world_begin(world, 1, 1, 4, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 2, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 3, 1);
    world_say(world, WC_API_EV_READY, 1, 3, 1);
    world_finish(world, 1, 4, 1);
    world_cancel(world, 1); /* assigned, accepted, ready, fetched */
    CHECK_STR(world->did, "cancel k1#1 w1 s1; cancel k2#1 w1 s1; cancel k3#1 w1 s1; "
                          "ended q1 canceled");
    world_cancel(world, 1);
    CHECK_EQ(stats(world)->stale, 1);
    CHECK_EQ(stats(world)->queries_canceled, 2);
}

/* The daemon may end a query for a reason of its own. */
TEST(a_cancel_carries_its_reason)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);
    struct wc_api_event event = { .type = WC_API_EV_QUERY_CANCEL, .query = { 1 } };

    world_begin(world, 1, 1, 1, 1);
    event.rc = QF_ELIMIT;
    world_step(world, &event);
    CHECK_STR(world->did, "ended q1 limit");
    CHECK(strstr(world->trace, "cancel q1 limit"));
}

/* A query whose time is up is canceled for that reason, and counted so. */
TEST(a_query_can_be_canceled_because_its_time_is_up)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);
    struct wc_api_event event = { .type = WC_API_EV_QUERY_CANCEL, .query = { 1 } };

    world_up(world, 1);
    world_begin(world, 1, 1, 1, 1);
    event.rc = QF_ETIMEOUT;
    world_step(world, &event);
    CHECK_STR(world->did, "cancel k1#1 w1 s1; ended q1 timeout");
    CHECK_EQ(stats(world)->queries_timed_out, 1);
}

/* Full tables refuse a query as a whole: no item of it stays behind. */
TEST(full_tables_refuse_a_query_and_change_nothing)
{
    struct wc_api_limits limits = { .workers_max = 1, .queries_max = 2, .items_max = 4 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);
    struct wc_api_item_spec same[] = { { { 7 }, { 1 }, 1 },
                                       { { 8 }, { 1 }, 1 },
                                       { { 7 }, { 1 }, 1 } };
    struct wc_api_event event = { .type = WC_API_EV_QUERY_BEGIN, .query = { 5 } };

    world_begin(world, 1, 1, 5, 1);
    CHECK_EQ(world->rc, QF_ELIMIT);
    event.begin.items = same;
    event.begin.count = 3;
    world_step(world, &event);
    CHECK_EQ(world->rc, QF_EEXIST);
    CHECK_EQ(world->wc->item_pool.count, 4);
    CHECK_EQ(world->wc->query_pool.count, 2);
    world_begin(world, 1, 1, 1, 1);
    world_begin(world, 1, 2, 1, 1);
    CHECK_EQ(world->rc, QF_EEXIST);
    world_begin(world, 2, 2, 1, 1);
    world_begin(world, 3, 3, 1, 1);
    CHECK_EQ(world->rc, QF_ELIMIT);
    CHECK_EQ(stats(world)->items_pending, 2);
    CHECK(strstr(world->trace, "!limit"));
}

/* A query of nothing is complete. */
TEST(a_query_without_items_ends_ok_at_once)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_begin(world, 1, 1, 0, 1);
    CHECK_STR(world->did, "ended q1 ok");
    CHECK_EQ(stats(world)->queries, 0);
}

/* What the scaling endpoint shows. */
TEST(queue_numbers_follow_the_items)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);
    struct wc_api_queue queue = wc_api_queue(world->wc, 5);
    struct wc_api_query_view view;

    CHECK_EQ(queue.inflight, 0);
    CHECK_EQ(queue.oldest_age_ms, 0);
    world_up(world, 1);
    world->now = 100;
    world_begin(world, 1, 1, 3, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    world_say(world, WC_API_EV_ACCEPTED, 1, 2, 1);
    world_say(world, WC_API_EV_READY, 1, 2, 1);
    queue = wc_api_queue(world->wc, 350);
    CHECK_EQ(queue.queued, 1);
    CHECK_EQ(queue.running, 2);
    CHECK_EQ(queue.inflight, 3);
    CHECK_EQ(queue.oldest_age_ms, 250);
    CHECK(wc_api_query(world->wc, (struct wc_query_id){ 1 }, &view));
    CHECK_EQ(view.items, 3);
    CHECK_EQ(view.begun_at, 100);
    CHECK(!wc_api_query(world->wc, (struct wc_query_id){ 2 }, &view));
    world_cancel(world, 1);
    CHECK_EQ(wc_api_queue(world->wc, 400).oldest_age_ms, 0);
}

/* A clock that jumps back is the latest time seen. */
TEST(time_never_runs_backwards)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_tick(world, 1000);
    world->now = 10;
    world_begin(world, 1, 1, 1, 1);
    CHECK(strncmp(world->trace, "[1000]", 6) == 0);
}

/* A trace that would be too long says how much it leaves out. */
TEST(long_traces_are_cut_and_say_so)
{
    struct wc_api_limits limits = { .workers_max = 4, .items_max = 400, .queries_max = 20 };
    QF_CLEANUP(world_freep) struct world *world = world_new(&limits);

    for (uint64_t q = 1; q <= 10; q++)
        world_begin(world, q, q * 100, 30, 1);
    world_up(world, 1);
    CHECK_EQ(world->effects.count, 300);
    CHECK_MSG(strstr(world->trace, " ..(+"), "%s", world->trace);
    CHECK(strlen(world->trace) < WC_TRACE_MAX + 40);
    CHECK(!core_check_api(world->wc));
}

/* Without a trace function nothing is formatted. */
TEST(tracing_can_be_turned_off)
{
    QF_CLEANUP(world_freep) struct world *world = world_new(NULL);

    world_tick(world, 1);
    wc_api_trace(world->wc, NULL, NULL);
    world_tick(world, 2);
    CHECK_STR(world->trace, "[1] tick");
}

/* Tables that do not fit into memory are refused at creation. */
TEST(creation_fails_cleanly_without_memory)
{
    struct wc_api_limits limits = { .items_max = UINT32_MAX - 100000,
                                    .queries_max = 1,
                                    .workers_max = 1 };
    struct wc_api *wc = wc_api_new(&limits);

    CHECK(!wc);
    CHECK(!wc_api_free(NULL));
}

/* Zero limits are the documented defaults. */
TEST(zero_limits_mean_the_defaults)
{
    struct wc_api_limits limits = { 0 };
    struct wc_api *wc = wc_api_new(&limits);

    CHECK_EQ(wc->limits.workers_max, 1024);
    CHECK_EQ(wc->limits.items_max, 65536);
    CHECK_EQ(wc->limits.heartbeat_ms, 1000);
    CHECK_EQ(wc->limits.heartbeats_max, 3);
    wc_api_free(wc);
    limits = wc_api_limits_default();
    limits.dial_max_ms = QF_TIME_NEVER;
    limits.dial_min_ms = QF_TIME_NEVER;
    limits.items_max = limits.workers_max = limits.queries_max = 1;
    wc = wc_api_new(&limits);
    CHECK_EQ(wc->limits.dial_min_ms, 3600000);
    wc_api_free(wc);
}

/* Every enum has words, and an unknown value does not crash a log line. */
TEST(names_cover_their_enums)
{
    CHECK_STR(wc_item_state_name(WC_ITEM_FETCHED), "fetched");
    CHECK_STR(wc_peer_state_name(WC_PEER_GONE), "gone");
    CHECK_STR(wc_run_state_name(WC_RUN_ACKED), "acked");
    CHECK_STR(wc_reject_name(WC_REJECT_FULL), "full");
    CHECK_STR(wc_fetch_error_name(WC_FETCH_EXPIRED), "expired");
    CHECK_STR(wc_item_state_name(WC_ITEM__COUNT), "?");
    CHECK_STR(wc_hedge_state_name(WC_HEDGE__COUNT), "?");
    CHECK_STR(wc_hedge_state_name(WC_HEDGE_NONE), "none");
    CHECK_STR(wc_peer_state_name(WC_PEER__COUNT), "?");
    CHECK_STR(wc_run_state_name(WC_RUN__COUNT), "?");
    CHECK_STR(wc_reject_name(WC_REJECT__COUNT), "?");
    CHECK_STR(wc_fetch_error_name(WC_FETCH__COUNT), "?");
    CHECK_STR(wc_api_event_name(WC_API_EV__COUNT), "?");
    CHECK_STR(wc_api_effect_name(WC_API_DO__COUNT), "?");
    CHECK_STR(wc_worker_event_name(WC_WORKER_EV__COUNT), "?");
    CHECK_STR(wc_worker_effect_name(WC_WORKER_DO__COUNT), "?");
}
