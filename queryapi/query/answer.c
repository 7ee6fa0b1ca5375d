/* answer.c - from committed artifacts to an answer: open them, have it written in its format. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "queryapi/query/answer_int.h"
#include "queryapi/query/explain.h"
#include "segments/parquet/artifact.h"

void qa_answer_begin(struct qa_query *query)
{
    if (qa_query_kind_format(query->ask.kind) != QA_FORMAT_EVENTS)
        return;
    qh_stream_header(query->stream, "Cache-Control", "no-cache");
    qh_stream_begin(query->stream, 200, "text/event-stream");
}

void qa_answer_done(struct qa_query *query)
{
    if (!query->answer)
        return;
    qf_strbuf_done(&query->answer->piece);
    (void)qa_ahead_free(query->answer->ahead);
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

    return artifact->data ? sg_artifact_open_memory(bytes, "artifact", &query->purse, err)
                          : sg_artifact_open_file(artifact->path, &query->purse, err);
}

/* Start the evaluation of one plan over its artifacts. */
static qf_rc open_part(struct qa_query *query, uint32_t index, struct qf_err *err)
{
    struct qa_plan_part *part = &query->parts[index];
    struct pq_eval_options options = { .purse = &query->purse,
                                       .canceled = &query->canceled,
                                       .clock_ns = query->explain ? qf_clock_mono_ns : NULL };
    size_t columns = QF_MAX(part->columns, (size_t)1);
    size_t count = part->plan->leaf_count * columns;
    struct pq_leaf_reader **readers =
        QF_ARENA_ARRAY(query->arena, struct pq_leaf_reader *, QF_MAX(count, (size_t)1));

    if (!readers)
        return qf_err_set(err, QF_ELIMIT, "the query needs too much memory");
    for (size_t i = 0; i < query->item_count; i++) {
        const struct qa_item *item = &query->items[i];
        struct pq_leaf_reader *reader;

        if (item->plan != index)
            continue;
        /* Never a silent subset: what was planned is here, or there is no answer. */
        if (!qa_artifact_present(&item->artifact)) {
            close_readers(readers, count);
            return qf_err_set(err, QF_EINTERNAL, "work item %zu has no artifact", i);
        }
        reader = open_artifact(query, &item->artifact, err);
        if (!reader) {
            close_readers(readers, count);
            return err->rc;
        }
        readers[item->leaf * columns + item->column] = reader;
    }
    return pq_eval_new(part->plan, readers, columns, &options, &part->eval, err);
}

/* Remember what the leaves cost, for the next time they are asked. */
static void learn_costs(const struct qa_query *query)
{
    uint64_t scan_us = 0;

    for (size_t i = 0; i < query->item_count; i++) {
        const struct qa_item *item = &query->items[i];

        scan_us += item->scan_us;
        if (i + 1 < query->item_count && item[1].leaf_id == item->leaf_id)
            continue;
        qa_costs_learn(query->env->costs, qa_leaf_key(query, item->plan, item->leaf), scan_us);
        scan_us = 0;
    }
}

static qf_rc open_parts(struct qa_query *query, struct qf_err *err)
{
    query->answer = qf_xcalloc(1, sizeof(*query->answer));
    query->answer->content_type = "application/json";
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

/* More than one piece: from here on an error can only cut the connection. */
static void begin_pieces(struct qa_query *query, size_t bytes)
{
    if (qa_query_kind_format(query->ask.kind) != QA_FORMAT_EVENTS)
        qh_stream_begin(query->stream, 200, query->answer->content_type);
    if (!query->timings.first_ns && bytes)
        query->timings.first_ns = qf_clock_mono_ns();
}

bool qa_answer_send(struct qa_query *query, struct qf_str text)
{
    struct qf_strbuf *piece = &query->answer->piece;

    begin_pieces(query, text.len);
    if (piece->len && !qh_stream_write(query->stream, qf_strbuf_view(piece)))
        return false;
    qf_strbuf_reset(piece);
    return qh_stream_write(query->stream, text);
}

bool qa_answer_flush(struct qa_query *query, bool last)
{
    struct qf_strbuf *piece = &query->answer->piece;

    if (piece->len < QA_PIECE_BYTES && !last)
        return true;
    begin_pieces(query, piece->len);
    if (!qh_stream_write(query->stream, qf_strbuf_view(piece)))
        return last;
    qf_strbuf_reset(piece);
    return last || qh_stream_room(query->stream);
}

qf_rc qa_answer_no_memory(struct qf_err *err)
{
    return qf_err_set(err, QF_ELIMIT, "the query needs more memory than it may have");
}

qf_rc qa_query_answer(struct qa_query *query, struct qf_err *err)
{
    query->next = QA_NEXT_OVER;
    if (!query->answer) {
        qf_rc rc = open_parts(query, err);

        if (rc)
            return rc;
        if (query->explain && !query->explain->silent) /* what the coordinator left to be told */
            (void)qa_explain_works(query, SIZE_MAX);
    }
    switch (query->ask.kind) {
    case QA_QUERY_EVENTS:
        return query->ask.batch ? qa_answer_batches(query, err) : qa_answer_events(query, err);
    case QA_QUERY_INSTANT:
    case QA_QUERY_RANGE:
        return qa_answer_result(query, err);
    case QA_QUERY_SERIES:
    case QA_QUERY_LABELS:
    case QA_QUERY_LABEL_VALUES:
        return qa_answer_list(query, err);
    case QA_QUERY_CARDINALITY:
        return qa_answer_cardinality(query, err);
    case QA_QUERY_READ:
        return qa_answer_read(query, err);
    case QA_QUERY_FEDERATE:
        return qa_answer_federation(query, err);
    case QA_QUERY_EXPLAIN: /* was answered when it was planned, */
    case QA_QUERY_STORED:  /* and so was this */
    case QA_QUERY__COUNT:
        break;
    }
    return qf_err_set(err, QF_EINTERNAL, "a query of no kind");
}
