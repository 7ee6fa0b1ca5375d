#include "ingest/head/extras.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "promql/parse.h"
#include "tests/lib/test.h"

static void add_exemplar(struct in_extras *extras, const char *tenant, const char *series,
                         const char *trace, double value, int64_t ts)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct qf_label name[] = { { QF_STR_INIT("__name__"), QF_STR_INIT("m") },
                               { QF_STR_INIT("s"), qf_str_from(series) } };
    struct qf_label own[] = { { QF_STR_INIT("trace_id"), qf_str_from(trace) } };
    const struct in_exemplar exemplar = { own, 1, value, ts, false };

    in_extra_put_exemplar(&bytes, (struct qf_labels){ name, 2 }, &exemplar);
    in_extras_add(extras, qf_str_from(tenant), 7, qf_strbuf_view(&bytes));
}

static void add_metadata(struct in_extras *extras, const char *tenant, const char *name,
                         enum qf_metric_type type, const char *help)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    const struct in_metadata metadata = { qf_str_from(name), type, qf_str_from(help),
                                          QF_STR("bytes") };

    in_extra_put_metadata(&bytes, &metadata);
    in_extras_add(extras, qf_str_from(tenant), 7, qf_strbuf_view(&bytes));
}

/* The exemplars of a selector as text. */
static char *exemplars(struct in_extras *extras, const char *tenant, const char *selector,
                       int64_t min_ts, int64_t max_ts)
{
    struct qf_arena *arena = qf_arena_new(1 << 20);
    struct qf_strbuf text = QF_STRBUF_INIT;
    const struct pq_matcher *matchers;
    struct sg_found found = { 0 };
    size_t count;
    struct in_exemplars_ask ask = { qf_str_from(tenant), min_ts, max_ts, &matchers, &count, 1 };
    struct qf_err err = { 0 };

    CHECK_OK(pq_parse_selector(arena, qf_str_from(selector), NULL, &matchers, &count, &err), &err);
    CHECK_OK(in_extras_exemplars(extras, &ask, arena, &found, &err), &err);
    sg_found_sort(&found);
    for (size_t i = 0; i < found.count; i++)
        qf_strbuf_printf(&text, "%.*s/%.*s:%g@%" PRId64 " ",
                         QF_STR_ARG(qf_labels_get(found.items[i].series, QF_STR("s"))),
                         QF_STR_ARG(qf_labels_get(found.items[i].labels, QF_STR("trace_id"))),
                         found.items[i].value, found.items[i].ts);
    (void)qf_arena_free(arena);
    return qf_strbuf_take(&text);
}

static char *metadata(struct in_extras *extras, const char *tenant, const char *metric)
{
    struct qf_arena *arena = qf_arena_new(64 << 20);
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct in_found_metadata *found;
    struct qf_err err = { 0 };
    size_t count;

    CHECK_OK(in_extras_metadata(extras, qf_str_from(tenant), qf_str_from(metric), arena, &found,
                                &count, &err),
             &err);
    for (size_t i = 0; i < count; i++)
        qf_strbuf_printf(&text, "%.*s:%s:%.*s ", QF_STR_ARG(found[i].is.name),
                         qf_metric_type_text(found[i].is.type), QF_STR_ARG(found[i].is.help));
    (void)qf_arena_free(arena);
    return qf_strbuf_take(&text);
}

#define CHECK_TEXT(call, want)                                                                     \
    do {                                                                                           \
        char *text_ = call;                                                                        \
        CHECK_STR(text_, want);                                                                    \
        free(text_);                                                                               \
    } while (0)

TEST(exemplars_are_found_by_series_and_time_each_once)
{
    struct in_extras *extras = in_extras_new(&(struct in_extras_limits){ 0 });

    add_exemplar(extras, "t", "b", "x", 1, 20);
    add_exemplar(extras, "t", "a", "y", 2, 30);
    add_exemplar(extras, "t", "a", "z", 3, 10);
    add_exemplar(extras, "t", "a", "z", 3, 10);
    add_exemplar(extras, "u", "a", "other", 3, 10);
    CHECK_TEXT(exemplars(extras, "t", "m", 0, 100), "a/z:3@10 a/y:2@30 b/x:1@20 ");
    CHECK_TEXT(exemplars(extras, "t", "m{s=\"a\"}", 11, 30), "a/y:2@30 ");
    CHECK_TEXT(exemplars(extras, "t", "m{s=~\"b|c\"}", 0, 100), "b/x:1@20 ");
    CHECK_TEXT(exemplars(extras, "u", "m", 0, 100), "a/other:3@10 ");
    CHECK_TEXT(exemplars(extras, "v", "m", 0, 100), "");
    in_extras_clear(extras);
    CHECK_TEXT(exemplars(extras, "t", "m", 0, 100), "");
    CHECK_EQ(in_extras_figures(extras).exemplars, 0);
    (void)in_extras_free(extras);
}

/* A tenant with many pushes out its own, not those of one with few. */
TEST(the_oldest_exemplars_of_whoever_has_most_make_room)
{
    struct in_extras *extras = in_extras_new(&(struct in_extras_limits){ .exemplars_max = 8 });
    char trace[16];

    for (int i = 0; i < 20; i++) {
        (void)snprintf(trace, sizeof(trace), "%d", i);
        add_exemplar(extras, "large", "a", trace, 0, i);
    }
    CHECK_EQ(in_extras_figures(extras).exemplars, 8);
    CHECK_TEXT(exemplars(extras, "large", "m", 0, 12), "a/12:0@12 ");
    for (int i = 0; i < 3; i++)
        add_exemplar(extras, "small", "a", "s", 0, i);
    for (int i = 20; i < 40; i++) {
        (void)snprintf(trace, sizeof(trace), "%d", i);
        add_exemplar(extras, "large", "a", trace, 0, i);
    }
    CHECK_TEXT(exemplars(extras, "small", "m", 0, 100), "a/s:0@0 a/s:0@1 a/s:0@2 ");
    CHECK_TEXT(exemplars(extras, "large", "m", 0, 100),
               "a/35:0@35 a/36:0@36 a/37:0@37 a/38:0@38 a/39:0@39 ");
    CHECK_EQ(in_extras_figures(extras).exemplars, 8);
    (void)in_extras_free(extras);
}

TEST(the_newest_metadata_of_a_name_stands)
{
    struct in_extras *extras = in_extras_new(&(struct in_extras_limits){ .metadata_max = 12 });
    char name[16];

    add_metadata(extras, "t", "b", QF_METRIC_COUNTER, "old");
    add_metadata(extras, "t", "a", QF_METRIC_GAUGE_HISTOGRAM, "");
    add_metadata(extras, "t", "b", QF_METRIC_GAUGE, "new");
    add_metadata(extras, "u", "c", QF_METRIC_INFO, "other");
    CHECK_TEXT(metadata(extras, "t", ""), "a:gaugehistogram: b:gauge:new ");
    CHECK_TEXT(metadata(extras, "t", "b"), "b:gauge:new ");
    CHECK_TEXT(metadata(extras, "t", "c"), "");
    for (int i = 0; i < 9; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        add_metadata(extras, "t", name, QF_METRIC_GAUGE, "");
    }
    CHECK_TEXT(metadata(extras, "t", ""), "a:gaugehistogram: b:gauge:new n0:gauge: ");
    CHECK_EQ(in_extras_figures(extras).metadata_refused, 8);
    (void)in_extras_free(extras);
}

TEST(many_exemplars_and_metadata_are_read_in_pieces)
{
    struct in_extras *extras = in_extras_new(&(struct in_extras_limits){ 0 });
    char name[16], *text;
    size_t words = 0;

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "n%04d", i);
        add_metadata(extras, "t", name, QF_METRIC_GAUGE, "help");
        add_exemplar(extras, "t", name, "x", i, i);
    }
    text = metadata(extras, "t", "");
    for (const char *at = text; *at; at++)
        words += *at == ' ';
    CHECK_EQ(words, 1000);
    free(text);
    CHECK_TEXT(exemplars(extras, "t", "m{s=\"n0999\"}", 0, 1000), "n0999/x:999@999 ");
    (void)in_extras_free(extras);
}
