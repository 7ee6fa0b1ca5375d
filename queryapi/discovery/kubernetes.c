/* kubernetes.c - workers from the EndpointSlices of a headless service. */
#include <curl/curl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "queryapi/discovery/discovery_int.h"

#define ANSWER_BYTES_MAX ((size_t)8 << 20)
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

static void add_slice(const json_t *slice, const char *port_name, struct endpoints *list)
{
    const json_t *endpoints = json_object_get(slice, "endpoints"), *endpoint, *address;
    const char *family = json_string_value(json_object_get(slice, "addressType"));
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
            if (json_is_string(address))
                qa_endpoints_add(list,
                                 family && strcmp(family, "IPv6") == 0 ? "[%s]:%lld" : "%s:%lld",
                                 json_string_value(address), port);
        }
    }
}

static qf_rc parse(struct qf_str json, const char *port_name, struct endpoints *list,
                   struct qf_err *err)
{
    json_error_t problem;
    json_t *root = json_loadb(json.data ? json.data : "", json.len, 0, &problem);
    const json_t *items, *slice;
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
    json_decref(root);
    return QF_OK;
}

qf_rc qa_kubernetes_parse(struct qf_str json, const char *port_name, char **ret_addresses,
                          size_t max, size_t *ret_count, struct qf_err *err)
{
    struct endpoints *list = qf_xcalloc(1, sizeof(*list));
    qf_rc rc = parse(json, port_name, list, err);

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

/* GET @url with the pod's token. */
static qf_rc get(const char *url, const char *secrets, struct qf_strbuf *answer, struct qf_err *err)
{
    char token[8192], header[8300], ca[512];
    struct curl_slist *headers = NULL;
    CURL *easy = curl_easy_init();
    CURLcode code;
    long status = 0;

    if (!easy)
        return qf_err_set(err, QF_ENOMEM, "out of memory");
    if (read_line(secrets, "token", token, sizeof(token))) { /* read anew: it is rotated */
        (void)snprintf(header, sizeof(header), "Authorization: Bearer %s", token);
        headers = curl_slist_append(NULL, header);
    }
    (void)snprintf(ca, sizeof(ca), "%s/ca.crt", secrets);
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(easy, CURLOPT_CAINFO, ca);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_bytes);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, answer);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 10000L);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    code = curl_easy_perform(easy);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    if (code != CURLE_OK)
        return qf_err_set(err, QF_EUNAVAILABLE, "%s: %s", url, curl_easy_strerror(code));
    if (status != 200)
        return qf_err_set(err, status == 401 || status == 403 ? QF_EDENIED : QF_EUNAVAILABLE,
                          "%s: HTTP status %ld", url, status);
    return QF_OK;
}

qf_rc qa_kubernetes_look(const struct qa_discovery_options *options, struct endpoints *list,
                         struct qf_err *err)
{
    const char *secrets = options->kubernetes_secrets ? options->kubernetes_secrets : SECRETS;
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    struct qf_strbuf answer = { .limit = ANSWER_BYTES_MAX };
    char namespace[256], server[300], url[1024];
    qf_rc rc;

    if (options->kubernetes_namespace)
        (void)snprintf(namespace, sizeof(namespace), "%s", options->kubernetes_namespace);
    else if (!read_line(secrets, "namespace", namespace, sizeof(namespace)))
        return qf_err_set(err, QF_EINVAL, "%s/namespace: not readable", secrets);
    if (options->kubernetes_server)
        (void)snprintf(server, sizeof(server), "%s", options->kubernetes_server);
    else if (host && port)
        (void)snprintf(server, sizeof(server),
                       strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
    else
        return qf_err_set(err, QF_EINVAL, "KUBERNETES_SERVICE_HOST is not set");
    (void)snprintf(url, sizeof(url),
                   "%s/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices?labelSelector="
                   "kubernetes.io%%2Fservice-name%%3D%s",
                   server, namespace, options->kubernetes_service);
    rc = get(url, secrets, &answer, err);
    if (rc == QF_OK)
        rc = parse(qf_strbuf_view(&answer), options->kubernetes_port, list, err);
    qf_strbuf_done(&answer);
    return rc;
}
