/* node.c - the owner of all queues: its loop, its clock, its beginning and end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "queue/node/node_int.h"

/* Notes dealt with before the disk is asked to sync again and time is looked at. */
#define NOTES_AT_ONCE 1024
/* Peers' messages and notes of the disk beside asks. */
#define NOTES_MAX 8192
/* Work for the thread that writes what is large: a few pieces for each queue. */
#define BUNDLINGS_MAX (4 * QN_QUEUES_MAX)
#define IDLE_MS 1000
/* A queue whose leadership was to be handed over and is still here: again. */
#define HAND_OVER_MS 1000
/* With less than this beside the reserve the disk is asked before each offer. */
#define SPACE_LOW (UINT64_C(256) << 20)
#define SPACE_MARGIN UINT64_C(1024)
/* Who lacks what was committed so long ago catches up: an update of all nodes waits for it. */
#define BEHIND_MS INT64_C(10000)

int64_t qn_now(void)
{
    return qf_clock_mono_ms();
}

void qn_fatal(struct qn_node *node, const struct qf_err *err)
{
    if (!atomic_exchange(&node->dead, true))
        node->options.fatal(node->options.ctx, err->msg);
}

struct qn_figures *qn_figures(struct qn_node *node)
{
    return &node->figures;
}

uint64_t qn_cluster(const struct qn_node *node)
{
    return atomic_load(&node->cluster);
}

uint32_t qn_partitions(const struct qn_node *node)
{
    return (uint32_t)atomic_load(&node->partitions);
}

uint64_t qn_incarnation(const struct qn_node *node)
{
    return node->incarnation;
}

/* --- notes --- */

static void free_note(void *arg)
{
    struct qn_note *note = arg;

    free(note->bytes);
    free(note);
}

/* Of the queues that this node leads, those that another one could lead. */
static bool could_hand_over(const struct qn_queue *queue)
{
    struct qc_members members;

    if (!queue->core || queue->closing || !qc_leads(queue->core))
        return false;
    qc_members(queue->core, &members);
    return qc_members_voters(&members) > 1;
}

static void hand_over_all(struct qn_node *node)
{
    uint64_t left = 0;

    for (size_t i = 0; i < node->queue_count; i++) {
        struct qn_queue *queue = node->queues[i];

        if (!could_hand_over(queue))
            continue;
        left++;
        if (qn_now() >= queue->hand_over_ms) {
            queue->hand_over_ms = qn_now() + HAND_OVER_MS;
            qn_propose(queue, &(struct qc_event){ .kind = QC_EVENT_TRANSFER });
        }
    }
    atomic_store(&node->figures.to_hand_over, left);
}

static void on_note(struct qn_node *node, struct qn_note *note)
{
    switch (note->kind) {
    case QN_NOTE_ASK:
        qn_ask_begin(node, note->ask);
        break;
    case QN_NOTE_SYNCED:
        qn_on_synced(note->sync);
        break;
    case QN_NOTE_MESSAGE:
    case QN_NOTE_CALL:
    case QN_NOTE_CALLED:
    case QN_NOTE_FETCHED:
        qn_on_note_of_peer(node, note);
        break;
    case QN_NOTE_BUNDLE:
        qn_on_wanted(node, note);
        break;
    case QN_NOTE_BUNDLED:
        qn_on_bundled(node, note->job);
        break;
    case QN_NOTE_DRAIN:
        node->draining = true;
        hand_over_all(node);
        break;
    case QN_NOTE_STOP:
        node->stopping = true;
        break;
    }
    free_note(note);
}

/* --- time --- */

void qn_tell_space(struct qn_queue *queue)
{
    uint64_t bytes;

    if (queue->disk->ops->space(queue->disk, &bytes, NULL) != QF_OK)
        return;
    atomic_store(&queue->node->figures.space_bytes, bytes);
    queue->space_low = bytes < SPACE_LOW + queue->node->options.reserve_bytes;
    /* A frame and a file have headers that the core does not count. */
    qn_step(queue, &(struct qc_event){ .kind = QC_EVENT_SPACE,
                                       .bytes = bytes - QF_MIN(bytes, SPACE_MARGIN) });
}

/* Has the queue's leader committed what is not applied here for a while now? Whoever lost the leadership a
 * moment ago has not. */
static bool is_behind(struct qn_queue *queue, int64_t now)
{
    queue->current_ms = QF_MAX(queue->current_ms, (int64_t)qc_current(queue->core, (uint64_t)now));
    return !queue->current_ms || now - queue->current_ms > BEHIND_MS;
}

static void keep_house(struct qn_node *node, int64_t now)
{
    uint64_t led = 0, leaderless = 0, behind = 0, log_bytes = 0;

    for (size_t i = 0; i < node->queue_count && !atomic_load(&node->dead); i++) {
        struct qn_queue *queue = node->queues[i];

        if (!queue->core || queue->closing)
            continue;
        qn_tell_space(queue);
        qn_keep(queue, now);
        qn_served_expire(queue, now);
        if (queue->id)
            qn_meta_follow(queue);
        led += qc_leads(queue->core);
        leaderless += !qc_leader(queue->core);
        behind += is_behind(queue, now);
        log_bytes += ql_log_bytes(queue->store.log);
    }
    if (atomic_load(&node->cluster)) {
        qn_meta_open_late(node);
        qn_meta_compact(node);
    }
    atomic_store(&node->figures.queues, node->queue_count);
    atomic_store(&node->figures.led, led);
    atomic_store(&node->figures.leaderless, leaderless);
    atomic_store(&node->figures.behind, behind);
    atomic_store(&node->figures.log_bytes, log_bytes);
    atomic_store(&node->figures.member, atomic_load(&node->cluster) != 0);
}

static void mark_if_idle(struct qn_queue *queue, int64_t now)
{
    struct qf_err err = { 0 };
    qf_rc rc;

    if (queue->syncing || now < queue->appended_ms + QN_MARK_MS ||
        !ql_log_mark_due(queue->store.log))
        return;
    rc = ql_log_mark_write(queue->store.log, &err);
    queue->appended_ms = now; /* no room: later */
    if (rc != QF_OK && rc != QF_ENOSPC)
        qn_fatal(queue->node, &err);
}

static void tick_queue(struct qn_queue *queue, int64_t now)
{
    if (!queue->core || queue->closing)
        return;
    qn_offers_flush(queue);
    qn_writes_flush(queue);
    qn_wait_tick(queue, now);
    if (queue->held.count && now >= queue->held_due_ms)
        qn_retry_held(queue);
    if ((uint64_t)now >= qc_deadline(queue->core))
        qn_step(queue, &(struct qc_event){ .kind = QC_EVENT_TICK });
    mark_if_idle(queue, now);
    qn_send_flush(queue);
    qn_sync_begin(queue);
}

static void tick(struct qn_node *node)
{
    int64_t now = qn_now();

    for (size_t i = 0; i < node->queue_count && !atomic_load(&node->dead); i++)
        tick_queue(node->queues[i], now);
    if (atomic_load(&node->cluster))
        qn_meta_partitions(node, now);
    if (now >= node->housekeeping_ms) {
        node->housekeeping_ms = now + QN_HOUSEKEEPING_MS;
        keep_house(node, now);
    }
    if (now >= node->asks_ms || node->parked) {
        node->asks_ms = now + QN_MARK_MS;
        qn_ask_tick(node, now);
    }
    if (node->draining) {
        hand_over_all(node);
    }
}

static int64_t queue_due(const struct qn_queue *queue, int64_t now)
{
    uint64_t deadline;
    int64_t due = now + IDLE_MS;

    if (!queue->core || queue->closing)
        return due;
    if (queue->offers || qn_send_waits(queue))
        return now;
    deadline = qc_deadline(queue->core);
    if (deadline < (uint64_t)due)
        due = (int64_t)deadline;
    if (queue->held.count)
        due = QF_MIN(due, queue->held_due_ms);
    if (!queue->syncing && ql_log_mark_due(queue->store.log))
        due = QF_MIN(due, queue->appended_ms + QN_MARK_MS);
    return due;
}

/* How long the owner may wait for the next note. */
static int64_t patience(struct qn_node *node)
{
    int64_t now = qn_now(), due = QF_MIN(node->housekeeping_ms, now + IDLE_MS);

    for (size_t i = 0; i < node->queue_count; i++)
        due = QF_MIN(due, queue_due(node->queues[i], now));
    if (node->parked)
        due = QF_MIN(due, now + 20);
    if (node->open || node->draining)
        due = QF_MIN(due, now + QN_MARK_MS);
    return QF_MAX(due - now, INT64_C(0));
}

static void run(void *arg)
{
    struct qn_node *node = arg;

    node->running = true;
    while (!node->stopping) {
        struct qn_note *note = qf_mailbox_receive(node->box, patience(node));

        for (size_t i = 0; note && i < NOTES_AT_ONCE; i++) {
            on_note(node, note);
            note = i + 1 < NOTES_AT_ONCE ? qf_mailbox_try_receive(node->box) : NULL;
        }
        if (!atomic_load(&node->dead))
            tick(node);
    }
}

/* --- beginning and end --- */

static void set_defaults(struct qn_options *options)
{
    if (!options->reserve_bytes)
        options->reserve_bytes = UINT64_C(16) << 20;
    if (!options->leader_wait_ms)
        options->leader_wait_ms = 2000;
    if (!options->write_wait_ms)
        options->write_wait_ms = options->leader_wait_ms;
    if (!options->heartbeat_ms)
        options->heartbeat_ms = 100;
    if (!options->asks_max)
        options->asks_max = 8192;
}

static void free_all(struct qn_node *node)
{
    /* Whatever is still asked for is answered while there are queues. */
    while (node->open)
        qn_ask_fail(node->open, QF_EUNAVAILABLE, "this node is stopping: ask another one");
    for (struct qn_ask *ask = node->parked, *next; ask; ask = next) {
        next = ask->next;
        ask->waiting = false;
        (void)qn_ask_free(ask);
    }
    while (node->ghosts)
        qn_ask_bury(node->ghosts);
    while (node->queue_count) {
        qn_takers_fail(node->queues[node->queue_count - 1], "this node is stopping");
        qn_app_retry(node->queues[node->queue_count - 1], "this node is stopping");
        qn_offers_fail(node->queues[node->queue_count - 1], "this node is stopping");
        qn_wait_fail(node->queues[node->queue_count - 1], "this node is stopping");
        qn_queue_close(node->queues[node->queue_count - 1]);
    }
    qn_table_clear(&node->table);
    node->box = qf_mailbox_free(node->box, free_note);
    node->sync_box = qf_mailbox_free(node->sync_box, NULL);
    free(node);
}

static qf_rc start_threads(struct qn_node *node, struct qf_err *err)
{
    node->bundler = qf_pool_new("queue-bundle", 1, BUNDLINGS_MAX);
    for (size_t i = 0; i < QN_SYNCERS; i++)
        node->syncers[i] = qf_thread_start("queue-sync", qn_syncer_run, node);
    /* Any number of them will do. */
    if (node->syncers[0] && node->bundler)
        node->owner = qf_thread_start("queue", run, node);
    return node->owner ? QF_OK : qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
}

qf_rc qn_start(const struct qn_options *options, struct qn_node **ret_node, struct qf_err *err)
{
    struct qn_node *node = qf_xcalloc(1, sizeof(*node));
    qf_rc rc;

    node->options = *options;
    set_defaults(&node->options);
    (void)snprintf(node->name, sizeof(node->name), "%s", options->name);
    node->box = qf_mailbox_new(node->options.asks_max + NOTES_MAX);
    node->sync_box = qf_mailbox_new(QN_QUEUES_MAX + 2);
    rc = qn_queue_open_meta(node, err);
    if (rc == QF_OK && atomic_load(&node->cluster))
        qn_meta_fold(node);
    if (rc == QF_OK)
        rc = qn_meta_check_partitions(node, err);
    if (rc == QF_OK && atomic_load(&node->dead))
        rc = qf_err_set(err, QF_ECORRUPT, "a queue could not be opened");
    if (rc == QF_OK) {
        keep_house(node, qn_now());
        rc = start_threads(node, err);
    }
    *ret_node = node;
    if (rc != QF_OK)
        *ret_node = qn_stop(node);
    return rc;
}

/* Requests of asks that were answered but not ended by a core die with the cores. */
static void forget_requests(struct qn_node *node)
{
    for (size_t i = 0; i < node->queue_count; i++)
        node->queues[i]->ends_start = node->queues[i]->ends.count = 0;
}

/* What still came in is refused. */
static void on_last_note(struct qn_node *node, struct qn_note *note)
{
    if (note->kind == QN_NOTE_BUNDLE) {
        note->wanted.done(note->wanted.ctx, QF_EUNAVAILABLE, NULL);
        free_note(note);
    } else if (note->kind == QN_NOTE_SYNCED || note->kind == QN_NOTE_DRAIN) {
        free_note(note);
    } else {
        on_note(node, note);
    }
}

static void refuse_notes(struct qn_node *node)
{
    struct qn_note *note;

    while ((note = qf_mailbox_try_receive(node->box)) != NULL)
        on_last_note(node, note);
}

void qn_halt(struct qn_node *node)
{
    struct qn_note *note;

    if (!node || atomic_exchange(&node->halted, true))
        return;
    note = qf_xcalloc(1, sizeof(*note));
    note->kind = QN_NOTE_STOP;
    if (!node->owner || !qf_mailbox_send(node->box, note, -1))
        free(note);
    node->owner = qf_thread_join(node->owner);
    if (node->bundler)
        node->bundler = qf_pool_free(node->bundler);
    atomic_store(&node->dead, true);
    forget_requests(node);
    refuse_notes(node);
}

struct qn_node *qn_stop(struct qn_node *node)
{
    if (!node)
        return NULL;
    qn_halt(node);
    qf_mailbox_close(node->box);
    qf_mailbox_close(node->sync_box);
    for (size_t i = 0; i < QN_SYNCERS; i++)
        node->syncers[i] = qf_thread_join(node->syncers[i]);
    refuse_notes(node);
    free_all(node);
    return NULL;
}

bool qn_ask(struct qn_node *node, struct qn_ask *ask)
{
    struct qn_note *note;

    if (atomic_load(&node->halted) || atomic_load(&node->figures.asks) >= node->options.asks_max)
        return false;
    note = qf_xcalloc(1, sizeof(*note));
    note->kind = QN_NOTE_ASK;
    note->ask = ask;
    if (qf_mailbox_try_send(node->box, note))
        return true;
    free(note);
    return false;
}

void qn_drain(struct qn_node *node)
{
    struct qn_note *note = qf_xcalloc(1, sizeof(*note));

    note->kind = QN_NOTE_DRAIN;
    atomic_store(&node->figures.to_hand_over, UINT64_MAX); /* until the node has counted them */
    if (!qf_mailbox_send(node->box, note, 1000)) {
        atomic_store(&node->figures.to_hand_over, 0);
        free(note);
    }
}
