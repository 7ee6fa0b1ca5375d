/* jobs.c - the moves of (slot, node) that a driver has under way. */
#include "ring/core/drive_int.h"

/* Who shall hold what @slot has: its new owners while it moves. */
static rg_nodes holders(const struct rg_slot *slot)
{
    return rg_owners_set(slot->change ? &slot->to : &slot->owners);
}

static struct rg_job *find(struct rg_driver *driver, uint32_t slot, uint8_t node)
{
    for (size_t i = 0; i < RG_JOBS_MAX; i++)
        if (driver->jobs[i].stage != RG_JOB_FREE && driver->jobs[i].slot == slot &&
            driver->jobs[i].node == node)
            return &driver->jobs[i];
    return NULL;
}

/* Nothing came of it: try again later, and let the ring count if that holds up a change. */
static void fail(struct rg_driver *driver, const struct rg_ring *ring, struct rg_job *job,
                 int64_t now_ms, struct qf_str reason)
{
    const struct rg_slot *slot = &ring->slots[job->slot];

    job->stage = RG_JOB_RESTS;
    job->since_ms = now_ms;
    if (slot->change && (rg_slot_newcomers(slot) & RG_NODE(job->node))) {
        struct rg_entry *entry = rg_drive_propose(driver, RG_FAILED, now_ms);

        entry->change = ring->changes[slot->change - 1].id;
        entry->reason = reason;
    }
}

static void on_verified(struct rg_driver *driver, const struct rg_ring *ring, struct rg_job *job,
                        const struct rg_drive_event *event)
{
    const struct rg_slot *slot = &ring->slots[job->slot];
    struct rg_entry *entry;

    if (job->stage != RG_JOB_VERIFIES)
        return;
    job->since_ms = event->now_ms;
    if (!event->ok) {
        job->stage = RG_JOB_RESTS; /* it lacks something: stream again */
        return;
    }
    job->stage = RG_JOB_HELD;
    entry = rg_drive_propose(driver, RG_HELD, event->now_ms);
    entry->change = slot->change ? ring->changes[slot->change - 1].id : 0;
    entry->node = job->node;
    entry->incarnation = event->incarnation;
    entry->epoch = event->listed;
    entry->blobs = job->blobs;
    entry->bytes = job->bytes;
    entry->slots = rg_slot_set_of(job->slot);
}

void rg_jobs_hear(struct rg_driver *driver, const struct rg_ring *ring,
                  const struct rg_drive_event *event)
{
    struct rg_job *job = find(driver, event->slot, event->node);

    if (!job || job->epoch != event->epoch || ring->slots[job->slot].epoch != job->epoch)
        return;
    if (event->kind == RG_DRIVE_VERIFIED) {
        on_verified(driver, ring, job, event);
        return;
    }
    if (job->stage != RG_JOB_STREAMS)
        return;
    job->blobs += event->blobs;
    job->bytes += event->bytes;
    job->since_ms = event->now_ms;
    if (event->ok)
        job->stage = RG_JOB_STREAMED;
    else
        fail(driver, ring, job, event->now_ms, QF_STR("a stream to the node failed"));
}

/* Jobs that nobody needs any more go. */
static void drop(struct rg_driver *driver, const struct rg_ring *ring, int64_t now_ms)
{
    for (size_t i = 0; i < RG_JOBS_MAX; i++) {
        struct rg_job *job = &driver->jobs[i];
        const struct rg_slot *slot;

        if (job->stage == RG_JOB_FREE)
            continue;
        slot = job->slot < ring->slot_count ? &ring->slots[job->slot] : NULL;
        if (!slot || slot->epoch != job->epoch || !(holders(slot) & RG_NODE(job->node)) ||
            (slot->held & RG_NODE(job->node)) || !rg_slot_asks_held(ring, job->slot, now_ms))
            job->stage = RG_JOB_FREE;
    }
}

/* May another job go to @node? */
static bool has_room(const struct rg_driver *driver, uint8_t node, size_t *ret_free)
{
    uint32_t all = 0, its = 0;

    *ret_free = RG_JOBS_MAX;
    for (size_t i = 0; i < RG_JOBS_MAX; i++) {
        if (driver->jobs[i].stage == RG_JOB_FREE) {
            *ret_free = i;
            continue;
        }
        all++;
        its += driver->jobs[i].node == node;
    }
    return *ret_free < RG_JOBS_MAX && all < driver->options.streams &&
           its < driver->options.node_streams;
}

/* The hottest slot that asks @node to hold it and has no job; slot_count: none. */
static uint32_t hottest(struct rg_driver *driver, const struct rg_ring *ring, uint8_t node,
                        int64_t now_ms)
{
    uint32_t best = ring->slot_count;
    const uint64_t *heat = driver->options.heat;

    for (uint32_t at = 0; at < ring->slot_count; at++) {
        const struct rg_slot *slot = &ring->slots[at];

        if (!(holders(slot) & ~slot->held & RG_NODE(node)) ||
            (best < ring->slot_count && (!heat || heat[at] <= heat[best])) ||
            !rg_slot_asks_held(ring, at, now_ms) || find(driver, at, node))
            continue;
        best = at;
    }
    return best;
}

static void open_jobs(struct rg_driver *driver, const struct rg_ring *ring, int64_t now_ms)
{
    for (uint8_t n = 0; n < RG_NODES_MAX; n++) {
        size_t free;

        if (ring->nodes[n].state == RG_NODE_NONE || !driver->nodes[n].up)
            continue;
        while (has_room(driver, n, &free)) {
            uint32_t at = hottest(driver, ring, n, now_ms);

            if (at == ring->slot_count)
                break;
            driver->jobs[free] = (struct rg_job){ .stage = RG_JOB_WAITS,
                                                  .node = n,
                                                  .slot = at,
                                                  .epoch = ring->slots[at].epoch,
                                                  .since_ms = now_ms };
        }
    }
}

/* The old owners that a newcomer may take everything from: no quorum of them, no stream. */
static rg_nodes sources(const struct rg_driver *driver, const struct rg_slot *slot)
{
    rg_nodes set = 0;

    for (unsigned i = 0; i < slot->owners.count; i++) {
        uint8_t n = slot->owners.nodes[i];

        if (driver->nodes[n].up && (driver->nodes[n].acked >= slot->epoch ||
                                    (driver->options.unsafe & RG_DRIVE_UNSAFE_NO_ACK)))
            set |= RG_NODE(n);
    }
    if (driver->options.unsafe & RG_DRIVE_UNSAFE_ONE_SOURCE)
        return set & -set;
    return rg_is_quorum(&slot->owners, set) ? set : 0;
}

static bool all_adopted(const struct rg_driver *driver, uint64_t epoch)
{
    if (driver->options.unsafe & RG_DRIVE_UNSAFE_NOT_ADOPTED)
        return true;
    for (uint32_t p = 0; p < driver->options.partitions; p++)
        if (driver->partitions[p].adopted < epoch)
            return false;
    return true;
}

static void advance(struct rg_driver *driver, const struct rg_ring *ring, struct rg_job *job,
                    int64_t now_ms)
{
    const struct rg_slot *slot = &ring->slots[job->slot];
    bool late = now_ms - job->since_ms >= driver->options.timeout_ms;
    bool rested = now_ms - job->since_ms >= driver->options.retry_ms;
    struct rg_drive_effect *effect;

    if (late && (job->stage == RG_JOB_STREAMS || job->stage == RG_JOB_VERIFIES))
        fail(driver, ring, job, now_ms, QF_STR("the node did not answer in time"));
    if (rested && (job->stage == RG_JOB_RESTS || job->stage == RG_JOB_HELD))
        job->stage = RG_JOB_WAITS; /* what was proposed may be lost: once more */
    if (job->stage == RG_JOB_WAITS && !slot->change)
        job->stage = RG_JOB_STREAMED; /* only a cleanup asks: nothing is streamed for it */
    if (job->stage == RG_JOB_WAITS && !driver->options.paused && sources(driver, slot)) {
        effect = rg_drive_emit(driver, RG_DRIVE_STREAM);
        effect->sources = sources(driver, slot);
        job->stage = RG_JOB_STREAMS;
    } else if (job->stage == RG_JOB_STREAMED && all_adopted(driver, slot->epoch)) {
        effect = rg_drive_emit(driver, RG_DRIVE_VERIFY);
        job->stage = RG_JOB_VERIFIES;
    } else {
        return;
    }
    effect->slot = job->slot;
    effect->node = job->node;
    effect->epoch = job->epoch;
    job->since_ms = now_ms;
}

void rg_jobs_plan(struct rg_driver *driver, const struct rg_ring *ring, int64_t now_ms)
{
    drop(driver, ring, now_ms);
    open_jobs(driver, ring, now_ms);
    for (size_t i = 0; i < RG_JOBS_MAX; i++)
        if (driver->jobs[i].stage != RG_JOB_FREE && driver->effect_count < RG_DRIVE_EFFECTS_MAX)
            advance(driver, ring, &driver->jobs[i], now_ms);
}
