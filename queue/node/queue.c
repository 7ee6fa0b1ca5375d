/* queue.c - the files and the core of one queue of a node: made, opened, started, closed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/pure/alloc.h"
#include "queue/node/node_int.h"

#define META_FOLDER "meta"
/* Entries to one follower without an answer: more than a sync's worth of them. */
#define IN_FLIGHT 1024

static uint64_t random_number(void)
{
    uint64_t number = 0;

    while (!number)
        if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
            number = 0;
    return number;
}

struct qn_queue *qn_queue_find(struct qn_node *node, const char *name)
{
    for (size_t i = 0; i < node->queue_count; i++)
        if (!node->queues[i]->closing && strcmp(node->queues[i]->name, name) == 0)
            return node->queues[i];
    return NULL;
}

struct qn_queue *qn_queue_by_address(struct qn_node *node, const char *address)
{
    for (size_t i = 0; i < node->queue_count; i++)
        if (!node->queues[i]->closing && strcmp(node->queues[i]->address, address) == 0)
            return node->queues[i];
    return NULL;
}

struct qn_queue *qn_queue_by_id(struct qn_node *node, uint64_t id)
{
    for (size_t i = 0; i < node->queue_count; i++)
        if (!node->queues[i]->closing && node->queues[i]->id == id)
            return node->queues[i];
    return NULL;
}

/* --- the core's view of the log --- */

static uint64_t log_first(void *ctx)
{
    return ql_log_first(((struct qn_queue *)ctx)->store.log);
}
static uint64_t log_last(void *ctx)
{
    return ql_log_last(((struct qn_queue *)ctx)->store.log);
}
static uint64_t log_term(void *ctx, uint64_t index)
{
    return ql_log_term(((struct qn_queue *)ctx)->store.log, index);
}
static uint64_t log_length(void *ctx, uint64_t index)
{
    return ql_log_length(((struct qn_queue *)ctx)->store.log, index);
}
static enum ql_type log_type(void *ctx, uint64_t index)
{
    return ql_log_type(((struct qn_queue *)ctx)->store.log, index);
}
static qf_rc log_read(void *ctx, uint64_t index, struct qf_strbuf *buf, struct ql_entry *ret_entry,
                      struct qf_err *err)
{
    struct ql_log *log = ((struct qn_queue *)ctx)->store.log;

    return ql_log_recent(log, index, ret_entry) ? QF_OK
                                                : ql_log_read(log, index, buf, ret_entry, err);
}

/* --- making and opening --- */

static uint64_t file_bytes(const struct qn_node *node, const struct qn_queue_options *options)
{
    uint64_t bytes = node->options.file_bytes ? node->options.file_bytes : UINT64_C(64) << 20;

    /* Whole files go: a queue that may be small is made of small ones. */
    if (options->retention_bytes) {
        uint64_t small = QF_MAX(options->retention_bytes / 8, UINT64_C(1) << 20);

        bytes = QF_MIN(bytes, small);
    }
    return bytes;
}

static qf_rc open_store(struct qn_queue *queue, struct qf_err *err)
{
    const struct ql_options options = { .file_bytes = file_bytes(queue->node, &queue->options),
                                        .reserve_bytes = queue->node->options.reserve_bytes };

    return ql_store_open(&queue->store, queue->disk, &options, err);
}

/* The first entry of a log: who takes part. The same on all of them. */
static qf_rc write_members(struct qn_queue *queue, const struct qc_members *members,
                           struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct ql_entry entry = { 1, 1, QL_CHANGE, { NULL, 0 } };
    qf_rc rc;

    if (ql_log_last(queue->store.log) > 0)
        return QF_OK;
    qc_members_encode(&buf, members);
    entry.data = qf_strbuf_view(&buf);
    rc = ql_log_append(queue->store.log, &entry, 1, true, err);
    return rc == QF_OK ? ql_log_sync(queue->store.log, err) : rc;
}

qf_rc qn_queue_begin(struct qn_queue *queue, struct qf_err *err)
{
    struct qn_node *node = queue->node;
    const struct qc_log log = {
        queue, log_first, log_last, log_term, log_type, log_read, log_length
    };
    const struct qc_options options = { .cluster = atomic_load(&node->cluster),
                                        .id = node->incarnation,
                                        .seed = (uint32_t)random_number(),
                                        .election_ms = node->options.election_ms,
                                        .heartbeat_ms = node->options.heartbeat_ms,
                                        .in_flight = IN_FLIGHT,
                                        .reserve_bytes = node->options.reserve_bytes };
    struct qc_effects effects;
    qf_rc rc =
        qc_new(&options, &log, &queue->store.sequence, &queue->store.snapshot, &queue->core, err);

    if (rc != QF_OK)
        return qf_err_prefix(err, rc, "%s", queue->disk->label);
    queue->snapshot_bytes = ql_log_bytes(queue->store.log);
    rc = qn_app_restore(queue, err);
    if (rc != QF_OK)
        return rc;
    qc_start(queue->core, (uint64_t)qn_now(), &effects);
    qn_perform(queue, effects);
    qn_tell_space(queue);
    return QF_OK;
}

static struct qn_queue *queue_new(struct qn_node *node, const char *name, uint64_t id)
{
    struct qn_queue *queue = qf_xcalloc(1, sizeof(*queue));

    queue->node = node;
    queue->id = id;
    queue->takers_end = &queue->takers;
    queue->deferred_end = &queue->deferred;
    queue->offers_end = &queue->offers;
    queue->appended_ms = qn_now();
    (void)snprintf(queue->name, sizeof(queue->name), "%s", name);
    if (id) {
        (void)snprintf(queue->folder, sizeof(queue->folder), "q-%" PRIu64, id);
        (void)snprintf(queue->address, sizeof(queue->address), "%s.%" PRIu64, name, id);
    } else {
        (void)snprintf(queue->folder, sizeof(queue->folder), META_FOLDER);
        (void)snprintf(queue->address, sizeof(queue->address), META_FOLDER);
    }
    return queue;
}

static void queue_free(struct qn_queue *queue)
{
    struct qn_node *node = queue->node;

    qn_forget_held(queue);
    qn_send_forget(queue);
    qn_app_close(queue);
    (void)qc_free(queue->core);
    if (queue->store.disk)
        ql_store_close(&queue->store);
    if (queue->disk)
        node->options.folders.close(node->options.folders.ctx, queue->disk);
    QF_VEC_DONE(&queue->held);
    QF_VEC_DONE(&queue->ends);
    free(queue);
}

void qn_queue_close(struct qn_queue *queue)
{
    struct qn_node *node = queue->node;

    for (size_t i = 0; i < node->queue_count; i++) {
        if (node->queues[i] != queue)
            continue;
        node->queue_count--;
        memmove(&node->queues[i], &node->queues[i + 1],
                (node->queue_count - i) * sizeof(node->queues[0]));
        break;
    }
    queue_free(queue);
}

void qn_queue_close_if_idle(struct qn_queue *queue)
{
    if (!queue->syncing && !queue->bundling)
        qn_queue_close(queue);
}

/* A new folder for this node. Cluster 0: it is in none yet. */
static qf_rc make_node(struct qn_queue *meta, struct qf_err *err)
{
    const struct ql_sequence_state sequence = { .incarnation = random_number() };
    qf_rc rc = ql_store_create(meta->disk, &sequence, err);

    return rc == QF_OK ? open_store(meta, err) : rc;
}

/* A cluster of this node alone. Its number is saved last: before that there is no cluster. */
static qf_rc bootstrap(struct qn_queue *meta, struct qf_err *err)
{
    struct ql_sequence_state *sequence = &meta->store.sequence;
    struct qc_members members = { .count = 1,
                                  .items = { { .id = sequence->incarnation, .role = QC_VOTER } } };
    struct ql_sequence_state next = *sequence;
    qf_rc rc;

    (void)snprintf(members.items[0].name, sizeof(members.items[0].name), "%s", meta->node->name);
    rc = write_members(meta, &members, err);
    next.cluster = random_number();
    next.term = 1;
    if (rc == QF_OK)
        rc = ql_sequence_state_save(meta->disk, &next, err);
    if (rc == QF_OK)
        *sequence = next;
    return rc;
}

qf_rc qn_queue_found(struct qn_queue *meta, struct qf_err *err)
{
    struct qn_node *node = meta->node;
    qf_rc rc = bootstrap(meta, err);

    if (rc != QF_OK)
        return rc;
    atomic_store(&node->cluster, meta->store.sequence.cluster);
    return qn_queue_begin(meta, err);
}

/* The folder knows the name under which its node takes part. */
static qf_rc check_name(const struct qn_queue *meta, struct qf_err *err)
{
    const struct qc_member *self;
    struct qc_members members;

    qc_members(meta->core, &members);
    self = qc_members_find(&members, meta->node->incarnation);
    if (self && strcmp(self->name, meta->node->name) != 0)
        return qf_err_set(err, QF_EINVAL,
                          "%s belongs to node %s, not %s: start it with --ingest-id %s, or give "
                          "this node a folder of its own",
                          meta->disk->label, self->name, meta->node->name, self->name);
    return QF_OK;
}

qf_rc qn_queue_open_meta(struct qn_node *node, struct qf_err *err)
{
    struct qn_queue *meta = queue_new(node, QN_META, 0);
    qf_rc rc =
        node->options.folders.open(node->options.folders.ctx, META_FOLDER, true, &meta->disk, err);

    qn_app_open(meta);
    node->queues[node->queue_count++] = meta;
    if (rc == QF_OK) {
        struct qf_err missing = { 0 };

        rc = open_store(meta, &missing);
        if (rc == QF_ENOTFOUND)
            rc = make_node(meta, err);
        else if (rc != QF_OK)
            (void)qf_err_set(err, rc, "%s", missing.msg);
    }
    if (rc == QF_OK && !meta->store.sequence.cluster && node->options.bootstrap)
        rc = bootstrap(meta, err);
    if (rc != QF_OK)
        return rc;
    node->incarnation = meta->store.sequence.incarnation;
    atomic_store(&node->cluster, meta->store.sequence.cluster);
    if (!meta->store.sequence.cluster)
        return QF_OK;
    rc = qn_queue_begin(meta, err);
    return rc == QF_OK ? check_name(meta, err) : rc;
}

/* That a queue's folder was made is noted in meta's: one that is missing later was lost, and a new
 * one must not vote in its place. */
static void made_name(const struct qn_queue *queue, char out[QL_NAME_SIZE])
{
    (void)snprintf(out, QL_NAME_SIZE, "made-%" PRIu64, queue->id);
}

static bool was_made(const struct qn_queue *queue)
{
    struct ql_disk *disk = qn_meta(queue->node)->disk;
    char name[QL_NAME_SIZE];
    int file;

    made_name(queue, name);
    if (disk->ops->open(disk, name, false, &file, NULL) != QF_OK)
        return false;
    disk->ops->close(disk, file);
    return true;
}

static qf_rc note_made(const struct qn_queue *queue, struct qf_err *err)
{
    struct ql_disk *disk = qn_meta(queue->node)->disk;
    char name[QL_NAME_SIZE];
    int file;
    qf_rc rc;

    made_name(queue, name);
    rc = disk->ops->open(disk, name, true, &file, err);
    if (rc != QF_OK)
        return rc;
    disk->ops->close(disk, file);
    return disk->ops->sync_folder(disk, err);
}

static qf_rc make_queue(struct qn_queue *queue, const struct qc_members *members,
                        struct qf_err *err)
{
    struct qn_node *node = queue->node;
    bool founder = qc_members_find(members, node->incarnation) != NULL;
    const struct ql_sequence_state sequence = { .cluster = atomic_load(&node->cluster),
                                                .incarnation = node->incarnation,
                                                .term = founder };
    qf_rc rc;

    if (was_made(queue))
        return qf_err_set(
            err, QF_ECORRUPT,
            "the folder of queue %s, %s, is missing: put it back; or remove this node "
            "from the cluster, empty all of its data folder and add it as a new node",
            queue->name, queue->disk->label);
    rc = ql_store_create(queue->disk, &sequence, err);
    return rc == QF_OK ? open_store(queue, err) : rc;
}

static qf_rc check_owner(const struct qn_queue *queue, struct qf_err *err)
{
    const struct ql_sequence_state *sequence = &queue->store.sequence;

    if (sequence->cluster == atomic_load(&queue->node->cluster) &&
        sequence->incarnation == queue->node->incarnation)
        return QF_OK;
    return qf_err_set(err, QF_ECORRUPT,
                      "%s belongs to another node or cluster: put this node's own folder there; if "
                      "a 'promfabric queue rescue' was cut off, run it again; or remove this node, "
                      "empty all of its data folder and add it as a new node",
                      queue->disk->label);
}

static qf_rc open_files(struct qn_queue *queue, const struct qn_row *row, struct qf_err *err)
{
    struct qn_node *node = queue->node;
    struct qf_err missing = { 0 };
    qf_rc rc = node->options.folders.open(node->options.folders.ctx, queue->folder, true,
                                          &queue->disk, err);

    if (rc != QF_OK)
        return rc;
    rc = open_store(queue, &missing);
    if (rc == QF_ENOTFOUND)
        rc = make_queue(queue, &row->members, err);
    else if (rc != QF_OK)
        (void)qf_err_set(err, rc, "%s", missing.msg);
    if (rc == QF_OK)
        rc = check_owner(queue, err);
    if (rc == QF_OK && !was_made(queue)) {
        if (qc_members_find(&row->members, node->incarnation))
            rc = write_members(queue, &row->members, err);
        if (rc == QF_OK)
            rc = note_made(queue, err);
    }
    return rc;
}

/* What was begun of a queue that was never made: nobody has been promised anything in its name. One that was made
 * has terms and records, and trying again within the process is no better than a new start. */
static qf_rc undo_making(struct qn_queue *queue, struct qf_err *err)
{
    const struct qn_options *options = &queue->node->options;

    if (was_made(queue))
        return err->rc = QF_EIO;
    if (queue->disk)
        return options->folders.remove(options->folders.ctx, queue->folder, err) == QF_OK
                   ? QF_ENOSPC
                   : QF_EIO;
    return QF_ENOSPC; /* there is no folder yet */
}

qf_rc qn_queue_open(struct qn_node *node, const struct qn_row *row, struct qf_err *err)
{
    struct qn_queue *queue = queue_new(node, row->name, row->id);
    qf_rc rc;

    queue->options = row->options;
    memcpy(queue->tenant, row->tenant, sizeof(queue->tenant));
    qn_app_open(queue);
    rc = open_files(queue, row, err);
    node->queues[node->queue_count++] = queue;
    if (rc == QF_OK)
        rc = qn_queue_begin(queue, err);
    if (rc == QF_ENOSPC)
        rc = undo_making(queue, err);
    if (rc != QF_OK) {
        node->queue_count--;
        queue_free(queue);
    }
    return rc;
}
