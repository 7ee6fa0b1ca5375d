/* value.c - values in columns. */
#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "promql/func/histogram.h"
#include "promql/histogram/text.h"

bool pq_histograms_make(struct qf_arena *scope, const struct pq_histogram ***histograms,
                        size_t count)
{
    if (!*histograms)
        *histograms = QF_ARENA_ARRAY(scope, const struct pq_histogram *, count);
    return *histograms != NULL;
}

bool pq_value_copy(struct qf_arena *arena, struct pq_value value, struct pq_value *ret_value)
{
    const struct pq_histogram *copy =
        value.histogram ? pq_histogram_copy(arena, value.histogram) : NULL;

    *ret_value = (struct pq_value){ value.number, copy };
    return !value.histogram || copy;
}

struct qf_str pq_value_text(struct qf_strbuf *buf, struct pq_value value)
{
    char text[QF_DOUBLE_TEXT_MAX];

    if (value.histogram) {
        pq_histogram_print(buf, value.histogram);
    } else {
        (void)qf_double_f(value.number, text);
        qf_strbuf_puts(buf, text);
    }
    return qf_strbuf_view(buf);
}
