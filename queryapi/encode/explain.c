/* explain.c - encoder of the events that show a query while it runs. */
#include "queryapi/encode/explain.h"

#include <inttypes.h>
#include <math.h>

#include "base/pure/number.h"
#include "queryapi/encode/events.h"
#include "queryapi/encode/prom_json.h"

static void open_event(struct qf_strbuf *buf, const char *type)
{
    qf_strbuf_printf(buf, "data: {\"type\":\"%s\",\"data\":", type);
}

static void close_event(struct qf_strbuf *buf)
{
    qf_strbuf_puts(buf, "}\n\n");
}

/* A number JSON has, or its name as a string. */
static void put_number(struct qf_strbuf *buf, double value)
{
    char text[QF_DOUBLE_TEXT_MAX];

    if (isfinite(value))
        qf_strbuf_add(buf, text, qf_double_json(value, text));
    else
        qa_json_value(buf, value);
}

static void put_u64(struct qf_strbuf *buf, const char *key, uint64_t value)
{
    qf_strbuf_printf(buf, ",\"%s\":", key);
    qf_strbuf_u64(buf, value);
}

void qa_sse_stage(struct qf_strbuf *buf, const char *name, int64_t t_ms)
{
    open_event(buf, "stage");
    qf_strbuf_printf(buf, "{\"name\":\"%s\",\"t_ms\":%" PRId64 "}", name, t_ms);
    close_event(buf);
}

void qa_json_planned(struct qf_strbuf *buf, const struct qa_planned *planned)
{
    const struct qa_estimate *estimate = &planned->estimate;

    qf_strbuf_puts(buf, "{\"query_id\":");
    qf_strbuf_json(buf, qf_str_from(planned->query_id));
    qf_strbuf_puts(buf, ",\"plan\":");
    pq_plan_json(buf, planned->plan);
    qf_strbuf_printf(buf,
                     ",\"estimate\":{\"segments\":%" PRIu64 ",\"bytes\":%" PRIu64
                     ",\"samples\":%.0f,\"seconds\":%.6f},\"works\":[",
                     estimate->segments, estimate->bytes, estimate->samples, estimate->seconds);
    for (size_t i = 0; i < planned->work_count; i++) {
        const struct qa_planned_work *work = &planned->works[i];

        qf_strbuf_printf(buf,
                         "%s{\"id\":%zu,\"leaf\":%" PRIu32 ",\"shards\":%" PRIu32
                         ",\"segments\":%" PRIu64 ",\"bytes\":%" PRIu64,
                         i ? "," : "", i, work->leaf, work->shards, work->segments, work->bytes);
        if (work->heads)
            put_u64(buf, "heads", work->heads);
        if (work->maps)
            put_u64(buf, "maps", work->maps);
        qf_strbuf_putc(buf, '}');
    }
    qf_strbuf_puts(buf, "]}");
}

void qa_sse_plan(struct qf_strbuf *buf, const struct qa_planned *planned)
{
    open_event(buf, "plan");
    qa_json_planned(buf, planned);
    close_event(buf);
}

void qa_sse_works_open(struct qf_strbuf *buf, int64_t t_ms)
{
    open_event(buf, "works");
    qf_strbuf_printf(buf, "{\"t_ms\":%" PRId64 ",\"changed\":[", t_ms);
}

static void put_figures(struct qf_strbuf *buf, const struct qa_figures *figures)
{
    put_u64(buf, "queued_us", figures->queued_us);
    put_u64(buf, "download_us", figures->download_us);
    put_u64(buf, "scan_us", figures->scan_us);
    put_u64(buf, "write_us", figures->write_us);
    put_u64(buf, "fetch_us", figures->fetch_us);
    put_u64(buf, "rows", figures->rows);
    put_u64(buf, "series", figures->series);
    put_u64(buf, "samples", figures->samples);
    put_u64(buf, "artifact_bytes", figures->artifact_bytes);
    put_u64(buf, "download_bytes", figures->download_bytes);
    put_u64(buf, "cache_hits", figures->cache_hits);
    put_u64(buf, "cache_misses", figures->cache_misses);
}

void qa_sse_works_item(struct qf_strbuf *buf, const struct qa_work_view *view, bool first)
{
    qf_strbuf_printf(buf, "%s{\"id\":%" PRIu32 ",\"state\":\"%s\"", first ? "" : ",", view->id,
                     view->state);
    if (view->worker) {
        qf_strbuf_puts(buf, ",\"worker\":");
        qf_strbuf_json(buf, qf_str_from(view->worker));
    }
    put_u64(buf, "attempt", view->attempt);
    put_u64(buf, "failures", view->failures);
    if (view->reason && view->reason[0]) {
        qf_strbuf_puts(buf, ",\"reason\":");
        qf_strbuf_json(buf, qf_str_from(view->reason));
    }
    if (view->hedged)
        qf_strbuf_puts(buf, ",\"hedged\":true");
    if (view->has_figures)
        put_figures(buf, &view->figures);
    qf_strbuf_putc(buf, '}');
}

void qa_sse_series_open(struct qf_strbuf *buf, uint64_t first_id)
{
    open_event(buf, "series");
    qf_strbuf_printf(buf, "{\"first\":%" PRIu64 ",\"list\":[", first_id);
}

void qa_sse_series_item(struct qf_strbuf *buf, struct qf_labels labels, bool first)
{
    if (!first)
        qf_strbuf_putc(buf, ',');
    qf_labels_json(buf, labels);
}

void qa_sse_batch_open(struct qf_strbuf *buf, int64_t start_ms, int64_t step_ms, size_t steps)
{
    open_event(buf, "batch");
    qf_strbuf_printf(buf, "{\"start\":%" PRId64 ",\"step\":%" PRId64 ",\"steps\":%zu,\"rows\":[",
                     start_ms, step_ms, steps);
}

void qa_sse_batch_row(struct qf_strbuf *buf, uint64_t id, const double *values, uint64_t present,
                      const struct pq_histogram *const *histograms, size_t steps, bool first)
{
    qf_strbuf_puts(buf, first ? "[" : ",[");
    qf_strbuf_u64(buf, id);
    for (size_t i = 0; i < steps; i++) {
        qf_strbuf_putc(buf, ',');
        if (!(present >> i & 1))
            qf_strbuf_puts(buf, "null");
        else if (histograms && histograms[i])
            qa_json_histogram(buf, histograms[i]);
        else
            put_number(buf, values[i]);
    }
    qf_strbuf_putc(buf, ']');
}

void qa_sse_list_close(struct qf_strbuf *buf)
{
    qf_strbuf_puts(buf, "]}");
    close_event(buf);
}

static void put_stats(struct qf_strbuf *buf, const struct qa_done_stats *stats)
{
    qf_strbuf_printf(buf,
                     "\"stats\":{\"queued_seconds\":%.6f,\"planning_seconds\":%.6f,"
                     "\"working_seconds\":%.6f,\"answering_seconds\":%.6f,\"total_seconds\":%.6f",
                     stats->queued_seconds, stats->planning_seconds, stats->working_seconds,
                     stats->answering_seconds, stats->total_seconds);
    put_u64(buf, "samples", stats->samples);
    put_u64(buf, "series", stats->series);
    put_u64(buf, "points", stats->points);
    put_u64(buf, "artifact_bytes", stats->artifact_bytes);
    put_u64(buf, "download_bytes", stats->download_bytes);
    put_u64(buf, "retries", stats->retries);
    put_u64(buf, "hedges", stats->hedges);
    put_u64(buf, "replans", stats->replans);
    put_u64(buf, "peak_memory_bytes", stats->peak_memory_bytes);
    qa_json_heads(buf, stats->heads);
    qf_strbuf_putc(buf, '}');
}

void qa_json_receipt(struct qf_strbuf *buf, const struct qa_receipt *receipt)
{
    const struct qa_coverage *coverage = &receipt->coverage;

    put_stats(buf, &receipt->stats);
    qf_strbuf_puts(buf, ",\"nodes\":[");
    for (size_t i = 0; i < receipt->node_count; i++) {
        const struct pq_node_figures *node = &receipt->nodes[i];

        qf_strbuf_printf(buf, "%s{\"self_us\":%" PRIu64, i ? "," : "", node->self_ns / 1000);
        put_u64(buf, "series", node->series);
        put_u64(buf, "blocks", node->blocks);
        qf_strbuf_putc(buf, '}');
    }
    qf_strbuf_printf(buf,
                     "],\"coverage\":{\"segments\":%" PRIu64 ",\"works\":%" PRIu64
                     ",\"heads\":%" PRIu64 ",\"checksum\":\"%016" PRIx64 "\"}",
                     coverage->segments, coverage->works, coverage->heads, coverage->checksum);
}

void qa_sse_done_explained(struct qf_strbuf *buf, const struct pq_notes *notes, struct qf_str query,
                           const struct qa_receipt *receipt)
{
    open_event(buf, "done");
    qf_strbuf_puts(buf, "{\"status\":\"ok\"");
    qa_json_notes(buf, notes, query, false);
    qf_strbuf_putc(buf, ',');
    qa_json_receipt(buf, receipt);
    qf_strbuf_putc(buf, '}');
    close_event(buf);
}
