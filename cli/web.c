/* web.c - HTTP requests of commands. */
#include "cli/web.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"

#define BODY_BYTES_MAX ((size_t)256 << 20)
#define TIMEOUT_S 60L

void cli_web_param(struct qf_strbuf *path, const char *name, const char *value)
{
    char *escaped = curl_easy_escape(NULL, value, (int)strlen(value));

    qf_strbuf_printf(path, "%c%s=%s", path->data && strchr(path->data, '?') ? '&' : '?', name,
                     escaped ? escaped : "");
    curl_free(escaped);
}

static size_t on_bytes(char *data, size_t size, size_t count, void *arg)
{
    struct qf_strbuf *body = arg;

    qf_strbuf_add(body, data, size * count);
    return body->overflowed ? 0 : size * count;
}

/* The first line of the key file. */
static bool read_key(const struct cli_web *web, char key[4096])
{
    FILE *file = fopen(web->api_key_file, "r");
    struct qf_str text;
    bool got;

    if (!file) {
        fprintf(stderr, "error: cannot open %s\n", web->api_key_file);
        return false;
    }
    got = fgets(key, 4096, file) != NULL;
    (void)fclose(file);
    text = qf_str_trim(qf_str_from(got ? key : ""));
    if (!text.len) {
        fprintf(stderr, "error: the first line of %s is no API key\n", web->api_key_file);
        return false;
    }
    memmove(key, text.data, text.len);
    key[text.len] = 0;
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

static json_t *read_answer(const struct cli_web *web, long status, const struct qf_strbuf *body)
{
    json_t *answer = json_loadb(body->data ? body->data : "", body->len, 0, NULL);
    const char *message = json_string_value(json_object_get(answer, "message"));

    if (status >= 200 && status < 300 && answer)
        return answer;
    if (message)
        fprintf(stderr, "error: %s\n", message);
    else
        fprintf(stderr, "error: %s answered HTTP status %ld%s\n", web->url, status,
                status == 200 ? ", but no JSON: is it an ingest node?" : "");
    json_decref(answer);
    return NULL;
}

static void set_options(CURL *easy, const struct cli_web *web,
                        const struct cli_web_request *request)
{
    (void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT, TIMEOUT_S);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "127.0.0.1,localhost,[::1]");
    if (request->content_type || strcmp(request->method, "POST") == 0) {
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
        (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS,
                               request->body.data ? request->body.data : "");
    }
    if (web->tls_ca) {
        (void)curl_easy_setopt(easy, CURLOPT_CAINFO, web->tls_ca);
        (void)curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
}

json_t *cli_web_ask(const struct cli_web *web, const struct cli_web_request *request)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf target = QF_STRBUF_INIT;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = { .limit = BODY_BYTES_MAX };
    char problem[CURL_ERROR_SIZE] = "", key[4096];
    struct curl_slist *headers = NULL;
    size_t base = strlen(web->url);
    json_t *answer = NULL;
    CURLcode code;
    CURL *easy;
    long status = 0;

    if (web->api_key_file && !read_key(web, key))
        return NULL;
    while (base > 0 && web->url[base - 1] == '/')
        base--;
    qf_strbuf_printf(&target, "%.*s%s", (int)base, web->url, request->path);
    headers = add_header(headers, "X-Scope-OrgID: ", web->tenant);
    headers = add_header(headers, "Content-Type: ",
                         request->content_type ? request->content_type : "application/json");
    headers = add_header(headers, "Authorization: Bearer ", web->api_key_file ? key : web->api_key);
    easy = curl_easy_init();
    set_options(easy, web, request);
    (void)curl_easy_setopt(easy, CURLOPT_URL, qf_strbuf_cstr(&target));
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, problem);
    code = curl_easy_perform(easy);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK)
        fprintf(stderr, "error: %s: %s\n", web->url,
                problem[0] ? problem : curl_easy_strerror(code));
    else
        answer = read_answer(web, status, &body);
    curl_slist_free_all(headers);
    curl_easy_cleanup(easy);
    return answer;
}
