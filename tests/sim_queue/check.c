/* check.c - what must hold after every step, whatever happened. */
#include <inttypes.h>

#include "queue/log/bytes.h"
#include "tests/sim_queue/sim_int.h"

static uint64_t state_check(struct sim *sim, const struct qc_state *state)
{
    qf_strbuf_reset(&sim->scratch);
    qc_state_encode(&sim->scratch, state);
    qc_members_encode(&sim->scratch, &state->members);
    return ql_check(sim->scratch.data, sim->scratch.len, state->change_index);
}

const struct qc_state *sim_reference(const struct sim *sim)
{
    return &sim->reference;
}

/* The last link of the applications' chain so far. */
static uint64_t learn_link(struct sim *sim, const struct ql_entry *entry)
{
    uint64_t last = sim->truth.items[sim->truth.count - 1].link, link = 0;
    struct qc_command command;

    if (entry->type == QL_COMMAND && qc_command_decode(entry->data, &command) == QF_OK &&
        command.kind == QC_OFFER)
        link = sim_link_of(command.data);
    if (link > last + 1)
        sim_fail(sim, "a link is in the log without those before it");
    else if (link && link <= last)
        sim_fail(sim, "a link is in the log that stands on what another leader wrote");
    return link ? link : last;
}

/* An entry was applied by some node for the first time: now it is the truth. */
static void learn(struct sim *sim, const struct ql_entry *entry, uint64_t check)
{
    struct sim_truth truth = { .term = entry->term, .check = check };

    truth.link = learn_link(sim, entry);
    (void)qc_state_apply(&sim->reference, entry);
    truth.state_check = state_check(sim, &sim->reference);
    QF_VEC_PUSH(&sim->truth, truth);
    sim->result.applied++;
}

static void check_entry(struct sim *sim, struct sim_node *node, uint64_t index)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    struct ql_entry entry;
    uint64_t check;

    if (ql_log_read(node->store.log, index, &buf, &entry, NULL) != QF_OK) {
        sim_fail(sim, "a node applied an entry that is not in its log");
        return;
    }
    check = ql_check(entry.data.data, entry.data.len, entry.term * 4 + entry.type);
    if (index == sim->reference.applied + 1)
        learn(sim, &entry, check);
    else if (index > sim->reference.applied)
        sim_fail(sim, "a node applied entries that no log leads up to");
    else if (sim->truth.items[index].check != check)
        sim_fail(sim, "two nodes applied different entries at one index");
}

/* @node applied further than @before; or a snapshot took it somewhere. */
void sim_check_applied(struct sim *sim, struct sim_node *node, uint64_t before)
{
    const struct qc_state *state = qc_state(node->core);
    uint64_t first = ql_log_first(node->store.log);

    for (uint64_t i = QF_MAX(before + 1, first); i <= state->applied && !sim->result.failure; i++)
        check_entry(sim, node, i);
    if (sim->result.failure)
        return;
    if (state->applied > sim->reference.applied)
        sim_fail(sim, "a snapshot contains what was never applied");
    else if (sim->truth.items[state->applied].state_check != state_check(sim, state))
        sim_fail(sim, "equal logs gave different states");
}

static void check_leader(struct sim *sim, struct sim_node *node)
{
    uint64_t term = qc_term(node->core);

    if (term < node->seen_term)
        sim_fail(sim, "a term went back");
    node->seen_term = term;
    if (!qc_leads(node->core))
        return;
    while (sim->leaders.count <= term)
        QF_VEC_PUSH(&sim->leaders, 0);
    if (!sim->leaders.items[term])
        sim->result.elections++;
    else if (sim->leaders.items[term] != node->id)
        sim_fail(sim, "two leaders in one term");
    sim->leaders.items[term] = node->id;
}

void sim_check_node(struct sim *sim, struct sim_node *node)
{
    const struct qc_state *state = qc_state(node->core);

    check_leader(sim, node);
    /* A voter never counts for records that it lacks. */
    if (state->applied &&
        (ql_log_first(node->store.log) > QF_MIN(state->first, state->applied + 1) ||
         ql_log_last(node->store.log) < state->applied))
        sim_fail(sim, "a node lacks records that its state counts as kept");
    if (node->store.sequence.term != qc_term(node->core))
        sim_fail(sim, "a term is used that is not durable");
}
