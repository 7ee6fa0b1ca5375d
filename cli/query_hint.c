/* query_hint.c - why an answer has no series, and what to try. */
#include "cli/query_hint.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/pure/duration.h"
#include "base/sys/clock.h"
#include "queryapi/http/params.h"

#define LOOKBACK_MS ((int64_t)300000)
#define DAY_MS ((int64_t)86400000)

/* "3d4h", "20m": two units at most matter. */
static void put_distance(struct qf_strbuf *text, int64_t ms)
{
    int64_t unit = ms >= DAY_MS ? DAY_MS / 24 : ms >= DAY_MS / 24 ? 60000 : 1000;

    qf_duration_print(text, ms / unit * unit);
}

void cli_hint_text(struct qf_strbuf *text, const struct cli_stored *stored)
{
    int64_t distance = stored->asked_ms - stored->newest_ms;

    qf_strbuf_puts(text, "(no series)\n");
    if (stored->at_that_time) {
        qf_strbuf_puts(text, "There are samples at that time, but none that this selects. Names of "
                             "metrics: promfabric query 'group by (__name__) "
                             "({__name__!=\"\"})'\n");
        return;
    }
    if (!stored->any) {
        qf_strbuf_puts(text, "Nothing is stored for this tenant. Another one: --tenant; samples: "
                             "promfabric import, or remote write to an ingest node\n");
        return;
    }
    qf_strbuf_puts(text, "The newest stored sample is of ");
    qf_time_print_rfc3339(text, stored->newest_ms);
    if (distance > 0) {
        qf_strbuf_puts(text, ", ");
        put_distance(text, distance);
        qf_strbuf_puts(text, " before the time asked for");
    }
    qf_strbuf_puts(text, ". Try --end=");
    qf_time_print_rfc3339(text, stored->newest_ms);
    qf_strbuf_putc(text, '\n');
}

/* Whether any label is there in the time; names are in the catalogue, mostly. */
static bool any_series(const struct cli_web *web, int64_t first, int64_t last)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    struct cli_web_request request = { .method = "GET" };
    char text[40];
    json_t *answer;
    bool any;

    qf_strbuf_puts(&path, "/api/v1/labels?scan=0&limit=1");
    (void)snprintf(text, sizeof(text), "%.3f", (double)first / 1000);
    cli_web_param(&path, "start", text);
    (void)snprintf(text, sizeof(text), "%.3f", (double)last / 1000);
    cli_web_param(&path, "end", text);
    request.path = qf_strbuf_cstr(&path);
    answer = cli_web_ask(web, &request);
    any = json_array_size(json_object_get(answer, "data")) > 0;
    json_decref(answer);
    return any;
}

void cli_hint(const struct cli_web *web, const char *start, const char *end)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct cli_web_request request = { .method = "GET", .path = "/api/v1/storage" };
    qf_time_ms first, last, now = qf_clock_wall_ms();
    struct cli_stored stored;
    json_t *answer, *newest;

    if (qa_param_when("end", qf_str_from(end), now, QF_TIME_NEVER, &last, NULL) ||
        qa_param_when("start", qf_str_from(start ? start : "e"), now, last, &first, NULL))
        return;
    answer = cli_web_ask(web, &request);
    newest = json_object_get(json_object_get(answer, "data"), "max_ms");
    if (newest) {
        stored = (struct cli_stored){ .any = json_is_integer(newest),
                                      .newest_ms = json_integer_value(newest),
                                      .asked_ms = last,
                                      .at_that_time = any_series(web, first - LOOKBACK_MS, last) };
        cli_hint_text(&text, &stored);
        (void)printf("%s", qf_strbuf_cstr(&text));
    } else {
        (void)printf("(no series)\n");
    }
    json_decref(answer);
}
