/* Snapshots by HTTP: a server that breaks off, changes its file, or has none. */
#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "queue/peer/bundle.h"
#include "tests/lib/test.h"
#include "tests/unit/queue/peer/endpoint.h"
#include "tests/unit/queue/peer/filled_store.h"

struct server {
    int fd;
    uint16_t port;
    struct qf_thread *thread;
    struct qf_lock *lock; /* of what follows */
    char *bytes;
    size_t len;
    char etag[32];
    size_t cut_after; /* bytes of each answer; 0: never */
    int status;       /* of every answer; 0: as it should be */
    atomic_int requests, resumed;
    atomic_bool end;
    char authorization[128];
};

static void send_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t done = send(fd, data, len, MSG_NOSIGNAL);

        if (done <= 0)
            return;
        data += done;
        len -= (size_t)done;
    }
}

static void answer(struct server *server, int fd, const char *request)
{
    const char *range = strstr(request, "Range: bytes="), *if_range = strstr(request, "If-Range: ");
    const char *key = strstr(request, "Authorization: ");
    size_t from = 0, len;
    char head[256];
    int status = 200;

    (void)sscanf(key ? key : "", "Authorization: %127[^\r]", server->authorization);
    if (range && if_range && strncmp(if_range + 10, server->etag, strlen(server->etag)) == 0) {
        from = strtoul(range + 13, NULL, 10);
        status = 206;
        atomic_fetch_add(&server->resumed, 1);
    }
    if (server->status)
        status = server->status;
    len = server->len - from;
    (void)snprintf(head, sizeof(head),
                   "HTTP/1.1 %d X\r\nETag: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
                   status, server->etag, len);
    send_all(fd, head, strlen(head));
    if (server->cut_after)
        len = QF_MIN(len, server->cut_after);
    send_all(fd, server->bytes + from, len);
}

static void serve(void *arg)
{
    struct server *server = arg;

    for (;;) {
        char request[4096] = "";
        size_t have = 0;
        int fd = accept(server->fd, NULL, NULL);

        if (fd < 0 || atomic_load(&server->end)) {
            (void)close(fd);
            return;
        }
        while (!strstr(request, "\r\n\r\n") && have < sizeof(request) - 1) {
            ssize_t got = recv(fd, request + have, sizeof(request) - 1 - have, 0);

            if (got <= 0)
                break;
            have += (size_t)got;
        }
        atomic_fetch_add(&server->requests, 1);
        qf_lock_take(server->lock);
        answer(server, fd, request);
        qf_lock_drop(server->lock);
        (void)shutdown(fd, SHUT_WR);
        (void)close(fd);
    }
}

static void server_start(struct server *server)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    socklen_t len = sizeof(address);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(server->fd, (struct sockaddr *)&address, len), 0);
    CHECK_EQ(listen(server->fd, 8), 0);
    CHECK_EQ(getsockname(server->fd, (struct sockaddr *)&address, &len), 0);
    server->port = ntohs(address.sin_port);
    server->lock = qf_lock_new();
    server->thread = qf_thread_start("server", serve, server);
}

static void server_stop(struct server *server)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(server->port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    atomic_store(&server->end, true);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)connect(fd, (struct sockaddr *)&address, sizeof(address)); /* wakes it */
    server->thread = qf_thread_join(server->thread);
    (void)close(fd);
    (void)close(server->fd);
    qf_freep(&server->bytes);
    server->lock = qf_lock_free(server->lock);
}

/* Two nodes; b's HTTP is the server, which has a bundle of index 300. */
struct bench {
    struct server server;
    struct endpoint a, b;
    char dir[32], path[64], base[64];
};

static void load_bundle(struct bench *bench, const char *etag)
{
    struct filled_store filled;
    struct qf_err err = { 0 };
    struct stat stats;
    FILE *file;

    filled_store_start(&filled, 320, 300);
    CHECK_OK(qp_bundle_write(&filled.store, 1, bench->path, &err), &err);
    filled_store_stop(&filled);
    CHECK_EQ(stat(bench->path, &stats), 0);
    qf_freep(&bench->server.bytes);
    bench->server.len = (size_t)stats.st_size;
    bench->server.bytes = qf_xcalloc(1, bench->server.len);
    file = fopen(bench->path, "r");
    CHECK_EQ(fread(bench->server.bytes, 1, bench->server.len, file), bench->server.len);
    (void)fclose(file);
    (void)unlink(bench->path);
    (void)snprintf(bench->server.etag, sizeof(bench->server.etag), "%s", etag);
}

static void bench_start(struct bench *bench, uint64_t bytes_max)
{
    struct qp_options options = endpoint_options("b", NULL, 0);
    struct qp_address to_b;

    (void)snprintf(bench->dir, sizeof(bench->dir), "/tmp/test_fetch_XXXXXX");
    CHECK(mkdtemp(bench->dir));
    (void)snprintf(bench->path, sizeof(bench->path), "%s/snapshot", bench->dir);
    load_bundle(bench, "\"one\"");
    server_start(&bench->server);
    (void)snprintf(bench->base, sizeof(bench->base), "http://127.0.0.1:%d", bench->server.port);
    options.http_base = bench->base;
    endpoint_start(&bench->b, &options);
    to_b = (struct qp_address){ "b", endpoint_address(&bench->b) };
    options = endpoint_options("a", &to_b, 1);
    options.fetch_bytes_max = bytes_max;
    endpoint_start(&bench->a, &options);
    endpoint_await_state(&bench->a, "b", QP_CONNECTED);
}

static void bench_stop(struct bench *bench)
{
    char command[64];

    endpoint_stop(&bench->a);
    endpoint_stop(&bench->b);
    server_stop(&bench->server);
    (void)snprintf(command, sizeof(command), "rm -r %s", bench->dir);
    CHECK_EQ(system(command), 0);
}

static qf_rc fetch(struct bench *bench, uint64_t index)
{
    size_t before = bench->a.answers;

    CHECK_EQ(qp_fetch(bench->a.peers, "b", "metrics-0", index, 1, bench->path, endpoint_answered,
                      &bench->a),
             QF_OK);
    endpoint_await_answers(&bench->a, before + 1);
    return bench->a.answer_rc;
}

static void check_whole(struct bench *bench)
{
    struct qp_bundle bundle;
    struct qf_err err = { 0 };

    CHECK_OK(qp_bundle_open(bench->path, &bundle, &err), &err);
    CHECK_EQ(bundle.snapshot.index, 300);
    CHECK_EQ(bundle.count, 300);
    qp_bundle_close(&bundle);
}

static void parts_gone(const struct bench *bench)
{
    char path[80];

    (void)snprintf(path, sizeof(path), "%s.part", bench->path);
    CHECK(access(path, F_OK) != 0);
    (void)snprintf(path, sizeof(path), "%s.etag", bench->path);
    CHECK(access(path, F_OK) != 0);
}

TEST(a_snapshot_is_fetched_with_the_token_of_the_hello)
{
    struct bench bench = { 0 };
    char want[128];

    bench_start(&bench, 0);
    CHECK_EQ(fetch(&bench, 300), QF_OK);
    check_whole(&bench);
    parts_gone(&bench);
    (void)snprintf(want, sizeof(want), "Bearer %s", qp_token(bench.b.peers));
    qf_lock_take(bench.server.lock);
    CHECK_STR(bench.server.authorization, want);
    qf_lock_drop(bench.server.lock);
    bench_stop(&bench);
}

TEST(a_fetch_that_breaks_off_is_resumed)
{
    struct bench bench = { 0 };

    bench.server.cut_after = 4000;
    bench_start(&bench, 0);
    CHECK_EQ(fetch(&bench, 300), QF_OK);
    check_whole(&bench);
    CHECK(atomic_load(&bench.server.resumed) >= 2);
    bench_stop(&bench);
}

static void write_text(const char *path, const char *suffix, const char *data, size_t len)
{
    char name[96];
    FILE *file;

    (void)snprintf(name, sizeof(name), "%s%s", path, suffix);
    file = fopen(name, "w");
    CHECK(file);
    CHECK_EQ(fwrite(data, 1, len, file), len);
    (void)fclose(file);
}

TEST(what_an_earlier_process_left_is_gone_on_with)
{
    struct bench bench = { 0 };

    bench_start(&bench, 0);
    write_text(bench.path, ".part", bench.server.bytes, 1000);
    write_text(bench.path, ".etag", "\"one\"", 5);
    CHECK_EQ(fetch(&bench, 300), QF_OK);
    check_whole(&bench);
    CHECK_EQ(atomic_load(&bench.server.resumed), 1);
    bench_stop(&bench);
}

/* The part is of a file that is gone: from the beginning, not two halves. */
TEST(a_part_of_another_file_is_thrown_away)
{
    struct bench bench = { 0 };

    bench_start(&bench, 0);
    write_text(bench.path, ".part", "of something else, and long enough", 34);
    write_text(bench.path, ".etag", "\"two\"", 5);
    CHECK_EQ(fetch(&bench, 300), QF_OK);
    check_whole(&bench);
    CHECK_EQ(atomic_load(&bench.server.resumed), 0);
    bench_stop(&bench);
}

TEST(a_snapshot_that_was_damaged_on_the_way_is_refused)
{
    struct bench bench = { 0 };

    bench_start(&bench, 0);
    qf_lock_take(bench.server.lock);
    bench.server.bytes[bench.server.len / 2] ^= 1;
    qf_lock_drop(bench.server.lock);
    CHECK_EQ(fetch(&bench, 300), QF_ECORRUPT);
    CHECK(access(bench.path, F_OK) != 0);
    parts_gone(&bench);
    bench_stop(&bench);
}

TEST(another_snapshot_than_the_one_asked_for_is_refused)
{
    struct bench bench = { 0 };

    bench_start(&bench, 0);
    CHECK_EQ(fetch(&bench, 299), QF_ECORRUPT);
    bench_stop(&bench);
}

TEST(a_snapshot_that_is_not_there_or_too_long_is_not_tried_again)
{
    struct bench bench = { 0 };

    bench.server.status = 404;
    bench_start(&bench, 5000);
    CHECK_EQ(fetch(&bench, 300), QF_ENOTFOUND);
    CHECK_EQ(atomic_load(&bench.server.requests), 1);
    qf_lock_take(bench.server.lock);
    bench.server.status = 0;
    qf_lock_drop(bench.server.lock);
    CHECK_EQ(fetch(&bench, 300), QF_ELIMIT);
    CHECK_EQ(atomic_load(&bench.server.requests), 2);
    parts_gone(&bench);
    bench_stop(&bench);
}

TEST(a_server_that_only_fails_is_given_up)
{
    struct bench bench = { 0 };

    bench.server.status = 503;
    bench_start(&bench, 0);
    CHECK_EQ(fetch(&bench, 300), QF_EUNAVAILABLE);
    CHECK_EQ(atomic_load(&bench.server.requests), 5);
    bench_stop(&bench);
}
