/* board.h - the ring as this node knows it, for whoever asks, and for whoever waits for a later one.
 *
 * The thread that applies `meta` posts each new ring as bytes; they are not copied for those who read them. Requests that
 * wait for an epoch are answered by the post that has it, or by the tick after their time. Any thread. */
#ifndef RING_COORD_BOARD_H
#define RING_COORD_BOARD_H

#include "base/http/stream.h"
#include "base/pure/strbuf.h"
#include "ring/core/ring.h"

enum { RG_WAITERS_MAX = 256 };

struct rg_board;

struct rg_board *rg_board_new(void);
/* Nobody waits any more. Accepts NULL, returns NULL. */
struct rg_board *rg_board_free(struct rg_board *board);

/* From now on it is @ring. */
void rg_board_post(struct rg_board *board, const struct rg_ring *ring);
/* Answer @stream with the ring as soon as its epoch is above @epoch, or at @due_ms of the monotonic clock. QF_EUNAVAILABLE:
 * nothing was posted yet; QF_EBUSY: RG_WAITERS_MAX wait. Then @stream is not answered. */
QF_MUST_CHECK qf_rc rg_board_wait(struct rg_board *board, struct qh_stream *stream, uint64_t epoch,
                                  int64_t due_ms);
/* Answer those whose time has come at @now_ms; @all: everybody. */
void rg_board_tick(struct rg_board *board, int64_t now_ms, bool all);

/* A copy of the ring if it is not the one of @applied, which is updated; NULL: it is, or there is none. */
struct rg_ring *rg_board_ring(struct rg_board *board, uint64_t *applied);

#endif
