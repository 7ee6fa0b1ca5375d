/* listener.c - HTTP server on libmicrohttpd: its life and its connections. */
#include "base/http/listener.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/http/identity.h"
#include "base/http/listener_int.h"
#include "base/net/address.h"
#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"

/* One connection, to tell one that dribbles its request from one that waits for an answer. */
struct qh_link {
    struct qh_link *prev, *next;
    int fd;
    enum qh_link_state state;
    qf_time_ms since;
    struct qh_identity *identity; /* with TLS */
};

/* Without progress the server library closes it: soon within a request, later between two. */
static void set_timeout(struct MHD_Connection *connection, const struct qh_listener *listener,
                        enum qh_link_state state)
{
    int64_t ms = state == QH_LINK_RESTS ? listener->options.rest_timeout_ms
                                        : listener->options.idle_timeout_ms;

    (void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
                                    (unsigned)((ms + 999) / 1000));
}

void qh_link_mark(struct MHD_Connection *connection, struct qh_listener *listener,
                  enum qh_link_state state)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct qh_link *link = info ? info->socket_context : NULL;

    if (!link)
        return;
    qf_lock_take(listener->lock);
    link->state = state;
    link->since = qf_clock_mono_ms();
    qf_lock_drop(listener->lock);
    set_timeout(connection, listener, state);
}

/* What a new connection shows: the files' certificate as of now. The look at the files is without the
 * lock, since it may wait. */
static struct qh_identity *identity_for(struct qh_listener *listener,
                                        struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    struct qh_identity *identity;

    if (!listener->tls || !info || !info->tls_session)
        return NULL;
    qf_tls_files_look(listener->tls);
    qf_lock_take(listener->lock);
    listener->identity = qh_identity_renew(listener->identity, listener->tls);
    identity = listener->identity ? qh_identity_ref(listener->identity) : NULL;
    qf_lock_drop(listener->lock);
    if (identity)
        qh_identity_apply(identity, info->tls_session);
    return identity;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_ctx,
                          enum MHD_ConnectionNotificationCode code)
{
    struct qh_listener *listener = cls;
    struct qh_link *link = *socket_ctx;
    struct qh_identity *identity =
        code == MHD_CONNECTION_NOTIFY_STARTED ? identity_for(listener, connection) : NULL;

    qf_lock_take(listener->lock);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        *socket_ctx = link = qf_xcalloc(1, sizeof(*link));
        link->fd = info ? info->connect_fd : -1;
        link->since = qf_clock_mono_ms();
        listener->link_count++;
        link->identity = identity;
        link->next = listener->links;
        if (link->next)
            link->next->prev = link;
        listener->links = link;
    } else if (link) {
        if (link->prev)
            link->prev->next = link->next;
        else
            listener->links = link->next;
        if (link->next)
            link->next->prev = link->prev;
        listener->link_count--;
        (void)qh_identity_drop(link->identity);
        free(link);
        *socket_ctx = NULL;
    }
    qf_lock_drop(listener->lock);
}

static void on_log(void *cls, const char *fmt, va_list args) QF_PRINTF(2, 0);
static void on_log(void *cls, const char *fmt, va_list args)
{
    char text[300];

    (void)cls;
    (void)vsnprintf(text, sizeof(text), fmt, args);
    QF_LOG_DEBUG("http server", QF_KV_SLICE("detail", qf_str_trim(qf_str_from(text))));
}

static void set_defaults(struct qh_listener_options *options)
{
#define DEFAULT(field, value) options->field = options->field ? options->field : (value)
    DEFAULT(threads, 4);
    DEFAULT(connections_max, 2048);
    DEFAULT(body_bytes_max, (size_t)2 << 20);
    DEFAULT(bodies_bytes_max, (size_t)256 << 20);
    DEFAULT(header_bytes_max, (size_t)64 << 10);
    DEFAULT(stream_bytes_max, (size_t)256 << 10);
    DEFAULT(idle_timeout_ms, 30000);
    DEFAULT(header_timeout_ms, 30000);
    DEFAULT(rest_timeout_ms, 300000);
    DEFAULT(keepalive_ms, 5000);
#undef DEFAULT
}

static qf_rc read_tls_files(struct qh_listener *listener, struct qf_err *err)
{
    const struct qh_listener_options *options = &listener->options;
    struct qf_tls_paths paths = { options->tls_client_ca_file, options->tls_cert_file,
                                  options->tls_key_file };

    if (!options->tls_cert_file && !options->tls_key_file)
        return QF_OK;
    listener->tls = qf_tls_files_new(&paths, err);
    if (!listener->tls)
        return err ? err->rc : QF_EINVAL;
    listener->first = qf_tls_files_take(listener->tls);
    return QF_OK;
}

static qf_rc start_daemon(struct qh_listener *listener, struct qf_err *err)
{
    const struct qh_listener_options *options = &listener->options;
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_ERROR_LOG;
    struct MHD_OptionItem tls[] = {
        { MHD_OPTION_HTTPS_MEM_CERT, 0, NULL },
        { MHD_OPTION_HTTPS_MEM_KEY, 0, NULL },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2" },
        { MHD_OPTION_END, 0, NULL }, /* room for those who sign clients' certificates */
        { MHD_OPTION_END, 0, NULL },
    };

    if (listener->tls) {
        tls[0].ptr_value = listener->first->cert;
        tls[1].ptr_value = listener->first->key;
        if (listener->first->ca)
            tls[3] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_TRUST, 0, listener->first->ca };
        flags |= MHD_USE_TLS;
    } else {
        tls[0].option = MHD_OPTION_END;
    }
    listener->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, qh_on_request, listener, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, listener->fd, MHD_OPTION_THREAD_POOL_SIZE,
        (unsigned)QF_MAX(options->threads, (size_t)2), MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)options->connections_max, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        (unsigned)options->address_connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        options->header_bytes_max + QH_BLOCK_BYTES, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)((options->rest_timeout_ms + 999) / 1000), MHD_OPTION_NOTIFY_COMPLETED,
        qh_on_completed, listener, MHD_OPTION_NOTIFY_CONNECTION, on_connection, listener,
        MHD_OPTION_URI_LOG_CALLBACK, qh_on_target, listener, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (!listener->daemon)
        return qf_err_set(err, QF_EIO, "cannot start the HTTP server%s",
                          options->tls_cert_file ? ": check certificate and key" : "");
    listener->fd = -1; /* the daemon's now */
    return QF_OK;
}

struct qh_listener *qh_listener_new(const struct qh_listener_options *options, struct qf_err *err)
{
    struct qh_listener *listener = qf_xcalloc(1, sizeof(*listener));

    listener->options = *options;
    set_defaults(&listener->options);
    listener->bodies.limit = listener->options.bodies_bytes_max;
    listener->fd = -1;
    listener->lock = qf_lock_new();
    if (read_tls_files(listener, err) != QF_OK ||
        qf_address_listen(options->listen, &listener->fd, &listener->port, err) != QF_OK ||
        start_daemon(listener, err) != QF_OK)
        return qh_listener_free(listener);
    return listener;
}

/* Since when it has been asking for too long; connections that rest may do so while few do. */
static bool is_overdue(const struct qh_listener *listener, const struct qh_link *link,
                       qf_time_ms now)
{
    const struct qh_listener_options *options = &listener->options;
    bool many = listener->link_count > options->connections_max / 2;
    int64_t limit = link->state == QH_LINK_RESTS && !many ? options->rest_timeout_ms
                                                          : options->header_timeout_ms;

    return link->state != QH_LINK_BUSY && now - link->since > limit;
}

/* Look at every connection, and at every answer under way. */
static void look_after(struct qh_listener *listener, bool cut)
{
    qf_time_ms now = qf_clock_mono_ms();

    qf_lock_take(listener->lock);
    listener->closing |= cut;
    for (struct qh_exchange *at = listener->exchanges; at; at = at->next)
        qh_stream_tick(at->stream, now, listener->options.keepalive_ms, cut);
    for (struct qh_link *at = listener->links; at; at = at->next) {
        if (at->fd >= 0 && is_overdue(listener, at, now)) {
            (void)shutdown(at->fd, SHUT_RDWR); /* the server closes it when it sees that */
            at->fd = -1;
        }
    }
    qf_lock_drop(listener->lock);
}

struct qh_listener *qh_listener_free(struct qh_listener *listener)
{
    if (!listener)
        return NULL;
    if (listener->daemon) {
        look_after(listener, true);
        MHD_stop_daemon(listener->daemon);
    }
    if (listener->fd >= 0)
        (void)close(listener->fd);
    (void)qh_identity_drop(listener->identity);
    qf_tls_texts_drop(listener->first);
    (void)qf_tls_files_free(listener->tls);
    (void)qf_lock_free(listener->lock);
    free(listener);
    return NULL;
}

uint16_t qh_listener_port(const struct qh_listener *listener)
{
    return listener->port;
}

void qh_listener_tick(struct qh_listener *listener)
{
    look_after(listener, false);
}

size_t qh_listener_active(struct qh_listener *listener)
{
    size_t active;

    qf_lock_take(listener->lock);
    active = listener->active;
    qf_lock_drop(listener->lock);
    return active;
}
