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
#ifndef BASE_HTTP_STREAM_H
#define BASE_HTTP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/http/coding.h"
#include "base/pure/duration.h"
#include "base/pure/slice.h"

struct qh_stream;

enum qh_stream_event { QH_STREAM_ROOM, QH_STREAM_GONE };
typedef void qh_stream_fn(void *ctx, uint64_t id, enum qh_stream_event event);

struct qh_stream *qh_stream_new(size_t bytes_max);
struct qh_stream *qh_stream_ref(struct qh_stream *stream);
struct qh_stream *qh_stream_drop(struct qh_stream *stream); /* Accepts NULL, returns NULL. */

/* --- producer --- */

/* Tell fn(@ctx, @id, event) about room (once per qh_stream_room() that said no) and about a client
 * that went away (once). It is called on any thread, without locks held, and must not wait. */
void qh_stream_listen(struct qh_stream *stream, qh_stream_fn *fn, void *ctx, uint64_t id);
/* Before qh_stream_begin. @name and @value are copied; a header too many is dropped. */
void qh_stream_header(struct qh_stream *stream, const char *name, const char *value);
/* Before qh_stream_begin: the answer may be sent in @coding, which the client chose, and depends on
 * what it said (Vary). Documents are encoded as they are written, by their producer. Events are encoded
 * as they are taken, by the consumer, so that whoever writes a line of them need not; whatever is there
 * when the connection has room can be decoded by the client at once. */
void qh_stream_allow(struct qh_stream *stream, enum qh_coding coding);
/* Status and type are known: the answer starts. Only the first call counts. @content_type is
 * static; NULL: none is said. */
void qh_stream_begin(struct qh_stream *stream, int status, const char *content_type);
bool qh_stream_begun(struct qh_stream *stream);
/* False if nobody will read it any more. */
bool qh_stream_write(struct qh_stream *stream, struct qf_str bytes);
/* No more bytes. Idempotent. */
void qh_stream_end(struct qh_stream *stream);
/* The answer cannot be finished: the connection is cut, so that a reader can tell. */
void qh_stream_abort(struct qh_stream *stream);
bool qh_stream_room(struct qh_stream *stream);
bool qh_stream_gone(struct qh_stream *stream);
/* begin, write and end in one, with a Content-Length unless compressed. */
void qh_stream_answer(struct qh_stream *stream, int status, const char *content_type,
                      struct qf_str body);

/* A body that is there already: bytes in memory, or a part of a file. */
struct qh_body {
    int fd;                  /* closed once it was sent; -1: bytes in memory */
    uint64_t offset, length; /* of the file */
    struct qf_str bytes;
    void (*release)(void *owner); /* called once the bytes were sent, on any thread */
    void *owner;
};
/* Let go of it. */
void qh_body_done(struct qh_body *body);
/* begin and end in one, with @body as it is: it is not copied, and the stream's from now on.
 * @content_type may be NULL. */
void qh_stream_send(struct qh_stream *stream, int status, const char *content_type,
                    const struct qh_body *body);

/* --- consumer --- */

/* How the connection is put to sleep and woken; called under the stream's lock. */
struct qh_stream_hooks {
    void (*suspend)(void *connection);
    void (*resume)(void *connection);
    void *connection;
    int fd; /* looked at while suspended, to see a client go away */
};
void qh_stream_attach(struct qh_stream *stream, const struct qh_stream_hooks *hooks);

struct qh_stream_head {
    int status;
    const char *content_type;
    size_t header_count;
    const char *const *names, *const *values; /* borrowed from the stream, fixed once begun */
    bool whole;                               /* ended already: `length` bytes in all */
    size_t length;
};
/* False if it has not begun: then the connection was suspended. */
bool qh_stream_head(struct qh_stream *stream, struct qh_stream_head *ret_head);

/* The body given to qh_stream_send(), the caller's from now on; false if there is none, or it was
 * taken before. */
bool qh_stream_take_body(struct qh_stream *stream, struct qh_body *ret_body);

#define QH_STREAM_END ((ssize_t)-1)
#define QH_STREAM_CUT ((ssize_t)-2)
/* Take up to @len bytes; 0: none now, the connection was suspended. */
ssize_t qh_stream_take(struct qh_stream *stream, char *buf, size_t len);

/* The connection is over, for whatever reason. Idempotent. */
void qh_stream_close(struct qh_stream *stream);

/* Called every now and then for streams in use: notices clients that went away while their
 * connection was suspended, and writes a comment line to an event stream that was idle for
 * @keepalive_ms. @cut: wake and end it, whatever it waits for (the server is closing). */
void qh_stream_tick(struct qh_stream *stream, qf_time_ms now, int64_t keepalive_ms, bool cut);

#endif
