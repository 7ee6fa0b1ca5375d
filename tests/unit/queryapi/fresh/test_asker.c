/* test_asker.c - questions over real HTTP: each answered once, told segments first, shared and bounded. */
#include "queryapi/fresh/asker.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/http/listener.h"
#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/mailbox.h"
#include "base/sys/thread.h"
#include "tests/lib/segments/memory_store.h"
#include "tests/lib/test.h"

#define T0 INT64_C(1769817600000)
#define NAME                                                                                       \
    "tenant=a/date=2026-01-31/1769817600000_1769817600000_s0of1_g7_0000000000000007.parquet"

struct fixture {
    struct qh_listener *listener;
    struct sg_store *store;
    struct sg_catalog *catalog;
    struct qa_asker *asker;
    struct qf_mailbox *done;
    struct qf_err err;
    /* what the node does */
    atomic_int asked, refuse; /* so many more answers are 503 */
    atomic_int rolls;         /* asked of itself */
    atomic_bool list, slow;
    bool maps;         /* asked for, too */
    atomic_int mapped; /* what they are asked for with: 0: 404, else such a version */
    atomic_int maps_asked;
    struct qf_lock *lock; /* guards: */
    char body[1000];      /* of the last question */
};

static void serve(void *ctx, struct qh_request *request, struct qh_stream *stream)
{
    struct fixture *f = ctx;
    char answer[2000];

    if (qf_str_is(request->path, "/v1/node")) {
        (void)atomic_fetch_add(&f->rolls, 1);
        if (atomic_load(&f->slow))
            (void)poll(NULL, 0, 200);
        qh_stream_answer(
            stream, 200, "application/json",
            qf_str_from(atomic_load(&f->list) ? "[1]" : "{\"node\":\"a\",\"leads\":[0]}"));
        return;
    }
    if (qf_str_is(request->path, "/v1/state/info")) {
        int version = atomic_load(&f->mapped);

        (void)atomic_fetch_add(&f->maps_asked, 1);
        (void)snprintf(answer, sizeof(answer),
                       "{\"age_ms\":1,\"nodes\":[\"http://a\"],\"maps\":[{\"name\":\"team\","
                       "\"kind\":\"state\",\"metric\":\"team_info\",\"interval_ms\":1000,"
                       "\"created\":1,\"version\":%d,\"bytes\":1,\"behind_ms\":0}]}",
                       version);
        qh_stream_answer(stream, version ? 200 : 404, "application/json", qf_str_from(answer));
        return;
    }
    qf_lock_take(f->lock);
    (void)snprintf(f->body, sizeof(f->body), "%.*s", QF_STR_ARG(request->body));
    qf_lock_drop(f->lock);
    (void)atomic_fetch_add(&f->asked, 1);
    if (atomic_load(&f->slow))
        (void)poll(NULL, 0, 200);
    if (atomic_load(&f->refuse) > 0) {
        (void)atomic_fetch_sub(&f->refuse, 1);
        qh_stream_answer(
            stream, 503, "application/json",
            QF_STR("{\"error\":\"unavailable\",\"message\":\"partition 3 has no leader\"}"));
        return;
    }
    (void)snprintf(
        answer, sizeof(answer),
        "{\"cluster\":\"c\",\"partitions\":[{\"partition\":0,\"queue\":\"q\",\"applied\":9,"
        "\"sealed_index\":8,\"list\":%s,\"files\":[{\"name\":\"%s\",\"size\":5,\"etag\":\"\","
        "\"index\":8}],\"floor\":1000,\"shards\":1,\"ranges\":[],\"replicas\":[]}]}",
        atomic_load(&f->list) ? "true" : "false", NAME);
    qh_stream_answer(stream, 200, "application/json", qf_str_from(answer));
}

static void on_done(void *ctx, struct qa_question *question)
{
    CHECK(qf_mailbox_try_send(((struct fixture *)ctx)->done, question));
}

static void start(struct fixture *f, int64_t wait_ms)
{
    struct qh_listener_options http = { .listen = "127.0.0.1:0",
                                        .handle = serve,
                                        .ctx = f,
                                        .body_bytes_max = 1 << 20,
                                        .bodies_bytes_max = 1 << 20 };
    struct qa_asker_options options = { .questions_max = 100,
                                        .maps = f->maps,
                                        .maps_age_ms_max = 60000,
                                        .wait_ms = wait_ms,
                                        .patience_ms = 100,
                                        .done = on_done,
                                        .ctx = f };
    char address[40];
    const char *node = address;

    f->lock = qf_lock_new();
    f->store = memory_store_base(memory_store_new());
    f->catalog =
        sg_catalog_new(&(struct sg_catalog_options){ .store = f->store, .summary_time_ms = -1 });
    CHECK_OK(sg_catalog_refresh(f->catalog, SG_CATALOG_REFRESH_NOW, NULL, &f->err), &f->err);
    options.catalog = f->catalog;
    f->done = qf_mailbox_new(1000);
    f->listener = qh_listener_new(&http, &f->err);
    CHECK_MSG(f->listener, "%s", f->err.msg);
    f->asker = qa_asker_new(&options, &f->err);
    CHECK_MSG(f->asker, "%s", f->err.msg);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%d", qh_listener_port(f->listener));
    qa_asker_nodes(f->asker, &node, 1);
}

static void stop(struct fixture *f)
{
    (void)qa_asker_free(f->asker);
    (void)qh_listener_free(f->listener);
    (void)qf_mailbox_free(f->done, NULL);
    (void)qf_lock_free(f->lock);
    f->catalog = sg_catalog_free(f->catalog);
    f->store = sg_store_free(f->store);
}

static void ask(struct fixture *f, uint64_t query, int64_t max_ts)
{
    struct qa_question *question = qf_xcalloc(1, sizeof(*question));

    *question = (struct qa_question){
        .query = query, .tenant = qf_xstrdup("a"), .min_ts = 0, .max_ts = max_ts
    };
    CHECK(qa_asker_submit(f->asker, question));
}

static struct qa_question *take(struct fixture *f)
{
    struct qa_question *question = qf_mailbox_receive(f->done, 10000);

    CHECK(question);
    return question;
}

/* Whether the last question had @text in it. */
static bool asked_with(struct fixture *f, const char *text)
{
    bool found;

    qf_lock_take(f->lock);
    found = strstr(f->body, text) != NULL;
    qf_lock_drop(f->lock);
    return found;
}

static size_t segments(struct fixture *f)
{
    struct sg_catalog_told *told = sg_catalog_told(f->catalog);
    QF_CLEANUP(sg_catalog_snapshot_dropp)
    struct sg_catalog_snapshot *snapshot = sg_catalog_snapshot(f->catalog);
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct sg_catalog_query query = {
        .tenant = QF_STR("a"), .min_ts = T0, .max_ts = T0, .told = told
    };
    struct sg_catalog_answer answer;

    CHECK_OK(sg_catalog_lookup(snapshot, &query, arena, &answer, &f->err), &f->err);
    (void)sg_catalog_told_drop(told);
    return answer.segment_count;
}

/* Who has the answer finds its segments in the catalogue; from then on they are covered, and so is what
 * lies below the floor. */
TEST(told_segments_are_in_the_catalogue_before_the_answer)
{
    struct fixture f = { 0 };
    struct qa_question *question;

    start(&f, 5000);
    CHECK_EQ(segments(&f), 0);
    ask(&f, 17, T0);
    question = take(&f);
    CHECK_EQ(question->rc, QF_OK);
    CHECK_EQ(question->query, 17);
    CHECK_EQ(question->status->partitions[0].applied, 9);
    CHECK_EQ(segments(&f), 1);
    CHECK(asked_with(&f, "\"covered\":[]"));
    (void)qa_question_free(question);
    ask(&f, 18, T0);
    (void)qa_question_free(take(&f));
    CHECK(asked_with(&f, "{\"partition\":0,\"queue\":\"q\",\"index\":8}"));
    ask(&f, 19, 999);
    question = take(&f);
    CHECK_EQ(question->rc, QF_OK);
    CHECK_EQ(question->status->count, 0);
    CHECK_EQ(atomic_load(&f.asked), 2);
    (void)qa_question_free(question);
    stop(&f);
}

/* An answer that is not all there is covers nothing until the store was listed. */
TEST(a_listing_is_what_covers_an_answer_that_asks_for_it)
{
    struct fixture f = { .list = true };
    struct qa_question *question;

    start(&f, 5000);
    ask(&f, 1, T0);
    (void)qa_question_free(take(&f));
    ask(&f, 2, T0);
    question = take(&f);
    CHECK(question->status->list);
    CHECK(asked_with(&f, "\"covered\":[]"));
    qa_asker_listed(f.asker, question->status);
    (void)qa_question_free(question);
    ask(&f, 3, T0);
    (void)qa_question_free(take(&f));
    CHECK(asked_with(&f, "\"index\":8}"));
    stop(&f);
}

/* A node that does not know is asked again; in vain for so long, and then the next ones do not wait as
 * long. */
TEST(a_question_waits_and_then_says_which_partition)
{
    struct fixture f = { .refuse = 2 };
    struct qa_question *question;
    int64_t began;

    start(&f, 3000);
    ask(&f, 1, T0);
    question = take(&f);
    CHECK_EQ(question->rc, QF_OK);
    (void)qa_question_free(question);
    atomic_store(&f.refuse, 1000000);
    ask(&f, 2, T0);
    question = take(&f);
    CHECK_EQ(question->rc, QF_EUNAVAILABLE);
    CHECK(strstr(question->reason, "partition 3 has no leader"));
    (void)qa_question_free(question);
    began = qf_clock_mono_ms();
    ask(&f, 3, T0);
    question = take(&f);
    CHECK_EQ(question->rc, QF_EUNAVAILABLE);
    CHECK(qf_clock_mono_ms() - began < 2000);
    (void)qa_question_free(question);
    stop(&f);
}

/* Those that wait share the next answer, and each is answered. */
TEST(questions_that_wait_share_an_answer)
{
    enum { MANY = 64 };
    struct fixture f = { .slow = true };
    bool seen[MANY] = { false };

    start(&f, 10000);
    for (uint64_t i = 0; i < MANY; i++)
        ask(&f, i, T0);
    for (int i = 0; i < MANY; i++) {
        struct qa_question *question = take(&f);

        CHECK_EQ(question->rc, QF_OK);
        CHECK(!seen[question->query]);
        seen[question->query] = true;
        (void)qa_question_free(question);
    }
    CHECK(atomic_load(&f.asked) < MANY / 2);
    stop(&f);
}

/* Questions that nobody has answered yet are no leak. */
TEST(an_end_drops_what_waits)
{
    struct fixture f = { .refuse = 1000000 };

    start(&f, 10000);
    for (uint64_t i = 0; i < 5; i++)
        ask(&f, i, T0);
    stop(&f);
}

static void on_roll(void *ctx, struct qf_str nodes)
{
    CHECK(qf_mailbox_try_send(((struct fixture *)ctx)->done, qf_xmemdup0(nodes.data, nodes.len)));
}

static char *roll(struct fixture *f)
{
    CHECK(qa_asker_roll(f->asker, on_roll, f));
    return qf_mailbox_receive(f->done, 10000);
}

/* Each node is asked of itself, with its address and state put to what it says; one that is not there
 * is told as such, and costs the others nothing. */
TEST(a_roll_has_every_node_and_who_does_not_answer)
{
    struct fixture f = { 0 };
    char here[40], want[300], *text;
    const char *nodes[] = { here, "127.0.0.1:1" };

    start(&f, 5000);
    (void)snprintf(here, sizeof(here), "127.0.0.1:%d", qh_listener_port(f.listener));
    qa_asker_nodes(f.asker, nodes, 2);
    text = roll(&f);
    (void)snprintf(want, sizeof(want),
                   "[{\"node\":\"a\",\"leads\":[0],\"state\":\"alive\",\"address\":\"%s\"},"
                   "{\"state\":\"away\",\"error\":\"",
                   here);
    CHECK_MSG(strncmp(text, want, strlen(want)) == 0, "%s", text);
    CHECK(strstr(text, ",\"address\":\"127.0.0.1:1\"}]"));
    free(text);
    atomic_store(&f.list, true); /* no object */
    qa_asker_nodes(f.asker, nodes, 1);
    text = roll(&f);
    CHECK_MSG(strstr(text, "\"error\":\"what it says of itself cannot be read\""), "%s", text);
    free(text);
    qa_asker_nodes(f.asker, nodes, 0);
    text = roll(&f);
    CHECK_STR(text, "[]");
    free(text);
    stop(&f);
}

/* Who wants to know while nodes are being asked gets the same answer; questions of queries go on. */
TEST(rolls_at_once_are_one)
{
    enum { MANY = 20 };
    struct fixture f = { .slow = true };

    start(&f, 10000);
    for (int i = 0; i < MANY; i++)
        CHECK(qa_asker_roll(f.asker, on_roll, &f));
    for (int i = 0; i < MANY; i++) {
        char *text = qf_mailbox_receive(f.done, 10000);

        CHECK(text && strstr(text, "alive"));
        free(text);
    }
    CHECK(atomic_load(&f.rolls) <= 2);
    ask(&f, 1, T0);
    (void)qa_question_free(take(&f));
    CHECK(qa_asker_roll(f.asker, on_roll, &f));
    f.asker = qa_asker_free(f.asker); /* also who waits at the end is told */
    free(qf_mailbox_receive(f.done, 1000));
    stop(&f);
}

/* State maps come with the status, and with what is said of times below the floor: those that are known, asked for once. */
TEST(state_maps_come_back_with_the_status)
{
    struct fixture f = { .maps = true, .mapped = 17 };

    start(&f, 5000);
    for (uint64_t i = 1; i <= 3; i++) {
        struct qa_question *question;

        ask(&f, i, i < 3 ? T0 : 999);
        question = take(&f);
        CHECK_EQ(question->rc, QF_OK);
        CHECK_EQ(question->status->count, i < 3 ? 1 : 0);
        CHECK(question->maps && question->maps->count == 1);
        CHECK_EQ(question->maps->items[0].version, 17);
        (void)qa_question_free(question);
    }
    CHECK(atomic_load(&f.maps_asked) < 4); /* once a second */
    stop(&f);
}

/* Nodes of a release before state maps have none. */
TEST(nodes_that_do_not_know_of_state_maps_have_none)
{
    struct fixture f = { .maps = true };
    struct qa_question *question;

    start(&f, 5000);
    ask(&f, 1, T0);
    question = take(&f);
    CHECK_EQ(question->rc, QF_OK);
    CHECK(question->maps && question->maps->count == 0);
    (void)qa_question_free(question);
    stop(&f);
}
