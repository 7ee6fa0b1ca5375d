/* ingest.c - start, watch over and stop the parts of the ingest role. */
#include "ingest/ingest.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/http/listener.h"
#include "base/net/address.h"
#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/limits_file.h"
#include "base/sys/log.h"
#include "base/sys/signals.h"
#include "ingest/accept/accept.h"
#include "ingest/accept/partition.h"
#include "ingest/core/listing.h"
#include "ingest/docs/documents.h"
#include "ingest/fresh/fresh.h"
#include "ingest/head/heads.h"
#include "ingest/head/status.h"
#include "ingest/http/routes.h"
#include "ingest/ring/driver.h"
#include "ingest/ring/handoff.h"
#include "ingest/ring/settings.h"
#include "ingest/state/state.h"
#include "queue/node/folders.h"
#include "queue/peer/peer.h"
#include "ring/coord/coord.h"

#define TICK_MS 250
#define CLOSE_MS 2200
#define FILES_INTERVAL_MS 1000
#define ENCODE_THREADS 2
#define ENCODE_QUEUE 1024
#define ACCEPT_QUEUE 1024
/* A keeper that takes longer for a small document counts as away. */
#define DOCUMENT_STALL_MS 3000
#define STATE_READERS 2
#define STATE_WRITERS 4
#define STATE_QUEUE 128
/* Metrics of a tenant whose metadata are kept, between two ranges. */
#define METADATA_MAX 100000

struct ingest {
    const struct in_options *options;
    char name[QC_NAME_SIZE];
    struct in_metrics metrics;
    struct qn_data *data;
    struct qn_node *node;
    struct in_heads *heads;
    struct in_partitions *partitions;
    struct rg_coord *coord;
    struct in_driver *driver; /* of migrations, while this node leads meta */
    atomic_bool leads[QN_PARTITIONS_MAX];
    /* As of the last tick: of logs and heads on the disk, of heads in memory. */
    atomic_uint_fast64_t data_bytes, head_bytes;
    struct in_accept *accept;
    struct in_handoff *handoff; /* NULL: segments go to no ring */
    struct in_documents *documents;
    struct in_fresh *fresh;
    struct qf_pool *pool, *state_reads, *state_writes;
    struct in_state *state;
    struct qh_tenants *tenants;
    struct qf_limits_file *limits;
    struct in_settings *settings; /* of tenants, as meta has them */
    qf_time_ms files_due_ms;
    qf_rc keys_rc, limits_rc;
    struct in_routes routes;
    struct qh_listener *listener;
    /* Set once it is there. The node's thread ends before it goes. */
    _Atomic(struct qp_peers *) peers;
};

static qf_rc name_node(struct ingest *ingest, struct qf_err *err)
{
    const char *given = ingest->options->ingest_id;
    char host[256] = "";

    if (!given || !*given) {
        if (gethostname(host, sizeof(host) - 1) != 0 || !host[0])
            return qf_err_set(err, QF_EINVAL, "this host has no name: give one with --ingest-id");
        given = host;
    }
    if (strlen(given) >= sizeof(ingest->name))
        return qf_err_set(err, QF_EINVAL, "--ingest-id %s: at most 63 bytes", given);
    (void)snprintf(ingest->name, sizeof(ingest->name), "%s", given);
    return QF_OK;
}

/* What is on the disk can no longer be trusted to be what was promised: the process ends here, so that
 * nobody is told otherwise. */
static void die(void *ctx, const char *why)
{
    (void)ctx;
    QF_LOG_ERROR("this node cannot go on", QF_KV_STR("reason", why));
    _exit(1);
}

static void observe_sync(void *ctx, double seconds)
{
    struct ingest *ingest = ctx;

    qf_metric_observe(ingest->metrics.sync_seconds, seconds);
}

/* --- other nodes --- */

static bool send_message(void *ctx, const char *to, const char *queue, struct qf_strbuf *bytes)
{
    struct qp_peers *peers = atomic_load(&((struct ingest *)ctx)->peers);

    return peers && qp_give(peers, to, queue, bytes);
}

static qf_rc call_node(void *ctx, const char *to, const char *method, struct qf_str bytes,
                       int64_t deadline_ms, qn_called *done, void *arg)
{
    struct qp_peers *peers = atomic_load(&((struct ingest *)ctx)->peers);

    return peers ? qp_call(peers, to, method, bytes, deadline_ms, done, arg) : QF_EUNAVAILABLE;
}

static void reply_to(void *reply, qf_rc rc, struct qf_str bytes)
{
    qp_reply(reply, rc, bytes);
}

static qf_rc fetch_file(void *ctx, const char *from, const char *queue, uint64_t index,
                        uint64_t term, const char *path, qn_called *done, void *arg)
{
    struct qp_peers *peers = atomic_load(&((struct ingest *)ctx)->peers);

    return peers ? qp_fetch(peers, from, queue, index, term, path, done, arg) : QF_EUNAVAILABLE;
}

static void joined(void *ctx, uint64_t cluster)
{
    struct qp_peers *peers = atomic_load(&((struct ingest *)ctx)->peers);

    if (peers)
        qp_set_cluster(peers, cluster);
}

static void on_message(void *ctx, const char *from, const char *queue, struct qf_str bytes)
{
    qn_hear(((struct ingest *)ctx)->node, from, queue, bytes);
}

static void on_call(void *ctx, const char *from, const char *method, struct qf_str bytes,
                    struct qp_reply *reply)
{
    qn_called_by(((struct ingest *)ctx)->node, from, method, bytes, reply);
}

/* Where other nodes reach this one's HTTP. */
static qf_rc make_http_base(struct ingest *ingest, char *out, size_t size, struct qf_err *err)
{
    const struct in_options *options = ingest->options;
    QF_CLEANUP(qf_freep) char *host = NULL;
    char own[256] = "";
    uint16_t port;
    qf_rc rc;

    if (options->advertise_url && *options->advertise_url) {
        (void)snprintf(out, size, "%s", options->advertise_url);
        return QF_OK;
    }
    rc = qf_address_split(options->http_listen, &host, &port, err);
    if (rc != QF_OK)
        return rc;
    if (!qf_host_is_wildcard(host) || gethostname(own, sizeof(own) - 1) != 0)
        (void)snprintf(own, sizeof(own), strchr(host, ':') ? "[%s]" : "%s", host);
    (void)snprintf(out, size, "%s://%s:%u", options->http_tls_cert ? "https" : "http", own,
                   (unsigned)qh_listener_port(ingest->listener));
    return QF_OK;
}

/* The names and addresses of --peer, but for this node's own: all nodes of a cluster may be given one list.
 * The number of them; free() each name. */
static size_t read_peers(const struct ingest *ingest, struct qp_address *addresses)
{
    const struct in_options *options = ingest->options;
    size_t count = 0;

    for (size_t i = 0; i < options->peer_count; i++) {
        const char *peer = options->peers[i], *equals = strchr(peer, '=');
        struct qf_str name = { peer, (size_t)(equals - peer) };

        if (!qf_str_is(name, ingest->name))
            addresses[count++] =
                (struct qp_address){ qf_xmemdup0(name.data, name.len), equals + 1 };
    }
    return count;
}

static qf_rc start_peers(struct ingest *ingest, struct qf_err *err)
{
    const struct in_options *options = ingest->options;
    const struct qp_callbacks callbacks = { .ctx = ingest, .message = on_message, .call = on_call };
    struct qp_options peer = { .name = ingest->name,
                               .cluster = qn_cluster(ingest->node),
                               .listen = options->peer_listen,
                               .tls_ca_file = options->peer_tls_ca,
                               .tls_cert_file = options->peer_tls_cert,
                               .tls_key_file = options->peer_tls_key,
                               .tls_peer_name = options->peer_tls_name,
                               .records = IN_RECORDS_TENANTS };
    struct qp_address *addresses = qf_xcalloc(options->peer_count + 1, sizeof(*addresses));
    struct qp_peers *peers = NULL;
    char *base = ingest->routes.http_base;
    qf_rc rc = make_http_base(ingest, base, sizeof(ingest->routes.http_base), err);

    peer.peer_count = read_peers(ingest, addresses);
    peer.http_base = base;
    peer.peers = addresses;
    if (rc == QF_OK)
        rc = qp_start(&peer, &callbacks, &peers, err);
    if (rc == QF_OK) {
        ingest->routes.token = qp_token(peers);
        ingest->routes.peers = peers;
        atomic_store(&ingest->peers, peers);
    }
    for (size_t i = 0; i < peer.peer_count; i++)
        free((char *)addresses[i].name);
    free(addresses);
    return rc;
}

/* --- partitions --- */

static struct in_head *open_head(void *ctx, uint32_t partition, uint64_t queue_id)
{
    struct ingest *ingest = ctx;
    struct qf_err err = { 0 };
    struct in_head *head = in_heads_open(ingest->heads, partition, queue_id, &err);

    if (!head)
        die(ingest, err.msg);
    return head;
}

static void answer_listing(struct ingest *ingest, uint64_t queue_id, const struct in_ledger *ledger,
                           struct qf_str question, struct qn_ask *ask)
{
    const struct in_listing_of of = { .cluster = qn_cluster(ingest->node),
                                      .queue = queue_id,
                                      .partitions = qn_partitions(ingest->node) };

    if (in_listing_answer(question, ledger, &of, &ask->answer.text) != QF_OK)
        (void)qf_err_set(&ask->answer.err, QF_EPROTO, "a question that cannot be read");
}

static void answer_question(void *ctx, uint32_t partition, uint64_t queue_id,
                            const struct in_ledger *ledger, struct qf_str question,
                            struct qn_ask *ask)
{
    struct ingest *ingest = ctx;
    struct in_status_of of = { .partition = partition,
                               .queue_id = queue_id,
                               .shards = in_heads_shards(ingest->heads),
                               .node = ingest->name };
    struct qc_members members;

    qn_ask_members(ask, &members, &of.epoch);
    for (; of.member_count < QF_MIN((size_t)members.count, QF_COUNT_OF(of.members));
         of.member_count++)
        of.members[of.member_count] = members.items[of.member_count].name;
    if (question.len && question.data[0] == IN_QUESTION_LISTING)
        answer_listing(ingest, queue_id, ledger, question, ask);
    else if (question.len && question.data[0] == IN_QUESTION_ELECTED)
        in_elected_answer(question, ledger, &ask->answer.text);
    else if (!question.len || question.data[0] != IN_QUESTION_STATUS ||
             in_status_answer(question, ledger, &of, &ask->answer.text) != QF_OK)
        (void)qf_err_set(&ask->answer.err, QF_EUNSUPPORTED,
                         "a question that this version does not know");
}

static void note_leads(void *ctx, uint32_t partition, uint64_t queue_id, bool leads)
{
    (void)queue_id;
    atomic_store(&((struct ingest *)ctx)->leads[partition], leads);
}

static bool peer_knows(const struct qp_peer_stat *stats, size_t count, const char *name,
                       uint32_t records)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(stats[i].name, name) == 0)
            return stats[i].records >= records;
    return false;
}

/* What peers know they said when they were last connected. */
static bool all_know(void *ctx, const struct qn_ask *ask, uint32_t records,
                     char ret_name[QC_NAME_SIZE])
{
    struct ingest *ingest = ctx;
    struct qp_peers *peers = atomic_load(&ingest->peers);
    struct qp_peer_stat *stats = qf_xcalloc(QP_PEERS_MAX, sizeof(*stats));
    size_t count = peers ? qp_stat(peers, stats) : 0;
    struct qc_members members;
    uint64_t epoch;
    bool all = true;

    qn_ask_members(ask, &members, &epoch);
    for (size_t i = 0; i < members.count && all; i++) {
        const char *name = members.items[i].name;

        all = strcmp(name, ingest->name) == 0 || peer_knows(stats, count, name, records);
        if (!all)
            memcpy(ret_name, name, QC_NAME_SIZE);
    }
    free(stats);
    return all;
}

/* The same of all nodes that this one has heard of. */
static bool all_know_rules(void *ctx, char ret_name[QC_NAME_SIZE])
{
    struct ingest *ingest = ctx;
    struct qp_peers *peers = atomic_load(&ingest->peers);
    struct qp_peer_stat *stats = qf_xcalloc(QP_PEERS_MAX, sizeof(*stats));
    size_t count = peers ? qp_stat(peers, stats) : 0;
    bool all = peers != NULL;

    if (!all)
        (void)snprintf(ret_name, QC_NAME_SIZE, "%s", ingest->name);
    for (size_t i = 0; i < count && all; i++) {
        all = strcmp(stats[i].name, ingest->name) == 0 || stats[i].records >= IN_RECORDS_PIN;
        if (!all)
            (void)snprintf(ret_name, QC_NAME_SIZE, "%s", stats[i].name);
    }
    free(stats);
    return all;
}

static bool all_know_ring(void *ctx, const struct qn_ask *ask, char ret_name[QC_NAME_SIZE])
{
    return all_know(ctx, ask, IN_RECORDS_RING, ret_name);
}

static bool all_know_tenants(void *ctx, const struct qn_ask *ask, char ret_name[QC_NAME_SIZE])
{
    return all_know(ctx, ask, IN_RECORDS_TENANTS, ret_name);
}

static void lead_ring(void *ctx, uint64_t term)
{
    in_driver_lead(((struct ingest *)ctx)->driver, term);
}

qf_rc in_check_move_rate(const char *text, struct qf_err *err)
{
    struct rg_hours hours;

    return rg_hours_parse(qf_str_from(text), &hours, err);
}

static qf_rc make_ring(struct ingest *ingest, struct qf_err *err)
{
    struct in_driver_options driver = { .key_file = ingest->options->keep_key_file,
                                        .ca_file = ingest->options->keep_ca_file,
                                        .cert_file = ingest->options->keep_tls_cert,
                                        .cert_key_file = ingest->options->keep_tls_key,
                                        .dead_ms = ingest->options->node_dead_ms };
    const struct rg_coord_options coord = { .dead_ms = ingest->options->node_dead_ms,
                                            .all_know = all_know_ring,
                                            .all_know_tenants = all_know_tenants,
                                            .fatal = die,
                                            .lead = lead_ring,
                                            .ctx = ingest };

    if (ingest->options->move_rate &&
        rg_hours_parse(qf_str_from(ingest->options->move_rate), &driver.hours, err) != QF_OK)
        return err->rc;
    ingest->coord = rg_coord_new(&coord);
    ingest->routes.ring = rg_coord_board(ingest->coord);
    ingest->routes.settings = rg_coord_tenants(ingest->coord);
    ingest->driver = in_driver_new(&driver, ingest->routes.ring, err);
    ingest->routes.driver = ingest->driver;
    return ingest->driver ? QF_OK : err->rc;
}

/* Samples have the partitions' application, storage nodes and tenants that of meta. */
static bool open_application(void *ctx, const char *queue, uint64_t id, struct qn_application *ret)
{
    struct ingest *ingest = ctx;
    struct qn_applications partitions = in_partitions_applications(ingest->partitions);

    if (strcmp(queue, QN_META) != 0)
        return partitions.open(partitions.ctx, queue, id, ret);
    *ret = rg_coord_application(ingest->coord);
    return true;
}

static uint64_t head_bytes(void *ctx)
{
    return atomic_load(&((struct ingest *)ctx)->head_bytes);
}

static uint64_t data_bytes(void *ctx)
{
    return atomic_load(&((struct ingest *)ctx)->data_bytes);
}

static qf_rc make_partitions(struct ingest *ingest, struct qf_err *err)
{
    const struct in_options *options = ingest->options;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf dir = QF_STRBUF_INIT;
    struct in_heads_options heads = { .of = { .shards = (uint32_t)options->segment_shards,
                                              .keep_ms = options->query_timeout_ms },
                                      .memory_bytes = options->head_bytes_max / 2 };
    const struct in_partitions_options partitions = {
        .limits = { .out_of_order_ms = options->out_of_order_ms,
                    .future_ms = options->future_ms,
                    .metadata_max = METADATA_MAX,
                    .ha_failover_ms = options->ha_failover_ms,
                    .idle_ms = options->series_idle_ms },
        .tenants = ingest->limits,
        .seal_age_ms = options->seal_age_ms,
        .seal_bytes = options->seal_bytes,
        .floor_age_ms = options->floor_age_ms,
        .data_bytes_max = options->data_bytes_max,
        .data_bytes = data_bytes,
        .head_bytes_max = options->head_bytes_max,
        .head_bytes = head_bytes,
        .open_head = open_head,
        .answer = answer_question,
        .all_know = all_know,
        .leads = note_leads,
        .ctx = ingest,
    };

    qf_strbuf_printf(&dir, "%s/heads", options->data);
    heads.dir = qf_strbuf_cstr(&dir);
    ingest->heads = in_heads_new(&heads, err);
    if (!ingest->heads)
        return err->rc;
    ingest->partitions = in_partitions_new(&partitions);
    return QF_OK;
}

/* What storage nodes miss while they are away. */
static qf_rc start_handoff(struct ingest *ingest, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf dir = QF_STRBUF_INIT;
    const struct in_options *options = ingest->options;
    struct in_handoff_options handoff = {
        .store = options->store,
        .node_bytes = options->handoff_node_bytes,
        .store_bytes = options->handoff_store_bytes,
        .reserve_bytes = 2 * options->reserve_bytes, /* logs come first */
        .policy = options->handoff_backpressure ? RG_BACKPRESSURE : RG_DROP_OLDEST,
        .quantum = (uint32_t)options->handoff_quantum,
        .rest_ms = options->handoff_pause_ms,
        .rate = options->handoff_rate
    };
    qf_rc rc;

    if (!options->store || !qf_str_starts(qf_str_from(options->store), QF_STR("ring://")))
        return QF_OK;
    qf_strbuf_printf(&dir, "%s/handoff", options->data);
    handoff.dir =
        options->handoff_dir && *options->handoff_dir ? options->handoff_dir : qf_strbuf_cstr(&dir);
    rc = in_handoff_start(&handoff, ingest->routes.ring, &ingest->handoff, err);
    ingest->routes.handoff = ingest->handoff;
    return rc;
}

static void lack_document(void *documents, uint32_t slot, const char *name)
{
    in_documents_lacking(documents, slot, name);
}

static qf_rc start_documents(struct ingest *ingest, struct qf_err *err)
{
    const struct in_options *options = ingest->options;
    const struct in_documents_options documents = {
        .keepers = { .key_file = options->keep_key_file,
                     .ca_file = options->keep_ca_file,
                     .cert_file = options->keep_tls_cert,
                     .cert_key_file = options->keep_tls_key,
                     .stall_timeout_ms = DOCUMENT_STALL_MS },
        .data = options->data,
        .handoff = in_handoff_hooks(ingest->handoff),
    };
    qf_rc rc = in_documents_start(&documents, ingest->routes.ring, &ingest->metrics,
                                  &ingest->documents, err);

    ingest->routes.documents = ingest->documents;
    if (rc == QF_OK && ingest->handoff)
        in_handoff_set_documents(ingest->handoff, lack_document, ingest->documents);
    return rc;
}

static qf_rc start_fresh(struct ingest *ingest, struct qf_err *err)
{
    const struct in_options *options = ingest->options;
    const struct in_fresh_options fresh = { .heads = ingest->heads,
                                            .node = ingest->node,
                                            .leads = ingest->leads,
                                            .data = options->data,
                                            .store = options->store,
                                            .handoff = in_handoff_hooks(ingest->handoff),
                                            .read_threads = options->head_read_threads,
                                            .reads_max = options->head_reads_max,
                                            .read_bytes = options->head_read_bytes };
    qf_rc rc = in_fresh_start(&fresh, &ingest->fresh, err);

    ingest->routes.fresh = ingest->fresh;
    ingest->routes.heads = ingest->heads;
    ingest->routes.name = ingest->name;
    ingest->routes.leads = ingest->leads;
    ingest->routes.query_timeout_ms = options->query_timeout_ms;
    if (rc == QF_OK && (!options->store || !*options->store))
        QF_LOG_WARN("without --store samples stay in --data and are refused at --data-bytes");
    return rc;
}

static qf_rc position_of(void *ctx, struct qf_str tenant, uint64_t *ret_position,
                         struct qf_err *err)
{
    return in_state_position(((struct ingest *)ctx)->state, tenant, ret_position, err);
}

static qf_rc enrich(void *ctx, struct qf_str tenant, uint64_t position, struct in_request *request,
                    struct qf_arena *arena, struct qf_err *err)
{
    return in_state_enrich(((struct ingest *)ctx)->state, tenant, position, request, arena, err);
}

static qf_rc start_accept(struct ingest *ingest, struct qf_err *err)
{
    const struct in_options *options = ingest->options;
    const struct in_accept_options accept = {
        .node = ingest->node,
        .request_bytes_max = options->request_bytes_max,
        .memory_bytes_max = options->write_memory_bytes,
        .tenants = ingest->limits,
        .ha = { qf_str_from(options->ha_cluster_label), qf_str_from(options->ha_replica_label) },
        .enricher = { position_of, enrich, ingest },
        .threads = (size_t)options->write_threads,
        .queue_max = ACCEPT_QUEUE,
    };

    ingest->accept = in_accept_new(&accept);
    if (!ingest->accept)
        return qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
    ingest->routes.accept = ingest->accept;
    ingest->routes.partitions = in_partitions_figures(ingest->partitions);
    return QF_OK;
}

/* --- start --- */

static qf_rc read_limits(struct ingest *ingest, struct qf_err *err)
{
    const struct in_options *options = ingest->options;
    const struct qf_limits limits = {
        .of = { [QF_LIMIT_SAMPLES_RATE] = options->tenant_samples_rate,
                [QF_LIMIT_BYTES_RATE] = options->tenant_bytes_rate,
                [QF_LIMIT_SERIES] = options->tenant_series_max,
                [QF_LIMIT_LABELS] = options->labels_max,
                [QF_LIMIT_NAME_BYTES] = options->label_name_bytes_max,
                [QF_LIMIT_VALUE_BYTES] = options->label_value_bytes_max,
                [QF_LIMIT_HA_PAIRS] = options->ha_pairs ? QF_SWITCH_ON : QF_SWITCH_OFF }
    };

    ingest->limits = qf_limits_file_new(options->limits_file, &limits, err);
    return ingest->limits ? QF_OK : err->rc;
}

static qf_rc start_node(struct ingest *ingest, struct qf_err *err)
{
    const struct in_options *options = ingest->options;
    struct qn_options node = { .name = ingest->name,
                               .bootstrap = options->bootstrap,
                               .reserve_bytes = options->reserve_bytes,
                               .file_bytes = options->log_file_bytes,
                               .election_ms = (uint32_t)options->election_ms,
                               .heartbeat_ms = (uint32_t)options->election_ms / 10,
                               .leader_wait_ms = options->leader_wait_ms,
                               .write_wait_ms = options->write_leader_wait_ms,
                               .asks_max = (uint32_t)options->requests_max,
                               .partitions = (uint32_t)options->partitions,
                               .new_partitions = (uint32_t)options->new_partitions,
                               .transport = { .ctx = ingest,
                                              .send = send_message,
                                              .call = call_node,
                                              .reply = reply_to,
                                              .fetch = fetch_file,
                                              .joined = joined },
                               .fatal = die,
                               .synced = observe_sync,
                               .ctx = ingest };
    qf_rc rc = qn_data_open(options->data, &ingest->data, err);

    if (rc != QF_OK)
        return rc;
    node.folders = qn_data_folders(ingest->data);
    rc = make_partitions(ingest, err);
    if (rc != QF_OK)
        return rc;
    rc = make_ring(ingest, err);
    if (rc != QF_OK)
        return rc;
    node.applications = (struct qn_applications){ ingest, open_application };
    rc = qn_start(&node, &ingest->node, err);
    if (rc != QF_OK)
        return rc;
    in_partitions_set_node(ingest->partitions, ingest->node);
    ingest->settings = in_settings_new(ingest->routes.settings, ingest->limits, ingest->node);
    return in_driver_start(ingest->driver, ingest->node, err);
}

static qf_rc start_state(struct ingest *ingest, struct qf_err *err)
{
    const struct in_state_options state = { .data = ingest->options->data,
                                            .name = ingest->name,
                                            .upkeep_ms = ingest->options->state_upkeep_ms,
                                            .all_know = all_know_rules,
                                            .ctx = ingest };

    ingest->state = in_state_new(&state);
    ingest->state_reads = qf_pool_new("state-read", STATE_READERS, STATE_QUEUE);
    ingest->state_writes = qf_pool_new("state-write", STATE_WRITERS, STATE_QUEUE);
    if (!ingest->state_reads || !ingest->state_writes)
        return qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
    ingest->routes.state = ingest->state;
    ingest->routes.state_reads = ingest->state_reads;
    ingest->routes.state_writes = ingest->state_writes;
    return in_state_start(ingest->state, ingest->node, err);
}

static qf_rc start_http(struct ingest *ingest, struct qf_err *err)
{
    const struct in_options *options = ingest->options;
    const struct qh_listener_options listener = {
        .listen = options->http_listen,
        .threads = (size_t)options->http_threads,
        .connections_max = (size_t)options->connections_max,
        .body_bytes_max = options->body_bytes_max,
        .bodies_bytes_max = options->bodies_bytes_max,
        .stream_bytes_max = 16 << 20,
        .idle_timeout_ms = options->idle_timeout_ms,
        .tls_cert_file = options->http_tls_cert,
        .tls_key_file = options->http_tls_key,
        .admit = in_routes_admit,
        .handle = in_routes_handle,
        .finished = in_routes_finished,
        .ctx = &ingest->routes,
    };

    ingest->tenants = qh_tenants_new(options->key_file, err);
    if (!ingest->tenants)
        return err->rc;
    ingest->pool = qf_pool_new("encode", ENCODE_THREADS, ENCODE_QUEUE);
    if (!ingest->pool)
        return qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
    ingest->routes.node = ingest->node;
    ingest->routes.pool = ingest->pool;
    ingest->routes.metrics = &ingest->metrics;
    ingest->routes.tenants = ingest->tenants;
    ingest->routes.record_bytes_max = options->record_bytes_max;
    ingest->listener = qh_listener_new(&listener, err);
    return ingest->listener ? QF_OK : err->rc;
}

static qf_rc start(struct ingest *ingest, struct qf_err *err)
{
    qf_rc rc = name_node(ingest, err);

    if (rc == QF_OK)
        rc = read_limits(ingest, err);
    if (rc == QF_OK)
        rc = start_node(ingest, err);
    if (rc == QF_OK)
        rc = start_accept(ingest, err);
    if (rc == QF_OK)
        rc = start_handoff(ingest, err);
    if (rc == QF_OK)
        rc = start_documents(ingest, err);
    if (rc == QF_OK)
        rc = start_fresh(ingest, err);
    if (rc == QF_OK)
        rc = start_state(ingest, err);
    if (rc == QF_OK)
        rc = start_http(ingest, err);
    if (rc == QF_OK)
        rc = start_peers(ingest, err);
    return rc;
}

/* --- run --- */

static void refresh_keys(struct ingest *ingest)
{
    struct qf_err err = { 0 };
    bool changed;
    qf_rc rc = qh_tenants_refresh(ingest->tenants, &changed, &err);

    if (rc == QF_OK && changed)
        QF_LOG_INFO("API keys read again", QF_KV_STR("file", ingest->options->key_file));
    if (rc != QF_OK && ingest->keys_rc == QF_OK)
        QF_LOG_WARN("API keys cannot be read, those read before stay", QF_KV_STR("error", err.msg));
    ingest->keys_rc = rc;
}

static void refresh_limits(struct ingest *ingest)
{
    struct qf_err err = { 0 };
    bool changed;
    qf_rc rc = qf_limits_file_refresh(ingest->limits, &changed, &err);

    if (rc == QF_OK && changed)
        QF_LOG_INFO("tenants' limits read again", QF_KV_STR("file", ingest->options->limits_file));
    if (rc != QF_OK && ingest->limits_rc == QF_OK)
        QF_LOG_WARN("tenants' limits cannot be read, those read before stay",
                    QF_KV_STR("error", err.msg));
    ingest->limits_rc = rc;
}

static void refresh_files(struct ingest *ingest, qf_time_ms now)
{
    if (now < ingest->files_due_ms)
        return;
    ingest->files_due_ms = now + FILES_INTERVAL_MS;
    refresh_keys(ingest);
    refresh_limits(ingest);
}

static void tick(struct ingest *ingest)
{
    struct qn_figures *figures = qn_figures(ingest->node);
    struct in_head_figures heads = in_heads_figures(ingest->heads);

    qh_listener_tick(ingest->listener);
    rg_board_tick(ingest->routes.ring, qf_clock_mono_ms(), false);
    in_settings_tick(ingest->settings, qf_clock_mono_ms());
    refresh_files(ingest, qf_clock_mono_ms());
    atomic_store(&ingest->data_bytes, atomic_load(&figures->log_bytes) + heads.file_bytes);
    atomic_store(&ingest->head_bytes, heads.memory_bytes);
    atomic_store(&ingest->routes.ready, in_routes_ready(&ingest->routes));
}

static bool signaled(int signal_fd, int timeout_ms)
{
    struct pollfd poller = { .fd = signal_fd, .events = POLLIN };
    int number;

    if (poll(&poller, 1, timeout_ms) <= 0)
        return false;
    while ((number = qf_signals_next(signal_fd)) != 0)
        if (number == SIGTERM || number == SIGINT)
            return true;
    return false;
}

static bool is_idle(struct ingest *ingest)
{
    return qh_listener_active(ingest->listener) == 0 &&
           atomic_load(&qn_figures(ingest->node)->to_hand_over) == 0;
}

/* Ranges end with their leader: whoever leads next begins new ones. Those that cannot be closed within
 * two rounds of the node's housekeeping stay open. */
static void close_ranges(struct ingest *ingest)
{
    qf_time_ms deadline = qf_clock_mono_ms() + CLOSE_MS;

    in_partitions_seal_all(ingest->partitions);
    while (atomic_load(&in_partitions_figures(ingest->partitions)->open) &&
           qf_clock_mono_ms() < deadline)
        (void)poll(NULL, 0, 20);
}

/* Close ranges, hand leadership over, answer what is under way. */
static void drain(struct ingest *ingest, int signal_fd)
{
    qf_time_ms deadline = qf_clock_mono_ms() + ingest->options->drain_timeout_ms;

    atomic_store(&ingest->routes.ready, false);
    atomic_store(&ingest->routes.draining, true);
    qf_metric_set(ingest->metrics.draining, 0, 1);
    QF_LOG_INFO("draining", QF_KV_U64("led", atomic_load(&qn_figures(ingest->node)->led)));
    close_ranges(ingest);
    qn_drain(ingest->node);
    while (!is_idle(ingest)) {
        rg_board_tick(ingest->routes.ring, qf_clock_mono_ms(), true);
        rg_tenants_tick(ingest->routes.settings, qf_clock_mono_ms(), true);
        if (qf_clock_mono_ms() >= deadline || signaled(signal_fd, 20)) {
            QF_LOG_WARN("drain cut short",
                        QF_KV_U64("requests", qh_listener_active(ingest->listener)));
            return;
        }
        qh_listener_tick(ingest->listener);
    }
}

static void stop(struct ingest *ingest)
{
    ingest->listener = qh_listener_free(ingest->listener); /* nobody asks the node any more */
    ingest->fresh = in_fresh_stop(ingest->fresh);
    if (ingest->handoff)
        in_handoff_set_documents(ingest->handoff, NULL, NULL);
    ingest->documents = in_documents_stop(ingest->documents);
    ingest->handoff = in_handoff_stop(ingest->handoff);
    in_accept_halt(ingest->accept);
    in_driver_halt(ingest->driver);
    in_state_halt(ingest->state);
    qn_halt(ingest->node); /* nor does it ask others */
    atomic_store(&ingest->peers, qp_stop(atomic_load(&ingest->peers)));
    ingest->node = qn_stop(ingest->node);
    ingest->state_reads = qf_pool_free(ingest->state_reads);
    ingest->state_writes = qf_pool_free(ingest->state_writes);
    ingest->state = in_state_free(ingest->state);
    ingest->settings = in_settings_free(ingest->settings);
    ingest->driver = in_driver_free(ingest->driver);
    ingest->coord = rg_coord_free(ingest->coord);
    ingest->accept = in_accept_free(ingest->accept);
    ingest->partitions = in_partitions_free(ingest->partitions);
    ingest->heads = in_heads_free(ingest->heads);
    ingest->pool = qf_pool_free(ingest->pool);
    ingest->tenants = qh_tenants_free(ingest->tenants);
    ingest->limits = qf_limits_file_free(ingest->limits);
    ingest->data = qn_data_close(ingest->data);
    in_metrics_done(&ingest->metrics);
}

static void announce(const struct ingest *ingest)
{
    QF_CLEANUP(qf_freep) char *host = NULL;
    uint16_t port;

    if (qf_address_split(ingest->options->http_listen, &host, &port, NULL) != QF_OK)
        return;
    printf("listening http=%s:%u peer=%d ingest_id=%s\n", *host ? host : "0.0.0.0",
           (unsigned)qh_listener_port(ingest->listener), qp_port(atomic_load(&ingest->peers)),
           ingest->name);
    (void)fflush(stdout);
    QF_LOG_INFO("serving", QF_KV_STR("ingest_id", ingest->name),
                QF_KV_U64("port", qh_listener_port(ingest->listener)),
                QF_KV_STR("data", ingest->options->data));
    if (!qn_cluster(ingest->node))
        QF_LOG_WARN("this node is in no cluster yet: add it at a member (promfabric queue members "
                    "--add NAME), or start it with --bootstrap to make a new one");
}

qf_rc in_ingest_run(const struct in_options *options, int signal_fd, struct qf_err *err)
{
    struct ingest *ingest = qf_xcalloc(1, sizeof(*ingest));
    qf_rc rc;

    ingest->options = options;
    in_metrics_init(&ingest->metrics);
    rc = start(ingest, err);
    if (rc == QF_OK) {
        announce(ingest);
        tick(ingest);
        while (!signaled(signal_fd, TICK_MS))
            tick(ingest);
        drain(ingest, signal_fd);
    }
    stop(ingest);
    free(ingest);
    return rc;
}
