/* cmd_up.c - promfabric up: an API and its workers on this machine, as child processes.
 *
 * The parent only watches: it starts the same executable in its other roles, restarts what dies,
 * and on Ctrl-C ends the API first, so that running queries still have their workers, and ingest
 * nodes last. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/net/address.h"
#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/log.h"
#include "base/sys/private_dir.h"
#include "base/sys/signals.h"
#include "cli/daemon.h"
#include "cli/up_ingest.h"
#include "cli/up_ring.h"
#include "segments/demo/demo.h"

int cli_up(int argc, char **argv);

#define WORKERS_MAX 64
#define INGEST_MAX 7
#define ARGS_MAX (2 * WORKERS_MAX + 48)
/* A child that dies at once is started again only after a pause. */
#define RESTART_PAUSE_MS 500
#define WORKERS_TIMEOUT_MS 5000
#define READY_TIMEOUT_MS 30000

static const char *store, *listen_on, *state_dir, *cors_origin;
static const char *write_listen, *ingest_data;
static struct cli_log log_flags;
static uint64_t worker_count, ingest_count, ring_copies;
static int64_t drain_timeout_ms, retention_ms;
static bool demo, no_compact;
static const char *ring_folder; /* of keepers; NULL: there is no ring */
static char ring_url[1024];     /* choose_ring() */
static bool ring_founded;
static char http_address[512], write_address[512]; /* choose_address() */
static char ingest_folder[1100];                   /* choose_ingest_data() */

static const struct cli_flag flags[] = {
    { "store", CLI_FLAG_STR, &store, "DIR", NULL,
      "where segments live: a folder (made if missing) or s3://bucket/prefix; ./store if absent" },
    { "workers", CLI_FLAG_U64, &worker_count, "N", "0",
      "worker processes; 0: one per core, at most 64" },
    { "ring", CLI_FLAG_U64, &ring_copies, "COPIES", "0",
      "keep segments on the workers themselves, so many copies of each, below the folder --store; "
      "at least as many workers. 0: --store has them" },
    { "demo", CLI_FLAG_BOOL, &demo, NULL, NULL,
      "put the last hours of demo data into the store first, then keep writing; without --store "
      "into one of its own" },
    { "http-listen", CLI_FLAG_STR, &listen_on, "HOST:PORT", "127.0.0.1:8080",
      "the API; port 0 takes a free one" },
    { "cors-origin", CLI_FLAG_STR, &cors_origin, "ORIGIN", NULL,
      "let pages of this origin (\"*\": of any) ask from a browser" },
    { "ingest-nodes", CLI_FLAG_U64, &ingest_count, "N", "1",
      "ingest nodes, which take samples: 1, 3, 5 or 7; 0: none" },
    { "write-listen", CLI_FLAG_STR, &write_listen, "HOST:PORT", NULL,
      "where the first ingest node takes samples; 127.0.0.1:8083 if absent, a free port with port "
      "0, "
      "or if --http-listen has port 0" },
    { "ingest-data", CLI_FLAG_STR, &ingest_data, "DIR", NULL,
      "what ingest nodes keep until it is in the store; STORE-ingest if absent, ./ingest for a "
      "bucket" },
    { "retention", CLI_FLAG_DURATION, &retention_ms, "DURATION", "0s",
      "samples older than this are not answered with, and are deleted an hour later; 0s: keep "
      "them" },
    { "no-compact", CLI_FLAG_BOOL, &no_compact, NULL, NULL,
      "leave small segments as they are; else workers merge them in the background" },
    { "state", CLI_FLAG_STR, &state_dir, "DIR", NULL,
      "folder for spools and caches; below $TMPDIR if absent, and removed at the end" },
    { "drain-timeout", CLI_FLAG_DURATION, &drain_timeout_ms, "DURATION", "10s",
      "after Ctrl-C: how long running queries may take to finish" },
    { "log-level", CLI_FLAG_STR, &log_flags.level, "LEVEL", "warn", "debug, info, warn or error" },
    { "log-format", CLI_FLAG_STR, &log_flags.format, "FORMAT", "logfmt", "logfmt or json" },
};

static const struct cli_spec spec = {
    .usage = "promfabric up [FLAG...]",
    .summary =
        "Starts an API, workers and an ingest node on this machine and keeps them running until\n"
        "Ctrl-C.",
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
};

/* A role that is kept running. */
struct child {
    char *args[ARGS_MAX];
    size_t arg_count;
    pid_t pid; /* 0: not running */
    qf_time_ms start_at;
    char name[32];
    char http[32]; /* of a worker: where it says that it is ready */
};

static struct child
    children[1 + WORKERS_MAX + INGEST_MAX + 1]; /* the API first, then workers, ... */
static size_t child_count, first_ingest;        /* ... ingest nodes and the demo */
static struct up_node nodes[INGEST_MAX];
static char state[512], own_store[600], demo_end[32];

static void add_arg(struct child *child, const char *fmt, ...) QF_PRINTF(2, 3);
static void add_arg(struct child *child, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (child->arg_count + 1 < ARGS_MAX)
        child->args[child->arg_count++] = qf_xstrdup(text);
}

static void free_children(void)
{
    for (size_t i = 0; i < child_count; i++)
        for (size_t k = 0; k < children[i].arg_count; k++)
            free(children[i].args[k]);
}

/* Sockets that keep the ports found so far: the system may well give a free one twice. */
static int held[2 + 2 * WORKERS_MAX + 2 * INGEST_MAX];
static size_t held_count;

/* A port of the loopback that is free now, and held until release_ports(). */
static int free_port(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;

    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &len) == 0)
        port = ntohs(address.sin_port);
    if (fd >= 0)
        held[held_count++] = fd;
    return port;
}

static void release_ports(void)
{
    while (held_count)
        (void)close(held[--held_count]);
}

/* Whether the API can listen there. Whoever has the port would be taken for our API otherwise. What
 * cannot be resolved is left for the API to complain about. */
static bool port_is_free(const char *address)
{
    struct qf_err err = { 0 };
    int fd;
    qf_rc rc = qf_address_bind(address, &fd, &err);

    if (rc == QF_OK)
        (void)close(fd);
    else if (rc != QF_EINVAL)
        fprintf(stderr, "error: %s\n", err.msg);
    return rc == QF_OK || rc == QF_EINVAL;
}

/* Run this executable as @child. -1 if that is not possible. */
static pid_t spawn(const struct child *child)
{
    pid_t parent = getpid(), pid = fork();
    int quiet;

    if (pid != 0)
        return pid;
    /* A group of its own: Ctrl-C reaches the parent alone, which ends things in order. */
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    qf_signals_restore();
    quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (quiet >= 0)
        (void)dup2(quiet, STDOUT_FILENO); /* the log is on stderr; stdout is the parent's */
    (void)execv("/proc/self/exe", (char *const *)child->args);
    _exit(127);
}

static void start(struct child *child)
{
    child->pid = spawn(child);
    if (child->pid < 0) {
        child->pid = 0;
        child->start_at = qf_clock_mono_ms() + RESTART_PAUSE_MS;
    }
}

static void describe_ingest(uint64_t i)
{
    struct child *node = &children[child_count++];

    (void)snprintf(node->name, sizeof(node->name), "%s", nodes[i].name);
    add_arg(node, "promfabric");
    add_arg(node, "ingest");
    add_arg(node, "--data=%s/%s", ingest_folder, nodes[i].name);
    add_arg(node, "--store=%s", store);
    add_arg(node, "--ingest-id=%s", nodes[i].name);
    add_arg(node, "--http-listen=%s", nodes[i].http);
    add_arg(node, "--peer-listen=%s", nodes[i].peer);
    if (i == 0)
        add_arg(node, "--bootstrap");
    for (uint64_t k = 0; k < ingest_count; k++)
        if (k != i)
            add_arg(node, "--peer=%s=%s", nodes[k].name, nodes[k].peer);
    add_arg(node, "--drain-timeout=%llds", (long long)QF_MAX(drain_timeout_ms / 1000, (int64_t)1));
    add_arg(node, "--log-level=%s", log_flags.level);
    add_arg(node, "--log-format=%s", log_flags.format);
}

/* What goes on where load_demo() has ended. */
static void describe_demo(void)
{
    struct child *writer = &children[child_count++];

    (void)snprintf(writer->name, sizeof(writer->name), "demo");
    add_arg(writer, "promfabric");
    add_arg(writer, "demo-data");
    add_arg(writer, "--quiet");
    add_arg(writer, "--store=%s", store);
    add_arg(writer, "--end=%s", demo_end);
    add_arg(writer, "--follow=http://%s", nodes[0].http);
}

/* The port of a keeper, which is that of the last start if there was one. */
static int keeper_port(uint64_t i)
{
    static int ports[WORKERS_MAX];

    if (i == 0)
        up_ring_read_ports(ring_folder, ports, worker_count);
    if (!ports[i])
        ports[i] = free_port();
    if (i + 1 == worker_count && !up_ring_write_ports(ring_folder, ports, worker_count))
        fprintf(stderr, "warning: the ports of keepers cannot be kept in %s\n", ring_folder);
    return ports[i];
}

static void describe_children(void)
{
    struct child *api = &children[child_count++];

    (void)snprintf(api->name, sizeof(api->name), "api");
    add_arg(api, "promfabric");
    add_arg(api, "api");
    add_arg(api, "--store=%s", store);
    add_arg(api, "--http-listen=%s", http_address);
    add_arg(api, "--spool=%s/api", state);
    if (!no_compact)
        add_arg(api, "--compact");
    if (cors_origin)
        add_arg(api, "--cors-origin=%s", cors_origin);
    if (retention_ms)
        add_arg(api, "--retention=%lldms", (long long)retention_ms);
    add_arg(api, "--drain-timeout=%llds", (long long)QF_MAX(drain_timeout_ms / 1000, (int64_t)1));
    add_arg(api, "--log-level=%s", log_flags.level);
    add_arg(api, "--log-format=%s", log_flags.format);
    for (uint64_t i = 0; i < ingest_count; i++)
        add_arg(api, "--ingest=%s", nodes[i].http);
    for (uint64_t i = 0; i < worker_count; i++) {
        struct child *worker = &children[child_count++];
        int control = free_port();

        add_arg(api, "--worker=127.0.0.1:%d", control);
        (void)snprintf(worker->name, sizeof(worker->name), "worker-%d", (int)i);
        add_arg(worker, "promfabric");
        add_arg(worker, "worker");
        add_arg(worker, "--store=%s", store);
        add_arg(worker, "--control-listen=127.0.0.1:%d", control);
        (void)snprintf(worker->http, sizeof(worker->http), "127.0.0.1:%d",
                       ring_folder ? keeper_port(i) : free_port());
        add_arg(worker, "--http-listen=%s", worker->http);
        if (ring_folder)
            add_arg(worker, "--keep=%s/%s", ring_folder, worker->name);
        add_arg(worker, "--worker-id=%s", worker->name);
        add_arg(worker, "--spool=%s/%s", state, worker->name);
        add_arg(worker, "--drain-timeout=%llds",
                (long long)QF_MAX(drain_timeout_ms / 1000, (int64_t)1));
        add_arg(worker, "--log-level=%s", log_flags.level);
        add_arg(worker, "--log-format=%s", log_flags.format);
    }
    first_ingest = child_count;
    for (uint64_t i = 0; i < ingest_count; i++)
        describe_ingest(i);
    if (demo && ingest_count)
        describe_demo();
    release_ports();
}

/* Run a command of this executable to its end; its exit code. */
static int run_once(const struct child *child)
{
    pid_t pid = spawn(child);
    int status = 0;

    if (pid < 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool load_demo(void)
{
    struct child load = { 0 };
    int code;

    add_arg(&load, "promfabric");
    add_arg(&load, "demo-data");
    add_arg(&load, "--store=%s", store);
    (void)snprintf(demo_end, sizeof(demo_end), "%lld", (long long)(qf_clock_wall_ms() / 1000));
    add_arg(&load, "--end=%s", demo_end);
    code = run_once(&load);
    for (size_t k = 0; k < load.arg_count; k++)
        free(load.args[k]);
    if (code != 0)
        fprintf(stderr, "error: cannot make the demo data\n");
    return code == 0;
}

/* Take note of children that ended; true if one of them is the API failing to start. */
static void reap(bool stopping)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (size_t i = 0; i < child_count; i++) {
            if (children[i].pid != pid)
                continue;
            children[i].pid = 0;
            children[i].start_at = qf_clock_mono_ms() + RESTART_PAUSE_MS;
            if (!stopping)
                QF_LOG_WARN("process ended, will be started again",
                            QF_KV_STR("process", children[i].name),
                            QF_KV_I64("exit_code", WIFEXITED(status) ? WEXITSTATUS(status) : -1),
                            QF_KV_I64("signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0));
        }
    }
}

static void restart_due(void)
{
    qf_time_ms now = qf_clock_mono_ms();

    for (size_t i = 0; i < child_count; i++)
        if (children[i].pid == 0 && children[i].start_at <= now)
            start(&children[i]);
}

/* True once a signal to end has come. SIGHUP is one if there was a terminal, which is gone. */
static bool wait_signal(int signal_fd, int timeout_ms)
{
    struct pollfd poller = { .fd = signal_fd, .events = POLLIN };
    bool end = false;
    int number;

    (void)poll(&poller, 1, timeout_ms);
    while ((number = qf_signals_next(signal_fd)) != 0)
        end |= number == SIGINT || number == SIGTERM || (number == SIGHUP && isatty(STDIN_FILENO));
    return end;
}

static bool says_ready(const struct addrinfo *peer)
{
    struct timeval limit = { .tv_sec = 2 };
    const char *request = "GET /readyz HTTP/1.0\r\n\r\n";
    char answer[32] = "";
    int fd = socket(peer->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok;

    if (fd < 0)
        return false;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ok = connect(fd, peer->ai_addr, peer->ai_addrlen) == 0 &&
         send(fd, request, strlen(request), MSG_NOSIGNAL) > 0 &&
         recv(fd, answer, sizeof(answer) - 1, 0) > 12 && strncmp(answer + 9, "200", 3) == 0;
    (void)close(fd);
    return ok;
}

/* Does GET /readyz say 200? A name may stand for several addresses, and the API listens on one. */
static bool is_ready(const char *address)
{
    struct addrinfo *peers = NULL;
    bool ok = false;

    if (qf_address_resolve(address, false, &peers, NULL) != QF_OK)
        return false;
    for (const struct addrinfo *peer = peers; peer && !ok; peer = peer->ai_next)
        ok = says_ready(peer);
    freeaddrinfo(peers);
    return ok;
}

/* This program's path, so that a terminal in any folder can run what is printed. */
static const char *own_path(char *buf, size_t size)
{
    ssize_t len = readlink("/proc/self/exe", buf, size - 1);

    if (len <= 0)
        return "promfabric";
    buf[len] = '\0';
    return buf;
}

/* What can be asked where the demo's map is (cmd_demo_data.c). */
static void suggest_map(const char *program, const char *address)
{
    if (demo && ingest_count)
        printf("  %s query --url http://%s 'sum by (team) (rate(http_requests_total[5m]) * "
               "on(job) group_left(team) " SG_DEMO_MAP_METRIC ")'\n",
               program, address);
}

/* Where to look and where to write come first, each on a line that scripts can read. */
static void greet(const char *address)
{
    char program[4096];

    printf("promfabric is up: http://%s  (open it in a browser; %d worker%s, store %s)\n", address,
           (int)worker_count, worker_count > 1 ? "s" : "", ring_folder ? ring_folder : store);
    if (ingest_count)
        printf("write to it: http://%s/api/v1/write  (Prometheus remote write; %d ingest node%s, "
               "data in %s)\n",
               nodes[0].http, (int)ingest_count, ingest_count > 1 ? "s" : "", ingest_folder);
    printf("\nthings to try in a terminal:\n"
           "  %s query --url http://%s 'sum by (job) (rate(http_requests_total[5m]))'\n"
           "  curl -s 'http://%s/api/v1/query?query=up'\n"
           "  curl -sN -d '{\"q\":\"up\",\"s\":\"e-10m\"}' http://%s/api/v1/metrics/query\n",
           own_path(program, sizeof(program)), address, address, address);
    suggest_map(program, address);
    printf("\nGrafana: add a Prometheus data source with URL http://%s\n"
           "Ctrl-C ends it.\n",
           address);
    (void)fflush(stdout);
}

static void signal_all(size_t from, size_t to, int number)
{
    for (size_t i = from; i < to; i++)
        if (children[i].pid > 0)
            (void)kill(children[i].pid, number);
}

static bool any_left(size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (children[i].pid > 0)
            return true;
    return false;
}

/* Ask, wait, and insist if it takes too long or the user is in a hurry. */
static void end_group(size_t from, size_t to, int signal_fd)
{
    qf_time_ms deadline = qf_clock_mono_ms() + drain_timeout_ms + 5000;

    signal_all(from, to, SIGTERM);
    while (any_left(from, to)) {
        if (wait_signal(signal_fd, 50))
            signal_all(from, to, SIGTERM); /* the second one cuts a drain short */
        if (qf_clock_mono_ms() > deadline)
            signal_all(from, to, SIGKILL);
        reap(true);
    }
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

/* Remove the folder that we made, with the caches that workers keep for their next start. */
static void remove_state(void)
{
    (void)nftw(state, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* The first node is there and the others belong to its cluster, as they may have for long. */
static bool ingest_ready(void)
{
    for (uint64_t i = 0; i < ingest_count; i++) {
        if (!nodes[i].joined)
            nodes[i].joined =
                i == 0 ? is_ready(nodes[0].http) : up_ingest_join(&nodes[0], &nodes[i]);
        if (!nodes[i].joined)
            return false;
    }
    return true;
}

/* The workers are the nodes of the ring. */
static bool ring_ready(void)
{
    struct up_keeper keepers[WORKERS_MAX];

    if (!ring_folder || ring_founded)
        return true;
    for (uint64_t i = 0; i < worker_count; i++)
        keepers[i] = (struct up_keeper){ children[1 + i].name, children[1 + i].http };
    ring_founded = up_ring_found(&nodes[0], keepers, worker_count, ring_copies);
    return ring_founded;
}

/* How starting went. */
enum start { START_SERVES, START_STOPPED /* a signal came first */, START_FAILED };

/* Start all but the API, which would warn of workers that it cannot reach yet, and wait for the
 * workers a little. False: a signal came first. */
static bool start_others(int signal_fd)
{
    qf_time_ms deadline = qf_clock_mono_ms() + WORKERS_TIMEOUT_MS;

    for (size_t i = 1; i < child_count; i++)
        start(&children[i]);
    for (size_t i = 1; i < first_ingest; i++) {
        while (!is_ready(children[i].http)) {
            if (wait_signal(signal_fd, 20))
                return false;
            reap(true);
            if (children[i].pid == 0 || qf_clock_mono_ms() > deadline)
                return true; /* the API may know why, and is not kept from saying so */
        }
    }
    return true;
}

/* Start everything and say so once it serves. */
static enum start bring_up(const char *address, int signal_fd)
{
    qf_time_ms deadline = qf_clock_mono_ms() + READY_TIMEOUT_MS;

    if (!start_others(signal_fd))
        return START_STOPPED;
    start(&children[0]);
    while (!is_ready(address) || !ingest_ready() || !ring_ready()) {
        if (wait_signal(signal_fd, 50))
            return START_STOPPED;
        reap(true);
        if (children[0].pid == 0 || qf_clock_mono_ms() > deadline) {
            if (children[0].pid != 0) /* else it has said why */
                fprintf(stderr, "error: %s did not start within %d s\n",
                        is_ready(address) ? "the ingest nodes" : "the API",
                        READY_TIMEOUT_MS / 1000);
            return START_FAILED;
        }
        restart_due();
    }
    greet(address);
    return START_SERVES;
}

static int run(int signal_fd)
{
    enum start began;

    describe_children();
    began = bring_up(http_address, signal_fd);
    while (began == START_SERVES && !wait_signal(signal_fd, RESTART_PAUSE_MS)) {
        reap(false);
        restart_due();
    }
    end_group(first_ingest + ingest_count, child_count, signal_fd);
    end_group(0, 1, signal_fd);
    end_group(1, first_ingest, signal_fd);
    end_group(first_ingest, first_ingest + ingest_count, signal_fd);
    return began == START_FAILED ? 1 : 0;
}

static bool make_state(void)
{
    const char *tmp = getenv("TMPDIR");
    struct qf_err err = { 0 };

    if (state_dir)
        (void)snprintf(state, sizeof(state), "%s", state_dir);
    else
        (void)snprintf(state, sizeof(state), "%s/promfabric-up-XXXXXX", tmp ? tmp : "/tmp");
    if (state_dir && qf_private_dir(state, &err)) {
        fprintf(stderr, "error: %s\n", err.msg);
        return false;
    }
    if (!state_dir && !mkdtemp(state)) {
        fprintf(stderr, "error: cannot make %s: %s\n", state, strerror(errno));
        return false;
    }
    return true;
}

/* Where the API will listen, in http_address: as asked, with a free port in place of port 0, so that
 * it can be told before the API listens and stays the same when the API is started again. */
static bool choose_address(void)
{
    QF_CLEANUP(qf_freep) char *host = NULL;
    struct qf_err err = { 0 };
    uint16_t port;
    int len;

    if (qf_address_split(listen_on, &host, &port, &err)) {
        fprintf(stderr, "error: --http-listen: %s\n", err.msg);
        return false;
    }
    len = snprintf(http_address, sizeof(http_address), strchr(host, ':') ? "[%s]:%d" : "%s:%d",
                   host, port ? port : free_port());
    if (len < 0 || (size_t)len >= sizeof(http_address)) {
        fprintf(stderr, "error: --http-listen: the host has more than %zu characters\n",
                sizeof(http_address) - 1);
        return false;
    }
    return true;
}

/* Where ingest nodes listen. They are not told to anybody but the first one's address, so that free
 * ports will do. */
static bool choose_ingest(void)
{
    QF_CLEANUP(qf_freep) char *host = NULL;
    struct qf_err err = { 0 };
    bool any = strlen(listen_on) > 2 && strcmp(listen_on + strlen(listen_on) - 2, ":0") == 0;
    const char *first = write_listen ? write_listen : any ? "127.0.0.1:0" : "127.0.0.1:8083";
    uint16_t port;

    if (ingest_count > INGEST_MAX || (ingest_count && ingest_count % 2 == 0)) {
        fprintf(stderr, "error: --ingest-nodes: 0, 1, 3, 5 or 7\n");
        return false;
    }
    if (qf_address_split(first, &host, &port, &err)) {
        fprintf(stderr, "error: --write-listen: %s\n", err.msg);
        return false;
    }
    (void)snprintf(write_address, sizeof(write_address), strchr(host, ':') ? "[%s]:%d" : "%s:%d",
                   host, port ? port : free_port());
    for (uint64_t i = 0; i < ingest_count; i++) {
        (void)snprintf(nodes[i].name, sizeof(nodes[i].name), "ingest-%d", (int)i);
        (void)snprintf(nodes[i].peer, sizeof(nodes[i].peer), "127.0.0.1:%d", free_port());
        if (i == 0)
            (void)snprintf(nodes[i].http, sizeof(nodes[i].http), "%s", write_address);
        else
            (void)snprintf(nodes[i].http, sizeof(nodes[i].http), "127.0.0.1:%d", free_port());
    }
    return !ingest_count || !port || port_is_free(write_address);
}

/* Beside the store: what was acknowledged belongs to it. */
static bool choose_ingest_data(void)
{
    struct qf_err err = { 0 };

    if (ingest_data)
        (void)snprintf(ingest_folder, sizeof(ingest_folder), "%s", ingest_data);
    else if (strstr(store, "://"))
        (void)snprintf(ingest_folder, sizeof(ingest_folder), "./ingest");
    else
        (void)snprintf(ingest_folder, sizeof(ingest_folder), "%s-ingest", store);
    if (!ingest_count || qf_private_dir(ingest_folder, &err) == QF_OK)
        return true;
    fprintf(stderr, "error: %s\n", err.msg);
    return false;
}

/* Segments are below the folder that would be the store, and the store is the ring. */
static void choose_ring(void)
{
    int len = snprintf(ring_url, sizeof(ring_url), "ring://%s", nodes[0].http);

    for (uint64_t i = 1; i < ingest_count; i++)
        len += snprintf(ring_url + len, sizeof(ring_url) - (size_t)len, ",%s", nodes[i].http);
    ring_folder = store;
    store = ring_url;
}

/* What a ring needs. False: it was said. */
static bool check_ring(void)
{
    const char *wrong = NULL;

    if (!ring_copies)
        return true;
    if (ring_copies > 7 || !ingest_count)
        wrong = "1 to 7 copies, and at least one ingest node";
    else if (demo)
        wrong = "--demo puts its history into the store before anything runs, and a ring is not "
                "there then";
    else if (store && strstr(store, "://"))
        wrong = "--store is a folder, below which the workers keep segments";
    else if (worker_count && worker_count < ring_copies)
        wrong = "at least as many workers as copies";
    if (wrong)
        fprintf(stderr, "error: --ring: %s\n", wrong);
    return !wrong;
}

static bool prepare(void)
{
    long cores = QF_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);

    if (!check_ring())
        return false;

    cores = QF_MIN(cores, (long)WORKERS_MAX);
    if (!worker_count)
        worker_count = QF_MAX((uint64_t)cores, ring_copies);
    if (worker_count > WORKERS_MAX) {
        fprintf(stderr, "error: --workers: at most %d\n", WORKERS_MAX);
        return false;
    }
    if (!choose_address() || !choose_ingest() || !make_state())
        return false;
    if (!store && demo) /* data that end now would not fit those of an earlier time */
        (void)snprintf(own_store, sizeof(own_store), "%s/store", state);
    if (!store)
        store = demo ? own_store : "./store";
    if (strstr(store, "://") == NULL && mkdir(store, 0755) != 0 && errno != EEXIST) {
        fprintf(stderr, "error: cannot make %s: %s\n", store, strerror(errno));
        if (!state_dir)
            (void)rmdir(state);
        return false;
    }
    if (!choose_ingest_data())
        return false;
    if (ring_copies)
        choose_ring();
    return true;
}

int cli_up(int argc, char **argv)
{
    int positional, signal_fd, code;
    enum cli_parsed parsed = cli_flags_parse(&spec, argc, argv, &positional);

    if (parsed == CLI_PARSED_HELP)
        return 0;
    if (parsed == CLI_PARSED_BAD)
        return 2;
    if (!cli_no_arguments(positional, argv) || !cli_set_up_log(&log_flags, "up") || !prepare())
        return 2;
    signal_fd = qf_signals_setup();
    code = !port_is_free(listen_on) || (demo && !load_demo()) ? 1 : run(signal_fd);
    if (!state_dir)
        remove_state();
    free_children();
    return code;
}
