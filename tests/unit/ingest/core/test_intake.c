/* test_intake.c - what the leader makes of requests: keys, numbers, times, limits. */
#include <stdio.h>

#include "base/pure/prng.h"
#include "ingest/core/extras.h"
#include "ingest/core/intake.h"
#include "tests/lib/test.h"

#define HOUR INT64_C(3600000)
#define NOW (INT64_C(1767225600000))
#define TENANT QF_STR("t")

/* A partition of one node: what is taken is applied at once, or when the test says so. */
struct world {
    struct in_ledger *ledger;
    struct in_quota *quota;
    struct qf_limits tenants; /* what each of them may have */
    struct in_intake *intake;
    struct in_outcome outcome;
    struct in_pending *pending;
    struct qf_strbuf batch, record;
    struct in_record applied; /* the last one, borrows from record */
    uint64_t index;
    int64_t wall, mono;
};

static const struct in_intake_limits limits = { .out_of_order_ms = 2 * HOUR,
                                                .future_ms = 600000,
                                                .metadata_max = 10,
                                                .ha_failover_ms = 30000,
                                                .idle_ms = 600000 };

static struct qf_limits limits_of(void *ctx, struct qf_str tenant)
{
    (void)tenant;
    return ((struct world *)ctx)->tenants;
}

static void begin(struct world *world)
{
    *world = (struct world){ .ledger = in_ledger_new(), .wall = NOW, .mono = 1000 };
    world->quota = in_quota_new(limits_of, world);
    world->intake = in_intake_new(&limits, world->quota, 7);
    in_intake_begin(world->intake, world->ledger, world->wall, world->mono);
}

/* A tenant may have no more than this. */
static void limit(struct world *world, enum qf_limit which, uint64_t value)
{
    world->tenants.of[which] = value;
    in_quota_renew(world->quota);
}

static void world_done(struct world *world)
{
    (void)in_intake_free(world->intake);
    (void)in_quota_free(world->quota);
    (void)in_ledger_free(world->ledger);
    qf_strbuf_done(&world->batch);
    qf_strbuf_done(&world->record);
}

struct point {
    const char *name;
    int64_t ts;
    double value;
};

/* A request with these samples, each a series of its own unless the name is that of the one before. */
static void build(struct world *world, struct qf_str tenant, const char *key, const char *body,
                  const struct point *points, size_t count)
{
    struct in_record record = { .tenant = tenant };
    struct in_record_series series[16];
    struct in_sample samples[16];
    struct qf_label labels[16];
    size_t n = 0;

    if (key) {
        record.key.given = true;
        memcpy(record.key.key, key, strlen(key));
        memcpy(record.key.body, body, strlen(body));
    }
    record.accepted.samples = count;
    for (size_t i = 0; i < count; i++) {
        samples[i] = (struct in_sample){ .ts = points[i].ts, .value = points[i].value };
        if (i && strcmp(points[i].name, points[i - 1].name) == 0) {
            series[n - 1].sample_count++;
            continue;
        }
        labels[n] = (struct qf_label){ QF_STR(QF_METRIC_NAME), qf_str_from(points[i].name) };
        series[n] = (struct in_record_series){ .number = (uint32_t)n,
                                               .fresh = true,
                                               .labels = { &labels[n], 1 },
                                               .samples = &samples[i],
                                               .sample_count = 1 };
        n++;
    }
    qf_strbuf_reset(&world->batch);
    in_record_put_samples(&world->batch, &record, series, n);
}

static enum in_intake_verdict take_batch(struct world *world)
{
    struct in_record batch;
    struct qf_err err = { 0 };

    CHECK_OK(in_record_decode_own(qf_strbuf_view(&world->batch), &batch, &err), &err);
    qf_strbuf_reset(&world->record);
    return in_intake_take(world->intake, world->ledger, &batch, world->wall, world->mono,
                          &world->record, &world->outcome, &world->pending);
}

static enum in_intake_verdict take(struct world *world, const char *key, const char *body,
                                   const struct point *points, size_t count)
{
    build(world, TENANT, key, body, points, count);
    return take_batch(world);
}

/* The record is in the log and applied. */
static enum in_verdict apply_record(struct world *world)
{
    struct qf_err err = { 0 };
    enum in_verdict verdict;

    CHECK_OK(in_record_decode(qf_strbuf_view(&world->record), &world->applied, &err), &err);
    verdict = in_ledger_apply(world->ledger, ++world->index, &world->applied, NULL);
    in_intake_applied(world->intake, &world->applied, verdict);
    return verdict;
}

static void apply(struct world *world)
{
    CHECK_EQ(apply_record(world), IN_APPLIED);
    in_intake_ended(world->intake, world->pending, QF_OK, &world->outcome);
}

static void write_points(struct world *world, const struct point *points, size_t count)
{
    CHECK_EQ(take(world, NULL, "", points, count), IN_INTAKE_RECORD);
    apply(world);
}

/* Numbers and whether they are fresh, as the last record has them: "0f 1" */
static const char *numbers(struct world *world)
{
    static char text[256];
    struct in_record_cursor cursor = in_record_series_of(&world->applied);
    struct in_raw_series series;
    size_t len = 0;

    text[0] = 0;
    while (in_record_next_raw_series(&cursor, &series))
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u%s", len ? " " : "",
                                series.number, series.fresh ? "f" : "");
    return text;
}

static void seal(struct world *world)
{
    qf_strbuf_reset(&world->record);
    world->pending = in_intake_seal(world->intake, world->ledger, TENANT, &world->record);
    CHECK(world->pending != NULL);
}

#define WRITE(world, ...)                                                                          \
    write_points(world, (const struct point[]){ __VA_ARGS__ },                                     \
                 sizeof((const struct point[]){ __VA_ARGS__ }) / sizeof(struct point))
#define TAKE(world, key, body, ...)                                                                \
    take(world, key, body, (const struct point[]){ __VA_ARGS__ },                                  \
         sizeof((const struct point[]){ __VA_ARGS__ }) / sizeof(struct point))

TEST(series_get_numbers_and_only_the_first_use_carries_labels)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    WRITE(&world, { "a", NOW, 1 }, { "b", NOW, 2 });
    CHECK_STR(numbers(&world), "0f 1f");
    WRITE(&world, { "b", NOW + 1, 1 }, { "c", NOW, 2 }, { "a", NOW + 1, 2 });
    CHECK_STR(numbers(&world), "1 2f 0");
    CHECK_EQ(world.outcome.accepted.samples, 3);
    CHECK_EQ(world.outcome.accepted.series, 3);
}

/* Behind a SEAL numbers start anew, with labels; if the SEAL is lost they do not collide. */
TEST(numbers_start_anew_behind_a_seal)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    WRITE(&world, { "a", NOW, 1 }, { "b", NOW, 2 });
    seal(&world);
    apply(&world);
    WRITE(&world, { "b", NOW + 1, 2 });
    CHECK_STR(numbers(&world), "0f");
    seal(&world);
    in_intake_ended(world.intake, world.pending, QF_ENOSPC, &world.outcome);
    WRITE(&world, { "c", NOW + 1, 2 }, { "b", NOW + 2, 2 });
    CHECK_STR(numbers(&world), "1f 2f"); /* 0 is b's in this range */
    seal(&world);
    CHECK(in_intake_seal(world.intake, world.ledger, TENANT, &world.record) == NULL);
}

/* A record that did not get into the log took its labels with it. */
TEST(labels_of_a_record_that_was_lost_are_told_again)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    WRITE(&world, { "a", NOW, 1 });
    CHECK_EQ(TAKE(&world, NULL, "", { "b", NOW, 1 }), IN_INTAKE_RECORD);
    in_intake_ended(world.intake, world.pending, QF_ENOSPC, &world.outcome);
    WRITE(&world, { "a", NOW + 1, 1 }, { "b", NOW + 1, 1 });
    CHECK_STR(numbers(&world), "2f 3f");
}

/* A new leader continues behind the numbers that the range has; labels come again. */
TEST(a_new_leader_reuses_no_number)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    WRITE(&world, { "a", NOW, 1 }, { "b", NOW, 2 });
    in_intake_end(world.intake);
    in_intake_begin(world.intake, world.ledger, world.wall, world.mono);
    WRITE(&world, { "b", NOW + 1, 1 });
    CHECK_STR(numbers(&world), "2f");
    /* A node that only read the log again knows them as well. */
    (void)in_intake_free(world.intake);
    world.intake = in_intake_new(&limits, world.quota, 8);
    in_intake_applied(world.intake, &world.applied, IN_APPLIED);
    in_intake_begin(world.intake, world.ledger, world.wall, world.mono);
    WRITE(&world, { "b", NOW + 2, 1 });
    CHECK_STR(numbers(&world), "3f");
}

/* The same key again: the answer of the first, also when some of it was refused then. */
TEST(a_repetition_is_told_what_was_told_before)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    WRITE(&world, { "a", NOW, 1 });
    CHECK_EQ(TAKE(&world, "k", "body", { "a", NOW, 2 }, { "b", NOW, 1 }), IN_INTAKE_RECORD);
    apply(&world);
    CHECK_EQ(world.outcome.refused.samples, 1);
    CHECK_EQ(TAKE(&world, "k", "body", { "a", NOW, 2 }, { "b", NOW, 1 }), IN_INTAKE_KNOWN);
    CHECK_EQ(world.outcome.refused.samples, 1);
    CHECK_EQ(world.outcome.accepted.samples, 1);
    CHECK(world.outcome.first[0] != 0);
    CHECK_EQ(TAKE(&world, "k", "another", { "a", NOW, 3 }), IN_INTAKE_OTHER);
    CHECK_EQ(TAKE(&world, NULL, "", { "a", NOW + 5, 3 }), IN_INTAKE_RECORD);
    in_intake_ended(world.intake, world.pending, QF_ENOSPC, &world.outcome);
}

/* A repetition of what is under way waits for it; when that came to nothing it is written. */
TEST(a_repetition_waits_for_the_first)
{
    QF_CLEANUP(world_done) struct world world;
    struct in_pending *first;

    begin(&world);
    CHECK_EQ(TAKE(&world, "k", "body", { "a", NOW, 1 }), IN_INTAKE_RECORD);
    first = world.pending;
    CHECK_EQ(TAKE(&world, "k", "body", { "a", NOW, 1 }), IN_INTAKE_WAIT);
    in_intake_ended(world.intake, first, QF_ENOSPC, &world.outcome);
    CHECK_EQ(TAKE(&world, "k", "body", { "a", NOW, 1 }), IN_INTAKE_RECORD);
    apply(&world);
    CHECK_EQ(TAKE(&world, "k", "body", { "a", NOW, 1 }), IN_INTAKE_KNOWN);
}

/* After ten minutes of record time a key is forgotten, whatever the calendar did. */
TEST(keys_get_old_with_the_clock_that_never_goes_back)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    CHECK_EQ(TAKE(&world, "k", "body", { "a", NOW, 1 }), IN_INTAKE_RECORD);
    apply(&world);
    world.wall -= 24 * HOUR; /* somebody set it */
    for (int minute = 0; minute < 11; minute++) {
        world.mono += 60000;
        WRITE(&world, { "b", NOW, 1 });
    }
    CHECK_EQ(world.applied.time_ms, NOW + 11 * 60000);
    CHECK_EQ(TAKE(&world, "k", "body", { "a", NOW, 1 }), IN_INTAKE_RECORD);
    apply(&world);
}

/* A leader whose calendar is behind goes on from the time of the log. */
TEST(record_time_never_goes_back_with_another_leader)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    WRITE(&world, { "a", NOW, 1 });
    in_intake_end(world.intake);
    world.wall -= 5 * HOUR;
    in_intake_begin(world.intake, world.ledger, world.wall, world.mono);
    world.mono += 250;
    WRITE(&world, { "a", NOW + 1, 1 });
    CHECK_EQ(world.applied.time_ms, NOW + 250);
}

TEST(what_is_too_old_or_too_new_is_refused)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    WRITE(&world, { "a", NOW, 1 });
    WRITE(&world, { "b", NOW - 2 * HOUR, 1 });
    CHECK_EQ(TAKE(&world, NULL, "", { "b", NOW - 2 * HOUR - 1, 1 }), IN_INTAKE_NOTHING);
    CHECK_EQ(world.outcome.refused.samples, 1);
    CHECK(strstr(world.outcome.first, "out of order") && strstr(world.outcome.first, "\"b\""));
    CHECK_EQ(TAKE(&world, NULL, "", { "a", NOW + 600001, 1 }), IN_INTAKE_NOTHING);
    CHECK(strstr(world.outcome.first, "future") != NULL);
    WRITE(&world, { "a", NOW + 600000, 1 });
    /* The window is that of the whole request, not of the samples before it. */
    WRITE(&world, { "c", NOW + 600000, 1 }, { "d", NOW + 600000 - 2 * HOUR, 1 });
    CHECK_EQ(world.outcome.accepted.samples, 2);
    /* The rest of a request is written. */
    WRITE(&world, { "c", NOW - 3 * HOUR, 1 }, { "e", NOW, 1 });
    CHECK_EQ(world.outcome.accepted.samples, 1);
    CHECK_EQ(world.outcome.refused.samples, 1);
}

TEST(another_value_at_the_latest_time_is_refused)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    WRITE(&world, { "a", NOW, 1 });
    WRITE(&world, { "a", NOW, 1 }); /* the same is fine */
    CHECK_EQ(TAKE(&world, NULL, "", { "a", NOW, 2 }), IN_INTAKE_NOTHING);
    CHECK(strstr(world.outcome.first, "duplicate sample for timestamp") != NULL);
    WRITE(&world, { "a", NOW - 1, 7 }); /* before the latest nobody knows */
    CHECK_EQ(TAKE(&world, NULL, "", { "b", NOW, 1 }, { "b", NOW, 3 }), IN_INTAKE_RECORD);
    CHECK_EQ(world.outcome.refused.samples, 1);
    apply(&world);
}

/* From its proposal on nothing below a floor is taken, and none is proposed above what waits. */
TEST(a_floor_is_below_all_that_is_not_sealed)
{
    QF_CLEANUP(world_done) struct world world;
    struct in_pending *samples;

    begin(&world);
    CHECK_EQ(TAKE(&world, NULL, "", { "a", NOW, 1 }), IN_INTAKE_RECORD);
    samples = world.pending;
    CHECK(in_intake_floor(world.intake, world.ledger, NOW + 1, &world.batch) == NULL);
    world.pending = samples;
    apply(&world);
    CHECK(in_intake_floor(world.intake, world.ledger, NOW + 1, &world.record) == NULL);
    qf_strbuf_reset(&world.record);
    world.pending = in_intake_floor(world.intake, world.ledger, NOW - HOUR, &world.record);
    CHECK(world.pending != NULL);
    samples = world.pending;
    /* Under way: older samples are refused already. */
    build(&world, TENANT, NULL, "", (const struct point[]){ { "a", NOW - HOUR - 1, 1 } }, 1);
    {
        struct qf_strbuf kept = world.record;

        world.record = (struct qf_strbuf)QF_STRBUF_INIT;
        CHECK_EQ(take_batch(&world), IN_INTAKE_NOTHING);
        qf_strbuf_done(&world.record);
        world.record = kept;
    }
    world.pending = samples;
    apply(&world);
    CHECK_EQ(in_ledger_floor(world.ledger), NOW - HOUR);
    CHECK(in_intake_floor(world.intake, world.ledger, NOW - HOUR, &world.record) == NULL);
}

/* Too many series of a tenant: the rest is written, the sender may try again and is looked at anew. */
static uint64_t settle(struct world *world, uint64_t generation)
{
    struct in_record wanted = { .kind = IN_BELOW, .tenant = TENANT, .generation = generation };
    uint64_t settled;

    qf_strbuf_reset(&world->record);
    world->pending = in_intake_below(world->intake, world->ledger, &wanted, world->wall,
                                     world->mono, &world->record, &settled);
    return settled;
}

TEST(as_much_is_settled_as_can_be)
{
    const struct point point = { "x", NOW, 1 };
    uint64_t now = (uint64_t)NOW * 1000;
    struct world world;

    begin(&world);
    /* A tenant that was never heard of; and never ahead of the clock. */
    CHECK_EQ(settle(&world, now + 5000), now - 1);
    CHECK_EQ(in_pending_settles(world.pending), now - 1);
    apply(&world);
    CHECK_EQ(settle(&world, now - 1), now - 1); /* again: nothing is written */
    CHECK(!world.pending && !world.record.len);
    write_points(&world, &point, 1);
    world.wall += HOUR;
    CHECK_EQ(settle(&world, now + 1000000), now - 1); /* up to the open range */
    CHECK(!world.pending);
    CHECK_EQ(settle(&world, 17), 17);
    CHECK(!world.pending);
    CHECK_EQ(settle(&world, 0), 0);
    CHECK(!world.pending);
    world_done(&world);
}

/* A range that opens between the question and its record: it counts for nothing, and is asked again. */
TEST(what_a_range_under_way_is_below_of_is_not_settled)
{
    const struct point point = { "x", NOW, 1 };
    struct in_pending *opens;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf first = QF_STRBUF_INIT;
    struct world world;

    begin(&world);
    CHECK_EQ(take(&world, NULL, "", &point, 1), IN_INTAKE_RECORD);
    opens = world.pending;
    qf_strbuf_str(&first, qf_strbuf_view(&world.record));
    world.wall += 10;
    world.mono += 10;
    CHECK_EQ(settle(&world, UINT64_MAX), (uint64_t)(NOW + 10) * 1000 - 1);
    CHECK_EQ(in_record_decode(qf_strbuf_view(&first), &world.applied, NULL), QF_OK);
    CHECK_EQ(in_ledger_apply(world.ledger, ++world.index, &world.applied, NULL), IN_APPLIED);
    in_intake_ended(world.intake, opens, QF_OK, &world.outcome);
    CHECK_EQ(apply_record(&world), IN_OUT_OF_TURN);
    in_intake_ended(world.intake, world.pending, QF_OK, &world.outcome);
    CHECK_EQ(settle(&world, UINT64_MAX), (uint64_t)NOW * 1000 - 1);
    apply(&world);
    world_done(&world);
}

TEST(a_tenant_has_so_many_series_and_no_more)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    limit(&world, QF_LIMIT_SERIES, 2);
    CHECK_EQ(TAKE(&world, "k", "b", { "a", NOW, 1 }, { "b", NOW, 1 }, { "c", NOW, 1 }),
             IN_INTAKE_RECORD);
    CHECK(world.outcome.limited);
    CHECK_EQ(world.outcome.accepted.samples, 2);
    apply(&world);
    CHECK(!world.applied.key.given);
    CHECK_STR(world.outcome.first,
              "the tenant has too many series: 2 active, its limit series=2; most are of a 1, b 1");
    limit(&world, QF_LIMIT_SERIES, 3);
    CHECK_EQ(TAKE(&world, "k", "b", { "a", NOW, 1 }, { "c", NOW, 1 }), IN_INTAKE_RECORD);
    CHECK(!world.outcome.limited);
    apply(&world);
}

/* Ranges come and go: whoever was there first stays, until it is idle. */
TEST(series_are_active_over_ranges_until_they_are_idle)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    limit(&world, QF_LIMIT_SERIES, 2);
    WRITE(&world, { "a", NOW, 1 }, { "b", NOW, 1 });
    seal(&world);
    apply(&world);
    CHECK_EQ(in_intake_active(world.intake), 2);
    CHECK_EQ(in_intake_series(world.intake), 0);
    CHECK_EQ(TAKE(&world, NULL, "", { "c", NOW, 1 }), IN_INTAKE_NOTHING);
    CHECK(world.outcome.limited);
    world.mono += 400000;
    WRITE(&world, { "a", NOW + 1, 1 });
    CHECK_STR(numbers(&world), "0f");
    world.mono += 300000;
    for (int i = 0; i < 600; i++)
        in_intake_tick(world.intake, world.mono);
    CHECK_EQ(in_intake_active(world.intake), 1);
    CHECK_EQ(TAKE(&world, NULL, "", { "a", NOW + 2, 1 }, { "c", NOW, 1 }, { "d", NOW, 1 }),
             IN_INTAKE_RECORD);
    CHECK_EQ(world.outcome.accepted.samples, 2);
    apply(&world);
    CHECK_STR(numbers(&world), "0 1f");
}

/* What a range was told at the same time counts for nothing in the next one. */
TEST(another_range_may_say_something_else)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    WRITE(&world, { "a", NOW, 1 });
    seal(&world);
    apply(&world);
    WRITE(&world, { "a", NOW, 2 });
    CHECK_EQ(world.outcome.refused.samples, 0);
}

/* Who leads no more gives all back. */
TEST(series_of_a_leadership_that_ended_are_not_counted)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    limit(&world, QF_LIMIT_SERIES, 2);
    WRITE(&world, { "a", NOW, 1 }, { "b", NOW, 1 });
    in_intake_end(world.intake);
    CHECK_EQ(in_usage_series(in_quota_usage(world.quota, TENANT)), 0);
    in_intake_begin(world.intake, world.ledger, world.wall, world.mono);
    WRITE(&world, { "b", NOW + 1, 1 }, { "c", NOW, 1 });
    CHECK(!world.outcome.limited);
}

TEST(a_tenant_sends_so_much_a_second_and_no_more)
{
    QF_CLEANUP(world_done) struct world world;

    begin(&world);
    limit(&world, QF_LIMIT_SAMPLES_RATE, 1);
    WRITE(&world, { "a", NOW, 1 }, { "b", NOW, 1 });
    CHECK_EQ(TAKE(&world, NULL, "", { "a", NOW + 1, 1 }), IN_INTAKE_NOTHING);
    CHECK(world.outcome.limited);
    CHECK_EQ(world.outcome.wait_ms, 1000);
    CHECK_EQ(world.outcome.limited_by[QF_LIMIT_SAMPLES_RATE - QF_LIMIT_WRITE_FIRST], 1);
    world.mono += 1000;
    WRITE(&world, { "a", NOW + 1, 1 });
}

static enum in_intake_verdict take_extras(struct world *world, struct qf_strbuf *extras)
{
    const struct in_record record = { .tenant = TENANT, .extras = qf_strbuf_view(extras) };

    qf_strbuf_reset(&world->batch);
    in_record_put_samples(&world->batch, &record, NULL, 0);
    return take_batch(world);
}

/* Metadata are written once per range, exemplars always, also without samples. */
TEST(metadata_are_told_once_per_range)
{
    QF_CLEANUP(world_done) struct world world;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf about = QF_STRBUF_INIT, exemplar = QF_STRBUF_INIT;
    struct qf_label name = { QF_STR(QF_METRIC_NAME), QF_STR("a") };
    struct in_metadata metadata = { QF_STR("a"), QF_METRIC_COUNTER, QF_STR("help"), QF_STR("") };

    begin(&world);
    in_extra_put_metadata(&about, &metadata);
    in_extra_put_exemplar(&exemplar, (struct qf_labels){ &name, 1 },
                          &(struct in_exemplar){ .ts = NOW });
    CHECK_EQ(take_extras(&world, &about), IN_INTAKE_RECORD);
    apply(&world);
    CHECK(qf_str_eq(world.applied.extras, qf_strbuf_view(&about)));
    CHECK_EQ(take_extras(&world, &about), IN_INTAKE_NOTHING);
    CHECK_EQ(world.outcome.first[0], 0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(take_extras(&world, &exemplar), IN_INTAKE_RECORD);
        CHECK_EQ(world.outcome.accepted.exemplars, 1);
        apply(&world);
    }
    seal(&world);
    apply(&world);
    CHECK_EQ(take_extras(&world, &about), IN_INTAKE_RECORD);
    apply(&world);
    qf_strbuf_reset(&about);
    metadata.help = QF_STR("another help");
    in_extra_put_metadata(&about, &metadata);
    CHECK_EQ(take_extras(&world, &about), IN_INTAKE_RECORD);
    apply(&world);
    qf_strbuf_reset(&exemplar);
    in_extra_put_exemplar(&exemplar, (struct qf_labels){ &name, 1 },
                          &(struct in_exemplar){ .ts = NOW + HOUR });
    CHECK_EQ(take_extras(&world, &exemplar), IN_INTAKE_NOTHING);
    CHECK_EQ(world.outcome.refused.exemplars, 1);
}

TEST(ranges_are_sealed_by_age_and_by_size)
{
    QF_CLEANUP(world_done) struct world world;
    struct qf_str tenant;
    size_t i = 0;

    begin(&world);
    WRITE(&world, { "a", NOW, 1 });
    CHECK(!in_intake_due(world.intake, &i, world.mono + 299999, 300000, 1 << 20, &tenant));
    i = 0;
    CHECK(in_intake_due(world.intake, &i, world.mono + 300000, 300000, 1 << 20, &tenant));
    CHECK(qf_str_eq(tenant, TENANT));
    CHECK(!in_intake_due(world.intake, &i, world.mono + 300000, 300000, 1 << 20, &tenant));
    i = 0;
    CHECK(in_intake_due(world.intake, &i, world.mono, 300000, 10, &tenant));
    seal(&world);
    i = 0;
    CHECK(!in_intake_due(world.intake, &i, world.mono + 300000, 300000, 10, &tenant));
    apply(&world);
    CHECK(!in_intake_due(world.intake, &i, world.mono + 300000, 300000, 10, &tenant));
}

/* Bytes of another node that are no request write nothing and leave nothing half done. */
TEST(a_malformed_batch_is_refused_whole)
{
    QF_CLEANUP(world_done) struct world world;
    struct qf_prng prng = { 3 };

    begin(&world);
    WRITE(&world, { "a", NOW, 1 });
    for (int i = 0; i < 2000; i++) {
        struct in_record batch;
        enum in_intake_verdict verdict;

        build(&world, TENANT, NULL, "",
              (const struct point[]){ { "a", NOW + 1, 1 }, { "zz", NOW, 1 } }, 2);
        world.batch.data[20 + qf_prng_next(&prng) % (world.batch.len - 20)] ^=
            (char)(1 << qf_prng_next(&prng) % 8);
        if (in_record_decode_own(qf_strbuf_view(&world.batch), &batch, NULL) != QF_OK)
            continue;
        qf_strbuf_reset(&world.record);
        verdict = in_intake_take(world.intake, world.ledger, &batch, world.wall, world.mono,
                                 &world.record, &world.outcome, &world.pending);
        if (verdict ==
            IN_INTAKE_RECORD) /* it is a request, if another one: then it can be applied */
            apply(&world);
    }
}

/* Whatever leaders do and lose: a number of a range has one series, and labels come before use. */
TEST(numbers_mean_one_series_whatever_is_lost)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        QF_CLEANUP(world_done) struct world world;
        struct qf_prng prng = { seed };
        char of[4096] = { 0 }; /* number to series */

        begin(&world);
        for (int step = 0; step < 60; step++) {
            char name[2] = { (char)('a' + qf_prng_next(&prng) % 6), 0 };
            uint64_t what = qf_prng_next(&prng) % 10;

            if (what == 0) {
                in_intake_end(world.intake);
                in_intake_begin(world.intake, world.ledger, world.wall, world.mono);
                continue;
            }
            qf_strbuf_reset(&world.record);
            if (what == 1) {
                world.pending = in_intake_seal(world.intake, world.ledger, TENANT, &world.record);
                if (!world.pending)
                    continue;
            } else if (TAKE(&world, NULL, "", { name, NOW + step, 1 }) != IN_INTAKE_RECORD) {
                continue;
            }
            if (qf_prng_next(&prng) % 4 == 0) {
                in_intake_ended(world.intake, world.pending, QF_EBUSY, &world.outcome);
                continue;
            }
            apply(&world);
            if (what == 1) {
                memset(of, 0, sizeof(of));
            } else {
                struct in_record_cursor cursor = in_record_series_of(&world.applied);
                struct in_raw_series series;

                CHECK(in_record_next_raw_series(&cursor, &series));
                CHECK(series.number < sizeof(of));
                if (series.fresh) {
                    CHECK_EQ(of[series.number], 0);
                    of[series.number] = name[0];
                }
                CHECK_EQ(of[series.number], name[0]);
            }
        }
    }
}
