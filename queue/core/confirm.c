/* confirm.c - a leader makes sure that it still is one before it answers a read.
 *
 * Why that suffices: a new leader needs votes of a majority in a higher term. Whoever answers a
 * question as a follower of this term has given no such vote yet, and the two majorities share a
 * voter: so at the moment of that answer, after the read began, nobody else could have committed
 * anything. Questions that were sent before the read began say nothing about that. */
#include "queue/core/core_int.h"

static void ask(struct qc_core *core)
{
    struct qc_members members;

    qc_consensus_members(core->consensus, &members);
    core->round_sent_at = core->now;
    for (uint32_t i = 0; i < members.count; i++) {
        struct qc_effect *effect;

        if (members.items[i].role != QC_VOTER || members.items[i].id == core->options.id)
            continue;
        effect = qc_emit(core, QC_EFFECT_SEND);
        effect->message = (struct qc_message){ .kind = QC_CONFIRM,
                                               .cluster = core->options.cluster,
                                               .from = core->options.id,
                                               .to = members.items[i].id,
                                               .term = qc_consensus_term(core->consensus),
                                               .space = core->space,
                                               .nonce = core->round };
    }
}

void qc_round_begin(struct qc_core *core)
{
    core->round++;
    core->round_answers = 0;
    ask(core);
    qc_round_finish(core);
}

/* Questions and answers may be lost: the same ones again. */
void qc_round_tick(struct qc_core *core)
{
    if (core->round > core->round_done &&
        core->now >= core->round_sent_at + core->options.heartbeat_ms)
        ask(core);
}

void qc_on_confirm(struct qc_core *core, const struct qc_message *message)
{
    bool follows = qc_consensus_standing(core->consensus) == QC_FOLLOWER &&
                   qc_consensus_term(core->consensus) == message->term;
    struct qc_effect *effect;

    if (!follows && !qc_off(core, QC_UNSAFE_ANY_ANSWER))
        return;
    effect = qc_emit(core, QC_EFFECT_SEND);
    effect->message = (struct qc_message){ .kind = QC_CONFIRM_RESULT,
                                           .cluster = core->options.cluster,
                                           .from = core->options.id,
                                           .to = message->from,
                                           .term = message->term,
                                           .space = core->space,
                                           .nonce = message->nonce };
}

void qc_on_confirm_result(struct qc_core *core, const struct qc_message *message)
{
    if (!core->leads || message->nonce != core->round || core->round == core->round_done ||
        message->term != qc_consensus_term(core->consensus))
        return;
    for (uint32_t i = 0; i < core->round_answers; i++)
        if (core->round_members[i] == message->from)
            return;
    if (core->round_answers < QC_MEMBERS_MAX)
        core->round_members[core->round_answers++] = message->from;
    qc_round_finish(core);
}

static bool majority_answered(const struct qc_core *core)
{
    struct qc_members members;
    uint32_t answers = 0;

    qc_consensus_members(core->consensus, &members);
    answers += qc_members_votes(&members, core->options.id);
    for (uint32_t i = 0; i < core->round_answers; i++)
        answers += qc_members_votes(&members, core->round_members[i]);
    return answers > qc_members_voters(&members) / 2;
}

void qc_round_finish(struct qc_core *core)
{
    bool more = false;

    if (core->round == core->round_done || !qc_serves(core) || !majority_answered(core))
        return;
    core->figures.rounds++;
    core->round_done = core->round;
    for (size_t i = core->pending_start; i < core->pending.count;) {
        struct qc_pending pending = core->pending.items[i];

        if (pending.kind == QC_PENDING_READ && pending.round <= core->round_done) {
            (void)qc_pending_take(core, i);
            qc_done(core, pending.request, QF_OK, core->state.applied);
            i = QF_MAX(i, core->pending_start);
            continue;
        }
        more |= pending.kind == QC_PENDING_READ;
        i++;
    }
    if (more)
        qc_round_begin(core);
}

/* --- since when nobody was heard of --- */

static uint64_t heard_of(const struct qc_core *core, uint64_t id)
{
    for (size_t i = 0; id && i < QC_MEMBERS_MAX; i++)
        if (core->peers[i].id == id)
            return core->peers[i].heard;
    return 0;
}

/* Since when a majority of the voters was heard of: the middle one of the times, latest first. */
static uint64_t majority_heard(const struct qc_core *core, uint64_t now)
{
    uint64_t heard[QC_MEMBERS_MAX];
    struct qc_members members;
    uint32_t count = 0;

    qc_consensus_members(core->consensus, &members);
    for (uint32_t i = 0; i < members.count; i++) {
        uint64_t id = members.items[i].id, at = id == core->options.id ? now : heard_of(core, id);
        uint32_t place = count;

        if (members.items[i].role != QC_VOTER)
            continue;
        for (; place && heard[place - 1] < at; place--)
            heard[place] = heard[place - 1];
        heard[place] = at;
        count++;
    }
    return count ? heard[count / 2] : now;
}

uint64_t qc_heard(const struct qc_core *core, uint64_t now)
{
    if (core->leads)
        return QF_MAX(core->led_since, majority_heard(core, now));
    return heard_of(core, qc_leader(core));
}

uint64_t qc_current(const struct qc_core *core, uint64_t now)
{
    return core->leads ? now : core->current_at;
}
