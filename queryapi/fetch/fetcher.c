/* fetcher.c - artifact downloads on libcurl's multi interface. */
#include "queryapi/fetch/fetcher.h"

#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/net/tls_files.h"
#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/mailbox.h"
#include "base/sys/private_dir.h"
#include "base/sys/thread.h"

#define FILE_SUFFIX ".artifact"

struct transfer {
    struct transfer *next;
    struct qa_fetcher *fetcher;
    struct qa_fetch *fetch;
    CURL *easy; /* kept with its slot, so that its settings and connection are reused */
    struct curl_slist *connect_to; /* where it really goes, if not where the URL says */
    int fd;
    uint64_t received;
    uint64_t generation; /* of the TLS files that its settings have */
    XXH3_state_t *hash;
    bool too_long;
    int disk_errno; /* why it could not be written; 0: it could */
    char error[CURL_ERROR_SIZE];
};

struct qa_fetcher {
    struct qa_fetcher_options options;
    struct qf_mailbox *requests;
    struct qf_thread *thread;
    CURLM *multi;
    atomic_bool stop;
    struct transfer *slots, *free_slots;
    size_t running;
    uint64_t file_number;
    char *dir;
};

bool qa_checksum_parse(const char *text, size_t len, struct wc_checksum *ret_checksum)
{
    uint64_t parts[2] = { 0 };

    if (len != 5 + 32 || memcmp(text, "xxh3:", 5) != 0)
        return false;
    for (size_t i = 0; i < 32; i++) {
        char c = text[5 + i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

        if (digit < 0)
            return false;
        parts[i / 16] = parts[i / 16] << 4 | (uint64_t)digit;
    }
    *ret_checksum = (struct wc_checksum){ .high = parts[0], .low = parts[1] };
    return true;
}

void qa_artifact_done(struct qa_artifact *artifact)
{
    if (artifact->path)
        (void)unlink(artifact->path);
    free(artifact->path);
    free(artifact->data);
    *artifact = (struct qa_artifact){ 0 };
}

struct qa_fetch *qa_fetch_free(struct qa_fetch *fetch)
{
    if (!fetch)
        return NULL;
    qa_artifact_done(&fetch->artifact);
    free(fetch->url);
    free(fetch);
    return NULL;
}

static size_t on_bytes(char *data, size_t size, size_t count, void *arg)
{
    struct transfer *transfer = arg;
    struct qa_artifact *artifact = &transfer->fetch->artifact;
    size_t len = size * count, done = 0;

    if (atomic_load(&transfer->fetch->unwanted))
        return 0;
    if (transfer->received + len > transfer->fetch->size_bytes) {
        transfer->too_long = true;
        return 0;
    }
    if (artifact->data) {
        memcpy(artifact->data + transfer->received, data, len);
        done = len;
    }
    while (done < len) {
        ssize_t wrote = write(transfer->fd, data + done, len - done);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            transfer->disk_errno = wrote < 0 ? errno : ENOSPC;
            return 0;
        }
        done += (size_t)wrote;
    }
    (void)XXH3_128bits_update(transfer->hash, data, len);
    transfer->received += len;
    return len;
}

static qf_rc prepare_spool(const char *dir, struct qf_err *err)
{
    DIR *handle;
    struct dirent *entry;
    qf_rc rc;

    rc = qf_private_dir(dir, err);
    if (rc)
        return qf_err_prefix(err, rc, "the spool");
    handle = opendir(dir);
    if (!handle)
        return qf_err_set(err, QF_EIO, "cannot read the spool %s: %s", dir, strerror(errno));
    while ((entry = readdir(handle)) != NULL)
        if (strstr(entry->d_name, FILE_SUFFIX))
            (void)unlinkat(dirfd(handle), entry->d_name, 0);
    (void)closedir(handle);
    if (access(dir, W_OK) != 0)
        return qf_err_set(err, QF_EIO, "cannot write to the spool %s: %s", dir, strerror(errno));
    return QF_OK;
}

/* Hand a request back. */
static void finish(struct transfer *transfer)
{
    struct qa_fetcher *fetcher = transfer->fetcher;
    struct qa_fetch *fetch = transfer->fetch;

    if (transfer->fd >= 0)
        (void)close(transfer->fd);
    transfer->fd = -1;
    transfer->fetch = NULL;
    transfer->next = fetcher->free_slots;
    fetcher->free_slots = transfer;
    fetch->ended_ns = qf_clock_mono_ns();
    if (!fetch->ok && qa_artifact_present(&fetch->artifact)) {
        qa_artifact_done(&fetch->artifact);
        (void)atomic_fetch_sub(fetcher->options.spool_bytes, fetch->size_bytes);
    }
    fetcher->options.done(fetcher->options.ctx, fetch);
}

static void set_options(struct transfer *transfer)
{
    const struct qa_fetcher_options *options = &transfer->fetcher->options;
    CURL *easy = transfer->easy;

    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, 3000L);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME,
                           (long)QF_MAX(options->stall_timeout_ms / 1000, (int64_t)1));
    if (options->tls)
        (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* our authorities, no others */
}

static void set_blob(CURL *easy, CURLoption option, char *text)
{
    struct curl_blob blob = { .data = text,
                              .len = text ? strlen(text) : 0,
                              .flags = CURL_BLOB_COPY };

    if (text)
        (void)curl_easy_setopt(easy, option, &blob);
}

/* Certificates as the files have them now. Connections that were made with others are not used for
 * it: libcurl compares. */
static void set_certificates(struct transfer *transfer)
{
    struct qf_tls_files *files = transfer->fetcher->options.tls;
    const struct qf_tls_texts *texts;

    if (!files || qf_tls_files_generation(files) == transfer->generation)
        return;
    texts = qf_tls_files_take(files);
    set_blob(transfer->easy, CURLOPT_CAINFO_BLOB, texts->ca);
    set_blob(transfer->easy, CURLOPT_SSLCERT_BLOB, texts->cert);
    set_blob(transfer->easy, CURLOPT_SSLKEY_BLOB, texts->key);
    transfer->generation = texts->generation;
    qf_tls_texts_drop(texts);
}

/* Where to go. A certificate has the name that the URL has: with a name of their own for all workers
 * the URL gets that name, and the connection goes to the host that it had. */
static void set_address(struct transfer *transfer)
{
    const char *name = transfer->fetcher->options.tls_server_name;
    char *host = NULL, *port = NULL, *url = NULL, to[700];
    CURLU *parts = name ? curl_url() : NULL;

    (void)curl_easy_setopt(transfer->easy, CURLOPT_URL, transfer->fetch->url);
    if (parts && curl_url_set(parts, CURLUPART_URL, transfer->fetch->url, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
        curl_url_set(parts, CURLUPART_HOST, name, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_URL, &url, 0) == CURLUE_OK) {
        (void)snprintf(to, sizeof(to), "%s:%s:%s:%s", name, port, host, port);
        curl_slist_free_all(transfer->connect_to);
        transfer->connect_to = curl_slist_append(NULL, to);
        (void)curl_easy_setopt(transfer->easy, CURLOPT_CONNECT_TO, transfer->connect_to);
        (void)curl_easy_setopt(transfer->easy, CURLOPT_URL, url);
    }
    curl_free(url);
    curl_free(port);
    curl_free(host);
    curl_url_cleanup(parts);
}

/* Room in the spool is taken before the first byte comes. */
static bool reserve(struct qa_fetcher *fetcher, uint64_t bytes)
{
    uint64_t used = atomic_load(fetcher->options.spool_bytes);

    do {
        if (bytes > fetcher->options.spool_bytes_max ||
            used > fetcher->options.spool_bytes_max - bytes)
            return false;
    } while (!atomic_compare_exchange_weak(fetcher->options.spool_bytes, &used, used + bytes));
    return true;
}

/* Where the bytes will go: memory, or a new file. */
static bool make_place(struct qa_fetcher *fetcher, struct transfer *transfer)
{
    struct qa_fetch *fetch = transfer->fetch;
    char path[4096];

    fetch->artifact.size_bytes = fetch->size_bytes;
    if (fetch->size_bytes <= QA_MEMORY_ARTIFACT_MAX &&
        atomic_load(fetcher->options.spool_bytes) <= fetcher->options.memory_bytes_max) {
        fetch->artifact.data = qf_xmalloc(fetch->size_bytes + 1);
        return true;
    }
    (void)snprintf(path, sizeof(path), "%s/%" PRIu64 FILE_SUFFIX, fetcher->dir,
                   fetcher->file_number++);
    fetch->artifact.path = qf_xstrdup(path);
    transfer->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (transfer->fd >= 0)
        return true;
    (void)snprintf(fetch->detail, sizeof(fetch->detail), "%s: %s", path, strerror(errno));
    return false;
}

static void begin(struct qa_fetcher *fetcher, struct qa_fetch *fetch)
{
    struct transfer *transfer = fetcher->free_slots;

    fetcher->free_slots = transfer->next;
    transfer->fetch = fetch;
    transfer->fd = -1;
    transfer->received = 0;
    transfer->too_long = false;
    transfer->disk_errno = 0;
    transfer->error[0] = '\0';
    fetch->started_ns = qf_clock_mono_ns();
    fetch->error = WC_FETCH_IO;
    (void)XXH3_128bits_reset(transfer->hash);
    if (atomic_load(&fetch->unwanted)) {
        (void)snprintf(fetch->detail, sizeof(fetch->detail), "no longer needed");
        finish(transfer);
        return;
    }
    if (!reserve(fetcher, fetch->size_bytes)) {
        fetch->spool_full = true;
        (void)snprintf(fetch->detail, sizeof(fetch->detail), "the spool is full");
        finish(transfer);
        return;
    }
    if (!make_place(fetcher, transfer)) {
        fetch->spool_full = true;
        finish(transfer);
        return;
    }
    set_address(transfer);
    set_certificates(transfer);
    (void)curl_multi_add_handle(fetcher->multi, transfer->easy);
    fetcher->running++;
}

/* Decide how a transfer that libcurl is done with went. */
static void conclude(struct transfer *transfer, CURLcode code)
{
    struct qa_fetch *fetch = transfer->fetch;
    XXH128_hash_t hash = XXH3_128bits_digest(transfer->hash);
    long status = 0;

    (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 300 && status < 400) { /* Nobody is followed: what else it says is no artifact. */
        fetch->error = WC_FETCH_IO;
        (void)snprintf(fetch->detail, sizeof(fetch->detail), "HTTP status %ld", status);
    } else if (code == CURLE_OK && transfer->received == fetch->size_bytes &&
               hash.high64 == fetch->checksum.high && hash.low64 == fetch->checksum.low) {
        fetch->ok = true;
    } else if (code == CURLE_OK || transfer->too_long) {
        fetch->error = WC_FETCH_CHECKSUM;
        (void)snprintf(fetch->detail, sizeof(fetch->detail), "%" PRIu64 " of %" PRIu64 " bytes%s",
                       transfer->received, fetch->size_bytes,
                       transfer->received == fetch->size_bytes ? ", wrong checksum" : "");
    } else if (transfer->disk_errno) {
        fetch->spool_full = true;
        (void)snprintf(fetch->detail, sizeof(fetch->detail), "cannot write to the spool: %s",
                       strerror(transfer->disk_errno));
    } else {
        fetch->error = status == 404 || status == 410 ? WC_FETCH_EXPIRED : WC_FETCH_IO;
        (void)snprintf(fetch->detail, sizeof(fetch->detail), "%s",
                       transfer->error[0] ? transfer->error : curl_easy_strerror(code));
    }
}

static void collect(struct qa_fetcher *fetcher)
{
    CURLMsg *message;
    int left;

    while ((message = curl_multi_info_read(fetcher->multi, &left)) != NULL) {
        struct transfer *transfer = NULL;
        CURLcode code = message->data.result;
        CURL *easy = message->easy_handle;

        if (message->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &transfer);
        (void)curl_multi_remove_handle(fetcher->multi, easy);
        fetcher->running--;
        conclude(transfer, code);
        finish(transfer);
    }
}

static void run(void *arg)
{
    struct qa_fetcher *fetcher = arg;
    int still;

    while (!atomic_load(&fetcher->stop)) {
        if (fetcher->options.tls)
            qf_tls_files_look(fetcher->options.tls);
        while (fetcher->free_slots) {
            struct qa_fetch *fetch = qf_mailbox_try_receive(fetcher->requests);

            if (!fetch)
                break;
            begin(fetcher, fetch);
        }
        (void)curl_multi_perform(fetcher->multi, &still);
        collect(fetcher);
        if (fetcher->free_slots && qf_mailbox_count(fetcher->requests))
            continue;
        (void)curl_multi_poll(fetcher->multi, NULL, 0, 1000, NULL);
    }
}

struct qa_fetcher *qa_fetcher_new(const struct qa_fetcher_options *options, struct qf_err *err)
{
    struct qa_fetcher *fetcher;

    if (prepare_spool(options->spool_dir, err) != QF_OK)
        return NULL;
    fetcher = qf_xcalloc(1, sizeof(*fetcher));
    fetcher->options = *options;
    fetcher->dir = qf_xstrdup(options->spool_dir);
    if (!fetcher->options.concurrency_max)
        fetcher->options.concurrency_max = 16;
    if (!fetcher->options.queue_max)
        fetcher->options.queue_max = 65536;
    if (!fetcher->options.stall_timeout_ms)
        fetcher->options.stall_timeout_ms = 5000;
    fetcher->requests = qf_mailbox_new(fetcher->options.queue_max);
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    fetcher->multi = curl_multi_init();
    (void)curl_multi_setopt(fetcher->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
                            (long)fetcher->options.concurrency_max * 2);
    fetcher->slots = qf_xcalloc(fetcher->options.concurrency_max, sizeof(*fetcher->slots));
    for (size_t i = 0; i < fetcher->options.concurrency_max; i++) {
        struct transfer *slot = &fetcher->slots[i];

        slot->fetcher = fetcher;
        slot->fd = -1;
        slot->easy = curl_easy_init();
        slot->hash = XXH3_createState();
        set_options(slot);
        slot->next = fetcher->free_slots;
        fetcher->free_slots = slot;
    }
    fetcher->thread = qf_thread_start("fetch", run, fetcher);
    if (!fetcher->thread) {
        (void)qf_err_set(err, QF_EUNAVAILABLE, "cannot start a thread");
        return qa_fetcher_free(fetcher);
    }
    return fetcher;
}

static void drop_request(void *fetch)
{
    (void)qa_fetch_free(fetch);
}

struct qa_fetcher *qa_fetcher_free(struct qa_fetcher *fetcher)
{
    if (!fetcher)
        return NULL;
    atomic_store(&fetcher->stop, true);
    (void)curl_multi_wakeup(fetcher->multi);
    (void)qf_thread_join(fetcher->thread);
    for (size_t i = 0; i < fetcher->options.concurrency_max; i++) {
        struct transfer *slot = &fetcher->slots[i];

        if (slot->fetch) {
            (void)curl_multi_remove_handle(fetcher->multi, slot->easy);
            (void)qa_fetch_free(slot->fetch);
        }
        if (slot->fd >= 0)
            (void)close(slot->fd);
        curl_easy_cleanup(slot->easy);
        curl_slist_free_all(slot->connect_to);
        (void)XXH3_freeState(slot->hash);
    }
    (void)curl_multi_cleanup(fetcher->multi);
    (void)qf_mailbox_free(fetcher->requests, drop_request);
    (void)rmdir(fetcher->dir);
    free(fetcher->dir);
    free(fetcher->slots);
    free(fetcher);
    return NULL;
}

bool qa_fetcher_submit(struct qa_fetcher *fetcher, struct qa_fetch *fetch)
{
    if (!qf_mailbox_try_send(fetcher->requests, fetch))
        return false;
    (void)curl_multi_wakeup(fetcher->multi);
    return true;
}
