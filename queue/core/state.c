#include <assert.h>

#include "queue/core/state.h"
#include "queue/log/bytes.h"

void qc_state_init(struct qc_state *state)
{
    *state = (struct qc_state){ .first = 1, .position = 1 };
}

const struct qc_consumer *qc_state_consumer(const struct qc_state *state, struct qf_str name)
{
    for (uint32_t i = 0; i < state->consumer_count; i++)
        if (qf_str_is(name, state->consumers[i].name))
            return &state->consumers[i];
    return NULL;
}

/* A place for a new consumer: a free one, or that of who has been silent longest. */
static struct qc_consumer *new_consumer(struct qc_state *state)
{
    struct qc_consumer *oldest = state->consumers;

    if (state->consumer_count < QC_CONSUMERS_MAX)
        return &state->consumers[state->consumer_count++];
    for (uint32_t i = 1; i < state->consumer_count; i++)
        if (state->consumers[i].changed < oldest->changed)
            oldest = &state->consumers[i];
    return oldest;
}

static enum qc_applied move_offset(struct qc_state *state, const struct qc_command *command,
                                   uint64_t index)
{
    struct qc_consumer *consumer = (struct qc_consumer *)qc_state_consumer(state, command->data);

    if (consumer && command->offset < consumer->offset)
        return QC_APPLIED_NOT;
    if (!consumer) {
        consumer = new_consumer(state);
        *consumer = (struct qc_consumer){ 0 };
        memcpy(consumer->name, command->data.data, command->data.len);
    }
    consumer->offset = command->offset;
    consumer->changed = index;
    return QC_APPLIED;
}

static enum qc_applied consume(struct qc_state *state, const struct qc_command *command,
                               uint64_t index)
{
    if (command->from != state->position || command->to >= index)
        return QC_APPLIED_NOT;
    state->position = command->to + 1;
    return QC_APPLIED;
}

static enum qc_applied trim(struct qc_state *state, const struct qc_command *command,
                            uint64_t index)
{
    if (command->offset <= state->first || command->offset > index)
        return QC_APPLIED_NOT;
    state->first = command->offset;
    if (state->position < state->first)
        state->position = state->first;
    return QC_APPLIED;
}

static enum qc_applied apply_command(struct qc_state *state, const struct ql_entry *entry)
{
    struct qc_command command;

    if (qc_command_decode(entry->data, &command) != QF_OK)
        return QC_APPLIED_BAD;
    switch (command.kind) {
    case QC_OFFER:
        return QC_APPLIED;
    case QC_OFFSET:
        return move_offset(state, &command, entry->index);
    case QC_CONSUME:
        return consume(state, &command, entry->index);
    case QC_TRIM:
        return trim(state, &command, entry->index);
    }
    return QC_APPLIED_BAD;
}

enum qc_applied qc_state_apply(struct qc_state *state, const struct ql_entry *entry)
{
    assert(entry->index == state->applied + 1);
    state->applied = entry->index;
    state->applied_term = entry->term;
    switch (entry->type) {
    case QL_NOOP:
        return QC_APPLIED;
    case QL_CHANGE:
        if (qc_members_decode(entry->data, &state->members) != QF_OK)
            return QC_APPLIED_BAD;
        state->change_index = entry->index;
        return QC_APPLIED;
    case QL_COMMAND:
        return apply_command(state, entry);
    }
    return QC_APPLIED_BAD;
}

/* applied, its term, first, position, count; then for each consumer offset, changed, name. */
enum { FIXED = 40, CONSUMER = 16 + QC_CONSUMER_SIZE };

void qc_state_encode(struct qf_strbuf *buf, const struct qc_state *state)
{
    const uint64_t words[] = { state->applied, state->applied_term, state->first, state->position,
                               state->consumer_count };
    unsigned char bytes[CONSUMER];

    for (size_t i = 0; i < QF_COUNT_OF(words); i++) {
        ql_put(bytes, words[i], 8);
        qf_strbuf_add(buf, bytes, 8);
    }
    for (uint32_t i = 0; i < state->consumer_count; i++) {
        const struct qc_consumer *consumer = &state->consumers[i];

        ql_put(bytes, consumer->offset, 8);
        ql_put(bytes + 8, consumer->changed, 8);
        memcpy(bytes + 16, consumer->name, QC_CONSUMER_SIZE);
        qf_strbuf_add(buf, bytes, sizeof(bytes));
    }
}

qf_rc qc_state_decode(struct qf_str bytes, struct qc_state *ret_state)
{
    const unsigned char *in = (const unsigned char *)bytes.data;
    uint64_t count;

    if (bytes.len < FIXED)
        return QF_ECORRUPT;
    count = ql_get(in + 32, 8);
    if (count > QC_CONSUMERS_MAX || bytes.len != FIXED + count * CONSUMER)
        return QF_ECORRUPT;
    ret_state->applied = ql_get(in, 8);
    ret_state->applied_term = ql_get(in + 8, 8);
    ret_state->first = ql_get(in + 16, 8);
    ret_state->position = ql_get(in + 24, 8);
    ret_state->consumer_count = (uint32_t)count;
    in += FIXED;
    for (uint64_t i = 0; i < count; i++, in += CONSUMER) {
        struct qc_consumer *consumer = &ret_state->consumers[i];

        consumer->offset = ql_get(in, 8);
        consumer->changed = ql_get(in + 8, 8);
        memcpy(consumer->name, in + 16, QC_CONSUMER_SIZE);
        if (!consumer->name[0] || consumer->name[QC_CONSUMER_SIZE - 1])
            return QF_ECORRUPT;
    }
    return QF_OK;
}
