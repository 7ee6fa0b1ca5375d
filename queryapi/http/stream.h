/* stream.h - the answer of one request on its way from the thread that makes it to the connection.
 *
 * A bounded buffer with two ends. The producer (one thread at a time: a query's turn on the pool,
 * or the thread that handled the request) sets status and headers, writes and ends. The consumer is
 * the HTTP library: it takes bytes, and when there are none it suspends the connection under the
 * stream's lock; whoever adds bytes resumes it. Both ends hold a reference.
 *
 * The producer never waits. It asks for room before it makes the next piece; without room it
 * parks, and the stream calls `on_event` once there is. Pieces may overshoot the bound by their own
 * size. */
#ifndef QUERYAPI_HTTP_STREAM_H
#define QUERYAPI_HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/pure/duration.h"
#include "base/pure/slice.h"

struct qa_stream;

enum qa_stream_event { QA_STREAM_ROOM, QA_STREAM_GONE };
typedef void qa_stream_fn(void *ctx, uint64_t id, enum qa_stream_event event);

struct qa_stream *qa_stream_new(size_t bytes_max);
struct qa_stream *qa_stream_ref(struct qa_stream *stream);
struct qa_stream *qa_stream_drop(struct qa_stream *stream); /* Accepts NULL, returns NULL. */

/* --- producer --- */

/* Tell fn(@ctx, @id, event) about room (once per qa_stream_room() that said no) and about a client
 * that went away (once). It is called on any thread, without locks held, and must not wait. */
void qa_stream_listen(struct qa_stream *stream, qa_stream_fn *fn, void *ctx, uint64_t id);
/* Before qa_stream_begin. @name and @value are copied; a header too many is dropped. */
void qa_stream_header(struct qa_stream *stream, const char *name, const char *value);
/* Before qa_stream_begin: compress what follows, if the client said it can read that. */
void qa_stream_allow_gzip(struct qa_stream *stream, bool accepted);
/* Status and type are known: the answer starts. Only the first call counts. @content_type is
 * static. */
void qa_stream_begin(struct qa_stream *stream, int status, const char *content_type);
bool qa_stream_begun(struct qa_stream *stream);
/* False if nobody will read it any more. */
bool qa_stream_write(struct qa_stream *stream, struct qf_str bytes);
/* No more bytes. Idempotent. */
void qa_stream_end(struct qa_stream *stream);
/* The answer cannot be finished: the connection is cut, so that a reader can tell. */
void qa_stream_abort(struct qa_stream *stream);
bool qa_stream_room(struct qa_stream *stream);
bool qa_stream_gone(struct qa_stream *stream);
/* begin, write and end in one, with a Content-Length unless compressed. */
void qa_stream_answer(struct qa_stream *stream, int status, const char *content_type,
                      struct qf_str body);

/* --- consumer --- */

/* How the connection is put to sleep and woken; called under the stream's lock. */
struct qa_stream_hooks {
    void (*suspend)(void *connection);
    void (*resume)(void *connection);
    void *connection;
    int fd; /* looked at while suspended, to see a client go away */
};
void qa_stream_attach(struct qa_stream *stream, const struct qa_stream_hooks *hooks);

struct qa_stream_head {
    int status;
    const char *content_type;
    size_t header_count;
    const char *const *names, *const *values; /* borrowed from the stream, fixed once begun */
    bool whole;                               /* ended already: `length` bytes in all */
    size_t length;
};
/* False if it has not begun: then the connection was suspended. */
bool qa_stream_head(struct qa_stream *stream, struct qa_stream_head *ret_head);

#define QA_STREAM_END ((ssize_t)-1)
#define QA_STREAM_CUT ((ssize_t)-2)
/* Take up to @len bytes; 0: none now, the connection was suspended. */
ssize_t qa_stream_take(struct qa_stream *stream, char *buf, size_t len);

/* The connection is over, for whatever reason. Idempotent. */
void qa_stream_close(struct qa_stream *stream);

/* Called every now and then for streams in use: notices clients that went away while their
 * connection was suspended, and writes a comment line to an event stream that was idle for
 * @keepalive_ms. @cut: wake and end it, whatever it waits for (the server is closing). */
void qa_stream_tick(struct qa_stream *stream, qf_time_ms now, int64_t keepalive_ms, bool cut);

#endif
