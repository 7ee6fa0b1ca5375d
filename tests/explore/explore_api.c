/* explore_api.c - every reachable state of the API side in a small world, all invariants in each.
 *
 * usage: explore_api [workers=N] [items=N] [lose=N] [drain=N] [pause=N] [reject=N] [retry=N]
 *                    [final=N] [fetch=N] [dup=N] [cancel=N] [remove=N] [hedge=N] [any=N] [warm]
 *                    [deadly] [owners=N] [states=N]
 *
 * The core under test is the real one; workers and network are modelled as everything that can
 * happen: each worker answers what it was sent in any order relative to the others, messages to it
 * arrive at any time later, the stream breaks at any moment. The numbers bound how often each fault
 * happens in one history, `any` how often a fault of any kind does on top; `warm` starts with all
 * workers connected, `deadly` lets streams break because their workers died. `owners` workers keep what an item reads, the
 * one with the best score for it last. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/explore/api_world.h"

static const char *const fault_names[FAULTS] = { "lose",   "drain",  "pause", "reject",
                                                 "retry",  "final",  "fetch", "dup",
                                                 "cancel", "remove", "hedge" };

static const char *const kind_names[K__COUNT] = {
    "connect", "greet", "lose",    "drain",     "pause",        "discover",
    "remove",  "dup",   "accept",  "reject",    "ready",        "retry",
    "final",   "reads", "fetched", "fetchfail", "cancel query", "hedge"
};

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
    bool live = peer->open && peer->greeted;

    add(list, peer->dialing, move_of(K_CONNECT, w, 0, 0));
    add(list, peer->open && !peer->accepting && !peer->draining, move_of(K_GREET, w, 0, 0));
    /* A drained worker exits, which is no fault. */
    add(list, peer->open && (can(world, LOSE) || (peer->draining && idle(world, peer))),
        move_of(K_LOSE, w, 0, 0));
    add(list, live && !peer->draining && can(world, DRAIN), move_of(K_DRAIN, w, 0, 0));
    add(list, live && peer->accepting && can(world, PAUSE), move_of(K_PAUSE, w, 0, 0));
    add(list, !peer->known, move_of(K_DISCOVER, w, 0, 0));
    add(list, peer->known && can(world, REMOVE), move_of(K_REMOVE, w, 0, 0));
    add(list, live && can(world, DUP) && peer->last.type, move_of(K_DUP, w, 0, 0));
}

static void record_moves(const struct world *world, size_t w, size_t item, size_t i,
                         struct move_list *list)
{
    const struct peer_model *peer = &world->model.workers[w];
    const struct record *record = &peer->records[item][i];
    bool sent = record->stage == SENT, accepted = record->stage == ACCEPTED;

    add(list, sent && peer->accepting, move_of(K_ACCEPT, w, item, i));
    add(list, sent && (!peer->accepting || can(world, REJECT)), move_of(K_REJECT, w, item, i));
    add(list, accepted, move_of(K_READY, w, item, i));
    add(list, record->stage >= ACCEPTED && can(world, RETRY), move_of(K_RETRY, w, item, i));
    add(list, accepted && can(world, FINAL), move_of(K_FINAL, w, item, i));
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
            add(&list, fetching && can(world, FETCH), move_of(K_FETCH_FAILED, 0, item, i));
        }
        add(&list, world->model.faults[HEDGE] && api_world_waits(world, item),
            move_of(K_HEDGE, 0, item, 0));
    }
    add(&list, !world->model.ended && can(world, CANCEL), move_of(K_CANCEL, 0, 0, 0));
    return list.count;
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
static const char *check_hedge(const struct world *world, const struct wc_api_item_view *view,
                               size_t item)
{
    struct wc_api_item_view as = { .worker = view->hedge.worker, .attempt = view->hedge.attempt };
    struct wc_api_worker_view worker;

    if (view->hedge.state == WC_HEDGE_NONE)
        return NULL;
    if (view->state != WC_ITEM_ASSIGNED && view->state != WC_ITEM_ACCEPTED &&
        view->state != WC_ITEM_READY)
        return "a hedge without an attempt beside it";
    if (!wc_api_worker(world->wc, as.worker, &worker) || worker.state != WC_PEER_ALIVE ||
        worker.leaving || as.worker.v == view->worker.v)
        return "a hedge sits on a worker that is not alive, leaves or is the item's own";
    if (view->hedge.state == WC_HEDGE_ASSIGNED &&
        (worker.draining || !worker_has(world, &as, item, SENT)))
        return "an assigned hedge is unknown to its worker, or that drains";
    if (view->hedge.state == WC_HEDGE_ACCEPTED && !worker_has(world, &as, item, ACCEPTED))
        return "an accepted hedge is unknown to its worker";
    if (view->hedge.state == WC_HEDGE_READY && !downloading(world, item, as.attempt))
        return "a ready hedge is not being downloaded";
    return NULL;
}

static bool share_used_up(const struct wc_api_stats *stats, const struct world *world)
{
    return world->share &&
           stats->items_assigned + stats->items_accepted + stats->items_ready >= world->share;
}

static const char *check_item(const struct world *world, size_t item)
{
    const struct wc_api_stats *stats = wc_api_stats(world->wc);
    struct wc_api_item_view view;
    struct wc_api_worker_view worker;

    if (!wc_api_item(world->wc, (struct wc_work_id){ item + 1 }, &view))
        return "an item of a live query is gone";
    if ((view.state == WC_ITEM_FETCHED) != ((world->model.committed >> item & 1) != 0))
        return "fetched and committed disagree";
    if (view.state == WC_ITEM_PENDING && stats->workers_available && !share_used_up(stats, world))
        return "pending although a worker is available";
    if (view.state == WC_ITEM_PENDING || view.state == WC_ITEM_FETCHED)
        return NULL;
    if (!wc_api_worker(world->wc, view.worker, &worker) || worker.state != WC_PEER_ALIVE)
        return "an item sits on a worker that is not alive";
    if (view.state == WC_ITEM_ASSIGNED && (worker.draining || worker.leaving))
        return "unstarted work sits on a draining or leaving worker";
    if (view.state == WC_ITEM_ASSIGNED && !worker_has(world, &view, item, SENT))
        return "an assigned item is unknown to its worker";
    if (view.state == WC_ITEM_ACCEPTED && !worker_has(world, &view, item, ACCEPTED))
        return "an accepted item is unknown to its worker";
    if (view.state == WC_ITEM_READY && !downloading(world, item, view.attempt))
        return "a ready item is not being downloaded";
    return check_hedge(world, &view, item);
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
    put(bytes, item->state == WC_ITEM_PENDING ? item->wait : 0);
    put(bytes, item->peer == WC_NONE ? 0 : world->wc->peers[item->peer].id.v);
    put(bytes, item->failures);
    put(bytes, relative(item->late, item->attempts));
    put(bytes, item->hold);
    put(bytes, (unsigned)item->hedged << 7 | item->hedge.state);
    if (item->hedge.state) {
        put(bytes, world->wc->peers[item->hedge.peer].id.v);
        put(bytes, relative(item->hedge.attempt, item->attempts));
    }
    put(bytes, relative(item->attempt, item->attempts));
    put(bytes, item->avoid_count);
    for (int i = 0; i < item->avoid_count; i++)
        put(bytes, item->avoid[i]);
}

/* Who is next. */
static void encode_kept(const struct world *world, struct bytes *bytes)
{
    const struct wc_api *wc = world->wc;

    if (!world->model.ended)
        for (uint32_t i = wc->tenants[0].kept.head; i != WC_NONE; i = wc->item_place_links[i].next)
            put(bytes, wc->items[i].work.v);
    put(bytes, 0);
}

static size_t encode(void *ctx, uint8_t *out)
{
    struct world *world = ctx;
    struct bytes bytes = { out, 0 };
    uint32_t base[ITEMS_MAX] = { 0 };

    for (size_t slot = 0; slot < world->items; slot++)
        base[world->wc->items[slot].work.v - 1] = world->wc->items[slot].attempts;
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
    encode_kept(world, &bytes);
    for (int fault = 0; fault < FAULTS; fault++)
        put(&bytes, world->model.faults[fault]);
    put(&bytes, world->model.any);
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
    if (len == 5 && strncmp(word, "share", len) == 0) {
        world->share = (uint32_t)number;
        return true;
    }
    if (len == 6 && strncmp(word, "owners", len) == 0 && number <= world->workers) {
        world->owners = (uint32_t)number;
        return true;
    }
    if (strcmp(word, "warm") == 0) {
        world->warm = true;
        return true;
    }
    if (strcmp(word, "deadly") == 0) {
        world->deadly = true;
        return true;
    }
    if (len == 6 && strncmp(word, "states", len) == 0) {
        *ret_states = number;
        return true;
    }
    if (len == 3 && strncmp(word, "any", len) == 0) {
        world->any = (uint8_t)QF_MIN(number, UINT64_C(9));
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
    struct explore_world view = {
        &world,          api_world_reset, api_world_save, api_world_restore, moves,
        api_world_apply, check,           encode,         describe,
    };
    uint64_t states_max = UINT64_C(50000000);
    struct explore_result result;

    for (int i = 1; i < argc; i++) {
        if (!option(&world, argv[i], &states_max)) {
            fprintf(stderr, "explore_api: bad option %s\n", argv[i]);
            return 2;
        }
    }
    api_world_begin(&world);
    result = explore(&view, states_max);
    printf("api: %zu workers x %zu items", world.workers, world.items);
    if (world.share)
        printf(" share=%u", world.share);
    if (world.owners)
        printf(" owners=%u", world.owners);
    if (world.any)
        printf(" any=%u", world.any);
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
