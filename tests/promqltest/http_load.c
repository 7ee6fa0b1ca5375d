/* http_load.c - the series of a storage through `promfabric import`. */
#include "tests/promqltest/http_load.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pure/number.h"
#include "segments/import/histogram_text.h"

/* Names and values as the text formats quote them: three escapes and no others. */
static void put_quoted(struct qf_strbuf *text, struct qf_str s)
{
    qf_strbuf_putc(text, '"');
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] == '"' || s.data[i] == '\\')
            qf_strbuf_putc(text, '\\');
        if (s.data[i] == '\n')
            qf_strbuf_puts(text, "\\n");
        else
            qf_strbuf_putc(text, s.data[i]);
    }
    qf_strbuf_putc(text, '"');
}

static void put_labels(struct qf_strbuf *text, struct qf_labels labels)
{
    qf_strbuf_putc(text, '{');
    for (size_t i = 0; i < labels.count; i++) {
        if (i)
            qf_strbuf_putc(text, ',');
        if (!qf_str_is(labels.items[i].name, QF_METRIC_NAME)) {
            put_quoted(text, labels.items[i].name);
            qf_strbuf_putc(text, '=');
        }
        put_quoted(text, labels.items[i].value);
    }
    qf_strbuf_putc(text, '}');
}

static void put_value(struct qf_strbuf *text, const struct pq_series *series, size_t i)
{
    char number[QF_DOUBLE_TEXT_MAX];

    if (series->histograms && series->histograms[i])
        sg_histogram_text_print(text, series->histograms[i]);
    else if (qf_is_stale(series->values[i]))
        qf_strbuf_puts(text, "StaleNaN");
    else
        qf_strbuf_add(text, number, qf_double_g(series->values[i], number));
}

/* Prometheus text, which has milliseconds. Returns how many samples were written. */
static size_t put_series(struct qf_strbuf *text, const struct pq_series *series)
{
    for (size_t i = 0; i < series->count; i++) {
        put_labels(text, series->labels);
        qf_strbuf_putc(text, ' ');
        put_value(text, series, i);
        qf_strbuf_printf(text, " %" PRId64, series->ts[i]);
        if (series->start_ts && series->start_ts[i])
            qf_strbuf_printf(text, " st@%" PRId64, series->start_ts[i]);
        qf_strbuf_putc(text, '\n');
    }
    return series->count;
}

static qf_rc put_storage(struct qf_strbuf *text, struct storage *storage, size_t shard_count,
                         size_t *ret_samples, struct qf_err *err)
{
    struct pq_select all = { .min_ts = INT64_MIN, .max_ts = INT64_MAX };
    struct pq_series series;
    bool more = true;
    qf_rc rc = QF_OK;

    *ret_samples = 0;
    for (size_t shard = 0; shard < shard_count && rc == QF_OK; shard++) {
        struct pq_source *source;

        rc = storage_open(storage, shard, &all, &source, err);
        if (rc != QF_OK)
            return rc;
        while ((rc = source->next(source, &series, &more, err)) == QF_OK && more)
            *ret_samples += put_series(text, &series);
        source->close(source);
    }
    return rc;
}

/* The import with its input and output in files: whatever it writes, nobody has to read along. */
static void run_import(const struct http_load_options *options, const char *input, int output)
{
    char shards[32];
    const char *const argv[] = { options->binary, "import",
                                 "--quiet",       "--format=prometheus",
                                 "--store",       options->store_url,
                                 "--tenant",      options->tenant,
                                 "--shards",      shards,
                                 input,           NULL };

    (void)snprintf(shards, sizeof(shards), "%zu", options->shard_count);
    if (dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
        (void)execv(options->binary, (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* A new temporary file that holds @text. */
static int temporary(char *path, struct qf_str text)
{
    int fd = mkstemp(path);

    if (fd >= 0 && text.len && write(fd, text.data, text.len) != (ssize_t)text.len) {
        (void)close(fd);
        (void)unlink(path);
        fd = -1;
    }
    return fd;
}

static qf_rc import_text(const struct http_load_options *options, struct qf_str text,
                         struct qf_err *err)
{
    char input[] = "/tmp/promqltest-in-XXXXXX", output[] = "/tmp/promqltest-out-XXXXXX";
    char words[180] = "";
    int in = temporary(input, text), out = temporary(output, QF_STR(""));
    pid_t pid = in >= 0 && out >= 0 ? fork() : -1;
    int status = -1;

    if (pid == 0)
        run_import(options, input, out);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (out >= 0 && pread(out, words, sizeof(words) - 1, 0) < 0)
        words[0] = '\0';
    for (int i = 0; i < 2; i++) {
        int fd = i ? out : in;

        if (fd < 0)
            continue;
        (void)close(fd);
        (void)unlink(i ? output : input);
    }
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return QF_OK;
    return qf_err_set(err, QF_EIO, "%s import failed: %s", options->binary, words);
}

qf_rc http_load(struct storage *storage, const struct http_load_options *options,
                struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    size_t samples;
    qf_rc rc = put_storage(&text, storage, options->shard_count, &samples, err);

    if (rc != QF_OK || samples == 0)
        return rc;
    return import_text(options, qf_strbuf_view(&text), err);
}
