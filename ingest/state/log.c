/* log.c - the queue of state maps: asked by threads that wait. */
#include <stdlib.h>

#include "base/sys/clock.h"
#include "ingest/state/state_int.h"
#include "queue/node/blocked.h"

/* What all nodes have done goes after so long; a node that was away longer than the third one gets copies of maps instead. */
#define RETENTION_MS 600000
#define RETENTION_BYTES (UINT64_C(16) << 30)
#define CONSUMER_EXPIRY_MS (INT64_C(86400) * 1000)
#define TIMEOUT_MS 10000
#define AGAIN_MS 100
/* Whose queue it is: nobody's that a key could name, as the name is the system's. */
#define TENANT "promfabric"

qf_rc in_state_ask(struct in_state *state, struct qn_ask **ask, struct qf_err *err)
{
    const struct qn_answer *answer;
    struct qn_blocked blocked;
    bool stopping, asked = false;

    (*ask)->operates = true;
    qn_blocked_begin(&blocked, *ask);
    qf_lock_take(state->lock);
    stopping = state->stopping;
    if (!stopping)
        asked = qn_ask(state->node, *ask);
    qf_lock_drop(state->lock);
    *ask = qn_blocked_end(&blocked, *ask, asked);
    answer = &(*ask)->answer;
    if (stopping)
        return qf_err_set(err, QF_EUNAVAILABLE, "this node is stopping: ask another one");
    if (!asked)
        return qf_err_set(err, QF_EBUSY, "too many requests are under way: try again");
    return answer->err.rc == QF_OK ? QF_OK : qf_err_set(err, answer->err.rc, "%s", answer->err.msg);
}

static qf_rc create_queue(struct in_state *state, struct qf_err *err)
{
    struct qn_ask *ask = qn_ask_new(QN_CREATE, QF_STR(QN_STATE));
    qf_rc rc;

    memcpy(ask->tenant, TENANT, sizeof(TENANT));
    ask->options = (struct qn_queue_options){ .level = QC_LEVEL_QUORUM,
                                              .retention_ms = RETENTION_MS,
                                              .retention_bytes = RETENTION_BYTES,
                                              .consumer_expiry_ms = CONSUMER_EXPIRY_MS };
    ask->timeout_ms = TIMEOUT_MS;
    rc = in_state_ask(state, &ask, err);
    (void)qn_ask_free(ask);
    return rc;
}

static qf_rc offer_once(struct in_state *state, const struct sm_entry *entries, size_t count,
                        uint64_t *ret_last, bool *ret_unknown, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    struct qn_ask *ask = qn_ask_new(QN_OFFER, QF_STR(QN_STATE));
    qf_rc rc;

    for (size_t i = 0; i < count; i++) {
        qf_strbuf_reset(&bytes);
        sm_entry_encode(&bytes, &entries[i]);
        qn_ask_add(ask, qf_strbuf_view(&bytes));
    }
    ask->level_set = true;
    ask->level = QC_LEVEL_QUORUM;
    ask->timeout_ms = TIMEOUT_MS;
    rc = in_state_ask(state, &ask, err);
    *ret_last = ask->answer.last;
    *ret_unknown |= ask->answer.unknown;
    (void)qn_ask_free(ask);
    return rc;
}

qf_rc in_state_offer(struct in_state *state, const struct sm_entry *entries, size_t count,
                     uint64_t *ret_last, bool *ret_unknown, struct qf_err *err)
{
    int64_t deadline = qf_clock_mono_ms() + TIMEOUT_MS;
    bool created = false;
    qf_rc rc;

    *ret_unknown = false;
    for (;;) {
        if (err)
            *err = (struct qf_err){ 0 };
        rc = offer_once(state, entries, count, ret_last, ret_unknown, err);
        if (rc != QF_ENOTFOUND || qf_clock_mono_ms() >= deadline)
            return rc;
        if (!created)
            rc = create_queue(state, err);
        if (rc != QF_OK && rc != QF_ENOTFOUND)
            return rc;
        created = true;
        if (!in_state_pause(state, AGAIN_MS)) /* this node may hear of it a moment later */
            return qf_err_set(err, QF_EUNAVAILABLE, "this node is stopping: ask another one");
    }
}

bool in_state_pause(struct in_state *state, int64_t ms)
{
    int64_t deadline = qf_clock_mono_ms() + ms, now;
    bool stopping;

    qf_lock_take(state->lock);
    while (!state->stopping && (now = qf_clock_mono_ms()) < deadline)
        (void)qf_lock_wait(state->lock, deadline - now);
    stopping = state->stopping;
    qf_lock_drop(state->lock);
    return !stopping;
}
