/* chaos.c - what goes wrong, within the fault budget, and the operator who repairs and changes. */
#include "queue/log/bytes.h"
#include "tests/sim_queue/sim_int.h"

static uint32_t random_up(struct sim *sim)
{
    uint32_t any = (uint32_t)sim_below(sim, sim->node_count);

    for (uint32_t i = 0; i < sim->node_count; i++)
        if (sim->nodes[(any + i) % sim->node_count].up)
            return (any + i) % sim->node_count;
    return SIM_NODES;
}

/* Is there a change that is not yet committed, or may there be one? */
static bool changing(struct sim *sim)
{
    if (sim->change_request)
        return true;
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];

        if (node->exists && !node->up)
            return true;
        for (uint64_t j = sim->reference.applied + 1; node->up && j <= ql_log_last(node->store.log);
             j++)
            if (j >= ql_log_first(node->store.log) && ql_log_type(node->store.log, j) == QL_CHANGE)
                return true;
        for (size_t j = 0; j < node->held.count; j++) /* it waits for room on the disk */
            if (node->held.items[j].entry.type == QL_CHANGE)
                return true;
    }
    return false;
}

/* May one more voter be lost for good? Only a minority, of the members that count now. */
static bool may_lose(struct sim *sim, const struct sim_node *node)
{
    const struct qc_members *members = &sim->reference.members;
    uint32_t lost = 0;

    if (sim->calm || changing(sim) || !qc_members_votes(members, node->id))
        return false;
    for (uint32_t i = 0; i < members->count; i++) {
        struct sim_node *other = sim_node_of(sim, members->items[i].id);

        lost += members->items[i].role == QC_VOTER && (!other || other->lost);
    }
    return lost + 1 <= (qc_members_voters(members) - 1) / 2;
}

static void wipe(struct sim *sim, uint32_t number)
{
    struct sim_node *node = &sim->nodes[number];

    if (!may_lose(sim, node))
        return;
    sim_trace(sim, "%s is wiped", node->name);
    sim->result.wipes++;
    node->lost = true;
    sim_node_crash(sim, number, true);
    if (sim->options.sim_unsafe & SIM_UNSAFE_SAME_INCARNATION) {
        sim_node_create(sim, number, false);
    } else {
        sim_disk_wipe(node->disk);
    }
}

static void flip(struct sim *sim, uint32_t number)
{
    struct sim_node *node = &sim->nodes[number];
    char name[QL_NAME_SIZE];
    uint64_t end;

    if (!may_lose(sim, node) || !ql_log_marked(node->store.log, name, &end))
        return;
    sim_trace(sim, "%s: a bit flips", node->name);
    sim->result.flips++;
    node->lost = true;
    sim_disk_flip(node->disk, name, sim_below(sim, end), (unsigned char)(1u << sim_below(sim, 8)));
    sim_node_crash(sim, number, sim_below(sim, 2));
    sim_node_start(sim, number);
}

static void cut_network(struct sim *sim)
{
    uint32_t a = (uint32_t)sim_below(sim, sim->node_count);
    uint64_t how = sim_below(sim, 3);

    for (uint32_t b = 0; b < sim->node_count; b++) {
        if (b == a || sim_below(sim, 3) == 0)
            continue;
        sim->cut[a][b] |= how != 1;
        sim->cut[b][a] |= how != 2;
    }
}

static void crash_all(struct sim *sim)
{
    bool power = sim_below(sim, 2);

    for (uint32_t i = 0; i < sim->node_count; i++)
        if (sim->nodes[i].up)
            sim_node_crash(sim, i, power);
}

static void change_weather(struct sim *sim)
{
    sim->loss = sim_below(sim, 3) ? 0.01 : 0.3 * qf_prng_unit(&sim->prng);
    sim->doubling = sim_below(sim, 3) ? 0.01 : 0.2;
    sim->slow = sim_below(sim, 3) ? 0.005 : 0.2 * qf_prng_unit(&sim->prng);
}

static void mark(struct sim *sim, uint32_t number)
{
    qf_rc rc = ql_log_mark(sim->nodes[number].store.log, NULL);

    if (rc != QF_OK && rc != QF_ENOSPC)
        sim_node_crash(sim, number, sim_below(sim, 2));
}

void sim_chaos(struct sim *sim)
{
    uint64_t what = sim_below(sim, 100);
    uint32_t number = random_up(sim);

    if (number == SIM_NODES)
        return;
    if (sim->calm) {
        sim_node_snapshot(sim, number);
        return;
    }
    if (what < 35) {
        sim_node_snapshot(sim, number);
    } else if (what < 50) {
        mark(sim, number);
    } else if (what < 58) {
        memset(sim->cut, 0, sizeof(sim->cut));
    } else if (what < 64) {
        cut_network(sim);
    } else if (what < 70) {
        change_weather(sim);
    } else if (what < 78) {
        sim_disk_stop_after(sim->nodes[number].disk, sim_below(sim, 12));
    } else if (what < 86) {
        sim_node_crash(sim, number, sim_below(sim, 2));
    } else if (what < 88) {
        crash_all(sim);
    } else if (what < 90) {
        sim->result.failed_syncs++;
        sim_disk_fail_next_sync(sim->nodes[number].disk);
    } else if (what < 93) {
        wipe(sim, number);
    } else if (what < 96) {
        flip(sim, number);
    } else {
        /* Its clock jumps ahead, and runs at another speed from now on. */
        struct sim_node *node = &sim->nodes[number];

        sim->result.jumps++;
        node->clock_base +=
            (uint64_t)((double)(sim->now - node->clock_start) * node->clock_rate / 1000) +
            sim_below(sim, 2000);
        node->clock_start = sim->now;
        node->clock_rate = 0.5 + qf_prng_unit(&sim->prng);
    }
}

/* Less room than one more record needs, or a little more than that, for a second or so; on any number
 * of disks. What is random here has a source of its own: seeds without full disks stay as they are. */
void sim_fill(struct sim *sim)
{
    uint32_t number = (uint32_t)qf_prng_below(&sim->fill_prng, sim->node_count);
    struct sim_node *node = &sim->nodes[number];
    bool full = qf_prng_below(&sim->fill_prng, 2);

    if (sim->calm)
        return;
    if (node->disk) {
        sim_disk_set_capacity(node->disk, 0);
        if (full)
            sim_disk_fill(node->disk, qf_prng_below(&sim->fill_prng, 4000));
        sim->result.fills += full;
    }
    sim_post(sim, 1 + qf_prng_below(&sim->fill_prng, 1500000),
             &(struct sim_event){ .kind = SIM_FILL });
}

void sim_calm(struct sim *sim)
{
    sim->calm = true;
    sim->storm = 2000000;
    memset(sim->cut, 0, sizeof(sim->cut));
    sim->loss = sim->doubling = sim->slow = 0;
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];

        if (!node->exists)
            continue;
        sim_disk_stop_after(node->disk, UINT64_MAX);
        sim_disk_set_capacity(node->disk, 0);
        if (!node->up && !node->lost)
            sim_node_start(sim, i);
    }
}

static void ask(struct sim *sim, enum qc_change change, uint64_t member, const char *name)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        if (!sim->nodes[i].up || !qc_leads(sim->nodes[i].core))
            continue;
        sim->change_request = SIM_OPERATOR_REQUEST | ++sim->operations;
        sim->change_until = sim->now + 5000000;
        sim_trace(sim, "operator: change %d of %s", (int)change, name);
        sim_node_step(sim, i,
                      &(struct qc_event){ .kind = QC_EVENT_CHANGE,
                                          .request = sim->change_request,
                                          .change = change,
                                          .member = member,
                                          .name = name });
        return;
    }
}

void sim_operator_done(struct sim *sim, qf_rc rc)
{
    sim->change_request = 0;
    sim->result.changes += rc == QF_OK;
}

/* Take slots of removed nodes back; a removed node may live on for a while. */
static void bury(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];

        if (!node->exists || qc_members_find(&sim->reference.members, node->id) ||
            !(node->lost || (node->up && qc_state(node->core)->members.count &&
                             !qc_members_find(&qc_state(node->core)->members, node->id) &&
                             sim_below(sim, 4) == 0)))
            continue;
        if (node->up) {
            node->lost = true;
            sim_node_crash(sim, i, false);
        }
        node->exists = false;
        node->lost = false;
    }
}

static void grow(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++) {
        if (sim->nodes[i].exists)
            continue;
        for (uint32_t j = 0; j < sim->reference.members.count; j++)
            if (strcmp(sim->reference.members.items[j].name, sim->nodes[i].name) == 0)
                return;
        sim_node_create(sim, i, false);
        return;
    }
}

/* Repair first: remove who is lost, add who is new, promote who waits. True if there was need. */
static bool repair(struct sim *sim)
{
    const struct qc_members *members = &sim->reference.members;

    for (uint32_t i = 0; i < members->count; i++) {
        const struct sim_node *node = sim_node_of(sim, members->items[i].id);

        if (!node || node->lost) {
            ask(sim, QC_REMOVE, members->items[i].id, members->items[i].name);
            return true;
        }
    }
    for (uint32_t i = 0; i < members->count; i++)
        if (members->items[i].role == QC_STANDBY && sim_below(sim, 4)) {
            ask(sim, QC_PROMOTE, members->items[i].id, members->items[i].name);
            return true;
        }
    for (uint32_t i = 0; i < sim->node_count; i++) {
        struct sim_node *node = &sim->nodes[i];

        if (node->exists && !node->lost && !qc_members_find(members, node->id) && node->up &&
            !qc_state(node->core)->members.count) {
            ask(sim, QC_ADD, node->id, node->name);
            return true;
        }
    }
    return false;
}

static void transfer(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->node_count; i++)
        if (sim->nodes[i].up && qc_leads(sim->nodes[i].core)) {
            sim_node_step(
                sim, i,
                &(struct qc_event){ .kind = QC_EVENT_TRANSFER,
                                    .request = SIM_OPERATOR_REQUEST | ++sim->operations });
            return;
        }
}

bool sim_is_repaired(struct sim *sim)
{
    const struct qc_members *members = &sim->reference.members;
    bool room = false;

    for (uint32_t i = 0; i < members->count; i++) {
        const struct sim_node *node = sim_node_of(sim, members->items[i].id);

        if (!node || node->lost || members->items[i].role != QC_VOTER)
            return false;
    }
    for (uint32_t i = 0; i < sim->node_count; i++)
        room |= !sim->nodes[i].exists;
    return sim->result.changes > sim->calm_changes || !room;
}

void sim_operator(struct sim *sim)
{
    const struct qc_members *members = &sim->reference.members;
    uint64_t what = sim_below(sim, 12);
    const struct qc_member *member;

    if (sim->change_request && sim->now > sim->change_until)
        sim->change_request = 0;
    if (sim->change_request || !members->count)
        return;
    bury(sim);
    if (repair(sim))
        return;
    if (sim->calm) {
        if (sim->result.changes == sim->calm_changes)
            grow(sim);
        return;
    }
    member = &members->items[sim_below(sim, members->count)];
    if (what < 3 && members->count < 5)
        grow(sim);
    else if (what < 5 && qc_members_voters(members) > 1)
        ask(sim, what == 3 ? QC_REMOVE : QC_DEMOTE, member->id, member->name);
    else if (what < 7)
        transfer(sim);
}
