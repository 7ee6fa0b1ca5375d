/* test_influx.c - InfluxDB's line protocol: what lines mean, and which are refused. */
#include <stdio.h>

#include "ingest/core/influx.h"
#include "tests/lib/test.h"

#define NOW (INT64_C(1767225600000))

struct world {
    struct qf_arena *arena;
    struct in_request request;
    bool timeless;
};

static void world_done(struct world *world)
{
    (void)qf_arena_free(world->arena);
}

static void read_lines(struct world *world, const char *text, enum in_influx_precision precision)
{
    *world = (struct world){ .arena = qf_arena_new(1 << 20) };
    CHECK_EQ(in_influx_decode(qf_str_from(text), precision, NOW, world->arena, &world->request,
                              &world->timeless, NULL),
             QF_OK);
}

/* {labels} value @time, a line each. */
static const char *shown(const struct world *world)
{
    static char text[2048];
    size_t len = 0;

    text[0] = 0;
    for (size_t i = 0; i < world->request.series_count; i++) {
        const struct in_series *series = &world->request.series[i];

        for (size_t j = 0; j < series->label_count; j++)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s=%.*s ",
                                    QF_STR_ARG(series->labels[j].name),
                                    QF_STR_ARG(series->labels[j].value));
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%g @%lld\n",
                                series->samples[0].value, (long long)series->samples[0].ts);
    }
    return text;
}

TEST(every_field_is_a_series_with_all_tags)
{
    QF_CLEANUP(world_done) struct world world;

    read_lines(&world,
               "cpu,host=a,zone=eu user=1.5,system=-2e3,cores=8i,free=9u,up=true,down=F,os=\"x, "
               "y=1\" 1767225600123999999\r\n"
               "\n# a comment\n"
               "mem used=7 1767225600000000000",
               IN_INFLUX_NS);
    CHECK_STR(shown(&world), "host=a zone=eu __name__=cpu_user 1.5 @1767225600123\n"
                             "host=a zone=eu __name__=cpu_system -2000 @1767225600123\n"
                             "host=a zone=eu __name__=cpu_cores 8 @1767225600123\n"
                             "host=a zone=eu __name__=cpu_free 9 @1767225600123\n"
                             "host=a zone=eu __name__=cpu_up 1 @1767225600123\n"
                             "host=a zone=eu __name__=cpu_down 0 @1767225600123\n"
                             "__name__=mem_used 7 @1767225600000\n");
    CHECK(!world.timeless);
    CHECK_EQ(world.request.refused.samples, 0);
}

TEST(names_and_tags_are_unescaped)
{
    QF_CLEANUP(world_done) struct world world;

    read_lines(&world, "a\\,b\\ c,t\\=1=v\\ \\,w,p=c:\\dir f\\ g=1,s=\"a\\\"b\\\\\",h=2 5",
               IN_INFLUX_S);
    CHECK_STR(shown(&world), "t=1=v ,w p=c:\\dir __name__=a,b c_f g 1 @5000\n"
                             "t=1=v ,w p=c:\\dir __name__=a,b c_h 2 @5000\n");
}

TEST(times_are_of_the_precision_that_is_said)
{
    static const struct {
        const char *precision;
        int64_t ts;
    } cases[] = { { "", -1 },   { "ns", -1 },   { "u", -1 },      { "us", -1 },
                  { "ms", -7 }, { "s", -7000 }, { "m", -420000 }, { "h", -25200000 } };
    enum in_influx_precision precision;

    for (size_t i = 0; i < QF_COUNT_OF(cases); i++) {
        QF_CLEANUP(world_done) struct world world;

        CHECK(in_influx_precision_parse(qf_str_from(cases[i].precision), &precision));
        read_lines(&world, "m f=1 -7", precision);
        CHECK_EQ(world.request.series[0].samples[0].ts, cases[i].ts);
    }
    CHECK(!in_influx_precision_parse(QF_STR("d"), &precision));
}

TEST(lines_without_a_time_are_from_now)
{
    QF_CLEANUP(world_done) struct world world;

    read_lines(&world, "m f=1", IN_INFLUX_NS);
    CHECK_STR(shown(&world), "__name__=m_f 1 @1767225600000\n");
    CHECK(world.timeless);
}

TEST(lines_that_cannot_be_read_are_named_and_the_others_taken)
{
    static const struct {
        const char *line, *why;
    } bad[] = {
        { ",a=b f=1 1", "it has no measurement" },
        { "m", "it has no fields" },
        { "m,a=b", "it has no fields" },
        { "m,a f=1", "a tag has no value" },
        { "m f", "a field has no name or no value" },
        { "m =1", "a field has no name or no value" },
        { "m f=1,", "a field has no name or no value" },
        { "m f=", "the value of a field is no number, truth value or text" },
        { "m f=x", "the value of a field is no number, truth value or text" },
        { "m f=nan", "the value of a field is no number, truth value or text" },
        { "m f=1.5i", "the value of a field is no number, truth value or text" },
        { "m f=\"open", "the value of a field is no number, truth value or text" },
        { "m f=\"a\"b 1", "something follows the value of a field" },
        { "m f=1 2 3", "its time is no whole number" },
        { "m f=1 1.5", "its time is no whole number" },
        { "m g=1,f=1 99999999999999999999", "its time is no whole number" },
    };

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++) {
        QF_CLEANUP(world_done) struct world world;
        char text[128], want[256];

        (void)snprintf(text, sizeof(text), "ok f=1 1\n%s\nok f=2 2\n", bad[i].line);
        (void)snprintf(want, sizeof(want), "line 2: %s: %s", bad[i].why, bad[i].line);
        read_lines(&world, text, IN_INFLUX_MS);
        CHECK_STR(world.request.first, want);
        CHECK_EQ(world.request.refused.samples, 1);
        CHECK_STR(shown(&world), "__name__=ok_f 1 @1\n__name__=ok_f 2 @2\n");
    }
}

TEST(a_time_that_does_not_fit_is_refused)
{
    QF_CLEANUP(world_done) struct world world;

    read_lines(&world, "m f=1 9223372036854775807", IN_INFLUX_H);
    CHECK_EQ(world.request.series_count, 0);
    CHECK_EQ(world.request.refused.samples, 1);
}

TEST(a_line_made_to_need_memory_is_refused_whole)
{
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct qf_arena *arena;
    struct in_request request;
    bool timeless;

    qf_strbuf_puts(&text, "m");
    for (int i = 0; i < 200; i++)
        qf_strbuf_printf(&text, ",t%d=v", i);
    for (int i = 0; i < 2000; i++)
        qf_strbuf_printf(&text, "%cf%d=1", i ? ',' : ' ', i);
    arena = qf_arena_new(192 * text.len);
    CHECK_EQ(in_influx_decode(qf_strbuf_view(&text), IN_INFLUX_NS, NOW, arena, &request, &timeless,
                              NULL),
             QF_ELIMIT);
    (void)qf_arena_free(arena);
    qf_strbuf_done(&text);
}
