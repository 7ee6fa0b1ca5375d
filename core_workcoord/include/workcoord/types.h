/* types.h - ids, states and reasons that both sides of the work coordination share.
 *
 * The core sees opaque 64-bit numbers; daemons map their strings (query ids, work ids, URLs) to
 * them and keep everything heavy (specs, artifacts) outside. An id must be unique among those alive
 * in one core and is best never used again in the life of a process.
 *
 * Words that mean one thing each, here and in the daemons:
 *
 *     work      one leaf of a query over one group of segments: what is to be done, whoever does it
 *     item      the API's record of a work, over all attempts
 *     attempt   one assignment of a work to a worker, counted from 1
 *     run       the worker's record of one attempt it accepted
 *     task      what a run hands to a thread of the pool that executes it */
#ifndef WORKCOORD_TYPES_H
#define WORKCOORD_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/duration.h"
#include "base/pure/err.h"
#include "base/pure/macros.h"

struct wc_query_id {
    uint64_t v;
};
/* Whose query it is; queries of one tenant share a queue. */
struct wc_tenant_id {
    uint64_t v;
};
struct wc_leaf_id {
    uint64_t v;
};
/* One work. It stays the same over all attempts. */
struct wc_work_id {
    uint64_t v;
};
/* One discovered worker endpoint, as the API's daemon numbers them. */
struct wc_worker_id {
    uint64_t v;
};
/* One life of one control stream. A new stream is a new session, never 0. */
struct wc_session_id {
    uint64_t v;
};
/* One run; numbered by the worker core from 1. */
struct wc_run_id {
    uint64_t v;
};
/* XXH3-128 of an artifact's bytes. */
struct wc_checksum {
    uint64_t high, low;
};

/* Receives one line per step, without newline; @line lives only during the call. */
typedef void wc_trace_fn(void *ctx, const char *line, size_t len);

/* Longer traces end in " ..(+N)", N being the effects left out. */
#define WC_TRACE_MAX 1000

/* Heartbeats, both sides: one each second, a peer silent for three of them is lost. */
#define WC_HEARTBEAT_MS 1000
#define WC_HEARTBEATS_MISSED_MAX 3

/* Why a worker turned an assignment down. */
#define WC_REJECTS(X)                                                                              \
    X(WC_REJECT_DRAINING, "draining")           /* it is shutting down */                          \
    X(WC_REJECT_NOT_ACCEPTING, "not_accepting") /* it was told to take no work */                  \
    X(WC_REJECT_FULL, "full")                   /* its table of work is full */

/* How fetching an artifact went wrong; each means "run it again". */
#define WC_FETCH_ERRORS(X)                                                                         \
    X(WC_FETCH_IO, "io")             /* could not connect, cut short, server error */              \
    X(WC_FETCH_CHECKSUM, "checksum") /* size or checksum differs from what was announced */        \
    X(WC_FETCH_EXPIRED, "expired")   /* the worker no longer has it */

/* Life of an item on the API side; the table of moves is in api.h. */
#define WC_ITEM_STATES(X)                                                                          \
    X(WC_ITEM_PENDING, "pending")   /* waits for a worker */                                       \
    X(WC_ITEM_ASSIGNED, "assigned") /* sent, no answer yet */                                      \
    X(WC_ITEM_ACCEPTED, "accepted") /* the worker has it queued or running */                      \
    X(WC_ITEM_READY, "ready")       /* announced, being fetched */                                 \
    X(WC_ITEM_FETCHED, "fetched")   /* verified and committed */                                   \
    X(WC_ITEM_FAILED, "failed")     /* ends its query, and is released with it */                  \
    X(WC_ITEM_CANCELED, "canceled") /* released with its query */

/* Life of an item's second attempt on the API side; the table of moves is in api.h. */
#define WC_HEDGE_STATES(X)                                                                         \
    X(WC_HEDGE_NONE, "none")         /* there is none */                                           \
    X(WC_HEDGE_ASSIGNED, "assigned") /* as those of items */                                       \
    X(WC_HEDGE_ACCEPTED, "accepted")                                                               \
    X(WC_HEDGE_READY, "ready")

/* Life of a worker on the API side. */
#define WC_PEER_STATES(X)                                                                          \
    X(WC_PEER_DOWN, "down")           /* waits for the next dial */                                \
    X(WC_PEER_DIALING, "dialing")     /* the daemon was told to dial */                            \
    X(WC_PEER_CONNECTED, "connected") /* stream open, first status awaited */                      \
    X(WC_PEER_ALIVE, "alive")         /* status known */                                           \
    X(WC_PEER_GONE, "gone")           /* released in the same step */

/* Life of a run on the worker side; the table of moves is in worker.h. */
#define WC_RUN_STATES(X)                                                                           \
    X(WC_RUN_QUEUED, "queued")     /* accepted, waits for a slot */                                \
    X(WC_RUN_LOADING, "loading")   /* holds a slot, waits for its segments */                      \
    X(WC_RUN_RUNNING, "running")   /* holds a slot, executes */                                    \
    X(WC_RUN_STOPPING, "stopping") /* told to stop, still executes and holds its slot */           \
    X(WC_RUN_READY, "ready")       /* artifact kept until acknowledged */                          \
    X(WC_RUN_ACKED, "acked")       /* artifact kept a little longer */                             \
    X(WC_RUN_GONE, "gone")         /* released in the same step */

#define WC_ENUM_ENTRY(code, name) code,
enum wc_reject { WC_REJECTS(WC_ENUM_ENTRY) WC_REJECT__COUNT };
enum wc_fetch_error { WC_FETCH_ERRORS(WC_ENUM_ENTRY) WC_FETCH__COUNT };
enum wc_item_state { WC_ITEM_STATES(WC_ENUM_ENTRY) WC_ITEM__COUNT };
enum wc_hedge_state { WC_HEDGE_STATES(WC_ENUM_ENTRY) WC_HEDGE__COUNT };
enum wc_peer_state { WC_PEER_STATES(WC_ENUM_ENTRY) WC_PEER__COUNT };
enum wc_run_state { WC_RUN_STATES(WC_ENUM_ENTRY) WC_RUN__COUNT };

/* The words of the tables above; "?" for a value outside. */
const char *wc_reject_name(enum wc_reject reject);
const char *wc_fetch_error_name(enum wc_fetch_error error);
const char *wc_item_state_name(enum wc_item_state state);
const char *wc_hedge_state_name(enum wc_hedge_state state);
const char *wc_peer_state_name(enum wc_peer_state state);
const char *wc_run_state_name(enum wc_run_state state);

/* Workers that keep what one item, or one job, reads. */
#define WC_OWNERS_MAX 7

#endif
