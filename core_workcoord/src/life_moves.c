/* life_moves.c - the life of a query: what is heard moves it and says what to do. */
#include "life_int.h"

/* Each runs before the state changes. */
typedef void move_fn(struct wc_life *life, uint32_t slot);

static void nothing(struct wc_life *life, uint32_t slot)
{
    (void)life;
    (void)slot;
}

static void plan(struct wc_life *life, uint32_t slot)
{
    life->stats.admitted++;
    (void)wc_life_emit(life, slot, WC_LIFE_DO_PLAN);
}

static void plan_again(struct wc_life *life, uint32_t slot)
{
    life->stats.replanned++;
    life->queries[slot].replans++;
    wc_life_emit(life, slot, WC_LIFE_DO_PLAN)->replans = life->queries[slot].replans;
}

static void ask(struct wc_life *life, uint32_t slot)
{
    (void)wc_life_emit(life, slot, WC_LIFE_DO_ASK);
}

static void resume(struct wc_life *life, uint32_t slot)
{
    wc_life_emit(life, slot, WC_LIFE_DO_RESUME)->replans = life->queries[slot].replans;
}

static void work(struct wc_life *life, uint32_t slot)
{
    (void)wc_life_emit(life, slot, WC_LIFE_DO_WORK);
}

static void answer(struct wc_life *life, uint32_t slot)
{
    life->queries[slot].room = false;
    (void)wc_life_emit(life, slot, WC_LIFE_DO_ANSWER);
}

/* The turn may have found the stream full a moment before: its PAUSED is on its way. */
static void note_room(struct wc_life *life, uint32_t slot)
{
    life->queries[slot].room = true;
}

static void stop(struct wc_life *life, uint32_t slot)
{
    wc_life_emit(life, slot, WC_LIFE_DO_STOP)->rc = life->queries[slot].rc;
}

static void drop(struct wc_life *life, uint32_t slot)
{
    wc_life_emit(life, slot, WC_LIFE_DO_DROP)->rc = life->queries[slot].rc;
}

static void end(struct wc_life *life, uint32_t slot)
{
    wc_life_emit(life, slot, WC_LIFE_DO_END)->rc = life->event->rc;
}

static void fail(struct wc_life *life, uint32_t slot, enum wc_life_cause cause, qf_rc rc)
{
    struct wc_life_effect *effect = wc_life_emit(life, slot, WC_LIFE_DO_FAIL);

    effect->cause = cause;
    effect->rc = rc;
    wc_life_emit(life, slot, WC_LIFE_DO_END)->rc = rc;
}

static void fail_canceled(struct wc_life *life, uint32_t slot)
{
    fail(life, slot, WC_LIFE_CANCELED, life->queries[slot].rc);
}

static void fail_refused(struct wc_life *life, uint32_t slot)
{
    fail(life, slot, WC_LIFE_REFUSED, QF_EBUSY);
}

static void fail_crowded(struct wc_life *life, uint32_t slot)
{
    fail(life, slot, WC_LIFE_CROWDED, QF_EBUSY);
}

static void fail_untold(struct wc_life *life, uint32_t slot)
{
    fail(life, slot, WC_LIFE_UNTOLD, life->event->rc);
}

static void fail_work(struct wc_life *life, uint32_t slot)
{
    fail(life, slot, WC_LIFE_WORK, life->event->rc);
}

struct move {
    enum wc_query_state next;
    move_fn *act; /* NULL: not a legal move */
};

static const struct move moves[WC_QUERY__COUNT][WC_QUERY_HEARD__COUNT] = {
    [WC_QUERY_QUEUED] = {
        [WC_QUERY_HEARD_ADMIT] = { WC_QUERY_PLANNING, plan },
        [WC_QUERY_HEARD_CANCEL] = { WC_QUERY_ENDED, fail_canceled },
        [WC_QUERY_HEARD_CROWDED] = { WC_QUERY_ENDED, fail_crowded },
    },
    [WC_QUERY_PLANNING] = {
        [WC_QUERY_HEARD_PLANNED] = { WC_QUERY_WORKING, work },
        [WC_QUERY_HEARD_ASK] = { WC_QUERY_ASKING, ask },
        [WC_QUERY_HEARD_ANSWERED] = { WC_QUERY_ENDED, end },
        [WC_QUERY_HEARD_REFUSED] = { WC_QUERY_ENDED, fail_refused },
        [WC_QUERY_HEARD_CANCEL] = { WC_QUERY_STOPPING, stop },
    },
    [WC_QUERY_ASKING] = {
        [WC_QUERY_HEARD_TOLD] = { WC_QUERY_PLANNING, resume },
        [WC_QUERY_HEARD_UNTOLD] = { WC_QUERY_ENDED, fail_untold },
        [WC_QUERY_HEARD_REFUSED] = { WC_QUERY_ENDED, fail_refused },
        [WC_QUERY_HEARD_CANCEL] = { WC_QUERY_ENDED, fail_canceled },
    },
    [WC_QUERY_WORKING] = {
        [WC_QUERY_HEARD_DONE] = { WC_QUERY_ANSWERING, answer },
        [WC_QUERY_HEARD_VANISHED] = { WC_QUERY_PLANNING, plan_again },
        [WC_QUERY_HEARD_FAILED] = { WC_QUERY_ENDED, fail_work },
        [WC_QUERY_HEARD_CANCEL] = { WC_QUERY_DROPPING, drop },
    },
    [WC_QUERY_ANSWERING] = {
        [WC_QUERY_HEARD_PAUSED] = { WC_QUERY_PAUSED, nothing },
        [WC_QUERY_HEARD_MORE] = { WC_QUERY_ANSWERING, answer },
        [WC_QUERY_HEARD_ANSWERED] = { WC_QUERY_ENDED, end },
        [WC_QUERY_HEARD_REFUSED] = { WC_QUERY_ENDED, fail_refused },
        [WC_QUERY_HEARD_ROOM] = { WC_QUERY_ANSWERING, note_room },
        [WC_QUERY_HEARD_CANCEL] = { WC_QUERY_STOPPING, stop },
    },
    [WC_QUERY_PAUSED] = {
        [WC_QUERY_HEARD_ROOM] = { WC_QUERY_STREAMING, answer },
        [WC_QUERY_HEARD_CANCEL] = { WC_QUERY_ENDED, fail_canceled },
    },
    [WC_QUERY_STREAMING] = {
        [WC_QUERY_HEARD_PAUSED] = { WC_QUERY_PAUSED, nothing },
        [WC_QUERY_HEARD_MORE] = { WC_QUERY_STREAMING, answer },
        [WC_QUERY_HEARD_ANSWERED] = { WC_QUERY_ENDED, end },
        [WC_QUERY_HEARD_REFUSED] = { WC_QUERY_ENDED, fail_refused },
        [WC_QUERY_HEARD_ROOM] = { WC_QUERY_STREAMING, note_room },
        [WC_QUERY_HEARD_CANCEL] = { WC_QUERY_STOPPING, stop },
    },
    [WC_QUERY_STOPPING] = {
        [WC_QUERY_HEARD_PLANNED] = { WC_QUERY_ENDED, fail_canceled },
        [WC_QUERY_HEARD_ASK] = { WC_QUERY_ENDED, fail_canceled },
        [WC_QUERY_HEARD_PAUSED] = { WC_QUERY_ENDED, fail_canceled },
        [WC_QUERY_HEARD_MORE] = { WC_QUERY_ENDED, fail_canceled },
        [WC_QUERY_HEARD_ANSWERED] = { WC_QUERY_ENDED, end },
        [WC_QUERY_HEARD_REFUSED] = { WC_QUERY_ENDED, fail_canceled },
        [WC_QUERY_HEARD_ROOM] = { WC_QUERY_STOPPING, nothing },
    },
    [WC_QUERY_DROPPING] = {
        [WC_QUERY_HEARD_DONE] = { WC_QUERY_ENDED, fail_canceled },
        [WC_QUERY_HEARD_VANISHED] = { WC_QUERY_ENDED, fail_canceled },
        [WC_QUERY_HEARD_FAILED] = { WC_QUERY_ENDED, fail_canceled },
    },
};

enum place { NO_PLACE, ONE_PLACE, AS_BEFORE };

static const enum place places[WC_QUERY__COUNT] = {
    [WC_QUERY_QUEUED] = NO_PLACE,     [WC_QUERY_PLANNING] = ONE_PLACE,
    [WC_QUERY_ASKING] = ONE_PLACE,    [WC_QUERY_WORKING] = ONE_PLACE,
    [WC_QUERY_ANSWERING] = ONE_PLACE, [WC_QUERY_PAUSED] = NO_PLACE,
    [WC_QUERY_STREAMING] = NO_PLACE,  [WC_QUERY_STOPPING] = AS_BEFORE,
    [WC_QUERY_DROPPING] = ONE_PLACE,  [WC_QUERY_ENDED] = NO_PLACE,
};

/* Neither in the queue nor at a place: its reader is slow. */
static bool is_stream(const struct wc_life_query *query)
{
    return query->state != WC_QUERY_QUEUED && query->state != WC_QUERY_ENDED && !query->place;
}

/* Give the query's place and stream back to its tenant (-1), or take them (1). */
static void count(struct wc_life *life, const struct wc_life_query *query, uint32_t one)
{
    struct wc_life_tenant *tenant = &life->tenants[query->tenant];

    life->stats.active += query->place ? one : 0;
    tenant->active += query->place ? one : 0;
    tenant->streams += is_stream(query) ? one : 0;
    life->stats.queries[query->state] += one;
}

/* The only function that writes a query's state: keeps places, line and gauges in step with it. */
static void set_state(struct wc_life *life, uint32_t slot, enum wc_query_state next)
{
    struct wc_life_query *query = &life->queries[slot];

    if (query->state == WC_QUERY_QUEUED && next != WC_QUERY_QUEUED)
        wc_life_queue_leave(life, slot);
    count(life, query, (uint32_t)-1);
    if (places[next] != AS_BEFORE)
        query->place = places[next] == ONE_PLACE;
    query->state = (uint8_t)next;
    count(life, query, 1);
    wc_life_queue_settle(life, query->tenant);
}

static void release(struct wc_life *life, uint32_t slot)
{
    life->stats.queries[WC_QUERY_ENDED]--;
    life->stats.alive--;
    life->stats.ended++;
    wc_timers_clear(&life->timers, slot);
    wc_life_queue_forget(life, slot);
    wc_index_remove(&life->query_index, slot);
    wc_list_remove(&life->alive, life->alive_links, slot);
    wc_pool_give(&life->query_pool, slot);
}

void wc_life_enter(struct wc_life *life, uint32_t slot)
{
    life->stats.submitted++;
    life->stats.alive++;
    life->stats.queries[WC_QUERY_QUEUED]++;
    set_state(life, slot, WC_QUERY_QUEUED);
}

void wc_life_hear(struct wc_life *life, uint32_t slot, enum wc_query_heard heard)
{
    const struct move *move = &moves[life->queries[slot].state][heard];

    if (!move->act) {
        life->stats.illegal++;
        return;
    }
    move->act(life, slot);
    set_state(life, slot, move->next);
    if (move->next == WC_QUERY_STOPPING || move->next == WC_QUERY_DROPPING)
        wc_timers_clear(&life->timers, slot); /* It cannot end any sooner. */
    if (move->next == WC_QUERY_ENDED)
        release(life, slot);
}
