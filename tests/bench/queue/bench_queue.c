/* bench_queue.c - clients that offer records to a queue as fast as they are acknowledged.
 *
 * usage: bench_queue PORT QUEUE CLIENTS SECONDS RECORD_BYTES BATCH
 *
 * Each client has one connection and one request under way. BATCH 1: a record per request; else that
 * many lines. Prints one line of JSON. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"

static struct {
    uint16_t port;
    const char *queue;
    size_t clients, record_bytes, batch;
    int64_t end_ns;
} o;

struct client {
    QF_VEC(double) latencies; /* ms */
    uint64_t failed;
};

static int dial(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(o.port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        perror("connect");
        exit(1);
    }
    return fd;
}

static void make_request(struct qf_strbuf *request)
{
    size_t len = o.batch == 1 ? o.record_bytes : o.batch * (o.record_bytes + 1);

    qf_strbuf_printf(request,
                     "POST /v1/queues/%s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     o.queue, o.batch == 1 ? "application/octet-stream" : "application/x-ndjson",
                     len);
    for (size_t i = 0; i < len; i++)
        qf_strbuf_putc(request, o.batch > 1 && (i + 1) % (o.record_bytes + 1) == 0 ? '\n' : 'x');
}

static void send_all(int fd, struct qf_str bytes)
{
    while (bytes.len) {
        ssize_t sent = write(fd, bytes.data, bytes.len);

        if (sent <= 0)
            exit(1);
        bytes = qf_str_sub(bytes, (size_t)sent, bytes.len);
    }
}

/* True for a 200; answers are small and come whole with their length. */
static bool read_answer(int fd)
{
    char answer[4096];
    size_t len = 0;

    for (;;) {
        ssize_t got = read(fd, answer + len, sizeof(answer) - 1 - len);
        const char *body, *length;

        if (got <= 0)
            exit(1);
        len += (size_t)got;
        answer[len] = 0;
        body = strstr(answer, "\r\n\r\n");
        length = strcasestr(answer, "content-length:");
        if (body && length && len >= (size_t)(body + 4 - answer) + strtoul(length + 15, NULL, 10))
            return strncmp(answer, "HTTP/1.1 200", 12) == 0;
    }
}

static void run(void *arg)
{
    struct client *client = arg;
    struct qf_strbuf request = QF_STRBUF_INIT;
    int fd = dial();

    make_request(&request);
    while (qf_clock_mono_ns() < o.end_ns) {
        int64_t began = qf_clock_mono_ns();

        send_all(fd, qf_strbuf_view(&request));
        if (read_answer(fd))
            QF_VEC_PUSH(&client->latencies, (double)(qf_clock_mono_ns() - began) / 1e6);
        else
            client->failed++;
    }
    (void)close(fd);
    qf_strbuf_done(&request);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    QF_VEC(double) all = { 0 };
    struct client *clients;
    struct qf_thread **threads;
    uint64_t failed = 0;
    double seconds;

    if (argc != 7) {
        fprintf(stderr, "usage: bench_queue PORT QUEUE CLIENTS SECONDS RECORD_BYTES BATCH\n");
        return 2;
    }
    o.port = (uint16_t)strtoul(argv[1], NULL, 10);
    o.queue = argv[2];
    o.clients = strtoul(argv[3], NULL, 10);
    seconds = strtod(argv[4], NULL);
    o.record_bytes = strtoul(argv[5], NULL, 10);
    o.batch = strtoul(argv[6], NULL, 10);
    o.end_ns = qf_clock_mono_ns() + (int64_t)(seconds * 1e9);
    clients = qf_xcalloc(o.clients, sizeof(*clients));
    threads = qf_xcalloc(o.clients, sizeof(struct qf_thread *));
    for (size_t i = 0; i < o.clients; i++)
        threads[i] = qf_thread_start("client", run, &clients[i]);
    for (size_t i = 0; i < o.clients; i++) {
        (void)qf_thread_join(threads[i]);
        failed += clients[i].failed;
        for (size_t k = 0; k < clients[i].latencies.count; k++)
            QF_VEC_PUSH(&all, clients[i].latencies.items[k]);
        QF_VEC_DONE(&clients[i].latencies);
    }
    if (all.count)
        qsort(all.items, all.count, sizeof(double), by_value);
    printf("{\"records\":%zu,\"failed\":%" PRIu64 ",\"records_per_second\":%.0f,\"p50_ms\":%.2f,"
           "\"p99_ms\":%.2f}\n",
           all.count * o.batch, failed, (double)(all.count * o.batch) / seconds,
           all.count ? all.items[all.count / 2] : 0.0,
           all.count ? all.items[all.count * 99 / 100] : 0.0);
    QF_VEC_DONE(&all);
    free(clients);
    free(threads);
    return 0;
}
