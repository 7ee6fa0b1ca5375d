/* sim_int.h - the simulated world. */
#ifndef TESTS_SIM_QUEUE_SIM_INT_H
#define TESTS_SIM_QUEUE_SIM_INT_H

#include "base/pure/heap.h"
#include "base/pure/prng.h"
#include "base/pure/vec.h"
#include "queue/core/core.h"
#include "tests/lib/queue/sim_disk.h"
#include "tests/sim_queue/history.h"
#include "tests/sim_queue/sim.h"

enum { SIM_NODES = 9, SIM_CLIENTS = 4, SIM_CLUSTER = 77, SIM_BOUND = 24 };

enum sim_kind {
    SIM_MESSAGE, /* to node: .message */
    SIM_TICK,
    SIM_SYNC,   /* begins */
    SIM_SYNCED, /* its end is heard of: .index, .term */
    SIM_FETCHED,
    SIM_RESTART,
    SIM_REQUEST, /* of .client, reaches the node */
    SIM_CLIENT,  /* begins something new */
    SIM_CHAOS,
    SIM_OPERATOR,
    SIM_FILL,    /* some disk becomes full, or is freed */
    SIM_RETRY,   /* entries that found no room */
    SIM_SAVED,   /* the snapshot that a node took */
    SIM_PROPOSE, /* some application makes records */
    SIM_FLUSH    /* an application hands over what it made */
};

struct sim_event {
    enum sim_kind kind;
    uint32_t node, client;
    uint64_t life; /* of the node; the operation of the client */
    uint64_t index, term, from;
    qf_rc rc;
    struct qc_message message;
    void *owned; /* entries and bytes of the message */
};

struct sim_slot {
    uint64_t at, order;
    uint32_t event;
};

struct sim_fetched {
    struct ql_snapshot snapshot;
    struct qf_strbuf bytes; /* members and state */
    QF_VEC(struct ql_entry) entries;
    struct qf_strbuf data; /* of the entries */
    bool there;
};

struct sim_held {
    struct ql_entry entry; /* its data is owned */
    bool urgent;
};

/* A record of an application, which stands on the one before. */
struct sim_link {
    uint64_t value, link, term;
    uint32_t bytes;
    bool large; /* too large for the log */
};

struct sim_end {
    uint64_t value;
    qf_rc rc;
    uint64_t index;
};

struct sim_app {
    uint64_t term; /* that it leads in; 0: it does not */
    uint64_t tip;  /* the last link that it made, or found when it began to lead */
    bool gathering;
    uint64_t flushed_from;           /* values of the submission that is being looked at */
    QF_VEC(struct sim_link) round;   /* made, not handed over */
    QF_VEC(struct sim_link) pending; /* handed over */
    QF_VEC(struct sim_end) ends;     /* heard of in this step */
};

struct sim_node {
    uint32_t number;
    char name[16];
    uint64_t id; /* incarnation */
    struct sim_disk *disk;
    struct ql_store store;
    struct qc_core *core;
    bool exists, up, lost; /* lost: wiped or damaged; its member waits to be replaced */
    uint64_t life;
    uint64_t clock_base, clock_start; /* its own clock: base + (now - start) * rate */
    double clock_rate;
    uint64_t tick_at;
    bool syncing;
    uint64_t seen_term, seen_commit;
    struct sim_fetched fetched;
    struct qf_strbuf saving;      /* snapshot.dat to be; empty: none */
    QF_VEC(struct sim_held) held; /* in order: nothing is appended before them */
    uint64_t space_told;
    struct sim_app app;
};

enum sim_operation { SIM_OFFER, SIM_READ, SIM_CONSUME, SIM_OFFSET, SIM_TRIM };

struct sim_client {
    uint64_t operation; /* number of the present one; 0: idle */
    enum sim_operation kind;
    enum qc_level level;
    uint64_t value;
    uint64_t from, to; /* CONSUME, TRIM */
    uint64_t offset, offset_acked;
    bool submitting; /* the node is being asked right now */
    struct history_begin begin;
};

struct sim_truth {
    uint64_t term, check, state_check;
    uint64_t link; /* the last one so far */
};

struct sim {
    struct sim_options options;
    struct sim_result result;
    struct qf_prng prng, fill_prng;
    uint64_t now; /* microseconds */
    bool calm;
    bool submitting;     /* some node is being asked right now */
    uint32_t node_count; /* slots in use */
    struct sim_node nodes[SIM_NODES];
    bool cut[SIM_NODES][SIM_NODES]; /* from, to */
    double loss, doubling, slow;
    uint64_t storm; /* microseconds within which the next fault comes */
    struct sim_client clients[SIM_CLIENTS];
    uint64_t operations;
    uint64_t change_request; /* the operator's, 0: none */
    uint64_t change_until;
    uint64_t calm_acked, calm_reads, calm_changes, calm_applied, calm_links, calm_until;
    struct history *history;
    QF_VEC(struct sim_truth) truth; /* by index; what was applied first anywhere */
    struct qc_state reference;      /* of truth */
    QF_VEC(uint64_t) leaders;       /* by term: id */
    uint64_t reach;                 /* greatest applied index */
    QF_VEC(struct sim_event) events;
    QF_VEC(uint32_t) free_events;
    QF_VEC(struct sim_slot) slots;
    struct qf_heap queue;
    uint64_t order;
    struct qf_strbuf scratch;
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
void sim_trace(struct sim *sim, const char *fmt, ...) QF_PRINTF(2, 3);
void sim_post(struct sim *sim, uint64_t delay_us, const struct sim_event *event);

/* node.c */
void sim_node_create(struct sim *sim, uint32_t node, bool bootstrap);
void sim_node_start(struct sim *sim, uint32_t node);
void sim_node_crash(struct sim *sim, uint32_t node, bool power);
void sim_node_step(struct sim *sim, uint32_t node, struct qc_event *event);
void sim_node_snapshot(struct sim *sim, uint32_t node);
void sim_node_saved(struct sim *sim, uint32_t node);
void sim_node_sync(struct sim *sim, uint32_t node);
void sim_node_synced(struct sim *sim, const struct sim_event *event);
void sim_node_fetched(struct sim *sim, const struct sim_event *event);
void sim_node_retry(struct sim *sim, uint32_t node);
/* Tell the core how much room there is, if that changed. */
void sim_node_space(struct sim *sim, uint32_t node);
void sim_node_free(struct sim_node *node);
struct sim_node *sim_node_of(struct sim *sim, uint64_t id);

/* net.c */
void sim_send(struct sim *sim, struct sim_node *from, const struct qc_message *message);
void sim_arrive(struct sim *sim, struct sim_event *event);

/* check.c */
void sim_check_applied(struct sim *sim, struct sim_node *node, uint64_t before);
void sim_check_node(struct sim *sim, struct sim_node *node);
const struct qc_state *sim_reference(const struct sim *sim);

/* client.c */
void sim_client_begin(struct sim *sim, uint32_t client);
void sim_client_request(struct sim *sim, const struct sim_event *event);
void sim_client_done(struct sim *sim, struct sim_node *node, uint64_t request, qf_rc rc,
                     uint64_t index);

/* app.c */
void sim_app_propose(struct sim *sim);
void sim_app_flush(struct sim *sim, uint32_t node);
void sim_app_done(struct sim_node *node, uint64_t value, qf_rc rc, uint64_t index);
void sim_app_stepped(struct sim *sim, struct sim_node *node); /* it may lead now, or no more */
void sim_app_forget(struct sim_app *app);                     /* its process ended */
void sim_app_free(struct sim_app *app);
void sim_app_save(struct sim *sim, struct ql_snapshot *snapshot, unsigned char state[8]);
void sim_app_check_snapshot(struct sim *sim, const struct sim_node *node);
uint64_t sim_link_of(struct qf_str record); /* 0: it is none */

/* chaos.c */
void sim_chaos(struct sim *sim);
void sim_fill(struct sim *sim);
void sim_calm(struct sim *sim);
void sim_operator(struct sim *sim);
bool sim_is_repaired(struct sim *sim); /* members are all well, and one was added */
void sim_operator_done(struct sim *sim, qf_rc rc);
/* The request numbers of operators; those of clients are below. */
#define SIM_OPERATOR_REQUEST (UINT64_C(1) << 62)
#define SIM_TOGETHER_REQUEST (UINT64_C(1) << 61) /* and the value */
#define SIM_LINK_REQUEST (UINT64_C(1) << 60)     /* and the value */

#endif
