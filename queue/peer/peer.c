/* peer.c - starting and stopping the transport, and what other threads ask of it. */
#include <grpc/grpc_security.h>
#include <grpc/support/log.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "proto/rpc/message.h"
#include "queue/peer/peer_int.h"

struct qp_reply {
    struct qp_peers *peers;
    char from[QP_NAME_SIZE];
    uint64_t id;
};

/* gRPC's own lines would break the log format; they are for people who debug gRPC. */
static void log_from_grpc(gpr_log_func_args *args)
{
    QF_LOG_DEBUG("grpc", QF_KV_STR("text", args->message));
}

static void forward_completions(void *arg)
{
    struct qp_peers *peers = arg;

    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(peers->cq, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
        struct qp_tag *tag = event.tag;

        if (event.type == GRPC_QUEUE_SHUTDOWN)
            return;
        if (event.type != GRPC_OP_COMPLETE)
            continue;
        tag->ok = event.success != 0;
        /* Waiting is fine: the transport's thread never waits for this one. */
        if (!qf_mailbox_send(peers->mailbox, tag, -1))
            return;
    }
}

static bool name_ok(const char *name)
{
    size_t len = name ? strlen(name) : 0;

    return len > 0 && len < QP_NAME_SIZE;
}

static qf_rc check_options(const struct qp_options *options, struct qf_err *err)
{
    if (!name_ok(options->name))
        return qf_err_set(err, QF_EINVAL, "a node's name has 1 to %d bytes", QP_NAME_SIZE - 1);
    if (options->http_base && strlen(options->http_base) >= QP_URL_SIZE)
        return qf_err_set(err, QF_EINVAL, "%s: too long", options->http_base);
    if (options->peer_count >= QP_PEERS_MAX)
        return qf_err_set(err, QF_EINVAL, "more than %d peers", QP_PEERS_MAX - 1);
    for (size_t i = 0; i < options->peer_count; i++) {
        const struct qp_address *peer = &options->peers[i];

        if (!name_ok(peer->name) || strlen(peer->address) >= QP_ADDRESS_SIZE)
            return qf_err_set(err, QF_EINVAL, "%s: no name and address of a peer", peer->address);
        if (strcmp(peer->name, options->name) == 0)
            return qf_err_set(err, QF_EINVAL, "%s: a peer has this node's own name", peer->name);
        for (size_t j = 0; j < i; j++)
            if (strcmp(peer->name, options->peers[j].name) == 0)
                return qf_err_set(err, QF_EINVAL, "%s: two peers have this name", peer->name);
    }
    return QF_OK;
}

static const char *dup_text(const char *text)
{
    return text ? qf_xstrdup(text) : NULL;
}

static void copy_options(struct qp_options *out, const struct qp_options *in)
{
    *out = *in;
    out->peers = NULL;
    out->name = dup_text(in->name);
    out->listen = dup_text(in->listen);
    out->http_base = dup_text(in->http_base);
    out->tls_ca_file = dup_text(in->tls_ca_file);
    out->tls_cert_file = dup_text(in->tls_cert_file);
    out->tls_key_file = dup_text(in->tls_key_file);
    out->tls_peer_name = dup_text(in->tls_peer_name);
    out->http_ca_file = dup_text(in->http_ca_file ? in->http_ca_file : in->tls_ca_file);
#define DEFAULT(field, value) out->field = in->field ? in->field : (value)
    DEFAULT(protocol_oldest, qp_protocol_oldest);
    DEFAULT(protocol_newest, qp_protocol_newest);
    DEFAULT(queue_messages_max, 8192);
    DEFAULT(queue_bytes_max, (size_t)64 << 20);
    DEFAULT(stuck_ms, 5000);
    DEFAULT(silence_ms, 5000);
    DEFAULT(dial_timeout_ms, 3000);
    DEFAULT(redial_ms_min, 100);
    DEFAULT(redial_ms_max, 3000);
    DEFAULT(fetch_bytes_max, UINT64_C(4) << 30);
    DEFAULT(fetch_stall_ms, 10000);
#undef DEFAULT
}

static void free_options(struct qp_options *options)
{
    const char *texts[] = { options->name,          options->listen,        options->http_base,
                            options->tls_ca_file,   options->tls_cert_file, options->tls_key_file,
                            options->tls_peer_name, options->http_ca_file };

    for (size_t i = 0; i < QF_COUNT_OF(texts); i++)
        free((void *)(uintptr_t)texts[i]);
}

static bool read_tls(struct qp_peers *peers, struct qf_err *err)
{
    const struct qp_options *options = &peers->options;
    struct qf_tls_paths paths = { options->tls_ca_file, options->tls_cert_file,
                                  options->tls_key_file };
    int given = !!paths.ca_file + !!paths.cert_file + !!paths.key_file;

    if (!given)
        return true;
    if (given != 3)
        (void)qf_err_set(err, QF_EINVAL, "TLS between nodes needs a CA, a certificate and a key");
    else
        peers->tls = qf_tls_files_new(&paths, err);
    return peers->tls != NULL;
}

static bool listen_on(struct qp_peers *peers, struct qf_err *err)
{
    const struct qp_options *options = &peers->options;
    grpc_arg args[] = {
        rpc_int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, (int)PB_PEER_FRAME_BYTES_MAX),
        rpc_int_arg(GRPC_ARG_MAX_CONCURRENT_STREAMS, QP_STREAMS_MAX),
        rpc_int_arg(GRPC_ARG_ALLOW_REUSEPORT, 0), /* a taken port is an error, not a surprise */
        rpc_int_arg(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0),
    };
    grpc_channel_args all = { QF_COUNT_OF(args), args };
    grpc_server_credentials *credentials;
    char address[QP_ADDRESS_SIZE + 8];

    peers->identity.files = peers->tls;
    credentials = rpc_server_credentials(&peers->identity, err);
    if (!credentials)
        return false;
    (void)snprintf(address, sizeof(address), "%s%s", options->listen[0] == ':' ? "0.0.0.0" : "",
                   options->listen);
    peers->server = grpc_server_create(&all, NULL);
    grpc_server_register_completion_queue(peers->server, peers->cq, NULL);
    peers->port = grpc_server_add_http2_port(peers->server, address, credentials);
    grpc_server_credentials_release(credentials);
    if (peers->port > 0)
        return true;
    (void)qf_err_set(err, QF_EIO,
                     "cannot listen on %s: the address is taken or not ours, or TLS files are bad",
                     options->listen);
    return false;
}

static void enter_configured(struct qp_peers *peers, const struct qp_options *options)
{
    for (size_t i = 0; i < options->peer_count; i++) {
        struct qp_peer *peer = qp_enter(peers, qf_str_from(options->peers[i].name));

        peer->stat.configured = true;
        (void)snprintf(peer->address, sizeof(peer->address), "%s", options->peers[i].address);
    }
}

static void make_random(struct qp_peers *peers)
{
    uint64_t random[4] = { 0 };

    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        abort();                     /* up to 256 bytes getrandom() never falls short */
    peers->instance = random[0] | 1; /* not 0 */
    peers->prng.state = random[1];
    peers->last_call = random[1] >> 8;
    (void)snprintf(peers->token, sizeof(peers->token), "%016llx%016llx",
                   (unsigned long long)random[2], (unsigned long long)random[3]);
}

static struct qp_peers *make(const struct qp_options *options, const struct qp_callbacks *callbacks)
{
    struct qp_peers *peers = qf_xcalloc(1, sizeof(*peers));

    gpr_set_log_function(log_from_grpc);
    grpc_init();
    copy_options(&peers->options, options);
    peers->callbacks = *callbacks;
    peers->cluster = options->cluster;
    peers->references = 1;
    peers->lock = qf_lock_new();
    peers->mailbox = qf_mailbox_new(QP_MAILBOX_MAX);
    peers->cq = grpc_completion_queue_create_for_next(NULL);
    peers->scratch = qf_arena_new(PB_PEER_DECODE_BYTES_MAX);
    peers->kick_item.kind = QP_ITEM_KICK;
    peers->stop_item.kind = QP_ITEM_STOP;
    peers->accept_tag.item.kind = peers->stop_tag.item.kind = QP_ITEM_TAG;
    peers->now = qf_clock_mono_ms();
    make_random(peers);
    enter_configured(peers, options);
    return peers;
}

/* What is left in the mailbox is a kick, part of the transport. */
static void forget(void *item)
{
    (void)item;
}

/* All but what replies need that are still out. */
static void unmake(struct qp_peers *peers)
{
    if (peers->server && !peers->completion_thread && !peers->stop_done)
        grpc_server_shutdown_and_notify(peers->server, peers->cq, &peers->stop_tag);
    grpc_completion_queue_shutdown(peers->cq);
    if (!peers->completion_thread)
        while (
            grpc_completion_queue_next(peers->cq, gpr_inf_future(GPR_CLOCK_REALTIME), NULL).type !=
            GRPC_QUEUE_SHUTDOWN)
            continue;
    peers->completion_thread = qf_thread_join(peers->completion_thread);
    if (peers->server)
        grpc_server_destroy(peers->server);
    grpc_completion_queue_destroy(peers->cq);
    if (peers->credentials)
        grpc_channel_credentials_release(peers->credentials);
    peers->tls = qf_tls_files_free(peers->tls);
    (void)qf_arena_free(peers->scratch);
    (void)qf_mailbox_free(peers->mailbox, forget);
    for (size_t i = 0; i < QP_PEERS_MAX; i++)
        if (peers->slots[i].used)
            rpc_queue_clear(&peers->slots[i].out);
    grpc_shutdown();
    qp_release(peers);
}

void qp_release(struct qp_peers *peers)
{
    bool last;

    qf_lock_take(peers->lock);
    last = --peers->references == 0;
    qf_lock_drop(peers->lock);
    if (!last)
        return;
    (void)qf_lock_free(peers->lock);
    free_options(&peers->options);
    free(peers);
}

static qf_rc start_threads(struct qp_peers *peers, struct qf_err *err)
{
    peers->pool = qf_pool_new("qfetch", 1, QP_FETCHES_MAX);
    peers->completion_thread =
        peers->pool ? qf_thread_start("qgrpc", forward_completions, peers) : NULL;
    if (!peers->completion_thread)
        return qf_err_set(err, QF_EUNAVAILABLE, "cannot start a thread");
    qp_request_call(peers);
    peers->thread = qf_thread_start("qpeer", qp_run, peers);
    /* Without it nobody would read the mailbox: run it here, to its end. */
    if (!peers->thread)
        return qf_err_set(err, QF_EUNAVAILABLE, "cannot start a thread");
    return QF_OK;
}

qf_rc qp_start(const struct qp_options *options, const struct qp_callbacks *callbacks,
               struct qp_peers **ret_peers, struct qf_err *err)
{
    qf_rc rc = check_options(options, err);
    struct qp_peers *peers;
    struct qf_err why = { 0 };

    if (rc)
        return rc;
    peers = make(options, callbacks);
    if (!read_tls(peers, &why) || !qp_renew_credentials(peers, &why) || !listen_on(peers, &why)) {
        rc = why.rc ? why.rc : QF_EINVAL;
        peers->stop_done = true; /* it never began */
        unmake(peers);
        return qf_err_set(err, rc, "%s", why.msg);
    }
    grpc_server_start(peers->server);
    rc = start_threads(peers, err);
    if (rc == QF_OK)
        *ret_peers = peers;
    else
        (void)qp_stop(peers);
    return rc;
}

struct qp_peers *qp_stop(struct qp_peers *peers)
{
    if (!peers)
        return NULL;
    qf_lock_take(peers->lock);
    peers->stopping = true;
    qf_lock_drop(peers->lock);
    atomic_store(&peers->fetch_cancel, true);
    if (peers->pool)
        peers->pool = qf_pool_free(peers->pool);
    if (peers->completion_thread) {
        if (!qf_mailbox_send(peers->mailbox, &peers->stop_item, -1))
            abort(); /* nobody closes it */
        if (!peers->thread)
            qp_run(peers);
        peers->thread = qf_thread_join(peers->thread);
    }
    unmake(peers);
    return NULL;
}

int qp_port(const struct qp_peers *peers)
{
    return peers->port;
}

const char *qp_token(const struct qp_peers *peers)
{
    return peers->token;
}

void qp_set_cluster(struct qp_peers *peers, uint64_t cluster)
{
    qf_lock_take(peers->lock);
    peers->cluster = cluster;
    qf_lock_drop(peers->lock);
}

/* Under the lock: let the transport's thread see that there is something to send. */
static void kick(struct qp_peers *peers)
{
    if (!peers->kick_posted)
        peers->kick_posted = qf_mailbox_try_send(peers->mailbox, &peers->kick_item);
}

/* Under the lock: @pushed into the peer's queue, or dropped. */
static bool note_pushed(struct qp_peers *peers, struct qp_peer *peer, bool pushed, qf_time_ms now)
{
    if (pushed) {
        kick(peers);
        return true;
    }
    peer->stat.messages_dropped++;
    if (peer->current && !peer->full_since)
        peer->full_since = now;
    return false;
}

static bool push_frame(struct qp_peers *peers, const char *to, const struct pb_peer_frame *frame)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    qf_time_ms now = qf_clock_mono_ms();
    struct qp_peer *peer;
    bool pushed;

    pb_peer_encode(&buf, frame);
    qf_lock_take(peers->lock);
    peer = qp_find(peers, to);
    pushed =
        peer && !peers->stopping &&
        note_pushed(peers, peer,
                    peer->current && rpc_queue_push(&peer->out, qf_strbuf_view(&buf), now), now);
    qf_lock_drop(peers->lock);
    qf_strbuf_done(&buf);
    return pushed;
}

bool qp_give(struct qp_peers *peers, const char *to, const char *queue, struct qf_strbuf *bytes)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf head = QF_STRBUF_INIT;
    qf_time_ms now = qf_clock_mono_ms();
    struct qp_peer *peer;
    bool pushed;

    if (!name_ok(queue) || bytes->len > QP_BYTES_MAX)
        return false;
    pb_peer_message_head(&head, qf_str_from(queue), bytes->len);
    qf_lock_take(peers->lock);
    peer = qp_find(peers, to);
    pushed =
        peer && !peers->stopping &&
        note_pushed(peers, peer,
                    peer->current && rpc_queue_give(&peer->out, qf_strbuf_view(&head), bytes, now),
                    now);
    qf_lock_drop(peers->lock);
    return pushed;
}

bool qp_send(struct qp_peers *peers, const char *to, const char *queue, struct qf_str bytes)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf copy = QF_STRBUF_INIT;

    if (bytes.len > QP_BYTES_MAX)
        return false;
    qf_strbuf_str(&copy, bytes);
    return qp_give(peers, to, queue, &copy);
}

static qf_rc add_wait(struct qp_peers *peers, const char *to, struct qp_wait *wait)
{
    struct qp_peer *peer;
    qf_rc rc = QF_OK;

    qf_lock_take(peers->lock);
    peer = qp_find(peers, to);
    if (!peer || !peer->current || peers->stopping) {
        rc = QF_EUNAVAILABLE;
    } else if (peer->wait_count >= QP_CALLS_MAX) {
        rc = QF_EBUSY;
    } else {
        wait->id = ++peers->last_call;
        wait->next = peer->waits;
        peer->waits = wait;
        peer->wait_count++;
    }
    qf_lock_drop(peers->lock);
    return rc;
}

/* Take a wait back by its id, which nobody has answered; false: somebody has. */
static bool drop_wait(struct qp_peers *peers, const char *to, uint64_t id)
{
    struct qp_wait *found = NULL;
    struct qp_peer *peer;

    qf_lock_take(peers->lock);
    peer = qp_find(peers, to);
    for (struct qp_wait **at = peer ? &peer->waits : NULL; at && *at; at = &(*at)->next)
        if ((*at)->id == id) {
            found = *at;
            *at = found->next;
            peer->wait_count--;
            break;
        }
    qf_lock_drop(peers->lock);
    free(found);
    return found != NULL;
}

qf_rc qp_call(struct qp_peers *peers, const char *to, const char *method, struct qf_str bytes,
              int64_t deadline_ms, qp_done *done, void *arg)
{
    struct pb_peer_frame frame = { .kind = PB_PEER_CALL };
    struct qp_wait *wait;
    uint64_t id;
    qf_rc rc;

    if (!name_ok(method) || bytes.len > QP_BYTES_MAX)
        return QF_EINVAL;
    wait = qf_xcalloc(1, sizeof(*wait));
    *wait =
        (struct qp_wait){ .deadline = qf_clock_mono_ms() + deadline_ms, .done = done, .arg = arg };
    rc = add_wait(peers, to, wait);
    if (rc) {
        free(wait);
        return rc;
    }
    id = wait->id; /* from here on the wait is the transport's */
    frame.u.call = (struct pb_peer_call){ id, qf_str_from(method), bytes };
    if (push_frame(peers, to, &frame) || !drop_wait(peers, to, id))
        return QF_OK;
    return QF_EBUSY;
}

struct qp_reply *qp_reply_new(struct qp_peers *peers, const char *from, uint64_t id)
{
    struct qp_reply *reply = qf_xcalloc(1, sizeof(*reply));

    reply->peers = peers;
    reply->id = id;
    (void)snprintf(reply->from, sizeof(reply->from), "%s", from);
    qf_lock_take(peers->lock);
    peers->references++;
    qf_lock_drop(peers->lock);
    return reply;
}

void qp_reply(struct qp_reply *reply, qf_rc rc, struct qf_str bytes)
{
    struct pb_peer_frame frame = { .kind = PB_PEER_REPLY };

    if (bytes.len > QP_BYTES_MAX) {
        rc = QF_ELIMIT;
        bytes = QF_STR("the answer is too long");
    }
    frame.u.reply =
        (struct pb_peer_reply){ reply->id, qf_str_from(rc ? qf_rc_name(rc) : ""), bytes };
    (void)push_frame(reply->peers, reply->from, &frame);
    qp_release(reply->peers);
    free(reply);
}
