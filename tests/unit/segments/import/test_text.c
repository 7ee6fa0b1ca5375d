/* test_text.c - one line of text: what is read, and what is refused with which words. */
#include <stdio.h>

#include "base/pure/number.h"
#include "segments/import/text.h"
#include "tests/lib/test.h"

/* What a comment says: "HELP name text". */
static const char *print_metadata(const struct text_metadata *metadata, struct qf_arena *arena,
                                  struct qf_strbuf *got)
{
    static const char *const words[] = { "", "HELP", "TYPE", "UNIT" };
    struct qf_str name, text;
    const char *what = text_metadata(metadata, arena, &name, &text);

    if (what)
        return what;
    qf_strbuf_printf(got, "%s %.*s ", words[metadata->says], QF_STR_ARG(name));
    if (metadata->says == TEXT_SAYS_TYPE)
        qf_strbuf_puts(got, qf_metric_type_text(metadata->type));
    else
        qf_strbuf_str(got, text);
    return NULL;
}

static const char *print_exemplar(struct text_state *state, const struct text_sample *sample,
                                  struct qf_arena *arena, struct qf_strbuf *got)
{
    struct text_exemplar exemplar;
    const char *what = text_exemplar(state, sample, arena, &exemplar);

    if (what)
        return what;
    qf_strbuf_puts(got, " # ");
    qf_labels_print(got, exemplar.labels);
    qf_strbuf_printf(got, " %g %lld", exemplar.value, (long long)exemplar.ts);
    return NULL;
}

/* "SERIES VALUE TS" of one line, what a comment says, "malformed: WHY", or "nothing". */
static void check_line(struct text_state *state, const char *line, const char *want)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf got = QF_STRBUF_INIT;
    struct text_sample sample;
    struct qf_labels labels;
    const char *what = NULL;
    char number[QF_DOUBLE_TEXT_MAX];
    enum text_line kind = text_parse_line(state, qf_str_from(line), &sample, &what);

    if (kind == TEXT_SAMPLE)
        what = text_labels(state, &sample, arena, &labels);
    if (kind == TEXT_METADATA) {
        what = print_metadata(&sample.metadata, arena, &got);
    } else if (kind == TEXT_NOTHING) {
        qf_strbuf_puts(&got, "nothing");
    } else if (!what) {
        qf_labels_print_series(&got, labels);
        (void)qf_double_g(sample.value, number);
        if (sample.histogram.len)
            qf_strbuf_printf(&got, " %.*s", QF_STR_ARG(sample.histogram));
        else
            qf_strbuf_printf(&got, " %s", qf_is_stale(sample.value) ? "stale" : number);
        qf_strbuf_printf(&got, " %lld", (long long)sample.ts);
        if (sample.start_ts)
            qf_strbuf_printf(&got, " started %lld", (long long)sample.start_ts);
        if (sample.exemplar.len)
            what = print_exemplar(state, &sample, arena, &got);
    }
    if (what) {
        qf_strbuf_reset(&got);
        qf_strbuf_printf(&got, "malformed: %s", what);
    }
    CHECK_MSG(qf_str_is(qf_strbuf_view(&got), want), "%s\n  got  %s\n  want %s", line,
              qf_strbuf_cstr(&got), want);
}

struct example {
    const char *line, *want;
};

static void check_all(enum sg_import_format format, const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct text_state state = { .format = format };

        check_line(&state, examples[i].line, examples[i].want);
    }
}

/* What OpenMetrics 2.0 adds, in both units of time. */
TEST(samples_have_start_timestamps_histograms_and_stale_markers)
{
    static const struct example milliseconds[] = {
        { "c_total 17 5000 st@-1000", "c_total 17 5000 started -1000" },
        { "c_total 17 5000 st@1000 # {trace=\"x\"} 1",
          "c_total 17 5000 started 1000 # {trace=\"x\"} 1 5000" },
        { "c_total 17 5000 st@0", "c_total 17 5000" },
        { "c_total 17 5000 st@", "malformed: the timestamp is not a whole number of milliseconds" },
        { "c_total 17 5000 st@1.5",
          "malformed: the timestamp is not a whole number of milliseconds" },
        { "c_total 17 5000 st@1 x", "malformed: something follows the timestamp" },
        { "c_total 17 st@1", "malformed: " TEXT_NO_TIME },
        { "g StaleNaN 5", "g stale 5" },
        { "g stalenan 5", "malformed: the value is not a number" },
        { "h {count:1} 5", "h {count:1} 5" },
        { "h{a=\"b\"} {count:1,sum:2} 5 st@3", "h{a=\"b\"} {count:1,sum:2} 5 started 3" },
        { "h{a=\"b\"} {count:1", "malformed: the braces of the value do not close" },
        { "h{a=\"b\"} {count:1}5 5", "malformed: the braces of the value do not close" },
        { "h{a=\"b\"} {count:1}", "malformed: " TEXT_NO_TIME },
        { "{\"my.h\"} {count:1} 5", "{\"my.h\"} {count:1} 5" },
    };
    static const struct example seconds[] = {
        { "c_total 17 1520879607.789 st@1520430000.123",
          "c_total 17 1520879607789 started 1520430000123" },
        { "h {count:2} 1520879609 st@1520430000 # {trace=\"x\"} 0.6 1520879607",
          "h {count:2} 1520879609000 started 1520430000000 # {trace=\"x\"} 0.6 1520879607000" },
    };

    check_all(SG_IMPORT_PROMETHEUS, milliseconds, QF_COUNT_OF(milliseconds));
    check_all(SG_IMPORT_OPENMETRICS, seconds, QF_COUNT_OF(seconds));
}

TEST(prometheus_text_has_milliseconds)
{
    static const struct example examples[] = {
        { "up 1 1767225600123", "up 1 1767225600123" },
        { "up{} 1 5", "up 1 5" },
        { "up{job=\"a\"} 1 -5", "up{job=\"a\"} 1 -5" },
        { "up {job=\"a\"}\t1\t5\r", "up{job=\"a\"} 1 5" },
        { "  up{ job = \"a\" , b=\"c\", } 1e3 5", "up{b=\"c\", job=\"a\"} 1000 5" },
        { "m{a=\"x\\\\y\\\"z\\nw\\t\"} 1 5", "m{a=\"x\\\\y\\\"z\\nw\\\\t\"} 1 5" },
        { "m{a=\"}\"} 1 5", "m{a=\"}\"} 1 5" },
        { "m{a=\"\",b=\"c\"} 1 5", "m{b=\"c\"} 1 5" },
        { "a:b_c NaN 5", "a:b_c NaN 5" },
        { "m +Inf 5", "m +Inf 5" },
        { "m -Inf 5", "m -Inf 5" },
        { "{\"my.metric\",\"a.b\"=\"c\"} 1 5", "{\"my.metric\", \"a.b\"=\"c\"} 1 5" },
        { "", "nothing" },
        { "   ", "nothing" },
        { "# HELP up Is it?", "HELP up Is it?" },
        { "#", "nothing" },
        { "up 1", "malformed: " TEXT_NO_TIME },
        { "up", "malformed: no value" },
        { "up x 5", "malformed: the value is not a number" },
        { "up 0x10 5", "malformed: the value is not a number" },
        { "up 1 5.5", "malformed: the timestamp is not a whole number of milliseconds" },
        { "up 1 99999999999999999999",
          "malformed: the timestamp is not a whole number of milliseconds" },
        { "up 1 5 6", "malformed: something follows the timestamp" },
        { "up{a=\"b\" 1 5", "malformed: the label braces do not close" },
        { "up{a=\"b} 1 5", "malformed: the label braces do not close" },
        { "up{a=b} 1 5", "malformed: a label value is malformed" },
        { "up{a} 1 5", "malformed: a label without '='" },
        { "up{0a=\"b\"} 1 5", "malformed: a label name is malformed" },
        { "up{a=\"b\" c=\"d\"} 1 5", "malformed: labels are not separated by commas" },
        { "up{a=\"b\",a=\"c\"} 1 5", "malformed: a label occurs twice" },
        { "up{a=\"\xff\"} 1 5", "malformed: a label value is malformed" },
        { "0up 1 5", "malformed: the metric name is malformed" },
        { "{} 1 5", "malformed: a sample without a name or labels" },
        { "{\"x\"", "malformed: the label braces do not close" },
    };

    check_all(SG_IMPORT_PROMETHEUS, examples, QF_COUNT_OF(examples));
}

TEST(openmetrics_has_seconds_and_exemplars)
{
    static const struct example examples[] = {
        { "up 1 1767225600", "up 1 1767225600000" },
        { "up 1 1767225600.5", "up 1 1767225600500" },
        { "up 1 1.7672256e9", "up 1 1767225600000" },
        { "x_bucket{le=\"1\"} 5 2 # {trace_id=\"a\"} 0.5 1",
          "x_bucket{le=\"1\"} 5 2000 # {trace_id=\"a\"} 0.5 1000" },
        { "up 1 # {trace_id=\"a\"} 0.5 1", "malformed: " TEXT_NO_TIME },
        { "up 1 1767225600000", "malformed: the timestamp is not in seconds" },
        { "up 1 NaN", "malformed: the timestamp is not a number" },
        { "up 1 x", "malformed: the timestamp is not a number" },
    };

    check_all(SG_IMPORT_OPENMETRICS, examples, QF_COUNT_OF(examples));
}

TEST(a_tsdb_dump_is_quoted_as_go_does)
{
    static const struct example examples[] = {
        { "{__name__=\"up\", job=\"a\"} 1 1767225600000", "up{job=\"a\"} 1 1767225600000" },
        { "{__name__=\"up\", a=\"\\t\\x41\\u00e9\\U0001f600\"} 1 5",
          "up{a=\"\\tA\xc3\xa9\xf0\x9f\x98\x80\"} 1 5" },
        { "{__name__=\"up\", a=\"\\q\"} 1 5", "malformed: a label value is malformed" },
        { "{__name__=\"up\", a=\"\\x4\"} 1 5", "malformed: a label value is malformed" },
        { "{__name__=\"h\"} {count:1, sum:2, (1,2]:1} 5",
          "malformed: a dump does not say what buckets a native histogram has" },
    };

    check_all(SG_IMPORT_TSDB_DUMP, examples, QF_COUNT_OF(examples));
}

TEST(the_format_is_told_by_the_first_sample_and_kept)
{
    struct text_state seconds = { 0 }, milliseconds = { 0 }, dump = { 0 };

    check_line(&seconds, "# TYPE up gauge", "TYPE up gauge");
    check_line(&seconds, "up 1 1767225600", "up 1 1767225600000");
    check_line(&seconds, "up 1 1767225601.25", "up 1 1767225601250");
    check_line(&milliseconds, "up 1 1767225600000", "up 1 1767225600000");
    check_line(&milliseconds, "up 1 1767225601.25",
               "malformed: the timestamp is not a whole number of milliseconds");
    check_line(&dump, "{__name__=\"up\"} 1 5", "up 1 5");
    CHECK_EQ(dump.format, SG_IMPORT_TSDB_DUMP);
}

/* Prometheus 3 stores bounds as floats, so that every exposition gives the same series. */
TEST(bounds_of_histograms_and_summaries_are_written_as_floats)
{
    struct text_state state = { .format = SG_IMPORT_PROMETHEUS };

    check_line(&state, "x_bucket{le=\"1\"} 1 5", "x_bucket{le=\"1\"} 1 5");
    check_line(&state, "# TYPE x histogram", "TYPE x histogram");
    check_line(&state, "x_bucket{le=\"1\"} 1 5", "x_bucket{le=\"1.0\"} 1 5");
    check_line(&state, "x_bucket{le=\"2.50\"} 1 5", "x_bucket{le=\"2.5\"} 1 5");
    check_line(&state, "x_bucket{le=\"+Inf\"} 1 5", "x_bucket{le=\"+Inf\"} 1 5");
    check_line(&state, "x_bucket{le=\"big\"} 1 5", "x_bucket{le=\"big\"} 1 5");
    check_line(&state, "x_sum{quantile=\"1\"} 1 5", "x_sum{quantile=\"1\"} 1 5");
    check_line(&state, "# TYPE y summary", "TYPE y summary");
    check_line(&state, "y{quantile=\"1\"} 1 5", "y{quantile=\"1.0\"} 1 5");
}

TEST(nothing_may_follow_the_end)
{
    struct text_state state = { 0 };

    check_line(&state, "# EOF", "nothing");
    check_line(&state, "", "nothing");
    check_line(&state, "up 1 5", "malformed: something follows # EOF");
}

TEST(a_nan_is_the_one_prometheus_stores)
{
    struct text_state state = { .format = SG_IMPORT_PROMETHEUS };
    struct text_sample sample;
    const char *what;

    CHECK_EQ(text_parse_line(&state, QF_STR("up NaN 5"), &sample, &what), TEXT_SAMPLE);
    CHECK(qf_double_bits(sample.value) == QF_NORMAL_NAN_BITS);
}

TEST(comments_say_what_metrics_are)
{
    static const struct example examples[] = {
        { "# HELP up", "HELP up " },
        { "#HELP up  Is\\n\\\\it\\\"? \\x ", "HELP up Is\n\\it\"? \\x " },
        { "#  TYPE up   gauge ", "TYPE up gauge" },
        { "# TYPE up untyped", "TYPE up unknown" },
        { "# TYPE up gaugehistogram", "TYPE up gaugehistogram" },
        { "# TYPE \"a.b c\" counter", "TYPE a.b c counter" },
        { "# UNIT up_seconds seconds ", "UNIT up_seconds seconds" },
        { "# HELPING up", "nothing" },
        { "# help up it", "nothing" },
        { "# HELP",
          "malformed: HELP, TYPE and UNIT are about a metric, whose name is malformed or missing" },
        { "# HELP a.b c",
          "malformed: HELP, TYPE and UNIT are about a metric, whose name is malformed or missing" },
        { "# TYPE \"a counter",
          "malformed: HELP, TYPE and UNIT are about a metric, whose name is malformed or missing" },
        { "# TYPE \"\" counter", "malformed: a quoted name is malformed" },
        { "# TYPE up", "malformed: no metric has such a type" },
        { "# TYPE up meter", "malformed: no metric has such a type" },
        { "# HELP up \xff", "malformed: HELP and UNIT must be UTF-8" },
    };

    check_all(SG_IMPORT_OPENMETRICS, examples, QF_COUNT_OF(examples));
    check_all(SG_IMPORT_PROMETHEUS, examples, QF_COUNT_OF(examples));
}

TEST(samples_have_exemplars)
{
    static const struct example seconds[] = {
        { "a_total 1 5 # {} 2", "a_total 1 5000 # {} 2 5000" },
        { "a_total 1 5 # {b=\"c\",a=\"\"} 2 4.5", "a_total 1 5000 # {b=\"c\"} 2 4500" },
        { "a_total 1 5 #{b=\"}\"} -Inf", "a_total 1 5000 # {b=\"}\"} -inf 5000" },
        { "a_total 1 5 # so", "malformed: what follows a sample is no exemplar" },
        { "a_total 1 5 #", "malformed: what follows a sample is no exemplar" },
        { "a_total 1 5 # {b=\"c\"", "malformed: labels are not separated by commas" },
        { "a_total 1 5 # {b=\"c\",", "malformed: the label braces do not close" },
        { "a_total 1 5 # {b=c} 1", "malformed: a label value is malformed" },
        { "a_total 1 5 # {b=\"c\"}", "malformed: the value of an exemplar is not a number" },
        { "a_total 1 5 # {b=\"c\"} x", "malformed: the value of an exemplar is not a number" },
        { "a_total 1 5 # {b=\"c\"} 1 x", "malformed: the timestamp is not a number" },
        { "a_total 1 5 # {b=\"c\"} 1 4 x", "malformed: something follows an exemplar" },
    };
    static const struct example milliseconds[] = {
        { "a_total 1 5000 # {b=\"c\"} 2 4500", "a_total 1 5000 # {b=\"c\"} 2 4500" },
        { "a_total 1 5000 # so", "a_total 1 5000" },
        { "a_total 1 5000 # {b=\"c\"} 1 4.5",
          "malformed: the timestamp is not a whole number of milliseconds" },
    };
    char line[256];

    check_all(SG_IMPORT_OPENMETRICS, seconds, QF_COUNT_OF(seconds));
    check_all(SG_IMPORT_PROMETHEUS, milliseconds, QF_COUNT_OF(milliseconds));
    (void)snprintf(line, sizeof(line), "a_total 1 5 # {b=\"%0128d\"} 1", 0);
    check_line(&(struct text_state){ .format = SG_IMPORT_OPENMETRICS }, line,
               "malformed: an exemplar's labels are too long");
}

/* Scraped text has no times: what comes with a sample has the sample's. */
TEST(an_exemplar_of_a_sample_without_a_time_is_from_now)
{
    struct text_state state = { .format = SG_IMPORT_PROMETHEUS, .timeless = true, .now_ms = 7 };

    check_line(&state, "a_total 1 # {b=\"c\"} 2", "a_total 1 7 # {b=\"c\"} 2 7");
    check_line(&state, "a_total 1", "a_total 1 7");
}
