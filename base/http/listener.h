/* listener.h - the HTTP server: reads requests whole, hands them over, sends what streams bring. */
#ifndef BASE_HTTP_LISTENER_H
#define BASE_HTTP_LISTENER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http/request.h"
#include "base/http/stream.h"
#include "base/pure/err.h"

struct qh_listener;

/* How an exchange ended. */
struct qh_outcome {
    int status;    /* of the answer; 0: none was begun */
    bool complete; /* the client took all of it */
};

struct qh_listener_options {
    const char *listen; /* "127.0.0.1:8080", "[::1]:0", ":8080" */
    /* Zero means the default in the comment. */
    size_t threads;                 /* 4 */
    size_t connections_max;         /* 2048; beyond it connections wait in the kernel */
    size_t address_connections_max; /* 0: no limit for one address; beyond it they are closed */
    size_t body_bytes_max;          /* 2 MiB, else 413 */
    size_t bodies_bytes_max;        /* 256 MiB for all that are being read or worked on, else 503 */
    /* 64 KiB for request line and headers, else 431 or 414. Each connection has memory for it and for
     * a block of an answer, which is cleared after every request: more costs every client. */
    size_t header_bytes_max;
    size_t stream_bytes_max;   /* 256 KiB waiting per answer */
    int64_t idle_timeout_ms;   /* 30 s without progress within a request close a connection */
    int64_t header_timeout_ms; /* 30 s from the first line of a request to the whole of it */
    /* 5 min between two requests, or before the first one is there; header_timeout_ms while more
     * than half of connections_max are open. */
    int64_t rest_timeout_ms;
    int64_t keepalive_ms; /* 5 s between comment lines of idle event streams */
    /* PEM; both or neither, else QF_EINVAL. Files that change count for connections that begin a
     * second later. */
    const char *tls_cert_file, *tls_key_file;
    /* With TLS: clients are asked for a certificate that one of these signed (PEM). Who has none is
     * served all the same: qh_request.peer_verified says it, the handler decides. */
    const char *tls_client_ca_file;

    /* The headers are there, the body is not: false if @request was answered through @stream and its
     * body is not worth reading. Same rules as for `handle`; NULL: all are. */
    bool (*admit)(void *ctx, struct qh_request *request, struct qh_stream *stream);
    /* Answer @request through @stream, now or later; called on a server thread and must not wait.
     * @request lives until the connection is done with the answer: take a reference to what is
     * needed longer. @stream is borrowed; qh_stream_ref() to keep it. */
    void (*handle)(void *ctx, struct qh_request *request, struct qh_stream *stream);
    /* An exchange is over; request->note is the last that is left of it. May be NULL. */
    void (*finished)(void *ctx, struct qh_request *request, const struct qh_outcome *outcome);
    void *ctx;
};

/* Bind, listen and serve. NULL and @err filled: QF_EINVAL (a bad address), QF_EUNAVAILABLE (busy
 * or not allowed), QF_EIO (TLS files that cannot be read or used). */
struct qh_listener *qh_listener_new(const struct qh_listener_options *options, struct qf_err *err);
/* End all answers at once, close everything. Accepts NULL, returns NULL. */
struct qh_listener *qh_listener_free(struct qh_listener *listener);

/* The port it listens on. */
uint16_t qh_listener_port(const struct qh_listener *listener);
/* Look after idle connections; call it about twice a second. A server that answers every request in
 * `handle` may go without: then a client has the idle timeout to send a whole request. */
void qh_listener_tick(struct qh_listener *listener);
/* Answers under way. */
size_t qh_listener_active(struct qh_listener *listener);

#endif
