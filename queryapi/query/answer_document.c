/* answer_document.c - the result of an expression as Prometheus's JSON document. */
#include "base/sys/clock.h"
#include "queryapi/encode/events.h"
#include "queryapi/encode/prom_json.h"
#include "queryapi/query/answer_int.h"
#include "queryapi/query/explain.h"

static const char *type_name(enum pq_type type)
{
    switch (type) {
    case PQ_TYPE_SCALAR:
        return "scalar";
    case PQ_TYPE_STRING:
        return "string";
    case PQ_TYPE_VECTOR:
        return "vector";
    case PQ_TYPE_MATRIX:
    case PQ_TYPE_NONE:
        break;
    }
    return "matrix";
}

void qa_answer_cut_to_limit(struct qa_query *query)
{
    struct qa_answer *answer = query->answer;

    if (!query->ask.limit || answer->count <= query->ask.limit)
        return;
    answer->count = query->ask.limit;
    answer->limited = true;
}

static qf_rc collect_result(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    qf_rc rc = pq_eval_collect(query->parts[0].eval, query->arena, &answer->result, err);

    if (rc)
        return rc;
    answer->count = answer->result.series_count;
    for (size_t i = 0; i < answer->count; i++)
        query->points += answer->result.series[i].count;
    qa_answer_cut_to_limit(query);
    qf_strbuf_printf(&answer->piece,
                     "{\"status\":\"success\",\"data\":{\"resultType\":\"%s\",\"result\":[",
                     type_name(answer->result.type));
    return QF_OK;
}

static bool has_kind(const struct pq_result_series *series, bool histograms)
{
    for (size_t i = 0; i < series->count; i++)
        if ((series->histograms && series->histograms[i]) == histograms)
            return true;
    return false;
}

/* The floats, or the histograms, of a series of a matrix from answer->point on. */
static bool write_points(struct qa_query *query, const struct pq_result_series *series,
                         bool histograms)
{
    struct qa_answer *answer = query->answer;
    int list = histograms ? answer->histograms : answer->values;

    if (list == NOT_OPEN && !has_kind(series, histograms))
        return true;
    if (list == NOT_OPEN)
        qf_strbuf_puts(&answer->piece, histograms ? ",\"histograms\":[" : ",\"values\":[");
    list = list == NOT_OPEN ? OPEN : list;
    for (; answer->point < series->count; answer->point++) {
        const struct pq_histogram *histogram =
            series->histograms ? series->histograms[answer->point] : NULL;

        if ((histogram != NULL) != histograms)
            continue;
        if (!qa_answer_flush(query, false)) {
            *(histograms ? &answer->histograms : &answer->values) = list;
            return false;
        }
        if (list == FILLED)
            qf_strbuf_putc(&answer->piece, ',');
        list = FILLED;
        qa_json_point(&answer->piece, series->ts[answer->point], series->values[answer->point],
                      histogram);
    }
    qf_strbuf_putc(&answer->piece, ']');
    answer->point = 0;
    return true;
}

static void write_vector_element(struct qa_answer *answer, const struct pq_result_series *series)
{
    const struct pq_histogram *histogram = series->histograms ? series->histograms[0] : NULL;

    qf_strbuf_puts(&answer->piece, histogram ? ",\"histogram\":" : ",\"value\":");
    qa_json_point(&answer->piece, series->ts[0], series->values[0], histogram);
}

/* One series of a vector or matrix. False: the stream is full, call again. */
static bool write_series(struct qa_query *query)
{
    struct qa_answer *answer = query->answer;
    const struct pq_result_series *series = &answer->result.series[answer->at];

    if (!answer->opened) {
        qf_strbuf_puts(&answer->piece, answer->at ? ",{\"metric\":" : "{\"metric\":");
        qf_labels_json(&answer->piece, series->labels);
        answer->opened = true;
    }
    if (answer->result.type == PQ_TYPE_VECTOR) {
        write_vector_element(answer, series);
    } else {
        if (answer->histograms == NOT_OPEN && !write_points(query, series, false))
            return false;
        if (!write_points(query, series, true))
            return false;
    }
    qf_strbuf_putc(&answer->piece, '}');
    answer->opened = false;
    answer->values = answer->histograms = NOT_OPEN;
    answer->at++;
    return qa_answer_flush(query, false);
}

/* Answers of fewer points are written as they are sent. */
#define AHEAD_POINTS 8192

/* Series from @at on that may be written ahead: histograms may be of any size. */
static size_t plain_series(const struct qa_query *query)
{
    const struct qa_answer *answer = query->answer;
    size_t end = answer->at;

    if (answer->result.type == PQ_TYPE_VECTOR || query->points < AHEAD_POINTS || answer->opened)
        return 0;
    while (end < answer->count && !answer->result.series[end].histograms &&
           end - answer->at < AHEAD_POINTS)
        end++;
    return end - answer->at;
}

/* Send what was written ahead. False: the stream is full, call again. */
static bool send_ahead(struct qa_query *query)
{
    struct qa_answer *answer = query->answer;

    for (;;) {
        struct qf_str text = qa_ahead_text(answer->ahead, QA_PIECE_BYTES);

        if (!text.len)
            break;
        if (!qa_answer_send(query, text))
            return false;
        qa_ahead_take(answer->ahead, text.len);
        if (!qh_stream_room(query->stream))
            return false;
    }
    answer->ahead = qa_ahead_free(answer->ahead);
    return true;
}

/* The next series, one or many. False: the stream is full, call again. */
static bool write_some(struct qa_query *query)
{
    struct qa_answer *answer = query->answer;
    size_t plain = answer->ahead ? 0 : plain_series(query);

    if (plain)
        answer->ahead = qa_ahead_new(answer->result.series, answer->at, answer->at + plain,
                                     query->env->helpers, &answer->at);
    return answer->ahead ? send_ahead(query) : write_series(query);
}

static double seconds(int64_t from_ns, int64_t to_ns)
{
    return to_ns > from_ns && from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

static void write_stats(struct qa_query *query)
{
    const struct qa_timings *t = &query->timings;
    const struct pq_eval_stats *stats = &query->answer->result.stats;
    int64_t now = qf_clock_mono_ns();
    struct qa_head_figures heads;

    qf_strbuf_printf(&query->answer->piece,
                     ",\"stats\":{\"timings\":{\"evalTotalTime\":%.9f,\"resultSortTime\":0,"
                     "\"queryPreparationTime\":%.9f,\"innerEvalTime\":%.9f,\"execQueueTime\":%.9f,"
                     "\"execTotalTime\":%.9f},\"samples\":{\"totalQueryableSamples\":%llu,"
                     "\"samplesRead\":%llu,\"peakSamples\":%llu}",
                     seconds(t->admitted_ns, now), seconds(t->admitted_ns, t->planned_ns),
                     seconds(t->fetched_ns, now), seconds(t->submitted_ns, t->admitted_ns),
                     seconds(t->submitted_ns, now), (unsigned long long)stats->samples_read,
                     (unsigned long long)stats->samples_read, (unsigned long long)stats->rows);
    qa_json_heads(&query->answer->piece, qa_query_heads(query, &heads));
    if (query
            ->explain) { /* Prometheus's form has no place for it; its clients skip what they do not know */
        query->explain->memory_peak = qf_purse_used(&query->purse);
        qf_strbuf_puts(&query->answer->piece, ",\"fabric\":{");
        qa_explain_receipt(query, &query->answer->piece, query->answer->result.series_count);
        qf_strbuf_putc(&query->answer->piece, '}');
    }
    qf_strbuf_putc(&query->answer->piece, '}');
}

void qa_answer_end_document(struct qa_query *query, const struct pq_notes *notes)
{
    struct qa_answer *answer = query->answer;

    qa_json_notes(&answer->piece, notes, query->ask.text, answer->limited);
    qf_strbuf_putc(&answer->piece, '}');
    if (!qh_stream_begun(query->stream)) {
        /* All of it fits one piece: send it with its length. */
        if (!query->timings.first_ns)
            query->timings.first_ns = qf_clock_mono_ns();
        qh_stream_answer(query->stream, 200, "application/json", qf_strbuf_view(&answer->piece));
        return;
    }
    (void)qa_answer_flush(query, true);
    qh_stream_end(query->stream);
}

qf_rc qa_answer_result(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;

    if (!answer->collected) {
        qf_rc rc = collect_result(query, err);

        if (rc)
            return rc;
        answer->collected = true;
    }
    if (answer->result.type == PQ_TYPE_SCALAR || answer->result.type == PQ_TYPE_STRING) {
        qa_json_scalar_time(&answer->piece, answer->result.ts);
        qf_strbuf_putc(&answer->piece, ',');
        if (answer->result.type == PQ_TYPE_SCALAR)
            qa_json_scalar(&answer->piece, answer->result.scalar);
        else
            qf_strbuf_json(&answer->piece, answer->result.string);
    }
    while (answer->at < answer->count || answer->ahead) {
        if (atomic_load(&query->canceled))
            return QF_ECANCELED;
        if (!write_some(query)) {
            query->next = QA_NEXT_ROOM;
            return QF_OK;
        }
    }
    qf_strbuf_putc(&answer->piece, ']');
    if (query->ask.stats)
        write_stats(query);
    qf_strbuf_putc(&answer->piece, '}');
    qa_answer_end_document(query, &answer->result.notes);
    return QF_OK;
}
