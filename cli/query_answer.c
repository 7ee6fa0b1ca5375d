/* query_answer.c - what the API answered to `promfabric query`. */
#include "cli/query_answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/labels.h"
#include "base/pure/number.h"

static void series_done(struct cli_series *series)
{
    for (size_t i = 0; i < series->points.count; i++)
        json_decref(series->points.items[i].histogram);
    QF_VEC_DONE(&series->points);
    json_decref(series->tags);
    free(series->label);
}

void cli_answer_done(struct cli_answer *answer)
{
    for (size_t i = 0; i < answer->series.count; i++)
        series_done(&answer->series.items[i]);
    QF_VEC_DONE(&answer->series);
    free(answer->text);
    answer->text = NULL;
}

/* Floats are numbers, or text where JSON has no number for them. */
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

static struct cli_series *add_series(struct cli_answer *answer, json_t *tags)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    QF_VEC(struct qf_label) labels = { 0 };
    struct cli_series series = { .tags = json_incref(tags) };
    const char *name;
    json_t *value;

    json_object_foreach(tags, name, value)
    {
        if (json_is_string(value))
            QF_VEC_PUSH(&labels, ((struct qf_label){
                                     qf_str_from(name),
                                     { json_string_value(value), json_string_length(value) } }));
    }
    qf_labels_print_series(&text, qf_labels_normalize(labels.items, labels.count));
    series.label = qf_strbuf_take(&text);
    QF_VEC_DONE(&labels);
    QF_VEC_PUSH(&answer->series, series);
    return &answer->series.items[answer->series.count - 1];
}

static void add_point(const struct cli_answer *answer, struct cli_series *series, int64_t ms,
                      json_t *value)
{
    if (!answer->all_histograms && series->points.count > 0) {
        struct cli_point *last = &series->points.items[series->points.count - 1];

        json_decref(last->histogram);
        last->histogram = NULL;
    }
    QF_VEC_PUSH(&series->points,
                ((struct cli_point){ ms, number_of(value),
                                     json_is_object(value) ? json_incref(value) : NULL }));
}

/* --- a document --- */

/* [seconds, value] */
static void add_pair(const struct cli_answer *answer, struct cli_series *series, const json_t *pair)
{
    double seconds = json_number_value(json_array_get(pair, 0));

    add_point(answer, series, llround(seconds * 1000), json_array_get(pair, 1));
}

static int by_time(const void *a, const void *b)
{
    const struct cli_point *x = a, *y = b;

    return x->ms < y->ms ? -1 : x->ms > y->ms;
}

static void add_item(struct cli_answer *answer, const json_t *item)
{
    static const char *const one[] = { "value", "histogram" }, *const many[] = { "values",
                                                                                 "histograms" };
    struct cli_series *series = add_series(answer, json_object_get(item, "metric"));
    const json_t *pair;
    size_t i;

    for (size_t kind = 0; kind < QF_COUNT_OF(one); kind++) {
        if (json_object_get(item, one[kind]))
            add_pair(answer, series, json_object_get(item, one[kind]));
        json_array_foreach(json_object_get(item, many[kind]), i, pair)
            add_pair(answer, series, pair);
    }
    if (series->points.count) /* floats and histograms stand apart */
        qsort(series->points.items, series->points.count, sizeof(series->points.items[0]), by_time);
}

bool cli_answer_document(struct cli_answer *answer, const json_t *data)
{
    const char *type = json_string_value(json_object_get(data, "resultType"));
    const json_t *result = json_object_get(data, "result"), *item;
    size_t i;

    if (!type || !json_is_array(result))
        return false;
    answer->one_time = strcmp(type, "matrix") != 0;
    answer->all_histograms |= !answer->one_time;
    if (strcmp(type, "string") == 0) {
        const char *text = json_string_value(json_array_get(result, 1));

        answer->text = qf_xstrdup(text ? text : "");
        return true;
    }
    if (strcmp(type, "scalar") == 0) {
        add_pair(answer, add_series(answer, NULL), result);
        return true;
    }
    json_array_foreach(result, i, item) add_item(answer, item);
    return true;
}

/* --- events --- */

size_t cli_event_flags(const char *text)
{
    static const char *const values[] = { "{\"type\":\"batch\"", "{\"type\":\"result\"" };

    for (size_t i = 0; i < QF_COUNT_OF(values); i++)
        if (strncmp(text, values[i], strlen(values[i])) == 0)
            return JSON_DECODE_INT_AS_REAL; /* 1e19 is written with all its digits */
    return 0;
}

/* [id, value of the first step, ...], null where there is none. */
static void add_row(struct cli_answer *answer, const json_t *row, double start, double step)
{
    double id = json_number_value(json_array_get(row, 0));
    size_t count = json_array_size(row);

    if (!(id >= 0 && id < (double)answer->series.count))
        return;
    for (size_t i = 1; i < count; i++) {
        json_t *value = json_array_get(row, i);

        if (!json_is_null(value))
            add_point(answer, &answer->series.items[(size_t)id],
                      (int64_t)(start + (double)(i - 1) * step), value);
    }
}

void cli_answer_event(struct cli_answer *answer, const char *type, const json_t *data)
{
    const json_t *row;
    json_t *tags;
    size_t i;

    if (strcmp(type, "series") == 0) {
        json_array_foreach(json_object_get(data, "list"), i, tags)(void) add_series(answer, tags);
    } else if (strcmp(type, "batch") == 0) {
        double start = json_number_value(json_object_get(data, "start"));
        double step = json_number_value(json_object_get(data, "step"));

        json_array_foreach(json_object_get(data, "rows"), i, row) add_row(answer, row, start, step);
    }
}

static int by_label(const void *a, const void *b)
{
    return strcmp(((const struct cli_series *)a)->label, ((const struct cli_series *)b)->label);
}

void cli_answer_sort(struct cli_answer *answer)
{
    if (answer->series.count)
        qsort(answer->series.items, answer->series.count, sizeof(answer->series.items[0]),
              by_label);
}
