/* explore_ring.c - every reachable state of a slot that moves under puts, with every order of what everybody does.
 *
 * usage: explore_ring [nodes=N] [copies=N] [blobs=N] [add=N] [remove=N] [cancel=N] [clean=N] [states=N] [without=RULE]
 *
 * Ring, manifest, keepers and tallies are the real ones. One slot, one partition. Sealers put blobs, linger and name them;
 * the operator adds a node, removes one, cancels; epochs are told and adopted one by one; blobs are copied; nodes are
 * verified, and what was verified is said later; slots are cleaned by orders that come late. No disk is lost here. With a rule
 * taken out the program ends well if it finds a broken state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/macros.h"
#include "ring/core/keep.h"
#include "ring/core/manifest.h"
#include "ring/core/tally.h"
#include "tests/explore/explore.h"

enum { NODES_MAX = 5, BLOBS_MAX = 3, COPIES_OF_STATE = EXPLORE_DEPTH_MAX + 1 };

enum kind {
    ADD,
    REMOVE,
    CANCEL,
    BEGIN,
    ADOPT,
    TELL,
    PUT,
    ARRIVE,
    NAME,
    COPY,
    VERIFY,
    SAY_HELD,
    CLEAN,
    ORDER,
    KINDS
};
static const char *const kind_names[KINDS] = { "add",    "remove", "cancel", "begin", "adopt",
                                               "tell",   "put",    "arrive", "name",  "copy",
                                               "verify", "held",   "clean",  "order" };

struct sealer {
    bool puts, named;
    struct rg_tally tally;
    uint8_t arrived;
};

struct state {
    struct rg_ring *ring; /* the tables of the copy in use */
    uint64_t adopted;     /* epoch of the partition */
    uint8_t named;
    struct rg_keep keeps[NODES_MAX];
    uint8_t holds[NODES_MAX]; /* blobs */
    struct sealer sealers[BLOBS_MAX];
    uint64_t verified[NODES_MAX]; /* 1 + epoch listed in; 0: nothing to say */
    uint64_t orders[NODES_MAX];   /* epoch of an order to clean under way; 0: none */
    uint8_t left_add, left_remove, left_cancel, left_clean;
};

static struct state now, saved[COPIES_OF_STATE];
static struct rg_ring *rings[COPIES_OF_STATE + 1];
static struct {
    unsigned nodes, copies, blobs, add, remove, cancel, clean;
    uint64_t states, ring, manifest;
    bool expect;
} options = { .nodes = 3, .copies = 2, .blobs = 1, .add = 1, .states = 3000000 };

static uint16_t move_of(enum kind kind, unsigned a, unsigned b)
{
    return (uint16_t)(kind << 8 | a << 4 | b);
}

static enum rg_verdict enter(struct rg_entry entry)
{
    bool opens = entry.kind == RG_ADD || entry.kind == RG_REMOVE;

    /* Only what opens a change counts an index: equal states have equal bytes. */
    return rg_ring_apply(now.ring, now.ring->applied + opens, &entry);
}

static char letter = 'a'; /* of the nodes' names: it decides where they stand */

static struct rg_entry added(const char *node_name)
{
    return (struct rg_entry){ .kind = RG_ADD, .name = qf_str_from(node_name), .incarnation = 1 };
}

static void add_node(unsigned n)
{
    char node_name[3] = { letter, (char)('0' + n), 0 };

    (void)enter(added(node_name));
}

/* Do all nodes that are to be added become owners? */
static bool names_matter(void)
{
    struct rg_ring *ring = rg_ring_new(1);
    rg_nodes first = RG_NODE(options.nodes) - 1;
    bool matter = true;

    for (unsigned n = 0; n < options.nodes + options.add; n++) {
        char node_name[3] = { letter, (char)('0' + n), 0 };
        struct rg_entry entry = added(node_name);
        struct rg_owners owners;

        (void)rg_ring_apply(ring, n + 1, &entry);
        owners = rg_walks_owners(&ring->walks, 0, first | RG_NODE(n), (uint8_t)options.copies);
        matter &= n < options.nodes || (rg_owners_set(&owners) & RG_NODE(n)) != 0;
    }
    (void)rg_ring_free(ring);
    return matter;
}

static void reset(void *ctx)
{
    struct rg_ring *ring = now.ring;

    (void)ctx;
    memset(&now, 0, sizeof(now));
    now.ring = rg_ring_new(1);
    for (unsigned n = 0; n < options.nodes; n++)
        add_node(n);
    (void)enter((struct rg_entry){ .kind = RG_FOUND, .copies = (uint8_t)options.copies });
    if (ring) {
        rg_ring_copy(ring, now.ring);
        (void)rg_ring_free(now.ring);
        now.ring = ring;
    }
    now.ring->unsafe = options.ring;
    now.adopted = 1;
    for (unsigned n = 0; n < NODES_MAX; n++)
        now.keeps[n] = (struct rg_keep){ .slots = 1, .told = n < options.nodes, .epochs = { 1 } };
    now.left_add = (uint8_t)options.add;
    now.left_remove = (uint8_t)options.remove;
    now.left_cancel = (uint8_t)options.cancel;
    now.left_clean = (uint8_t)options.clean;
}

static void save(void *ctx, uint32_t level)
{
    (void)ctx;
    if (!rings[level])
        rings[level] = rg_ring_new(1);
    saved[level] = now;
    saved[level].ring = rings[level];
    rg_ring_copy(rings[level], now.ring);
}

static void restore(void *ctx, uint32_t level)
{
    struct rg_ring *ring = now.ring;

    (void)ctx;
    now = saved[level];
    now.ring = ring;
    rg_ring_copy(ring, saved[level].ring);
}

static const struct rg_slot *slot(void)
{
    return &now.ring->slots[0];
}

/* --- what can happen --- */

static size_t operator_moves(uint16_t *moves)
{
    size_t count = 0;

    if (now.left_add)
        moves[count++] = move_of(ADD, 0, 0);
    for (unsigned n = 0; now.left_remove && n < NODES_MAX; n++)
        if (now.ring->nodes[n].state == RG_NODE_NORMAL)
            moves[count++] = move_of(REMOVE, n, 0);
    for (unsigned i = 0; i < 4; i++) {
        struct rg_slot_set ready;

        if (now.left_cancel && rg_change_runs(&now.ring->changes[i]) &&
            now.ring->changes[i].state == RG_RUNNING)
            moves[count++] = move_of(CANCEL, i, 0);
        if (rg_ring_ready(now.ring, &now.ring->changes[i], &ready))
            moves[count++] = move_of(BEGIN, i, 0);
    }
    if (now.adopted < now.ring->epoch)
        moves[count++] = move_of(ADOPT, 0, 0);
    return count;
}

static size_t sealer_moves(uint16_t *moves)
{
    size_t count = 0;

    for (unsigned b = 0; b < options.blobs; b++) {
        struct sealer *sealer = &now.sealers[b];

        if (sealer->named)
            continue;
        /* Begin, or begin again in a later epoch. */
        if (!sealer->puts || sealer->tally.slot.epoch != slot()->epoch)
            moves[count++] = move_of(PUT, b, 0);
        for (unsigned n = 0; sealer->puts && n < NODES_MAX; n++)
            if (rg_slot_everyone(&sealer->tally.slot) & ~sealer->arrived & RG_NODE(n))
                moves[count++] = move_of(ARRIVE, b, n);
        if (sealer->puts && rg_tally_state(&sealer->tally, now.ring) == RG_TALLY_ENOUGH)
            moves[count++] = move_of(NAME, b, 0);
    }
    return count;
}

static bool is_in_ring(unsigned n)
{
    return now.ring->nodes[n].state != RG_NODE_NONE && now.ring->nodes[n].state != RG_NODE_REMOVED;
}

static size_t node_moves(uint16_t *moves)
{
    size_t count = 0;

    for (unsigned n = 0; n < NODES_MAX; n++) {
        bool asked = slot()->change && (rg_owners_set(&slot()->to) & ~slot()->held & RG_NODE(n));

        if (!is_in_ring(n))
            continue;
        if (!now.keeps[n].told || now.keeps[n].epochs[0] < slot()->epoch)
            moves[count++] = move_of(TELL, n, 0);
        for (unsigned b = 0; asked && now.keeps[n].told && b < options.blobs; b++)
            if (now.named & ~now.holds[n] & 1u << b)
                moves[count++] = move_of(COPY, n, b);
        if (asked && now.keeps[n].told && (now.named & ~now.holds[n]) == 0 && !now.verified[n] &&
            (now.adopted >= slot()->epoch || (options.ring & RG_UNSAFE_HELD_ANYWHERE)))
            moves[count++] = move_of(VERIFY, n, 0);
        if (now.verified[n])
            moves[count++] = move_of(SAY_HELD, n, 0);
        if (now.left_clean && !now.orders[n] && (slot()->stale & RG_NODE(n)))
            moves[count++] = move_of(CLEAN, n, 0);
        if (now.orders[n])
            moves[count++] = move_of(ORDER, n, 0);
    }
    return count;
}

static size_t list_moves(void *ctx, uint16_t *moves)
{
    size_t count = operator_moves(moves);

    (void)ctx;
    count += sealer_moves(moves + count);
    return count + node_moves(moves + count);
}

/* --- what it does --- */

static void arrive(unsigned b, unsigned n)
{
    struct sealer *sealer = &now.sealers[b];
    bool takes = rg_keep_takes(&now.keeps[n], 0, sealer->tally.slot.epoch);

    sealer->arrived |= (uint8_t)(1u << n);
    if (takes)
        now.holds[n] |= (uint8_t)(1u << b);
    rg_tally_hear(&sealer->tally, (uint8_t)n, takes ? RG_ANSWER_HAS : RG_ANSWER_FAILED);
}

/* Through the real manifest: adopt, then name. */
static void name(unsigned b)
{
    struct rg_manifest *manifest = rg_manifest_new(1, 0, 0);
    struct rg_blob blob = { .name = QF_STR("b") };
    struct rg_note epoch = { .kind = RG_NOTE_EPOCH,
                             .epoch = now.adopted,
                             .slots = rg_slot_set_of(0) },
                   sealed = { .kind = RG_NOTE_SEALED,
                              .epoch = now.sealers[b].tally.epoch,
                              .added = &blob,
                              .added_count = 1 };

    rg_manifest_unsafe(manifest, options.manifest);
    (void)rg_manifest_apply(manifest, 1, &epoch);
    if (rg_manifest_apply(manifest, 2, &sealed) == RG_NOTED) {
        now.named |= (uint8_t)(1u << b);
        now.sealers[b].named = true;
    }
    now.sealers[b].puts = false;
    now.sealers[b].arrived = 0;
    (void)rg_manifest_free(manifest);
}

static void clean(unsigned n)
{
    struct rg_entry entry = { .kind = RG_CLEAN, .node = (uint8_t)n, .slots = rg_slot_set_of(0) };

    now.left_clean--;
    /* A quorum is asked, as it is now. */
    for (uint8_t k = 0; k < NODES_MAX; k++)
        if ((now.named & ~now.holds[k]) == 0)
            (void)enter((struct rg_entry){ .kind = RG_HELD,
                                           .node = k,
                                           .incarnation = 1,
                                           .epoch = now.adopted,
                                           .slots = rg_slot_set_of(0) });
    if (enter(entry) == RG_APPLIED)
        now.orders[n] = slot()->epoch;
}

static void order(unsigned n)
{
    if (rg_keep_cleans(&now.keeps[n], 0, now.orders[n])) {
        now.holds[n] = 0;
        (void)enter((struct rg_entry){ .kind = RG_CLEANED,
                                       .node = (uint8_t)n,
                                       .epoch = now.orders[n],
                                       .slots = rg_slot_set_of(0) });
    }
    now.orders[n] = 0;
}

static void operate(enum kind kind, unsigned a)
{
    struct rg_entry entry = { .node = (uint8_t)a,
                              .change = now.ring->changes[a].id,
                              .slots = rg_slot_set_of(0) };

    if (kind == ADD) {
        now.left_add--;
        add_node(options.nodes + options.add - now.left_add - 1);
    } else if (kind == REMOVE) {
        now.left_remove--;
        entry.kind = RG_REMOVE;
        (void)enter(entry);
    } else if (kind == CANCEL) {
        now.left_cancel--;
        entry.kind = RG_CANCEL;
        (void)enter(entry);
    } else {
        entry.kind = RG_BEGIN;
        (void)enter(entry);
    }
}

static const char *apply(void *ctx, uint16_t move)
{
    unsigned a = move >> 4 & 15, b = move & 15;
    enum kind kind = (enum kind)(move >> 8);

    (void)ctx;
    switch (kind) {
    case ADD:
    case REMOVE:
    case CANCEL:
    case BEGIN:
        operate(kind, a);
        break;
    case ADOPT:
        now.adopted = now.ring->epoch;
        break;
    case TELL:
        (void)rg_keep_tell(&now.keeps[a], &slot()->epoch);
        break;
    case PUT:
        now.sealers[a].puts = true;
        now.sealers[a].arrived = 0;
        rg_tally_begin(&now.sealers[a].tally, now.ring, 0, RG_LEVEL_QUORUM);
        break;
    case ARRIVE:
        arrive(a, b);
        break;
    case NAME:
        name(a);
        break;
    case COPY:
        (void)rg_keep_hear(&now.keeps[a], 0, slot()->epoch);
        now.holds[a] |= (uint8_t)(1u << b);
        break;
    case VERIFY:
        (void)rg_keep_hear(&now.keeps[a], 0, slot()->epoch);
        now.verified[a] = 1 + now.adopted;
        break;
    case SAY_HELD:
        (void)enter((struct rg_entry){ .kind = RG_HELD,
                                       .node = (uint8_t)a,
                                       .incarnation = 1,
                                       .epoch = now.verified[a] - 1,
                                       .slots = rg_slot_set_of(0) });
        now.verified[a] = 0;
        break;
    case CLEAN:
        clean(a);
        break;
    case ORDER:
        order(a);
        break;
    case KINDS:
        break;
    }
    return NULL;
}

/* A named blob is with a majority of the owners, in every epoch. */
static const char *check(void *ctx)
{
    static char text[80];

    (void)ctx;
    for (unsigned b = 0; b < options.blobs; b++) {
        rg_nodes have = 0;

        for (unsigned n = 0; n < NODES_MAX; n++)
            if (now.holds[n] >> b & 1)
                have |= RG_NODE(n);
        if (!(now.named >> b & 1) || rg_is_quorum(&slot()->owners, have))
            continue;
        (void)snprintf(text, sizeof(text), "blob %u is named, and no majority of the owners has it",
                       b);
        return text;
    }
    return NULL;
}

static size_t encode(void *ctx, uint8_t *bytes)
{
    struct qf_strbuf buf = QF_STRBUF_INIT;
    size_t len;

    (void)ctx;
    rg_ring_encode(&buf, now.ring);
    for (unsigned n = 0; n < NODES_MAX; n++) {
        qf_strbuf_putc(&buf, (char)(now.keeps[n].told | now.holds[n] << 1));
        qf_strbuf_u64(&buf, now.keeps[n].epochs[0]);
        qf_strbuf_printf(&buf, ",%u,%u,", (unsigned)now.verified[n], (unsigned)now.orders[n]);
    }
    for (unsigned b = 0; b < options.blobs; b++) {
        const struct sealer *s = &now.sealers[b];

        qf_strbuf_printf(&buf, "%d%d", s->puts, s->named);
        if (s->puts)
            qf_strbuf_printf(&buf, "%u,%u,%u,%u,%u,%u;", (unsigned)s->tally.slot.epoch,
                             (unsigned)s->tally.epoch, (unsigned)s->tally.has,
                             (unsigned)s->tally.failed, s->arrived,
                             (unsigned)rg_slot_everyone(&s->tally.slot));
    }
    qf_strbuf_printf(&buf, "%u,%u,%u%u%u%u", (unsigned)now.adopted, now.named, now.left_add,
                     now.left_remove, now.left_cancel, now.left_clean);
    len = QF_MIN(buf.len, (size_t)EXPLORE_BYTES_MAX);
    memcpy(bytes, buf.data, len);
    qf_strbuf_done(&buf);
    return len;
}

static void describe(void *ctx, uint16_t move, char *text, size_t size)
{
    (void)ctx;
    (void)snprintf(text, size, "%s %u %u (epoch %u, adopted %u)", kind_names[move >> 8],
                   move >> 4 & 15, move & 15, (unsigned)now.ring->epoch, (unsigned)now.adopted);
}

static bool take_out(const char *rule)
{
    options.expect = true;
    if (strcmp(rule, "held-behind-the-epoch") == 0)
        options.ring = RG_UNSAFE_HELD_ANYWHERE;
    else if (strcmp(rule, "old-and-new-majorities") == 0)
        options.ring = RG_UNSAFE_NEW_ALONE;
    else if (strcmp(rule, "entries-of-their-epoch") == 0)
        options.manifest = RG_MANIFEST_UNSAFE_ANY_EPOCH;
    else
        return false;
    return true;
}

static bool parse(const char *word)
{
    unsigned *const places[] = { &options.nodes,  &options.copies, &options.blobs, &options.add,
                                 &options.remove, &options.cancel, &options.clean };
    static const char *const names[] = { "nodes=",  "copies=", "blobs=", "add=",
                                         "remove=", "cancel=", "clean=" };

    if (strncmp(word, "without=", 8) == 0)
        return take_out(word + 8);
    if (strncmp(word, "states=", 7) == 0) {
        options.states = strtoull(word + 7, NULL, 10);
        return true;
    }
    for (size_t i = 0; i < QF_COUNT_OF(names); i++)
        if (strncmp(word, names[i], strlen(names[i])) == 0) {
            *places[i] = (unsigned)strtoul(word + strlen(names[i]), NULL, 10);
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    static const struct explore_world world = { NULL,  reset, save,   restore, list_moves,
                                                apply, check, encode, describe };
    struct explore_result result;

    for (int i = 1; i < argc; i++)
        if (!parse(argv[i])) {
            fprintf(stderr, "usage: explore_ring [nodes=N] [copies=N] [blobs=N] [add=N] [remove=N]"
                            " [cancel=N] [clean=N] [states=N] [without=RULE]\n");
            return 2;
        }
    if (options.nodes + options.add > NODES_MAX || options.blobs > BLOBS_MAX)
        return 2;
    while (!names_matter() && letter < 'z')
        letter++;
    result = explore(&world, options.states);
    printf("%llu states, %llu transitions, depth %u%s%s\n", (unsigned long long)result.states,
           (unsigned long long)result.transitions, result.depth,
           result.complete ? ", complete" : "", result.broken ? ", BROKEN" : "");
    for (size_t i = 0; i < QF_COUNT_OF(rings); i++)
        (void)rg_ring_free(rings[i]);
    (void)rg_ring_free(now.ring);
    if (options.expect)
        return result.broken ? 0 : 1;
    return result.broken || !result.complete;
}
