/* request.c - what clients and operators ask for, and when they hear of it. */
#include <assert.h>

#include "queue/core/core_int.h"

void qc_done(struct qc_core *core, uint64_t request, qf_rc rc, uint64_t index)
{
    struct qc_effect *effect = qc_emit(core, QC_EFFECT_DONE);

    effect->request = request;
    effect->rc = rc;
    effect->index = index;
}

size_t qc_pending_count(const struct qc_core *core)
{
    return core->pending.count - core->pending_start;
}

void qc_pending_add(struct qc_core *core, const struct qc_pending *pending)
{
    size_t count = qc_pending_count(core);

    /* Move those that are left to the front, but rarely: only when half of the room is free. */
    if (core->pending.count == core->pending.capacity && core->pending_start >= count) {
        if (count)
            memmove(core->pending.items, core->pending.items + core->pending_start,
                    count * sizeof(*pending));
        core->pending.count = count;
        core->pending_start = 0;
    }
    QF_VEC_PUSH(&core->pending, *pending);
}

struct qc_pending qc_pending_take(struct qc_core *core, size_t at)
{
    struct qc_pending pending = core->pending.items[at];

    if (at == core->pending_start) {
        core->pending_start++;
    } else {
        core->pending.count--;
        memmove(&core->pending.items[at], &core->pending.items[at + 1],
                (core->pending.count - at) * sizeof(pending));
    }
    return pending;
}

/* End pending request @at. */
static void finish(struct qc_core *core, size_t at, qf_rc rc, uint64_t index)
{
    struct qc_pending pending = qc_pending_take(core, at);

    core->in_flight_bytes -= pending.bytes;
    qc_done(core, pending.request, rc, index);
}

/* Is there room for all of @commands together? Then nobody needs to ask for each. */
static bool all_have_room(const struct qc_core *core, const struct qc_request *commands,
                          uint32_t count)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < count; i++)
        bytes += ql_entry_bytes(commands[i].data.len);
    return qc_space_allows(core, bytes);
}

static qf_rc check_command(const struct qc_core *core, const struct qc_request *request,
                           bool has_room, bool *ret_record)
{
    struct qc_command command;

    if (request->data.len > QL_ENTRY_MAX)
        return QF_ELIMIT;
    if (qc_command_decode(request->data, &command) != QF_OK)
        return QF_EINVAL;
    if (qc_pending_count(core) >= core->options.pending_max)
        return QF_EBUSY;
    *ret_record = command.kind == QC_OFFER;
    if (*ret_record && !has_room && !qc_space_allows(core, ql_entry_bytes(request->data.len)))
        return QF_ENOSPC;
    return QF_OK;
}

/* To be submitted, as the next entry; what it waits for is noted already. */
static void take_command(struct qc_core *core, const struct qc_request *request, bool record)
{
    struct ql_entry entry = { .index = core->last + 1 + core->submitted.count,
                              .term = qc_consensus_term(core->consensus),
                              .type = QL_COMMAND,
                              .data = request->data };
    struct qc_pending pending = { .kind = QC_PENDING_WRITE,
                                  .level = request->level,
                                  .request = request->request,
                                  .index = entry.index,
                                  .term = entry.term,
                                  .bytes = record ? ql_entry_bytes(request->data.len) : 0 };

    QF_VEC_PUSH(&core->submitted, entry);
    core->in_flight_bytes += pending.bytes;
    qc_pending_add(core, &pending);
}

void qc_on_commands(struct qc_core *core, const struct qc_request *commands, uint32_t count,
                    bool chained)
{
    bool serves = qc_serves(core), has_room = serves && all_have_room(core, commands, count);
    uint32_t taken = 0;
    qf_rc rc = QF_OK;

    assert(count <= QC_COMMANDS_MAX);
    core->submitted.count = 0;
    for (; taken < count; taken++) {
        bool record = false;

        rc = serves ? check_command(core, &commands[taken], has_room, &record) : QF_EUNAVAILABLE;
        if (rc == QF_OK)
            take_command(core, &commands[taken], record);
        else if (!chained)
            qc_done(core, commands[taken].request, rc, 0);
        else
            break;
    }
    for (uint32_t i = count; i > taken; i--)
        qc_done(core, commands[i - 1].request, rc, 0);
    rc = core->submitted.count ? qc_submit_all(core) : QF_OK;
    if (rc != QF_OK)
        for (size_t i = core->submitted.count; i > 0; i--)
            finish(core, core->pending.count - 1, rc, 0);
}

void qc_on_read(struct qc_core *core, const struct qc_event *event)
{
    struct qc_pending pending = { .kind = QC_PENDING_READ, .request = event->request };
    bool under_way = core->round > core->round_done;

    if (!core->leads || qc_pending_count(core) >= core->options.pending_max) {
        qc_done(core, event->request, core->leads ? QF_EBUSY : QF_EUNAVAILABLE, 0);
        return;
    }
    /* A question that was sent before this read began proves nothing for it. */
    pending.round = core->round + 1;
    if (under_way && qc_off(core, QC_UNSAFE_JOIN_SENT_ROUND))
        pending.round = core->round;
    qc_pending_add(core, &pending);
    if (!under_way)
        qc_round_begin(core);
}

/* Is member @id stored as far as this leader has committed? */
static bool caught_up(const struct qc_core *core, uint64_t id)
{
    return qc_consensus_match(core->consensus, id) >= qc_consensus_commit(core->consensus);
}

static qf_rc check_change(const struct qc_core *core, const struct qc_event *event,
                          const struct qc_members *now, const struct qc_members *next)
{
    /* The library would let a leader change members before it knows what is committed. */
    if (!core->leads || (!qc_serves(core) && !qc_off(core, QC_UNSAFE_EARLY_CHANGE)))
        return QF_EUNAVAILABLE;
    if (qc_pending_count(core) >= core->options.pending_max ||
        qc_consensus_uncommitted_change(core->consensus))
        return QF_EBUSY;
    if (event->change == QC_PROMOTE && !qc_off(core, QC_UNSAFE_NEW_VOTER) &&
        !caught_up(core, event->member))
        return QF_EBUSY;
    /* Who becomes the last voter must be the leader: another one would have to elect itself while
     * this one still commits. */
    if (qc_members_voters(next) == 1 && qc_members_voters(now) == 2 &&
        !qc_members_votes(next, core->options.id) && !qc_off(core, QC_UNSAFE_LAST_VOTER))
        return QF_EINVAL;
    return QF_OK;
}

void qc_on_change(struct qc_core *core, const struct qc_event *event)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qc_pending pending = { .kind = QC_PENDING_WRITE, .request = event->request };
    struct qc_members now, next;
    qf_rc rc;

    qc_consensus_members(core->consensus, &now);
    rc = qc_members_change(&now, event->change, event->member, event->name, &next, NULL);
    if (rc == QF_OK)
        rc = check_change(core, event, &now, &next);
    if (rc == QF_OK) {
        qc_members_encode(&buf, &next);
        rc = qc_submit(core, QL_CHANGE, qf_strbuf_view(&buf));
    }
    if (rc != QF_OK) {
        qc_done(core, event->request, rc, 0);
        return;
    }
    pending.index = core->last;
    pending.term = qc_consensus_term(core->consensus);
    qc_pending_add(core, &pending);
}

void qc_on_transfer(struct qc_core *core, const struct qc_event *event)
{
    struct qc_update update;
    qf_rc rc = core->leads
                   ? qc_consensus_transfer(core->consensus, core->now, event->member, &update)
                   : QF_EUNAVAILABLE;

    if (rc == QF_OK)
        qc_absorb(core, rc, &update);
    qc_done(core, event->request, rc, 0);
}

static bool on_every_voter(const struct qc_core *core, uint64_t index)
{
    struct qc_members members;

    qc_consensus_members(core->consensus, &members);
    for (uint32_t i = 0; i < members.count; i++)
        if (members.items[i].role == QC_VOTER &&
            qc_consensus_match(core->consensus, members.items[i].id) < index)
            return false;
    return true;
}

void qc_pending_applied(struct qc_core *core, const struct ql_entry *entry, enum qc_applied how)
{
    for (size_t i = core->pending_start; i < core->pending.count; i++) {
        struct qc_pending *pending = &core->pending.items[i];

        if (pending->kind != QC_PENDING_WRITE || pending->index != entry->index)
            continue;
        if (pending->term != entry->term)
            finish(core, i, QF_EUNAVAILABLE, 0);
        else if (how != QC_APPLIED)
            finish(core, i, how == QC_APPLIED_NOT ? QF_EBUSY : QF_EINVAL, entry->index);
        else if (pending->level == QC_LEVEL_ALL && !on_every_voter(core, entry->index))
            pending->applied = true;
        else
            finish(core, i, QF_OK, entry->index);
        return;
    }
}

static bool is_finished(const struct qc_core *core, const struct qc_pending *pending)
{
    if (pending->kind != QC_PENDING_WRITE)
        return false;
    if (pending->level == QC_LEVEL_ONE)
        return qc_consensus_stored(core->consensus) >= pending->index;
    return pending->applied && on_every_voter(core, pending->index);
}

void qc_pending_check(struct qc_core *core)
{
    for (size_t i = core->pending_start; core->leads && i < core->pending.count;) {
        if (!is_finished(core, &core->pending.items[i])) {
            i++;
            continue;
        }
        finish(core, i, QF_OK, core->pending.items[i].index);
        i = QF_MAX(i, core->pending_start);
    }
}

void qc_pending_fail(struct qc_core *core)
{
    while (qc_pending_count(core))
        finish(core, core->pending.count - 1, QF_EUNAVAILABLE, 0);
}
