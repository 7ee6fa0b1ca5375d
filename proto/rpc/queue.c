/* queue.c - bounded queues of messages to send. */
#include "proto/rpc/queue.h"

#include <assert.h>
#include <grpc/byte_buffer.h>
#include <stdlib.h>

#include "base/pure/alloc.h"

struct rpc_queue_item {
    struct rpc_queue_item *next;
    grpc_byte_buffer *message;
    size_t size;
};

void rpc_queue_init(struct rpc_queue *queue, const struct rpc_queue_limits *limits)
{
    *queue = (struct rpc_queue){ .limits = *limits };
    queue->last = &queue->first;
}

static grpc_byte_buffer *take_first(struct rpc_queue *queue)
{
    struct rpc_queue_item *item = queue->first;
    grpc_byte_buffer *message = item->message;

    queue->first = item->next;
    if (!queue->first)
        queue->last = &queue->first;
    queue->count--;
    queue->bytes -= item->size;
    free(item);
    return message;
}

static void drop_first(struct rpc_queue *queue)
{
    grpc_byte_buffer_destroy(take_first(queue));
}

void rpc_queue_clear(struct rpc_queue *queue)
{
    while (queue->first)
        drop_first(queue);
}

static bool full(const struct rpc_queue *queue, size_t more, qf_time_ms now)
{
    const struct rpc_queue_limits *limits = &queue->limits;
    size_t bytes = queue->bytes + more;

    if (queue->count < limits->messages_max && bytes <= limits->bytes_max)
        return false;
    return now - queue->moved_at >= limits->patience_ms ||
           bytes > limits->bytes_max * limits->burst;
}

static void append(struct rpc_queue *queue, grpc_byte_buffer *message, size_t size)
{
    struct rpc_queue_item *item = qf_xcalloc(1, sizeof(*item));

    item->message = message;
    item->size = size;
    *queue->last = item;
    queue->last = &item->next;
    queue->count++;
    queue->bytes += size;
}

/* Is there room for @len more bytes? */
static bool has_room(struct rpc_queue *queue, size_t len, qf_time_ms now)
{
    if (!queue->first)
        queue->moved_at = now;
    return !full(queue, len, now);
}

bool rpc_queue_push(struct rpc_queue *queue, struct qf_str bytes, qf_time_ms now)
{
    grpc_slice slice;

    if (!has_room(queue, bytes.len, now))
        return false;
    slice = grpc_slice_from_copied_buffer(bytes.data ? bytes.data : "", bytes.len);
    append(queue, grpc_raw_byte_buffer_create(&slice, 1), bytes.len);
    grpc_slice_unref(slice);
    return true;
}

bool rpc_queue_give(struct rpc_queue *queue, struct qf_str head, struct qf_strbuf *body,
                    qf_time_ms now)
{
    size_t len = body->len;
    grpc_slice slices[2];

    if (!has_room(queue, head.len + len, now))
        return false;
    slices[0] = grpc_slice_from_copied_buffer(head.data, head.len);
    slices[1] = grpc_slice_new(qf_strbuf_take(body), len, free);
    append(queue, grpc_raw_byte_buffer_create(slices, 2), head.len + len);
    grpc_slice_unref(slices[0]);
    grpc_slice_unref(slices[1]);
    return true;
}

grpc_byte_buffer *rpc_queue_first(const struct rpc_queue *queue)
{
    return queue->first ? queue->first->message : NULL;
}

grpc_byte_buffer *rpc_queue_take(struct rpc_queue *queue, qf_time_ms now, size_t *ret_size)
{
    assert(queue->first);
    *ret_size = queue->first->size;
    queue->moved_at = now;
    return take_first(queue);
}

void rpc_queue_drop(struct rpc_queue *queue, qf_time_ms now)
{
    assert(queue->first);
    drop_first(queue);
    queue->moved_at = now;
}
