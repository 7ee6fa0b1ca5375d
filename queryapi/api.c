/* api.c - start, watch over and stop the parts of the API role. */
#include "queryapi/api.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/http/listener.h"
#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/line_log.h"
#include "base/sys/log.h"
#include "base/sys/machine.h"
#include "base/sys/signals.h"
#include "queryapi/annex/annex.h"
#include "queryapi/compact/compactor.h"
#include "queryapi/http/routes.h"
#include "queryapi/retain/retainer.h"
#include "queryapi/settings/follow.h"

/* How often idle connections and timers are looked at: half of it is the mean time to notice a
 * client that went away. */
/* For settings of tenants, if ingest nodes are there. */
#define SETTINGS_WAIT_MS 2000
#define TICK_MS 250
/* How long clients have to take the error that ends their answer when a drain is cut short. */
#define LAST_WORDS_MS 1000
/* For one answer about exemplars. */
#define ANNEX_MEMORY_MAX ((size_t)128 << 20)

/* How long starting waits for the store to say which one it is; after that it is asked beside the work. */
#define STORE_NAME_WAIT_MS 2000

#define FILES_INTERVAL_MS 1000
/* Lines of the audit log that wait for the disk: some ten thousand. */
#define AUDIT_BYTES_MAX ((size_t)4 << 20)

struct api {
    const struct qa_api_options *options;
    struct qa_metrics metrics;
    struct qf_pool *pool;
    struct sg_store *store;
    struct qa_store_name store_name;
    struct sg_catalog *catalog;
    struct qf_purse purse; /* memory of all queries */
    struct qa_tenants *limits;
    struct qa_follow *follow; /* settings of tenants; NULL: there are no ingest nodes */
    bool stale;               /* these; was said */
    struct qa_retainer *retainer;
    struct qa_annex *annex;
    struct qa_compactor *compactor; /* or NULL */
    struct sg_agree *agree;         /* for it, or NULL */
    struct qa_query_env env;
    struct qa_costs *costs;
    struct qa_coord *coord;
    struct qa_discovery *discovery, *ingest_discovery;
    struct qh_tenants *tenants;
    struct qf_line_log *audit; /* or NULL */
    struct qf_line_log_stats audit_seen;
    qf_time_ms files_due_ms;  /* when to look at files of keys and limits next */
    qf_rc keys_rc, limits_rc; /* of the last look: a broken file is told once */
    struct qa_routes routes;
    struct qh_listener *listener;
    char id[64];
    char spool[512];
    atomic_bool refreshing, listed, stopping;
};

/* As many files as the system lets us: an artifact of a running query is one, a client another. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void name_things(struct api *api)
{
    const char *tmp = getenv("TMPDIR");
    uint32_t random = 0;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        random = (uint32_t)getpid();
    (void)snprintf(api->id, sizeof(api->id), "%s",
                   api->options->api_id ? api->options->api_id : "");
    if (!api->options->api_id)
        (void)snprintf(api->id, sizeof(api->id), "api-%08" PRIx32, random);
    if (api->options->spool_dir)
        (void)snprintf(api->spool, sizeof(api->spool), "%s", api->options->spool_dir);
    else
        (void)snprintf(api->spool, sizeof(api->spool), "%s/promfabric-%s", tmp ? tmp : "/tmp",
                       api->id);
}

/* --- catalogue --- */

static void refresh_catalog(void *arg)
{
    struct api *api = arg;
    /* The first listing of a large bucket may take minutes, and nothing can be answered before. */
    struct sg_store_call call = { .cancel = &api->stopping,
                                  .timeout_ms = atomic_load(&api->listed) ? 60000 : 0 };
    struct qf_err err = { 0 };

    qa_store_name_learn(&api->store_name, api->store, &call);
    if (sg_catalog_refresh(api->catalog, SG_CATALOG_REFRESH_TIMER, &call, &err) == QF_OK) {
        atomic_store(&api->listed, true);
        qf_metric_set(api->metrics.catalog_segments, 0,
                      (double)sg_catalog_stats(api->catalog).segments);
    } else if (!atomic_load(&api->stopping)) {
        qf_metric_inc(api->metrics.catalog_errors);
        QF_LOG_WARN("cannot list the store, will try again", QF_KV_STR("reason", err.msg));
    }
    atomic_store(&api->refreshing, false);
}

static void refresh_if_due(struct api *api, qf_time_ms now)
{
    if (now < sg_catalog_due_ms(api->catalog) || atomic_exchange(&api->refreshing, true))
        return;
    if (!qf_pool_submit(api->pool, refresh_catalog, api))
        atomic_store(&api->refreshing, false);
}

/* --- start --- */

/* What a tenant may have of @all; 0: no less. Without keys there may well be one tenant alone. */
static uint64_t share(const struct api *api, uint64_t given, uint64_t all)
{
    return given || !api->options->key_file ? given : QF_MAX(all - all / 4, UINT64_C(1));
}

static qf_rc start_tenants(struct api *api, struct qf_err *err)
{
    const struct qa_api_options *o = api->options;
    struct qa_tenants_options tenants = {
        .limits.of = { [QF_LIMIT_QUERIES] =
                           share(api, o->tenant_queries_max, o->queries_active_max),
                       [QF_LIMIT_QUEUED] = o->tenant_queue_max,
                       [QF_LIMIT_STREAMS] = o->tenant_streams_max,
                       [QF_LIMIT_WORK] = o->tenant_work_max,
                       [QF_LIMIT_SAMPLES] = o->query_samples_max,
                       [QF_LIMIT_MEMORY] = share(api, o->tenant_memory_bytes, api->purse.limit),
                       [QF_LIMIT_SPOOL] = share(api, o->tenant_spool_bytes, o->spool_bytes),
                       [QF_LIMIT_RETENTION] = (uint64_t)o->retention_ms },
        .file = o->limits_file,
        .purse = &api->purse,
    };

    api->limits = qa_tenants_new(&tenants, err);
    return api->limits ? QF_OK : err->rc;
}

static qf_rc start_annex(struct api *api, struct qf_err *err)
{
    const struct qa_api_options *o = api->options;
    struct qa_annex_options annex = {
        .store = api->store,
        .purse = &api->purse,
        .memory_bytes_max = QF_MIN(o->query_memory_bytes, ANNEX_MEMORY_MAX),
        .timeout_ms = o->query_timeout_ms,
    };

    api->env.annex = api->annex = qa_annex_new(&annex);
    return api->annex ? QF_OK : qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
}

static qf_rc start_storage(struct api *api, struct qf_err *err)
{
    const struct qa_api_options *options = api->options;
    struct sg_store_options store = { .url = options->store_url };
    struct sg_catalog_options catalog = { .refresh_interval_ms = options->catalog_interval_ms };
    qf_rc rc = sg_store_open(&store, &api->store, err);

    if (rc)
        return rc;
    api->purse.limit = options->queries_memory_bytes ? options->queries_memory_bytes
                                                     : qf_machine_memory_bytes() / 2;
    qf_metric_set(api->metrics.memory_limit_bytes, 0, (double)api->purse.limit);
    rc = start_tenants(api, err);
    if (rc)
        return rc;
    qa_store_name_learn(&api->store_name, api->store,
                        &(struct sg_store_call){ .timeout_ms = STORE_NAME_WAIT_MS });
    catalog.store = api->store;
    api->catalog = sg_catalog_new(&catalog);
    api->costs = qa_costs_new();
    api->env = (struct qa_query_env){
        .features = options->features,
        .store = api->store,
        .catalog = api->catalog,
        .memory_bytes_max = options->query_memory_bytes,
        .purse = &api->purse,
        .tenants = api->limits,
        .samples_max = options->query_samples_max,
        .series_max = options->query_series_max,
        .items_max = options->items_max,
        .costs = api->costs,
        .helpers = api->pool,
        .cost_max_ms = options->query_cost_max_ms,
        .state_age_ms_max = options->state_age_ms_max,
        .small_scan_us = (uint64_t)options->small_scan_ms * 1000,
        .limits = { .samples_max = options->query_samples_max,
                    .artifact_bytes_max = options->query_artifact_bytes },
    };
    return start_annex(api, err);
}

static void on_endpoints(void *ctx, const char *const *addresses, size_t count)
{
    struct api *api = ctx;

    qa_coord_endpoints(api->coord, addresses, count);
}

static void on_ingest_nodes(void *ctx, const char *const *addresses, size_t count)
{
    struct api *api = ctx;

    qa_follow_nodes(api->follow, addresses, count);
    qa_asker_nodes(qa_coord_asker(api->coord), addresses, count);
}

static qf_rc start_ingest(struct api *api, struct qf_err *err)
{
    struct qa_discovery_options discovery = api->options->ingest;
    const struct qa_follow_options follow = { .key_file = api->options->ingest_key_file,
                                              .ca_file = api->options->ingest_ca_file,
                                              .tenants = api->limits,
                                              .age_ms = api->options->settings_age_ms };

    if (!discovery.worker_count)
        return QF_OK;
    api->follow = qa_follow_new(&follow, err);
    if (!api->follow)
        return err->rc;
    api->env.asker = qa_coord_asker(api->coord);
    discovery.found = on_ingest_nodes;
    discovery.ctx = api;
    api->ingest_discovery = qa_discovery_new(&discovery, err);
    if (!api->ingest_discovery)
        return err->rc;
    qa_follow_wait(api->follow, SETTINGS_WAIT_MS); /* so that first requests are not refused */
    return QF_OK;
}

static qf_rc start_dispatch(struct api *api, struct qf_err *err)
{
    const struct qa_api_options *options = api->options;
    struct qa_coord_options coord = {
        .api_id = api->id,
        .pool = api->pool,
        .metrics = &api->metrics,
        .spool_dir = api->spool,
        .spool_bytes_max = options->spool_bytes,
        .artifact_memory_bytes = options->artifact_memory_bytes,
        .query_artifact_bytes_max = options->query_artifact_bytes,
        .queries_max = options->queries_max,
        .queries_active_max = options->queries_active_max,
        .tenant_queue_max = options->tenant_queue_max,
        .query_timeout_ms = options->query_timeout_ms,
        .worker_wait_ms = options->worker_wait_ms,
        .hedge_after = options->hedge_after,
        .quarantine_after = options->quarantine_after,
        .quarantine_ms = options->quarantine_ms,
        .slow_query_ms = options->slow_query_ms,
        .jobs_sent_max = (uint32_t)options->compact_jobs,
        .jobs_wake = options->compact_wakes,
        .fetch_concurrency_max = options->fetch_concurrency,
        .store_name = &api->store_name,
        .catalog = api->catalog,
        .ingest = options->ingest.worker_count > 0,
        .state_age_ms_max = options->state_age_ms_max,
        .ingest_key_file = options->ingest_key_file,
        .ingest_ca_file = options->ingest_ca_file,
        .tls_ca_file = options->control_ca_file,
        .tls_cert_file = options->control_cert_file,
        .tls_key_file = options->control_key_file,
        .tls_server_name = options->control_server_name,
    };
    struct qa_discovery_options discovery = options->discovery;

    api->coord = qa_coord_new(&coord, err);
    if (!api->coord || start_ingest(api, err) != QF_OK)
        return err->rc;
    discovery.found = on_endpoints;
    discovery.ctx = api;
    api->discovery = qa_discovery_new(&discovery, err);
    return api->discovery ? QF_OK : err->rc;
}

static qf_rc start_http(struct api *api, struct qf_err *err)
{
    const struct qa_api_options *options = api->options;
    struct qh_listener_options listener = {
        .listen = options->listen,
        .threads = options->http_threads,
        .connections_max = options->connections_max,
        .address_connections_max = options->address_connections_max,
        .bodies_bytes_max = options->bodies_bytes_max,
        .header_bytes_max = options->header_bytes_max,
        .body_bytes_max = options->body_bytes_max,
        .keepalive_ms = options->keepalive_ms,
        .idle_timeout_ms = options->idle_timeout_ms,
        .tls_cert_file = options->tls_cert_file,
        .tls_key_file = options->tls_key_file,
        .admit = qa_routes_admit,
        .handle = qa_routes_handle,
        .finished = qa_routes_finished,
        .ctx = &api->routes,
    };

    api->tenants = qh_tenants_new(options->key_file, err);
    if (!api->tenants)
        return err->rc;
    if (options->audit_file) {
        api->audit = qf_line_log_new(options->audit_file, AUDIT_BYTES_MAX, err);
        if (!api->audit)
            return err->rc;
    }
    api->routes.audit = api->audit;
    api->routes.coord = api->coord;
    api->routes.env = &api->env;
    api->routes.metrics = &api->metrics;
    api->routes.tenants = api->tenants;
    api->routes.cors_origin = options->cors_origin;
    api->routes.flags_json = options->flags_json;
    api->routes.started_ms = qf_clock_wall_ms();
    api->routes.thread_count = options->http_threads + options->eval_threads;
    api->routes.points_max = options->points_max;
    api->routes.check_host = options->check_host;
    api->routes.hosts = options->hosts;
    api->routes.host_count = options->host_count;
    api->listener = qh_listener_new(&listener, err);
    return api->listener ? QF_OK : err->rc;
}

static qf_rc start_retainer(struct api *api, struct qf_err *err)
{
    const struct qa_api_options *o = api->options;
    struct qa_retainer_options retainer = {
        .store = api->store,
        .catalog = api->catalog,
        .tenants = api->limits,
        .metrics = &api->metrics,
        .api_id = api->id,
        .slack_ms = QF_MAX(o->retention_slack_ms, o->query_timeout_ms),
        .settings_age_ms = o->settings_age_ms,
    };

    api->retainer = qa_retainer_new(&retainer);
    return api->retainer ? QF_OK : qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
}

static qf_rc start_compactor(struct api *api, struct qf_err *err)
{
    const struct qa_api_options *o = api->options;
    struct qa_compactor_options compactor = {
        .store = api->store,
        .catalog = api->catalog,
        .coord = api->coord,
        .metrics = &api->metrics,
        .api_id = api->id,
        .temp_dir = api->spool,
        .interval_ms = o->compact_interval_ms,
        .settle_ms = o->compact_settle_ms,
        .grace_ms = o->compact_grace_ms,
        .file_bytes = o->compact_file_bytes,
        .memory_bytes = o->compact_memory_bytes,
        .wakes = o->compact_wakes,
    };

    if (!o->compact)
        return QF_OK;
    if (o->ingest.worker_count) {
        struct sg_agree_options agree = { .nodes = o->ingest.workers,
                                          .node_count = o->ingest.worker_count,
                                          .key_file = o->ingest_key_file,
                                          .ca_file = o->ingest_ca_file };

        if (sg_agree_new(&agree, &api->agree, err) != QF_OK)
            return err->rc;
        compactor.agree = api->agree;
    }
    api->compactor = qa_compactor_new(&compactor);
    return api->compactor ? QF_OK : qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
}

static qf_rc start(struct api *api, struct qf_err *err)
{
    size_t threads = api->options->eval_threads;
    qf_rc rc;

    if (!threads)
        threads = (size_t)QF_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L) + 1;
    api->pool = qf_pool_new("eval", threads, api->options->queries_max * 2 + 16);
    if (!api->pool)
        return qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
    rc = start_storage(api, err);
    if (rc == QF_OK)
        rc = start_dispatch(api, err);
    if (rc == QF_OK)
        rc = start_http(api, err);
    if (rc == QF_OK)
        rc = start_retainer(api, err);
    if (rc == QF_OK)
        rc = start_compactor(api, err);
    return rc;
}

/* --- run --- */

/* Keys that were added or taken away count from the next second on. */
static void refresh_keys(struct api *api)
{
    struct qf_err err = { 0 };
    bool changed;
    qf_rc rc = qh_tenants_refresh(api->tenants, &changed, &err);
    if (rc == QF_OK && changed)
        QF_LOG_INFO("API keys read again", QF_KV_STR("file", api->options->key_file));
    if (rc != QF_OK && api->keys_rc == QF_OK)
        QF_LOG_WARN("API keys cannot be read, those read before stay", QF_KV_STR("error", err.msg));
    api->keys_rc = rc;
}

static void refresh_limits(struct api *api)
{
    struct qf_err err = { 0 };
    bool changed;
    qf_rc rc = qa_tenants_refresh(api->limits, &changed, &err);

    if (rc == QF_OK && changed)
        QF_LOG_INFO("tenants' limits read again", QF_KV_STR("file", api->options->limits_file));
    if (rc != QF_OK && api->limits_rc == QF_OK)
        QF_LOG_WARN("tenants' limits cannot be read, those read before stay",
                    QF_KV_STR("error", err.msg));
    api->limits_rc = rc;
}

/* How settings of tenants are. */
static void count_settings(struct api *api)
{
    int64_t age_ms = qa_tenants_age_ms(api->limits, qf_clock_mono_ms());
    bool stale = age_ms > api->options->settings_age_ms;

    qf_metric_set(api->metrics.settings, 0, (double)qa_tenants_settled(api->limits));
    qf_metric_set(api->metrics.settings_age, 0, age_ms < 0 ? -1 : (double)age_ms / 1000);
    qf_metric_set(api->metrics.settings_stale, 0, stale);
    if (stale && !api->stale)
        QF_LOG_WARN("settings of tenants are stale: no ingest node that hears of a leader has "
                    "answered for long; those that are known go on counting",
                    QF_KV_I64("age_ms", age_ms));
    api->stale = stale;
}

static void refresh_files(struct api *api, qf_time_ms now)
{
    if (now < api->files_due_ms)
        return;
    api->files_due_ms = now + FILES_INTERVAL_MS;
    refresh_keys(api);
    refresh_limits(api);
}

static void count_audit(struct api *api)
{
    struct qf_line_log_stats now;

    if (!api->audit)
        return;
    now = qf_line_log_stats(api->audit);
    qf_metric_add(api->metrics.audit_lines, 0, (double)(now.written - api->audit_seen.written));
    qf_metric_add(api->metrics.audit_lines, 1, (double)(now.lost - api->audit_seen.lost));
    if (now.lost != api->audit_seen.lost && now.written == api->audit_seen.written)
        QF_LOG_WARN("lines of the audit log are lost", QF_KV_U64("lost", now.lost));
    api->audit_seen = now;
}

static void tick(struct api *api)
{
    qf_time_ms now = qf_clock_mono_ms();

    qh_listener_tick(api->listener);
    refresh_if_due(api, now);
    refresh_files(api, now);
    count_audit(api);
    count_settings(api);
    qf_metric_set(api->metrics.memory_bytes, 0, (double)qf_purse_used(&api->purse));
    if (!atomic_load(&api->stopping))
        atomic_store(&api->routes.ready,
                     atomic_load(&api->listed) && qa_tenants_known(api->limits));
}

/* SIGHUP: look at all files now. Certificates are looked at with every connection anyway. */
static void reload(struct api *api)
{
    QF_LOG_INFO("SIGHUP: keys, limits and certificates are read again if they changed");
    api->files_due_ms = 0;
    if (api->audit) /* it was moved away */
        qf_line_log_reopen(api->audit);
}

/* Wait for a signal that ends things, or for @timeout_ms. */
static bool signaled(struct api *api, int signal_fd, int timeout_ms)
{
    struct pollfd poller = { .fd = signal_fd, .events = POLLIN };
    int number;

    if (poll(&poller, 1, timeout_ms) <= 0)
        return false;
    while ((number = qf_signals_next(signal_fd)) != 0) {
        if (number == SIGTERM || number == SIGINT)
            return true;
        if (number == SIGHUP)
            reload(api);
    }
    return false;
}

/* No more waiting: clients get the error that ends their answer, if they read. */
static void cut_short(struct api *api)
{
    qf_time_ms deadline = qf_clock_mono_ms() + LAST_WORDS_MS;

    QF_LOG_WARN("drain cut short", QF_KV_U64("queries", qa_coord_query_count(api->coord)));
    qa_coord_cut(api->coord);
    while (qf_clock_mono_ms() < deadline &&
           (qa_coord_query_count(api->coord) > 0 || qh_listener_active(api->listener) > 0))
        (void)poll(NULL, 0, 10);
}

static void drain(struct api *api, int signal_fd)
{
    qf_time_ms deadline = qf_clock_mono_ms() + api->options->drain_timeout_ms;

    atomic_store(&api->stopping, true);
    atomic_store(&api->routes.ready, false);
    qa_coord_drain(api->coord);
    api->compactor = qa_compactor_free(api->compactor); /* somebody else goes on */
    QF_LOG_INFO("draining", QF_KV_U64("queries", qa_coord_query_count(api->coord)));
    while (qa_coord_query_count(api->coord) > 0 || qh_listener_active(api->listener) > 0) {
        if (qf_clock_mono_ms() >= deadline || signaled(api, signal_fd, 20)) {
            cut_short(api);
            return;
        }
        qh_listener_tick(api->listener);
    }
}

static void stop(struct api *api)
{
    atomic_store(&api->stopping, true);
    api->compactor = qa_compactor_free(api->compactor);
    api->agree = sg_agree_free(api->agree);
    api->retainer = qa_retainer_free(api->retainer);
    api->listener = qh_listener_free(api->listener);
    api->discovery = qa_discovery_free(api->discovery);
    api->ingest_discovery = qa_discovery_free(api->ingest_discovery);
    api->follow = qa_follow_free(api->follow);
    api->coord = qa_coord_free(api->coord); /* its last turns still need the pool */
    api->annex = qa_annex_free(api->annex); /* the asker may have given it questions until now */
    api->pool = qf_pool_free(api->pool);
    api->tenants = qh_tenants_free(api->tenants);
    api->audit = qf_line_log_free(api->audit);
    api->catalog = sg_catalog_free(api->catalog);
    api->costs = qa_costs_free(api->costs);
    api->limits = qa_tenants_free(api->limits);
    api->store = sg_store_free(api->store);
    qa_metrics_done(&api->metrics);
}

qf_rc qa_api_run(const struct qa_api_options *options, int signal_fd, struct qf_err *err)
{
    struct api *api = qf_xcalloc(1, sizeof(*api));
    qf_rc rc;

    api->options = options;
    raise_file_limit();
    name_things(api);
    qa_metrics_init(&api->metrics);
    rc = start(api, err);
    if (rc == QF_OK) {
        QF_LOG_INFO("serving", QF_KV_STR("listen", options->listen),
                    QF_KV_U64("port", qh_listener_port(api->listener)),
                    QF_KV_STR("store", sg_store_url(api->store)), QF_KV_STR("api_id", api->id));
        tick(api);
        while (!signaled(api, signal_fd, TICK_MS))
            tick(api);
        drain(api, signal_fd);
    }
    stop(api);
    free(api);
    return rc;
}
