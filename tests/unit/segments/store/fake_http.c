/* fake_http.c - accept, read one request, answer, close. */
#include "tests/unit/segments/store/fake_http.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "base/sys/thread.h"
#include "tests/lib/test.h"

#define SLOTS 64

struct fake_http {
    int listener, port;
    atomic_bool stop;
    struct qf_thread *thread;
    struct qf_lock *lock;
    char *answers[SLOTS], *requests[SLOTS];
    unsigned answer_count, request_count;
};

/* Head and body of one request. */
static char *read_request(int fd)
{
    struct qf_strbuf buf = { .limit = 1 << 20 };
    size_t want = SIZE_MAX;

    while (buf.len < want && !buf.overflowed) {
        char chunk[4096];
        ssize_t got = recv(fd, chunk, sizeof(chunk), 0);
        const char *end, *length;
        uint64_t body = 0;

        if (got <= 0)
            break;
        qf_strbuf_add(&buf, chunk, (size_t)got);
        end = strstr(buf.data, "\r\n\r\n");
        if (!end)
            continue;
        length = strcasestr(buf.data, "\r\ncontent-length: ");
        if (length && length < end) {
            length += 18;
            (void)qf_parse_u64((struct qf_str){ length, strcspn(length, "\r") }, &body);
        }
        want = (size_t)(end - buf.data) + 4 + (size_t)body;
    }
    return qf_strbuf_take(&buf);
}

static void serve(struct fake_http *fake, int fd)
{
    char *request = read_request(fd);
    char *answer = NULL;

    qf_lock_take(fake->lock);
    if (fake->answer_count) {
        unsigned index =
            fake->request_count < fake->answer_count ? fake->request_count : fake->answer_count - 1;

        answer = qf_xstrdup(fake->answers[index]);
    }
    if (fake->request_count < SLOTS)
        fake->requests[fake->request_count++] = request;
    else
        free(request);
    qf_lock_drop(fake->lock);
    if (answer)
        (void)!send(fd, answer, strlen(answer), MSG_NOSIGNAL);
    free(answer);
}

static void run(void *arg)
{
    struct fake_http *fake = arg;

    while (!atomic_load(&fake->stop)) {
        struct pollfd ready = { .fd = fake->listener, .events = POLLIN };
        int fd;

        if (poll(&ready, 1, 20) <= 0)
            continue;
        fd = accept(fake->listener, NULL, NULL);
        if (fd < 0)
            continue;
        serve(fake, fd);
        (void)close(fd);
    }
}

struct fake_http *fake_http_new(void)
{
    struct fake_http *fake = qf_xcalloc(1, sizeof(*fake));
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);

    fake->listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fake->listener >= 0);
    CHECK(bind(fake->listener, (struct sockaddr *)&address, len) == 0);
    CHECK(listen(fake->listener, 16) == 0);
    CHECK(getsockname(fake->listener, (struct sockaddr *)&address, &len) == 0);
    fake->port = ntohs(address.sin_port);
    fake->lock = qf_lock_new();
    fake->thread = qf_thread_start("fake-http", run, fake);
    CHECK(fake->thread != NULL);
    return fake;
}

void fake_http_freep(struct fake_http **pointer)
{
    struct fake_http *fake = *pointer;

    atomic_store(&fake->stop, true);
    (void)qf_thread_join(fake->thread);
    (void)close(fake->listener);
    fake_http_reset(fake);
    (void)qf_lock_free(fake->lock);
    free(fake);
    *pointer = NULL;
}

int fake_http_port(const struct fake_http *fake)
{
    return fake->port;
}

void fake_http_answer(struct fake_http *fake, const char *status, const char *headers,
                      const char *body)
{
    struct qf_strbuf text = QF_STRBUF_INIT;

    qf_strbuf_printf(&text, "HTTP/1.1 %s\r\nConnection: close\r\n%s", status, headers);
    if (!strstr(headers, "Content-Length"))
        qf_strbuf_printf(&text, "Content-Length: %zu\r\n", strlen(body));
    qf_strbuf_printf(&text, "\r\n%s", body);
    qf_lock_take(fake->lock);
    CHECK(fake->answer_count < SLOTS);
    fake->answers[fake->answer_count++] = qf_strbuf_take(&text);
    qf_lock_drop(fake->lock);
}

void fake_http_reset(struct fake_http *fake)
{
    qf_lock_take(fake->lock);
    for (unsigned i = 0; i < fake->answer_count; i++)
        free(fake->answers[i]);
    for (unsigned i = 0; i < fake->request_count; i++)
        free(fake->requests[i]);
    fake->answer_count = fake->request_count = 0;
    qf_lock_drop(fake->lock);
}

unsigned fake_http_count(struct fake_http *fake)
{
    unsigned count;

    qf_lock_take(fake->lock);
    count = fake->request_count;
    qf_lock_drop(fake->lock);
    return count;
}

const char *fake_http_request(struct fake_http *fake, unsigned index)
{
    const char *request;

    qf_lock_take(fake->lock);
    request = index < fake->request_count ? fake->requests[index] : "";
    qf_lock_drop(fake->lock);
    return request;
}
