/* cmd_query.c - promfabric query: a terminal client of the event stream.
 *
 * An instant result is a table; a range is one small chart per series. A native histogram is drawn as
 * bars, that of a range as it is at its end. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "base/pure/vec.h"
#include "cli/flags.h"
#include "cli/histogram_chart.h"
#include "cli/query_explain.h"
#include "cli/web.h"

int cli_query(int argc, char **argv);

#define LINE_BYTES_MAX ((size_t)16 << 20)
#define CHART_COLUMNS 60
#define SERIES_SHOWN_MAX 200

static struct cli_web web;
static const char *start, *end, *step;
static bool json_out, explain;

static const struct cli_flag flags[] = {
    CLI_WEB_FLAGS(web, "http://127.0.0.1:8080", "the API"),
    { "start", CLI_FLAG_STR, &start, "TIME", NULL,
      "first time of a range: RFC 3339, Unix seconds, now-1h, e-1h" },
    { "end", CLI_FLAG_STR, &end, "TIME", "now", "last time, or the time of an instant query" },
    { "step", CLI_FLAG_STR, &step, "DURATION", NULL, "distance of a range's points" },
    { "json", CLI_FLAG_BOOL, &json_out, NULL, NULL, "print the events as they come, one per line" },
    { "explain", CLI_FLAG_BOOL, &explain, NULL, NULL,
      "print the plan with its work, before the answer; in a terminal also while it runs" },
};

static const struct cli_spec spec = {
    .usage = "promfabric query [FLAG...] 'EXPR'",
    .summary = "Asks the API. Without --start it is an instant query. The exit code is 1 if the\n"
               "answer is an error.",
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
};

struct point {
    int64_t ts;
    double value;
};

struct series {
    char *label;
    json_t *histogram; /* the last value if it is one, else NULL */
    QF_VEC(struct point) points;
};

struct client {
    struct qf_strbuf line;
    QF_VEC(struct series) series;
    struct qf_map by_label;
    bool done_ok, failed, progress_shown, terminal;
    char message[1024];
    struct qf_strbuf body; /* of an answer that is no event stream */
    bool events;
    struct cli_explain *explain; /* NULL: not asked for */
};

static double number_of(const json_t *value)
{
    double number = NAN;

    if (json_is_object(value)) /* a histogram: its observations */
        value = json_object_get(value, "count");
    if (json_is_string(value))
        (void)qf_parse_double(qf_str_from(json_string_value(value)), &number);
    else if (json_is_number(value))
        number = json_number_value(value);
    return number;
}

static void hide_progress(struct client *client)
{
    if (client->progress_shown)
        (void)fprintf(stderr, "\r\033[K");
    client->progress_shown = false;
}

static void on_result(struct client *client, const json_t *data)
{
    const char *label = json_string_value(json_object_get(data, "label"));
    json_t *value = json_object_get(data, "value");
    struct series *series;
    uint64_t *index;
    bool new = false;

    if (!label)
        return;
    index = qf_map_get(&client->by_label, qf_str_from(label));
    if (!index) {
        char *copy = qf_xstrdup(label);

        QF_VEC_PUSH(&client->series, (struct series){ .label = copy });
        index = qf_map_put(&client->by_label, qf_str_from(copy), client->series.count - 1, &new);
    }
    series = &client->series.items[*index];
    json_decref(series->histogram);
    series->histogram = json_is_object(value) ? json_incref(value) : NULL;
    QF_VEC_PUSH(&series->points,
                ((struct point){ json_integer_value(json_object_get(data, "timestamp")),
                                 number_of(value) }));
}

static void on_progress(struct client *client, const json_t *data)
{
    if (!client->terminal)
        return;
    (void)fprintf(stderr, "\r\033[K%lld of %lld work items, %lld workers",
                  (long long)json_integer_value(json_object_get(data, "work_done")),
                  (long long)json_integer_value(json_object_get(data, "work_total")),
                  (long long)json_integer_value(json_object_get(data, "workers")));
    client->progress_shown = true;
}

static void print_notes(const json_t *data, const char *key)
{
    const json_t *note;
    size_t i;

    json_array_foreach(json_object_get(data, key), i, note)
    {
        if (json_is_string(note))
            (void)fprintf(stderr, "%s\n", json_string_value(note));
    }
}

static void on_event(struct client *client, const char *text)
{
    json_t *event = json_loads(text, 0, NULL);
    json_t *data = json_object_get(event, "data");
    const char *type = json_string_value(json_object_get(event, "type"));

    if (type && client->explain)
        cli_explain_hear(client->explain, type, data);
    if (!type) {
        json_decref(event);
        return;
    }
    if (json_out && strcmp(type, "progress") != 0) {
        hide_progress(client);
        printf("%s\n", text);
        (void)fflush(stdout);
    }
    if (strcmp(type, "result") == 0 && !json_out) {
        on_result(client, data);
    } else if (strcmp(type, "progress") == 0) {
        on_progress(client, data);
    } else if (strcmp(type, "error") == 0) {
        const char *message = json_string_value(json_object_get(data, "message"));

        client->failed = true;
        (void)snprintf(client->message, sizeof(client->message), "%s", message ? message : "?");
    } else if (strcmp(type, "done") == 0) {
        const char *status = json_string_value(json_object_get(data, "status"));

        hide_progress(client);
        client->done_ok = status && strcmp(status, "ok") == 0;
        print_notes(data, "warnings");
        print_notes(data, "infos");
    }
    json_decref(event);
}

static size_t on_bytes(char *data, size_t size, size_t count, void *arg)
{
    struct client *client = arg;
    size_t len = size * count;

    if (!client->events) {
        qf_strbuf_add(&client->body, data, len);
        return len;
    }
    for (size_t i = 0; i < len; i++) {
        if (data[i] != '\n') {
            qf_strbuf_putc(&client->line, data[i]);
            continue;
        }
        if (strncmp(qf_strbuf_cstr(&client->line), "data: ", 6) == 0)
            on_event(client, client->line.data + 6);
        qf_strbuf_reset(&client->line);
    }
    return client->line.overflowed ? 0 : len;
}

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    struct client *client = arg;
    struct qf_str line = { data, size * count };

    if (line.len > 13 && strncasecmp(data, "content-type:", 13) == 0)
        client->events = memmem(data, line.len, "text/event-stream", 17) != NULL;
    return size * count;
}

static char *request_body(const char *expr)
{
    json_t *body = json_object();
    char *text;

    (void)json_object_set_new(body, "q", json_string(expr));
    (void)json_object_set_new(body, "e", json_string(end));
    (void)json_object_set_new(body, "s", json_string(start ? start : "e"));
    if (step)
        (void)json_object_set_new(body, "step", json_string(step));
    (void)json_object_set_new(body, explain ? "explain" : "progress", json_true());
    text = json_dumps(body, 0);
    json_decref(body);
    return text;
}

/* The message of an error that came instead of events. */
static void read_error(struct client *client, long status)
{
    json_t *answer = json_loads(qf_strbuf_cstr(&client->body), 0, NULL);
    const char *message = json_string_value(json_object_get(answer, "message"));

    if (message)
        (void)snprintf(client->message, sizeof(client->message), "%s", message);
    else
        (void)snprintf(client->message, sizeof(client->message), "%s answered HTTP status %ld",
                       web.url, status);
    json_decref(answer);
    client->failed = true;
}

static void ask(struct client *client, const char *expr)
{
    char problem[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers;
    CURL *easy = cli_web_open(&web, "/api/v1/metrics/query", "application/json", &headers);
    char *body = request_body(expr);
    CURLcode code;
    long status = 0;

    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, client);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, problem);
    code = curl_easy_perform(easy);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    hide_progress(client);
    if (code != CURLE_OK && !client->done_ok) {
        client->failed = true;
        (void)snprintf(client->message, sizeof(client->message), "%s: %s", web.url,
                       problem[0] ? problem : curl_easy_strerror(code));
    } else if (!client->events) {
        read_error(client, status);
    } else if (!client->done_ok && !client->failed) {
        client->failed = true;
        (void)snprintf(client->message, sizeof(client->message), "the answer was cut short");
    }
    free(body);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
}

/* --- output --- */

static int by_label(const void *a, const void *b)
{
    return strcmp(((const struct series *)a)->label, ((const struct series *)b)->label);
}

static void print_number(double value)
{
    char text[QF_DOUBLE_TEXT_MAX];

    (void)qf_double_g(value, text);
    printf("%s", text);
}

static void print_last(const struct series *series)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf chart = QF_STRBUF_INIT;

    if (!series->histogram) {
        print_number(series->points.items[series->points.count - 1].value);
        return;
    }
    cli_histogram_chart(&chart, series->histogram);
    printf("%s", qf_strbuf_cstr(&chart));
}

static void print_table(const struct client *client)
{
    int width = 0;

    for (size_t i = 0; i < client->series.count; i++) {
        int len = (int)strnlen(client->series.items[i].label, 100);

        width = QF_MAX(width, len);
    }
    for (size_t i = 0; i < client->series.count; i++) {
        printf("%-*s  ", width, client->series.items[i].label);
        print_last(&client->series.items[i]);
        printf("\n");
    }
}

/* The last value in each column's part of the time range; blank where there is none. */
static void print_chart(const struct series *series, int64_t first, int64_t last)
{
    static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
    double columns[CHART_COLUMNS], low = INFINITY, high = -INFINITY, span;

    for (size_t i = 0; i < CHART_COLUMNS; i++)
        columns[i] = NAN;
    for (size_t i = 0; i < series->points.count; i++) {
        const struct point *point = &series->points.items[i];
        int64_t at = last > first ? (point->ts - first) * (CHART_COLUMNS - 1) / (last - first) : 0;

        columns[at] = point->value;
        if (isfinite(point->value)) {
            low = QF_MIN(low, point->value);
            high = QF_MAX(high, point->value);
        }
    }
    span = high / 2 - low / 2; /* the whole of it may be no double */
    printf("%s\n  ", series->label);
    for (size_t i = 0; i < CHART_COLUMNS; i++) {
        if (!isfinite(columns[i]))
            printf(isnan(columns[i]) ? " " : "∞");
        else
            printf("%s", blocks[span > 0 ? (int)((columns[i] / 2 - low / 2) / span * 7.999) : 3]);
    }
    printf("  ");
    print_number(low);
    printf(" .. ");
    print_number(high);
    printf(", last ");
    print_last(series);
    printf("\n");
}

static void print_series(struct client *client)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    size_t shown = QF_MIN(client->series.count, (size_t)SERIES_SHOWN_MAX);

    if (client->series.count == 0) {
        printf("(no series)\n");
        return;
    }
    qsort(client->series.items, client->series.count, sizeof(client->series.items[0]), by_label);
    if (!start) {
        print_table(client);
        return;
    }
    for (size_t i = 0; i < client->series.count; i++) {
        const struct series *series = &client->series.items[i];

        first = QF_MIN(first, series->points.items[0].ts);
        last = QF_MAX(last, series->points.items[series->points.count - 1].ts);
    }
    for (size_t i = 0; i < shown; i++)
        print_chart(&client->series.items[i], first, last);
    if (shown < client->series.count)
        printf("... and %zu more series\n", client->series.count - shown);
}

int cli_query(int argc, char **argv)
{
    struct client client = { .line.limit = LINE_BYTES_MAX, .body.limit = LINE_BYTES_MAX };
    int positional;
    enum cli_parsed parsed = cli_flags_parse(&spec, argc, argv, &positional);

    if (parsed == CLI_PARSED_HELP)
        return 0;
    if (parsed == CLI_PARSED_OK && positional != 1) {
        fprintf(stderr, "error: one expression is needed; try promfabric query --help\n");
        parsed = CLI_PARSED_BAD;
    }
    if (parsed == CLI_PARSED_OK && !cli_web_read_key(&web))
        parsed = CLI_PARSED_BAD;
    if (parsed == CLI_PARSED_BAD)
        return 2;
    client.terminal = isatty(STDERR_FILENO) && !json_out;
    if (explain && !json_out)
        client.explain = cli_explain_new(client.terminal);
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    ask(&client, argv[1]);
    if (client.explain) {
        cli_explain_clear(client.explain);
        cli_explain_print(client.explain, stdout);
        client.explain = cli_explain_free(client.explain);
    }
    if (client.failed)
        fprintf(stderr, "error: %s\n", client.message);
    else if (!json_out)
        print_series(&client);
    for (size_t i = 0; i < client.series.count; i++) {
        free(client.series.items[i].label);
        json_decref(client.series.items[i].histogram);
        QF_VEC_DONE(&client.series.items[i].points);
    }
    QF_VEC_DONE(&client.series);
    qf_map_done(&client.by_label);
    qf_strbuf_done(&client.line);
    qf_strbuf_done(&client.body);
    return client.failed ? 1 : 0;
}
