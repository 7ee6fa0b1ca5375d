/* answer_batches.c - an answer as columnar events: labels once per series, then rows of values. */
#include <string.h>

#include "queryapi/query/answer_int.h"
#include "queryapi/query/explain.h"

/* An event is closed once it is this long, and the stream is asked for room. */
#define EVENT_BYTES ((size_t)24 << 10)

/* Ids for series that later batches brought. */
static qf_rc grow_ids(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    size_t want = answer->batch.series_count;

    if (want <= answer->id_count)
        return QF_OK;
    answer->ids =
        qf_arena_grow(query->arena, answer->ids, answer->id_count, want, sizeof(*answer->ids));
    if (!answer->ids)
        return qa_answer_no_memory(err);
    memset(answer->ids + answer->id_count, 0, (want - answer->id_count) * sizeof(*answer->ids));
    answer->id_count = want;
    return QF_OK;
}

/* One event with labels of series that have their first value in this batch. */
static void write_series(struct qa_answer *answer)
{
    const struct pq_eval_batch *batch = &answer->batch;
    size_t begin = answer->piece.len;
    bool open = false;

    for (; answer->series < batch->series_count; answer->series++) {
        size_t at = answer->series;

        if (answer->ids[at] || !batch->present[at])
            continue;
        if (answer->piece.len - begin >= EVENT_BYTES)
            break;
        if (!open)
            qa_sse_series_open(&answer->piece, answer->told);
        qa_sse_series_item(&answer->piece, batch->series[at], !open);
        open = true;
        answer->ids[at] = ++answer->told;
    }
    if (open)
        qa_sse_list_close(&answer->piece);
}

/* One event with rows of this batch. */
static void write_rows(struct qa_query *query)
{
    struct qa_answer *answer = query->answer;
    const struct pq_eval_batch *batch = &answer->batch;
    size_t begin = answer->piece.len;
    bool open = false;

    for (; answer->series < batch->series_count; answer->series++) {
        size_t at = answer->series, cell = at * batch->stride;

        if (!batch->present[at])
            continue;
        if (answer->piece.len - begin >= EVENT_BYTES)
            break;
        if (!open)
            qa_sse_batch_open(&answer->piece, batch->start_ms, batch->step_ms, batch->steps);
        qa_sse_batch_row(&answer->piece, answer->ids[at] - 1, batch->values + cell,
                         batch->present[at], batch->histograms ? batch->histograms + cell : NULL,
                         batch->steps, !open);
        open = true;
        query->points += (uint64_t)__builtin_popcountll(batch->present[at]);
    }
    if (open)
        qa_sse_list_close(&answer->piece);
}

/* The rest of the current batch. True: the stream is full. */
static bool write_batch(struct qa_query *query)
{
    struct qa_answer *answer = query->answer;

    while (answer->in_batch) {
        if (!qa_answer_flush(query, false))
            return true;
        if (answer->in_rows)
            write_rows(query);
        else
            write_series(answer);
        if (answer->series < answer->batch.series_count)
            continue;
        answer->in_batch = !answer->in_rows;
        answer->in_rows = !answer->in_rows;
        answer->series = 0;
    }
    /* What is ready leaves now, whatever the next steps take. */
    return answer->piece.len && (!qa_answer_flush(query, true) || !qh_stream_room(query->stream));
}

qf_rc qa_answer_batches(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;
    bool full = false;

    while (!full) {
        if (!answer->in_batch) {
            qf_rc rc = qa_answer_next_batch(query, err);

            if (rc == QF_OK && answer->batch.steps)
                rc = grow_ids(query, err);
            if (rc)
                return rc;
            if (answer->batch.steps == 0)
                break;
            answer->in_batch = true;
            answer->in_rows = false;
            answer->series = 0;
        }
        full = write_batch(query);
        if (atomic_load(&query->canceled))
            return QF_ECANCELED;
    }
    if (full)
        query->next = QA_NEXT_ROOM;
    else
        qa_answer_end_events(query, answer->told);
    return QF_OK;
}
