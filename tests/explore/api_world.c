/* api_world.c - effects of the core change the model, moves of the model become events. */
#include "tests/explore/api_world.h"

#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "tests/lib/core/coretest.h"

static void fail(struct world *world, const char *why)
{
    world->error = why;
}

static void spend(struct world *world, enum fault fault)
{
    if (world->model.faults[fault])
        world->model.faults[fault]--;
    else if (world->model.any)
        world->model.any--;
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

static bool owns(const struct world *world, size_t item, uint64_t worker)
{
    size_t place = (worker - 1 + world->workers - item % world->workers) % world->workers;

    return (place + world->workers - 1) % world->workers < world->owners;
}

/* 0: it has not failed there. */
static uint32_t failed_at(const struct wc_item *item, uint64_t worker)
{
    for (uint32_t i = 0; i < item->avoid_count; i++) {
        if (item->avoid[i] == worker)
            return i + 1;
    }
    return 0;
}

/* Is there another one that it should have gone to: failed it less, or as much and is an owner? */
static void check_choice(struct world *world, const struct wc_api_effect *effect)
{
    uint32_t slot = wc_index_first(&world->wc->item_index, effect->work.v);
    const struct wc_item *item;
    uint32_t failed;

    if (slot == WC_NONE) /* its query ended in the same step */
        return;
    item = &world->wc->items[slot];
    failed = failed_at(item, effect->worker.v);
    if (effect->owner != owns(world, effect->work.v - 1, effect->worker.v))
        fail(world, "an owner is taken for a stranger, or a stranger for an owner");
    for (uint64_t w = 1; w <= world->workers; w++) {
        struct wc_api_worker_view view;
        uint32_t its = failed_at(item, w);
        bool better =
            its < failed || (its == failed && !effect->owner && owns(world, effect->work.v - 1, w));

        if (effect->type == WC_API_DO_HEDGE && world->wc->peers[item->peer].id.v == w)
            continue;
        if (better && wc_api_worker(world->wc, (struct wc_worker_id){ w }, &view) && view.available)
            fail(world, "work was not sent to an owner that would have it");
    }
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
    if (world->model.blamed[effect->work.v - 1] >= DEATHS)
        fail(world, "work sent although too many workers died of it");
    if (!wc_api_worker(world->wc, effect->worker, &view) || !view.available)
        fail(world, "work sent to a worker that is not available");
    check_choice(world, effect);
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

    world->model.blamed[effect->work.v - 1] = 0;
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
    if ((effect->rc == QF_EQUARANTINED) !=
        (effect->work.v && world->model.blamed[effect->work.v - 1] >= DEATHS))
        fail(world, "in quarantine without two deaths, or two deaths without quarantine");
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
    case WC_API_DO_HEDGE:
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
    case WC_API_DO_BLAMED:
        if (!world->deadly || world->drained)
            fail(world, "blamed although the worker did not die");
        model->blamed[effect->work.v - 1]++;
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
    if (type == WC_API_EV_DISCONNECTED)
        event.died = world->deadly;
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
    if (can(world, DUP)) {
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
void api_world_begin(struct world *world)
{
    struct wc_api_limits limits = {
        .workers_max = (uint32_t)world->workers,
        .queries_max = 1,
        .items_max = (uint32_t)world->items,
        .attempts_max = 3,
        .hedge_after = world->faults[HEDGE] ? 1 : 0,
    };
    struct wc_api_item_spec items[ITEMS_MAX];
    struct wc_api_event event = { .type = WC_API_EV_QUERY_BEGIN, .query = { 1 } };

    world->wc = wc_api_new(&limits);
    memcpy(world->model.faults, world->faults, sizeof(world->faults));
    world->model.any = world->any;
    for (size_t i = 0; i < world->items; i++) {
        uint64_t order[] = { i % world->workers + 1, (i + 1) % world->workers + 1 };

        items[i] = (struct wc_api_item_spec){ { i + 1 }, { 1 }, 0, 100000 };
        items[i].affinity = core_affinity(order, QF_MIN(world->workers, (size_t)2), world->workers);
        for (uint64_t w = 1; w <= world->workers; w++)
            core_own(&items[i], owns(world, i, w) ? 1U << w : 0);
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
    event.begin.sent_max = world->share;
    step(world, &event);
}

/* All state of a core is one block without pointers to the outside: a copy is a snapshot. */
void api_world_save(void *ctx, uint32_t level)
{
    struct world *world = ctx;

    if (!world->saved[level])
        world->saved[level] = qf_xmalloc(world->wc->state_size);
    memcpy(world->saved[level], world->wc, world->wc->state_size);
    world->saved_models[level] = world->model;
}

void api_world_restore(void *ctx, uint32_t level)
{
    struct world *world = ctx;

    memcpy(world->wc, world->saved[level], world->wc->state_size);
    world->model = world->saved_models[level];
    world->error = NULL;
}

/* The start is saved the first time. */
void api_world_reset(void *ctx)
{
    struct world *world = ctx;

    if (world->saved[0])
        api_world_restore(world, 0);
}

static void repeat(struct world *world, size_t w)
{
    struct last_message last = world->model.workers[w].last;

    spend(world, DUP);
    world->duplicate = true;
    if (!can(world, DUP)) {
        for (size_t i = 0; i < world->workers; i++)
            memset(&world->model.workers[i].last, 0, sizeof(last));
    }
    say(world, (enum wc_api_event_type)last.type, w, last.item, last.attempt, true);
    world->duplicate = false;
}

static void apply_to_worker(struct world *world, enum kind kind, size_t w)
{
    struct peer_model *peer = &world->model.workers[w];

    if (kind == K_CONNECT) {
        peer->dialing = false;
        peer->open = true;
        peer->session = ++world->model.sessions;
        step_worker(world, WC_API_EV_CONNECTED, w);
    } else if (kind == K_GREET) {
        peer->greeted = peer->accepting = true;
        step_worker(world, WC_API_EV_STATUS, w);
    } else if (kind == K_LOSE) {
        spend(world, LOSE);
        world->drained = peer->draining;
        hang_up(world, w);
        step_worker(world, WC_API_EV_DISCONNECTED, w);
    } else if (kind == K_DRAIN || kind == K_PAUSE) {
        spend(world, kind == K_DRAIN ? DRAIN : PAUSE);
        peer->accepting = false;
        peer->draining = kind == K_DRAIN;
        step_worker(world, WC_API_EV_STATUS, w);
    } else if (kind == K_DISCOVER) {
        peer->known = true;
        step_worker(world, WC_API_EV_DISCOVERED, w);
    } else if (kind == K_REMOVE) {
        spend(world, REMOVE);
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
            spend(world, REJECT);
        peer->accepting = false; /* It will say when that changes. */
        memset(record, 0, sizeof(*record));
        say(world, WC_API_EV_REJECTED, w, item, attempt, false);
    } else if (kind == K_READY) {
        record->stage = READY;
        say(world, WC_API_EV_READY, w, item, attempt, false);
    } else if (kind == K_DELIVER) {
        memset(record, 0, sizeof(*record));
    } else {
        spend(world, kind == K_RETRY ? RETRY : FINAL);
        memset(record, 0, sizeof(*record));
        say(world, WC_API_EV_FAILED, w, item, attempt, kind == K_RETRY);
    }
}

static uint32_t timer_of(const struct world *world, size_t item)
{
    uint32_t slot = wc_index_first(&world->wc->item_index, item + 1);

    return slot == WC_NONE ? WC_NONE : wc_timer_item(world->wc, slot);
}

bool api_world_waits(const struct world *world, size_t item)
{
    uint32_t timer = timer_of(world, item);

    return timer != WC_NONE && world->wc->timers.pos[timer] != 0;
}

/* Time stands still but for this item's patience; when it is over it may be sent once more. */
static void run_out(struct world *world, size_t item)
{
    struct wc_api_event tick = { .type = WC_API_EV_TICK };

    world->model.faults[HEDGE]--;
    wc_timers_set(&world->wc->timers, timer_of(world, item), NOW);
    step(world, &tick);
}

const char *api_world_apply(void *ctx, uint16_t move)
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
        spend(world, FETCH);
        step_fetch(world, WC_API_EV_FETCH_FAILED, item, i);
    } else if (kind == K_HEDGE) {
        run_out(world, item);
    } else {
        struct wc_api_event event = { .type = WC_API_EV_QUERY_CANCEL, .query = { 1 } };

        spend(world, CANCEL);
        step(world, &event);
    }
    return world->error;
}
