/* route_node.c - what a node says of itself, for operators and for the API that shows it to them: what it
 * leads, what its heads hold, and what waits. Nobody else is asked, so it answers at once. */
#include <inttypes.h>

#include "base/sys/clock.h"
#include "ingest/accept/partition.h"
#include "ingest/fresh/fresh.h"
#include "ingest/head/heads.h"
#include "ingest/http/routes_int.h"

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static void put_leads(const struct in_routes *routes, struct qf_strbuf *body)
{
    uint32_t count = qn_partitions(routes->node);
    const char *between = "";

    qf_strbuf_printf(body, ",\"partitions\":%" PRIu32 ",\"leads\":[", count);
    for (uint32_t i = 0; i < count; i++) {
        if (!atomic_load(&routes->leads[i]))
            continue;
        qf_strbuf_printf(body, "%s%" PRIu32, between, i);
        between = ",";
    }
    qf_strbuf_putc(body, ']');
}

static void put_queues(const struct in_routes *routes, struct qf_strbuf *body)
{
    struct qn_figures *figures = qn_figures(routes->node);

    qf_strbuf_printf(
        body,
        ",\"member\":%s,\"leaderless\":%" PRIu64 ",\"log_bytes\":%" PRIu64
        ",\"space_bytes\":%" PRIu64 ",\"requests_waiting\":%" PRIu64,
        truth(atomic_load(&figures->member)), (uint64_t)atomic_load(&figures->leaderless),
        (uint64_t)atomic_load(&figures->log_bytes), (uint64_t)atomic_load(&figures->space_bytes),
        (uint64_t)atomic_load(&figures->asks));
}

static void put_heads(const struct in_routes *routes, struct qf_strbuf *body)
{
    const struct in_head_figures heads = in_heads_figures(routes->heads);
    const struct in_fresh_figures fresh = in_fresh_figures(routes->fresh);
    struct in_partition_figures *partitions = routes->partitions;

    qf_strbuf_printf(
        body,
        ",\"samples_applied\":%" PRIu64 ",\"head_series\":%" PRIu64
        ",\"head_memory_bytes\":%" PRIu64 ",\"head_file_bytes\":%" PRIu64
        ",\"ranges_open\":%" PRIu64 ",\"ranges_closed\":%" PRIu64 ",\"ranges_sealed\":%" PRIu64
        ",\"reads_waiting\":%" PRIu64 ",\"store_away\":%s",
        (uint64_t)atomic_load(&partitions->samples) +
            (uint64_t)atomic_load(&partitions->histograms),
        heads.open_series, heads.memory_bytes, heads.file_bytes, heads.open_ranges,
        heads.closed_ranges, heads.sealed_ranges, fresh.reads_waiting, truth(fresh.store_away));
}

static void handle_node(struct qh_visit *visit)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct in_routes *routes = in_routes_of(visit);
    struct qf_err err = { 0 };

    if (!visit->caller.sees_all) {
        (void)qf_err_set(&err, QF_EDENIED, "nodes are shown to operators: a key for all tenants");
        in_fail(visit, &err);
        return;
    }
    qf_strbuf_puts(&body, "{\"node\":");
    qf_strbuf_json(&body, qf_str_from(routes->name));
    qf_strbuf_printf(
        &body, ",\"cluster\":\"%016" PRIx64 "\",\"time_ms\":%" PRId64 ",\"draining\":%s",
        qn_cluster(routes->node), qf_clock_wall_ms(), truth(atomic_load(&routes->draining)));
    put_leads(routes, &body);
    put_queues(routes, &body);
    put_heads(routes, &body);
    qf_strbuf_puts(&body, "}\n");
    qh_visit_json(visit, 200, qf_strbuf_view(&body));
}

static const struct qh_route routes[] = {
    { "/v1/node", QH_METHOD_GET, false, handle_node, in_fail },
};
const struct qh_routes in_node_routes = { routes, QF_COUNT_OF(routes) };
