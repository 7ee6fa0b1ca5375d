/* coordinator.h - the thread that owns the worker's state machine, its sessions and its works. */
#ifndef QUERYWORKER_WORK_COORDINATOR_H
#define QUERYWORKER_WORK_COORDINATOR_H

#include "queryworker/artifact/serve.h"
#include "queryworker/budget/budget.h"
#include "queryworker/cache/cache.h"
#include "queryworker/cache/identity.h"
#include "queryworker/rpc/control_server.h"
#include "workcoord/lane_worker.h"
#include "workcoord/worker.h"

struct qw_coordinator;

/* The lane for background jobs; slots 0: there is none. */
struct qw_background {
    uint32_t slots;       /* at most WC_LANE_SLOTS_MAX */
    uint64_t memory;      /* of a job */
    uint64_t rate;        /* bytes a second that all read and write; 0: any number */
    struct qf_pool *pool; /* as many threads as slots and as much queue; borrowed, as the rest */
    struct sg_store *store;
    const char *temp_dir;
};

struct qw_coordinator_options {
    struct wc_worker_limits limits;
    struct pb_limits work_limits; /* what a work may use; the API can ask for less */
    struct qw_budget_limits budget;
    int64_t drain_timeout_ms;
    struct qw_background background;

    /* Borrowed. */
    struct qf_mailbox *mailbox;
    struct qf_pool *pool; /* at least limits.slots threads and as much queue */
    struct qw_spool *spool;
    struct qw_metrics *metrics;
    struct qw_http_state *http_state;
    struct qw_identity *identity; /* of the store; NULL: statuses do not tell it */
};

/* Never NULL. */
struct qw_coordinator *qw_coordinator_new(const struct qw_coordinator_options *options);
/* Accepts NULL, returns NULL. Only after qw_coordinator_run() or before attach. */
struct qw_coordinator *qw_coordinator_free(struct qw_coordinator *co);

/* What the server and the cache call. */
struct qw_server_handler qw_coordinator_handler(struct qw_coordinator *co);
bool qw_coordinator_make_room(void *co, uint64_t cache_bytes);

/* Hand in the parts that were made with the callbacks above; both are the coordinator's to stop but
 * the caller's to free. @base_url has no slash at its end. */
void qw_coordinator_attach(struct qw_coordinator *co, struct qw_server *server,
                           struct qw_cache *cache, const char *worker_id, const char *base_url);

/* Turn the loop until drained, then end all works, downloads and streams. False if something did
 * not end in time: threads are still at work and the process should simply exit. */
bool qw_coordinator_run(struct qw_coordinator *co, int signal_fd);

#endif
