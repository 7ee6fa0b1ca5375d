/* dns.c - workers behind a name: every address it has is one. */
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/net/address.h"
#include "base/pure/alloc.h"
#include "queryapi/discovery/discovery_int.h"

qf_rc qa_dns_look(const char *name_and_port, struct endpoints *list, struct qf_err *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    QF_CLEANUP(qf_freep) char *name = NULL;
    uint16_t port;
    int failed;
    qf_rc rc = qf_address_split(name_and_port, &name, &port, err);

    if (rc)
        return rc;
    failed = getaddrinfo(name, NULL, &hints, &found);
    /* A headless service without a pod has no address: no such name, or a name without one. */
    if (failed == EAI_NONAME || failed == EAI_NODATA)
        return QF_OK;
    if (failed)
        return qf_err_set(err, QF_EUNAVAILABLE, "%s: %s", name_and_port, gai_strerror(failed));
    for (const struct addrinfo *at = found; at; at = at->ai_next) {
        char host[128];

        if (getnameinfo(at->ai_addr, at->ai_addrlen, host, sizeof(host), NULL, 0, NI_NUMERICHOST) ==
            0)
            qa_endpoints_add(list, at->ai_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
                             (unsigned)port);
    }
    freeaddrinfo(found);
    return QF_OK;
}
