/* receive.c - messages of peers: what is believed, and in which portions the library hears of it. */
#include "queue/core/core_int.h"

/* What is kept about member @id: a free place, or that of one who is no member, if there was none. */
static struct qc_peer *peer_of(struct qc_core *core, uint64_t id)
{
    struct qc_peer *place = NULL;
    struct qc_members members;

    for (size_t i = 0; i < QC_MEMBERS_MAX; i++)
        if (core->peers[i].id == id)
            return &core->peers[i];
    qc_consensus_members(core->consensus, &members);
    for (size_t i = 0; i < QC_MEMBERS_MAX; i++)
        if ((!place || (place->id && !core->peers[i].id)) &&
            !qc_members_find(&members, core->peers[i].id))
            place = &core->peers[i];
    if (place)
        *place = (struct qc_peer){ .id = id, .space = UINT64_MAX };
    return place;
}

/* Does a message of this kind, in the term of this node, say that one of the two follows the other? */
static bool is_contact(enum qc_message_kind kind)
{
    return kind == QC_APPEND || kind == QC_APPEND_RESULT || kind == QC_INSTALL ||
           kind == QC_CONFIRM || kind == QC_CONFIRM_RESULT;
}

static void note_contact(struct qc_core *core, const struct qc_message *message)
{
    struct qc_peer *peer = peer_of(core, message->from);

    if (peer && is_contact(message->kind) && message->term == qc_consensus_term(core->consensus))
        peer->heard = core->now;
}

/* What the leader has committed is wanted here; what was wanted before may be here by now. */
static void note_commit(struct qc_core *core, const struct qc_message *message)
{
    if ((message->kind != QC_APPEND && message->kind != QC_INSTALL) ||
        message->term != qc_consensus_term(core->consensus))
        return;
    if (core->wanted_at && core->state.applied < core->wanted)
        return;
    core->current_at = core->wanted_at;
    core->wanted = message->kind == QC_APPEND ? message->commit : message->index;
    core->wanted_at = core->now;
}

bool qc_space_allows(const struct qc_core *core, uint64_t bytes)
{
    uint64_t need = core->options.reserve_bytes + core->in_flight_bytes + bytes;
    struct qc_members members;
    uint32_t poor = 0;

    if (qc_off(core, QC_UNSAFE_NO_SPACE_CHECK))
        return true;
    qc_consensus_members(core->consensus, &members);
    for (size_t i = 0; i < QC_MEMBERS_MAX; i++)
        poor += core->peers[i].space < need && qc_members_votes(&members, core->peers[i].id);
    poor += core->space < need && qc_members_votes(&members, core->options.id);
    return core->space >= need && poor <= (qc_members_voters(&members) - 1) / 2;
}

/* A change must be the first of its portion: the library takes the index of the portion for its. */
static uint32_t portion_end(const struct qc_core *core, const struct qc_message *message,
                            uint32_t start)
{
    uint32_t end = start + 1;

    if (qc_off(core, QC_UNSAFE_CHANGE_ANYWHERE))
        return message->count;
    while (end < message->count && message->entries[end].type != QL_CHANGE)
        end++;
    return QF_MIN(end, message->count);
}

/* A new change while this node does not know that the one before is committed. The library would
 * forget the first and, taking the second back, fall back to what was before both. But a leader makes
 * a change only when the one before is committed: if its log has both, the first one is. */
static void settle_change(struct qc_core *core, const struct qc_message *portion, bool matches)
{
    uint64_t pending = qc_consensus_uncommitted_change(core->consensus);
    struct qc_members members;
    struct qc_update update;
    qf_rc rc;

    if (!portion->count || portion->entries[0].type != QL_CHANGE || !pending ||
        pending > portion->index || qc_off(core, QC_UNSAFE_CHANGE_PILE))
        return;
    if (portion->term < qc_consensus_term(core->consensus) ||
        (!matches && core->log.term(core->log.ctx, portion->index) != portion->index_term))
        return;
    qc_consensus_members(core->consensus, &members);
    rc = qc_consensus_changed(core->consensus, core->now, pending, &members, &update);
    qc_absorb(core, rc, &update);
}

static bool has_room(const struct qc_core *core, const struct qc_message *message)
{
    uint64_t bytes = 0;
    bool records = false;

    for (uint32_t i = 0; i < message->count; i++) {
        bytes += ql_entry_bytes(message->entries[i].data.len);
        records |=
            message->entries[i].type == QL_COMMAND && !qc_command_urgent(message->entries[i].data);
    }
    return !records || qc_off(core, QC_UNSAFE_NO_SPACE_CHECK) ||
           core->space >= core->options.reserve_bytes + bytes;
}

/* Leave out entries that are applied here: every leader to come has the same. The library must not
 * see them, for it takes one that is older than its log for a new one and appends it. */
static struct qc_message without_applied(const struct qc_core *core,
                                         const struct qc_message *message)
{
    struct qc_message rest = *message;
    uint64_t applied = core->state.applied;

    if (message->index < applied && message->term >= qc_consensus_term(core->consensus)) {
        uint32_t skip = (uint32_t)QF_MIN((uint64_t)message->count, applied - message->index);

        rest.count = message->count - skip;
        rest.entries = rest.count ? message->entries + skip : NULL;
        rest.index = applied;
        rest.index_term = core->state.applied_term;
    }
    return rest;
}

static void on_append(struct qc_core *core, const struct qc_message *received)
{
    const struct qc_message rest = without_applied(core, received), *message = &rest;
    uint32_t start = 0;

    do {
        struct qc_message portion = *message;
        struct qc_update update;
        bool rejected;
        qf_rc rc;

        if (message->count) {
            portion.entries = message->entries + start;
            portion.count = portion_end(core, message, start) - start;
            portion.index = message->index + start;
            if (start)
                portion.index_term = message->entries[start - 1].term;
        }
        settle_change(core, &portion, start > 0);
        start += portion.count;
        rc = qc_consensus_receive(core->consensus, core->now, &portion, NULL, &update);
        rejected = rc == QF_OK && update.message_count && update.messages[0].rejected;
        qc_absorb(core, rc, &update);
        if (rejected)
            return;
    } while (start < message->count && !core->stopped);
}

static void hand_over(struct qc_core *core, const struct qc_message *message,
                      const struct qc_members *members)
{
    struct qc_update update;
    qf_rc rc = qc_consensus_receive(core->consensus, core->now, message, members, &update);

    if (rc == QF_OK && update.install) {
        core->last = message->index;
        core->last_term = message->index_term;
    }
    qc_absorb(core, rc, &update);
}

/* While a snapshot installs, a node neither votes nor can stop: so it is fetched first. */
static void on_install(struct qc_core *core, const struct qc_message *message)
{
    if (qc_consensus_installing(core->consensus) || message->index <= core->state.applied ||
        (core->install.from == message->from && core->install.index == message->index &&
         core->install.term == message->term))
        return;
    if (qc_off(core, QC_UNSAFE_INSTALL_FIRST)) {
        struct qc_members members = core->state.members;

        hand_over(core, message, &members);
        if (!qc_consensus_installing(core->consensus))
            return;
    }
    core->install = *message;
    core->install.entries = NULL;
    core->install.count = 0;
    qc_emit(core, QC_EFFECT_FETCH)->message = core->install;
}

void qc_on_fetched(struct qc_core *core, const struct ql_snapshot *snapshot)
{
    struct qc_message message = core->install;
    struct qc_members members;
    struct qc_effect *effect;

    core->install.from = 0;
    if (!snapshot || !message.from || snapshot->index != message.index ||
        snapshot->term != message.index_term ||
        qc_members_decode(snapshot->members, &members) != QF_OK) {
        core->figures.dropped++;
        return;
    }
    message.change_index = snapshot->change_index;
    if (!qc_off(core, QC_UNSAFE_INSTALL_FIRST)) {
        if (snapshot->index <= core->state.applied || qc_consensus_installing(core->consensus) ||
            (core->leads && message.term <= qc_consensus_term(core->consensus)))
            return;
        hand_over(core, &message, &members);
    }
    if (!qc_consensus_installing(core->consensus))
        return;
    effect = qc_emit(core, QC_EFFECT_INSTALL);
    effect->index = snapshot->index;
    effect->term = snapshot->term;
}

void qc_on_installed(struct qc_core *core, const struct ql_snapshot *snapshot)
{
    struct qc_update update;
    qf_rc rc;

    if (!qc_consensus_installing(core->consensus))
        return;
    if (qc_state_decode(snapshot->state, &core->state) != QF_OK ||
        qc_members_decode(snapshot->members, &core->state.members) != QF_OK ||
        core->state.applied != snapshot->index) {
        qc_stop(core, QF_ECORRUPT, "the state of an installed snapshot cannot be read");
        return;
    }
    core->state.change_index = snapshot->change_index;
    core->snapshot_index = snapshot->index;
    core->snapshot_term = snapshot->term;
    core->last = snapshot->index;
    core->last_term = snapshot->term;
    rc = qc_consensus_installed(core->consensus, core->now, snapshot->index, snapshot->term,
                                &core->state.members, snapshot->change_index, &update);
    qc_absorb(core, rc, &update);
    qc_emit(core, QC_EFFECT_APPLIED)->index = core->state.applied;
}

/* Answers to questions of another phase: the library would take their term for somebody's. */
static bool is_stale_vote(const struct qc_core *core, const struct qc_message *message)
{
    return qc_consensus_standing(core->consensus) != QC_CANDIDATE ||
           message->pre_vote != qc_consensus_in_pre_vote(core->consensus);
}

/* A rejection that was overtaken: the library would go back behind what it knows to be stored. */
static bool is_stale_rejection(const struct qc_core *core, const struct qc_message *message)
{
    uint64_t match = core->leads ? qc_consensus_match(core->consensus, message->from) : 0;

    return message->rejected && (message->rejected <= match || message->index < match);
}

static bool sole_voter(const struct qc_core *core)
{
    struct qc_members members;

    qc_consensus_members(core->consensus, &members);
    return qc_members_sole_voter(&members, core->options.id);
}

/* May this node vote for the sender of @message, its own configuration aside? */
static bool would_vote(const struct qc_core *core, const struct qc_message *message)
{
    uint64_t vote = qc_consensus_vote(core->consensus), term = qc_consensus_term(core->consensus);

    if (qc_consensus_installing(core->consensus) ||
        qc_consensus_standing(core->consensus) != QC_FOLLOWER ||
        (qc_consensus_leader(core->consensus) && !message->disrupt))
        return false;
    if (message->pre_vote ? message->term < term
                          : message->term != term || (vote && vote != message->from))
        return false;
    return message->index_term > core->last_term ||
           (message->index_term == core->last_term && message->index >= core->last);
}

/* The library answers a trial vote with the term it was asked for. Who asks for a term that is gone
 * must hear so, or it asks for the same one for ever: nobody leads if its log is the best. */
static void tell_own_term(const struct qc_core *core, const struct qc_message *message,
                          struct qc_message *answer)
{
    if (message->pre_vote && message->term < qc_consensus_term(core->consensus) &&
        !qc_off(core, QC_UNSAFE_TRIAL_TERM))
        answer->term = qc_consensus_term(core->consensus);
}

/* Who votes is said by the candidate's configuration: this node may have become a voter without
 * having heard of it, and without its vote nobody might ever lead again. The library refuses; then
 * this node votes without it. */
static void on_vote(struct qc_core *core, const struct qc_message *message)
{
    struct qc_message answer;
    struct qc_members members;

    hand_over(core, message, NULL);
    if (!core->effects.count ||
        core->effects.items[core->effects.count - 1].message.kind != QC_VOTE_RESULT)
        return;
    tell_own_term(core, message, &core->effects.items[core->effects.count - 1].message);
    qc_consensus_members(core->consensus, &members);
    answer = core->effects.items[core->effects.count - 1].message;
    if (qc_members_votes(&members, core->options.id) || answer.granted ||
        !would_vote(core, message) || qc_off(core, QC_UNSAFE_NO_GUEST_VOTE))
        return;
    core->effects.count--;
    if (!message->pre_vote) {
        qc_consensus_grant(core->consensus, message->from);
        qc_emit_vote(core);
    }
    answer.granted = true;
    qc_emit(core, QC_EFFECT_SEND)->message = answer;
}

void qc_on_message(struct qc_core *core, const struct qc_message *message)
{
    bool same_term = message->term == qc_consensus_term(core->consensus);
    struct qc_peer *peer;

    /* Nobody else leads in the term in which this node does. */
    if (message->cluster != core->options.cluster || message->to != core->options.id ||
        qc_message_check(message) ||
        (core->leads && same_term && (message->kind == QC_APPEND || message->kind == QC_INSTALL))) {
        core->figures.dropped++;
        return;
    }
    peer = peer_of(core, message->from);
    if (peer)
        peer->space = message->space;
    switch (message->kind) {
    case QC_APPEND:
        if (has_room(core, message))
            on_append(core, message);
        break;
    case QC_APPEND_RESULT:
        if (!is_stale_rejection(core, message))
            hand_over(core, message, NULL);
        qc_pending_check(core);
        break;
    case QC_VOTE:
        on_vote(core, message);
        break;
    case QC_VOTE_RESULT:
        if (!is_stale_vote(core, message))
            hand_over(core, message, NULL);
        break;
    case QC_TIMEOUT_NOW:
        if (!sole_voter(core) || qc_off(core, QC_UNSAFE_SOLE_TIMEOUT))
            hand_over(core, message, NULL);
        break;
    case QC_INSTALL:
        on_install(core, message);
        break;
    case QC_CONFIRM:
        qc_on_confirm(core, message);
        break;
    case QC_CONFIRM_RESULT:
        qc_on_confirm_result(core, message);
        break;
    case QC_MESSAGE__COUNT:
        break;
    }
    note_contact(core, message);
    note_commit(core, message);
}
