/* lane.c - the API side of background work. */
#include "lane_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct wc_lane_limits completed(const struct wc_lane_limits *given)
{
    struct wc_lane_limits limits = *given;

    limits.workers_max = limits.workers_max ? limits.workers_max : 1024;
    limits.jobs_max = limits.jobs_max ? limits.jobs_max : 1024;
    limits.attempts_max = limits.attempts_max ? limits.attempts_max : 4;
    limits.deaths_max = limits.deaths_max ? limits.deaths_max : 2;
    limits.rest_ms = limits.rest_ms ? limits.rest_ms : 5000;
    limits.job_ms = limits.job_ms ? limits.job_ms : INT64_C(4) * 3600 * 1000;
    return limits;
}

static void carve(struct wc_lane *lane, struct wc_carver *carver)
{
    lane->workers = wc_carve(carver, lane->limits.workers_max, sizeof(*lane->workers));
    lane->jobs = wc_carve(carver, lane->limits.jobs_max, sizeof(*lane->jobs));
    lane->state_size = carver->used;
    /* Each job: CANCEL, then ENDED or ASSIGN. */
    lane->effect_capacity = 2 * (size_t)lane->limits.jobs_max;
    lane->effects = wc_carve(carver, lane->effect_capacity, sizeof(*lane->effects));
}

struct wc_lane *wc_lane_new(const struct wc_lane_limits *limits)
{
    struct wc_lane sizing = { .limits = completed(limits) }, *lane;
    struct wc_carver carver = { NULL, 0 };

    (void)wc_carve(&carver, 1, sizeof(*lane));
    carve(&sizing, &carver);
    lane = calloc(1, carver.used);
    if (!lane)
        return NULL;
    lane->limits = sizing.limits;
    carver = (struct wc_carver){ (char *)lane, 0 };
    (void)wc_carve(&carver, 1, sizeof(*lane));
    carve(lane, &carver);
    lane->now = INT64_MIN;
    return lane;
}

struct wc_lane *wc_lane_free(struct wc_lane *lane)
{
    free(lane);
    return NULL;
}

void wc_lane_trace(struct wc_lane *lane, wc_trace_fn *trace, void *ctx)
{
    lane->trace = trace;
    lane->trace_ctx = ctx;
}

/* --- tables --- */

static uint32_t find_worker(const struct wc_lane *lane, struct wc_worker_id id)
{
    for (uint32_t i = 0; i < lane->worker_count; i++)
        if (lane->workers[i].id.v == id.v)
            return i;
    return WC_NONE;
}

static uint32_t find_job(const struct wc_lane *lane, struct wc_job_id id)
{
    for (uint32_t i = 0; i < lane->job_count; i++)
        if (lane->jobs[i].id.v == id.v)
            return i;
    return WC_NONE;
}

static uint32_t usable_slots(const struct wc_lane_worker_row *worker)
{
    return worker->draining ? 0 : worker->slots;
}

static struct wc_lane_effect *emit(struct wc_lane *lane, enum wc_lane_effect_type type,
                                   const struct wc_lane_job_row *job)
{
    struct wc_lane_effect *effect = &lane->effects[lane->effect_count++];

    assert(lane->effect_count <= lane->effect_capacity);
    *effect = (struct wc_lane_effect){ .type = type, .job = job->id, .attempt = job->attempt };
    if (job->worker != WC_NONE) {
        effect->worker = lane->workers[job->worker].id;
        effect->session = lane->workers[job->worker].session;
    }
    return effect;
}

/* --- moves of a job --- */

/* Its worker has it no more. */
static void take_back(struct wc_lane *lane, struct wc_lane_job_row *job)
{
    if (job->worker == WC_NONE)
        return;
    lane->workers[job->worker].sent--;
    lane->stats.sent--;
    lane->stats.pending++;
    job->worker = WC_NONE;
    job->since = lane->now;
    job->expires = QF_TIME_NEVER;
}

static void end(struct wc_lane *lane, uint32_t slot, qf_rc rc)
{
    take_back(lane, &lane->jobs[slot]);
    emit(lane, WC_LANE_DO_ENDED, &lane->jobs[slot])->rc = rc;
    lane->stats.pending--;
    lane->jobs[slot] = lane->jobs[--lane->job_count];
}

/* It goes elsewhere, or back to where it was after a while. */
static void give_back(struct wc_lane *lane, uint32_t slot)
{
    struct wc_lane_job_row *job = &lane->jobs[slot];

    job->avoid = lane->workers[job->worker].id;
    job->avoid_until = wc_time_add(lane->now, lane->limits.rest_ms);
    take_back(lane, job);
}

static void fail_once(struct wc_lane *lane, uint32_t slot, qf_rc rc)
{
    if (++lane->jobs[slot].failures >= lane->limits.attempts_max)
        end(lane, slot, rc);
    else
        give_back(lane, slot);
}

/* --- assignment --- */

/* Is @a the better place than @b? */
static bool better(const struct wc_lane_worker_row *a, const struct wc_lane_worker_row *b)
{
    uint64_t full_a = (uint64_t)a->sent * b->slots, full_b = (uint64_t)b->sent * a->slots;

    if (full_a != full_b)
        return full_a < full_b;
    return a->load != b->load ? a->load < b->load : a->id.v < b->id.v;
}

static bool is_owner(const struct wc_lane_job_row *job, const struct wc_lane_worker_row *worker)
{
    for (uint32_t i = 0; i < job->owner_count; i++)
        if (job->owners[i] == worker->key)
            return true;
    return false;
}

static bool is_avoided(const struct wc_lane *lane, const struct wc_lane_job_row *job,
                       const struct wc_lane_worker_row *worker)
{
    return worker->id.v == job->avoid.v && job->avoid_until > lane->now;
}

/* Is there one that it can wait for? */
static bool has_owner(const struct wc_lane *lane, const struct wc_lane_job_row *job)
{
    for (uint32_t i = 0; i < lane->worker_count && job->owner_count; i++)
        if (usable_slots(&lane->workers[i]) && is_owner(job, &lane->workers[i]) &&
            !is_avoided(lane, job, &lane->workers[i]))
            return true;
    return false;
}

static uint32_t choose_worker(const struct wc_lane *lane, const struct wc_lane_job_row *job)
{
    bool owners_only = has_owner(lane, job);
    uint32_t best = WC_NONE;

    for (uint32_t i = 0; i < lane->worker_count; i++) {
        const struct wc_lane_worker_row *worker = &lane->workers[i];

        if (worker->sent >= usable_slots(worker) || worker->rests_until > lane->now ||
            is_avoided(lane, job, worker) || (owners_only && !is_owner(job, worker)))
            continue;
        if (best == WC_NONE || better(worker, &lane->workers[best]))
            best = i;
    }
    return best;
}

static void assign(struct wc_lane *lane, struct wc_lane_job_row *job, uint32_t worker)
{
    job->worker = worker;
    job->attempt++;
    job->since = lane->now;
    job->expires = wc_time_add(lane->now, lane->limits.job_ms);
    lane->workers[worker].sent++;
    lane->stats.pending--;
    lane->stats.sent++;
    (void)emit(lane, WC_LANE_DO_ASSIGN, job);
}

/* Has somebody room for a job now? */
static bool may_send(const struct wc_lane *lane)
{
    if (!lane->stats.pending ||
        (lane->limits.sent_max && lane->stats.sent >= lane->limits.sent_max))
        return false;
    for (uint32_t i = 0; i < lane->worker_count; i++)
        if (lane->workers[i].sent < usable_slots(&lane->workers[i]) &&
            lane->workers[i].rests_until <= lane->now)
            return true;
    return false;
}

/* The oldest job that can go somewhere now. */
static bool assign_one(struct wc_lane *lane)
{
    uint32_t best = WC_NONE, best_worker = WC_NONE;

    for (uint32_t i = 0; i < lane->job_count; i++) {
        const struct wc_lane_job_row *job = &lane->jobs[i];
        uint32_t worker;

        if (job->worker != WC_NONE || (best != WC_NONE && job->order > lane->jobs[best].order))
            continue;
        worker = choose_worker(lane, job);
        if (worker != WC_NONE) {
            best = i;
            best_worker = worker;
        }
    }
    if (best != WC_NONE)
        assign(lane, &lane->jobs[best], best_worker);
    return best != WC_NONE;
}

/* --- events --- */

static void end_session(struct wc_lane *lane, uint32_t worker, bool died)
{
    for (uint32_t i = lane->job_count; i-- > 0;) { /* ended ones are replaced by later ones */
        struct wc_lane_job_row *job = &lane->jobs[i];

        if (job->worker != worker)
            continue;
        lane->stats.lost++;
        if (died && ++job->deaths >= lane->limits.deaths_max)
            end(lane, i, QF_EQUARANTINED);
        else
            take_back(lane, job);
    }
}

static void forget_worker(struct wc_lane *lane, uint32_t worker)
{
    uint32_t last = --lane->worker_count;

    lane->stats.workers--;
    lane->stats.slots -= usable_slots(&lane->workers[worker]);
    lane->workers[worker] = lane->workers[last];
    for (uint32_t i = 0; i < lane->job_count; i++)
        if (lane->jobs[i].worker == last && last != worker)
            lane->jobs[i].worker = worker;
}

static qf_rc on_status(struct wc_lane *lane)
{
    const struct wc_lane_event *event = lane->event;
    uint32_t slot = find_worker(lane, event->worker);
    struct wc_lane_worker_row *worker;

    if (slot != WC_NONE && lane->workers[slot].session.v != event->session.v) {
        end_session(lane, slot, false);
        forget_worker(lane, slot);
        slot = WC_NONE;
    }
    if (slot == WC_NONE) {
        if (!event->status.slots || lane->worker_count == lane->limits.workers_max)
            return QF_OK; /* it has no lane; or there are enough of those that have */
        slot = lane->worker_count++;
        lane->stats.workers++;
        lane->workers[slot] = (struct wc_lane_worker_row){ .id = event->worker,
                                                           .session = event->session,
                                                           .rests_until = INT64_MIN };
    }
    worker = &lane->workers[slot];
    lane->stats.slots -= usable_slots(worker);
    worker->slots = event->status.slots;
    worker->load = event->status.load;
    worker->key = event->status.key;
    worker->draining = event->status.draining;
    lane->stats.slots += usable_slots(worker);
    return QF_OK;
}

static qf_rc on_lost(struct wc_lane *lane)
{
    uint32_t worker = find_worker(lane, lane->event->worker);

    if (worker == WC_NONE)
        return QF_OK;
    end_session(lane, worker, lane->event->died);
    forget_worker(lane, worker);
    return QF_OK;
}

static qf_rc on_submit(struct wc_lane *lane)
{
    struct wc_lane_job_row *job;

    if (find_job(lane, lane->event->job) != WC_NONE)
        return QF_EEXIST;
    if (lane->job_count == lane->limits.jobs_max)
        return QF_ELIMIT;
    job = &lane->jobs[lane->job_count++];
    *job = (struct wc_lane_job_row){ .id = lane->event->job,
                                     .order = ++lane->last_order,
                                     .worker = WC_NONE,
                                     .since = lane->now,
                                     .expires = QF_TIME_NEVER };
    job->owner_count = QF_MIN(lane->event->owners.count, (uint32_t)WC_OWNERS_MAX);
    memcpy(job->owners, lane->event->owners.keys, sizeof(job->owners));
    lane->stats.pending++;
    return QF_OK;
}

static qf_rc on_cancel(struct wc_lane *lane)
{
    uint32_t slot = find_job(lane, lane->event->job);

    if (slot == WC_NONE) {
        lane->stats.stale++;
        return QF_OK;
    }
    if (lane->jobs[slot].worker != WC_NONE)
        (void)emit(lane, WC_LANE_DO_CANCEL, &lane->jobs[slot]);
    end(lane, slot, QF_ECANCELED);
    return QF_OK;
}

/* The job that a worker's message is about, WC_NONE (and counted) if it runs there no more. */
static uint32_t job_of_message(struct wc_lane *lane)
{
    const struct wc_lane_event *event = lane->event;
    uint32_t slot = find_job(lane, event->job);
    const struct wc_lane_job_row *job = slot == WC_NONE ? NULL : &lane->jobs[slot];

    if (job && job->worker != WC_NONE && job->attempt == event->attempt &&
        lane->workers[job->worker].id.v == event->worker.v &&
        lane->workers[job->worker].session.v == event->session.v)
        return slot;
    lane->stats.stale++;
    return WC_NONE;
}

static qf_rc on_rejected(struct wc_lane *lane)
{
    uint32_t slot = job_of_message(lane);

    if (slot == WC_NONE)
        return QF_OK;
    lane->stats.rejected++;
    lane->workers[lane->jobs[slot].worker].rests_until =
        wc_time_add(lane->now, lane->limits.rest_ms);
    give_back(lane, slot);
    return QF_OK;
}

static qf_rc on_done(struct wc_lane *lane)
{
    uint32_t slot = job_of_message(lane);

    if (slot != WC_NONE)
        end(lane, slot, QF_OK);
    return QF_OK;
}

static qf_rc on_failed(struct wc_lane *lane)
{
    uint32_t slot = job_of_message(lane);

    if (slot == WC_NONE)
        return QF_OK;
    if (lane->event->failure.retryable) {
        lane->stats.retried++;
        fail_once(lane, slot, lane->event->failure.rc);
    } else {
        end(lane, slot, lane->event->failure.rc);
    }
    return QF_OK;
}

static qf_rc on_tick(struct wc_lane *lane)
{
    for (uint32_t i = lane->job_count; i-- > 0;) {
        if (lane->jobs[i].worker == WC_NONE || lane->jobs[i].expires > lane->now)
            continue;
        lane->stats.expired++;
        (void)emit(lane, WC_LANE_DO_CANCEL, &lane->jobs[i]);
        fail_once(lane, i, QF_ETIMEOUT);
    }
    return QF_OK;
}

static qf_rc (*const handlers[WC_LANE_EV__COUNT])(struct wc_lane *lane) = {
    [WC_LANE_EV_TICK] = on_tick,     [WC_LANE_EV_STATUS] = on_status,
    [WC_LANE_EV_LOST] = on_lost,     [WC_LANE_EV_SUBMIT] = on_submit,
    [WC_LANE_EV_CANCEL] = on_cancel, [WC_LANE_EV_REJECTED] = on_rejected,
    [WC_LANE_EV_DONE] = on_done,     [WC_LANE_EV_FAILED] = on_failed,
};

qf_rc wc_lane_step(struct wc_lane *lane, const struct wc_lane_event *event,
                   struct wc_lane_effects *ret_effects)
{
    qf_rc rc;

    assert((size_t)event->type < WC_LANE_EV__COUNT);
    lane->event = event;
    lane->now = QF_MAX(lane->now, event->now);
    lane->effect_count = 0;
    lane->stats.steps++;
    lane->trace_stale = lane->stats.stale;
    rc = handlers[event->type](lane);
    while (may_send(lane) && assign_one(lane))
        ;
    if (lane->trace)
        wc_lane_trace_step(lane, rc);
    lane->event = NULL;
    *ret_effects = (struct wc_lane_effects){ lane->effects, lane->effect_count };
    return rc;
}

/* --- views --- */

qf_time_ms wc_lane_deadline(const struct wc_lane *lane)
{
    qf_time_ms next = QF_TIME_NEVER;

    for (uint32_t i = 0; i < lane->job_count; i++) {
        const struct wc_lane_job_row *job = &lane->jobs[i];

        next = QF_MIN(next, job->expires);
        if (job->worker == WC_NONE && job->avoid_until > lane->now)
            next = QF_MIN(next, job->avoid_until);
    }
    for (uint32_t i = 0; lane->stats.pending && i < lane->worker_count; i++)
        if (lane->workers[i].rests_until > lane->now)
            next = QF_MIN(next, lane->workers[i].rests_until);
    return next;
}

const struct wc_lane_stats *wc_lane_stats(const struct wc_lane *lane)
{
    return &lane->stats;
}

bool wc_lane_job(const struct wc_lane *lane, struct wc_job_id id, struct wc_lane_job_view *ret_view)
{
    uint32_t slot = find_job(lane, id);
    const struct wc_lane_job_row *job;

    if (slot == WC_NONE)
        return false;
    job = &lane->jobs[slot];
    *ret_view = (struct wc_lane_job_view){ .sent = job->worker != WC_NONE,
                                           .attempt = job->attempt,
                                           .failures = job->failures,
                                           .deaths = job->deaths,
                                           .since = job->since };
    if (ret_view->sent)
        ret_view->worker = lane->workers[job->worker].id;
    return true;
}
