/* explore_worker.c - every reachable state of the worker side in a small world.
 *
 * usage: explore_worker [sessions=N] [works=N] [slots=N] [runs=N] [assign=N] [open=N] [states=N]
 *        [late=0] [end=0] [evict=0]
 *
 * APIs may open and lose streams, assign, cancel and acknowledge anything at any time; segments
 * come or fail to; tasks end well or badly whenever they like; artifacts are evicted, and the core
 * hears of it later; the daemon stops accepting, drains, or ends. Time passes once (`late`): then
 * the deadlines of works with an odd number and the lives of artifacts are over. `assign` and
 * `open` bound how many assignments and streams one history has; `late=0` and so on leave a kind
 * of move out, so that a larger world stays small enough. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "tests/explore/explore.h"
#include "tests/lib/core/check.h"
#include "worker_int.h"

enum { SESSIONS_MAX = 3, WORKS_MAX = 3, RUNS_MAX = 16 };

/* Far beyond every deadline and artifact's life, short of a session's silence. */
enum { LATE_MS = 1000, DEADLINE_MS = 400, ARTIFACT_MS = 500 };

enum kind {
    K_OPEN,
    K_CLOSE,
    K_ASSIGN,
    K_CANCEL,
    K_ACK,
    K_LOADED,
    K_DONE,
    K_FAIL,
    K_EVICT,
    K_EVICTED,
    K_WILLING,
    K_DRAIN,
    K_LATE,
    K_TICK,
    K_END
};
static const char *const kind_names[] = { "open", "close", "assign", "cancel", "ack",
                                          "load", "done",  "fail",   "evict",  "evicted",
                                          "will", "drain", "late",   "tick",   "end" };

/* What the daemon has of a run. */
struct run_model {
    bool accepted, over;
    bool awaited;   /* its segments, held but not there */
    bool held;      /* its segments */
    bool executing; /* its task */
    bool stopped;   /* its task was told to */
    bool artifact;
    bool evicted; /* its artifact is gone, but the core does not know yet */
    bool ready, acked, failed;
};

struct model {
    uint64_t session[SESSIONS_MAX]; /* 0: closed */
    uint64_t sessions;
    uint8_t assigns, opens; /* left */
    bool willing, draining, drained, late, ended;
    struct run_model runs[RUNS_MAX]; /* by run id - 1 */
    uint32_t slots;                  /* taken by runs that load or execute */
};

struct world {
    struct wc_worker *wc;
    size_t sessions, works;
    uint32_t slots, runs_max;
    uint8_t assigns, opens;
    bool late, end, evict; /* may happen */
    struct model model, saved_models[EXPLORE_DEPTH_MAX + 1];
    void *saved[EXPLORE_DEPTH_MAX + 1];
    uint32_t answers; /* ACCEPT and REJECT of the running move */
    const char *error;
};

static void fail(struct world *world, const char *why)
{
    world->error = why;
}

static void require(struct world *world, bool holds, const char *otherwise)
{
    if (!holds)
        fail(world, otherwise);
}

static void on_answer(struct world *world, const struct wc_worker_effect *effect)
{
    world->answers++;
    if (effect->type == WC_WORKER_DO_REJECT)
        return;
    require(world, !world->model.draining && world->model.willing,
            "accepted although it takes no work");
    world->model.runs[effect->run.v - 1].accepted = true;
}

static void on_run_effect(struct world *world, enum wc_worker_effect_type type,
                          struct run_model *run)
{
    require(world, run->accepted && !run->over, "an effect for a run that is over");
    switch (type) {
    case WC_WORKER_DO_LOAD:
        require(world, !run->held && ++world->model.slots <= world->slots,
                "started twice, or without a slot");
        run->held = run->awaited = true;
        break;
    case WC_WORKER_DO_EXECUTE:
        require(world, run->held && !run->awaited && !run->executing,
                "executed without its segments, or twice");
        run->executing = true;
        break;
    case WC_WORKER_DO_STOP:
        require(world, run->executing && !run->stopped, "stopped what does not run, or twice");
        run->stopped = true;
        break;
    case WC_WORKER_DO_RELEASE:
        require(world, run->held && !run->executing,
                "released segments it does not hold, or that its task reads");
        run->held = run->awaited = false;
        world->model.slots--;
        break;
    case WC_WORKER_DO_READY:
        require(world, run->artifact && !run->stopped && !run->ready && !run->failed,
                "announced an artifact that is not there or not wanted, or twice");
        run->ready = true;
        break;
    case WC_WORKER_DO_FAILED:
        require(world, !run->failed && !run->acked, "failed twice, or after its acknowledgement");
        run->failed = true;
        break;
    case WC_WORKER_DO_ACKED:
        require(world, run->ready && !run->acked, "acknowledged before it was ready, or twice");
        run->acked = true;
        break;
    case WC_WORKER_DO_DROP:
        require(world, run->artifact || run->evicted, "dropped an artifact that is not there");
        run->artifact = run->evicted = false;
        break;
    case WC_WORKER_DO_FORGET:
        require(world, !run->held && !run->executing && !run->artifact,
                "forgot a run that still has something");
        run->over = true;
        break;
    case WC_WORKER_DO_STATUS:
    case WC_WORKER_DO_ECHO:
    case WC_WORKER_DO_HANGUP:
    case WC_WORKER_DO_ACCEPT:
    case WC_WORKER_DO_REJECT:
    case WC_WORKER_DO_DRAINED:
    case WC_WORKER_DO__COUNT:
        fail(world, "an effect of no run names one");
        break;
    }
}

static void on_effect(struct world *world, const struct wc_worker_effect *effect)
{
    struct model *model = &world->model;

    if (effect->type == WC_WORKER_DO_ACCEPT || effect->type == WC_WORKER_DO_REJECT) {
        on_answer(world, effect);
    } else if (effect->type == WC_WORKER_DO_DRAINED) {
        require(world, !model->drained && !effect->count, "drained twice, or with work left");
        model->drained = true;
    } else if (effect->run.v) {
        on_run_effect(world, effect->type, &model->runs[effect->run.v - 1]);
    }
}

static void step(struct world *world, struct wc_worker_event *event)
{
    struct wc_worker_effects effects;

    event->now = world->model.late ? LATE_MS : 0;
    if (wc_worker_step(world->wc, event, &effects) != QF_OK)
        fail(world, "a step was refused");
    for (size_t i = 0; i < effects.count; i++)
        on_effect(world, &effects.items[i]);
}

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

static void reset(void *ctx)
{
    struct world *world = ctx;

    if (world->saved[0])
        restore(world, 0);
}

static uint16_t move_of(enum kind kind, size_t a, size_t b)
{
    return (uint16_t)(kind << 8 | a << 4 | b);
}

static size_t moves(void *ctx, uint16_t *out)
{
    const struct world *world = ctx;
    const struct model *model = &world->model;
    size_t count = 0;

    for (size_t s = 0; s < world->sessions; s++) {
        if (!model->session[s]) {
            if (model->opens)
                out[count++] = move_of(K_OPEN, s, 0);
            continue;
        }
        out[count++] = move_of(K_CLOSE, s, 0);
        for (size_t k = 0; k < world->works; k++) {
            if (model->assigns)
                out[count++] = move_of(K_ASSIGN, s, k);
            out[count++] = move_of(K_CANCEL, s, k);
            out[count++] = move_of(K_ACK, s, k);
        }
    }
    for (size_t r = 0; r < world->wc->last_run; r++) {
        const struct run_model *run = &model->runs[r];

        if (run->awaited)
            out[count++] = move_of(K_LOADED, r, 0);
        if (run->executing)
            out[count++] = move_of(K_DONE, r, 0);
        if (run->awaited || run->executing)
            out[count++] = move_of(K_FAIL, r, 0);
        if (run->artifact && world->evict)
            out[count++] = move_of(K_EVICT, r, 0);
        if (run->evicted)
            out[count++] = move_of(K_EVICTED, r, 0);
    }
    out[count++] = move_of(K_WILLING, 0, 0);
    if (!model->draining)
        out[count++] = move_of(K_DRAIN, 0, 0);
    if (!model->ended && world->end)
        out[count++] = move_of(K_END, 0, 0);
    if (world->late)
        out[count++] = move_of(model->late ? K_TICK : K_LATE, 0, 0);
    return count;
}

static void apply_session(struct world *world, enum kind kind, size_t s, size_t k)
{
    struct model *model = &world->model;
    struct wc_worker_event event = { .work = { k + 1 }, .attempt = 1 };
    bool known;

    if (kind == K_OPEN) {
        model->opens--;
        model->session[s] = ++model->sessions;
    }
    event.session.v = model->session[s];
    event.type = kind == K_OPEN     ? WC_WORKER_EV_SESSION_OPEN
                 : kind == K_CLOSE  ? WC_WORKER_EV_SESSION_CLOSED
                 : kind == K_ASSIGN ? WC_WORKER_EV_ASSIGN
                 : kind == K_CANCEL ? WC_WORKER_EV_CANCEL
                                    : WC_WORKER_EV_ACK;
    if (kind == K_CLOSE)
        model->session[s] = 0;
    if (kind == K_ASSIGN) {
        model->assigns--;
        event.assign.query.v = 1 + k % 2;
        event.assign.deadline = k % 2 ? 0 : DEADLINE_MS;
    }
    known = wc_worker_find(world->wc, event.session, event.work, 1).v != 0;
    step(world, &event);
    if (world->answers != (kind == K_ASSIGN && !known ? 1u : 0u))
        fail(world, "an assignment must be answered exactly once");
    if (kind == K_CANCEL && wc_worker_find(world->wc, event.session, event.work, 1).v)
        fail(world, "a canceled run goes on");
}

static void apply_run(struct world *world, enum kind kind, size_t r)
{
    static const enum wc_worker_event_type types[] = {
        [K_LOADED] = WC_WORKER_EV_RUN_LOADED,
        [K_DONE] = WC_WORKER_EV_RUN_DONE,
        [K_FAIL] = WC_WORKER_EV_RUN_FAILED,
        [K_EVICTED] = WC_WORKER_EV_EVICTED,
    };
    struct run_model *run = &world->model.runs[r];
    struct wc_worker_event event = { .run = { r + 1 } };

    if (kind == K_EVICT) { /* the core hears of it later */
        run->artifact = false;
        run->evicted = true;
        return;
    }
    run->awaited = false;
    run->executing = false;
    if (kind == K_DONE)
        run->artifact = true;
    if (kind == K_EVICTED)
        run->evicted = false;
    event.type = types[kind];
    step(world, &event);
}

static void apply_daemon(struct world *world, enum kind kind)
{
    struct model *model = &world->model;
    struct wc_worker_event event = { .type = WC_WORKER_EV_TICK };

    if (kind == K_WILLING) {
        event.type = WC_WORKER_EV_ACCEPTING;
        model->willing = event.accepting = !model->willing;
    } else if (kind == K_DRAIN) {
        event.type = WC_WORKER_EV_DRAIN;
        event.drain_deadline = QF_TIME_NEVER;
        model->draining = true;
    } else if (kind == K_END) {
        event.type = WC_WORKER_EV_END;
        model->draining = model->ended = true;
    }
    model->late = model->late || kind == K_LATE;
    step(world, &event);
    if (kind == K_TICK && wc_worker_deadline(world->wc) <= LATE_MS)
        fail(world, "something due is left after a tick");
}

static const char *apply(void *ctx, uint16_t move)
{
    struct world *world = ctx;
    enum kind kind = (enum kind)(move >> 8);

    world->answers = 0;
    if (kind <= K_ACK)
        apply_session(world, kind, move >> 4 & 15, move & 15);
    else if (kind <= K_EVICTED)
        apply_run(world, kind, move >> 4 & 15);
    else
        apply_daemon(world, kind);
    return world->error;
}

/* Nothing of a run that the core has is lost, and nothing is left of one that it has not. */
static const char *check_runs(const struct world *world)
{
    uint32_t kept = 0, held = 0;

    for (size_t r = 0; r < world->wc->last_run; r++) {
        const struct run_model *run = &world->model.runs[r];
        bool known = wc_index_first(&world->wc->run_index, r + 1) != WC_NONE;

        kept += run->artifact || (run->evicted && known);
        held += run->held;
        if (known == run->over)
            return "a run ended and was not forgotten, or was and did not";
        if (run->over && (run->held || run->executing || run->artifact))
            return "something is left of a run that is over";
    }
    if (kept != world->wc->stats.runs[WC_RUN_READY] + world->wc->stats.runs[WC_RUN_ACKED])
        return "an artifact is kept that nobody will drop";
    return held == world->model.slots ? NULL : "segments are held without a slot";
}

static const char *check(void *ctx)
{
    struct world *world = ctx;
    const struct wc_worker_stats *stats = wc_worker_stats(world->wc);
    uint32_t slots =
        stats->runs[WC_RUN_LOADING] + stats->runs[WC_RUN_RUNNING] + stats->runs[WC_RUN_STOPPING];
    const char *why = check_runs(world);

    if (why)
        return why;
    if (world->model.ended && slots != stats->runs[WC_RUN_STOPPING] + stats->runs[WC_RUN_QUEUED])
        return "something goes on after the end";
    if (world->model.slots != slots)
        return "the core and the daemon disagree about what runs";
    if (world->model.draining && !world->model.drained && !stats->runs[WC_RUN_QUEUED] &&
        !stats->runs[WC_RUN_READY] && !slots)
        return "nothing is left but the worker is not drained";
    return core_check_worker(world->wc);
}

struct bytes {
    uint8_t *at;
    size_t len;
};

static void put(struct bytes *bytes, uint64_t value)
{
    bytes->at[bytes->len++] = (uint8_t)value;
}

/* Which of the model's streams a session slot is. */
static uint64_t stream_of(const struct world *world, uint32_t session)
{
    for (size_t s = 0; session != WC_NONE && s < world->sessions; s++) {
        if (world->model.session[s] == world->wc->sessions[session].id.v)
            return s + 1;
    }
    return 0;
}

/* Runs in the order they came; whose turn it is; the order artifacts were acknowledged in. */
static size_t encode(void *ctx, uint8_t *out)
{
    const struct world *world = ctx;
    const struct wc_worker *wc = world->wc;
    struct bytes bytes = { out, 0 };

    for (size_t s = 0; s < world->sessions; s++)
        put(&bytes, world->model.session[s] != 0);
    put(&bytes, world->model.willing);
    put(&bytes, (unsigned)world->model.draining << 1 | world->model.drained);
    put(&bytes, (unsigned)world->model.late << 1 | world->model.ended);
    put(&bytes, (unsigned)wc->full << 1 | wc->stats.accepting);
    put(&bytes, world->model.assigns);
    put(&bytes, world->model.opens);
    for (uint64_t id = 1; id <= wc->last_run; id++) {
        uint32_t slot = wc_index_first(&wc->run_index, id);

        if (slot == WC_NONE)
            continue;
        put(&bytes, 1u + wc->runs[slot].state);
        put(&bytes, wc->runs[slot].work.v);
        put(&bytes, stream_of(world, wc->runs[slot].session));
        put(&bytes, (unsigned)world->model.runs[id - 1].evicted << 1 |
                        (wc->timers.pos[wc_timer_run(wc, slot)] &&
                         wc->timers.due[wc_timer_run(wc, slot)] <= LATE_MS));
    }
    put(&bytes, 0);
    for (uint32_t s = wc->turn_sessions.head; s != WC_NONE; s = wc->session_turn_links[s].next) {
        put(&bytes, stream_of(world, s));
        for (uint32_t t = wc->sessions[s].turns.head; t != WC_NONE; t = wc->turn_links[t].next)
            put(&bytes, wc->turns[t].query.v);
    }
    put(&bytes, 0);
    for (uint32_t r = wc->acked.head; r != WC_NONE; r = wc->run_place_links[r].next) {
        put(&bytes, wc->runs[r].work.v);
        put(&bytes, stream_of(world, wc->runs[r].session));
    }
    return bytes.len;
}

static void describe(void *ctx, uint16_t move, char *text, size_t size)
{
    (void)ctx;
    snprintf(text, size, "%s %d %d", kind_names[move >> 8], 1 + (move >> 4 & 15), 1 + (move & 15));
}

static bool option(struct world *world, const char *word, uint64_t *ret_states)
{
    const char *value = strchr(word, '=');
    uint64_t number = value ? strtoull(value + 1, NULL, 10) : 0;

    if (strncmp(word, "sessions=", 9) == 0 && number >= 1 && number <= SESSIONS_MAX)
        world->sessions = number;
    else if (strncmp(word, "works=", 6) == 0 && number >= 1 && number <= WORKS_MAX)
        world->works = number;
    else if (strncmp(word, "slots=", 6) == 0 && number >= 1)
        world->slots = (uint32_t)number;
    else if (strncmp(word, "runs=", 5) == 0 && number >= 1 && number <= RUNS_MAX)
        world->runs_max = (uint32_t)number;
    else if (strncmp(word, "assign=", 7) == 0 && number <= RUNS_MAX)
        world->assigns = (uint8_t)number;
    else if (strncmp(word, "open=", 5) == 0 && number <= 9)
        world->opens = (uint8_t)number;
    else if (strncmp(word, "late=", 5) == 0)
        world->late = number;
    else if (strncmp(word, "end=", 4) == 0)
        world->end = number;
    else if (strncmp(word, "evict=", 6) == 0)
        world->evict = number;
    else if (strncmp(word, "states=", 7) == 0)
        *ret_states = number;
    else
        return false;
    return true;
}

int main(int argc, char **argv)
{
    static struct world world = { .sessions = 2,
                                  .works = 2,
                                  .slots = 1,
                                  .runs_max = 3,
                                  .assigns = 3,
                                  .opens = 3,
                                  .late = true,
                                  .end = true,
                                  .evict = true };
    struct explore_world view = { &world, reset, save,   restore, moves,
                                  apply,  check, encode, describe };
    struct wc_worker_limits limits = { .sessions_max = SESSIONS_MAX,
                                       .artifact_ms = ARTIFACT_MS,
                                       .artifact_ack_ms = ARTIFACT_MS };
    uint64_t states_max = UINT64_C(50000000);
    struct explore_result result;

    for (int i = 1; i < argc; i++) {
        if (!option(&world, argv[i], &states_max)) {
            fprintf(stderr, "explore_worker: bad option %s\n", argv[i]);
            return 2;
        }
    }
    limits.runs_max = world.runs_max;
    limits.slots = world.slots;
    world.wc = wc_worker_new(&limits);
    world.model = (struct model){ .assigns = world.assigns, .opens = world.opens, .willing = true };
    result = explore(&view, states_max);
    printf("worker: %zu sessions, %zu works, %u slots, %u runs, %u assignments, %u streams: %llu "
           "states,"
           " %llu transitions, depth %u, %s\n",
           world.sessions, world.works, world.slots, world.runs_max, world.assigns, world.opens,
           (unsigned long long)result.states, (unsigned long long)result.transitions, result.depth,
           result.broken     ? "BROKEN"
           : result.complete ? "complete"
                             : "NOT COMPLETE");
    for (int level = 0; level <= EXPLORE_DEPTH_MAX; level++)
        free(world.saved[level]);
    wc_worker_free(world.wc);
    return result.complete && !result.broken ? 0 : 1;
}
