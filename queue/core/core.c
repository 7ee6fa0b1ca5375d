/* core.c - the life of a core: starting, time, what the library wants, applying. */
#include <assert.h>

#include "queue/core/core_int.h"

struct qc_effect *qc_emit(struct qc_core *core, enum qc_effect_kind kind)
{
    QF_VEC_PUSH(&core->effects, (struct qc_effect){ .kind = kind });
    return &core->effects.items[core->effects.count - 1];
}

void qc_stop(struct qc_core *core, qf_rc rc, const char *why)
{
    struct qc_effect *effect;

    if (core->stopped)
        return;
    core->stopped = true;
    effect = qc_emit(core, QC_EFFECT_STOP);
    effect->rc = rc;
    effect->why = why;
}

static qf_rc load_snapshot(struct qc_core *core, const struct ql_snapshot *snapshot,
                           struct qf_err *err)
{
    qc_state_init(&core->state);
    if (!snapshot->index)
        return QF_OK;
    if (qc_state_decode(snapshot->state, &core->state) != QF_OK ||
        qc_members_decode(snapshot->members, &core->state.members) != QF_OK ||
        core->state.applied != snapshot->index)
        return qf_err_set(err, QF_ECORRUPT, "the state in the snapshot cannot be read");
    core->state.change_index = snapshot->change_index;
    core->snapshot_index = snapshot->index;
    core->snapshot_term = snapshot->term;
    return QF_OK;
}

qf_rc qc_new(const struct qc_options *options, const struct qc_log *log,
             const struct ql_sequence_state *sequence, const struct ql_snapshot *snapshot,
             struct qc_core **ret_core, struct qf_err *err)
{
    struct qc_core *core = qf_xcalloc(1, sizeof(*core));
    qf_rc rc;

    core->options = *options;
    if (!core->options.election_ms)
        core->options.election_ms = 1000;
    if (!core->options.heartbeat_ms)
        core->options.heartbeat_ms = 100;
    if (!core->options.in_flight)
        core->options.in_flight = 256;
    if (!core->options.pending_max)
        core->options.pending_max = 4096;
    core->log = *log;
    core->term = sequence->term;
    core->vote = sequence->vote;
    core->space = UINT64_MAX;
    for (size_t i = 0; i < QC_MEMBERS_MAX; i++)
        core->peers[i].space = UINT64_MAX;
    rc = load_snapshot(core, snapshot, err);
    if (rc != QF_OK) {
        (void)qc_free(core);
        return rc;
    }
    *ret_core = core;
    return QF_OK;
}

struct qc_core *qc_free(struct qc_core *core)
{
    if (core) {
        (void)qc_consensus_free(core->consensus);
        QF_VEC_DONE(&core->pending);
        QF_VEC_DONE(&core->effects);
        QF_VEC_DONE(&core->submitted);
        qf_strbuf_done(&core->submitted_data);
        qf_strbuf_done(&core->read_buf);
        free(core);
    }
    return NULL;
}

struct loaded {
    QF_VEC(struct ql_entry) entries;
    struct qf_strbuf data; /* of changes */
    struct qc_members members;
};

/* Terms and types of the whole log, the bytes of changes, and the configuration they end with. */
static qf_rc load_log(struct qc_core *core, struct loaded *loaded)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    uint64_t first = core->log.first(core->log.ctx), last = core->log.last(core->log.ctx);
    qf_rc rc = QF_OK;

    loaded->members = core->state.members;
    for (uint64_t i = first; rc == QF_OK && i <= last; i++) {
        struct ql_entry entry = { .index = i,
                                  .term = core->log.term(core->log.ctx, i),
                                  .type = core->log.type(core->log.ctx, i) };

        qf_strbuf_reset(&buf);
        if (entry.type == QL_CHANGE)
            rc = core->log.read(core->log.ctx, i, &buf, &entry, NULL);
        if (rc == QF_OK && entry.type == QL_CHANGE) {
            struct qc_members members;
            /* The list moves while it grows: keep where, not what. */
            size_t at = loaded->data.len;

            rc = qc_members_decode(entry.data, &members);
            qf_strbuf_str(&loaded->data, entry.data);
            entry.data = (struct qf_str){ (const char *)at, entry.data.len };
            if (i > core->state.change_index || !core->snapshot_index)
                loaded->members = members;
        }
        QF_VEC_PUSH(&loaded->entries, entry);
    }
    for (size_t i = 0; i < loaded->entries.count; i++)
        if (loaded->entries.items[i].type == QL_CHANGE)
            loaded->entries.items[i].data.data =
                loaded->data.data + (size_t)loaded->entries.items[i].data.data;
    return rc;
}

/* The library takes the last change in the log for uncommitted; what is applied is committed. */
static void tell_applied_change(struct qc_core *core)
{
    uint64_t index = qc_consensus_uncommitted_change(core->consensus);

    if (index && index <= core->state.applied) {
        struct qc_update update;
        qf_rc rc =
            qc_consensus_changed(core->consensus, core->now, index, &core->state.members, &update);

        qc_absorb(core, rc, &update);
    }
}

static void start_consensus(struct qc_core *core)
{
    struct loaded loaded = { .data = QF_STRBUF_INIT };
    struct qc_start start;
    struct qc_update update;

    if (load_log(core, &loaded) != QF_OK) {
        qc_stop(core, QF_ECORRUPT, "the log cannot be read");
    } else {
        /* A sole voter elects itself without asking anyone: in the same term it could write other
         * bytes at an index that it has already told of. */
        if (qc_members_sole_voter(&loaded.members, core->options.id) &&
            !qc_off(core, QC_UNSAFE_SAME_TERM)) {
            struct qc_effect *effect = qc_emit(core, QC_EFFECT_VOTE);

            effect->term = ++core->term;
            effect->vote = core->vote = core->options.id;
        }
        start = (struct qc_start){ .id = core->options.id,
                                   .term = core->term,
                                   .vote = core->vote,
                                   .snapshot_index = core->snapshot_index,
                                   .snapshot_term = core->snapshot_term,
                                   .change_index = core->state.change_index,
                                   .members = &core->state.members,
                                   .first = core->log.first(core->log.ctx),
                                   .entries = loaded.entries.items,
                                   .count = (uint32_t)loaded.entries.count,
                                   .seed = core->options.seed,
                                   .election_ms = core->options.election_ms,
                                   .heartbeat_ms = core->options.heartbeat_ms,
                                   .in_flight = core->options.in_flight };
        core->last = core->log.last(core->log.ctx);
        core->last_term = core->log.term(core->log.ctx, core->last);
        if (!core->last_term)
            core->last_term = core->snapshot_term;
        core->consensus = qc_consensus_new(&start, core->now, &update);
        tell_applied_change(core);
        qc_absorb(core, QF_OK, &update);
    }
    QF_VEC_DONE(&loaded.entries);
    qf_strbuf_done(&loaded.data);
}

/* The same again with the next term: how a sole voter that lost its leadership (to a term that
 * somebody made up) leads again. Only when all it has is stored. */
static void restart(struct qc_core *core)
{
    core->figures.restarts++;
    core->term = qc_consensus_term(core->consensus);
    core->vote = qc_consensus_vote(core->consensus);
    core->options.seed++;
    core->consensus = qc_consensus_free(core->consensus);
    start_consensus(core);
}

qf_rc qc_submit_all(struct qc_core *core)
{
    struct qc_update update;
    qf_rc rc = qc_consensus_submit(core->consensus, core->now, core->submitted.items,
                                   (uint32_t)core->submitted.count, &update);

    if (rc == QF_OK || rc == QF_EINTERNAL)
        qc_absorb(core, rc, &update);
    return rc;
}

qf_rc qc_submit(struct qc_core *core, enum ql_type type, struct qf_str data)
{
    qf_strbuf_reset(&core->submitted_data);
    qf_strbuf_str(&core->submitted_data, data);
    core->submitted.count = 0;
    QF_VEC_PUSH(&core->submitted,
                (struct ql_entry){ .index = core->last + 1,
                                   .term = qc_consensus_term(core->consensus),
                                   .type = type,
                                   .data = qf_strbuf_view(&core->submitted_data) });
    return qc_submit_all(core);
}

/* The library adds a first entry of its own only if the log's end is not known to be committed, and
 * never with one voter. Without one a new leader does not know what is committed. */
static void begin_leading(struct qc_core *core, const struct qc_update *update)
{
    core->leads = true;
    core->led_since = core->now;
    core->figures.elections++;
    core->round_done = core->round;
    if (update->count)
        core->noop_index = update->entries[0].index;
    else if (qc_off(core, QC_UNSAFE_NO_NOOP))
        core->noop_index = 0;
    else if (qc_submit(core, QL_NOOP, QF_STR("")) == QF_OK)
        core->noop_index = core->last;
    else
        qc_stop(core, QF_EINTERNAL, "a new leader could not append its first entry");
    if (qc_off(core, QC_UNSAFE_NO_NOOP))
        core->noop_index = 0;
}

/* Committed, and on this node's disk: the library raises the commit index before the write. */
static uint64_t appliable(const struct qc_core *core)
{
    uint64_t commit = qc_consensus_commit(core->consensus);

    if (qc_off(core, QC_UNSAFE_APPLY_EARLY))
        return commit;
    return QF_MIN(commit, qc_consensus_stored(core->consensus));
}

static void apply_one(struct qc_core *core, const struct ql_entry *entry)
{
    enum qc_applied how = qc_state_apply(&core->state, entry);

    if (entry->type == QL_CHANGE) {
        struct qc_update update;
        qf_rc rc = qc_consensus_changed(core->consensus, core->now, entry->index,
                                        &core->state.members, &update);

        qc_absorb(core, rc, &update);
    }
    qc_pending_applied(core, entry, how);
}

static void apply(struct qc_core *core)
{
    uint64_t before = core->state.applied;

    while (!core->stopped && !qc_consensus_installing(core->consensus) &&
           core->state.applied < appliable(core)) {
        struct ql_entry entry;
        qf_rc rc;

        qf_strbuf_reset(&core->read_buf);
        rc = core->log.read(core->log.ctx, core->state.applied + 1, &core->read_buf, &entry, NULL);
        if (rc == QF_ENOTFOUND && qc_off(core, QC_UNSAFE_APPLY_EARLY))
            break;
        if (rc != QF_OK)
            qc_stop(core, rc, "a committed entry cannot be read back: restart to see more");
        else
            apply_one(core, &entry);
    }
    if (core->state.applied > before) {
        qc_emit(core, QC_EFFECT_APPLIED)->index = core->state.applied;
        qc_round_finish(core);
    }
}

void qc_absorb(struct qc_core *core, qf_rc rc, const struct qc_update *update)
{
    bool leads;

    if (rc != QF_OK) {
        qc_stop(core, rc,
                "the log contradicts what is committed: remove this node, empty its "
                "folder and add it as a new one");
        return;
    }
    qc_emit_update(core, update);
    leads = qc_consensus_standing(core->consensus) == QC_LEADER;
    if (core->leads && (!leads || update->vote)) {
        core->leads = false;
        qc_pending_fail(core);
    }
    if (leads && !core->leads)
        begin_leading(core, update);
    if (update->commit)
        apply(core);
}

void qc_start(struct qc_core *core, uint64_t now, struct qc_effects *ret_effects)
{
    core->now = now;
    core->effects.count = 0;
    start_consensus(core);
    *ret_effects = (struct qc_effects){ core->effects.items, core->effects.count };
}

static void on_tick(struct qc_core *core)
{
    struct qc_update update;
    struct qc_members members;
    qf_rc rc;

    if (core->leads)
        qc_round_tick(core);
    if (core->now < qc_consensus_timeout_at(core->consensus))
        return;
    qc_consensus_members(core->consensus, &members);
    if (!core->leads && qc_members_sole_voter(&members, core->options.id) &&
        !qc_off(core, QC_UNSAFE_SOLE_TIMEOUT)) {
        if (qc_consensus_stored(core->consensus) == core->last &&
            core->log.last(core->log.ctx) == core->last &&
            !qc_consensus_installing(core->consensus))
            restart(core);
        return;
    }
    rc = qc_consensus_timeout(core->consensus, core->now, &update);
    qc_absorb(core, rc, &update);
}

/* Only a completion that still stands counts: entries may have been replaced since they were
 * written, and those that replaced them are not durable yet. */
static void on_persisted(struct qc_core *core, uint64_t index, uint64_t term)
{
    struct qc_update update;
    qf_rc rc;

    if (qc_consensus_installing(core->consensus) || index <= qc_consensus_stored(core->consensus))
        return;
    if (!qc_off(core, QC_UNSAFE_ANY_COMPLETION) &&
        (index > core->last || core->log.term(core->log.ctx, index) != term))
        return;
    rc = qc_consensus_persisted(core->consensus, core->now, index, &update);
    qc_absorb(core, rc, &update);
    apply(core);
    qc_pending_check(core);
}

static void on_saved(struct qc_core *core, const struct ql_snapshot *snapshot)
{
    struct qc_members members;
    struct qc_update update;
    struct qc_state saved;
    uint64_t first;
    qf_rc rc = qc_members_decode(snapshot->members, &members);

    if (rc == QF_OK)
        rc = qc_state_decode(snapshot->state, &saved);
    assert(rc == QF_OK);
    /* It may have been overtaken by one that was installed. */
    if (snapshot->index <= core->snapshot_index || qc_consensus_installing(core->consensus))
        return;
    /* What the saved state calls kept must be kept, though more may have been trimmed since. */
    first = QF_MIN(saved.first, snapshot->index + 1);
    core->snapshot_index = snapshot->index;
    core->snapshot_term = snapshot->term;
    rc = qc_consensus_snapshot(core->consensus, core->now, snapshot->index, first, &members,
                               snapshot->change_index, &update);
    qc_absorb(core, rc, &update);
    qc_emit(core, QC_EFFECT_DROP)->index = first;
}

void qc_step(struct qc_core *core, const struct qc_event *event, struct qc_effects *ret_effects)
{
    core->effects.count = 0;
    if (event->now > core->now)
        core->now = event->now;
    if (!core->stopped) {
        switch (event->kind) {
        case QC_EVENT_TICK:
            on_tick(core);
            break;
        case QC_EVENT_MESSAGE:
            qc_on_message(core, event->message);
            break;
        case QC_EVENT_PERSISTED:
            on_persisted(core, event->index, event->term);
            break;
        case QC_EVENT_COMMAND:
            qc_on_commands(core, &(struct qc_request){ event->request, event->data, event->level },
                           1, false);
            break;
        case QC_EVENT_COMMANDS:
            qc_on_commands(core, event->commands, event->count, event->chained);
            break;
        case QC_EVENT_READ:
            qc_on_read(core, event);
            break;
        case QC_EVENT_CHANGE:
            qc_on_change(core, event);
            break;
        case QC_EVENT_TRANSFER:
            qc_on_transfer(core, event);
            break;
        case QC_EVENT_FETCHED:
            qc_on_fetched(core, event->snapshot);
            break;
        case QC_EVENT_INSTALLED:
            qc_on_installed(core, event->snapshot);
            break;
        case QC_EVENT_SAVED:
            on_saved(core, event->snapshot);
            break;
        case QC_EVENT_SPACE:
            core->space = event->bytes;
            break;
        }
    }
    *ret_effects = (struct qc_effects){ core->effects.items, core->effects.count };
}

uint64_t qc_deadline(const struct qc_core *core)
{
    uint64_t at = core->stopped ? UINT64_MAX : qc_consensus_timeout_at(core->consensus);

    if (core->leads && core->round > core->round_done)
        at = QF_MIN(at, core->round_sent_at + core->options.heartbeat_ms);
    return at;
}

bool qc_snapshot(const struct qc_core *core, struct qf_strbuf *buf,
                 struct ql_snapshot *ret_snapshot)
{
    size_t members = buf->len, state;

    if (core->stopped || core->state.applied <= core->snapshot_index || !core->state.members.count)
        return false;
    qc_members_encode(buf, &core->state.members);
    state = buf->len;
    qc_state_encode(buf, &core->state);
    *ret_snapshot =
        (struct ql_snapshot){ .index = core->state.applied,
                              .term = core->state.applied_term,
                              .change_index = core->state.change_index,
                              .members = qf_str_sub(qf_strbuf_view(buf), members, state),
                              .state = qf_str_sub(qf_strbuf_view(buf), state, buf->len) };
    return true;
}

const struct qc_state *qc_state(const struct qc_core *core)
{
    return &core->state;
}

bool qc_leads(const struct qc_core *core)
{
    return core->leads;
}

bool qc_serves(const struct qc_core *core)
{
    return core->leads && core->state.applied >= core->noop_index;
}

uint64_t qc_leader(const struct qc_core *core)
{
    return core->stopped ? 0 : qc_consensus_leader(core->consensus);
}

uint64_t qc_term(const struct qc_core *core)
{
    return qc_consensus_term(core->consensus);
}

uint64_t qc_commit(const struct qc_core *core)
{
    return qc_consensus_commit(core->consensus);
}

void qc_members(const struct qc_core *core, struct qc_members *ret_members)
{
    qc_consensus_members(core->consensus, ret_members);
}

struct qc_figures qc_figures(const struct qc_core *core)
{
    return core->figures;
}
