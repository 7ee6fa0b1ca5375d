/* request.c - what of a request may be written. */
#include "ingest/core/request.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/pure/strbuf.h"
#include "base/pure/utf8.h"
#include "promql/histogram/check.h"

/* Characters of all names and values of an exemplar's labels: OpenMetrics allows no more. */
#define EXEMPLAR_RUNES_MAX 128
/* What a message shows of a series. */
#define SHOWN_BYTES_MAX 200

struct check {
    struct in_request *request;
    const struct in_check_limits *limits;
    const struct in_series *series; /* the one that is looked at */
};

/* What a sender reads must be text: whatever is not, is left out. */
static void show_bytes(struct qf_strbuf *buf, struct qf_str bytes)
{
    bytes = qf_str_sub(bytes, 0, SHOWN_BYTES_MAX);
    for (size_t i = 0; i < bytes.len; i++)
        qf_strbuf_putc(buf, bytes.data[i] >= ' ' && bytes.data[i] < 0x7f ? bytes.data[i] : '?');
}

static void show_series(struct qf_strbuf *buf, const struct in_series *series)
{
    qf_strbuf_putc(buf, '{');
    for (size_t i = 0; i < series->label_count && buf->len < SHOWN_BYTES_MAX; i++) {
        qf_strbuf_puts(buf, i ? ", " : "");
        show_bytes(buf, series->labels[i].name);
        qf_strbuf_puts(buf, "=\"");
        show_bytes(buf, series->labels[i].value);
        qf_strbuf_putc(buf, '"');
    }
    if (buf->len > SHOWN_BYTES_MAX) {
        buf->len = SHOWN_BYTES_MAX;
        qf_strbuf_puts(buf, "...");
    }
    qf_strbuf_putc(buf, '}');
}

/* Note what is wrong, with the series it is about, if it is the first thing refused. */
QF_PRINTF(2, 3) static void note(struct check *check, const char *fmt, ...)
{
    struct qf_strbuf shown = QF_STRBUF_INIT;
    char what[160];
    va_list args;

    if (check->request->first[0])
        return;
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    if (check->series)
        show_series(&shown, check->series);
    (void)snprintf(check->request->first, sizeof(check->request->first), "%s%s%s", what,
                   shown.len ? ": series " : "", shown.len ? qf_strbuf_cstr(&shown) : "");
    qf_strbuf_done(&shown);
}

/* --- labels --- */

/* Why a limit of the tenant refuses a series. */
static const char too_many_labels[] = "it has too many labels";
static const char name_too_long[] = "a label's name is too long";
static const char value_too_long[] = "a label's value is too long";
static const char metric_too_long[] = "its metric name is too long";

/* Which limit says so; QF_LIMIT__COUNT: none does. */
static enum qf_limit limit_of(const char *why)
{
    if (why == too_many_labels)
        return QF_LIMIT_LABELS;
    if (why == name_too_long || why == metric_too_long)
        return QF_LIMIT_NAME_BYTES;
    return why == value_too_long ? QF_LIMIT_VALUE_BYTES : QF_LIMIT__COUNT;
}

static size_t limit_value(const struct in_check_limits *limits, enum qf_limit limit)
{
    if (limit == QF_LIMIT_LABELS)
        return limits->labels_max;
    return limit == QF_LIMIT_NAME_BYTES ? limits->name_bytes_max : limits->value_bytes_max;
}

static const char *check_label(const struct qf_label *label, const struct in_check_limits *limits)
{
    if (label->name.len == 0)
        return "a label has no name";
    if (label->name.len > limits->name_bytes_max)
        return name_too_long;
    if (label->value.len > limits->value_bytes_max)
        return value_too_long;
    if (!qf_utf8_valid(label->name) || !qf_utf8_valid(label->value))
        return "a label is not UTF-8";
    return NULL;
}

/* Sort by name. Senders sort: the loop is one pass over labels in order. Bounded by labels_max. */
static void sort_labels(struct qf_label *labels, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct qf_label label = labels[i];
        size_t at = i;

        for (; at > 0 && qf_str_cmp(labels[at - 1].name, label.name) > 0; at--)
            labels[at] = labels[at - 1];
        labels[at] = label;
    }
}

/* A label with an empty value is no label. Returns how many are left. */
static size_t drop_empty(struct qf_label *labels, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (labels[i].value.len)
            labels[kept++] = labels[i];
    return kept;
}

static const char *check_labels(struct qf_label *labels, size_t *count,
                                const struct in_check_limits *limits)
{
    if (*count > limits->labels_max)
        return too_many_labels;
    for (size_t i = 0; i < *count; i++) {
        const char *why = check_label(&labels[i], limits);

        if (why)
            return why;
    }
    sort_labels(labels, *count);
    for (size_t i = 1; i < *count; i++)
        if (qf_str_eq(labels[i - 1].name, labels[i].name))
            return "a label is there twice";
    *count = drop_empty(labels, *count);
    return NULL;
}

static const char *check_series_labels(struct in_series *series,
                                       const struct in_check_limits *limits)
{
    const char *why = series->bad;
    struct qf_str name;

    if (!why)
        why = check_labels(series->labels, &series->label_count, limits);
    if (why)
        return why;
    name = qf_labels_get(in_series_labels(series), QF_STR(QF_METRIC_NAME));
    if (name.len == 0)
        return "it has no metric name";
    return name.len > limits->name_bytes_max ? metric_too_long : NULL;
}

/* --- samples, exemplars, metadata --- */

static const char *check_sample(const struct in_sample *sample,
                                const struct in_check_limits *limits)
{
    if (sample->bad)
        return sample->bad;
    if (sample->ts < limits->ts_min)
        return "out of bounds: a sample is too old";
    if (sample->ts > limits->ts_max)
        return "out of bounds: a sample is too far in the future";
    return sample->histogram ? pq_histogram_check(sample->histogram) : NULL;
}

static void count_sample(struct in_amounts *amounts, const struct in_sample *sample)
{
    if (sample->histogram || sample->bad)
        amounts->histograms++;
    else
        amounts->samples++;
}

static void check_samples(struct check *check, struct in_series *series)
{
    size_t kept = 0;

    for (size_t i = 0; i < series->sample_count; i++) {
        const char *why = check_sample(&series->samples[i], check->limits);

        count_sample(why ? &check->request->refused : &check->request->accepted,
                     &series->samples[i]);
        if (why)
            note(check, "%s (time %lld)", why, (long long)series->samples[i].ts);
        else
            series->samples[kept++] = series->samples[i];
    }
    series->sample_count = kept;
}

static size_t runes(struct qf_str text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += ((uint8_t)text.data[i] & 0xc0) != 0x80;
    return count;
}

static const char *check_exemplar(struct in_exemplar *exemplar,
                                  const struct in_check_limits *limits)
{
    size_t total = 0;
    const char *why = exemplar->bad ? "an exemplar's labels cannot be read" : NULL;

    if (!why)
        why = check_labels(exemplar->labels, &exemplar->label_count, limits);
    if (why)
        return why;
    for (size_t i = 0; i < exemplar->label_count; i++)
        total += runes(exemplar->labels[i].name) + runes(exemplar->labels[i].value);
    return total > EXEMPLAR_RUNES_MAX ? "an exemplar's labels are too long" : NULL;
}

static void check_exemplars(struct check *check, struct in_series *series)
{
    size_t kept = 0;

    for (size_t i = 0; i < series->exemplar_count; i++) {
        const char *why = check_exemplar(&series->exemplars[i], check->limits);

        if (why) {
            check->request->refused.exemplars++;
            note(check, "%s", why);
        } else {
            check->request->accepted.exemplars++;
            series->exemplars[kept++] = series->exemplars[i];
        }
    }
    series->exemplar_count = kept;
}

/* Nothing of a series without usable labels can be written. */
static void refuse_series(struct check *check, const struct in_series *series, const char *why)
{
    enum qf_limit limit = limit_of(why);

    for (size_t i = 0; i < series->sample_count; i++)
        count_sample(&check->request->refused, &series->samples[i]);
    check->request->refused.exemplars += series->exemplar_count;
    check->request->refused.series++;
    if (limit == QF_LIMIT__COUNT) {
        note(check, "%s", why);
        return;
    }
    check->request->limited_by[limit - QF_LIMIT_WRITE_FIRST] += series->sample_count;
    note(check, "%s (its limit is %s=%zu)", why, qf_limit_name(limit),
         limit_value(check->limits, limit));
}

/* True: there is something left to write. */
static bool check_series(struct check *check, struct in_series *series)
{
    const char *why;

    check->series = series;
    why = check_series_labels(series, check->limits);
    if (why) {
        refuse_series(check, series, why);
        return false;
    }
    check_samples(check, series);
    check_exemplars(check, series);
    return series->sample_count || series->exemplar_count;
}

static void check_metadata(struct check *check)
{
    struct in_request *request = check->request;
    size_t kept = 0;

    check->series = NULL;
    for (size_t i = 0; i < request->metadata_count; i++) {
        const struct in_metadata *about = &request->metadata[i];

        if (about->name.len == 0 || about->name.len > check->limits->name_bytes_max ||
            about->help.len > check->limits->value_bytes_max ||
            about->unit.len > check->limits->value_bytes_max || !qf_utf8_valid(about->name) ||
            !qf_utf8_valid(about->help) || !qf_utf8_valid(about->unit))
            note(check, "the metadata of a metric are too long, not UTF-8 or without a name");
        else
            request->metadata[kept++] = *about;
    }
    request->metadata_count = kept;
}

void in_request_check(struct in_request *request, const struct in_check_limits *limits)
{
    struct check check = { .request = request, .limits = limits };
    size_t kept = 0;

    for (size_t i = 0; i < request->series_count; i++)
        if (check_series(&check, &request->series[i]))
            request->series[kept++] = request->series[i];
    request->series_count = kept;
    request->accepted.series = kept;
    check_metadata(&check);
}
