/* http.c - libcurl: one easy handle inside one multi handle per exchange, both kept for the next.
 *
 * The multi handle is there so that a cancel flag is seen within POLL_MS even while a server says
 * nothing; curl_easy_perform() would look up only once a second. */
#include "segments/store/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/net/tls_files.h"
#include "base/pure/alloc.h"
#include "base/sys/thread.h"
#include "segments/store/store_int.h"

#define POLL_MS 50
#define IDLE_MAX 64                   /* handles kept for reuse */
#define HEADERS_MAX ((size_t)1 << 16) /* bytes of headers of one answer */
#define EXPECT_BYTES ((uint64_t)1 << 20)
#define EXPECT_MS 300L
#define CA_CACHE_S                                                                                 \
    1L /* authorities that changed count a second later; libcurl keeps them for a day */
#define BODY_MAX_DEFAULT ((size_t)1 << 16)

struct handle {
    CURL *easy;
    CURLM *multi;
    struct handle *next;
};

struct http_client {
    struct qf_lock *lock; /* guards idle */
    struct handle *idle;
    size_t idle_count;
    long connect_timeout_ms, stall_timeout_s;
    char *ca_file;
    struct qf_tls_files *identity;
};

struct http_client *http_client_new(const struct http_options *options)
{
    struct http_client *client = qf_xcalloc(1, sizeof(*client));

    /* libcurl counts these calls; it is never undone, since the library is needed as long as the
     * process lives. */
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    client->lock = qf_lock_new();
    client->connect_timeout_ms = (long)options->connect_timeout_ms;
    client->stall_timeout_s = (long)((options->stall_timeout_ms + 999) / 1000);
    client->ca_file = options->ca_file ? qf_xstrdup(options->ca_file) : NULL;
    client->identity = options->identity;
    return client;
}

static void handle_free(struct handle *handle)
{
    curl_easy_cleanup(handle->easy);
    (void)curl_multi_cleanup(handle->multi);
    free(handle);
}

struct http_client *http_client_free(struct http_client *client)
{
    if (!client)
        return NULL;
    for (struct handle *handle = client->idle, *next; handle; handle = next) {
        next = handle->next;
        handle_free(handle);
    }
    (void)qf_lock_free(client->lock);
    free(client->ca_file);
    free(client);
    return NULL;
}

static struct handle *take_handle(struct http_client *client)
{
    struct handle *handle;

    qf_lock_take(client->lock);
    handle = client->idle;
    if (handle) {
        client->idle = handle->next;
        client->idle_count--;
    }
    qf_lock_drop(client->lock);
    if (handle)
        return handle;
    handle = qf_xcalloc(1, sizeof(*handle));
    handle->easy = curl_easy_init();
    handle->multi = curl_multi_init();
    if (!handle->easy || !handle->multi)
        abort(); /* Out of memory, as qf_xmalloc would end. */
    return handle;
}

static void give_back(struct http_client *client, struct handle *handle)
{
    curl_easy_reset(handle->easy);
    qf_lock_take(client->lock);
    if (client->idle_count < IDLE_MAX) {
        handle->next = client->idle;
        client->idle = handle;
        client->idle_count++;
        handle = NULL;
    }
    qf_lock_drop(client->lock);
    if (handle)
        handle_free(handle);
}

void http_response_done(struct http_response *response)
{
    qf_strbuf_done(&response->headers);
    qf_strbuf_done(&response->body);
}

struct qf_str http_header(const struct http_response *response, const char *name)
{
    struct qf_str rest = qf_strbuf_view(&response->headers);
    struct qf_str want = qf_str_from(name);

    while (rest.len) {
        const char *end = memchr(rest.data, '\n', rest.len);
        struct qf_str line = qf_str_sub(rest, 0, (size_t)(end - rest.data));

        if (qf_str_starts(line, want) && line.len > want.len && line.data[want.len] == ':')
            return qf_str_trim(qf_str_sub(line, want.len + 1, line.len));
        rest = qf_str_sub(rest, line.len + 1, rest.len);
    }
    return QF_STR("");
}

/* --- what curl calls --- */

struct exchange {
    struct handle *handle;
    const struct http_request *request;
    struct http_response *response;
    uint64_t sent; /* of the body */
    bool too_large, sink_failed;
    int read_error;
};

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    struct exchange *x = arg;
    struct qf_str line = qf_str_trim((struct qf_str){ data, size * count });
    struct qf_strbuf *headers = &x->response->headers;
    const char *colon = line.len ? memchr(line.data, ':', line.len) : NULL;

    if (qf_str_starts(line, QF_STR("HTTP/"))) {
        qf_strbuf_reset(headers); /* Those before belonged to an interim answer. */
    } else if (colon) {
        size_t name_len = (size_t)(colon - line.data);

        if (headers->len + line.len + 1 > HEADERS_MAX) {
            x->too_large = true;
            return 0;
        }
        for (size_t i = 0; i < line.len; i++) {
            char c = line.data[i];

            qf_strbuf_putc(headers, i < name_len && c >= 'A' && c <= 'Z' ? (char)(c + 32) : c);
        }
        qf_strbuf_putc(headers, '\n');
    }
    return size * count;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct exchange *x = arg;
    struct http_response *response = x->response;
    size_t len = size * count;
    size_t max = x->request->body_max ? x->request->body_max : BODY_MAX_DEFAULT;

    (void)curl_easy_getinfo(x->handle->easy, CURLINFO_RESPONSE_CODE, &response->status);
    response->body_bytes += len;
    if (x->request->sink && response->status >= 200 && response->status < 300) {
        x->sink_failed = !x->request->sink(x->request->sink_ctx, response, data, len);
        return x->sink_failed ? 0 : len;
    }
    if (response->body.len + len > max) {
        x->too_large = true;
        return 0;
    }
    qf_strbuf_add(&response->body, data, len);
    return len;
}

static size_t on_read(char *to, size_t size, size_t count, void *arg)
{
    struct exchange *x = arg;
    const struct sg_store_bytes *body = x->request->body;
    uint64_t left = x->request->body_len - x->sent;
    size_t len = size * count < left ? size * count : (size_t)left;
    uint64_t offset = x->request->body_offset + x->sent;

    if (body->data) {
        memcpy(to, body->data + offset, len);
    } else {
        ssize_t got = len ? pread(body->fd, to, len, (off_t)offset) : 0;

        if (got < 0 || (got == 0 && len)) {
            x->read_error = got < 0 ? errno : EIO;
            return CURL_READFUNC_ABORT;
        }
        len = (size_t)got;
    }
    x->sent += len;
    return len;
}

/* curl starts again on a fresh connection when a kept one turned out to be closed. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
    struct exchange *x = arg;

    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > x->request->body_len)
        return CURL_SEEKFUNC_FAIL;
    x->sent = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* --- one exchange --- */

static void set_body(CURL *easy, struct exchange *x)
{
    const struct http_request *request = x->request;

    if (strcmp(request->method, "HEAD") == 0) {
        (void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
        return;
    }
    if (strcmp(request->method, "PUT") == 0 || request->body) {
        (void)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        (void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read);
        (void)curl_easy_setopt(easy, CURLOPT_READDATA, x);
        (void)curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
        (void)curl_easy_setopt(easy, CURLOPT_SEEKDATA, x);
        (void)curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->body_len);
    } else if (strcmp(request->method, "POST") == 0) {
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "");
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 0L);
    }
    (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static void set_blob(CURL *easy, CURLoption option, char *text)
{
    struct curl_blob blob = { .data = text, .len = strlen(text), .flags = CURL_BLOB_COPY };

    (void)curl_easy_setopt(easy, option, &blob);
}

/* Certificate and key as their files have them now. Connections that were made with others are not used any more: libcurl
 * compares. */
static void set_identity(const struct http_client *client, CURL *easy)
{
    const struct qf_tls_texts *texts;

    if (!client->identity)
        return;
    qf_tls_files_look(client->identity);
    texts = qf_tls_files_take(client->identity);
    set_blob(easy, CURLOPT_SSLCERT_BLOB, texts->cert);
    set_blob(easy, CURLOPT_SSLKEY_BLOB, texts->key);
    qf_tls_texts_drop(texts);
}

static void set_options(const struct http_client *client, struct exchange *x,
                        struct curl_slist *headers)
{
    CURL *easy = x->handle->easy;
    const struct http_request *request = x->request;

    (void)curl_easy_setopt(easy, CURLOPT_URL, request->url);
    (void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    (void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, client->connect_timeout_ms);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, client->stall_timeout_s);
    /* Large bodies wait for "100 Continue", so that a refusal costs no upload, but not long: some
     * servers never send it. (To forbid it with an empty header, libcurl would sign that header.)
     */
    (void)curl_easy_setopt(easy, CURLOPT_EXPECT_100_TIMEOUT_MS,
                           request->body_len > EXPECT_BYTES ? EXPECT_MS : 1L);
    (void)curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 256L * 1024);
    (void)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 256L * 1024);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "promfabric/" PROMFABRIC_VERSION);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, x);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, x);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    if (client->ca_file) {
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, client->ca_file);
        (void)curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, CA_CACHE_S);
    }
    set_identity(client, easy);
    if (request->no_proxy)
        (void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    if (request->sign) {
        (void)curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, request->sign);
        (void)curl_easy_setopt(easy, CURLOPT_USERNAME, request->access_key);
        (void)curl_easy_setopt(easy, CURLOPT_PASSWORD, request->secret_key);
    }
    set_body(easy, x);
}

/* Drive the transfer to its end, or until @limit says stop. */
static qf_rc drive(struct exchange *x, const struct sg_store_limit *limit, CURLcode *ret_result,
                   struct qf_err *err)
{
    CURLM *multi = x->handle->multi;
    int running = 1;
    qf_rc rc = QF_OK;

    *ret_result = CURLE_FAILED_INIT;
    if (curl_multi_add_handle(multi, x->handle->easy))
        return qf_err_set(err, QF_EINTERNAL, "%s: libcurl refused a handle", x->request->url);
    while (running) {
        CURLMsg *msg;
        int left;

        if (curl_multi_perform(multi, &running))
            break;
        while ((msg = curl_multi_info_read(multi, &left))) {
            if (msg->msg == CURLMSG_DONE)
                *ret_result = msg->data.result;
        }
        if (!running)
            break;
        rc = sg_store_limit_check(limit, qf_str_from(x->request->url), err);
        if (rc)
            break;
        (void)curl_multi_poll(multi, NULL, 0, (int)sg_store_limit_left(limit, POLL_MS), NULL);
    }
    (void)curl_multi_remove_handle(multi, x->handle->easy);
    return rc;
}

static qf_rc explain(const struct exchange *x, CURLcode result, const char *detail,
                     struct qf_err *err)
{
    const char *url = x->request->url;

    if (x->sink_failed)
        return QF_EIO;
    if (x->too_large)
        return qf_err_set(err, QF_EPROTO, "%s: the answer is larger than it may be", url);
    if (x->read_error)
        return qf_err_set(err, sg_store_rc_from_errno(x->read_error),
                          "%s: cannot read what to send: %s", url, strerror(x->read_error));
    switch ((int)result) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return qf_err_set(err, QF_EIO, "%s: %s", url,
                          detail[0] ? detail : curl_easy_strerror(result));
    default:
        return qf_err_set(err, QF_EUNAVAILABLE, "%s: %s", url,
                          detail[0] ? detail : curl_easy_strerror(result));
    }
}

static void reset_response(struct http_response *response)
{
    response->status = 0;
    response->body_bytes = 0;
    qf_strbuf_reset(&response->headers);
    qf_strbuf_reset(&response->body);
}

qf_rc http_perform(struct http_client *client, const struct http_request *request,
                   const struct sg_store_limit *limit, struct http_response *response,
                   struct qf_err *err)
{
    struct exchange x = { .handle = take_handle(client), .request = request, .response = response };
    struct curl_slist *headers = NULL;
    char detail[CURL_ERROR_SIZE] = "";
    CURLcode result;
    qf_rc rc;

    for (size_t i = 0; i < request->header_count; i++)
        headers = curl_slist_append(headers, request->headers[i]);
    reset_response(response);
    set_options(client, &x, headers);
    (void)curl_easy_setopt(x.handle->easy, CURLOPT_ERRORBUFFER, detail);
    rc = drive(&x, limit, &result, err);
    if (!rc && result == CURLE_OK)
        (void)curl_easy_getinfo(x.handle->easy, CURLINFO_RESPONSE_CODE, &response->status);
    else if (!rc)
        rc = explain(&x, result, detail, err);
    curl_slist_free_all(headers);
    give_back(client, x.handle);
    return rc;
}
