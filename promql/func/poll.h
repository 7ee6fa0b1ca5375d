/* poll.h - noticing within a bounded amount of work that nobody wants the answer any more.
 *
 * Whoever loops over values says how many it has visited; every PQ_POLL_WORK of them the cancel
 * flag is looked at. Once it was found set, the poll stays stopped: loops end early, what they
 * computed is worthless, and whoever owns the poll reports the cancellation. */
#ifndef PROMQL_FUNC_POLL_H
#define PROMQL_FUNC_POLL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pure/macros.h"

/* Values between two looks. The dearest ones (formatting a number, a step of a sort, a logarithm)
 * take some 200 ns, so this is at most a few milliseconds. */
#define PQ_POLL_WORK ((size_t)16384)

struct pq_poll {
    const atomic_bool *canceled; /* NULL: never */
    void (*look)(void *ctx);     /* NULL, or what is called before each look: tests count them */
    void *ctx;
    size_t work; /* since the last look */
    bool stopped;
};

bool pq_poll_look(struct pq_poll *poll);

/* @work values were visited, or are about to be. True: stop. @poll may be NULL. */
static inline bool pq_poll_work(struct pq_poll *poll, size_t work)
{
    if (!poll)
        return false;
    poll->work += work;
    return poll->work < PQ_POLL_WORK ? poll->stopped : pq_poll_look(poll);
}

/* For loops over [from, count) in pieces: the end of the piece that begins at @from. It is @from
 * itself, which ends the loops, at the end and when stopped. */
static inline size_t pq_poll_piece(struct pq_poll *poll, size_t from, size_t count)
{
    size_t piece = QF_MIN(count - from, PQ_POLL_WORK);

    return pq_poll_work(poll, piece) ? from : from + piece;
}

/* for (i = first; i < count; i++), looking at the poll now and then. `break` leaves a piece only.
 */
#define PQ_POLL_EACH(poll, i, first, count)                                                        \
    for (size_t i = (first), i##_end; (i##_end = pq_poll_piece((poll), i, (count))) > i;)          \
        for (; i < i##_end; i++)

#endif
