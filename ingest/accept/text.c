/* text.c - lines of text as a request. */
#include "ingest/accept/text.h"

#include <stdio.h>
#include <string.h>

#include "base/pure/map.h"
#include "segments/import/histogram_text.h"
#include "segments/import/text.h"

/* What a message shows of a line. */
#define SHOWN_MAX 120

struct reading {
    struct text_state state;
    struct qf_arena *arena;
    struct in_request *request;
    struct qf_map metrics; /* names to places in request->metadata */
    bool timeless;
};

static size_t count_lines(struct qf_str text)
{
    size_t count = 1;

    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == '\n';
    return count;
}

/* Lines that may say something of a metric. */
static size_t count_comments(struct qf_str text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == '#';
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

static const char *add_exemplar(struct reading *reading, const struct text_sample *sample,
                                struct in_series *series)
{
    struct in_exemplar *own = QF_ARENA_NEW(reading->arena, struct in_exemplar);
    struct text_exemplar exemplar;
    const char *what =
        own ? text_exemplar(&reading->state, sample, reading->arena, &exemplar) : NULL;

    if (!own || what)
        return what;
    *own = (struct in_exemplar){ .label_count = exemplar.labels.count,
                                 .value = exemplar.value,
                                 .ts = exemplar.ts };
    own->labels = QF_ARENA_ARRAY(reading->arena, struct qf_label, exemplar.labels.count + 1);
    if (own->labels && exemplar.labels.count)
        memcpy(own->labels, exemplar.labels.items,
               exemplar.labels.count * sizeof(*exemplar.labels.items));
    series->exemplars = own;
    series->exemplar_count = own->labels ? 1 : 0;
    return NULL;
}

/* Of a metric HELP, TYPE and UNIT come one by one. */
static const char *add_metadata(struct reading *reading, const struct text_metadata *metadata)
{
    struct in_request *request = reading->request;
    struct in_metadata *about;
    struct qf_str name, text;
    const char *what = text_metadata(metadata, reading->arena, &name, &text);
    bool fresh = false;

    if (what)
        return qf_arena_failed(reading->arena) ? NULL : what;
    about =
        &request->metadata[*qf_map_put(&reading->metrics, name, request->metadata_count, &fresh)];
    if (fresh)
        *about = (struct in_metadata){ .name = name, .help = QF_STR(""), .unit = QF_STR("") };
    request->metadata_count += fresh;
    if (metadata->says == TEXT_SAYS_TYPE)
        about->type = metadata->type;
    else if (metadata->says == TEXT_SAYS_HELP)
        about->help = text;
    else
        about->unit = text;
    return NULL;
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
    *series = (struct in_series){ 0 };
    *own = (struct in_sample){ .ts = sample->ts,
                               .start_ts = sample->start_ts,
                               .value = sample->value };
    if (sample->histogram.len)
        what = sg_histogram_text_parse(sample->histogram, reading->arena, &own->histogram);
    if (!what && sample->exemplar.len)
        what = add_exemplar(reading, sample, series);
    if (what)
        return what;
    series->label_count = labels.count;
    series->samples = own;
    series->sample_count = 1;
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
    case TEXT_METADATA:
        what = add_metadata(reading, &sample.metadata);
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
    ret_request->metadata = QF_ARENA_ARRAY(arena, struct in_metadata, count_comments(text) + 1);
    while (text.len && !qf_arena_failed(arena)) {
        const char *end = memchr(text.data, '\n', text.len);
        size_t len = end ? (size_t)(end - text.data) : text.len;

        read_line(&reading, qf_str_sub(text, 0, len), ++number);
        text = qf_str_sub(text, len + 1, text.len);
    }
    qf_map_done(&reading.metrics);
    *ret_timeless = reading.timeless;
    if (qf_arena_failed(arena))
        return qf_err_set(err, QF_ELIMIT, "the request needs more memory than it may have");
    return QF_OK;
}
