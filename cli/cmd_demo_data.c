/* cmd_demo_data.c - promfabric demo-data: a data set to try things with. */
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "cli/flags.h"
#include "cli/import_common.h"
#include "segments/demo/demo.h"

int cli_demo_data(int argc, char **argv);

static struct {
    struct import_cli common;
    uint64_t seed, instances;
    int64_t range, step;
    const char *end;
} o;

static const struct cli_flag flags[] = {
    IMPORT_CLI_FLAGS(o.common),
    { "seed", CLI_FLAG_U64, &o.seed, "N", "1", "the same seed, range and end give the same data" },
    { "instances", CLI_FLAG_U64, &o.instances, "N", "4", "size: about 81 series for each" },
    { "range", CLI_FLAG_DURATION, &o.range, "DURATION", "6h", "how much time the data cover" },
    { "step", CLI_FLAG_DURATION, &o.step, "DURATION", "15s", "time between samples" },
    { "end", CLI_FLAG_STR, &o.end, "TIME", "now", "when they end: RFC 3339, Unix seconds or now" },
};

static const struct cli_spec spec = {
    "promfabric demo-data [FLAG...]",
    "Write a demo data set: request counters with resets, a latency histogram, CPU counters,\n"
    "gauges, and series that appear and end.",
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

static qf_rc add_all(struct import *import, const struct demo_options *options, struct qf_err *err)
{
    struct demo *demo = demo_new(options);
    int64_t *ts = qf_xcalloc(demo_samples_max(demo), sizeof(*ts));
    double *values = qf_xcalloc(demo_samples_max(demo), sizeof(*values));
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < demo_series_count(demo) && rc == QF_OK; i++) {
        size_t count = demo_samples(demo, i, ts, values);

        rc = import_add(import, demo_labels(demo, i), ts, values, count, err);
    }
    free(ts);
    free(values);
    (void)demo_free(demo);
    return rc;
}

int cli_demo_data(int argc, char **argv)
{
    struct demo_options demo = { 0 };
    struct import_options options;
    struct import *import;
    struct qf_err err = { 0 };
    int positional, code;
    qf_rc rc;

    switch (cli_flags_parse(&spec, argc, argv, &positional)) {
    case CLI_PARSED_HELP:
        return 0;
    case CLI_PARSED_BAD:
        return 2;
    case CLI_PARSED_OK:
        break;
    }
    if (positional || !parse_end(o.end, &demo.end) || o.step <= 0 || o.range < o.step ||
        o.instances == 0 || o.instances > 100000 || o.range / o.step > 10000000) {
        fprintf(stderr, "error: arguments that do not fit; try --help\n");
        return 2;
    }
    demo.seed = o.seed;
    demo.instances = (size_t)o.instances;
    demo.step = o.step;
    demo.end = qf_floor_div(demo.end, o.step) * o.step;
    demo.start = demo.end - o.range;
    if (!import_cli_start(&o.common, &options))
        return 1;
    import = import_new(&options, &err);
    rc = import ? add_all(import, &demo, &err) : err.rc;
    if (rc == QF_OK)
        rc = import_commit(import, &err);
    code = import_cli_end(&o.common, import, rc, &err);
    (void)import_free(import);
    return code;
}
