/* sessions.c - streams: what APIs say and when they end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queryworker/work/work_int.h"

void qw_co_forget_session(struct qw_coordinator *co, uint64_t session)
{
    struct qw_session *known = qw_table_find(&co->sessions, session);

    if (!known)
        return;
    qw_table_remove(&co->sessions, &known->node);
    free(known);
}

static qf_rc opened(void *ctx, uint64_t session, const char *peer)
{
    struct qw_coordinator *co = ctx;
    struct qw_session *known;
    qf_rc rc;

    if (!co->server)
        return QF_EUNAVAILABLE; /* it is not up yet, and will not be */
    known = qf_xcalloc(1, sizeof(*known));
    known->node.key = session;
    qw_table_add(&co->sessions, &known->node);
    rc = qw_co_open_session(
        co, (struct wc_worker_event){ .type = WC_WORKER_EV_SESSION_OPEN, .session = { session } });
    if (rc) {
        qw_co_forget_session(co, session);
        QF_LOG_WARN("session refused", QF_KV_STR("peer", peer), QF_KV_STR("why", qf_rc_text(rc)));
        return rc;
    }
    qf_metric_inc(co->m->sessions_opened);
    QF_LOG_INFO("session opened", QF_KV_U64("session", session), QF_KV_STR("peer", peer));
    return QF_OK;
}

static void post_closed(struct qw_coordinator *co, uint64_t session)
{
    qw_co_forget_session(co, session);
    qw_jobs_lost(co, session);
    qw_co_post(co, (struct wc_worker_event){ .type = WC_WORKER_EV_SESSION_CLOSED,
                                             .session = { session } });
}

/* Also called while effects are performed: one of them found the stream dead. */
static void closed(void *ctx, uint64_t session, enum qw_closed how, const char *why)
{
    static const enum qw_session_end ends[] = { [QW_CLOSED_BY_PEER] = QW_SESSION_END_PEER,
                                                [QW_CLOSED_LOST] = QW_SESSION_END_LOST,
                                                [QW_CLOSED_STUCK] = QW_SESSION_END_STUCK,
                                                [QW_CLOSED_PROTOCOL] = QW_SESSION_END_PROTOCOL };
    struct qw_coordinator *co = ctx;

    QF_LOG_INFO("session closed", QF_KV_U64("session", session), QF_KV_STR("why", why));
    qf_metric_add(co->m->sessions_closed, co->done ? QW_SESSION_END_SHUTDOWN : ends[how], 1);
    post_closed(co, session);
}

/* This side ends the stream, with a status that says why. */
static void refuse(struct qw_coordinator *co, uint64_t session, const char *why)
{
    QF_LOG_WARN("session ended", QF_KV_U64("session", session), QF_KV_STR("why", why));
    qf_metric_add(co->m->sessions_closed, QW_SESSION_END_PROTOCOL, 1);
    /* QF_EEXEC is the row of errors.def whose gRPC status is FAILED_PRECONDITION. */
    qw_server_end(co->server, session, QF_EEXEC, why, true);
    post_closed(co, session);
}

static void greet(struct qw_coordinator *co, struct qw_session *session,
                  const struct pb_hello *hello)
{
    uint32_t protocol = pb_protocol_agree(hello->protocol_version, hello->protocol_newest);
    char why[120];

    if (!protocol) {
        (void)snprintf(why, sizeof(why), "protocol version %u is not supported, only %u to %u are",
                       hello->protocol_version, pb_protocol_oldest, pb_protocol_newest);
        refuse(co, session->node.key, why);
        return;
    }
    session->greeted = true;
    (void)snprintf(session->api_id, sizeof(session->api_id), "%.*s", QF_STR_ARG(hello->api_id));
    QF_LOG_INFO("session greeted", QF_KV_U64("session", session->node.key),
                QF_KV_STR("api_id", session->api_id), QF_KV_SLICE("software", hello->software),
                QF_KV_U64("protocol", protocol));
}

static void assign(struct qw_coordinator *co, uint64_t session, struct qf_arena *arena,
                   const struct pb_assign *message)
{
    bool limited = message->timeout_ms && message->timeout_ms < INT32_MAX;

    qw_co_post_assign(
        co,
        (struct wc_worker_event){
            .type = WC_WORKER_EV_ASSIGN,
            .session = { session },
            .work = { message->work_id },
            .attempt = message->attempt,
            .assign = { .query = { qf_hash_bytes(message->query_id) },
                        .leaf = { message->leaf_id },
                        .bytes = qf_arena_used(arena),
                        .deadline =
                            limited ? qf_clock_mono_ms() + (qf_time_ms)message->timeout_ms : 0 } },
        qw_assignment_new(arena, message, qf_clock_mono_ns()));
}

static void cancel_one(struct qw_coordinator *co, uint64_t session, uint64_t work, uint32_t attempt)
{
    qw_co_post(co, (struct wc_worker_event){ .type = WC_WORKER_EV_CANCEL,
                                             .session = { session },
                                             .work = { work },
                                             .attempt = attempt });
}

static void cancel(struct qw_coordinator *co, uint64_t session, const struct pb_cancel *message)
{
    if (message->attempt) {
        cancel_one(co, session, message->work_id, message->attempt);
        return;
    }
    for (size_t i = 0; i < QW_TABLE_BUCKETS; i++)
        for (struct qw_node *node = co->runs.buckets[i]; node; node = node->next) {
            const struct qw_run *run = (const struct qw_run *)node;

            if (run->session == session && run->work == message->work_id)
                cancel_one(co, session, message->work_id, run->attempt);
        }
}

static void ack(struct qw_coordinator *co, uint64_t session, const struct pb_ack *message)
{
    qw_co_post(co, (struct wc_worker_event){ .type = WC_WORKER_EV_ACK,
                                             .session = { session },
                                             .work = { message->work_id },
                                             .attempt = message->attempt });
}

static void heartbeat(struct qw_coordinator *co, uint64_t session,
                      const struct pb_heartbeat *message)
{
    /* Unsigned: a peer may send back whatever it likes. */
    int64_t rtt_us = (int64_t)((uint64_t)(qf_clock_mono_ns() / 1000) - (uint64_t)message->sent_us);

    if (!message->echo)
        qw_co_post(co, (struct wc_worker_event){ .type = WC_WORKER_EV_HEARTBEAT,
                                                 .session = { session },
                                                 .sent_at = message->sent_us });
    else if (rtt_us >= 0 && rtt_us < 60000000)
        qf_metric_observe(co->m->heartbeat_rtt, (double)rtt_us / 1e6);
}

static void message(void *ctx, uint64_t session, struct qf_arena *arena,
                    const struct pb_api_message *message)
{
    struct qw_coordinator *co = ctx;
    struct qw_session *known = qw_table_find(&co->sessions, session);

    if (known && !known->greeted && message->kind != PB_API_HELLO)
        refuse(co, session, "the first message must be Hello");
    else if (known && message->kind == PB_API_HELLO)
        greet(co, known, &message->u.hello);
    else if (known && message->kind == PB_API_ASSIGN)
        assign(co, session, QF_TAKE(arena), &message->u.assign);
    else if (known && message->kind == PB_API_CANCEL)
        cancel(co, session, &message->u.cancel);
    else if (known && message->kind == PB_API_ACK)
        ack(co, session, &message->u.ack);
    else if (known && message->kind == PB_API_HEARTBEAT)
        heartbeat(co, session, &message->u.heartbeat);
    else if (known && message->kind == PB_API_JOB)
        qw_jobs_assign(co, session, QF_TAKE(arena), &message->u.job);
    else if (known && message->kind == PB_API_JOB_CANCEL)
        qw_jobs_cancel(co, session, &message->u.job_cancel);
    else
        qf_metric_inc(co->m->messages_unknown);
    (void)qf_arena_free(arena);
    qw_co_run(co);
}

struct qw_server_handler qw_coordinator_handler(struct qw_coordinator *co)
{
    return (struct qw_server_handler){ co, opened, message, closed };
}

/* Once a second: a heartbeat to every API. */
void qw_co_beat(struct qw_coordinator *co)
{
    QF_VEC(uint64_t) ids = { 0 };

    /* Sending may end a session, which changes the table. */
    for (size_t i = 0; i < QW_TABLE_BUCKETS; i++)
        for (struct qw_node *node = co->sessions.buckets[i]; node; node = node->next)
            QF_VEC_PUSH(&ids, node->key);
    for (size_t i = 0; i < ids.count; i++) {
        struct pb_worker_message beat = { .kind = PB_WORKER_HEARTBEAT,
                                          .u.heartbeat = { qf_clock_mono_ns() / 1000, false } };

        (void)qw_server_send(co->server, ids.items[i], &beat);
    }
    QF_VEC_DONE(&ids);
}
