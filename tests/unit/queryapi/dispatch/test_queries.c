/* test_queries.c - queries in the coordinator: what is said becomes events, effects become calls. */
#include <string.h>

#include "tests/lib/test.h"
#include "tests/unit/queryapi/dispatch/desk.h"

#define DESK(queries, active, queue)                                                               \
    QF_CLEANUP(desk_freep) struct desk *desk = desk_new(queries, active, queue)

/* Plan, work, artifact, answer: each call of the way once, in order, and nothing left. */
TEST(a_query_goes_from_plan_to_answer)
{
    DESK(4, 2, 2);
    struct qh_stream *client;

    desk_worker_up(desk, 1);
    CHECK_STR(desk_log(desk), "dial s1 a:1");
    client = desk_ask(desk, "t");
    CHECK_STR(desk_answer(client), "open");
    desk_turn(desk);
    CHECK_STR(desk_log(desk), "plan api-1; s1 assign k1#1");
    desk_accept(desk, 1, 1, 1);
    desk_ready(desk, 1, 1, 1, 10);
    CHECK_STR(desk_log(desk), "fetch k1#1 http://w/a");
    desk_fetched(desk, true);
    CHECK_STR(desk_log(desk), "s1 ack k1#1 xxh3:00000000000000000000000000000007");
    CHECK_EQ(atomic_load(&desk->coord->spool_bytes), 10);
    desk_turn(desk);
    CHECK_STR(desk_log(desk), "answer api-1");
    CHECK_STR(desk_answer(client), "200 done");
    CHECK_EQ(qa_coord_query_count(desk->coord), 0);
    CHECK_EQ(atomic_load(&desk->coord->spool_bytes), 0);
    desk_turn(desk); /* its files are removed on the pool */
    CHECK_STR(desk_log(desk), "drop artifact");
    (void)qh_stream_drop(client);
}

/* A query with nothing to read is answered without a worker. */
TEST(a_query_without_items_needs_no_worker)
{
    DESK(4, 2, 2);
    struct qh_stream *client = desk_ask(desk, "t");

    desk->items = 0;
    desk_turn(desk);
    desk_turn(desk);
    CHECK_STR(desk_log(desk), "plan api-1; answer api-1");
    CHECK_STR(desk_answer(client), "200 done");
    (void)qh_stream_drop(client);
}

/* Each bound has its words, its status, and a header that says when to come again. */
TEST(refusals_say_which_bound_was_reached)
{
    DESK(3, 1, 1);
    struct qh_stream *clients[6];

    clients[0] = desk_ask(desk, "t");
    clients[1] = desk_ask(desk, "t");
    clients[2] = desk_ask(desk, "t");
    CHECK(strstr(desk_answer(clients[2]), "too many queries of this tenant are waiting"));
    CHECK(strncmp(desk_answer(clients[2]), "429", 3) == 0);
    clients[3] = desk_ask(desk, "u");
    clients[4] = desk_ask(desk, "v");
    CHECK(strstr(desk_answer(clients[4]), "too many queries at once"));
    CHECK(strncmp(desk_answer(clients[4]), "503", 3) == 0);
    qa_coord_drain(desk->coord);
    desk_pump(desk);
    clients[5] = desk_ask(desk, "w");
    CHECK(strstr(desk_answer(clients[5]), "the server is shutting down"));
    CHECK_EQ(qa_coord_query_count(desk->coord), 3);
    CHECK_STR(desk_answer(clients[3]), "open");
    for (int i = 0; i < 6; i++)
        (void)qh_stream_drop(clients[i]);
}

/* No thread for a turn: the query ends, and the next one in line has its place. */
TEST(a_full_pool_ends_the_query)
{
    DESK(4, 1, 4);
    struct qh_stream *client;

    desk->pool_full = true;
    client = desk_ask(desk, "t");
    CHECK(strstr(desk_answer(client), "too many queries at once"));
    CHECK(strncmp(desk_answer(client), "429", 3) == 0);
    CHECK_EQ(qa_coord_query_count(desk->coord), 0);
    (void)qh_stream_drop(client);
}

/* A plan that fails has told its client; the coordinator only forgets it. */
TEST(a_failed_plan_is_the_end)
{
    DESK(4, 1, 4);
    struct qh_stream *client = desk_ask(desk, "t");

    desk->plan_rc = QF_EPARSE;
    desk_turn(desk);
    CHECK(strstr(desk_answer(client), "no plan"));
    CHECK_EQ(qa_coord_query_count(desk->coord), 0);
    (void)qh_stream_drop(client);
}

/* The client reads slowly: another turn whenever there is room, also if it came during the turn. */
TEST(room_in_the_stream_means_another_turn)
{
    DESK(4, 1, 4);
    struct qh_stream *client = desk_ask(desk, "t");
    struct qa_query *query = desk->coord->slots[0];
    struct msg room = { .kind = MSG_STREAM, .id = query->id, .number = QH_STREAM_ROOM };

    desk->items = 0;
    desk->pauses = 2;
    desk_turn(desk);
    desk_turn(desk);
    CHECK_EQ(desk->tasks.count, 0);
    co_post(desk->coord, room);
    desk_pump(desk);
    co_post(desk->coord, room); /* before the turn says that it paused */
    desk_pump(desk);
    desk_turn(desk);
    CHECK_STR(desk_log(desk), "plan api-1; answer api-1; answer api-1");
    desk_turn(desk);
    CHECK_STR(desk_answer(client), "200 done");
    (void)qh_stream_drop(client);
}

/* A client that hangs up: its work is taken back from the worker. */
TEST(a_client_that_goes_away_cancels_its_query)
{
    DESK(4, 1, 4);
    struct qh_stream *client;

    desk_worker_up(desk, 1);
    client = desk_ask(desk, "t");
    desk_turn(desk);
    (void)desk_log(desk);
    qh_stream_close(client);
    desk_pump(desk);
    CHECK_STR(desk_log(desk), "s1 cancel k1#1");
    CHECK_EQ(qa_coord_query_count(desk->coord), 0);
    (void)qh_stream_drop(client);
}

/* Gone before it was looked at, or during its turn: the turn sees it and nothing follows. */
TEST(a_canceled_turn_is_the_last)
{
    DESK(4, 1, 4);
    struct qh_stream *gone = qh_stream_new(100), *client;
    struct qa_ask ask = { .kind = QA_QUERY_INSTANT, .tenant = QF_STR("t") };
    struct qa_query *query = qa_query_new(&desk->env, &ask, gone);

    qh_stream_close(gone);
    qa_coord_submit(desk->coord, query);
    desk_pump(desk);
    desk_turn(desk);
    CHECK_STR(desk_log(desk), "canceled api-1");
    client = desk_ask(desk, "t");
    qa_coord_cut(desk->coord);
    desk_pump(desk);
    while (desk->tasks.count)
        desk_turn(desk);
    CHECK(strstr(desk_answer(client), "the server is shutting down"));
    (void)qh_stream_drop(gone);
    (void)qh_stream_drop(client);
}

/* DELETE: of one's own tenant only. */
TEST(queries_are_canceled_by_name)
{
    DESK(4, 1, 4);
    struct qh_stream *client = desk_ask(desk, "t"), *waiting = desk_ask(desk, "t");
    struct qh_stream *replies[3];
    static const struct {
        const char *name, *tenant, *want;
    } asks[] = { { "api-2", "u", "404" }, { "api-9", "", "404" }, { "api-2", "t", "200" } };

    for (int i = 0; i < 3; i++) {
        replies[i] = qh_stream_new(1000);
        qa_coord_cancel(desk->coord, qf_str_from(asks[i].name), qf_str_from(asks[i].tenant),
                        replies[i]);
        desk_pump(desk);
        CHECK_MSG(strncmp(desk_answer(replies[i]), asks[i].want, 3) == 0, "%d: %s", i,
                  desk_answer(replies[i]));
        (void)qh_stream_drop(replies[i]);
    }
    CHECK(strstr(desk_answer(waiting), "query was canceled"));
    CHECK_STR(desk_answer(client), "open");
    (void)qh_stream_drop(client);
    (void)qh_stream_drop(waiting);
}

/* The deadline of a query counts in the queue and on the workers alike. */
TEST(a_deadline_ends_a_query_wherever_it_is)
{
    DESK(4, 1, 4);
    struct qh_stream *working, *queued;

    desk_worker_up(desk, 1);
    working = desk_ask(desk, "t");
    queued = desk_ask(desk, "t");
    desk_turn(desk);
    (void)desk_log(desk);
    desk_time_passes(desk, 60001);
    CHECK(strstr(desk_answer(queued), "query timed out"));
    CHECK(strstr(desk_answer(working), "query timed out"));
    CHECK_EQ(qa_coord_query_count(desk->coord), 0);
    (void)qh_stream_drop(working);
    (void)qh_stream_drop(queued);
}

/* Segments that vanish mean another plan, three times at the most; then the client hears what it is,
 * and the log has the worker's words. */
TEST(vanished_segments_are_planned_again)
{
    DESK(4, 1, 4);
    struct qh_stream *client;

    desk_worker_up(desk, 1);
    client = desk_ask(desk, "t");
    for (uint64_t work = 1; work <= 4; work++) {
        desk_turn(desk);
        CHECK(strstr(desk_log(desk), work == 1 ? "plan api-1; s1 assign" : "plan api-1 again; s1"));
        desk_fail(desk, 1, work, 1, "not_found", false);
    }
    CHECK(strstr(desk_answer(client),
                 "the store cannot be read (query api-1, work 4; the server's log says more)"));
    CHECK(!strstr(desk_answer(client), "the disk says no"));
    CHECK_EQ(qa_coord_query_count(desk->coord), 0);
    (void)qh_stream_drop(client);
}

/* What is going on, in the words that were there before. */
TEST(inspection_shows_where_queries_are)
{
    DESK(4, 1, 4);
    struct qh_stream *client = desk_ask(desk, "t"), *waiting = desk_ask(desk, "u"), *reply;

    reply = qh_stream_new(1 << 16);
    qa_coord_inspect(desk->coord, QA_INSPECT_QUERIES, QF_STR(""), 9, reply);
    desk_show(desk);
    CHECK(strstr(desk_answer(reply), "\"state\":\"planning\""));
    (void)qh_stream_drop(reply);
    reply = qh_stream_new(1 << 16);
    qa_coord_inspect(desk->coord, QA_INSPECT_QUERIES, QF_STR("u"), 9, reply);
    desk_show(desk);
    CHECK(strstr(desk_answer(reply), "\"state\":\"queued\""));
    (void)qh_stream_drop(reply);
    reply = qh_stream_new(1 << 16);
    qa_coord_inspect(desk->coord, QA_INSPECT_SCALING, QF_STR(""), 0, reply);
    desk_pump(desk);
    CHECK(strstr(desk_answer(reply), "{\"work\":{\"queued\":1,\"running\":0,\"inflight\":1,"));
    (void)qh_stream_drop(reply);
    co_update_metrics(desk->coord);
    (void)qh_stream_drop(client);
    (void)qh_stream_drop(waiting);
}

/* A page has a bound, is made on the pool, and there are no more of them at once than a few. */
TEST(inspection_is_bounded_and_made_elsewhere)
{
    DESK(8, 1, 8);
    struct qh_stream *clients[5], *replies[9];
    const char *shown;

    for (int i = 0; i < 5; i++)
        clients[i] = desk_ask(desk, "t");
    for (int i = 0; i < 9; i++) {
        replies[i] = qh_stream_new(1 << 16);
        qa_coord_inspect(desk->coord, QA_INSPECT_QUERIES, QF_STR("t"), 2, replies[i]);
        desk_pump(desk);
    }
    CHECK_STR(desk_answer(replies[0]), "open"); /* nothing was made of it yet */
    CHECK(strncmp(desk_answer(replies[8]), "429", 3) == 0);
    CHECK_EQ(desk->tasks.count, 1 + 8);
    desk_turn(desk); /* the plan of the first query */
    desk_turn(desk);
    shown = desk_answer(replies[0]);
    CHECK_MSG(strstr(shown, "api-2") && !strstr(shown, "api-3"), "%s", shown);
    CHECK_MSG(strstr(shown, "\"infos\":[\"3 more are not shown: raise limit\"]"), "%s", shown);
    while (desk->tasks.count)
        desk_turn(desk);
    CHECK_EQ(atomic_load(&desk->coord->pages), 0);
    for (int i = 0; i < 5; i++)
        (void)qh_stream_drop(clients[i]);
    for (int i = 0; i < 9; i++)
        (void)qh_stream_drop(replies[i]);
}

/* However many are asked for. */
TEST(no_page_is_longer_than_its_bound)
{
    DESK(QA_INSPECT_MAX + 8, 1, QA_INSPECT_MAX + 8);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf page = QF_STRBUF_INIT;
    struct qh_stream *clients[QA_INSPECT_MAX + 3], *reply = qh_stream_new(8 << 20);
    char piece[8000];
    ssize_t len;

    for (size_t i = 0; i < QF_COUNT_OF(clients); i++)
        clients[i] = desk_ask(desk, "t");
    qa_coord_inspect(desk->coord, QA_INSPECT_QUERIES, QF_STR("t"), 100000, reply);
    desk_pump(desk);
    desk_turn(desk); /* the plan of the first query */
    desk_turn(desk);
    CHECK(strncmp(desk_answer(reply), "200", 3) == 0);
    while ((len = qh_stream_take(reply, piece, sizeof(piece))) > 0)
        qf_strbuf_add(&page, piece, (size_t)len);
    CHECK(strstr(qf_strbuf_cstr(&page), "\"infos\":[\"3 more are not shown: raise limit\"]"));
    for (size_t i = 0; i < QF_COUNT_OF(clients); i++)
        (void)qh_stream_drop(clients[i]);
    (void)qh_stream_drop(reply);
}
