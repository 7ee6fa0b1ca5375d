/* route_operate.c - metrics and probes. */
#include <inttypes.h>

#include "ingest/accept/accept.h"
#include "ingest/accept/partition.h"
#include "ingest/fresh/fresh.h"
#include "ingest/head/heads.h"
#include "ingest/http/routes_int.h"
#include "ingest/docs/documents.h"
#include "ingest/ring/driver.h"
#include "ingest/ring/handoff.h"
#include "ingest/state/state.h"
#include "base/sys/clock.h"
#include "ring/coord/tenants.h"

static void read_figures(struct in_routes *routes)
{
    struct qn_figures *figures = qn_figures(routes->node);
    struct in_metrics *m = routes->metrics;

    qf_metric_set(m->records, 0, (double)atomic_load(&figures->records));
    qf_metric_set(m->record_bytes, 0, (double)atomic_load(&figures->record_bytes));
    qf_metric_set(m->read_records, 0, (double)atomic_load(&figures->read_records));
    qf_metric_set(m->read_bytes, 0, (double)atomic_load(&figures->read_bytes));
    qf_metric_set(m->refused, 0, (double)atomic_load(&figures->refused));
    qf_metric_set(m->forwarded, 0, (double)atomic_load(&figures->forwarded));
    qf_metric_set(m->syncs, 0, (double)atomic_load(&figures->syncs));
    qf_metric_set(m->snapshots, 0, (double)atomic_load(&figures->snapshots));
    qf_metric_set(m->installs, 0, (double)atomic_load(&figures->installs));
    qf_metric_set(m->elections, 0, (double)atomic_load(&figures->elections));
    qf_metric_set(m->messages_dropped, 0, (double)atomic_load(&figures->messages_dropped));
    qf_metric_set(m->queues, 0, (double)atomic_load(&figures->queues));
    qf_metric_set(m->led, 0, (double)atomic_load(&figures->led));
    qf_metric_set(m->leaderless, 0, (double)atomic_load(&figures->leaderless));
    qf_metric_set(m->behind, 0, (double)atomic_load(&figures->behind));
    qf_metric_set(m->log_bytes, 0, (double)atomic_load(&figures->log_bytes));
    qf_metric_set(m->space_bytes, 0, (double)atomic_load(&figures->space_bytes));
    qf_metric_set(m->asks, 0, (double)atomic_load(&figures->asks));
    qf_metric_set(m->member, 0, atomic_load(&figures->member));
}

static double of(atomic_uint_fast64_t *figure)
{
    return (double)atomic_load(figure);
}

static void read_write_figures(struct in_routes *routes)
{
    const struct in_accept_figures *accept = in_accept_figures(routes->accept);
    struct in_partition_figures *partitions = routes->partitions;
    struct in_metrics *m = routes->metrics;

    for (size_t i = 0; i < IN_PROTOCOL__COUNT; i++)
        qf_metric_set(m->writes, i, (double)atomic_load(&accept->requests[i]));
    qf_metric_set(m->samples_written, 0, (double)atomic_load(&accept->samples));
    qf_metric_set(m->samples_written, 1, (double)atomic_load(&accept->histograms));
    qf_metric_set(m->samples_refused, 0, (double)atomic_load(&accept->refused));
    for (size_t i = 0; i < QF_WRITE_LIMITS; i++)
        qf_metric_set(m->samples_limited, i,
                      (double)atomic_load(&accept->limited[i]) + of(&partitions->limited[i]));
    qf_metric_set(m->ha_dropped, 0, (double)atomic_load(&accept->ha_dropped));
    qf_metric_set(m->ha_failovers, 0, of(&partitions->failovers));
    qf_metric_set(m->turned_away, 0, (double)atomic_load(&accept->turned_away));
    qf_metric_set(m->body_bytes, 0, (double)atomic_load(&accept->body_bytes));
    qf_metric_set(m->decoded_bytes, 0, (double)atomic_load(&accept->decoded_bytes));
    qf_metric_set(m->write_memory, 0, (double)atomic_load(&accept->memory_bytes));
    qf_metric_set(m->samples_applied, 0, of(&partitions->samples) + of(&partitions->histograms));
    qf_metric_set(m->writes_repeated, 0, of(&partitions->repeated));
    qf_metric_set(m->ranges_closed, 0, of(&partitions->seals));
    qf_metric_set(m->ranges_sealed, 0, of(&partitions->sealed));
    qf_metric_set(m->records_void, 0, of(&partitions->bad));
    qf_metric_set(m->series_numbered, 0, of(&partitions->series));
    qf_metric_set(m->series_active, 0, of(&partitions->active));
}

static void read_ring_figures(struct in_routes *routes)
{
    struct in_metrics *m = routes->metrics;
    struct in_driver_counts counts;

    in_driver_figures(routes->driver, &counts);
    qf_metric_set(m->ring_blobs, 0, (double)counts.blobs);
    qf_metric_set(m->ring_bytes, 0, (double)counts.bytes);
    qf_metric_set(m->ring_failures, 0, (double)counts.failed);
    qf_metric_set(m->ring_cleaned, 0, (double)counts.cleaned);
    qf_metric_set(m->ring_moves, 0, (double)counts.moves);
    qf_metric_set(m->ring_down, 0, (double)counts.open);
    qf_metric_set(m->ring_unwritable, 0, (double)counts.unwritable);
}

static void read_document_figures(struct in_routes *routes)
{
    struct in_metrics *m = routes->metrics;
    struct in_replicas_figures f;

    in_documents_figures(routes->documents, &f);
    qf_metric_set(m->documents_repairs, 0, (double)f.repairs);
    qf_metric_set(m->documents_repair_failures, 0, (double)f.failed);
    qf_metric_set(m->documents_repairs_dropped, 0, (double)f.dropped);
    qf_metric_set(m->documents_repairs_waiting, 0, (double)f.waiting);
    qf_metric_set(m->documents_handed, 0, (double)f.handed);
}

static void read_handoff_figures(struct in_routes *routes)
{
    struct in_metrics *m = routes->metrics;
    struct in_handoff_figures f;

    in_handoff_figures(routes->handoff, &f);
    qf_metric_set(m->handoff_references, 0, (double)f.of.references);
    qf_metric_set(m->handoff_payloads, 0, (double)f.of.payloads);
    qf_metric_set(m->handoff_bytes, 0, (double)f.of.bytes);
    qf_metric_set(m->handoff_oldest, 0, (double)f.oldest_ms / 1000);
    qf_metric_set(m->handoff_nodes, 0, (double)f.of.waiting);
    qf_metric_set(m->handoff_away, 0, (double)f.away);
    qf_metric_set(m->handoff_delivered, 0, (double)f.of.delivered);
    qf_metric_set(m->handoff_sent_bytes, 0, (double)f.sent_bytes);
    qf_metric_set(m->handoff_failures, 0, (double)f.failures);
    qf_metric_set(m->handoff_dropped, 0, (double)f.of.dropped);
    qf_metric_set(m->handoff_dropped, 1, (double)f.of.expired);
    qf_metric_set(m->handoff_dropped, 2, (double)(f.of.lost + f.damaged));
    qf_metric_set(m->handoff_dropped, 3, (double)f.of.unnamed);
    qf_metric_set(m->handoff_dropped, 4, (double)f.needless);
    qf_metric_set(m->handoff_refused, 0, (double)f.of.refused);
    qf_metric_set(m->handoff_disk_failures, 0, (double)f.disk_failures);
    qf_metric_set(m->handoff_marks, 0, (double)f.marks);
    qf_metric_set(m->handoff_marked, 0, (double)f.marked);
    qf_metric_set(m->handoff_repaired, 0, (double)f.repaired);
}

static void read_tenant_figures(struct in_routes *routes)
{
    int64_t age_ms = rg_tenants_age_ms(routes->settings, qf_clock_mono_ms());

    qf_metric_set(routes->metrics->tenant_settings, 0, (double)rg_tenants_count(routes->settings));
    qf_metric_set(routes->metrics->tenant_settings_age, 0, age_ms < 0 ? -1 : (double)age_ms / 1000);
}

static void read_head_figures(struct in_routes *routes)
{
    const struct in_head_figures heads = in_heads_figures(routes->heads);
    const struct in_fresh_figures fresh = in_fresh_figures(routes->fresh);
    struct in_metrics *m = routes->metrics;

    qf_metric_set(m->head_memory, 0, (double)heads.memory_bytes);
    qf_metric_set(m->head_files, 0, (double)heads.file_bytes);
    qf_metric_set(m->head_series, 0, (double)heads.open_series);
    qf_metric_set(m->head_unknown, 0, (double)heads.unknown_series);
    qf_metric_set(m->extras_dropped, 0, (double)heads.extras_dropped);
    qf_metric_set(m->head_ranges, 0, (double)heads.open_ranges);
    qf_metric_set(m->head_ranges, 1, (double)heads.closed_ranges);
    qf_metric_set(m->head_ranges, 2, (double)heads.sealed_ranges);
    qf_metric_set(m->head_build_failures, 0, (double)fresh.build_failures);
    qf_metric_set(m->seal_files, 0, (double)fresh.files_put);
    qf_metric_set(m->seal_files, 1, (double)fresh.files_present);
    qf_metric_set(m->seal_bytes, 0, (double)fresh.bytes_put);
    qf_metric_set(m->seal_failures, 0, (double)fresh.seal_failures);
    qf_metric_set(m->store_away, 0, fresh.store_away);
    qf_metric_set(m->head_reads, 0, (double)fresh.reads);
    qf_metric_set(m->head_reads_refused, 0, (double)fresh.reads_refused);
    qf_metric_set(m->head_reads_gone, 0, (double)fresh.reads_gone);
    qf_metric_set(m->head_read_samples, 0, (double)fresh.read_samples);
    qf_metric_set(m->head_read_bytes, 0, (double)fresh.read_bytes);
    qf_metric_set(m->head_reads_waiting, 0, (double)fresh.reads_waiting);
}

static void read_state_figures(struct in_routes *routes)
{
    const struct in_state_figures f = in_state_figures(routes->state);
    struct in_metrics *m = routes->metrics;

    qf_metric_set(m->state_maps, 0, (double)f.maps);
    qf_metric_set(m->state_rows, 0, (double)f.map_rows);
    qf_metric_set(m->state_bytes, 0, (double)f.map_bytes);
    qf_metric_set(m->state_loads, 0, (double)f.loads);
    qf_metric_set(m->state_loaded, 0, (double)f.rows);
    qf_metric_set(m->state_skipped, 0, (double)f.skipped);
    qf_metric_set(m->state_merges, 0, (double)f.merges);
    qf_metric_set(m->state_refused, 0, (double)f.refused);
    qf_metric_set(m->state_lookups, 0, (double)f.look_ups);
    qf_metric_set(m->state_snapshots, 0, (double)f.snapshots);
    qf_metric_set(m->state_dropped, 0, (double)f.dropped);
    qf_metric_set(m->state_compacted, 0, (double)f.compacted);
    qf_metric_set(m->state_upkeep_failures, 0, (double)f.upkeep_failures);
    qf_metric_set(m->state_enriched, 0, (double)f.enriched);
    qf_metric_set(m->state_enrich_misses, 0, (double)f.enrich_misses);
    qf_metric_set(m->state_enrich_splits, 0, (double)f.enrich_splits);
    qf_metric_set(m->state_enrich_refused, 0, (double)f.enrich_refused);
    qf_metric_set(m->state_enrich_seconds, 0, (double)f.enrich_us / 1e6);
    qf_metric_set(m->state_behind, 0, (double)f.behind);
    qf_metric_set(m->state_age, 0, (double)f.age_ms / 1000);
    qf_metric_set(m->state_waiting, 0, (double)f.waiting);
    qf_metric_set(m->state_stuck, 0, f.stuck);
}

static void handle_metrics(struct qh_visit *visit)
{
    read_figures(in_routes_of(visit));
    read_write_figures(in_routes_of(visit));
    read_ring_figures(in_routes_of(visit));
    read_handoff_figures(in_routes_of(visit));
    read_document_figures(in_routes_of(visit));
    read_tenant_figures(in_routes_of(visit));
    read_head_figures(in_routes_of(visit));
    read_state_figures(in_routes_of(visit));
    qh_visit_metrics(visit, in_routes_of(visit)->metrics->registry);
}

static void handle_live(struct qh_visit *visit)
{
    qh_visit_text(visit, 200, "Promfabric is Healthy.\n");
}

/* --- readiness --- */

/* One thing more that is missing, and how much of it. */
static void add_reason(struct qf_strbuf *text, bool is, uint64_t count, const char *reason)
{
    if (!is)
        return;
    qf_strbuf_puts(text, text->len ? "; " : "");
    if (count)
        qf_strbuf_printf(text, "%" PRIu64 " ", count);
    qf_strbuf_puts(text, reason);
}

/* Without these requests are refused. */
static void add_needed(struct qf_strbuf *text, struct in_routes *routes)
{
    struct qn_figures *figures = qn_figures(routes->node);
    uint64_t leaderless = atomic_load(&figures->leaderless), behind = atomic_load(&figures->behind),
             queues = atomic_load(&figures->queues), partitions = qn_partitions(routes->node);
    bool member = atomic_load(&figures->member);

    add_reason(text, atomic_load(&routes->draining), 0, "this node is stopping");
    add_reason(text, !member, 0, "ingest nodes: this node is in no cluster yet");
    add_reason(text, leaderless, leaderless, "queues have no leader that this node hears of");
    add_reason(text, behind, behind, "queues have entries that this node lacks");
    add_reason(text, member && (!partitions || queues <= partitions), 0,
               "meta: partitions are not all known yet");
    add_reason(text, rg_tenants_age_ms(routes->settings, qf_clock_mono_ms()) < 0, 0,
               "meta: its leader has not said yet how tenants are set");
}

/* Without these it serves, and something waits. */
static void add_missed(struct qf_strbuf *text, struct in_routes *routes)
{
    struct in_driver_counts counts;

    in_driver_figures(routes->driver, &counts);
    add_reason(text, in_fresh_figures(routes->fresh).store_away, 0,
               "the store: samples stay in the log until --data-bytes");
    add_reason(text, counts.open, counts.open, "storage nodes do not answer");
    add_reason(text, counts.unwritable, counts.unwritable,
               "slots have too few storage nodes to be written");
}

bool in_routes_ready(struct in_routes *routes)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    add_needed(&text, routes);
    return text.len == 0;
}

static void handle_ready(struct qh_visit *visit)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf needed = QF_STRBUF_INIT, text = QF_STRBUF_INIT;
    struct in_routes *routes = in_routes_of(visit);
    bool ready = atomic_load(&routes->ready);

    if (ready) {
        qf_strbuf_puts(&text, "Promfabric is Ready.\n");
        add_missed(&needed, routes);
        if (needed.len)
            qf_strbuf_printf(&text, "missing: %s\n", qf_strbuf_cstr(&needed));
    } else {
        add_needed(&needed, routes);
        qf_strbuf_printf(&text, "Service Unavailable\nmissing: %s\n",
                         needed.len ? qf_strbuf_cstr(&needed) : "nothing any more");
    }
    qh_visit_text(visit, ready ? 200 : 503, qf_strbuf_cstr(&text));
}

static const struct qh_route routes[] = {
    { "/metrics", QH_GET, true, handle_metrics, in_fail },
    { "/livez", QH_GET, true, handle_live, in_fail },
    { "/healthz", QH_GET, true, handle_live, in_fail },
    { "/-/healthy", QH_GET, true, handle_live, in_fail },
    { "/readyz", QH_GET, true, handle_ready, in_fail },
    { "/-/ready", QH_GET, true, handle_ready, in_fail },
};
const struct qh_routes in_operate_routes = { routes, QF_COUNT_OF(routes) };
