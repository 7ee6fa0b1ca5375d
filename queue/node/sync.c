/* sync.c - waiting for the disk, on threads of their own.
 *
 * Each queue has at most one sync under way, several queues have theirs side by side. Whatever is written meanwhile is covered by the next one,
 * so the more there is to do, the more a sync is worth. */
#include <poll.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "queue/node/node_int.h"

void qn_sync_begin(struct qn_queue *queue)
{
    struct qn_sync *sync = &queue->sync;

    if (queue->syncing || !ql_log_sync_begin(queue->store.log, &sync->sync))
        return;
    sync->queue = queue;
    sync->disk = queue->disk;
    sync->rc = QF_OK;
    sync->err.rc = QF_OK;
    sync->taken = false;
    atomic_store(&sync->finished, false);
    /* One per queue at most: there is always room. */
    queue->syncing = qf_mailbox_try_send(queue->node->sync_box, sync);
}

void qn_syncer_run(void *arg)
{
    struct qn_node *node = arg;
    struct qn_sync *sync;

    while ((sync = qf_mailbox_receive(node->sync_box, -1)) != NULL) {
        int64_t began = qf_clock_mono_ns();
        struct qn_note *note;

        sync->rc = sync->disk->ops->sync(sync->disk, sync->sync.file, &sync->err);
        atomic_store(&sync->finished, true);
        atomic_fetch_add(&node->figures.syncs, 1);
        if (node->options.synced)
            node->options.synced(node->options.ctx, (double)(qf_clock_mono_ns() - began) / 1e9);
        note = qf_xcalloc(1, sizeof(*note));
        note->kind = QN_NOTE_SYNCED;
        note->sync = sync;
        if (!qf_mailbox_send(node->box, note, -1))
            free(note); /* the node has stopped; so nobody waits for it */
    }
}

void qn_sync_wait(struct qn_queue *queue)
{
    struct qn_sync *sync = &queue->sync;

    if (!queue->syncing || sync->taken)
        return;
    while (!atomic_load(&sync->finished))
        (void)poll(NULL, 0, 1);
    sync->taken = true;
    if (ql_log_sync_end(queue->store.log, &sync->sync, sync->rc) != QF_OK)
        qn_fatal(queue->node, &sync->err);
}

void qn_on_synced(struct qn_sync *sync)
{
    struct qn_queue *queue = sync->queue;

    queue->syncing = false;
    if (queue->closing) {
        qn_queue_close_if_idle(queue);
        return;
    }
    if (sync->taken) /* qn_sync_wait() was first */
        return;
    if (ql_log_sync_end(queue->store.log, &sync->sync, sync->rc) != QF_OK) {
        qn_fatal(queue->node, &sync->err);
        return;
    }
    if (sync->sync.index)
        qn_step(queue, &(struct qc_event){ .kind = QC_EVENT_PERSISTED,
                                           .index = sync->sync.index,
                                           .term = sync->sync.term });
    qn_flush_drop(queue);
}
