/* place.c - positions, sorted; the walk around them. */
#include "ring/core/place.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/sha256.h"

struct position {
    uint64_t at;
    uint8_t number; /* decides between equal positions */
};

static uint64_t position_of(struct qf_str text)
{
    uint8_t digest[QF_SHA256_BYTES];
    uint64_t at = 0;

    qf_sha256(text, digest);
    for (int i = 0; i < 8; i++)
        at = at << 8 | digest[i];
    return at;
}

static int by_position(const void *a, const void *b)
{
    const struct position *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static struct position *make_positions(const struct rg_place_node *nodes, size_t count)
{
    struct position *positions = qf_xcalloc(count * RG_VIRTUAL, sizeof(*positions)),
                    *next = positions;
    char text[RG_NAME_MAX + 16];

    for (size_t n = 0; n < count; n++)
        for (int v = 0; v < RG_VIRTUAL; v++, next++) {
            int len = snprintf(text, sizeof(text), "%.*s#%d", QF_STR_ARG(nodes[n].name), v);

            next->at = position_of((struct qf_str){ text, (size_t)len });
            next->number = nodes[n].number;
        }
    qsort(positions, count * RG_VIRTUAL, sizeof(*positions), by_position);
    return positions;
}

/* Where the walk from the start of @slot begins. */
static size_t first_at(const struct position *positions, size_t count, uint32_t slot,
                       uint32_t slots)
{
    uint64_t start = slots == 1 ? 0 : (uint64_t)slot * (UINT64_MAX / slots + 1);
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (positions[middle].at < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low == count ? 0 : low;
}

/* All nodes in the order in which the walk meets them, by number. */
static void walk(const struct position *positions, size_t count, size_t from, uint8_t *order,
                 size_t nodes)
{
    rg_nodes met = 0;
    size_t found = 0;

    for (size_t i = 0; found < nodes; i++) {
        const struct position *p = &positions[(from + i) % count];

        if (met & RG_NODE(p->number))
            continue;
        met |= RG_NODE(p->number);
        order[found++] = p->number;
    }
}

struct rg_owners rg_walks_owners(const struct rg_walks *walks, uint32_t slot, rg_nodes members,
                                 uint8_t copies)
{
    struct rg_owners owners = { 0 };
    const uint8_t *order = walks->order[slot];
    rg_nodes chosen = 0, zones = 0;

    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < walks->count && owners.count < copies; i++) {
            uint8_t zone = walks->zone[order[i]];

            if (!(members & RG_NODE(order[i])) || (chosen & RG_NODE(order[i])))
                continue;
            if (pass == 0 && zone && (zones & RG_NODE(zone - 1)))
                continue;
            chosen |= RG_NODE(order[i]);
            if (zone)
                zones |= RG_NODE(zone - 1);
            owners.nodes[owners.count++] = order[i];
        }
    return owners;
}

/* A zone is known by the first node in it. */
static void number_zones(struct rg_walks *walks, const struct rg_place_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t first = 0;

        while (!qf_str_eq(nodes[first].zone, nodes[i].zone))
            first++;
        walks->zone[nodes[i].number] = nodes[i].zone.len ? (uint8_t)(first + 1) : 0;
    }
}

static qf_rc check(const struct rg_place_node *nodes, size_t count, uint8_t copies,
                   struct qf_err *err)
{
    if (count > RG_NODES_MAX)
        return qf_err_set(err, QF_EINVAL, "a ring has 1 to %d nodes", RG_NODES_MAX);
    if (copies == 0 || copies > RG_COPIES_MAX)
        return qf_err_set(err, QF_EINVAL, "a replication factor is 1 to %d", RG_COPIES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (nodes[i].name.len == 0 || nodes[i].name.len > RG_NAME_MAX ||
            nodes[i].zone.len > RG_NAME_MAX || nodes[i].number >= RG_NODES_MAX)
            return qf_err_set(err, QF_EINVAL, "a node's name has 1 to %d bytes", RG_NAME_MAX);
        for (size_t j = 0; j < i; j++)
            if (qf_str_eq(nodes[i].name, nodes[j].name) || nodes[i].number == nodes[j].number)
                return qf_err_set(err, QF_EINVAL, "node %.*s is there twice",
                                  QF_STR_ARG(nodes[i].name));
    }
    return QF_OK;
}

qf_rc rg_walks_make(struct rg_walks *walks, const struct rg_place_node *nodes, size_t count,
                    uint32_t slots, struct qf_err *err)
{
    qf_rc rc = check(nodes, count, 1, err);

    if (rc)
        return rc;
    if (slots == 0 || slots > RG_SLOTS || (slots & (slots - 1)))
        return qf_err_set(err, QF_EINVAL, "a ring's slots are a power of two up to %d", RG_SLOTS);
    rg_walks_done(walks);
    walks->slots = slots;
    walks->count = (uint8_t)count;
    walks->order = qf_xcalloc(slots, sizeof(*walks->order));
    if (count == 0)
        return QF_OK;
    number_zones(walks, nodes, count);
    QF_CLEANUP(qf_freep) struct position *positions = make_positions(nodes, count);

    for (uint32_t slot = 0; slot < slots; slot++)
        walk(positions, count * RG_VIRTUAL, first_at(positions, count * RG_VIRTUAL, slot, slots),
             walks->order[slot], count);
    return QF_OK;
}

void rg_walks_done(struct rg_walks *walks)
{
    free(walks->order);
    *walks = (struct rg_walks){ 0 };
}

qf_rc rg_place(const struct rg_place_node *nodes, size_t count, uint8_t copies,
               struct rg_owners ret_slots[RG_SLOTS], struct qf_err *err)
{
    QF_CLEANUP(rg_walks_done) struct rg_walks walks = { 0 };
    qf_rc rc = count ? check(nodes, count, copies, err)
                     : qf_err_set(err, QF_EINVAL, "a ring has 1 to %d nodes", RG_NODES_MAX);

    if (!rc)
        rc = rg_walks_make(&walks, nodes, count, RG_SLOTS, err);
    for (uint32_t slot = 0; !rc && slot < RG_SLOTS; slot++)
        ret_slots[slot] = rg_walks_owners(&walks, slot, ~(rg_nodes)0, copies);
    return rc;
}

uint32_t rg_slot_of(struct qf_str tenant, uint32_t shard, uint32_t placements)
{
    char text[RG_TENANT_BYTES + 16];
    struct qf_str name = qf_str_sub(tenant, 0, RG_TENANT_BYTES);
    int len = snprintf(text, sizeof(text), "%.*s/%u", QF_STR_ARG(name), shard % placements);

    return (uint32_t)(position_of((struct qf_str){ text, (size_t)len }) /
                      (UINT64_MAX / RG_SLOTS + 1));
}
