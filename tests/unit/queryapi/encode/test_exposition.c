/* test_exposition.c - which form is asked for, names in each of them, and families of metrics. */
#include "queryapi/encode/exposition.h"

#include <math.h>

#include "base/pure/varint.h"
#include "queryapi/encode/family.h"
#include "tests/lib/test.h"

#define PROTOBUF                                                                                   \
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
#define TEXT_TYPE "text/plain; version=0.0.4; charset=utf-8; escaping="
#define PROTOBUF_TYPE                                                                              \
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "                   \
    "encoding=delimited; escaping="

static const char *type_for(const char *accept)
{
    return qa_exposition_type(qa_exposition_choose(qf_str_from(accept)));
}

TEST(text_unless_protobuf_is_weighed_higher)
{
    static const char *const text[] = { "",
                                        "*/*",
                                        "text/plain;version=0.0.4",
                                        "application/json",
                                        "text/plain," PROTOBUF,
                                        PROTOBUF ";q=0.5,text/plain;q=0.6",
                                        "text/plain;q=0.5," PROTOBUF ";q=x",
                                        "application/vnd.google.protobuf;encoding=delimited" };
    static const char *const protobuf[] = { PROTOBUF, PROTOBUF ",text/plain",
                                            "text/plain;q=0.2," PROTOBUF ";q=0.3",
                                            "text/plain;version=9," PROTOBUF ";q=0.1" };

    for (size_t i = 0; i < QF_COUNT_OF(text); i++)
        CHECK_STR(type_for(text[i]), TEXT_TYPE "underscores");
    for (size_t i = 0; i < QF_COUNT_OF(protobuf); i++)
        CHECK_STR(type_for(protobuf[i]), PROTOBUF_TYPE "underscores");
}

TEST(an_escaping_counts_for_what_comes_behind_it)
{
    CHECK_STR(type_for("text/plain;escaping=allow-utf-8"), TEXT_TYPE "allow-utf-8");
    CHECK_STR(type_for("text/plain ; escaping = dots"), TEXT_TYPE "dots");
    CHECK_STR(type_for(PROTOBUF ";escaping=values"), PROTOBUF_TYPE "values");
    CHECK_STR(type_for("application/openmetrics-text;escaping=dots," PROTOBUF),
              PROTOBUF_TYPE "dots");
    CHECK_STR(type_for("text/plain;escaping=none"), TEXT_TYPE "underscores");
}

TEST(of_many_forms_the_first_ones_are_looked_at)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf accept = QF_STRBUF_INIT;

    for (int i = 0; i < QA_ACCEPT_MAX - 1; i++)
        qf_strbuf_puts(&accept, "a/b;q=0.1,");
    qf_strbuf_puts(&accept, PROTOBUF);
    CHECK_STR(type_for(qf_strbuf_cstr(&accept)), PROTOBUF_TYPE "underscores");
    qf_strbuf_reset(&accept);
    for (int i = 0; i < QA_ACCEPT_MAX; i++)
        qf_strbuf_puts(&accept, "a/b;q=0.1,");
    qf_strbuf_puts(&accept, PROTOBUF);
    CHECK_STR(type_for(qf_strbuf_cstr(&accept)), TEXT_TYPE "underscores");
}

static void check_name(const char *name, const char *const want[QA_ESCAPE__COUNT])
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf got = QF_STRBUF_INIT;

    for (int i = 0; i < QA_ESCAPE__COUNT; i++) {
        qf_strbuf_reset(&got);
        qa_exposition_name(&got, qf_str_from(name), (enum qa_escaping)i);
        CHECK_STR(qf_strbuf_cstr(&got), want[i]);
    }
}

TEST(names_that_are_no_plain_words_are_escaped)
{
    check_name("a_b:c9", (const char *const[]){ "a_b:c9", "a_b:c9", "a_b:c9", "a_b:c9" });
    check_name("a.b_c", (const char *const[]){ "a_b_c", "a_dot_b__c", "U__a_2e_b__c", "a.b_c" });
    check_name("9\xc3\xa9", (const char *const[]){ "__", "____", "U___39__e9_", "9\xc3\xa9" });
    check_name("a\xff", (const char *const[]){ "a_", "a__", "U__a_fffd_", "a\xff" });
}

/* --- families --- */

static struct qf_labels labels_of(struct qf_label items[2], const char *name, const char *job)
{
    items[0] = (struct qf_label){ QF_STR(QF_METRIC_NAME), qf_str_from(name) };
    items[1] = (struct qf_label){ QF_STR("job"), qf_str_from(job) };
    return (struct qf_labels){ items, 2 };
}

TEST(a_family_has_the_series_of_one_metric_and_type)
{
    static const double values[] = { 1, 2 };
    static const int64_t ts[] = { 1000, 2000 };
    static const struct pq_histogram counter = { .count = 1 },
                                     gauge = { .count = 1, .reset_hint = PQ_RESET_GAUGE };
    const struct pq_histogram *counters[] = { NULL, &counter }, *gauges[] = { NULL, &gauge };
    struct qf_label items[5][2];
    struct pq_result_series all[5] = { 0 };
    const struct pq_result_series *series[5];
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    size_t sizes[4], count = 0;

    for (size_t i = 0; i < 5; i++) {
        all[i].labels = labels_of(items[i], i < 4 ? "a" : "b", "x");
        all[i].count = 2;
        all[i].ts = ts;
        all[i].values = values;
        all[i].histograms = i == 2 ? counters : i == 3 ? gauges : NULL;
        series[i] = &all[i];
    }
    for (size_t at = 0; at < 5; at += sizes[count++])
        sizes[count] = qa_family_put(&buf, series + at, 5 - at, QA_ESCAPE_UNDERSCORES);
    CHECK_EQ(count, 4);
    CHECK_EQ(sizes[0], 2);
}

TEST(a_family_of_many_series_is_cut)
{
    static const double values[] = { 1 };
    static const int64_t ts[] = { 1000 };
    enum { COUNT = 100000 };
    struct qf_label items[2];
    struct pq_result_series one = {
        .labels = labels_of(items, "a", "some job or other"), .count = 1, .ts = ts, .values = values
    };
    static const struct pq_result_series *series[COUNT];
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    size_t families = 0;
    uint64_t len = 0;

    for (size_t i = 0; i < COUNT; i++)
        series[i] = &one;
    for (size_t at = 0; at < COUNT; families++) {
        qf_strbuf_reset(&buf);
        at += qa_family_put(&buf, series + at, COUNT - at, QA_ESCAPE_UNDERSCORES);
        CHECK(buf.len < QA_FAMILY_BYTES + 200);
        CHECK(qf_varint_get(qf_strbuf_view(&buf), &len) > 0 && len < buf.len);
    }
    CHECK(families > 3);
}

TEST(what_has_no_form_is_not_taken)
{
    static const double values[] = { 1 };
    static const struct pq_histogram custom = { .schema = PQ_SCHEMA_CUSTOM };
    const struct pq_histogram *histograms[] = { &custom };
    double stale[] = { NAN };
    struct pq_result_series series = { .count = 1, .values = values };
    uint64_t bits = 0x7ff0000000000002;

    CHECK(qa_family_takes(&series));
    series.histograms = histograms;
    CHECK(!qa_family_takes(&series));
    memcpy(stale, &bits, sizeof(bits));
    series = (struct pq_result_series){ .count = 1, .values = stale };
    CHECK(!qa_family_takes(&series));
}
