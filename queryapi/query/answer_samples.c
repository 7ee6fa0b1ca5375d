/* answer_samples.c - raw samples: the two forms of remote read, and the newest of each series in the forms
 * that a Prometheus scrapes. */
#include <stdlib.h>

#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "queryapi/encode/block.h"
#include "queryapi/encode/exposition.h"
#include "queryapi/encode/family.h"
#include "queryapi/encode/remote_read.h"
#include "queryapi/query/answer_int.h"

/* Of an answer that is one message. More comes in chunks. */
#define MESSAGE_BYTES_MAX ((size_t)256 << 20)
/* What a sample takes in it at most; histograms aside, which are measured when they are there. */
#define SAMPLE_BYTES 20
/* Samples of one frame: what a Prometheus takes as one, at any rate. */
#define FRAME_SAMPLES ((size_t)2 << 20)

/* The results of all parts, by the match that each is of; those without data stay empty. */
static qf_rc collect(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;

    answer->results =
        QF_ARENA_ARRAY(query->arena, struct pq_result, QF_MAX(query->ask.match_count, (size_t)1));
    if (!answer->results)
        return qa_answer_no_memory(err);
    for (size_t i = 0; i < query->part_count; i++) {
        struct pq_result *result = &answer->results[query->parts[i].match];
        qf_rc rc = pq_eval_collect(query->parts[i].eval, query->arena, result, err);

        if (rc)
            return rc;
        for (size_t s = 0; s < result->series_count; s++) {
            query->points += result->series[s].count;
            answer->has_histograms |= result->series[s].histograms != NULL;
        }
    }
    answer->collected = true;
    return QF_OK;
}

static void end_bytes(struct qa_query *query)
{
    struct qa_answer *answer = query->answer;

    if (qh_stream_begun(query->stream)) {
        (void)qa_answer_flush(query, true);
        qh_stream_end(query->stream);
        return;
    }
    query->timings.first_ns = qf_clock_mono_ns();
    qh_stream_answer(query->stream, 200, answer->content_type, qf_strbuf_view(&answer->piece));
}

/* --- remote read --- */

static qf_rc too_large(struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT,
                      "the answer is longer than a message may be (%zu bytes): ask for less, or "
                      "for streamed chunks",
                      MESSAGE_BYTES_MAX);
}

static qf_rc write_message(struct qa_query *query, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf message = QF_STRBUF_INIT;
    struct qa_answer *answer = query->answer;

    answer->content_type = QA_READ_SAMPLES_TYPE;
    if (query->points > MESSAGE_BYTES_MAX / SAMPLE_BYTES)
        return too_large(err);
    for (size_t i = 0; i < query->ask.match_count; i++) {
        qa_read_result(&message, &answer->results[i]);
        if (message.len > MESSAGE_BYTES_MAX)
            return too_large(err);
    }
    qa_block_pack(&answer->piece, qf_strbuf_view(&message));
    qh_stream_header(query->stream, "Content-Encoding", "snappy");
    end_bytes(query);
    return QF_OK;
}

/* The next frame. False: the stream is full, call again. */
static bool write_frame(struct qa_query *query, const struct pq_result_series *series)
{
    struct qa_answer *answer = query->answer;
    size_t end = QF_MIN(series->count, answer->point + FRAME_SAMPLES);

    qa_read_frame(&answer->piece, series, answer->point, end, answer->part);
    answer->point = end;
    if (end == series->count) {
        answer->at++;
        answer->point = 0;
    }
    return qa_answer_flush(query, false);
}

static qf_rc write_frames(struct qa_query *query)
{
    struct qa_answer *answer = query->answer;

    answer->content_type = QA_READ_CHUNKS_TYPE;
    for (; answer->part < query->ask.match_count; answer->part++, answer->at = 0) {
        const struct pq_result *result = &answer->results[answer->part];

        while (answer->at < result->series_count) {
            if (atomic_load(&query->canceled))
                return QF_ECANCELED;
            if (!write_frame(query, &result->series[answer->at])) {
                query->next = QA_NEXT_ROOM;
                return QF_OK;
            }
        }
    }
    end_bytes(query);
    return QF_OK;
}

qf_rc qa_answer_read(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    qf_rc rc = answer->collected ? QF_OK : collect(query, err);

    if (rc)
        return rc;
    if (query->ask.takes_chunks && !answer->has_histograms)
        return write_frames(query);
    if (query->ask.takes_samples)
        return write_message(query, err);
    return qf_err_set(err, QF_EUNSUPPORTED,
                      query->ask.takes_chunks
                          ? "native histograms are answered as samples, which were not asked for"
                          : "none of the requested response types implemented: samples, streamed "
                            "XOR chunks");
}

/* --- federation --- */

static int by_name(const void *a, const void *b)
{
    struct qf_labels x = (*(const struct pq_result_series *const *)a)->labels;
    struct qf_labels y = (*(const struct pq_result_series *const *)b)->labels;
    int order = qf_str_cmp(qf_labels_get(x, QF_STR(QF_METRIC_NAME)),
                           qf_labels_get(y, QF_STR(QF_METRIC_NAME)));

    return order ? order : qf_labels_cmp(x, y);
}

/* Whether the newest sample of a series can be told in the form that was asked for. */
static bool is_told(const struct qa_query *query, const struct pq_result_series *series)
{
    if (!qf_labels_get(series->labels, QF_STR(QF_METRIC_NAME)).len || !qa_family_takes(series))
        return false;
    return query->ask.exposition.protobuf ||
           !pq_histogram_at(series->histograms, series->count - 1);
}

/* Series whose newest sample is told, those of one metric together, each once. */
static qf_rc choose_newest(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    size_t count = 0, kept = 0;

    for (size_t i = 0; i < query->ask.match_count; i++)
        count += answer->results[i].series_count;
    answer->newest = QF_ARENA_ARRAY(query->arena, const struct pq_result_series *, count + 1);
    if (!answer->newest)
        return qa_answer_no_memory(err);
    count = 0;
    for (size_t i = 0; i < query->ask.match_count; i++) {
        for (size_t s = 0; s < answer->results[i].series_count; s++) {
            const struct pq_result_series *series = &answer->results[i].series[s];

            if (is_told(query, series))
                answer->newest[count++] = series;
        }
    }
    qsort(answer->newest, count, sizeof(*answer->newest), by_name);
    for (size_t i = 0; i < count; i++)
        if (!kept || !qf_labels_eq(answer->newest[i]->labels, answer->newest[kept - 1]->labels))
            answer->newest[kept++] = answer->newest[i];
    answer->count = kept;
    return QF_OK;
}

/* The next sample as text, or family of samples; how many series it told. */
static size_t write_newest(struct qa_query *query)
{
    struct qa_answer *answer = query->answer;
    const struct pq_result_series *const *series = answer->newest + answer->at;
    size_t last = series[0]->count - 1;
    struct qf_str before = QF_STR("");

    if (query->ask.exposition.protobuf)
        return qa_family_put(&answer->piece, series, answer->count - answer->at,
                             query->ask.exposition.escaping);
    if (answer->at)
        before = qf_labels_get(series[-1]->labels, QF_STR(QF_METRIC_NAME));
    qa_exposition_sample(&answer->piece, series[0]->labels, before, query->ask.exposition.escaping,
                         series[0]->values[last], series[0]->ts[last]);
    return 1;
}

qf_rc qa_answer_federation(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    qf_rc rc = QF_OK;

    answer->content_type = qa_exposition_type(query->ask.exposition);
    if (!answer->collected) {
        rc = collect(query, err);
        if (rc == QF_OK)
            rc = choose_newest(query, err);
    }
    while (rc == QF_OK && answer->at < answer->count) {
        if (!qa_answer_flush(query, false)) {
            query->next = QA_NEXT_ROOM;
            return QF_OK;
        }
        answer->at += write_newest(query);
    }
    if (rc == QF_OK)
        end_bytes(query);
    return rc;
}
