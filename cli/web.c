/* web.c - HTTP requests of commands. */
#include "cli/web.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"

#define BODY_BYTES_MAX ((size_t)256 << 20)
#define TIMEOUT_MS 60000L
#define KEY_BYTES_MAX ((size_t)16 << 10)

void cli_web_param(struct qf_strbuf *path, const char *name, const char *value)
{
    char *escaped = curl_easy_escape(NULL, value, (int)strlen(value));

    qf_strbuf_printf(path, "%c%s=%s", path->data && strchr(path->data, '?') ? '&' : '?', name,
                     escaped ? escaped : "");
    curl_free(escaped);
}

void cli_web_param_u64(struct qf_strbuf *path, const char *name, uint64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    cli_web_param(path, name, text);
}

int cli_web_print(json_t *answer)
{
    char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;

    if (text)
        printf("%s\n", text);
    free(text);
    json_decref(answer);
    return answer ? 0 : 1;
}

int64_t cli_json_number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

const char *cli_json_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text && *text ? text : "-";
}

static size_t on_bytes(char *data, size_t size, size_t count, void *arg)
{
    struct qf_strbuf *body = arg;

    qf_strbuf_add(body, data, size * count);
    return body->overflowed ? 0 : size * count;
}

bool cli_web_read_key(struct cli_web *web)
{
    char line[KEY_BYTES_MAX];
    struct qf_str key;
    FILE *file;
    bool got;

    if (!web->api_key_file)
        return true;
    file = fopen(web->api_key_file, "re");
    if (!file) {
        fprintf(stderr, "error: cannot open %s: %s\n", web->api_key_file, strerror(errno));
        return false;
    }
    got = fgets(line, sizeof(line), file) != NULL;
    (void)fclose(file);
    key = qf_str_trim(qf_str_from(got ? line : ""));
    if (key.len == 0 || key.len >= sizeof(line) - 2) {
        fprintf(stderr, "error: the first line of %s is no API key\n", web->api_key_file);
        return false;
    }
    web->api_key = web->key_of_file = qf_xmemdup0(key.data, key.len);
    return true;
}

static struct curl_slist *add_header(struct curl_slist *headers, const char *name,
                                     const char *value)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf line = QF_STRBUF_INIT;

    if (!value)
        return headers;
    qf_strbuf_printf(&line, "%s%s", name, value);
    return curl_slist_append(headers, qf_strbuf_cstr(&line));
}

static json_t *read_answer(const struct cli_web *web, long status, const struct qf_strbuf *body,
                           struct qf_strbuf *why)
{
    json_t *answer = json_loadb(body->data ? body->data : "", body->len, 0, NULL);
    const char *message = json_string_value(json_object_get(answer, "message"));

    if (status >= 200 && status < 300 && answer)
        return answer;
    if (status == 204) /* there is nothing to say */
        return json_object();
    if (message)
        qf_strbuf_puts(why, message);
    else
        qf_strbuf_printf(why, "%s answered HTTP status %ld%s", web->url, status,
                         status == 200 ? ", but no JSON: is it an ingest node?" : "");
    json_decref(answer);
    return NULL;
}

CURL *cli_web_open(const struct cli_web *web, const char *path, const char *content_type,
                   struct curl_slist **ret_headers)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf target = QF_STRBUF_INIT;
    CURL *easy = curl_easy_init();
    size_t base = strlen(web->url);

    while (base > 0 && web->url[base - 1] == '/')
        base--;
    qf_strbuf_printf(&target, "%.*s%s", (int)base, web->url, path);
    *ret_headers = add_header(NULL, "Content-Type: ", content_type);
    *ret_headers = add_header(*ret_headers, "X-Scope-OrgID: ", web->tenant);
    *ret_headers = add_header(*ret_headers, "Authorization: Bearer ", web->api_key);
    (void)curl_easy_setopt(easy, CURLOPT_URL, qf_strbuf_cstr(&target));
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *ret_headers);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    (void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "127.0.0.1,localhost,[::1]");
    if (web->tls_ca) {
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, web->tls_ca);
        (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    return easy;
}

static void set_body(CURL *easy, const struct cli_web_request *request)
{
    (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    if (!request->content_type && strcmp(request->method, "POST") != 0)
        return;
    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body.data ? request->body.data : "");
}

json_t *cli_web_try(const struct cli_web *web, const struct cli_web_request *request,
                    long timeout_ms, struct qf_strbuf *why)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = { .limit = BODY_BYTES_MAX };
    char problem[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers;
    CURL *easy =
        cli_web_open(web, request->path,
                     request->content_type ? request->content_type : "application/json", &headers);
    json_t *answer = NULL;
    long status = 0;
    CURLcode code;

    set_body(easy, request);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, problem);
    code = curl_easy_perform(easy);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK)
        qf_strbuf_printf(why, "%s: %s", web->url, problem[0] ? problem : curl_easy_strerror(code));
    else
        answer = read_answer(web, status, &body, why);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    return answer;
}

json_t *cli_web_ask(const struct cli_web *web, const struct cli_web_request *request)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf why = QF_STRBUF_INIT;
    json_t *answer = cli_web_try(web, request, TIMEOUT_MS, &why);

    if (!answer)
        fprintf(stderr, "error: %s\n", qf_strbuf_cstr(&why));
    return answer;
}

void cli_web_waiting(const struct qf_strbuf *why, struct qf_strbuf *said)
{
    if (!why->len || qf_str_eq(qf_strbuf_view(why), qf_strbuf_view(said)))
        return;
    qf_strbuf_reset(said);
    qf_strbuf_str(said, qf_strbuf_view(why));
    fprintf(stderr, "waiting: %s\n", qf_strbuf_cstr(said));
}

static size_t ignore(char *data, size_t size, size_t count, void *arg)
{
    (void)data;
    (void)arg;
    return size * count;
}

long cli_web_post(const struct cli_web *web, const struct cli_web_request *request, long timeout_ms)
{
    struct curl_slist *headers;
    CURL *easy = cli_web_open(web, request->path, request->content_type, &headers);
    long status = 0;

    set_body(easy, request);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    if (curl_easy_perform(easy) == CURLE_OK)
        (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    return status;
}
