/* route_operate.c - metrics and probes. */
#include "ingest/http/routes_int.h"

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
    qf_metric_set(m->log_bytes, 0, (double)atomic_load(&figures->log_bytes));
    qf_metric_set(m->space_bytes, 0, (double)atomic_load(&figures->space_bytes));
    qf_metric_set(m->asks, 0, (double)atomic_load(&figures->asks));
    qf_metric_set(m->member, 0, atomic_load(&figures->member));
}

static void handle_metrics(struct qh_visit *visit)
{
    read_figures(in_routes_of(visit));
    qh_visit_metrics(visit, in_routes_of(visit)->metrics->registry);
}

static void handle_live(struct qh_visit *visit)
{
    qh_visit_text(visit, 200, "Promfabric is Healthy.\n");
}

static void handle_ready(struct qh_visit *visit)
{
    if (atomic_load(&in_routes_of(visit)->ready))
        qh_visit_text(visit, 200, "Promfabric is Ready.\n");
    else
        qh_visit_text(visit, 503, "Service Unavailable\n");
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
