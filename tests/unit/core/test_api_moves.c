/* test_api_moves.c - every cell of the API side's tables: legal moves move, the others are counted
 * and change nothing. The expectations repeat the tables in api.h, not those in the source. */
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

#include "api_int.h"
#include "base/pure/alloc.h"
#include "tests/lib/core/check.h"
#include "tests/lib/core/world.h"

/* p pending, a assigned, c accepted, r ready, f fetched, X ends the query, . illegal. */
static const char *const item_table[] = {
    /* ASSIGN ACCEPTED REJECTED READY FETCHED FETCH_FAILED RETRY FAILED LOST MOVED LATE CANCEL
     * HEDGE_FAILED ADOPT_ASSIGNED ADOPT_ACCEPTED ADOPT_READY */
    [WC_ITEM_PENDING] = "a.........fX.acr",  [WC_ITEM_ASSIGNED] = ".cp...pXppfXX...",
    [WC_ITEM_ACCEPTED] = "...r..pXp.fXX...", [WC_ITEM_READY] = "....fppXp.fXX...",
    [WC_ITEM_FETCHED] = "...........X....",
};

static struct world *item_in(enum wc_item_state state)
{
    struct world *world = world_new(NULL);

    world_up(world, 1);
    if (state == WC_ITEM_PENDING)
        world_status(world, 1, 1, false, false);
    world_begin(world, 1, 1, 2, 1);
    if (state >= WC_ITEM_ACCEPTED)
        world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    if (state >= WC_ITEM_READY)
        world_say(world, WC_API_EV_READY, 1, 1, 1);
    if (state >= WC_ITEM_FETCHED)
        world_fetched(world, 1, 1, 1);
    CHECK_EQ(world_item(world, 1), state);
    return world;
}

/* The whole memory of a core but for the one counter. */
static void *snapshot(struct wc_api *wc)
{
    void *copy = malloc(wc->state_size);

    memcpy(copy, wc, wc->state_size);
    return copy;
}

static void hear(struct world *world, uint32_t item, enum wc_item_heard heard)
{
    struct wc_api_event event = { .type = WC_API_EV_FAILED, .failure = { QF_EIO, true } };

    world->wc->effect_count = 0;
    if ((heard == WC_ITEM_HEARD_ASSIGN || heard >= WC_ITEM_HEARD_ADOPT_ASSIGNED) &&
        world->wc->items[item].state == WC_ITEM_PENDING)
        world->wc->items[item].peer = 0;
    if (heard == WC_ITEM_HEARD_LATE_FETCHED &&
        item_table[world->wc->items[item].state][heard] != '.')
        world->wc->items[item].late = QF_MAX(world->wc->items[item].attempt, 1u) - 1;
    world->wc->event = &event;
    wc_item_hear(world->wc, item, heard);
    world->wc->event = NULL;
}

static void check_item_cell(enum wc_item_state state, enum wc_item_heard heard)
{
    QF_CLEANUP(world_freep) struct world *world = item_in(state);
    QF_CLEANUP(qf_freep) struct wc_api *before = NULL;
    static const char letters[] = "pacrf";
    uint32_t item = wc_index_first(&world->wc->item_index, 1);
    char want = item_table[state][heard];

    before = snapshot(world->wc);
    hear(world, item, heard);
    if (want == '.') {
        CHECK_EQ(world->wc->stats.illegal, before->stats.illegal + 1);
        CHECK_EQ(world->wc->effect_count, 0);
        before->stats.illegal++;
        before->effect_count = 0;
        CHECK_MSG(memcmp(before, world->wc, world->wc->state_size) == 0,
                  "state %d changed by illegal %d", state, heard);
        return;
    }
    CHECK_EQ(world->wc->stats.illegal, before->stats.illegal);
    if (want == 'X')
        CHECK(heard == WC_ITEM_HEARD_CANCEL ? world->wc->items[item].state == WC_ITEM_CANCELED
                                            : world_item(world, 1) == WC_ITEM__COUNT);
    else
        CHECK_MSG(letters[world->wc->items[item].state] == want, "%s hears %d: %s, not %c",
                  wc_item_state_name(state), heard,
                  wc_item_state_name((enum wc_item_state)world->wc->items[item].state), want);
}

/* Legal moves of an item lead where the manual says; all others are counted and change nothing. */
TEST(every_item_state_hears_everything_as_the_manual_says)
{
    for (int state = WC_ITEM_PENDING; state <= WC_ITEM_FETCHED; state++) {
        for (int heard = 0; heard < WC_ITEM_HEARD__COUNT; heard++)
            check_item_cell((enum wc_item_state)state, (enum wc_item_heard)heard);
    }
}

/* n none, a assigned, c accepted, r ready, X ends the query, . illegal. A won hedge is gone too. */
static const char *const hedge_table[] = {
    /* HEDGE ACCEPTED REJECTED READY FETCHED FETCH_FAILED RETRY FAILED LOST MOVED DROP ADOPT */
    [WC_HEDGE_NONE] = "a...........",
    [WC_HEDGE_ASSIGNED] = ".cn...nXnnnn",
    [WC_HEDGE_ACCEPTED] = "...r..nXnnnn",
    [WC_HEDGE_READY] = "....nnnXnnnn",
};

/* Item 1 of two is accepted by worker 1 and takes too long: worker 2 has it too. */
static struct world *hedge_in(enum wc_hedge_state state)
{
    struct wc_api_limits limits = { .workers_max = 4, .items_max = 4, .hedge_after = 2 };
    struct world *world = world_new(&limits);
    struct wc_api_item_view view;

    world_up(world, 1);
    world_up(world, 2);
    world_begin_expecting(world, 1, 1, 2, 1, 100);
    world_say(world, WC_API_EV_ACCEPTED, 1, 1, 1);
    if (state >= WC_HEDGE_ASSIGNED)
        world_tick(world, 200);
    if (state >= WC_HEDGE_ACCEPTED)
        world_say(world, WC_API_EV_ACCEPTED, 2, 1, 2);
    if (state >= WC_HEDGE_READY)
        world_say(world, WC_API_EV_READY, 2, 1, 2);
    CHECK(wc_api_item(world->wc, (struct wc_work_id){ 1 }, &view));
    CHECK_EQ(view.hedge.state, state);
    return world;
}

static void check_hedge_cell(enum wc_hedge_state state, enum wc_hedge_heard heard)
{
    QF_CLEANUP(world_freep) struct world *world = hedge_in(state);
    QF_CLEANUP(qf_freep) struct wc_api *before = NULL;
    struct wc_api_event event = { .type = WC_API_EV_FAILED, .failure = { QF_EIO, true } };
    static const char letters[] = "nacr";
    uint32_t item = wc_index_first(&world->wc->item_index, 1);
    char want = hedge_table[state][heard];

    world->wc->effect_count = 0;
    world->wc->event = &event;
    if (state == WC_HEDGE_NONE)
        world->wc->items[item].hedge.peer = 1;
    before = snapshot(world->wc);
    wc_hedge_hear(world->wc, item, heard);
    world->wc->event = NULL;
    if (want == '.') {
        before->stats.illegal++;
        before->event = NULL;
        CHECK_MSG(memcmp(before, world->wc, world->wc->state_size) == 0,
                  "hedge in %d changed by illegal %d", state, heard);
        return;
    }
    CHECK_EQ(world->wc->stats.illegal, before->stats.illegal);
    if (want == 'X')
        CHECK_EQ(world_item(world, 1), WC_ITEM__COUNT);
    else
        CHECK_MSG(letters[world->wc->items[item].hedge.state] == want, "hedge %d hears %d: not %c",
                  state, heard, want);
}

/* The same for hedges. */
TEST(every_hedge_state_hears_everything_as_the_manual_says)
{
    for (int state = WC_HEDGE_NONE; state < WC_HEDGE__COUNT; state++) {
        for (int heard = 0; heard < WC_HEDGE_HEARD__COUNT; heard++)
            check_hedge_cell((enum wc_hedge_state)state, (enum wc_hedge_heard)heard);
    }
}

/* d down, i dialing, c connected, a alive, g gone, . illegal. */
static const char *const peer_table[] = {
    /* DISCOVERED CONNECTED STATUS LOST DIAL_DUE REMOVED */
    [WC_PEER_DOWN] = "dc..ig",
    [WC_PEER_DIALING] = "ic.d.g",
    [WC_PEER_CONNECTED] = "ccad.g",
    [WC_PEER_ALIVE] = "acad.a",
};

static struct world *peer_in(enum wc_peer_state state)
{
    struct world *world = world_new(NULL);

    world_peer(world, WC_API_EV_DISCOVERED, 1, 0);
    if (state == WC_PEER_DOWN)
        world_peer(world, WC_API_EV_DISCONNECTED, 1, 0);
    if (state >= WC_PEER_CONNECTED)
        world_peer(world, WC_API_EV_CONNECTED, 1, 1);
    if (state >= WC_PEER_ALIVE)
        world_status(world, 1, 1, true, false);
    CHECK_EQ(world->wc->peers[0].state, state);
    return world;
}

static void check_peer_cell(enum wc_peer_state state, enum wc_peer_heard heard)
{
    QF_CLEANUP(world_freep) struct world *world = peer_in(state);
    QF_CLEANUP(qf_freep) struct wc_api *before = NULL;
    struct wc_api_event event = { .type = WC_API_EV_CONNECTED, .session = { 9 } };
    static const char letters[] = "dicag";
    char want = peer_table[state][heard];

    world->wc->effect_count = 0;
    world->wc->event = &event;
    before = snapshot(world->wc);
    wc_peer_hear(world->wc, 0, heard);
    if (want == '.') {
        before->stats.illegal++;
        CHECK(memcmp(before, world->wc, world->wc->state_size) == 0);
        return;
    }
    CHECK_EQ(world->wc->stats.illegal, before->stats.illegal);
    CHECK_MSG(letters[world->wc->peers[0].state] == want, "%s hears %d: not %c",
              wc_peer_state_name(state), heard, want);
    CHECK_EQ(world->wc->peer_order.count, want == 'g' ? 0 : 1);
}

/* The same for workers. */
TEST(every_worker_state_hears_everything_as_the_manual_says)
{
    for (int state = WC_PEER_DOWN; state <= WC_PEER_ALIVE; state++) {
        for (int heard = 0; heard < WC_PEER_HEARD__COUNT; heard++)
            check_peer_cell((enum wc_peer_state)state, (enum wc_peer_heard)heard);
    }
}

/* Stale messages (unknown worker, old session, old attempt, unknown work) change nothing either. */
TEST(stale_messages_are_counted_and_change_nothing)
{
    static const enum wc_api_event_type types[] = {
        WC_API_EV_STATUS,       WC_API_EV_HEARTBEAT,    WC_API_EV_ACCEPTED, WC_API_EV_REJECTED,
        WC_API_EV_FAILED,       WC_API_EV_DISCONNECTED, WC_API_EV_REMOVED,  WC_API_EV_FETCHED,
        WC_API_EV_FETCH_FAILED, WC_API_EV_QUERY_CANCEL
    };
    QF_CLEANUP(world_freep) struct world *world = item_in(WC_ITEM_ACCEPTED);

    for (size_t i = 0; i < QF_COUNT_OF(types); i++) {
        struct wc_api_event event = { .type = types[i], .worker = { 7 }, .session = { 7 } };
        QF_CLEANUP(qf_freep) struct wc_api *before = snapshot(world->wc);

        event.work.v = 99;
        event.attempt = 1;
        event.query.v = 99;
        world_step(world, &event);
        CHECK_EQ(world->effects.count, 0);
        CHECK_EQ(world->wc->stats.stale, before->stats.stale + 1);
        before->stats.stale++;
        before->stats.steps++;
        before->trace_stale = world->wc->trace_stale;
        before->effect_count = 0;
        CHECK_MSG(memcmp(before, world->wc, world->wc->state_size) == 0, "%s changed something",
                  wc_api_event_name(types[i]));
    }
}
