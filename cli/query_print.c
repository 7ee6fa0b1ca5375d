/* query_print.c - answers as tables, charts and CSV. */
#include "cli/query_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "cli/histogram_chart.h"

#define LABEL_COLUMNS_MAX 100
#define INDENT 2
#define TICK_COLUMNS 20 /* times below a chart are that far apart, or more */
#define DAY_MS ((int64_t)86400000)

static void print_point(FILE *out, const struct cli_point *point, const struct cli_look *look)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf chart = QF_STRBUF_INIT;
    char number[CLI_NUMBER_MAX];

    if (!point->histogram) {
        (void)fputs(cli_number(point->value, number), out);
        return;
    }
    cli_histogram_chart(&chart, point->histogram, look);
    (void)fputs(qf_strbuf_cstr(&chart), out);
}

static const struct cli_point *last_point(const struct cli_series *series)
{
    return series->points.count ? &series->points.items[series->points.count - 1] : NULL;
}

static void print_time(FILE *out, int64_t ms)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    qf_time_print_rfc3339(&text, ms);
    (void)fputs(qf_strbuf_cstr(&text), out);
}

static void print_row(FILE *out, const struct cli_series *series, int width,
                      const struct cli_look *look)
{
    (void)fprintf(out, "%-*s  ", width, series->label);
    if (last_point(series))
        print_point(out, last_point(series), look);
    (void)fputc('\n', out);
}

static void print_points(FILE *out, const struct cli_series *series, const struct cli_look *look)
{
    (void)fprintf(out, "%s\n", series->label);
    for (size_t i = 0; i < series->points.count; i++) {
        (void)fprintf(out, "%*s", INDENT, "");
        print_time(out, series->points.items[i].ms);
        (void)fputs("  ", out);
        print_point(out, &series->points.items[i], look);
        (void)fputc('\n', out);
    }
}

static size_t shown(const struct cli_answer *answer, const struct cli_look *look)
{
    return QF_MIN(answer->series.count, look->series_max);
}

static void print_rest(FILE *out, const struct cli_answer *answer, const struct cli_look *look)
{
    if (shown(answer, look) < answer->series.count)
        (void)fprintf(out, "... and %zu more series: all of them into a pipe or with --csv\n",
                      answer->series.count - shown(answer, look));
}

void cli_print_instant(FILE *out, const struct cli_answer *answer, const struct cli_look *look)
{
    int width = 0;

    if (answer->text) {
        (void)fprintf(out, "%s\n", answer->text);
        return;
    }
    for (size_t i = 0; i < shown(answer, look); i++)
        width = QF_MAX(width, (int)strnlen(answer->series.items[i].label, LABEL_COLUMNS_MAX));
    for (size_t i = 0; i < shown(answer, look); i++) {
        if (answer->one_time)
            print_row(out, &answer->series.items[i], width, look);
        else
            print_points(out, &answer->series.items[i], look);
    }
    print_rest(out, answer, look);
}

/* --- charts --- */

/* What all charts have in common. */
struct canvas {
    int64_t first, last; /* times of the first and the last column */
    int64_t step;        /* how long a point stands: the least distance of any two */
    size_t columns;
    double *values; /* of one chart, reused */
};

/* A terminal shows these eight heights, and what is no height. */
struct pens {
    const char *heights[8], *infinite;
};

static const struct pens utf8_pens = { { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }, "∞" };
static const struct pens ascii_pens = { { "_", ".", "-", "~", "=", "+", "*", "#" }, "!" };

static size_t column_of(const struct canvas *canvas, int64_t ms)
{
    double part = canvas->last > canvas->first
                      ? (double)(ms - canvas->first) / (double)(canvas->last - canvas->first)
                      : 0;

    return (size_t)(QF_MIN(part, 1.0) * (double)(canvas->columns - 1));
}

/* The last value in each column's part of the time, up to the next point; NaN where there is none. */
static void fill(struct canvas *canvas, const struct cli_series *series, double *ret_low,
                 double *ret_high)
{
    double low = INFINITY, high = -INFINITY;

    for (size_t i = 0; i < canvas->columns; i++)
        canvas->values[i] = NAN;
    for (size_t i = 0; i < series->points.count; i++) {
        const struct cli_point *point = &series->points.items[i];
        size_t at = column_of(canvas, point->ms),
               next = column_of(canvas, point->ms + canvas->step);

        do
            canvas->values[at++] = point->value;
        while (at < next);
        if (isfinite(point->value)) {
            low = QF_MIN(low, point->value);
            high = QF_MAX(high, point->value);
        }
    }
    *ret_low = low;
    *ret_high = high;
}

static void print_chart(FILE *out, struct canvas *canvas, const struct cli_series *series,
                        const struct cli_look *look)
{
    const struct pens *pens = look->utf8 ? &utf8_pens : &ascii_pens;
    char number[CLI_NUMBER_MAX];
    double low, high, span;

    fill(canvas, series, &low, &high);
    span = high / 2 - low / 2; /* the whole of it may be no double */
    (void)fprintf(out, "%s\n%*s", series->label, INDENT, "");
    for (size_t i = 0; i < canvas->columns; i++) {
        double value = canvas->values[i];

        if (!isfinite(value))
            (void)fputs(isnan(value) ? " " : pens->infinite, out);
        else
            (void)fputs(pens->heights[span > 0 ? (int)((value / 2 - low / 2) / span * 7.999) : 3],
                        out);
    }
    (void)fprintf(out, "\n%*s", INDENT, "");
    if (low <= high) {
        (void)fprintf(out, "%s", cli_number(low, number));
        (void)fprintf(out, " .. %s, ", cli_number(high, number));
    }
    (void)fputs("last ", out);
    if (last_point(series))
        print_point(out, last_point(series), look);
    (void)fputc('\n', out);
}

/* Time of day; with the date over more than a day, with seconds below some minutes. */
static int tick_text(const struct canvas *canvas, int64_t ms, char *out, size_t size)
{
    struct qf_civil at = qf_civil_from_seconds(qf_floor_div(ms, 1000));
    int64_t span = canvas->last - canvas->first;

    if (span >= DAY_MS)
        return snprintf(out, size, "%02d-%02d %02d:%02d", at.month, at.day, at.hour, at.minute);
    if (span >= 600000)
        return snprintf(out, size, "%02d:%02d", at.hour, at.minute);
    return snprintf(out, size, "%02d:%02d:%02d", at.hour, at.minute, at.second);
}

/* A line of times, each where its column is: the first from there on, the last up to there. */
static void print_axis(FILE *out, const struct canvas *canvas)
{
    size_t ticks =
        canvas->last > canvas->first ? QF_MAX(canvas->columns / TICK_COLUMNS, (size_t)1) : 0;
    size_t at = 0;

    (void)fprintf(out, "%*s", INDENT, "");
    for (size_t i = 0; i <= ticks; i++) {
        double part = ticks ? (double)i / (double)ticks : 0;
        size_t column = (size_t)(part * (double)(canvas->columns - 1));
        char text[40];
        size_t len = (size_t)tick_text(
            canvas, canvas->first + (int64_t)(part * (double)(canvas->last - canvas->first)), text,
            sizeof(text));
        size_t begin = i == 0       ? 0
                       : i == ticks ? column + 1 - QF_MIN(len, column + 1)
                                    : column - QF_MIN(len / 2, column);

        if (i > 0 && begin <= at)
            continue; /* no room */
        (void)fprintf(out, "%*s%s", (int)(begin - at), "", text);
        at = begin + len;
    }
    (void)fprintf(out, "\n%*s", INDENT, "");
    print_time(out, canvas->first);
    (void)fputs(" .. ", out);
    print_time(out, canvas->last);
    (void)fputc('\n', out);
}

void cli_print_range(FILE *out, const struct cli_answer *answer, const struct cli_look *look)
{
    struct canvas canvas = { INT64_MAX, INT64_MIN, INT64_MAX, (size_t)(look->columns - INDENT),
                             NULL };

    for (size_t i = 0; i < answer->series.count; i++) {
        const struct cli_series *series = &answer->series.items[i];

        if (series->points.count == 0)
            continue;
        canvas.first = QF_MIN(canvas.first, series->points.items[0].ms);
        canvas.last = QF_MAX(canvas.last, last_point(series)->ms);
        for (size_t p = 1; p < series->points.count; p++)
            canvas.step =
                QF_MIN(canvas.step, series->points.items[p].ms - series->points.items[p - 1].ms);
    }
    if (canvas.first > canvas.last)
        return;
    canvas.step = QF_MIN(canvas.step, canvas.last - canvas.first);
    canvas.values = qf_xmalloc(canvas.columns * sizeof(*canvas.values));
    for (size_t i = 0; i < shown(answer, look); i++)
        print_chart(out, &canvas, &answer->series.items[i], look);
    print_rest(out, answer, look);
    print_axis(out, &canvas);
    free(canvas.values);
}

/* --- CSV --- */

static void print_field(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        (void)fputs(text, out);
        return;
    }
    (void)fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            (void)fputc('"', out);
        (void)fputc(*text, out);
    }
    (void)fputc('"', out);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of all labels, sorted; the name of the metric comes first by itself. */
static size_t names_of(const struct cli_answer *answer, const char ***ret_names)
{
    QF_VEC(const char *) names = { 0 };
    json_t *seen = json_object(), *value;
    const char *name;

    for (size_t i = 0; i < answer->series.count; i++) {
        json_object_foreach(answer->series.items[i].tags, name, value)
        {
            if (!json_object_get(seen, name)) {
                (void)json_object_set_new(seen, name, json_true());
                QF_VEC_PUSH(&names, name);
            }
        }
    }
    json_decref(seen);
    if (names.count)
        qsort(names.items, names.count, sizeof(names.items[0]), by_name);
    *ret_names = names.items;
    return names.count;
}

static void print_exact(FILE *out, const struct cli_point *point)
{
    char text[QF_DOUBLE_TEXT_MAX];

    if (point->histogram) {
        QF_CLEANUP(qf_freep) char *json = json_dumps(point->histogram, JSON_COMPACT);

        print_field(out, json ? json : "");
        return;
    }
    (void)qf_double_f(point->value, text);
    (void)fputs(text, out);
}

void cli_print_csv(FILE *out, const struct cli_answer *answer)
{
    const char **names;
    size_t count = names_of(answer, &names);

    (void)fputs("time,value", out);
    for (size_t i = 0; i < count; i++) {
        (void)fputc(',', out);
        print_field(out, names[i]);
    }
    (void)fputs("\r\n", out);
    for (size_t s = 0; s < answer->series.count; s++) {
        const struct cli_series *series = &answer->series.items[s];

        for (size_t i = 0; i < series->points.count; i++) {
            print_time(out, series->points.items[i].ms);
            (void)fputc(',', out);
            print_exact(out, &series->points.items[i]);
            for (size_t n = 0; n < count; n++) {
                const char *value = json_string_value(json_object_get(series->tags, names[n]));

                (void)fputc(',', out);
                print_field(out, value ? value : "");
            }
            (void)fputs("\r\n", out);
        }
    }
    free(names);
}
