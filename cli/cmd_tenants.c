/* cmd_tenants.c - promfabric tenants: settings of tenants from a terminal. */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/pure/limits.h"
#include "base/pure/number.h"
#include "base/pure/tenant.h"
#include "cli/web.h"

int cli_tenants(int argc, char **argv);

#define TENANTS "/v1/tenants"

static struct cli_web web;
static bool json_out;
static uint64_t version;

static const struct cli_flag flags[] = {
    CLI_WEB_FLAGS(web, "http://127.0.0.1:8083", "an ingest node; any of a cluster"),
    { "json", CLI_FLAG_BOOL, &json_out, NULL, NULL, "print answers as they come" },
    { "version", CLI_FLAG_U64, &version, "N", "0",
      "put: only if the tenant still has this version; 0: the one it has now" },
};

static const struct cli_spec spec = {
    .usage = "promfabric tenants ls|get|add|put [FLAG...] [NAME] [SETTING=VALUE...]",
    .summary =
        "ls                        tenants that have settings of their own\n"
        "get NAME                  those of one\n"
        "add NAME [SETTING=VALUE...]  a tenant more; what is not said is as for all tenants\n"
        "put NAME SETTING=VALUE...    other settings of it; the others stay; VALUE default: as for "
        "all\n"
        "Settings: level (one, quorum or all, of documents), replication-factor (the least number "
        "of\n"
        "copies), and what --tenant-limits has: queries, queued, streams, work, samples, memory, "
        "spool,\n"
        "retention, samples-rate, bytes-rate, series, labels, label-name-bytes, "
        "label-value-bytes,\n"
        "ha-pairs.",
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
};

static int bad(const char *what, const char *word)
{
    fprintf(stderr, "error: %s: %s; try promfabric tenants --help\n", word, what);
    return 2;
}

static void path_of(struct qf_strbuf *path, const char *name)
{
    char *escaped = curl_easy_escape(NULL, name, (int)strlen(name));

    qf_strbuf_printf(path, TENANTS "/%s", escaped ? escaped : "");
    curl_free(escaped);
}

static json_t *ask(const char *method, const struct qf_strbuf *path, const json_t *body)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct cli_web_request request = { .method = method, .path = qf_strbuf_cstr(path) };
    json_t *answer;

    if (text) {
        request.body = qf_str_from(text);
        request.content_type = "application/json";
    }
    answer = cli_web_ask(&web, &request);
    free(text);
    return answer;
}

/* --- looking --- */

/* "queries=4 retention=90d" */
static void print_settings(const json_t *tenant)
{
    const json_t *value;
    const char *name;

    if (json_object_get(tenant, "replication_factor"))
        printf(" replication-factor=%" PRId64, cli_json_number(tenant, "replication_factor"));
    if (json_object_get(tenant, "level"))
        printf(" level=%s", cli_json_text(tenant, "level"));
    json_object_foreach(json_object_get(tenant, "limits"), name, value)
    {
        if (json_is_string(value))
            printf(" %s=%s", name, json_string_value(value));
        else
            printf(" %s=%" JSON_INTEGER_FORMAT, name, json_integer_value(value));
    }
}

static void print_tenant(const json_t *tenant)
{
    printf("%-24s %8" PRId64 " ", cli_json_text(tenant, "tenant"),
           cli_json_number(tenant, "version"));
    print_settings(tenant);
    printf("\n");
}

/* The answer in a line, or as it came. */
static int show(json_t *tenant)
{
    if (!tenant || json_out)
        return cli_web_print(tenant);
    print_tenant(tenant);
    json_decref(tenant);
    return 0;
}

/* A page behind @after; in it the last name if there are more. */
static int list_page(char after[QF_TENANT_MAX + 1])
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    const json_t *tenant;
    json_t *answer;
    size_t i;

    qf_strbuf_puts(&path, TENANTS);
    if (after[0])
        cli_web_param(&path, "after", after);
    answer = ask("GET", &path, NULL);
    after[0] = 0;
    if (!answer)
        return 1;
    if (json_object_get(answer, "next"))
        (void)snprintf(after, QF_TENANT_MAX + 1, "%s", cli_json_text(answer, "next"));
    if (json_out)
        return cli_web_print(answer);
    json_array_foreach(json_object_get(answer, "tenants"), i, tenant) print_tenant(tenant);
    json_decref(answer);
    return 0;
}

static int list(void)
{
    char after[QF_TENANT_MAX + 1] = "";
    int code;

    if (!json_out)
        printf("%-24s %8s  %s\n", "tenant", "version", "settings");
    do {
        code = list_page(after);
    } while (code == 0 && after[0]);
    return code;
}

static int get(const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    path_of(&path, name);
    return show(ask("GET", &path, NULL));
}

/* --- changing --- */

/* What of @tenant the setting called @name is in; @ret_key as it is called there. */
static json_t *place_of(json_t *tenant, const char *name, const char **ret_key)
{
    json_t *limits = json_object_get(tenant, "limits");

    *ret_key = name;
    if (strcmp(name, "replication-factor") == 0)
        *ret_key = "replication_factor";
    if (strcmp(name, "replication-factor") == 0 || strcmp(name, "level") == 0)
        return tenant;
    if (qf_limit_find(qf_str_from(name)) == QF_LIMIT__COUNT)
        return NULL;
    if (!limits) {
        limits = json_object();
        json_object_set_new(tenant, "limits", limits);
    }
    return limits;
}

/* "SETTING=VALUE" into @tenant. 0, or the code with which the command ends. */
static int set_one(json_t *tenant, char *word)
{
    char *equals = strchr(word, '=');
    const char *value, *key;
    json_t *object;
    int64_t number;

    if (!equals)
        return bad("SETTING=VALUE is expected", word);
    *equals = 0;
    value = equals + 1;
    object = place_of(tenant, word, &key);
    if (!object)
        return bad("there is no such setting", word);
    if (strcmp(value, "default") == 0)
        json_object_del(object, key);
    else if (object == tenant && qf_parse_i64(qf_str_from(value), &number))
        json_object_set_new(object, key, json_integer(number));
    else
        json_object_set_new(object, key, json_string(value));
    return 0;
}

static int set_all(json_t *tenant, char **words, int count)
{
    int code = 0;

    for (int i = 0; i < count && code == 0; i++)
        code = set_one(tenant, words[i]);
    return code;
}

static int add(const char *name, char **words, int count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    json_t *tenant = json_object();
    int code;

    json_object_set_new(tenant, "tenant", json_string(name));
    qf_strbuf_puts(&path, TENANTS);
    code = set_all(tenant, words, count);
    if (code == 0)
        code = show(ask("POST", &path, tenant));
    json_decref(tenant);
    return code;
}

/* What it has, with what the words say, under the version it had. */
static int put(const char *name, char **words, int count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    json_t *tenant;
    int code;

    path_of(&path, name);
    tenant = ask("GET", &path, NULL);
    if (!tenant)
        return 1;
    if (version)
        json_object_set_new(tenant, "version", json_integer((json_int_t)version));
    code = set_all(tenant, words, count);
    if (code == 0)
        code = show(ask("PUT", &path, tenant));
    json_decref(tenant);
    return code;
}

static int run(const char *word, const char *name, char **rest, int count)
{
    if (strcmp(word, "ls") == 0 && !name)
        return list();
    if (strcmp(word, "get") == 0 && name && !count)
        return get(name);
    if (strcmp(word, "add") == 0 && name)
        return add(name, rest, count);
    if (strcmp(word, "put") == 0 && name && count)
        return put(name, rest, count);
    fprintf(stderr, "error: what to do? ls, get NAME, add NAME [SETTING=VALUE...] or put NAME "
                    "SETTING=VALUE...; try promfabric tenants --help\n");
    return 2;
}

int cli_tenants(int argc, char **argv)
{
    int positional;
    enum cli_parsed parsed = cli_flags_parse(&spec, argc, argv, &positional);

    if (parsed == CLI_PARSED_HELP)
        return 0;
    if (parsed == CLI_PARSED_BAD || !cli_web_read_key(&web))
        return 2;
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    return run(positional > 0 ? argv[1] : "", positional > 1 ? argv[2] : NULL, argv + 3,
               positional > 2 ? positional - 2 : 0);
}
