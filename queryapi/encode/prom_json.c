/* prom_json.c - Prometheus's JSON. */
#include "queryapi/encode/prom_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/digits.h"
#include "base/pure/number.h"
#include "promql/histogram/layout.h"

#define NOTES_SHOWN_MAX 10

#define TIME_TEXT_MAX 32

/* Seconds, and thousandths where there are any. */
static char *put_time(char *out, int64_t ms)
{
    uint64_t magnitude = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    unsigned rest = (unsigned)(magnitude % 1000);

    if (ms < 0)
        *out++ = '-';
    out += qf_digits_u64(magnitude / 1000, out);
    if (rest) {
        *out++ = '.';
        *out++ = (char)('0' + rest / 100);
        *out++ = (char)('0' + rest / 10 % 10);
        *out++ = (char)('0' + rest % 10);
    }
    return out;
}

void qa_json_time(struct qf_strbuf *buf, int64_t ms)
{
    char text[TIME_TEXT_MAX];

    qf_strbuf_add(buf, text, (size_t)(put_time(text, ms) - text));
}

void qa_json_value(struct qf_strbuf *buf, double value)
{
    char text[QF_DOUBLE_TEXT_MAX];
    size_t len = qf_double_json(value, text);

    qf_strbuf_putc(buf, '"');
    qf_strbuf_add(buf, text, len);
    qf_strbuf_putc(buf, '"');
}

void qa_json_scalar_time(struct qf_strbuf *buf, int64_t ms)
{
    char text[TIME_TEXT_MAX];
    size_t len = (size_t)(put_time(text, ms) - text);

    for (bool fraction = ms % 1000 != 0; fraction && text[len - 1] == '0';)
        len--;
    qf_strbuf_add(buf, text, len);
}

void qa_json_scalar(struct qf_strbuf *buf, double value)
{
    char text[QF_DOUBLE_TEXT_MAX];
    size_t len = qf_double_f(value, text);

    qf_strbuf_putc(buf, '"');
    qf_strbuf_add(buf, text, len);
    qf_strbuf_putc(buf, '"');
}

/* Which ends belong to a bucket: 0 the upper one, 1 the lower one, 2 none, 3 both. */
static int boundaries(const struct pq_histogram *histogram, const struct pq_interval *bucket)
{
    bool low = pq_interval_has_low(histogram, bucket),
         high = pq_interval_has_high(histogram, bucket);

    return low && high ? 3 : low ? 1 : high ? 0 : 2;
}

static void put_bucket(struct qf_strbuf *buf, const struct pq_histogram *histogram,
                       const struct pq_interval *bucket)
{
    qf_strbuf_printf(buf, "[%d,", boundaries(histogram, bucket));
    qa_json_value(buf, bucket->low);
    qf_strbuf_putc(buf, ',');
    qa_json_value(buf, bucket->high);
    qf_strbuf_putc(buf, ',');
    qa_json_value(buf, bucket->count);
    qf_strbuf_putc(buf, ']');
}

void qa_json_histogram(struct qf_strbuf *buf, const struct pq_histogram *histogram)
{
    struct pq_interval_walk walk = pq_intervals_begin(histogram);
    struct pq_interval bucket;
    size_t written = 0;

    qf_strbuf_puts(buf, "{\"count\":");
    qa_json_value(buf, histogram->count);
    qf_strbuf_puts(buf, ",\"sum\":");
    qa_json_value(buf, histogram->sum);
    while (pq_intervals_next(&walk, &bucket)) {
        if (bucket.zero) { /* as it is defined, not where its observations must be */
            bucket.low = -histogram->zero_threshold;
            bucket.high = histogram->zero_threshold;
        }
        qf_strbuf_puts(buf, written++ ? "," : ",\"buckets\":[");
        put_bucket(buf, histogram, &bucket);
    }
    qf_strbuf_puts(buf, written ? "]}" : "}");
}

/* Large answers consist of these: one look at the buffer for all of it. */
static void put_float_point(struct qf_strbuf *buf, int64_t ms, double value)
{
    char *start = qf_strbuf_reserve(buf, TIME_TEXT_MAX + QF_DOUBLE_TEXT_MAX + 5), *out = start;

    if (!start)
        return;
    *out++ = '[';
    out = put_time(out, ms);
    *out++ = ',';
    *out++ = '"';
    out += qf_double_json(value, out);
    *out++ = '"';
    *out++ = ']';
    *out = '\0';
    buf->len += (size_t)(out - start);
}

/* More points than a query may ask for: what is behind them is written each time. */
#define TIMES_MAX 16384

struct qa_json_time_text {
    int64_t ms;
    unsigned char len; /* 0: not there, or too long */
    char text[23];     /* "[", the time and "," and a quotation mark */
};

void qa_json_times_done(struct qa_json_times *times)
{
    free(times->items);
    *times = (struct qa_json_times){ 0 };
}

static struct qa_json_time_text *time_text(struct qa_json_times *times, size_t index, int64_t ms)
{
    struct qa_json_time_text *item;
    char text[TIME_TEXT_MAX + 3], *end = text;

    if (index >= times->count) {
        size_t count = QF_MAX(times->count * 2, index + 64);

        times->items = qf_xrealloc(times->items, count * sizeof(*times->items));
        memset(times->items + times->count, 0, (count - times->count) * sizeof(*times->items));
        times->count = count;
    }
    item = &times->items[index];
    if (item->len && item->ms == ms)
        return item;
    *end++ = '[';
    end = put_time(end, ms);
    *end++ = ',';
    *end++ = '"';
    item->ms = ms;
    item->len = (unsigned char)(end - text <= (ptrdiff_t)sizeof(item->text) ? end - text : 0);
    memcpy(item->text, text, item->len);
    return item;
}

void qa_json_float(struct qf_strbuf *buf, struct qa_json_times *times, size_t index, int64_t ms,
                   double value)
{
    const struct qa_json_time_text *time = index < TIMES_MAX ? time_text(times, index, ms) : NULL;
    char *start, *out;

    if (!time || !time->len) {
        put_float_point(buf, ms, value);
        return;
    }
    start = out = qf_strbuf_reserve(buf, TIME_TEXT_MAX + QF_DOUBLE_TEXT_MAX + 5);
    if (!start)
        return;
    memcpy(out, time->text, sizeof(time->text)); /* a known size is no call */
    out += time->len;
    out += qf_double_json(value, out);
    *out++ = '"';
    *out++ = ']';
    *out = '\0';
    buf->len += (size_t)(out - start);
}

void qa_json_point(struct qf_strbuf *buf, int64_t ms, double value,
                   const struct pq_histogram *histogram)
{
    if (!histogram) {
        put_float_point(buf, ms, value);
        return;
    }
    qf_strbuf_putc(buf, '[');
    qa_json_time(buf, ms);
    qf_strbuf_putc(buf, ',');
    qa_json_histogram(buf, histogram);
    qf_strbuf_putc(buf, ']');
}

/* The notes of one level as ,"key":[...]; @extra is a line of its own in front, or NULL. */
static void put_notes(struct qf_strbuf *buf, const struct pq_notes *notes, struct qf_str query,
                      enum pq_note_level level, const char *extra)
{
    struct qf_strbuf text = QF_STRBUF_INIT;
    size_t total = 0, shown = 0;

    if (extra) {
        total++, shown++;
        qf_strbuf_printf(buf, ",\"warnings\":[\"%s\"", extra);
    }
    for (size_t i = 0; notes && i < notes->count; i++) {
        if (notes->items[i].level != level || ++total > NOTES_SHOWN_MAX)
            continue;
        qf_strbuf_puts(buf, shown++                    ? ","
                            : level == PQ_NOTE_WARNING ? ",\"warnings\":["
                                                       : ",\"infos\":[");
        qf_strbuf_reset(&text);
        pq_note_print(&text, &notes->items[i], query);
        qf_strbuf_json(buf, qf_strbuf_view(&text));
    }
    if (total > NOTES_SHOWN_MAX)
        qf_strbuf_printf(buf, ",\"%zu more %s annotations omitted\"", total - NOTES_SHOWN_MAX,
                         level == PQ_NOTE_WARNING ? "warning" : "info");
    if (shown)
        qf_strbuf_putc(buf, ']');
    qf_strbuf_done(&text);
}

void qa_json_notes(struct qf_strbuf *buf, const struct pq_notes *notes, struct qf_str query,
                   bool limited)
{
    put_notes(buf, notes, query, PQ_NOTE_WARNING,
              limited ? "results truncated due to limit" : NULL);
    put_notes(buf, notes, query, PQ_NOTE_INFO, NULL);
}

void qa_json_error(struct qf_strbuf *buf, const char *type, struct qf_str message)
{
    qf_strbuf_printf(buf, "{\"status\":\"error\",\"errorType\":\"%s\",\"error\":", type);
    qf_strbuf_json(buf, message);
    qf_strbuf_putc(buf, '}');
}
