/* kubernetes.c - workers from the EndpointSlices of a headless service.
 *
 * List, then watch from the version the list shows until something changes, then list again: there
 * is no copy of the cluster's state that events could leave half changed. Lists come in pages. A
 * watch or a page whose version the server has forgotten (410) is answered by a fresh list. */
#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "queryapi/discovery/discovery_int.h"

#define ANSWER_BYTES_MAX ((size_t)8 << 20)
#define WATCH_SECONDS 30
#define PAGE_SLICES 500 /* what kubectl asks for at once */
#define PAGES_MAX 64
#define CONTINUE_MAX 2048
#define GONE 410 /* the version or the page asked for is too old */
#define SECRETS "/var/run/secrets/kubernetes.io/serviceaccount"

/* The number of the port called @name in a slice; 0 if it has none. */
static long long slice_port(const json_t *slice, const char *name)
{
    const json_t *ports = json_object_get(slice, "ports"), *port;
    size_t i;

    json_array_foreach(ports, i, port)
    {
        const char *called = json_string_value(json_object_get(port, "name"));

        if (!name || (called && strcmp(called, name) == 0))
            return json_integer_value(json_object_get(port, "port"));
    }
    return 0;
}

/* Serving is what counts; servers that do not say mean "ready". */
static bool endpoint_serves(const json_t *endpoint)
{
    const json_t *conditions = json_object_get(endpoint, "conditions");
    const json_t *serving = json_object_get(conditions, "serving");
    const json_t *ready = json_object_get(conditions, "ready");

    if (json_is_boolean(serving))
        return json_is_true(serving);
    return !json_is_boolean(ready) || json_is_true(ready);
}

static enum qa_host_form slice_form(const json_t *slice)
{
    const char *type = json_string_value(json_object_get(slice, "addressType"));

    if (type && strcmp(type, "IPv6") == 0)
        return QA_HOST_IPV6;
    return type && strcmp(type, "IPv4") == 0 ? QA_HOST_IPV4 : QA_HOST_NAME;
}

static void add_slice(const json_t *slice, const char *port_name, struct endpoints *list)
{
    const json_t *endpoints = json_object_get(slice, "endpoints"), *endpoint, *address;
    enum qa_host_form form = slice_form(slice);
    long long port = slice_port(slice, port_name);
    size_t i, k;

    if (port <= 0 || port > 65535)
        return;
    json_array_foreach(endpoints, i, endpoint)
    {
        if (!endpoint_serves(endpoint))
            continue;
        json_array_foreach(json_object_get(endpoint, "addresses"), k, address)
        {
            const char *host = json_string_value(address);

            if (host && qa_is_host(host, form))
                qa_endpoints_add(list, form == QA_HOST_IPV6 ? "[%s]:%lld" : "%s:%lld", host, port);
        }
    }
}

/* What a list says of itself. */
struct page {
    char version[VERSION_MAX];
    char more[CONTINUE_MAX]; /* where the next page begins, "" if there is none */
};

/* Copy the string @key of @object, "" if there is none; false if it does not fit. */
static bool copy_string(const json_t *object, const char *key, char *out, size_t size)
{
    const char *value = json_string_value(json_object_get(object, key));

    return (size_t)snprintf(out, size, "%s", value ? value : "") < size;
}

static qf_rc parse(struct qf_str json, const char *port_name, struct endpoints *list,
                   struct page *ret_page, struct qf_err *err)
{
    json_error_t problem;
    json_t *root = json_loadb(json.data ? json.data : "", json.len, 0, &problem);
    const json_t *items, *slice, *metadata = json_object_get(root, "metadata");
    bool fits;
    size_t i;

    if (!root)
        return qf_err_set(err, QF_EPROTO, "the API server's answer is not JSON: %s", problem.text);
    items = json_object_get(root, "items");
    if (!json_is_array(items)) {
        json_decref(root);
        return qf_err_set(err, QF_EPROTO, "the API server's answer is not an EndpointSliceList");
    }
    json_array_foreach(items, i, slice)
    {
        add_slice(slice, port_name, list);
    }
    fits = copy_string(metadata, "resourceVersion", ret_page->version, VERSION_MAX) &&
           copy_string(metadata, "continue", ret_page->more, CONTINUE_MAX);
    json_decref(root);
    return fits ? QF_OK : qf_err_set(err, QF_ELIMIT, "the list's version or next page is too long");
}

qf_rc qa_kubernetes_parse(struct qf_str json, const char *port_name, char **ret_addresses,
                          size_t max, size_t *ret_count, struct qf_err *err)
{
    struct endpoints *list = qf_xcalloc(1, sizeof(*list));
    struct page page;
    qf_rc rc = parse(json, port_name, list, &page, err);

    *ret_count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (rc == QF_OK && *ret_count < max)
            ret_addresses[(*ret_count)++] = list->items[i];
        else
            free(list->items[i]);
    }
    free(list);
    return rc;
}

/* The first line of a small file, without its end; false if there is none. */
static bool read_line(const char *dir, const char *name, char *out, size_t size)
{
    char path[512];
    FILE *file;
    bool ok;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "re");
    if (!file)
        return false;
    ok = fgets(out, (int)size, file) != NULL;
    (void)fclose(file);
    if (ok)
        out[strcspn(out, "\r\n")] = '\0';
    return ok && out[0];
}

static size_t keep_bytes(char *data, size_t size, size_t count, void *buf)
{
    qf_strbuf_add(buf, data, size * count);
    return ((struct qf_strbuf *)buf)->overflowed ? 0 : size * count;
}

/* What a line tells. A bookmark only says that nothing happened; an error (410 in most cases) ends
 * the watch. What changed is seen by listing again, so more than that need not be understood. */
static bool take_line(struct qa_watch *watch)
{
    struct qf_str line = qf_strbuf_view(&watch->line);
    json_t *event = json_loadb(line.data ? line.data : "", line.len, 0, NULL);
    const char *type = json_string_value(json_object_get(event, "type"));
    bool go_on = type && strcmp(type, "BOOKMARK") == 0;

    if (type && !go_on && strcmp(type, "ERROR") != 0)
        watch->end = QA_WATCH_CHANGED;
    json_decref(event);
    qf_strbuf_reset(&watch->line);
    return go_on;
}

bool qa_watch_read(struct qa_watch *watch, const char *data, size_t left)
{
    while (left) {
        const char *end = memchr(data, '\n', left);
        size_t len = end ? (size_t)(end - data) : left;

        qf_strbuf_add(&watch->line, data, len);
        if (watch->line.overflowed)
            return false;
        if (!end)
            break;
        if (!take_line(watch))
            return false;
        data += len + 1;
        left -= len + 1;
    }
    return true;
}

static size_t read_events(char *data, size_t size, size_t count, void *watch)
{
    return qa_watch_read(watch, data, size * count) ? size * count : 0;
}

static int look_at_stop(void *stop, curl_off_t dl_total, curl_off_t dl, curl_off_t ul_total,
                        curl_off_t ul)
{
    (void)dl_total;
    (void)dl;
    (void)ul_total;
    (void)ul;
    return atomic_load((const atomic_bool *)stop);
}

/* One GET with the pod's token. */
struct get {
    const struct qa_discovery_options *options;
    const atomic_bool *stop;
    const char *query; /* behind "?" */
    long timeout_ms;
    curl_write_callback write;
    void *ctx;
    long status; /* 0: no answer */
    CURLcode code;
};

static const char *secrets_of(const struct qa_discovery_options *options)
{
    return options->kubernetes_secrets ? options->kubernetes_secrets : SECRETS;
}

static void perform(struct get *get, const char *url)
{
    const char *secrets = secrets_of(get->options);
    char token[8192], header[8300], ca[512];
    struct curl_slist *headers = NULL;
    CURL *easy = curl_easy_init();

    if (read_line(secrets, "token", token, sizeof(token))) { /* read anew: it is rotated */
        (void)snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
        headers = curl_slist_append(NULL, header);
    }
    (void)snprintf(ca, sizeof(ca), "%s/ca.crt", secrets);
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(easy, CURLOPT_CAINFO, ca);
    (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL); /* the cluster's own authority, no other */
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, get->write);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, get->ctx);
    (void)curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, look_at_stop);
    (void)curl_easy_setopt(easy, CURLOPT_XFERINFODATA, get->stop);
    (void)curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, get->timeout_ms);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    get->code = curl_easy_perform(easy);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &get->status);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
}

static qf_rc get_slices(struct get *get, struct qf_err *err)
{
    const struct qa_discovery_options *options = get->options;
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    char namespace[256], server[300], url[1024 + 3 * CONTINUE_MAX];

    if (options->kubernetes_namespace)
        (void)snprintf(namespace, sizeof(namespace), "%s", options->kubernetes_namespace);
    else if (!read_line(secrets_of(options), "namespace", namespace, sizeof(namespace)))
        return qf_err_set(err, QF_EINVAL, "%s/namespace: not readable", secrets_of(options));
    if (options->kubernetes_server)
        (void)snprintf(server, sizeof(server), "%s", options->kubernetes_server);
    else if (host && port)
        (void)snprintf(server, sizeof(server),
                       strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
    else
        return qf_err_set(err, QF_EINVAL, "KUBERNETES_SERVICE_HOST is not set");
    (void)snprintf(url, sizeof(url),
                   "%s/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices?labelSelector="
                   "kubernetes.io%%2Fservice-name%%3D%s%s",
                   server, namespace, options->kubernetes_service, get->query);
    perform(get, url);
    if (get->status != 200 && get->status != 0)
        return qf_err_set(err,
                          get->status == 401 || get->status == 403 ? QF_EDENIED : QF_EUNAVAILABLE,
                          "%s: HTTP status %ld", url, get->status);
    if (get->code != CURLE_OK)
        return qf_err_set(err, QF_EUNAVAILABLE, "%s: %s", url, curl_easy_strerror(get->code));
    return QF_OK;
}

/* "&NAME=VALUE" with what is special in a URL escaped. */
static void add_parameter(struct qf_strbuf *query, const char *name, const char *value)
{
    char *escaped = curl_easy_escape(NULL, value, 0);

    qf_strbuf_printf(query, "&%s=%s", name, escaped ? escaped : "");
    curl_free(escaped);
}

/* One page of the list; @ret_page holds where the last one ended and then where this one did. */
static qf_rc look_at_page(struct get *get, bool paged, struct endpoints *list,
                          struct page *ret_page, struct qf_err *err)
{
    struct qf_strbuf answer = { .limit = ANSWER_BYTES_MAX }, query = { 0 };
    qf_rc rc;

    if (paged)
        qf_strbuf_printf(&query, "&limit=%d", PAGE_SLICES);
    if (ret_page->more[0])
        add_parameter(&query, "continue", ret_page->more);
    get->query = qf_strbuf_cstr(&query);
    get->ctx = &answer;
    rc = get_slices(get, err);
    if (rc == QF_OK)
        rc = parse(qf_strbuf_view(&answer), get->options->kubernetes_port, list, ret_page, err);
    qf_strbuf_done(&answer);
    qf_strbuf_done(&query);
    return rc;
}

qf_rc qa_kubernetes_look(const struct qa_discovery_options *options, const atomic_bool *stop,
                         struct endpoints *list, char ret_version[VERSION_MAX], struct qf_err *err)
{
    struct get get = { .options = options, .stop = stop, .timeout_ms = 10000, .write = keep_bytes };
    struct page page = { 0 };
    bool paged = true;

    for (int pages = 0; pages < PAGES_MAX; pages++) {
        struct qf_err problem = { 0 };
        qf_rc rc = look_at_page(&get, paged, list, &page, &problem);

        if (rc != QF_OK && get.status == GONE && page.more[0]) {
            /* The pages were too slow for the server's memory: all at once, then. */
            qa_endpoints_clear(list);
            page = (struct page){ 0 };
            paged = false;
            continue;
        }
        if (rc != QF_OK)
            return qf_err_set(err, rc, "%s", problem.msg);
        if (!page.more[0]) {
            (void)snprintf(ret_version, VERSION_MAX, "%s", page.version);
            return QF_OK;
        }
    }
    return qf_err_set(err, QF_ELIMIT, "the service has more than %d slices",
                      PAGES_MAX * PAGE_SLICES);
}

enum qa_watch_end qa_kubernetes_wait(const struct qa_discovery_options *options,
                                     const atomic_bool *stop, const char *version)
{
    struct qf_strbuf query = { 0 };
    struct qa_watch watch = { .line = { .limit = ANSWER_BYTES_MAX }, .end = QA_WATCH_ENDED };
    struct get get = { .options = options,
                       .stop = stop,
                       .timeout_ms = WATCH_SECONDS * 1000 + 5000,
                       .write = read_events,
                       .ctx = &watch };

    if (!version[0])
        return QA_WATCH_REFUSED; /* such a watch would begin with what is there already */
    qf_strbuf_printf(&query, "&watch=true&allowWatchBookmarks=true&timeoutSeconds=%d",
                     WATCH_SECONDS);
    add_parameter(&query, "resourceVersion", version);
    get.query = qf_strbuf_cstr(&query);
    (void)get_slices(&get, NULL);
    qf_strbuf_done(&query);
    qf_strbuf_done(&watch.line);
    return get.status == 200 || get.status == GONE ? watch.end : QA_WATCH_REFUSED;
}
