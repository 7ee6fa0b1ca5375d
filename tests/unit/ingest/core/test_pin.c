/* test_pin.c - as of which position a request is enriched: what was said first, for as long as its key is remembered. */
#include "ingest/core/intake.h"
#include "tests/lib/test.h"

#define NOW (INT64_C(1767225600000))

struct world {
    struct in_quota *quota;
    struct in_ledger *ledger;
    struct in_intake *intake;
    struct in_pending *pending;
    struct qf_strbuf record;
    uint64_t index, position;
    int64_t now_ms;
};

static struct qf_limits no_limits(void *ctx, struct qf_str tenant)
{
    (void)ctx;
    (void)tenant;
    return (struct qf_limits){ 0 };
}

static void begin(struct world *world)
{
    static const struct in_intake_limits limits = { .future_ms = 600000 };

    *world = (struct world){ .ledger = in_ledger_new(), .now_ms = NOW };
    world->quota = in_quota_new(no_limits, NULL);
    world->intake = in_intake_new(&limits, world->quota, 7);
    in_intake_begin(world->intake, world->ledger, NOW, 0);
}

static void world_done(struct world *world)
{
    (void)in_intake_free(world->intake);
    (void)in_quota_free(world->quota);
    (void)in_ledger_free(world->ledger);
    qf_strbuf_done(&world->record);
}

static enum in_pin_verdict ask(struct world *world, uint8_t key, uint8_t body, uint64_t position)
{
    const struct in_record wanted = { .kind = IN_PIN,
                                      .tenant = QF_STR("t"),
                                      .key = { .key = { key }, .body = { body }, .given = true },
                                      .position = position };

    qf_strbuf_reset(&world->record);
    return in_intake_pin(world->intake, world->ledger, &wanted, world->now_ms, world->now_ms - NOW,
                         &world->record, &world->position, &world->pending);
}

static enum in_verdict apply(struct world *world)
{
    struct in_outcome outcome;
    struct in_record record;
    enum in_verdict verdict;

    CHECK_EQ(in_record_decode(qf_strbuf_view(&world->record), &record, NULL), QF_OK);
    verdict = in_ledger_apply(world->ledger, ++world->index, &record, NULL);
    in_intake_applied(world->intake, &record, verdict);
    if (world->pending)
        in_intake_ended(world->intake, world->pending, QF_OK, &outcome);
    world->pending = NULL;
    return verdict;
}

TEST(what_was_said_first_counts)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    CHECK_EQ(ask(&world, 1, 1, 50), IN_PIN_RECORD);
    CHECK_EQ(in_pending_settles(world.pending), 50);
    CHECK_EQ(apply(&world), IN_APPLIED);
    CHECK_EQ(ask(&world, 1, 1, 60), IN_PIN_IS);
    CHECK_EQ(world.position, 50);
    CHECK_EQ(ask(&world, 1, 2, 60), IN_PIN_OTHER);
    CHECK_EQ(ask(&world, 2, 2, 60), IN_PIN_RECORD);
    CHECK_EQ(apply(&world), IN_APPLIED);
    CHECK_EQ(ask(&world, 2, 2, 70), IN_PIN_IS);
    CHECK_EQ(world.position, 60);
    CHECK(!in_ledger_tenant(world.ledger, QF_STR("t"))); /* it opens no range */
}

TEST(two_that_ask_at_once_hear_the_same)
{
    QF_CLEANUP(world_done) struct world world;
    struct in_outcome outcome;
    struct in_pending *first;

    begin(&world);
    CHECK_EQ(ask(&world, 1, 1, 50), IN_PIN_RECORD);
    first = world.pending;
    CHECK_EQ(ask(&world, 1, 1, 60), IN_PIN_WAIT);
    in_intake_ended(world.intake, first, QF_EUNAVAILABLE, &outcome); /* it came to nothing */
    CHECK_EQ(ask(&world, 1, 1, 60), IN_PIN_RECORD);
    CHECK_EQ(apply(&world), IN_APPLIED);
    CHECK_EQ(ask(&world, 1, 1, 70), IN_PIN_IS);
    CHECK_EQ(world.position, 60);
}

/* A leader that lost its place may have proposed one as well. */
TEST(a_second_one_in_the_log_counts_for_nothing)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    CHECK_EQ(ask(&world, 1, 1, 50), IN_PIN_RECORD);
    CHECK_EQ(apply(&world), IN_APPLIED);
    qf_strbuf_reset(&world.record);
    in_record_put_pin(&world.record, &(struct in_record){ .tenant = QF_STR("t"),
                                                          .time_ms = NOW,
                                                          .key = { .key = { 1 }, .body = { 1 } },
                                                          .position = 60 });
    CHECK_EQ(apply(&world), IN_REPEATED);
    CHECK_EQ(ask(&world, 1, 1, 70), IN_PIN_IS);
    CHECK_EQ(world.position, 50);
}

TEST(it_is_in_the_ledger_and_is_forgotten_with_the_key)
{
    QF_CLEANUP(world_done) struct world world;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf state = QF_STRBUF_INIT;

    begin(&world);
    CHECK_EQ(ask(&world, 1, 1, 50), IN_PIN_RECORD);
    CHECK_EQ(apply(&world), IN_APPLIED);
    in_ledger_encode(&state, world.ledger);
    world.ledger = in_ledger_free(world.ledger);
    CHECK_EQ(in_ledger_decode(qf_strbuf_view(&state), &world.ledger), QF_OK);
    CHECK_EQ(ask(&world, 1, 1, 60), IN_PIN_IS);
    CHECK_EQ(world.position, 50);
    for (uint8_t i = 0; i < 12; i++) { /* records, a minute each */
        world.now_ms += IN_KEY_STEP_MS;
        CHECK_EQ(ask(&world, (uint8_t)(100 + i), 1, 50), IN_PIN_RECORD);
        CHECK_EQ(apply(&world), IN_APPLIED);
    }
    CHECK_EQ(ask(&world, 1, 1, 60), IN_PIN_RECORD);
    CHECK_EQ(apply(&world), IN_APPLIED);
}
