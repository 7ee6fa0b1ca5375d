/* histogram_text.c - native histograms as text. */
#include "segments/import/histogram_text.h"

#include <math.h>

#include "base/pure/number.h"

#define SCHEMA_MIN (-4)
#define SCHEMA_MAX 8

enum key {
    COUNT,
    SUM,
    SCHEMA,
    ZERO_THRESHOLD,
    ZERO_COUNT,
    NEGATIVE_SPANS,
    NEGATIVE_BUCKETS,
    POSITIVE_SPANS,
    POSITIVE_BUCKETS,
    CUSTOM_VALUES,
    RESET_HINT,
    KEY__COUNT,
};

static const char *const key_names[KEY__COUNT] = {
    [COUNT] = "count",
    [SUM] = "sum",
    [SCHEMA] = "schema",
    [ZERO_THRESHOLD] = "zero_threshold",
    [ZERO_COUNT] = "zero_count",
    [NEGATIVE_SPANS] = "negative_spans",
    [NEGATIVE_BUCKETS] = "negative_buckets",
    [POSITIVE_SPANS] = "positive_spans",
    [POSITIVE_BUCKETS] = "positive_buckets",
    [CUSTOM_VALUES] = "custom_values",
    [RESET_HINT] = "counter_reset_hint",
};

static const char *const hint_names[] = {
    [PQ_RESET_UNKNOWN] = "unknown",
    [PQ_RESET_YES] = "reset",
    [PQ_RESET_NO] = "not_reset",
    [PQ_RESET_GAUGE] = "gauge",
};

/* The text up to @end, taken off @rest together with it; all of it if there is no @end. */
static struct qf_str take(struct qf_str *rest, char end)
{
    const char *found = rest->len ? memchr(rest->data, end, rest->len) : NULL;
    size_t len = found ? (size_t)(found - rest->data) : rest->len;
    struct qf_str text = qf_str_sub(*rest, 0, len);

    *rest = qf_str_sub(*rest, len + 1, rest->len);
    return text;
}

static bool read_number(struct qf_str text, double *ret_number)
{
    if (!text.len || memchr(text.data, 'x', text.len) || memchr(text.data, 'X', text.len) ||
        !qf_parse_double(text, ret_number))
        return false;
    if (isnan(*ret_number))
        *ret_number = qf_double_from_bits(QF_NORMAL_NAN_BITS);
    return true;
}

/* How many items a list has; its brackets are off. */
static size_t list_length(struct qf_str list)
{
    size_t count = list.len ? 1 : 0;

    for (size_t i = 0; i < list.len; i++)
        count += list.data[i] == ',';
    return count;
}

static bool read_numbers(struct qf_str list, struct qf_arena *arena, const double **ret_numbers,
                         size_t *ret_count)
{
    size_t count = list_length(list);
    double *numbers = count ? QF_ARENA_ARRAY(arena, double, count) : NULL;

    for (size_t i = 0; i < count; i++)
        if (!numbers || !read_number(take(&list, ','), &numbers[i]))
            return false;
    *ret_numbers = numbers;
    *ret_count = count;
    return true;
}

/* "offset:length"; buckets have numbers of 32 bits and come in ascending order. */
static bool read_span(struct qf_str item, bool first, int64_t *index, struct pq_span *ret_span)
{
    struct qf_str offset_text = take(&item, ':');
    int64_t offset;
    uint64_t length;

    if (!qf_parse_i64(offset_text, &offset) || !qf_parse_u64(item, &length) || offset < INT32_MIN ||
        offset > INT32_MAX || length > INT32_MAX || (!first && offset < 0))
        return false;
    *index += offset + (int64_t)length;
    *ret_span = (struct pq_span){ (int32_t)offset, (uint32_t)length };
    return *index <= INT32_MAX;
}

static bool read_spans(struct qf_str list, struct qf_arena *arena, const struct pq_span **ret_spans,
                       size_t *ret_count)
{
    size_t count = list_length(list);
    struct pq_span *spans = count ? QF_ARENA_ARRAY(arena, struct pq_span, count) : NULL;
    int64_t index = 0;

    for (size_t i = 0; i < count; i++)
        if (!spans || !read_span(take(&list, ','), i == 0, &index, &spans[i]))
            return false;
    *ret_spans = spans;
    *ret_count = count;
    return true;
}

static bool read_schema(struct qf_str text, int32_t *ret_schema)
{
    int64_t schema;

    if (!qf_parse_i64(text, &schema) ||
        (schema != PQ_SCHEMA_CUSTOM && (schema < SCHEMA_MIN || schema > SCHEMA_MAX)))
        return false;
    *ret_schema = (int32_t)schema;
    return true;
}

static bool read_hint(struct qf_str text, struct pq_histogram *h)
{
    for (size_t i = 0; i < QF_COUNT_OF(hint_names); i++) {
        if (!qf_str_is(text, hint_names[i]))
            continue;
        h->reset_hint = (enum pq_reset_hint)i;
        h->reset_hint_given = true;
        return true;
    }
    return false;
}

static bool read_value(enum key key, struct qf_str text, struct qf_arena *arena,
                       struct pq_histogram *h)
{
    switch (key) {
    case COUNT:
        return read_number(text, &h->count);
    case SUM:
        return read_number(text, &h->sum);
    case SCHEMA:
        return read_schema(text, &h->schema);
    case ZERO_THRESHOLD:
        return read_number(text, &h->zero_threshold);
    case ZERO_COUNT:
        return read_number(text, &h->zero_count);
    case NEGATIVE_SPANS:
        return read_spans(text, arena, &h->negative_spans, &h->negative_span_count);
    case NEGATIVE_BUCKETS:
        return read_numbers(text, arena, &h->negative_buckets, &h->negative_bucket_count);
    case POSITIVE_SPANS:
        return read_spans(text, arena, &h->positive_spans, &h->positive_span_count);
    case POSITIVE_BUCKETS:
        return read_numbers(text, arena, &h->positive_buckets, &h->positive_bucket_count);
    case CUSTOM_VALUES:
        return read_numbers(text, arena, &h->custom_values, &h->custom_value_count);
    case RESET_HINT:
        return read_hint(text, h);
    case KEY__COUNT:
        break;
    }
    return false;
}

static bool is_list(enum key key)
{
    return key >= NEGATIVE_SPANS && key <= CUSTOM_VALUES;
}

/* One "key:value" off @rest, without the comma behind it. */
static const char *read_field(struct qf_str *rest, struct qf_arena *arena, unsigned *seen,
                              struct pq_histogram *h)
{
    struct qf_str name = take(rest, ':'), value;
    enum key key = COUNT;

    if (qf_str_is(name, "gcount") || qf_str_is(name, "gsum")) {
        name = qf_str_sub(name, 1, name.len);
        h->reset_hint = PQ_RESET_GAUGE;
        h->reset_hint_given = true;
    }
    while (key < KEY__COUNT && !qf_str_is(name, key_names[key]))
        key = (enum key)(key + 1);
    if (key == KEY__COUNT)
        return "a histogram has a key that is not known";
    if (*seen & 1u << key)
        return "a key of a histogram occurs twice";
    *seen |= 1u << key;
    if (is_list(key)) {
        if (!rest->len || rest->data[0] != '[' || !memchr(rest->data, ']', rest->len))
            return "a list in a histogram is malformed";
        *rest = qf_str_sub(*rest, 1, rest->len);
        value = take(rest, ']');
        if (rest->len && take(rest, ',').len)
            return "a list in a histogram is malformed";
    } else {
        value = take(rest, ',');
    }
    return read_value(key, value, arena, h) ? NULL : "a value in a histogram is malformed";
}

static bool spans_fit(const struct pq_span *spans, size_t span_count, size_t bucket_count)
{
    uint64_t total = 0;

    for (size_t i = 0; i < span_count; i++)
        total += spans[i].length;
    return total == bucket_count;
}

/* Custom buckets: bounds ascend and are finite, one bucket more than bounds, nothing but positive
 * buckets. */
static bool custom_fits(const struct pq_histogram *h)
{
    int64_t index = 0;

    if (h->schema != PQ_SCHEMA_CUSTOM)
        return h->custom_value_count == 0;
    for (size_t i = 0; i < h->custom_value_count; i++)
        if (!isfinite(h->custom_values[i]) || (i && h->custom_values[i - 1] >= h->custom_values[i]))
            return false;
    for (size_t i = 0; i < h->positive_span_count; i++) {
        if (h->positive_spans[i].offset < 0)
            return false;
        index += (int64_t)h->positive_spans[i].offset + h->positive_spans[i].length;
    }
    return (uint64_t)index <= h->custom_value_count + 1 && h->negative_span_count == 0 &&
           h->zero_count == 0 && h->zero_threshold == 0;
}

const char *sg_histogram_text_parse(struct qf_str text, struct qf_arena *arena,
                                    const struct pq_histogram **ret_histogram)
{
    struct pq_histogram *h = QF_ARENA_NEW(arena, struct pq_histogram);
    unsigned seen = 0, needed = 1u << COUNT | 1u << SUM | 1u << SCHEMA;
    struct qf_str rest;

    if (!h || text.len < 2 || text.data[0] != '{' || text.data[text.len - 1] != '}')
        return "a histogram without braces";
    rest = qf_str_sub(text, 1, text.len - 1);
    while (rest.len) {
        const char *what = read_field(&rest, arena, &seen, h);

        if (what)
            return what;
    }
    if ((seen & needed) != needed)
        return "a histogram lacks its count, sum or schema";
    if (!spans_fit(h->positive_spans, h->positive_span_count, h->positive_bucket_count) ||
        !spans_fit(h->negative_spans, h->negative_span_count, h->negative_bucket_count))
        return "the spans of a histogram do not fit its buckets";
    if (!custom_fits(h))
        return "the custom bounds of a histogram do not fit";
    *ret_histogram = h;
    return NULL;
}

/* -- Printing --------------------------------------------------------------------------------- */

static void print_number(struct qf_strbuf *buf, const char *key, double value)
{
    char text[QF_DOUBLE_TEXT_MAX];

    qf_strbuf_puts(buf, key);
    qf_strbuf_add(buf, text, qf_double_g(value, text));
}

static void print_numbers(struct qf_strbuf *buf, const char *key, const double *numbers,
                          size_t count)
{
    if (!count)
        return;
    qf_strbuf_puts(buf, key);
    for (size_t i = 0; i < count; i++)
        print_number(buf, i ? "," : "", numbers[i]);
    qf_strbuf_putc(buf, ']');
}

static void print_spans(struct qf_strbuf *buf, const char *key, const struct pq_span *spans,
                        size_t count)
{
    if (!count)
        return;
    qf_strbuf_puts(buf, key);
    for (size_t i = 0; i < count; i++)
        qf_strbuf_printf(buf, "%s%d:%u", i ? "," : "", spans[i].offset, spans[i].length);
    qf_strbuf_putc(buf, ']');
}

void sg_histogram_text_print(struct qf_strbuf *buf, const struct pq_histogram *h)
{
    print_number(buf, "{count:", h->count);
    print_number(buf, ",sum:", h->sum);
    qf_strbuf_printf(buf, ",schema:%d", h->schema);
    print_number(buf, ",zero_threshold:", h->zero_threshold);
    print_number(buf, ",zero_count:", h->zero_count);
    print_spans(buf, ",negative_spans:[", h->negative_spans, h->negative_span_count);
    print_numbers(buf, ",negative_buckets:[", h->negative_buckets, h->negative_bucket_count);
    print_spans(buf, ",positive_spans:[", h->positive_spans, h->positive_span_count);
    print_numbers(buf, ",positive_buckets:[", h->positive_buckets, h->positive_bucket_count);
    print_numbers(buf, ",custom_values:[", h->custom_values, h->custom_value_count);
    if (h->reset_hint_given || h->reset_hint != PQ_RESET_UNKNOWN)
        qf_strbuf_printf(buf, ",counter_reset_hint:%s", hint_names[h->reset_hint]);
    qf_strbuf_putc(buf, '}');
}
