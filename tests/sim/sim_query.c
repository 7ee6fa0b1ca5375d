/* sim_query.c - the queries of the simulation: clients that ask, read and go, turns that take time. */
#include "tests/sim/sim_int.h"

#include "tests/lib/core/check.h"
#include "workcoord/rendezvous.h"

static struct sim_query *query_of(struct sim *sim, struct wc_query_id query)
{
    return &sim->queries.items[query.v - 1];
}

/* Something will be said of the query after @delay, if its API still lives then. */
static void post(struct sim *sim, qf_time_ms delay, enum sim_kind kind,
                 const struct wc_life_event *life_event)
{
    const struct sim_query *query = query_of(sim, life_event->query);
    struct sim_event event = {
        .kind = kind,
        .api = query->api,
        .api_life = query->api_life,
        .life_event = *life_event,
    };

    sim_post(sim, delay, &event);
}

static void say(struct sim *sim, qf_time_ms delay, struct wc_query_id query,
                enum wc_life_event_type type, qf_rc rc)
{
    struct wc_life_event event = { .type = type, .query = query, .rc = rc };

    post(sim, delay, SIM_TO_LIFE, &event);
}

static void maybe_cancel(struct sim *sim, struct wc_query_id query)
{
    struct sim_event work = {
        .kind = SIM_TO_API,
        .api = query_of(sim, query)->api,
        .api_life = query_of(sim, query)->api_life,
        .closing = true,
        .api_event = { .type = WC_API_EV_QUERY_CANCEL, .query = query, .rc = QF_ELIMIT },
    };

    if (sim_chance(sim, 0.1))
        say(sim, (qf_time_ms)sim_below(sim, 1000), query, WC_LIFE_EV_CANCEL, QF_ECANCELED);
    if (sim_chance(sim, 0.5)) /* segments were replaced; else its results are too large */
        work.api_event.rc = QF_ENOTFOUND;
    if (sim_chance(sim, 0.1))
        sim_post(sim, (qf_time_ms)sim_below(sim, 1000), &work);
}

/* A client asks; the next one does a little later. */
void sim_query_submit(struct sim *sim, uint32_t api)
{
    struct sim_event next = { .kind = SIM_QUERY,
                              .api = api,
                              .api_life = sim->apis[api].life_number };
    struct sim_query query = { .api = api, .api_life = sim->apis[api].life_number };
    struct wc_life_event submit = { .type = WC_LIFE_EV_SUBMIT };

    query.tenant = (uint32_t)sim_below(sim, SIM_TENANTS);
    query.ended = true; /* until it is taken */
    QF_VEC_PUSH(&sim->queries, query);
    submit.query.v = sim->queries.count;
    submit.submit.tenant.v = query.tenant + 1;
    submit.submit.deadline =
        sim_chance(sim, 0.2) ? sim->now + (qf_time_ms)sim_below(sim, 5000) : QF_TIME_NEVER;
    /* The first may have all, the others less, and what they may have changes. */
    if (query.tenant) {
        submit.submit.share.active_max = 1 + (uint32_t)sim_below(sim, 2);
        submit.submit.share.streams_max = 1 + (uint32_t)sim_below(sim, 2);
    }
    sim_query_life(sim, api, &submit);
    if (!sim->queries.items[submit.query.v - 1].ended)
        maybe_cancel(sim, submit.query);
    if (!sim->calm)
        sim_post(sim, 20 + (qf_time_ms)sim_below(sim, 400), &next);
}

/* Some works read what some workers keep: up to three of the first eight, which need not be there. */
static void choose_owners(struct sim *sim, struct wc_api_item_spec *item)
{
    struct sim_work *work = &sim->works.items[item->work.v - 1];

    for (int i = 0; i < 3 && qf_prng_chance(&sim->prng, 0.4); i++)
        work->owners |= UINT32_C(1) << qf_prng_below(&sim->prng, 8);
    for (uint32_t worker = 0; worker < 8; worker++) {
        if (work->owners >> worker & 1)
            item->owners[item->owner_count++] = sim_worker_key(worker);
    }
}

/* Works are numbered anew with every plan. */
void sim_query_begin(struct sim *sim, const struct sim_event *event)
{
    struct wc_api_item_spec items[SIM_ITEMS];
    struct wc_query_id id = event->life_event.query;
    struct sim_query *query = query_of(sim, id);
    struct wc_api_event begin = { .type = WC_API_EV_QUERY_BEGIN, .query = id };

    query->items = (uint32_t)sim_below(sim, SIM_ITEMS + 1);
    query->committed = 0;
    for (uint32_t i = 0; i < query->items; i++) {
        QF_VEC_PUSH(&sim->works, (struct sim_work){ .query = id.v });
        items[i] = (struct wc_api_item_spec){ { sim->works.count }, { 1 + i % 2 }, 0, 0 };
        items[i].expect_ms = sim_chance(sim, 0.8) ? 30 + (qf_time_ms)sim_below(sim, 60) : 0;
        items[i].affinity = wc_affinity_key(QF_STR("sim"), sim_below(sim, 16));
        choose_owners(sim, &items[i]);
    }
    begin.begin.items = items;
    begin.begin.count = query->items;
    begin.begin.tenant.v = query->tenant + 1;
    begin.begin.sent_max = query->tenant ? 1 + (uint32_t)sim_below(sim, 3) : 0;
    if (sim_api_try(sim, event->api, &begin) != QF_OK)
        say(sim, 0, id, WC_LIFE_EV_WORK_OVER, QF_EBUSY); /* The table is full: shed. */
}

void sim_query_committed(struct sim *sim, const struct wc_api_effect *effect)
{
    struct sim_work *work = &sim->works.items[effect->work.v - 1];

    if (work->committed)
        sim_fail(sim, "a work was committed twice");
    if (work->query != effect->query.v)
        sim_fail(sim, "a work was committed to another query");
    work->committed = true;
    sim->queries.items[work->query - 1].committed++;
}

void sim_query_work_over(struct sim *sim, struct wc_query_id id, qf_rc rc)
{
    const struct sim_query *query = query_of(sim, id);

    if (!query->working)
        sim_fail(sim, "the work of a query ended twice");
    if ((rc == QF_OK) != (query->committed == query->items))
        sim_fail(sim, "work ended ok without all of its items, or failed with them");
    say(sim, 0, id, WC_LIFE_EV_WORK_OVER, rc);
}

static void admitted(struct sim_api *api, uint32_t tenant)
{
    api->passed[tenant] = 0;
    api->admitted |= (uint8_t)(1 << tenant);
    for (uint32_t other = 0; other < SIM_TENANTS; other++) {
        if (other == tenant)
            continue;
        api->twice |= (uint8_t)((api->passed[other] >> tenant & 1) << other);
        api->passed[other] |= (uint8_t)(1 << tenant);
    }
}

static void give(struct sim *sim, struct sim_query *query)
{
    if (query->turn || query->working)
        sim_fail(sim, "two turns of one query at once");
    if (query->stopped || query->ended)
        sim_fail(sim, "a canceled query was given a further turn");
}

/* What is fresh is told after a while, also to a query that has ended meanwhile. */
static void on_ask(struct sim *sim, const struct wc_life_effect *effect)
{
    give(sim, query_of(sim, effect->query));
    if (sim_chance(sim, 0.02))
        say(sim, 0, effect->query, WC_LIFE_EV_REFUSED, QF_OK);
    else
        say(sim, (qf_time_ms)sim_below(sim, 200), effect->query, WC_LIFE_EV_TOLD,
            sim_chance(sim, 0.05) ? QF_EUNAVAILABLE : QF_OK);
}

/* A turn that plans, from the beginning or with what was told. */
static void on_plan(struct sim *sim, const struct wc_life_effect *effect)
{
    struct sim_query *query = query_of(sim, effect->query);
    bool begins = effect->type == WC_LIFE_DO_PLAN;

    give(sim, query);
    query->turn = true;
    if (begins && !effect->replans)
        admitted(&sim->apis[query->api], query->tenant);
    if (sim_chance(sim, 0.01))
        say(sim, 0, effect->query, WC_LIFE_EV_REFUSED, QF_OK);
    else if (sim_chance(sim, 0.03))
        say(sim, sim_delay(sim), effect->query, WC_LIFE_EV_ANSWERED, QF_EPARSE);
    else if (begins && sim_chance(sim, 0.3))
        say(sim, sim_delay(sim), effect->query, WC_LIFE_EV_ASK, QF_OK);
    else
        say(sim, sim_delay(sim), effect->query, WC_LIFE_EV_PLANNED, QF_OK);
}

/* A slow reader: the stream is full, and has room again before or after the turn says so. */
static void on_answer(struct sim *sim, struct wc_query_id id)
{
    struct sim_query *query = query_of(sim, id);

    give(sim, query);
    query->turn = true;
    if (!sim_chance(sim, 0.3)) {
        say(sim, sim_delay(sim), id, WC_LIFE_EV_ANSWERED, QF_OK);
        return;
    }
    query->full = true;
    say(sim, (qf_time_ms)sim_below(sim, 40), id, WC_LIFE_EV_PAUSED, QF_OK);
    say(sim, (qf_time_ms)sim_below(sim, 40), id, WC_LIFE_EV_ROOM, QF_OK);
}

static void on_stop(struct sim *sim, const struct wc_life_effect *effect)
{
    struct sim_query *query = query_of(sim, effect->query);
    struct sim_event cancel = {
        .kind = SIM_TO_API,
        .api = query->api,
        .api_life = query->api_life,
        .closing = true,
        .api_event = { .type = WC_API_EV_QUERY_CANCEL, .query = effect->query, .rc = effect->rc },
    };

    query->stopped = true;
    if (effect->type == WC_LIFE_DO_DROP)
        sim_post(sim, 0, &cancel);
    if (effect->type == WC_LIFE_DO_DROP ? !query->working : !query->turn)
        sim_fail(sim, "a query was told to end what is not under way");
}

static void on_end(struct sim *sim, const struct wc_life_effect *effect)
{
    struct sim_query *query = query_of(sim, effect->query);

    if (query->ended)
        sim_fail(sim, "a query ended twice");
    if (query->turn || query->working)
        sim_fail(sim, "a query ended although something of it is under way");
    if (effect->rc == QF_OK && query->committed != query->items)
        sim_fail(sim, "a query ended ok without all of its items");
    query->ended = true;
    sim->queries_open--;
    if (effect->rc == QF_OK)
        sim->result.queries_ok++;
    else
        sim->result.queries_failed++;
}

static void on_effect(struct sim *sim, const struct wc_life_effect *effect)
{
    struct wc_life_event begin = { .query = effect->query };

    switch (effect->type) {
    case WC_LIFE_DO_PLAN:
    case WC_LIFE_DO_RESUME:
        on_plan(sim, effect);
        break;
    case WC_LIFE_DO_ASK:
        on_ask(sim, effect);
        break;
    case WC_LIFE_DO_WORK:
        give(sim, query_of(sim, effect->query));
        query_of(sim, effect->query)->working = true;
        post(sim, 0, SIM_BEGIN, &begin);
        break;
    case WC_LIFE_DO_ANSWER:
        on_answer(sim, effect->query);
        break;
    case WC_LIFE_DO_STOP:
    case WC_LIFE_DO_DROP:
        on_stop(sim, effect);
        break;
    case WC_LIFE_DO_END:
        on_end(sim, effect);
        break;
    case WC_LIFE_DO_FAIL:
    case WC_LIFE_DO__COUNT:
        break;
    }
}

/* The turn or work that this is about is no longer under way. */
static void before(struct sim *sim, const struct wc_life_event *event)
{
    struct sim_query *query = event->query.v ? query_of(sim, event->query) : NULL;

    switch (event->type) {
    case WC_LIFE_EV_PLANNED:
    case WC_LIFE_EV_ASK:
    case WC_LIFE_EV_PAUSED:
    case WC_LIFE_EV_ANSWERED:
    case WC_LIFE_EV_REFUSED:
        query->turn = false;
        break;
    case WC_LIFE_EV_WORK_OVER:
        query->working = false;
        break;
    case WC_LIFE_EV_ROOM:
        query->full = false;
        break;
    case WC_LIFE_EV_SUBMIT:
    case WC_LIFE_EV_TOLD:
    case WC_LIFE_EV_TICK:
    case WC_LIFE_EV_CANCEL:
    case WC_LIFE_EV_DRAIN:
    case WC_LIFE_EV_CUT:
    case WC_LIFE_EV__COUNT:
        break;
    }
}

/* A tenant in line is passed over by each other once at most. One that left the line in this step,
 * because it has its share, did so before anybody was admitted. */
static void check_line(struct sim *sim, struct sim_api *api)
{
    for (uint32_t tenant = 0; tenant < SIM_TENANTS; tenant++) {
        bool in_line = wc_life_tenant(api->life, (struct wc_tenant_id){ tenant + 1 }).in_line;

        if (!in_line)
            api->passed[tenant] = 0;
        if ((api->twice >> tenant & 1) && (in_line || api->admitted >> tenant & 1))
            sim_fail(sim, "a tenant was passed over twice by the same other");
    }
}

void sim_query_life(struct sim *sim, uint32_t api, struct wc_life_event *event)
{
    struct sim_api *node = &sim->apis[api];
    struct wc_life_effects effects;
    uint64_t illegal = wc_life_stats(node->life)->illegal;
    qf_rc rc;

    event->now = sim->now;
    before(sim, event);
    rc = wc_life_step(node->life, event, &effects);
    sim->result.steps++;
    if (event->type == WC_LIFE_EV_SUBMIT && rc == QF_OK) {
        query_of(sim, event->query)->ended = false;
        sim->queries_open++;
        sim->result.queries++;
    }
    node->twice = node->admitted = 0;
    for (size_t i = 0; i < effects.count; i++)
        on_effect(sim, &effects.items[i]);
    if (wc_life_stats(node->life)->illegal != illegal)
        sim_fail(sim, "the life of queries heard something impossible");
    if (!sim->options.check)
        return;
    check_line(sim, node);
    if (core_check_life(node->life))
        sim_fail(sim, core_check_life(node->life));
}
