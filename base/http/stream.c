/* stream.c - bounded buffer between an answer's producer and its connection. */
#include "base/http/stream.h"

#include <assert.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"

/* More than any answer has: one dropped would be wrong, not just missing. */
#define HEADERS_MAX 16
/* Events encoded at once. */
#define PLAIN_PIECE 16384

struct qh_stream {
    atomic_int refs;
    struct qf_lock *lock; /* guards all but what is said to be one end's */
    size_t bytes_max;

    int status; /* 0: not begun */
    const char *content_type;
    bool event_stream;
    char *names[HEADERS_MAX], *values[HEADERS_MAX];
    size_t header_count;

    struct qf_strbuf buf; /* bytes from `taken` on are waiting */
    size_t taken;
    bool ended, cut, gone, wants_room, gone_told;
    qf_time_ms written_at;

    struct qh_stream_hooks hooks;
    bool suspended;
    qh_stream_fn *listener;
    void *listener_ctx;
    uint64_t listener_id;

    struct qh_body body; /* of qh_stream_send(), until it is taken */
    bool has_body;

    enum qh_coding coding; /* the producer's alone: what may be used... */
    bool varies;           /* ...if it is asked for: the answer depends on what the client said */
    struct qh_encoder *encoder; /* of documents the producer's, of events the consumer's; or NULL */
    struct qf_strbuf coded;     /* the consumer's alone: encoded events from coded_taken on */
    size_t coded_taken;
    bool coded_end;
};

struct qh_stream *qh_stream_new(size_t bytes_max)
{
    struct qh_stream *stream = qf_xcalloc(1, sizeof(*stream));

    atomic_init(&stream->refs, 1);
    stream->lock = qf_lock_new();
    stream->bytes_max = bytes_max;
    stream->hooks.fd = -1;
    return stream;
}

struct qh_stream *qh_stream_ref(struct qh_stream *stream)
{
    (void)atomic_fetch_add(&stream->refs, 1);
    return stream;
}

struct qh_stream *qh_stream_drop(struct qh_stream *stream)
{
    if (!stream || atomic_fetch_sub(&stream->refs, 1) != 1)
        return NULL;
    for (size_t i = 0; i < stream->header_count; i++) {
        free(stream->names[i]);
        free(stream->values[i]);
    }
    (void)qh_encoder_free(stream->encoder);
    qf_strbuf_done(&stream->coded);
    if (stream->has_body)
        qh_body_done(&stream->body);
    qf_strbuf_done(&stream->buf);
    (void)qf_lock_free(stream->lock);
    free(stream);
    return NULL;
}

/* Under the lock. */
static void wake(struct qh_stream *stream)
{
    if (!stream->suspended)
        return;
    stream->suspended = false;
    stream->hooks.resume(stream->hooks.connection);
}

/* Under the lock: nothing to do for the connection until somebody wakes it. */
static void put_to_sleep(struct qh_stream *stream)
{
    if (stream->suspended)
        return;
    stream->suspended = true;
    stream->hooks.suspend(stream->hooks.connection);
}

void qh_stream_listen(struct qh_stream *stream, qh_stream_fn *fn, void *ctx, uint64_t id)
{
    qf_lock_take(stream->lock);
    stream->listener = fn;
    stream->listener_ctx = ctx;
    stream->listener_id = id;
    qf_lock_drop(stream->lock);
}

void qh_stream_header(struct qh_stream *stream, const char *name, const char *value)
{
    qf_lock_take(stream->lock);
    if (stream->header_count < HEADERS_MAX && !stream->status) {
        stream->names[stream->header_count] = qf_xstrdup(name);
        stream->values[stream->header_count++] = qf_xstrdup(value);
    }
    qf_lock_drop(stream->lock);
}

void qh_stream_allow(struct qh_stream *stream, enum qh_coding coding)
{
    stream->coding = coding;
    stream->varies = true;
}

static void start_coding(struct qh_stream *stream)
{
    if (!stream->varies || qh_stream_begun(stream))
        return;
    stream->varies = false; /* said once */
    qh_stream_header(stream, "Vary", "Accept-Encoding");
    if (stream->coding != QH_CODING_IDENTITY)
        stream->encoder = qh_encoder_new(stream->coding);
    if (stream->encoder)
        qh_stream_header(stream, "Content-Encoding", qh_coding_name(stream->coding));
}

static bool is_event_stream(const char *content_type)
{
    return content_type && strncmp(content_type, "text/event-stream", 17) == 0;
}

void qh_stream_begin(struct qh_stream *stream, int status, const char *content_type)
{
    start_coding(stream);
    qf_lock_take(stream->lock);
    if (!stream->status) {
        stream->status = status;
        stream->content_type = content_type;
        stream->event_stream = is_event_stream(content_type);
        stream->written_at = qf_clock_mono_ms();
        wake(stream);
    }
    qf_lock_drop(stream->lock);
}

bool qh_stream_begun(struct qh_stream *stream)
{
    bool begun;

    qf_lock_take(stream->lock);
    begun = stream->status != 0;
    qf_lock_drop(stream->lock);
    return begun;
}

/* Move the waiting bytes to the front once more is free before than after them. Under the lock. */
static void compact(struct qh_stream *stream)
{
    size_t left = stream->buf.len - stream->taken;

    if (stream->taken < left)
        return;
    if (left)
        memmove(stream->buf.data, stream->buf.data + stream->taken, left);
    stream->buf.len = left;
    stream->taken = 0;
}

static bool append(struct qh_stream *stream, struct qf_str bytes)
{
    bool wanted;

    qf_lock_take(stream->lock);
    wanted = !stream->gone && !stream->ended;
    if (wanted && bytes.len) {
        compact(stream);
        qf_strbuf_str(&stream->buf, bytes);
        stream->written_at = qf_clock_mono_ms();
        if (stream->status)
            wake(stream);
    }
    qf_lock_drop(stream->lock);
    return wanted;
}

/* The producer encodes documents; events are encoded when they are taken. */
static bool encodes(const struct qh_stream *stream)
{
    return stream->encoder && !stream->event_stream;
}

static bool append_encoded(struct qh_stream *stream, struct qf_str bytes, enum qh_encode how)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf out = QF_STRBUF_INIT;

    qh_encoder_add(stream->encoder, bytes, how, &out);
    return append(stream, qf_strbuf_view(&out));
}

bool qh_stream_write(struct qh_stream *stream, struct qf_str bytes)
{
    return encodes(stream) ? append_encoded(stream, bytes, QH_ENCODE_MORE) : append(stream, bytes);
}

void qh_stream_end(struct qh_stream *stream)
{
    bool ended;

    qf_lock_take(stream->lock);
    ended = stream->ended;
    qf_lock_drop(stream->lock);
    if (encodes(stream) && !ended)
        (void)append_encoded(stream, QF_STR(""), QH_ENCODE_END);
    qf_lock_take(stream->lock);
    stream->ended = true;
    wake(stream);
    qf_lock_drop(stream->lock);
}

void qh_stream_abort(struct qh_stream *stream)
{
    qf_lock_take(stream->lock);
    stream->ended = stream->cut = true;
    wake(stream);
    qf_lock_drop(stream->lock);
}

bool qh_stream_room(struct qh_stream *stream)
{
    bool room;

    qf_lock_take(stream->lock);
    room = stream->buf.len - stream->taken < stream->bytes_max || stream->gone;
    stream->wants_room = !room;
    qf_lock_drop(stream->lock);
    return room;
}

bool qh_stream_gone(struct qh_stream *stream)
{
    bool gone;

    qf_lock_take(stream->lock);
    gone = stream->gone;
    qf_lock_drop(stream->lock);
    return gone;
}

void qh_stream_answer(struct qh_stream *stream, int status, const char *content_type,
                      struct qf_str body)
{
    if (body.len < 1024)
        stream->varies = false; /* would only grow */
    start_coding(stream);
    (void)qh_stream_write(stream, body);
    qh_stream_end(stream);
    qh_stream_begin(stream, status, content_type);
}

void qh_body_done(struct qh_body *body)
{
    if (body->fd >= 0)
        (void)close(body->fd);
    else if (body->release)
        body->release(body->owner);
}

void qh_stream_send(struct qh_stream *stream, int status, const char *content_type,
                    const struct qh_body *body)
{
    struct qh_body unwanted = *body;
    bool late;

    qf_lock_take(stream->lock);
    late = stream->status || stream->has_body; /* a server that closes has its own last word */
    if (!late)
        stream->body = *body;
    stream->has_body |= !late;
    stream->varies = false;
    qf_lock_drop(stream->lock);
    if (late)
        qh_body_done(&unwanted);
    qh_stream_end(stream);
    qh_stream_begin(stream, status, content_type);
}

bool qh_stream_take_body(struct qh_stream *stream, struct qh_body *ret_body)
{
    bool taken;

    qf_lock_take(stream->lock);
    taken = stream->has_body;
    if (taken)
        *ret_body = stream->body;
    stream->has_body = false;
    qf_lock_drop(stream->lock);
    return taken;
}

void qh_stream_attach(struct qh_stream *stream, const struct qh_stream_hooks *hooks)
{
    qf_lock_take(stream->lock);
    stream->hooks = *hooks;
    qf_lock_drop(stream->lock);
}

bool qh_stream_head(struct qh_stream *stream, struct qh_stream_head *ret_head)
{
    bool begun;

    qf_lock_take(stream->lock);
    begun = stream->status != 0;
    if (begun)
        *ret_head = (struct qh_stream_head){
            .status = stream->status,
            .content_type = stream->content_type,
            .header_count = stream->header_count,
            .names = (const char *const *)stream->names,
            .values = (const char *const *)stream->values,
            .whole = stream->ended && !stream->cut && !(stream->encoder && stream->event_stream),
            .length = stream->buf.len - stream->taken,
        };
    else
        put_to_sleep(stream);
    qf_lock_drop(stream->lock);
    return begun;
}

/* As qh_stream_take(), without coding; *@ret_drained: there are no more now. */
static ssize_t take_plain(struct qh_stream *stream, char *buf, size_t len, bool *ret_drained)
{
    qh_stream_fn *tell = NULL;
    uint64_t id = 0;
    void *ctx = NULL;
    ssize_t taken;

    qf_lock_take(stream->lock);
    if (len > stream->buf.len - stream->taken)
        len = stream->buf.len - stream->taken;
    taken = (ssize_t)len;
    if (len) {
        memcpy(buf, stream->buf.data + stream->taken, len);
        stream->taken += len;
    } else if (stream->ended) {
        taken = stream->cut ? QH_STREAM_CUT : QH_STREAM_END;
    } else {
        put_to_sleep(stream);
    }
    *ret_drained = stream->buf.len == stream->taken;
    if (stream->wants_room && stream->buf.len - stream->taken <= stream->bytes_max / 2) {
        stream->wants_room = false;
        tell = stream->listener;
        ctx = stream->listener_ctx;
        id = stream->listener_id;
    }
    qf_lock_drop(stream->lock);
    if (tell)
        tell(ctx, id, QH_STREAM_ROOM);
    return taken;
}

/* Encode what is there until some of it can be sent. 0: there is nothing, the connection sleeps. */
static ssize_t fill_coded(struct qh_stream *stream)
{
    char plain[PLAIN_PIECE];

    qf_strbuf_reset(&stream->coded);
    stream->coded_taken = 0;
    while (stream->coded.len == 0) {
        bool drained;
        ssize_t got = take_plain(stream, plain, sizeof(plain), &drained);

        if (got == 0 || got == QH_STREAM_CUT)
            return got;
        stream->coded_end = got == QH_STREAM_END;
        if (stream->coded_end)
            qh_encoder_add(stream->encoder, QF_STR(""), QH_ENCODE_END, &stream->coded);
        else
            qh_encoder_add(stream->encoder, (struct qf_str){ plain, (size_t)got },
                           drained ? QH_ENCODE_FLUSH : QH_ENCODE_MORE, &stream->coded);
    }
    return 1;
}

static ssize_t take_coded(struct qh_stream *stream, char *buf, size_t len)
{
    if (stream->coded.len == stream->coded_taken) {
        ssize_t filled = stream->coded_end ? QH_STREAM_END : fill_coded(stream);

        if (filled <= 0)
            return filled;
    }
    len = QF_MIN(len, stream->coded.len - stream->coded_taken);
    memcpy(buf, stream->coded.data + stream->coded_taken, len);
    stream->coded_taken += len;
    return (ssize_t)len;
}

ssize_t qh_stream_take(struct qh_stream *stream, char *buf, size_t len)
{
    bool drained;

    if (stream->encoder && stream->event_stream)
        return take_coded(stream, buf, len);
    return take_plain(stream, buf, len, &drained);
}

/* Mark the client as gone; true if the listener is to be told, after the lock is dropped. */
static bool mark_gone(struct qh_stream *stream)
{
    bool first = !stream->gone_told && !stream->ended;

    stream->gone = true;
    stream->gone_told = true;
    return first && stream->listener;
}

void qh_stream_close(struct qh_stream *stream)
{
    bool tell;
    qh_stream_fn *fn;
    void *ctx;
    uint64_t id;

    qf_lock_take(stream->lock);
    stream->suspended = false;
    stream->hooks.fd = -1;
    tell = mark_gone(stream);
    fn = stream->listener;
    ctx = stream->listener_ctx;
    id = stream->listener_id;
    qf_lock_drop(stream->lock);
    if (tell)
        fn(ctx, id, QH_STREAM_GONE);
}

/* Has the peer closed? Bytes of a next request do not count. */
static bool peer_closed(int fd)
{
    struct pollfd poller = { .fd = fd, .events = POLLRDHUP };

    if (fd < 0 || poll(&poller, 1, 0) <= 0)
        return false;
    return poller.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL);
}

void qh_stream_tick(struct qh_stream *stream, qf_time_ms now, int64_t keepalive_ms, bool cut)
{
    bool tell = false;
    qh_stream_fn *fn;
    void *ctx;
    uint64_t id;

    qf_lock_take(stream->lock);
    fn = stream->listener;
    ctx = stream->listener_ctx;
    id = stream->listener_id;
    /* Only a suspended connection cannot close its socket under us. */
    if (cut || (stream->suspended && peer_closed(stream->hooks.fd))) {
        tell = mark_gone(stream);
        if (!stream->status) {
            stream->status = 503;
            stream->content_type = "text/plain; charset=utf-8";
        }
        stream->ended = stream->cut = true;
        wake(stream);
    } else if (stream->event_stream && !stream->ended && stream->suspended &&
               now - stream->written_at >= keepalive_ms) {
        qf_strbuf_puts(&stream->buf, ": keep-alive\n\n");
        stream->written_at = now;
        wake(stream);
    }
    qf_lock_drop(stream->lock);
    if (tell)
        fn(ctx, id, QH_STREAM_GONE);
}
