/* state_load.c - promfabric state load: files into maps, with progress. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "cli/state.h"
#include "statemap/load/load.h"

enum { BUFFER = 1 << 18, PROGRESS_MS = 500, SKIPPED_SHOWN = 10 };

struct loading {
    const struct state_cli *cli;
    struct sm_store *store;
    struct sm_load_options options;
    struct sm_loaded total; /* of files that ended */
    const char *file;
    uint64_t shown; /* reasons for skipping */
    bool terminal;
    int64_t told_ms;
};

static void skipped(void *ctx, const char *why)
{
    struct loading *l = ctx;

    if (l->shown++ < SKIPPED_SHOWN)
        fprintf(stderr, "skipped: %s: %s\n", l->file, why);
}

static void tell(struct loading *l, uint64_t rows, bool end)
{
    int64_t now = qf_clock_mono_ms();

    if (!l->terminal || (!end && now - l->told_ms < PROGRESS_MS))
        return;
    l->told_ms = now;
    fprintf(stderr, "\r%" PRIu64 " rows read%s", rows, end ? "\n" : "");
}

bool state_format_of(const struct state_cli *cli, const char *file, enum sm_format *ret_format)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf end = QF_STRBUF_INIT;

    if (strcmp(cli->format, "auto") == 0)
        return sm_format_of(qf_str_from(file), ret_format);
    qf_strbuf_printf(&end, ".%s", cli->format);
    return sm_format_of(qf_strbuf_view(&end), ret_format);
}

static qf_rc read_file(struct loading *l, int fd, struct sm_load *load, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *buffer = qf_xmalloc(BUFFER);
    qf_rc rc = QF_OK;
    ssize_t len;

    while (rc == QF_OK && (len = read(fd, buffer, BUFFER)) != 0) {
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0)
            return qf_err_set(err, QF_EIO, "%s", strerror(errno));
        rc = sm_load_feed(load, (struct qf_str){ buffer, (size_t)len }, err);
        tell(l, l->total.rows + sm_load_count(load).rows, false);
    }
    return rc == QF_OK ? sm_load_end(load, err) : rc;
}

static qf_rc load_file(struct loading *l, const char *file, struct qf_err *err)
{
    bool input = strcmp(file, "-") == 0;
    enum sm_format format;
    struct sm_load *load;
    int fd = input ? STDIN_FILENO : -1;
    qf_rc rc;

    if (!state_format_of(l->cli, file, &format))
        return qf_err_set(err, QF_EINVAL, "%s: say its --format: xml, jsonl or csv", file);
    if (!input)
        fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return qf_err_set(err, QF_EIO, "%s: %s", file, strerror(errno));
    l->file = file;
    load = sm_load_new(&l->options, format);
    rc = read_file(l, fd, load, err);
    l->total.rows += sm_load_count(load).rows;
    l->total.skipped += sm_load_count(load).skipped;
    (void)sm_load_free(load);
    if (!input)
        (void)close(fd);
    return rc == QF_OK ? rc : qf_err_prefix(err, rc, "%s", file);
}

/* All files, or none. */
static qf_rc load_files(struct loading *l, char **names, int count, struct qf_err *err)
{
    uint64_t position;
    qf_rc rc = sm_writer_begin(l->store, &l->options.writer, err);

    for (int i = 0; i < count && rc == QF_OK; i++)
        rc = load_file(l, names[i], err);
    tell(l, l->total.rows, true);
    if (rc != QF_OK) {
        (void)sm_writer_abort(l->options.writer);
        return rc;
    }
    return sm_writer_finish(l->options.writer, &position, err);
}

int state_load(const struct state_cli *cli, struct sm_store *store, char **names, int count)
{
    struct loading l = { .cli = cli,
                         .store = store,
                         .terminal = isatty(STDERR_FILENO) && !cli->quiet };
    struct qf_err err = { 0 };
    uint64_t left;

    if (strcmp(cli->on_error, "stop") != 0 && strcmp(cli->on_error, "skip") != 0) {
        fprintf(stderr, "error: --on-error is stop or skip\n");
        return 2;
    }
    l.options = (struct sm_load_options){
        .store = store,
        .map = qf_str_from(cli->map ? cli->map : ""),
        .now_ms = qf_clock_wall_ms(),
        .skip = strcmp(cli->on_error, "skip") == 0,
        .skipped = skipped,
        .ctx = &l,
    };
    if (load_files(&l, names, count, &err) != QF_OK) {
        (void)state_failed(&err);
        fprintf(stderr, "nothing was loaded\n");
        return 1;
    }
    if (sm_store_merge(store, &left, &err) != QF_OK) {
        (void)state_failed(&err);
        fprintf(stderr, "what was read is kept and waits: promfabric state maintain\n");
        return 1;
    }
    printf("%" PRIu64 " rows loaded", l.total.rows);
    if (l.total.skipped)
        printf(", %" PRIu64 " skipped", l.total.skipped);
    printf("\n");
    return 0;
}
