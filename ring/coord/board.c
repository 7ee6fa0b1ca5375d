/* board.c - bytes that many read, and those who wait for other ones. */
#include "ring/coord/board.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/thread.h"
#include "ring/core/wire.h"

/* A ring as bytes; goes with the last who reads it. */
struct page {
    atomic_uint users;
    struct qf_strbuf bytes;
};

struct waiter {
    struct qh_stream *stream;
    uint64_t epoch;
    int64_t due_ms;
};

struct rg_board {
    struct qf_lock *lock; /* of all below */
    struct page *page;    /* NULL: nothing was posted */
    uint64_t epoch, applied;
    size_t count;
    struct waiter waiters[RG_WAITERS_MAX];
};

/* Those who are to be answered once the lock is free again. */
struct answers {
    size_t count;
    struct qh_stream *streams[RG_WAITERS_MAX];
};

static void page_drop(void *owner)
{
    struct page *page = owner;

    if (page && atomic_fetch_sub(&page->users, 1) == 1) {
        qf_strbuf_done(&page->bytes);
        free(page);
    }
}

static struct page *page_use(struct page *page)
{
    if (page)
        atomic_fetch_add(&page->users, 1);
    return page;
}

static void send_page(struct qh_stream *stream, struct page *page)
{
    qh_stream_send(stream, 200, RG_RING_TYPE,
                   &(struct qh_body){ .fd = -1,
                                      .length = page->bytes.len,
                                      .bytes = qf_strbuf_view(&page->bytes),
                                      .release = page_drop,
                                      .owner = page_use(page) });
}

/* Take those out who are due, and the page that they get. */
static struct page *take_due(struct rg_board *board, int64_t now_ms, bool all,
                             struct answers *answers)
{
    size_t left = 0;

    answers->count = 0;
    for (size_t i = 0; i < board->count; i++) {
        struct waiter *waiter = &board->waiters[i];

        if (all || board->epoch > waiter->epoch || now_ms >= waiter->due_ms ||
            qh_stream_gone(waiter->stream))
            answers->streams[answers->count++] = waiter->stream;
        else
            board->waiters[left++] = *waiter;
    }
    board->count = left;
    return answers->count ? page_use(board->page) : NULL;
}

static void answer_all(struct answers *answers, struct page *page)
{
    for (size_t i = 0; i < answers->count; i++) {
        send_page(answers->streams[i], page);
        (void)qh_stream_drop(answers->streams[i]);
    }
    page_drop(page);
}

struct rg_board *rg_board_new(void)
{
    struct rg_board *board = qf_xcalloc(1, sizeof(*board));

    board->lock = qf_lock_new();
    return board;
}

struct rg_board *rg_board_free(struct rg_board *board)
{
    if (board) {
        rg_board_tick(board, 0, true);
        page_drop(board->page);
        board->lock = qf_lock_free(board->lock);
        free(board);
    }
    return NULL;
}

void rg_board_post(struct rg_board *board, const struct rg_ring *ring)
{
    struct page *page = qf_xcalloc(1, sizeof(*page)), *old, *shown;
    struct answers answers;

    atomic_init(&page->users, 1);
    rg_ring_encode(&page->bytes, ring);
    qf_lock_take(board->lock);
    old = board->page;
    board->page = page;
    board->epoch = ring->epoch;
    board->applied = ring->applied;
    shown = take_due(board, INT64_MIN, false, &answers);
    qf_lock_drop(board->lock);
    answer_all(&answers, shown);
    page_drop(old);
}

qf_rc rg_board_wait(struct rg_board *board, struct qh_stream *stream, uint64_t epoch,
                    int64_t due_ms)
{
    struct page *shown = NULL;
    qf_rc rc = QF_OK;

    qf_lock_take(board->lock);
    if (!board->page)
        rc = QF_EUNAVAILABLE;
    else if (board->epoch > epoch)
        shown = page_use(board->page);
    else if (board->count == RG_WAITERS_MAX)
        rc = QF_EBUSY;
    else
        board->waiters[board->count++] = (struct waiter){ qh_stream_ref(stream), epoch, due_ms };
    qf_lock_drop(board->lock);
    if (shown)
        send_page(stream, shown);
    page_drop(shown);
    return rc;
}

void rg_board_tick(struct rg_board *board, int64_t now_ms, bool all)
{
    struct answers answers;
    struct page *shown;

    qf_lock_take(board->lock);
    shown = take_due(board, now_ms, all, &answers);
    qf_lock_drop(board->lock);
    answer_all(&answers, shown);
}

struct rg_ring *rg_board_ring(struct rg_board *board, uint64_t *applied)
{
    struct rg_ring *ring = NULL;
    struct page *page;

    qf_lock_take(board->lock);
    page = board->applied != *applied ? page_use(board->page) : NULL;
    qf_lock_drop(board->lock);
    if (page && rg_ring_decode(qf_strbuf_view(&page->bytes), &ring) == QF_OK)
        *applied = ring->applied;
    page_drop(page);
    return ring;
}
