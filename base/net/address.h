/* address.h - HOST:PORT as text, and sockets bound there.
 *
 * The forms are "127.0.0.1:80", "name:80", "[::1]:80" and ":80", which means every address of the
 * machine. An IPv6 address needs its brackets: without them nobody can tell where the port begins.
 * Port 0 takes a free one. */
#ifndef BASE_NET_ADDRESS_H
#define BASE_NET_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pure/err.h"

/* The parts; *@ret_host is without brackets and the caller's to free. QF_EINVAL. */
QF_MUST_CHECK qf_rc qf_address_split(const char *text, char **ret_host, uint16_t *ret_port,
                                     struct qf_err *err);

struct addrinfo;
/* What @address stands for, best first; freeaddrinfo() it. @passive: to listen there, so that an
 * empty host is every address, else to connect. QF_EINVAL. Waits for DNS. */
QF_MUST_CHECK qf_rc qf_address_resolve(const char *address, bool passive,
                                       struct addrinfo **ret_found, struct qf_err *err);

/* A non-blocking TCP socket bound to @address; it does not listen yet. QF_EINVAL: a bad address.
 * QF_EUNAVAILABLE: taken, or not ours. */
QF_MUST_CHECK qf_rc qf_address_bind(const char *address, int *ret_fd, struct qf_err *err);
/* The same, listening. @ret_port is the port it got. */
QF_MUST_CHECK qf_rc qf_address_listen(const char *address, int *ret_fd, uint16_t *ret_port,
                                      struct qf_err *err);

/* A host that means every address of the machine: reachable, but no name to give to others. */
bool qf_host_is_wildcard(const char *host);
/* A host that only this machine reaches. */
bool qf_host_is_loopback(const char *host);

#endif
