/* s3_request.c - one S3 request: URL, signature, tries, and what an error means. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/number.h"
#include "base/pure/prng.h"
#include "base/sys/clock.h"
#include "segments/store/s3_int.h"
#include "segments/store/xml.h"

#define SHA256_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define PAUSE_MS 50

void s3_escape(struct qf_strbuf *buf, struct qf_str text, bool path)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            (c && strchr("-_.~", c)) || (path && c == '/')) {
            qf_strbuf_putc(buf, (char)c);
        } else {
            char escaped[3] = { '%', hex[c >> 4], hex[c & 15] };

            qf_strbuf_add(buf, escaped, sizeof(escaped));
        }
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool s3_unescape(struct qf_strbuf *buf, struct qf_str text, bool plus_is_space)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (c == '%') {
            int high = text.len - i > 2 ? hex_digit(text.data[i + 1]) : -1;
            int low = text.len - i > 2 ? hex_digit(text.data[i + 2]) : -1;

            if (high < 0 || low < 0)
                return false;
            qf_strbuf_putc(buf, (char)(high << 4 | low));
            i += 2;
        } else {
            qf_strbuf_putc(buf, plus_is_space && c == '+' ? ' ' : c);
        }
    }
    return true;
}

struct qf_str s3_etag(struct qf_str text)
{
    text = qf_str_trim(text);
    if (text.len >= 2 && text.data[0] == '"' && text.data[text.len - 1] == '"')
        text = qf_str_sub(text, 1, text.len - 1);
    return text;
}

/* --- what a refusal says --- */

struct refusal {
    char code[64];
    char message[256];
};

static qf_rc on_error_element(void *ctx, const struct xml_element *element, struct qf_err *err)
{
    struct refusal *refusal = ctx;

    (void)err;
    if (qf_str_is(element->name, "Code"))
        (void)snprintf(refusal->code, sizeof(refusal->code), "%.*s", QF_STR_ARG(element->text));
    else if (qf_str_is(element->name, "Message"))
        (void)snprintf(refusal->message, sizeof(refusal->message), "%.*s",
                       QF_STR_ARG(element->text));
    return QF_OK;
}

static struct refusal read_refusal(const struct http_response *response)
{
    struct refusal refusal = { "", "" };

    /* A proxy's HTML is as good as no explanation. */
    if (xml_parse(qf_strbuf_view(&response->body), on_error_element, &refusal, NULL))
        refusal = (struct refusal){ "", "" };
    return refusal;
}

static bool is_one_of(const char *code, const char *const *codes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(code, codes[i]) == 0)
            return true;
    }
    return false;
}

static bool may_pass(long status, const struct refusal *refusal)
{
    static const char *const codes[] = { "RequestTimeout",     "SlowDown",
                                         "InternalError",      "BadDigest",
                                         "ServiceUnavailable", "XAmzContentSHA256Mismatch",
                                         "OperationAborted" };

    return status >= 500 ? status != 501
                         : status == 408 || status == 429 ||
                               is_one_of(refusal->code, codes, QF_COUNT_OF(codes));
}

static bool keys_are_old(const struct refusal *refusal)
{
    static const char *const codes[] = { "ExpiredToken",          "TokenRefreshRequired",
                                         "InvalidAccessKeyId",    "InvalidToken",
                                         "SignatureDoesNotMatch", "AccessDenied" };

    return is_one_of(refusal->code, codes, QF_COUNT_OF(codes));
}

bool s3_bucket_missing(const struct http_response *response)
{
    return response->status == 404 && strcmp(read_refusal(response).code, "NoSuchBucket") == 0;
}

static qf_rc rc_of_status(long status)
{
    switch (status) {
    case 401:
    case 403:
        return QF_EDENIED;
    case 404:
        return QF_ENOTFOUND;
    case 400:
        return QF_EINVAL;
    case 409:
    case 412:
        return QF_EEXIST;
    default:
        return status >= 500 || status == 408 || status == 429 ? QF_EIO : QF_EPROTO;
    }
}

static qf_rc fail_status(const struct s3_store *store, const struct s3_request *request,
                         const struct http_response *response, unsigned tries, struct qf_err *err)
{
    struct refusal refusal = read_refusal(response);
    struct qf_str region = http_header(response, "x-amz-bucket-region");
    char tried[32] = "";

    if (tries > 1)
        (void)snprintf(tried, sizeof(tried), " after %u tries", tries);
    if (response->status >= 300 && response->status < 400 && region.len)
        return qf_err_set(err, QF_EINVAL, "bucket %s is in region %.*s, not %s", store->bucket,
                          QF_STR_ARG(region), store->region);
    return qf_err_set(err, rc_of_status(response->status), "cannot %s %s%s%.*s%s: %ld%s%s%s%s",
                      request->what, store->base.url, request->name.len ? " object " : "",
                      QF_STR_ARG(request->name), tried, response->status,
                      refusal.code[0] ? " " : "", refusal.code, refusal.message[0] ? ": " : "",
                      refusal.message);
}

/* --- tries --- */

/* Wait before try @tries + 1: exponential, one half of it random, or as long as the server asks. */
static qf_rc pause_before_retry(const struct s3_store *store, const struct s3_request *request,
                                const struct http_response *response, unsigned tries,
                                const struct sg_store_limit *limit, struct qf_err *err)
{
    struct qf_prng prng = { (uint64_t)qf_clock_mono_ns() ^ (uint64_t)(uintptr_t)&prng };
    int64_t wait = store->backoff_min_ms;
    uint64_t asked;
    int64_t until;
    qf_rc rc;

    for (unsigned i = 1; i < tries && wait < store->backoff_max_ms; i++)
        wait *= 2;
    wait = wait < store->backoff_max_ms ? wait : store->backoff_max_ms;
    wait = wait / 2 + (int64_t)qf_prng_below(&prng, (uint64_t)(wait / 2 + 1));
    if (qf_parse_u64(http_header(response, "retry-after"), &asked) && asked < 3600 &&
        (int64_t)asked * 1000 > wait)
        wait = (int64_t)asked * 1000 < store->backoff_max_ms ? (int64_t)asked * 1000
                                                             : store->backoff_max_ms;
    until = qf_clock_mono_ms() + wait;
    for (;;) {
        int64_t left = until - qf_clock_mono_ms();
        struct timespec pause;

        rc = sg_store_limit_check(limit, request->name, err);
        if (rc || left <= 0)
            return rc;
        left = left < PAUSE_MS ? left : PAUSE_MS;
        pause = (struct timespec){ .tv_nsec = (long)left * 1000000 };
        (void)nanosleep(&pause, NULL);
    }
}

static void print_url(struct qf_strbuf *url, const struct s3_store *store,
                      const struct s3_request *request)
{
    qf_strbuf_puts(url, store->root);
    if (request->name.len) {
        s3_escape(url, qf_str_from(store->key_prefix), true);
        s3_escape(url, request->name, true);
    }
    if (request->query)
        qf_strbuf_printf(url, "?%s", request->query);
}

static qf_rc send_once(struct s3_store *store, const struct s3_request *request, const char *url,
                       const struct credentials *keys, const struct sg_store_limit *limit,
                       struct http_response *response, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf sha256 = QF_STRBUF_INIT, token = QF_STRBUF_INIT;
    struct http_request http = {
        .method = request->method,
        .url = url,
        .body = request->body,
        .body_offset = request->body_offset,
        .body_len = request->body_len,
        .sink = request->sink,
        .sink_ctx = request->sink_ctx,
        .body_max = request->body_max,
    };

    for (size_t i = 0; i < request->header_count; i++)
        http.headers[http.header_count++] = request->headers[i];
    if (!store->anonymous) {
        qf_strbuf_printf(&sha256, "x-amz-content-sha256: %s",
                         request->body_sha256 ? request->body_sha256 : SHA256_OF_NOTHING);
        http.headers[http.header_count++] = qf_strbuf_cstr(&sha256);
        if (keys->token[0]) {
            qf_strbuf_printf(&token, "x-amz-security-token: %s", keys->token);
            http.headers[http.header_count++] = qf_strbuf_cstr(&token);
        }
        http.sign = store->sign;
        http.access_key = keys->access_key;
        http.secret_key = keys->secret_key;
    }
    atomic_fetch_add_explicit(&store->base.requests, 1, memory_order_relaxed);
    if (request->restart)
        request->restart(request->sink_ctx);
    return http_perform(store->http, &http, limit, response, err);
}

/* One try. *ret_again: the failure may pass, try again. */
static qf_rc try_once(struct s3_store *store, const struct s3_request *request, const char *url,
                      const struct sg_store_limit *limit, unsigned tries,
                      struct http_response *response, bool *ret_again, struct qf_err *err)
{
    QF_CLEANUP(credentials_done) struct credentials keys = { 0 };
    struct refusal refusal;
    qf_rc rc = store->anonymous ? QF_OK : credentials_get(store->credentials, limit, &keys, err);

    *ret_again = false;
    if (rc)
        return rc;
    rc = send_once(store, request, url, &keys, limit, response, err);
    if (rc == QF_EUNAVAILABLE) {
        *ret_again = true;
        rc = QF_EIO;
        if (err)
            err->rc = QF_EIO;
        return qf_err_prefix(
            err, rc, "cannot %s %.*s after %u tries", request->what,
            QF_STR_ARG(request->name.len ? request->name : qf_str_from(store->bucket)), tries);
    }
    if (rc)
        return rc;
    if (response->status >= 200 && response->status < 300) {
        rc = request->check ? request->check(request->sink_ctx, response, err) : QF_OK;
        *ret_again = rc == QF_ECORRUPT || rc == QF_EIO;
        return rc;
    }
    if (response->status == 416)
        return QF_OK;
    refusal = read_refusal(response);
    *ret_again = may_pass(response->status, &refusal);
    /* Keys that can be renewed are, once: they may have been rotated or have ended early. */
    if (!store->anonymous && tries == 1 && keys_are_old(&refusal) &&
        credentials_refused(store->credentials, &keys))
        *ret_again = true;
    return fail_status(store, request, response, tries, err);
}

qf_rc s3_perform(struct s3_store *store, const struct s3_request *request,
                 const struct sg_store_limit *limit, struct http_response *response,
                 struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf url = QF_STRBUF_INIT;

    print_url(&url, store, request);
    for (unsigned tries = 1;; tries++) {
        struct qf_err last = { 0 };
        bool again;
        qf_rc rc =
            try_once(store, request, qf_strbuf_cstr(&url), limit, tries, response, &again, &last);

        if (rc && again && tries < store->attempts_max) {
            atomic_fetch_add_explicit(&store->base.retries, 1, memory_order_relaxed);
            rc = pause_before_retry(store, request, response, tries, limit, err);
            if (!rc)
                continue;
            /* Out of time: the error of the last try tells more than that. */
            return qf_err_prefix(err, rc, "%s", last.msg);
        }
        if (rc)
            (void)qf_err_set(err, rc, "%s", last.msg);
        return rc;
    }
}
