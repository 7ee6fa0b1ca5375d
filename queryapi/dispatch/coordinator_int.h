/* coordinator_int.h - what the files of the coordinator share. Everything here belongs to the
 * coordinator's thread unless it says otherwise. */
#ifndef QUERYAPI_DISPATCH_COORDINATOR_INT_H
#define QUERYAPI_DISPATCH_COORDINATOR_INT_H

#include "base/pure/prng.h"
#include "base/pure/vec.h"
#include "base/sys/mailbox.h"
#include "base/sys/thread.h"
#include "queryapi/dispatch/coordinator.h"
#include "queryapi/fetch/fetcher.h"
#include "queryapi/rpc/control_client.h"
#include "workcoord/api.h"
#include "workcoord/rendezvous.h"

enum msg_kind {
    MSG_SUBMIT,    /* query */
    MSG_TURN_DONE, /* query */
    MSG_STREAM,    /* id, number: enum qh_stream_event */
    MSG_CANCEL,    /* text, tenant, stream */
    MSG_INSPECT,   /* number: enum qa_inspect, tenant, stream */
    MSG_TAG,       /* tag, number: ok */
    MSG_FETCHED,   /* fetch */
    MSG_ENDPOINTS, /* text: addresses, each with a newline behind it */
    MSG_DRAIN,     /* number: cut it short */
    MSG_STOP,
};

struct msg {
    enum msg_kind kind;
    int number;
    uint64_t id;
    struct qa_query *query;
    struct qh_stream *stream; /* a reference */
    struct qa_fetch *fetch;
    void *tag;
    char *text, *tenant;
};

/* Where a query is. QUEUED -> PLANNING -> WORKING -> ANSWERING -> gone. */
enum query_state { Q_QUEUED, Q_PLANNING, Q_WORKING, Q_ANSWERING, Q__COUNT };

struct endpoint {
    struct wc_worker_id worker;
    char *address;
    uint64_t session; /* of the current dial or stream; 0: none */
    bool connected;   /* its first message has come */
    bool present;     /* in the latest discovery */
    char name[PB_ID_BYTES_MAX + 1];
    int64_t lost_ns; /* when the last stream went away; 0: never had one */
};

/* Waiting queries of one tenant, oldest first; tenants take turns. */
struct tenant {
    char *name;
    struct qa_query *head, **tail;
    size_t queued, active;
};

struct qa_coord {
    struct qa_coord_options options;
    struct qf_mailbox *box;
    struct qf_thread *thread;
    struct wc_api *wc;
    struct qa_rpc *rpc;
    struct qa_fetcher *fetcher;
    _Atomic uint64_t spool_bytes; /* any thread */
    _Atomic size_t query_count;   /* any thread */
    struct qf_prng prng;
    bool draining, stopping;

    QF_VEC(struct endpoint) endpoints;
    uint64_t sessions, workers;

    struct qa_query **slots; /* by the low 16 bits of a query's id */
    uint32_t *free_slots;
    size_t free_slot_count;
    uint64_t query_number, works;
    QF_VEC(struct tenant *) tenants;
    size_t next_tenant;
    size_t queued, active;

    /* Steps that came up while effects were performed; done right after. */
    QF_VEC(struct wc_api_event) todo;
    bool stepping;
    const struct pb_ready *ready; /* the message being handled, for FETCH */
    struct qa_fetch *fetches;     /* downloads given to the fetcher and not yet back */
    struct qa_fetch *fetched;     /* the download being handled, for COMMITTED */
    struct wc_api_stats seen;     /* counters already in the metrics */
};

/* coordinator.c */
void co_post(struct qa_coord *coord, struct msg msg);
void co_step(struct qa_coord *coord, struct wc_api_event event);

/* queries.c: admission, turns, cancellation, ends */
void co_submit(struct qa_coord *coord, struct qa_query *query);
void co_turn_done(struct qa_coord *coord, struct qa_query *query);
void co_stream_event(struct qa_coord *coord, uint64_t id, enum qh_stream_event event);
void co_cancel_by_name(struct qa_coord *coord, const char *name, const char *tenant,
                       struct qh_stream *stream);
/* Whether somebody who is confined to @tenant (empty: nobody is) may see the query. */
bool co_in_sight(const struct qa_query *query, const char *tenant);
void co_cancel_query(struct qa_coord *coord, struct qa_query *query, qf_rc rc);
void co_cancel_all(struct qa_coord *coord);
void co_expire(struct qa_coord *coord, qf_time_ms now);
qf_time_ms co_next_deadline(const struct qa_coord *coord);
struct qa_query *co_find_query(const struct qa_coord *coord, uint64_t id);
struct qa_work *co_find_work(struct qa_query *query, uint64_t work);
/* The core is done with the query. */
void co_query_ended(struct qa_coord *coord, struct qa_query *query, qf_rc rc);
void co_progress(struct qa_coord *coord, struct qa_query *query);

/* workers.c: endpoints, streams, messages, effects towards workers */
void co_endpoints(struct qa_coord *coord, char *addresses);
void co_message(void *ctx, uint64_t session, const struct pb_worker_message *message);
void co_closed(void *ctx, uint64_t session, const char *why);
void co_dial(struct qa_coord *coord, struct wc_worker_id worker);
void co_assign(struct qa_coord *coord, const struct wc_api_effect *effect);
void co_cancel_work(struct qa_coord *coord, const struct wc_api_effect *effect);
void co_ack(struct qa_coord *coord, const struct wc_api_effect *effect);
void co_heartbeat(struct qa_coord *coord, const struct wc_api_effect *effect);
void co_fetch(struct qa_coord *coord, const struct wc_api_effect *effect);
void co_fetched(struct qa_coord *coord, struct qa_fetch *fetch);
void co_commit(struct qa_coord *coord, const struct wc_api_effect *effect);
/* The core is done with the query: what is still being downloaded for it is not needed. */
void co_forget_fetches(struct qa_coord *coord, uint64_t query);
struct endpoint *co_endpoint(struct qa_coord *coord, struct wc_worker_id worker);

/* inspect.c: what is going on, as JSON and as metrics */
void co_inspect(struct qa_coord *coord, enum qa_inspect what, const char *tenant,
                struct qh_stream *stream);
void co_update_metrics(struct qa_coord *coord);

#endif
