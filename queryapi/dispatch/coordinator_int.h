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
#include "workcoord/lane.h"
#include "workcoord/life.h"
#include "workcoord/quarantine.h"
#include "workcoord/rendezvous.h"

enum msg_kind {
    MSG_SUBMIT,    /* query */
    MSG_TURN_DONE, /* query */
    MSG_STREAM,    /* id, number: enum qh_stream_event */
    MSG_CANCEL,    /* text, tenant, stream */
    MSG_LIFT,      /* text, stream */
    MSG_INSPECT,   /* number: enum qa_inspect, id: limit, tenant, stream */
    MSG_WATCH,     /* likewise */
    MSG_TAG,       /* tag, number: ok */
    MSG_FETCHED,   /* fetch */
    MSG_TOLD,      /* question */
    MSG_ROLL,      /* text: what ingest nodes say of themselves */
    MSG_ENDPOINTS, /* text: addresses, each with a newline behind it */
    MSG_JOBS,      /* tag: struct job_batch */
    MSG_JOBS_CANCEL,
    MSG_COMPACTION, /* text: what compaction says of itself */
    MSG_DRAIN,      /* number: cut it short */
    MSG_STOP,
};

struct msg {
    enum msg_kind kind;
    int number;
    uint64_t id;
    struct qa_query *query;
    struct qh_stream *stream; /* a reference */
    struct qa_fetch *fetch;
    struct qa_question *question;
    void *tag;
    char *text, *tenant;
};

/* What one of the two machines is told, with what it concerns. */
enum machine { MACHINE_LIFE, MACHINE_WORK };
struct event {
    enum machine machine;
    union {
        struct wc_life_event life;
        struct wc_api_event work;
    };
    /* Owned. READY: the download that is now possible, FETCHED: the one that was made. Effects of
     * the event may take it or its artifact. */
    struct qa_fetch *fetch;
    struct wc_api_item_spec *items; /* owned; of QUERY_BEGIN */
};

#define ENDPOINT_ERROR_MAX 200
struct endpoint {
    struct wc_worker_id worker;
    char *address;
    uint64_t session; /* of the current dial or stream; 0: none */
    bool connected;   /* its first message has come */
    bool present;     /* in the latest discovery */
    char *base_url;   /* where its artifacts are, as it said first; NULL before that */
    char name[PB_ID_BYTES_MAX + 1];
    int64_t lost_ns;     /* when the last stream went away; 0: never had one */
    struct pb_disk disk; /* as it said last; bytes_max 0: it did not */
    bool draining;       /* as it said last */
    uint32_t background_slots, background_running; /* as it said last */
    uint32_t protocol;                             /* what is spoken with it */
    unsigned dials_failed;                         /* since it was last connected */
    qf_time_ms unreached_since;                    /* the first of them */
    bool unreached_told;                           /* in the log */
    char last_error[ENDPOINT_ERROR_MAX]; /* why it is not connected; empty: it is, or is new */
};

/* A query that is over. */
#define FINISHED_MAX 256
#define FINISHED_TEXT_MAX 1024
struct finished {
    char name[sizeof(((struct qa_query *)0)->name)];
    char *tenant, *text; /* owned */
    enum qa_query_kind kind;
    qf_rc rc;
    char told[sizeof(((struct qa_query *)0)->told)]; /* what its client heard of an error */
    int64_t start_ms, end_ms, step_ms;
    int64_t ended_ms; /* of the day */
    double queued_seconds, planning_seconds, working_seconds, answering_seconds, total_seconds;
    uint64_t segments, works, samples, points, artifact_bytes;
    uint32_t replans;
};

/* Somebody who watches a list. */
struct watcher {
    enum qa_inspect what;
    char *tenant; /* whose queries; empty: all */
    size_t limit;
    struct qh_stream *stream; /* a reference */
    uint64_t finished;        /* queries that were over when it was last told */
    atomic_bool busy;         /* a page is being written, by a thread that has `last` meanwhile */
    uint64_t last;            /* hash of the last event; 0: none yet */
};

/* Jobs that a thread waits for, on whose stack this is until all are over. */
struct job_batch {
    struct qa_job *jobs;
    size_t count;
    uint64_t first; /* number of the first job */
    size_t next;    /* so many are with the machine, or were */
    size_t ended;   /* so many are over */
    bool canceled;
};

struct qa_coord {
    struct qa_coord_options options;
    struct qf_mailbox *box;
    struct qf_thread *thread;
    struct wc_life *life; /* whose turn it is */
    struct wc_api *wc;    /* who runs which item */
    struct qa_rpc *rpc;
    struct qf_tls_files *tls; /* of control streams and artifacts; the fetcher looks at them */
    struct qa_fetcher *fetcher;
    struct qa_asker *asker;       /* NULL: there are no ingest nodes */
    _Atomic uint64_t spool_bytes; /* any thread */
    _Atomic size_t query_count;   /* any thread */
    _Atomic size_t pages;         /* being made; any thread */
    struct qf_prng prng;
    bool stopping, draining;

    QF_VEC(struct endpoint) endpoints;
    uint64_t sessions, workers;

    /* By the low 16 bits of a query's id. One more than may be alive: the one being refused. */
    struct qa_query **slots;
    uint32_t *free_slots;
    size_t slot_count, free_slot_count;
    uint64_t query_number, item_number;

    /* Events whose effects are not performed yet, oldest first. Performing an effect adds two of
     * them at most, so their number is bounded by that of the effects of a step. */
    QF_VEC(struct event) events;
    bool telling;
    struct {
        struct wc_quarantine *table; /* of segments, by the hash of their names */
        char **names;                /* of what is in it, by its place; owned */
    } quarantine;
    struct {
        struct wc_lane *machine;
        QF_VEC(struct wc_lane_event) events; /* not stepped yet: few for each job and worker */
        bool telling;
        struct job_batch *batch; /* or NULL */
        struct qf_mailbox *back; /* where who waits gets its batch back */
        uint64_t numbers;        /* of jobs so far */
        char *compaction;        /* see qa_coord_tell_compaction(); NULL: it does not run */
        struct wc_lane_stats seen;
        _Atomic uint32_t workers, slots, pending, sent; /* any thread */
    } lane;
    struct qa_fetch *fetches; /* downloads given to the fetcher and not yet back */
    struct wc_api_stats seen; /* counters already in the metrics */
    uint64_t held_seen;       /* wc_life_stats.held, likewise */

    /* Watched queries: when news of their work are told next, were last, and who is first in turn. */
    qf_time_ms explain_due, explained_at;
    size_t explain_slot;

    struct {
        struct finished rows[FINISHED_MAX]; /* query number n in row n % FINISHED_MAX */
        uint64_t count;                     /* that ever were */
    } finished;
    QF_VEC(struct watcher *) watchers;
    qf_time_ms watch_due; /* when they are told next */
    char *roll;           /* what ingest nodes said last; NULL: nothing yet, or no longer */
    bool roll_called;     /* and they have not answered */
    qf_time_ms roll_due;  /* not before, they are asked again */
};

/* coordinator.c */
/* Everything but the thread. NULL and @err filled on failure. */
struct qa_coord *co_new(const struct qa_coord_options *options, struct qf_err *err);
void co_free(struct qa_coord *coord);
void co_post(struct qa_coord *coord, struct msg msg);
void co_handle(struct qa_coord *coord, struct msg *msg); /* Takes @msg. */
/* Let time pass: deadlines of both machines. */
void co_tick(struct qa_coord *coord);
/* Step the machine and perform the effects; behind those that are being performed now, as effects
 * are borrowed until the next step. What the event owns is taken. */
void co_tell(struct qa_coord *coord, struct event event);
void co_tell_life(struct qa_coord *coord, struct wc_life_event event);
void co_tell_work(struct qa_coord *coord, struct wc_api_event event);

/* queries.c: what clients and turns say, and what the life of queries wants done */
void co_submit(struct qa_coord *coord, struct qa_query *query);
/* Before the first effect: it is alive, or was refused with @rc. */
void co_submitted(struct qa_coord *coord, struct qa_query *query, qf_rc rc);
void co_turn_done(struct qa_coord *coord, struct qa_query *query);
/* Ingest nodes have said what is fresh, or have not. Takes @question. */
void co_told(struct qa_coord *coord, struct qa_question *question);
void co_stream_event(struct qa_coord *coord, uint64_t id, enum qh_stream_event event);
void co_cancel_by_name(struct qa_coord *coord, const char *name, const char *tenant,
                       struct qh_stream *stream);
/* Whether somebody who is confined to @tenant (empty: nobody is) may see the query. */
bool co_in_sight(const struct qa_query *query, const char *tenant);
struct qa_query *co_find_query(const struct qa_coord *coord, uint64_t id);
struct qa_item *co_find_item(struct qa_query *query, uint64_t work);
void co_perform_life(struct qa_coord *coord, const struct wc_life_effect *effect);
/* The work of the query is over, or could not begin. */
void co_work_over(struct qa_coord *coord, struct wc_query_id query, qf_rc rc);
void co_progress(struct qa_coord *coord, struct qa_query *query);

/* workers.c: endpoints, streams, messages, effects towards workers */
void co_endpoints(struct qa_coord *coord, char *addresses);
void co_message(void *ctx, uint64_t session, const struct pb_worker_message *message);
void co_closed(void *ctx, uint64_t session, const char *why, bool broke);
void co_dial(struct qa_coord *coord, struct wc_worker_id worker);
void co_assign(struct qa_coord *coord, const struct wc_api_effect *effect);
void co_cancel_work(struct qa_coord *coord, const struct wc_api_effect *effect);
/* @fetch: what was downloaded, or NULL if that was not wanted. */
void co_ack(struct qa_coord *coord, const struct wc_api_effect *effect,
            const struct qa_fetch *fetch);
void co_heartbeat(struct qa_coord *coord, const struct wc_api_effect *effect);
struct endpoint *co_endpoint(struct qa_coord *coord, struct wc_worker_id worker);

/* The item a message is about and its query, NULL if it is over. While the core knows an item, no
 * turn changes the items of its query. */
struct qa_item *co_item_of(struct qa_coord *coord, uint64_t work, struct qa_query **ret_query);

/* artifacts.c: downloads from workers, and where their bytes go */
/* The download that @ready makes possible. */
struct qa_fetch *co_fetch_new(const struct pb_ready *ready);
/* FETCH: takes *@fetch. */
void co_fetch(struct qa_coord *coord, const struct wc_api_effect *effect, struct qa_fetch **fetch);
/* The artifacts of the query are gone, or about to be. */
void co_unannounce(struct qa_query *query);
/* A download is back from the fetcher. */
void co_fetched(struct qa_coord *coord, struct qa_fetch *fetch);
/* COMMITTED: takes the artifact of @fetch. */
void co_commit(struct qa_coord *coord, const struct wc_api_effect *effect, struct qa_fetch *fetch);
/* What no effect has taken. Accepts NULL. */
void co_fetch_drop(struct qa_coord *coord, struct qa_fetch *fetch);
/* The core is done with the query: what is still being downloaded for it is not needed. */
void co_forget_fetches(struct qa_coord *coord, uint64_t query);

/* jobs.c: background jobs */
bool co_lane_init(struct qa_coord *coord); /* False: no memory. */
void co_lane_done(struct qa_coord *coord);
void co_lane_tell(struct qa_coord *coord, struct wc_lane_event event);
void co_lane_tick(struct qa_coord *coord, qf_time_ms now);
void co_lane_status(struct qa_coord *coord, struct endpoint *endpoint,
                    const struct pb_status *status);
void co_lane_lost(struct qa_coord *coord, struct wc_worker_id worker, bool died);
/* A message about a job. */
void co_lane_heard(struct qa_coord *coord, const struct endpoint *endpoint,
                   const struct pb_worker_message *message);
void co_lane_metrics(struct qa_coord *coord);
void co_jobs(struct qa_coord *coord, struct job_batch *batch);
void co_jobs_cancel(struct qa_coord *coord); /* if there are any */
void co_show_compaction(struct qa_coord *coord, struct qh_stream *stream);

/* quarantine.c: segments that cost workers */
#define CO_QUARANTINE_MAX 4096
bool co_quarantine_init(struct qa_coord *coord); /* False: no memory. */
void co_quarantine_done(struct qa_coord *coord);
/* Fill in what the data of the items has cost already. False: some of it is in quarantine. */
bool co_vet(struct qa_coord *coord, const struct qa_query *query, struct wc_api_item_spec *items);
/* What the client of a query hears that fails because of it. */
void co_explain_quarantine(struct qa_coord *coord, struct qa_query *query);
/* BLAMED */
void co_blame(struct qa_coord *coord, const struct wc_api_effect *effect);
/* It was run to a good end. */
void co_absolve(struct qa_coord *coord, const struct qa_item *item);
void co_lift(struct qa_coord *coord, const char *segment, struct qh_stream *stream);
/* What the table has in @slot, and of which segment. */
struct wc_quarantine_entry co_quarantine_at(const struct qa_coord *coord, uint32_t slot,
                                            qf_time_ms now, const char **ret_segment);

/* placed.c: was it sent to a worker that keeps what it reads, and what did that read from others? */
void co_count_placed(struct qa_coord *coord, const struct qa_item *item,
                     const struct wc_api_effect *effect);
void co_count_read(struct qa_coord *coord, const struct qa_item *item,
                   const struct pb_ready *ready);

/* explain.c: work of watched queries */
/* The core has been told of @event, whose effects are not performed yet. */
void co_explain_heard(struct qa_coord *coord, const struct event *event);
/* @effect was performed; COMMITTED: @fetch was the download. */
void co_explain_effect(struct qa_coord *coord, const struct wc_api_effect *effect,
                       const struct qa_fetch *fetch);
/* Tell of at most @max items that changed; how many it was. */
size_t co_explain_works(struct qa_coord *coord, struct qa_query *query, size_t max);
/* Tell all that is due. */
void co_explain_tick(struct qa_coord *coord, qf_time_ms now);

/* finished.c: queries that are over */
void co_remember(struct qa_coord *coord, const struct qa_query *query);
void co_finished_done(struct qa_coord *coord);

/* watch.c: clients that watch lists. Refusals are answered through @stream. */
void co_watch(struct qa_coord *coord, enum qa_inspect what, const char *tenant, size_t limit,
              struct qh_stream *stream);
void co_watch_tick(struct qa_coord *coord, qf_time_ms now);
/* What ingest nodes say of themselves; takes @text. */
void co_rolled(struct qa_coord *coord, char *text);
void co_watch_done(struct qa_coord *coord);

/* inspect.c: what is going on, as JSON and as metrics */
void co_inspect(struct qa_coord *coord, enum qa_inspect what, const char *tenant, size_t limit,
                struct qh_stream *stream);
const char *co_phase_name(const struct qa_coord *coord, const struct qa_query *query);
void co_put_scaling(struct qa_coord *coord, struct qf_strbuf *buf);
/* pages.c: at most @limit workers, queries or segments, copied here and made JSON on the pool. */
void co_show_page(struct qa_coord *coord, enum qa_inspect what, const char *tenant, size_t limit,
                  struct qh_stream *stream);
/* The same as an event; nothing if too many pages are being made, or nothing has changed. */
void co_show_watcher(struct qa_coord *coord, struct watcher *watcher);
void co_update_metrics(struct qa_coord *coord);

#endif
