/* cmd_nodes.c - promfabric nodes: storage nodes from a terminal. */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/nodes_form.h"
#include "cli/web.h"

int cli_nodes(int argc, char **argv);

#define WATCH_SECONDS 1

static struct cli_web web;
static bool json_out, follow, force;
static const char *zone, *reason, *grace;
static uint64_t copies, slot;
static int64_t wait_ms;

static const struct cli_flag flags[] = {
    CLI_WEB_FLAGS(web, "http://127.0.0.1:8083", "an ingest node; any of a cluster"),
    { "json", CLI_FLAG_BOOL, &json_out, NULL, NULL, "print answers as they come" },
    { "zone", CLI_FLAG_STR, &zone, "ZONE", NULL,
      "add: copies lie in distinct zones first; nodes without one are zones of their own" },
    { "copies", CLI_FLAG_U64, &copies, "N", "3", "found, form, copies: of every segment, 1 to 7" },
    { "grace", CLI_FLAG_STR, &grace, "DURATION", NULL,
      "found: from the end of a change to the cleanup of what it left behind; 24h if absent" },
    { "wait", CLI_FLAG_DURATION, &wait_ms, "DURATION", "1m",
      "form: how long ingest nodes may take to be there and to agree" },
    { "follow", CLI_FLAG_BOOL, &follow, NULL, NULL, "status: go on until nothing moves any more" },
    { "reason", CLI_FLAG_STR, &reason, "TEXT", NULL, "cancel, clean --force: why; it is logged" },
    { "slot", CLI_FLAG_U64, &slot, "NUMBER", "0", "clean: of the ring, below 1024" },
    { "force", CLI_FLAG_BOOL, &force, NULL, NULL, "clean: without the four checks" },
};

static const struct cli_spec spec = {
    .usage = "promfabric nodes ls|form|found|add|remove|status|cancel|copies|clean [FLAG...] "
             "[NAME|ID|NAME=URL...] [URL]",
    .summary =
        "ls lists storage nodes; add NAME URL adds one and remove NAME takes one away; found "
        "makes\n"
        "a ring of the nodes that were added; form NAME=URL... does both, or what is missing of "
        "it.\n"
        "status shows what moves, status ID one migration;\n"
        "cancel ID goes back to what was before it; copies changes the number of copies; clean "
        "NAME\n"
        "drops what a former owner still holds of a slot.",
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
};

/* --- asking --- */

static void path_of(struct qf_strbuf *path, const char *before, const char *name, const char *after)
{
    char *escaped = curl_easy_escape(NULL, name, (int)strlen(name));

    qf_strbuf_printf(path, "%s%s%s", before, escaped ? escaped : "", after);
    curl_free(escaped);
}

static json_t *ask(const char *method, const struct qf_strbuf *path)
{
    return cli_web_ask(&web,
                       &(struct cli_web_request){ .method = method, .path = qf_strbuf_cstr(path) });
}

/* Ask for a change and say which migration came of it. */
static int ask_change(const char *method, const struct qf_strbuf *path, const char *done)
{
    json_t *answer = ask(method, path);

    if (!answer || json_out)
        return cli_web_print(answer);
    if (json_object_get(answer, "migration"))
        printf("%s: migration %s\n", done, cli_json_text(answer, "migration"));
    else
        printf("%s\n", done);
    json_decref(answer);
    return 0;
}

/* --- looking --- */

static void print_node(const json_t *node)
{
    printf("%-24s %-14s %-12s %6" PRId64 " %6" PRId64 "  %s\n", cli_json_text(node, "name"),
           json_is_true(json_object_get(node, "down")) ? "DOWN" : cli_json_text(node, "state"),
           cli_json_text(node, "zone"), cli_json_number(node, "slots"),
           cli_json_number(node, "slots_to_clean"), cli_json_text(node, "url"));
}

static void print_ring(const json_t *ring)
{
    if (!json_is_true(json_object_get(ring, "founded"))) {
        printf("no ring yet: promfabric nodes found makes one of these nodes\n");
        return;
    }
    printf("epoch %" PRId64 ", %" PRId64 " copies; of %" PRId64 " slots %" PRId64 " move, %" PRId64
           " have a node that is down, %" PRId64 " are under-replicated, %" PRId64
           " cannot be written, %" PRId64 " wait for cleanup\n",
           cli_json_number(ring, "epoch"), cli_json_number(ring, "copies"),
           cli_json_number(ring, "slots"), cli_json_number(ring, "slots_moving"),
           cli_json_number(ring, "slots_with_node_down"),
           cli_json_number(ring, "slots_under_replicated"),
           cli_json_number(ring, "slots_without_quorum"), cli_json_number(ring, "slots_to_clean"));
}

static int list(void)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    const json_t *node;
    json_t *answer;
    size_t i;

    qf_strbuf_puts(&path, "/v1/admin/storage-nodes");
    answer = ask("GET", &path);
    if (!answer || json_out)
        return cli_web_print(answer);
    printf("%-24s %-14s %-12s %6s %6s  %s\n", "node", "state", "zone", "slots", "clean", "url");
    json_array_foreach(json_object_get(answer, "nodes"), i, node) print_node(node);
    print_ring(json_object_get(answer, "ring"));
    json_decref(answer);
    return 0;
}

static void print_eta(const json_t *progress)
{
    int64_t seconds = cli_json_number(progress, "eta_ms") / 1000;

    if (seconds)
        printf(", about %" PRId64 "m%02" PRId64 "s left", seconds / 60, seconds % 60);
}

static void print_change(const json_t *change)
{
    const json_t *progress = json_object_get(change, "progress");

    printf("%-8s %-14s %-12s %-20s %5.1f%%  %" PRId64 " segments, %" PRId64 " bytes",
           cli_json_text(change, "id"), cli_json_text(change, "type"),
           cli_json_text(change, "status"), cli_json_text(change, "node"),
           json_number_value(json_object_get(progress, "percent")),
           cli_json_number(progress, "segments"), cli_json_number(progress, "bytes"));
    print_eta(progress);
    if (json_object_get(change, "reason"))
        printf("; %" PRId64 " failures, the last: %s", cli_json_number(change, "failures"),
               cli_json_text(change, "reason"));
    printf("\n");
}

static bool runs(const json_t *change)
{
    const char *status = cli_json_text(change, "status");

    return strcmp(status, "running") == 0 || strcmp(status, "rolling_back") == 0;
}

/* What moves, or the migration @id. *@ret_runs: some of it is not over. */
static int show_changes(const char *id, bool *ret_runs)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    const json_t *change;
    json_t *answer;
    size_t i;

    *ret_runs = false;
    if (id)
        path_of(&path, "/v1/admin/migrations/", id, "");
    else
        qf_strbuf_puts(&path, "/v1/admin/migrations");
    answer = ask("GET", &path);
    if (!answer)
        return 1;
    *ret_runs = id && runs(answer);
    json_array_foreach(json_object_get(answer, "migrations"), i, change) *ret_runs |= runs(change);
    if (json_out)
        return cli_web_print(answer);
    if (id)
        print_change(answer);
    json_array_foreach(json_object_get(answer, "migrations"), i, change) print_change(change);
    if (!id && !json_array_size(json_object_get(answer, "migrations")))
        printf("nothing moves\n");
    json_decref(answer);
    return 0;
}

static int status(const char *id)
{
    bool running;
    int code = show_changes(id, &running);

    while (code == 0 && follow && running) {
        (void)fflush(stdout);
        (void)sleep(WATCH_SECONDS);
        code = show_changes(id, &running);
    }
    return code;
}

/* --- changing --- */

static int add_node(const char *name, const char *url)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_puts(&path, "/v1/admin/storage-nodes");
    cli_web_param(&path, "name", name);
    cli_web_param(&path, "url", url);
    if (zone)
        cli_web_param(&path, "zone", zone);
    return ask_change("POST", &path, "added");
}

static int remove_node(const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    path_of(&path, "/v1/admin/storage-nodes/", name, "");
    return ask_change("DELETE", &path, "it is leaving");
}

static int found_ring(void)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_puts(&path, "/v1/admin/ring");
    cli_web_param_u64(&path, "copies", copies);
    if (grace)
        cli_web_param(&path, "grace", grace);
    return ask_change("POST", &path, "founded");
}

static int change_copies(void)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_puts(&path, "/v1/admin/ring");
    cli_web_param_u64(&path, "copies", copies);
    return ask_change("PUT", &path, "changing");
}

static int cancel(const char *id)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    path_of(&path, "/v1/admin/migrations/", id, "");
    if (reason)
        cli_web_param(&path, "reason", reason);
    return ask_change("DELETE", &path, "going back");
}

static int clean(const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    path_of(&path, "/v1/admin/storage-nodes/", name, "/clean");
    cli_web_param_u64(&path, "slot", slot);
    if (force)
        cli_web_param(&path, "force", "true");
    if (reason)
        cli_web_param(&path, "reason", reason);
    return ask_change("POST", &path, "told to drop it");
}

static int run(const char *word, const char *name, const char *url)
{
    if (strcmp(word, "ls") == 0 && !name)
        return list();
    if (strcmp(word, "status") == 0 && !url)
        return status(name);
    if (strcmp(word, "found") == 0 && !name)
        return found_ring();
    if (strcmp(word, "copies") == 0 && !name)
        return change_copies();
    if (strcmp(word, "add") == 0 && url)
        return add_node(name, url);
    if (strcmp(word, "remove") == 0 && name && !url)
        return remove_node(name);
    if (strcmp(word, "cancel") == 0 && name && !url)
        return cancel(name);
    if (strcmp(word, "clean") == 0 && name && !url)
        return clean(name);
    return -1;
}

int cli_nodes(int argc, char **argv)
{
    int positional, code;
    enum cli_parsed parsed = cli_flags_parse(&spec, argc, argv, &positional);

    if (parsed == CLI_PARSED_HELP)
        return 0;
    if (parsed == CLI_PARSED_BAD || !cli_web_read_key(&web))
        return 2;
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    if (positional > 1 && strcmp(argv[1], "form") == 0)
        return cli_nodes_form(&web, (const char *const *)(argv + 2), (size_t)positional - 1, copies,
                              wait_ms);
    code = positional > 0 && positional < 4
               ? run(argv[1], positional > 1 ? argv[2] : NULL, positional > 2 ? argv[3] : NULL)
               : -1;
    if (code < 0) {
        fprintf(stderr, "error: what to do? ls, form NAME=URL..., found, add NAME URL, remove "
                        "NAME, status [ID], "
                        "cancel ID, copies or clean NAME; try promfabric nodes --help\n");
        return 2;
    }
    return code;
}
