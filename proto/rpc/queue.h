/* queue.h - messages that wait to be sent on a stream, within bounds.
 *
 * Messages are never dropped: a peer that does not read is lost instead. A queue beyond its bounds
 * is no proof of that, for all the work of a query may be sent at once. So a peer that took a
 * message within the last `patience_ms` may have `burst` times the bytes waiting, and any number of
 * messages. Without patience the bounds are hard. */
#ifndef PROTO_RPC_QUEUE_H
#define PROTO_RPC_QUEUE_H

#include <grpc/grpc.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/pure/duration.h"
#include "base/pure/slice.h"
#include "base/pure/strbuf.h"

struct rpc_queue_limits {
    size_t messages_max, bytes_max;
    int64_t patience_ms; /* 0: none */
    size_t burst;        /* times bytes_max, with patience */
};

struct rpc_queue_item;

struct rpc_queue {
    struct rpc_queue_limits limits;
    struct rpc_queue_item *first, **last;
    size_t count, bytes;
    qf_time_ms moved_at; /* when it was last empty, or shorter by one */
};

void rpc_queue_init(struct rpc_queue *queue, const struct rpc_queue_limits *limits);
/* Forget what waits; the queue is empty and usable. */
void rpc_queue_clear(struct rpc_queue *queue);

/* Append a copy of @bytes. False: the bounds are reached, the peer does not read. */
bool rpc_queue_push(struct rpc_queue *queue, struct qf_str bytes, qf_time_ms now);
/* Append a copy of @head and then @body, whose bytes are the queue's from then on: @body is empty. False:
 * nothing changed. */
bool rpc_queue_give(struct rpc_queue *queue, struct qf_str head, struct qf_strbuf *body,
                    qf_time_ms now);
/* The oldest message, the queue's until it is dropped; NULL: there is none. */
grpc_byte_buffer *rpc_queue_first(const struct rpc_queue *queue);
/* The oldest message and its size, which are the caller's now; there is one. */
grpc_byte_buffer *rpc_queue_take(struct rpc_queue *queue, qf_time_ms now, size_t *ret_size);
/* Drop the oldest message, which was taken. */
void rpc_queue_drop(struct rpc_queue *queue, qf_time_ms now);

#endif
