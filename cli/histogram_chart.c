/* histogram_chart.c - a native histogram as bars. */
#include "cli/histogram_chart.h"

#include <math.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"

#define BAR_COLUMNS_MIN 10
#define COUNT_COLUMNS 9

/* One line: a bucket, or several neighbours. */
struct bar {
    char low[CLI_NUMBER_MAX], high[CLI_NUMBER_MAX];
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

/* [which ends belong to it, low, high, count] */
static struct bar bar_of(const json_t *bucket)
{
    json_int_t ends = json_integer_value(json_array_get(bucket, 0));
    struct bar bar = { .has_low = ends == 1 || ends == 3,
                       .has_high = ends == 0 || ends == 3,
                       .count = number_of(json_array_get(bucket, 3)) };

    (void)cli_number(number_of(json_array_get(bucket, 1)), bar.low);
    (void)cli_number(number_of(json_array_get(bucket, 2)), bar.high);
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

static void put_bar(struct qf_strbuf *buf, double share, int columns, bool utf8)
{
    static const char *const parts[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    unsigned eighths = isfinite(share) ? (unsigned)ceil(share * columns * 8) : 0;

    if (!utf8)
        eighths = (eighths + 7) / 8 * 8;
    for (unsigned i = 0; i < eighths / 8; i++)
        qf_strbuf_puts(buf, utf8 ? "█" : "#");
    qf_strbuf_puts(buf, parts[eighths % 8]);
}

static void put_bars(struct qf_strbuf *buf, const struct bar *bars, size_t count,
                     const struct cli_look *look)
{
    int low = 0, high = 0, columns;
    double most = 0;

    for (size_t i = 0; i < count; i++) {
        low = QF_MAX(low, (int)strlen(bars[i].low));
        high = QF_MAX(high, (int)strlen(bars[i].high));
        most = fmax(most, fabs(bars[i].count));
    }
    columns = QF_MAX(look->columns - low - high - COUNT_COLUMNS - 8, BAR_COLUMNS_MIN);
    for (size_t i = 0; i < count; i++) {
        const struct bar *b = &bars[i];
        char count_text[CLI_NUMBER_MAX];

        qf_strbuf_printf(buf, "\n  %c%*s, %*s%c %*s ", b->has_low ? '[' : '(', low, b->low, high,
                         b->high, b->has_high ? ']' : ')', COUNT_COLUMNS,
                         cli_number(b->count, count_text));
        put_bar(buf, most > 0 ? fabs(b->count) / most : 0, columns, look->utf8);
    }
}

void cli_histogram_chart(struct qf_strbuf *buf, const json_t *histogram,
                         const struct cli_look *look)
{
    const json_t *count = json_object_get(histogram, "count");
    const json_t *sum = json_object_get(histogram, "sum");
    char count_text[CLI_NUMBER_MAX], sum_text[CLI_NUMBER_MAX];
    const json_t *buckets = json_object_get(histogram, "buckets");
    size_t total = json_array_size(buckets);
    size_t each = (total + CLI_HISTOGRAM_LINES_MAX - 1) / CLI_HISTOGRAM_LINES_MAX, lines = 0;
    struct bar bars[CLI_HISTOGRAM_LINES_MAX];

    if (!json_is_string(count) || !json_is_string(sum)) {
        QF_CLEANUP(qf_freep) char *text = json_dumps(histogram, JSON_COMPACT | JSON_ENCODE_ANY);

        qf_strbuf_puts(buf, text ? text : "");
        return;
    }
    qf_strbuf_printf(buf, "count %s, sum %s", cli_number(number_of(count), count_text),
                     cli_number(number_of(sum), sum_text));
    for (size_t at = 0; at < total; at += each)
        bars[lines++] = joined(buckets, at, QF_MIN(at + each, total));
    put_bars(buf, bars, lines, look);
}
