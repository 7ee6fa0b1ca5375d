/* test_ha.c - pairs of senders: whose series they are, and which replica is elected. */
#include <stdio.h>

#include "ingest/core/ha.h"
#include "ingest/core/intake.h"
#include "tests/lib/test.h"

#define L(n, v) ((struct qf_label){ QF_STR(n), QF_STR(v) })
#define NOW (INT64_C(1767225600000))

static const struct in_ha_labels names = { QF_STR_INIT("cluster"), QF_STR_INIT("__replica__") };

/* --- requests --- */

TEST(series_of_replicas_lose_their_label_and_others_stay)
{
    struct qf_arena *arena = qf_arena_new(1 << 16);
    struct qf_label one[] = { L("__name__", "m"), L("__replica__", "r1"), L("cluster", "c") };
    struct qf_label two[] = { L("__name__", "m"), L("__replica__", "r2"), L("cluster", "c") };
    struct qf_label no_cluster[] = { L("__name__", "m"), L("__replica__", "r1") };
    struct qf_label no_replica[] = { L("__name__", "m"), L("cluster", "c") };
    struct in_sample early = { .ts = 5 }, late = { .ts = 9 };
    struct in_series series[] = {
        { .labels = one, .label_count = 3, .samples = &early, .sample_count = 1 },
        { .labels = no_cluster, .label_count = 2, .samples = &late, .sample_count = 1 },
        { .labels = two, .label_count = 3, .samples = &late, .sample_count = 1 },
        { .labels = no_replica, .label_count = 2, .samples = &late, .sample_count = 1 },
    };
    struct in_request request = { .series = series, .series_count = 4 };
    struct in_ha ha;

    CHECK_EQ(in_ha_find(&request, &names, arena, &ha, NULL), QF_OK);
    CHECK_EQ(ha.count, 2);
    CHECK(ha.of[0] == 1 && ha.of[1] == 0 && ha.of[2] == 2 && ha.of[3] == 0);
    CHECK(qf_str_is(ha.pairs[0].cluster, "c") && qf_str_is(ha.pairs[0].replica, "r1"));
    CHECK(ha.pairs[0].newest_ts == 5 && ha.pairs[1].newest_ts == 9);
    CHECK(series[0].label_count == 2 && qf_str_is(series[0].labels[1].name, "cluster"));
    CHECK(series[1].label_count == 2 && series[3].label_count == 2);
    (void)qf_arena_free(arena);
}

TEST(a_request_has_so_many_replicas_and_no_more)
{
    struct qf_arena *arena = qf_arena_new(1 << 16);
    struct qf_label labels[IN_HA_PAIRS_MAX + 1][3];
    struct in_series series[IN_HA_PAIRS_MAX + 1];
    char replicas[IN_HA_PAIRS_MAX + 1][8];
    struct in_request request = { .series = series, .series_count = IN_HA_PAIRS_MAX + 1 };
    struct qf_err err = { 0 };
    struct in_ha ha;

    for (size_t i = 0; i < request.series_count; i++) {
        (void)snprintf(replicas[i], sizeof(replicas[i]), "r%zu", i);
        labels[i][0] = L("__name__", "m");
        labels[i][1] = (struct qf_label){ QF_STR("__replica__"), qf_str_from(replicas[i]) };
        labels[i][2] = L("cluster", "c");
        series[i] = (struct in_series){ .labels = labels[i], .label_count = 3 };
    }
    CHECK_EQ(in_ha_find(&request, &names, arena, &ha, &err), QF_ELIMIT);
    CHECK_STR(err.msg, "a request has samples of more than 32 replicas: split it");
    (void)qf_arena_free(arena);
}

/* --- elections --- */

struct world {
    struct in_quota *quota;
    struct in_ledger *ledger;
    struct in_intake *intake;
    struct in_pending *pending;
    struct qf_strbuf record;
    uint64_t index;
};

static struct qf_limits no_limits(void *ctx, struct qf_str tenant)
{
    (void)ctx;
    (void)tenant;
    return (struct qf_limits){ 0 };
}

static void begin(struct world *world)
{
    static const struct in_intake_limits limits = { .future_ms = 600000, .ha_failover_ms = 30000 };

    *world = (struct world){ .ledger = in_ledger_new() };
    world->quota = in_quota_new(no_limits, NULL);
    world->intake = in_intake_new(&limits, world->quota, 7);
    in_intake_begin(world->intake, world->ledger, NOW, 1000);
}

static void world_done(struct world *world)
{
    (void)in_intake_free(world->intake);
    (void)in_quota_free(world->quota);
    (void)in_ledger_free(world->ledger);
    qf_strbuf_done(&world->record);
}

static enum in_elect_verdict ask(struct world *world, const char *replica, int64_t seconds)
{
    const struct in_record wanted = { .kind = IN_ELECT,
                                      .tenant = QF_STR("t"),
                                      .cluster = QF_STR("c"),
                                      .replica = qf_str_from(replica),
                                      .newest_ts = NOW + seconds * 1000 };

    qf_strbuf_reset(&world->record);
    return in_intake_elect(world->intake, world->ledger, &wanted, NOW, 1000, &world->record,
                           &world->pending);
}

static void apply(struct world *world)
{
    struct in_outcome outcome;
    struct in_record record;

    CHECK_EQ(in_record_decode(qf_strbuf_view(&world->record), &record, NULL), QF_OK);
    CHECK_EQ(in_ledger_apply(world->ledger, ++world->index, &record, NULL), IN_APPLIED);
    in_intake_applied(world->intake, &record, IN_APPLIED);
    in_intake_ended(world->intake, world->pending, QF_OK, &outcome);
}

static const char *elected(struct world *world)
{
    return in_tenant_elected(in_ledger_tenant(world->ledger, QF_STR("t")), QF_STR("c"))->replica;
}

TEST(the_first_replica_is_elected_and_stays_while_it_sends)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    CHECK_EQ(ask(&world, "a", 0), IN_ELECT_RECORD);
    apply(&world);
    CHECK_EQ(ask(&world, "a", 1), IN_ELECT_IS);
    CHECK_EQ(ask(&world, "b", 31), IN_ELECT_IS_NOT); /* 30 s behind a's last */
    CHECK_EQ(ask(&world, "a", 9), IN_ELECT_IS);
    CHECK_EQ(ask(&world, "a", 10), IN_ELECT_RECORD); /* so that the next leader knows */
    apply(&world);
    CHECK_EQ(ask(&world, "b", 40), IN_ELECT_IS_NOT);
    CHECK_STR(elected(&world), "a");
}

TEST(another_replica_takes_over_when_its_samples_are_newer_by_the_time)
{
    QF_CLEANUP(world_done) struct world world;
    bool replaces;

    begin(&world);
    CHECK_EQ(ask(&world, "a", 0), IN_ELECT_RECORD);
    CHECK(in_pending_elects(world.pending, &replaces) && !replaces);
    apply(&world);
    CHECK_EQ(ask(&world, "a", 5), IN_ELECT_IS);
    CHECK_EQ(ask(&world, "b", 35), IN_ELECT_IS_NOT);
    CHECK_EQ(ask(&world, "b", 36), IN_ELECT_RECORD);
    CHECK(in_pending_elects(world.pending, &replaces) && replaces);
    apply(&world);
    CHECK_STR(elected(&world), "b");
    /* Whoever comes back, with what it could not send meanwhile, is not the one any more. */
    CHECK_EQ(ask(&world, "a", 20), IN_ELECT_IS_NOT);
    CHECK_EQ(ask(&world, "a", 37), IN_ELECT_IS_NOT);
    CHECK_EQ(ask(&world, "b", 37), IN_ELECT_IS);
}

TEST(two_that_ask_at_once_are_not_both_elected)
{
    QF_CLEANUP(world_done) struct world world;
    struct in_pending *first;
    struct in_outcome outcome;

    begin(&world);
    CHECK_EQ(ask(&world, "a", 0), IN_ELECT_RECORD);
    first = world.pending;
    CHECK_EQ(ask(&world, "b", 0), IN_ELECT_WAIT);
    CHECK_EQ(ask(&world, "a", 0), IN_ELECT_WAIT);
    /* The first comes to nothing. */
    in_intake_ended(world.intake, first, QF_EUNAVAILABLE, &outcome);
    CHECK_EQ(ask(&world, "b", 0), IN_ELECT_RECORD);
    apply(&world);
    CHECK_EQ(ask(&world, "a", 0), IN_ELECT_IS_NOT);
}

/* It does not know the newest samples, but that they were no further ahead than the log is told of. */
TEST(a_new_leader_replaces_no_replica_too_early)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    CHECK_EQ(ask(&world, "a", 0), IN_ELECT_RECORD);
    apply(&world);
    CHECK_EQ(ask(&world, "a", 9), IN_ELECT_IS);
    in_intake_end(world.intake);
    in_intake_begin(world.intake, world.ledger, NOW, 1000);
    CHECK_EQ(ask(&world, "b", 39), IN_ELECT_IS_NOT);
    CHECK_EQ(ask(&world, "b", 41), IN_ELECT_RECORD);
    apply(&world);
    CHECK_STR(elected(&world), "b");
}

/* A calendar of years ahead would else keep a replica elected for years. */
TEST(samples_are_not_further_ahead_than_they_may_be)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    CHECK_EQ(ask(&world, "a", 100000000), IN_ELECT_RECORD);
    apply(&world);
    CHECK_EQ(ask(&world, "b", 600), IN_ELECT_IS_NOT);
    in_intake_end(world.intake);
    in_intake_begin(world.intake, world.ledger, NOW + 3600000, 1000);
    CHECK_EQ(in_tenant_elected(in_ledger_tenant(world.ledger, QF_STR("t")), QF_STR("c"))->newest_ts,
             NOW + 600000);
}
