/* test_summary.c - a summary may say maybe wrongly, never no. */
#include "base/pure/prng.h"
#include "base/regex/regex.h"
#include "segments/parquet/summary.h"
#include "tests/lib/test.h"

static struct pq_matcher matcher(enum pq_match_type type, const char *name, const char *value)
{
    struct pq_matcher m = { .type = type, .name = qf_str_from(name), .value = qf_str_from(value) };
    char msg[100];

    if (type == PQ_MATCH_REGEX || type == PQ_MATCH_NOT_REGEX)
        m.regex = qf_regex_new(value, strlen(value), msg, sizeof(msg));
    return m;
}

static bool may_match(const struct sg_summary *summary, enum pq_match_type type, const char *name,
                      const char *value)
{
    struct pq_matcher m = matcher(type, name, value);
    bool answer = sg_summary_may_match(summary, &m, 1);

    (void)qf_regex_free((struct qf_regex *)m.regex);
    return answer;
}

static void add(struct sg_summary_builder *builder, const char *metric, const char *job,
                const char *instance)
{
    struct qf_label items[] = {
        { QF_STR(QF_METRIC_NAME), qf_str_from(metric) },
        { QF_STR("job"), qf_str_from(job) },
        { QF_STR("instance"), qf_str_from(instance) },
    };

    sg_summary_builder_add(builder, qf_labels_normalize(items, QF_COUNT_OF(items)));
}

static struct sg_summary *finish(struct sg_summary_builder *builder, size_t *ret_len)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct sg_summary *summary;

    sg_summary_builder_print(builder, &text);
    (void)sg_summary_builder_free(builder);
    summary = sg_summary_parse(qf_strbuf_view(&text));
    if (ret_len)
        *ret_len = text.len;
    return summary;
}

TEST(values_that_are_not_there_are_ruled_out)
{
    struct sg_summary_builder *builder = sg_summary_builder_new();
    struct sg_summary *s;

    for (int i = 0; i < 100; i++) {
        char instance[32];

        (void)snprintf(instance, sizeof(instance), "host-%d", i);
        add(builder, i % 2 ? "up" : "http_requests_total", "api", instance);
    }
    s = finish(builder, NULL);
    CHECK(s != NULL);
    CHECK(may_match(s, PQ_MATCH_EQUAL, "__name__", "up"));
    CHECK(!may_match(s, PQ_MATCH_EQUAL, "__name__", "down"));
    CHECK(may_match(s, PQ_MATCH_EQUAL, "instance", "host-77"));
    CHECK(!may_match(s, PQ_MATCH_EQUAL, "instance", "host-177"));
    CHECK(!may_match(s, PQ_MATCH_EQUAL, "job", "host-77"));
    CHECK(!may_match(s, PQ_MATCH_EQUAL, "zone", "a"));
    CHECK(!may_match(s, PQ_MATCH_NOT_EQUAL, "zone", ""));
    CHECK(!may_match(s, PQ_MATCH_REGEX, "zone", ".+"));
    (void)sg_summary_free(s);
}

/* The empty value is satisfied by series without the label; negations by almost anything. */
TEST(matchers_that_accept_the_empty_value_never_prune)
{
    struct sg_summary_builder *builder = sg_summary_builder_new();
    struct sg_summary *s;

    add(builder, "up", "api", "");
    s = finish(builder, NULL);
    CHECK(may_match(s, PQ_MATCH_EQUAL, "zone", ""));
    CHECK(may_match(s, PQ_MATCH_EQUAL, "job", ""));
    CHECK(may_match(s, PQ_MATCH_NOT_EQUAL, "zone", "a"));
    CHECK(may_match(s, PQ_MATCH_NOT_EQUAL, "job", "api"));
    CHECK(may_match(s, PQ_MATCH_REGEX, "zone", ".*"));
    CHECK(may_match(s, PQ_MATCH_REGEX, "zone", "a|"));
    CHECK(may_match(s, PQ_MATCH_NOT_REGEX, "job", "x.*"));
    (void)sg_summary_free(s);
}

TEST(lists_of_alternatives_are_looked_up_one_by_one)
{
    struct sg_summary_builder *builder = sg_summary_builder_new();
    struct sg_summary *s;

    add(builder, "up", "api", "h1");
    s = finish(builder, NULL);
    CHECK(may_match(s, PQ_MATCH_REGEX, "instance", "h0|h1|h2"));
    CHECK(may_match(s, PQ_MATCH_REGEX, "instance", "(h0|h1)"));
    CHECK(may_match(s, PQ_MATCH_REGEX, "instance", "h1"));
    CHECK(!may_match(s, PQ_MATCH_REGEX, "instance", "h2|h3"));
    CHECK(!may_match(s, PQ_MATCH_REGEX, "instance", "(h2|h3)"));
    CHECK(!may_match(s, PQ_MATCH_REGEX, "instance", "H1"));
    /* Anything that is more than a list is left to the reader of the file. */
    CHECK(may_match(s, PQ_MATCH_REGEX, "instance", "h[5-9]"));
    CHECK(may_match(s, PQ_MATCH_REGEX, "instance", "(?i:H1)"));
    CHECK(may_match(s, PQ_MATCH_REGEX, "instance", "(h2)|(h3)"));
    (void)sg_summary_free(s);
}

TEST(the_order_of_series_does_not_matter)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf a = QF_STRBUF_INIT, b = QF_STRBUF_INIT;
    struct sg_summary_builder *one = sg_summary_builder_new(), *two = sg_summary_builder_new();

    for (int i = 0; i < 50; i++) {
        char instance[16];

        (void)snprintf(instance, sizeof(instance), "%d", i);
        add(one, "up", "api", instance);
        (void)snprintf(instance, sizeof(instance), "%d", 49 - i);
        add(two, "up", "api", instance);
    }
    sg_summary_builder_print(one, &a);
    sg_summary_builder_print(two, &b);
    CHECK_STR(a.data, b.data);
    (void)sg_summary_builder_free(one);
    (void)sg_summary_builder_free(two);
}

/* Never "no" for what is there, and "maybe" for about one in a hundred of what is not. */
TEST(large_summaries_stay_small_and_selective)
{
    struct sg_summary_builder *builder = sg_summary_builder_new();
    struct sg_summary *s;
    size_t len;
    int wrong = 0;
    char text[32];

    for (int i = 0; i < 8000; i++) {
        (void)snprintf(text, sizeof(text), "v%d", i);
        add(builder, "m", "api", text);
    }
    s = finish(builder, &len);
    CHECK(s != NULL);
    CHECK(len < SG_SUMMARY_BYTES_MAX * 4 / 3);
    for (int i = 0; i < 8000; i++) {
        (void)snprintf(text, sizeof(text), "v%d", i);
        CHECK(may_match(s, PQ_MATCH_EQUAL, "instance", text));
        (void)snprintf(text, sizeof(text), "w%d", i);
        wrong += may_match(s, PQ_MATCH_EQUAL, "instance", text);
    }
    CHECK_MSG(wrong < 160, "%d of 8000 false positives", wrong);
    (void)sg_summary_free(s);
}

/* A label that is different on every series must not crowd out the metric names. */
TEST(the_most_diverse_labels_are_given_up_first)
{
    struct sg_summary_builder *builder = sg_summary_builder_new();
    struct sg_summary *s;
    size_t len;
    char text[32];

    for (int i = 0; i < 50000; i++) {
        (void)snprintf(text, sizeof(text), "trace-%d", i);
        add(builder, i % 2 ? "a" : "b", "api", text);
    }
    s = finish(builder, &len);
    CHECK(s != NULL);
    CHECK(len < 200);
    CHECK(may_match(s, PQ_MATCH_EQUAL, "__name__", "a"));
    CHECK(!may_match(s, PQ_MATCH_EQUAL, "__name__", "c"));
    CHECK(may_match(s, PQ_MATCH_EQUAL, "instance", "trace-1"));
    CHECK(may_match(s, PQ_MATCH_EQUAL, "instance", "no-such-trace"));
    CHECK(!may_match(s, PQ_MATCH_EQUAL, "zone", "x"));
    (void)sg_summary_free(s);
}

/* Damage gives NULL or some summary, never a crash; a newer version gives NULL. */
TEST(damaged_summaries_are_refused_or_harmless)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct sg_summary_builder *builder = sg_summary_builder_new();
    struct qf_prng prng = { 5 };

    add(builder, "up", "api", "h1");
    sg_summary_builder_print(builder, &text);
    (void)sg_summary_builder_free(builder);
    CHECK(sg_summary_parse(QF_STR("")) == NULL);
    CHECK(sg_summary_parse(QF_STR("1:")) == NULL);
    CHECK(sg_summary_parse(QF_STR("2:AAAA")) == NULL);
    CHECK(may_match(NULL, PQ_MATCH_EQUAL, "job", "api"));
    for (size_t i = 0; i < text.len; i++) {
        struct sg_summary *s = sg_summary_parse(qf_str_sub(qf_strbuf_view(&text), 0, i));

        CHECK(s == NULL);
    }
    for (int i = 0; i < 5000; i++) {
        size_t at = qf_prng_below(&prng, text.len);
        char old = text.data[at];
        struct sg_summary *s;

        text.data[at] = (char)qf_prng_next(&prng);
        s = sg_summary_parse(qf_strbuf_view(&text));
        (void)may_match(s, PQ_MATCH_EQUAL, "job", "api");
        (void)sg_summary_free(s);
        text.data[at] = old;
    }
}

TEST(an_empty_segment_matches_nothing_that_needs_a_label)
{
    struct sg_summary *s = finish(sg_summary_builder_new(), NULL);

    CHECK(s != NULL);
    CHECK(!may_match(s, PQ_MATCH_EQUAL, "__name__", "up"));
    CHECK(may_match(s, PQ_MATCH_EQUAL, "__name__", ""));
    (void)sg_summary_free(s);
}
