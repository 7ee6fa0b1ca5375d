/* fakes.c - a control client, a fetcher and a pool of paper: they write down what they are asked. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/pool.h"
#include "tests/unit/queryapi/dispatch/desk.h"

/* --- control client --- */

struct qa_rpc {
    struct qa_rpc_options options;
};

struct qa_rpc *qa_rpc_new(const struct qa_rpc_options *options, struct qf_err *err)
{
    struct qa_rpc *rpc = qf_xcalloc(1, sizeof(*rpc));

    (void)err;
    rpc->options = *options;
    return rpc;
}

struct qa_rpc *qa_rpc_free(struct qa_rpc *rpc)
{
    free(rpc);
    return NULL;
}

void qa_rpc_cancel_all(struct qa_rpc *rpc)
{
    (void)rpc;
    desk_note("hang up on all");
}

size_t qa_rpc_count(const struct qa_rpc *rpc)
{
    (void)rpc;
    return 0;
}

void qa_rpc_dial(struct qa_rpc *rpc, uint64_t session, const char *address)
{
    (void)rpc;
    desk_note("dial s%" PRIu64 " %s", session, address);
}

void qa_rpc_send(struct qa_rpc *rpc, uint64_t session, const struct pb_api_message *message)
{
    (void)rpc;
    switch (message->kind) {
    case PB_API_ASSIGN:
        desk_note("s%" PRIu64 " assign k%" PRIu64 "#%" PRIu32, session, message->u.assign.work_id,
                  message->u.assign.attempt);
        break;
    case PB_API_CANCEL:
        desk_note("s%" PRIu64 " cancel k%" PRIu64 "#%" PRIu32, session, message->u.cancel.work_id,
                  message->u.cancel.attempt);
        break;
    case PB_API_ACK:
        desk_note("s%" PRIu64 " ack k%" PRIu64 "#%" PRIu32 " %.*s", session, message->u.ack.work_id,
                  message->u.ack.attempt, QF_STR_ARG(message->u.ack.artifact_checksum));
        break;
    case PB_API_HEARTBEAT:
        desk_note("s%" PRIu64 " %s", session, message->u.heartbeat.echo ? "echo" : "heartbeat");
        break;
    case PB_API_JOB:
        desk_note("s%" PRIu64 " job j%" PRIu64 "#%" PRIu32, session, message->u.job.job_id,
                  message->u.job.attempt);
        break;
    case PB_API_JOB_CANCEL:
        desk_note("s%" PRIu64 " cancel j%" PRIu64 "#%" PRIu32, session,
                  message->u.job_cancel.job_id, message->u.job_cancel.attempt);
        break;
    case PB_API_HELLO:
    case PB_API_UNKNOWN:
        desk_note("s%" PRIu64 " ?", session);
        break;
    }
}

void qa_rpc_hangup(struct qa_rpc *rpc, uint64_t session, const char *why)
{
    (void)rpc;
    desk_note("hang up s%" PRIu64 ": %s", session, why);
}

void qa_rpc_complete(struct qa_rpc *rpc, void *tag, bool ok)
{
    (void)rpc;
    (void)tag;
    desk_note("tag %d", ok);
}

void qa_rpc_tick(struct qa_rpc *rpc, qf_time_ms now)
{
    (void)rpc;
    (void)now;
}

/* --- fetcher --- */

struct qa_fetcher {
    struct qa_fetcher_options options;
};

struct qa_fetcher *qa_fetcher_new(const struct qa_fetcher_options *options, struct qf_err *err)
{
    struct qa_fetcher *fetcher = qf_xcalloc(1, sizeof(*fetcher));

    (void)err;
    fetcher->options = *options;
    return fetcher;
}

struct qa_fetcher *qa_fetcher_free(struct qa_fetcher *fetcher)
{
    free(fetcher);
    return NULL;
}

bool qa_fetcher_submit(struct qa_fetcher *fetcher, struct qa_fetch *fetch)
{
    (void)fetcher;
    if (desk_now->fetcher_full)
        return false;
    desk_note("fetch k%" PRIu64 "#%" PRIu32 " %s", fetch->work, fetch->attempt, fetch->url);
    QF_VEC_PUSH(&desk_now->fetches, fetch);
    return true;
}

bool qa_checksum_parse(const char *text, size_t len, struct wc_checksum *ret_checksum)
{
    if (len != 1)
        return false;
    *ret_checksum = (struct wc_checksum){ 0, (uint64_t)(text[0] - '0') };
    return true;
}

void qa_artifact_done(struct qa_artifact *artifact)
{
    if (artifact->data)
        desk_note("drop artifact");
    free(artifact->data);
    *artifact = (struct qa_artifact){ 0 };
}

struct qa_fetch *qa_fetch_free(struct qa_fetch *fetch)
{
    if (!fetch)
        return NULL;
    qa_artifact_done(&fetch->artifact);
    free(fetch->url);
    free(fetch);
    return NULL;
}

/* --- pool --- */

bool qf_pool_submit(struct qf_pool *pool, void (*fn)(void *arg), void *arg)
{
    (void)pool;
    if (desk_now->pool_full)
        return false;
    QF_VEC_PUSH(&desk_now->tasks, (struct task){ fn, arg });
    return true;
}

bool qf_pool_submit_later(struct qf_pool *pool, void (*fn)(void *arg), void *arg)
{
    return qf_pool_submit(pool, fn, arg);
}

void qf_pool_nudge(struct qf_pool *pool)
{
    (void)pool;
}

/* --- turns and the clock (linked with --wrap) --- */

void __wrap_qa_query_turn(struct qa_query *query, enum qa_turn turn);
int64_t __real_qf_clock_mono_ms(void);
int64_t __wrap_qf_clock_mono_ms(void);

static void plan(struct qa_query *query)
{
    qa_query_reset(query);
    desk_note("plan %s%s", query->name, query->co.replans ? " again" : "");
    if (desk_now->plan_rc) {
        qa_query_fail(query, desk_now->plan_rc, "no plan");
        return;
    }
    query->items = QF_ARENA_ARRAY(query->arena, struct qa_item, QF_MAX(desk_now->items, (size_t)1));
    query->item_count = desk_now->items;
    for (size_t i = 0; i < query->item_count; i++)
        query->items[i] = (struct qa_item){ .leaf_id = 1,
                                            .affinity = i,
                                            .expect_ms = desk_now->expect_ms,
                                            .segments = &desk_now->segment,
                                            .maps = desk_now->maps,
                                            .segment_count = 1 };
    query->next = QA_NEXT_WORK;
}

static void answer(struct qa_query *query)
{
    desk_note("answer %s", query->name);
    if (desk_now->pauses > 0) {
        desk_now->pauses--;
        query->next = QA_NEXT_ROOM;
        return;
    }
    query->rc = QF_OK;
    qh_stream_answer(query->stream, 200, "text/plain", QF_STR("done"));
}

void __wrap_qa_query_turn(struct qa_query *query, enum qa_turn turn)
{
    query->next = QA_NEXT_OVER;
    if (atomic_load(&query->canceled)) {
        desk_note("canceled %s", query->name);
        qa_query_fail(query, query->cancel_rc, qa_query_cancel_text(query));
    } else if (turn == QA_TURN_PLAN) {
        plan(query);
    } else {
        answer(query);
    }
}

int64_t __wrap_qf_clock_mono_ms(void)
{
    return __real_qf_clock_mono_ms() + (desk_now ? desk_now->later_ms : 0);
}
