/* life.h - the life of queries in the API: whose turn it is to plan, work and answer.
 *
 * Feed one event, perform the effects it returns, in order. Equal states given equal events yield
 * equal effects. Time comes inside the event and never runs backwards. Nothing is allocated in a
 * step and every table is bounded by wc_life_limits. Not thread-safe: one thread owns a wc_life.
 *
 * What runs where: a plan or an answer is made by a turn on some thread; the work in between is
 * that of wc_api (api.h). This machine says which of them has the query, and nobody else does.
 *
 *     a client asks                     -> SUBMIT     => PLAN, once there is a place
 *     the turn must know what is fresh  -> ASK        => ASK      (no thread waits meanwhile)
 *     that is known, or cannot be       -> TOLD       => RESUME, or FAIL and END
 *     the turn has planned              -> PLANNED    => WORK     (QUERY_BEGIN of wc_api)
 *     QUERY_ENDED of wc_api             -> WORK_OVER  => ANSWER, or PLAN again, or FAIL and END
 *     the turn has filled the stream    -> PAUSED     => ANSWER, if there was room meanwhile
 *     the client has read some          -> ROOM       => ANSWER
 *     the turn has said all, or failed  -> ANSWERED   => END
 *     the pool takes no turn            -> REFUSED    => FAIL, END
 *     client gone, DELETE               -> CANCEL     => STOP or DROP, or FAIL and END at once
 *     wc_life_deadline() has come       -> TICK       => as CANCEL, QF_ETIMEOUT
 *     the server is going down          -> DRAIN, CUT
 *
 * Every SUBMIT that returned QF_OK is answered by exactly one END; with it the machine has
 * forgotten the query. FAIL comes at most once and right before END: nothing of the query runs any
 * more, and its client is to be told. After STOP or DROP the query gets no further turn: the end of
 * what is under way ends it. PLAN, RESUME, ASK, WORK and ANSWER are answered by one event each
 * before the next of them comes: a query has one turn at a time. A query that is canceled while it
 * asks ends at once: the TOLD that still comes is about no query any more.
 *
 * Life of a query ("heard" across; an empty cell is counted in stats.illegal and ignored)
 *
 *                ADMIT    PLANNED PAUSED  MORE      ANSWERED REFUSED
 *     queued     planning
 *     planning            working                   ended    ended
 *     asking                                                 ended
 *     working
 *     answering                   paused  answering ended    ended
 *     paused
 *     streaming                   paused  streaming ended    ended
 *     stopping            ended   ended   ended     ended    ended
 *     dropping
 *
 *                ASK    TOLD     UNTOLD DONE      VANISHED FAILED ROOM      CANCEL   CROWDED
 *     queued                                                                ended    ended
 *     planning   asking                                                     stopping
 *     asking            planning ended                                      ended
 *     working                           answering planning ended            dropping
 *     answering                                                   answering stopping
 *     paused                                                      streaming ended
 *     streaming                                                   streaming stopping
 *     stopping   ended                                            stopping
 *     dropping                          ended     ended    ended
 *
 *   ADMIT: there is a place, and it is the query's turn. MORE is PAUSED after a ROOM that came
 *   during the turn. DONE, VANISHED and FAILED are WORK_OVER with QF_OK, with QF_ENOTFOUND or
 *   QF_EGONE as long as it was not planned replans_max times over (segments were replaced by others,
 *   or heads are gone: look again), and with anything else. TOLD and UNTOLD are TOLD with QF_OK and
 *   with anything else. A second CANCEL is stale: the first reason stands. CROWDED: its tenant has
 *   just got as many streams as it may have.
 *
 * Places: planning, asking, working and answering queries hold one of active_max. A reader that is too
 * slow gives its place away for good with the first pause: from then on it holds memory, and a
 * thread for a turn at a time: a stream. A query that is being stopped keeps what it has.
 *
 * Fairness: tenants with queued queries stand in line. The first of them has its oldest query
 * admitted and goes to the end of the line, if it has more. So a tenant waits for one admission of
 * each other tenant in line at the most, however many queries those have.
 *
 * Shares: a tenant with as many places as it may have does not stand in line: its queries wait until it
 * has fewer, and the places go to others. It then joins the end of the line. A tenant with as many
 * streams as it may have has no queue: what it submits is refused, and what was queued when it got the
 * last of them fails (CROWDED), because its readers may take for ever. A tenant's share is what its
 * latest SUBMIT said; the machine knows a tenant as long as it has queries. Streams may exceed their
 * share by the places: a query that was admitted may turn out to have a slow reader. */
#ifndef WORKCOORD_LIFE_H
#define WORKCOORD_LIFE_H

#include "workcoord/types.h"

struct wc_life; /* Opaque. Allocates in wc_life_new() and never again. */

/* What one tenant may have at once; zero: no less than all of them together. */
struct wc_tenant_share {
    uint32_t active_max;  /* places */
    uint32_t queued_max;  /* queries in the queue; zero: tenant_queue_max */
    uint32_t streams_max; /* answers whose reader is slow */
};

/* Bounds; zero means the default in the comment. */
struct wc_life_limits {
    uint32_t queries_max;      /* 1024: alive at once */
    uint32_t active_max;       /* 64: planning, working or answering at once */
    uint32_t tenant_queue_max; /* 512: queued queries of one tenant */
    uint32_t replans_max;      /* 3: how often a query is planned again */
};
struct wc_life_limits wc_life_limits_default(void);

/* Life of a query; the table of moves is above. */
#define WC_QUERY_STATES(X)                                                                         \
    X(WC_QUERY_QUEUED, "queued")       /* waits for a place */                                     \
    X(WC_QUERY_PLANNING, "planning")   /* a turn plans it */                                       \
    X(WC_QUERY_ASKING, "asking")       /* it waits to hear what is fresh */                        \
    X(WC_QUERY_WORKING, "working")     /* wc_api has it */                                         \
    X(WC_QUERY_ANSWERING, "answering") /* a turn answers it */                                     \
    X(WC_QUERY_PAUSED, "paused")       /* its stream is full */                                    \
    X(WC_QUERY_STREAMING, "streaming") /* a turn answers it, after a pause */                      \
    X(WC_QUERY_STOPPING, "stopping")   /* canceled; the end of its turn ends it */                 \
    X(WC_QUERY_DROPPING, "dropping")   /* canceled; the end of its work ends it */                 \
    X(WC_QUERY_ENDED, "ended")         /* released in the same step; unknown */
enum wc_query_state { WC_QUERY_STATES(WC_ENUM_ENTRY) WC_QUERY__COUNT };

#define WC_LIFE_EVENTS(X)                                                                          \
    X(WC_LIFE_EV_TICK, "tick")           /* wc_life_deadline() has come (early is fine) */         \
    X(WC_LIFE_EV_SUBMIT, "submit")       /* query, .submit */                                      \
    X(WC_LIFE_EV_PLANNED, "planned")     /* query */                                               \
    X(WC_LIFE_EV_ASK, "ask")             /* query: the plan needs what is fresh first */           \
    X(WC_LIFE_EV_TOLD, "told")           /* query, .rc: QF_OK if that is known now */              \
    X(WC_LIFE_EV_PAUSED, "paused")       /* query: the stream is full, its ROOM will come */       \
    X(WC_LIFE_EV_ANSWERED, "answered")   /* query, .rc: how; the client has all it gets */         \
    X(WC_LIFE_EV_REFUSED, "refused")     /* query: PLAN, RESUME, ASK or ANSWER cannot be done */   \
    X(WC_LIFE_EV_WORK_OVER, "work_over") /* query, .rc: QF_OK if every artifact is here */         \
    X(WC_LIFE_EV_ROOM, "room")           /* query */                                               \
    X(WC_LIFE_EV_CANCEL, "cancel")       /* query, .rc: why, QF_ECANCELED if 0 */                  \
    X(WC_LIFE_EV_DRAIN, "drain")         /* take no new queries */                                 \
    X(WC_LIFE_EV_CUT, "cut")             /* and cancel all others, with QF_EUNAVAILABLE */
enum wc_life_event_type { WC_LIFE_EVENTS(WC_ENUM_ENTRY) WC_LIFE_EV__COUNT };

struct wc_life_event {
    enum wc_life_event_type type;
    qf_time_ms now;
    struct wc_query_id query;
    union {
        struct {
            struct wc_tenant_id tenant;
            qf_time_ms deadline; /* QF_TIME_NEVER: none */
            struct wc_tenant_share share;
        } submit;
        qf_rc rc;
    };
};

/* Why a query fails. */
#define WC_LIFE_CAUSES(X)                                                                          \
    X(WC_LIFE_CANCELED, "canceled") /* or its time was up: rc says which */                        \
    X(WC_LIFE_WORK, "work")         /* what wc_api gave as the reason */                           \
    X(WC_LIFE_UNTOLD, "untold")     /* what is fresh could not be found out: rc says why */        \
    X(WC_LIFE_REFUSED, "refused")   /* there was no thread for its turn: QF_EBUSY */               \
    X(WC_LIFE_CROWDED, "crowded")   /* its tenant has too many streams: QF_EBUSY */
enum wc_life_cause { WC_LIFE_CAUSES(WC_ENUM_ENTRY) WC_LIFE_CAUSE__COUNT };

/* What the caller must do, in this order. */
#define WC_LIFE_EFFECTS(X)                                                                         \
    X(WC_LIFE_DO_PLAN, "plan")     /* query, replans: run a turn that plans it (anew) */           \
    X(WC_LIFE_DO_ASK, "ask")       /* query: find out what is fresh; its answer is TOLD */         \
    X(WC_LIFE_DO_RESUME, "resume") /* query, replans: run a turn that goes on planning it */       \
    X(WC_LIFE_DO_WORK, "work")     /* query: begin its work */                                     \
    X(WC_LIFE_DO_ANSWER, "answer") /* query: run a turn that answers it */                         \
    X(WC_LIFE_DO_STOP, "stop")     /* query, rc: have its turn end soon */                         \
    X(WC_LIFE_DO_DROP, "drop")     /* query, rc: cancel its work */                                \
    X(WC_LIFE_DO_FAIL, "fail")     /* query, rc, cause: answer with this error */                  \
    X(WC_LIFE_DO_END, "end")       /* query, rc: it is over */
enum wc_life_effect_type { WC_LIFE_EFFECTS(WC_ENUM_ENTRY) WC_LIFE_DO__COUNT };

struct wc_life_effect {
    enum wc_life_effect_type type;
    enum wc_life_cause cause;
    struct wc_query_id query;
    uint32_t replans;
    qf_rc rc;
};

struct wc_life_effects {
    const struct wc_life_effect *items; /* borrowed until the next step */
    size_t count;
};

/* Create a machine whose tables never outgrow @limits; NULL if out of memory. */
struct wc_life *wc_life_new(const struct wc_life_limits *limits);

/* Release @life, which may be NULL. Returns NULL. */
struct wc_life *wc_life_free(struct wc_life *life);

/* Apply @event. Only SUBMIT can fail, and then nothing has changed and there are no effects:
 * QF_EUNAVAILABLE (draining), QF_ELIMIT (queries_max reached), QF_EBUSY (the tenant has as many
 * queued queries, or as many streams, as it may have: wc_life_tenant() says which), QF_EEXIST (the
 * query is known already). */
QF_MUST_CHECK qf_rc wc_life_step(struct wc_life *life, const struct wc_life_event *event,
                                 struct wc_life_effects *ret_effects);

/* When the next TICK is due, or QF_TIME_NEVER. Constant time. */
qf_time_ms wc_life_deadline(const struct wc_life *life);

/* Call @trace with one line per step, e.g. "[12] submit q3 t1 -> plan q3". NULL: no traces. */
void wc_life_trace(struct wc_life *life, wc_trace_fn *trace, void *ctx);

struct wc_life_stats {
    uint32_t queries[WC_QUERY__COUNT]; /* by state; WC_QUERY_ENDED is 0 */
    uint32_t alive;                    /* sum of the above */
    uint32_t active;                   /* places taken */
    uint32_t tenants;                  /* in line */
    /* counters */
    uint64_t steps, illegal, stale;
    uint64_t submitted, refused, admitted, replanned, ended;
    uint64_t held; /* of those submitted: their tenant had as many places as it may have */
};
const struct wc_life_stats *wc_life_stats(const struct wc_life *life);

/* What a tenant has now. */
struct wc_life_tenant_view {
    uint32_t active, queued, streams;
    bool in_line;
};
/* All zero if it has no queries. */
struct wc_life_tenant_view wc_life_tenant(const struct wc_life *life, struct wc_tenant_id tenant);

/* WC_QUERY_ENDED if the query is unknown. */
enum wc_query_state wc_life_state(const struct wc_life *life, struct wc_query_id query);

/* The words of the tables above; "?" for a value outside. */
const char *wc_query_state_name(enum wc_query_state state);
const char *wc_life_event_name(enum wc_life_event_type type);
const char *wc_life_effect_name(enum wc_life_effect_type type);
const char *wc_life_cause_name(enum wc_life_cause cause);

#endif
