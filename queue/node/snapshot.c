/* snapshot.c - snapshots between nodes: bundles (queue/peer/bundle.h) written for peers, fetched from
 * them and put in place. A bundle may be as large as a log: it is written and checked on a thread of
 * its own, from a view of the log. */
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

/* Work for the other thread, and what came of it. */
struct qn_bundling {
    struct qn_node *node;
    struct qn_queue *queue;
    bool fetched; /* check one that was fetched; else write one */
    char path[4096];
    struct ql_store store; /* of a view: snapshot and log */
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

    if (job->fetched)
        job->rc = qp_bundle_open(job->path, &job->bundle, &job->err);
    else
        job->rc = qp_bundle_write(&job->store, job->first, job->path, &job->err);
    note->kind = QN_NOTE_BUNDLED;
    note->job = job;
    if (!qf_mailbox_send(job->node->box, note, -1))
        free(note); /* cannot be: this thread ends before the mailbox is closed */
}

static void free_job(struct qn_bundling *job)
{
    (void)ql_log_free(job->store.log);
    qf_strbuf_done(&job->bytes);
    if (job->fetched && job->rc == QF_OK)
        qp_bundle_close(&job->bundle);
    free(job);
}

static struct qn_bundling *new_job(struct qn_queue *queue, const char *file)
{
    struct qn_bundling *job = qf_xcalloc(1, sizeof(*job));

    job->node = queue->node;
    job->queue = queue;
    path_of(queue, file, job->path, sizeof(job->path));
    return job;
}

static bool submit(struct qn_queue *queue, struct qn_bundling *job)
{
    if (qf_pool_submit(queue->node->bundler, work, job)) {
        queue->bundling++;
        return true;
    }
    job->fetched = false;
    free_job(job);
    return false;
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
    job->store.disk = queue->disk;
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
    job = queue->wanted.done ? NULL : new_job(queue, SERVED_FILE);
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
    if (!queue->fetching && !begin_fetch(queue, message))
        queue->fetch_failed = true; /* told when the step is over */
}

void qn_on_fetched(struct qn_node *node, const struct qn_note *note)
{
    struct qn_queue *queue = qn_queue_by_id(node, note->queue_id);
    struct qn_bundling *job;

    if (!queue || atomic_load(&node->dead))
        return;
    if (note->rc != QF_OK) {
        QF_LOG_WARN("a snapshot could not be fetched, will be tried again",
                    QF_KV_STR("queue", queue->name), QF_KV_STR("reason", note->bytes));
        qn_fetch_failed(queue);
        return;
    }
    job = new_job(queue, FETCHED_FILE);
    job->fetched = true;
    if (!submit(queue, job))
        qn_fetch_failed(queue);
}

static void on_checked(struct qn_queue *queue, struct qn_bundling *job)
{
    queue->fetching = false;
    if (job->rc != QF_OK) {
        QF_LOG_WARN("a fetched snapshot is damaged, will be fetched again",
                    QF_KV_STR("queue", queue->name), QF_KV_STR("reason", job->err.msg));
        (void)unlink(job->path);
        qn_fetch_failed(queue);
        return;
    }
    queue->bundle = &job->bundle;
    qn_step(queue,
            &(struct qc_event){ .kind = QC_EVENT_FETCHED, .snapshot = &job->bundle.snapshot });
    queue->bundle = NULL;
    (void)unlink(job->path);
}

bool qn_install(struct qn_queue *queue)
{
    const struct qp_bundle *bundle = queue->bundle;
    struct qf_err err = { 0 };

    qn_sync_wait(queue);
    qn_forget_held(queue);
    queue->drop_below = 0;
    if (!bundle) {
        (void)qf_err_set(&err, QF_EINTERNAL, "a snapshot shall be installed that is not there");
    } else if (ql_store_install(&queue->store, &bundle->snapshot, bundle->entries, bundle->count,
                                &err) == QF_OK &&
               qn_app_restore(queue, &err) == QF_OK) {
        atomic_fetch_add(&queue->node->figures.installs, 1);
        queue->snapshot_bytes = ql_log_bytes(queue->store.log);
        if (queue == qn_meta(queue->node))
            qn_meta_forget(queue->node);
        QF_LOG_INFO("a snapshot of a peer took the place of the log",
                    QF_KV_STR("queue", queue->name), QF_KV_U64("index", bundle->snapshot.index));
        return true;
    }
    qn_fatal(queue->node, &err);
    return false;
}

void qn_on_bundled(struct qn_node *node, struct qn_bundling *job)
{
    struct qn_queue *queue = job->queue;

    queue->bundling--;
    if (queue->closing || atomic_load(&node->dead)) {
        if (!job->fetched)
            queue->wanted.done(queue->wanted.ctx, QF_ENOTFOUND, NULL);
    } else if (job->fetched) {
        on_checked(queue, job);
    } else {
        on_written(queue, job);
    }
    free_job(job);
    if (queue->closing)
        qn_queue_close_if_idle(queue);
}
