/* state_web.c - promfabric state --url: maps of a cluster, from a terminal. */
#include "cli/state_web.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "statemap/store/definition_text.h"

/* Keys in one request, rows in one page. */
enum { KEYS_AT_ONCE = 1000, ROWS_AT_ONCE = 1000 };

static void map_path(struct qf_strbuf *path, const char *before, const char *name)
{
    char *escaped = curl_easy_escape(NULL, name, (int)strlen(name));

    qf_strbuf_printf(path, "/api/v1/state/%s%s", before, escaped ? escaped : "");
    curl_free(escaped);
}

static json_t *ask(const struct cli_web *web, const char *method, const struct qf_strbuf *path,
                   struct qf_str body)
{
    return cli_web_ask(
        web, &(struct cli_web_request){ .method = method,
                                        .path = qf_strbuf_cstr(path),
                                        .body = body,
                                        .content_type = body.len ? "application/json" : NULL });
}

int state_web_define(const struct cli_web *web, const struct sm_definition *definition)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT, text = QF_STRBUF_INIT;
    json_t *answer;

    map_path(&path, "maps/", definition->name);
    sm_definition_print(&text, definition);
    answer = ask(web, "PUT", &path, qf_strbuf_view(&text));
    if (!answer)
        return 1;
    printf("map %s: %s\n", definition->name, sm_kind_name(definition->layout.kind));
    json_decref(answer);
    return 0;
}

int state_web_drop(const struct cli_web *web, const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    json_t *answer;

    map_path(&path, "maps/", name);
    answer = ask(web, "DELETE", &path, QF_STR(""));
    json_decref(answer);
    return answer ? 0 : 1;
}

/* --- all maps --- */

static json_t *ask_maps(const struct cli_web *web)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_puts(&path, "/api/v1/state/maps");
    return ask(web, "GET", &path, QF_STR(""));
}

static json_t *maps_of(const json_t *answer)
{
    return json_object_get(json_object_get(answer, "data"), "maps");
}

static void print_setting(const json_t *map, const char *name)
{
    const char *text = json_string_value(json_object_get(map, name));

    if (text)
        printf("  %s %s", name, text);
}

int state_web_maps(const struct cli_web *web)
{
    static const char *const settings[] = { "condense", "retention", "timeout", "metric" };
    json_t *answer = ask_maps(web);
    const json_t *map;
    size_t i;

    if (!answer)
        return 1;
    json_array_foreach(maps_of(answer), i, map)
    {
        printf("%-30s %-16s %-8s", cli_json_text(map, "name"), cli_json_text(map, "kind"),
               json_object_get(map, "type") ? cli_json_text(map, "type") : "any");
        for (size_t s = 0; s < QF_COUNT_OF(settings); s++)
            print_setting(map, settings[s]);
        printf("%s\n", json_is_true(json_object_get(map, "short_keys")) ? "  short keys" : "");
    }
    json_decref(answer);
    return 0;
}

static bool is_wanted(const json_t *map, char **names, int count)
{
    for (int i = 0; i < count; i++) {
        char name[SM_NAME_MAX + 1];

        if (sm_name_fold(qf_str_from(names[i]), name) &&
            strcmp(name, cli_json_text(map, "name")) == 0)
            return true;
    }
    return count == 0;
}

int state_web_stats(const struct cli_web *web, char **names, int count)
{
    json_t *answer = ask_maps(web);
    const json_t *map;
    int found = 0;
    size_t i;

    if (!answer)
        return 1;
    json_array_foreach(maps_of(answer), i, map)
    {
        if (!is_wanted(map, names, count))
            continue;
        found++;
        printf("%-30s %12" PRId64 " rows %14" PRId64 " bytes  version %" PRId64 "\n",
               cli_json_text(map, "name"), cli_json_number(map, "count"),
               cli_json_number(map, "bytes"), cli_json_number(map, "rows"));
    }
    json_decref(answer);
    if (found >= count)
        return 0;
    fprintf(stderr, "error: not all of these are maps\n");
    return 1;
}

/* --- what maps say --- */

/* Rows as lines of JSON, as they came; null: @missing says of which key. Returns how many were printed. */
static size_t print_rows(const json_t *rows, const char *map, char **missing)
{
    size_t printed = 0, i;
    const json_t *row;

    json_array_foreach(rows, i, row)
    {
        char *text = json_is_null(row) ? NULL : json_dumps(row, JSON_COMPACT);

        if (text)
            printf("%s\n", text);
        else if (missing)
            fprintf(stderr, "map %s says nothing of %s\n", map, missing[i]);
        printed += text != NULL;
        free(text);
    }
    return printed;
}

/* 0; 1 if the map lacks one of them, or it failed. */
static int get_some(const struct cli_web *web, const char *time, const char *map, char **keys,
                    int count)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT, body = QF_STRBUF_INIT;
    json_t *answer;
    size_t printed;

    map_path(&path, "", map);
    qf_strbuf_puts(&body, "{\"keys\":[");
    for (int i = 0; i < count; i++) {
        if (i)
            qf_strbuf_putc(&body, ',');
        qf_strbuf_json(&body, qf_str_from(keys[i]));
    }
    qf_strbuf_putc(&body, ']');
    if (time) {
        qf_strbuf_puts(&body, ",\"time\":");
        qf_strbuf_json(&body, qf_str_from(time));
    }
    qf_strbuf_putc(&body, '}');
    answer = ask(web, "POST", &path, qf_strbuf_view(&body));
    if (!answer)
        return 1;
    printed = print_rows(json_object_get(json_object_get(answer, "data"), "rows"), map, keys);
    json_decref(answer);
    return printed < (size_t)count;
}

int state_web_get(const struct cli_web *web, const struct state_cli *cli, char **names, int count)
{
    int code = 0;

    for (int i = 1; i < count; i += KEYS_AT_ONCE)
        code |= get_some(web, cli->time, names[0], names + i, QF_MIN(count - i, (int)KEYS_AT_ONCE));
    return code;
}

int state_web_rows(const struct cli_web *web, const struct state_cli *cli, const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf next = QF_STRBUF_INIT;
    uint64_t printed = 0;
    bool more = true;

    while (more && (!cli->limit || printed < cli->limit)) {
        QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
        const json_t *data;
        json_t *answer;

        map_path(&path, "", name);
        qf_strbuf_puts(&path, "/rows");
        cli_web_param_u64(&path, "limit",
                          cli->limit ? QF_MIN(cli->limit - printed, (uint64_t)ROWS_AT_ONCE)
                                     : ROWS_AT_ONCE);
        if (cli->prefix)
            cli_web_param(&path, "prefix", cli->prefix);
        if (next.len)
            cli_web_param(&path, "after", qf_strbuf_cstr(&next));
        answer = ask(web, "GET", &path, QF_STR(""));
        if (!answer)
            return 1;
        data = json_object_get(answer, "data");
        printed += print_rows(json_object_get(data, "rows"), name, NULL);
        more = json_is_string(json_object_get(data, "next"));
        qf_strbuf_reset(&next);
        qf_strbuf_puts(&next, more ? cli_json_text(data, "next") : "");
        json_decref(answer);
    }
    return 0;
}
