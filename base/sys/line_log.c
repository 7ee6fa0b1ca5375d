/* line_log.c - a buffer of lines and the thread that writes them. */
#include "base/sys/line_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"

/* How often the file is looked for by its name. */
#define LOOK_MS 1000

struct qf_line_log {
    char *path; /* NULL: stdout */
    struct qf_thread *thread;
    int fd;               /* the thread's; -1: it could not be opened */
    int64_t looked_at;    /* the thread's */
    struct qf_lock *lock; /* guards all below */
    size_t bytes_max;
    struct qf_strbuf waiting;
    size_t lines; /* in it */
    bool reopen, stop;
    struct qf_line_log_stats stats;
};

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
}

/* Whether the file of that name is another one by now. */
static bool rotated(struct qf_line_log *log)
{
    int64_t now = qf_clock_mono_ms();
    struct stat named, ours;

    if (now - log->looked_at < LOOK_MS)
        return false;
    log->looked_at = now;
    return log->fd < 0 || stat(log->path, &named) != 0 || fstat(log->fd, &ours) != 0 ||
           named.st_ino != ours.st_ino || named.st_dev != ours.st_dev;
}

static void open_again(struct qf_line_log *log)
{
    if (log->fd >= 0)
        (void)close(log->fd);
    log->fd = open_file(log->path);
}

/* All of @text, or false. Half a line that a full disk took is ended by the next one's beginning. */
static bool write_all(int fd, struct qf_str text)
{
    while (text.len) {
        ssize_t wrote = write(fd, text.data, text.len);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        text = qf_str_sub(text, (size_t)wrote, text.len);
    }
    return true;
}

/* Take what waits; false: there will be no more. */
static bool wait_for_lines(struct qf_line_log *log, struct qf_strbuf *ret_text, size_t *ret_lines,
                           bool *ret_reopen)
{
    bool stop;

    qf_lock_take(log->lock);
    while (log->lines == 0 && !log->stop && !log->reopen)
        (void)qf_lock_wait(log->lock, -1);
    *ret_text = log->waiting;
    *ret_lines = log->lines;
    *ret_reopen = log->reopen;
    log->waiting = (struct qf_strbuf)QF_STRBUF_INIT;
    log->lines = 0;
    log->reopen = false;
    stop = log->stop;
    qf_lock_drop(log->lock);
    return !stop;
}

static void write_lines(void *arg)
{
    struct qf_line_log *log = arg;
    bool more = true;

    while (more) {
        struct qf_strbuf text;
        size_t lines;
        bool reopen, ok;

        more = wait_for_lines(log, &text, &lines, &reopen);
        if (log->path && (rotated(log) || reopen))
            open_again(log);
        ok = log->fd >= 0 && write_all(log->fd, qf_strbuf_view(&text));
        qf_strbuf_done(&text);
        qf_lock_take(log->lock);
        *(ok ? &log->stats.written : &log->stats.lost) += lines;
        qf_lock_drop(log->lock);
    }
}

struct qf_line_log *qf_line_log_new(const char *path, size_t bytes_max, struct qf_err *err)
{
    struct qf_line_log *log = qf_xcalloc(1, sizeof(*log));

    log->lock = qf_lock_new();
    log->bytes_max = bytes_max;
    log->fd = STDOUT_FILENO;
    if (strcmp(path, "-") != 0) {
        log->path = qf_xstrdup(path);
        log->fd = open_file(path);
    }
    if (log->fd < 0)
        (void)qf_err_set(err, QF_EIO, "cannot open %s: %s", path, strerror(errno));
    else if (!(log->thread = qf_thread_start("lines", write_lines, log)))
        (void)qf_err_set(err, QF_EUNAVAILABLE, "cannot start a thread");
    return log->thread ? log : qf_line_log_free(log);
}

struct qf_line_log *qf_line_log_free(struct qf_line_log *log)
{
    if (!log)
        return NULL;
    qf_lock_take(log->lock);
    log->stop = true;
    qf_lock_wake_all(log->lock);
    qf_lock_drop(log->lock);
    (void)qf_thread_join(log->thread);
    if (log->path && log->fd >= 0)
        (void)close(log->fd);
    qf_strbuf_done(&log->waiting);
    (void)qf_lock_free(log->lock);
    free(log->path);
    free(log);
    return NULL;
}

void qf_line_log_add(struct qf_line_log *log, struct qf_str line)
{
    qf_lock_take(log->lock);
    if (log->waiting.len + line.len + 1 > log->bytes_max) {
        log->stats.lost++;
    } else {
        qf_strbuf_str(&log->waiting, line);
        qf_strbuf_putc(&log->waiting, '\n');
        log->lines++;
        qf_lock_wake_all(log->lock);
    }
    qf_lock_drop(log->lock);
}

void qf_line_log_reopen(struct qf_line_log *log)
{
    qf_lock_take(log->lock);
    log->reopen = true;
    qf_lock_wake_all(log->lock);
    qf_lock_drop(log->lock);
}

struct qf_line_log_stats qf_line_log_stats(struct qf_line_log *log)
{
    struct qf_line_log_stats stats;

    qf_lock_take(log->lock);
    stats = log->stats;
    qf_lock_drop(log->lock);
    return stats;
}
