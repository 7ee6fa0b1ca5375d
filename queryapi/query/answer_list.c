/* answer_list.c - series, label names and label values as lists, sorted, each once. */
#include <stdlib.h>

#include "queryapi/query/answer_int.h"

static int compare_labels(const void *a, const void *b)
{
    return qf_labels_cmp(*(const struct qf_labels *)a, *(const struct qf_labels *)b);
}

static int compare_words(const void *a, const void *b)
{
    return qf_str_cmp(*(const struct qf_str *)a, *(const struct qf_str *)b);
}

qf_rc qa_answer_sets(struct qa_query *query, struct qf_err *err)
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
            return qa_answer_no_memory(err);
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
        return qa_answer_no_memory(err);
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

qf_rc qa_answer_list(struct qa_query *query, struct qf_err *err)
{
    struct qa_answer *answer = query->answer;

    if (!answer->collected) {
        qf_rc rc = qa_answer_sets(query, err);

        if (rc == QF_OK && query->ask.kind != QA_QUERY_SERIES)
            rc = collect_words(query, err);
        if (rc)
            return rc;
        qa_answer_cut_to_limit(query);
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
        if (!qa_answer_flush(query, false)) {
            query->next = QA_NEXT_ROOM;
            return QF_OK;
        }
    }
    qf_strbuf_putc(&answer->piece, ']');
    qa_answer_end_document(query, &answer->result.notes);
    return QF_OK;
}
