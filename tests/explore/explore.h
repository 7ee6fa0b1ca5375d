/* explore.h - visit every reachable state of a small world, breadth first.
 *
 * A world knows its start, which moves are possible now, what a move does, what must always hold,
 * and an encoding in which equal states have equal bytes. States are remembered by a 64-bit hash of
 * that encoding and by the move that led to them; a state is made again by replaying its moves, so
 * the shortest way to a broken state is printed for free. */
#ifndef TESTS_EXPLORE_EXPLORE_H
#define TESTS_EXPLORE_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EXPLORE_MOVES_MAX = 512, EXPLORE_BYTES_MAX = 4096, EXPLORE_DEPTH_MAX = 128 };

struct explore_world {
    void *ctx;
    void (*reset)(void *ctx);
    void (*save)(void *ctx, uint32_t level);        /* remember the state now... */
    void (*restore)(void *ctx, uint32_t level);     /* ...and go back to it, any number of times */
    size_t (*moves)(void *ctx, uint16_t *moves);    /* at most EXPLORE_MOVES_MAX */
    const char *(*apply)(void *ctx, uint16_t move); /* NULL, or what went wrong */
    const char *(*check)(void *ctx);                /* NULL, or which invariant is broken */
    size_t (*encode)(void *ctx, uint8_t *bytes);    /* at most EXPLORE_BYTES_MAX */
    void (*describe)(void *ctx, uint16_t move, char *text, size_t size);
};

struct explore_result {
    uint64_t states, transitions;
    uint32_t depth;
    bool complete; /* every reachable state was visited */
    bool broken;   /* an invariant failed: the way there was printed */
};

/* @states_max bounds memory (about 30 bytes a state). */
struct explore_result explore(const struct explore_world *world, uint64_t states_max);

#endif
