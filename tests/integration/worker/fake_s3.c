/* fake_s3.c - just enough of an object store for tests. */
#include "tests/integration/worker/fake_s3.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"

struct fake_s3 {
    struct MHD_Daemon *daemon;
    char *folder;
    char url[160];
    atomic_int delay_ms;
    atomic_uint requests;
    atomic_ullong bytes;
    atomic_bool replaced, ignore_ranges;
    atomic_llong spoil;
};

static enum MHD_Result reply_missing(struct MHD_Connection *connection)
{
    static char body[] = "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code>"
                         "<Message>none</Message></Error>";
    struct MHD_Response *response =
        MHD_create_response_from_buffer(sizeof(body) - 1, body, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result;

    (void)MHD_add_response_header(response, "Content-Type", "application/xml");
    result = MHD_queue_response(connection, MHD_HTTP_NOT_FOUND, response);
    MHD_destroy_response(response);
    return result;
}

/* "bytes=FIRST-LAST" */
static bool asked_range(const struct fake_s3 *s3, struct MHD_Connection *connection, uint64_t size,
                        uint64_t *ret_first, uint64_t *ret_len)
{
    const char *text = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Range");
    unsigned long long first, last;

    if (!text || atomic_load(&s3->ignore_ranges) ||
        sscanf(text, "bytes=%llu-%llu", &first, &last) != 2 || first >= size || last < first)
        return false;
    *ret_first = first;
    *ret_len = (last < size ? last + 1 : size) - first;
    return true;
}

static enum MHD_Result reply_range(struct fake_s3 *s3, struct MHD_Connection *connection, int fd,
                                   uint64_t size, uint64_t first, uint64_t len)
{
    char *bytes = qf_xmalloc(len), text[96];
    long long spoil = atomic_load(&s3->spoil);
    struct MHD_Response *response;
    enum MHD_Result result;

    if (pread(fd, bytes, len, (off_t)first) != (ssize_t)len)
        abort();
    (void)close(fd);
    if (spoil >= (long long)first && spoil < (long long)(first + len))
        bytes[(uint64_t)spoil - first] ^= 1;
    response = MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_MUST_FREE);
    (void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu", (unsigned long long)first,
                   (unsigned long long)(first + len - 1), (unsigned long long)size);
    (void)MHD_add_response_header(response, "Content-Range", text);
    (void)MHD_add_response_header(response, "ETag", atomic_load(&s3->replaced) ? "\"y\"" : "\"x\"");
    atomic_fetch_add(&s3->bytes, len);
    result = MHD_queue_response(connection, MHD_HTTP_PARTIAL_CONTENT, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request)
{
    struct fake_s3 *s3 = ctx;
    struct MHD_Response *response;
    enum MHD_Result result;
    char path[512];
    uint64_t first, len;
    struct stat info;
    int fd;

    (void)version;
    (void)upload;
    (void)upload_size;
    (void)request;
    if (strncmp(url, "/b/_store/", 10) != 0) /* the name of the store is looked for now and then */
        atomic_fetch_add(&s3->requests, 1);
    for (int slept = 0; slept < atomic_load(&s3->delay_ms); slept += 10)
        (void)usleep(10000);
    if (strcmp(method, "GET") != 0 || strncmp(url, "/b/", 3) != 0)
        return reply_missing(connection);
    (void)snprintf(path, sizeof(path), "%s/%s", s3->folder, url + 3);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0)
        return reply_missing(connection);
    if (asked_range(s3, connection, (uint64_t)info.st_size, &first, &len))
        return reply_range(s3, connection, fd, (uint64_t)info.st_size, first, len);
    atomic_fetch_add(&s3->bytes, (unsigned long long)info.st_size);
    response = MHD_create_response_from_fd((size_t)info.st_size, fd);
    (void)MHD_add_response_header(response, "ETag", atomic_load(&s3->replaced) ? "\"y\"" : "\"x\"");
    result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

struct fake_s3 *fake_s3_new(const char *folder)
{
    struct fake_s3 *s3 = qf_xcalloc(1, sizeof(*s3));
    struct sockaddr_in loopback = { .sin_family = AF_INET };
    const union MHD_DaemonInfo *info;

    loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    s3->folder = qf_xstrdup(folder);
    atomic_store(&s3->spoil, -1);
    s3->daemon =
        MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL,
                         NULL, handle, s3, MHD_OPTION_SOCK_ADDR, &loopback, MHD_OPTION_END);
    info = s3->daemon ? MHD_get_daemon_info(s3->daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (!info)
        abort();
    (void)snprintf(s3->url, sizeof(s3->url),
                   "s3://b?endpoint=http://127.0.0.1:%u&anonymous=1&etag=opaque",
                   (unsigned)info->port);
    return s3;
}

struct fake_s3 *fake_s3_free(struct fake_s3 *s3)
{
    if (!s3)
        return NULL;
    fake_s3_delay(s3, 0);
    MHD_stop_daemon(s3->daemon);
    free(s3->folder);
    free(s3);
    return NULL;
}

const char *fake_s3_url(const struct fake_s3 *s3)
{
    return s3->url;
}

void fake_s3_delay(struct fake_s3 *s3, int ms)
{
    atomic_store(&s3->delay_ms, ms);
}

unsigned fake_s3_requests(const struct fake_s3 *s3)
{
    return atomic_load(&s3->requests);
}

unsigned long long fake_s3_bytes(const struct fake_s3 *s3)
{
    return atomic_load(&s3->bytes);
}

void fake_s3_replace(struct fake_s3 *s3)
{
    atomic_store(&s3->replaced, true);
}

void fake_s3_ignore_ranges(struct fake_s3 *s3)
{
    atomic_store(&s3->ignore_ranges, true);
}

void fake_s3_spoil(struct fake_s3 *s3, long long offset)
{
    atomic_store(&s3->spoil, offset);
}
