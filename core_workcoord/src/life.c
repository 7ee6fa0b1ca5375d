/* life.c - the life of queries: creation and the one entry, which hands each event to its table. */
#include "life_int.h"

#include <assert.h>
#include <stdlib.h>

struct wc_life_limits wc_life_limits_default(void)
{
    return (struct wc_life_limits){
        .queries_max = 1024,
        .active_max = 64,
        .tenant_queue_max = 512,
        .replans_max = 3,
    };
}

static struct wc_life_limits completed(const struct wc_life_limits *given)
{
    struct wc_life_limits limits = *given, standard = wc_life_limits_default();

    limits.queries_max = limits.queries_max ? limits.queries_max : standard.queries_max;
    limits.active_max = limits.active_max ? limits.active_max : standard.active_max;
    limits.tenant_queue_max =
        limits.tenant_queue_max ? limits.tenant_queue_max : standard.tenant_queue_max;
    limits.replans_max = limits.replans_max ? limits.replans_max : standard.replans_max;
    return limits;
}

/* A step ends a query (FAIL, END), moves it or admits it (one effect). */
static size_t effects_max(const struct wc_life_limits *limits)
{
    return 2 * (size_t)limits->queries_max;
}

static void carve(struct wc_life *life, struct wc_carver *carver)
{
    uint32_t max = life->limits.queries_max;

    life->queries = wc_carve(carver, max, sizeof(*life->queries));
    wc_pool_carve(&life->query_pool, carver, max);
    wc_index_carve(&life->query_index, carver, max);
    life->alive_links = wc_carve(carver, max, sizeof(*life->alive_links));
    life->queued_links = wc_carve(carver, max, sizeof(*life->queued_links));

    life->tenants = wc_carve(carver, max, sizeof(*life->tenants));
    wc_pool_carve(&life->tenant_pool, carver, max);
    wc_index_carve(&life->tenant_index, carver, max);
    life->line_links = wc_carve(carver, max, sizeof(*life->line_links));

    wc_timers_carve(&life->timers, carver, max);
    life->state_size = carver->used;
    life->effect_capacity = effects_max(&life->limits);
    life->effects = wc_carve(carver, life->effect_capacity, sizeof(*life->effects));
}

struct wc_life *wc_life_new(const struct wc_life_limits *limits)
{
    struct wc_life sizing = { .limits = completed(limits) }, *life;
    struct wc_carver carver = { NULL, 0 };

    (void)wc_carve(&carver, 1, sizeof(*life));
    carve(&sizing, &carver);
    life = calloc(1, carver.used);
    if (!life)
        return NULL;
    life->limits = sizing.limits;
    carver = (struct wc_carver){ (char *)life, 0 };
    (void)wc_carve(&carver, 1, sizeof(*life));
    carve(life, &carver);

    wc_pool_fill(&life->query_pool, life->limits.queries_max);
    wc_pool_fill(&life->tenant_pool, life->limits.queries_max);
    wc_index_clear(&life->query_index);
    wc_index_clear(&life->tenant_index);
    wc_list_init(&life->alive);
    wc_list_init(&life->line);
    life->now = INT64_MIN;
    return life;
}

struct wc_life *wc_life_free(struct wc_life *life)
{
    free(life);
    return NULL;
}

void wc_life_trace(struct wc_life *life, wc_trace_fn *trace, void *ctx)
{
    life->trace = trace;
    life->trace_ctx = ctx;
}

struct wc_life_effect *wc_life_emit(struct wc_life *life, uint32_t query,
                                    enum wc_life_effect_type type)
{
    assert(life->effect_count < life->effect_capacity);
    life->effects[life->effect_count] =
        (struct wc_life_effect){ .type = type, .query = life->queries[query].id };
    return &life->effects[life->effect_count++];
}

/* The first reason stands, however many follow. */
static void cancel(struct wc_life *life, uint32_t slot, qf_rc rc)
{
    struct wc_life_query *query = &life->queries[slot];

    if (query->rc) {
        life->stats.stale++;
        return;
    }
    query->rc = rc;
    wc_life_hear(life, slot, WC_QUERY_HEARD_CANCEL);
}

static qf_rc on_tick(struct wc_life *life)
{
    uint32_t slot;

    while ((slot = wc_timers_due(&life->timers, life->now)) != WC_NONE)
        cancel(life, slot, QF_ETIMEOUT);
    return QF_OK;
}

static qf_rc on_submit(struct wc_life *life)
{
    const struct wc_life_event *event = life->event;
    qf_rc rc = QF_OK;
    uint32_t slot;

    if (life->draining)
        rc = QF_EUNAVAILABLE;
    else if (wc_index_first(&life->query_index, event->query.v) != WC_NONE)
        rc = QF_EEXIST;
    else if (!life->query_pool.count)
        rc = QF_ELIMIT;
    else if (wc_life_queue_full(life))
        rc = QF_EBUSY;
    if (rc) {
        life->stats.refused++;
        return rc;
    }
    slot = wc_pool_take(&life->query_pool);
    life->queries[slot] = (struct wc_life_query){ .id = event->query };
    wc_index_put(&life->query_index, event->query.v, slot);
    wc_list_push(&life->alive, life->alive_links, slot);
    wc_life_queue_join(life, slot);
    if (event->submit.deadline != QF_TIME_NEVER)
        wc_timers_set(&life->timers, slot, event->submit.deadline);
    wc_life_enter(life, slot);
    return QF_OK;
}

/* A query that ended a moment ago is no query any more. */
static qf_rc hear(struct wc_life *life, enum wc_query_heard heard)
{
    uint32_t slot = wc_index_first(&life->query_index, life->event->query.v);

    if (slot == WC_NONE)
        life->stats.stale++;
    else
        wc_life_hear(life, slot, heard);
    return QF_OK;
}

static qf_rc on_planned(struct wc_life *life)
{
    return hear(life, WC_QUERY_HEARD_PLANNED);
}

static qf_rc on_ask(struct wc_life *life)
{
    return hear(life, WC_QUERY_HEARD_ASK);
}

static qf_rc on_told(struct wc_life *life)
{
    return hear(life, life->event->rc == QF_OK ? WC_QUERY_HEARD_TOLD : WC_QUERY_HEARD_UNTOLD);
}

static qf_rc on_paused(struct wc_life *life)
{
    uint32_t slot = wc_index_first(&life->query_index, life->event->query.v);
    bool room = slot != WC_NONE && life->queries[slot].room;
    qf_rc rc = hear(life, room ? WC_QUERY_HEARD_MORE : WC_QUERY_HEARD_PAUSED);

    /* The only way to one more stream; a query that was being stopped has ended instead. */
    if (wc_life_state(life, life->event->query) == WC_QUERY_PAUSED)
        wc_life_queue_refuse(life, life->queries[slot].tenant);
    return rc;
}

static qf_rc on_answered(struct wc_life *life)
{
    return hear(life, WC_QUERY_HEARD_ANSWERED);
}

static qf_rc on_refused(struct wc_life *life)
{
    return hear(life, WC_QUERY_HEARD_REFUSED);
}

static qf_rc on_work_over(struct wc_life *life)
{
    uint32_t slot = wc_index_first(&life->query_index, life->event->query.v);
    bool again = slot != WC_NONE && life->queries[slot].replans < life->limits.replans_max;
    qf_rc rc = life->event->rc;

    if (rc == QF_OK)
        return hear(life, WC_QUERY_HEARD_DONE);
    if ((rc == QF_ENOTFOUND || rc == QF_EGONE) && again)
        return hear(life, WC_QUERY_HEARD_VANISHED);
    return hear(life, WC_QUERY_HEARD_FAILED);
}

static qf_rc on_room(struct wc_life *life)
{
    return hear(life, WC_QUERY_HEARD_ROOM);
}

static qf_rc on_cancel(struct wc_life *life)
{
    uint32_t slot = wc_index_first(&life->query_index, life->event->query.v);

    if (slot == WC_NONE)
        life->stats.stale++;
    else
        cancel(life, slot, life->event->rc < 0 ? life->event->rc : QF_ECANCELED);
    return QF_OK;
}

static qf_rc on_drain(struct wc_life *life)
{
    life->draining = true;
    return QF_OK;
}

static qf_rc on_cut(struct wc_life *life)
{
    uint32_t next;

    life->draining = true;
    for (uint32_t slot = life->alive.head; slot != WC_NONE; slot = next) {
        next = life->alive_links[slot].next;
        cancel(life, slot, QF_EUNAVAILABLE);
    }
    return QF_OK;
}

static qf_rc (*const handlers[WC_LIFE_EV__COUNT])(struct wc_life *life) = {
    [WC_LIFE_EV_TICK] = on_tick,
    [WC_LIFE_EV_SUBMIT] = on_submit,
    [WC_LIFE_EV_PLANNED] = on_planned,
    [WC_LIFE_EV_ASK] = on_ask,
    [WC_LIFE_EV_TOLD] = on_told,
    [WC_LIFE_EV_PAUSED] = on_paused,
    [WC_LIFE_EV_ANSWERED] = on_answered,
    [WC_LIFE_EV_REFUSED] = on_refused,
    [WC_LIFE_EV_WORK_OVER] = on_work_over,
    [WC_LIFE_EV_ROOM] = on_room,
    [WC_LIFE_EV_CANCEL] = on_cancel,
    [WC_LIFE_EV_DRAIN] = on_drain,
    [WC_LIFE_EV_CUT] = on_cut,
};

qf_rc wc_life_step(struct wc_life *life, const struct wc_life_event *event,
                   struct wc_life_effects *ret_effects)
{
    qf_rc rc;

    assert((size_t)event->type < WC_LIFE_EV__COUNT);
    life->event = event;
    life->now = QF_MAX(life->now, event->now);
    life->effect_count = 0;
    life->stats.steps++;
    life->trace_illegal = life->stats.illegal;
    life->trace_stale = life->stats.stale;

    rc = handlers[event->type](life);
    wc_life_queue_admit(life);

    if (life->trace)
        wc_life_trace_step(life, rc);
    life->event = NULL;
    *ret_effects = (struct wc_life_effects){ life->effects, life->effect_count };
    return rc;
}

qf_time_ms wc_life_deadline(const struct wc_life *life)
{
    return wc_timers_next(&life->timers);
}

const struct wc_life_stats *wc_life_stats(const struct wc_life *life)
{
    return &life->stats;
}

enum wc_query_state wc_life_state(const struct wc_life *life, struct wc_query_id query)
{
    uint32_t slot = wc_index_first(&life->query_index, query.v);

    return slot == WC_NONE ? WC_QUERY_ENDED : (enum wc_query_state)life->queries[slot].state;
}
