/* web.h - HTTP requests of commands: where to, as whom, and for most one JSON answer. */
#ifndef CLI_WEB_H
#define CLI_WEB_H

#include <curl/curl.h>
#include <jansson.h>

#include "base/pure/strbuf.h"
#include "cli/flags.h"

/* Where to and as whom; filled by flags. */
struct cli_web {
    const char *url, *tenant, *api_key, *api_key_file, *tls_ca;
    char *key_of_file; /* cli_web_read_key() */
};
#define CLI_WEB_FLAGS(web, standard, what)                                                         \
    { "url", CLI_FLAG_STR, &(web).url, "URL", standard, what },                                    \
        { "tenant", CLI_FLAG_STR, &(web).tenant, "NAME", NULL, "sent as X-Scope-OrgID" },          \
        { "api-key",      CLI_FLAG_STR,                                                            \
          &(web).api_key, "KEY",                                                                   \
          NULL,           "sent as Authorization: Bearer; others see it in the process list" },    \
        { "api-key-file", CLI_FLAG_STR, &(web).api_key_file,                                       \
          "FILE",         NULL,         "the key is the first line of this file" },                \
    {                                                                                              \
        "tls-ca", CLI_FLAG_STR, &(web).tls_ca, "FILE", NULL,                                       \
            "trust these authorities (PEM) instead of the system's"                                \
    }

/* After the flags: if a key file is named, its first line is the key, without white space around it.
 * False after a line on stderr. */
bool cli_web_read_key(struct cli_web *web);

/* A request to @path below the URL, with the headers that say who asks; curl_slist_free_all() these
 * after curl_easy_cleanup(). Without a limit of time. */
CURL *cli_web_open(const struct cli_web *web, const char *path, const char *content_type,
                   struct curl_slist **ret_headers);

struct cli_web_request {
    const char *method, *path; /* the path with its parameters, escaped */
    struct qf_str body;
    const char *content_type; /* NULL: there is no body */
};

/* Append "NAME=VALUE" to @path, escaped, after '?' or '&'. */
void cli_web_param(struct qf_strbuf *path, const char *name, const char *value);
void cli_web_param_u64(struct qf_strbuf *path, const char *name, uint64_t value);

/* The answer, json_decref() it; an empty object if it has no body (204). NULL, and one line was printed to stderr: no answer, or an error. */
json_t *cli_web_ask(const struct cli_web *web, const struct cli_web_request *request);

/* Print @answer, if there is one, in a line and let go of it; the code with which the command ends. */
int cli_web_print(json_t *answer);
/* A member of @object; 0 and "-" if there is none. */
int64_t cli_json_number(const json_t *object, const char *name);
const char *cli_json_text(const json_t *object, const char *name);

/* The same within @timeout_ms and silently: NULL, and @why has the line. */
json_t *cli_web_try(const struct cli_web *web, const struct cli_web_request *request,
                    long timeout_ms, struct qf_strbuf *why);

/* Something is tried again because of @why: a line on stderr that says so, once for each reason. @said is the last one. */
void cli_web_waiting(const struct qf_strbuf *why, struct qf_strbuf *said);

/* POST, and only the status of the answer; 0: there was none within @timeout_ms. Prints nothing. */
long cli_web_post(const struct cli_web *web, const struct cli_web_request *request,
                  long timeout_ms);

#endif
