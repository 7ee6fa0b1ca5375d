/* segments_common.c - what the words of `promfabric segments` share. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/duration.h"
#include "cli/segments.h"

struct sg_reader *segments_fetch(const struct segments_cli *cli, struct sg_store *store,
                                 const char *name, const struct sg_store_call *call,
                                 struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    struct sg_reader *reader = NULL;
    uint64_t size;
    int fd;

    qf_strbuf_printf(&path, "%s/promfabric-segment-XXXXXX", cli->temp_dir);
    fd = mkstemp(path.data);
    if (fd < 0) {
        (void)qf_err_set(err, QF_EIO, "%s: cannot create", path.data);
        return NULL;
    }
    (void)unlink(path.data); /* nothing stays, whatever happens */
    qf_strbuf_reset(&path);
    qf_strbuf_printf(&path, "/proc/self/fd/%d", fd);
    if (sg_store_read_fd(store, qf_str_from(name), fd, call, &size, err) == QF_OK)
        reader = sg_reader_open(path.data, err);
    (void)close(fd);
    return reader;
}

void segments_print_times(struct qf_strbuf *text, int64_t min_ts, int64_t max_ts)
{
    qf_time_print_rfc3339(text, min_ts);
    qf_strbuf_puts(text, " ");
    qf_time_print_rfc3339(text, max_ts);
}

void segments_print_bytes(struct qf_strbuf *text, uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
    double value = (double)bytes;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < QF_COUNT_OF(units)) {
        value /= 1024;
        unit++;
    }
    qf_strbuf_printf(text, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static atomic_bool interrupted;

static void on_signal(int number)
{
    (void)number;
    atomic_store_explicit(&interrupted, true, memory_order_relaxed);
}

const atomic_bool *segments_catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal };

    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    return &interrupted;
}

bool segments_confirm(const struct segments_cli *cli, const char *question)
{
    char answer[16] = "";

    if (cli->yes)
        return true;
    if (!isatty(STDIN_FILENO)) {
        fprintf(stderr, "error: nobody to ask: say --yes, or --dry-run to look only\n");
        return false;
    }
    fprintf(stderr, "%s [y/N] ", question);
    if (!fgets(answer, sizeof(answer), stdin) || (answer[0] != 'y' && answer[0] != 'Y')) {
        fprintf(stderr, "nothing was deleted\n");
        return false;
    }
    return true;
}
