/* test_arena.c - memory under a budget. */
#include "base/pure/arena.h"
#include "tests/lib/test.h"

/* Over its budget an arena answers NULL and remembers it; what it gave out stays usable. */
TEST(arena_stops_at_its_budget)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(10000);
    char *first = qf_arena_alloc(arena, 100);

    CHECK(first != NULL);
    first[99] = 'x';
    CHECK(qf_arena_alloc(arena, 20000) == NULL);
    CHECK(qf_arena_failed(arena));
    CHECK(qf_arena_used(arena) <= 10000);
    qf_arena_reset(arena);
    CHECK(!qf_arena_failed(arena));
}

static int calls;

static void count_call(void *arg)
{
    calls += *(int *)arg;
}

/* Deferred calls run once, at reset or free. */
TEST(arena_runs_deferred_calls_once)
{
    struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    int one = 1, ten = 10;

    calls = 0;
    CHECK(qf_arena_defer(arena, count_call, &one));
    qf_arena_reset(arena);
    CHECK_EQ(calls, 1);
    CHECK(qf_arena_defer(arena, count_call, &ten));
    arena = qf_arena_free(arena);
    CHECK_EQ(calls, 11);
}

/* Growing the newest allocation keeps its contents, in place or not. */
TEST(arena_grows_arrays)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    int *numbers = NULL;
    size_t count = 0;

    for (; count < 10000; count++) {
        numbers = qf_arena_grow(arena, numbers, count, count + 1, sizeof(*numbers));
        CHECK(numbers != NULL);
        numbers[count] = (int)count;
        if (count % 1000 == 0)
            CHECK(qf_arena_alloc(arena, 8) != NULL);
    }
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(numbers[i], i);
}

/* Scratch memory counts against the budget of the arena it is for, and comes back with a reset. */
TEST(an_arena_within_another_is_paid_by_it)
{
    struct qf_arena *arena = qf_arena_new(100000);
    struct qf_arena *within = qf_arena_new_within(arena);
    size_t before = qf_arena_used(arena);

    CHECK(within != NULL);
    for (int i = 0; i < 100; i++) {
        CHECK(qf_arena_alloc(within, 1000) != NULL);
        CHECK(qf_arena_alloc(within, 50000) != NULL);
        CHECK(qf_arena_used(arena) > before + 51000);
        CHECK(qf_arena_alloc(arena, 50000) == NULL);
        qf_arena_reset(within);
    }
    CHECK(qf_arena_alloc(arena, 50000) != NULL);
    CHECK(qf_arena_alloc(within, 50000) == NULL);
    CHECK(qf_arena_failed(within));
    arena = qf_arena_free(arena);
}
