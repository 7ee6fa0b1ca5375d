/* address.c - HOST:PORT, and sockets bound there. */
#include "base/net/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"

/* Connections that wait to be accepted: a burst of clients is no reason to turn any away. */
#define BACKLOG 1024

qf_rc qf_address_split(const char *text, char **ret_host, uint16_t *ret_port, struct qf_err *err)
{
    const char *colon = strrchr(text, ':');
    struct qf_str host;
    uint64_t port;

    if (!colon || !qf_parse_u64(qf_str_from(colon + 1), &port) || port > UINT16_MAX)
        return qf_err_set(err, QF_EINVAL, "bad address \"%s\": want host:port", text);
    host = (struct qf_str){ text, (size_t)(colon - text) };
    if (host.len >= 2 && host.data[0] == '[' && host.data[host.len - 1] == ']')
        host = qf_str_sub(host, 1, host.len - 1);
    else if (memchr(host.data, ':', host.len))
        return qf_err_set(err, QF_EINVAL, "bad address \"%s\": want [host]:port", text);
    *ret_host = qf_xmemdup0(host.data, host.len);
    *ret_port = (uint16_t)port;
    return QF_OK;
}

qf_rc qf_address_resolve(const char *address, bool passive, struct addrinfo **ret_found,
                         struct qf_err *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = passive ? AI_PASSIVE : 0 };
    QF_CLEANUP(qf_freep) char *host = NULL;
    char port_text[8];
    uint16_t port;
    int failed;
    qf_rc rc = qf_address_split(address, &host, &port, err);

    if (rc)
        return rc;
    (void)snprintf(port_text, sizeof(port_text), "%u", (unsigned)port);
    failed = getaddrinfo(*host ? host : NULL, port_text, &hints, ret_found);
    if (failed)
        return qf_err_set(err, QF_EINVAL, "cannot resolve %s: %s", address, gai_strerror(failed));
    return QF_OK;
}

static qf_rc cannot_listen(const char *address, struct qf_err *err)
{
    return qf_err_set(err, QF_EUNAVAILABLE, "cannot listen on %s: %s", address, strerror(errno));
}

qf_rc qf_address_bind(const char *address, int *ret_fd, struct qf_err *err)
{
    struct addrinfo *found = NULL;
    int fd, yes = 1;
    qf_rc rc = qf_address_resolve(address, true, &found, err);

    if (rc)
        return rc;
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0) {
        rc = cannot_listen(address, err);
        if (fd >= 0)
            (void)close(fd);
    } else {
        *ret_fd = fd;
    }
    freeaddrinfo(found);
    return rc;
}

static uint16_t port_of(const struct sockaddr_storage *bound)
{
    return bound->ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)bound)->sin6_port)
                                        : ntohs(((const struct sockaddr_in *)bound)->sin_port);
}

qf_rc qf_address_listen(const char *address, int *ret_fd, uint16_t *ret_port, struct qf_err *err)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof(bound);
    int fd;
    qf_rc rc = qf_address_bind(address, &fd, err);

    if (rc)
        return rc;
    if (listen(fd, BACKLOG) != 0 || getsockname(fd, (struct sockaddr *)&bound, &len) != 0) {
        rc = cannot_listen(address, err);
        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    *ret_port = port_of(&bound);
    return QF_OK;
}

bool qf_host_is_wildcard(const char *host)
{
    return !*host || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

bool qf_host_is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "localhost") == 0 ||
           strcmp(host, "::1") == 0;
}
