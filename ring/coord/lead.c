/* lead.c - the thread that owns the driver: events in, effects given to the hands. */
#include "ring/coord/lead.h"

#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ring/coord/lead_int.h"

/* Looks, tells and adoptions are short, and a node that is gone costs a connect timeout. */
enum { QUICK_THREADS = 4, SLOW_THREADS = 8, TASKS_MAX = 2048 };
#define TICK_MS 50
#define IDLE_MS 500
#define LOOK_MS 1000
#define LOOK_MAX_MS 10000
#define FAIL_MS 10000
#define HEAT_MS 60000
/* A confirmation that was asked for and not heard of is asked for again. */
#define CONFIRM_MS 2000

struct rg_lead_figures *rg_lead_figures(struct rg_lead *lead)
{
    return &lead->figures;
}

static struct rg_task *task_new(struct rg_lead *lead, enum rg_task_kind kind)
{
    struct rg_task *task = qf_xcalloc(1, sizeof(*task));

    task->kind = kind;
    task->lead = lead;
    task->term = lead->term;
    task->view = rg_view_use(lead->view);
    return task;
}

/* Give @task to the hands. False: they have too much to do, and it is gone. */
static bool submit(struct qf_pool *pool, struct rg_task *task)
{
    if (qf_pool_submit(pool, rg_task_run, task))
        return true;
    rg_task_free(task);
    return false;
}

/* --- what the driver wants --- */

static void drive(struct rg_lead *lead, struct rg_drive_event event);

static void begin_move(struct rg_lead *lead, enum rg_task_kind kind,
                       const struct rg_drive_effect *effect)
{
    struct rg_task *task = task_new(lead, kind);

    task->node = effect->node;
    task->slot = effect->slot;
    task->epoch = effect->epoch;
    /* Whoever holds it may give blobs; documents are of the sources that the driver names. */
    task->sources = effect->sources;
    /* The driver's bound on moves is far below that of the pool; a cleanup is asked for again. */
    (void)submit(lead->slow, task);
}

static void adopt(struct rg_lead *lead, const struct rg_drive_effect *effect)
{
    struct rg_task *task;

    if (!lead->options.hands->adopt)
        return;
    task = task_new(lead, RG_TASK_ADOPT);
    task->partition = effect->partition;
    task->epoch = lead->view->ring->epoch;
    (void)submit(lead->quick, task);
}

static void perform(struct rg_lead *lead, const struct rg_drive_effect *effect)
{
    switch (effect->kind) {
    case RG_DRIVE_PROPOSE:
        lead->options.propose(lead->options.ctx, &effect->entry);
        break;
    case RG_DRIVE_ADOPT:
        adopt(lead, effect);
        break;
    case RG_DRIVE_TELL:
        lead->to_tell |= RG_NODE(effect->node);
        break;
    case RG_DRIVE_STREAM:
        begin_move(lead, RG_TASK_STREAM, effect);
        break;
    case RG_DRIVE_VERIFY:
        begin_move(lead, RG_TASK_VERIFY, effect);
        break;
    case RG_DRIVE_CLEAN:
        begin_move(lead, RG_TASK_CLEAN, effect);
        break;
    }
}

static void drive(struct rg_lead *lead, struct rg_drive_event event)
{
    if (!lead->term || !lead->view)
        return;
    event.now_ms = rg_time_now(&lead->time, lead->view->ring);
    rg_drive(lead->driver, lead->view->ring, &event);
    for (size_t i = 0; i < lead->driver->effect_count; i++)
        perform(lead, &lead->driver->effects[i]);
}

/* --- time --- */

static void follow_ring(struct rg_lead *lead)
{
    struct rg_ring *ring = rg_board_ring(lead->options.board, &lead->applied);

    if (!ring)
        return;
    rg_view_drop(lead->view);
    lead->view = qf_xcalloc(1, sizeof(*lead->view));
    atomic_init(&lead->view->users, 1);
    lead->view->ring = ring;
}

static bool is_node(const struct rg_ring *ring, uint8_t node)
{
    enum rg_node_state state = ring->nodes[node].state;

    return state != RG_NODE_NONE && state != RG_NODE_REMOVED && ring->nodes[node].url[0];
}

/* Slots into which nothing can be put while @silent do not answer. */
static uint64_t count_unwritable(const struct rg_ring *ring, rg_nodes silent)
{
    uint64_t count = 0;

    if (!ring->founded || !silent)
        return 0;
    for (uint32_t i = 0; i < ring->slot_count; i++)
        count +=
            !rg_slot_quorum(ring, &ring->slots[i], rg_slot_everyone(&ring->slots[i]) & ~silent);
    return count;
}

static void look_at_nodes(struct rg_lead *lead, int64_t now)
{
    rg_nodes silent = 0;

    for (uint8_t n = 0; n < RG_NODES_MAX; n++) {
        struct rg_task *task;

        if (!is_node(lead->view->ring, n))
            continue;
        if (lead->nodes[n].missed >= RG_LOOKS_MISSED)
            silent |= RG_NODE(n);
        if (lead->nodes[n].busy || now < lead->nodes[n].due_ms)
            continue;
        task = task_new(lead, RG_TASK_LOOK);
        task->node = n;
        if (now >= lead->nodes[n].heat_ms)
            task->heat = qf_xcalloc(RG_SLOTS, sizeof(*task->heat));
        lead->nodes[n].busy = submit(lead->quick, task);
    }
    atomic_store(&lead->figures.open, rg_nodes_count(silent));
    atomic_store(&lead->figures.unwritable, count_unwritable(lead->view->ring, silent));
}

/* Nodes that wait to be told the epochs are, as soon as `meta` has confirmed what these are at least. */
static void tell_nodes(struct rg_lead *lead, int64_t now)
{
    if (!lead->to_tell || !lead->view->ring->founded)
        return;
    if (!lead->confirmed || lead->applied < lead->confirmed) {
        if (now >= lead->confirm_ms) {
            lead->confirm_ms = now + CONFIRM_MS;
            lead->options.confirm(lead->options.ctx, lead->term);
        }
        return;
    }
    for (uint8_t n = 0; n < RG_NODES_MAX; n++) {
        struct rg_task *task;

        if (!(lead->to_tell & RG_NODE(n)) || !is_node(lead->view->ring, n))
            continue;
        task = task_new(lead, RG_TASK_TELL);
        task->node = n;
        task->epoch = lead->view->ring->epoch;
        (void)submit(lead->quick, task);
    }
    lead->to_tell = 0;
    lead->confirmed = 0; /* each time anew */
    lead->confirm_ms = 0;
}

static void tick(struct rg_lead *lead)
{
    int64_t now = qf_clock_mono_ms();
    uint64_t running = 0;

    follow_ring(lead);
    if (!lead->term || !lead->view)
        return;
    lead->driver->options.partitions =
        lead->options.hands->adopt
            ? QF_MIN(lead->options.partitions(lead->options.ctx), (uint32_t)RG_PARTITIONS_MAX)
            : 0;
    lead->driver->options.paused = rg_hours_off(&lead->options.hours, qf_clock_wall_ms());
    drive(lead, (struct rg_drive_event){ .kind = RG_DRIVE_TICK });
    look_at_nodes(lead, now);
    tell_nodes(lead, now);
    for (size_t i = 0; i < RG_JOBS_MAX; i++)
        running += lead->driver->jobs[i].stage != RG_JOB_FREE;
    atomic_store(&lead->figures.running, running);
}

/* --- what is heard --- */

static void on_lead(struct rg_lead *lead, uint64_t term)
{
    lead->term = term;
    lead->to_tell = 0;
    lead->confirmed = 0;
    lead->confirm_ms = 0;
    memset(lead->nodes, 0, sizeof(lead->nodes));
    memset(lead->node_heat, 0, sizeof(lead->node_heat));
    memset(lead->heat, 0, sizeof(lead->heat));
    follow_ring(lead);
    drive(lead, (struct rg_drive_event){ .kind = RG_DRIVE_LEAD });
    atomic_store(&lead->figures.running, 0);
    atomic_store(&lead->figures.open, 0);
    atomic_store(&lead->figures.unwritable, 0);
}

static int64_t look_pause(const struct rg_lead *lead)
{
    return lead->options.look_ms ? lead->options.look_ms : LOOK_MS;
}

/* What is read at all nodes, by slot. */
static void take_heat(struct rg_lead *lead, const struct rg_task *task)
{
    int64_t pause = lead->options.heat_ms ? lead->options.heat_ms : HEAT_MS;

    lead->nodes[task->node].heat_ms = qf_clock_mono_ms() + pause;
    memcpy(lead->node_heat[task->node], task->heat, sizeof(lead->node_heat[0]));
    memset(lead->heat, 0, sizeof(lead->heat));
    for (size_t n = 0; n < RG_NODES_MAX; n++)
        for (size_t slot = 0; slot < RG_SLOTS; slot++)
            lead->heat[slot] += lead->node_heat[n][slot];
}

static void on_looked(struct rg_lead *lead, const struct rg_task *task)
{
    uint8_t n = task->node;
    int64_t pause = look_pause(lead);

    lead->nodes[n].busy = false;
    if (task->heat)
        take_heat(lead, task);
    if (task->ok) {
        lead->nodes[n].missed = 0;
        lead->nodes[n].incarnation = task->looked.incarnation;
    } else {
        lead->nodes[n].missed += lead->nodes[n].missed < RG_LOOKS_MISSED;
        if (lead->nodes[n].missed == RG_LOOKS_MISSED) {
            pause = QF_MAX(lead->nodes[n].pause_ms, pause);
            pause = QF_MIN(2 * pause, (int64_t)LOOK_MAX_MS);
        }
    }
    lead->nodes[n].pause_ms = pause;
    lead->nodes[n].due_ms = qf_clock_mono_ms() + pause;
    if (!task->ok && lead->nodes[n].missed < RG_LOOKS_MISSED)
        return;
    if (task->ok && !task->looked.told) {
        lead->to_tell |=
            RG_NODE(n); /* before that it takes nothing, and every try would be a failure */
        return;
    }
    drive(lead, (struct rg_drive_event){ .kind = RG_DRIVE_STATUS,
                                         .node = n,
                                         .up = task->ok,
                                         .incarnation = task->ok ? task->looked.incarnation
                                                                 : lead->nodes[n].incarnation });
}

/* A node that dies fails all its streams at once: that is one failure, or its addition would be rolled back for a short
 * absence. The others go on to the verification, which finds what is missing, and are begun again. */
static bool is_one_failure_more(struct rg_lead *lead, uint8_t node)
{
    int64_t now = qf_clock_mono_ms(),
            pause = lead->options.fail_ms ? lead->options.fail_ms : FAIL_MS;

    if (lead->nodes[node].failed_ms && now < lead->nodes[node].failed_ms + pause)
        return false;
    lead->nodes[node].failed_ms = now;
    return true;
}

static void on_task(struct rg_lead *lead, const struct rg_task *task)
{
    struct rg_drive_event event = { .node = task->node,
                                    .slot = task->slot,
                                    .partition = task->partition,
                                    .epoch = task->epoch,
                                    .ok = task->ok,
                                    .incarnation = task->looked.incarnation,
                                    .listed = task->listed,
                                    .blobs = task->blobs,
                                    .bytes = task->bytes };

    switch (task->kind) {
    case RG_TASK_LOOK:
        on_looked(lead, task);
        return;
    case RG_TASK_TELL:
        event.kind = RG_DRIVE_ACKED;
        break;
    case RG_TASK_ADOPT:
        event.kind = RG_DRIVE_ADOPTED;
        break;
    case RG_TASK_CLEAN:
        event.kind = RG_DRIVE_CLEANED;
        break;
    case RG_TASK_STREAM:
        event.kind = RG_DRIVE_STREAMED;
        event.ok = task->ok || !is_one_failure_more(lead, task->node);
        drive(lead, event);
        return;
    case RG_TASK_VERIFY:
        event.kind = RG_DRIVE_VERIFIED;
        drive(lead, event);
        return;
    case RG_TASK_LEAD:
    case RG_TASK_CONFIRMED:
    case RG_TASK_STOP:
        return;
    }
    if (task->ok) /* who was told may have another disk than the driver thinks: then it acknowledged nothing */
        if (task->kind != RG_TASK_TELL ||
            task->looked.incarnation == lead->nodes[task->node].incarnation)
            drive(lead, event);
}

/* False: the end. */
static bool hear(struct rg_lead *lead, struct rg_task *task)
{
    enum rg_task_kind kind = task->kind;

    if (kind == RG_TASK_LEAD) {
        on_lead(lead, task->term);
    } else if (kind == RG_TASK_CONFIRMED) {
        if (task->term == lead->term)
            lead->confirmed = task->epoch;
    } else if (task->term == lead->term) {
        on_task(lead, task);
    }
    rg_task_free(task);
    return kind != RG_TASK_STOP;
}

static void run(void *arg)
{
    struct rg_lead *lead = arg;

    for (;;) {
        bool busy = atomic_load(&lead->figures.running) || lead->to_tell;
        int64_t wait_ms = !lead->term ? -1
                          : busy      ? TICK_MS
                                      : IDLE_MS; /* who does not lead sleeps */
        struct rg_task *task = qf_mailbox_receive(lead->box, wait_ms);

        for (; task; task = qf_mailbox_try_receive(lead->box))
            if (!hear(lead, task))
                return;
        tick(lead);
    }
}

/* --- beginning and end --- */

static void post(struct rg_lead *lead, enum rg_task_kind kind, uint64_t term, uint64_t applied)
{
    struct rg_task *task = qf_xcalloc(1, sizeof(*task));

    task->kind = kind;
    task->term = term;
    task->epoch = applied;
    if (!qf_mailbox_try_send(lead->box, task))
        rg_task_free(task);
}

void rg_lead_set(struct rg_lead *lead, uint64_t term)
{
    post(lead, RG_TASK_LEAD, term, 0);
}

void rg_lead_confirmed(struct rg_lead *lead, uint64_t term, uint64_t applied)
{
    post(lead, RG_TASK_CONFIRMED, term, applied);
}

struct rg_lead *rg_lead_new(const struct rg_lead_options *options, struct qf_err *err)
{
    struct rg_lead *lead = qf_xcalloc(1, sizeof(*lead));
    const struct rg_drive_options drive_options = { .heat = lead->heat,
                                                    .streams = options->streams,
                                                    .node_streams = options->node_streams,
                                                    .retry_ms = options->retry_ms,
                                                    .timeout_ms = options->timeout_ms,
                                                    .dead_ms = options->dead_ms };

    lead->options = *options;
    lead->driver = qf_xcalloc(1, sizeof(*lead->driver));
    rg_driver_init(lead->driver, &drive_options);
    lead->pace.lock = qf_lock_new();
    lead->box = qf_mailbox_new(3 * (size_t)TASKS_MAX);
    lead->quick = qf_pool_new("ring-quick", QUICK_THREADS, TASKS_MAX);
    lead->slow = qf_pool_new("ring-move", SLOW_THREADS, TASKS_MAX);
    if (lead->quick && lead->slow)
        lead->thread = qf_thread_start("ring-lead", run, lead);
    if (lead->thread)
        return lead;
    (void)qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
    return rg_lead_free(lead);
}

struct rg_lead *rg_lead_free(struct rg_lead *lead)
{
    if (!lead)
        return NULL;
    atomic_store(&lead->stopping, true);
    post(lead, RG_TASK_STOP, 0, 0);
    lead->thread = qf_thread_join(lead->thread);
    if (lead->quick)
        lead->quick = qf_pool_free(lead->quick);
    if (lead->slow)
        lead->slow = qf_pool_free(lead->slow);
    lead->box = qf_mailbox_free(lead->box, rg_task_free);
    lead->pace.lock = qf_lock_free(lead->pace.lock);
    rg_view_drop(lead->view);
    free(lead->driver);
    free(lead);
    return NULL;
}
