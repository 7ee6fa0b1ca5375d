/* head.c - head inputs over HTTP: replica after replica, round after round. */
#include "queryworker/cache/head_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/strbuf.h"
#include "base/sys/clock.h"
#include "base/sys/small_file.h"
#include "base/sys/thread.h"
#include "segments/store/http.h"

#define CONNECT_MS 1000
#define STALL_MS 5000
/* Before the first byte of a map its node reads all of it. */
#define MAP_STALL_MS 60000
/* One replica may take this long to read and encode. */
#define READ_MS 30000
/* Busy ones are asked again: at once others, then after these pauses. */
#define ROUNDS 4
#define PAUSE_MS 100
#define KEY_BYTES_MAX 4096

struct qw_head_source {
    struct http_client *http, *patient;
    char *key_file;
    struct qf_lock *lock; /* guards the rest */
    char *key;
    struct stat key_seen;
    int64_t key_look_ms;
};

struct qw_head_ask {
    struct qf_strbuf text;
    char **replicas;
    size_t replica_count;
};

/* --- asking --- */

static qf_rc read_key(struct qw_head_source *source, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct stat seen;
    qf_rc rc = qf_small_file_read(source->key_file, "the key for ingest nodes", KEY_BYTES_MAX,
                                  &text, &seen, err);
    struct qf_str key = qf_str_trim(qf_strbuf_view(&text));

    if (rc)
        return rc;
    if (!key.len || memchr(key.data, '\n', key.len))
        return qf_err_set(err, QF_EINVAL, "%s: expected one line with a key", source->key_file);
    free(source->key);
    source->key = qf_xmemdup0(key.data, key.len);
    source->key_seen = seen;
    return QF_OK;
}

struct qw_head_source *qw_head_source_new(const struct qw_head_options *options, struct qf_err *err)
{
    struct qw_head_source *source = qf_xcalloc(1, sizeof(*source));

    source->lock = qf_lock_new();
    source->http = http_client_new(&(struct http_options){ .connect_timeout_ms = CONNECT_MS,
                                                           .stall_timeout_ms = STALL_MS,
                                                           .ca_file = options->ca_file });
    source->patient = http_client_new(&(struct http_options){ .connect_timeout_ms = CONNECT_MS,
                                                              .stall_timeout_ms = MAP_STALL_MS,
                                                              .ca_file = options->ca_file });
    if (!options->key_file)
        return source;
    source->key_file = qf_xstrdup(options->key_file);
    return read_key(source, err) == QF_OK ? source : qw_head_source_free(source);
}

struct qw_head_source *qw_head_source_free(struct qw_head_source *source)
{
    if (!source)
        return NULL;
    (void)http_client_free(source->http);
    (void)http_client_free(source->patient);
    (void)qf_lock_free(source->lock);
    free(source->key_file);
    free(source->key);
    free(source);
    return NULL;
}

struct http_client *qw_head_patient_http(struct qw_head_source *source)
{
    return source->patient;
}

char *qw_head_authorization(struct qw_head_source *source)
{
    struct qf_strbuf line = QF_STRBUF_INIT;
    int64_t now = qf_clock_mono_ms();
    struct qf_err err = { 0 };

    if (!source->key_file)
        return NULL;
    qf_lock_take(source->lock);
    if (now >= source->key_look_ms) {
        source->key_look_ms = now + 1000;
        if (qf_small_file_changed(source->key_file, &source->key_seen))
            (void)read_key(source, &err); /* the one before stays */
    }
    qf_strbuf_printf(&line, "Authorization: Bearer %s", source->key);
    qf_lock_drop(source->lock);
    return qf_strbuf_take(&line);
}

struct qw_head_ask *qw_head_ask_new(struct qf_str tenant, const struct pb_heads *heads,
                                    const struct pb_head *head)
{
    struct qw_head_ask *ask = qf_xcalloc(1, sizeof(*ask));

    qf_strbuf_puts(&ask->text, "{\"tenant\":");
    qf_strbuf_json(&ask->text, tenant);
    qf_strbuf_printf(&ask->text, ",\"partition\":%" PRIu32 ",\"queue\":", head->partition);
    qf_strbuf_json(&ask->text, head->queue);
    qf_strbuf_printf(
        &ask->text,
        ",\"generation\":%" PRIu64 ",\"cut\":%" PRIu64 ",\"shard\":%" PRIu32 ",\"shards\":%" PRIu32
        ",\"min_ts\":%" PRId64 ",\"max_ts\":%" PRId64 ",\"match\":",
        head->generation, head->cut, head->shard, head->shard_count, heads->min_ts, heads->max_ts);
    qf_strbuf_json(&ask->text, heads->match);
    qf_strbuf_putc(&ask->text, '}');
    ask->replica_count = head->replica_count;
    ask->replicas = qf_xcalloc(head->replica_count + 1, sizeof(*ask->replicas));
    for (size_t i = 0; i < head->replica_count; i++)
        ask->replicas[i] = qf_xmemdup0(head->replicas[i].data, head->replicas[i].len);
    return ask;
}

void qw_head_ask_free(struct qw_head_ask *ask)
{
    if (!ask)
        return;
    for (size_t i = 0; i < ask->replica_count; i++)
        free(ask->replicas[i]);
    free(ask->replicas);
    qf_strbuf_done(&ask->text);
    free(ask);
}

struct qf_str qw_head_ask_text(const struct qw_head_ask *ask)
{
    return qf_strbuf_view(&ask->text);
}

/* --- fetching --- */

bool qw_sink_write(void *ctx, const struct http_response *response, const void *data, size_t len)
{
    struct qw_sink *sink = ctx;
    size_t done = 0;

    (void)response;
    if (sink->size + len > sink->size_max) {
        sink->too_large = true;
        return false;
    }
    while (done < len) {
        ssize_t wrote = write(sink->fd, (const char *)data + done, len - done);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            sink->error = wrote < 0 ? errno : ENOSPC;
            return false;
        }
        done += (size_t)wrote;
    }
    sink->size += len;
    return true;
}

qf_rc qw_disk_error(struct qf_err *err, const char *what, const char *path, int error)
{
    return qf_err_set(err, error == ENOSPC || error == EDQUOT ? QF_ENOSPC : QF_EIO,
                      "cannot %s %s: %s", what, path, strerror(error));
}

/* What a replica's answer comes to. QF_EBUSY: ask again later. */
static qf_rc judge(struct qw_download *d, const struct http_response *response, struct qf_err *err)
{
    struct qf_str body = qf_strbuf_view(&response->body);

    switch (response->status) {
    case 200:
        (void)qf_parse_u64(http_header(response, "x-promfabric-samples"), &d->samples);
        return QF_OK;
    case 204:
        d->empty = true;
        return QF_OK;
    case 404: /* a node that knows nothing of heads, or of this partition */
    case 410:
        return qf_err_set(err, QF_EGONE, "%s is not at any replica any more", d->name);
    case 401:
    case 403:
        return qf_err_set(err, QF_EDENIED, "%s: ingest nodes do not accept this worker's key",
                          d->name);
    case 400:
    case 413:
    case 422:
        return qf_err_set(err, QF_EINVAL, "%s: %.*s", d->name, (int)QF_MIN(body.len, (size_t)200),
                          body.data ? body.data : "");
    default:
        return qf_err_set(err, QF_EBUSY, "%s: %ld %.*s", d->name, response->status,
                          (int)QF_MIN(body.len, (size_t)200), body.data ? body.data : "");
    }
}

static qf_rc ask_replica(struct qw_download *d, const char *replica, int fd, struct qf_err *err)
{
    struct qf_str text = qw_head_ask_text(d->head);
    struct sg_store_bytes body = { .data = text.data, .fd = -1, .size = text.len };
    struct sg_store_limit limit = { &d->cancel, qf_clock_mono_ms() + READ_MS };
    QF_CLEANUP(qf_freep) char *key = qw_head_authorization(d->heads);
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf url = QF_STRBUF_INIT;
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    struct qw_sink sink = { .fd = fd, .size_max = QW_HEAD_BYTES_MAX };
    struct http_request request = { .method = "POST",
                                    .headers = { "Content-Type: application/json", key },
                                    .header_count = key ? 2 : 1,
                                    .body = &body,
                                    .body_len = text.len,
                                    .sink = qw_sink_write,
                                    .sink_ctx = &sink,
                                    .no_proxy = true };
    qf_rc rc;

    if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0)
        return qw_disk_error(err, "empty", d->path, errno);
    qf_strbuf_printf(&url, "%s/v1/heads/read", replica);
    request.url = qf_strbuf_cstr(&url);
    rc = http_perform(d->heads->http, &request, &limit, &response, err);
    if (sink.error)
        return qw_disk_error(err, "write", d->path, sink.error);
    if (sink.too_large)
        return qf_err_set(err, QF_ELIMIT, "%s has more than %" PRIu64 " bytes", d->name,
                          QW_HEAD_BYTES_MAX);
    d->size = sink.size;
    return rc ? rc : judge(d, &response, err);
}

/* Wait before the next round, but not longer than somebody waits for us. */
static void pause_before(const struct qw_download *d, int round)
{
    int64_t until = qf_clock_mono_ms() + ((int64_t)PAUSE_MS << (round - 1));

    while (qf_clock_mono_ms() < until && !atomic_load(&d->cancel))
        (void)poll(NULL, 0, 10);
}

static bool may_pass(qf_rc rc)
{
    return rc == QF_EBUSY || rc == QF_EUNAVAILABLE || rc == QF_ETIMEOUT;
}

/* QF_OK with the bytes in @fd, or none. Gone at some and silence from the others counts as gone: a new
 * status knows who has what. */
static qf_rc ask_all(struct qw_download *d, char *const *replicas, size_t count, int fd,
                     qw_ask_one *ask_one)
{
    for (int round = 0; round < ROUNDS; round++) {
        size_t gone = 0;

        if (round)
            pause_before(d, round);
        for (size_t i = 0; i < count; i++) {
            qf_rc rc;

            if (atomic_load(&d->cancel))
                return qf_err_set(&d->err, QF_ECANCELED, "canceled");
            d->err = (struct qf_err){ 0 };
            rc = ask_one(d, replicas[i], fd, &d->err);
            gone += rc == QF_EGONE;
            if (rc != QF_EGONE && !may_pass(rc))
                return rc;
        }
        if (gone == count || (gone && round == ROUNDS - 1)) {
            d->err = (struct qf_err){ 0 };
            return qf_err_set(&d->err, QF_EGONE, "%s is not at any replica any more", d->name);
        }
    }
    return d->err.rc = QF_EUNAVAILABLE;
}

qf_rc qw_fetch_into(struct qw_download *d, const char *temp, char *const *replicas, size_t count,
                    qw_ask_one *ask_one)
{
    int fd = open(temp, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    qf_rc rc;

    if (fd < 0)
        return qw_disk_error(&d->err, "make", temp, errno);
    rc = ask_all(d, replicas, count, fd, ask_one);
    if (rc == QF_OK && !d->empty && d->size == 0)
        rc = qf_err_set(&d->err, QF_EIO, "%s came without a byte", d->name);
    if (close(fd) != 0 && rc == QF_OK)
        rc = qw_disk_error(&d->err, "write", temp, errno);
    if (rc == QF_OK && d->empty)
        (void)unlink(temp);
    else if (rc == QF_OK && rename(temp, d->path) != 0)
        rc = qw_disk_error(&d->err, "rename", temp, errno);
    return rc;
}

qf_rc qw_head_fetch(struct qw_download *d, const char *temp)
{
    return qw_fetch_into(d, temp, d->head->replicas, d->head->replica_count, ask_replica);
}
