/* node.c - a node's shell: performs effects over the simulated disk and network. */
#include <assert.h>
#include <inttypes.h>

#include "tests/sim_queue/sim_int.h"

/* How much of a disk records leave to all else, in worlds with full disks. */
enum { RESERVE = 1500 };

static struct ql_options log_options(const struct sim *sim)
{
    return (struct ql_options){ .file_bytes = 3000,
                                .reserve_bytes = sim->options.full_disks ? RESERVE : 0,
                                .unsafe = sim->options.log_unsafe };
}

static uint64_t clock_of(const struct sim *sim, const struct sim_node *node)
{
    return node->clock_base +
           (uint64_t)((double)(sim->now - node->clock_start) * node->clock_rate / 1000);
}

struct sim_node *sim_node_of(struct sim *sim, uint64_t id)
{
    for (uint32_t i = 0; i < sim->node_count; i++)
        if (sim->nodes[i].exists && sim->nodes[i].id == id)
            return &sim->nodes[i];
    return NULL;
}

/* The first entry of a new cluster: this node is its only voter. */
static void bootstrap_log(struct sim *sim, struct sim_node *node)
{
    struct qc_members members = { .count = 1, .items = { { .id = node->id, .role = QC_VOTER } } };
    struct ql_entry entry = { 1, 1, QL_CHANGE, { NULL, 0 } };
    qf_rc rc;

    memcpy(members.items[0].name, node->name, sizeof(node->name));
    qf_strbuf_reset(&sim->scratch);
    qc_members_encode(&sim->scratch, &members);
    entry.data = qf_strbuf_view(&sim->scratch);
    rc = ql_log_append(node->store.log, &entry, 1, true, NULL);
    if (rc == QF_OK)
        rc = ql_log_sync(node->store.log, NULL);
    assert(rc == QF_OK);
}

void sim_node_create(struct sim *sim, uint32_t number, bool bootstrap)
{
    struct sim_node *node = &sim->nodes[number];
    struct ql_sequence_state sequence = { .cluster = SIM_CLUSTER };
    bool same = node->id && (sim->options.sim_unsafe & SIM_UNSAFE_SAME_INCARNATION);
    struct ql_options options = log_options(sim);
    qf_rc rc;

    if (!node->disk)
        node->disk = sim_disk_new("sim");
    sim_disk_wipe(node->disk);
    sim_disk_set_capacity(node->disk, 0);
    sim_disk_stop_after(node->disk, UINT64_MAX);
    node->number = number;
    snprintf(node->name, sizeof(node->name), "n%u", number);
    if (!same)
        node->id = qf_prng_next(&sim->prng) | 1;
    sequence.incarnation = node->id;
    sequence.term = bootstrap;
    rc = ql_store_create(sim_disk_of(node->disk), &sequence, NULL);
    assert(rc == QF_OK);
    node->exists = true;
    node->lost = false;
    if (bootstrap) {
        rc = ql_store_open(&node->store, sim_disk_of(node->disk), &options, NULL);
        assert(rc == QF_OK);
        bootstrap_log(sim, node);
        ql_store_close(&node->store);
    }
    sim_node_start(sim, number);
}

static uint64_t log_first(void *ctx)
{
    return ql_log_first(((struct sim_node *)ctx)->store.log);
}
static uint64_t log_last(void *ctx)
{
    return ql_log_last(((struct sim_node *)ctx)->store.log);
}
static uint64_t log_term(void *ctx, uint64_t index)
{
    return ql_log_term(((struct sim_node *)ctx)->store.log, index);
}
static uint64_t log_length(void *ctx, uint64_t index)
{
    return ql_log_length(((struct sim_node *)ctx)->store.log, index);
}
static enum ql_type log_type(void *ctx, uint64_t index)
{
    return ql_log_type(((struct sim_node *)ctx)->store.log, index);
}
static qf_rc log_read(void *ctx, uint64_t index, struct qf_strbuf *buf, struct ql_entry *ret_entry,
                      struct qf_err *err)
{
    struct ql_log *log = ((struct sim_node *)ctx)->store.log;

    return ql_log_recent(log, index, ret_entry) ? QF_OK
                                                : ql_log_read(log, index, buf, ret_entry, err);
}

static void clear_fetched(struct sim_node *node)
{
    qf_strbuf_done(&node->fetched.bytes);
    qf_strbuf_done(&node->fetched.data);
    QF_VEC_DONE(&node->fetched.entries);
    node->fetched = (struct sim_fetched){ 0 };
}

static void clear_held(struct sim_node *node)
{
    for (size_t i = 0; i < node->held.count; i++)
        free((char *)(uintptr_t)node->held.items[i].entry.data.data);
    node->held.count = 0;
}

static void close_node(struct sim_node *node)
{
    clear_held(node);
    sim_app_forget(&node->app);
    node->core = qc_free(node->core);
    ql_store_close(&node->store);
    clear_fetched(node);
    qf_strbuf_done(&node->saving);
    node->up = false;
    node->syncing = false;
    node->life++;
}

void sim_node_free(struct sim_node *node)
{
    close_node(node);
    QF_VEC_DONE(&node->held);
    sim_app_free(&node->app);
    node->disk = sim_disk_free(node->disk);
}

void sim_node_crash(struct sim *sim, uint32_t number, bool power)
{
    struct sim_node *node = &sim->nodes[number];

    sim_trace(sim, "%s crashes%s", node->name, power ? ", power lost" : "");
    sim->result.crashes++;
    sim->result.power_losses += power;
    close_node(node);
    sim_disk_stop_after(node->disk, UINT64_MAX);
    if (power)
        sim_disk_power_loss(node->disk, &sim->prng);
    if (!node->lost)
        sim_post(sim, 1000 + sim_below(sim, sim->calm ? 100000 : 4000000),
                 &(struct sim_event){ .kind = SIM_RESTART, .node = number, .life = node->life });
}

static void perform_all(struct sim *sim, struct sim_node *node, struct qc_effects effects);

static void schedule_tick(struct sim *sim, struct sim_node *node)
{
    uint64_t due = qc_deadline(node->core), now = clock_of(sim, node);
    uint64_t wait =
        due > now ? (uint64_t)((double)(due - now) * 1000 / node->clock_rate) + 1000 : 1000;

    if (node->tick_at > sim->now && node->tick_at <= sim->now + wait)
        return;
    node->tick_at = sim->now + wait;
    sim_post(
        sim, wait,
        &(struct sim_event){
            .kind = SIM_TICK, .node = node->number, .life = node->life, .index = node->tick_at });
}

/* A node that cannot read its disk is as good as wiped: its operator replaces it. */
static void give_up_disk(struct sim *sim, struct sim_node *node, const char *why)
{
    sim_trace(sim, "%s does not start: %s", node->name, why);
    if (!node->lost)
        sim_fail(sim, "a node does not start though its disk was not damaged");
}

void sim_node_start(struct sim *sim, uint32_t number)
{
    struct sim_node *node = &sim->nodes[number];
    const struct qc_log log = {
        node, log_first, log_last, log_term, log_type, log_read, log_length
    };
    struct qc_options options = { .cluster = SIM_CLUSTER,
                                  .id = node->id,
                                  .seed = (uint32_t)qf_prng_next(&sim->prng),
                                  .election_ms = 400,
                                  .heartbeat_ms = 60,
                                  .in_flight = 16,
                                  .reserve_bytes = sim->options.full_disks ? RESERVE : 0,
                                  .unsafe = sim->options.core_unsafe };
    struct ql_options disk_options = log_options(sim);
    struct qc_effects effects;
    struct qf_err err = { 0 };
    uint64_t before;
    qf_rc rc;

    rc = ql_store_open(&node->store, sim_disk_of(node->disk), &disk_options, &err);
    if (rc == QF_OK)
        rc =
            qc_new(&options, &log, &node->store.sequence, &node->store.snapshot, &node->core, &err);
    if (rc != QF_OK) {
        ql_store_close(&node->store);
        if (rc == QF_EIO || rc == QF_ENOSPC)
            sim_node_crash(sim, number, sim_below(sim, 2));
        else
            give_up_disk(sim, node, err.msg);
        return;
    }
    node->up = true;
    node->lost = false; /* damage that went unnoticed is none */
    node->clock_base = sim_below(sim, UINT64_C(1) << 40);
    node->clock_start = sim->now;
    node->clock_rate = sim->calm ? 1 : 0.7 + qf_prng_unit(&sim->prng) * 0.8;
    node->tick_at = 0;
    node->space_told = UINT64_MAX;
    node->seen_term = node->seen_commit = 0;
    sim_trace(sim, "%s starts: term %" PRIu64 " log %" PRIu64 "..%" PRIu64 " snapshot %" PRIu64,
              node->name, node->store.sequence.term, ql_log_first(node->store.log),
              ql_log_last(node->store.log), node->store.snapshot.index);
    sim_app_forget(&node->app);
    sim_app_check_snapshot(sim, node);
    before = qc_state(node->core)->applied;
    qc_start(node->core, clock_of(sim, node), &effects);
    if (qc_state(node->core)->applied != before)
        sim_check_applied(sim, node, before);
    if (!sim->result.failure)
        perform_all(sim, node, effects);
}

/* A call on the disk failed: the process ends. */
static bool survived(struct sim *sim, struct sim_node *node, qf_rc rc)
{
    if (rc == QF_OK)
        return true;
    sim_node_crash(sim, node->number, sim_below(sim, 2) == 0);
    return false;
}

/* One sync for all that waits: after a while it begins, and later its end is heard of. */
static void begin_sync(struct sim *sim, struct sim_node *node)
{
    node->syncing = true;
    sim_post(sim, sim_below(sim, sim_chance(sim, 0.05) ? 200000 : 2000),
             &(struct sim_event){ .kind = SIM_SYNC, .node = node->number, .life = node->life });
}

/* The log shows nothing that is to be replaced. */
static void hide_replaced(struct sim *sim, struct sim_node *node)
{
    uint64_t lowest = 0;

    for (size_t i = 0; i < node->held.count; i++)
        if (!lowest || node->held.items[i].entry.index < lowest)
            lowest = node->held.items[i].entry.index;
    if (!(sim->options.sim_unsafe & SIM_UNSAFE_SHOW_REPLACED))
        ql_log_hide(node->store.log, lowest);
}

/* No room: the entries wait, and all that come after them. */
static void hold(struct sim *sim, struct sim_node *node, const struct qc_effect *effect)
{
    if (!node->held.count)
        sim_post(
            sim, 100000,
            &(struct sim_event){ .kind = SIM_RETRY, .node = node->number, .life = node->life });
    for (uint32_t i = 0; i < effect->count; i++) {
        struct sim_held held = { effect->entries[i], effect->urgent };

        held.entry.data.data = qf_xmemdup0(held.entry.data.data, held.entry.data.len);
        QF_VEC_PUSH(&node->held, held);
        sim->result.held++;
    }
    hide_replaced(sim, node);
}

void sim_node_retry(struct sim *sim, uint32_t number)
{
    struct sim_node *node = &sim->nodes[number];
    qf_rc rc = QF_OK;
    size_t done = 0;

    while (done < node->held.count && rc == QF_OK) {
        struct sim_held *held = &node->held.items[done];

        rc = ql_log_append(node->store.log, &held->entry, 1, held->urgent, NULL);
        if (rc == QF_OK)
            free((char *)(uintptr_t)node->held.items[done++].entry.data.data);
    }
    node->held.count -= done;
    if (node->held.count)
        memmove(node->held.items, node->held.items + done,
                node->held.count * sizeof(node->held.items[0]));
    hide_replaced(sim, node);
    if (rc != QF_OK && rc != QF_ENOSPC) {
        (void)survived(sim, node, rc);
        return;
    }
    if (node->held.count)
        sim_post(sim, 100000,
                 &(struct sim_event){ .kind = SIM_RETRY, .node = number, .life = node->life });
    if (done && !node->syncing)
        begin_sync(sim, node);
}

void sim_node_space(struct sim *sim, uint32_t number)
{
    struct sim_node *node = &sim->nodes[number];
    struct ql_disk *disk = sim_disk_of(node->disk);
    uint64_t space;

    if (!sim->options.full_disks || disk->ops->space(disk, &space, NULL) != QF_OK ||
        space == node->space_told)
        return;
    node->space_told = space;
    sim_node_step(sim, number, &(struct qc_event){ .kind = QC_EVENT_SPACE, .bytes = space });
}

static bool append(struct sim *sim, struct sim_node *node, const struct qc_effect *effect)
{
    qf_rc rc = QF_ENOSPC;

    if (!node->held.count)
        rc = ql_log_append(node->store.log, effect->entries, effect->count, effect->urgent, NULL);
    if (rc == QF_ENOSPC) {
        hold(sim, node, effect);
        return true;
    }
    if (!survived(sim, node, rc))
        return false;
    if (!node->syncing)
        begin_sync(sim, node);
    return true;
}

static bool install(struct sim *sim, struct sim_node *node)
{
    assert(node->fetched.there);
    sim->result.installs++;
    clear_held(node); /* of a log that is replaced as a whole */
    return survived(sim, node,
                    ql_store_install(&node->store, &node->fetched.snapshot,
                                     node->fetched.entries.items, node->fetched.entries.count,
                                     NULL));
}

static bool perform(struct sim *sim, struct sim_node *node, const struct qc_effect *effect)
{
    switch (effect->kind) {
    case QC_EFFECT_VOTE:
        return survived(sim, node, ql_store_vote(&node->store, effect->term, effect->vote, NULL));
    case QC_EFFECT_APPEND:
        return append(sim, node, effect);
    case QC_EFFECT_SEND:
        sim_send(sim, node, &effect->message);
        return true;
    case QC_EFFECT_FETCH:
        sim_post(sim, 1000 + sim_below(sim, sim_chance(sim, 0.3) ? 3000000 : 20000),
                 &(struct sim_event){ .kind = SIM_FETCHED,
                                      .node = node->number,
                                      .life = node->life,
                                      .from = effect->message.from,
                                      .index = effect->message.index,
                                      .term = effect->message.index_term });
        return true;
    case QC_EFFECT_INSTALL:
        return install(sim, node);
    case QC_EFFECT_DROP:
        return survived(sim, node, ql_log_drop_before(node->store.log, effect->index, NULL));
    case QC_EFFECT_APPLIED:
        return true;
    case QC_EFFECT_DONE:
        sim_client_done(sim, node, effect->request, effect->rc, effect->index);
        return true;
    case QC_EFFECT_STOP:
        sim_trace(sim, "%s stops: %s", node->name, effect->why);
        if (!node->lost)
            sim_fail(sim, effect->why);
        sim_node_crash(sim, node->number, false);
        return false;
    }
    return false;
}

/* Perform effects in order; a node that dies on the way performs no more. An installation is reported
 * at once. */
static void perform_all(struct sim *sim, struct sim_node *node, struct qc_effects effects)
{
    uint64_t life = node->life;
    bool installed = false;

    for (size_t i = 0; i < effects.count && node->life == life && !sim->result.failure; i++) {
        installed |= effects.items[i].kind == QC_EFFECT_INSTALL;
        if (!perform(sim, node, &effects.items[i]))
            return;
    }
    if (node->life != life || sim->result.failure)
        return;
    if (installed)
        sim_app_check_snapshot(sim, node);
    if (installed)
        sim_node_step(
            sim, node->number,
            &(struct qc_event){ .kind = QC_EVENT_INSTALLED, .snapshot = &node->store.snapshot });
    if (node->life != life || sim->result.failure)
        return;
    if ((sim->options.sim_unsafe & SIM_UNSAFE_EARLY_PERSISTED) && ql_log_dirty(node->store.log)) {
        uint64_t last = ql_log_last(node->store.log);

        if (last > node->seen_commit) {
            node->seen_commit = last;
            sim_node_step(sim, node->number,
                          &(struct qc_event){ .kind = QC_EVENT_PERSISTED,
                                              .index = last,
                                              .term = ql_log_term(node->store.log, last) });
            return;
        }
    }
    sim_app_stepped(sim, node);
    sim_check_node(sim, node);
    schedule_tick(sim, node);
}

void sim_node_step(struct sim *sim, uint32_t number, struct qc_event *event)
{
    struct sim_node *node = &sim->nodes[number];
    uint64_t before = qc_state(node->core)->applied;
    struct qc_effects effects;

    event->now = clock_of(sim, node);
    sim->result.steps++;
    qc_step(node->core, event, &effects);
    if (qc_state(node->core)->applied != before)
        sim_check_applied(sim, node, before);
    if (!sim->result.failure)
        perform_all(sim, node, effects);
}

void sim_node_sync(struct sim *sim, uint32_t number)
{
    struct sim_node *node = &sim->nodes[number];
    uint64_t last = ql_log_last(node->store.log);
    qf_rc rc = ql_log_sync(node->store.log, NULL);

    if (rc != QF_OK && (sim->options.log_unsafe & QL_UNSAFE_SYNC_AGAIN))
        rc = ql_log_sync(node->store.log, NULL);
    if (!survived(sim, node, rc))
        return;
    sim_post(sim, sim_below(sim, sim_chance(sim, 0.05) ? 200000 : 2000),
             &(struct sim_event){ .kind = SIM_SYNCED,
                                  .node = number,
                                  .life = node->life,
                                  .index = last,
                                  .term = ql_log_term(node->store.log, last) });
}

void sim_node_synced(struct sim *sim, const struct sim_event *event)
{
    struct sim_node *node = &sim->nodes[event->node];

    node->syncing = false;
    if (ql_log_dirty(node->store.log) || ql_log_last(node->store.log) != event->index)
        begin_sync(sim, node);
    sim_node_step(sim, event->node,
                  &(struct qc_event){
                      .kind = QC_EVENT_PERSISTED, .index = event->index, .term = event->term });
}

void sim_node_snapshot(struct sim *sim, uint32_t number)
{
    struct sim_node *node = &sim->nodes[number];
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = QF_STRBUF_INIT;
    unsigned char application[8];
    struct ql_snapshot snapshot;
    qf_rc rc;

    if (node->saving.len || !qc_snapshot(node->core, &buf, &snapshot))
        return;
    sim->result.snapshots++;
    sim_app_save(sim, &snapshot, application);
    if (sim->options.late_saves) {
        ql_store_save_begin(&node->store, &snapshot, &node->saving);
        sim_post(sim, sim_below(sim, 100000),
                 &(struct sim_event){ .kind = SIM_SAVED, .node = number, .life = node->life });
        return;
    }
    rc = ql_store_save(&node->store, &snapshot, NULL);
    if (rc == QF_ENOSPC)
        return; /* later */
    if (survived(sim, node, rc))
        sim_node_step(sim, number,
                      &(struct qc_event){ .kind = QC_EVENT_SAVED, .snapshot = &snapshot });
}

/* Late, and what was applied since is not in it. */
void sim_node_saved(struct sim *sim, uint32_t number)
{
    struct sim_node *node = &sim->nodes[number];
    qf_rc rc;

    if (!node->saving.len)
        return;
    rc = ql_disk_replace(sim_disk_of(node->disk), QL_SNAPSHOT_FILE, node->saving.data,
                         node->saving.len, NULL);
    if (rc == QF_ENOSPC) {
        qf_strbuf_done(&node->saving);
    } else if (survived(sim, node, rc)) {
        ql_store_save_end(&node->store, &node->saving);
        sim_node_step(
            sim, number,
            &(struct qc_event){ .kind = QC_EVENT_SAVED, .snapshot = &node->store.snapshot });
    }
}

/* Copy the source's snapshot with the entries that it keeps. */
static bool copy_snapshot(struct sim *sim, struct sim_node *node, struct sim_node *source)
{
    struct sim_fetched *fetched = &node->fetched;
    const struct ql_snapshot *from = &source->store.snapshot;
    struct qc_state state;
    uint64_t first;
    bool bare = sim->options.sim_unsafe & SIM_UNSAFE_BARE_SNAPSHOT;

    if (qc_state_decode(from->state, &state) != QF_OK)
        return false;
    qf_strbuf_str(&fetched->bytes, from->members);
    qf_strbuf_str(&fetched->bytes, from->state);
    qf_strbuf_str(&fetched->bytes, from->application);
    fetched->snapshot = *from;
    fetched->snapshot.members = (struct qf_str){ fetched->bytes.data, from->members.len };
    fetched->snapshot.state =
        (struct qf_str){ fetched->bytes.data + from->members.len, from->state.len };
    fetched->snapshot.application =
        (struct qf_str){ fetched->bytes.data + from->members.len + from->state.len,
                         from->application.len };
    first = bare ? from->index + 1 : QF_MAX(state.first, ql_log_first(source->store.log));
    for (uint64_t i = first; i <= from->index; i++) {
        struct ql_entry entry;

        if (ql_log_read(source->store.log, i, &fetched->data, &entry, NULL) != QF_OK)
            return false;
        entry.data.data = NULL; /* the buffer moves */
        QF_VEC_PUSH(&fetched->entries, entry);
    }
    for (size_t i = 0, at = 0; i < fetched->entries.count; i++) {
        struct ql_entry *entry = &fetched->entries.items[i];

        entry->data.data = fetched->data.data + at + QL_ENTRY_HEADER;
        at += ql_entry_bytes(entry->data.len);
    }
    return true;
}

void sim_node_fetched(struct sim *sim, const struct sim_event *event)
{
    struct sim_node *node = &sim->nodes[event->node], *source = sim_node_of(sim, event->from);
    struct qc_event told = { .kind = QC_EVENT_FETCHED };

    clear_fetched(node);
    if (source && source->up && source->store.snapshot.index == event->index &&
        source->store.snapshot.term == event->term && !sim->cut[source->number][node->number] &&
        copy_snapshot(sim, node, source)) {
        node->fetched.there = true;
        told.snapshot = &node->fetched.snapshot;
    }
    sim_node_step(sim, event->node, &told);
}
