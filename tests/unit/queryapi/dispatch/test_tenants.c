/* test_tenants.c - what a tenant may have, in the coordinator: who waits, who is refused, and why. */
#include <string.h>

#include "tests/lib/test.h"
#include "tests/unit/queryapi/dispatch/desk.h"

#define DESK(queries, active)                                                                      \
    QF_CLEANUP(desk_freep) struct desk *desk = desk_new(queries, active, 9)

static double met(struct desk *desk, const char *limit)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    char name[100];
    const char *line;

    co_update_metrics(desk->coord);
    qf_metrics_print(desk->metrics.registry, &text);
    (void)snprintf(name, sizeof(name), "promfabric_api_tenant_limits_total{limit=\"%s\"} ", limit);
    line = strstr(qf_strbuf_cstr(&text), name);
    CHECK(line);
    return strtod(line + strlen(name), NULL);
}

static void drop(struct qh_stream **clients, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)qh_stream_drop(clients[i]);
}

/* One place each: the second query of a tenant waits, another tenant's does not. */
TEST(a_tenant_has_its_own_places)
{
    DESK(8, 4);
    struct qh_stream *clients[3];

    desk_limit(desk, &(struct qf_limits){ .of = { [QF_LIMIT_QUERIES] = 1 } });
    desk->items = 0;
    clients[0] = desk_ask(desk, "a");
    clients[1] = desk_ask(desk, "a");
    clients[2] = desk_ask(desk, "b");
    CHECK_EQ(desk->tasks.count, 2);
    CHECK_EQ((int)met(desk, "queries"), 1);
    desk_turn(desk);
    desk_turn(desk);
    desk_turn(desk); /* the answer of the first: the second of its tenant is planned */
    CHECK_STR(desk_log(desk), "plan api-1; plan api-3; answer api-1");
    while (desk->tasks.count)
        desk_turn(desk);
    CHECK_STR(desk_log(desk), "answer api-3; plan api-2; answer api-2");
    drop(clients, 3);
}

/* A limit that is met says its name and its value. */
TEST(refusals_name_the_tenants_limit)
{
    DESK(8, 4);
    struct qh_stream *clients[4];
    const char *answer;

    desk_limit(desk,
               &(struct qf_limits){ .of = { [QF_LIMIT_QUERIES] = 1, [QF_LIMIT_QUEUED] = 1 } });
    for (int i = 0; i < 3; i++)
        clients[i] = desk_ask(desk, "a");
    answer = desk_answer(clients[2]);
    CHECK(strncmp(answer, "429", 3) == 0);
    CHECK_MSG(strstr(answer, "too many queries of this tenant are waiting: 1 (queued)"), "%s",
              answer);
    CHECK_EQ((int)met(desk, "queued"), 1);
    clients[3] = desk_ask(desk, "b");
    CHECK_STR(desk_answer(clients[3]), "open");
    drop(clients, 4);
}

TEST(slow_readers_of_a_tenant_are_its_own)
{
    DESK(8, 4);
    struct qh_stream *clients[3];
    const char *answer;

    desk_limit(desk, &(struct qf_limits){ .of = { [QF_LIMIT_STREAMS] = 1 } });
    desk->items = 0;
    desk->pauses = 1;
    clients[0] = desk_ask(desk, "a");
    desk_turn(desk);
    desk_turn(desk); /* its stream is full */
    clients[1] = desk_ask(desk, "a");
    answer = desk_answer(clients[1]);
    CHECK(strncmp(answer, "429", 3) == 0);
    CHECK_MSG(strstr(answer, "too many answers of this tenant wait for their readers: 1 (streams)"),
              "%s", answer);
    CHECK_EQ((int)met(desk, "streams"), 1);
    clients[2] = desk_ask(desk, "b");
    CHECK_STR(desk_answer(clients[2]), "open");
    drop(clients, 3);
}

/* Queued while there was hope, refused when there is none. */
TEST(slow_readers_refuse_what_their_tenant_has_queued)
{
    DESK(8, 4);
    struct qh_stream *clients[3];
    const char *answer;

    desk_limit(desk,
               &(struct qf_limits){ .of = { [QF_LIMIT_QUERIES] = 1, [QF_LIMIT_STREAMS] = 1 } });
    desk->items = 0;
    desk->pauses = 1;
    clients[0] = desk_ask(desk, "a");
    clients[1] = desk_ask(desk, "a");
    desk_turn(desk);
    CHECK_STR(desk_answer(clients[1]), "open");
    desk_turn(desk); /* its stream is full */
    answer = desk_answer(clients[1]);
    CHECK(strncmp(answer, "429", 3) == 0);
    CHECK_MSG(strstr(answer, "too many answers of this tenant wait for their readers: 1 (streams)"),
              "%s", answer);
    CHECK_EQ((int)met(desk, "streams"), 1);
    clients[2] = desk_ask(desk, "b");
    CHECK_STR(desk_answer(clients[2]), "open");
    drop(clients, 3);
}

/* Two works of one tenant, one at a time; the other one's beside them. */
TEST(work_of_a_tenant_waits_for_its_own)
{
    DESK(8, 4);
    struct qh_stream *clients[2];

    desk_limit(desk, &(struct qf_limits){ .of = { [QF_LIMIT_WORK] = 1 } });
    desk->items = 2;
    desk_worker_up(desk, 1);
    clients[0] = desk_ask(desk, "a");
    clients[1] = desk_ask(desk, "b");
    (void)desk_log(desk);
    desk_turn(desk);
    desk_turn(desk);
    CHECK_STR(desk_log(desk), "plan api-1; s1 assign k1#1; plan api-2; s1 assign k3#1");
    CHECK_EQ((int)met(desk, "work"), 2);
    desk_accept(desk, 1, 1, 1);
    desk_ready(desk, 1, 1, 1, 10);
    desk_fetched(desk, true);
    CHECK(strstr(desk_log(desk), "s1 assign k2#1"));
    drop(clients, 2);
}

/* Artifacts of one query may have what its tenant may have, and no more; those of two together. */
TEST(artifacts_of_a_tenant_have_a_limit)
{
    DESK(8, 4);
    struct qh_stream *clients[3];
    const char *answer;

    desk_limit(desk, &(struct qf_limits){ .of = { [QF_LIMIT_SPOOL] = 100 } });
    desk_worker_up(desk, 1);
    clients[0] = desk_ask(desk, "a");
    desk_turn(desk);
    desk_accept(desk, 1, 1, 1);
    desk_ready(desk, 1, 1, 1, 60);
    desk_fetched(desk, true); /* an answer turn waits, and holds it */
    clients[1] = desk_ask(desk, "a");
    clients[2] = desk_ask(desk, "b");
    while (desk->tasks.count > 1)
        desk_turn(desk);
    desk_turn(desk);
    desk_accept(desk, 1, 3, 1);
    desk_ready(desk, 1, 3, 1, 101);
    answer = desk_answer(clients[2]);
    CHECK(strncmp(answer, "422", 3) == 0);
    CHECK_MSG(strstr(answer, "larger than its tenant may have: 100 bytes (spool)"), "%s", answer);
    CHECK_EQ((int)met(desk, "spool"), 1);
    drop(clients, 3);
}

TEST(artifacts_of_a_tenants_queries_add_up)
{
    DESK(8, 4);
    struct qh_stream *clients[2];
    const char *answer;

    desk_limit(desk, &(struct qf_limits){ .of = { [QF_LIMIT_SPOOL] = 100 } });
    desk->items = 2;
    desk_worker_up(desk, 1);
    clients[0] = desk_ask(desk, "a");
    clients[1] = desk_ask(desk, "a");
    desk_turn(desk);
    desk_turn(desk);
    for (uint64_t work = 1; work <= 3; work += 2) {
        desk_accept(desk, 1, work, 1);
        desk_ready(desk, 1, work, 1, 60);
    }
    answer = desk_answer(clients[1]);
    CHECK(strncmp(answer, "429", 3) == 0);
    CHECK_MSG(strstr(answer, "may have together: 100 bytes (spool)"), "%s", answer);
    desk_fetched(desk, true);
    CHECK_STR(desk_answer(clients[0]), "open");
    drop(clients, 2);
}

/* What a worker may load for a tenant travels with the work; too many is said with the number. */
TEST(samples_of_a_tenant_are_named)
{
    DESK(8, 4);
    struct qh_stream *client;
    const char *answer;

    desk->env.samples_max = 1000;
    desk_limit(desk, &(struct qf_limits){ .of = { [QF_LIMIT_SAMPLES] = 7 } });
    client = desk_ask(desk, "a");
    qa_query_fail(desk->coord->slots[0], QF_ELIMIT,
                  "query processing would load too many samples into memory in query execution");
    answer = desk_answer(client);
    CHECK_MSG(strstr(answer, "this tenant may load 7 (samples)"), "%s", answer);
    (void)qh_stream_drop(client);
}
