/* explain.c - what a query tells of itself while it runs. */
#include "queryapi/query/explain.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/sys/clock.h"
#include "queryapi/encode/events.h"
#include "queryapi/query/query_int.h"

static int64_t age_ms(const struct qa_query *query)
{
    return (qf_clock_mono_ns() - query->timings.submitted_ns) / 1000000;
}

bool qa_explained(const struct qa_query *query)
{
    return query->ask.explain && qa_query_kind_format(query->ask.kind) == QA_FORMAT_EVENTS;
}

bool qa_profiled(const struct qa_query *query)
{
    return query->ask.stats_all &&
           (query->ask.kind == QA_QUERY_INSTANT || query->ask.kind == QA_QUERY_RANGE);
}

void qa_explain_stage(struct qa_query *query, const char *name)
{
    struct qf_strbuf event = QF_STRBUF_INIT;

    if (!qh_stream_begun(query->stream))
        qa_answer_begin(query);
    qa_sse_stage(&event, name, age_ms(query));
    (void)qh_stream_write(query->stream, qf_strbuf_view(&event));
    qf_strbuf_done(&event);
}

/* --- the plan --- */

static uint32_t shards_of(const struct qa_item *item)
{
    uint32_t count = 0, last = UINT32_MAX;

    for (size_t i = 0; i < item->segment_count; i++) { /* those of a shard are in a row */
        if (item->segments[i].shard != last)
            count++;
        last = item->segments[i].shard;
    }
    return QF_MAX(count, 1u); /* of a shard that is only in heads: that one */
}

static qf_rc describe(struct qa_query *query, struct qa_planned *ret_planned, struct qf_err *err)
{
    struct qa_planned_work *works =
        QF_ARENA_ARRAY(query->arena, struct qa_planned_work, QF_MAX(query->item_count, (size_t)1));

    if (!works)
        return qf_err_set(err, QF_ELIMIT, "the query is too large");
    for (size_t i = 0; i < query->item_count; i++) {
        const struct qa_item *item = &query->items[i];

        works[i] = (struct qa_planned_work){ .leaf = item->leaf_id,
                                             .shards = shards_of(item),
                                             .segments = item->segment_count,
                                             .heads = item->heads.count,
                                             .maps = item->maps.count };
        for (size_t k = 0; k < item->segment_count; k++)
            works[i].bytes += item->segments[k].size_bytes;
    }
    *ret_planned = (struct qa_planned){ .query_id = query->name,
                                        .plan = query->parts[0].plan,
                                        .estimate = query->estimate,
                                        .works = works,
                                        .work_count = query->item_count };
    return QF_OK;
}

static qf_rc make_notes(struct qa_query *query, struct qf_err *err)
{
    struct qa_explain *explain = QF_ARENA_NEW(query->arena, struct qa_explain);
    size_t count = query->item_count, capacity = QF_MAX(count, (size_t)1);

    if (!explain)
        return qf_err_set(err, QF_ELIMIT, "the query is too large");
    explain->count = count;
    explain->notes = QF_ARENA_ARRAY(query->arena, struct qa_work_note, capacity);
    explain->changed = QF_ARENA_ARRAY(query->arena, uint32_t, capacity);
    if (!explain->notes || !explain->changed)
        return qf_err_set(err, QF_ELIMIT, "the query is too large");
    for (size_t i = 0; i < count; i++)
        explain->notes[i].view = (struct qa_work_view){ .id = (uint32_t)i, .state = "pending" };
    query->explain = explain;
    return QF_OK;
}

qf_rc qa_explain_silently(struct qa_query *query, struct qf_err *err)
{
    qf_rc rc = make_notes(query, err);

    if (rc == QF_OK)
        query->explain->silent = true;
    return rc;
}

qf_rc qa_explain_plan(struct qa_query *query, struct qf_err *err)
{
    struct qf_strbuf event = QF_STRBUF_INIT;
    struct qa_planned planned;
    qf_rc rc = make_notes(query, err);

    if (rc == QF_OK)
        rc = describe(query, &planned, err);
    if (rc != QF_OK)
        return rc;
    qa_sse_plan(&event, &planned);
    (void)qh_stream_write(query->stream, qf_strbuf_view(&event));
    qf_strbuf_done(&event);
    return QF_OK;
}

qf_rc qa_explain_document(struct qa_query *query, struct qf_err *err)
{
    struct qf_strbuf body = QF_STRBUF_INIT;
    struct qa_planned planned;
    qf_rc rc = describe(query, &planned, err);

    if (rc != QF_OK)
        return rc;
    qf_strbuf_puts(&body, "{\"status\":\"success\",\"data\":");
    qa_json_planned(&body, &planned);
    qf_strbuf_putc(&body, '}');
    query->timings.first_ns = qf_clock_mono_ns();
    qh_stream_answer(query->stream, 200, "application/json", qf_strbuf_view(&body));
    qf_strbuf_done(&body);
    query->next = QA_NEXT_OVER;
    return QF_OK;
}

/* --- the works --- */

void qa_explain_mark(struct qa_explain *explain, size_t index)
{
    if (explain->notes[index].changed)
        return;
    explain->notes[index].changed = true;
    explain->changed[explain->changed_count++] = (uint32_t)index;
}

const char *qa_explain_name(struct qa_query *query, uint64_t worker, const char *name)
{
    struct qa_explain *explain = query->explain;
    struct qa_worker_name *names;
    const char *text;

    for (size_t i = 0; i < explain->name_count; i++)
        if (explain->names[i].worker == worker)
            return explain->names[i].text;
    text = qf_arena_cstr(query->arena, qf_str_from(name));
    names = qf_arena_grow(query->arena, explain->names, explain->name_count,
                          explain->name_count + 1, sizeof(*names));
    if (!text || !names)
        return NULL;
    explain->names = names;
    names[explain->name_count++] = (struct qa_worker_name){ worker, text };
    return text;
}

size_t qa_explain_works(struct qa_query *query, size_t max)
{
    struct qa_explain *explain = query->explain;
    size_t count = QF_MIN(explain->changed_count, max);
    struct qf_strbuf event = QF_STRBUF_INIT;

    if (count == 0)
        return 0;
    qa_sse_works_open(&event, age_ms(query));
    for (size_t i = 0; i < count; i++) {
        struct qa_work_note *note = &explain->notes[explain->changed[i]];

        note->changed = false;
        note->view.reason = note->reason;
        qa_sse_works_item(&event, &note->view, i == 0);
    }
    qa_sse_list_close(&event);
    explain->changed_count -= count;
    memmove(explain->changed, explain->changed + count,
            explain->changed_count * sizeof(*explain->changed));
    (void)qh_stream_write(query->stream, qf_strbuf_view(&event));
    qf_strbuf_done(&event);
    return count;
}

/* --- the end --- */

static double seconds(int64_t from_ns, int64_t to_ns)
{
    return from_ns && to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

static struct qa_done_stats stats_of(const struct qa_query *query, uint64_t series,
                                     struct qa_head_figures *head_room)
{
    const struct qa_timings *t = &query->timings;
    const struct qa_explain *explain = query->explain;
    int64_t now = qf_clock_mono_ns();
    struct qa_done_stats stats = { .queued_seconds = seconds(t->submitted_ns, t->admitted_ns),
                                   .planning_seconds = seconds(t->admitted_ns, t->planned_ns),
                                   .working_seconds = seconds(t->planned_ns, t->fetched_ns),
                                   .answering_seconds = seconds(t->fetched_ns, now),
                                   .total_seconds = seconds(t->submitted_ns, now),
                                   .series = series,
                                   .points = query->points,
                                   .replans = query->co.replans,
                                   .heads = qa_query_heads(query, head_room),
                                   .peak_memory_bytes = explain->memory_peak };

    for (size_t i = 0; i < explain->count; i++) {
        const struct qa_work_view *view = &explain->notes[i].view;
        uint32_t first = view->hedged ? 2 : 1; /* attempts that are no retries */

        stats.samples += view->figures.samples;
        stats.artifact_bytes += view->figures.artifact_bytes;
        stats.download_bytes += view->figures.download_bytes;
        stats.retries += view->attempt > first ? view->attempt - first : 0;
        stats.hedges += view->hedged;
    }
    return stats;
}

/* Of which copies of maps: once for each leaf, into how many works it may be divided. */
static uint64_t checksum_of_maps(const struct qa_item *item)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < item->maps.count && item->maps.shard == 0; i++) {
        const struct pb_map *map = &item->maps.inputs[i];
        uint64_t parts[] = { item->leaf_id, qf_hash_bytes(map->name), map->created, map->version };

        sum += qf_hash_bytes((struct qf_str){ (const char *)parts, sizeof(parts) });
    }
    return sum;
}

/* Sums do not depend on how segments are divided into work items. */
static uint64_t checksum_of(const struct qa_query *query)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < query->item_count; i++) {
        const struct qa_item *item = &query->items[i];

        sum += checksum_of_maps(item);
        for (size_t k = 0; k < item->segment_count; k++) {
            uint64_t parts[] = { item->leaf_id, qf_hash_bytes(item->segments[k].name),
                                 item->segments[k].size_bytes };

            sum += qf_hash_bytes((struct qf_str){ (const char *)parts, sizeof(parts) });
        }
    }
    return sum;
}

/* Nodes of one plan that are told of at most: an expression of the longest text has fewer. */
#define NODES_MAX ((size_t)4096)

static struct pq_node_figures *nodes_of(const struct qa_query *query, size_t *ret_count)
{
    struct pq_node_figures *nodes = qf_xcalloc(NODES_MAX, sizeof(*nodes));

    *ret_count = QF_MIN(pq_eval_figures(query->parts[0].eval, nodes, NODES_MAX), NODES_MAX);
    return nodes;
}

static struct qa_receipt receipt_of(const struct qa_query *query, uint64_t series,
                                    struct pq_node_figures **ret_nodes,
                                    struct qa_head_figures *head_room)
{
    struct qa_receipt receipt = { .stats = stats_of(query, series, head_room),
                                  .coverage = { .segments = query->segment_count,
                                                .works = query->item_count,
                                                .heads = query->head_count,
                                                .checksum = checksum_of(query) } };

    receipt.nodes = *ret_nodes = nodes_of(query, &receipt.node_count);
    return receipt;
}

void qa_explain_done(const struct qa_query *query, struct qf_strbuf *buf, uint64_t series)
{
    struct pq_node_figures *nodes;
    struct qa_head_figures heads;
    struct qa_receipt receipt = receipt_of(query, series, &nodes, &heads);

    qa_sse_done_explained(buf, pq_eval_notes(query->parts[0].eval), query->ask.text, &receipt);
    free(nodes);
}

void qa_explain_receipt(const struct qa_query *query, struct qf_strbuf *buf, uint64_t series)
{
    struct pq_node_figures *nodes;
    struct qa_head_figures heads;
    struct qa_receipt receipt = receipt_of(query, series, &nodes, &heads);

    qa_json_receipt(buf, &receipt);
    free(nodes);
}
