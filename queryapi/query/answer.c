/* answer.c - from committed artifacts to the bytes of the answer. */
#include <assert.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "queryapi/http/prom_json.h"
#include "queryapi/query/query_int.h"
#include "segments/parquet/artifact.h"

/* Bytes written at once; between two pieces the stream is asked for room. */
#define PIECE_BYTES ((size_t)32 << 10)

/* Where writing has come to; survives from turn to turn. */
struct qa_answer {
    struct qf_strbuf piece;

    /* Events: the batch being written. */
    struct pq_eval_batch batch;
    bool in_batch;
    size_t step, series;
    struct qf_str *tags; /* per series id, made when it first has a value */
    size_t tag_count;

    /* Documents: the collected result, or names and label sets. */
    struct pq_result result;
    bool collected, opened, limited;
    struct qf_labels *sets;
    struct qf_str *words;
    size_t count; /* of what is written: series, sets or words */
    size_t at, point;
    enum { NOT_OPEN, OPEN, FILLED } values, histograms; /* lists of the series being written */
};

void qa_answer_done(struct qa_query *query)
{
    if (!query->answer)
        return;
    qf_strbuf_done(&query->answer->piece);
    free(query->answer);
    query->answer = NULL;
}

/* --- opening --- */

static void close_readers(struct pq_leaf_reader **readers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (readers[i])
            readers[i]->close(readers[i]);
}

static struct pq_leaf_reader *open_artifact(struct qa_query *query,
                                            const struct qa_artifact *artifact, struct qf_err *err)
{
    struct qf_str bytes = { artifact->data, artifact->size_bytes };

    return artifact->data ? artifact_open_memory(bytes, "artifact", &query->purse, err)
                          : artifact_open_file(artifact->path, &query->purse, err);
}

/* Start the evaluation of one plan over its artifacts. */
static qf_rc open_part(struct qa_query *query, uint32_t index, struct qf_err *err)
{
    struct qa_plan_part *part = &query->parts[index];
    struct pq_eval_options options = { .purse = &query->purse, .canceled = &query->canceled };
    size_t columns = QF_MAX(part->columns, (size_t)1);
    size_t count = part->plan->leaf_count * columns;
    struct pq_leaf_reader **readers =
        QF_ARENA_ARRAY(query->arena, struct pq_leaf_reader *, QF_MAX(count, (size_t)1));

    if (!readers)
        return qf_err_set(err, QF_ELIMIT, "the query needs too much memory");
    for (size_t i = 0; i < query->work_count; i++) {
        const struct qa_work *work = &query->works[i];
        struct pq_leaf_reader *reader;

        if (work->plan != index)
            continue;
        /* Never a silent subset: what was planned is here, or there is no answer. */
        if (!qa_artifact_present(&work->artifact)) {
            close_readers(readers, count);
            return qf_err_set(err, QF_EINTERNAL, "work item %zu has no artifact", i);
        }
        reader = open_artifact(query, &work->artifact, err);
        if (!reader) {
            close_readers(readers, count);
            return err->rc;
        }
        readers[work->leaf * columns + work->column] = reader;
    }
    return pq_eval_new(part->plan, readers, columns, &options, &part->eval, err);
}

/* Remember what the leaves cost, for the next time they are asked. */
static void learn_costs(const struct qa_query *query)
{
    uint64_t scan_us = 0;

    for (size_t i = 0; i < query->work_count; i++) {
        const struct qa_work *work = &query->works[i];

        scan_us += work->scan_us;
        if (i + 1 < query->work_count && work[1].leaf_id == work->leaf_id)
            continue;
        qa_costs_learn(query->env->costs, qa_leaf_key(query, work->plan, work->leaf), scan_us);
        scan_us = 0;
    }
}

static qf_rc open_parts(struct qa_query *query, struct qf_err *err)
{
    query->answer = qf_xcalloc(1, sizeof(*query->answer));
    query->timings.fetched_ns = qf_clock_mono_ns();
    learn_costs(query);
    for (uint32_t i = 0; i < query->part_count; i++) {
        qf_rc rc = open_part(query, i, err);

        if (rc)
            return rc;
    }
    return QF_OK;
}

/* --- writing --- */

/* Send the piece if it is large or @last. False: the stream is full, or nobody reads it. */
static bool flush(struct qa_query *query, bool last)
{
    struct qf_strbuf *piece = &query->answer->piece;

    if (piece->len < PIECE_BYTES && !last)
        return true;
    /* More than one piece: from here on an error can only cut the connection. */
    if (query->ask.kind != QA_QUERY_EVENTS)
        qh_stream_begin(query->stream, 200, "application/json");
    if (!query->timings.first_ns && piece->len)
        query->timings.first_ns = qf_clock_mono_ns();
    if (!qh_stream_write(query->stream, qf_strbuf_view(piece)))
        return last;
    qf_strbuf_reset(piece);
    return last || qh_stream_room(query->stream);
}

static qf_rc out_of_memory(struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT, "the query needs more memory than it may have");
}

/* --- events --- */

static qf_rc grow_tags(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    size_t want = answer->batch.series_count;

    if (want <= answer->tag_count)
        return QF_OK;
    answer->tags =
        qf_arena_grow(query->arena, answer->tags, answer->tag_count, want, sizeof(*answer->tags));
    if (!answer->tags)
        return out_of_memory(err);
    memset(answer->tags + answer->tag_count, 0, (want - answer->tag_count) * sizeof(*answer->tags));
    answer->tag_count = want;
    return QF_OK;
}

static qf_rc write_event(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    const struct pq_eval_batch *batch = &answer->batch;
    size_t series = answer->series, cell = series * batch->stride + answer->step;
    struct qf_str *tags = &answer->tags[series];

    if (!tags->data) {
        struct qf_strbuf text = QF_STRBUF_INIT;

        qa_sse_series(&text, batch->series[series]);
        *tags = qf_arena_str(query->arena, qf_strbuf_view(&text));
        qf_strbuf_done(&text);
        if (!tags->data)
            return out_of_memory(err);
    }
    qa_sse_result(&answer->piece, *tags, batch->start_ms + (int64_t)answer->step * batch->step_ms,
                  batch->values[cell], batch->histograms ? batch->histograms[cell] : NULL);
    query->points++;
    return QF_OK;
}

/* The rest of the current batch. */
static qf_rc write_batch(struct qa_query *query, bool *ret_full, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    const struct pq_eval_batch *batch = &answer->batch;

    for (; answer->step < batch->steps; answer->step++, answer->series = 0) {
        for (; answer->series < batch->series_count; answer->series++) {
            qf_rc rc;

            if (!(batch->present[answer->series] >> answer->step & 1))
                continue;
            if (!flush(query, false)) {
                *ret_full = true;
                return QF_OK;
            }
            rc = write_event(query, err);
            if (rc)
                return rc;
        }
    }
    answer->in_batch = false;
    /* What is ready leaves now, whatever the next steps take. */
    if (answer->piece.len)
        *ret_full = !flush(query, true) || !qh_stream_room(query->stream);
    return QF_OK;
}

static qf_rc answer_events(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    struct pq_eval *eval = query->parts[0].eval;
    bool full = false;
    qf_rc rc;

    while (!full) {
        if (!answer->in_batch) {
            rc = pq_eval_next(eval, &answer->batch, err);
            if (rc == QF_OK && answer->batch.steps)
                rc = grow_tags(query, err);
            if (rc)
                return rc;
            if (answer->batch.steps == 0)
                break;
            answer->in_batch = true;
            answer->step = answer->series = 0;
        }
        rc = write_batch(query, &full, err);
        if (rc)
            return rc;
        if (atomic_load(&query->canceled))
            return QF_ECANCELED;
    }
    if (full) {
        query->next = QA_NEXT_ROOM;
        return QF_OK;
    }
    qa_sse_done(&answer->piece, pq_eval_notes(eval), query->ask.text);
    (void)flush(query, true);
    qh_stream_end(query->stream);
    return QF_OK;
}

/* --- documents --- */

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

static void cut_to_limit(struct qa_query *query)
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
    cut_to_limit(query);
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
        if (!flush(query, false)) {
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
    return flush(query, false);
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

    qf_strbuf_printf(&query->answer->piece,
                     ",\"stats\":{\"timings\":{\"evalTotalTime\":%.9f,\"resultSortTime\":0,"
                     "\"queryPreparationTime\":%.9f,\"innerEvalTime\":%.9f,\"execQueueTime\":%.9f,"
                     "\"execTotalTime\":%.9f},\"samples\":{\"totalQueryableSamples\":%llu,"
                     "\"samplesRead\":%llu,\"peakSamples\":%llu}}",
                     seconds(t->admitted_ns, now), seconds(t->admitted_ns, t->planned_ns),
                     seconds(t->fetched_ns, now), seconds(t->submitted_ns, t->admitted_ns),
                     seconds(t->submitted_ns, now), (unsigned long long)stats->samples_read,
                     (unsigned long long)stats->samples_read, (unsigned long long)stats->rows);
}

static void end_document(struct qa_query *query, const struct pq_notes *notes, struct qf_str text)
{
    struct qa_answer *answer = query->answer;

    qa_json_notes(&answer->piece, notes, text, answer->limited);
    qf_strbuf_putc(&answer->piece, '}');
    if (!qh_stream_begun(query->stream)) {
        /* All of it fits one piece: send it with its length. */
        if (!query->timings.first_ns)
            query->timings.first_ns = qf_clock_mono_ns();
        qh_stream_answer(query->stream, 200, "application/json", qf_strbuf_view(&answer->piece));
        return;
    }
    (void)flush(query, true);
    qh_stream_end(query->stream);
}

static qf_rc answer_result(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;

    if (!answer->collected) {
        qf_rc rc = collect_result(query, err);

        if (rc)
            return rc;
        answer->collected = true;
    }
    if (answer->result.type == PQ_TYPE_SCALAR || answer->result.type == PQ_TYPE_STRING) {
        qa_json_time(&answer->piece, answer->result.ts);
        qf_strbuf_putc(&answer->piece, ',');
        if (answer->result.type == PQ_TYPE_SCALAR)
            qa_json_value(&answer->piece, answer->result.scalar);
        else
            qf_strbuf_json(&answer->piece, answer->result.string);
    }
    while (answer->at < answer->count) {
        if (atomic_load(&query->canceled))
            return QF_ECANCELED;
        if (!write_series(query)) {
            query->next = QA_NEXT_ROOM;
            return QF_OK;
        }
    }
    qf_strbuf_putc(&answer->piece, ']');
    if (query->ask.stats)
        write_stats(query);
    qf_strbuf_putc(&answer->piece, '}');
    end_document(query, &answer->result.notes, query->ask.text);
    return QF_OK;
}

/* --- series, label names, label values --- */

static int compare_labels(const void *a, const void *b)
{
    return qf_labels_cmp(*(const struct qf_labels *)a, *(const struct qf_labels *)b);
}

static int compare_words(const void *a, const void *b)
{
    return qf_str_cmp(*(const struct qf_str *)a, *(const struct qf_str *)b);
}

/* The series of all plans, sorted, each once. */
static qf_rc collect_sets(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    size_t capacity = 0, kept = 0;

    for (size_t i = 0; i < query->part_count; i++) {
        struct pq_result result;
        qf_rc rc = pq_eval_collect(query->parts[i].eval, query->arena, &result, err);

        if (rc)
            return rc;
        answer->sets = qf_arena_grow(query->arena, answer->sets, capacity,
                                     capacity + result.series_count, sizeof(*answer->sets));
        if (!answer->sets && result.series_count)
            return out_of_memory(err);
        for (size_t s = 0; s < result.series_count; s++)
            answer->sets[capacity++] = result.series[s].labels;
        if (i == 0)
            answer->result.notes = result.notes;
    }
    if (capacity)
        qsort(answer->sets, capacity, sizeof(*answer->sets), compare_labels);
    for (size_t i = 0; i < capacity; i++)
        if (kept == 0 || !qf_labels_eq(answer->sets[i], answer->sets[kept - 1]))
            answer->sets[kept++] = answer->sets[i];
    answer->count = kept;
    return QF_OK;
}

/* Label names, or the values of one label, of all sets: sorted, each once. */
static qf_rc collect_words(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    bool names = query->ask.kind == QA_QUERY_LABELS;
    size_t capacity = 0, count = 0, kept = 0;

    for (size_t i = 0; i < answer->count; i++)
        capacity += names ? answer->sets[i].count : 1;
    answer->words = QF_ARENA_ARRAY(query->arena, struct qf_str, QF_MAX(capacity, (size_t)1));
    if (!answer->words)
        return out_of_memory(err);
    for (size_t i = 0; i < answer->count; i++) {
        struct qf_str value = qf_labels_get(answer->sets[i], query->ask.label);

        for (size_t k = 0; names && k < answer->sets[i].count; k++)
            answer->words[count++] = answer->sets[i].items[k].name;
        if (!names && value.len)
            answer->words[count++] = value;
    }
    if (count)
        qsort(answer->words, count, sizeof(*answer->words), compare_words);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !qf_str_eq(answer->words[i], answer->words[kept - 1]))
            answer->words[kept++] = answer->words[i];
    answer->count = kept;
    return QF_OK;
}

static qf_rc answer_list(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;

    if (!answer->collected) {
        qf_rc rc = collect_sets(query, err);

        if (rc == QF_OK && query->ask.kind != QA_QUERY_SERIES)
            rc = collect_words(query, err);
        if (rc)
            return rc;
        cut_to_limit(query);
        qf_strbuf_puts(&answer->piece, "{\"status\":\"success\",\"data\":[");
        answer->collected = true;
    }
    while (answer->at < answer->count) {
        if (answer->at)
            qf_strbuf_putc(&answer->piece, ',');
        if (answer->words)
            qf_strbuf_json(&answer->piece, answer->words[answer->at]);
        else
            qf_labels_json(&answer->piece, answer->sets[answer->at]);
        answer->at++;
        if (!flush(query, false)) {
            query->next = QA_NEXT_ROOM;
            return QF_OK;
        }
    }
    qf_strbuf_putc(&answer->piece, ']');
    end_document(query, &answer->result.notes, query->ask.text);
    return QF_OK;
}

qf_rc qa_query_answer(struct qa_query *query, struct qf_err *err)
{
    query->next = QA_NEXT_OVER;
    if (!query->answer) {
        qf_rc rc = open_parts(query, err);

        if (rc)
            return rc;
    }
    if (query->ask.kind == QA_QUERY_EVENTS)
        return answer_events(query, err);
    return query->ask.kind <= QA_QUERY_RANGE ? answer_result(query, err) : answer_list(query, err);
}
