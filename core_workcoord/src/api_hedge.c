/* api_hedge.c - a second attempt at an item that takes far longer than its like. */
#include "api_int.h"

/* The longest wait; far more than any query may take. */
#define HEDGE_MAX_MS (qf_time_ms)3600000

/* Each runs before the state changes, while the hedge still knows its worker. */
typedef void move_fn(struct wc_api *wc, struct wc_item *item);

static void nothing(struct wc_api *wc, struct wc_item *item)
{
    (void)wc;
    (void)item;
}

static void send_hedge(struct wc_api *wc, struct wc_item *item)
{
    item->hedged = true;
    item->hedge.attempt = ++item->attempts;
    wc->stats.assigned++;
    wc->stats.hedged++;
    wc_item_send(wc, item, WC_API_DO_HEDGE, item->hedge.peer, item->hedge.attempt);
}

static void send_cancel(struct wc_api *wc, struct wc_item *item)
{
    wc_item_cancel_on(wc, item, item->hedge.peer, item->hedge.attempt);
}

static void count_accepted(struct wc_api *wc, struct wc_item *item)
{
    (void)item;
    wc->stats.accepted++;
}

static void believe_reject(struct wc_api *wc, struct wc_item *item)
{
    wc_item_believe_reject(wc, item->hedge.peer);
}

static void begin_fetch(struct wc_api *wc, struct wc_item *item)
{
    wc->stats.ready++;
    item->deaths = 0; /* it can be run, so nobody died of it */
    item->hedge.checksum = wc->event->checksum;
    (void)wc_item_emit(wc, item, WC_API_DO_FETCH, item->hedge.peer, item->hedge.attempt);
}

static void ack(struct wc_api *wc, struct wc_item *item)
{
    (void)wc_item_emit(wc, item, WC_API_DO_ACK, item->hedge.peer, item->hedge.attempt);
}

/* What becomes of the hedge, if it is over: WON its bytes are the item's or its attempt is. FAILS
 * the item with it. AVOIDS: the item goes to that worker last. */
enum { WON = 1, FAILS = 2, AVOIDS = 4 };

struct move {
    enum wc_hedge_state next;
    move_fn *act; /* NULL: not a legal move */
    unsigned flags;
};

static const struct move moves[WC_HEDGE__COUNT][WC_HEDGE_HEARD__COUNT] = {
    [WC_HEDGE_NONE] = {
        [WC_HEDGE_HEARD_HEDGE] = { WC_HEDGE_ASSIGNED, send_hedge, 0 },
    },
    [WC_HEDGE_ASSIGNED] = {
        [WC_HEDGE_HEARD_ACCEPTED] = { WC_HEDGE_ACCEPTED, count_accepted, 0 },
        [WC_HEDGE_HEARD_REJECTED] = { WC_HEDGE_NONE, believe_reject, AVOIDS },
        [WC_HEDGE_HEARD_RETRY] = { WC_HEDGE_NONE, nothing, AVOIDS },
        [WC_HEDGE_HEARD_FAILED] = { WC_HEDGE_NONE, nothing, FAILS },
        [WC_HEDGE_HEARD_LOST] = { WC_HEDGE_NONE, nothing, 0 },
        [WC_HEDGE_HEARD_MOVED] = { WC_HEDGE_NONE, send_cancel, 0 },
        [WC_HEDGE_HEARD_DROP] = { WC_HEDGE_NONE, send_cancel, 0 },
        [WC_HEDGE_HEARD_ADOPT] = { WC_HEDGE_NONE, nothing, WON },
    },
    [WC_HEDGE_ACCEPTED] = {
        [WC_HEDGE_HEARD_READY] = { WC_HEDGE_READY, begin_fetch, 0 },
        [WC_HEDGE_HEARD_RETRY] = { WC_HEDGE_NONE, nothing, AVOIDS },
        [WC_HEDGE_HEARD_FAILED] = { WC_HEDGE_NONE, nothing, FAILS },
        [WC_HEDGE_HEARD_LOST] = { WC_HEDGE_NONE, nothing, 0 },
        [WC_HEDGE_HEARD_MOVED] = { WC_HEDGE_NONE, send_cancel, 0 },
        [WC_HEDGE_HEARD_DROP] = { WC_HEDGE_NONE, send_cancel, 0 },
        [WC_HEDGE_HEARD_ADOPT] = { WC_HEDGE_NONE, nothing, WON },
    },
    [WC_HEDGE_READY] = {
        [WC_HEDGE_HEARD_FETCHED] = { WC_HEDGE_NONE, ack, WON },
        [WC_HEDGE_HEARD_FETCH_FAILED] = { WC_HEDGE_NONE, send_cancel, AVOIDS },
        [WC_HEDGE_HEARD_RETRY] = { WC_HEDGE_NONE, nothing, AVOIDS },
        [WC_HEDGE_HEARD_FAILED] = { WC_HEDGE_NONE, nothing, FAILS },
        [WC_HEDGE_HEARD_LOST] = { WC_HEDGE_NONE, nothing, 0 },
        [WC_HEDGE_HEARD_MOVED] = { WC_HEDGE_NONE, send_cancel, 0 },
        [WC_HEDGE_HEARD_DROP] = { WC_HEDGE_NONE, send_cancel, 0 },
        [WC_HEDGE_HEARD_ADOPT] = { WC_HEDGE_NONE, nothing, WON },
    },
};

/* The only function that writes hedge.state: keeps lists and gauges in step with it. */
static void set_state(struct wc_api *wc, uint32_t slot, enum wc_hedge_state next)
{
    struct wc_item *item = &wc->items[slot];
    struct wc_list *list = &wc->peers[item->hedge.peer].hedges;

    if (item->hedge.state == WC_HEDGE_NONE) {
        wc_list_push(list, wc->item_hedge_links, slot);
        wc->stats.hedges++;
    } else if (next == WC_HEDGE_NONE) {
        wc_list_remove(list, wc->item_hedge_links, slot);
        wc->stats.hedges--;
    }
    item->hedge.state = (uint8_t)next;
}

/* It is over. Its bytes are taken as those of any attempt that is not the current one. */
static void conclude(struct wc_api *wc, uint32_t slot, enum wc_hedge_heard heard, unsigned flags)
{
    struct wc_item *item = &wc->items[slot];

    if (flags & WON)
        wc->stats.hedges_won++;
    else
        wc->stats.hedges_lost++;
    if (heard == WC_HEDGE_HEARD_FETCHED) {
        item->late = item->hedge.attempt;
        item->late_checksum = item->hedge.checksum;
        wc_item_hear(wc, slot, WC_ITEM_HEARD_LATE_FETCHED);
    }
    if (flags & FAILS)
        wc_item_hear(wc, slot, WC_ITEM_HEARD_HEDGE_FAILED);
}

void wc_hedge_hear(struct wc_api *wc, uint32_t slot, enum wc_hedge_heard heard)
{
    struct wc_item *item = &wc->items[slot];
    const struct move *move = &moves[item->hedge.state][heard];

    if (!move->act) {
        wc->stats.illegal++;
        return;
    }
    move->act(wc, item);
    if (move->flags & AVOIDS)
        wc_item_avoid(item, wc->peers[item->hedge.peer].id.v);
    set_state(wc, slot, move->next);
    if (move->next == WC_HEDGE_NONE)
        conclude(wc, slot, heard, move->flags);
}

/* --- when --- */

static bool wanted(const struct wc_api *wc, const struct wc_item *item)
{
    return wc->limits.hedge_after > 0 && item->expect_ms > 0 && !item->hedged;
}

void wc_hedge_arm(struct wc_api *wc, uint32_t slot)
{
    const struct wc_item *item = &wc->items[slot];
    double after = wc->limits.hedge_after * (double)item->expect_ms;
    qf_time_ms delay = wc->limits.hedge_delay_ms;

    if (!wanted(wc, item))
        return;
    if (after > (double)delay)
        delay = after < (double)HEDGE_MAX_MS ? (qf_time_ms)after : HEDGE_MAX_MS;
    wc_timers_set(&wc->timers, wc_timer_item(wc, slot), wc_time_add(wc->now, delay));
}

void wc_hedge_disarm(struct wc_api *wc, uint32_t slot)
{
    wc_timers_clear(&wc->timers, wc_timer_item(wc, slot));
    if (wc->items[slot].due)
        wc_list_remove(&wc->hedge_due, wc->item_hedge_links, slot);
    wc->items[slot].due = false;
}

/* At the end of the step: a worker that would get it may be lost in the same tick. */
void wc_hedge_on_timer(struct wc_api *wc, uint32_t slot)
{
    wc->items[slot].due = true;
    wc_list_push(&wc->hedge_due, wc->item_hedge_links, slot);
}

static bool has_room(const struct wc_api *wc)
{
    uint32_t inflight = wc->item_counts[WC_ITEM_PENDING] + wc->item_counts[WC_ITEM_ASSIGNED] +
                        wc->item_counts[WC_ITEM_ACCEPTED] + wc->item_counts[WC_ITEM_READY];
    uint64_t share = (uint64_t)inflight * wc->limits.hedge_percent / 100;

    return wc->stats.hedges < QF_MAX(share, (uint64_t)wc->limits.hedges_min);
}

void wc_hedge_send_due(struct wc_api *wc)
{
    while (wc->hedge_due.count) {
        uint32_t slot = wc->hedge_due.head;
        uint32_t peer = has_room(wc) ? wc_assign_second(wc, &wc->items[slot]) : WC_NONE;

        wc_hedge_disarm(wc, slot);
        if (peer == WC_NONE) {
            wc_hedge_arm(wc, slot); /* Not now; perhaps later. */
            continue;
        }
        wc->items[slot].hedge.peer = peer;
        wc_hedge_hear(wc, slot, WC_HEDGE_HEARD_HEDGE);
    }
}

void wc_hedge_adopt(struct wc_api *wc, uint32_t slot)
{
    static const enum wc_item_heard heard[WC_HEDGE__COUNT] = {
        [WC_HEDGE_ASSIGNED] = WC_ITEM_HEARD_ADOPT_ASSIGNED,
        [WC_HEDGE_ACCEPTED] = WC_ITEM_HEARD_ADOPT_ACCEPTED,
        [WC_HEDGE_READY] = WC_ITEM_HEARD_ADOPT_READY,
    };
    struct wc_item *item = &wc->items[slot];
    struct wc_hedge hedge = item->hedge;

    wc_hedge_hear(wc, slot, WC_HEDGE_HEARD_ADOPT);
    item->peer = hedge.peer;
    item->attempt = hedge.attempt;
    item->checksum = hedge.checksum;
    item->hold = false;
    wc_item_hear(wc, slot, heard[hedge.state]);
}
