/* worker.c - puts the parts of the worker together and takes them apart. */
#include "queryworker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/net/address.h"
#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/private_dir.h"
#include "queryworker/cache/head.h"
#include "queryworker/keep/keep.h"
#include "queryworker/work/coordinator.h"
#include "segments/store/ring.h"
#include "segments/write/sweep.h"

/* Everything a worker consists of; zeroed parts are simply not there yet. */
/* What one more request for parts of a segment costs, in bytes that could have come instead: of the least
 * size that is worth it one part in so many, with the default 512 KiB, some 10 ms at 50 MB/s. */
#define REQUEST_PART 16

struct parts {
    const struct qw_options *options;
    int lock_fd;
    uint64_t slots;
    char *worker_id, *base_url, *control_host, *http_host;
    struct sg_store *store;
    struct qf_mailbox *mailbox;
    struct qf_pool *pool, *downloads, *background;
    struct qw_identity *identity;
    char *background_dir;
    struct qw_metrics *metrics;
    struct qw_spool *spool;
    struct qw_coordinator *co;
    struct qw_server *server;
    struct qw_head_source *heads;
    struct qw_cache *cache;
    struct qw_keep *keep;
    struct qw_http *http;
    struct qw_http_state http_state;
};

static const char *given(const char *text)
{
    return text && *text ? text : NULL;
}

static char *below(const char *dir, const char *name)
{
    struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_printf(&path, "%s/%s", dir, name);
    return qf_strbuf_take(&path);
}

/* Two workers in one folder would remove each other's files. */
static qf_rc lock_folder(struct parts *p, struct qf_err *err)
{
    const char *dir = p->options->spool;
    QF_CLEANUP(qf_freep) char *path = below(dir, "lock");

    if (qf_private_dir(dir, err))
        return err->rc;
    p->lock_fd = open(path, O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (p->lock_fd < 0)
        return qf_err_set(err, QF_EIO, "cannot open %s: %s", path, strerror(errno));
    if (flock(p->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return qf_err_set(err, QF_EIO, "%s is in use by another worker", dir);
    return QF_OK;
}

/* Readers and connections are many: take what the system grants. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static qf_rc open_foundations(struct parts *p, struct qf_err *err)
{
    const struct qw_options *o = p->options;
    QF_CLEANUP(qf_freep) char *artifacts = below(o->spool, "artifacts");
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    qf_rc rc = sg_store_open(&(struct sg_store_options){ .url = o->store }, &p->store, err);

    if (rc == QF_OK)
        rc = lock_folder(p, err);
    if (rc)
        return rc;
    p->slots = o->slots ? o->slots : (uint64_t)(cores > 0 ? cores : 1);
    p->metrics = qw_metrics_new();
    p->mailbox = qf_mailbox_new(QW_MAILBOX_CAPACITY);
    p->spool = qw_spool_open(artifacts, o->artifact_memory, err);
    if (!p->spool)
        return err->rc;
    p->pool = qf_pool_new("scan", p->slots, p->slots * 2);
    p->downloads = qf_pool_new("download", o->downloads, 65536);
    if (o->background_slots) {
        p->background = qf_pool_new("background", o->background_slots, o->background_slots * 2);
        p->background_dir = below(o->spool, "background");
        if (qf_private_dir(p->background_dir, err))
            return err->rc;
        sg_sweep_folders(p->background_dir); /* of this worker's life before */
    }
    if (!p->pool || !p->downloads || (o->background_slots && !p->background))
        return qf_err_set(err, QF_EIO, "cannot start %llu threads",
                          (unsigned long long)(p->slots + o->downloads));
    p->identity = qw_identity_new(p->store, err);
    return p->identity ? QF_OK : err->rc;
}

static qf_rc open_keep(struct parts *p, struct qf_err *err)
{
    const struct qw_options *o = p->options;

    if (!given(o->keep))
        return QF_OK;
    if (!given(o->worker_id))
        return qf_err_set(err, QF_EINVAL, "--keep needs --worker-id: its name on the ring");
    p->keep = qw_keep_new(&(struct qw_keep_options){ .dir = o->keep,
                                                     .reserve_bytes = o->keep_reserve,
                                                     .scrub_rate = o->keep_scrub_rate,
                                                     .key_file = given(o->keep_keys_file),
                                                     .peer_key_file = given(o->ingest_key_file),
                                                     .peer_ca_file = given(o->ingest_ca_file),
                                                     .peer_cert_file = given(o->keep_tls_cert),
                                                     .peer_cert_key_file = given(o->keep_tls_key),
                                                     .store = p->store,
                                                     .name = o->worker_id,
                                                     .mend_ms = o->keep_mend_ms,
                                                     .metrics = p->metrics },
                          err);
    return p->keep ? QF_OK : err->rc;
}

static qf_rc open_listeners(struct parts *p, struct qf_err *err)
{
    const struct qw_options *o = p->options;
    uint16_t port;
    qf_rc rc = qf_address_split(o->control_listen, &p->control_host, &port, err);

    if (rc == QF_OK)
        rc = qf_address_split(o->http_listen, &p->http_host, &port, err);
    if (rc)
        return rc;
    if (given(o->control_tls_cert) && !given(o->control_tls_client_ca) &&
        !qf_host_is_loopback(p->control_host))
        return qf_err_set(err, QF_EINVAL,
                          "--control-tls-cert without --control-tls-client-ca lets anybody give "
                          "work: say who signs the APIs' certificates");
    atomic_store(&p->http_state.alive_ms, qf_clock_mono_ms());
    p->server = qw_server_new(
        &(struct qw_server_options){ .listen = o->control_listen,
                                     .tls_cert = given(o->control_tls_cert),
                                     .tls_key = given(o->control_tls_key),
                                     .tls_client_ca = given(o->control_tls_client_ca),
                                     .tls_client_name = given(o->control_tls_client_name),
                                     .mailbox = p->mailbox,
                                     .handler = qw_coordinator_handler(p->co) },
        err);
    if (!p->server)
        return err->rc;
    p->http =
        qw_http_new(&(struct qw_http_options){ .listen = o->http_listen,
                                               .tls_cert = given(o->http_tls_cert),
                                               .tls_key = given(o->http_tls_key),
                                               .tls_client_ca = given(o->control_tls_client_ca),
                                               .spool = p->spool,
                                               .metrics = p->metrics,
                                               .state = &p->http_state,
                                               .mailbox = p->mailbox,
                                               .keep = p->keep },
                    err);
    return p->http ? QF_OK : err->rc;
}

/* Names that depend on the ports we got. */
static void choose_names(struct parts *p)
{
    const struct qw_options *o = p->options;
    struct qf_strbuf text = QF_STRBUF_INIT;
    char host[256] = "localhost";
    const char *reach;

    (void)gethostname(host, sizeof(host) - 1);
    reach = qf_host_is_wildcard(p->http_host) ? host : p->http_host;
    if (given(o->advertise_url))
        qf_strbuf_puts(&text, o->advertise_url);
    else
        qf_strbuf_printf(&text, strchr(reach, ':') ? "%s://[%s]:%d" : "%s://%s:%d",
                         given(o->http_tls_cert) ? "https" : "http", reach, qw_http_port(p->http));
    while (text.len && text.data[text.len - 1] == '/')
        text.data[--text.len] = '\0';
    p->base_url = qf_strbuf_take(&text);
    if (given(o->worker_id))
        qf_strbuf_puts(&text, o->worker_id);
    else
        qf_strbuf_printf(&text, "%s-%d", host, qw_server_port(p->server));
    p->worker_id = qf_strbuf_take(&text);
}

_Static_assert(QW_QUEUE_MEMORY_MIN / 8 >= QW_SERVER_ARENA_BYTES_MAX,
               "an assignment may be an eighth of the memory for all");

static void make_coordinator(struct parts *p)
{
    const struct qw_options *o = p->options;

    p->co = qw_coordinator_new(&(struct qw_coordinator_options){
        .limits = { .sessions_max = QW_SERVER_CALLS_MAX,
                    .runs_max = (uint32_t)QF_MIN(o->works_max, UINT64_C(1) << 20),
                    .spec_bytes_max = o->queue_memory,
                    .slots = (uint32_t)p->slots,
                    .artifact_ms = o->artifact_ttl_ms,
                    .artifact_ack_ms = o->artifact_ack_ttl_ms },
        .work_limits = { o->work_samples_max, o->work_memory_max, o->artifact_bytes_max },
        .budget = { .limit_bytes = o->disk_budget,
                    .floor_bytes = o->disk_floor,
                    .high_percent = (unsigned)o->disk_high,
                    .low_percent = (unsigned)o->disk_low },
        .drain_timeout_ms = o->drain_timeout_ms,
        .background = { .slots = (uint32_t)o->background_slots,
                        .memory = o->background_memory,
                        .rate = o->background_rate,
                        .pool = p->background,
                        .store = p->store,
                        .temp_dir = p->background_dir },
        .mailbox = p->mailbox,
        .pool = p->pool,
        .spool = p->spool,
        .metrics = p->metrics,
        .http_state = &p->http_state,
        .identity = p->identity,
    });
}

static qf_rc open_cache(struct parts *p, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *segments = below(p->options->spool, "segments");
    /* Blobs of the ring are verified whole when they come. */
    uint64_t partial_from = sg_store_is_ring(p->store) ? 0 : p->options->partial_from;

    p->heads = qw_head_source_new(
        &(struct qw_head_options){ .key_file = given(p->options->ingest_key_file),
                                   .ca_file = given(p->options->ingest_ca_file) },
        err);
    if (!p->heads)
        return err->rc;
    p->cache = qw_cache_new(
        &(struct qw_cache_options){ .store = p->store,
                                    .heads = p->heads,
                                    .dir = segments,
                                    .pool = p->downloads,
                                    .mailbox = p->mailbox,
                                    .metrics = p->metrics,
                                    .readers_max = p->options->open_segments_max,
                                    .reader_bytes_max = p->options->open_segments_memory,
                                    .partial = { partial_from, partial_from / REQUEST_PART },
                                    .hot_bytes_max = p->options->hot_memory,
                                    .result_bytes_max = p->options->result_memory,
                                    .make_room = qw_coordinator_make_room,
                                    .ctx = p->co },
        err);
    return p->cache ? QF_OK : err->rc;
}

static qf_rc start(struct parts *p, struct qf_err *err)
{
    qf_rc rc;

    raise_file_limit();
    rc = open_foundations(p, err);
    if (rc == QF_OK) {
        make_coordinator(p);
        rc = open_cache(p, err);
    }
    if (rc == QF_OK)
        rc = open_keep(p, err);
    if (rc == QF_OK)
        rc = open_listeners(p, err);
    if (rc)
        return rc;
    choose_names(p);
    qw_coordinator_attach(p->co, p->server, p->cache, p->worker_id, p->base_url);
    return QF_OK;
}

static void announce(const struct parts *p)
{
    printf("listening http=%s:%d control=%s:%d worker_id=%s\n", p->http_host, qw_http_port(p->http),
           p->control_host, qw_server_port(p->server), p->worker_id);
    (void)fflush(stdout);
    QF_LOG_INFO("worker started", QF_KV_STR("worker_id", p->worker_id),
                QF_KV_STR("url", p->base_url), QF_KV_STR("store", sg_store_url(p->store)),
                QF_KV_U64("slots", p->slots));
    if (!given(p->options->control_tls_cert) && !qf_host_is_loopback(p->control_host))
        QF_LOG_WARN("the control stream is open to the network without TLS",
                    QF_KV_STR("listen", p->options->control_listen));
}

/* A server that never served has to be stopped like any other. */
static void stop_server(struct parts *p)
{
    struct qw_message *message;

    if (!p->server)
        return;
    qw_server_stop(p->server);
    while (!qw_server_stopped(p->server)) {
        message = qf_mailbox_receive(p->mailbox, 1000);
        if (message && message->kind == QW_MESSAGE_RPC)
            qw_server_dispatch(p->server, message);
        else
            free(message);
        qw_server_tick(p->server, QF_TIME_NEVER);
    }
}

static void stop(struct parts *p)
{
    p->http = qw_http_free(p->http);
    p->keep = qw_keep_free(p->keep);
    stop_server(p);
    p->server = qw_server_free(p->server);
    p->pool = qf_pool_free(p->pool);
    p->downloads = qf_pool_free(p->downloads);
    p->identity = qw_identity_free(p->identity);
    p->background = qf_pool_free(p->background);
    p->co = qw_coordinator_free(p->co);
    p->cache = qw_cache_free(p->cache);
    p->heads = qw_head_source_free(p->heads);
    p->mailbox = qf_mailbox_free(p->mailbox, free); /* at most fetches are left */
    p->spool = qw_spool_free(p->spool);
    p->metrics = qw_metrics_free(p->metrics);
    p->store = sg_store_free(p->store);
    if (p->lock_fd >= 0)
        (void)close(p->lock_fd);
    free(p->background_dir);
    free(p->worker_id);
    free(p->base_url);
    free(p->control_host);
    free(p->http_host);
}

qf_rc qw_worker_run(const struct qw_options *options, int signal_fd, struct qf_err *err)
{
    struct parts *p = qf_xcalloc(1, sizeof(*p));
    struct qf_err local = { 0 };
    bool ended = true;
    qf_rc rc;

    if (!err)
        err = &local;
    p->options = options;
    p->lock_fd = -1;
    rc = start(p, err);
    if (rc == QF_OK) {
        announce(p);
        ended = qw_coordinator_run(p->co, signal_fd);
    }
    if (!ended) { /* threads still use all this: leave it to the end of the process */
        QF_LOG_WARN("something did not end in time, leaving it");
        return rc;
    }
    stop(p);
    free(p);
    if (rc == QF_OK)
        QF_LOG_INFO("worker ended");
    return rc;
}
