/* histogram_chart.c - a native histogram as bars. */
#include "cli/histogram_chart.h"

#include <math.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"

#define BAR_COLUMNS 40
#define DIGITS 4 /* what is to be seen is the shape */

/* One line: a bucket, or several neighbours. */
struct bar {
    char low[QF_DOUBLE_TEXT_MAX], high[QF_DOUBLE_TEXT_MAX];
    bool has_low, has_high; /* the bound itself belongs to it */
    double count;
};

static double number_of(const json_t *value)
{
    double number = NAN;

    if (json_is_string(value))
        (void)qf_parse_double(qf_str_from(json_string_value(value)), &number);
    return number;
}

static void put_short(char *text, double number)
{
    if (isfinite(number))
        (void)snprintf(text, QF_DOUBLE_TEXT_MAX, "%.*g", DIGITS, number);
    else
        (void)qf_double_g(number, text);
}

/* [which ends belong to it, low, high, count] */
static struct bar bar_of(const json_t *bucket)
{
    json_int_t ends = json_integer_value(json_array_get(bucket, 0));
    struct bar bar = { .has_low = ends == 1 || ends == 3,
                       .has_high = ends == 0 || ends == 3,
                       .count = number_of(json_array_get(bucket, 3)) };

    put_short(bar.low, number_of(json_array_get(bucket, 1)));
    put_short(bar.high, number_of(json_array_get(bucket, 2)));
    return bar;
}

/* The buckets from @first to before @end as one. */
static struct bar joined(const json_t *buckets, size_t first, size_t end)
{
    struct bar bar = bar_of(json_array_get(buckets, first));

    for (size_t i = first + 1; i < end; i++) {
        struct bar next = bar_of(json_array_get(buckets, i));

        memcpy(bar.high, next.high, sizeof(bar.high));
        bar.has_high = next.has_high;
        bar.count += next.count;
    }
    return bar;
}

static void put_bar(struct qf_strbuf *buf, double share)
{
    static const char *const parts[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    unsigned eighths = isfinite(share) ? (unsigned)ceil(share * BAR_COLUMNS * 8) : 0;

    for (unsigned i = 0; i < eighths / 8; i++)
        qf_strbuf_puts(buf, "█");
    qf_strbuf_puts(buf, parts[eighths % 8]);
}

static void put_bars(struct qf_strbuf *buf, const struct bar *bars, size_t count)
{
    int low = 0, high = 0;
    double most = 0;

    for (size_t i = 0; i < count; i++) {
        low = QF_MAX(low, (int)strlen(bars[i].low));
        high = QF_MAX(high, (int)strlen(bars[i].high));
        most = fmax(most, fabs(bars[i].count));
    }
    for (size_t i = 0; i < count; i++) {
        const struct bar *b = &bars[i];
        char count_text[QF_DOUBLE_TEXT_MAX];

        put_short(count_text, b->count);
        qf_strbuf_printf(buf, "\n  %c%*s, %*s%c %9s ", b->has_low ? '[' : '(', low, b->low, high,
                         b->high, b->has_high ? ']' : ')', count_text);
        put_bar(buf, most > 0 ? fabs(b->count) / most : 0);
    }
}

void cli_histogram_chart(struct qf_strbuf *buf, const json_t *histogram)
{
    const char *count = json_string_value(json_object_get(histogram, "count"));
    const char *sum = json_string_value(json_object_get(histogram, "sum"));
    const json_t *buckets = json_object_get(histogram, "buckets");
    size_t total = json_array_size(buckets);
    size_t each = (total + CLI_HISTOGRAM_LINES_MAX - 1) / CLI_HISTOGRAM_LINES_MAX, lines = 0;
    struct bar bars[CLI_HISTOGRAM_LINES_MAX];

    if (!count || !sum) {
        QF_CLEANUP(qf_freep) char *text = json_dumps(histogram, JSON_COMPACT | JSON_ENCODE_ANY);

        qf_strbuf_puts(buf, text ? text : "");
        return;
    }
    qf_strbuf_printf(buf, "count %s, sum %s", count, sum);
    for (size_t at = 0; at < total; at += each)
        bars[lines++] = joined(buckets, at, QF_MIN(at + each, total));
    put_bars(buf, bars, lines);
}
