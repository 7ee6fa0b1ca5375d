/* events.c - the event stream's encoder. */
#include "queryapi/encode/events.h"

#include <math.h>

#include "base/pure/number.h"
#include "queryapi/encode/prom_json.h"

void qa_sse_series(struct qf_strbuf *buf, struct qf_labels labels)
{
    struct qf_strbuf label = QF_STRBUF_INIT;

    qf_labels_print_series(&label, labels);
    qf_strbuf_puts(buf, "\"tags\":");
    qf_labels_json(buf, labels);
    qf_strbuf_puts(buf, ",\"label\":");
    qf_strbuf_json(buf, qf_strbuf_view(&label));
    qf_strbuf_done(&label);
}

void qa_sse_result(struct qf_strbuf *buf, struct qf_str tags_and_label, int64_t ms, double value,
                   const struct pq_histogram *histogram)
{
    char text[QF_DOUBLE_TEXT_MAX];

    qf_strbuf_puts(buf, "data: {\"type\":\"result\",\"data\":{\"timestamp\":");
    qf_strbuf_i64(buf, ms);
    qf_strbuf_puts(buf, ",\"value\":");
    if (histogram)
        qa_json_histogram(buf, histogram);
    else if (isfinite(value))
        qf_strbuf_add(buf, text, qf_double_json(value, text));
    else
        qa_json_value(buf, value); /* JSON has no number for it */
    qf_strbuf_putc(buf, ',');
    qf_strbuf_str(buf, tags_and_label);
    qf_strbuf_puts(buf, "}}\n\n");
}

void qa_sse_error(struct qf_strbuf *buf, const char *code, struct qf_str message)
{
    qf_strbuf_printf(buf, "data: {\"type\":\"error\",\"data\":{\"code\":\"%s\",\"message\":", code);
    qf_strbuf_json(buf, message);
    qf_strbuf_puts(buf, "}}\n\ndata: {\"type\":\"done\",\"data\":{\"status\":\"error\"}}\n\n");
}

void qa_json_heads(struct qf_strbuf *buf, const struct qa_head_figures *heads)
{
    if (heads)
        qf_strbuf_printf(buf, ",\"heads\":{\"inputs\":%llu,\"samples\":%llu,\"bytes\":%llu}",
                         (unsigned long long)heads->inputs, (unsigned long long)heads->samples,
                         (unsigned long long)heads->bytes);
}

void qa_sse_done(struct qf_strbuf *buf, const struct pq_notes *notes, struct qf_str query,
                 const struct qa_head_figures *heads)
{
    qf_strbuf_puts(buf, "data: {\"type\":\"done\",\"data\":{\"status\":\"ok\"");
    qa_json_notes(buf, notes, query, false);
    qa_json_heads(buf, heads);
    qf_strbuf_puts(buf, "}}\n\n");
}

void qa_sse_progress(struct qf_strbuf *buf, uint64_t segments, uint64_t total, uint64_t done,
                     uint64_t workers)
{
    qf_strbuf_printf(buf,
                     "data: {\"type\":\"progress\",\"data\":{\"segments\":%llu,\"work_total\":%llu,"
                     "\"work_done\":%llu,\"workers\":%llu}}\n\n",
                     (unsigned long long)segments, (unsigned long long)total,
                     (unsigned long long)done, (unsigned long long)workers);
}
