#include "ingest/core/ledger.h"

#include <stdio.h>

#include "base/pure/prng.h"
#include "tests/lib/test.h"

/* --- records, as whoever proposes them makes them --- */

static struct in_record samples(const char *tenant, int64_t time_ms, int64_t min_ts, int64_t max_ts)
{
    return (struct in_record){ .kind = IN_SAMPLES,
                               .tenant = qf_str_from(tenant),
                               .time_ms = time_ms,
                               .sample_count = 2,
                               .min_ts = min_ts,
                               .max_ts = max_ts };
}

static struct in_record with_key(struct in_record record, char key, char body)
{
    record.key.given = true;
    record.key.key[0] = (uint8_t)key;
    record.key.body[0] = (uint8_t)body;
    return record;
}

static struct in_record seal(const char *tenant, uint64_t generation)
{
    return (struct in_record){ .kind = IN_SEAL,
                               .tenant = qf_str_from(tenant),
                               .generation = generation };
}

static struct in_record below(const char *tenant, uint64_t generation, int64_t time_ms)
{
    return (struct in_record){ .kind = IN_BELOW,
                               .tenant = qf_str_from(tenant),
                               .generation = generation,
                               .time_ms = time_ms,
                               .keep_ms = UINT64_MAX };
}

static struct in_record elect(const char *tenant, const char *cluster, const char *replica,
                              int64_t newest_ts, int64_t time_ms)
{
    return (struct in_record){ .kind = IN_ELECT,
                               .tenant = qf_str_from(tenant),
                               .cluster = qf_str_from(cluster),
                               .replica = qf_str_from(replica),
                               .newest_ts = newest_ts,
                               .time_ms = time_ms };
}

/* Decoded from its bytes, which @buf keeps. */
static struct in_record sealed(struct qf_strbuf *buf, const char *tenant, uint64_t from,
                               uint64_t to, uint32_t file_count)
{
    static struct in_sealed_file files[IN_RECENT_FILES_MAX + 1];
    struct in_record record;

    for (uint32_t i = 0; i < file_count; i++)
        files[i] = (struct in_sealed_file){ QF_STR("day/file"), QF_STR("tag"), i };
    qf_strbuf_reset(buf);
    in_record_put_sealed(buf, qf_str_from(tenant), from, to, files, file_count);
    CHECK_EQ(in_record_decode(qf_strbuf_view(buf), &record, NULL), QF_OK);
    return record;
}

static enum in_verdict apply(struct in_ledger *ledger, uint64_t index, struct in_record record)
{
    return in_ledger_apply(ledger, index, &record, NULL);
}

/* --- ranges --- */

TEST(a_range_opens_closes_and_is_sealed)
{
    struct in_ledger *ledger = in_ledger_new();
    struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct in_tenant *tenant;

    CHECK_EQ(apply(ledger, 5, samples("t", 1000, 10, 20)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 6, samples("t", 1001, 5, 15)), IN_APPLIED);
    tenant = in_ledger_tenant(ledger, QF_STR("t"));
    CHECK(in_tenant_open(tenant)->from == 5 && in_tenant_open(tenant)->generation == 1000000);
    CHECK(in_tenant_open(tenant)->min_ts == 5 && in_tenant_open(tenant)->max_ts == 20);
    CHECK(!in_tenant_next_to_seal(tenant) && in_ledger_needed_from(ledger) == 5);
    CHECK_EQ(apply(ledger, 7, seal("t", 0)), IN_APPLIED);
    CHECK(!in_tenant_open(tenant) && in_tenant_next_to_seal(tenant)->to == 7);
    CHECK_EQ(apply(ledger, 8, samples("t", 1001, 30, 30)), IN_APPLIED);
    CHECK(in_tenant_open(tenant)->from == 8 && in_tenant_open(tenant)->generation == 1001000);
    CHECK_EQ(apply(ledger, 9, sealed(&buf, "t", 5, 7, 2)), IN_APPLIED);
    CHECK(tenant->sealed == 7 && tenant->range_count == 1 && tenant->file_count == 2);
    CHECK(in_ledger_needed_from(ledger) == 8 && in_ledger_applied(ledger) == 9);
    CHECK_STR(tenant->files[1].name, "day/file");
    (void)in_ledger_free(ledger);
    qf_strbuf_done(&buf);
}

TEST(generations_grow_though_the_clock_goes_back)
{
    struct in_ledger *ledger = in_ledger_new();
    const struct in_tenant *tenant;

    CHECK_EQ(apply(ledger, 1, samples("t", 5000, 1, 1)), IN_APPLIED);
    tenant = in_ledger_tenant(ledger, QF_STR("t"));
    CHECK(tenant->generation == 5000000);
    CHECK_EQ(apply(ledger, 2, seal("t", 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 3, samples("t", 1, 1, 1)), IN_APPLIED);
    CHECK(tenant->generation == 5000001 && in_ledger_time(ledger) == 5000);
    CHECK_EQ(apply(ledger, 4, seal("t", 7000000)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 5, samples("t", 1, 1, 1)), IN_APPLIED);
    CHECK(tenant->generation == 7000000);
    CHECK_EQ(apply(ledger, 6, seal("t", IN_GENERATION_MAX + 1)), IN_OUT_OF_TURN);
    (void)in_ledger_free(ledger);
}

TEST(only_the_oldest_range_is_sealed_and_only_once)
{
    struct in_ledger *ledger = in_ledger_new();
    struct qf_strbuf buf = QF_STRBUF_INIT;

    CHECK_EQ(apply(ledger, 1, seal("t", 0)), IN_OUT_OF_TURN);
    CHECK_EQ(apply(ledger, 2, samples("t", 1, 1, 1)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 3, sealed(&buf, "t", 2, 3, 0)), IN_OUT_OF_TURN); /* still open */
    CHECK_EQ(apply(ledger, 4, seal("t", 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 5, seal("t", 0)), IN_OUT_OF_TURN);
    CHECK_EQ(apply(ledger, 6, samples("t", 1, 1, 1)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 7, seal("t", 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 8, sealed(&buf, "t", 6, 7, 0)), IN_OUT_OF_TURN); /* not the oldest */
    CHECK_EQ(apply(ledger, 9, sealed(&buf, "t", 2, 5, 0)), IN_OUT_OF_TURN); /* another end */
    CHECK_EQ(apply(ledger, 10, sealed(&buf, "u", 2, 4, 0)), IN_OUT_OF_TURN);
    CHECK_EQ(apply(ledger, 11, sealed(&buf, "t", 2, 4, 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 12, sealed(&buf, "t", 2, 4, 0)), IN_OUT_OF_TURN); /* again */
    (void)in_ledger_free(ledger);
    qf_strbuf_done(&buf);
}

TEST(tenants_do_not_hold_each_other)
{
    struct in_ledger *ledger = in_ledger_new();
    struct qf_strbuf buf = QF_STRBUF_INIT;

    CHECK_EQ(apply(ledger, 1, samples("a", 1, 1, 1)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 2, samples("b", 1, 1, 1)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 3, seal("a", 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 4, sealed(&buf, "a", 1, 3, 1)), IN_APPLIED);
    CHECK(in_ledger_needed_from(ledger) == 2);
    CHECK_EQ(apply(ledger, 5, seal("b", 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 6, sealed(&buf, "b", 2, 5, 1)), IN_APPLIED);
    CHECK(in_ledger_needed_from(ledger) == 7);
    (void)in_ledger_free(ledger);
    qf_strbuf_done(&buf);
}

TEST(ranges_that_cannot_be_sealed_are_bounded)
{
    struct in_ledger *ledger = in_ledger_new();
    uint64_t index = 1;

    for (int i = 0; i < IN_RANGES_MAX; i++) {
        CHECK(in_ledger_room(ledger, QF_STR("t")));
        CHECK_EQ(apply(ledger, index++, samples("t", 1, 1, 1)), IN_APPLIED);
        CHECK(in_ledger_room(ledger, QF_STR("t")));
        CHECK_EQ(apply(ledger, index++, seal("t", 0)), IN_APPLIED);
    }
    CHECK(!in_ledger_room(ledger, QF_STR("t")) && in_ledger_room(ledger, QF_STR("u")));
    CHECK_EQ(apply(ledger, index, samples("t", 1, 1, 1)), IN_NO_ROOM);
    (void)in_ledger_free(ledger);
}

/* --- keys, floor, files --- */

TEST(a_request_sent_again_counts_once)
{
    struct in_ledger *ledger = in_ledger_new();
    struct in_record first = with_key(samples("t", 1000, 1, 1), 'k', 'b'), again = first;
    const struct in_key_entry *before;

    first.accepted.samples = 2;
    CHECK_EQ(apply(ledger, 1, first), IN_APPLIED);
    CHECK_EQ(in_ledger_apply(ledger, 2, &again, &before), IN_REPEATED);
    CHECK(before->index == 1 && before->accepted.samples == 2);
    CHECK_EQ(apply(ledger, 3, with_key(samples("t", 1000, 1, 1), 'k', 'c')), IN_OTHER_BODY);
    CHECK(in_tenant_open(in_ledger_tenant(ledger, QF_STR("t")))->samples == 2);
    CHECK_EQ(apply(ledger, 4, samples("t", 1000, 1, 1)), IN_APPLIED); /* without a key: anew */
    CHECK_EQ(apply(ledger, 5, samples("t", 1000, 1, 1)), IN_APPLIED);
    (void)in_ledger_free(ledger);
}

/* Records of others, so far apart that each counts in full. */
static uint64_t others_until(struct in_ledger *ledger, uint64_t index, int64_t from, int64_t until)
{
    for (int64_t at = from; at < until; at += IN_KEY_STEP_MS)
        CHECK_EQ(apply(ledger, index++, samples("t", at, 1, 1)), IN_APPLIED);
    return index;
}

TEST(keys_are_forgotten_after_their_time)
{
    struct in_ledger *ledger = in_ledger_new();
    struct in_record record = with_key(samples("t", 1000, 1, 1), 'k', 'b');
    uint64_t index;

    CHECK_EQ(apply(ledger, 1, record), IN_APPLIED);
    index = others_until(ledger, 2, 1000, 1000 + IN_KEY_LIFE_MS);
    record.time_ms = 1000 + IN_KEY_LIFE_MS;
    CHECK_EQ(apply(ledger, index, record), IN_REPEATED);
    record.time_ms++;
    CHECK_EQ(apply(ledger, index + 1, record), IN_APPLIED);
    CHECK(in_ledger_key(ledger, record.key.key)->index == index + 1);
    (void)in_ledger_free(ledger);
}

/* A leader whose calendar is days ahead: what was sent before and comes again is known. */
TEST(a_calendar_that_leaps_makes_no_key_old)
{
    struct in_ledger *ledger = in_ledger_new();
    struct in_record record = with_key(samples("t", 1000, 1, 1), 'k', 'b');
    int64_t day = INT64_C(24) * 60 * 60 * 1000;
    uint64_t index;

    CHECK_EQ(apply(ledger, 1, record), IN_APPLIED);
    CHECK_EQ(apply(ledger, 2, samples("t", 1000 + 3 * day, 1, 1)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 3, samples("t", INT64_MAX - day, 1, 1)), IN_APPLIED);
    record.time_ms = INT64_MAX - day;
    CHECK_EQ(apply(ledger, 4, record), IN_REPEATED);
    /* Two leaps were two of its minutes. */
    index = others_until(ledger, 5, INT64_MAX - day, INT64_MAX - day + IN_KEY_LIFE_MS);
    record.time_ms = INT64_MAX - day + IN_KEY_LIFE_MS;
    CHECK_EQ(apply(ledger, index, record), IN_APPLIED);
    (void)in_ledger_free(ledger);
}

TEST(the_oldest_keys_make_room)
{
    struct in_ledger *ledger = in_ledger_new();
    struct in_record record = with_key(samples("t", 1, 1, 1), 0, 0);

    for (uint32_t i = 0; i <= IN_KEYS_MAX; i++) {
        memcpy(record.key.key, &(uint32_t){ i * 2654435761u }, sizeof(uint32_t));
        CHECK_EQ(apply(ledger, i + 1, record), IN_APPLIED);
    }
    memset(record.key.key, 0, sizeof(record.key.key));
    CHECK(!in_ledger_key(ledger, record.key.key));
    memcpy(record.key.key, &(uint32_t){ 2654435761u }, sizeof(uint32_t));
    CHECK(in_ledger_key(ledger, record.key.key)->index == 2);
    (void)in_ledger_free(ledger);
}

TEST(the_floor_only_rises)
{
    struct in_ledger *ledger = in_ledger_new();
    struct in_record record = { .kind = IN_FLOOR, .floor_ms = 5 };

    CHECK(in_ledger_floor(ledger) == INT64_MIN);
    CHECK_EQ(apply(ledger, 1, record), IN_APPLIED);
    CHECK_EQ(apply(ledger, 2, record), IN_OUT_OF_TURN);
    record.floor_ms = 4;
    CHECK_EQ(apply(ledger, 3, record), IN_OUT_OF_TURN);
    CHECK(in_ledger_floor(ledger) == 5);
    (void)in_ledger_free(ledger);
}

/* What waits to be sealed is read again at a start, with the last floor: it must not be below it. */
TEST(a_floor_above_what_is_not_sealed_counts_for_nothing)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct in_ledger *ledger = in_ledger_new();
    struct in_record record = { .kind = IN_FLOOR, .floor_ms = 101 };

    CHECK_EQ(apply(ledger, 1, samples("t", 1000, 100, 200)), IN_APPLIED);
    CHECK_EQ(in_ledger_oldest(ledger), 100);
    CHECK_EQ(apply(ledger, 2, record), IN_OUT_OF_TURN);
    record.floor_ms = 100;
    CHECK_EQ(apply(ledger, 3, record), IN_APPLIED);
    CHECK_EQ(apply(ledger, 4, seal("t", 1)), IN_APPLIED);
    record.floor_ms = 101;
    CHECK_EQ(apply(ledger, 5, record), IN_OUT_OF_TURN);
    CHECK_EQ(apply(ledger, 6, sealed(&buf, "t", 1, 4, 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 7, record), IN_APPLIED);
    (void)in_ledger_free(ledger);
}

/* A leader whose calendar is days ahead would refuse all samples for as long. */
TEST(a_floor_is_behind_the_newest_sample_whatever_the_calendar_says)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct in_ledger *ledger = in_ledger_new();

    CHECK_EQ(in_ledger_floor_due(ledger, 9000, 1000), 8000); /* nothing to go by */
    CHECK_EQ(in_ledger_floor_due(ledger, INT64_MIN + 5, 1000), INT64_MIN);
    CHECK_EQ(apply(ledger, 1, samples("t", 1000, 2000, 5000)), IN_APPLIED);
    CHECK_EQ(in_ledger_floor_due(ledger, 9000, 1000), 2000);
    CHECK_EQ(apply(ledger, 2, seal("t", 1)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 3, sealed(&buf, "t", 1, 2, 0)), IN_APPLIED);
    CHECK_EQ(in_ledger_floor_due(ledger, 9000, 1000), 4000);
    CHECK_EQ(in_ledger_floor_due(ledger, 4500, 1000), 3500);
    (void)in_ledger_free(ledger);
}

/* A head that is built from the log again must skip what was skipped. */
TEST(what_counted_for_nothing_is_known_until_its_range_is_sealed)
{
    struct in_ledger *ledger = in_ledger_new(), *copy = NULL;
    struct qf_strbuf buf = QF_STRBUF_INIT, bytes = QF_STRBUF_INIT;
    const struct in_tenant *tenant;

    CHECK_EQ(apply(ledger, 3, with_key(samples("t", 1000, 10, 20), 'k', 'a')), IN_APPLIED);
    CHECK_EQ(apply(ledger, 4, with_key(samples("t", 1000, 10, 20), 'k', 'b')), IN_OTHER_BODY);
    CHECK_EQ(apply(ledger, 5, with_key(samples("t", 1000, 10, 20), 'k', 'a')), IN_REPEATED);
    CHECK_EQ(apply(ledger, 6, samples("t", 1000, 10, 20)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 7, seal("t", 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 8, samples("t", 1000, 10, 20)), IN_APPLIED);
    in_ledger_encode(&bytes, ledger);
    CHECK_EQ(in_ledger_decode(qf_strbuf_view(&bytes), &copy), QF_OK);
    CHECK(in_ledger_is_void(copy, 4) && in_ledger_is_void(copy, 5));
    CHECK(!in_ledger_is_void(copy, 3) && !in_ledger_is_void(copy, 6));
    tenant = in_ledger_tenant(copy, QF_STR("t"));
    CHECK(!in_tenant_range_at(tenant, 2) && in_tenant_range_at(tenant, 3)->from == 3);
    CHECK(in_tenant_range_at(tenant, 7)->from == 3 && in_tenant_range_at(tenant, 8)->from == 8);
    CHECK_EQ(apply(copy, 9, sealed(&buf, "t", 3, 7, 0)), IN_APPLIED);
    CHECK(!in_ledger_is_void(copy, 4) && !in_tenant_range_at(tenant, 7));
    (void)in_ledger_free(ledger);
    (void)in_ledger_free(copy);
    qf_strbuf_done(&buf);
    qf_strbuf_done(&bytes);
}

TEST(what_is_forgotten_of_sealed_files_is_known_to_be)
{
    struct in_ledger *ledger = in_ledger_new();
    struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct in_tenant *tenant;

    CHECK_EQ(apply(ledger, 1, samples("t", 1, 1, 1)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 2, seal("t", 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 3, sealed(&buf, "t", 1, 2, 3)), IN_APPLIED);
    tenant = in_ledger_tenant(ledger, QF_STR("t"));
    CHECK(tenant->file_count == 3 && tenant->files_after == 0);
    CHECK_EQ(apply(ledger, 4, samples("t", IN_FILE_LIFE_MS + 2, 1, 1)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 5, seal("t", 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 6, sealed(&buf, "t", 4, 5, 1)), IN_APPLIED);
    CHECK(tenant->file_count == 1 && tenant->files_after == 3);
    CHECK_EQ(apply(ledger, 7, samples("t", IN_FILE_LIFE_MS + 2, 1, 1)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 8, seal("t", 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 9, sealed(&buf, "t", 7, 8, IN_RECENT_FILES_MAX + 1)), IN_APPLIED);
    CHECK(tenant->file_count == 0 && tenant->files_after == 9);
    (void)in_ledger_free(ledger);
    qf_strbuf_done(&buf);
}

/* --- what compactors ask for --- */

/* A leader whose clock is hours behind opens a range above what was settled all the same. */
TEST(ranges_open_above_what_was_settled)
{
    struct in_ledger *ledger = in_ledger_new();
    const struct in_tenant *tenant;

    CHECK_EQ(apply(ledger, 1, below("t", 8999999, 9000)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 2, samples("t", 10, 1, 1)), IN_APPLIED);
    tenant = in_ledger_tenant(ledger, QF_STR("t"));
    CHECK(tenant->generation == 9000000);
    CHECK_EQ(apply(ledger, 3, seal("t", 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 4, samples("t", 9007, 1, 1)), IN_APPLIED);
    CHECK(tenant->generation == 9007000);
    (void)in_ledger_free(ledger);
}

TEST(nothing_is_settled_that_a_range_is_at_or_below)
{
    struct in_ledger *ledger = in_ledger_new();
    struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct in_tenant *tenant;

    CHECK_EQ(apply(ledger, 1, samples("t", 5, 1, 1)), IN_APPLIED);
    tenant = in_ledger_tenant(ledger, QF_STR("t"));
    CHECK(in_tenant_settled(tenant) == 4999);
    CHECK_EQ(apply(ledger, 2, below("t", 5000, 6)), IN_OUT_OF_TURN);
    CHECK(tenant->below == 0 && !in_ledger_knows_below(ledger));
    CHECK_EQ(apply(ledger, 3, below("t", 4999, 6)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 4, below("t", 4000, 6)), IN_APPLIED); /* less is settled as well */
    CHECK(tenant->below == 4999 && in_ledger_knows_below(ledger));
    CHECK_EQ(apply(ledger, 5, seal("t", 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 6, below("t", 5000, 6)), IN_OUT_OF_TURN); /* closed is not sealed */
    CHECK_EQ(apply(ledger, 7, sealed(&buf, "t", 1, 5, 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 8, below("t", 5000, 6)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 9, below("t", IN_GENERATION_MAX + 1, 6)), IN_OUT_OF_TURN);
    CHECK_EQ(apply(ledger, 10, below("u", 1, 6)), IN_APPLIED); /* a tenant that has nothing yet */
    CHECK(tenant->below == 5000);
    (void)in_ledger_free(ledger);
    qf_strbuf_done(&buf);
}

/* Imports have the second half of each millisecond (segments/write/claim.h). */
TEST(no_range_has_a_generation_that_an_import_may_have)
{
    struct in_ledger *ledger = in_ledger_new();
    struct qf_prng prng = { 3 };
    const struct in_tenant *tenant;
    uint64_t index = 1, before = 0;

    for (uint64_t g = 1; g < 3000; g++) {
        char name[8];

        (void)snprintf(name, sizeof(name), "t%u", (unsigned)g);
        CHECK_EQ(apply(ledger, index++, below(name, g, 1)), IN_APPLIED);
        CHECK_EQ(apply(ledger, index++, samples(name, 0, 1, 1)), IN_APPLIED);
        tenant = in_ledger_tenant(ledger, qf_str_from(name));
        CHECK(tenant->generation > g && tenant->generation % 1000 < 500);
    }
    /* A clock that stands: generations count up. */
    for (int i = 0; i < IN_RANGES_MAX; i++) {
        CHECK_EQ(apply(ledger, index++, samples("t", 1, 1, 1)), IN_APPLIED);
        tenant = in_ledger_tenant(ledger, QF_STR("t"));
        CHECK(tenant->generation > before && tenant->generation % 1000 < 500);
        before = tenant->generation;
        CHECK_EQ(apply(ledger, index++, seal("t", before + 1 + qf_prng_below(&prng, 900))),
                 IN_APPLIED);
    }
    (void)in_ledger_free(ledger);
}

/* What is merged and deleted behind it is not told of any more, also if nobody writes. */
TEST(files_of_long_ago_are_forgotten_when_something_is_settled)
{
    struct in_ledger *ledger = in_ledger_new();
    struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct in_tenant *tenant;
    struct in_record record;

    CHECK_EQ(apply(ledger, 1, samples("t", 1, 1, 1)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 2, seal("t", 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 3, sealed(&buf, "t", 1, 2, 3)), IN_APPLIED);
    tenant = in_ledger_tenant(ledger, QF_STR("t"));
    CHECK_EQ(apply(ledger, 4, below("t", 1000, IN_FILE_LIFE_MS)), IN_APPLIED);
    CHECK(tenant->file_count == 3);
    CHECK_EQ(apply(ledger, 5, below("t", 1000, IN_FILE_LIFE_MS + 2)), IN_APPLIED);
    CHECK(tenant->file_count == 0 && tenant->files_after == 3);
    /* Earlier, if they are deleted earlier. */
    CHECK_EQ(apply(ledger, 6, samples("t", IN_FILE_LIFE_MS + 2, 1, 1)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 7, seal("t", 0)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 8, sealed(&buf, "t", 6, 7, 2)), IN_APPLIED);
    record = below("t", 1000, IN_FILE_LIFE_MS + 1002);
    record.keep_ms = 1000;
    CHECK_EQ(apply(ledger, 9, record), IN_APPLIED);
    CHECK(tenant->file_count == 2);
    record.time_ms++;
    CHECK_EQ(apply(ledger, 10, record), IN_APPLIED);
    CHECK(tenant->file_count == 0 && tenant->files_after == 8);
    (void)in_ledger_free(ledger);
    qf_strbuf_done(&buf);
}

/* --- replicas --- */

TEST(a_cluster_of_senders_has_the_replica_that_was_elected_last)
{
    struct in_ledger *ledger = in_ledger_new();
    const struct in_elected *elected;

    CHECK_EQ(apply(ledger, 1, elect("t", "c", "r1", 100, 5)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 2, elect("t", "c", "r1", 90, 6)), IN_APPLIED);
    CHECK_EQ(apply(ledger, 3, elect("t", "d", "r2", 7, 7)), IN_APPLIED);
    elected = in_tenant_elected(in_ledger_tenant(ledger, QF_STR("t")), QF_STR("c"));
    CHECK_STR(elected->replica, "r1");
    CHECK(elected->newest_ts == 100 && elected->since_ms == 5 && elected->time_ms == 6);
    CHECK_EQ(apply(ledger, 4, elect("t", "c", "r2", 95, 8)), IN_APPLIED);
    elected = in_tenant_elected(in_ledger_tenant(ledger, QF_STR("t")), QF_STR("c"));
    CHECK_STR(elected->replica, "r2");
    CHECK(elected->newest_ts == 95 && elected->since_ms == 8 && elected->elections == 2);
    CHECK(!in_tenant_elected(in_ledger_tenant(ledger, QF_STR("t")), QF_STR("e")));
    CHECK_EQ(in_ledger_needed_from(ledger), 5); /* the log need not keep them */
    (void)in_ledger_free(ledger);
}

TEST(clusters_of_senders_are_bounded_and_idle_ones_make_room)
{
    struct in_ledger *ledger = in_ledger_new();
    char name[16];
    uint64_t index = 0;

    for (int i = 0; i < IN_ELECTED_MAX; i++) {
        CHECK(in_ledger_room_to_elect(ledger, QF_STR("t")));
        (void)snprintf(name, sizeof(name), "c%d", i);
        CHECK_EQ(apply(ledger, ++index, elect("t", name, "r", 1, 1 + i)), IN_APPLIED);
    }
    CHECK(!in_ledger_room_to_elect(ledger, QF_STR("t")));
    CHECK(in_ledger_room_to_elect(ledger, QF_STR("other")));
    CHECK_EQ(apply(ledger, ++index, elect("t", "more", "r", 1, 2000)), IN_NO_ROOM);
    CHECK_EQ(apply(ledger, ++index, elect("t", "more", "r", 1, IN_ELECTED_LIFE_MS + 2)),
             IN_APPLIED);
    CHECK(!in_tenant_elected(in_ledger_tenant(ledger, QF_STR("t")), QF_STR("c0")));
    CHECK(in_tenant_elected(in_ledger_tenant(ledger, QF_STR("t")), QF_STR("c1")));
    (void)in_ledger_free(ledger);
}

/* --- snapshots --- */

/* Nodes of an older release read it as long as nothing was settled, and refuse it from then on. */
TEST(a_snapshot_is_of_the_first_version_until_something_is_settled)
{
    struct in_ledger *ledger = in_ledger_new(), *copy = NULL;
    struct qf_strbuf bytes = QF_STRBUF_INIT;

    CHECK_EQ(apply(ledger, 1, samples("t", 5, 1, 1)), IN_APPLIED);
    in_ledger_encode(&bytes, ledger);
    CHECK(bytes.data[0] == 1);
    CHECK_EQ(apply(ledger, 2, below("t", 4000, 6)), IN_APPLIED);
    qf_strbuf_reset(&bytes);
    in_ledger_encode(&bytes, ledger);
    CHECK(bytes.data[0] == 2);
    CHECK_EQ(in_ledger_decode(qf_strbuf_view(&bytes), &copy), QF_OK);
    CHECK(in_ledger_tenant(copy, QF_STR("t"))->below == 4000);
    CHECK_EQ(apply(ledger, 3, elect("t", "c", "r1", 100, 5)), IN_APPLIED);
    qf_strbuf_reset(&bytes);
    in_ledger_encode(&bytes, ledger);
    CHECK(bytes.data[0] == 3);
    bytes.data[0] = 5; /* a newer release says so, instead of being taken for damage */
    CHECK_EQ(in_ledger_decode(qf_strbuf_view(&bytes), &copy), QF_EUNSUPPORTED);
    (void)in_ledger_free(ledger);
    (void)in_ledger_free(copy);
    qf_strbuf_done(&bytes);
}

static struct in_record any_record(struct qf_prng *prng, const struct in_ledger *ledger,
                                   struct qf_strbuf *buf)
{
    static const char *const names[] = { "a", "b", "c" };
    const char *name = names[qf_prng_below(prng, 3)];
    const struct in_tenant *tenant = in_ledger_tenant(ledger, qf_str_from(name));
    const struct in_range *range = tenant ? in_tenant_next_to_seal(tenant) : NULL;
    int64_t time_ms = (int64_t)qf_prng_below(prng, 2 * IN_FILE_LIFE_MS);
    int64_t ts = (int64_t)qf_prng_below(prng, 1000);

    switch (qf_prng_below(prng, 8)) {
    case 7:
        return elect(name, names[qf_prng_below(prng, 3)], names[qf_prng_below(prng, 3)], ts,
                     time_ms);
    case 6:
        return below(name, qf_prng_below(prng, 3000 * IN_FILE_LIFE_MS), time_ms);
    case 0:
        return seal(name, qf_prng_below(prng, 1000));
    case 1:
        return sealed(buf, name, range ? range->from : 1, range ? range->to : 2,
                      (uint32_t)qf_prng_below(prng, 5));
    case 2:
        return (struct in_record){ .kind = IN_FLOOR, .floor_ms = ts };
    case 3:
        return with_key(samples(name, time_ms, ts, ts + 5), (char)qf_prng_below(prng, 20),
                        (char)qf_prng_below(prng, 2));
    default:
        return samples(name, time_ms, ts, ts + 5);
    }
}

static void check_equal(const struct in_ledger *a, const struct in_ledger *b)
{
    struct qf_strbuf left = QF_STRBUF_INIT, right = QF_STRBUF_INIT;

    in_ledger_encode(&left, a);
    in_ledger_encode(&right, b);
    CHECK(qf_str_eq(qf_strbuf_view(&left), qf_strbuf_view(&right)));
    qf_strbuf_done(&left);
    qf_strbuf_done(&right);
}

/* A node that applies everything, and one that goes on from a snapshot again and again. */
TEST(a_snapshot_goes_on_like_the_ledger_it_was_made_of)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct in_ledger *one = in_ledger_new(), *other = in_ledger_new();
        struct qf_strbuf buf = QF_STRBUF_INIT, bytes = QF_STRBUF_INIT;
        struct qf_prng prng = { seed };

        for (uint64_t index = 1; index <= 200; index++) {
            struct in_record record = any_record(&prng, one, &buf);

            CHECK_EQ(apply(one, index, record), apply(other, index, record));
            if (qf_prng_below(&prng, 10) == 0) {
                qf_strbuf_reset(&bytes);
                in_ledger_encode(&bytes, other);
                other = in_ledger_free(other);
                CHECK_EQ(in_ledger_decode(qf_strbuf_view(&bytes), &other), QF_OK);
            }
            CHECK(in_ledger_needed_from(one) == in_ledger_needed_from(other));
        }
        check_equal(one, other);
        (void)in_ledger_free(one);
        (void)in_ledger_free(other);
        qf_strbuf_done(&buf);
        qf_strbuf_done(&bytes);
    }
}

TEST(snapshots_that_were_cut_are_refused)
{
    struct in_ledger *ledger = in_ledger_new(), *got = NULL;
    struct qf_strbuf buf = QF_STRBUF_INIT, bytes = QF_STRBUF_INIT;
    struct qf_prng prng = { 9 };

    for (uint64_t index = 1; index <= 60; index++)
        (void)apply(ledger, index, any_record(&prng, ledger, &buf));
    in_ledger_encode(&bytes, ledger);
    for (size_t len = 0; len < bytes.len; len++)
        CHECK_EQ(in_ledger_decode((struct qf_str){ bytes.data, len }, &got), QF_ECORRUPT);
    (void)in_ledger_free(ledger);
    qf_strbuf_done(&buf);
    qf_strbuf_done(&bytes);
}
