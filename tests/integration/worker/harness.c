/* harness.c - a real worker process on loopback, a store with known samples, plain HTTP. */
#include "tests/integration/worker/harness.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/vec.h"
#include "base/sys/clock.h"
#include "promql/functions.h"
#include "promql/leaf.h"
#include "promql/partial/partial.h"
#include "segments/parquet/segment_writer.h"
#include "segments/store/store.h"
#include "tests/lib/test.h"

static char dir[256];
static bool keep_dir;

int64_t now_ms(void)
{
    return qf_clock_mono_ms();
}

void sleep_ms(int64_t ms)
{
    (void)usleep((useconds_t)ms * 1000);
}

static void remove_dir(void)
{
    char command[300];

    if (!dir[0] || keep_dir)
        return;
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    (void)!system(command);
    dir[0] = '\0';
}

const char *bench_dir(void)
{
    static bool registered;
    char path[300];

    if (!registered)
        (void)atexit(remove_dir);
    registered = true;
    remove_dir();
    (void)snprintf(dir, sizeof(dir), "/tmp/pf-worker-XXXXXX");
    CHECK(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/store", dir);
    CHECK_EQ(mkdir(path, 0700), 0);
    return dir;
}

void bench_dir_at(const char *path)
{
    char store[300];

    keep_dir = true;
    (void)snprintf(dir, sizeof(dir), "%s", path);
    (void)snprintf(store, sizeof(store), "%s/store", dir);
    CHECK_EQ(mkdir(store, 0700), 0);
}

static struct qf_labels series_labels(struct qf_arena *arena, unsigned index)
{
    struct qf_label *labels = QF_ARENA_ARRAY(arena, struct qf_label, 2);

    labels[0] = (struct qf_label){ QF_STR("__name__"), QF_STR("up") };
    labels[1].name = QF_STR("i");
    labels[1].value = qf_str_from(qf_arena_printf(arena, "%06u", index));
    return qf_labels_normalize(labels, 2);
}

static void write_samples(struct sg_writer *writer, unsigned series, unsigned samples)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    int64_t *ts = QF_ARENA_ARRAY(arena, int64_t, samples);
    double *values = QF_ARENA_ARRAY(arena, double, samples);
    struct qf_err err = { 0 };

    for (unsigned s = 0; s < series; s++) {
        for (unsigned i = 0; i < samples; i++) {
            ts[i] = 1000 * (int64_t)i;
            values[i] = 1000.0 * s + i;
        }
        CHECK_OK(sg_writer_add(writer, series_labels(arena, s), ts, values, samples, &err), &err);
    }
}

struct pb_segment make_segment(struct qf_arena *arena, unsigned series, unsigned samples,
                               uint64_t generation)
{
    const char *path = qf_arena_printf(arena, "%s/new.parquet", dir);
    const char *root = qf_arena_printf(arena, "%s/store", dir);
    struct sg_writer_options options = {
        .path = path, .tenant = QF_STR("t"), .shard_count = 1, .generation = generation
    };
    struct qf_err err = { 0 };
    struct sg_writer *writer = sg_writer_new(&options, &err);
    struct qf_strbuf text = QF_STRBUF_INIT;
    struct sg_segment_name name;
    struct sg_store_info info;
    struct sg_store *store;
    struct qf_str stored;
    struct stat file;
    int fd;

    CHECK_MSG(writer, "%s", err.msg);
    write_samples(writer, series, samples);
    CHECK_OK(sg_writer_finish(writer, &name, &err), &err);
    sg_segment_name_print(&text, &name);
    (void)sg_writer_free(writer);
    CHECK_OK(sg_store_open(&(struct sg_store_options){ .url = root }, &store, &err), &err);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &file) == 0);
    CHECK_OK(sg_store_put_fd(store, qf_strbuf_view(&text), fd, (uint64_t)file.st_size, NULL, &err),
             &err);
    CHECK_OK(sg_store_stat(store, qf_strbuf_view(&text), NULL, &info, &err), &err);
    (void)close(fd);
    (void)unlink(path);
    (void)sg_store_free(store);
    stored = qf_arena_str(arena, qf_strbuf_view(&text));
    qf_strbuf_done(&text);
    return (struct pb_segment){
        .name = stored,
        .size_bytes = info.size,
        .mtime_ms = info.mtime_ms,
        .shard_count = 1,
        .generation = generation,
    };
}

struct qf_str make_spec(struct qf_arena *arena, enum leaf_form form, unsigned points)
{
    struct pq_matcher matcher = { PQ_MATCH_EQUAL, QF_STR("__name__"), QF_STR("up"), NULL };
    struct pq_grid grid = { 0, 10000, points };
    struct pq_stage stages[2] = {
        { .kind = PQ_STAGE_INSTANT, .grid = grid, .range_ms = 300000 },
    };
    struct pq_leaf leaf = {
        .kind = form == LEAF_INSTANT ? &pq_leaf_series : pq_aggregation_sum.kind,
        .select = { &matcher, 1, -300000, 10000 * (int64_t)points },
        .stages = stages,
        .stage_count = 1,
        .agg = form == LEAF_INSTANT ? NULL : &pq_aggregation_sum,
    };
    struct qf_strbuf buf = QF_STRBUF_INIT;
    struct qf_str spec;

    /* sum(sum_over_time(up[...:1ms])): a subquery, one point out; or many, stddev_over_time. */
    if (form == LEAF_SLOW || form == LEAF_LONG) {
        stages[0].grid = (struct pq_grid){ 0, 1, points };
        stages[0].range_ms = 1000000000;
        stages[1] = (struct pq_stage){
            .kind = PQ_STAGE_WINDOW,
            .grid = { points, 1000, form == LEAF_SLOW ? 1 : 5000 },
            .range_ms = form == LEAF_SLOW ? (int64_t)points + 1 : 10000000,
            .function = form == LEAF_SLOW ? PQ_FN_SUM_OVER_TIME : PQ_FN_STDDEV_OVER_TIME,
        };
        leaf.stage_count = 2;
        leaf.select.max_ts = points;
    }
    pq_leaf_encode(&leaf, &buf);
    spec = qf_arena_str(arena, qf_strbuf_view(&buf));
    qf_strbuf_done(&buf);
    return spec;
}

typedef QF_VEC(char *) arg_vec;

static void push_args(arg_vec *args, const char *const *more)
{
    for (; more && *more; more++)
        QF_VEC_PUSH(args, (char *)(uintptr_t)*more);
}

static pid_t spawn(const char *const *wrapper, const char *const *flags, int stdout_fd,
                   int stderr_fd)
{
    arg_vec args = { 0 };
    char store[300], spool[300];
    pid_t parent = getpid(), pid;

    (void)snprintf(store, sizeof(store), "%s/store", dir);
    (void)snprintf(spool, sizeof(spool), "%s/spool", dir);
    push_args(&args, wrapper);
    push_args(&args,
              (const char *const[]){ PROMFABRIC_BINARY_DIR "/promfabric", "worker", "--store",
                                     store, "--spool", spool, "--http-listen", "127.0.0.1:0",
                                     "--control-listen", "127.0.0.1:0", NULL });
    push_args(&args, flags);
    QF_VEC_PUSH(&args, NULL);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        if (stdout_fd >= 0)
            (void)dup2(stdout_fd, 1);
        if (stderr_fd >= 0)
            (void)dup2(stderr_fd, 2);
        (void)execvp(args.items[0], args.items);
        _exit(127);
    }
    QF_VEC_DONE(&args);
    CHECK(pid > 0);
    return pid;
}

struct worker worker_start_in(const char *const *wrapper, const char *const *flags)
{
    struct worker worker = { 0 };
    char line[512] = "";
    int fds[2];
    FILE *out;

    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    worker.pid = spawn(wrapper, flags, fds[1], -1);
    (void)close(fds[1]);
    out = fdopen(fds[0], "r");
    CHECK(out && fgets(line, sizeof(line), out));
    (void)fclose(out);
    CHECK_MSG(sscanf(line, "listening http=127.0.0.1:%d control=127.0.0.1:%d worker_id=%127s",
                     &worker.http_port, &worker.control_port, worker.id) == 3,
              "worker said: %s", line);
    (void)snprintf(worker.target, sizeof(worker.target), "127.0.0.1:%d", worker.control_port);
    return worker;
}

struct worker worker_start(const char *const *flags)
{
    return worker_start_in(NULL, flags);
}

int worker_stop(struct worker *worker, int signal_number, int64_t timeout_ms)
{
    int64_t give_up = now_ms() + timeout_ms;
    int status;

    if (signal_number)
        CHECK_EQ(kill(worker->pid, signal_number), 0);
    while (waitpid(worker->pid, &status, WNOHANG) == 0) {
        if (now_ms() >= give_up)
            return -1;
        sleep_ms(5);
    }
    worker->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void worker_end(struct worker *worker)
{
    CHECK_EQ(worker_stop(worker, SIGTERM, 10000), 0);
}

int worker_try(const char *const *flags, char *text, size_t size)
{
    struct worker worker = { 0 };
    size_t len = 0;
    ssize_t got;
    int fds[2];

    CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
    worker.pid = spawn(NULL, flags, -1, fds[1]);
    (void)close(fds[1]);
    while (len + 1 < size && (got = read(fds[0], text + len, size - 1 - len)) > 0)
        len += (size_t)got;
    text[len] = '\0';
    (void)close(fds[0]);
    return worker_stop(&worker, 0, 10000);
}

uint64_t worker_rss_bytes(const struct worker *worker)
{
    char path[64];
    unsigned long long size, resident;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)worker->pid);
    file = fopen(path, "re");
    CHECK(file && fscanf(file, "%llu %llu", &size, &resident) == 2);
    (void)fclose(file);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

unsigned worker_open_files(const struct worker *worker)
{
    char path[64];
    unsigned count = 0;
    DIR *dir_stream;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)worker->pid);
    dir_stream = opendir(path);
    CHECK(dir_stream);
    while (readdir(dir_stream))
        count++;
    (void)closedir(dir_stream);
    return count;
}

static int dial(int port)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0);
    CHECK_EQ(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

struct http_answer http_request(struct qf_arena *arena, int port, const char *method,
                                const char *path, const char *extra)
{
    struct http_answer answer = { 0 };
    struct qf_strbuf buf = QF_STRBUF_INIT;
    int fd = dial(port);
    char *end;
    ssize_t got;

    qf_strbuf_printf(&buf, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", method, path,
                     extra ? extra : "");
    CHECK_EQ(write(fd, buf.data, buf.len), (ssize_t)buf.len);
    qf_strbuf_reset(&buf);
    do {
        char *room = qf_strbuf_reserve(&buf, 65536);

        got = read(fd, room, 65536);
        if (got > 0)
            buf.len += (size_t)got;
    } while (got > 0);
    (void)close(fd);
    qf_strbuf_putc(&buf, '\0');
    buf.len--;
    end = strstr(buf.data, "\r\n\r\n");
    CHECK(end && sscanf(buf.data, "HTTP/1.1 %d", &answer.status) == 1);
    answer.headers =
        qf_arena_cstr(arena, (struct qf_str){ buf.data, (size_t)(end - buf.data) + 2 });
    answer.body_len = buf.len - (size_t)(end + 4 - buf.data);
    answer.body = qf_arena_cstr(arena, (struct qf_str){ end + 4, answer.body_len });
    qf_strbuf_done(&buf);
    return answer;
}

double metric(const struct worker *worker, const char *name)
{
    QF_CLEANUP(qf_arena_freep) struct qf_arena *arena = qf_arena_new(SIZE_MAX);
    struct http_answer answer = http_request(arena, worker->http_port, "GET", "/metrics", NULL);
    size_t len = strlen(name);

    CHECK_EQ(answer.status, 200);
    for (const char *line = answer.body; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, len) == 0 && line[len] == ' ')
            return strtod(line + len, NULL);
    }
    return -1;
}

bool metric_becomes(const struct worker *worker, const char *name, double value, int64_t timeout_ms)
{
    int64_t give_up = now_ms() + timeout_ms;

    while (metric(worker, name) != value) {
        if (now_ms() > give_up)
            return false;
        sleep_ms(5);
    }
    return true;
}

struct client *client_to(const struct worker *worker)
{
    struct client *client = client_new(&(struct client_options){ .target = worker->target });
    struct pb_worker_message message;

    CHECK(client_receive(client, &message, 5000));
    CHECK_EQ(message.kind, PB_WORKER_STATUS);
    return client;
}

void assign(struct client *client, uint64_t work, uint32_t attempt, struct qf_str spec,
            struct pb_segment *segments, size_t count)
{
    struct pb_api_message message = {
        .kind = PB_API_ASSIGN,
        .u.assign = { .query_id = QF_STR("query-1"),
                      .work_id = work,
                      .attempt = attempt,
                      .tenant = QF_STR("t"),
                      .affinity_key = QF_STR("t/0"),
                      .spec = spec,
                      .segments = segments,
                      .segment_count = count,
                      .timeout_ms = 60000 },
    };

    CHECK(client_send(client, &message));
}

struct pb_ready run_work(struct client *client, uint64_t work, struct qf_str spec,
                         struct pb_segment *segments, size_t count)
{
    struct pb_worker_message message;

    assign(client, work, 1, spec, segments, count);
    for (;;) {
        CHECK_MSG(client_receive(client, &message, 20000), "no answer to work %llu",
                  (unsigned long long)work);
        CHECK_MSG(message.kind != PB_WORKER_FAILED, "work failed: %.*s",
                  QF_STR_ARG(message.u.failed.reason));
        if (message.kind == PB_WORKER_READY && message.u.ready.work_id == work)
            return message.u.ready;
    }
}

const char *url_path(struct qf_arena *arena, struct qf_str url)
{
    const char *text = qf_arena_cstr(arena, url);
    const char *host = strstr(text, "://");
    const char *path = host ? strchr(host + 3, '/') : NULL;

    CHECK(path);
    return path;
}
