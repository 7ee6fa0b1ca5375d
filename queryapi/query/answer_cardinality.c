/* answer_cardinality.c - which metrics, labels and values make how many series, in the form of Prometheus's
 * /api/v1/status/tsdb. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/map.h"
#include "queryapi/query/answer_int.h"

/* @name is borrowed. */
static void add(struct qf_map *tally, struct qf_str name, uint64_t count)
{
    *qf_map_put(tally, name, 0, NULL) += count;
}

struct item {
    struct qf_str name;
    uint64_t count;
};

static int by_count(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return qf_str_cmp(x->name, y->name);
}

/* The greatest, as a list under @key. */
static qf_rc put_list(struct qf_strbuf *buf, const char *key, const struct qf_map *tally,
                      struct qa_query *query, struct qf_err *err)
{
    size_t count = tally->count;
    struct item *items = QF_ARENA_ARRAY(query->arena, struct item, count + 1);

    if (!items)
        return qa_answer_no_memory(err);
    for (size_t i = 0; i < count; i++)
        items[i] = (struct item){ tally->entries[i].key, tally->entries[i].value };
    if (count)
        qsort(items, count, sizeof(*items), by_count);
    qf_strbuf_printf(buf, ",\"%s\":[", key);
    for (size_t i = 0; i < count && i < query->ask.limit; i++) {
        qf_strbuf_puts(buf, i ? ",{\"name\":" : "{\"name\":");
        qf_strbuf_json(buf, items[i].name);
        qf_strbuf_printf(buf, ",\"value\":%" PRIu64 "}", items[i].count);
    }
    qf_strbuf_putc(buf, ']');
    return QF_OK;
}

struct tallies {
    struct qf_map metrics; /* series of a name */
    struct qf_map values;  /* different values of a label */
    struct qf_map bytes;   /* of these values */
    struct qf_map pairs;   /* series with label=value */
};

static bool count_label(struct tallies *t, const struct qf_label *label, struct qf_strbuf *scratch,
                        struct qf_arena *arena)
{
    struct qf_str pair;
    uint64_t *known;

    if (qf_str_is(label->name, QF_METRIC_NAME))
        add(&t->metrics, label->value, 1);
    qf_strbuf_reset(scratch);
    qf_strbuf_str(scratch, label->name);
    qf_strbuf_putc(scratch, '=');
    qf_strbuf_str(scratch, label->value);
    known = qf_map_get(&t->pairs, qf_strbuf_view(scratch));
    if (known) {
        ++*known;
        return true;
    }
    pair = qf_arena_str(arena, qf_strbuf_view(scratch));
    if (!pair.data)
        return false;
    add(&t->pairs, pair, 1);
    add(&t->values, label->name, 1);
    add(&t->bytes, label->name, label->value.len);
    return true;
}

static qf_rc count_sets(struct qa_query *query, struct tallies *t, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf scratch = QF_STRBUF_INIT;
    const struct qa_answer *answer = query->answer;

    for (size_t i = 0; i < answer->count; i++) {
        for (size_t k = 0; k < answer->sets[i].count; k++)
            if (!count_label(t, &answer->sets[i].items[k], &scratch, query->arena))
                return qa_answer_no_memory(err);
        if (atomic_load(&query->canceled))
            return QF_ECANCELED;
    }
    return QF_OK;
}

static qf_rc write_lists(struct qa_query *query, const struct tallies *t, struct qf_err *err)
{
    struct qf_strbuf *buf = &query->answer->piece;
    qf_rc rc;

    qf_strbuf_printf(buf,
                     "{\"status\":\"success\",\"data\":{\"headStats\":{\"numSeries\":%zu,"
                     "\"numLabelPairs\":%zu,\"chunkCount\":0,\"minTime\":%" PRId64
                     ",\"maxTime\":%" PRId64 "}",
                     query->answer->count, t->pairs.count, query->ask.start_ms, query->ask.end_ms);
    rc = put_list(buf, "seriesCountByMetricName", &t->metrics, query, err);
    if (rc == QF_OK)
        rc = put_list(buf, "labelValueCountByLabelName", &t->values, query, err);
    if (rc == QF_OK)
        rc = put_list(buf, "memoryInBytesByLabelName", &t->bytes, query, err);
    if (rc == QF_OK)
        rc = put_list(buf, "seriesCountByLabelValuePair", &t->pairs, query, err);
    qf_strbuf_putc(buf, '}');
    return rc;
}

qf_rc qa_answer_cardinality(struct qa_query *query, struct qf_err *err)
{
    struct tallies t = { 0 };
    qf_rc rc = qa_answer_sets(query, err);

    if (rc == QF_OK)
        rc = count_sets(query, &t, err);
    if (rc == QF_OK)
        rc = write_lists(query, &t, err);
    qf_map_done(&t.metrics);
    qf_map_done(&t.values);
    qf_map_done(&t.bytes);
    qf_map_done(&t.pairs);
    if (rc == QF_OK)
        qa_answer_end_document(query, &query->answer->result.notes);
    return rc;
}
