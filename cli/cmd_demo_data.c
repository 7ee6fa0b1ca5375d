/* cmd_demo_data.c - promfabric demo-data: a data set to try things with. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "cli/daemon.h"
#include "cli/import_common.h"
#include "cli/web.h"
#include "segments/demo/demo.h"

int cli_demo_data(int argc, char **argv);

enum { INSTANCES_MAX = 100000, SAMPLES_MAX = 10000000 };

static struct {
    struct import_cli common;
    uint64_t seed, instances;
    int64_t range, step;
    const char *end, *follow;
} o;

static const struct cli_flag flags[] = {
    IMPORT_CLI_FLAGS(o.common),
    { "seed", CLI_FLAG_U64, &o.seed, "N", "1", "the same seed, range and end give the same data" },
    { "instances", CLI_FLAG_U64, &o.instances, "N", "4", "size: about 81 series for each" },
    { "range", CLI_FLAG_DURATION, &o.range, "DURATION", "6h", "how much time the data cover" },
    { "step", CLI_FLAG_DURATION, &o.step, "DURATION", "15s", "time between samples" },
    { "end", CLI_FLAG_STR, &o.end, "TIME", "now", "when they end: RFC 3339, Unix seconds or now" },
    { "follow", CLI_FLAG_STR, &o.follow, "URL", NULL,
      "then go on: load a state map and write each sample when its time has come, to the ingest "
      "node at this address" },
};

static const struct cli_spec spec = {
    "promfabric demo-data [FLAG...]",
    "Write a demo data set: request counters with resets, a latency histogram, CPU counters,\n"
    "gauges, and series that appear and end. An ingest node also gets a state map of teams.",
    flags,
    QF_COUNT_OF(flags),
};

static bool parse_end(const char *text, int64_t *ret_end)
{
    struct qf_str s = qf_str_from(text);
    double seconds;

    if (qf_str_is(s, "now"))
        *ret_end = qf_clock_wall_ms();
    else if (qf_parse_double(s, &seconds) && seconds > -1e11 && seconds < 1e11)
        *ret_end = (int64_t)(seconds * 1000);
    else if (!qf_time_parse_rfc3339(s, ret_end))
        return false;
    return true;
}

/* Room for the samples of a series. */
struct demo_columns {
    int64_t *ts;
    double *values;
    struct sg_sample *samples;
};

static qf_rc add_series(struct sg_batch *batch, const struct sg_demo *demo, size_t series,
                        struct demo_columns *columns, struct qf_err *err)
{
    size_t count = sg_demo_samples(demo, series, columns->ts, columns->values);

    for (size_t i = 0; i < count; i++)
        columns->samples[i] =
            (struct sg_sample){ .ts = columns->ts[i], .value = columns->values[i] };
    return sg_batch_add(batch, sg_demo_labels(demo, series), columns->samples, count, err);
}

static qf_rc add_all(struct sg_batch *batch, const struct sg_demo_options *options,
                     struct qf_err *err)
{
    struct sg_demo *demo = sg_demo_new(options);
    struct demo_columns columns = {
        .ts = qf_xcalloc(sg_demo_samples_max(demo), sizeof(*columns.ts)),
        .values = qf_xcalloc(sg_demo_samples_max(demo), sizeof(*columns.values)),
        .samples = qf_xcalloc(sg_demo_samples_max(demo), sizeof(*columns.samples)),
    };
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < sg_demo_series_count(demo) && rc == QF_OK; i++)
        rc = add_series(batch, demo, i, &columns, err);
    free(columns.ts);
    free(columns.values);
    free(columns.samples);
    (void)sg_demo_free(demo);
    return rc;
}

static int run(const struct sg_demo_options *demo)
{
    struct sg_batch_options options;
    struct sg_batch_summary summary = { 0 };
    struct sg_batch *batch;
    struct qf_err err = { 0 };
    qf_rc rc;

    if (!import_cli_start(&o.common, &options))
        return 1;
    batch = sg_batch_new(&options, &err);
    rc = batch ? add_all(batch, demo, &err) : err.rc;
    if (rc == QF_OK)
        rc = sg_batch_commit(batch, &err);
    if (batch)
        summary = sg_batch_summary(batch);
    (void)sg_batch_free(batch);
    return import_cli_end(&o.common, &summary, rc, &err);
}

/* --- going on --- */

#define FOLLOW_MS 1000
/* A body stays far below what an ingest node takes. */
#define FOLLOW_BYTES_MAX ((size_t)4 << 20)
#define POST_MS 10000L

/* Lines of all samples that are due by now. */
static void take_due(struct sg_demo *demo, struct sg_demo_live *live, struct qf_strbuf *text)
{
    int64_t now = qf_clock_wall_ms();

    for (size_t i = 0; i < sg_demo_series_count(demo); i++) {
        char number[QF_DOUBLE_TEXT_MAX];
        double value;
        int64_t ts;

        while (text->len < FOLLOW_BYTES_MAX && sg_demo_live_next(live, i, now, &ts, &value)) {
            qf_labels_print_series(text, sg_demo_labels(demo, i));
            qf_strbuf_putc(text, ' ');
            qf_strbuf_add(text, number, qf_double_g(value, number));
            qf_strbuf_putc(text, ' ');
            qf_strbuf_i64(text, ts);
            qf_strbuf_putc(text, '\n');
        }
    }
}

/* The status of the answer; 0: there was none. */
static long post(const struct qf_strbuf *text)
{
    struct cli_web web = { .url = o.follow, .tenant = o.common.tenant };
    struct cli_web_request request = { .method = "POST",
                                       .path = "/api/v1/import/prometheus",
                                       .body = qf_strbuf_view(text),
                                       .content_type = "text/plain" };

    return cli_web_post(&web, &request, POST_MS);
}

/* Said again at each start: it does no harm. False: not yet. */
static bool say_map(void)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf why = QF_STRBUF_INIT, rows = QF_STRBUF_INIT;
    struct cli_web web = { .url = o.follow, .tenant = o.common.tenant };
    struct cli_web_request define = { .method = "PUT",
                                      .path = "/api/v1/state/maps/" SG_DEMO_MAP,
                                      .content_type = "application/json",
                                      .body = QF_STR("{\"kind\":\"state\",\"metric\":"
                                                     "\"" SG_DEMO_MAP_METRIC "\"}") };
    struct cli_web_request load = { .method = "POST",
                                    .path = "/api/v1/state/load?format=jsonl&map=" SG_DEMO_MAP,
                                    .content_type = "application/octet-stream" };
    json_t *defined = cli_web_try(&web, &define, POST_MS, &why), *loaded = NULL;
    bool said;

    sg_demo_map_rows(&rows);
    load.body = qf_strbuf_view(&rows);
    if (defined)
        loaded = cli_web_try(&web, &load, POST_MS, &why);
    said = loaded != NULL;
    json_decref(defined);
    json_decref(loaded);
    return said;
}

/* Until a signal ends the process. What an ingest node does not take now it is given again; what it
 * finds wrong, as samples that are too old by now, is not. */
static void follow(const struct sg_demo_options *options)
{
    struct sg_demo *demo = sg_demo_new(options);
    struct sg_demo_live *live = sg_demo_live_new(demo);
    struct qf_strbuf text = QF_STRBUF_INIT;
    bool said = false;

    (void)signal(SIGINT, SIG_DFL); /* there is nothing left to cancel */
    (void)signal(SIGTERM, SIG_DFL);
    for (;;) {
        long status = 204;

        said = said || say_map();
        if (!text.len)
            take_due(demo, live, &text);
        if (text.len)
            status = post(&text);
        if (status / 100 == 2 || (status / 100 == 4 && status != 429))
            qf_strbuf_reset(&text);
        (void)poll(NULL, 0, FOLLOW_MS);
    }
}

/* Flags that fit; fills demo->end. */
static bool check(struct sg_demo_options *demo)
{
    if (!parse_end(o.end, &demo->end)) {
        fprintf(stderr, "error: --end %.50s: expected now, 2026-01-31T12:00:00Z or Unix seconds\n",
                o.end);
        return false;
    }
    if (o.step <= 0)
        return cli_bad("--step: more than nothing");
    if (o.range < o.step)
        return cli_bad("--range: at least a --step");
    if (o.range / o.step > SAMPLES_MAX)
        return cli_bad("--range: at most 10000000 steps");
    if (o.instances == 0 || o.instances > INSTANCES_MAX)
        return cli_bad("--instances: 1 to 100000");
    return true;
}

int cli_demo_data(int argc, char **argv)
{
    struct sg_demo_options demo = { 0 };
    int positional, code;

    switch (cli_flags_parse(&spec, argc, argv, &positional)) {
    case CLI_PARSED_HELP:
        return 0;
    case CLI_PARSED_BAD:
        return 2;
    case CLI_PARSED_OK:
        break;
    }
    if (!cli_no_arguments(positional, argv) || !check(&demo))
        return 2;
    demo.seed = o.seed;
    demo.instances = (size_t)o.instances;
    demo.step = o.step;
    demo.end = qf_floor_div(demo.end, o.step) * o.step;
    demo.start = demo.end - o.range;
    code = run(&demo);
    if (code == 0 && o.follow)
        follow(&demo);
    return code;
}
