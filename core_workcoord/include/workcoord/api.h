/* api.h - the API side of work coordination: which worker runs which item, without doing any I/O.
 *
 * When a query plans, works and answers, and how long it may, is decided elsewhere (life.h); here is
 * its work.
 *
 * Feed one event, perform the effects it returns, in order. Equal states given equal events yield
 * equal effects. Time and randomness come inside the event; time never runs backwards (an earlier
 * `now` counts as the latest one seen). Nothing is allocated in a step and every table is bounded
 * by wc_api_limits. Not thread-safe: one thread owns a wc_api.
 *
 * How a daemon uses it
 *
 *     discovery finds an endpoint       -> DISCOVERED            => DIAL
 *     the stream is up                  -> CONNECTED             (session: a new number per stream)
 *     every message on it               -> STATUS, HEARTBEAT, ACCEPTED, REJECTED, READY, FAILED
 *     dial failed or stream closed      -> DISCONNECTED          => LOST, later DIAL (with backoff)
 *     wc_api_deadline() has come        -> TICK                  => HEARTBEAT, DIAL, HANGUP, ...
 *     a query is planned                -> QUERY_BEGIN           => ASSIGN...
 *     an artifact is fetched, verified  -> FETCHED, FETCH_FAILED => ACK, COMMITTED, QUERY_ENDED
 *     client gone, DELETE, own failure  -> QUERY_CANCEL          => CANCEL..., QUERY_ENDED
 *
 * Every QUERY_BEGIN that returned QF_OK is answered by exactly one QUERY_ENDED; with it the core
 * has forgotten the query. Its rc is QF_OK if and only if every item was COMMITTED, each exactly
 * once.
 *
 * Life of an item ("heard" across; an empty cell is counted in stats.illegal and ignored)
 *
 *              ASSIGN   ACCEPTED REJECTED READY FETCHED FETCH_FAILED RETRY   FAILED LOST    MOVED
 *     pending  assigned
 *     assigned          accepted pending                             pending failed pending pending
 *     accepted                            ready                      pending failed pending
 *     ready                                     fetched pending      pending failed pending
 *
 *   LATE_FETCHED (an older attempt's download finished after all) turns pending, assigned, accepted
 *   and ready into fetched; CANCEL turns every state into canceled. RETRY is FAILED with
 *   `retryable`, an expired artifact included. LOST: the stream went away. MOVED: the worker drains
 *   or leaves, and only items it has not accepted move. Messages of an older attempt or an older
 *   session are stale: counted and ignored, except that an unwanted READY is answered with ACK so
 *   that the worker can drop the artifact.
 *
 * Life of a worker (always one of these; flags accepting, draining, leaving on top)
 *
 *                DISCOVERED  CONNECTED  STATUS  LOST  DIAL_DUE  REMOVED
 *     down       down        connected                dialing   gone
 *     dialing    dialing     connected          down            gone
 *     connected  connected   connected  alive   down            gone (HANGUP)
 *     alive      alive       connected  alive   down            alive, leaving; gone once idle
 *
 *   A worker is available if it is alive, accepting, not draining and not leaving. REJECTED takes
 *   the worker out of rotation until its next STATUS: a worker rejects only while it is not
 *   accepting, and reports when that changes. CONNECTED on a connected worker ends the old session
 *   first.
 *
 * Where work goes: the highest rendezvous score among the available workers that have not rejected
 * or failed this item; if there is none, the one for which that was longest ago, after
 * retry_delay_ms. An item may have owners, the workers that keep what it reads on their own disks: of workers that have
 * failed it equally (not at all, or as long ago) an owner comes before others, and so owners are asked for one after the other before
 * anybody else is. With no worker available the item waits for one, until the query is canceled or
 * worker_wait_ms. Runs that were accepted and came to nothing (RETRY, FETCH_FAILED, LOST) count
 * against attempts_max; being rejected, moved, or lost before acceptance does not.
 *
 * Shares: of one tenant's items at most sent_max are with workers (assigned, accepted or ready) at
 * once, whatever its queries; the others wait, first come first served, as pending. What its latest
 * QUERY_BEGIN said counts. Hedges are not counted: they have a bound of their own.
 *
 * Deaths: a stream that broke (DISCONNECTED with `died`) of a worker that did not drain means that
 * the worker may have died of what it was running. Each item it had accepted and not finished is
 * BLAMED; one that has cost deaths_max workers, those that its data cost other queries before
 * (`deaths` of its spec) included, is not given to another: the query ends with QF_EQUARANTINED.
 *
 * Hedges: an item that a worker has had (assigned, accepted or ready) for hedge_after times as long
 * as its like takes (expect_ms) is sent to one more worker, the next in rendezvous order that has
 * not failed it. Of two attempts the first whose bytes are here commits, and the other is canceled.
 * An item has one hedge in its life, and all hedges together are a share of the items in flight: who comes too late
 * for that asks again after the same time. A hedge that comes to nothing costs no attempt; when the
 * item's own attempt does, the hedge takes its place (and is no hedge any more).
 *
 *                HEDGE    ACCEPTED REJECTED READY FETCHED FETCH_FAILED RETRY FAILED LOST MOVED DROP
 *     none       assigned
 *     assigned            accepted none                                none  none   none none  none
 *     accepted                              ready                      none  none   none none  none
 *     ready                                       none    none         none  none   none none  none
 *
 *   FETCHED: its bytes commit (LATE_FETCHED for the item). FAILED: HEDGE_FAILED for the item, which
 *   is then failed, as with FAILED. MOVED: its worker leaves, or drains and has not accepted it.
 *   DROP: the item is fetched, failed or canceled, or has taken over the hedge's attempt (ADOPT: a
 *   pending item becomes assigned, accepted or ready, as the hedge was). */
#ifndef WORKCOORD_API_H
#define WORKCOORD_API_H

#include "workcoord/types.h"

struct wc_api; /* Opaque. Allocates in wc_api_new() and never again. */

/* Bounds and times; zero means the default in the comment, except where it says otherwise. */
struct wc_api_limits {
    uint32_t workers_max;  /* 1024: endpoints known at once */
    uint32_t queries_max;  /* 1024: queries alive at once */
    uint32_t items_max;    /* 65536: items of all queries alive */
    uint32_t attempts_max; /* 8: accepted runs of one item that may come to nothing */
    uint32_t deaths_max;   /* 2: workers that may die of one item; UINT32_MAX: any number */

    qf_time_ms heartbeat_ms;   /* WC_HEARTBEAT_MS: one HEARTBEAT to every worker this often */
    uint32_t heartbeats_max;   /* WC_HEARTBEATS_MISSED_MAX: silent for so many of them is lost */
    qf_time_ms dial_min_ms;    /* first redial delay; 0: due at once (daemons use 100) */
    qf_time_ms dial_max_ms;    /* longest redial delay (daemons use 10000) */
    qf_time_ms retry_delay_ms; /* before an item goes back to a worker it failed on; 0: at once */
    qf_time_ms worker_wait_ms; /* how long an item waits for any worker; 0: as long as its query */

    double hedge_after;        /* times expect_ms; 0: no hedges */
    qf_time_ms hedge_delay_ms; /* but no sooner than this; 0: 100 */
    uint32_t hedge_percent;    /* 10: hedges under way, of the items in flight... */
    uint32_t hedges_min;       /* ...or so many; 0: 4 */
};

/* What a daemon starts from: the defaults above, redial 100 ms to 10 s, retry delay 200 ms, wait
 * for a worker 30 s. */
struct wc_api_limits wc_api_limits_default(void);

#define WC_API_EVENTS(X)                                                                           \
    X(WC_API_EV_TICK, "tick")                 /* wc_api_deadline() has come (early is fine) */     \
    X(WC_API_EV_DISCOVERED, "discovered")     /* worker; again is harmless */                      \
    X(WC_API_EV_REMOVED, "removed")           /* worker; its accepted work may finish */           \
    X(WC_API_EV_CONNECTED, "connected")       /* worker, session */                                \
    X(WC_API_EV_DISCONNECTED, "disconnected") /* worker, session, .died; session 0: dial failed */ \
    X(WC_API_EV_STATUS, "status")             /* worker, session, .status */                       \
    X(WC_API_EV_HEARTBEAT, "heartbeat")       /* worker, session, .sent_at: our time, echoed */    \
    X(WC_API_EV_ACCEPTED, "accepted")         /* worker, session, work, attempt */                 \
    X(WC_API_EV_REJECTED, "rejected")         /* worker, session, work, attempt, .reject */        \
    X(WC_API_EV_READY, "ready")               /* worker, session, work, attempt, .checksum */      \
    X(WC_API_EV_FAILED, "failed")             /* worker, session, work, attempt, .failure */       \
    X(WC_API_EV_FETCHED, "fetched")           /* work, attempt, .checksum: verified bytes here */  \
    X(WC_API_EV_FETCH_FAILED, "fetch_failed") /* work, attempt, .fetch_error */                    \
    X(WC_API_EV_QUERY_BEGIN, "begin")         /* query, .begin */                                  \
    X(WC_API_EV_QUERY_CANCEL, "cancel")       /* query, .rc: why, QF_ECANCELED if 0 */
enum wc_api_event_type { WC_API_EVENTS(WC_ENUM_ENTRY) WC_API_EV__COUNT };

/* One unit of work of a new query. */
struct wc_api_item_spec {
    struct wc_work_id work;
    struct wc_leaf_id leaf;
    uint64_t affinity;              /* wc_affinity_key() */
    qf_time_ms expect_ms;           /* from its assignment to READY; 0: not known, never hedged */
    uint32_t deaths;                /* workers that its data cost already; less than deaths_max */
    uint32_t owner_count;           /* 0: nobody keeps its data; at most WC_OWNERS_MAX count */
    uint64_t owners[WC_OWNERS_MAX]; /* wc_worker_key() of those that do, known here or not */
};

struct wc_api_event {
    enum wc_api_event_type type;
    uint32_t attempt;
    qf_time_ms now;
    uint64_t random; /* any bits; jitter of redials comes from here */
    struct wc_worker_id worker;
    struct wc_session_id session;
    struct wc_query_id query;
    struct wc_work_id work;
    union {
        struct {
            uint64_t worker_key; /* wc_worker_key() of the id the worker gave */
            bool accepting, draining;
            uint32_t slots, queue_depth; /* shown in views, not used in decisions */
        } status;
        struct {
            qf_rc rc;       /* why, e.g. QF_ENOSPC */
            bool retryable; /* else the query fails at once with rc */
        } failure;
        struct {
            const struct wc_api_item_spec *items; /* borrowed for the step */
            size_t count;                         /* 0: ends at once, QF_OK */
            struct wc_tenant_id tenant;           /* whose it is... */
            uint32_t sent_max;                    /* ...and its share; 0: none */
        } begin;
        bool died; /* the stream broke, and not because we or the worker ended it */
        qf_time_ms sent_at;
        enum wc_reject reject;
        enum wc_fetch_error fetch_error;
        struct wc_checksum checksum;
        qf_rc rc;
    };
};

/* What the caller must do, in this order.
 *
 *     DIAL         open a stream; report CONNECTED or DISCONNECTED{session 0}
 *     HANGUP       close the stream; its DISCONNECTED is not needed (harmless if it comes)
 *     HEARTBEAT    send Heartbeat with time = now
 *     LOST         nothing: for logs and metrics only
 *     BLAMED       remember that a worker died while it ran this; nothing needs to be sent
 *     ASSIGN       send AssignWork
 *     CANCEL       send CancelWork; it also frees the artifact
 *     FETCH        download the artifact this READY announced
 *     ACK          send ArtifactAck
 *     COMMITTED    use the bytes of this attempt; drop every other download of this work
 *     QUERY_ENDED  drop the downloads of this query; its state is gone
 *
 * The comment behind each names the fields that are set; the others are 0. */
#define WC_API_EFFECTS(X)                                                                          \
    X(WC_API_DO_DIAL, "dial")           /* worker */                                               \
    X(WC_API_DO_HANGUP, "hangup")       /* worker, session */                                      \
    X(WC_API_DO_HEARTBEAT, "heartbeat") /* worker, session */                                      \
    X(WC_API_DO_LOST, "lost")           /* worker, session, rc */                                  \
    X(WC_API_DO_BLAMED, "blamed")       /* worker, session, query, leaf, work, attempt */          \
    X(WC_API_DO_ASSIGN, "assign")       /* worker, session, query, leaf, work, attempt */          \
    X(WC_API_DO_HEDGE, "hedge")         /* as ASSIGN: the same work, on one more worker */         \
    X(WC_API_DO_CANCEL, "cancel")       /* worker, session, query, work, attempt */                \
    X(WC_API_DO_FETCH, "fetch")         /* worker, session, query, leaf, work, attempt */          \
    X(WC_API_DO_ACK, "ack")             /* worker, session, work, attempt */                       \
    X(WC_API_DO_COMMITTED, "committed") /* query, leaf, work, attempt */                           \
    X(WC_API_DO_QUERY_ENDED, "ended")   /* query, rc, and work if one item is to blame */
enum wc_api_effect_type { WC_API_EFFECTS(WC_ENUM_ENTRY) WC_API_DO__COUNT };

struct wc_api_effect {
    enum wc_api_effect_type type;
    uint32_t attempt;
    struct wc_worker_id worker;
    struct wc_session_id session;
    struct wc_query_id query;
    struct wc_leaf_id leaf;
    struct wc_work_id work;
    qf_rc rc;
    bool owner; /* ASSIGN, HEDGE: the worker is one of the item's owners */
};

struct wc_api_effects {
    const struct wc_api_effect *items; /* borrowed until the next step */
    size_t count;
};

/* Create a core whose tables never outgrow @limits; NULL if out of memory. */
struct wc_api *wc_api_new(const struct wc_api_limits *limits);

/* Release @wc, which may be NULL. Returns NULL, so callers write wc = wc_api_free(wc). */
struct wc_api *wc_api_free(struct wc_api *wc);

/* Apply @event. Only two events can fail, and then nothing has changed and there are no effects:
 * DISCOVERED with QF_ELIMIT (workers_max reached), and QUERY_BEGIN with QF_ELIMIT (queries_max or
 * items_max reached: shed load) or QF_EEXIST (the query or one of the works is known already). */
QF_MUST_CHECK qf_rc wc_api_step(struct wc_api *wc, const struct wc_api_event *event,
                                struct wc_api_effects *ret_effects);

/* When the next TICK is due, or QF_TIME_NEVER. Constant time. */
qf_time_ms wc_api_deadline(const struct wc_api *wc);

/* Call @trace with one line per step, e.g.
 * "[1200] disconnected w1 s3 -> lost w1 s3 unavailable; assign k7#2 w2 s4". NULL: no traces. */
void wc_api_trace(struct wc_api *wc, wc_trace_fn *trace, void *ctx);

/* What is going on now, and counters since creation. */
struct wc_api_stats {
    /* gauges */
    uint32_t items_pending, items_assigned, items_accepted, items_ready; /* sum: in flight */
    uint32_t items_kept;    /* of those pending: they wait for their tenant's share */
    uint32_t items_fetched; /* of live queries */
    uint32_t hedges;        /* under way */
    uint32_t queries;
    uint32_t workers;                             /* known */
    uint32_t workers_alive;                       /* with a status */
    uint32_t workers_available, workers_draining; /* accepting / saying they drain */
    qf_time_ms oldest_at;                         /* when the oldest item in flight was begun, or
                                                     QF_TIME_NEVER */
    /* counters */
    uint64_t steps, illegal, stale;
    uint64_t assigned, accepted, rejected, ready, committed;
    uint64_t kept;       /* items that had to wait for their tenant's share */
    uint64_t duplicates; /* completions after the first with the same checksum... */
    uint64_t conflicts;  /* ...and with another one, which deterministic work never has */
    uint64_t late;       /* committed from an older attempt's download */
    uint64_t reassigned; /* assignments after the first of an item, hedges not counted */
    uint64_t hedged, hedges_won, hedges_lost; /* won: committed, or took the item's own place */
    uint64_t affinity_hits, affinity_misses;  /* the worker chosen is (not) the first choice among
                                                all known workers */
    uint64_t owner_hits, owner_misses;        /* of items with owners: it is (not) one of these */
    uint64_t failed_retryable, failed_final, fetch_failed[WC_FETCH__COUNT];
    uint64_t workers_lost, workers_silent, redials; /* silent: lost by missed heartbeats */
    uint64_t blamed;                                /* items that were run when a worker died */
    uint64_t queries_begun, queries_ok, queries_failed, queries_canceled, queries_timed_out;
};
/* Constant time; gauges are kept up to date by the steps. */
const struct wc_api_stats *wc_api_stats(const struct wc_api *wc);

/* The scaling numbers: queued = pending + assigned, running = accepted + ready. Kept items are not
 * among them: more workers would not run them sooner. */
struct wc_api_queue {
    uint32_t queued, running, inflight;
    qf_time_ms oldest_age_ms; /* of the oldest item in flight at @now; 0 if none */
};
struct wc_api_queue wc_api_queue(const struct wc_api *wc, qf_time_ms now);

struct wc_api_worker_view {
    struct wc_worker_id worker;
    struct wc_session_id session; /* 0: no stream */
    enum wc_peer_state state;
    bool accepting, draining, leaving, available;
    uint64_t worker_key; /* 0 until the first status */
    uint32_t slots, queue_depth;
    uint32_t assigned, accepted, ready; /* items it holds for us */
    uint32_t hedges;                    /* and those it holds as a second worker */
    qf_time_ms heard_at;                /* last message of this session */
    qf_time_ms rtt_ms;                  /* last heartbeat's round trip, -1 before the first */
    uint32_t dials_failed;              /* redials since its last status */
};
/* False if the worker is unknown. */
bool wc_api_worker(const struct wc_api *wc, struct wc_worker_id worker,
                   struct wc_api_worker_view *ret_view);
/* Fill up to @capacity views in the order of discovery; returns how many workers there are. */
size_t wc_api_workers(const struct wc_api *wc, struct wc_api_worker_view *views, size_t capacity);

struct wc_api_item_view {
    struct wc_query_id query;
    struct wc_leaf_id leaf;
    enum wc_item_state state;
    struct wc_worker_id worker;  /* of the current attempt: assigned, accepted, ready */
    uint32_t attempt;            /* 0 before the first assignment */
    uint32_t failures;           /* counted against attempts_max */
    uint32_t deaths;             /* counted against deaths_max */
    struct wc_checksum checksum; /* ready, fetched */
    struct {
        enum wc_hedge_state state;
        struct wc_worker_id worker;
        uint32_t attempt;
    } hedge;
};
/* False if the work is unknown, or its query has ended. */
bool wc_api_item(const struct wc_api *wc, struct wc_work_id work,
                 struct wc_api_item_view *ret_view);

struct wc_api_query_view {
    uint32_t items, committed;
    qf_time_ms begun_at;
};
bool wc_api_query(const struct wc_api *wc, struct wc_query_id query,
                  struct wc_api_query_view *ret_view);

const char *wc_api_event_name(enum wc_api_event_type type);
const char *wc_api_effect_name(enum wc_api_effect_type type);

#endif
