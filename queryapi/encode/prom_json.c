/* prom_json.c - Prometheus's JSON. */
#include "queryapi/encode/prom_json.h"

#include <math.h>
#include <string.h>

#include "base/pure/number.h"

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

/* The upper bound of bucket @index in an exponential schema. */
static double exponential_bound(int32_t schema, int64_t index)
{
    double bound;

    if (schema <= 0)
        bound = exp2((double)index * ldexp(1, -schema));
    else
        bound = ldexp(exp2((double)(index & ((1 << schema) - 1)) / ldexp(1, schema)),
                      (int)(index >> schema));
    return bound;
}

struct bucket_list {
    struct qf_strbuf *buf;
    const struct pq_histogram *histogram;
    size_t written;
};

static void put_bucket(struct bucket_list *list, int boundaries, double low, double high,
                       double count)
{
    if (count == 0)
        return;
    qf_strbuf_puts(list->buf, list->written++ ? "," : ",\"buckets\":[");
    qf_strbuf_printf(list->buf, "[%d,", boundaries);
    qa_json_value(list->buf, low);
    qf_strbuf_putc(list->buf, ',');
    qa_json_value(list->buf, high);
    qf_strbuf_putc(list->buf, ',');
    qa_json_value(list->buf, count);
    qf_strbuf_putc(list->buf, ']');
}

static void put_positive(struct bucket_list *list, int64_t index, double count)
{
    const struct pq_histogram *h = list->histogram;

    if (h->schema != PQ_SCHEMA_CUSTOM) {
        put_bucket(list, 0, exponential_bound(h->schema, index - 1),
                   exponential_bound(h->schema, index), count);
        return;
    }
    put_bucket(list, 0,
               index > 0 && (size_t)index <= h->custom_value_count ? h->custom_values[index - 1]
                                                                   : -INFINITY,
               index >= 0 && (size_t)index < h->custom_value_count ? h->custom_values[index]
                                                                   : INFINITY,
               count);
}

/* Negative buckets come with the largest magnitude first. */
static void put_negative_buckets(struct bucket_list *list)
{
    const struct pq_histogram *h = list->histogram;
    size_t left = h->negative_bucket_count;
    int64_t index = 0;

    for (size_t i = 0; i < h->negative_span_count; i++)
        index += (int64_t)h->negative_spans[i].offset + h->negative_spans[i].length;
    for (size_t i = h->negative_span_count; i-- > 0;) {
        for (uint32_t k = h->negative_spans[i].length; k-- > 0 && left > 0;) {
            index--;
            left--;
            put_bucket(list, 1, -exponential_bound(h->schema, index),
                       -exponential_bound(h->schema, index - 1), h->negative_buckets[left]);
        }
        index -= h->negative_spans[i].offset;
    }
}

static void put_positive_buckets(struct bucket_list *list)
{
    const struct pq_histogram *h = list->histogram;
    size_t at = 0;
    int64_t index = 0;

    for (size_t i = 0; i < h->positive_span_count; i++) {
        index += h->positive_spans[i].offset;
        for (uint32_t k = 0; k < h->positive_spans[i].length && at < h->positive_bucket_count; k++)
            put_positive(list, index++, h->positive_buckets[at++]);
    }
}

void qa_json_histogram(struct qf_strbuf *buf, const struct pq_histogram *histogram)
{
    struct bucket_list list = { .buf = buf, .histogram = histogram };

    qf_strbuf_puts(buf, "{\"count\":");
    qa_json_value(buf, histogram->count);
    qf_strbuf_puts(buf, ",\"sum\":");
    qa_json_value(buf, histogram->sum);
    put_negative_buckets(&list);
    put_bucket(&list, 3, -histogram->zero_threshold, histogram->zero_threshold,
               histogram->zero_count);
    put_positive_buckets(&list);
    qf_strbuf_puts(buf, list.written ? "]}" : "}");
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
