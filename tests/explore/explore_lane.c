/* explore_lane.c - every reachable state of a small background lane: an API, its workers, the streams between them.
 *
 * usage: explore_lane [workers=N] [slots=N] [jobs=N] [lose=N] [kill=N] [drain=N] [steal=N] [cancel=N] [retry=N]
 *                     [final=N] [expire=N] [rest=N] [states=N]
 *
 * Both machines under test are the real ones; messages travel in order, one stream per worker, and are delivered at any
 * time. The numbers bound how often each thing happens in one history: `lose` is a stream that goes, `kill` a worker that
 * dies, `steal` another API that takes a slot, `rest` time that passes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/macros.h"
#include "lane_int.h"
#include "lane_worker_int.h"
#include "tests/explore/explore.h"

enum { WORKERS_MAX = 3, JOBS_MAX = 3, SLOTS_MAX = 2, QUEUE_MAX = 12, REST = 10, OTHER = 1000 };

enum fault { LOSE, KILL, DRAIN, STEAL, CANCEL, RETRY, FINAL, EXPIRE, RESTS, FAULTS };
static const char *const fault_names[FAULTS] = { "lose",  "kill",  "drain",  "steal", "cancel",
                                                 "retry", "final", "expire", "rest" };

enum kind {
    K_SUBMIT,
    K_TO_WORKER,
    K_TO_API,
    K_CONNECT,
    K_DONE,
    K_RETRY,
    K_FINAL,
    K_BACK, /* of a job that stops */
    K_LOSE,
    K_KILL,
    K_DRAIN,
    K_STEAL,
    K_CANCEL,
    K_EXPIRE,
    K_REST,
    K__COUNT
};
static const char *const kind_names[K__COUNT] = { "submit", "to worker", "to api", "connect",
                                                  "done",   "retry",     "final",  "back",
                                                  "lose",   "kill",      "drain",  "steal",
                                                  "cancel", "expire",    "rest" };

enum word { W_ASSIGN, W_CANCEL, W_STATUS, W_REJECTED, W_DONE, W_RETRY, W_FINAL };

struct letter {
    uint8_t word, job, attempt;
    bool draining;
};

struct queue {
    struct letter letters[QUEUE_MAX];
    uint8_t count;
};

struct model {
    struct {
        uint8_t session; /* 0: not connected */
        struct queue down, up;
        bool stole; /* a slot runs something of another API */
    } workers[WORKERS_MAX];
    struct {
        bool submitted, ended, done, canceled;
    } jobs[JOBS_MAX];
    uint8_t sessions;
    uint8_t faults[FAULTS];
    qf_time_ms now;
};

struct world {
    size_t workers, jobs;
    uint32_t slots;
    uint8_t faults[FAULTS];
    struct wc_lane *api;
    struct wc_lane_worker *lanes[WORKERS_MAX];
    struct model model, saved_models[EXPLORE_DEPTH_MAX + 1];
    void *saved[EXPLORE_DEPTH_MAX + 1];
    const char *error;
};

static void fail(struct world *world, const char *why)
{
    if (!world->error)
        world->error = why;
}

static void push(struct world *world, struct queue *queue, struct letter letter)
{
    if (queue->count == QUEUE_MAX)
        fail(world, "more messages under way than this world has room for");
    else
        queue->letters[queue->count++] = letter;
}

static struct letter pop(struct queue *queue)
{
    struct letter first = queue->letters[0];

    memmove(queue->letters, queue->letters + 1, --queue->count * sizeof(first));
    memset(&queue->letters[queue->count], 0, sizeof(first));
    return first;
}

/* --- the API --- */

static void on_api_effect(struct world *world, const struct wc_lane_effect *effect)
{
    size_t job = effect->job.v - 1, worker = effect->worker.v - 1;

    switch (effect->type) {
    case WC_LANE_DO_ASSIGN:
    case WC_LANE_DO_CANCEL:
        if (effect->session.v != world->model.workers[worker].session) {
            fail(world, "a message to a stream that is gone");
            break;
        }
        push(world, &world->model.workers[worker].down,
             (struct letter){ .word = effect->type == WC_LANE_DO_ASSIGN ? W_ASSIGN : W_CANCEL,
                              .job = (uint8_t)effect->job.v,
                              .attempt = (uint8_t)effect->attempt });
        break;
    case WC_LANE_DO_ENDED:
        if (world->model.jobs[job].ended)
            fail(world, "a job ended twice");
        if (effect->rc == QF_OK && !world->model.jobs[job].done)
            fail(world, "a job ended well that nobody has done");
        if (effect->rc == QF_ECANCELED && !world->model.jobs[job].canceled)
            fail(world, "a job was canceled that nobody canceled");
        world->model.jobs[job].ended = true;
        break;
    case WC_LANE_DO__COUNT:
        break;
    }
}

static void tell_api(struct world *world, struct wc_lane_event event)
{
    struct wc_lane_effects effects;

    event.now = world->model.now;
    if (wc_lane_step(world->api, &event, &effects) != QF_OK)
        fail(world, "a step was refused");
    for (size_t i = 0; i < effects.count; i++)
        on_api_effect(world, &effects.items[i]);
}

static void deliver_to_api(struct world *world, size_t w)
{
    struct letter letter = pop(&world->model.workers[w].up);
    struct wc_lane_event event = { .worker = { w + 1 },
                                   .session = { world->model.workers[w].session },
                                   .job = { letter.job },
                                   .attempt = letter.attempt };

    switch ((enum word)letter.word) {
    case W_STATUS:
        event.type = WC_LANE_EV_STATUS;
        event.status.slots = world->slots;
        event.status.draining = letter.draining;
        break;
    case W_REJECTED:
        event.type = WC_LANE_EV_REJECTED;
        break;
    case W_DONE:
        event.type = WC_LANE_EV_DONE;
        break;
    case W_RETRY:
    case W_FINAL:
        event.type = WC_LANE_EV_FAILED;
        event.failure.rc = QF_EIO;
        event.failure.retryable = letter.word == W_RETRY;
        break;
    case W_ASSIGN:
    case W_CANCEL:
        break;
    }
    tell_api(world, event);
}

/* --- workers --- */

static void answer(struct world *world, size_t w, enum word word,
                   const struct wc_lane_worker_effect *effect)
{
    if (effect->session.v == OTHER)
        return;
    if (effect->session.v != world->model.workers[w].session)
        fail(world, "a worker answers on a stream that is gone");
    push(world, &world->model.workers[w].up,
         (struct letter){ .word = (uint8_t)word,
                          .job = (uint8_t)effect->job.v,
                          .attempt = (uint8_t)effect->attempt });
}

static void tell_worker(struct world *world, size_t w, struct wc_lane_worker_event event)
{
    struct wc_lane_worker_effects effects;

    wc_lane_worker_step(world->lanes[w], &event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        const struct wc_lane_worker_effect *effect = &effects.items[i];

        switch (effect->type) {
        case WC_LANE_WORKER_DO_RUN:
        case WC_LANE_WORKER_DO_STOP:
            break;
        case WC_LANE_WORKER_DO_REJECT:
            answer(world, w, W_REJECTED, effect);
            break;
        case WC_LANE_WORKER_DO_DONE:
            answer(world, w, W_DONE, effect);
            break;
        case WC_LANE_WORKER_DO_FAILED:
            answer(world, w, effect->failure.retryable ? W_RETRY : W_FINAL, effect);
            break;
        case WC_LANE_WORKER_DO__COUNT:
            break;
        }
    }
}

static void deliver_to_worker(struct world *world, size_t w)
{
    struct letter letter = pop(&world->model.workers[w].down);

    tell_worker(world, w,
                (struct wc_lane_worker_event){ .type = letter.word == W_ASSIGN
                                                           ? WC_LANE_WORKER_EV_ASSIGN
                                                           : WC_LANE_WORKER_EV_CANCEL,
                                               .session = { world->model.workers[w].session },
                                               .job = { letter.job },
                                               .attempt = letter.attempt });
}

/* The thread of a slot is back. */
static void back(struct world *world, size_t w, uint32_t slot, enum kind kind)
{
    const struct wc_lane_slot *row = &world->lanes[w]->slots[slot];
    struct wc_lane_worker_event event = { .type = WC_LANE_WORKER_EV_DONE, .slot = slot };

    if (row->session.v == OTHER)
        world->model.workers[w].stole = false;
    else if (kind == K_DONE)
        world->model.jobs[row->job.v - 1].done = true;
    if (kind == K_RETRY || kind == K_FINAL) {
        event.type = WC_LANE_WORKER_EV_FAILED;
        event.failure.rc = QF_EIO;
        event.failure.retryable = kind == K_RETRY;
    }
    tell_worker(world, w, event);
}

static void connect_worker(struct world *world, size_t w)
{
    world->model.workers[w].session = ++world->model.sessions;
    push(world, &world->model.workers[w].up,
         (struct letter){ .word = W_STATUS, .draining = world->lanes[w]->draining });
}

static void lose(struct world *world, size_t w, bool killed)
{
    struct wc_session_id session = { world->model.workers[w].session };

    memset(&world->model.workers[w].down, 0, sizeof(struct queue));
    memset(&world->model.workers[w].up, 0, sizeof(struct queue));
    world->model.workers[w].session = 0;
    if (killed) { /* and another one is started in its place */
        struct wc_lane_worker *anew = wc_lane_worker_new(world->slots);

        memcpy(world->lanes[w], anew, sizeof(*anew));
        wc_lane_worker_free(anew);
        world->model.workers[w].stole = false;
    } else {
        tell_worker(
            world, w,
            (struct wc_lane_worker_event){ .type = WC_LANE_WORKER_EV_LOST, .session = session });
    }
    tell_api(world, (struct wc_lane_event){
                        .type = WC_LANE_EV_LOST, .worker = { w + 1 }, .died = killed });
}

static void drain(struct world *world, size_t w)
{
    tell_worker(world, w, (struct wc_lane_worker_event){ .type = WC_LANE_WORKER_EV_DRAIN });
    if (world->model.workers[w].session)
        push(world, &world->model.workers[w].up,
             (struct letter){ .word = W_STATUS, .draining = true });
}

static void steal(struct world *world, size_t w)
{
    world->model.workers[w].stole = true;
    tell_worker(world, w,
                (struct wc_lane_worker_event){ .type = WC_LANE_WORKER_EV_ASSIGN,
                                               .session = { OTHER },
                                               .job = { OTHER },
                                               .attempt = 1 });
}

static void expire(struct world *world, size_t job)
{
    for (uint32_t i = 0; i < world->api->job_count; i++)
        if (world->api->jobs[i].id.v == job + 1)
            world->api->jobs[i].expires = world->model.now;
    tell_api(world, (struct wc_lane_event){ .type = WC_LANE_EV_TICK });
}

/* --- moves: kind, worker or job, slot --- */

static uint16_t move_of(enum kind kind, size_t who, size_t slot)
{
    return (uint16_t)(kind << 8 | who << 4 | slot);
}

static const char *apply(void *ctx, uint16_t move)
{
    static const int costs[K__COUNT] = {
        [K_RETRY] = 1 + RETRY,   [K_FINAL] = 1 + FINAL,   [K_LOSE] = 1 + LOSE,
        [K_KILL] = 1 + KILL,     [K_DRAIN] = 1 + DRAIN,   [K_STEAL] = 1 + STEAL,
        [K_CANCEL] = 1 + CANCEL, [K_EXPIRE] = 1 + EXPIRE, [K_REST] = 1 + RESTS,
    };
    struct world *world = ctx;
    enum kind kind = (enum kind)(move >> 8);
    size_t who = move >> 4 & 15;
    uint32_t slot = move & 15;

    if (costs[kind])
        world->model.faults[costs[kind] - 1]--;
    switch (kind) {
    case K_SUBMIT:
        world->model.jobs[who].submitted = true;
        tell_api(world, (struct wc_lane_event){ .type = WC_LANE_EV_SUBMIT, .job = { who + 1 } });
        break;
    case K_TO_WORKER:
        deliver_to_worker(world, who);
        break;
    case K_TO_API:
        deliver_to_api(world, who);
        break;
    case K_CONNECT:
        connect_worker(world, who);
        break;
    case K_DONE:
    case K_RETRY:
    case K_FINAL:
    case K_BACK:
        back(world, who, slot, kind);
        break;
    case K_LOSE:
    case K_KILL:
        lose(world, who, kind == K_KILL);
        break;
    case K_DRAIN:
        drain(world, who);
        break;
    case K_STEAL:
        steal(world, who);
        break;
    case K_CANCEL:
        world->model.jobs[who].canceled = true;
        tell_api(world, (struct wc_lane_event){ .type = WC_LANE_EV_CANCEL, .job = { who + 1 } });
        break;
    case K_EXPIRE:
        expire(world, who);
        break;
    case K_REST:
        world->model.now += REST;
        tell_api(world, (struct wc_lane_event){ .type = WC_LANE_EV_TICK });
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

static void add(struct move_list *list, bool possible, enum kind kind, size_t who, size_t slot)
{
    if (possible)
        list->moves[list->count++] = move_of(kind, who, slot);
}

static void worker_moves(const struct world *world, size_t w, struct move_list *list)
{
    const struct model *model = &world->model;
    const struct wc_lane_worker *lane = world->lanes[w];
    bool up = model->workers[w].session != 0;

    add(list, model->workers[w].down.count > 0, K_TO_WORKER, w, 0);
    add(list, model->workers[w].up.count > 0, K_TO_API, w, 0);
    add(list, !up && model->sessions < 6, K_CONNECT, w, 0);
    add(list, up && model->faults[LOSE], K_LOSE, w, 0);
    add(list, up && model->faults[KILL], K_KILL, w, 0);
    add(list, !lane->draining && model->faults[DRAIN], K_DRAIN, w, 0);
    add(list,
        !model->workers[w].stole && model->faults[STEAL] && !lane->draining &&
            lane->stats.running + lane->stats.stopping < world->slots,
        K_STEAL, w, 0);
    for (uint32_t slot = 0; slot < world->slots; slot++) {
        bool runs = lane->slots[slot].state == WC_LANE_RUNNING;
        bool own = runs && lane->slots[slot].session.v != OTHER;

        add(list, runs, K_DONE, w, slot);
        add(list, own && model->faults[RETRY], K_RETRY, w, slot);
        add(list, own && model->faults[FINAL], K_FINAL, w, slot);
        add(list, lane->slots[slot].state == WC_LANE_STOPPING, K_BACK, w, slot);
    }
}

static size_t moves(void *ctx, uint16_t *out)
{
    const struct world *world = ctx;
    const struct model *model = &world->model;
    struct move_list list = { out, 0 };

    for (size_t w = 0; w < world->workers; w++)
        worker_moves(world, w, &list);
    for (size_t job = 0; job < world->jobs; job++) {
        struct wc_lane_job_view view;
        bool alive = wc_lane_job(world->api, (struct wc_job_id){ job + 1 }, &view);

        add(&list, !model->jobs[job].submitted && (job == 0 || model->jobs[job - 1].submitted),
            K_SUBMIT, job, 0);
        add(&list, alive && model->faults[CANCEL], K_CANCEL, job, 0);
        add(&list, alive && view.sent && model->faults[EXPIRE], K_EXPIRE, job, 0);
    }
    add(&list, model->faults[RESTS] && wc_lane_deadline(world->api) <= model->now + REST, K_REST, 0,
        0);
    return list.count;
}

/* --- what always holds --- */

static bool in_queue(const struct queue *queue, const struct wc_lane_job_row *job, bool down)
{
    for (uint8_t i = 0; i < queue->count; i++) {
        const struct letter *letter = &queue->letters[i];

        if (letter->job == job->id.v && letter->attempt == job->attempt &&
            (down ? letter->word == W_ASSIGN : letter->word != W_STATUS))
            return true;
    }
    return false;
}

/* Whoever has a job will say something about it: that is what "not lost" means. */
static const char *check_sent(const struct world *world, const struct wc_lane_job_row *job)
{
    const struct wc_lane_worker_row *row = &world->api->workers[job->worker];
    size_t w = row->id.v - 1;

    if (row->session.v != world->model.workers[w].session)
        return "a job is with a worker whose stream is gone";
    if (in_queue(&world->model.workers[w].down, job, true) ||
        in_queue(&world->model.workers[w].up, job, false))
        return NULL;
    for (uint32_t slot = 0; slot < world->slots; slot++) {
        const struct wc_lane_slot *runs = &world->lanes[w]->slots[slot];

        if (runs->state == WC_LANE_RUNNING && runs->session.v == row->session.v &&
            runs->job.v == job->id.v && runs->attempt == job->attempt)
            return NULL;
    }
    return "a job is with a worker that does not know of it";
}

static const char *check_pending(const struct world *world, const struct wc_lane_job_row *job)
{
    for (uint32_t i = 0; i < world->api->worker_count; i++) {
        const struct wc_lane_worker_row *row = &world->api->workers[i];

        if (!row->draining && row->sent < row->slots && row->rests_until <= world->model.now &&
            !(row->id.v == job->avoid.v && job->avoid_until > world->model.now))
            return "a job waits although a worker has room";
    }
    if (job->avoid_until > world->model.now && wc_lane_deadline(world->api) == QF_TIME_NEVER)
        return "a job waits for a time at which nobody looks";
    return NULL;
}

static const char *check_workers(const struct world *world)
{
    uint32_t slots = 0, sent = 0;

    for (uint32_t i = 0; i < world->api->worker_count; i++) {
        const struct wc_lane_worker_row *row = &world->api->workers[i];
        uint32_t with = 0;

        for (uint32_t j = 0; j < world->api->job_count; j++)
            with += world->api->jobs[j].worker == i;
        if (with != row->sent || with > row->slots)
            return "a worker's jobs are miscounted, or too many";
        slots += row->draining ? 0 : row->slots;
        sent += with;
    }
    if (slots != world->api->stats.slots || sent != world->api->stats.sent ||
        sent + world->api->stats.pending != world->api->job_count)
        return "the figures do not add up";
    for (size_t w = 0; w < world->workers; w++) {
        const struct wc_lane_worker_stats *stats = wc_lane_worker_stats(world->lanes[w]);
        uint32_t running = 0, stopping = 0;

        for (uint32_t slot = 0; slot < world->slots; slot++) {
            running += world->lanes[w]->slots[slot].state == WC_LANE_RUNNING;
            stopping += world->lanes[w]->slots[slot].state == WC_LANE_STOPPING;
        }
        if (running != stats->running || stopping != stats->stopping)
            return "a worker's figures do not add up";
    }
    return NULL;
}

static const char *check(void *ctx)
{
    const struct world *world = ctx;
    const char *why = check_workers(world);

    for (size_t job = 0; job < world->jobs && !why; job++) {
        struct wc_lane_job_view view;
        bool alive = wc_lane_job(world->api, (struct wc_job_id){ job + 1 }, &view);

        if (alive != (world->model.jobs[job].submitted && !world->model.jobs[job].ended))
            why = "a job is alive and has ended, or neither";
    }
    for (uint32_t i = 0; i < world->api->job_count && !why; i++)
        why = world->api->jobs[i].worker == WC_NONE ? check_pending(world, &world->api->jobs[i])
                                                    : check_sent(world, &world->api->jobs[i]);
    return why;
}

/* --- states --- */

struct bytes {
    uint8_t *at;
    size_t len;
};

static void put(struct bytes *bytes, uint64_t value)
{
    bytes->at[bytes->len++] = (uint8_t)value;
}

static void encode_worker(const struct world *world, size_t w, struct bytes *bytes)
{
    const struct wc_lane_worker *lane = world->lanes[w];

    put(bytes, world->model.workers[w].session);
    put(bytes, world->model.workers[w].stole);
    put(bytes, lane->draining);
    memcpy(bytes->at + bytes->len, &world->model.workers[w].down, sizeof(struct queue));
    bytes->len += sizeof(struct queue);
    memcpy(bytes->at + bytes->len, &world->model.workers[w].up, sizeof(struct queue));
    bytes->len += sizeof(struct queue);
    for (uint32_t slot = 0; slot < world->slots; slot++) {
        put(bytes, lane->slots[slot].state);
        if (lane->slots[slot].state == WC_LANE_FREE)
            continue;
        put(bytes, lane->slots[slot].session.v);
        put(bytes, lane->slots[slot].job.v);
        put(bytes, lane->slots[slot].attempt);
    }
}

static size_t encode(void *ctx, uint8_t *out)
{
    const struct world *world = ctx;
    const struct wc_lane *api = world->api;
    struct bytes bytes = { out, 0 };

    for (size_t w = 0; w < world->workers; w++)
        encode_worker(world, w, &bytes);
    for (uint32_t i = 0; i < api->worker_count; i++) {
        put(&bytes, api->workers[i].id.v);
        put(&bytes, api->workers[i].session.v);
        put(&bytes, (unsigned)api->workers[i].draining << 1 |
                        (unsigned)(api->workers[i].rests_until > world->model.now));
    }
    put(&bytes, 255);
    for (uint32_t i = 0; i < api->job_count; i++) {
        put(&bytes, api->jobs[i].id.v);
        put(&bytes, api->jobs[i].worker);
        put(&bytes, api->jobs[i].attempt);
        put(&bytes, api->jobs[i].failures << 4 | api->jobs[i].deaths);
        put(&bytes, api->jobs[i].avoid_until > world->model.now ? api->jobs[i].avoid.v : 0);
    }
    memcpy(bytes.at + bytes.len, world->model.jobs, sizeof(world->model.jobs));
    bytes.len += sizeof(world->model.jobs);
    put(&bytes, world->model.sessions);
    for (int fault = 0; fault < FAULTS; fault++)
        put(&bytes, world->model.faults[fault]);
    return bytes.len;
}

static void save(void *ctx, uint32_t level)
{
    struct world *world = ctx;
    size_t size = world->api->state_size, lane = sizeof(struct wc_lane_worker);

    if (!world->saved[level])
        world->saved[level] = qf_xmalloc(size + world->workers * lane);
    memcpy(world->saved[level], world->api, size);
    for (size_t w = 0; w < world->workers; w++)
        memcpy((char *)world->saved[level] + size + w * lane, world->lanes[w], lane);
    world->saved_models[level] = world->model;
}

static void restore(void *ctx, uint32_t level)
{
    struct world *world = ctx;
    size_t size = world->api->state_size, lane = sizeof(struct wc_lane_worker);

    memcpy(world->api, world->saved[level], size);
    for (size_t w = 0; w < world->workers; w++)
        memcpy(world->lanes[w], (char *)world->saved[level] + size + w * lane, lane);
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
    (void)snprintf(text, size, "%s %d slot %d", kind_names[move >> 8], (move >> 4 & 15) + 1,
                   move & 15);
}

static bool option(struct world *world, const char *word, uint64_t *ret_states)
{
    const char *value = strchr(word, '=');
    size_t len = value ? (size_t)(value - word) : 0;
    uint64_t number = value ? strtoull(value + 1, NULL, 10) : 0;

    if (!number)
        return false;
    for (int fault = 0; fault < FAULTS; fault++)
        if (len == strlen(fault_names[fault]) && strncmp(word, fault_names[fault], len) == 0) {
            world->faults[fault] = (uint8_t)QF_MIN(number, UINT64_C(9));
            return true;
        }
    if (strncmp(word, "workers=", 8) == 0 && number <= WORKERS_MAX)
        world->workers = number;
    else if (strncmp(word, "jobs=", 5) == 0 && number <= JOBS_MAX)
        world->jobs = number;
    else if (strncmp(word, "slots=", 6) == 0 && number <= SLOTS_MAX)
        world->slots = (uint32_t)number;
    else if (strncmp(word, "states=", 7) == 0)
        *ret_states = number;
    else
        return false;
    return true;
}

static void begin(struct world *world)
{
    world->api = wc_lane_new(&(struct wc_lane_limits){ .workers_max = WORKERS_MAX,
                                                       .jobs_max = JOBS_MAX,
                                                       .attempts_max = 2,
                                                       .deaths_max = 2,
                                                       .rest_ms = REST });
    for (size_t w = 0; w < world->workers; w++)
        world->lanes[w] = wc_lane_worker_new(world->slots);
    memcpy(world->model.faults, world->faults, sizeof(world->faults));
}

int main(int argc, char **argv)
{
    static struct world world = { .workers = 2, .jobs = 2, .slots = 1 };
    struct explore_world view = { &world, reset, save,   restore, moves,
                                  apply,  check, encode, describe };
    uint64_t states_max = UINT64_C(50000000);
    struct explore_result result;

    for (int i = 1; i < argc; i++)
        if (!option(&world, argv[i], &states_max)) {
            fprintf(stderr, "explore_lane: bad option %s\n", argv[i]);
            return 2;
        }
    begin(&world);
    result = explore(&view, states_max);
    printf("lane: %zu workers of %u slots, %zu jobs", world.workers, world.slots, world.jobs);
    for (int fault = 0; fault < FAULTS; fault++)
        if (world.faults[fault])
            printf(" %s=%u", fault_names[fault], world.faults[fault]);
    printf(": %llu states, %llu transitions, depth %u, %s\n", (unsigned long long)result.states,
           (unsigned long long)result.transitions, result.depth,
           result.broken     ? "BROKEN"
           : result.complete ? "complete"
                             : "NOT COMPLETE");
    for (int level = 0; level <= EXPLORE_DEPTH_MAX; level++)
        free(world.saved[level]);
    for (size_t w = 0; w < world.workers; w++)
        (void)wc_lane_worker_free(world.lanes[w]);
    (void)wc_lane_free(world.api);
    return result.complete && !result.broken ? 0 : 1;
}
