/* test_quota.c - what tenants may send: rates, active series, shares of nodes, the noisiest metrics. */
#include <stdio.h>

#include "base/pure/prng.h"
#include "ingest/core/quota.h"
#include "ingest/core/series_table.h"
#include "tests/lib/test.h"

#define RATE QF_LIMIT_SAMPLES_RATE
#define A QF_STR("a")

/* Tenant "a" may have what the test says, all others nothing that is limited. */
struct desk {
    struct in_quota *quota;
    struct qf_limits limits;
    enum qf_limit met;
    int64_t wait;
};

static struct qf_limits limits_of(void *ctx, struct qf_str tenant)
{
    return qf_str_is(tenant, "a") ? ((struct desk *)ctx)->limits : (struct qf_limits){ 0 };
}

static void open_desk(struct desk *desk)
{
    *desk = (struct desk){ .met = QF_LIMIT__COUNT };
    desk->quota = in_quota_new(limits_of, desk);
}

static void close_desk(struct desk *desk)
{
    CHECK(!in_quota_free(desk->quota));
}

static bool spend(struct desk *desk, const char *tenant, uint64_t samples, uint64_t bytes,
                  int64_t now)
{
    return in_usage_spend(in_quota_usage(desk->quota, qf_str_from(tenant)), samples, bytes, now,
                          &desk->met, &desk->wait);
}

TEST(a_bucket_holds_two_seconds_and_fills_with_time)
{
    QF_CLEANUP(close_desk) struct desk desk;

    open_desk(&desk);
    desk.limits.of[RATE] = 100;
    CHECK(spend(&desk, "a", 150, 0, 5000));
    CHECK(spend(&desk, "a", 50, 0, 5000));
    CHECK(!spend(&desk, "a", 1, 0, 5000));
    CHECK_EQ(desk.met, RATE);
    CHECK_EQ(desk.wait, 10);
    CHECK(!spend(&desk, "a", 100, 0, 5500));
    CHECK_EQ(desk.wait, 500);
    CHECK(spend(&desk, "a", 100, 0, 6000));
    CHECK(spend(&desk, "a", 200, 0, 3600000)); /* an hour fills it no further */
    CHECK(!spend(&desk, "a", 1, 0, 3600000));
    CHECK(!spend(&desk, "a", 1, 0, 1000)); /* nor does a clock that went back */
    CHECK(spend(&desk, "b", 1000000, 1000000, 5000));
}

/* Else it could never be sent. What it took beyond the bucket has to come in before the next one. */
TEST(a_request_larger_than_the_bucket_passes_when_it_is_full)
{
    QF_CLEANUP(close_desk) struct desk desk;

    open_desk(&desk);
    desk.limits.of[RATE] = 100;
    CHECK(spend(&desk, "a", 500, 0, 0));
    CHECK(!spend(&desk, "a", 500, 0, 3000));
    CHECK_EQ(desk.wait, 2000);
    CHECK(spend(&desk, "a", 500, 0, 5000));
}

TEST(who_is_refused_for_bytes_keeps_its_samples)
{
    QF_CLEANUP(close_desk) struct desk desk;

    open_desk(&desk);
    desk.limits.of[RATE] = 100;
    desk.limits.of[QF_LIMIT_BYTES_RATE] = 1000;
    CHECK(spend(&desk, "a", 1, 2000, 0));
    CHECK(!spend(&desk, "a", 199, 1000, 0));
    CHECK_EQ(desk.met, QF_LIMIT_BYTES_RATE);
    CHECK_EQ(desk.wait, 1000);
    CHECK(spend(&desk, "a", 199, 0, 0));
}

/* Three nodes that lead 2, 1 and 1 of four partitions give out what one node would, and no more. */
TEST(nodes_share_a_limit_by_what_they_lead)
{
    const uint32_t led[] = { 2, 1, 1 };
    uint64_t samples = 0, series = 0;

    for (size_t i = 0; i < QF_COUNT_OF(led); i++) {
        QF_CLEANUP(close_desk) struct desk desk;
        struct in_usage *usage;

        open_desk(&desk);
        desk.limits.of[RATE] = 100;
        desk.limits.of[QF_LIMIT_SERIES] = 40;
        in_quota_share(desk.quota, led[i], 4);
        usage = in_quota_usage(desk.quota, A);
        while (spend(&desk, "a", 1, 0, 1000))
            samples++;
        while (in_usage_has_room(usage)) {
            (void)in_usage_add(usage, A);
            series++;
        }
    }
    CHECK_EQ(samples, 200);
    CHECK_EQ(series, 40);
}

TEST(limits_are_asked_for_again_when_they_may_be_others)
{
    QF_CLEANUP(close_desk) struct desk desk;
    struct in_usage *usage;

    open_desk(&desk);
    desk.limits.of[QF_LIMIT_SERIES] = 1;
    usage = in_quota_usage(desk.quota, A);
    (void)in_usage_add(usage, A);
    CHECK(!in_usage_has_room(usage));
    desk.limits.of[QF_LIMIT_SERIES] = 2;
    CHECK(!in_usage_has_room(usage));
    in_quota_renew(desk.quota);
    CHECK(in_usage_has_room(usage));
}

TEST(the_ten_noisiest_metrics_are_named_most_first)
{
    QF_CLEANUP(close_desk) struct desk desk;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct in_usage *usage;
    uint32_t gone;
    char name[8];

    open_desk(&desk);
    desk.limits.of[QF_LIMIT_SERIES] = 70;
    usage = in_quota_usage(desk.quota, A);
    for (int i = 1; i <= 11; i++) {
        (void)snprintf(name, sizeof(name), "m%02d", i);
        for (int n = 0; n < i; n++)
            gone = in_usage_add(usage, qf_str_from(name));
    }
    in_usage_remove(usage, gone);
    in_usage_explain(usage, 511, &text);
    CHECK_STR(qf_strbuf_cstr(&text),
              "the tenant has too many series: 65 active, its limit series=70; most are of m10 10, "
              "m11 10, m09 9, m08 8, m07 7, m06 6, m05 5, m04 4, m03 3, m02 2");
    qf_strbuf_reset(&text);
    in_usage_explain(usage, 94, &text); /* what does not fit whole is left out */
    CHECK_STR(qf_strbuf_cstr(&text),
              "the tenant has too many series: 65 active, its limit series=70; most are of m10 10, "
              "m11 10");
}

/* Names of any bytes stay text, and long ones leave room for others. */
TEST(names_in_a_message_are_short_and_text)
{
    QF_CLEANUP(close_desk) struct desk desk;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct in_usage *usage;
    char name[101] = { 0 };

    open_desk(&desk);
    usage = in_quota_usage(desk.quota, A);
    memset(name, 'n', 100);
    name[0] = '\n';
    (void)in_usage_add(usage, qf_str_from(name));
    in_usage_explain(usage, 511, &text);
    CHECK(strstr(qf_strbuf_cstr(&text), "; most are of ?nnn"));
    CHECK(strstr(qf_strbuf_cstr(&text), "n... 1"));
    CHECK(text.len < 150);
}

/* Names that come and go find room again; those that stay keep their numbers. */
TEST(places_of_metrics_without_series_are_used_again)
{
    struct in_metric_counts counts = { 0 };
    const struct in_metric_count *top[2];
    uint32_t stays = in_metric_counts_add(&counts, QF_STR("stays"));
    char name[16];

    for (int i = 0; i < 3 * IN_METRICS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "m%d", i);
        in_metric_counts_remove(&counts, in_metric_counts_add(&counts, qf_str_from(name)));
    }
    CHECK(counts.places.count < 4096);
    CHECK_EQ(in_metric_counts_add(&counts, QF_STR("stays")), stays);
    CHECK_EQ(in_metric_counts_top(&counts, 2, top), 1);
    CHECK_EQ(top[0]->series, 2);
    in_metric_counts_done(&counts);
}

TEST(series_of_too_many_metrics_are_counted_together)
{
    struct in_metric_counts counts = { 0 };
    char name[16];

    for (int i = 0; i < IN_METRICS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "m%d", i);
        CHECK(in_metric_counts_add(&counts, qf_str_from(name)) != 0);
    }
    CHECK_EQ(in_metric_counts_add(&counts, QF_STR("more")), 0);
    CHECK(in_metric_counts_add(&counts, QF_STR("m7")) != 0);
    in_metric_counts_remove(&counts, 0);
    in_metric_counts_done(&counts);
}

static void count_gone(void *ctx, const struct in_known_series *series)
{
    (void)series;
    ++*(uint32_t *)ctx;
}

/* Against a list: whatever goes, all others are found where they are looked for. */
TEST(a_table_of_series_finds_all_that_were_not_swept)
{
    enum { SERIES = 3000, ROUNDS = 40 };
    struct in_series_table table = { 0 };
    struct qf_prng prng = { 5 };
    uint32_t last[SERIES] = { 0 }, at = 0, gone = 0, added = 0;

    for (uint32_t round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < 400; i++) {
            uint32_t n = (uint32_t)qf_prng_below(&prng, SERIES);
            bool fresh;
            struct in_known_series *series = in_series_table_put(
                &table, in_series_hash(1, (struct qf_str){ (const char *)&n, sizeof(n) }), &fresh);

            added += fresh;
            last[n] = series->seen_s = round;
        }
        in_series_table_sweep(&table, &at, 4 * table.capacity, round > 5 ? round - 5 : 0,
                              count_gone, &gone);
        CHECK_EQ(table.count, added - gone);
        for (uint32_t n = 0; n < SERIES; n++) {
            struct in_known_series *series = in_series_table_get(
                &table, in_series_hash(1, (struct qf_str){ (const char *)&n, sizeof(n) }));

            CHECK_EQ(series != NULL, last[n] && last[n] + 5 >= round);
            CHECK(!series || series->seen_s == last[n]);
        }
    }
    CHECK(gone > 0);
    in_series_table_clear(&table);
}
