/* world.c - time, messages, who is reachable. */
#include "tests/sim_ring/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"

bool chance(struct world *w, double probability)
{
    return qf_prng_chance(&w->prng, probability);
}

int64_t between(struct world *w, int64_t from, int64_t to)
{
    return from + (int64_t)qf_prng_below(&w->prng, (uint64_t)(to - from + 1));
}

void say(const struct world *w, const char *format, ...)
{
    va_list args;

    if (!w->trace)
        return;
    printf("[%6d] ", (int)w->now);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

void fail(struct world *w, const char *format, ...)
{
    va_list args;

    if (w->failure[0])
        return;
    va_start(args, format);
    (void)vsnprintf(w->failure, sizeof(w->failure), format, args);
    va_end(args);
}

/* --- messages --- */

static bool earlier(const struct message *a, const struct message *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void push(struct world *w, const struct message *message)
{
    struct message *copy = qf_xmalloc(sizeof(*copy));
    size_t at = w->heap.count;

    *copy = *message;
    copy->order = w->order++;
    QF_VEC_PUSH(&w->heap, copy);
    for (; at > 0 && earlier(copy, w->heap.items[(at - 1) / 2]); at = (at - 1) / 2)
        w->heap.items[at] = w->heap.items[(at - 1) / 2];
    w->heap.items[at] = copy;
}

struct message *next_message(struct world *w)
{
    struct message *first, *last;
    size_t at = 0, child;

    if (w->heap.count == 0)
        return NULL;
    first = w->heap.items[0];
    last = w->heap.items[--w->heap.count];
    while ((child = 2 * at + 1) < w->heap.count) {
        if (child + 1 < w->heap.count && earlier(w->heap.items[child + 1], w->heap.items[child]))
            child++;
        if (!earlier(w->heap.items[child], last))
            break;
        w->heap.items[at] = w->heap.items[child];
        at = child;
    }
    if (w->heap.count)
        w->heap.items[at] = last;
    return first;
}

static bool is_there(const struct world *w, int endpoint)
{
    if (endpoint < KEEPERS)
        return w->keepers[endpoint].alive && !w->keepers[endpoint].isolated;
    if (endpoint < META)
        return w->coordinators[endpoint - COORDINATOR].alive &&
               !w->coordinators[endpoint - COORDINATOR].isolated;
    return true;
}

bool reaches(const struct world *w, int from, int to)
{
    return is_there(w, from) && is_there(w, to);
}

/* What who is deaf does not hear. */
static bool is_of_epochs(const struct world *w, const struct message *m)
{
    bool driven = m->kind == TO_STREAM || m->kind == TO_VERIFY || m->kind == TO_CLEAN;

    return m->kind == TO_TELL || (m->kind == TO_NOTE && m->note.kind == RG_NOTE_EPOCH) ||
           (driven && w->faults->deaf_to_leader);
}

/* Of what only some worlds have: the others draw nothing for it. */
static bool chance_if(struct world *w, bool it_is, double probability)
{
    return it_is && probability > 0 && !w->quiet && chance(w, probability);
}

void send(struct world *w, const struct message *message)
{
    struct message m = *message;
    double lost = w->quiet ? 0 : 0.02, late = w->quiet ? 0 : w->faults->late,
           twice = w->quiet ? 0 : 0.03;

    w->figures.messages++;
    m.sent_ms = message->sent_ms ? message->sent_ms : w->now;
    if (m.from >= COORDINATOR && m.from < META)
        m.life = w->coordinators[m.from - COORDINATOR].life; /* answers are for this life of it */
    else if (m.to >= COORDINATOR && m.to < META && m.life == 0)
        m.life = w->coordinators[m.to - COORDINATOR].life;
    if (!is_there(w, m.from) || chance(w, lost) ||
        (w->now < w->deaf_ms[m.to] && is_of_epochs(w, &m))) {
        w->figures.lost++;
        return;
    }
    m.at = w->now + between(w, 1, 20) + (chance(w, late) ? between(w, 0, LATE_MS) : 0);
    if (m.kind != TO_NOTE && m.kind != GARBAGE && chance(w, late / 4))
        m.at += between(w, 0, w->faults->later_ms); /* nothing bounds these */
    if (chance_if(w, m.kind == TO_CLEAN, w->faults->late_clean))
        m.at += between(w, 0, w->faults->later_ms);
    if (chance_if(w, m.kind == TO_META && m.entry.kind == RG_HELD, w->faults->late_held))
        m.at += between(w, 0, LATE_MS);
    push(w, &m);
    if (chance(w, twice)) {
        m.at = w->now + between(w, 1, LATE_MS);
        push(w, &m);
        w->figures.doubled++;
    }
}

static uint32_t life_of(const struct world *w, int endpoint)
{
    if (endpoint < KEEPERS)
        return w->keepers[endpoint].life;
    return endpoint < META ? w->coordinators[endpoint - COORDINATOR].life : 0;
}

void alarm_at(struct world *w, int to, enum message_kind kind, int64_t in_ms, uint32_t slot)
{
    struct message m = { .kind = kind,
                         .at = w->now + in_ms,
                         .to = to,
                         .from = to,
                         .slot = slot,
                         .life = life_of(w, to) };

    push(w, &m);
}

/* --- names and numbers --- */

int keeper_of(const struct rg_ring *ring, uint8_t number)
{
    return ring->nodes[number].state == RG_NODE_NONE ? -1 : ring->nodes[number].name[1] - '0';
}

uint8_t number_of(const struct rg_ring *ring, int keeper)
{
    char name[3] = { 'k', (char)('0' + keeper), 0 };

    return rg_ring_node(ring, qf_str_from(name));
}

rg_nodes keepers_of(const struct rg_ring *ring, rg_nodes numbers)
{
    rg_nodes keepers = 0;

    for (uint8_t n = 0; n < RG_NODES_MAX; n++)
        if ((numbers & RG_NODE(n)) && keeper_of(ring, n) >= 0)
            keepers |= RG_NODE(keeper_of(ring, n));
    return keepers;
}

struct blob_set named_in(const struct world *w, int slot)
{
    struct blob_set set = { { 0 } };

    for (int b = 0; b < w->blob_count; b++)
        if ((slot < 0 || w->blobs[b].slot == (uint32_t)slot) &&
            rg_manifest_names(w->manifests[w->blobs[b].partition], qf_str_from(w->blobs[b].name)))
            set_add(&set, b);
    return set;
}

uint64_t least_epoch(const struct world *w)
{
    uint64_t least = UINT64_MAX;

    for (int p = 0; p < PARTITIONS; p++)
        least = QF_MIN(least, rg_manifest_epoch(w->manifests[p]));
    return least;
}

/* --- beginning and end --- */

static void found(struct world *w)
{
    int count = (int)between(w, 3, 5);

    for (int k = 0; k < KEEPERS; k++) {
        struct rg_entry entry = { .kind = RG_ADD,
                                  .name = qf_str_from(w->keepers[k].name),
                                  .incarnation = w->keepers[k].incarnation };

        if (k < count)
            meta_append(w, &entry);
    }
    meta_append(w, &(struct rg_entry){ .kind = RG_FOUND,
                                       .copies = chance(w, 0.8) ? 3 : (uint8_t)between(w, 1, 3),
                                       .grace_ms = CLEAN_GRACE_MS });
}

void world_start(struct world *w, uint64_t seed, const struct faults *of, struct rules rules,
                 bool trace)
{
    memset(w, 0, sizeof(*w));
    w->faults = of;
    w->prng.state = seed;
    w->rules = rules;
    w->trace = trace;
    w->ring = rg_ring_new(SLOTS);
    w->ring->unsafe = rules.ring;
    for (int p = 0; p < PARTITIONS; p++) {
        w->manifests[p] = rg_manifest_new(SLOTS, 0, 0);
        rg_manifest_unsafe(w->manifests[p], rules.manifest);
    }
    for (int k = 0; k < KEEPERS; k++) {
        w->keepers[k].name[0] = 'k';
        w->keepers[k].name[1] = (char)('0' + k);
        w->keepers[k].incarnation = ++w->incarnations;
        w->keepers[k].keep = (struct rg_keep){ .slots = SLOTS, .unsafe = rules.keep };
        keeper_start(w, k);
    }
    found(w);
    for (int d = 0; d < DOCUMENTS; d++)
        w->document_slot[d] = (uint32_t)between(w, 0, SLOTS - 1);
    for (int c = 0; c < COORDINATORS; c++)
        coordinator_start(w, c);
    w->coordinators[0].leads = true;
    drive(w, 0, &(struct rg_drive_event){ .kind = RG_DRIVE_LEAD, .now_ms = w->now });
    alarm_at(w, META, CHAOS, 200, 0);
    alarm_at(w, META, OPERATE, 300, 0);
}

void world_done(struct world *w)
{
    for (size_t i = 0; i < w->heap.count; i++)
        free(w->heap.items[i]);
    QF_VEC_DONE(&w->heap);
    QF_VEC_DONE(&w->log);
    w->ring = rg_ring_free(w->ring);
    for (int p = 0; p < PARTITIONS; p++)
        w->manifests[p] = rg_manifest_free(w->manifests[p]);
    for (int c = 0; c < COORDINATORS; c++) {
        w->coordinators[c].ring = rg_ring_free(w->coordinators[c].ring);
        w->coordinators[c].handoff = rg_handoff_free(w->coordinators[c].handoff);
        w->coordinators[c].repair = rg_repair_free(w->coordinators[c].repair);
    }
}
