/* test_quarantine.c - segments that cost workers, in the coordinator. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"
#include "tests/unit/queryapi/dispatch/desk.h"

#define DESK() QF_CLEANUP(desk_freep) struct desk *desk = desk_new(4, 3, 4)

/* A query whose only work is on its way to a worker. */
static struct qh_stream *ask(struct desk *desk)
{
    struct qh_stream *client = desk_ask(desk, "t");

    while (desk->tasks.count) /* an earlier one may have to be freed first */
        desk_turn(desk);
    return client;
}

static const char *list(struct desk *desk)
{
    struct qh_stream *reply = qh_stream_new(1 << 16);
    const char *text;

    qa_coord_inspect(desk->coord, QA_INSPECT_QUARANTINE, QF_STR(""), 10, reply);
    desk_show(desk);
    text = desk_answer(reply);
    (void)qh_stream_drop(reply);
    return text;
}

static const char *lift(struct desk *desk, const char *segment)
{
    struct qh_stream *reply = qh_stream_new(1 << 16);
    const char *text;

    qa_coord_lift(desk->coord, qf_str_from(segment), reply);
    desk_pump(desk);
    text = desk_answer(reply);
    (void)qh_stream_drop(reply);
    return text;
}

static void workers_up(struct desk *desk, uint64_t count)
{
    for (uint64_t i = 1; i <= count; i++)
        desk_worker_up(desk, i);
}

/* The worker that @work was sent to since the log was last read begins it; its session. */
static uint64_t accepted(struct desk *desk, const char *log, uint64_t work, uint32_t attempt)
{
    char sent[40];

    for (uint64_t session = 1; session <= 3; session++) {
        (void)snprintf(sent, sizeof(sent), "s%d assign k%d#%d", (int)session, (int)work,
                       (int)attempt);
        if (strstr(log, sent)) {
            desk_accept(desk, session, work, attempt);
            return session;
        }
    }
    CHECK_MSG(false, "work %d is not in: %s", (int)work, log);
    return 0;
}

static uint64_t accept_last(struct desk *desk, uint64_t work, uint32_t attempt)
{
    return accepted(desk, desk_log(desk), work, attempt);
}

static void die(struct desk *desk, uint64_t session)
{
    co_closed(desk->coord, session, "broke", true);
}

/* The third worker does not get it, nor another query. */
TEST(a_segment_that_cost_two_workers_is_not_read)
{
    DESK();
    struct qh_stream *client, *other;

    workers_up(desk, 3);
    client = ask(desk);
    die(desk, accept_last(desk, 1, 1));
    CHECK(strstr(list(desk), "\"segment\":\"a.parquet\",\"state\":\"suspect\",\"deaths\":1,"));
    die(desk, accept_last(desk, 1, 2));
    CHECK_STR(desk_log(desk), "");
    CHECK(strstr(desk_answer(client), "503 {\"status\":\"error\",\"errorType\":\"unavailable\","
                                      "\"error\":\"segment a.parquet cost 2 workers and is not"));
    CHECK(strstr(list(desk), "\"state\":\"quarantined\",\"deaths\":2,\"seconds_left\":"));
    other = ask(desk);
    CHECK_STR(desk_log(desk), "plan api-2");
    CHECK(strstr(desk_answer(other), "segment a.parquet cost 2 workers"));
    (void)qh_stream_drop(client);
    (void)qh_stream_drop(other);
}

/* A worker that dies of several works is one death; at the second, every query that has the segment
 * ends, also the one that did not run it then. */
TEST(others_that_wait_for_it_are_stopped)
{
    DESK();
    struct qh_stream *clients[3];
    uint64_t session = 0;
    const char *log;

    workers_up(desk, 3);
    (void)desk_log(desk);
    for (uint64_t i = 0; i < 3; i++) {
        clients[i] = ask(desk);
        session = accept_last(desk, i + 1, 1);
    }
    die(desk, session);
    CHECK(strstr(list(desk), "\"state\":\"suspect\",\"deaths\":1,"));
    log = desk_log(desk);
    (void)accepted(desk, log, 1, 2);
    session = accepted(desk, log, 2, 2);
    die(desk, session);
    for (size_t i = 0; i < 3; i++) {
        CHECK(strstr(desk_answer(clients[i]), "segment a.parquet cost 2 workers"));
        (void)qh_stream_drop(clients[i]);
    }
}

TEST(a_suspect_is_cleared_by_a_good_end_and_has_one_chance_without)
{
    DESK();
    struct qh_stream *client, *other;
    uint64_t session;

    workers_up(desk, 3);
    client = ask(desk);
    die(desk, accept_last(desk, 1, 1));
    session = accept_last(desk, 1, 2);
    desk_ready(desk, session, 1, 2, 10);
    CHECK_STR(list(desk), "200 {\"status\":\"success\",\"data\":[]}");
    (void)qh_stream_drop(client);
    (void)desk_log(desk);
    client = ask(desk);
    die(desk, accept_last(desk, 2, 1));
    other = ask(desk); /* of a suspect: no second worker is risked for it */
    die(desk, accept_last(desk, 3, 1));
    CHECK(strstr(desk_answer(other), "segment a.parquet cost 2 workers"));
    (void)qh_stream_drop(client);
    (void)qh_stream_drop(other);
}

TEST(quarantine_is_lifted_by_hand_or_by_time)
{
    DESK();
    struct qh_stream *client;

    workers_up(desk, 3);
    client = ask(desk);
    die(desk, accept_last(desk, 1, 1));
    die(desk, accept_last(desk, 1, 2));
    (void)qh_stream_drop(client);
    CHECK(strstr(list(desk), "quarantined"));
    CHECK_STR(
        lift(desk, "b.parquet"),
        "404 {\"status\":\"error\",\"errorType\":\"not_found\",\"error\":\"no such segment is in "
        "quarantine\"}");
    desk_time_passes(desk, 60001);
    CHECK_STR(list(desk), "200 {\"status\":\"success\",\"data\":[]}");
    CHECK_STR(lift(desk, "a.parquet"), "200 {\"status\":\"success\",\"data\":\"lifted\"}");
    CHECK(strstr(lift(desk, "a.parquet"), "404"));
}

/* Up to thousands of rows: copied here, made elsewhere, at most as many as were asked for. */
TEST(the_list_is_made_on_the_pool)
{
    DESK();
    struct qh_stream *client, *reply = qh_stream_new(1 << 16), *none = qh_stream_new(1 << 16);

    workers_up(desk, 3);
    client = ask(desk);
    die(desk, accept_last(desk, 1, 1));
    qa_coord_inspect(desk->coord, QA_INSPECT_QUARANTINE, QF_STR(""), 10, reply);
    qa_coord_inspect(desk->coord, QA_INSPECT_QUARANTINE, QF_STR(""), 0, none);
    desk_pump(desk);
    CHECK_STR(desk_answer(reply), "open");
    while (desk->tasks.count)
        desk_turn(desk);
    CHECK(strstr(desk_answer(reply), "\"segment\":\"a.parquet\""));
    CHECK_STR(desk_answer(none), "200 {\"status\":\"success\",\"data\":[],\"infos\":[\"1 more are "
                                 "not shown: raise limit\"]}");
    (void)qh_stream_drop(client);
    (void)qh_stream_drop(reply);
    (void)qh_stream_drop(none);
}

/* Streams that were ended, here or there, cost nobody a segment. */
TEST(a_stream_that_was_ended_is_no_death)
{
    DESK();
    struct qh_stream *client;

    workers_up(desk, 2);
    client = ask(desk);
    co_closed(desk->coord, accept_last(desk, 1, 1), "the worker closed the stream", false);
    CHECK_STR(list(desk), "200 {\"status\":\"success\",\"data\":[]}");
    (void)qh_stream_drop(client);
}
