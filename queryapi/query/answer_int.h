/* answer_int.h - an answer being written, between answer.c and the files of its two formats. */
#ifndef QUERYAPI_QUERY_ANSWER_INT_H
#define QUERYAPI_QUERY_ANSWER_INT_H

#include "queryapi/query/ahead.h"
#include "queryapi/query/query_int.h"

/* Bytes sent at once; between two pieces the stream is asked for room. */
#define QA_PIECE_BYTES ((size_t)32 << 10)

/* Where writing has come to; survives from turn to turn. */
struct qa_answer {
    struct qf_strbuf piece;
    const char *content_type; /* of what is no stream of events */

    /* Events: the batch being written. */
    struct pq_eval_batch batch;
    bool in_batch;
    size_t step, series;
    struct qf_str *tags; /* per series id, made when it first has a value */
    size_t tag_count;

    /* Columnar events: what the client knows of series. */
    uint64_t *ids; /* per series id, its number in events plus 1; 0: it had no value yet */
    size_t id_count;
    uint64_t told; /* series with a number */
    bool in_rows;  /* the batch's series are told, its rows are being written */

    /* Documents: the collected result, or names and label sets. */
    struct pq_result result;
    bool collected, opened, limited;
    struct qf_labels *sets;
    struct qf_str *words;
    size_t count; /* of what is written: series, sets or words */
    size_t at, point;
    /* Samples: by match; of the newest the series that are told. */
    struct pq_result *results;
    const struct pq_result_series **newest;
    size_t part;
    bool has_histograms;
    struct qa_ahead *ahead; /* series before @at, written and not sent yet */
    enum { NOT_OPEN, OPEN, FILLED } values, histograms; /* lists of the series being written */
};

/* answer.c: send the piece if it is large or @last. False: the stream is full, or nobody reads it.
 */
bool qa_answer_flush(struct qa_query *query, bool last);
/* Send what is in the piece, and @text behind it. False as above, and then @text was not taken. */
bool qa_answer_send(struct qa_query *query, struct qf_str text);
QF_MUST_CHECK qf_rc qa_answer_no_memory(struct qf_err *err);

/* answer_events.c, answer_batches.c, answer_document.c, answer_list.c: evaluate and write until the stream is full
 * (next ROOM) or all is said. */
QF_MUST_CHECK qf_rc qa_answer_events(struct qa_query *query, struct qf_err *err);
QF_MUST_CHECK qf_rc qa_answer_batches(struct qa_query *query, struct qf_err *err);
QF_MUST_CHECK qf_rc qa_answer_result(struct qa_query *query, struct qf_err *err);
QF_MUST_CHECK qf_rc qa_answer_list(struct qa_query *query, struct qf_err *err);
/* answer_samples.c, answer_cardinality.c */
QF_MUST_CHECK qf_rc qa_answer_read(struct qa_query *query, struct qf_err *err);
QF_MUST_CHECK qf_rc qa_answer_federation(struct qa_query *query, struct qf_err *err);
QF_MUST_CHECK qf_rc qa_answer_cardinality(struct qa_query *query, struct qf_err *err);

/* answer_list.c: the series of all plans in answer->sets, sorted, each once. */
QF_MUST_CHECK qf_rc qa_answer_sets(struct qa_query *query, struct qf_err *err);

/* answer_events.c: what both kinds of events share: the next batch, and the end. @series: how many the
 * client was told of. */
QF_MUST_CHECK qf_rc qa_answer_next_batch(struct qa_query *query, struct qf_err *err);
void qa_answer_end_events(struct qa_query *query, uint64_t series);

/* answer_document.c: what both kinds of documents share. */
void qa_answer_cut_to_limit(struct qa_query *query);
void qa_answer_end_document(struct qa_query *query, const struct pq_notes *notes);

#endif
