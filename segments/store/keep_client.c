/* keep_client.c - requests to keepers over libcurl. */
#include "segments/store/keep_client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/net/tls_files.h"
#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/sys/clock.h"
#include "base/sys/small_file.h"
#include "base/sys/thread.h"
#include "segments/store/http.h"
#include "segments/store/store_int.h"

#define CONNECT_MS 2000
#define STALL_MS 20000
#define KEY_BYTES_MAX 4096
#define READ_BYTES ((size_t)1 << 20)
#define BODY_MAX ((size_t)8 << 20)
/* A keeper that is told to fetch or drop many blobs answers when it is done. */
#define ASK_STALL_MS (INT64_C(10) * 60 * 1000)

struct sg_keep_client {
    struct http_client *http, *patient;
    struct qf_tls_files *identity; /* NULL: none */
    char *key_file;
    struct qf_lock *lock; /* guards the rest */
    char *key;
    struct stat key_seen;
    int64_t key_look_ms;
};

/* --- the key --- */

static qf_rc read_key(struct sg_keep_client *client, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf text = QF_STRBUF_INIT;
    struct stat seen;
    qf_rc rc = qf_small_file_read(client->key_file, "the key for keepers and ingest nodes",
                                  KEY_BYTES_MAX, &text, &seen, err);
    struct qf_str key = qf_str_trim(qf_strbuf_view(&text));

    if (rc)
        return rc;
    if (!key.len || memchr(key.data, '\n', key.len))
        return qf_err_set(err, QF_EINVAL, "%s: expected one line with a key", client->key_file);
    free(client->key);
    client->key = qf_xmemdup0(key.data, key.len);
    client->key_seen = seen;
    return QF_OK;
}

static qf_rc read_identity(struct sg_keep_client *client,
                           const struct sg_keep_client_options *options, struct qf_err *err)
{
    const struct qf_tls_paths paths = { .cert_file = options->cert_file,
                                        .key_file = options->cert_key_file };

    if (!paths.cert_file && !paths.key_file)
        return QF_OK;
    if (!paths.cert_file || !paths.key_file)
        return qf_err_set(err, QF_EINVAL,
                          "a certificate for keepers needs its key, and a key its certificate");
    client->identity = qf_tls_files_new(&paths, err);
    return client->identity ? QF_OK : err ? err->rc : QF_EINVAL;
}

struct sg_keep_client *sg_keep_client_new(const struct sg_keep_client_options *options,
                                          struct qf_err *err)
{
    struct sg_keep_client *client = qf_xcalloc(1, sizeof(*client));
    struct http_options http = {
        .connect_timeout_ms =
            options->connect_timeout_ms ? options->connect_timeout_ms : CONNECT_MS,
        .stall_timeout_ms = options->stall_timeout_ms ? options->stall_timeout_ms : STALL_MS,
        .ca_file = options->ca_file
    };

    client->lock = qf_lock_new();
    if (read_identity(client, options, err) != QF_OK)
        return sg_keep_client_free(client);
    http.identity = client->identity;
    client->http = http_client_new(&http);
    http.stall_timeout_ms = ASK_STALL_MS;
    client->patient = http_client_new(&http);
    if (!options->key_file)
        return client;
    client->key_file = qf_xstrdup(options->key_file);
    return read_key(client, err) == QF_OK ? client : sg_keep_client_free(client);
}

struct sg_keep_client *sg_keep_client_free(struct sg_keep_client *client)
{
    if (!client)
        return NULL;
    (void)http_client_free(client->http);
    (void)http_client_free(client->patient);
    (void)qf_tls_files_free(client->identity);
    (void)qf_lock_free(client->lock);
    free(client->key_file);
    free(client->key);
    free(client);
    return NULL;
}

/* "Authorization: Bearer KEY", or NULL; a key that changed counts a second later. */
static char *authorization(struct sg_keep_client *client)
{
    struct qf_strbuf line = QF_STRBUF_INIT;
    int64_t now = qf_clock_mono_ms();
    struct qf_err err = { 0 };

    if (!client->key_file)
        return NULL;
    qf_lock_take(client->lock);
    if (now >= client->key_look_ms) {
        client->key_look_ms = now + 1000;
        if (qf_small_file_changed(client->key_file, &client->key_seen))
            (void)read_key(client, &err); /* the one before stays */
    }
    qf_strbuf_printf(&line, "Authorization: Bearer %s", client->key);
    qf_lock_drop(client->lock);
    return qf_strbuf_take(&line);
}

/* --- exchanges --- */

static qf_rc perform(struct sg_keep_client *client, bool patient, struct http_request *request,
                     const struct sg_store_limit *limit, struct http_response *response,
                     struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *key = authorization(client);

    if (key)
        request->headers[request->header_count++] = key;
    return http_perform(patient ? client->patient : client->http, request, limit, response, err);
}

static uint64_t number_of(const struct http_response *response, const char *name, int base)
{
    struct qf_str text = http_header(response, name);
    char copy[32];

    (void)snprintf(copy, sizeof(copy), "%.*s", (int)QF_MIN(text.len, sizeof(copy) - 1),
                   text.len ? text.data : "");
    return strtoull(copy, NULL, base);
}

static void read_answer(const struct http_response *response, struct sg_keep_answer *answer)
{
    *answer = (struct sg_keep_answer){
        .status = (int)response->status,
        .incarnation = number_of(response, RG_KEEP_INCARNATION, 16),
        .told = qf_str_is(http_header(response, RG_KEEP_TOLD), "1"),
        .epoch = number_of(response, RG_KEEP_EPOCH, 10),
        .size = number_of(response, "content-length", 10),
        .fresh = response->status == 201,
    };
    (void)rg_sum_parse(http_header(response, RG_KEEP_SUM), &answer->sum);
}

static qf_rc rc_of(long status)
{
    switch (status) {
    case 400:
        return QF_EINVAL;
    case 401:
        return QF_EAUTH;
    case 403:
        return QF_EDENIED;
    case 404:
        return QF_ENOTFOUND;
    case 409:
        return QF_EGONE;
    case 422:
        return QF_ECORRUPT;
    case 428:
        return QF_EEXIST;
    case 507:
        return QF_ENOSPC;
    case 412: /* a new disk: until it is told */
    case 416:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
        return QF_EUNAVAILABLE;
    default:
        return QF_EPROTO;
    }
}

/* What a keeper said if it did not do it. */
static qf_rc refused(const char *url, const struct http_response *response, struct qf_err *err)
{
    struct qf_str said = qf_str_trim(qf_strbuf_view(&response->body));

    if (response->status >= 200 && response->status < 300)
        return QF_OK;
    return qf_err_set(err, rc_of(response->status), "%s: %ld %.*s", url, response->status,
                      (int)QF_MIN(said.len, (size_t)300), said.len ? said.data : "");
}

qf_rc sg_keep_ask(struct sg_keep_client *client, const char *url, const char *method,
                  const char *path, const struct rg_keep_query *query, struct qf_str body,
                  const struct sg_store_limit *limit, struct qf_strbuf *ret_body,
                  struct sg_keep_answer *ret_answer, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf target = QF_STRBUF_INIT;
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    struct sg_store_bytes bytes = { .data = body.len ? body.data : "", .fd = -1, .size = body.len };
    struct http_request request = { .method = method, .body_len = body.len, .body_max = BODY_MAX };
    qf_rc rc;

    qf_strbuf_printf(&target, "%s%s", url, path);
    if (query)
        rg_keep_query_print(&target, query);
    request.url = qf_strbuf_cstr(&target);
    if (strcmp(method, "POST") == 0 || strcmp(method, "PUT") == 0)
        request.body = &bytes;
    *ret_answer = (struct sg_keep_answer){ 0 };
    rc = perform(client, true, &request, limit, &response, err);
    if (rc)
        return rc;
    read_answer(&response, ret_answer);
    rc = refused(url, &response, err);
    if (rc == QF_OK && ret_body)
        qf_strbuf_str(ret_body, qf_strbuf_view(&response.body));
    return rc;
}

static qf_rc exchange(struct sg_keep_client *client, struct http_request *request,
                      const struct sg_store_limit *limit, struct qf_strbuf *ret_body,
                      struct qf_err *err)
{
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    qf_rc rc = perform(client, false, request, limit, &response, err);

    if (rc == QF_OK)
        rc = refused(request->url, &response, err);
    if (rc == QF_OK)
        qf_strbuf_str(ret_body, qf_strbuf_view(&response.body));
    return rc;
}

qf_rc sg_keep_fetch(struct sg_keep_client *client, const char *url, size_t body_max,
                    const struct sg_store_limit *limit, struct qf_strbuf *ret_body,
                    struct qf_err *err)
{
    struct http_request request = { .method = "GET", .url = url, .body_max = body_max };

    return exchange(client, &request, limit, ret_body, err);
}

qf_rc sg_keep_post(struct sg_keep_client *client, const char *url, struct qf_str body,
                   size_t body_max, const struct sg_store_limit *limit, struct qf_strbuf *ret_body,
                   struct qf_err *err)
{
    struct sg_store_bytes bytes = { .data = body.len ? body.data : "", .fd = -1, .size = body.len };
    struct http_request request = {
        .method = "POST", .url = url, .body_max = body_max, .body = &bytes, .body_len = body.len
    };

    return exchange(client, &request, limit, ret_body, err);
}

/* --- put --- */

static void finish_sum(const XXH3_state_t *state, struct rg_sum *ret_sum)
{
    XXH128_canonical_t canonical;

    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
    memcpy(ret_sum->bytes, canonical.digest, sizeof(ret_sum->bytes));
}

qf_rc sg_keep_sum(const struct sg_store_bytes *bytes, struct rg_sum *ret_sum, struct qf_err *err)
{
    QF_CLEANUP(qf_freep) char *chunk = bytes->data ? NULL : qf_xmalloc(READ_BYTES);
    XXH3_state_t state;

    XXH3_128bits_reset(&state);
    for (uint64_t offset = 0; offset < bytes->size;) {
        size_t len = (size_t)QF_MIN(bytes->size - offset, (uint64_t)READ_BYTES);
        ssize_t got = (ssize_t)len;

        if (chunk)
            got = pread(bytes->fd, chunk, len, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return qf_err_set(err, QF_EIO, "cannot read what to put: %s",
                              got < 0 ? strerror(errno) : "it ends too early");
        XXH3_128bits_update(&state, chunk ? chunk : bytes->data + offset, (size_t)got);
        offset += (uint64_t)got;
    }
    finish_sum(&state, ret_sum);
    return QF_OK;
}

static qf_rc put_part(struct sg_keep_client *client, const char *url,
                      const struct rg_keep_query *query, const struct sg_store_bytes *bytes,
                      const struct sg_store_limit *limit, struct sg_keep_answer *answer,
                      struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf target = QF_STRBUF_INIT;
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    struct http_request request = { .method = "PUT", .body = bytes, .body_offset = query->from };
    qf_rc rc;

    request.body_len = QF_MIN(bytes->size - query->from, (uint64_t)RG_KEEP_PART_BYTES);
    qf_strbuf_puts(&target, url);
    qf_strbuf_puts(&target, RG_KEEP_BLOB);
    rg_keep_query_print(&target, query);
    request.url = qf_strbuf_cstr(&target);
    rc = perform(client, false, &request, limit, &response, err);
    if (rc)
        return rc;
    read_answer(&response, answer);
    return refused(url, &response, err);
}

qf_rc sg_keep_put(struct sg_keep_client *client, const char *url, const struct rg_keep_query *query,
                  const struct sg_store_bytes *bytes, const struct sg_store_limit *limit,
                  struct sg_keep_answer *ret_answer, struct qf_err *err)
{
    struct rg_keep_query part = *query;

    *ret_answer = (struct sg_keep_answer){ 0 };
    part.upload = true;
    part.size = bytes->size;
    part.from = 0;
    if (getrandom(&part.upload_id, sizeof(part.upload_id), 0) != (ssize_t)sizeof(part.upload_id))
        part.upload_id = (uint64_t)qf_clock_mono_ns();
    do {
        qf_rc rc = put_part(client, url, &part, bytes, limit, ret_answer, err);

        if (rc)
            return rc;
        part.from += QF_MIN(bytes->size - part.from, (uint64_t)RG_KEEP_PART_BYTES);
    } while (ret_answer->status == 202 && part.from < bytes->size);
    if (ret_answer->status == 202)
        return qf_err_set(err, QF_EPROTO, "%s: wants more than there is", url);
    return QF_OK;
}

/* --- get --- */

struct getting {
    const struct sg_keep_range *range;
    XXH3_state_t state;
    uint64_t len;
    qf_rc rc;
    int error;
};

static bool take_piece(void *ctx, const struct http_response *response, const void *data,
                       size_t len)
{
    struct getting *g = ctx;
    uint64_t max = g->range->len ? g->range->len : g->range->bytes_max;

    (void)response;
    if (len > max - g->len) {
        g->rc = QF_ELIMIT;
        return false;
    }
    if (g->range->fd >= 0)
        g->error = sg_store_pwrite_all(g->range->fd, data, len, g->range->file_offset + g->len);
    else
        memcpy(g->range->buf + g->len, data, len);
    if (g->error) {
        g->rc = sg_store_rc_from_errno(g->error);
        return false;
    }
    if (!g->range->len)
        XXH3_128bits_update(&g->state, data, len);
    g->len += len;
    return true;
}

/* Whether all that came is what was promised. */
static qf_rc verify(const char *url, const struct rg_keep_query *query, const struct getting *g,
                    const struct sg_keep_answer *answer, struct qf_err *err)
{
    struct rg_sum sum;

    if (g->range->len)
        return QF_OK;
    finish_sum(&g->state, &sum);
    if (memcmp(&sum, &answer->sum, sizeof(sum)) == 0)
        return QF_OK;
    return qf_err_set(err, QF_ECORRUPT, "%s: %.*s does not have its checksum", url,
                      QF_STR_ARG(query->name));
}

qf_rc sg_keep_get(struct sg_keep_client *client, const char *url, const struct rg_keep_query *query,
                  const struct sg_keep_range *range, const struct sg_store_limit *limit,
                  uint64_t *ret_len, struct sg_keep_answer *ret_answer, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf target = QF_STRBUF_INIT;
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    struct getting g = { .range = range };
    struct http_request request = { .method = "GET", .sink = take_piece, .sink_ctx = &g };
    char bytes[64];
    qf_rc rc;

    XXH3_128bits_reset(&g.state);
    qf_strbuf_puts(&target, url);
    qf_strbuf_puts(&target, RG_KEEP_BLOB);
    rg_keep_query_print(&target, query);
    request.url = qf_strbuf_cstr(&target);
    if (range->len) {
        (void)snprintf(bytes, sizeof(bytes), "Range: bytes=%" PRIu64 "-%" PRIu64, range->offset,
                       range->offset + range->len - 1);
        request.headers[request.header_count++] = bytes;
    }
    *ret_answer = (struct sg_keep_answer){ 0 };
    rc = perform(client, false, &request, limit, &response, err);
    if (g.rc)
        return qf_err_set(err, g.rc, "%.*s: %s", QF_STR_ARG(query->name),
                          g.error ? strerror(g.error) : "it has more bytes than expected");
    if (rc)
        return rc;
    read_answer(&response, ret_answer);
    *ret_len = 0;
    if (range->len && response.status == 416) /* at or behind its end */
        return QF_OK;
    rc = refused(url, &response, err);
    if (rc == QF_OK)
        rc = verify(url, query, &g, ret_answer, err);
    if (rc == QF_OK)
        *ret_len = g.len;
    return rc;
}
