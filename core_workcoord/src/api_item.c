/* api_item.c - the life of a work item: what is heard moves it and says what to do. */
#include "api_int.h"

#include <assert.h>
#include <string.h>

/* Each runs before the state changes, while the item still knows its worker. */
typedef void move_fn(struct wc_api *wc, struct wc_item *item);

struct wc_api_effect *wc_item_emit(struct wc_api *wc, const struct wc_item *item,
                                   enum wc_api_effect_type type, uint32_t peer, uint32_t attempt)
{
    struct wc_api_effect *effect = wc_api_emit(wc, type);

    effect->worker = wc->peers[peer].id;
    effect->session = wc->peers[peer].session;
    effect->query = wc->queries[item->query].id;
    effect->leaf = item->leaf;
    effect->work = item->work;
    effect->attempt = attempt;
    return effect;
}

void wc_item_send(struct wc_api *wc, const struct wc_item *item, enum wc_api_effect_type type,
                  uint32_t peer, uint32_t attempt)
{
    bool owner = wc_assign_owned(item, wc->peers[peer].key);

    wc_item_emit(wc, item, type, peer, attempt)->owner = owner;
    if (owner)
        wc->stats.owner_hits++;
    else
        wc->stats.owner_misses += item->owner_count > 0;
}

static void emit_to_peer(struct wc_api *wc, const struct wc_item *item,
                         enum wc_api_effect_type type)
{
    (void)wc_item_emit(wc, item, type, item->peer, item->attempt);
}

/* Not on a stream that is just being lost: one of its items may have ended the query of another. */
void wc_item_cancel_on(struct wc_api *wc, const struct wc_item *item, uint32_t peer,
                       uint32_t attempt)
{
    if (wc->peers[peer].session.v)
        (void)wc_item_emit(wc, item, WC_API_DO_CANCEL, peer, attempt);
}

static void nothing(struct wc_api *wc, struct wc_item *item)
{
    (void)wc;
    (void)item;
}

static void send_assign(struct wc_api *wc, struct wc_item *item)
{
    item->attempt = ++item->attempts;
    item->hold = false;
    wc->stats.assigned++;
    wc->stats.reassigned += item->attempt > 1;
    wc_item_send(wc, item, WC_API_DO_ASSIGN, item->peer, item->attempt);
}

static void send_cancel(struct wc_api *wc, struct wc_item *item)
{
    wc_item_cancel_on(wc, item, item->peer, item->attempt);
}

static void count_accepted(struct wc_api *wc, struct wc_item *item)
{
    (void)item;
    wc->stats.accepted++;
}

void wc_item_believe_reject(struct wc_api *wc, uint32_t peer)
{
    wc->stats.rejected++;
    wc->peers[peer].accepting = false;
    wc_peer_changed(wc, peer);
}

static void believe_reject(struct wc_api *wc, struct wc_item *item)
{
    wc_item_believe_reject(wc, item->peer);
}

static void begin_fetch(struct wc_api *wc, struct wc_item *item)
{
    wc->stats.ready++;
    item->deaths = 0; /* it can be run, so nobody died of it */
    item->checksum = wc->event->checksum;
    emit_to_peer(wc, item, WC_API_DO_FETCH);
}

/* The stream is gone or the artifact expired, but its download may still come to a good end. */
static void keep_fetching(struct wc_api *wc, struct wc_item *item)
{
    (void)wc;
    item->late = item->attempt;
    item->late_checksum = item->checksum;
}

static void commit(struct wc_api *wc, struct wc_item *item, uint32_t attempt)
{
    struct wc_query *query = &wc->queries[item->query];
    struct wc_api_effect *effect = wc_api_emit(wc, WC_API_DO_COMMITTED);

    effect->query = query->id;
    effect->leaf = item->leaf;
    effect->work = item->work;
    effect->attempt = attempt;
    query->committed++;
    wc->stats.committed++;
}

static void ack_and_commit(struct wc_api *wc, struct wc_item *item)
{
    emit_to_peer(wc, item, WC_API_DO_ACK);
    commit(wc, item, item->attempt);
}

/* The bytes are those of another attempt than the current one. */
static void commit_late(struct wc_api *wc, struct wc_item *item)
{
    if (item->peer != WC_NONE)
        send_cancel(wc, item);
    item->checksum = item->late_checksum;
    commit(wc, item, item->late);
}

/* A run that was accepted and came to nothing COSTS an attempt; the item then AVOIDS that worker,
 * and HOLDS back before it tries a worker again that it has failed on. */
enum { COSTS = 1, AVOIDS = 2, HOLDS = 4 };

struct move {
    enum wc_item_state next;
    move_fn *act; /* NULL: not a legal move */
    unsigned flags;
};

static const struct move moves[WC_ITEM__COUNT][WC_ITEM_HEARD__COUNT] = {
    [WC_ITEM_PENDING] = {
        [WC_ITEM_HEARD_ASSIGN] = { WC_ITEM_ASSIGNED, send_assign, 0 },
        [WC_ITEM_HEARD_ADOPT_ASSIGNED] = { WC_ITEM_ASSIGNED, nothing, 0 },
        [WC_ITEM_HEARD_ADOPT_ACCEPTED] = { WC_ITEM_ACCEPTED, nothing, 0 },
        [WC_ITEM_HEARD_ADOPT_READY] = { WC_ITEM_READY, nothing, 0 },
        [WC_ITEM_HEARD_LATE_FETCHED] = { WC_ITEM_FETCHED, commit_late, 0 },
        [WC_ITEM_HEARD_CANCEL] = { WC_ITEM_CANCELED, nothing, 0 },
    },
    [WC_ITEM_ASSIGNED] = {
        [WC_ITEM_HEARD_ACCEPTED] = { WC_ITEM_ACCEPTED, count_accepted, 0 },
        [WC_ITEM_HEARD_REJECTED] = { WC_ITEM_PENDING, believe_reject, AVOIDS },
        [WC_ITEM_HEARD_RETRY] = { WC_ITEM_PENDING, nothing, COSTS | AVOIDS | HOLDS },
        [WC_ITEM_HEARD_FAILED] = { WC_ITEM_FAILED, nothing, 0 },
        [WC_ITEM_HEARD_HEDGE_FAILED] = { WC_ITEM_FAILED, send_cancel, 0 },
        [WC_ITEM_HEARD_LOST] = { WC_ITEM_PENDING, nothing, 0 },
        [WC_ITEM_HEARD_MOVED] = { WC_ITEM_PENDING, send_cancel, 0 },
        [WC_ITEM_HEARD_LATE_FETCHED] = { WC_ITEM_FETCHED, commit_late, 0 },
        [WC_ITEM_HEARD_CANCEL] = { WC_ITEM_CANCELED, send_cancel, 0 },
    },
    [WC_ITEM_ACCEPTED] = {
        [WC_ITEM_HEARD_READY] = { WC_ITEM_READY, begin_fetch, 0 },
        [WC_ITEM_HEARD_RETRY] = { WC_ITEM_PENDING, nothing, COSTS | AVOIDS | HOLDS },
        [WC_ITEM_HEARD_FAILED] = { WC_ITEM_FAILED, nothing, 0 },
        [WC_ITEM_HEARD_HEDGE_FAILED] = { WC_ITEM_FAILED, send_cancel, 0 },
        [WC_ITEM_HEARD_LOST] = { WC_ITEM_PENDING, nothing, COSTS },
        [WC_ITEM_HEARD_LATE_FETCHED] = { WC_ITEM_FETCHED, commit_late, 0 },
        [WC_ITEM_HEARD_CANCEL] = { WC_ITEM_CANCELED, send_cancel, 0 },
    },
    [WC_ITEM_READY] = {
        [WC_ITEM_HEARD_FETCHED] = { WC_ITEM_FETCHED, ack_and_commit, 0 },
        [WC_ITEM_HEARD_FETCH_FAILED] = { WC_ITEM_PENDING, send_cancel, COSTS | AVOIDS | HOLDS },
        [WC_ITEM_HEARD_RETRY] = { WC_ITEM_PENDING, keep_fetching, COSTS | AVOIDS | HOLDS },
        [WC_ITEM_HEARD_FAILED] = { WC_ITEM_FAILED, nothing, 0 },
        [WC_ITEM_HEARD_HEDGE_FAILED] = { WC_ITEM_FAILED, send_cancel, 0 },
        [WC_ITEM_HEARD_LOST] = { WC_ITEM_PENDING, keep_fetching, COSTS },
        [WC_ITEM_HEARD_LATE_FETCHED] = { WC_ITEM_FETCHED, commit_late, 0 },
        [WC_ITEM_HEARD_CANCEL] = { WC_ITEM_CANCELED, send_cancel, 0 },
    },
    [WC_ITEM_FETCHED] = {
        [WC_ITEM_HEARD_CANCEL] = { WC_ITEM_CANCELED, nothing, 0 },
    },
    [WC_ITEM_FAILED] = {
        [WC_ITEM_HEARD_CANCEL] = { WC_ITEM_CANCELED, nothing, 0 },
    },
};

void wc_item_avoid(struct wc_item *item, uint64_t worker)
{
    uint8_t from = 0, to = 0;

    for (; from < item->avoid_count; from++) {
        if (item->avoid[from] != worker)
            item->avoid[to++] = item->avoid[from];
    }
    if (to == WC_AVOID_MAX) {
        memmove(item->avoid, item->avoid + 1, (WC_AVOID_MAX - 1) * sizeof(item->avoid[0]));
        to--;
    }
    item->avoid[to++] = worker;
    item->avoid_count = to;
}

static struct wc_list *place_of(struct wc_api *wc, const struct wc_item *item)
{
    struct wc_peer *peer;

    if (item->peer == WC_NONE)
        return NULL;
    peer = &wc->peers[item->peer];
    return &peer->items[item->state == WC_ITEM_ASSIGNED ? WC_PEER_UNSTARTED : WC_PEER_STARTED];
}

static bool on_a_worker(enum wc_item_state state)
{
    return state == WC_ITEM_ASSIGNED || state == WC_ITEM_ACCEPTED || state == WC_ITEM_READY;
}

static bool is_over(enum wc_item_state state)
{
    return state == WC_ITEM_FETCHED || state == WC_ITEM_FAILED || state == WC_ITEM_CANCELED;
}

/* The only function that writes item->state: keeps the lists and gauges in step with it. */
static void set_state(struct wc_api *wc, uint32_t slot, enum wc_item_state next)
{
    struct wc_item *item = &wc->items[slot];
    struct wc_list *place;

    if (item->state == WC_ITEM_PENDING)
        wc_assign_forget(wc, slot);
    else if ((place = place_of(wc, item)))
        wc_list_remove(place, wc->item_place_links, slot);
    if (item->state == WC_ITEM_READY)
        wc->peers[item->peer].ready--;
    wc_tenant_count(wc, item, on_a_worker(next) - on_a_worker((enum wc_item_state)item->state));
    if (next != WC_ITEM_ACCEPTED && next != WC_ITEM_READY)
        wc_hedge_disarm(wc, slot);
    wc->item_counts[item->state]--;
    wc->item_counts[next]++;

    item->state = (uint8_t)next;
    if (!on_a_worker(next))
        item->peer = WC_NONE;
    if ((place = place_of(wc, item)))
        wc_list_push(place, wc->item_place_links, slot);
    if (next == WC_ITEM_READY)
        wc->peers[item->peer].ready++;
    if (next == WC_ITEM_PENDING) {
        item->wait = WC_WAIT_FRESH;
        wc_list_push(&wc->fresh, wc->item_place_links, slot);
    }
}

void wc_item_blame(struct wc_api *wc, uint32_t slot, uint32_t peer, uint32_t attempt)
{
    wc->items[slot].deaths++;
    wc->stats.blamed++;
    (void)wc_item_emit(wc, &wc->items[slot], WC_API_DO_BLAMED, peer, attempt);
}

bool wc_item_condemned(const struct wc_api *wc, const struct wc_item *item)
{
    return item->deaths >= wc->limits.deaths_max;
}

/* What to tell the client when there are no attempts left, or none are of use. */
static qf_rc reason(const struct wc_api *wc, const struct wc_item *item)
{
    const struct wc_api_event *event = wc->event;
    static const qf_rc fetch[WC_FETCH__COUNT] = {
        [WC_FETCH_IO] = QF_EIO,
        [WC_FETCH_CHECKSUM] = QF_ECORRUPT,
        [WC_FETCH_EXPIRED] = QF_ENOTFOUND,
    };

    if (wc_item_condemned(wc, item))
        return QF_EQUARANTINED;
    if (event->type == WC_API_EV_FAILED)
        return event->failure.rc < 0 ? event->failure.rc : QF_EINTERNAL;
    if (event->type == WC_API_EV_FETCH_FAILED)
        return fetch[event->fetch_error];
    if (event->type == WC_API_EV_FETCHED)
        return QF_ECORRUPT; /* The bytes were not those announced. */
    return QF_EUNAVAILABLE;
}

void wc_item_hear(struct wc_api *wc, uint32_t slot, enum wc_item_heard heard)
{
    struct wc_item *item = &wc->items[slot];
    const struct move *move = &moves[item->state][heard];
    const struct wc_query *query = &wc->queries[item->query];

    if (!move->act) {
        wc->stats.illegal++;
        return;
    }
    move->act(wc, item);
    if (move->flags & AVOIDS)
        wc_item_avoid(item, wc->peers[item->peer].id.v);
    if (move->flags & HOLDS)
        item->hold = true;
    if (move->flags & COSTS)
        item->failures++;
    set_state(wc, slot, move->next);
    if (heard == WC_ITEM_HEARD_ASSIGN)
        wc_hedge_arm(wc, slot);
    if (wc_hedge_alive(item) && is_over(move->next))
        wc_hedge_hear(wc, slot, WC_HEDGE_HEARD_DROP);

    if (move->next == WC_ITEM_FETCHED && query->committed == query->items.count)
        wc_query_end(wc, item->query, QF_OK, (struct wc_work_id){ 0 });
    else if (move->next == WC_ITEM_FAILED ||
             ((move->flags & COSTS) &&
              (item->failures >= wc->limits.attempts_max || wc_item_condemned(wc, item))))
        wc_query_end(wc, item->query, reason(wc, item), item->work);
    else if (wc_hedge_alive(item) && move->next == WC_ITEM_PENDING)
        wc_hedge_adopt(wc, slot);
}

static bool same_checksum(struct wc_checksum a, struct wc_checksum b)
{
    return a.high == b.high && a.low == b.low;
}

static void count_duplicate(struct wc_api *wc, const struct wc_item *item)
{
    if (same_checksum(item->checksum, wc->event->checksum))
        wc->stats.duplicates++;
    else
        wc->stats.conflicts++;
}

/* A message about an attempt that is over. An artifact nobody waits for is acknowledged all the
 * same, so that the worker need not keep it until it expires. */
static void answer_stale(struct wc_api *wc, uint32_t peer, const struct wc_item *item)
{
    const struct wc_api_event *event = wc->event;
    struct wc_api_effect *effect;

    wc->stats.stale++;
    if (event->type != WC_API_EV_READY)
        return;
    if (item && item->state == WC_ITEM_FETCHED)
        count_duplicate(wc, item);
    effect = wc_api_emit(wc, WC_API_DO_ACK);
    effect->worker = wc->peers[peer].id;
    effect->session = wc->peers[peer].session;
    effect->work = event->work;
    effect->attempt = event->attempt;
}

static enum wc_item_heard heard_in(struct wc_api *wc)
{
    if (wc->event->type == WC_API_EV_ACCEPTED)
        return WC_ITEM_HEARD_ACCEPTED;
    if (wc->event->type == WC_API_EV_REJECTED)
        return WC_ITEM_HEARD_REJECTED;
    if (wc->event->type == WC_API_EV_READY)
        return WC_ITEM_HEARD_READY;
    assert(wc->event->type == WC_API_EV_FAILED);
    if (wc->event->failure.retryable) {
        wc->stats.failed_retryable++;
        return WC_ITEM_HEARD_RETRY;
    }
    wc->stats.failed_final++;
    return WC_ITEM_HEARD_FAILED;
}

static bool is_hedge(const struct wc_item *item, uint32_t attempt)
{
    return wc_hedge_alive(item) && item->hedge.attempt == attempt;
}

/* What workers and downloads say is the same for both attempts. */
static enum wc_hedge_heard as_hedge(enum wc_item_heard heard)
{
    static const enum wc_hedge_heard same[] = {
        [WC_ITEM_HEARD_ACCEPTED] = WC_HEDGE_HEARD_ACCEPTED,
        [WC_ITEM_HEARD_REJECTED] = WC_HEDGE_HEARD_REJECTED,
        [WC_ITEM_HEARD_READY] = WC_HEDGE_HEARD_READY,
        [WC_ITEM_HEARD_FETCHED] = WC_HEDGE_HEARD_FETCHED,
        [WC_ITEM_HEARD_FETCH_FAILED] = WC_HEDGE_HEARD_FETCH_FAILED,
        [WC_ITEM_HEARD_RETRY] = WC_HEDGE_HEARD_RETRY,
        [WC_ITEM_HEARD_FAILED] = WC_HEDGE_HEARD_FAILED,
    };

    return same[heard];
}

void wc_item_on_message(struct wc_api *wc, uint32_t peer)
{
    const struct wc_api_event *event = wc->event;
    uint32_t slot = wc_index_first(&wc->item_index, event->work.v);
    struct wc_item *item = slot == WC_NONE ? NULL : &wc->items[slot];

    if (item && item->peer == peer && item->attempt == event->attempt)
        wc_item_hear(wc, slot, heard_in(wc));
    else if (item && is_hedge(item, event->attempt) && item->hedge.peer == peer)
        wc_hedge_hear(wc, slot, as_hedge(heard_in(wc)));
    else
        answer_stale(wc, peer, item);
}

/* A download of an older attempt: good bytes are good bytes, and a failure changes nothing. */
static void on_late_fetch(struct wc_api *wc, uint32_t slot)
{
    struct wc_item *item = &wc->items[slot];

    if (wc->event->type == WC_API_EV_FETCHED &&
        same_checksum(wc->event->checksum, item->late_checksum)) {
        wc->stats.late++;
        wc_item_hear(wc, slot, WC_ITEM_HEARD_LATE_FETCHED);
    } else {
        item->late = 0;
    }
}

/* The end of a download whose bytes were announced with @checksum. */
static enum wc_item_heard heard_of_fetch(struct wc_api *wc, struct wc_checksum checksum)
{
    const struct wc_api_event *event = wc->event;

    if (event->type == WC_API_EV_FETCHED && same_checksum(event->checksum, checksum))
        return WC_ITEM_HEARD_FETCHED;
    wc->stats
        .fetch_failed[event->type == WC_API_EV_FETCHED ? WC_FETCH_CHECKSUM : event->fetch_error]++;
    return WC_ITEM_HEARD_FETCH_FAILED;
}

void wc_item_on_fetch(struct wc_api *wc)
{
    const struct wc_api_event *event = wc->event;
    uint32_t slot = wc_index_first(&wc->item_index, event->work.v);
    struct wc_item *item = slot == WC_NONE ? NULL : &wc->items[slot];

    assert(event->type == WC_API_EV_FETCHED || (size_t)event->fetch_error < WC_FETCH__COUNT);
    if (!item) {
        wc->stats.stale++;
    } else if (item->state == WC_ITEM_FETCHED) {
        wc->stats.stale++;
        if (event->type == WC_API_EV_FETCHED)
            count_duplicate(wc, item);
    } else if (item->state == WC_ITEM_READY && item->attempt == event->attempt) {
        wc_item_hear(wc, slot, heard_of_fetch(wc, item->checksum));
    } else if (is_hedge(item, event->attempt) && item->hedge.state == WC_HEDGE_READY) {
        wc_hedge_hear(wc, slot, as_hedge(heard_of_fetch(wc, item->hedge.checksum)));
    } else if (item->late && item->late == event->attempt) {
        on_late_fetch(wc, slot);
    } else {
        wc->stats.stale++;
    }
}
