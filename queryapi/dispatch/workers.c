/* workers.c - workers in the coordinator: endpoints, streams, and what is said on them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queryapi/dispatch/coordinator_int.h"
#include "queryapi/encode/error.h"
#include "queryapi/fetch/url.h"

#define CHECKSUM_TEXT 40

/* Dials that fail, and for how long, before somebody is told: a worker that is being started takes a
 * moment. */
#define DIALS_TOLD 3
#define UNREACHED_TOLD_MS 3000

/* --- endpoints --- */

struct endpoint *co_endpoint(struct qa_coord *coord, struct wc_worker_id worker)
{
    for (size_t i = 0; i < coord->endpoints.count; i++)
        if (coord->endpoints.items[i].worker.v == worker.v)
            return &coord->endpoints.items[i];
    return NULL;
}

static struct endpoint *endpoint_of_session(struct qa_coord *coord, uint64_t session)
{
    for (size_t i = 0; i < coord->endpoints.count; i++)
        if (coord->endpoints.items[i].session == session)
            return &coord->endpoints.items[i];
    return NULL;
}

/* Drop endpoints that the core has let go of. */
static void forget_endpoints(struct qa_coord *coord)
{
    struct wc_api_worker_view view;
    size_t kept = 0;

    for (size_t i = 0; i < coord->endpoints.count; i++) {
        struct endpoint *endpoint = &coord->endpoints.items[i];

        if (endpoint->present || endpoint->session ||
            wc_api_worker(coord->wc, endpoint->worker, &view)) {
            coord->endpoints.items[kept++] = *endpoint;
        } else {
            free(endpoint->address);
            free(endpoint->base_url);
        }
    }
    coord->endpoints.count = kept;
}

static void discover(struct qa_coord *coord, const char *address)
{
    struct wc_worker_id worker;

    for (size_t i = 0; i < coord->endpoints.count; i++) {
        struct endpoint *known = &coord->endpoints.items[i];

        if (strcmp(known->address, address) != 0)
            continue;
        known->present = true;
        worker = known->worker;
        co_tell_work(coord,
                     (struct wc_api_event){ .type = WC_API_EV_DISCOVERED, .worker = worker });
        return;
    }
    worker.v = ++coord->workers;
    QF_VEC_PUSH(
        &coord->endpoints,
        (struct endpoint){ .worker = worker, .address = qf_xstrdup(address), .present = true });
    QF_LOG_INFO("worker discovered", QF_KV_STR("address", address));
    co_tell_work(coord, (struct wc_api_event){ .type = WC_API_EV_DISCOVERED, .worker = worker });
}

void co_endpoints(struct qa_coord *coord, char *addresses)
{
    char *line, *rest = addresses;

    for (size_t i = 0; i < coord->endpoints.count; i++)
        coord->endpoints.items[i].present = false;
    while ((line = strsep(&rest, "\n")) != NULL)
        if (*line)
            discover(coord, line);
    for (size_t i = 0; i < coord->endpoints.count; i++) {
        struct endpoint *endpoint = &coord->endpoints.items[i];

        if (!endpoint->present)
            co_tell_work(coord, (struct wc_api_event){ .type = WC_API_EV_REMOVED,
                                                       .worker = endpoint->worker });
    }
    forget_endpoints(coord);
}

/* --- streams --- */

void co_dial(struct qa_coord *coord, struct wc_worker_id worker)
{
    struct endpoint *endpoint = co_endpoint(coord, worker);

    if (!endpoint || coord->stopping) /* nobody would end that call */
        return;
    qf_metric_inc(coord->options.metrics->dials);
    endpoint->session = ++coord->sessions;
    endpoint->connected = false;
    qa_rpc_dial(coord->rpc, endpoint->session, endpoint->address);
}

void co_closed(void *ctx, uint64_t session, const char *why, bool broke)
{
    struct qa_coord *coord = ctx;
    struct endpoint *endpoint = endpoint_of_session(coord, session);
    struct wc_api_event event = { .type = WC_API_EV_DISCONNECTED };

    if (!endpoint)
        return;
    (void)snprintf(endpoint->last_error, sizeof(endpoint->last_error), "%s", why);
    if (endpoint->connected) {
        bool expected = coord->stopping || endpoint->draining;

        QF_LOG_AT(expected ? QF_LOG_LEVEL_INFO : QF_LOG_LEVEL_WARN, "control stream closed",
                  QF_KV_STR("worker_id", endpoint->name), QF_KV_STR("address", endpoint->address),
                  QF_KV_STR("reason", why));
        endpoint->lost_ns = qf_clock_mono_ns();
        event.session.v = session;
        event.died = broke;
        if (!coord->stopping)
            co_lane_lost(coord, endpoint->worker, broke && !endpoint->draining);
    } else {
        /* A worker that is being started takes a moment: told once it looks like more than that. */
        qf_time_ms now = qf_clock_mono_ms();
        bool told;

        if (++endpoint->dials_failed == 1)
            endpoint->unreached_since = now;
        told = !endpoint->unreached_told && endpoint->dials_failed >= DIALS_TOLD &&
               now - endpoint->unreached_since >= UNREACHED_TOLD_MS && !coord->stopping;
        endpoint->unreached_told |= told;
        QF_LOG_AT(told ? QF_LOG_LEVEL_WARN : QF_LOG_LEVEL_DEBUG, "worker cannot be reached",
                  QF_KV_STR("address", endpoint->address), QF_KV_STR("reason", why),
                  QF_KV_U64("dials", endpoint->dials_failed));
    }
    event.worker = endpoint->worker;
    endpoint->session = 0;
    endpoint->connected = false;
    if (!coord->stopping)
        co_tell_work(coord, event);
}

/* Told once for each reason: it is dialled again and again, for somebody may mend it. */
static void refuse_stream(struct qa_coord *coord, const struct endpoint *endpoint,
                          const struct pb_status *status, const char *why)
{
    bool told = !endpoint->connected && strcmp(endpoint->last_error, why) == 0;

    QF_LOG_AT(told ? QF_LOG_LEVEL_DEBUG : QF_LOG_LEVEL_ERROR, "worker refused",
              QF_KV_SLICE("worker_id", status->worker_id), QF_KV_STR("address", endpoint->address),
              QF_KV_STR("reason", why));
    qa_rpc_hangup(coord->rpc, endpoint->session, why);
}

/* Who else is connected under that name; NULL: nobody. */
static const struct endpoint *namesake(const struct qa_coord *coord,
                                       const struct endpoint *endpoint, struct qf_str name)
{
    for (size_t i = 0; i < coord->endpoints.count; i++) {
        const struct endpoint *other = &coord->endpoints.items[i];

        if (other != endpoint && other->connected && qf_str_is(name, other->name))
            return other;
    }
    return NULL;
}

static void connect_stream(struct qa_coord *coord, struct endpoint *endpoint,
                           const struct pb_status *status)
{
    const struct endpoint *twin = namesake(coord, endpoint, status->worker_id);
    bool tls = coord->options.tls_ca_file != NULL;

    if (twin) { /* they would share caches and statistics, and one would be taken for the other */
        char why[ENDPOINT_ERROR_MAX];

        (void)snprintf(why, sizeof(why),
                       "the worker at %s has the same --worker-id %.*s: give each its own",
                       twin->address, QF_STR_ARG(status->worker_id));
        refuse_stream(coord, endpoint, status, why);
        return;
    }

    endpoint->protocol = pb_protocol_agree(status->protocol_version, status->protocol_newest);
    if (!endpoint->protocol) {
        char why[100];

        (void)snprintf(why, sizeof(why),
                       "the worker speaks protocol %" PRIu32 ", this API %" PRIu32 " to %" PRIu32,
                       status->protocol_version, pb_protocol_oldest, pb_protocol_newest);
        refuse_stream(coord, endpoint, status, why);
        return;
    }
    if (!qa_artifact_base_valid(status->artifact_base_url, tls)) {
        refuse_stream(coord, endpoint, status,
                      tls ? "the worker serves its artifacts without TLS: give it --http-tls-cert"
                          : "the worker's --advertise-url is not an http address");
        return;
    }
    free(endpoint->base_url);
    endpoint->base_url = qf_xmemdup0(status->artifact_base_url.data, status->artifact_base_url.len);
    (void)snprintf(endpoint->name, sizeof(endpoint->name), "%.*s", QF_STR_ARG(status->worker_id));
    endpoint->connected = true;
    endpoint->draining = false;
    endpoint->dials_failed = 0;
    endpoint->unreached_told = false;
    endpoint->last_error[0] = '\0';
    if (endpoint->lost_ns)
        qf_metric_observe(coord->options.metrics->reconnect_seconds,
                          (double)(qf_clock_mono_ns() - endpoint->lost_ns) / 1e9);
    QF_LOG_INFO("worker connected", QF_KV_STR("worker_id", endpoint->name),
                QF_KV_STR("address", endpoint->address), QF_KV_U64("slots", status->slots));
    co_tell_work(coord, (struct wc_api_event){ .type = WC_API_EV_CONNECTED,
                                               .worker = endpoint->worker,
                                               .session.v = endpoint->session });
}

void co_heartbeat(struct qa_coord *coord, const struct wc_api_effect *effect)
{
    struct pb_api_message message = { .kind = PB_API_HEARTBEAT,
                                      .u.heartbeat.sent_us = qf_clock_mono_ns() / 1000 };

    qa_rpc_send(coord->rpc, effect->session.v, &message);
}

/* --- what workers say --- */

static void hear_status(struct qa_coord *coord, struct endpoint *endpoint,
                        struct wc_api_event *event, const struct pb_status *status)
{
    const char *other_store =
        qa_store_name_refuses(coord->options.store_name, status->store_id, qf_clock_mono_ms());

    if (other_store) { /* also later: a mount went, or its name was found out by now */
        refuse_stream(coord, endpoint, status, other_store);
        return;
    }
    if (!endpoint->connected)
        connect_stream(coord, endpoint, status);
    if (!endpoint->connected)
        return;
    endpoint->disk = status->disk;
    if (status->draining && !endpoint->draining)
        QF_LOG_INFO("worker drains", QF_KV_STR("worker_id", endpoint->name));
    endpoint->draining = status->draining;
    co_lane_status(coord, endpoint, status);
    event->type = WC_API_EV_STATUS;
    event->status.worker_key = wc_worker_key(status->worker_id);
    event->status.accepting = status->accepting_work;
    event->status.draining = status->draining;
    event->status.slots = status->slots;
    event->status.queue_depth = status->queue_depth;
    co_tell_work(coord, *event);
}

static void hear_heartbeat(struct qa_coord *coord, struct wc_api_event *event,
                           const struct pb_heartbeat *heartbeat)
{
    int64_t now_us = qf_clock_mono_ns() / 1000;

    if (!heartbeat->echo) {
        struct pb_api_message echo = { .kind = PB_API_HEARTBEAT,
                                       .u.heartbeat = { heartbeat->sent_us, true } };

        qa_rpc_send(coord->rpc, event->session.v, &echo);
        return;
    }
    if (heartbeat->sent_us < 0 || heartbeat->sent_us > now_us)
        return; /* none that we sent */
    qf_metric_observe(coord->options.metrics->heartbeat_seconds,
                      (double)(now_us - heartbeat->sent_us) / 1e6);
    event->type = WC_API_EV_HEARTBEAT;
    event->sent_at = heartbeat->sent_us / 1000;
    co_tell_work(coord, *event);
}

struct qa_item *co_item_of(struct qa_coord *coord, uint64_t work, struct qa_query **ret_query)
{
    struct wc_api_item_view view;

    *ret_query = NULL;
    if (!wc_api_item(coord->wc, (struct wc_work_id){ work }, &view))
        return NULL;
    *ret_query = co_find_query(coord, view.query.v);
    return co_find_item(*ret_query, work);
}

static void hear_accepted(struct qa_coord *coord, struct wc_api_event *event)
{
    struct qa_query *query;
    struct qa_item *item = co_item_of(coord, event->work.v, &query);

    if (item && item->assigned_ns)
        qf_metric_observe(coord->options.metrics->accept_seconds,
                          (double)(qf_clock_mono_ns() - item->assigned_ns) / 1e9);
    event->type = WC_API_EV_ACCEPTED;
    co_tell_work(coord, *event);
}

static enum wc_reject reject_of(struct qf_str reason)
{
    for (int i = 0; i < WC_REJECT__COUNT; i++)
        if (qf_str_is(reason, wc_reject_name((enum wc_reject)i)))
            return (enum wc_reject)i;
    return WC_REJECT_NOT_ACCEPTING;
}

/* Should the query fail of it: what its client hears. Errors of the leaf and of the data are the
 * asker's; what else the worker was given it had from us. */
static void remember_reason(struct qa_query *query, uint64_t work, qf_rc rc, struct qf_str reason)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;

    if (rc == QF_EEXEC || rc == QF_ELIMIT || rc == QF_EUNSUPPORTED || rc == QF_ECORRUPT)
        qf_strbuf_add(&text, reason.data, reason.len);
    else
        qa_error_hide(rc == QF_ENOTFOUND || rc == QF_EDENIED ? QF_ESTORE : rc, query->name, work,
                      &text);
    (void)snprintf(query->co.reason, sizeof(query->co.reason), "%s", qf_strbuf_cstr(&text));
}

/* A worker does not find a segment that the catalogue has. It may be gone, or the worker may look in
 * another store: one more worker, if there is one, is asked before the query is planned again. */
static bool ask_another(const struct qa_coord *coord, struct qa_item *item,
                        const struct endpoint *endpoint, qf_rc rc)
{
    if (rc != QF_ENOTFOUND || !item || wc_api_stats(coord->wc)->workers_available < 2 ||
        item->missing++)
        return false;
    QF_LOG_WARN("a worker lacks a segment that the store has: is its --store the same?",
                QF_KV_STR("worker_id", endpoint->name), QF_KV_STR("address", endpoint->address));
    return true;
}

static void hear_failed(struct qa_coord *coord, struct endpoint *endpoint,
                        struct wc_api_event *event, const struct pb_failed *failed)
{
    struct qa_query *query;
    struct qa_item *item = co_item_of(coord, event->work.v, &query);
    char code[64];

    (void)snprintf(code, sizeof(code), "%.*s", QF_STR_ARG(failed->code));
    if (item)
        item->waiting_ns = qf_clock_mono_ns();
    if (query)
        remember_reason(query, event->work.v, qf_rc_from_name(code), failed->reason);
    qf_metric_inc(coord->options.metrics->work_failed);
    QF_LOG_WARN(failed->retryable ? "work failed, will be run again" : "work failed",
                QF_KV_STR("query_id", query ? query->name : "?"),
                QF_KV_U64("work_id", event->work.v), QF_KV_U64("attempt", event->attempt),
                QF_KV_STR("worker_id", endpoint->name), QF_KV_STR("code", code),
                QF_KV_SLICE("reason", failed->reason));
    event->type = WC_API_EV_FAILED;
    event->failure.rc = qf_rc_from_name(code);
    event->failure.retryable = failed->retryable;
    if (ask_another(coord, item, endpoint, event->failure.rc)) {
        event->failure.rc = QF_EIO;
        event->failure.retryable = true;
    }
    co_tell_work(coord, *event);
}

static void hear_ready(struct qa_coord *coord, const struct endpoint *endpoint,
                       struct wc_api_event *event, const struct pb_ready *ready)
{
    struct qa_query *query;
    struct qa_item *item = co_item_of(coord, event->work.v, &query);

    if (item) {
        co_absolve(coord, item);
        co_count_read(coord, item, ready);
    }
    event->type = WC_API_EV_READY;
    if (!qa_checksum_parse(ready->artifact_checksum.data, ready->artifact_checksum.len,
                           &event->checksum) ||
        !qa_artifact_url_below(ready->artifact_url, qf_str_from(endpoint->base_url))) {
        event->type = WC_API_EV_FAILED;
        event->failure.rc = QF_EPROTO;
        event->failure.retryable = true;
    }
    co_tell(coord, (struct event){
                       .machine = MACHINE_WORK, .work = *event, .fetch = co_fetch_new(ready) });
}

void co_message(void *ctx, uint64_t session, const struct pb_worker_message *message)
{
    struct qa_coord *coord = ctx;
    struct endpoint *endpoint = endpoint_of_session(coord, session);
    struct wc_api_event event = { .session.v = session };

    if (!endpoint || coord->stopping)
        return;
    event.worker = endpoint->worker;
    if (!endpoint->connected && message->kind != PB_WORKER_STATUS) {
        qa_rpc_hangup(coord->rpc, session, "the worker did not send its status first");
        return;
    }
    switch (message->kind) {
    case PB_WORKER_STATUS:
        hear_status(coord, endpoint, &event, &message->u.status);
        break;
    case PB_WORKER_HEARTBEAT:
        hear_heartbeat(coord, &event, &message->u.heartbeat);
        break;
    case PB_WORKER_ACCEPTED:
        event.work.v = message->u.accepted.work_id;
        event.attempt = message->u.accepted.attempt;
        hear_accepted(coord, &event);
        break;
    case PB_WORKER_REJECTED:
        event.type = WC_API_EV_REJECTED;
        event.work.v = message->u.rejected.work_id;
        event.attempt = message->u.rejected.attempt;
        event.reject = reject_of(message->u.rejected.reason);
        co_tell_work(coord, event);
        break;
    case PB_WORKER_READY:
        event.work.v = message->u.ready.work_id;
        event.attempt = message->u.ready.attempt;
        hear_ready(coord, endpoint, &event, &message->u.ready);
        break;
    case PB_WORKER_FAILED:
        event.work.v = message->u.failed.work_id;
        event.attempt = message->u.failed.attempt;
        hear_failed(coord, endpoint, &event, &message->u.failed);
        break;
    case PB_WORKER_JOB_REJECTED:
    case PB_WORKER_JOB_DONE:
    case PB_WORKER_JOB_FAILED:
    case PB_WORKER_JOB_PROGRESS:
        co_lane_heard(coord, endpoint, message);
        break;
    case PB_WORKER_UNKNOWN:
        break; /* of a newer version */
    }
}

/* --- what we say to workers --- */

static void log_assignment(struct qa_coord *coord, const struct qa_query *query,
                           const struct wc_api_effect *effect)
{
    const struct endpoint *endpoint = co_endpoint(coord, effect->worker);
    const char *what = "work assigned";

    if (effect->type == WC_API_DO_HEDGE)
        what = "work takes long, assigned to one more worker";
    else if (effect->attempt > 1)
        what = "work assigned again";
    QF_LOG_AT(effect->attempt > 1 ? QF_LOG_LEVEL_INFO : QF_LOG_LEVEL_DEBUG, what,
              QF_KV_STR("query_id", query->name), QF_KV_U64("work_id", effect->work.v),
              QF_KV_U64("attempt", effect->attempt),
              QF_KV_STR("worker_id", endpoint ? endpoint->name : "?"));
}

/* A worker that does not know of state maps would answer without them: it is as if it had refused such a work. */
static bool is_beyond(struct qa_coord *coord, const struct wc_api_effect *effect,
                      struct qa_query *query, struct qa_item *item)
{
    const struct endpoint *endpoint = co_endpoint(coord, effect->worker);

    if (!item->maps.count || !endpoint || endpoint->protocol >= PB_PROTOCOL_MAPS)
        return false;
    item->waiting_ns = qf_clock_mono_ns();
    (void)snprintf(query->co.reason, sizeof(query->co.reason),
                   "worker %s is of a release that cannot read state maps as info series (protocol "
                   "%" PRIu32 ", and they need %d)",
                   endpoint->name, endpoint->protocol, PB_PROTOCOL_MAPS);
    QF_LOG_WARN("work with state maps is not for this worker", QF_KV_STR("query_id", query->name),
                QF_KV_U64("work_id", effect->work.v), QF_KV_STR("worker_id", endpoint->name),
                QF_KV_U64("protocol", endpoint->protocol));
    co_tell_work(coord,
                 (struct wc_api_event){ .type = WC_API_EV_FAILED,
                                        .worker = effect->worker,
                                        .session = effect->session,
                                        .work = effect->work,
                                        .attempt = effect->attempt,
                                        .failure = { .rc = QF_EUNAVAILABLE, .retryable = true } });
    return true;
}

void co_assign(struct qa_coord *coord, const struct wc_api_effect *effect)
{
    struct qa_query *query = co_find_query(coord, effect->query.v);
    struct qa_item *item = co_find_item(query, effect->work.v);
    struct pb_api_message message = { .kind = PB_API_ASSIGN };
    struct pb_assign *assign = &message.u.assign;
    int64_t now = qf_clock_mono_ns(), left;
    struct pb_limits limits;

    if (!item || is_beyond(coord, effect, query, item))
        return;
    limits = query->env->limits;
    limits.samples_max = query->samples_max;
    left = query->co.deadline - qf_clock_mono_ms();
    *assign = (struct pb_assign){ .query_id = qf_str_from(query->name),
                                  .leaf_id = item->leaf_id,
                                  .work_id = effect->work.v,
                                  .attempt = effect->attempt,
                                  .affinity_key = item->affinity_key,
                                  .tenant = query->ask.tenant,
                                  .spec = item->spec,
                                  .segments = item->segments,
                                  .segment_count = item->segment_count,
                                  .heads = item->heads,
                                  .maps = item->maps,
                                  .limits = limits,
                                  .timeout_ms = (uint64_t)QF_MAX(left, (int64_t)1),
                                  .traceparent = query->ask.traceparent };
    if (effect->type == WC_API_DO_ASSIGN && item->waiting_ns)
        qf_metric_observe(coord->options.metrics->assign_seconds,
                          (double)(now - item->waiting_ns) / 1e9);
    item->waiting_ns = now; /* should this worker be lost, it waits from then on at the latest */
    item->assigned_ns = now;
    query->co.reason[0] = '\0'; /* what failed is being run again */
    co_count_placed(coord, item, effect);
    qa_rpc_send(coord->rpc, effect->session.v, &message);
    log_assignment(coord, query, effect);
}

void co_cancel_work(struct qa_coord *coord, const struct wc_api_effect *effect)
{
    struct pb_api_message message = { .kind = PB_API_CANCEL,
                                      .u.cancel = { .work_id = effect->work.v,
                                                    .attempt = effect->attempt,
                                                    .reason = QF_STR("no longer needed") } };

    qa_rpc_send(coord->rpc, effect->session.v, &message);
}

void co_ack(struct qa_coord *coord, const struct wc_api_effect *effect,
            const struct qa_fetch *fetch)
{
    struct pb_api_message message = {
        .kind = PB_API_ACK, .u.ack = { .work_id = effect->work.v, .attempt = effect->attempt }
    };
    char text[CHECKSUM_TEXT] = "";

    if (fetch)
        (void)snprintf(text, sizeof(text), "xxh3:%016" PRIx64 "%016" PRIx64, fetch->checksum.high,
                       fetch->checksum.low);
    message.u.ack.artifact_checksum = qf_str_from(text);
    qa_rpc_send(coord->rpc, effect->session.v, &message);
}
