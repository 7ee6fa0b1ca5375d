/* test_address.c - HOST:PORT as text, and sockets bound there. */
#include "base/net/address.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "tests/lib/test.h"

static void check_split(const char *text, const char *host, uint16_t port)
{
    QF_CLEANUP(qf_freep) char *got_host = NULL;
    struct qf_err err = { 0 };
    uint16_t got_port;

    CHECK_OK(qf_address_split(text, &got_host, &got_port, &err), &err);
    CHECK_STR(got_host, host);
    CHECK_EQ(got_port, port);
}

TEST(addresses_are_split)
{
    check_split("127.0.0.1:80", "127.0.0.1", 80);
    check_split("[::1]:0", "::1", 0);
    check_split(":65535", "", 65535);
}

/* Without brackets nobody can tell where the port of an IPv6 address begins. */
TEST(what_is_not_an_address_is_told)
{
    static const char *const bad[] = { "::1:80",     "host",    "host:",
                                       "host:99999", "host:-1", "host:http" };
    struct qf_err err = { 0 };
    uint16_t port;
    char *host;

    for (size_t i = 0; i < QF_COUNT_OF(bad); i++)
        CHECK_EQ(qf_address_split(bad[i], &host, &port, NULL), QF_EINVAL);
    CHECK_EQ(qf_address_split("host", &host, &port, &err), QF_EINVAL);
    CHECK_STR(err.msg, "bad address \"host\": want host:port");
}

TEST(a_taken_port_is_unavailable)
{
    struct qf_err err = { 0 };
    char address[32], want[100];
    int first, second;
    uint16_t port, other;

    CHECK_OK(qf_address_listen("127.0.0.1:0", &first, &port, &err), &err);
    CHECK(port != 0);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)port);
    CHECK_EQ(qf_address_listen(address, &second, &other, &err), QF_EUNAVAILABLE);
    (void)snprintf(want, sizeof(want), "cannot listen on %s: Address already in use", address);
    CHECK_STR(err.msg, want);
    (void)close(first);
    err = (struct qf_err){ 0 };
    CHECK_OK(qf_address_bind(address, &second, &err), &err);
    (void)close(second);
}

TEST(an_empty_host_means_everywhere_to_listen_and_here_to_connect)
{
    struct addrinfo *found = NULL;
    struct qf_err err = { 0 };
    char host[64];

    CHECK_OK(qf_address_resolve(":80", false, &found, &err), &err);
    CHECK_EQ(
        getnameinfo(found->ai_addr, found->ai_addrlen, host, sizeof(host), NULL, 0, NI_NUMERICHOST),
        0);
    CHECK_MSG(qf_host_is_loopback(host), "%s", host);
    freeaddrinfo(found);
    CHECK_OK(qf_address_resolve(":80", true, &found, &err), &err);
    CHECK_EQ(
        getnameinfo(found->ai_addr, found->ai_addrlen, host, sizeof(host), NULL, 0, NI_NUMERICHOST),
        0);
    CHECK_MSG(qf_host_is_wildcard(host), "%s", host);
    freeaddrinfo(found);
}
