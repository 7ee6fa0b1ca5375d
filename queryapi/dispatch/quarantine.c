/* quarantine.c - segments that cost workers, in the coordinator: who is blamed, and who waits.
 *
 * The machine of work says when a worker died and of which items it may have been; the table in
 * workcoord/quarantine.h counts for each of their segments, over all queries. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queryapi/dispatch/coordinator_int.h"
#include "queryapi/encode/error.h"

bool co_quarantine_init(struct qa_coord *coord)
{
    coord->quarantine.table = wc_quarantine_new(&(struct wc_quarantine_limits){
        .entries_max = CO_QUARANTINE_MAX,
        .deaths_max =
            coord->options.quarantine_after ? coord->options.quarantine_after : UINT32_MAX,
        .time_ms = coord->options.quarantine_ms,
    });
    coord->quarantine.names = qf_xcalloc(CO_QUARANTINE_MAX, sizeof(*coord->quarantine.names));
    return coord->quarantine.table != NULL;
}

void co_quarantine_done(struct qa_coord *coord)
{
    for (size_t i = 0; coord->quarantine.names && i < CO_QUARANTINE_MAX; i++)
        free(coord->quarantine.names[i]);
    free(coord->quarantine.names);
    (void)wc_quarantine_free(coord->quarantine.table);
}

static struct wc_quarantine_entry find(const struct qa_coord *coord, struct qf_str segment)
{
    return wc_quarantine_find(coord->quarantine.table, qf_hash_bytes(segment), qf_clock_mono_ms());
}

/* The first segment of the item that is in quarantine, NULL: none is. The workers that the worst of
 * them cost are counted. */
static const struct pb_segment *held(const struct qa_coord *coord, const struct qa_item *item,
                                     uint32_t *ret_deaths)
{
    *ret_deaths = 0;
    for (size_t i = 0; i < item->segment_count; i++) {
        struct wc_quarantine_entry entry = find(coord, item->segments[i].name);

        *ret_deaths = QF_MAX(*ret_deaths, entry.deaths);
        if (entry.suspicion == WC_QUARANTINED)
            return &item->segments[i];
    }
    return NULL;
}

void co_explain_quarantine(struct qa_coord *coord, struct qa_query *query)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf until = QF_STRBUF_INIT;
    const struct pb_segment *segment = NULL;
    uint32_t deaths;

    for (size_t i = 0; i < query->item_count && !segment; i++)
        segment = held(coord, &query->items[i], &deaths);
    if (!segment) /* read to a good end by others meanwhile */
        return;
    qf_time_print_rfc3339(&until, qf_clock_wall_ms() + find(coord, segment->name).until -
                                      qf_clock_mono_ms());
    (void)snprintf(query->co.reason, sizeof(query->co.reason),
                   "segment %.*s cost %" PRIu32 " workers and is not read before %s",
                   QF_STR_ARG(segment->name), deaths, qf_strbuf_cstr(&until));
}

bool co_vet(struct qa_coord *coord, const struct qa_query *query, struct wc_api_item_spec *items)
{
    if (wc_quarantine_count(coord->quarantine.table) == 0)
        return true;
    for (size_t i = 0; i < query->item_count; i++)
        if (held(coord, &query->items[i], &items[i].deaths))
            return false;
    return true;
}

/* Queries that wait for what is now in quarantine, or are running it, fail before it costs more. */
static void fail_others(struct qa_coord *coord, const struct qa_query *but)
{
    for (size_t slot = 0; slot < coord->slot_count; slot++) {
        const struct qa_query *query = coord->slots[slot];
        struct wc_api_query_view view;
        uint32_t deaths;
        bool fails = false;

        /* While the core knows the query, no turn changes its items. */
        if (!query || query == but ||
            !wc_api_query(coord->wc, (struct wc_query_id){ query->id }, &view))
            continue;
        for (size_t i = 0; i < query->item_count && !fails; i++)
            fails = !qa_artifact_present(&query->items[i].artifact) &&
                    held(coord, &query->items[i], &deaths);
        if (fails)
            co_tell_work(coord, (struct wc_api_event){ .type = WC_API_EV_QUERY_CANCEL,
                                                       .query.v = query->id,
                                                       .rc = QF_EQUARANTINED });
    }
}

static void remember_name(struct qa_coord *coord, uint32_t slot, struct qf_str name)
{
    free(coord->quarantine.names[slot]);
    coord->quarantine.names[slot] = qf_xmemdup0(name.data, name.len);
}

void co_blame(struct qa_coord *coord, const struct wc_api_effect *effect)
{
    struct qa_query *query = co_find_query(coord, effect->query.v);
    struct qa_item *item = co_find_item(query, effect->work.v);
    const struct endpoint *endpoint = co_endpoint(coord, effect->worker);
    bool fresh = false;

    if (!item)
        return;
    QF_LOG_WARN("a worker died while it ran this work", QF_KV_STR("query_id", query->name),
                QF_KV_U64("work_id", effect->work.v), QF_KV_U64("attempt", effect->attempt),
                QF_KV_STR("worker_id", endpoint ? endpoint->name : ""),
                QF_KV_U64("segments", item->segment_count));
    for (size_t i = 0; i < item->segment_count; i++) {
        struct qf_str name = item->segments[i].name;
        bool before = find(coord, name).suspicion == WC_QUARANTINED;
        struct wc_quarantine_entry entry = wc_quarantine_blame(
            coord->quarantine.table, qf_hash_bytes(name), effect->session.v, qf_clock_mono_ms());

        remember_name(coord, entry.slot, name);
        if (before || entry.suspicion != WC_QUARANTINED)
            continue;
        fresh = true;
        QF_LOG_ERROR("segment in quarantine: workers died while they read it",
                     QF_KV_SLICE("segment", name), QF_KV_U64("deaths", entry.deaths),
                     QF_KV_I64("seconds", (entry.until - qf_clock_mono_ms()) / 1000));
    }
    if (fresh)
        fail_others(coord, query);
}

void co_absolve(struct qa_coord *coord, const struct qa_item *item)
{
    if (wc_quarantine_count(coord->quarantine.table) == 0)
        return;
    for (size_t i = 0; i < item->segment_count; i++)
        wc_quarantine_clear(coord->quarantine.table, qf_hash_bytes(item->segments[i].name));
}

void co_lift(struct qa_coord *coord, const char *segment, struct qh_stream *stream)
{
    if (!wc_quarantine_lift(coord->quarantine.table, qf_hash_bytes(qf_str_from(segment)))) {
        qa_answer_error(stream, QA_FORMAT_JSON, QF_ENOTFOUND, "no such segment is in quarantine");
        return;
    }
    QF_LOG_INFO("quarantine lifted", QF_KV_STR("segment", segment));
    qh_stream_answer(stream, 200, "application/json",
                     QF_STR("{\"status\":\"success\",\"data\":\"lifted\"}"));
}

struct wc_quarantine_entry co_quarantine_at(const struct qa_coord *coord, uint32_t slot,
                                            qf_time_ms now, const char **ret_segment)
{
    *ret_segment = coord->quarantine.names[slot];
    return wc_quarantine_at(coord->quarantine.table, slot, now);
}
