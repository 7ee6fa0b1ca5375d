/* test_demo.c - the demo data are the same for the same seed and look like what they claim. */
#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/pure/number.h"
#include "segments/demo/demo.h"
#include "tests/lib/test.h"

static const struct sg_demo_options six_hours = {
    .seed = 1,
    .start = 1767225600000,
    .end = 1767225600000 + 6 * 3600000,
    .step = 15000,
    .instances = 3,
};

static void demo_freep(struct sg_demo **demo)
{
    (void)sg_demo_free(*demo);
}

static uint64_t hash_of(const struct sg_demo_options *options)
{
    QF_CLEANUP(demo_freep) struct sg_demo *demo = sg_demo_new(options);
    size_t max = sg_demo_samples_max(demo);
    QF_CLEANUP(qf_freep) int64_t *ts = qf_xcalloc(max, sizeof(*ts));
    QF_CLEANUP(qf_freep) double *values = qf_xcalloc(max, sizeof(*values));
    uint64_t hash = 0;

    for (size_t i = 0; i < sg_demo_series_count(demo); i++) {
        size_t count = sg_demo_samples(demo, i, ts, values);

        hash = hash * 31 + qf_labels_hash(sg_demo_labels(demo, i));
        hash = hash * 31 + qf_hash_bytes((struct qf_str){ (char *)ts, count * sizeof(*ts) });
        hash = hash * 31 + qf_hash_bytes((struct qf_str){ (char *)values, count * sizeof(double) });
    }
    return hash;
}

TEST(equal_seeds_give_equal_data_and_others_do_not)
{
    struct sg_demo_options other = six_hours;

    other.seed = 2;
    CHECK(hash_of(&six_hours) == hash_of(&six_hours));
    CHECK(hash_of(&six_hours) != hash_of(&other));
}

TEST(series_are_sorted_and_samples_ascend_within_the_range)
{
    QF_CLEANUP(demo_freep) struct sg_demo *demo = sg_demo_new(&six_hours);
    size_t max = sg_demo_samples_max(demo), total = 0;
    QF_CLEANUP(qf_freep) int64_t *ts = qf_xcalloc(max, sizeof(*ts));
    QF_CLEANUP(qf_freep) double *values = qf_xcalloc(max, sizeof(*values));

    CHECK_EQ(sg_demo_series_count(demo) / 3, 81);
    for (size_t i = 0; i < sg_demo_series_count(demo); i++) {
        size_t count = sg_demo_samples(demo, i, ts, values);

        CHECK(!i || qf_labels_cmp(sg_demo_labels(demo, i - 1), sg_demo_labels(demo, i)) < 0);
        CHECK(count <= max);
        for (size_t k = 0; k < count; k++) {
            CHECK(ts[k] >= six_hours.start && ts[k] < six_hours.end);
            CHECK(!k || ts[k] > ts[k - 1]);
        }
        total += count;
    }
    CHECK(total > 300000);
}

/* What the tutorial queries rely on: resets, stale markers, monotonous buckets. */
TEST(counters_reset_series_end_and_buckets_add_up)
{
    QF_CLEANUP(demo_freep) struct sg_demo *demo = sg_demo_new(&six_hours);
    size_t max = sg_demo_samples_max(demo), resets = 0, stale = 0, late = 0, buckets = 0;
    QF_CLEANUP(qf_freep) int64_t *ts = qf_xcalloc(max, sizeof(*ts));
    QF_CLEANUP(qf_freep) double *values = qf_xcalloc(max, sizeof(*values));
    double infinite[3] = { 0 };

    for (size_t i = 0; i < sg_demo_series_count(demo); i++) {
        struct qf_labels labels = sg_demo_labels(demo, i);
        struct qf_str name = qf_labels_get(labels, QF_STR("__name__"));
        size_t count = sg_demo_samples(demo, i, ts, values);

        for (size_t k = 1; qf_str_is(name, "http_requests_total") && k < count; k++)
            resets += values[k] < values[k - 1];
        if (count && qf_is_stale(values[count - 1]))
            stale++;
        if (count && ts[0] > six_hours.start + 60000)
            late++;
        if (!qf_str_is(name, "http_request_duration_seconds_bucket"))
            continue;
        /* Sorted by instance, le and path; "+Inf" is the first le and counts everything. */
        if (qf_str_is(qf_labels_get(labels, QF_STR("le")), "+Inf"))
            infinite[buckets % 3] = values[count - 1];
        CHECK(values[count - 1] <= infinite[buckets % 3]);
        buckets++;
    }
    CHECK(resets >= 18);
    CHECK(stale >= 6);
    CHECK(late >= 6);
    CHECK_EQ(buckets, 3 * 3 * 12);
}

/* From the end on: the next step of each series, when its time has come, and counters go on counting. */
TEST(data_go_on_where_they_end)
{
    QF_CLEANUP(demo_freep) struct sg_demo *demo = sg_demo_new(&six_hours);
    struct sg_demo_live *live = sg_demo_live_new(demo);
    size_t max = sg_demo_samples_max(demo), on = 0;
    QF_CLEANUP(qf_freep) int64_t *ts = qf_xcalloc(max, sizeof(*ts));
    QF_CLEANUP(qf_freep) double *values = qf_xcalloc(max, sizeof(*values));

    for (size_t i = 0; i < sg_demo_series_count(demo); i++) {
        size_t count = sg_demo_samples(demo, i, ts, values);
        int64_t at, soon = ts[count - 1] + six_hours.step;
        double value;

        CHECK(!sg_demo_live_next(live, i, soon - 1, &at, &value));
        if (!sg_demo_live_next(live, i, soon, &at, &value))
            continue; /* a run that has ended */
        on++;
        CHECK_EQ(at, soon);
        if (qf_str_is(qf_labels_get(sg_demo_labels(demo, i), QF_STR("__name__")),
                      "http_requests_total"))
            CHECK(value >= values[count - 1] || value < 1000);
        CHECK(!sg_demo_live_next(live, i, soon, &at, &value));
    }
    CHECK_EQ(on, 3 * 77);
    (void)sg_demo_live_free(live);
}

/* The map of teams can be joined with every series: each job has a row. */
TEST(each_job_of_the_demo_has_a_team)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf rows = QF_STRBUF_INIT;
    struct sg_demo *demo =
        sg_demo_new(&(struct sg_demo_options){ .end = 60000, .step = 15000, .instances = 2 });

    sg_demo_map_rows(&rows);
    for (size_t i = 0; i < sg_demo_series_count(demo); i++) {
        struct qf_str job = qf_labels_get(sg_demo_labels(demo, i), QF_STR("job"));
        char member[60];

        (void)snprintf(member, sizeof(member), "\"job\":\"%.*s\"", QF_STR_ARG(job));
        CHECK_MSG(strstr(qf_strbuf_cstr(&rows), member), "%s", member);
    }
    (void)sg_demo_free(demo);
}
