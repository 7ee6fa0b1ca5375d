/* host.c - names that an API on the loopback answers to. */
#include "queryapi/http/host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 255

/* Nobody can have an address point elsewhere. */
static bool is_address(const char *name)
{
    struct in6_addr any;

    return inet_pton(AF_INET, name, &any) == 1 || inet_pton(AF_INET6, name, &any) == 1;
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);

    return len > end_len && strcasecmp(name + len - end_len, end) == 0;
}

/* The name in "name:80", "name." and "[::1]:80"; false if it is too long for one. */
static bool read_name(struct qf_str host, char name[NAME_MAX_BYTES + 1])
{
    const char *end;

    if (host.len && host.data[0] == '[') {
        end = memchr(host.data, ']', host.len);
        host = qf_str_sub(host, 1, end ? (size_t)(end - host.data) : host.len);
    } else {
        end = host.len ? memchr(host.data, ':', host.len) : NULL;
        host = qf_str_sub(host, 0, end ? (size_t)(end - host.data) : host.len);
    }
    if (host.len && host.data[host.len - 1] == '.')
        host.len--;
    if (host.len > NAME_MAX_BYTES)
        return false;
    if (host.len)
        memcpy(name, host.data, host.len);
    name[host.len] = '\0';
    return true;
}

bool qa_host_is_ours(struct qf_str host, const char *const *names, size_t name_count)
{
    char name[NAME_MAX_BYTES + 1];

    if (host.len == 0)
        return true;
    if (!read_name(host, name))
        return false;
    if (is_address(name) || strcasecmp(name, "localhost") == 0 || ends_with(name, ".localhost"))
        return true;
    for (size_t i = 0; i < name_count; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}
