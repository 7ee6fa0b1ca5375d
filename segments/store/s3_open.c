/* s3_open.c - from an s3:// URL and the environment to a store, or to what is wrong with them. */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "segments/store/s3_int.h"

#define ATTEMPTS_DEFAULT 5
#define CONNECT_TIMEOUT_DEFAULT_MS 5000
#define STALL_TIMEOUT_DEFAULT_MS 20000
#define BACKOFF_MIN_DEFAULT_MS 100
#define BACKOFF_MAX_DEFAULT_MS 5000
#define PART_BYTES_DEFAULT (UINT64_C(16) << 20)

/* Parameters of the URL; NULL where one is not given. */
struct parameters {
    char *endpoint, *region, *style, *profile, *anonymous, *etag;
};

static void parameters_done(struct parameters *p)
{
    free(p->endpoint);
    free(p->region);
    free(p->style);
    free(p->profile);
    free(p->anonymous);
    free(p->etag);
}

static char **parameter_slot(struct parameters *p, struct qf_str name)
{
    const struct {
        const char *name;
        char **slot;
    } known[] = {
        { "endpoint", &p->endpoint }, { "region", &p->region },       { "style", &p->style },
        { "profile", &p->profile },   { "anonymous", &p->anonymous }, { "etag", &p->etag },
    };

    for (size_t i = 0; i < QF_COUNT_OF(known); i++) {
        if (qf_str_is(name, known[i].name))
            return known[i].slot;
    }
    return NULL;
}

static qf_rc parse_parameters(struct qf_str text, struct parameters *ret, struct qf_err *err)
{
    while (text.len) {
        const char *end = memchr(text.data, '&', text.len);
        struct qf_str pair = qf_str_sub(text, 0, end ? (size_t)(end - text.data) : text.len);
        const char *equals = pair.len ? memchr(pair.data, '=', pair.len) : NULL;
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf value = QF_STRBUF_INIT;
        char **slot;

        text = qf_str_sub(text, pair.len + 1, text.len);
        if (!pair.len)
            continue;
        slot =
            equals ? parameter_slot(ret, qf_str_sub(pair, 0, (size_t)(equals - pair.data))) : NULL;
        if (!slot)
            return qf_err_set(err, QF_EINVAL,
                              "S3 URL: unknown parameter \"%.*s\"; there are endpoint, region, "
                              "style, profile, anonymous and etag",
                              QF_STR_ARG(pair));
        if (!s3_unescape(&value, qf_str_sub(pair, (size_t)(equals - pair.data) + 1, pair.len),
                         false))
            return qf_err_set(err, QF_EINVAL, "S3 URL: bad escape in \"%.*s\"", QF_STR_ARG(pair));
        free(*slot);
        *slot = value.len ? qf_strbuf_take(&value) : NULL;
    }
    return QF_OK;
}

static void default_from_env(char **slot, const char *first, const char *second)
{
    const char *value = *slot ? NULL : getenv(first);

    if (!*slot && (!value || !value[0]) && second)
        value = getenv(second);
    if (!*slot && value && value[0])
        *slot = qf_xstrdup(value);
}

static bool all_in(struct qf_str text, const char *extra)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              (c && strchr(extra, c))))
            return false;
    }
    return text.len > 0;
}

/* "http://host:port" without a slash behind it. */
static qf_rc check_endpoint(char *endpoint, struct qf_err *err)
{
    size_t len = strlen(endpoint);
    size_t scheme = strncmp(endpoint, "http://", 7) == 0    ? 7
                    : strncmp(endpoint, "https://", 8) == 0 ? 8
                                                            : 0;

    while (len && endpoint[len - 1] == '/')
        endpoint[--len] = '\0';
    if (!scheme || !all_in(qf_str_from(endpoint + scheme), "-._~:[]"))
        return qf_err_set(err, QF_EINVAL, "S3 endpoint \"%s\": want http://host:port or https://",
                          endpoint);
    return QF_OK;
}

static qf_rc check_parameters(struct parameters *p, struct qf_err *err)
{
    if (p->endpoint && check_endpoint(p->endpoint, err))
        return QF_EINVAL;
    if (!all_in(qf_str_from(p->region), "-_"))
        return qf_err_set(err, QF_EINVAL, "S3 region \"%s\" cannot be", p->region);
    if (p->style && strcmp(p->style, "path") != 0 && strcmp(p->style, "virtual") != 0)
        return qf_err_set(err, QF_EINVAL, "S3 style \"%s\": want path or virtual", p->style);
    if (p->anonymous && strcmp(p->anonymous, "1") != 0 && strcmp(p->anonymous, "0") != 0)
        return qf_err_set(err, QF_EINVAL, "S3 anonymous \"%s\": want 1 or 0", p->anonymous);
    if (p->etag && strcmp(p->etag, "opaque") != 0 && strcmp(p->etag, "md5") != 0)
        return qf_err_set(err, QF_EINVAL, "S3 etag \"%s\": want opaque or md5", p->etag);
    return QF_OK;
}

static qf_rc take_parameters(struct qf_str text, struct parameters *ret, struct qf_err *err)
{
    qf_rc rc = parse_parameters(text, ret, err);

    if (rc)
        return rc;
    default_from_env(&ret->endpoint, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
    default_from_env(&ret->region, "AWS_REGION", "AWS_DEFAULT_REGION");
    if (!ret->region) {
        const char *profile = ret->profile ? ret->profile : getenv("AWS_PROFILE");

        ret->region = credentials_config_get(profile && profile[0] ? profile : "default", "region");
    }
    if (!ret->region)
        ret->region = qf_xstrdup("us-east-1");
    return check_parameters(ret, err);
}

/* The URL of the bucket, with a slash behind it. */
static char *bucket_url(const char *bucket, const struct parameters *p)
{
    struct qf_strbuf url = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf amazon = QF_STRBUF_INIT;
    const char *endpoint = p->endpoint;
    bool path = p->style ? strcmp(p->style, "path") == 0 : endpoint || strchr(bucket, '.');
    const char *host;

    qf_strbuf_printf(&amazon, "https://s3.%s.amazonaws.com", p->region);
    endpoint = endpoint ? endpoint : qf_strbuf_cstr(&amazon);
    host = strstr(endpoint, "://") + 3;
    if (path)
        qf_strbuf_printf(&url, "%s/%s/", endpoint, bucket);
    else
        qf_strbuf_printf(&url, "%.*s%s.%s/", (int)(host - endpoint), endpoint, bucket, host);
    return qf_strbuf_take(&url);
}

static char *canonical_url(const struct s3_store *store, const struct parameters *p)
{
    struct qf_strbuf url = QF_STRBUF_INIT;
    const struct {
        const char *name, *value;
    } shown[] = {
        { "endpoint", p->endpoint },
        { "region", p->region },
        { "style", p->style },
        { "profile", p->profile },
        { "anonymous", store->anonymous ? "1" : NULL },
        { "etag", store->opaque_etags ? "opaque" : NULL },
    };
    char separator = '?';

    qf_strbuf_printf(&url, "s3://%s", store->bucket);
    if (store->key_prefix[0])
        qf_strbuf_printf(&url, "/%.*s", (int)strlen(store->key_prefix) - 1, store->key_prefix);
    for (size_t i = 0; i < QF_COUNT_OF(shown); i++) {
        if (!shown[i].value)
            continue;
        qf_strbuf_printf(&url, "%c%s=", separator, shown[i].name);
        s3_escape(&url, qf_str_from(shown[i].value), true);
        separator = '&';
    }
    return qf_strbuf_take(&url);
}

/* "bucket/some/prefix" to its parts. */
static qf_rc take_place(struct s3_store *store, struct qf_str place, struct qf_err *err)
{
    const char *slash = place.len ? memchr(place.data, '/', place.len) : NULL;
    struct qf_str bucket = qf_str_sub(place, 0, slash ? (size_t)(slash - place.data) : place.len);
    struct qf_str prefix = qf_str_sub(place, bucket.len + 1, place.len);

    while (prefix.len && prefix.data[prefix.len - 1] == '/')
        prefix.len--;
    if (bucket.len > 255 || !all_in(bucket, "-._") || bucket.data[0] == '.')
        return qf_err_set(err, QF_EINVAL, "S3 URL: \"%.*s\" is not a bucket's name",
                          QF_STR_ARG(bucket));
    if (prefix.len && (!sg_store_name_valid(prefix) || prefix.len > SG_STORE_NAME_MAX / 2))
        return qf_err_set(err, QF_EINVAL, "S3 URL: \"%.*s\" is not a prefix", QF_STR_ARG(prefix));
    store->bucket = qf_xmemdup0(bucket.data, bucket.len);
    store->key_prefix = qf_xmalloc(prefix.len + 2);
    (void)snprintf(store->key_prefix, prefix.len + 2, "%.*s%s", QF_STR_ARG(prefix),
                   prefix.len ? "/" : "");
    return QF_OK;
}

static int64_t or_default(int64_t value, int64_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static void take_options(struct s3_store *store, const struct sg_store_options *options,
                         const struct parameters *p)
{
    const char *ca_file = getenv("AWS_CA_BUNDLE");
    struct http_options http = {
        .connect_timeout_ms = or_default(options->connect_timeout_ms, CONNECT_TIMEOUT_DEFAULT_MS),
        .stall_timeout_ms = or_default(options->stall_timeout_ms, STALL_TIMEOUT_DEFAULT_MS),
        .ca_file = ca_file && ca_file[0] ? ca_file : NULL,
    };
    struct credentials_options credentials = {
        .access_key = options->access_key,
        .secret_key = options->secret_key,
        .session_token = options->session_token,
        .profile = p->profile,
        .region = p->region,
    };

    store->attempts_max = options->attempts_max ? options->attempts_max : ATTEMPTS_DEFAULT;
    store->backoff_min_ms = or_default(options->backoff_min_ms, BACKOFF_MIN_DEFAULT_MS);
    store->backoff_max_ms = or_default(options->backoff_max_ms, BACKOFF_MAX_DEFAULT_MS);
    store->part_bytes = options->part_bytes ? options->part_bytes : PART_BYTES_DEFAULT;
    store->http = http_client_new(&http);
    credentials.http = store->http;
    store->credentials = credentials_source_new(&credentials);
}

qf_rc s3_store_open(const struct sg_store_options *options, struct qf_str rest,
                    struct sg_store **ret_store, struct qf_err *err)
{
    QF_CLEANUP(parameters_done) struct parameters p = { 0 };
    const char *question = rest.len ? memchr(rest.data, '?', rest.len) : NULL;
    size_t place_len = question ? (size_t)(question - rest.data) : rest.len;
    struct s3_store *store = qf_xcalloc(1, sizeof(*store));
    struct qf_strbuf sign = QF_STRBUF_INIT;
    qf_rc rc = take_place(store, qf_str_sub(rest, 0, place_len), err);

    store->base.ops = &s3_ops;
    if (!rc)
        rc = take_parameters(qf_str_sub(rest, place_len + 1, rest.len), &p, err);
    if (rc) {
        (void)sg_store_free(&store->base);
        return rc;
    }
    store->anonymous = p.anonymous && p.anonymous[0] == '1';
    store->opaque_etags = p.etag && strcmp(p.etag, "opaque") == 0;
    store->region = qf_xstrdup(p.region);
    store->root = bucket_url(store->bucket, &p);
    qf_strbuf_printf(&sign, "aws:amz:%s:s3", p.region);
    store->sign = qf_strbuf_take(&sign);
    store->base.url = canonical_url(store, &p);
    take_options(store, options, &p);
    *ret_store = &store->base;
    return QF_OK;
}
