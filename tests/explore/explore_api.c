/* explore_api.c - every reachable state of the API side in a small world, all invariants in each.
 *
 * usage: explore_api [workers=N] [items=N] [lose=N] [drain=N] [pause=N] [reject=N] [retry=N]
 * [final=N] [fetch=N] [dup=N] [cancel=N] [remove=N] [states=N]
 *
 * The core under test is the real one; workers and network are modelled as everything that can
 * happen: each worker answers what it was sent in any order relative to the others, messages to it
 * arrive at any time later, the stream breaks at any moment. The numbers bound how often each fault
 * happens in one history. A worker that has not yet read a cancel may still say anything about that
 * work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_int.h"
#include "base/pure/alloc.h"
#include "tests/explore/explore.h"
#include "tests/lib/core/coretest.h"

enum { WORKERS_MAX = 3, ITEMS_MAX = 3, RECORDS = 4, NOW = 1000 };

enum fault { LOSE, DRAIN, PAUSE, REJECT, RETRY, FINAL, FETCH, DUP, CANCEL, REMOVE, FAULTS };
static const char *const fault_names[FAULTS] = { "lose",  "drain", "pause", "reject", "retry",
                                                 "final", "fetch", "dup",   "cancel", "remove" };

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
    K__COUNT
};
static const char *const kind_names[K__COUNT] = {
    "connect", "greet", "lose",  "drain", "pause", "discover", "remove",    "dup",         "accept",
    "reject",  "ready", "retry", "final", "reads", "fetched",  "fetchfail", "cancel query"
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
    uint8_t faults[FAULTS];               /* left */
    uint8_t committed;                    /* bit per item */
    bool ended;
    uint64_t sessions;
};

struct world {
    struct wc_api *wc;
    size_t workers, items;
    bool warm;
    uint8_t faults[FAULTS];
    struct model model, saved_models[EXPLORE_DEPTH_MAX + 1];
    void *saved[EXPLORE_DEPTH_MAX + 1];
    bool duplicate; /* the running move repeats a message */
    const char *error;
};

static uint16_t move_of(enum kind kind, size_t worker, size_t item, size_t record)
{
    return (uint16_t)(kind << 6 | worker << 4 | item << 2 | record);
}

static void fail(struct world *world, const char *why)
{
    world->error = why;
}

static struct record *record_of(struct model *model, const struct wc_api_effect *effect)
{
    struct record *records = model->workers[effect->worker.v - 1].records[effect->work.v - 1];

    for (int i = 0; i < RECORDS; i++) {
        if (records[i].stage && records[i].attempt == effect->attempt)
            return &records[i];
    }
    return NULL;
}

static void on_assign(struct world *world, const struct wc_api_effect *effect)
{
    struct peer_model *peer = &world->model.workers[effect->worker.v - 1];
    struct record *records = peer->records[effect->work.v - 1];
    struct wc_api_worker_view view;

    if (!peer->open || effect->session.v != peer->session || !peer->greeted)
        fail(world, "work sent to a worker without a stream");
    if (!peer->told || peer->draining)
        fail(world, "work sent to a worker that said it takes none");
    if (!wc_api_worker(world->wc, effect->worker, &view) || !view.available)
        fail(world, "work sent to a worker that is not available");
    for (int i = 0; i < RECORDS; i++) {
        if (!records[i].stage) {
            records[i] = (struct record){ .stage = SENT, .attempt = effect->attempt };
            return;
        }
    }
    fail(world, "the model has no room for another attempt");
}

static void on_fetch(struct world *world, const struct wc_api_effect *effect)
{
    uint32_t *fetches = world->model.fetches[effect->work.v - 1];

    for (int i = 0; i < RECORDS; i++) {
        if (!fetches[i]) {
            fetches[i] = effect->attempt;
            return;
        }
    }
    fail(world, "the model has no room for another download");
}

static void on_committed(struct world *world, const struct wc_api_effect *effect)
{
    uint8_t bit = (uint8_t)(1 << (effect->work.v - 1));

    if (world->model.committed & bit)
        fail(world, "committed twice");
    world->model.committed |= bit;
    memset(world->model.fetches[effect->work.v - 1], 0, sizeof(world->model.fetches[0]));
}

static void on_ended(struct world *world, const struct wc_api_effect *effect)
{
    uint8_t all = (uint8_t)((1 << world->items) - 1);

    if (world->model.ended)
        fail(world, "ended twice");
    if ((effect->rc == QF_OK) != (world->model.committed == all))
        fail(world, "ended ok without every item, or failed with all of them");
    world->model.ended = true;
    memset(world->model.fetches, 0, sizeof(world->model.fetches));
}

static void hang_up(struct world *world, size_t worker)
{
    struct peer_model *peer = &world->model.workers[worker];

    peer->open = peer->greeted = peer->accepting = peer->draining = peer->told = false;
    memset(&peer->last, 0, sizeof(peer->last));
    memset(peer->records, 0, sizeof(peer->records));
}

static void on_effect(struct world *world, const struct wc_api_effect *effect)
{
    struct model *model = &world->model;
    struct record *record;

    switch (effect->type) {
    case WC_API_DO_DIAL:
        model->workers[effect->worker.v - 1].dialing = true;
        break;
    case WC_API_DO_HANGUP:
        if (model->workers[effect->worker.v - 1].session == effect->session.v)
            hang_up(world, effect->worker.v - 1);
        break;
    case WC_API_DO_ASSIGN:
        on_assign(world, effect);
        break;
    case WC_API_DO_CANCEL:
        record = record_of(model, effect);
        if (!record || record->over)
            fail(world, "cancel of something the worker does not have");
        else
            record->over = true;
        break;
    case WC_API_DO_ACK:
        record = record_of(model, effect);
        if (record)
            record->over = true;
        break;
    case WC_API_DO_FETCH:
        on_fetch(world, effect);
        break;
    case WC_API_DO_COMMITTED:
        on_committed(world, effect);
        break;
    case WC_API_DO_QUERY_ENDED:
        on_ended(world, effect);
        break;
    case WC_API_DO_HEARTBEAT:
        fail(world, "time does not pass in this world");
        break;
    case WC_API_DO_LOST:
    case WC_API_DO__COUNT:
        break;
    }
}

static void step(struct world *world, struct wc_api_event *event)
{
    uint64_t illegal = wc_api_stats(world->wc)->illegal;
    struct wc_api_effects effects;

    event->now = NOW;
    if (wc_api_step(world->wc, event, &effects) != QF_OK)
        fail(world, "a step was refused");
    for (size_t i = 0; i < effects.count; i++)
        on_effect(world, &effects.items[i]);
    if (wc_api_stats(world->wc)->illegal != illegal && !world->duplicate)
        fail(world, "an honest message was counted as illegal");
    if (wc_api_deadline(world->wc) <= NOW) {
        struct wc_api_event tick = { .type = WC_API_EV_TICK };

        step(world, &tick);
    }
}

static void step_worker(struct world *world, enum wc_api_event_type type, size_t worker)
{
    struct peer_model *peer = &world->model.workers[worker];
    struct wc_api_event event = { .type = type, .worker = { worker + 1 } };

    if (type != WC_API_EV_DISCOVERED && type != WC_API_EV_REMOVED)
        event.session.v = peer->session;
    if (type == WC_API_EV_STATUS) {
        event.status.worker_key = core_worker_key(worker + 1);
        event.status.accepting = peer->accepting;
        event.status.draining = peer->draining;
        peer->told = peer->accepting;
    }
    step(world, &event);
}

static void say(struct world *world, enum wc_api_event_type type, size_t worker, size_t item,
                uint32_t attempt, bool retryable)
{
    struct peer_model *peer = &world->model.workers[worker];
    struct wc_api_event event = {
        .type = type,
        .worker = { worker + 1 },
        .session = { peer->session },
        .work = { item + 1 },
        .attempt = attempt,
    };

    if (type == WC_API_EV_READY)
        event.checksum.low = item;
    if (type == WC_API_EV_FAILED) {
        event.failure.retryable = retryable;
        event.failure.rc = QF_EIO;
    }
    if (world->model.faults[DUP]) {
        peer->last = (struct last_message){ (uint8_t)type, (uint8_t)item, attempt };
        if (type == WC_API_EV_FAILED && !retryable)
            peer->last.type = 0; /* ends the query: nothing to repeat it to */
    }
    step(world, &event);
}

static void step_fetch(struct world *world, enum wc_api_event_type type, size_t item, size_t record)
{
    struct wc_api_event event = {
        .type = type,
        .work = { item + 1 },
        .attempt = world->model.fetches[item][record],
    };

    world->model.fetches[item][record] = 0;
    if (type == WC_API_EV_FETCHED)
        event.checksum.low = item;
    step(world, &event);
}

static void apply_to_worker(struct world *world, enum kind kind, size_t w);

/* Every worker is known and dialed (warm: connected too), and the query has begun. */
static void begin(struct world *world)
{
    struct wc_api_limits limits = {
        .workers_max = (uint32_t)world->workers,
        .queries_max = 1,
        .items_max = (uint32_t)world->items,
        .attempts_max = 3,
    };
    struct wc_api_item_spec items[ITEMS_MAX];
    struct wc_api_event event = { .type = WC_API_EV_QUERY_BEGIN, .query = { 1 } };

    world->wc = wc_api_new(&limits);
    memcpy(world->model.faults, world->faults, sizeof(world->faults));
    for (size_t i = 0; i < world->items; i++) {
        uint64_t order[] = { i % world->workers + 1, (i + 1) % world->workers + 1 };

        items[i] = (struct wc_api_item_spec){ { i + 1 }, { 1 }, 0 };
        items[i].affinity = core_affinity(order, QF_MIN(world->workers, (size_t)2), world->workers);
    }
    for (size_t i = 0; i < world->workers; i++) {
        world->model.workers[i].known = true;
        step_worker(world, WC_API_EV_DISCOVERED, i);
        if (world->warm) {
            apply_to_worker(world, K_CONNECT, i);
            apply_to_worker(world, K_GREET, i);
        }
    }
    event.begin.items = items;
    event.begin.count = world->items;
    event.begin.deadline = QF_TIME_NEVER;
    step(world, &event);
}

/* All state of a core is one block without pointers to the outside: a copy is a snapshot. */
static void save(void *ctx, uint32_t level)
{
    struct world *world = ctx;

    if (!world->saved[level])
        world->saved[level] = qf_xmalloc(world->wc->state_size);
    memcpy(world->saved[level], world->wc, world->wc->state_size);
    world->saved_models[level] = world->model;
}

static void restore(void *ctx, uint32_t level)
{
    struct world *world = ctx;

    memcpy(world->wc, world->saved[level], world->wc->state_size);
    world->model = world->saved_models[level];
    world->error = NULL;
}

/* The start is saved the first time. */
static void reset(void *ctx)
{
    struct world *world = ctx;

    if (world->saved[0])
        restore(world, 0);
}

static bool idle(const struct world *world, const struct peer_model *peer)
{
    for (size_t item = 0; item < world->items; item++) {
        for (int i = 0; i < RECORDS; i++) {
            if (peer->records[item][i].stage)
                return false;
        }
    }
    return true;
}

struct move_list {
    uint16_t *moves;
    size_t count;
};

static void add(struct move_list *list, bool possible, uint16_t move)
{
    if (possible)
        list->moves[list->count++] = move;
}

static void worker_moves(const struct world *world, size_t w, struct move_list *list)
{
    const struct peer_model *peer = &world->model.workers[w];
    const uint8_t *left = world->model.faults;
    bool live = peer->open && peer->greeted;

    add(list, peer->dialing, move_of(K_CONNECT, w, 0, 0));
    add(list, peer->open && !peer->accepting && !peer->draining, move_of(K_GREET, w, 0, 0));
    /* A drained worker exits, which is no fault. */
    add(list, peer->open && (left[LOSE] || (peer->draining && idle(world, peer))),
        move_of(K_LOSE, w, 0, 0));
    add(list, live && !peer->draining && left[DRAIN], move_of(K_DRAIN, w, 0, 0));
    add(list, live && peer->accepting && left[PAUSE], move_of(K_PAUSE, w, 0, 0));
    add(list, !peer->known, move_of(K_DISCOVER, w, 0, 0));
    add(list, peer->known && left[REMOVE], move_of(K_REMOVE, w, 0, 0));
    add(list, live && left[DUP] && peer->last.type, move_of(K_DUP, w, 0, 0));
}

static void record_moves(const struct world *world, size_t w, size_t item, size_t i,
                         struct move_list *list)
{
    const struct peer_model *peer = &world->model.workers[w];
    const struct record *record = &peer->records[item][i];
    const uint8_t *left = world->model.faults;
    bool sent = record->stage == SENT, accepted = record->stage == ACCEPTED;

    add(list, sent && peer->accepting, move_of(K_ACCEPT, w, item, i));
    add(list, sent && (!peer->accepting || left[REJECT]), move_of(K_REJECT, w, item, i));
    add(list, accepted, move_of(K_READY, w, item, i));
    add(list, record->stage >= ACCEPTED && left[RETRY], move_of(K_RETRY, w, item, i));
    add(list, accepted && left[FINAL], move_of(K_FINAL, w, item, i));
    add(list, record->over, move_of(K_DELIVER, w, item, i));
}

static size_t moves(void *ctx, uint16_t *out)
{
    const struct world *world = ctx;
    struct move_list list = { out, 0 };

    for (size_t w = 0; w < world->workers; w++) {
        worker_moves(world, w, &list);
        for (size_t item = 0; item < world->items; item++) {
            for (size_t i = 0; i < RECORDS; i++)
                record_moves(world, w, item, i, &list);
        }
    }
    for (size_t item = 0; item < world->items; item++) {
        for (size_t i = 0; i < RECORDS; i++) {
            bool fetching = world->model.fetches[item][i] != 0;

            add(&list, fetching, move_of(K_FETCHED, 0, item, i));
            add(&list, fetching && world->model.faults[FETCH], move_of(K_FETCH_FAILED, 0, item, i));
        }
    }
    add(&list, !world->model.ended && world->model.faults[CANCEL], move_of(K_CANCEL, 0, 0, 0));
    return list.count;
}

static void repeat(struct world *world, size_t w)
{
    struct last_message last = world->model.workers[w].last;

    world->model.faults[DUP]--;
    world->duplicate = true;
    if (!world->model.faults[DUP]) {
        for (size_t i = 0; i < world->workers; i++)
            memset(&world->model.workers[i].last, 0, sizeof(last));
    }
    say(world, (enum wc_api_event_type)last.type, w, last.item, last.attempt, true);
    world->duplicate = false;
}

static void apply_to_worker(struct world *world, enum kind kind, size_t w)
{
    struct peer_model *peer = &world->model.workers[w];
    uint8_t *left = world->model.faults;

    if (kind == K_CONNECT) {
        peer->dialing = false;
        peer->open = true;
        peer->session = ++world->model.sessions;
        step_worker(world, WC_API_EV_CONNECTED, w);
    } else if (kind == K_GREET) {
        peer->greeted = peer->accepting = true;
        step_worker(world, WC_API_EV_STATUS, w);
    } else if (kind == K_LOSE) {
        if (left[LOSE])
            left[LOSE]--;
        hang_up(world, w);
        step_worker(world, WC_API_EV_DISCONNECTED, w);
    } else if (kind == K_DRAIN || kind == K_PAUSE) {
        left[kind == K_DRAIN ? DRAIN : PAUSE]--;
        peer->accepting = false;
        peer->draining = kind == K_DRAIN;
        step_worker(world, WC_API_EV_STATUS, w);
    } else if (kind == K_DISCOVER) {
        peer->known = true;
        step_worker(world, WC_API_EV_DISCOVERED, w);
    } else if (kind == K_REMOVE) {
        left[REMOVE]--;
        peer->known = false;
        peer->dialing = false;
        step_worker(world, WC_API_EV_REMOVED, w);
    } else {
        repeat(world, w);
    }
}

static void apply_to_record(struct world *world, enum kind kind, size_t w, size_t item, size_t i)
{
    struct peer_model *peer = &world->model.workers[w];
    struct record *record = &peer->records[item][i];
    uint32_t attempt = record->attempt;

    if (kind == K_ACCEPT) {
        record->stage = ACCEPTED;
        say(world, WC_API_EV_ACCEPTED, w, item, attempt, false);
    } else if (kind == K_REJECT) {
        if (peer->accepting)
            world->model.faults[REJECT]--;
        peer->accepting = false; /* It will say when that changes. */
        memset(record, 0, sizeof(*record));
        say(world, WC_API_EV_REJECTED, w, item, attempt, false);
    } else if (kind == K_READY) {
        record->stage = READY;
        say(world, WC_API_EV_READY, w, item, attempt, false);
    } else if (kind == K_DELIVER) {
        memset(record, 0, sizeof(*record));
    } else {
        world->model.faults[kind == K_RETRY ? RETRY : FINAL]--;
        memset(record, 0, sizeof(*record));
        say(world, WC_API_EV_FAILED, w, item, attempt, kind == K_RETRY);
    }
}

static const char *apply(void *ctx, uint16_t move)
{
    struct world *world = ctx;
    enum kind kind = (enum kind)(move >> 6);
    size_t w = move >> 4 & 3, item = move >> 2 & 3, i = move & 3;

    if (kind <= K_DUP) {
        apply_to_worker(world, kind, w);
    } else if (kind <= K_DELIVER) {
        apply_to_record(world, kind, w, item, i);
    } else if (kind == K_FETCHED) {
        step_fetch(world, WC_API_EV_FETCHED, item, i);
    } else if (kind == K_FETCH_FAILED) {
        world->model.faults[FETCH]--;
        step_fetch(world, WC_API_EV_FETCH_FAILED, item, i);
    } else {
        struct wc_api_event event = { .type = WC_API_EV_QUERY_CANCEL, .query = { 1 } };

        world->model.faults[CANCEL]--;
        step(world, &event);
    }
    return world->error;
}

static bool worker_has(const struct world *world, const struct wc_api_item_view *view, size_t item,
                       enum stage stage)
{
    const struct peer_model *peer = &world->model.workers[view->worker.v - 1];

    for (int i = 0; i < RECORDS; i++) {
        const struct record *record = &peer->records[item][i];

        if (record->stage == stage && record->attempt == view->attempt && !record->over)
            return peer->open;
    }
    return false;
}

static bool downloading(const struct world *world, size_t item, uint32_t attempt)
{
    for (int i = 0; i < RECORDS; i++) {
        if (world->model.fetches[item][i] == attempt)
            return true;
    }
    return false;
}

/* Whoever holds an item will move it: that is what "not lost" means. */
static const char *check_item(const struct world *world, size_t item)
{
    const struct wc_api_stats *stats = wc_api_stats(world->wc);
    struct wc_api_item_view view;
    struct wc_api_worker_view worker;

    if (!wc_api_item(world->wc, (struct wc_work_id){ item + 1 }, &view))
        return "an item of a live query is gone";
    if ((view.state == WC_ITEM_FETCHED) != ((world->model.committed >> item & 1) != 0))
        return "fetched and committed disagree";
    if (view.state == WC_ITEM_PENDING && stats->workers_available)
        return "pending although a worker is available";
    if (view.state == WC_ITEM_PENDING || view.state == WC_ITEM_FETCHED)
        return NULL;
    if (!wc_api_worker(world->wc, view.worker, &worker) || worker.state != WC_WORKER_ALIVE)
        return "an item sits on a worker that is not alive";
    if (view.state == WC_ITEM_ASSIGNED && (worker.draining || worker.leaving))
        return "unstarted work sits on a draining or leaving worker";
    if (view.state == WC_ITEM_ASSIGNED && !worker_has(world, &view, item, SENT))
        return "an assigned item is unknown to its worker";
    if (view.state == WC_ITEM_ACCEPTED && !worker_has(world, &view, item, ACCEPTED))
        return "an accepted item is unknown to its worker";
    if (view.state == WC_ITEM_READY && !downloading(world, item, view.attempt))
        return "a ready item is not being downloaded";
    return NULL;
}

/* Can anything still happen that is not a fault? */
static bool progress_possible(struct world *world)
{
    uint16_t all[EXPLORE_MOVES_MAX];
    size_t count = moves(world, all);

    for (size_t i = 0; i < count; i++) {
        enum kind kind = (enum kind)(all[i] >> 6);

        if (kind == K_CONNECT || kind == K_GREET || kind == K_DISCOVER || kind == K_ACCEPT ||
            kind == K_REJECT || kind == K_READY || kind == K_DELIVER || kind == K_FETCHED ||
            (kind == K_LOSE && world->model.workers[all[i] >> 4 & 3].draining))
            return true;
    }
    return false;
}

static const char *check(void *ctx)
{
    struct world *world = ctx;
    const struct wc_api_stats *stats = wc_api_stats(world->wc);
    uint32_t inflight =
        stats->items_pending + stats->items_assigned + stats->items_accepted + stats->items_ready;

    if (world->model.ended) {
        if (inflight || stats->items_fetched || stats->queries ||
            world->wc->item_pool.count != world->items || world->wc->query_pool.count != 1)
            return "the state of an ended query is not released";
        return NULL;
    }
    if (inflight + stats->items_fetched != world->items)
        return "the gauges do not add up";
    for (size_t item = 0; item < world->items; item++) {
        const char *why = check_item(world, item);

        if (why)
            return why;
    }
    if (!progress_possible(world))
        return "nothing can happen any more but the query has not ended";
    return NULL;
}

struct bytes {
    uint8_t *at;
    size_t len;
};

static void put(struct bytes *bytes, uint64_t value)
{
    bytes->at[bytes->len++] = (uint8_t)value;
}

/* Attempts only matter relative to the item's own: histories that differ in nothing else are one.
 */
static uint64_t relative(uint32_t attempt, uint32_t base)
{
    return attempt ? base - attempt + 1 : 0;
}

static void encode_worker(struct world *world, size_t w, const uint32_t *base, struct bytes *bytes)
{
    const struct peer_model *peer = &world->model.workers[w];
    struct wc_api_worker_view view = { 0 };

    (void)wc_api_worker(world->wc, (struct wc_worker_id){ w + 1 }, &view);
    put(bytes, view.worker.v ? view.state + 1u : 0);
    put(bytes, (unsigned)view.accepting << 5 | (unsigned)view.draining << 4 |
                   (unsigned)view.leaving << 3 | (unsigned)(view.worker_key != 0));
    put(bytes, (unsigned)peer->told << 6 | (unsigned)peer->known << 5 |
                   (unsigned)peer->dialing << 4 | (unsigned)peer->open << 3 |
                   (unsigned)peer->greeted << 2 | (unsigned)peer->accepting << 1 |
                   (unsigned)peer->draining);
    put(bytes, peer->last.type);
    put(bytes, peer->last.item);
    put(bytes, relative(peer->last.attempt, base[peer->last.item]));
    for (size_t item = 0; item < world->items; item++) {
        for (int i = 0; i < RECORDS; i++) {
            const struct record *record = &peer->records[item][i];

            if (record->stage) {
                put(bytes, 1 + item);
                put(bytes, (unsigned)record->stage << 1 | (unsigned)record->over);
                put(bytes, relative(record->attempt, base[item]));
            }
        }
    }
    put(bytes, 0);
}

static void encode_item(const struct world *world, size_t slot, struct bytes *bytes)
{
    const struct wc_item *item = &world->wc->items[slot];

    put(bytes, item->work.v);
    put(bytes, item->state);
    put(bytes, item->peer == WC_NONE ? 0 : world->wc->peers[item->peer].id.v);
    put(bytes, item->failures);
    put(bytes, relative(item->late, item->attempt));
    put(bytes, item->hold);
    put(bytes, item->avoid_count);
    for (int i = 0; i < item->avoid_count; i++)
        put(bytes, item->avoid[i]);
}

static size_t encode(void *ctx, uint8_t *out)
{
    struct world *world = ctx;
    struct bytes bytes = { out, 0 };
    uint32_t base[ITEMS_MAX] = { 0 };

    for (size_t slot = 0; slot < world->items; slot++)
        base[world->wc->items[slot].work.v - 1] = world->wc->items[slot].attempt;
    for (size_t w = 0; w < world->workers; w++)
        encode_worker(world, w, base, &bytes);
    put(&bytes, world->model.ended);
    for (size_t slot = 0; slot < world->items && !world->model.ended; slot++)
        encode_item(world, slot, &bytes);
    for (size_t item = 0; item < world->items; item++) {
        for (int i = 0; i < RECORDS; i++) {
            if (world->model.fetches[item][i]) {
                put(&bytes, 1 + item);
                put(&bytes, relative(world->model.fetches[item][i], base[item]));
            }
        }
    }
    put(&bytes, 0);
    for (int fault = 0; fault < FAULTS; fault++)
        put(&bytes, world->model.faults[fault]);
    return bytes.len;
}

static void describe(void *ctx, uint16_t move, char *text, size_t size)
{
    const struct world *world = ctx;
    size_t w = move >> 4 & 3, item = move >> 2 & 3, i = move & 3;

    snprintf(text, size, "%s w%zu k%zu#%u", kind_names[move >> 6], w + 1, item + 1,
             world->model.workers[w].records[item][i].attempt);
}

static bool option(struct world *world, const char *word, uint64_t *ret_states)
{
    const char *value = strchr(word, '=');
    size_t len = value ? (size_t)(value - word) : 0;
    uint64_t number = value ? strtoull(value + 1, NULL, 10) : 0;

    if (len == 7 && strncmp(word, "workers", len) == 0 && number >= 1 && number <= WORKERS_MAX) {
        world->workers = number;
        return true;
    }
    if (len == 5 && strncmp(word, "items", len) == 0 && number >= 1 && number <= ITEMS_MAX) {
        world->items = number;
        return true;
    }
    if (strcmp(word, "warm") == 0) {
        world->warm = true;
        return true;
    }
    if (len == 6 && strncmp(word, "states", len) == 0) {
        *ret_states = number;
        return true;
    }
    for (int fault = 0; fault < FAULTS; fault++) {
        if (len == strlen(fault_names[fault]) && strncmp(word, fault_names[fault], len) == 0) {
            world->faults[fault] = (uint8_t)QF_MIN(number, UINT64_C(3));
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    static struct world world = { .workers = 2, .items = 2 };
    struct explore_world view = { &world, reset, save,   restore, moves,
                                  apply,  check, encode, describe };
    uint64_t states_max = UINT64_C(50000000);
    struct explore_result result;

    for (int i = 1; i < argc; i++) {
        if (!option(&world, argv[i], &states_max)) {
            fprintf(stderr, "explore_api: bad option %s\n", argv[i]);
            return 2;
        }
    }
    begin(&world);
    result = explore(&view, states_max);
    printf("api: %zu workers x %zu items", world.workers, world.items);
    for (int fault = 0; fault < FAULTS; fault++) {
        if (world.faults[fault])
            printf(" %s=%u", fault_names[fault], world.faults[fault]);
    }
    printf(": %llu states, %llu transitions, depth %u, %s\n", (unsigned long long)result.states,
           (unsigned long long)result.transitions, result.depth,
           result.broken     ? "BROKEN"
           : result.complete ? "complete"
                             : "NOT COMPLETE");
    for (int level = 0; level <= EXPLORE_DEPTH_MAX; level++)
        free(world.saved[level]);
    wc_api_free(world.wc);
    return result.complete && !result.broken ? 0 : 1;
}
