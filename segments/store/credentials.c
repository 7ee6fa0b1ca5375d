/* credentials.c - keys from options, environment, files, STS and container endpoints. */
#include "segments/store/credentials.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"

#define RENEW_BEFORE_MS (5 * 60 * 1000)
#define FILE_BYTES_MAX ((size_t)1 << 20)
#define FETCH_ATTEMPTS 3
#define RENEW_EVERY_MS 10000 /* while renewal fails and the old keys still serve */

struct credentials_source {
    struct qf_lock *lock; /* guards keys; held while they are fetched, so that one thread does it */
    struct credentials keys;
    bool have_keys;
    int64_t renew_mono_ms; /* no attempt to renew before that */
    struct credentials given;
    char *profile, *region;
    struct http_client *http;
};

/* --- keys --- */

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void credentials_done(struct credentials *credentials)
{
    wipe(credentials->access_key);
    wipe(credentials->secret_key);
    wipe(credentials->token);
    *credentials = (struct credentials){ 0 };
}

static struct credentials keys_from(const char *access_key, const char *secret_key,
                                    const char *token)
{
    return (struct credentials){ .access_key = qf_xstrdup(access_key),
                                 .secret_key = qf_xstrdup(secret_key),
                                 .token = qf_xstrdup(token ? token : ""),
                                 .expires_ms = QF_TIME_NEVER };
}

static struct credentials keys_copy(const struct credentials *keys)
{
    struct credentials copy = keys_from(keys->access_key, keys->secret_key, keys->token);

    copy.expires_ms = keys->expires_ms;
    copy.renewable = keys->renewable;
    return copy;
}

static const char *env(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] ? value : NULL;
}

struct credentials_source *credentials_source_new(const struct credentials_options *options)
{
    struct credentials_source *source = qf_xcalloc(1, sizeof(*source));
    const char *profile = options->profile ? options->profile : env("AWS_PROFILE");

    source->lock = qf_lock_new();
    source->profile = qf_xstrdup(profile ? profile : "default");
    source->region = qf_xstrdup(options->region);
    source->http = options->http;
    if (options->access_key && options->secret_key)
        source->given = keys_from(options->access_key, options->secret_key, options->session_token);
    /* A profile asked for by name counts more than keys that happen to be in the environment. */
    else if (!options->profile && env("AWS_ACCESS_KEY_ID") && env("AWS_SECRET_ACCESS_KEY"))
        source->given = keys_from(env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY"),
                                  env("AWS_SESSION_TOKEN"));
    return source;
}

struct credentials_source *credentials_source_free(struct credentials_source *source)
{
    if (!source)
        return NULL;
    credentials_done(&source->keys);
    credentials_done(&source->given);
    free(source->profile);
    free(source->region);
    (void)qf_lock_free(source->lock);
    free(source);
    return NULL;
}

/* --- files --- */

/* The whole of a small file, NUL-terminated; NULL with errno if that fails. */
static char *read_file(const char *path)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf buf = { .limit = FILE_BYTES_MAX };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = -1;

    if (fd < 0)
        return NULL;
    while (!buf.overflowed) {
        char chunk[4096];

        got = read(fd, chunk, sizeof(chunk));
        if (got <= 0)
            break;
        qf_strbuf_add(&buf, chunk, (size_t)got);
    }
    (void)close(fd);
    if (got < 0 || buf.overflowed) {
        errno = buf.overflowed ? EFBIG : errno;
        return NULL;
    }
    return qf_strbuf_take(&buf);
}

static char *home_path(const char *variable, const char *name)
{
    struct qf_strbuf path = QF_STRBUF_INIT;

    if (env(variable))
        return qf_xstrdup(env(variable));
    if (!env("HOME"))
        return NULL;
    qf_strbuf_printf(&path, "%s/.aws/%s", env("HOME"), name);
    return qf_strbuf_take(&path);
}

static struct qf_str next_line(struct qf_str *rest)
{
    const char *end = memchr(rest->data, '\n', rest->len);
    struct qf_str line = qf_str_sub(*rest, 0, end ? (size_t)(end - rest->data) : rest->len);

    *rest = qf_str_sub(*rest, line.len + (end != NULL), rest->len);
    return qf_str_trim(line);
}

/* True if "[...]" opens the section of @profile. */
static bool is_section(struct qf_str line, const char *profile, bool in_config)
{
    struct qf_str name = qf_str_trim(qf_str_sub(line, 1, line.len - 1));

    if (in_config && qf_str_starts(name, QF_STR("profile ")))
        return qf_str_is(qf_str_trim(qf_str_sub(name, 8, name.len)), profile);
    return qf_str_is(name, profile) && (!in_config || strcmp(profile, "default") == 0);
}

char *credentials_ini_get(struct qf_str text, const char *profile, bool in_config, const char *key)
{
    bool inside = false;

    while (text.len) {
        struct qf_str line = next_line(&text);
        const char *equals;
        struct qf_str value;

        if (!line.len || line.data[0] == '#' || line.data[0] == ';')
            continue;
        if (line.data[0] == '[' && line.data[line.len - 1] == ']') {
            inside = is_section(line, profile, in_config);
            continue;
        }
        equals = memchr(line.data, '=', line.len);
        if (!inside || !equals)
            continue;
        if (!qf_str_is(qf_str_trim(qf_str_sub(line, 0, (size_t)(equals - line.data))), key))
            continue;
        value = qf_str_trim(qf_str_sub(line, (size_t)(equals - line.data) + 1, line.len));
        return value.len ? qf_xmemdup0(value.data, value.len) : NULL;
    }
    return NULL;
}

char *credentials_config_get(const char *profile, const char *key)
{
    QF_CLEANUP(qf_freep) char *path = home_path("AWS_CONFIG_FILE", "config");
    QF_CLEANUP(qf_freep) char *text = path ? read_file(path) : NULL;

    return text ? credentials_ini_get(qf_str_from(text), profile, true, key) : NULL;
}

static bool keys_from_file(const char *path, const char *profile, bool in_config,
                           struct credentials *ret_keys)
{
    char *text = path ? read_file(path) : NULL;
    struct credentials keys = { .expires_ms = QF_TIME_NEVER, .renewable = true };
    struct qf_str ini;
    bool found;

    if (!text)
        return false;
    ini = qf_str_from(text);
    keys.access_key = credentials_ini_get(ini, profile, in_config, "aws_access_key_id");
    keys.secret_key = credentials_ini_get(ini, profile, in_config, "aws_secret_access_key");
    keys.token = credentials_ini_get(ini, profile, in_config, "aws_session_token");
    wipe(text);
    found = keys.access_key && keys.secret_key;
    if (!found) {
        credentials_done(&keys);
        return false;
    }
    if (!keys.token)
        keys.token = qf_xstrdup("");
    *ret_keys = keys;
    return true;
}

static bool keys_from_files(const char *profile, struct credentials *ret_keys)
{
    QF_CLEANUP(qf_freep) char *shared = home_path("AWS_SHARED_CREDENTIALS_FILE", "credentials");
    QF_CLEANUP(qf_freep) char *config = home_path("AWS_CONFIG_FILE", "config");

    return keys_from_file(shared, profile, false, ret_keys) ||
           keys_from_file(config, profile, true, ret_keys);
}

/* --- endpoints --- */

/* Ask an endpoint a few times; an answer other than 200 is an error that shows its beginning. */
static qf_rc fetch(struct credentials_source *source, const struct http_request *request,
                   const struct sg_store_limit *limit, const char *who,
                   struct http_response *response, struct qf_err *err)
{
    qf_rc rc = QF_EUNAVAILABLE;

    for (int i = 0; i < FETCH_ATTEMPTS; i++) {
        struct qf_err last = { 0 };

        rc = http_perform(source->http, request, limit, response, &last);
        if (rc == QF_ECANCELED || rc == QF_ETIMEOUT)
            return qf_err_set(err, rc, "%s", last.msg);
        if (!rc && response->status == 200)
            return QF_OK;
        if (!rc && response->status < 500)
            break;
        if (i == FETCH_ATTEMPTS - 1 && rc)
            return qf_err_set(err, QF_EAUTH, "credentials from %s: %s", who, last.msg);
        (void)usleep(100000u << i);
    }
    return qf_err_set(err, QF_EAUTH, "credentials from %s: status %ld: %.200s", who,
                      response->status, qf_strbuf_cstr(&response->body));
}

/* Keys may be asked for over plain HTTP only where nobody can listen: this machine, or the
 * addresses of ECS and EKS. */
static bool host_is_local(const char *host)
{
    static const char *const v4[] = { "169.254.170.2", "169.254.170.23" };
    struct in_addr address;

    if (strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
        strcmp(host, "[fd00:ec2::23]") == 0)
        return true;
    if (inet_pton(AF_INET, host, &address) != 1)
        return false;
    return ntohl(address.s_addr) >> 24 == 127 || strcmp(host, v4[0]) == 0 ||
           strcmp(host, v4[1]) == 0;
}

static bool full_uri_allowed(const char *uri)
{
    char host[64];
    size_t len;

    if (strncmp(uri, "https://", 8) == 0)
        return true;
    if (strncmp(uri, "http://", 7) != 0)
        return false;
    uri += 7;
    len = uri[0] == '[' ? strcspn(uri, "]/") + 1 : strcspn(uri, ":/");
    if (len >= sizeof(host) || len > strlen(uri) || !strchr(":/", uri[len]))
        return false;
    memcpy(host, uri, len);
    host[len] = '\0';
    return host_is_local(host);
}

static qf_rc keys_from_container(struct credentials_source *source,
                                 const struct sg_store_limit *limit, struct credentials *ret_keys,
                                 struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf url = QF_STRBUF_INIT, header = QF_STRBUF_INIT;
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    QF_CLEANUP(qf_freep) char *token = NULL;
    const char *relative = env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    struct http_request request = { .method = "GET", .no_proxy = true };
    qf_rc rc;

    if (relative)
        qf_strbuf_printf(&url, "http://169.254.170.2%s", relative);
    else
        qf_strbuf_puts(&url, env("AWS_CONTAINER_CREDENTIALS_FULL_URI"));
    if (!full_uri_allowed(qf_strbuf_cstr(&url)))
        return qf_err_set(err, QF_EAUTH, "credentials from %s: only https or a local address",
                          qf_strbuf_cstr(&url));
    if (env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
        token = read_file(env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"));
        if (!token)
            return qf_err_set(err, QF_EAUTH, "credentials: cannot read %s: %s",
                              env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"), strerror(errno));
    } else if (env("AWS_CONTAINER_AUTHORIZATION_TOKEN")) {
        token = qf_xstrdup(env("AWS_CONTAINER_AUTHORIZATION_TOKEN"));
    }
    request.url = qf_strbuf_cstr(&url);
    if (token) {
        struct qf_str trimmed = qf_str_trim(qf_str_from(token));

        if (trimmed.len && memchr(trimmed.data, '\n', trimmed.len))
            return qf_err_set(err, QF_EAUTH, "credentials: the authorization token has two lines");
        qf_strbuf_printf(&header, "Authorization: %.*s", QF_STR_ARG(trimmed));
        request.headers[request.header_count++] = qf_strbuf_cstr(&header);
    }
    rc = fetch(source, &request, limit, "the container endpoint", &response, err);
    return rc ? rc : credentials_read_container(qf_strbuf_view(&response.body), ret_keys, err);
}

static void add_form(struct qf_strbuf *form, const char *key, struct qf_str value)
{
    qf_strbuf_printf(form, "%s%s=", form->len ? "&" : "", key);
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.data[i];

        if (isalnum(c) || strchr("-_.~", c))
            qf_strbuf_putc(form, (char)c);
        else
            qf_strbuf_printf(form, "%%%02X", c);
    }
}

static qf_rc ask_sts(struct credentials_source *source, struct qf_str form,
                     const struct sg_store_limit *limit, struct http_response *response,
                     struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf url = QF_STRBUF_INIT;
    struct sg_store_bytes body = { .data = form.data, .fd = -1, .size = form.len };
    struct http_request request = {
        .method = "POST",
        .headers = { "Content-Type: application/x-www-form-urlencoded" },
        .header_count = 1,
        .body = &body,
        .body_len = form.len,
    };

    if (env("AWS_ENDPOINT_URL_STS"))
        qf_strbuf_puts(&url, env("AWS_ENDPOINT_URL_STS"));
    else
        qf_strbuf_printf(&url, "https://sts.%s.amazonaws.com/", source->region);
    request.url = qf_strbuf_cstr(&url);
    return fetch(source, &request, limit, "STS", response, err);
}

static qf_rc keys_from_web_identity(struct credentials_source *source,
                                    const struct sg_store_limit *limit,
                                    struct credentials *ret_keys, struct qf_err *err)
{
    const char *path = env("AWS_WEB_IDENTITY_TOKEN_FILE");
    const char *session = env("AWS_ROLE_SESSION_NAME");
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf form = QF_STRBUF_INIT;
    QF_CLEANUP(http_response_done) struct http_response response = { 0 };
    char *token = read_file(path);
    qf_rc rc;

    if (!token)
        return qf_err_set(err, QF_EAUTH, "credentials: cannot read %s: %s", path, strerror(errno));
    add_form(&form, "Action", QF_STR("AssumeRoleWithWebIdentity"));
    add_form(&form, "Version", QF_STR("2011-06-15"));
    add_form(&form, "RoleArn", qf_str_from(env("AWS_ROLE_ARN")));
    add_form(&form, "RoleSessionName", qf_str_from(session ? session : "promfabric"));
    add_form(&form, "WebIdentityToken", qf_str_trim(qf_str_from(token)));
    wipe(token);
    rc = ask_sts(source, qf_strbuf_view(&form), limit, &response, err);
    return rc ? rc : credentials_read_sts(qf_strbuf_view(&response.body), ret_keys, err);
}

/* --- the chain --- */

static qf_rc find_keys(struct credentials_source *source, const struct sg_store_limit *limit,
                       struct credentials *ret_keys, struct qf_err *err)
{
    if (source->given.access_key) {
        *ret_keys = keys_copy(&source->given);
        return QF_OK;
    }
    if (env("AWS_WEB_IDENTITY_TOKEN_FILE") && env("AWS_ROLE_ARN"))
        return keys_from_web_identity(source, limit, ret_keys, err);
    if (keys_from_files(source->profile, ret_keys))
        return QF_OK;
    if (env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") || env("AWS_CONTAINER_CREDENTIALS_FULL_URI"))
        return keys_from_container(source, limit, ret_keys, err);
    return qf_err_set(err, QF_EAUTH,
                      "no S3 credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, give "
                      "profile \"%s\" keys in ~/.aws/credentials, or add anonymous=1 to the URL",
                      source->profile);
}

static bool renewal_is_due(const struct credentials_source *source, int64_t now_ms)
{
    if (!source->have_keys || source->keys.expires_ms <= now_ms)
        return true;
    return source->keys.expires_ms - RENEW_BEFORE_MS < now_ms &&
           qf_clock_mono_ms() >= source->renew_mono_ms;
}

qf_rc credentials_get(struct credentials_source *source, const struct sg_store_limit *limit,
                      struct credentials *ret_keys, struct qf_err *err)
{
    int64_t now = qf_clock_wall_ms();
    qf_rc rc = QF_OK;

    qf_lock_take(source->lock);
    if (renewal_is_due(source, now)) {
        struct credentials fresh = { 0 };
        struct qf_err why = { 0 };

        rc = find_keys(source, limit, &fresh, &why);
        if (!rc) {
            credentials_done(&source->keys);
            source->keys = fresh;
            source->have_keys = true;
        } else if (source->have_keys && source->keys.expires_ms > now) {
            rc = QF_OK;
            source->renew_mono_ms = qf_clock_mono_ms() + RENEW_EVERY_MS;
        } else {
            (void)qf_err_set(err, rc, "%s", why.msg);
        }
    }
    if (!rc)
        *ret_keys = keys_copy(&source->keys);
    qf_lock_drop(source->lock);
    return rc;
}

bool credentials_refused(struct credentials_source *source, const struct credentials *used)
{
    if (!used->renewable)
        return false;
    qf_lock_take(source->lock);
    if (source->have_keys && strcmp(source->keys.access_key, used->access_key) == 0 &&
        strcmp(source->keys.token, used->token) == 0)
        source->have_keys = false;
    qf_lock_drop(source->lock);
    return true;
}
