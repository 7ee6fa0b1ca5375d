/* api_world.h - the API core among modelled workers, for exploration: what can be said and done.
 *
 * The core under test is the real one; workers and network are modelled as everything that can
 * happen. A worker that has not yet read a cancel may still say anything about that work. */
#ifndef TESTS_EXPLORE_API_WORLD_H
#define TESTS_EXPLORE_API_WORLD_H

#include "api_int.h"
#include "tests/explore/explore.h"

enum { WORKERS_MAX = 3, ITEMS_MAX = 3, RECORDS = 4, NOW = 1000, DEATHS = 2 };

enum fault { LOSE, DRAIN, PAUSE, REJECT, RETRY, FINAL, FETCH, DUP, CANCEL, REMOVE, HEDGE, FAULTS };

enum kind {
    K_CONNECT,
    K_GREET, /* first status, or accepting again */
    K_LOSE,
    K_DRAIN,
    K_PAUSE,
    K_DISCOVER,
    K_REMOVE,
    K_DUP,
    K_ACCEPT,
    K_REJECT,
    K_READY,
    K_RETRY,
    K_FINAL,
    K_DELIVER, /* a cancel or ack reaches the worker */
    K_FETCHED,
    K_FETCH_FAILED,
    K_CANCEL,
    K_HEDGE, /* an item has taken too long */
    K__COUNT
};

enum stage { NOTHING, SENT, ACCEPTED, READY };

/* What a worker knows of one attempt. */
struct record {
    uint8_t stage;
    bool over; /* the API has sent a cancel or an ack, not read yet */
    uint32_t attempt;
};

struct last_message {
    uint8_t type; /* 0: none */
    uint8_t item;
    uint32_t attempt;
};

struct peer_model {
    bool known, dialing, open, greeted, accepting, draining;
    bool told; /* its last status said it accepts */
    uint64_t session;
    struct last_message last;
    struct record records[ITEMS_MAX][RECORDS];
};

struct model {
    struct peer_model workers[WORKERS_MAX];
    uint32_t fetches[ITEMS_MAX][RECORDS]; /* attempts being downloaded */
    uint8_t faults[FAULTS];               /* left of each kind... */
    uint8_t any;                          /* ...and of any kind */
    uint8_t committed;                    /* bit per item */
    bool ended;
    uint8_t blamed[ITEMS_MAX]; /* workers that died while they ran it, since it was last ready */
    uint64_t sessions;
};

struct world {
    struct wc_api *wc;
    size_t workers, items;
    uint32_t share; /* items that may be with workers at once; 0: all */
    uint32_t
        owners; /* workers that keep what an item reads: its second choice, its third, and so on */
    bool warm;
    bool deadly; /* streams break because workers die */
    uint8_t any;
    uint8_t faults[FAULTS];
    struct model model, saved_models[EXPLORE_DEPTH_MAX + 1];
    void *saved[EXPLORE_DEPTH_MAX + 1];
    bool drained;   /* the stream that is being lost was that of a draining worker */
    bool duplicate; /* the running move repeats a message */
    const char *error;
};

static inline uint16_t move_of(enum kind kind, size_t worker, size_t item, size_t record)
{
    return (uint16_t)(kind << 6 | worker << 4 | item << 2 | record);
}

/* Is there a fault of this kind left? */
static inline bool can(const struct world *world, enum fault fault)
{
    return world->model.faults[fault] || world->model.any;
}

void api_world_begin(struct world *world);
/* Is the item on a worker, and would be sent to one more if it took too long? */
bool api_world_waits(const struct world *world, size_t item);
/* Callbacks of struct explore_world. */
void api_world_save(void *ctx, uint32_t level);
void api_world_restore(void *ctx, uint32_t level);
void api_world_reset(void *ctx);
const char *api_world_apply(void *ctx, uint16_t move);

#endif
