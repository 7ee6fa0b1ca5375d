/* sim_int.h - the simulated world. */
#ifndef TESTS_SIM_SIM_INT_H
#define TESTS_SIM_SIM_INT_H

#include "base/pure/heap.h"
#include "base/pure/prng.h"
#include "base/pure/vec.h"
#include "tests/sim/sim.h"
#include "workcoord/api.h"
#include "workcoord/life.h"
#include "workcoord/worker.h"

enum { SIM_APIS = 128, SIM_WORKERS = 1024, SIM_ITEMS = 6, SIM_TENANTS = 3 };

enum sim_kind {
    SIM_TO_API,    /* .api_event */
    SIM_TO_WORKER, /* .worker_event */
    SIM_DIAL,      /* api -> worker */
    SIM_LOAD_END,  /* .worker_event.run: its segments are there, or will not come */
    SIM_RUN_END,   /* .worker_event.run: its task is back */
    SIM_FETCH_END, /* .api_event.work, attempt, session */
    SIM_CHAOS,
    SIM_QUERY,   /* a client asks the api */
    SIM_TO_LIFE, /* .life_event */
    SIM_BEGIN,   /* .life_event.query: what was planned goes to work */
    SIM_START_API,
    SIM_START_WORKER
};

struct sim_event {
    enum sim_kind kind;
    uint32_t api, worker;
    uint32_t api_life, worker_life; /* for whom it was meant */
    uint64_t session;
    bool closing; /* end of a stream: never lost */
    struct wc_api_event api_event;
    struct wc_life_event life_event;
    struct wc_worker_event worker_event;
};

struct sim_slot {
    qf_time_ms at;
    uint64_t order;
    uint32_t event;
};

struct sim_session {
    uint32_t api, worker;
    bool open;             /* neither side has hung up */
    bool lossy;            /* broken: what is under way may be lost */
    bool deaf[2];          /* half open: nothing arrives at the API / at the worker */
    qf_time_ms arrival[2]; /* of the last message to the API / to the worker */
};

/* What the worker's daemon has of a run. */
struct sim_run_record {
    uint64_t work;
    bool held;      /* its segments */
    bool executing; /* its task */
    bool stopped;   /* its task was told to */
    bool artifact;
    bool reported; /* as ready or failed */
    bool over;
};

struct sim_api {
    struct wc_api *core;
    struct wc_life *life;
    uint8_t passed[SIM_TENANTS]; /* bit per tenant admitted since this one is in line */
    uint8_t twice, admitted;     /* in this step: bit per tenant passed over twice; admitted */
    uint32_t life_number;        /* how often it was started */
};

struct sim_worker {
    struct wc_worker *core;
    uint32_t life;
    bool slow;
    QF_VEC(struct sim_run_record) runs; /* by run id - 1 */
};

struct sim_query {
    uint32_t api, api_life;
    uint32_t tenant;
    uint32_t items, committed; /* of its latest plan */
    bool turn, working;        /* what is under way... */
    bool stopped;              /* ...is the last there is */
    bool full;                 /* its stream: ROOM will come */
    bool ended;
};

struct sim_work {
    uint64_t query;
    uint32_t owners; /* bit per worker that keeps its data, of the first 8... */
    uint32_t sent;   /* ...and per worker of those that was given it */
    bool committed, hedged;
};

struct sim {
    struct sim_options options;
    struct sim_result result;
    struct qf_prng prng;
    qf_time_ms now;
    bool calm; /* the faults are over */
    uint32_t api_count, worker_count;
    struct sim_api apis[SIM_APIS];
    struct sim_worker workers[SIM_WORKERS];
    QF_VEC(struct sim_session) sessions; /* by id - 1 */
    QF_VEC(struct sim_query) queries;    /* by id - 1 */
    QF_VEC(struct sim_work) works;       /* by id - 1 */
    uint64_t queries_open;
    QF_VEC(struct sim_event) events;
    QF_VEC(uint32_t) free_events;
    QF_VEC(struct sim_slot) slots;
    struct qf_heap queue;
    uint64_t order;
};

static inline uint64_t sim_below(struct sim *sim, uint64_t bound)
{
    return qf_prng_below(&sim->prng, bound);
}
static inline bool sim_chance(struct sim *sim, double probability)
{
    return !sim->calm && qf_prng_chance(&sim->prng, probability);
}

/* sim.c */
void sim_fail(struct sim *sim, const char *why);
void sim_post(struct sim *sim, qf_time_ms delay, const struct sim_event *event);
qf_time_ms sim_delay(struct sim *sim); /* of a message or connection */

/* sim_api.c */
void sim_api_start(struct sim *sim, uint32_t api);
void sim_api_stop(struct sim *sim, uint32_t api);
void sim_api_step(struct sim *sim, uint32_t api, struct wc_api_event *event);
qf_rc sim_api_try(struct sim *sim, uint32_t api, struct wc_api_event *event);
void sim_api_dialed(struct sim *sim, const struct sim_event *event);
void sim_api_fetch_end(struct sim *sim, const struct sim_event *event);

/* sim_query.c */
void sim_query_submit(struct sim *sim, uint32_t api);
void sim_query_begin(struct sim *sim, const struct sim_event *event);
void sim_query_life(struct sim *sim, uint32_t api, struct wc_life_event *event);
void sim_query_committed(struct sim *sim, const struct wc_api_effect *effect);
/* The work of a query is over, or could not begin. */
void sim_query_work_over(struct sim *sim, struct wc_query_id query, qf_rc rc);

/* sim_worker.c */
uint64_t sim_worker_key(uint32_t worker);
void sim_worker_start(struct sim *sim, uint32_t worker);
void sim_worker_stop(struct sim *sim, uint32_t worker, bool silently);
void sim_worker_step(struct sim *sim, uint32_t worker, struct wc_worker_event *event);
void sim_worker_end(struct sim *sim, uint32_t worker);
void sim_worker_load_end(struct sim *sim, const struct sim_event *event);
void sim_worker_run_end(struct sim *sim, const struct sim_event *event);

/* sim_net.c */
void sim_send_api(struct sim *sim, uint64_t session, const struct wc_api_event *event);
void sim_send_worker(struct sim *sim, uint64_t session, const struct wc_worker_event *event);
void sim_close(struct sim *sim, uint64_t session, bool tell_api, bool tell_worker);
void sim_chaos(struct sim *sim);

#endif
