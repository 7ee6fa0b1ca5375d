/* test_board.c - who asks for the ring gets it, who waits gets a later one. */
#include "ring/coord/board.h"

#include "tests/unit/ring/core/ring_help.h"

#define RING QF_CLEANUP(ring_freep) struct rg_ring *
#define BOARD QF_CLEANUP(board_freep) struct rg_board *

static void board_freep(struct rg_board **board)
{
    *board = rg_board_free(*board);
}

/* The epoch of the ring that @stream was answered with; 0: it was not answered. Lets go of @stream. */
static uint64_t epoch_of(struct qh_stream *stream)
{
    struct rg_ring *ring;
    struct qh_body body;
    uint64_t epoch;

    if (!qh_stream_begun(stream)) {
        (void)qh_stream_drop(stream);
        return 0;
    }
    CHECK(qh_stream_take_body(stream, &body));
    CHECK_EQ(rg_ring_decode(body.bytes, &ring), QF_OK);
    epoch = ring->epoch;
    qh_body_done(&body);
    (void)rg_ring_free(ring);
    (void)qh_stream_drop(stream);
    return epoch;
}

TEST(nothing_is_said_before_the_ring_is_known)
{
    BOARD board = rg_board_new();
    struct qh_stream *stream = qh_stream_new(1 << 10);
    uint64_t applied = 0;

    CHECK_EQ(rg_board_wait(board, stream, 0, 0), QF_EUNAVAILABLE);
    CHECK(rg_board_ring(board, &applied) == NULL);
    CHECK_EQ(epoch_of(stream), 0);
}

TEST(who_waits_is_answered_by_the_epoch_it_waits_for)
{
    BOARD board = rg_board_new();
    RING ring = found(8, 3, 3);
    struct qh_stream *early = qh_stream_new(1 << 10), *late = qh_stream_new(1 << 10);
    uint64_t applied = 0;

    rg_board_post(board, ring);
    CHECK_EQ(rg_board_wait(board, early, 0, 1000), QF_OK);
    CHECK_EQ(rg_board_wait(board, late, 1, 1000), QF_OK);
    CHECK(!qh_stream_begun(late));
    CHECK_EQ(add(ring, "n3", ""), RG_APPLIED); /* no new epoch yet */
    rg_board_post(board, ring);
    CHECK(!qh_stream_begun(late));
    (void)begin_all(ring, ring->applied);
    CHECK(ring->epoch > 1);
    rg_board_post(board, ring);
    CHECK_EQ(epoch_of(early), 1);
    CHECK_EQ(epoch_of(late), ring->epoch);
    {
        RING copy = rg_board_ring(board, &applied);

        CHECK(copy != NULL);
        CHECK_EQ(applied, ring->applied);
        CHECK(rg_board_ring(board, &applied) == NULL);
    }
}

TEST(who_waits_too_long_gets_what_there_is)
{
    BOARD board = rg_board_new();
    RING ring = found(8, 3, 3);
    struct qh_stream *one = qh_stream_new(1 << 10), *two = qh_stream_new(1 << 10);

    rg_board_post(board, ring);
    CHECK_EQ(rg_board_wait(board, one, 1, 100), QF_OK);
    CHECK_EQ(rg_board_wait(board, two, 1, 200), QF_OK);
    rg_board_tick(board, 99, false);
    CHECK(!qh_stream_begun(one));
    rg_board_tick(board, 100, false);
    CHECK(qh_stream_begun(one) && !qh_stream_begun(two));
    rg_board_tick(board, 100, true);
    CHECK_EQ(epoch_of(one), 1);
    CHECK_EQ(epoch_of(two), 1);
}

TEST(only_so_many_may_wait)
{
    BOARD board = rg_board_new();
    RING ring = found(8, 3, 3);
    struct qh_stream *streams[RG_WAITERS_MAX + 1];

    rg_board_post(board, ring);
    for (size_t i = 0; i < RG_WAITERS_MAX; i++) {
        streams[i] = qh_stream_new(1 << 10);
        CHECK_EQ(rg_board_wait(board, streams[i], 1, 100), QF_OK);
    }
    streams[RG_WAITERS_MAX] = qh_stream_new(1 << 10);
    CHECK_EQ(rg_board_wait(board, streams[RG_WAITERS_MAX], 1, 100), QF_EBUSY);
    rg_board_tick(board, 100, false);
    for (size_t i = 0; i < RG_WAITERS_MAX; i++)
        CHECK_EQ(epoch_of(streams[i]), 1);
    CHECK_EQ(epoch_of(streams[RG_WAITERS_MAX]), 0);
}
