/* explore.c - the breadth-first engine. */
#include "tests/explore/explore.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/map.h"
#include "base/pure/vec.h"

struct node {
    uint32_t parent;
    uint16_t move;
    uint16_t depth;
};

struct search {
    const struct explore_world *world;
    QF_VEC(struct node) nodes;
    uint64_t *seen; /* open addressing, 0 = free */
    uint64_t seen_mask;
    uint32_t trail[EXPLORE_DEPTH_MAX + 1]; /* node saved at each depth */
    struct explore_result result;
};

static bool remember(struct search *search, uint64_t hash)
{
    uint64_t at = hash & search->seen_mask;

    while (search->seen[at]) {
        if (search->seen[at] == hash)
            return false;
        at = (at + 1) & search->seen_mask;
    }
    search->seen[at] = hash;
    return true;
}

static void grow(struct search *search)
{
    uint64_t *old = search->seen, old_mask = search->seen_mask;

    search->seen_mask = old ? old_mask * 2 + 1 : (UINT64_C(1) << 16) - 1;
    search->seen = qf_xcalloc(search->seen_mask + 1, sizeof(*search->seen));
    for (uint64_t i = 0; old && i <= old_mask; i++) {
        if (old[i])
            (void)remember(search, old[i]);
    }
    free(old);
}

static uint64_t hash_state(const struct explore_world *world)
{
    uint8_t bytes[EXPLORE_BYTES_MAX];
    size_t len = world->encode(world->ctx, bytes);
    uint64_t hash = qf_hash_bytes((struct qf_str){ (const char *)bytes, len });

    return hash ? hash : 1;
}

/* Moves from the start to @node; returns how many. */
static size_t path_to(const struct search *search, uint32_t node, uint16_t *path)
{
    size_t depth = search->nodes.items[node].depth;

    for (size_t i = depth; i > 0; i--) {
        path[i - 1] = search->nodes.items[node].move;
        node = search->nodes.items[node].parent;
    }
    return depth;
}

/* Put the world into the state of @node, which is saved at its depth. */
static void go_to(struct search *search, uint32_t node)
{
    const struct explore_world *world = search->world;
    uint32_t way[EXPLORE_DEPTH_MAX + 1], depth = search->nodes.items[node].depth, from = depth;

    for (uint32_t i = depth + 1; i > 0; i--) {
        way[i - 1] = node;
        node = search->nodes.items[node].parent;
    }
    while (from > 0 && search->trail[from] != way[from])
        from--;
    world->restore(world->ctx, from);
    for (uint32_t i = from + 1; i <= depth; i++) {
        (void)world->apply(world->ctx, search->nodes.items[way[i]].move);
        world->save(world->ctx, i);
        search->trail[i] = way[i];
    }
}

static void report(struct search *search, uint32_t node, uint16_t last, const char *why)
{
    const struct explore_world *world = search->world;
    uint16_t path[EXPLORE_DEPTH_MAX + 1];
    size_t len = path_to(search, node, path);
    char text[300];

    search->result.broken = true;
    printf("broken after %zu moves: %s\n", len + 1, why);
    world->reset(world->ctx);
    for (size_t i = 0; i <= len; i++) {
        uint16_t move = i < len ? path[i] : last;

        world->describe(world->ctx, move, text, sizeof(text));
        printf("  %3zu %s\n", i + 1, text);
        (void)world->apply(world->ctx, move);
    }
}

static bool expand(struct search *search, uint32_t node)
{
    const struct explore_world *world = search->world;
    uint16_t moves[EXPLORE_MOVES_MAX];
    uint32_t depth = search->nodes.items[node].depth;
    size_t count;

    if (depth >= EXPLORE_DEPTH_MAX) {
        printf("deeper than %d moves\n", EXPLORE_DEPTH_MAX);
        return false;
    }
    go_to(search, node);
    count = world->moves(world->ctx, moves);
    for (size_t i = 0; i < count; i++) {
        const char *why;

        if (i)
            world->restore(world->ctx, depth);
        why = world->apply(world->ctx, moves[i]);
        if (!why)
            why = world->check(world->ctx);
        search->result.transitions++;
        if (why) {
            report(search, node, moves[i], why);
            return false;
        }
        if (remember(search, hash_state(world))) {
            struct node next = { node, moves[i], (uint16_t)(search->nodes.items[node].depth + 1) };

            QF_VEC_PUSH(&search->nodes, next);
            if (search->nodes.count * 2 > search->seen_mask)
                grow(search);
        }
    }
    return true;
}

struct explore_result explore(const struct explore_world *world, uint64_t states_max)
{
    struct search search = { .world = world };
    size_t next = 0;

    grow(&search);
    world->reset(world->ctx);
    world->save(world->ctx, 0);
    (void)remember(&search, hash_state(world));
    QF_VEC_PUSH(&search.nodes, (struct node){ 0, 0, 0 });
    for (; next < search.nodes.count && search.nodes.count < states_max; next++) {
        if (!expand(&search, (uint32_t)next))
            break;
    }
    search.result.states = search.nodes.count;
    search.result.depth = search.nodes.items[search.nodes.count - 1].depth;
    search.result.complete = next == search.nodes.count;
    QF_VEC_DONE(&search.nodes);
    free(search.seen);
    return search.result;
}
