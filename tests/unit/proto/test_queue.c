/* test_queue.c - messages that wait to be sent, and when a peer counts as one that does not read. */
#include "proto/rpc/queue.h"

#include <grpc/byte_buffer.h>

#include "proto/rpc/message.h"
#include "tests/lib/test.h"

static void start(struct rpc_queue *queue, size_t messages_max, size_t bytes_max,
                  int64_t patience_ms)
{
    grpc_init();
    rpc_queue_init(queue, &(struct rpc_queue_limits){ .messages_max = messages_max,
                                                      .bytes_max = bytes_max,
                                                      .patience_ms = patience_ms,
                                                      .burst = 4 });
}

static void done(struct rpc_queue *queue)
{
    rpc_queue_clear(queue);
    CHECK_EQ(queue->count, 0);
    CHECK_EQ(queue->bytes, 0);
    CHECK(!rpc_queue_first(queue));
    grpc_shutdown();
}

static void check_first(const struct rpc_queue *queue, struct qf_str want)
{
    struct qf_str bytes;
    grpc_slice slice;

    CHECK(rpc_message_view(rpc_queue_first(queue), &slice, &bytes));
    CHECK(qf_str_eq(bytes, want));
    grpc_slice_unref(slice);
}

TEST(messages_leave_in_the_order_they_came)
{
    struct rpc_queue queue;

    start(&queue, 10, 100, 0);
    CHECK(!rpc_queue_first(&queue));
    CHECK(rpc_queue_push(&queue, QF_STR("one"), 0));
    CHECK(rpc_queue_push(&queue, QF_STR(""), 0));
    CHECK(rpc_queue_push(&queue, QF_STR("three"), 0));
    CHECK_EQ(queue.bytes, 8);
    check_first(&queue, QF_STR("one"));
    rpc_queue_drop(&queue, 0);
    check_first(&queue, QF_STR(""));
    rpc_queue_drop(&queue, 0);
    check_first(&queue, QF_STR("three"));
    rpc_queue_drop(&queue, 0);
    CHECK(rpc_queue_push(&queue, QF_STR("four"), 0));
    check_first(&queue, QF_STR("four"));
    done(&queue);
}

TEST(a_given_body_follows_its_head)
{
    struct qf_strbuf body = QF_STRBUF_INIT;
    struct rpc_queue queue;

    start(&queue, 10, 10, 0);
    qf_strbuf_puts(&body, "body");
    CHECK(rpc_queue_give(&queue, QF_STR("head "), &body, 0));
    CHECK_EQ(body.len, 0);
    CHECK_EQ(queue.bytes, 9);
    check_first(&queue, QF_STR("head body"));
    qf_strbuf_puts(&body, "more");
    CHECK(!rpc_queue_give(&queue, QF_STR("h"), &body, 0)); /* full: it stays the caller's */
    CHECK(qf_str_is(qf_strbuf_view(&body), "more"));
    qf_strbuf_done(&body);
    done(&queue);
}

TEST(without_patience_the_bounds_are_hard)
{
    struct rpc_queue queue;

    start(&queue, 2, 10, 0);
    CHECK(!rpc_queue_push(&queue, QF_STR("eleven byte"), 0));
    CHECK(rpc_queue_push(&queue, QF_STR("ten bytes."), 0));
    CHECK(!rpc_queue_push(&queue, QF_STR("x"), 0));
    CHECK(rpc_queue_push(&queue, QF_STR(""), 0));
    CHECK(!rpc_queue_push(&queue, QF_STR(""), 0));
    CHECK_EQ(queue.count, 2);
    done(&queue);
}

/* All the work of a query is sent at once: only who takes nothing does not read. */
TEST(a_burst_is_fine_as_long_as_the_peer_reads)
{
    struct rpc_queue queue;

    start(&queue, 2, 10, 3000);
    for (int i = 0; i < 8; i++)
        CHECK(rpc_queue_push(&queue, QF_STR("abcde"), 1000));
    CHECK(!rpc_queue_push(&queue, QF_STR("x"), 1000)); /* four times the bytes is the end */
    rpc_queue_drop(&queue, 2000);
    CHECK(rpc_queue_push(&queue, QF_STR("x"), 4999));
    CHECK(!rpc_queue_push(&queue, QF_STR("x"), 5000)); /* 3 s since it took one */
    while (rpc_queue_first(&queue))
        rpc_queue_drop(&queue, 5000);
    CHECK(rpc_queue_push(&queue, QF_STR("abcdefghij"), 99000)); /* an empty one waits for nobody */
    CHECK(rpc_queue_push(&queue, QF_STR("x"), 101999));
    CHECK(!rpc_queue_push(&queue, QF_STR("x"), 102000));
    done(&queue);
}
