/* test_watch.c - queries that are over, and clients that watch the lists. */
#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"
#include "tests/unit/queryapi/dispatch/desk.h"

#define DESK(queries_max, active_max, tenant_queue_max)                                            \
    QF_CLEANUP(desk_freep)                                                                         \
    struct desk *desk = desk_new((queries_max), (active_max), (tenant_queue_max))

static struct qh_stream *watch(struct desk *desk, enum qa_inspect what, const char *tenant)
{
    struct qh_stream *stream = qh_stream_new(1 << 16);

    qa_coord_watch(desk->coord, what, qf_str_from(tenant), 100, stream);
    desk_pump(desk);
    return stream;
}

/* What came since the last look. */
static const char *told(struct desk *desk, struct qh_stream *stream)
{
    desk_time_passes(desk, 500);
    while (desk->tasks.count)
        desk_turn(desk);
    return desk_answer(stream);
}

/* A query that fails, as they do without workers. */
static void one_query(struct desk *desk, const char *tenant)
{
    struct qh_stream *client;

    desk->plan_rc = QF_EINVAL;
    client = desk_ask(desk, tenant);
    desk_turn(desk);
    while (desk->tasks.count)
        desk_turn(desk);
    (void)qh_stream_drop(client);
}

static const char *finished(struct desk *desk, const char *tenant, size_t limit)
{
    struct qh_stream *reply = qh_stream_new(1 << 20);
    const char *shown;

    qa_coord_inspect(desk->coord, QA_INSPECT_FINISHED, qf_str_from(tenant), limit, reply);
    desk_show(desk);
    shown = desk_answer(reply);
    (void)qh_stream_drop(reply);
    return shown;
}

TEST(what_is_over_is_remembered_the_newest_first)
{
    DESK(4, 1, 4);
    const char *shown;

    CHECK_STR(finished(desk, "", 9), "200 {\"status\":\"success\",\"data\":[]}");
    one_query(desk, "t");
    one_query(desk, "u");
    shown = finished(desk, "", 9);
    CHECK_MSG(strstr(shown, "api-2") && strstr(shown, "api-1"), "%s", shown);
    CHECK(strstr(shown, "api-2") < strstr(shown, "api-1"));
    CHECK_MSG(strstr(shown, "\"state\":\"finished\",\"outcome\":\"bad_data\""), "%s", shown);
    CHECK_MSG(strstr(shown, "\"error\":\""), "%s", shown);
    shown = finished(desk, "u", 9);
    CHECK(strstr(shown, "api-2") && !strstr(shown, "api-1"));
    shown = finished(desk, "", 1);
    CHECK(strstr(shown, "\"infos\":[\"1 more are not shown: raise limit\"]"));
}

/* However many there are: some hundred. */
TEST(what_is_over_is_forgotten_in_time)
{
    DESK(4, 1, 4);
    const char *shown;

    for (int i = 0; i < FINISHED_MAX + 3; i++)
        one_query(desk, "t");
    shown = finished(desk, "", 1);
    CHECK_MSG(strstr(shown, "\"api-103\""), "%s", shown); /* hexadecimal */
    CHECK_MSG(strstr(shown, "\"infos\":[\"255 more are not shown"), "%s", shown);
}

TEST(who_watches_queries_is_told_what_changed)
{
    DESK(4, 1, 4);
    struct qh_stream *stream, *client;
    const char *shown;

    one_query(desk, "t");
    stream = watch(desk, QA_INSPECT_QUERIES, "t");
    shown = told(desk, stream);
    CHECK_MSG(strstr(shown, "data: {\"type\":\"queries\",\"data\":[]}\n\n"), "%s", shown);
    CHECK_MSG(strstr(shown, "data: {\"type\":\"finished\",\"data\":[{\"query_id\":\"api-1\""), "%s",
              shown);
    shown = told(desk, stream); /* the finished one is not told again */
    CHECK(!strstr(shown, "finished"));
    CHECK_STR(told(desk, stream), "200 "); /* nothing is new */
    desk->plan_rc = QF_OK;
    desk->items = 3;
    client = desk_ask(desk, "t");
    CHECK(strstr(told(desk, stream), "\"state\":\"planning\""));
    shown = told(desk, stream);
    CHECK_MSG(strstr(shown, "\"state\":\"working\"") && strstr(shown, "\"work_total\":3"), "%s",
              shown);
    desk->plan_rc = QF_EINVAL; /* of another tenant: nobody's business */
    (void)qh_stream_drop(desk_ask(desk, "another"));
    CHECK(!strstr(told(desk, stream), "another"));
    (void)qh_stream_drop(client);
    (void)qh_stream_drop(stream);
}

TEST(who_watches_workers_is_told_of_them_and_of_the_scaling)
{
    DESK(4, 1, 4);
    struct qh_stream *stream = watch(desk, QA_INSPECT_WORKERS, "");
    const char *shown;

    desk_worker_up(desk, 1);
    shown = told(desk, stream);
    CHECK_MSG(strstr(shown, "data: {\"type\":\"workers\",\"data\":[{\"worker_id\":\"worker-1\""),
              "%s", shown);
    CHECK_MSG(strstr(shown, "data: {\"type\":\"scaling\",\"data\":{\"work\":{\"queued\":0"), "%s",
              shown);
    (void)qh_stream_drop(stream);
}

TEST(there_is_a_bound_to_those_who_watch)
{
    DESK(4, 1, 4);
    struct qh_stream *streams[17];

    for (int i = 0; i < 17; i++)
        streams[i] = watch(desk, QA_INSPECT_QUERIES, "t");
    CHECK(strncmp(desk_answer(streams[16]), "429", 3) == 0);
    CHECK(strncmp(desk_answer(streams[15]), "200", 3) == 0);
    CHECK_EQ(desk->coord->watchers.count, 16);
    /* Who goes away makes room. */
    qh_stream_close(streams[0]);
    (void)told(desk, streams[1]);
    CHECK_EQ(desk->coord->watchers.count, 15);
    for (int i = 0; i < 17; i++)
        (void)qh_stream_drop(streams[i]);
}

/* A page that is still being written keeps its watcher; one that does not read is passed over. */
TEST(a_slow_watcher_costs_one_page_at_most)
{
    DESK(4, 1, 4);
    struct qh_stream *stream = watch(desk, QA_INSPECT_WORKERS, "");

    desk_time_passes(desk, 500);
    desk_time_passes(desk, 500);
    CHECK_EQ(desk->tasks.count, 1);
    qh_stream_close(stream);
    desk_time_passes(desk, 500);
    CHECK_EQ(desk->coord->watchers.count, 1);
    desk_turn(desk);
    desk_time_passes(desk, 500);
    CHECK_EQ(desk->coord->watchers.count, 0);
    (void)qh_stream_drop(stream);
}

TEST(a_drain_ends_what_would_be_watched_for_ever)
{
    DESK(4, 1, 4);
    struct qh_stream *stream = watch(desk, QA_INSPECT_QUERIES, ""), *late;

    qa_coord_drain(desk->coord);
    desk_pump(desk);
    while (desk->tasks.count)
        desk_turn(desk);
    co_tick(desk->coord);
    CHECK_EQ(desk->coord->watchers.count, 0);
    late = watch(desk, QA_INSPECT_QUERIES, "");
    CHECK(strncmp(desk_answer(late), "503", 3) == 0);
    (void)qh_stream_drop(stream);
    (void)qh_stream_drop(late);
}
