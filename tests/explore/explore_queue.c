/* explore_queue.c - a small queue, three voters and a few faults: every state within so many moves.
 *
 * usage: explore_queue depth=N [led=1] [timeouts=N] [offers=N] [crashes=N] [losses=N] [doubles=N]
 *                      [states=N] [early=1]
 *
 * led=1: one of them already leads, and all messages have arrived. early=1: disks report before
 * they have synced, which must be found.
 * Moves: a message arrives (in any order; one that never arrives is lost), arrives and stays (doubles),
 * a node's timer fires, a disk syncs, a client offers a record to whoever serves, a node crashes and
 * restarts with all it wrote (crashes) or only with what was synced (losses). Each kind of fault has
 * its number. Always: one leader per term, the same entry at the same index wherever it is applied,
 * and what was acknowledged is what is applied there.
 *
 * A node is a function of the events since its start and of the disk it started with; so the hash of
 * these, the messages under way and what was observed make up a state. Going back means replaying. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/vec.h"
#include "queue/core/core.h"
#include "queue/log/bytes.h"
#include "tests/explore/explore.h"
#include "tests/lib/queue/sim_disk.h"

enum { NODES = 3, NET_MAX = 40, TERMS = 32, INDEXES = 32, CLUSTER = 7 };
enum kind { DELIVER, DOUBLE, TIMER, SYNC, OFFER, CRASH, LOSS, KINDS };
enum { ARG = 64 };

struct budget {
    uint8_t timers, offers, crashes, losses, doubles;
};

struct flying {
    struct qc_message message;
    struct ql_entry *entries; /* one block with their data; NULL: none */
    uint64_t hash;
};

struct member {
    struct sim_disk *disk;
    struct ql_store store;
    struct qc_core *core;
    uint64_t now, hash;
    uint64_t synced; /* entries up to here are durable */
};

struct path {
    uint16_t moves[EXPLORE_DEPTH_MAX + 1];
    size_t count;
};

struct world {
    struct budget budget, left;
    uint8_t depth, led, early;
    struct member nodes[NODES];
    QF_VEC(struct flying) net;
    uint64_t leaders[TERMS], truth[INDEXES], acked[INDEXES];
    uint64_t requests;
    const char *broken;
    struct path path;
    struct path *saved[EXPLORE_DEPTH_MAX + 1];
};

static uint64_t fold(uint64_t hash, uint64_t value)
{
    unsigned char bytes[8];

    ql_put(bytes, value, 8);
    return ql_check(bytes, 8, hash);
}

static uint64_t entry_hash(const struct ql_entry *entry)
{
    return ql_check(entry->data.data, entry->data.len,
                    fold(fold(entry->index, entry->term), entry->type));
}

static uint64_t message_hash(const struct qc_message *m)
{
    const uint64_t words[] = { m->kind,       m->from,    m->to,       m->term,  m->index,
                               m->index_term, m->commit,  m->rejected, m->nonce, m->count,
                               m->pre_vote,   m->disrupt, m->granted };
    uint64_t hash = 1;

    for (size_t i = 0; i < QF_COUNT_OF(words); i++)
        hash = fold(hash, words[i]);
    for (uint32_t i = 0; i < m->count; i++)
        hash = fold(hash, entry_hash(&m->entries[i]));
    return hash;
}

static uint64_t log_first(void *ctx)
{
    return ql_log_first(((struct member *)ctx)->store.log);
}
static uint64_t log_last(void *ctx)
{
    return ql_log_last(((struct member *)ctx)->store.log);
}
static uint64_t log_term(void *ctx, uint64_t index)
{
    return ql_log_term(((struct member *)ctx)->store.log, index);
}
static enum ql_type log_type(void *ctx, uint64_t index)
{
    return ql_log_type(((struct member *)ctx)->store.log, index);
}
static qf_rc log_read(void *ctx, uint64_t index, struct qf_strbuf *buf, struct ql_entry *ret,
                      struct qf_err *err)
{
    return ql_log_read(((struct member *)ctx)->store.log, index, buf, ret, err);
}

static void perform(struct world *world, struct member *node, struct qc_effects effects,
                    uint64_t applied_before);

/* What a node starts with is what its disk has. */
static uint64_t disk_hash(struct member *node)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    uint64_t hash = fold(node->store.sequence.term, node->store.sequence.vote);

    for (uint64_t i = ql_log_first(node->store.log); i <= ql_log_last(node->store.log); i++) {
        struct ql_entry entry;
        qf_rc rc;

        qf_strbuf_reset(&buf);
        rc = ql_log_read(node->store.log, i, &buf, &entry, NULL);
        assert(rc == QF_OK);
        hash = fold(hash, entry_hash(&entry));
    }
    qf_strbuf_done(&buf);
    return hash;
}

static void start(struct world *world, struct member *node)
{
    const struct qc_log log = { node, log_first, log_last, log_term, log_type, log_read, NULL };
    const struct qc_options options = { .cluster = CLUSTER,
                                        .id = (uint64_t)(node - world->nodes) + 1,
                                        .seed = 1,
                                        .election_ms = 400,
                                        .heartbeat_ms = 60 };
    const struct ql_options log_options = { .file_bytes = 1 << 20 };
    struct qc_effects effects;
    qf_rc rc = ql_store_open(&node->store, sim_disk_of(node->disk), &log_options, NULL);

    assert(rc == QF_OK);
    node->hash = disk_hash(node);
    node->synced = ql_log_last(node->store.log); /* opening syncs */
    node->now = 1000;
    rc = qc_new(&options, &log, &node->store.sequence, &node->store.snapshot, &node->core, NULL);
    assert(rc == QF_OK);
    qc_start(node->core, node->now, &effects);
    perform(world, node, effects, 0);
}

static void stop(struct member *node)
{
    node->core = qc_free(node->core);
    ql_store_close(&node->store);
}

/* Three nodes that have agreed on who takes part. */
static void make(struct world *world, struct member *node)
{
    struct ql_sequence_state sequence = { CLUSTER, (uint64_t)(node - world->nodes) + 1, 1, 0 };
    struct qc_members members = { .count = NODES };
    struct qf_strbuf buf = QF_STRBUF_INIT;
    const struct ql_options log_options = { .file_bytes = 1 << 20 };
    qf_rc rc;

    for (uint32_t i = 0; i < NODES; i++) {
        members.items[i] = (struct qc_member){ i + 1, QC_VOTER, { (char)('a' + i) } };
    }
    qc_members_encode(&buf, &members);
    node->disk = sim_disk_new("d");
    rc = ql_store_create(sim_disk_of(node->disk), &sequence, NULL);
    if (rc == QF_OK)
        rc = ql_store_open(&node->store, sim_disk_of(node->disk), &log_options, NULL);
    if (rc == QF_OK)
        rc = ql_log_append(node->store.log,
                           &(struct ql_entry){ 1, 1, QL_CHANGE, qf_strbuf_view(&buf) }, 1, true,
                           NULL);
    if (rc == QF_OK)
        rc = ql_log_sync(node->store.log, NULL);
    assert(rc == QF_OK);
    ql_store_close(&node->store);
    qf_strbuf_done(&buf);
}

static void clear(struct world *world)
{
    for (size_t i = 0; i < NODES; i++) {
        if (world->nodes[i].core)
            stop(&world->nodes[i]);
        world->nodes[i].disk = sim_disk_free(world->nodes[i].disk);
    }
    for (size_t i = 0; i < world->net.count; i++)
        free(world->net.items[i].entries);
    world->net.count = 0;
}

static void deliver(struct world *world, size_t at, bool stays);
static void sync_disk(struct world *world, struct member *node);
static void step(struct world *world, struct member *node, struct qc_event event);

/* Let node a be elected, and everything that follows from it come to rest. */
static void elect(struct world *world)
{
    world->nodes[0].now += 1000;
    step(world, &world->nodes[0], (struct qc_event){ .kind = QC_EVENT_TICK });
    for (int i = 0; i < 200; i++) {
        if (world->net.count)
            deliver(world, 0, false);
        for (size_t j = 0; j < NODES; j++)
            if (ql_log_dirty(world->nodes[j].store.log))
                sync_disk(world, &world->nodes[j]);
    }
    assert(!world->net.count);
    assert(qc_serves(world->nodes[0].core));
}

static void reset(void *ctx)
{
    struct world *world = ctx;

    clear(world);
    memset(world->leaders, 0, sizeof(world->leaders));
    memset(world->truth, 0, sizeof(world->truth));
    memset(world->acked, 0, sizeof(world->acked));
    world->left = world->budget;
    world->broken = NULL;
    world->requests = 0;
    world->path.count = 0;
    for (size_t i = 0; i < NODES; i++)
        make(world, &world->nodes[i]);
    for (size_t i = 0; i < NODES; i++)
        start(world, &world->nodes[i]);
    if (world->led)
        elect(world);
}

static void send(struct world *world, struct member *from, const struct qc_message *message)
{
    struct flying flying = { .message = *message };
    struct qf_strbuf buf = QF_STRBUF_INIT;
    char *data;

    if (message->count) {
        flying.entries = qf_xcalloc(message->count, sizeof(*flying.entries));
        for (uint32_t i = 0; i < message->count; i++) {
            qf_rc rc = ql_log_read(from->store.log, message->index + 1 + i, &buf,
                                   &flying.entries[i], NULL);

            assert(rc == QF_OK);
        }
        flying.entries =
            qf_xrealloc(flying.entries, message->count * sizeof(*flying.entries) + buf.len);
        data = (char *)(flying.entries + message->count);
        memcpy(data, buf.data, buf.len);
        for (uint32_t i = 0; i < message->count; i++) {
            flying.entries[i].data.data = data + QL_ENTRY_HEADER;
            data += ql_entry_bytes(flying.entries[i].data.len);
        }
        qf_strbuf_done(&buf);
    }
    flying.message.entries = flying.entries;
    flying.message.space = UINT64_MAX; /* disks are never full here */
    flying.hash = message_hash(&flying.message);
    if (world->net.count == NET_MAX)
        world->broken = "more messages than this world has room for";
    else
        QF_VEC_PUSH(&world->net, flying);
    if (world->broken)
        free(flying.entries);
}

static void note_applied(struct world *world, struct member *node, uint64_t before)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;

    for (uint64_t i = before + 1; i <= qc_state(node->core)->applied && i < INDEXES; i++) {
        struct ql_entry entry;
        uint64_t hash;

        qf_strbuf_reset(&buf);
        if (ql_log_read(node->store.log, i, &buf, &entry, NULL) != QF_OK) {
            world->broken = "an entry is applied that the log does not have";
            break;
        }
        hash = entry_hash(&entry);
        if (world->truth[i] && world->truth[i] != hash)
            world->broken = "two entries at one index";
        if (world->acked[i] && world->acked[i] != hash)
            world->broken = "an acknowledged record is lost";
        world->truth[i] = hash;
    }
    qf_strbuf_done(&buf);
}

static void note_leader(struct world *world, struct member *node)
{
    uint64_t id = (uint64_t)(node - world->nodes) + 1, term = qc_term(node->core);

    if (!qc_leads(node->core) || term >= TERMS)
        return;
    if (world->leaders[term] && world->leaders[term] != id)
        world->broken = "two leaders in one term";
    world->leaders[term] = id;
}

/* What is acknowledged is durable on a majority at that moment. */
static void note_acked(struct world *world, struct member *node, uint64_t index)
{
    uint64_t term = ql_log_term(node->store.log, index);
    size_t durable = 0;

    for (size_t i = 0; i < NODES; i++)
        durable += world->nodes[i].synced >= index &&
                   ql_log_term(world->nodes[i].store.log, index) == term;
    if (durable <= NODES / 2)
        world->broken = "a record was acknowledged that a minority of disks has";
    world->acked[index] = world->truth[index];
}

static qf_rc append(struct member *node, const struct qc_effect *effect)
{
    node->synced = QF_MIN(node->synced, effect->entries[0].index - 1);
    return ql_log_append(node->store.log, effect->entries, effect->count, true, NULL);
}

static void perform(struct world *world, struct member *node, struct qc_effects effects,
                    uint64_t applied_before)
{
    qf_rc rc = QF_OK;

    for (size_t i = 0; i < effects.count && rc == QF_OK; i++) {
        const struct qc_effect *effect = &effects.items[i];

        if (effect->kind == QC_EFFECT_VOTE)
            rc = ql_store_vote(&node->store, effect->term, effect->vote, NULL);
        else if (effect->kind == QC_EFFECT_APPEND)
            rc = append(node, effect);
        else if (effect->kind == QC_EFFECT_SEND)
            send(world, node, &effect->message);
        else if (effect->kind == QC_EFFECT_STOP)
            world->broken = effect->why;
        else if (effect->kind == QC_EFFECT_DONE && effect->rc == QF_OK && effect->index < INDEXES)
            note_acked(world, node, effect->index);
        if (effect->kind == QC_EFFECT_APPLIED) {
            note_applied(world, node, applied_before);
            applied_before = qc_state(node->core)->applied;
        }
    }
    assert(rc == QF_OK);
    note_leader(world, node);
}

static void step(struct world *world, struct member *node, struct qc_event event)
{
    uint64_t before = qc_state(node->core)->applied;
    struct qc_effects effects;

    event.now = node->now;
    node->hash = fold(fold(fold(node->hash, event.kind), event.index), event.now);
    if (event.message)
        node->hash = fold(node->hash, message_hash(event.message));
    qc_step(node->core, &event, &effects);
    perform(world, node, effects, before);
}

static void deliver(struct world *world, size_t at, bool stays)
{
    struct flying flying = world->net.items[at];

    if (!stays)
        world->net.items[at] = world->net.items[--world->net.count];
    step(world, &world->nodes[flying.message.to - 1],
         (struct qc_event){ .kind = QC_EVENT_MESSAGE, .message = &flying.message });
    if (!stays)
        free(flying.entries);
}

static void sync_disk(struct world *world, struct member *node)
{
    uint64_t last = ql_log_last(node->store.log);
    qf_rc rc = world->early && world->path.count ? QF_OK : ql_log_sync(node->store.log, NULL);

    assert(rc == QF_OK);
    if (!ql_log_dirty(node->store.log))
        node->synced = last;
    step(world, node,
         (struct qc_event){ .kind = QC_EVENT_PERSISTED,
                            .index = last,
                            .term = ql_log_term(node->store.log, last) });
}

static void crash(struct world *world, struct member *node, bool power)
{
    struct qf_prng prng = { 1 };

    stop(node);
    if (power)
        sim_disk_power_loss(node->disk, &prng);
    start(world, node);
}

static const char *apply(void *ctx, uint16_t move)
{
    struct world *world = ctx;
    struct member *node = &world->nodes[move % ARG % NODES];

    world->path.moves[world->path.count++] = move;
    switch ((enum kind)(move / ARG)) {
    case DELIVER:
        deliver(world, move % ARG, false);
        break;
    case DOUBLE:
        world->left.doubles--;
        deliver(world, move % ARG, true);
        break;
    case TIMER:
        world->left.timers--;
        node->now += 1000;
        step(world, node, (struct qc_event){ .kind = QC_EVENT_TICK });
        break;
    case SYNC:
        sync_disk(world, node);
        break;
    case OFFER:
        world->left.offers--;
        step(world, node,
             (struct qc_event){
                 .kind = QC_EVENT_COMMAND, .request = ++world->requests, .data = QF_STR("\1x") });
        break;
    case CRASH:
        world->left.crashes--;
        crash(world, node, false);
        break;
    case LOSS:
        world->left.losses--;
        crash(world, node, true);
        break;
    case KINDS:
        break;
    }
    return world->broken;
}

static bool same_before(const struct world *world, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (world->net.items[i].hash == world->net.items[at].hash)
            return true;
    return false;
}

static size_t moves(void *ctx, uint16_t *out)
{
    struct world *world = ctx;
    size_t count = 0;

    if (world->path.count >= world->depth)
        return 0;
    for (size_t i = 0; i < world->net.count; i++) {
        if (same_before(world, i))
            continue;
        out[count++] = (uint16_t)(DELIVER * ARG + i);
        if (world->left.doubles)
            out[count++] = (uint16_t)(DOUBLE * ARG + i);
    }
    for (size_t i = 0; i < NODES; i++) {
        if (world->left.timers)
            out[count++] = (uint16_t)(TIMER * ARG + i);
        if (ql_log_dirty(world->nodes[i].store.log))
            out[count++] = (uint16_t)(SYNC * ARG + i);
        if (world->left.offers && qc_serves(world->nodes[i].core))
            out[count++] = (uint16_t)(OFFER * ARG + i);
        if (world->left.crashes)
            out[count++] = (uint16_t)(CRASH * ARG + i);
        if (world->left.losses)
            out[count++] = (uint16_t)(LOSS * ARG + i);
    }
    return count;
}

static void save(void *ctx, uint32_t level)
{
    struct world *world = ctx;

    if (!world->saved[level])
        world->saved[level] = qf_xcalloc(1, sizeof(*world->saved[level]));
    *world->saved[level] = world->path;
}

static void restore(void *ctx, uint32_t level)
{
    struct world *world = ctx;
    const struct path *path = world->saved[level];

    reset(world);
    for (size_t i = 0; i < path->count; i++)
        (void)apply(world, path->moves[i]);
}

static const char *check(void *ctx)
{
    return ((struct world *)ctx)->broken;
}

static int by_hash(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static size_t encode(void *ctx, uint8_t *bytes)
{
    struct world *world = ctx;
    uint64_t words[NET_MAX + NODES + TERMS + INDEXES + 4], *at = words;

    for (size_t i = 0; i < world->net.count; i++)
        *at++ = world->net.items[i].hash;
    qsort(words, world->net.count, sizeof(words[0]), by_hash);
    for (size_t i = 0; i < NODES; i++)
        *at++ = world->nodes[i].hash + ql_log_dirty(world->nodes[i].store.log);
    *at = 0;
    memcpy(at++, &world->left, sizeof(world->left));
    memcpy(at, world->leaders, sizeof(world->leaders));
    at += TERMS;
    memcpy(at, world->acked, sizeof(world->acked));
    at += INDEXES;
    memcpy(bytes, words, (size_t)(at - words) * sizeof(words[0]));
    return (size_t)(at - words) * sizeof(words[0]);
}

static void describe(void *ctx, uint16_t move, char *text, size_t size)
{
    static const char *const words[KINDS] = { "message", "message, stays", "timer",     "sync",
                                              "offer",   "crash",          "power loss" };
    struct world *world = ctx;
    size_t at = move % ARG;

    if (move / ARG <= DOUBLE && at < world->net.count) {
        const struct qc_message *m = &world->net.items[at].message;

        (void)snprintf(text, size, "%s kind %d from %c to %c term %llu index %llu count %u",
                       words[move / ARG], (int)m->kind, (char)('a' + m->from - 1),
                       (char)('a' + m->to - 1), (unsigned long long)m->term,
                       (unsigned long long)m->index, (unsigned)m->count);
    } else {
        (void)snprintf(text, size, "%s %c", words[move / ARG], (char)('a' + at));
    }
}

static bool option(struct world *world, const char *text, uint64_t *states)
{
    const struct {
        const char *name;
        uint8_t *value;
    } options[] = { { "depth=", &world->depth },          { "led=", &world->led },
                    { "early=", &world->early },          { "timeouts=", &world->budget.timers },
                    { "offers=", &world->budget.offers }, { "crashes=", &world->budget.crashes },
                    { "losses=", &world->budget.losses }, { "doubles=", &world->budget.doubles } };

    for (size_t i = 0; i < QF_COUNT_OF(options); i++)
        if (strncmp(text, options[i].name, strlen(options[i].name)) == 0) {
            *options[i].value = (uint8_t)strtoul(text + strlen(options[i].name), NULL, 10);
            return true;
        }
    if (strncmp(text, "states=", 7) != 0)
        return false;
    *states = strtoull(text + 7, NULL, 10);
    return true;
}

int main(int argc, char **argv)
{
    static struct world world;
    struct explore_world view = { &world, reset, save,   restore, moves,
                                  apply,  check, encode, describe };
    uint64_t states_max = 10000000;
    struct explore_result result;

    for (int i = 1; i < argc; i++)
        if (!option(&world, argv[i], &states_max)) {
            fprintf(stderr, "explore_queue: bad option %s\n", argv[i]);
            return 2;
        }
    result = explore(&view, states_max);
    printf("queue: %d nodes, depth %u, %u timeouts, %u offers, %u crashes, %u losses, %u doubled: "
           "%llu "
           "states, %llu "
           "transitions, %s\n",
           NODES, world.depth, world.budget.timers, world.budget.offers, world.budget.crashes,
           world.budget.losses, world.budget.doubles, (unsigned long long)result.states,
           (unsigned long long)result.transitions,
           result.broken     ? "BROKEN"
           : result.complete ? "complete"
                             : "NOT COMPLETE");
    clear(&world);
    QF_VEC_DONE(&world.net);
    for (int level = 0; level <= EXPLORE_DEPTH_MAX; level++)
        free(world.saved[level]);
    if (world.early)
        return result.broken ? 0 : 1;
    return result.broken || !result.complete ? 1 : 0;
}
