/* app.c - the application of a queue: fed with what was applied, asked when this node leads. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "queue/log/bytes.h"
#include "queue/node/ask_int.h"

/* Records that wait for the end of a round are together about so long at most. */
#define ROUND_BYTES ((size_t)4 << 20)

void qn_app_open(struct qn_queue *queue)
{
    const struct qn_applications *applications = &queue->node->options.applications;

    queue->has_app = applications->open &&
                     applications->open(applications->ctx, queue->name, queue->id, &queue->app);
}

void qn_app_close(struct qn_queue *queue)
{
    if (queue->has_app && queue->app.close)
        queue->app.close(queue->app.ctx);
    queue->has_app = false;
    QF_VEC_DONE(&queue->writes);
    qf_strbuf_done(&queue->write_bytes);
}

/* Give the records of the log from @from to @to. */
static qf_rc feed(struct qn_queue *queue, uint64_t from, uint64_t to, bool again,
                  struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;

    for (uint64_t i = from; i <= to; i++) {
        struct qn_record record;
        struct ql_entry entry;
        qf_rc rc;

        qf_strbuf_reset(&buf);
        rc = ql_log_recent(queue->store.log, i, &entry)
                 ? QF_OK
                 : ql_log_read(queue->store.log, i, &buf, &entry, err);
        if (rc != QF_OK)
            return qf_err_prefix(err, rc, "queue %s", queue->name);
        if (qn_entry_record(&entry, &record))
            queue->app.apply(queue->app.ctx, &record, again);
    }
    return QF_OK;
}

qf_rc qn_app_restore(struct qn_queue *queue, struct qf_err *err)
{
    const struct ql_snapshot *snapshot = &queue->store.snapshot;
    uint64_t first = ql_log_first(queue->store.log), from;
    qf_rc rc;

    if (!queue->has_app)
        return QF_OK;
    if (!snapshot->application.len) { /* before the queue had one, or no snapshot yet */
        queue->app_index = first - 1;
        return queue->app.restore(queue->app.ctx, queue->app_index, QF_STR(""), err);
    }
    rc = queue->app.restore(queue->app.ctx, snapshot->index, snapshot->application, err);
    if (rc != QF_OK)
        return qf_err_prefix(err, rc, "%s", queue->disk->label);
    queue->app_index = snapshot->index;
    from = queue->app.needed_from(queue->app.ctx);
    if (from <= snapshot->index && from < first)
        return qf_err_set(err, QF_ECORRUPT,
                          "%s: the log begins at %" PRIu64 ", but records from %" PRIu64
                          " on are needed: remove this node from the cluster, empty the folder and "
                          "add it as a new node",
                          queue->disk->label, first, from);
    return feed(queue, from, snapshot->index, true, err);
}

void qn_app_feed(struct qn_queue *queue)
{
    uint64_t applied = qc_state(queue->core)->applied, from = queue->app_index + 1;
    struct qf_err err = { 0 };

    if (!queue->has_app || applied < from)
        return;
    queue->app_index = applied;
    if (feed(queue, from, applied, false, &err) != QF_OK)
        qn_fatal(queue->node, &err);
}

/* What was proposed and not given to the core comes to nothing, the last one first. */
static void fail_writes(struct qn_queue *queue)
{
    struct qn_write *writes = queue->writes.items;
    size_t count = queue->writes.count;

    queue->writes.items = NULL;
    queue->writes.count = queue->writes.capacity = 0;
    queue->write_bytes.len = 0;
    for (size_t i = count; i > 0; i--)
        qn_ask_ended(queue,
                     &(struct qn_end){ .part = writes[i - 1].ask->parts, .rc = QF_EUNAVAILABLE });
    free(writes);
}

void qn_app_lead(struct qn_queue *queue)
{
    uint64_t term = queue->has_app && qc_serves(queue->core) ? qc_term(queue->core) : 0;

    if (!queue->has_app || term == queue->app_term)
        return;
    fail_writes(queue);          /* proposed in another term: the core has not seen them */
    if (term && queue->app_term) /* another term: what was before has ended */
        queue->app.lead(queue->app.ctx, 0);
    queue->app_term = term;
    queue->app.lead(queue->app.ctx, term);
}

void qn_app_tick(struct qn_queue *queue)
{
    if (queue->has_app && queue->app.tick)
        queue->app.tick(queue->app.ctx);
}

/* --- asks --- */

static bool has_app(const struct qn_queue *queue, struct qn_ask *ask)
{
    if (queue->has_app)
        return true;
    qn_ask_fail(ask, QF_EINVAL, "this queue has no application");
    return false;
}

static void defer(struct qn_queue *queue, struct qn_ask *ask)
{
    if (queue->deferred_count >= QN_TAKERS_MAX) {
        qn_ask_fail(ask, QF_EBUSY, "too many requests wait for others: try again");
        return;
    }
    ask->waiting = true;
    ask->next = NULL;
    *queue->deferred_end = ask;
    queue->deferred_end = &ask->next;
    queue->deferred_count++;
}

/* The request of a WRITE: the ask's one part, until qn_ask_ended(). */
static struct qn_part *part_of(struct qn_ask *ask)
{
    if (!ask->parts)
        ask->parts = qf_xcalloc(1, sizeof(*ask->parts));
    ask->parts->ask = ask;
    ask->parts_open++;
    return ask->parts;
}

void qn_write_begin(struct qn_queue *queue, struct qn_ask *ask)
{
    static const char header[QC_OFFER_HEADER + QN_ENVELOPE] = { QC_OFFER };
    size_t at = queue->write_bytes.len;

    if (!has_app(queue, ask) || !qn_log_has_room(queue, ask))
        return;
    qf_strbuf_add(&queue->write_bytes, header, sizeof(header));
    switch (queue->app.propose(queue->app.ctx, ask, &queue->write_bytes, &ask->pending)) {
    case QN_PROPOSED:
        (void)part_of(ask);
        QF_VEC_PUSH(&queue->writes, (struct qn_write){ ask, at, queue->write_bytes.len - at });
        if (queue->write_bytes.len >= ROUND_BYTES || queue->writes.count == QC_COMMANDS_MAX)
            qn_writes_flush(queue);
        return;
    case QN_ANSWERED:
        queue->write_bytes.len = at;
        qn_ask_answer(ask);
        return;
    case QN_DEFERRED:
        queue->write_bytes.len = at;
        defer(queue, ask);
        return;
    }
}

void qn_writes_flush(struct qn_queue *queue)
{
    struct qf_strbuf bytes = queue->write_bytes;
    struct qn_write *writes = queue->writes.items;
    size_t count = queue->writes.count;
    struct qc_request *requests;
    int64_t now;

    if (!count)
        return;
    /* Ends of these requests may propose others: they begin with an empty round. */
    queue->write_bytes = (struct qf_strbuf)QF_STRBUF_INIT;
    queue->writes.items = NULL;
    queue->writes.count = queue->writes.capacity = 0;
    requests = qf_xcalloc(count, sizeof(*requests));
    now = qn_record_time(queue);
    for (size_t i = 0; i < count; i++) {
        ql_put((unsigned char *)bytes.data + writes[i].at + QC_OFFER_HEADER, (uint64_t)now,
               QN_ENVELOPE);
        requests[i] = (struct qc_request){ .request = (uint64_t)(uintptr_t)writes[i].ask->parts,
                                           .data = { bytes.data + writes[i].at, writes[i].len },
                                           .level = QC_LEVEL_QUORUM };
    }
    /* What one of them says may stand on those before it. */
    qn_step(queue, &(struct qc_event){ .kind = QC_EVENT_COMMANDS,
                                       .commands = requests,
                                       .count = (uint32_t)count,
                                       .chained = true });
    free(requests);
    free(writes);
    qf_strbuf_done(&bytes);
}

static const char *refusal(qf_rc rc)
{
    switch (rc) {
    case QF_ENOSPC:
        return "no space: a majority of the nodes has less than the reserve left on its disk";
    case QF_EBUSY:
        return "too many requests are under way: try again";
    case QF_ELIMIT:
        return "the request is too large: split it";
    case QF_EUNAVAILABLE:
        return "leadership was lost on the way: it may have been written all the same, try again";
    default:
        return qf_rc_text(rc);
    }
}

void qn_write_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end)
{
    struct qn_answer *answer = ask->answered ? NULL : &ask->answer;

    if (answer && end->rc != QF_OK) {
        answer->unknown = end->rc == QF_EUNAVAILABLE;
        (void)qf_err_set(&answer->err, end->rc, "%s", refusal(end->rc));
    }
    queue->app.ended(queue->app.ctx, ask->pending, end->rc, end->index, answer);
    if (answer)
        qn_ask_answer(ask);
}

/* Each is proposed again, or waits again behind those that it finds under way. */
void qn_app_retry(struct qn_queue *queue, const char *failure)
{
    struct qn_ask *ask = queue->deferred;

    queue->deferred = NULL;
    queue->deferred_end = &queue->deferred;
    queue->deferred_count = 0;
    while (ask) {
        struct qn_ask *next = ask->next;

        ask->next = NULL;
        ask->waiting = false;
        if (ask->answered)
            (void)qn_ask_free(ask);
        else if (failure || !qc_serves(queue->core))
            qn_ask_fail(ask, QF_EUNAVAILABLE,
                        failure ? failure : "the leader has changed: try again");
        else
            qn_write_begin(queue, ask);
        ask = next;
    }
}

void qn_ask_members(const struct qn_ask *ask, struct qc_members *ret_members, uint64_t *ret_index)
{
    const struct qn_queue *queue = qn_queue_find(ask->node, ask->queue);
    const struct qc_state *state = qc_state(queue->core);

    *ret_members = state->members;
    *ret_index = state->change_index;
}

void qn_question_ended(struct qn_queue *queue, struct qn_ask *ask, const struct qn_end *end)
{
    if (end->rc != QF_OK) {
        qn_ask_fail(ask, end->rc, "the leader could not confirm itself: try again");
    } else if (has_app(queue, ask)) {
        queue->app.answer(queue->app.ctx, ask, end->index);
        qn_ask_answer(ask);
    }
}

void qn_look(struct qn_queue *queue, struct qn_ask *ask)
{
    if (has_app(queue, ask)) {
        queue->app.answer(queue->app.ctx, ask, 0);
        qn_ask_answer(ask);
    }
}
