/* coordinator.c - mailbox in, steps of the two machines, effects out. */
#include "queryapi/dispatch/coordinator.h"

#include <poll.h>
#include <stdlib.h>

#include "base/net/tls_files.h"
#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queryapi/dispatch/coordinator_int.h"

/* Messages handled before timers are looked at again. */
#define BURST_MAX 256
/* The longest sleep: how often gauges and dial timeouts are looked at. */
#define NAP_MS 250
#define MAILBOX_MAX 65536
/* How long streams may take to close when stopping. */
#define CLOSE_MS 3000

void co_post(struct qa_coord *coord, struct msg msg)
{
    struct msg *copy = qf_xmalloc(sizeof(*copy));

    *copy = msg;
    /* The coordinator never waits for its writers, so waiting for it always ends. */
    if (!qf_mailbox_send(coord->box, copy, -1)) {
        (void)qh_stream_drop(copy->stream);
        (void)qa_fetch_free(copy->fetch);
        (void)qa_question_free(copy->question);
        free(copy->text);
        free(copy->tenant);
        free(copy);
    }
}

static void log_lost(struct qa_coord *coord, const struct wc_api_effect *effect)
{
    const struct endpoint *endpoint = co_endpoint(coord, effect->worker);

    qf_metric_inc(coord->options.metrics->disconnects);
    QF_LOG_AT(endpoint && endpoint->draining ? QF_LOG_LEVEL_INFO : QF_LOG_LEVEL_WARN,
              "worker lost, its work goes to others",
              QF_KV_STR("worker_id", endpoint ? endpoint->name : "?"),
              QF_KV_STR("reason", qf_rc_name(effect->rc)));
}

static void perform_work(struct qa_coord *coord, struct event *cause,
                         const struct wc_api_effect *effect)
{
    switch (effect->type) {
    case WC_API_DO_DIAL:
        co_dial(coord, effect->worker);
        break;
    case WC_API_DO_HANGUP:
        qa_rpc_hangup(coord->rpc, effect->session.v, "no longer wanted, or silent for too long");
        break;
    case WC_API_DO_HEARTBEAT:
        co_heartbeat(coord, effect);
        break;
    case WC_API_DO_LOST:
        co_lane_lost(coord, effect->worker,
                     false); /* if it died, its stream's end said so before */
        log_lost(coord, effect);
        break;
    case WC_API_DO_BLAMED:
        co_blame(coord, effect);
        break;
    case WC_API_DO_ASSIGN:
    case WC_API_DO_HEDGE:
        co_assign(coord, effect);
        break;
    case WC_API_DO_CANCEL:
        co_cancel_work(coord, effect);
        break;
    case WC_API_DO_FETCH:
        co_fetch(coord, effect, &cause->fetch);
        break;
    case WC_API_DO_ACK:
        co_ack(coord, effect, cause->work.type == WC_API_EV_FETCHED ? cause->fetch : NULL);
        break;
    case WC_API_DO_COMMITTED:
        co_commit(coord, effect, cause->fetch);
        break;
    case WC_API_DO_QUERY_ENDED:
        co_work_over(coord, effect->query, effect->rc);
        break;
    case WC_API_DO__COUNT:
        break;
    }
    co_explain_effect(coord, effect, cause->fetch);
}

static void step_work(struct qa_coord *coord, struct event *event)
{
    struct wc_api_effects effects = { 0 };
    qf_rc rc;

    event->work.now = qf_clock_mono_ms();
    event->work.random = qf_prng_next(&coord->prng);
    rc = wc_api_step(coord->wc, &event->work, &effects);
    if (rc != QF_OK && event->work.type == WC_API_EV_QUERY_BEGIN)
        co_work_over(coord, event->work.query, QF_EBUSY);
    else if (rc != QF_OK)
        QF_LOG_ERROR("event refused", QF_KV_STR("event", wc_api_event_name(event->work.type)),
                     QF_KV_STR("reason", qf_rc_name(rc)));
    co_explain_heard(coord, event);
    for (size_t i = 0; i < effects.count; i++)
        perform_work(coord, event, &effects.items[i]);
}

static void step_life(struct qa_coord *coord, struct wc_life_event *event)
{
    struct wc_life_effects effects = { 0 };
    qf_rc rc;

    event->now = qf_clock_mono_ms();
    rc = wc_life_step(coord->life, event, &effects);
    if (event->type == WC_LIFE_EV_SUBMIT)
        co_submitted(coord, co_find_query(coord, event->query.v), rc);
    for (size_t i = 0; i < effects.count; i++)
        co_perform_life(coord, &effects.items[i]);
}

void co_tell(struct qa_coord *coord, struct event event)
{
    QF_VEC_PUSH(&coord->events, event);
    if (coord->telling)
        return;
    coord->telling = true;
    for (size_t i = 0; i < coord->events.count; i++) {
        struct event next = coord->events.items[i]; /* performing it may move the others */

        if (next.machine == MACHINE_LIFE)
            step_life(coord, &next.life);
        else
            step_work(coord, &next);
        co_fetch_drop(coord, next.fetch);
        free(next.items);
    }
    coord->events.count = 0;
    coord->telling = false;
}

void co_tell_life(struct qa_coord *coord, struct wc_life_event event)
{
    co_tell(coord, (struct event){ .machine = MACHINE_LIFE, .life = event });
}

void co_tell_work(struct qa_coord *coord, struct wc_api_event event)
{
    co_tell(coord, (struct event){ .machine = MACHINE_WORK, .work = event });
}

void co_handle(struct qa_coord *coord, struct msg *msg)
{
    switch (msg->kind) {
    case MSG_SUBMIT:
        co_submit(coord, msg->query);
        break;
    case MSG_TURN_DONE:
        co_turn_done(coord, msg->query);
        break;
    case MSG_STREAM:
        co_stream_event(coord, msg->id, (enum qh_stream_event)msg->number);
        break;
    case MSG_CANCEL:
        co_cancel_by_name(coord, msg->text, msg->tenant, msg->stream);
        break;
    case MSG_LIFT:
        co_lift(coord, msg->text, msg->stream);
        break;
    case MSG_INSPECT:
        co_inspect(coord, (enum qa_inspect)msg->number, msg->tenant, msg->id, msg->stream);
        break;
    case MSG_WATCH:
        co_watch(coord, (enum qa_inspect)msg->number, msg->tenant, msg->id, msg->stream);
        break;
    case MSG_TAG:
        qa_rpc_complete(coord->rpc, msg->tag, msg->number != 0);
        break;
    case MSG_FETCHED:
        co_fetched(coord, msg->fetch);
        break;
    case MSG_ROLL:
        co_rolled(coord, QF_TAKE(msg->text));
        break;
    case MSG_TOLD:
        co_told(coord, msg->question);
        break;
    case MSG_ENDPOINTS:
        if (!coord->stopping)
            co_endpoints(coord, msg->text);
        break;
    case MSG_JOBS:
        co_jobs(coord, msg->tag);
        break;
    case MSG_JOBS_CANCEL:
        co_jobs_cancel(coord);
        break;
    case MSG_COMPACTION:
        free(coord->lane.compaction);
        coord->lane.compaction = QF_TAKE(msg->text);
        break;
    case MSG_DRAIN:
        coord->draining = true;
        coord->watch_due = qf_clock_mono_ms(); /* who watches would be watching for ever */
        co_tell_life(coord, (struct wc_life_event){ .type = msg->number ? WC_LIFE_EV_CUT
                                                                        : WC_LIFE_EV_DRAIN });
        break;
    case MSG_STOP:
        coord->stopping = true;
        coord->watch_due = qf_clock_mono_ms();
        co_jobs_cancel(coord);
        co_tell_life(coord, (struct wc_life_event){ .type = WC_LIFE_EV_CUT });
        break;
    }
    (void)qh_stream_drop(msg->stream);
    free(msg->text);
    free(msg->tenant);
    free(msg);
}

static int64_t time_to_sleep(const struct qa_coord *coord, qf_time_ms now)
{
    qf_time_ms next = QF_MIN(wc_api_deadline(coord->wc), wc_life_deadline(coord->life));

    next = QF_MIN(next, wc_lane_deadline(coord->lane.machine));
    next = QF_MIN(next, coord->explain_due);
    next = QF_MIN(next, coord->watch_due);
    if (next <= now)
        return 0;
    return QF_MIN(next - now, (int64_t)NAP_MS);
}

void co_tick(struct qa_coord *coord)
{
    qf_time_ms now = qf_clock_mono_ms();

    if (now >= wc_api_deadline(coord->wc))
        co_tell_work(coord, (struct wc_api_event){ .type = WC_API_EV_TICK });
    if (now >= wc_life_deadline(coord->life))
        co_tell_life(coord, (struct wc_life_event){ .type = WC_LIFE_EV_TICK });
    co_lane_tick(coord, now);
    co_explain_tick(coord, now);
    co_watch_tick(coord, now);
}

static void look_at_timers(struct qa_coord *coord, qf_time_ms *next_look)
{
    qf_time_ms now = qf_clock_mono_ms();

    co_tick(coord);
    if (now >= *next_look) {
        qa_rpc_tick(coord->rpc, now);
        co_update_metrics(coord);
        qf_pool_nudge(coord->options.pool);
        *next_look = now + NAP_MS;
    }
}

static void run(void *arg)
{
    struct qa_coord *coord = arg;
    qf_time_ms next_look = 0, close_by = QF_TIME_NEVER;

    for (;;) {
        qf_time_ms now = qf_clock_mono_ms();
        struct msg *msg = qf_mailbox_receive(coord->box, time_to_sleep(coord, now));

        for (int i = 0; msg && i < BURST_MAX; i++) {
            co_handle(coord, msg);
            msg = i + 1 < BURST_MAX ? qf_mailbox_try_receive(coord->box) : NULL;
        }
        look_at_timers(coord, &next_look);
        if (!coord->stopping || atomic_load(&coord->query_count) > 0)
            continue;
        if (close_by == QF_TIME_NEVER) {
            close_by = now + CLOSE_MS;
            qa_rpc_cancel_all(coord->rpc);
        }
        if (qa_rpc_count(coord->rpc) == 0 || now >= close_by)
            return;
    }
}

static void post_tag(void *ctx, void *tag, bool ok)
{
    co_post(ctx, (struct msg){ .kind = MSG_TAG, .tag = tag, .number = ok });
}

static bool try_post_tag(void *ctx, void *tag, bool ok)
{
    struct qa_coord *coord = ctx;
    struct msg *msg = qf_xcalloc(1, sizeof(*msg));

    *msg = (struct msg){ .kind = MSG_TAG, .tag = tag, .number = ok };
    if (qf_mailbox_try_send(coord->box, msg))
        return true;
    free(msg);
    return false;
}

static void post_fetched(void *ctx, struct qa_fetch *fetch)
{
    co_post(ctx, (struct msg){ .kind = MSG_FETCHED, .fetch = fetch });
}

static void post_told(void *ctx, struct qa_question *question)
{
    co_post(ctx, (struct msg){ .kind = MSG_TOLD, .question = question });
}

static void trace(void *ctx, const char *line, size_t len)
{
    (void)ctx;
    QF_LOG_DEBUG("core", QF_KV_SLICE("step", ((struct qf_str){ line, len })));
}

static bool make_machines(struct qa_coord *coord)
{
    struct wc_api_limits work = wc_api_limits_default();
    struct wc_life_limits life = wc_life_limits_default();

    work.queries_max = life.queries_max = (uint32_t)coord->options.queries_max;
    work.worker_wait_ms = coord->options.worker_wait_ms;
    work.hedge_after = coord->options.hedge_after;
    work.deaths_max =
        coord->options.quarantine_after ? coord->options.quarantine_after : UINT32_MAX;
    life.active_max = (uint32_t)QF_MIN(coord->options.queries_active_max, (size_t)UINT32_MAX);
    life.tenant_queue_max = (uint32_t)QF_MIN(coord->options.tenant_queue_max, (size_t)UINT32_MAX);
    coord->life = wc_life_new(&life);
    coord->wc = wc_api_new(&work);
    if (!coord->life || !coord->wc || !co_lane_init(coord) || !co_quarantine_init(coord))
        return false;
    if (qf_log_enabled(QF_LOG_LEVEL_DEBUG)) {
        wc_life_trace(coord->life, trace, NULL);
        wc_api_trace(coord->wc, trace, NULL);
        wc_lane_trace(coord->lane.machine, trace, NULL);
    }
    return true;
}

/* The files for mutual TLS with workers, if there are any. */
static bool read_tls_files(struct qa_coord *coord, struct qf_err *err)
{
    const struct qa_coord_options *options = &coord->options;
    struct qf_tls_paths paths = { options->tls_ca_file, options->tls_cert_file,
                                  options->tls_key_file };

    if (!options->tls_ca_file)
        return true;
    coord->tls = qf_tls_files_new(&paths, err);
    return coord->tls != NULL;
}

static bool start_asker(struct qa_coord *coord, struct qf_err *err)
{
    struct qa_asker_options options = { .catalog = coord->options.catalog,
                                        .maps = true,
                                        .maps_age_ms_max = coord->options.state_age_ms_max,
                                        .questions_max = coord->options.queries_max,
                                        .query_timeout_ms = coord->options.query_timeout_ms,
                                        .key_file = coord->options.ingest_key_file,
                                        .tls_ca_file = coord->options.ingest_ca_file,
                                        .asked = coord->options.metrics->fresh_asked,
                                        .seconds = coord->options.metrics->fresh_seconds,
                                        .done = post_told,
                                        .ctx = coord };

    if (!coord->options.ingest)
        return true;
    coord->asker = qa_asker_new(&options, err);
    return coord->asker != NULL;
}

static bool start_parts(struct qa_coord *coord, struct qf_err *err)
{
    struct qa_rpc_options rpc = { .api_id = coord->options.api_id,
                                  .post = post_tag,
                                  .try_post = try_post_tag,
                                  .message = co_message,
                                  .closed = co_closed,
                                  .ctx = coord,
                                  .tls = coord->tls,
                                  .tls_server_name = coord->options.tls_server_name };
    struct qa_fetcher_options fetch = { .spool_dir = coord->options.spool_dir,
                                        .spool_bytes_max = coord->options.spool_bytes_max,
                                        .spool_bytes = &coord->spool_bytes,
                                        .memory_bytes_max = coord->options.artifact_memory_bytes,
                                        .concurrency_max = coord->options.fetch_concurrency_max,
                                        .tls = coord->tls,
                                        .tls_server_name = coord->options.tls_server_name,
                                        .done = post_fetched,
                                        .ctx = coord };

    if (!make_machines(coord)) {
        (void)qf_err_set(err, QF_ENOMEM, "out of memory");
        return false;
    }
    coord->fetcher = qa_fetcher_new(&fetch, err);
    if (!coord->fetcher || !start_asker(coord, err))
        return false;
    coord->rpc = qa_rpc_new(&rpc, err);
    return coord->rpc != NULL;
}

struct qa_coord *co_new(const struct qa_coord_options *options, struct qf_err *err)
{
    struct qa_coord *coord = qf_xcalloc(1, sizeof(*coord));

    coord->options = *options;
    coord->explain_due = coord->watch_due = QF_TIME_NEVER;
    coord->prng.state = (uint64_t)qf_clock_mono_ns();
    coord->box = qf_mailbox_new(MAILBOX_MAX);
    coord->slot_count = options->queries_max + 1;
    coord->slots = qf_xcalloc(coord->slot_count, sizeof(*coord->slots));
    coord->free_slots = qf_xcalloc(coord->slot_count, sizeof(*coord->free_slots));
    while (coord->free_slot_count < coord->slot_count) {
        coord->free_slots[coord->free_slot_count] =
            (uint32_t)(coord->slot_count - 1 - coord->free_slot_count);
        coord->free_slot_count++;
    }
    if (read_tls_files(coord, err) && start_parts(coord, err))
        return coord;
    co_free(coord);
    return NULL;
}

struct qa_coord *qa_coord_new(const struct qa_coord_options *options, struct qf_err *err)
{
    struct qa_coord *coord = co_new(options, err);

    if (!coord)
        return NULL;
    coord->thread = qf_thread_start("coordinator", run, coord);
    if (coord->thread)
        return coord;
    (void)qf_err_set(err, QF_EUNAVAILABLE, "cannot start a thread");
    return qa_coord_free(coord);
}

static void drop_msg(void *arg)
{
    struct msg *msg = arg;

    if (msg->kind == MSG_SUBMIT)
        (void)qa_query_free(msg->query);
    (void)qh_stream_drop(msg->stream);
    (void)qa_fetch_free(msg->fetch);
    (void)qa_question_free(msg->question);
    free(msg->text);
    free(msg->tenant);
    free(msg);
}

void co_free(struct qa_coord *coord)
{
    (void)qa_fetcher_free(coord->fetcher);
    (void)qa_asker_free(coord->asker);
    (void)qf_tls_files_free(coord->tls);
    /* A call that did not end in time holds gRPC's queue: leave both to the exit of the process. */
    if (coord->rpc && qa_rpc_count(coord->rpc) == 0)
        (void)qa_rpc_free(coord->rpc);
    qf_mailbox_close(coord->box);
    (void)qf_mailbox_free(coord->box, drop_msg);
    (void)wc_api_free(coord->wc);
    co_lane_done(coord);
    co_quarantine_done(coord);
    co_finished_done(coord);
    co_watch_done(coord);
    (void)wc_life_free(coord->life);
    for (size_t i = 0; i < coord->endpoints.count; i++) {
        free(coord->endpoints.items[i].address);
        free(coord->endpoints.items[i].base_url);
    }
    QF_VEC_DONE(&coord->endpoints);
    QF_VEC_DONE(&coord->events);
    free(coord->slots);
    free(coord->free_slots);
    free(coord);
}

struct qa_coord *qa_coord_free(struct qa_coord *coord)
{
    if (!coord)
        return NULL;
    if (coord->thread) {
        co_post(coord, (struct msg){ .kind = MSG_STOP });
        (void)qf_thread_join(coord->thread);
    }
    while (atomic_load(&coord->pages) > 0) /* the pool still makes answers of some rows */
        (void)poll(NULL, 0, 1);
    co_free(coord);
    return NULL;
}

void qa_coord_submit(struct qa_coord *coord, struct qa_query *query)
{
    co_post(coord, (struct msg){ .kind = MSG_SUBMIT, .query = query });
}

void qa_coord_cancel(struct qa_coord *coord, struct qf_str name, struct qf_str tenant,
                     struct qh_stream *stream)
{
    co_post(coord, (struct msg){ .kind = MSG_CANCEL,
                                 .text = qf_xmemdup0(name.data, name.len),
                                 .tenant = qf_xmemdup0(tenant.data, tenant.len),
                                 .stream = qh_stream_ref(stream) });
}

void qa_coord_lift(struct qa_coord *coord, struct qf_str segment, struct qh_stream *stream)
{
    co_post(coord, (struct msg){ .kind = MSG_LIFT,
                                 .text = qf_xmemdup0(segment.data, segment.len),
                                 .stream = qh_stream_ref(stream) });
}

static void post_sight(struct qa_coord *coord, enum msg_kind kind, enum qa_inspect what,
                       struct qf_str tenant, size_t limit, struct qh_stream *stream)
{
    co_post(coord, (struct msg){ .kind = kind,
                                 .number = (int)what,
                                 .id = QF_MIN(limit, (size_t)QA_INSPECT_MAX),
                                 .tenant = qf_xmemdup0(tenant.data, tenant.len),
                                 .stream = qh_stream_ref(stream) });
}

void qa_coord_inspect(struct qa_coord *coord, enum qa_inspect what, struct qf_str tenant,
                      size_t limit, struct qh_stream *stream)
{
    post_sight(coord, MSG_INSPECT, what, tenant, limit, stream);
}

void qa_coord_watch(struct qa_coord *coord, enum qa_inspect what, struct qf_str tenant,
                    size_t limit, struct qh_stream *stream)
{
    post_sight(coord, MSG_WATCH, what, tenant, limit, stream);
}

void qa_coord_endpoints(struct qa_coord *coord, const char *const *addresses, size_t count)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    for (size_t i = 0; i < count; i++)
        qf_strbuf_printf(&text, "%s\n", addresses[i]);
    co_post(coord, (struct msg){ .kind = MSG_ENDPOINTS, .text = qf_strbuf_take(&text) });
}

struct qa_asker *qa_coord_asker(struct qa_coord *coord)
{
    return coord->asker;
}

void qa_coord_drain(struct qa_coord *coord)
{
    co_post(coord, (struct msg){ .kind = MSG_DRAIN });
}

void qa_coord_cut(struct qa_coord *coord)
{
    co_post(coord, (struct msg){ .kind = MSG_DRAIN, .number = 1 });
}

size_t qa_coord_query_count(const struct qa_coord *coord)
{
    return atomic_load(&coord->query_count);
}
