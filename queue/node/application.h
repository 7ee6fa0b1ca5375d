/* application.h - what the records of a queue amount to, for the role that keeps it.
 *
 * A queue may have an application. It is given every applied record in the order of the log; what it
 * makes of them is its state, equal on every node that applied the same records. Everything is
 * called on the node's thread: nothing here may wait, and what takes long is done elsewhere.
 *
 *     start, or a snapshot of a peer    restore(state at index), then apply(again) for the records
 *                                       from needed_from() to index: those the state already counts,
 *                                       for whoever keeps more of them than the state; then
 *     every applied record              apply(), once, in order
 *     a snapshot is taken               save(): its bytes travel in the snapshot
 *     housekeeping of a leader          needed_from(): what is before it may be trimmed
 *
 * A leader is asked to write (QN_WRITE): propose() turns the bytes of the ask into a record, which is
 * appended; when it was applied, or came to nothing, ended() says what the asker hears. In between
 * another leader may have taken over: lead() says when this node begins and ends to serve. Records stand
 * in the log in the order of their propose(). All that are proposed in one round of the node's thread
 * are written together; one that does not get into the log takes those behind it with it, and their
 * ended() come, the last one first, before the next propose().
 *
 * A question (QN_QUESTION) is answered by the leader after it has confirmed itself: everything that
 * was acknowledged before the question was asked is applied. QN_LOOK asks this node as it is. */
#ifndef QUEUE_NODE_APPLICATION_H
#define QUEUE_NODE_APPLICATION_H

#include "queue/node/ask.h"

/* What propose() decided. */
enum qn_proposal {
    QN_PROPOSED, /* the buffer has a record: append it */
    QN_ANSWERED, /* nothing is appended: the ask's answer, an error or not, is complete */
    QN_DEFERRED  /* ask again when more was applied: it depends on what is under way */
};

struct qn_application {
    void *ctx;
    /* Begin anew with the @state that save() gave at @index. Empty: with nothing; all that the log
     * still has is applied then. QF_ECORRUPT, QF_EUNSUPPORTED: the node must not go on. */
    qf_rc (*restore)(void *ctx, uint64_t index, struct qf_str state, struct qf_err *err);
    /* @again: the restored state counts it already. */
    void (*apply)(void *ctx, const struct qn_record *record, bool again);
    void (*save)(void *ctx, struct qf_strbuf *buf); /* never nothing, but for meta's */
    uint64_t (*needed_from)(void *ctx);
    /* This node serves as leader of @term, with all that was before applied; 0: not any more. */
    void (*lead)(void *ctx, uint64_t term);
    /* @ask->records has what is to be written; *@ret_pending is the application's, until ended(). */
    enum qn_proposal (*propose)(void *ctx, struct qn_ask *ask, struct qf_strbuf *record,
                                void **ret_pending);
    /* The end of what was proposed: applied at @index (QF_OK), or not: QF_EUNAVAILABLE may mean that
     * nobody knows. @answer is NULL if nobody waits any more; an error is in it already. */
    void (*ended)(void *ctx, void *pending, qf_rc rc, uint64_t index, struct qn_answer *answer);
    /* Answer the question in @ask->records into its answer. @index: confirmed up to there; 0: not. */
    void (*answer)(void *ctx, struct qn_ask *ask, uint64_t index);
    /* Once a second. Records that the application itself wants are proposed with qn_ask(). */
    void (*tick)(void *ctx);
    void (*close)(void *ctx); /* pending ones are forgotten without ended() */
};

/* For answer(), on the node's thread: who is in the queue that is asked about, and the index of the
 * change that made it so, which only grows. */
void qn_ask_members(const struct qn_ask *ask, struct qc_members *ret_members, uint64_t *ret_index);

/* The application of a queue, when it is opened. False: it has none. That of `meta` has the id 0; as long as it saves
 * nothing, meta's snapshots are those of a node that has none, and from then on older releases refuse them. */
struct qn_applications {
    void *ctx;
    bool (*open)(void *ctx, const char *queue, uint64_t id, struct qn_application *ret_application);
};

#endif
