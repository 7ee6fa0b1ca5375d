/* explore_life.c - every reachable state of a few queries' lives, all invariants in each.
 *
 * usage: explore_life [queries=N] [tenants=N] [active=N] [queue=N] [own=N] [slow=N] [cancel=N]
 *                     [late=N] [refuse=N] [vanish=N] [ask=N] [pause=N] [cut=N] [states=N]
 *
 * The machine under test is the real one; turns, work and clients are modelled as everything that
 * can happen, in any order across queries. A client's stream fills up during a turn and has room
 * again before or after the turn says so. The numbers bound how often each thing happens in one
 * history; `late` is a deadline that comes, `ask` a plan that must know what is fresh. `own` and `slow` are the share of a tenant: its places,
 * and its slow readers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/macros.h"
#include "life_int.h"
#include "tests/explore/explore.h"
#include "tests/lib/core/check.h"

enum { QUERIES_MAX = 5, TENANTS_MAX = 4, NOW = 1000 };

enum fault { CANCEL, LATE, REFUSE, VANISH, ASK, PAUSE, CUT, FAULTS };
static const char *const fault_names[FAULTS] = { "cancel", "late",  "refuse", "vanish",
                                                 "ask",    "pause", "cut" };

enum kind {
    K_SUBMIT,
    K_PLANNED,
    K_ASK,
    K_TOLD,
    K_UNTOLD,
    K_TOLD_NOBODY, /* what a query is told that has ended meanwhile */
    K_FAILED_TURN, /* a plan or answer that ends with an error of its own */
    K_FILL,        /* the turn finds the stream full */
    K_PAUSED,
    K_ROOM,
    K_ANSWERED,
    K_REFUSE,
    K_WORK_OK,
    K_WORK_FAILED,
    K_VANISHED,
    K_CANCEL,
    K_LATE,
    K_CUT,
    K__COUNT
};
static const char *const kind_names[K__COUNT] = {
    "submit",      "planned",     "ask",      "told",   "untold",   "told nobody",
    "turn failed", "fill",        "paused",   "room",   "answered", "refuse",
    "work ok",     "work failed", "vanished", "cancel", "late",     "cut",
};

enum job { NO_JOB, PLAN_JOB, ASK_JOB, WORK_JOB, ANSWER_JOB };

struct query_model {
    bool submitted, ended, failed, stopped, refused;
    uint8_t job;     /* who has it */
    bool fresh;      /* the turn has only just been asked for: it may be refused */
    bool full, told; /* its stream; the turn of now has seen that */
    bool echo;       /* it has ended while it asked: what it is told is still to come */
    uint8_t replans;
};

struct model {
    struct query_model queries[QUERIES_MAX];
    uint8_t passed[TENANTS_MAX]; /* bit per tenant admitted since this one waits */
    uint8_t faults[FAULTS];
    bool cut;
};

struct world {
    struct wc_life *life;
    size_t queries, tenants;
    uint32_t active, queue;
    struct wc_tenant_share share;
    uint8_t faults[FAULTS];
    struct model model, saved_models[EXPLORE_DEPTH_MAX + 1];
    void *saved[EXPLORE_DEPTH_MAX + 1];
    const char *error;
};

static uint16_t move_of(enum kind kind, size_t query)
{
    return (uint16_t)(kind << 4 | query);
}

static size_t tenant_of(const struct world *world, size_t query)
{
    return query % world->tenants;
}

static void fail(struct world *world, const char *why)
{
    if (!world->error)
        world->error = why;
}

static void give(struct world *world, size_t q, enum job job)
{
    struct query_model *query = &world->model.queries[q];

    if (!query->submitted || query->ended)
        fail(world, "a query that is not alive was given a turn");
    if (query->stopped)
        fail(world, "a canceled query was given a further turn");
    if (query->job)
        fail(world, "two turns of one query at once");
    query->job = (uint8_t)job;
    query->fresh = true;
    query->told = false;
}

/* Whether that is right is among the invariants of the machine. */
static bool in_line(const struct world *world, size_t tenant)
{
    return wc_life_tenant(world->life, (struct wc_tenant_id){ tenant + 1 }).in_line;
}

/* Between two admissions of a tenant in line each other one has one at the most. */
static void admitted(struct world *world, size_t tenant)
{
    struct model *model = &world->model;

    model->passed[tenant] = 0;
    for (size_t other = 0; other < world->tenants; other++) {
        if (other == tenant)
            continue;
        /* One that left the line in this step, because it has its share, did so before. */
        if (in_line(world, other) && (model->passed[other] >> tenant & 1))
            fail(world, "a tenant was passed over twice by the same other");
        model->passed[other] |= (uint8_t)(1 << tenant);
    }
}

static void on_plan(struct world *world, size_t q, const struct wc_life_effect *effect)
{
    struct query_model *query = &world->model.queries[q];

    if (effect->replans != query->replans)
        fail(world, "the number of plans is wrong");
    if (!effect->replans)
        admitted(world, tenant_of(world, q));
    give(world, q, PLAN_JOB);
}

static void on_end(struct world *world, size_t q)
{
    struct query_model *query = &world->model.queries[q];

    if (query->ended)
        fail(world, "ended twice");
    query->echo = query->job == ASK_JOB; /* nobody waits for that */
    if (query->echo)
        query->job = NO_JOB;
    if (query->job)
        fail(world, "ended although something of it is under way");
    query->ended = true;
    query->full = query->told = false;
}

static void on_effect(struct world *world, const struct wc_life_effect *effect)
{
    size_t q = effect->query.v - 1;
    struct query_model *query = &world->model.queries[q];

    if (query->failed && effect->type != WC_LIFE_DO_END)
        fail(world, "something happens to a failed query");
    switch (effect->type) {
    case WC_LIFE_DO_PLAN:
        on_plan(world, q, effect);
        break;
    case WC_LIFE_DO_ASK:
        give(world, q, ASK_JOB);
        break;
    case WC_LIFE_DO_RESUME:
        if (effect->replans != query->replans)
            fail(world, "the number of plans is wrong");
        give(world, q, PLAN_JOB);
        break;
    case WC_LIFE_DO_WORK:
        give(world, q, WORK_JOB);
        break;
    case WC_LIFE_DO_ANSWER:
        give(world, q, ANSWER_JOB);
        break;
    case WC_LIFE_DO_STOP:
        if (query->job != PLAN_JOB && query->job != ANSWER_JOB)
            fail(world, "stop without a turn");
        query->stopped = true;
        break;
    case WC_LIFE_DO_DROP:
        if (query->job != WORK_JOB)
            fail(world, "drop without work");
        query->stopped = true;
        break;
    case WC_LIFE_DO_FAIL:
        if (effect->rc >= 0)
            fail(world, "failed without a reason");
        query->failed = true;
        break;
    case WC_LIFE_DO_END:
        on_end(world, q);
        break;
    case WC_LIFE_DO__COUNT:
        break;
    }
}

static void step(struct world *world, struct wc_life_event *event)
{
    uint64_t illegal = wc_life_stats(world->life)->illegal;
    struct wc_life_effects effects;
    qf_rc rc;

    event->now = NOW;
    rc = wc_life_step(world->life, event, &effects);
    for (size_t i = 0; i < effects.count; i++)
        on_effect(world, &effects.items[i]);
    for (size_t tenant = 0; tenant < world->tenants; tenant++) {
        if (!in_line(world, tenant))
            world->model.passed[tenant] = 0;
    }
    if (event->type == WC_LIFE_EV_SUBMIT && rc != QF_OK)
        world->model.queries[event->query.v - 1].refused = true;
    else if (rc != QF_OK)
        fail(world, "a step was refused");
    if (wc_life_stats(world->life)->illegal != illegal)
        fail(world, "an honest message was counted as illegal");
}

static void say(struct world *world, enum wc_life_event_type type, size_t q, qf_rc rc)
{
    struct wc_life_event event = { .type = type, .query = { q + 1 }, .rc = rc };

    step(world, &event);
}

static void submit(struct world *world, size_t q)
{
    struct wc_life_event event = { .type = WC_LIFE_EV_SUBMIT, .query = { q + 1 } };

    world->model.queries[q].submitted = true;
    event.submit.tenant.v = tenant_of(world, q) + 1;
    event.submit.deadline = NOW + 1;
    event.submit.share = world->share;
    step(world, &event);
}

/* Its turn or work is over: whatever follows, it is not under way any more. */
static void over(struct world *world, enum wc_life_event_type type, size_t q, qf_rc rc)
{
    world->model.queries[q].job = NO_JOB;
    world->model.queries[q].fresh = false;
    world->model.queries[q].told = false;
    say(world, type, q, rc);
}

/* Time stands still but for this query's deadline. */
static void let_expire(struct world *world, size_t q)
{
    struct wc_life_event tick = { .type = WC_LIFE_EV_TICK };

    wc_timers_set(&world->life->timers, wc_index_first(&world->life->query_index, q + 1), NOW);
    step(world, &tick);
    if (wc_life_state(world->life, (struct wc_query_id){ q + 1 }) < WC_QUERY_STOPPING)
        fail(world, "the deadline has passed but the query goes on");
}

static void spend(struct world *world, enum fault fault)
{
    world->model.faults[fault]--;
}

static const char *apply(void *ctx, uint16_t move)
{
    struct world *world = ctx;
    size_t q = move & 15;
    struct query_model *query = &world->model.queries[q];
    struct wc_life_event cut = { .type = WC_LIFE_EV_CUT };

    switch ((enum kind)(move >> 4)) {
    case K_SUBMIT:
        submit(world, q);
        break;
    case K_PLANNED:
        over(world, WC_LIFE_EV_PLANNED, q, QF_OK);
        break;
    case K_ASK:
        spend(world, ASK);
        over(world, WC_LIFE_EV_ASK, q, QF_OK);
        break;
    case K_TOLD:
        over(world, WC_LIFE_EV_TOLD, q, QF_OK);
        break;
    case K_UNTOLD:
        over(world, WC_LIFE_EV_TOLD, q, QF_EUNAVAILABLE);
        break;
    case K_TOLD_NOBODY:
        query->echo = false;
        say(world, WC_LIFE_EV_TOLD, q, QF_OK);
        break;
    case K_FAILED_TURN:
        over(world, WC_LIFE_EV_ANSWERED, q, QF_EEXEC);
        break;
    case K_FILL:
        spend(world, PAUSE);
        query->full = query->told = true;
        query->fresh = false;
        break;
    case K_PAUSED:
        over(world, WC_LIFE_EV_PAUSED, q, QF_OK);
        break;
    case K_ROOM:
        query->full = false;
        say(world, WC_LIFE_EV_ROOM, q, QF_OK);
        break;
    case K_ANSWERED:
        over(world, WC_LIFE_EV_ANSWERED, q, QF_OK);
        break;
    case K_REFUSE:
        spend(world, REFUSE);
        over(world, WC_LIFE_EV_REFUSED, q, QF_OK);
        break;
    case K_WORK_OK:
        over(world, WC_LIFE_EV_WORK_OVER, q, QF_OK);
        break;
    case K_WORK_FAILED:
        over(world, WC_LIFE_EV_WORK_OVER, q, QF_EIO);
        break;
    case K_VANISHED:
        spend(world, VANISH);
        query->replans++;
        over(world, WC_LIFE_EV_WORK_OVER, q, QF_ENOTFOUND);
        break;
    case K_CANCEL:
        spend(world, CANCEL);
        say(world, WC_LIFE_EV_CANCEL, q, QF_ECANCELED);
        break;
    case K_LATE:
        spend(world, LATE);
        let_expire(world, q);
        break;
    case K_CUT:
        spend(world, CUT);
        world->model.cut = true;
        step(world, &cut);
        break;
    case K__COUNT:
        break;
    }
    return world->error;
}

struct move_list {
    uint16_t *moves;
    size_t count;
};

static void add(struct move_list *list, bool possible, enum kind kind, size_t q)
{
    if (possible)
        list->moves[list->count++] = move_of(kind, q);
}

static void query_moves(const struct world *world, size_t q, struct move_list *list)
{
    const struct model *model = &world->model;
    const struct query_model *query = &model->queries[q];
    bool alive = query->submitted && !query->ended && !query->refused;
    bool turn = query->job == PLAN_JOB || query->job == ANSWER_JOB;

    /* Ids in a row: which query comes first makes no difference. */
    add(list, !query->submitted && (q == 0 || model->queries[q - 1].submitted), K_SUBMIT, q);
    add(list, query->job == PLAN_JOB, K_PLANNED, q);
    add(list, query->job == PLAN_JOB && model->faults[ASK], K_ASK, q);
    add(list, query->job == ASK_JOB, K_TOLD, q);
    add(list, query->job == ASK_JOB, K_UNTOLD, q);
    add(list, query->echo, K_TOLD_NOBODY, q);
    add(list, turn, K_FAILED_TURN, q);
    add(list, query->job == ANSWER_JOB && !query->full && !query->told && model->faults[PAUSE],
        K_FILL, q);
    add(list, query->told, K_PAUSED, q);
    add(list, query->full, K_ROOM, q);
    add(list, query->job == ANSWER_JOB && !query->told, K_ANSWERED, q);
    add(list, (turn || query->job == ASK_JOB) && query->fresh && model->faults[REFUSE], K_REFUSE,
        q);
    add(list, query->job == WORK_JOB, K_WORK_OK, q);
    add(list, query->job == WORK_JOB, K_WORK_FAILED, q);
    add(list, query->job == WORK_JOB && model->faults[VANISH], K_VANISHED, q);
    add(list, alive && model->faults[CANCEL], K_CANCEL, q);
    add(list, alive && !query->stopped && model->faults[LATE], K_LATE, q);
}

static size_t moves(void *ctx, uint16_t *out)
{
    const struct world *world = ctx;
    struct move_list list = { out, 0 };

    for (size_t q = 0; q < world->queries; q++)
        query_moves(world, q, &list);
    add(&list, world->model.faults[CUT] > 0, K_CUT, 0);
    return list.count;
}

/* Whoever has a query will say something about it: that is what "not lost" means. */
static const char *check_query(const struct world *world, size_t q)
{
    const struct query_model *query = &world->model.queries[q];
    enum wc_query_state state = wc_life_state(world->life, (struct wc_query_id){ q + 1 });
    bool alive = query->submitted && !query->ended && !query->refused;

    if (alive != (state != WC_QUERY_ENDED))
        return "alive and ended disagree";
    if (query->failed && !query->ended)
        return "failed but not ended";
    if (!alive)
        return NULL;
    if (state == WC_QUERY_QUEUED || state == WC_QUERY_PAUSED) {
        if (query->job)
            return "something is under way of a query that waits";
        if (state == WC_QUERY_PAUSED && !query->full)
            return "a query waits for room although there is some";
        return world->model.cut ? "a query waits although all were cut" : NULL;
    }
    return query->job ? NULL : "nothing is under way of a query that does not wait";
}

static const char *check(void *ctx)
{
    const struct world *world = ctx;
    const char *why = core_check_life(world->life);

    for (size_t q = 0; q < world->queries && !why; q++)
        why = check_query(world, q);
    return why;
}

struct bytes {
    uint8_t *at;
    size_t len;
};

static void put(struct bytes *bytes, uint64_t value)
{
    bytes->at[bytes->len++] = (uint8_t)value;
}

static void encode_query(const struct world *world, size_t q, struct bytes *bytes)
{
    const struct query_model *model = &world->model.queries[q];
    uint32_t slot = wc_index_first(&world->life->query_index, q + 1);

    put(bytes, (unsigned)model->submitted << 7 | (unsigned)model->ended << 6 |
                   (unsigned)model->stopped << 5 | (unsigned)model->refused << 4 |
                   (unsigned)model->fresh << 3 | (unsigned)model->full << 2 |
                   (unsigned)model->told << 1 | (unsigned)model->echo);
    put(bytes, (unsigned)model->job << 4 | model->replans);
    if (slot == WC_NONE) {
        put(bytes, 0);
        return;
    }
    put(bytes, 1u + world->life->queries[slot].state);
    put(bytes, (unsigned)world->life->queries[slot].place << 1 |
                   (unsigned)world->life->queries[slot].room);
    put(bytes, world->life->queries[slot].replans);
    put(bytes, (uint64_t)-world->life->queries[slot].rc);
}

static void encode_queue(const struct wc_life *life, uint64_t tenant, struct bytes *bytes)
{
    uint32_t t = wc_index_first(&life->tenant_index, tenant);

    if (t != WC_NONE)
        for (uint32_t q = life->tenants[t].queued.head; q != WC_NONE;
             q = life->queued_links[q].next)
            put(bytes, life->queries[q].id.v);
    put(bytes, 0);
}

static size_t encode(void *ctx, uint8_t *out)
{
    const struct world *world = ctx;
    const struct wc_life *life = world->life;
    struct bytes bytes = { out, 0 };

    for (size_t q = 0; q < world->queries; q++)
        encode_query(world, q, &bytes);
    for (uint32_t t = life->line.head; t != WC_NONE; t = life->line_links[t].next)
        put(&bytes, 128 + life->tenants[t].id.v);
    for (size_t tenant = 0; tenant < world->tenants; tenant++)
        encode_queue(life, tenant + 1, &bytes);
    for (size_t tenant = 0; tenant < world->tenants; tenant++)
        put(&bytes, world->model.passed[tenant]);
    for (int fault = 0; fault < FAULTS; fault++)
        put(&bytes, world->model.faults[fault]);
    put(&bytes, world->model.cut);
    return bytes.len;
}

static void save(void *ctx, uint32_t level)
{
    struct world *world = ctx;

    if (!world->saved[level])
        world->saved[level] = qf_xmalloc(world->life->state_size);
    memcpy(world->saved[level], world->life, world->life->state_size);
    world->saved_models[level] = world->model;
}

static void restore(void *ctx, uint32_t level)
{
    struct world *world = ctx;

    memcpy(world->life, world->saved[level], world->life->state_size);
    world->model = world->saved_models[level];
    world->error = NULL;
}

static void reset(void *ctx)
{
    struct world *world = ctx;

    if (world->saved[0])
        restore(world, 0);
}

static void describe(void *ctx, uint16_t move, char *text, size_t size)
{
    (void)ctx;
    snprintf(text, size, "%s q%d", kind_names[move >> 4], (move & 15) + 1);
}

static bool option(struct world *world, const char *word, uint64_t *ret_states)
{
    const char *value = strchr(word, '=');
    size_t len = value ? (size_t)(value - word) : 0;
    uint64_t number = value ? strtoull(value + 1, NULL, 10) : 0;

    if (!number)
        return false;
    for (int fault = 0; fault < FAULTS; fault++) {
        if (len == strlen(fault_names[fault]) && strncmp(word, fault_names[fault], len) == 0) {
            world->faults[fault] = (uint8_t)QF_MIN(number, UINT64_C(9));
            return true;
        }
    }
    if (strncmp(word, "queries=", 8) == 0 && number <= QUERIES_MAX)
        world->queries = number;
    else if (strncmp(word, "tenants=", 8) == 0 && number <= TENANTS_MAX)
        world->tenants = number;
    else if (strncmp(word, "active=", 7) == 0)
        world->active = (uint32_t)number;
    else if (strncmp(word, "queue=", 6) == 0)
        world->queue = (uint32_t)number;
    else if (strncmp(word, "own=", 4) == 0)
        world->share.active_max = (uint32_t)number;
    else if (strncmp(word, "slow=", 5) == 0)
        world->share.streams_max = (uint32_t)number;
    else if (strncmp(word, "states=", 7) == 0)
        *ret_states = number;
    else
        return false;
    return true;
}

static void begin(struct world *world)
{
    struct wc_life_limits limits = { .queries_max = (uint32_t)world->queries,
                                     .active_max = world->active,
                                     .tenant_queue_max = world->queue,
                                     .replans_max = 2 };

    world->life = wc_life_new(&limits);
    memcpy(world->model.faults, world->faults, sizeof(world->faults));
}

int main(int argc, char **argv)
{
    static struct world world = { .queries = 3, .tenants = 2, .active = 1, .queue = 2 };
    struct explore_world view = { &world, reset, save,   restore, moves,
                                  apply,  check, encode, describe };
    uint64_t states_max = UINT64_C(50000000);
    struct explore_result result;

    for (int i = 1; i < argc; i++) {
        if (!option(&world, argv[i], &states_max)) {
            fprintf(stderr, "explore_life: bad option %s\n", argv[i]);
            return 2;
        }
    }
    begin(&world);
    result = explore(&view, states_max);
    printf("life: %zu queries of %zu tenants, active=%u queue=%u", world.queries, world.tenants,
           world.active, world.queue);
    if (world.share.active_max || world.share.streams_max)
        printf(" own=%u slow=%u", world.share.active_max, world.share.streams_max);
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
    wc_life_free(world.life);
    return result.complete && !result.broken ? 0 : 1;
}
