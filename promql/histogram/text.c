/* text.c - a native histogram in one line. */
#include "promql/histogram/text.h"

#include "base/pure/number.h"
#include "promql/histogram/layout.h"

static void put_number(struct qf_strbuf *buf, double number)
{
    char text[QF_DOUBLE_TEXT_MAX];

    (void)qf_double_g(number, text);
    qf_strbuf_puts(buf, text);
}

/* Negative bounds are inclusive at their lower end, positive ones at their upper end. */
static void put_bucket(struct qf_strbuf *buf, double low, double high, double count)
{
    qf_strbuf_puts(buf, ", ");
    qf_strbuf_putc(buf, low < 0 ? '[' : '(');
    put_number(buf, low);
    qf_strbuf_putc(buf, ',');
    put_number(buf, high);
    qf_strbuf_putc(buf, high > 0 ? ']' : ')');
    qf_strbuf_putc(buf, ':');
    put_number(buf, count);
}

void pq_histogram_print(struct qf_strbuf *buf, const struct pq_histogram *h)
{
    struct pq_interval_walk walk = pq_intervals_begin(h);
    struct pq_interval b;

    qf_strbuf_puts(buf, "{count:");
    put_number(buf, h->count);
    qf_strbuf_puts(buf, ", sum:");
    put_number(buf, h->sum);
    while (pq_intervals_next(&walk, &b)) {
        if (b.zero) { /* as it is written, not as it is understood */
            b.low = -h->zero_threshold;
            b.high = h->zero_threshold;
        }
        put_bucket(buf, b.low, b.high, b.count);
    }
    qf_strbuf_putc(buf, '}');
}
