/* harness.h - a real worker process on loopback, a store with known samples, plain HTTP. */
#ifndef TESTS_INTEGRATION_WORKER_HARNESS_H
#define TESTS_INTEGRATION_WORKER_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/pure/arena.h"
#include "proto/codec/control.h"
#include "tests/integration/worker/client.h"

/* A temporary folder with store/ and spool/. One at a time; removed by the next and at exit. */
const char *bench_dir(void);
/* The same in the folder @path, which stays. */
void bench_dir_at(const char *path);

/* A segment of `series` series with `samples` samples each, 1 s apart from time 0, value = 1000 *
 * series + index; its name, size and mtime are filled in. */
struct pb_segment make_segment(struct qf_arena *arena, unsigned series, unsigned samples,
                               uint64_t generation);

/* What a leaf does. */
enum leaf_form {
    LEAF_INSTANT, /* the newest value at 0, 10 s, ... */
    LEAF_SUM,     /* their sum over all series */
    LEAF_SLOW,    /* many seconds of arithmetic per segment of 1000 series, little memory */
    LEAF_LONG,    /* the same for a single series: 5000 windows of as many values as points */
};
struct qf_str make_spec(struct qf_arena *arena, enum leaf_form form, unsigned points);

struct worker {
    pid_t pid;
    int http_port, control_port;
    char target[40]; /* of the control stream */
    char id[128];
};

/* Start `promfabric worker` on free ports with the store and the spool of bench_dir() and the given
 * further flags, NULL-terminated. Waits until it listens. It dies with this process. */
struct worker worker_start(const char *const *flags);
/* The same, but @wrapper ("unshare -rm sh -c ...", NULL-terminated) comes in front. */
struct worker worker_start_in(const char *const *wrapper, const char *const *flags);
/* Send @signal_number (0: none) and wait up to @timeout_ms for its end: the exit code, 128 + the
 * signal that killed it, or -1 if it still runs. */
int worker_stop(struct worker *worker, int signal_number, int64_t timeout_ms);
/* SIGTERM, and it must exit with 0 soon. */
void worker_end(struct worker *worker);
/* Figures of the process as the kernel has them. */
uint64_t worker_rss_bytes(const struct worker *worker);
unsigned worker_open_files(const struct worker *worker);
/* Run to the end: exit code; what it wrote to stderr is put into @text. */
int worker_try(const char *const *flags, char *text, size_t size);

struct http_answer {
    int status;
    char *headers, *body; /* in the arena */
    size_t body_len;
};
/* One request on a connection of its own. @path is sent as it is; @extra are header lines. */
struct http_answer http_request(struct qf_arena *arena, int port, const char *method,
                                const char *path, const char *extra);
/* The value of a metric as /metrics prints it, e.g. `name{label="x"}`; -1 if it is not there. */
double metric(const struct worker *worker, const char *name);
/* Wait until a metric has a value. */
bool metric_becomes(const struct worker *worker, const char *name, double value,
                    int64_t timeout_ms);

struct client *client_to(const struct worker *worker);
/* Send AssignWork. */
void assign(struct client *client, uint64_t work, uint32_t attempt, struct qf_str spec,
            struct pb_segment *segments, size_t count);
/* AssignWork, then wait for its WorkReady. */
struct pb_ready run_work(struct client *client, uint64_t work, struct qf_str spec,
                         struct pb_segment *segments, size_t count);
/* The path part of an artifact's URL. */
const char *url_path(struct qf_arena *arena, struct qf_str url);

int64_t now_ms(void);
void sleep_ms(int64_t ms);

#endif
