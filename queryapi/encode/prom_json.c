/* prom_json.c - Prometheus's JSON. */
#include "queryapi/encode/prom_json.h"

#include <math.h>
#include <string.h>

#include "base/pure/number.h"
#include "promql/histogram/layout.h"

#define NOTES_SHOWN_MAX 10

#define TIME_TEXT_MAX 32

static const char pairs[] = "00010203040506070809101112131415161718192021222324252627282930313233"
                            "34353637383940414243444546474849505152535455565758596061626364656667"
                            "6869707172737475767778798081828384858687888990919293949596979899";

/* Two digits at a time, from the right. Seconds of our days have ten. */
static char *put_digits(char *out, uint64_t value)
{
    char digits[20], *at = digits + sizeof(digits);
    size_t len;

    for (; value > UINT32_MAX; value /= 100)
        memcpy(at -= 2, pairs + value % 100 * 2, 2);
    for (uint32_t low = (uint32_t)value; low || at == digits + sizeof(digits); low /= 100)
        memcpy(at -= 2, pairs + low % 100 * 2, 2);
    if (*at == '0' && at + 1 < digits + sizeof(digits))
        at++;
    len = (size_t)(digits + sizeof(digits) - at);
    memcpy(out, at, len);
    return out + len;
}

/* Seconds, and thousandths where there are any. */
static char *put_time(char *out, int64_t ms)
{
    uint64_t magnitude = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    unsigned rest = (unsigned)(magnitude % 1000);

    if (ms < 0)
        *out++ = '-';
    out = put_digits(out, magnitude / 1000);
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
