/* listener_int.h - the HTTP server's own: its connections and the exchanges on them. */
#ifndef BASE_HTTP_LISTENER_INT_H
#define BASE_HTTP_LISTENER_INT_H

#include <microhttpd.h>

#include "base/http/listener.h"
#include "base/pure/duration.h"
#include "base/pure/purse.h"
#include "base/pure/strbuf.h"
#include "base/sys/thread.h"

/* How much of a streamed answer is taken at once; every connection has memory for it. */
#define QH_BLOCK_BYTES ((size_t)32 << 10)

struct qh_link;
struct qh_identity;

/* One request and its answer. */
struct qh_exchange {
    struct qh_listener *listener;
    struct qh_exchange *prev, *next;
    struct qh_request request;
    struct qf_strbuf body;
    struct qh_stream *stream;
    size_t body_paid; /* bytes taken from the listener's purse for the body */
    bool begun;       /* its headers are there */
    bool too_large, no_room, handled;
    int status;
};

struct qh_listener {
    struct qh_listener_options options;
    struct MHD_Daemon *daemon;
    int fd;
    uint16_t port;
    struct qf_tls_files *tls;         /* NULL: no TLS */
    const struct qf_tls_texts *first; /* what the server was started with */
    struct qf_lock *lock;             /* guards the rest, but for `bodies` */
    struct qh_identity *identity;     /* what new connections are shown */
    struct qh_exchange *exchanges;
    struct qh_link *links;
    size_t link_count;
    size_t active;
    bool closing;
    struct qf_purse bodies; /* any thread */
};

/* exchange.c: libmicrohttpd's callbacks for requests; @cls is the listener. The first line is there:
 * makes the exchange. */
void *qh_on_target(void *cls, const char *target, struct MHD_Connection *connection);
/* Headers, pieces of the body, the end of it. */
enum MHD_Result qh_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request_ctx);
void qh_on_completed(void *cls, struct MHD_Connection *connection, void **request_ctx,
                     enum MHD_RequestTerminationCode code);

/* What a connection does: nothing since its last request, send one, wait for the answer. */
enum qh_link_state { QH_LINK_RESTS, QH_LINK_READS, QH_LINK_BUSY };
/* listener.c */
void qh_link_mark(struct MHD_Connection *connection, struct qh_listener *listener,
                  enum qh_link_state state);

#endif
