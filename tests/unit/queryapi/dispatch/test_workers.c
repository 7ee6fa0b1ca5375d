/* test_workers.c - workers in the coordinator: streams, messages, downloads. */
#include <string.h>

#include "tests/lib/test.h"
#include "tests/unit/queryapi/dispatch/desk.h"

#define DESK() QF_CLEANUP(desk_freep) struct desk *desk = desk_new(4, 2, 4)

/* One query whose only item is assigned to worker 1. */
static struct qh_stream *assigned(struct desk *desk)
{
    struct qh_stream *client;

    desk_worker_up(desk, 1);
    client = desk_ask(desk, "t");
    desk_turn(desk);
    (void)desk_log(desk);
    return client;
}

/* The first message must be a status of the right protocol. */
TEST(a_stream_begins_with_a_status)
{
    DESK();
    const char *address = "a:1";
    struct pb_worker_message status = { .kind = PB_WORKER_STATUS };

    qa_coord_endpoints(desk->coord, &address, 1);
    desk_pump(desk);
    desk_accept(desk, 1, 1, 1);
    CHECK_STR(desk_log(desk), "dial s1 a:1; hang up s1: the worker did not send its status first");
    status.u.status.protocol_version = PB_PROTOCOL_VERSION + 1;
    desk_say(desk, 1, &status);
    CHECK(strstr(desk_log(desk), "hang up s1: the worker speaks protocol"));
    status.u.status.protocol_version = pb_protocol_oldest; /* of the next release as well */
    status.u.status.protocol_newest = pb_protocol_newest + 1;
    status.u.status.artifact_base_url = QF_STR("ftp://w");
    desk_say(desk, 1, &status);
    CHECK(strstr(desk_log(desk), "hang up s1: the worker's --advertise-url is not"));
}

/* Heartbeats of a worker are echoed, our own measured. */
TEST(heartbeats_are_echoed)
{
    DESK();
    struct pb_worker_message beat = { .kind = PB_WORKER_HEARTBEAT };

    desk_worker_up(desk, 1);
    (void)desk_log(desk);
    desk_say(desk, 1, &beat);
    CHECK_STR(desk_log(desk), "s1 echo");
    beat.u.heartbeat.echo = true;
    desk_say(desk, 1, &beat);
    CHECK_STR(desk_log(desk), "");
    desk_time_passes(desk, 1001);
    CHECK_STR(desk_log(desk), "s1 heartbeat");
}

/* Echoes of what nobody sent: no number of a worker is calculated with before it is looked at. */
TEST(echoes_from_beyond_time_are_ignored)
{
    DESK();
    static const int64_t lies[] = { INT64_MIN, -1, INT64_MAX };
    struct pb_worker_message beat = { .kind = PB_WORKER_HEARTBEAT, .u.heartbeat.echo = true };

    desk_worker_up(desk, 1);
    (void)desk_log(desk);
    for (size_t i = 0; i < QF_COUNT_OF(lies); i++) {
        beat.u.heartbeat.sent_us = lies[i];
        desk_say(desk, 1, &beat);
    }
    CHECK_STR(desk_log(desk), "");
}

/* A stream that closes: its work goes to the other worker, and it is dialed again. */
TEST(a_closed_stream_moves_its_work)
{
    DESK();
    struct qh_stream *client = assigned(desk);

    desk_worker_up(desk, 2);
    (void)desk_log(desk);
    co_closed(desk->coord, 1, "gone", false);
    CHECK_STR(desk_log(desk), "s2 assign k1#2");
    desk_time_passes(desk, 200);
    CHECK(strstr(desk_log(desk), "dial s3 a:1"));
    co_closed(desk->coord, 3, "refused", false); /* a failed dial is no lost stream */
    co_closed(desk->coord, 99, "never heard of", false);
    CHECK_STR(desk_log(desk), "");
    (void)qh_stream_drop(client);
}

/* Rejected work goes elsewhere, whatever word the worker has for why. */
TEST(rejected_work_goes_elsewhere)
{
    DESK();
    struct qh_stream *client = assigned(desk);
    struct pb_worker_message rejected = { .kind = PB_WORKER_REJECTED };

    desk_worker_up(desk, 2);
    (void)desk_log(desk);
    rejected.u.rejected = (struct pb_rejected){ 1, 1, QF_STR("a word of the future") };
    desk_say(desk, 1, &rejected);
    CHECK_STR(desk_log(desk), "s2 assign k1#2");
    (void)qh_stream_drop(client);
}

/* One query with a state map, and a worker that does not know of them. */
static struct qh_stream *assigned_to_one_of_before(struct desk *desk)
{
    static const struct pb_map map = { .name = QF_STR_INIT("team") };
    struct qh_stream *client;

    desk->maps = (struct pb_maps){ .inputs = &map, .count = 1 };
    desk->protocol = PB_PROTOCOL_MAPS - 1;
    desk_worker_up(desk, 1);
    client = desk_ask(desk, "t");
    desk_turn(desk);
    CHECK(!strstr(desk_log(desk), "assign"));
    return client;
}

/* A worker that does not know of state maps would leave them out without saying so. */
TEST(work_with_state_maps_is_not_for_workers_of_before)
{
    DESK();
    struct qh_stream *client = assigned_to_one_of_before(desk);

    desk->protocol = 0; /* the next one knows of them */
    desk_worker_up(desk, 2);
    CHECK(strstr(desk_log(desk), "s2 assign k1#2"));
    (void)qh_stream_drop(client);
}

TEST(where_all_workers_are_of_before_a_query_with_state_maps_says_so)
{
    DESK();
    struct qh_stream *client = assigned_to_one_of_before(desk);

    for (int i = 0; i < 20; i++)
        desk_time_passes(desk, 1000);
    CHECK(strstr(desk_answer(client), "worker-1 is of a release that cannot read state maps"));
    (void)qh_stream_drop(client);
}

/* An announcement without a checksum is a failed run, not a download. */
TEST(a_ready_without_a_checksum_is_a_failure)
{
    DESK();
    struct qh_stream *client = assigned(desk);
    struct pb_worker_message ready = { .kind = PB_WORKER_READY };

    desk_accept(desk, 1, 1, 1);
    ready.u.ready = (struct pb_ready){ .work_id = 1,
                                       .attempt = 1,
                                       .artifact_url = QF_STR("http://w/a"),
                                       .artifact_checksum = QF_STR("nonsense") };
    desk_say(desk, 1, &ready);
    CHECK_STR(desk_log(desk), "");
    desk_time_passes(desk, 250);
    CHECK_STR(desk_log(desk), "s1 assign k1#2");
    (void)qh_stream_drop(client);
}

/* The API fetches from where the worker said its artifacts are, and from nowhere else. */
TEST(an_artifact_elsewhere_is_a_failure)
{
    static const char *const elsewhere[] = { "http://169.254.169.254/latest", "file:///etc/passwd",
                                             "http://w.example/a", "http://w@other/a", "" };

    for (size_t i = 0; i < QF_COUNT_OF(elsewhere); i++) {
        DESK();
        struct qh_stream *client = assigned(desk);
        struct pb_worker_message ready = { .kind = PB_WORKER_READY };

        desk_accept(desk, 1, 1, 1);
        ready.u.ready = (struct pb_ready){ .work_id = 1,
                                           .attempt = 1,
                                           .artifact_url = qf_str_from(elsewhere[i]),
                                           .artifact_checksum = QF_STR("7") };
        desk_say(desk, 1, &ready);
        CHECK_STR(desk_log(desk), "");
        desk_time_passes(desk, 250);
        CHECK_STR(desk_log(desk), "s1 assign k1#2");
        (void)qh_stream_drop(client);
    }
}

/* A download that fails, or cannot even be queued, means running the work again. */
TEST(a_failed_download_runs_the_work_again)
{
    DESK();
    struct qh_stream *client = assigned(desk);

    desk_worker_up(desk, 2);
    desk_accept(desk, 1, 1, 1);
    desk_ready(desk, 1, 1, 1, 10);
    (void)desk_log(desk);
    desk_fetched(desk, false);
    CHECK_STR(desk_log(desk), "s1 cancel k1#1; s2 assign k1#2");
    desk_accept(desk, 2, 1, 2);
    desk->fetcher_full = true;
    desk_ready(desk, 2, 1, 2, 10);
    CHECK_STR(desk_log(desk), "s2 cancel k1#2");
    (void)qh_stream_drop(client);
}

/* Without room in the spool there is no use in trying again. */
TEST(a_full_spool_fails_the_query)
{
    DESK();
    struct qh_stream *client = assigned(desk);

    desk_accept(desk, 1, 1, 1);
    desk_ready(desk, 1, 1, 1, 10);
    desk->fetches.items[0]->spool_full = true;
    (void)snprintf(desk->fetches.items[0]->detail, 100, "no room in here");
    desk_fetched(desk, false);
    CHECK(strstr(desk_answer(client), "the spool has no room for the results of workers (query "));
    CHECK(!strstr(desk_answer(client), "no room in here"));
    CHECK_EQ(qa_coord_query_count(desk->coord), 0);
    (void)qh_stream_drop(client);
}

/* More than a query may have is an error before a byte of it is fetched. */
TEST(results_that_are_too_large_fail_the_query)
{
    DESK();
    struct qh_stream *client = assigned(desk);

    desk_accept(desk, 1, 1, 1);
    desk_ready(desk, 1, 1, 1, 1001);
    CHECK_STR(desk_log(desk), "s1 cancel k1#1");
    CHECK(strstr(desk_answer(client), "larger than 1000 bytes"));
    CHECK_EQ(desk->fetches.count, 0);
    (void)qh_stream_drop(client);
}

/* A download that comes back when its query is over: the bytes go, the spool is as before. */
TEST(a_download_nobody_waits_for_is_dropped)
{
    DESK();
    struct qh_stream *client = assigned(desk);

    desk_accept(desk, 1, 1, 1);
    desk_ready(desk, 1, 1, 1, 10);
    qh_stream_close(client);
    desk_pump(desk);
    CHECK(atomic_load(&desk->fetches.items[0]->unwanted));
    while (desk->tasks.count)
        desk_turn(desk);
    (void)desk_log(desk);
    desk_fetched(desk, true);
    CHECK_EQ(atomic_load(&desk->coord->spool_bytes), 0);
    desk_turn(desk);
    CHECK_STR(desk_log(desk), "drop artifact");
    (void)qh_stream_drop(client);
}

/* An artifact that is announced twice is acknowledged, so that the worker can drop it. */
TEST(an_unwanted_artifact_is_acknowledged)
{
    DESK();

    desk_worker_up(desk, 1);
    (void)desk_log(desk);
    desk_ready(desk, 1, 77, 1, 10);
    CHECK_STR(desk_log(desk), "s1 ack k77#1 ");
}

/* An endpoint that discovery no longer lists is forgotten once its stream is gone. */
TEST(endpoints_come_and_go)
{
    DESK();
    struct qh_stream *reply = qh_stream_new(1 << 16);
    const char *shown;

    desk_worker_up(desk, 1);
    desk_worker_up(desk, 2);
    (void)desk_log(desk);
    qa_coord_endpoints(desk->coord, (const char *const[]){ "b:1" }, 1);
    desk_pump(desk);
    CHECK_STR(desk_log(desk), "hang up s1: no longer wanted, or silent for too long");
    co_closed(desk->coord, 1, "closed", false);
    qa_coord_endpoints(desk->coord, (const char *const[]){ "b:1" }, 1);
    desk_pump(desk);
    CHECK_EQ(desk->coord->endpoints.count, 1);
    qa_coord_inspect(desk->coord, QA_INSPECT_WORKERS, QF_STR(""), 9, reply);
    desk_show(desk);
    shown = desk_answer(reply);
    CHECK(strstr(shown, "\"worker_id\":\"worker-2\""));
    CHECK(!strstr(shown, "worker-1"));
    (void)qh_stream_drop(reply);
}

/* A worker that fails for good ends the query with its words. */
TEST(a_final_failure_is_the_clients_error)
{
    DESK();
    struct qh_stream *client = assigned(desk);

    desk_accept(desk, 1, 1, 1);
    desk_fail(desk, 1, 1, 1, "limit", false);
    CHECK(strstr(desk_answer(client), "the disk says no"));
    (void)qh_stream_drop(client);
}

/* A slow worker: one more gets the work, the first bytes count and the other download is not
 * needed. */
TEST(slow_work_is_given_to_one_more_worker)
{
    DESK();
    struct qh_stream *client;

    desk->expect_ms = 100;
    client = assigned(desk);
    desk_worker_up(desk, 2);
    (void)desk_log(desk);
    desk_time_passes(desk, 250);
    CHECK_STR(desk_log(desk), "s2 assign k1#2");
    desk_accept(desk, 2, 1, 2);
    desk_accept(desk, 1, 1, 1);
    desk_ready(desk, 1, 1, 1, 10);
    desk_ready(desk, 2, 1, 2, 10);
    CHECK_STR(desk_log(desk), "fetch k1#1 http://w/a; fetch k1#2 http://w/a");
    desk_fetched(desk, true);
    CHECK_STR(desk_log(desk), "s1 ack k1#1 xxh3:00000000000000000000000000000007; s2 cancel k1#2");
    CHECK(atomic_load(&desk->fetches.items[0]->unwanted));
    desk_turn(desk);
    CHECK_STR(desk_answer(client), "200 done");
    co_update_metrics(desk->coord);
    (void)qh_stream_drop(client);
}
