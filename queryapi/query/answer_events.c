/* answer_events.c - an answer as events: batch by batch, as soon as steps are evaluated. */
#include <string.h>

#include "queryapi/encode/events.h"
#include "queryapi/query/answer_int.h"
#include "queryapi/query/explain.h"

static qf_rc grow_tags(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    size_t want = answer->batch.series_count;

    if (want <= answer->tag_count)
        return QF_OK;
    answer->tags =
        qf_arena_grow(query->arena, answer->tags, answer->tag_count, want, sizeof(*answer->tags));
    if (!answer->tags)
        return qa_answer_no_memory(err);
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
            return qa_answer_no_memory(err);
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
            if (!qa_answer_flush(query, false)) {
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
        *ret_full = !qa_answer_flush(query, true) || !qh_stream_room(query->stream);
    return QF_OK;
}

qf_rc qa_answer_next_batch(struct qa_query *query, struct qf_err *err)
{
    qf_rc rc = pq_eval_next(query->parts[0].eval, &query->answer->batch, err);

    if (query->explain)
        query->explain->memory_peak =
            QF_MAX(query->explain->memory_peak, qf_purse_used(&query->purse));
    return rc;
}

void qa_answer_end_events(struct qa_query *query, uint64_t series)
{
    struct qa_answer *answer = query->answer;
    struct qa_head_figures heads;

    if (query->explain)
        qa_explain_done(query, &answer->piece, series);
    else
        qa_sse_done(&answer->piece, pq_eval_notes(query->parts[0].eval), query->ask.text,
                    qa_query_heads(query, &heads));
    (void)qa_answer_flush(query, true);
    qh_stream_end(query->stream);
}

static uint64_t series_told(const struct qa_answer *answer)
{
    uint64_t count = 0;

    for (size_t i = 0; i < answer->tag_count; i++)
        count += answer->tags[i].data != NULL;
    return count;
}

qf_rc qa_answer_events(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    bool full = false;
    qf_rc rc;

    while (!full) {
        if (!answer->in_batch) {
            rc = qa_answer_next_batch(query, err);
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
    qa_answer_end_events(query, series_told(answer));
    return QF_OK;
}
