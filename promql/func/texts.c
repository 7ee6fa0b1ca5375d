/* texts.c - warnings and infos, word for word. */
#include "promql/func/texts.h"

#include <math.h>

#include "base/pure/duration.h"
#include "base/pure/number.h"
#include "base/pure/strbuf.h"

static const char *quoted(struct qf_strbuf *buf, struct qf_str s)
{
    qf_strbuf_quote(buf, s);
    return qf_strbuf_cstr(buf);
}

/* "@text for metric name "m"", or the text alone. */
static void add_for_metric(struct pq_notes *notes, enum pq_note_level level, struct pq_pos pos,
                           const char *text, struct qf_str metric)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;

    if (metric.len == 0)
        pq_note_add(notes, level, pos, "%s", text);
    else
        pq_note_add(notes, level, pos, "%s for metric name %s", text, quoted(&name, metric));
}

void pq_note_quantile(struct pq_notes *notes, struct pq_pos pos, double q)
{
    char text[QF_DOUBLE_TEXT_MAX];

    if (q >= 0 && q <= 1)
        return;
    (void)qf_double_g(q, text);
    pq_note_add(notes, PQ_NOTE_WARNING, pos, "quantile value should be between 0 and 1, got %s",
                text);
}

void pq_note_ratio(struct pq_notes *notes, struct pq_pos pos, double ratio)
{
    char text[QF_DOUBLE_TEXT_MAX];

    if (!(ratio > 1 || ratio < -1))
        return;
    (void)qf_double_g(ratio, text);
    pq_note_add(notes, PQ_NOTE_WARNING, pos,
                "ratio value should be between -1 and 1, got %s, capping to %s", text,
                ratio > 0 ? "1" : "-1");
}

void pq_note_counter_name(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;

    if (metric.len == 0 || qf_str_ends(metric, QF_STR("_total")) ||
        qf_str_ends(metric, QF_STR("_sum")) || qf_str_ends(metric, QF_STR("_count")) ||
        qf_str_ends(metric, QF_STR("_bucket")))
        return;
    pq_note_add(notes, PQ_NOTE_INFO, pos,
                "metric might not be a counter, name does not end in _total/_sum/_count/_bucket: "
                "%s",
                quoted(&name, metric));
}

void pq_note_bad_le(struct pq_notes *notes, struct pq_pos pos, struct qf_str le,
                    struct qf_str metric)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bound = QF_STRBUF_INIT, name = QF_STRBUF_INIT;

    pq_note_add(notes, PQ_NOTE_WARNING, pos,
                "bucket label \"le\" is missing or has a malformed value of %s for metric name %s",
                quoted(&bound, le), quoted(&name, metric));
}

void pq_note_binop_layouts(struct pq_notes *notes, struct pq_pos pos, const char *op)
{
    pq_note_add(notes, PQ_NOTE_WARNING, pos,
                "incompatible bucket layout encountered for binary operator %s", op);
}

void pq_note_mixed_classic_native(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric)
{
    add_for_metric(notes, PQ_NOTE_WARNING, pos,
                   "vector contains a mix of classic and native histograms", metric);
}

void pq_note_monotonicity(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric,
                          const struct pq_bucket_repair *repair, uint64_t samples, int64_t from,
                          int64_t to)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    char low[QF_DOUBLE_TEXT_MAX], high[QF_DOUBLE_TEXT_MAX];

    qf_strbuf_puts(&text, "input to histogram_quantile needed to be fixed for monotonicity (see "
                          "https://prometheus.io/docs/prometheus/latest/querying/functions/"
                          "#histogram_quantile)");
    if (metric.len) {
        qf_strbuf_puts(&text, " for metric name ");
        qf_strbuf_quote(&text, metric);
    }
    (void)qf_double_g(repair->min_le, low);
    (void)qf_double_g(repair->max_le, high);
    qf_strbuf_printf(&text, ", from buckets %s to %s, with a max diff of %.2g, over %llu samples ",
                     low, high, repair->max_diff, (unsigned long long)samples);
    /* Go cuts these times to seconds. */
    qf_strbuf_puts(&text, "from ");
    qf_time_print_rfc3339(&text, from / 1000 * 1000);
    qf_strbuf_puts(&text, " to ");
    qf_time_print_rfc3339(&text, to / 1000 * 1000);
    pq_note_add(notes, PQ_NOTE_INFO, pos, "%s", qf_strbuf_cstr(&text));
}

void pq_note_start_overlap(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;

    pq_note_add(notes, PQ_NOTE_WARNING, pos,
                "sample has start time that overlaps with previous sample timestamp for metric %s",
                quoted(&name, metric));
}

void pq_note_sort_range(struct pq_notes *notes, struct pq_pos pos)
{
    pq_note_add(notes, PQ_NOTE_WARNING, pos,
                "sort is ineffective for range queries since results are always ordered by labels");
}

void pq_note_mixed_floats(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;

    pq_note_add(notes, PQ_NOTE_WARNING, pos,
                "encountered a mix of histograms and floats for metric name %s",
                quoted(&name, metric));
}

void pq_note_mixed_floats_agg(struct pq_notes *notes, struct pq_pos pos)
{
    pq_note_add(notes, PQ_NOTE_WARNING, pos,
                "encountered a mix of histograms and floats for aggregation");
}

void pq_note_histogram_ignored_agg(struct pq_notes *notes, struct pq_pos pos, const char *agg)
{
    pq_note_add(notes, PQ_NOTE_INFO, pos, "ignored histogram in %s aggregation", agg);
}

void pq_note_histogram_ignored_range(struct pq_notes *notes, struct pq_pos pos,
                                     struct qf_str metric)
{
    add_for_metric(notes, PQ_NOTE_INFO, pos,
                   "ignored histograms in a range containing both floats and histograms", metric);
}

void pq_note_binop_types(struct pq_notes *notes, struct pq_pos pos, const char *left,
                         const char *op, const char *right)
{
    pq_note_add(notes, PQ_NOTE_INFO, pos,
                "incompatible sample types encountered for binary operator \"%s\": %s %s %s", op,
                left, op, right);
}

void pq_note_mixed_schemas(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric)
{
    add_for_metric(
        notes, PQ_NOTE_WARNING, pos,
        "vector contains a mix of histograms with exponential and custom buckets schemas", metric);
}

void pq_note_not_counter(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;

    pq_note_add(notes, PQ_NOTE_WARNING, pos, "this native histogram metric is not a counter: %s",
                quoted(&name, metric));
}

void pq_note_not_gauge(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf name = QF_STRBUF_INIT;

    pq_note_add(notes, PQ_NOTE_WARNING, pos, "this native histogram metric is not a gauge: %s",
                quoted(&name, metric));
}

void pq_note_reconciled(struct pq_notes *notes, struct pq_pos pos, const char *operation)
{
    pq_note_add(notes, PQ_NOTE_INFO, pos, "mismatched custom buckets were reconciled during %s",
                operation);
}

void pq_note_reset_conflict(struct pq_notes *notes, struct pq_pos pos, const char *operation)
{
    pq_note_add(notes, PQ_NOTE_WARNING, pos, "conflicting counter resets during histogram %s",
                operation);
}

void pq_note_quantile_nan(struct pq_notes *notes, struct pq_pos pos, bool result,
                          struct qf_str metric)
{
    add_for_metric(notes, PQ_NOTE_INFO, pos,
                   result ? "input to histogram_quantile has NaN observations, result is NaN"
                          : "input to histogram_quantile has NaN observations, result is skewed "
                            "higher",
                   metric);
}

void pq_note_fraction_nan(struct pq_notes *notes, struct pq_pos pos, struct qf_str metric)
{
    add_for_metric(notes, PQ_NOTE_INFO, pos,
                   "input to histogram_fraction has NaN observations, which are excluded from all "
                   "fractions",
                   metric);
}
