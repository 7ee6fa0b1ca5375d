#include "ingest/otlp/names.h"

#include "tests/lib/test.h"

struct row {
    const char *name, *unit, *want;
};

static void check_rows(const struct row *rows, size_t count, enum in_otlp_kind kind)
{
    struct qf_arena *arena = qf_arena_new(1 << 20);

    for (size_t i = 0; i < count; i++) {
        struct qf_str got =
            in_otlp_metric_name(arena, qf_str_from(rows[i].name), qf_str_from(rows[i].unit), kind);

        CHECK_STR(qf_arena_cstr(arena, got), rows[i].want);
    }
    (void)qf_arena_free(arena);
}

TEST(runs_of_other_characters_become_one_underscore)
{
    static const struct row rows[] = {
        { "http.server.duration", "", "http_server_duration" },
        { "(lambda).function.executions(#)", "", "lambda_function_executions" },
        { "a__b", "", "a_b" },
        { "_a_", "", "a" },
        { "job:rate", "", "job:rate" },
        { "a\xc3\xa9"
          "b",
          "", "a_b" },
        { "2xx", "", "_2xx" },
        { "...", "", "" },
    };

    check_rows(rows, QF_COUNT_OF(rows), IN_OTLP_OTHER);
}

TEST(units_are_words_behind_the_name)
{
    static const struct row rows[] = {
        { "a", "s", "a_seconds" },
        { "a", "By", "a_bytes" },
        { "a", "%", "a_percent" },
        { "a", "m/s", "a_meters_per_second" },
        { "a", "By/s", "a_bytes_per_second" },
        { "a", "{packet}/s", "a_per_second" },
        { "a", "{packet}", "a" },
        { "a", "{a}/{b}", "a" },
        { "a", "packets", "a_packets" },
        { "a", "ft^2", "a_ft_2" },
        { "a", " s ", "a_seconds" },
        { "a", "1", "a" },
        { "a", "1/s", "a_per_second" },
        { "a.seconds", "s", "a_seconds" },
        { "a.seconds.b", "s", "a_seconds_b" },
        { "a", "s/", "a_seconds" },
        { "a", "_x", "a_x" },
    };

    check_rows(rows, QF_COUNT_OF(rows), IN_OTLP_OTHER);
}

TEST(a_counter_ends_in_total)
{
    static const struct row rows[] = {
        { "a", "", "a_total" },
        { "a.total", "", "a_total" },
        { "total.a", "s", "a_seconds_total" },
        { "a", "1", "a_total" },
        { "a_seconds_total", "s", "a_seconds_total" },
    };

    check_rows(rows, QF_COUNT_OF(rows), IN_OTLP_COUNTER);
}

TEST(a_gauge_of_unit_1_is_a_ratio)
{
    static const struct row rows[] = {
        { "a", "1", "a_ratio" },
        { "ratio.a", "1", "a_ratio" },
        { "a", "%", "a_percent" },
        { "a", "", "a" },
    };

    check_rows(rows, QF_COUNT_OF(rows), IN_OTLP_GAUGE);
}

TEST(names_of_attributes_keep_every_underscore)
{
    static const struct row rows[] = {
        { "a", NULL, "a" },         { "a.b", NULL, "a_b" },
        { "a..b", NULL, "a__b" },   { "1x", NULL, "key_1x" },
        { "_p", NULL, "key_p" },    { "__p", NULL, "__p" },
        { ".p", NULL, "key_p" },    { "x-\xc3\xa9-y", NULL, "x___y" },
        { "job:x", NULL, "job_x" }, { "_", NULL, "key_" },
        { "", NULL, "" },
    };
    struct qf_arena *arena = qf_arena_new(1 << 20);

    for (size_t i = 0; i < QF_COUNT_OF(rows); i++)
        CHECK_STR(qf_arena_cstr(arena, in_otlp_label_name(arena, qf_str_from(rows[i].name))),
                  rows[i].want);
    (void)qf_arena_free(arena);
}
