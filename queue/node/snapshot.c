/* snapshot.c - snapshots between nodes: bundles (queue/peer/bundle.h) written for peers, fetched from
 * them and put in place. A bundle may be as large as a log: a thread of its own writes it from a view of
 * the log, checks it, and writes the log that takes the place of the present one; the owner only
 * changes over. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/log.h"
#include "queue/node/node_int.h"
#include "queue/peer/bundle.h"

#define FETCHED_FILE "fetched.bundle"
#define SERVED_FILE "served.bundle"
/* A bundle that nobody asks for goes. */
#define SERVED_MS (INT64_C(10) * 60 * 1000)

enum work {
    WORK_WRITE, /* a bundle for a peer */
    WORK_CHECK, /* one that was fetched, and write its log */
    WORK_CLEAR, /* remove the log that was replaced */
    WORK_SAVE   /* a snapshot of this node's own */
};

/* Work for the other thread, and what came of it. */
struct qn_bundling {
    struct qn_node *node;
    struct qn_queue *queue;
    enum work work;
    char path[4096];
    struct ql_store store; /* WRITE: of a view: snapshot and log; CHECK: options, and the new log */
    qf_rc written;         /* CHECK: what the disk said to the new log */
    uint64_t generation;   /* CLEAR */
    uint64_t log_bytes;    /* SAVE: when it was taken */
    struct qf_strbuf bytes;
    uint64_t first;
    struct qp_bundle bundle;
    qf_rc rc;
    struct qf_err err;
};

static void path_of(const struct qn_queue *queue, const char *name, char *out, size_t size)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    const struct qn_folders *folders = &queue->node->options.folders;

    folders->path(folders->ctx, queue->folder, name, &path);
    (void)snprintf(out, size, "%s", qf_strbuf_cstr(&path));
}

static void work(void *arg)
{
    struct qn_bundling *job = arg;
    struct qn_note *note = qf_xcalloc(1, sizeof(*note));

    switch (job->work) {
    case WORK_WRITE:
        job->rc = qp_bundle_write(&job->store, job->first, job->path, &job->err);
        break;
    case WORK_CHECK:
        job->rc = qp_bundle_open(job->path, &job->bundle, &job->err);
        if (job->rc == QF_OK)
            job->written = ql_store_prepare(job->store.disk, &job->store.options,
                                            &job->bundle.snapshot, job->bundle.entries,
                                            job->bundle.count, &job->store.log, &job->err);
        break;
    case WORK_CLEAR:
        qp_bundle_close(&job->bundle); /* large files take their time to go */
        (void)unlink(job->path);
        job->rc = ql_store_clear(job->store.disk, job->generation, &job->err);
        break;
    case WORK_SAVE:
        job->rc = ql_disk_replace(job->store.disk, QL_SNAPSHOT_FILE, job->bytes.data,
                                  job->bytes.len, &job->err);
        break;
    }
    note->kind = QN_NOTE_BUNDLED;
    note->job = job;
    if (!qf_mailbox_send(job->node->box, note, -1))
        free(note); /* cannot be: this thread ends before the mailbox is closed */
}

static void free_job(struct qn_bundling *job)
{
    (void)ql_log_free(job->store.log);
    qf_strbuf_done(&job->bytes);
    qp_bundle_close(&job->bundle);
    free(job);
}

static struct qn_bundling *new_job(struct qn_queue *queue, enum work kind)
{
    struct qn_bundling *job = qf_xcalloc(1, sizeof(*job));

    job->node = queue->node;
    job->queue = queue;
    job->work = kind;
    job->store.disk = queue->disk;
    job->store.options = queue->store.options;
    path_of(queue, kind == WORK_WRITE ? SERVED_FILE : FETCHED_FILE, job->path, sizeof(job->path));
    return job;
}

static bool submit(struct qn_queue *queue, struct qn_bundling *job)
{
    if (qf_pool_submit(queue->node->bundler, work, job)) {
        queue->bundling++;
        return true;
    }
    free_job(job);
    return false;
}

/* --- of this node --- */

static void on_saved(struct qn_queue *queue, struct qn_bundling *job)
{
    queue->saving = false;
    if (job->rc == QF_ENOSPC)
        return; /* the old one stays; the next try comes with the next second */
    if (job->rc != QF_OK) {
        qn_fatal(queue->node, &job->err);
        return;
    }
    ql_store_save_end(&queue->store, &job->bytes);
    queue->snapshot_bytes = job->log_bytes;
    atomic_fetch_add(&queue->node->figures.snapshots, 1);
    qn_step(queue,
            &(struct qc_event){ .kind = QC_EVENT_SAVED, .snapshot = &queue->store.snapshot });
    if (queue->save_again)
        qn_snapshot_if_due(queue, false);
}

bool qn_save(struct qn_queue *queue, const struct ql_snapshot *snapshot)
{
    struct qn_bundling *job = new_job(queue, WORK_SAVE);

    ql_store_save_begin(&queue->store, snapshot, &job->bytes);
    job->log_bytes = ql_log_bytes(queue->store.log);
    if (queue->node->bundler) {
        queue->saving = submit(queue, job);
        return queue->saving;
    }
    /* The node has not started yet. */
    job->rc =
        ql_disk_replace(queue->disk, QL_SNAPSHOT_FILE, job->bytes.data, job->bytes.len, &job->err);
    on_saved(queue, job);
    free_job(job);
    return true;
}

/* --- for peers --- */

void qn_bundle(struct qn_node *node, const char *address, uint64_t index, uint64_t term,
               qn_bundled *done, void *ctx)
{
    struct qn_note *note = qf_xcalloc(1, sizeof(*note));

    note->kind = QN_NOTE_BUNDLE;
    (void)snprintf(note->what, sizeof(note->what), "%s", address);
    note->wanted = (struct qn_wanted){ index, term, done, ctx };
    if (!qf_mailbox_try_send(node->box, note)) {
        done(ctx, QF_EBUSY, NULL);
        free(note);
    }
}

/* Snapshot and log as they are now, for another thread to read. */
static bool take_view(struct qn_queue *queue, struct qn_bundling *job)
{
    const struct ql_snapshot *own = &queue->store.snapshot;
    struct qc_state *state = qf_xcalloc(1, sizeof(*state));
    bool ok = qc_state_decode(own->state, state) == QF_OK;

    job->first = state->first;
    free(state);
    job->first = QF_MAX(job->first, ql_log_first(queue->store.log));
    qf_strbuf_str(&job->bytes, own->members);
    qf_strbuf_str(&job->bytes, own->state);
    qf_strbuf_str(&job->bytes, own->application);
    job->store.snapshot = *own;
    job->store.snapshot.members = (struct qf_str){ job->bytes.data, own->members.len };
    job->store.snapshot.state =
        (struct qf_str){ job->bytes.data + own->members.len, own->state.len };
    job->store.snapshot.application =
        (struct qf_str){ job->bytes.data + own->members.len + own->state.len,
                         own->application.len };
    job->store.log = ok ? ql_log_view(queue->store.log, job->first, own->index, &job->err) : NULL;
    return job->store.log != NULL;
}

static void give_served(struct qn_queue *queue, const struct qn_wanted *wanted)
{
    char path[4096];

    queue->served_ms = qn_now();
    path_of(queue, SERVED_FILE, path, sizeof(path));
    wanted->done(wanted->ctx, QF_OK, path);
}

void qn_on_wanted(struct qn_node *node, const struct qn_note *note)
{
    struct qn_queue *queue = qn_queue_by_address(node, note->what);
    const struct qn_wanted *wanted = &note->wanted;
    struct qn_bundling *job;

    if (queue && queue->served_index == wanted->index && queue->served_term == wanted->term) {
        give_served(queue, wanted);
        return;
    }
    if (!queue || !queue->core || queue->store.snapshot.index != wanted->index ||
        queue->store.snapshot.term != wanted->term) {
        wanted->done(wanted->ctx, QF_ENOTFOUND, NULL);
        return;
    }
    job = queue->wanted.done ? NULL : new_job(queue, WORK_WRITE);
    if (job && !take_view(queue, job)) {
        free_job(job);
        job = NULL;
    }
    if (!job || !submit(queue, job)) {
        wanted->done(wanted->ctx, QF_EBUSY, NULL);
        return;
    }
    queue->served_index = 0;
    queue->wanted = *wanted;
}

static void on_written(struct qn_queue *queue, struct qn_bundling *job)
{
    struct qn_wanted wanted = queue->wanted;

    queue->wanted = (struct qn_wanted){ 0 };
    if (job->rc != QF_OK) {
        QF_LOG_WARN("a snapshot could not be written for a peer", QF_KV_STR("queue", queue->name),
                    QF_KV_STR("reason", job->err.msg));
        wanted.done(wanted.ctx, job->rc, NULL);
        return;
    }
    queue->served_index = job->store.snapshot.index;
    queue->served_term = job->store.snapshot.term;
    give_served(queue, &wanted);
}

void qn_served_expire(struct qn_queue *queue, int64_t now)
{
    char path[4096];

    if (!queue->served_index || now < queue->served_ms + SERVED_MS)
        return;
    queue->served_index = 0;
    path_of(queue, SERVED_FILE, path, sizeof(path));
    (void)unlink(path);
}

/* --- from peers --- */

struct fetch {
    struct qn_node *node;
    uint64_t queue_id;
};

static void fetched(void *arg, qf_rc rc, struct qf_str bytes)
{
    struct fetch *fetch = arg;
    struct qn_note *note = qf_xcalloc(1, sizeof(*note));

    note->kind = QN_NOTE_FETCHED;
    note->queue_id = fetch->queue_id;
    note->rc = rc;
    note->bytes = qf_xmemdup0(bytes.data, bytes.len);
    if (!qf_mailbox_send(fetch->node->box, note, -1)) {
        free(note->bytes);
        free(note);
    }
    free(fetch);
}

/* It came to nothing. Not from within a step. */
void qn_fetch_failed(struct qn_queue *queue)
{
    queue->fetching = false;
    qn_step(queue, &(struct qc_event){ .kind = QC_EVENT_FETCHED });
}

static bool begin_fetch(struct qn_queue *queue, const struct qc_message *message)
{
    const struct qn_transport *transport = &queue->node->options.transport;
    const char *from = qn_name_of(queue, message->from);
    struct fetch *fetch = qf_xcalloc(1, sizeof(*fetch));
    char path[4096];

    *fetch = (struct fetch){ queue->node, queue->id };
    path_of(queue, FETCHED_FILE, path, sizeof(path));
    if (from && transport->fetch &&
        transport->fetch(transport->ctx, from, queue->address, message->index, message->index_term,
                         path, fetched, fetch) == QF_OK) {
        queue->fetching = true;
        return true;
    }
    free(fetch);
    return false;
}

/* While another is under way nothing is begun: its end does not fit what the core now wants, which
 * the leader then offers again. */
void qn_fetch(struct qn_queue *queue, const struct qc_message *message)
{
    if (queue->clearing || (!queue->fetching && !begin_fetch(queue, message)))
        queue->fetch_failed = true; /* told when the step is over */
}

void qn_on_fetched(struct qn_node *node, const struct qn_note *note)
{
    struct qn_queue *queue = qn_queue_by_id(node, note->queue_id);

    if (!queue || atomic_load(&node->dead))
        return;
    if (note->rc != QF_OK) {
        QF_LOG_WARN("a snapshot could not be fetched, will be tried again",
                    QF_KV_STR("queue", queue->name), QF_KV_STR("reason", note->bytes));
        qn_fetch_failed(queue);
        return;
    }
    if (!submit(queue, new_job(queue, WORK_CHECK)))
        qn_fetch_failed(queue);
}

static void check_failed(struct qn_queue *queue, const struct qn_bundling *job)
{
    QF_LOG_WARN(job->rc != QF_OK ? "a fetched snapshot is damaged, will be fetched again"
                                 : "there is no room for a fetched snapshot, will be tried again",
                QF_KV_STR("queue", queue->name), QF_KV_STR("reason", job->err.msg));
    (void)unlink(job->path);
    qn_fetch_failed(queue);
}

/* What was fetched, and the files of a log that does not count, are of no use: let the other thread
 * remove them. */
static void clear_later(struct qn_queue *queue, struct qn_bundling *job, uint64_t generation)
{
    job->work = WORK_CLEAR;
    job->generation = generation;
    queue->clearing = submit(queue, job); /* else the next fetch, and opening, remove them */
}

/* True: @job goes on with other work. */
static bool on_checked(struct qn_queue *queue, struct qn_bundling *job)
{
    uint64_t present = queue->store.snapshot.generation;

    queue->fetching = false;
    if (job->rc == QF_OK && job->written != QF_OK && job->written != QF_ENOSPC) {
        qn_fatal(queue->node, &job->err);
        return false;
    }
    if (job->rc != QF_OK || job->written != QF_OK) {
        check_failed(queue, job);
        return false;
    }
    queue->bundle = &job->bundle;
    queue->bundle_log = job->store.log;
    job->store.log = NULL;
    qn_step(queue,
            &(struct qc_event){ .kind = QC_EVENT_FETCHED, .snapshot = &job->bundle.snapshot });
    queue->bundle = NULL;
    if (queue->bundle_log) { /* not wanted any more */
        queue->bundle_log = ql_log_free(queue->bundle_log);
        present++;
    }
    clear_later(queue, job, present);
    return true;
}

static qf_rc change_over(struct qn_queue *queue, struct qf_err *err)
{
    qf_rc rc;

    if (!queue->bundle_log)
        return qf_err_set(err, QF_EINTERNAL, "a snapshot shall be installed that is not there");
    rc = ql_store_switch(&queue->store, &queue->bundle->snapshot, queue->bundle_log, err);
    if (rc != QF_OK)
        return rc;
    queue->bundle_log = NULL;
    return qn_app_restore(queue, err);
}

bool qn_install(struct qn_queue *queue)
{
    struct qf_err err = { 0 };

    qn_sync_wait(queue);
    qn_forget_held(queue);
    queue->drop_below = 0;
    if (change_over(queue, &err) != QF_OK) {
        qn_fatal(queue->node, &err);
        return false;
    }
    atomic_fetch_add(&queue->node->figures.installs, 1);
    queue->snapshot_bytes = ql_log_bytes(queue->store.log);
    if (queue == qn_meta(queue->node))
        qn_meta_forget(queue->node);
    QF_LOG_INFO("a snapshot of a peer took the place of the log", QF_KV_STR("queue", queue->name),
                QF_KV_U64("index", queue->store.snapshot.index));
    return true;
}

/* The queue is about to go, or the node: nothing comes of it. */
static void give_up_job(struct qn_queue *queue, const struct qn_bundling *job)
{
    if (job->work == WORK_WRITE)
        queue->wanted.done(queue->wanted.ctx, QF_ENOTFOUND, NULL);
}

void qn_on_bundled(struct qn_node *node, struct qn_bundling *job)
{
    struct qn_queue *queue = job->queue;
    bool keep = false;

    queue->bundling--;
    queue->clearing &= job->work != WORK_CLEAR;
    if (queue->closing || atomic_load(&node->dead))
        give_up_job(queue, job);
    else if (job->work == WORK_WRITE)
        on_written(queue, job);
    else if (job->work == WORK_CHECK)
        keep = on_checked(queue, job);
    else if (job->work == WORK_SAVE)
        on_saved(queue, job);
    else if (job->rc != QF_OK)
        QF_LOG_WARN("files of a log that was replaced stay until the next start",
                    QF_KV_STR("queue", queue->name), QF_KV_STR("reason", job->err.msg));
    if (!keep)
        free_job(job);
    if (queue->closing)
        qn_queue_close_if_idle(queue);
}
