/* text.c - lines of text as a request. */
#include "ingest/accept/text.h"

#include <stdio.h>
#include <string.h>

#include "segments/import/histogram_text.h"
#include "segments/import/text.h"

/* What a message shows of a line. */
#define SHOWN_MAX 120

struct reading {
    struct text_state state;
    struct qf_arena *arena;
    struct in_request *request;
    bool timeless;
};

static size_t count_lines(struct qf_str text)
{
    size_t count = 1;

    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == '\n';
    return count;
}

static void refuse(struct reading *reading, struct qf_str line, size_t number, const char *what)
{
    struct in_request *request = reading->request;
    char shown[SHOWN_MAX + 1];
    size_t len = QF_MIN(line.len, (size_t)SHOWN_MAX);

    request->refused.samples++;
    if (request->first[0])
        return;
    for (size_t i = 0; i < len; i++)
        shown[i] = line.data[i] >= ' ' && line.data[i] < 0x7f ? line.data[i] : '?';
    shown[len] = 0;
    (void)snprintf(request->first, sizeof(request->first), "line %zu: %s: %s", number, what, shown);
}

/* A line that is a sample becomes a series of its own: senders group theirs. */
static const char *add_sample(struct reading *reading, const struct text_sample *sample)
{
    struct in_series *series = &reading->request->series[reading->request->series_count];
    struct in_sample *own = QF_ARENA_NEW(reading->arena, struct in_sample);
    struct qf_labels labels;
    const char *what = own ? text_labels(&reading->state, sample, reading->arena, &labels) : NULL;

    if (!own || what)
        return what;
    *own = (struct in_sample){ .ts = sample->ts,
                               .start_ts = sample->start_ts,
                               .value = sample->value };
    if (sample->histogram.len)
        what = sg_histogram_text_parse(sample->histogram, reading->arena, &own->histogram);
    if (what)
        return what;
    *series = (struct in_series){ .label_count = labels.count, .samples = own, .sample_count = 1 };
    series->labels = QF_ARENA_ARRAY(reading->arena, struct qf_label, labels.count);
    if (series->labels && labels.count)
        memcpy(series->labels, labels.items, labels.count * sizeof(*labels.items));
    reading->timeless |= sample->timeless;
    reading->request->series_count++;
    return NULL;
}

static void read_line(struct reading *reading, struct qf_str line, size_t number)
{
    struct text_sample sample;
    const char *what = NULL;

    switch (text_parse_line(&reading->state, line, &sample, &what)) {
    case TEXT_SAMPLE:
        what = add_sample(reading, &sample);
        break;
    case TEXT_NOTHING:
    case TEXT_MALFORMED:
        break;
    }
    if (what)
        refuse(reading, line, number, what);
}

qf_rc in_text_decode(struct qf_str text, bool open_metrics, int64_t now_ms, struct qf_arena *arena,
                     struct in_request *ret_request, bool *ret_timeless, struct qf_err *err)
{
    struct reading reading = { .state = { .format = open_metrics ? SG_IMPORT_OPENMETRICS
                                                                 : SG_IMPORT_PROMETHEUS,
                                          .timeless = true,
                                          .now_ms = now_ms },
                               .arena = arena,
                               .request = ret_request };
    size_t number = 0;

    *ret_request = (struct in_request){ 0 };
    ret_request->series = QF_ARENA_ARRAY(arena, struct in_series, count_lines(text));
    while (text.len && !qf_arena_failed(arena)) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t)(end - text.data) : text.len;

        read_line(&reading, qf_str_sub(text, 0, len), ++number);
        text = qf_str_sub(text, len + 1, text.len);
    }
    *ret_timeless = reading.timeless;
    if (qf_arena_failed(arena))
        return qf_err_set(err, QF_ELIMIT, "the request needs more memory than it may have");
    return QF_OK;
}
