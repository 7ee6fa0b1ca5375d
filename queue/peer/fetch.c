/* fetch.c - snapshot files from peers by HTTP, resumed where they broke off. */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "queue/peer/bundle.h"
#include "queue/peer/peer_int.h"

enum { PATH_SIZE = 4096, URL_SIZE = 1024, ETAG_SIZE = 128, TRIES = 5, PAUSE_MS = 200 };

struct qp_fetch {
    struct qp_item item; /* QP_ITEM_FETCHED */
    struct qp_peers *peers;
    char base[QP_URL_SIZE], token[QP_NAME_SIZE], queue[QP_NAME_SIZE];
    uint64_t index, term;
    char path[PATH_SIZE], part[PATH_SIZE + 8], etag_path[PATH_SIZE + 8];
    qp_done *done;
    void *arg;

    /* The pool's thread: */
    int fd;
    uint64_t have;              /* bytes in the part */
    char etag[ETAG_SIZE];       /* of the part; empty: unknown */
    char etag_heard[ETAG_SIZE]; /* of the answer under way */
    bool body_begun;
    long status;
    qf_rc rc;
    char why[200];
};

static qf_rc fail(struct qp_fetch *fetch, qf_rc rc, const char *why)
{
    fetch->rc = rc;
    (void)snprintf(fetch->why, sizeof(fetch->why), "%s", why);
    return rc;
}

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    struct qp_fetch *fetch = arg;
    struct qf_str line = { data, size * count };

    if (line.len > 5 && strncasecmp(line.data, "http/", 5) == 0)
        fetch->etag_heard[0] = '\0'; /* another answer begins */
    if (line.len > 5 && strncasecmp(line.data, "etag:", 5) == 0) {
        struct qf_str value = qf_str_trim(qf_str_sub(line, 5, line.len));

        if (value.len < ETAG_SIZE)
            (void)snprintf(fetch->etag_heard, ETAG_SIZE, "%.*s", QF_STR_ARG(value));
    }
    return size * count;
}

static void save_etag(struct qp_fetch *fetch)
{
    FILE *file = fopen(fetch->etag_path, "w");

    memcpy(fetch->etag, fetch->etag_heard, ETAG_SIZE);
    if (!file)
        return; /* a later fetch begins anew */
    (void)fputs(fetch->etag, file);
    (void)fclose(file);
}

/* The first bytes of a body: a part that goes on, or a file from its beginning. */
static bool begin_body(struct qp_fetch *fetch, CURL *easy)
{
    fetch->body_begun = true;
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &fetch->status);
    if (fetch->status == 206 && fetch->have && strcmp(fetch->etag, fetch->etag_heard) == 0)
        return true;
    if (fetch->status != 200)
        return false;
    if (fetch->have && ftruncate(fetch->fd, 0) != 0)
        return false;
    fetch->have = 0;
    save_etag(fetch);
    return true;
}

struct transfer {
    struct qp_fetch *fetch;
    CURL *easy;
};

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = arg;
    struct qp_fetch *fetch = transfer->fetch;
    size_t len = size * count, at = 0;

    if (!fetch->body_begun && !begin_body(fetch, transfer->easy))
        return 0;
    if (len > fetch->peers->options.fetch_bytes_max - fetch->have) {
        (void)fail(fetch, QF_ELIMIT, "the snapshot is longer than the limit");
        return 0;
    }
    while (at < len) {
        ssize_t done = pwrite(fetch->fd, data + at, len - at, (off_t)(fetch->have + at));

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            (void)fail(fetch, errno == ENOSPC ? QF_ENOSPC : QF_EIO, "cannot write the snapshot");
            return 0;
        }
        at += (size_t)done;
    }
    fetch->have += len;
    return len;
}

static int on_progress(void *arg, curl_off_t total, curl_off_t now, curl_off_t up_total,
                       curl_off_t up_now)
{
    struct qp_fetch *fetch = arg;

    (void)total, (void)now, (void)up_total, (void)up_now;
    return atomic_load(&fetch->peers->fetch_cancel);
}

static struct curl_slist *headers_of(const struct qp_fetch *fetch)
{
    char text[ETAG_SIZE + 64];
    struct curl_slist *list;

    (void)snprintf(text, sizeof(text), "Authorization: Bearer %s", fetch->token);
    list = curl_slist_append(NULL, text);
    if (fetch->have) {
        (void)snprintf(text, sizeof(text), "If-Range: %s", fetch->etag);
        list = curl_slist_append(list, text);
        (void)snprintf(text, sizeof(text), "Range: bytes=%llu-", (unsigned long long)fetch->have);
        list = curl_slist_append(list, text);
    }
    return list;
}

static void set_options(CURL *easy, struct qp_fetch *fetch, struct transfer *transfer,
                        struct curl_slist *headers)
{
    const struct qp_options *options = &fetch->peers->options;
    char *queue = curl_easy_escape(easy, fetch->queue, 0);
    char url[URL_SIZE];

    (void)snprintf(url, sizeof(url), "%s/v1/peer/snapshot?queue=%s&index=%llu&term=%llu",
                   fetch->base, queue, (unsigned long long)fetch->index,
                   (unsigned long long)fetch->term);
    curl_free(queue);
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, fetch);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    (void)curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(easy, CURLOPT_XFERINFODATA, fetch);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)options->fetch_stall_ms);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME,
                           (long)QF_MAX((options->fetch_stall_ms + 999) / 1000, 1));
    if (options->http_ca_file)
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, options->http_ca_file);
    if (options->tls_cert_file)
        (void)curl_easy_setopt(easy, CURLOPT_SSLCERT, options->tls_cert_file);
    if (options->tls_key_file)
        (void)curl_easy_setopt(easy, CURLOPT_SSLKEY, options->tls_key_file);
}

/* What an attempt came to: QF_OK; QF_EUNAVAILABLE: worth another one; else the end. */
static qf_rc outcome(struct qp_fetch *fetch, CURLcode code)
{
    if (fetch->rc != QF_OK)
        return fetch->rc;
    if (atomic_load(&fetch->peers->fetch_cancel))
        return fail(fetch, QF_ECANCELED, "shutting down");
    if (fetch->status == 404 || fetch->status == 410)
        return fail(fetch, QF_ENOTFOUND, "the node does not have this snapshot");
    if (fetch->status == 401 || fetch->status == 403)
        return fail(fetch, QF_EDENIED, "the node does not give its snapshot to this one");
    if (code == CURLE_OK && (fetch->status == 200 || fetch->status == 206) && fetch->body_begun)
        return QF_OK;
    (void)snprintf(fetch->why, sizeof(fetch->why), "HTTP status %ld, %s", fetch->status,
                   curl_easy_strerror(code));
    return QF_EUNAVAILABLE;
}

static qf_rc attempt(struct qp_fetch *fetch)
{
    CURL *easy = curl_easy_init();
    struct transfer transfer = { fetch, easy };
    struct curl_slist *headers = headers_of(fetch);
    CURLcode code;

    fetch->body_begun = false;
    fetch->status = 0;
    set_options(easy, fetch, &transfer, headers);
    code = curl_easy_perform(easy);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &fetch->status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(easy);
    if (fetch->status == 416) { /* the part is not of this file */
        fetch->have = 0;
        fetch->etag[0] = '\0';
    }
    return outcome(fetch, code);
}

/* What an earlier fetch left, if it is known of which file it is a part. */
static void find_part(struct qp_fetch *fetch)
{
    FILE *file = fopen(fetch->etag_path, "r");
    struct stat stat;

    if (!file)
        return;
    if (fgets(fetch->etag, ETAG_SIZE, file) && fetch->etag[0] == '"' &&
        fstat(fetch->fd, &stat) == 0)
        fetch->have = (uint64_t)stat.st_size;
    (void)fclose(file);
}

static qf_rc attempts(struct qp_fetch *fetch)
{
    qf_rc rc = QF_EUNAVAILABLE;

    for (int vain = 0; rc == QF_EUNAVAILABLE && vain < TRIES; vain++) {
        uint64_t before = fetch->have;

        if (vain)
            (void)usleep(PAUSE_MS * 1000);
        rc = attempt(fetch);
        if (fetch->have > before)
            vain = 0;
    }
    return rc;
}

/* The file is whole and the one that was asked for. */
static qf_rc verify(struct qp_fetch *fetch)
{
    struct qp_bundle bundle;
    struct qf_err err = { 0 };
    qf_rc rc = qp_bundle_open(fetch->part, &bundle, &err);

    if (rc != QF_OK)
        return fail(fetch, rc == QF_EUNSUPPORTED ? rc : QF_ECORRUPT, err.msg);
    if (bundle.snapshot.index != fetch->index || bundle.snapshot.term != fetch->term)
        rc = fail(fetch, QF_ECORRUPT, "the node sent another snapshot");
    qp_bundle_close(&bundle);
    return rc;
}

static void work(struct qp_fetch *fetch)
{
    qf_rc rc;

    fetch->fd = open(fetch->part, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fetch->fd < 0) {
        (void)fail(fetch, errno == ENOSPC ? QF_ENOSPC : QF_EIO, "cannot make a file for it");
        return;
    }
    find_part(fetch);
    rc = attempts(fetch);
    if (rc == QF_OK && fsync(fetch->fd) != 0)
        rc = fail(fetch, QF_EIO, "cannot sync the snapshot");
    (void)close(fetch->fd);
    if (rc == QF_OK)
        rc = verify(fetch);
    if (rc == QF_OK && rename(fetch->part, fetch->path) != 0)
        rc = fail(fetch, QF_EIO, "cannot rename the snapshot");
    if (rc != QF_EUNAVAILABLE && rc != QF_ECANCELED) {
        (void)unlink(fetch->etag_path);
        (void)unlink(fetch->part);
    }
    fetch->rc = rc;
}

static void run(void *arg)
{
    struct qp_fetch *fetch = arg;

    if (atomic_load(&fetch->peers->fetch_cancel))
        (void)fail(fetch, QF_ECANCELED, "shutting down");
    else
        work(fetch);
    /* The transport's thread reads until it is stopped, which waits for this one. */
    if (!qf_mailbox_send(fetch->peers->mailbox, fetch, -1))
        abort(); /* nobody closes it */
}

void qp_fetched(struct qp_peers *peers, struct qp_item *item)
{
    struct qp_fetch *fetch = (struct qp_fetch *)item;

    qf_lock_take(peers->lock);
    peers->fetch_count--;
    qf_lock_drop(peers->lock);
    fetch->done(fetch->arg, fetch->rc, qf_str_from(fetch->why));
    free(fetch);
}

/* Where the node serves its snapshots, and one more fetch under way. */
static qf_rc enter(struct qp_peers *peers, const char *from, struct qp_fetch *fetch)
{
    struct qp_peer *peer;
    qf_rc rc = QF_OK;

    qf_lock_take(peers->lock);
    peer = qp_find(peers, from);
    if (!peer || !peer->stat.http_base[0] || peers->stopping) {
        rc = QF_EUNAVAILABLE;
    } else if (peers->fetch_count >= QP_FETCHES_MAX) {
        rc = QF_EBUSY;
    } else {
        memcpy(fetch->base, peer->stat.http_base, sizeof(fetch->base));
        memcpy(fetch->token, peer->token, sizeof(fetch->token));
        peers->fetch_count++;
    }
    qf_lock_drop(peers->lock);
    return rc;
}

qf_rc qp_fetch(struct qp_peers *peers, const char *from, const char *queue, uint64_t index,
               uint64_t term, const char *path, qp_done *done, void *arg)
{
    struct qp_fetch *fetch;
    qf_rc rc;

    if (strlen(queue) >= QP_NAME_SIZE || strlen(path) >= PATH_SIZE)
        return QF_EINVAL;
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    fetch = qf_xcalloc(1, sizeof(*fetch));
    fetch->item.kind = QP_ITEM_FETCHED;
    fetch->peers = peers;
    fetch->index = index;
    fetch->term = term;
    fetch->done = done;
    fetch->arg = arg;
    (void)snprintf(fetch->queue, sizeof(fetch->queue), "%s", queue);
    (void)snprintf(fetch->path, sizeof(fetch->path), "%s", path);
    (void)snprintf(fetch->part, sizeof(fetch->part), "%s.part", path);
    (void)snprintf(fetch->etag_path, sizeof(fetch->etag_path), "%s.etag", path);
    rc = enter(peers, from, fetch);
    if (rc == QF_OK && !qf_pool_submit(peers->pool, run, fetch)) {
        qf_lock_take(peers->lock);
        peers->fetch_count--;
        qf_lock_drop(peers->lock);
        rc = QF_EBUSY;
    }
    if (rc != QF_OK)
        free(fetch);
    return rc;
}
