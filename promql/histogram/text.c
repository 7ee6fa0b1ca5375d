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

static void put_bucket(struct qf_strbuf *buf, const struct pq_histogram *h, struct pq_interval b)
{
    qf_strbuf_puts(buf, ", ");
    qf_strbuf_putc(buf, pq_interval_has_low(h, &b) ? '[' : '(');
    put_number(buf, b.low);
    qf_strbuf_putc(buf, ',');
    put_number(buf, b.high);
    qf_strbuf_putc(buf, pq_interval_has_high(h, &b) ? ']' : ')');
    qf_strbuf_putc(buf, ':');
    put_number(buf, b.count);
}

/* By value, as buckets are written: what the zero bucket takes from them stays. */
static void put_side(struct qf_strbuf *buf, const struct pq_histogram *h, enum pq_side side)
{
    struct pq_side_walk walk =
        side == PQ_NEGATIVE ? pq_side_begin_back(h, side) : pq_side_begin(h, side);
    int64_t index;
    double count;

    while (pq_side_next(&walk, &index, &count))
        put_bucket(buf, h, pq_interval_at(h, side, index, count));
}

void pq_histogram_print(struct qf_strbuf *buf, const struct pq_histogram *h)
{
    qf_strbuf_puts(buf, "{count:");
    put_number(buf, h->count);
    qf_strbuf_puts(buf, ", sum:");
    put_number(buf, h->sum);
    put_side(buf, h, PQ_NEGATIVE);
    if (h->zero_count != 0)
        put_bucket(
            buf, h,
            (struct pq_interval){ -h->zero_threshold, h->zero_threshold, h->zero_count, true });
    put_side(buf, h, PQ_POSITIVE);
    qf_strbuf_putc(buf, '}');
}
