/* known.c - lists of names out of the catalogue. */
#include "queryapi/query/known.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/map.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "queryapi/encode/prom_json.h"
#include "segments/parquet/contents.h"

/* Names that one list may hold. */
#define NAMES_MAX 200000

struct figures {
    uint64_t samples;
    double bytes;
};

struct list {
    const struct qa_query *query;
    struct qf_arena *arena;
    struct qf_map names; /* -> its place in figures */
    QF_VEC(struct figures) figures;
    bool open, full; /* a label whose values are not told; more names than fit */
};

static struct figures *add(struct list *list, struct qf_str name)
{
    uint64_t *index = qf_map_get(&list->names, name);
    struct qf_str copy;

    if (index)
        return &list->figures.items[*index];
    copy = qf_arena_str(list->arena, name);
    list->full |= !copy.data || list->figures.count == NAMES_MAX;
    if (list->full)
        return NULL;
    (void)qf_map_put(&list->names, copy, list->figures.count, NULL);
    QF_VEC_PUSH(&list->figures, (struct figures){ 0 });
    return &list->figures.items[list->figures.count - 1];
}

static bool is_metrics(const struct qa_query *query)
{
    return query->ask.kind == QA_QUERY_STORED || qf_str_is(query->ask.label, QF_METRIC_NAME);
}

static void add_metrics(struct list *list, const struct sg_catalog_segment *segment,
                        const struct sg_contents *contents)
{
    for (size_t i = 0; i < contents->metric_count; i++) {
        const struct sg_contents_metric *metric = &contents->metrics[i];
        struct figures *figures = metric->name.len ? add(list, metric->name) : NULL;

        if (!figures)
            continue;
        figures->samples += metric->samples;
        figures->bytes += contents->samples ? (double)segment->size * (double)metric->samples /
                                                  (double)contents->samples
                                            : 0;
    }
}

static void add_labels(struct list *list, const struct sg_contents *contents)
{
    bool names = list->query->ask.kind == QA_QUERY_LABELS;

    for (size_t i = 0; i < contents->label_count; i++) {
        const struct sg_contents_label *label = &contents->labels[i];

        if (names) {
            (void)add(list, label->name);
            continue;
        }
        if (!qf_str_eq(label->name, list->query->ask.label))
            continue;
        list->open |= label->open;
        for (size_t k = 0; k < label->value_count; k++)
            (void)add(list, label->values[k]);
    }
    if (names && contents->metric_count)
        (void)add(list, QF_STR(QF_METRIC_NAME));
}

static void hear(void *ctx, const struct sg_catalog_segment *segment,
                 const struct sg_contents *contents)
{
    struct list *list = ctx;

    if (is_metrics(list->query))
        add_metrics(list, segment, contents);
    else
        add_labels(list, contents);
}

static int by_name(const void *a, const void *b)
{
    return qf_str_cmp((*(const struct qf_map_entry *const *)a)->key,
                      (*(const struct qf_map_entry *const *)b)->key);
}

static void put_item(struct qf_strbuf *body, const struct list *list,
                     const struct qf_map_entry *entry)
{
    const struct figures *figures = &list->figures.items[entry->value];

    if (list->query->ask.kind != QA_QUERY_STORED) {
        qf_strbuf_json(body, entry->key);
        return;
    }
    qf_strbuf_puts(body, "{\"name\":");
    qf_strbuf_json(body, entry->key);
    qf_strbuf_printf(body, ",\"samples\":%" PRIu64 ",\"bytes\":%.0f}", figures->samples,
                     figures->bytes);
}

static qf_rc send(struct qa_query *query, const struct list *list, size_t unknown,
                  struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    size_t count = list->names.count, shown = count;
    const struct qf_map_entry **sorted =
        QF_ARENA_ARRAY(query->arena, const struct qf_map_entry *, QF_MAX(count, (size_t)1));

    if (!sorted)
        return qf_err_set(err, QF_ELIMIT, "the query needs more memory than it may have");
    for (size_t i = 0; i < count; i++)
        sorted[i] = &list->names.entries[i];
    if (count)
        qsort(sorted, count, sizeof(sorted[0]), by_name);
    if (query->ask.limit)
        shown = QF_MIN(shown, (size_t)query->ask.limit);
    qf_strbuf_puts(&body, "{\"status\":\"success\",\"data\":[");
    for (size_t i = 0; i < shown; i++) {
        if (i)
            qf_strbuf_putc(&body, ',');
        put_item(&body, list, sorted[i]);
    }
    qf_strbuf_putc(&body, ']');
    if (unknown)
        qf_strbuf_printf(&body, ",\"infos\":[\"of %zu segments the names are not known\"]",
                         unknown);
    else if (shown < count)
        qf_strbuf_puts(&body, ",\"warnings\":[\"results truncated due to limit\"]");
    qf_strbuf_putc(&body, '}');
    query->timings.first_ns = qf_clock_mono_ns();
    qh_stream_answer(query->stream, 200, "application/json", qf_strbuf_view(&body));
    query->next = QA_NEXT_OVER;
    return QF_OK;
}

/* Ingest nodes have samples that are in no segment yet: names among them may be new. */
static bool has_heads(const struct qa_query *query)
{
    bool any = false;

    for (size_t i = 0; query->fresh && i < query->fresh->count; i++)
        any |= query->fresh->partitions[i].range_count > 0;
    return any;
}

static bool has_maps(const struct qa_query *query)
{
    return query->maps && query->maps->count > 0;
}

qf_rc qa_answer_known(struct qa_query *query, bool *ret_answered, struct qf_err *err)
{
    struct list list = { .query = query, .arena = query->arena };
    bool stored = query->ask.kind == QA_QUERY_STORED;
    size_t unknown;
    qf_rc rc = QF_OK;

    *ret_answered = false;
    if (!query->ask.known)
        return QF_OK;
    unknown = sg_catalog_contents(query->snapshot, query->ask.tenant, query->ask.start_ms,
                                  query->ask.end_ms, hear, &list);
    /* Which labels info series have is not known here. */
    if (stored || (!has_maps(query) && !unknown && !list.open && !list.full && !has_heads(query))) {
        rc = send(query, &list, unknown, err);
        *ret_answered = rc == QF_OK;
    }
    qf_map_done(&list.names);
    QF_VEC_DONE(&list.figures);
    return rc;
}
