/* update.c - what the library wants, as effects: votes, writes, and messages in pieces that fit. */
#include "queue/core/core_int.h"

static bool urgent(const struct ql_entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (entries[i].type == QL_COMMAND && !qc_command_urgent(entries[i].data))
            return false;
    return true;
}

void qc_emit_vote(struct qc_core *core)
{
    struct qc_effect *effect = qc_emit(core, QC_EFFECT_VOTE);

    effect->term = qc_consensus_term(core->consensus);
    effect->vote = qc_consensus_vote(core->consensus);
}

/* A voter that is being demoted hears of it last. With the change in its log it would stand for no
 * election, and with the longest log vote for nobody: if the leader were lost then, nobody could
 * ever lead. The library sends what is left out again once the follower misses it. */
static void hold_back(const struct qc_core *core, struct qc_message *message)
{
    uint64_t change = qc_consensus_uncommitted_change(core->consensus);
    struct qc_members members;

    if (message->kind != QC_APPEND || !change || message->index + message->count < change ||
        qc_off(core, QC_UNSAFE_DEMOTED_FIRST))
        return;
    qc_consensus_members(core->consensus, &members);
    if (qc_members_votes(&members, message->to) ||
        !qc_members_votes(&core->state.members, message->to))
        return;
    message->count = message->index < change ? (uint32_t)(change - 1 - message->index) : 0;
}

/* Of an entry that is about to be written, or is; 0 if it is neither. */
static uint64_t length_of(const struct qc_core *core, const struct qc_update *update,
                          uint64_t index)
{
    uint64_t first = update->count ? update->entries[0].index : UINT64_MAX;

    if (index >= first)
        return index - first < update->count ? update->entries[index - first].data.len : 0;
    return core->log.length(core->log.ctx, index);
}

static uint64_t term_of(const struct qc_core *core, const struct qc_update *update, uint64_t index)
{
    uint64_t first = update->count ? update->entries[0].index : UINT64_MAX;

    if (index >= first)
        return index - first < update->count ? update->entries[index - first].term : 0;
    return core->log.term(core->log.ctx, index);
}

/* How many of the message's entries fit one message; all of them if that cannot be told. */
static uint32_t fitting(const struct qc_core *core, const struct qc_update *update,
                        const struct qc_message *message)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < message->count; i++) {
        bytes += length_of(core, update, message->index + 1 + i);
        if (i && bytes > QC_MESSAGE_BYTES)
            return term_of(core, update, message->index + i) ? i : message->count;
    }
    return message->count;
}

/* As one message, or as several that follow each other if its entries are long: the library counts
 * entries, the network bytes. */
static void emit_message(struct qc_core *core, const struct qc_update *update,
                         struct qc_message message)
{
    message.cluster = core->options.cluster;
    message.space = core->space;
    hold_back(core, &message);
    while (message.kind == QC_APPEND && core->log.length) {
        uint32_t count = fitting(core, update, &message), rest = message.count - count;

        if (!rest)
            break;
        message.count = count;
        qc_emit(core, QC_EFFECT_SEND)->message = message;
        message.index += count;
        message.index_term = term_of(core, update, message.index);
        message.count = rest;
    }
    qc_emit(core, QC_EFFECT_SEND)->message = message;
}

void qc_emit_update(struct qc_core *core, const struct qc_update *update)
{
    if (update->vote && !qc_off(core, QC_UNSAFE_VOTE_LATE))
        qc_emit_vote(core);
    if (update->count) {
        struct qc_effect *effect = qc_emit(core, QC_EFFECT_APPEND);

        effect->entries = update->entries;
        effect->count = update->count;
        effect->urgent = urgent(update->entries, update->count);
        core->last = update->entries[update->count - 1].index;
        core->last_term = update->entries[update->count - 1].term;
    }
    for (size_t i = 0; i < update->message_count; i++)
        emit_message(core, update, update->messages[i]);
    if (update->vote && qc_off(core, QC_UNSAFE_VOTE_LATE))
        qc_emit_vote(core);
}
