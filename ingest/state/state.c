/* state.c - the thread that does what the queue of state maps says, and who waits for it. */
#include "ingest/state/state.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "ingest/state/state_int.h"

#define WAIT_MS 5000  /* for entries, in one request */
#define AGAIN_MS 1000 /* after a failure */
#define FIRST_MS 50   /* likewise, as long as it knows nothing */
#define TELL_MS 1000  /* between two tellings of this node's position */
#define POLL_MAX 256

struct in_state *in_state_new(const struct in_state_options *options)
{
    struct in_state *state = qf_xcalloc(1, sizeof(*state));

    state->data = qf_xstrdup(options->data);
    state->name = qf_xstrdup(options->name);
    state->upkeep_ms = options->upkeep_ms;
    state->all_know = options->all_know;
    state->ctx = options->ctx;
    state->started_ms = qf_clock_wall_ms();
    atomic_store(&state->changes, 1);
    state->work = qf_lock_new();
    state->copy = qf_lock_new();
    state->lock = qf_lock_new();
    return state;
}

void in_state_halt(struct in_state *state)
{
    if (!state)
        return;
    qf_lock_take(state->lock);
    state->stopping = true;
    qf_lock_wake_all(state->lock);
    qf_lock_drop(state->lock);
}

struct in_state *in_state_free(struct in_state *state)
{
    if (!state)
        return NULL;
    in_state_halt(state);
    (void)qf_thread_join(state->thread);
    (void)qf_thread_join(state->upkeep);
    (void)sm_owner_close(state->owner);
    in_state_forget_wanted(state);
    (void)qf_lock_free(state->work);
    (void)qf_lock_free(state->copy);
    (void)qf_lock_free(state->lock);
    free(state->data);
    free(state->name);
    free(state);
    return NULL;
}

/* --- who waits --- */

static void note(struct in_state *state, uint64_t position, uint64_t upload,
                 const struct sm_verdict *verdict)
{
    qf_lock_take(state->lock);
    state->verdicts[state->verdict_next++ % VERDICTS_KEPT] =
        (struct in_verdict){ position, upload, *verdict };
    qf_lock_drop(state->lock);
}

static void note_applied(struct in_state *state)
{
    qf_lock_take(state->lock);
    state->applied = sm_owner_applied(state->owner);
    qf_lock_wake_all(state->lock);
    qf_lock_drop(state->lock);
}

qf_rc in_state_wait(struct in_state *state, uint64_t position, int64_t timeout_ms,
                    struct sm_verdict *ret_verdict, struct qf_err *err)
{
    int64_t deadline = qf_clock_mono_ms() + timeout_ms, now;
    bool found = false;

    qf_lock_take(state->lock);
    while (!state->stopping && state->applied < position && (now = qf_clock_mono_ms()) < deadline)
        (void)qf_lock_wait(state->lock, deadline - now);
    for (size_t i = 0; i < VERDICTS_KEPT && state->applied >= position && !found; i++) {
        found = state->verdicts[i].position == position;
        if (found)
            *ret_verdict = state->verdicts[i].verdict;
    }
    qf_lock_drop(state->lock);
    return found ? QF_OK
                 : qf_err_set(err, QF_EUNAVAILABLE,
                              "it was written, but this node has not done it yet: look again");
}

qf_rc in_state_reach(struct in_state *state, uint64_t position, int64_t timeout_ms,
                     struct qf_err *err)
{
    int64_t deadline = qf_clock_mono_ms() + timeout_ms, now;
    bool done;

    qf_lock_take(state->lock);
    while (!state->stopping && state->applied < position && (now = qf_clock_mono_ms()) < deadline)
        (void)qf_lock_wait(state->lock, deadline - now);
    done = state->applied >= position;
    qf_lock_drop(state->lock);
    return done ? QF_OK
                : qf_err_set(err, QF_EUNAVAILABLE,
                             "this node has not done all of the log of state maps yet: try again");
}

bool in_state_loaded(struct in_state *state, uint64_t upload, struct sm_verdict *ret_verdict,
                     uint64_t *ret_position)
{
    bool found = false;

    qf_lock_take(state->lock);
    for (size_t i = 0; i < VERDICTS_KEPT && !found; i++) {
        const struct in_verdict *verdict = &state->verdicts[i];

        found = verdict->upload == upload && verdict->verdict.err.rc != QF_EUNAVAILABLE;
        if (found) {
            *ret_verdict = verdict->verdict;
            *ret_position = verdict->position;
        }
    }
    qf_lock_drop(state->lock);
    return found;
}

qf_rc in_state_owner(struct in_state *state, struct sm_owner **ret_owner, struct qf_err *err)
{
    qf_lock_take(state->lock);
    *ret_owner = state->stopping ? NULL : state->owner;
    qf_lock_drop(state->lock);
    return *ret_owner ? QF_OK
                      : qf_err_set(err, QF_EUNAVAILABLE,
                                   "this node has no maps (yet, or any more): ask another one");
}

/* --- the queue --- */

static void complain(struct in_state *state, const struct qf_err *err)
{
    if (!state->was_stuck)
        QF_LOG_ERROR("state maps cannot go on", QF_KV_STR("error", err->msg),
                     QF_KV_U64("position", sm_owner_next(state->owner)));
    state->was_stuck = true;
    atomic_store(&state->stuck, true);
}

static void go_on(struct in_state *state)
{
    if (state->was_stuck)
        QF_LOG_INFO("state maps go on");
    state->was_stuck = false;
    atomic_store(&state->stuck, false);
}

static qf_rc apply_record(struct in_state *state, const struct qn_record *record,
                          struct qf_err *err)
{
    struct sm_verdict verdict;
    struct sm_entry entry = { 0 };
    qf_rc rc =
        sm_owner_apply(state->owner, record->offset, record->time_ms, record->data, &verdict, err);

    if (rc != QF_OK)
        return rc;
    if (sm_entry_decode(record->data, &entry) == QF_OK && entry.kind == SM_ENTRY_PIECE)
        return QF_OK;
    atomic_fetch_add(&state->refused, verdict.err.rc != QF_OK);
    atomic_fetch_add(&state->merges, verdict.err.rc == QF_OK && entry.kind == SM_ENTRY_LOAD);
    atomic_fetch_add(&state->changes, 1);
    note(state, record->offset, entry.kind == SM_ENTRY_LOAD ? entry.upload : 0, &verdict);
    return QF_OK;
}

static qf_rc apply_answer(struct in_state *state, const struct qn_answer *answer,
                          struct qf_err *err)
{
    qf_rc rc = QF_OK;

    qf_lock_take(state->work);
    for (size_t i = 0; i < answer->records.count && rc == QF_OK; i++)
        rc = apply_record(state, &answer->records.items[i], err);
    if (rc == QF_OK)
        sm_owner_pass(state->owner, answer->next);
    if (rc == QF_OK)
        rc = sm_owner_save(state->owner, err);
    qf_lock_drop(state->work);
    note_applied(state);
    return rc;
}

/* So that what all nodes have done can go. */
static void tell(struct in_state *state)
{
    struct qn_ask *ask;
    uint64_t from;

    if (sm_owner_needed(state->owner) <= state->told)
        return;
    ask = qn_ask_new(QN_OFFSET, QF_STR(QN_STATE));
    (void)snprintf(ask->consumer, sizeof(ask->consumer), "%s", state->name);
    from = ask->from = sm_owner_needed(state->owner);
    if (in_state_ask(state, &ask, NULL) == QF_OK)
        state->told = from;
    (void)qn_ask_free(ask);
}

static void read_on(struct in_state *state)
{
    struct qn_ask *ask = qn_ask_new(QN_POLL, QF_STR(QN_STATE));
    int64_t asked_ms = qf_clock_wall_ms();
    struct qf_err err = { 0 };
    qf_rc rc;

    ask->from = sm_owner_next(state->owner);
    ask->max = POLL_MAX;
    ask->wait_ms = state->told == sm_owner_needed(state->owner) ? WAIT_MS : TELL_MS;
    rc = in_state_ask(state, &ask, &err);
    if (rc == QF_OK) {
        atomic_store(&state->behind,
                     ask->answer.end > ask->answer.next ? ask->answer.end - ask->answer.next : 0);
        rc = apply_answer(state, &ask->answer, &err);
        if (rc != QF_OK)
            complain(state, &err);
        else
            go_on(state);
        if (rc == QF_OK && ask->answer.next >= ask->answer.end)
            atomic_store(&state->as_of_ms, asked_ms);
    } else if (rc == QF_ENOTFOUND && !ask->answer.gone) { /* nobody has defined a map yet */
        atomic_store(&state->as_of_ms, asked_ms);
        rc = QF_ENOTFOUND;
    } else if (ask->answer.gone) {
        complain(state, &err);
    }
    if (rc == QF_OK)
        tell(state);
    (void)qn_ask_free(ask);
    if (rc != QF_OK)
        (void)in_state_pause(state, atomic_load(&state->as_of_ms) ? AGAIN_MS : FIRST_MS);
}

/* --- the thread --- */

static qf_rc open_owner(struct in_state *state, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *path = sm_path(state->data, "state", NULL);
    struct sm_owner *owner = NULL;
    qf_rc rc = sm_owner_open(path, &owner, err);

    if (rc != QF_OK)
        return rc;
    sm_owner_merge(owner);
    qf_lock_take(state->lock);
    state->owner = owner;
    qf_lock_drop(state->lock);
    note_applied(state);
    return QF_OK;
}

static bool begin(struct in_state *state)
{
    struct qf_err err = { 0 };
    bool told = false;

    while (open_owner(state, &err) != QF_OK) {
        if (!told)
            QF_LOG_ERROR("state maps cannot be opened", QF_KV_STR("error", err.msg));
        told = true;
        atomic_store(&state->stuck, true);
        if (!in_state_pause(state, AGAIN_MS))
            return false;
        err = (struct qf_err){ 0 };
    }
    atomic_store(&state->stuck, false);
    return true;
}

static void run(void *arg)
{
    struct in_state *state = arg;

    if (!begin(state))
        return;
    while (in_state_pause(state, 0)) {
        struct qf_err why;

        read_on(state);
        atomic_store(&state->waiting, sm_owner_waiting(state->owner, &why));
    }
}

qf_rc in_state_start(struct in_state *state, struct qn_node *node, struct qf_err *err)
{
    state->node = node;
    state->thread = qf_thread_start("state", run, state);
    state->upkeep = qf_thread_start("state-upkeep", in_state_run_upkeep, state);
    return state->thread && state->upkeep
               ? QF_OK
               : qf_err_set(err, QF_EUNAVAILABLE, "cannot start threads");
}

int64_t in_state_as_of(const struct in_state *state)
{
    return atomic_load(&state->as_of_ms);
}

struct in_state_figures in_state_figures(struct in_state *state)
{
    int64_t as_of = atomic_load(&state->as_of_ms);
    struct in_state_figures figures = {
        .maps = atomic_load(&state->maps),
        .map_rows = atomic_load(&state->map_rows),
        .map_bytes = atomic_load(&state->map_bytes),
        .merges = atomic_load(&state->merges),
        .upkeep_failures = atomic_load(&state->upkeep_failures),
        .age_ms = QF_MAX(qf_clock_wall_ms() - (as_of ? as_of : state->started_ms), INT64_C(0)),
        .waiting = atomic_load(&state->waiting),
        .behind = atomic_load(&state->behind),
        .loads = atomic_load(&state->loads_done),
        .rows = atomic_load(&state->rows),
        .skipped = atomic_load(&state->skipped),
        .refused = atomic_load(&state->refused),
        .snapshots = atomic_load(&state->snapshots),
        .dropped = atomic_load(&state->dropped),
        .compacted = atomic_load(&state->compacted),
        .look_ups = atomic_load(&state->look_ups),
        .enriched = atomic_load(&state->enriched),
        .enrich_misses = atomic_load(&state->enrich_misses),
        .enrich_splits = atomic_load(&state->enrich_splits),
        .enrich_refused = atomic_load(&state->enrich_refused),
        .enrich_us = atomic_load(&state->enrich_us),
        .stuck = atomic_load(&state->stuck),
    };

    qf_lock_take(state->lock);
    figures.applied = state->applied;
    qf_lock_drop(state->lock);
    return figures;
}
