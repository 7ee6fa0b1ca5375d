/* cmd_queue.c - promfabric queue: queues of an ingest node from a terminal. */
#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pure/alloc.h"
#include "base/pure/base64.h"
#include "base/pure/duration.h"
#include "cli/queue_form.h"
#include "cli/queue_rescue.h"

int cli_queue(int argc, char **argv);

#define BATCH_RECORDS 1000
#define BATCH_BYTES ((size_t)1 << 20)
#define FOLLOW_WAIT "5s"

static struct cli_web web;
static bool json_out, follow, delete_on_consume, yes;
static const char *consumer, *level, *retention, *consumer_expiry, *add, *promote, *demote,
    *remove_member, *transfer, *replace, *as;
static int64_t wait_ms;
static uint64_t max, from, offset, retention_bytes;

static const struct cli_flag flags[] = {
    CLI_WEB_FLAGS(web, "http://127.0.0.1:8083", "an ingest node; any of a cluster"),
    { "json", CLI_FLAG_BOOL, &json_out, NULL, NULL, "print answers as they come" },
    { "max", CLI_FLAG_U64, &max, "N", "100", "tail: at most so many records" },
    { "from", CLI_FLAG_U64, &from, "OFFSET", "0", "tail: from this offset on; 0: the last ones" },
    { "follow", CLI_FLAG_BOOL, &follow, NULL, NULL, "tail: go on until Ctrl-C" },
    { "consumer", CLI_FLAG_STR, &consumer, "NAME", NULL, "offsets: whose offset --offset sets" },
    { "offset", CLI_FLAG_U64, &offset, "OFFSET", "0", "offsets: the first one not read" },
    { "level", CLI_FLAG_STR, &level, "LEVEL", NULL,
      "offer, create: one, quorum or all; when a record counts as taken" },
    { "retention", CLI_FLAG_STR, &retention, "DURATION", NULL,
      "create: how long records are kept; for ever if absent" },
    { "retention-bytes", CLI_FLAG_BYTES, &retention_bytes, "BYTES", "0B",
      "create: how much is kept; 0B: no bound" },
    { "consumer-expiry", CLI_FLAG_STR, &consumer_expiry, "DURATION", NULL,
      "create: how long a silent consumer holds records; 7d if absent" },
    { "delete-on-consume", CLI_FLAG_BOOL, &delete_on_consume, NULL, NULL,
      "create: each record is handed out once" },
    { "add", CLI_FLAG_STR, &add, "NODE", NULL, "members: take a node into the cluster" },
    { "promote", CLI_FLAG_STR, &promote, "NODE", NULL,
      "members: let a node vote once it has caught up" },
    { "demote", CLI_FLAG_STR, &demote, "NODE", NULL, "members: it no longer votes" },
    { "remove", CLI_FLAG_STR, &remove_member, "NODE", NULL,
      "members: it no longer belongs to the cluster" },
    { "transfer", CLI_FLAG_STR, &transfer, "NODE", NULL,
      "members NAME: hand the leadership of a queue to this node" },
    { "replace", CLI_FLAG_STR, &replace, "NODE", NULL,
      "form: this node lost its folder and comes back with an empty one" },
    { "wait", CLI_FLAG_DURATION, &wait_ms, "DURATION", "5m",
      "form: how long nodes may take to start and to catch up" },
    { "yes", CLI_FLAG_BOOL, &yes, NULL, NULL,
      "rescue: do it; without this it only says what the folder holds" },
    { "as", CLI_FLAG_STR, &as, "NODE", NULL, "rescue: the node is called this from now on" },
};

static const struct cli_spec spec = {
    .usage = "promfabric queue ls|show|tail|offer|create|delete|offsets|members|form|rescue "
             "[FLAG...] [NAME|URL...|DIR]",
    .summary =
        "ls lists queues; show NAME tells all about one; tail NAME prints its records; offer NAME\n"
        "[RECORD...] appends records, or each line of the input; create NAME and delete NAME;\n"
        "offsets NAME shows consumers, or sets one; members shows and changes who is in the "
        "cluster;\n"
        "form URL... makes one cluster of the nodes at these URLs, or what is missing of it. It "
        "can "
        "be\n"
        "run again at any time: nodes that are in it stay as they are.\n"
        "rescue DIR makes the stopped node of the folder DIR the only one of a new cluster: when\n"
        "most nodes are lost for good, or the folder is a backup.",
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
};

/* --- asking --- */

static void queue_path(struct qf_strbuf *path, const char *name, const char *rest)
{
    char *escaped = curl_easy_escape(NULL, name, (int)strlen(name));

    qf_strbuf_printf(path, "/v1/queues/%s%s", escaped ? escaped : "", rest);
    curl_free(escaped);
}

static json_t *ask(const char *method, const struct qf_strbuf *path)
{
    return cli_web_ask(&web,
                       &(struct cli_web_request){ .method = method, .path = qf_strbuf_cstr(path) });
}

/* Ask for something that is answered by "ok". */
static int ask_done(const char *method, const struct qf_strbuf *path, const char *done)
{
    json_t *answer = ask(method, path);

    if (!answer)
        return 1;
    if (json_out)
        return cli_web_print(answer);
    printf("%s\n", done);
    json_decref(answer);
    return 0;
}

/* --- queues --- */

static int list(void)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    const json_t *queue;
    json_t *answer;
    size_t i;

    qf_strbuf_puts(&path, "/v1/queues");
    answer = ask("GET", &path);
    if (!answer || json_out)
        return cli_web_print(answer);
    printf("%-24s %-16s %-12s %10s %10s %12s\n", "queue", "tenant", "leader", "first", "next",
           "bytes");
    json_array_foreach(json_object_get(answer, "queues"), i, queue)
    {
        printf("%-24s %-16s %-12s %10" PRId64 " %10" PRId64 " %12" PRId64 "\n",
               cli_json_text(queue, "name"), cli_json_text(queue, "tenant"),
               cli_json_text(queue, "leader"), cli_json_number(queue, "first"),
               cli_json_number(queue, "next"), cli_json_number(queue, "bytes"));
    }
    json_decref(answer);
    return 0;
}

static void print_members(const json_t *answer)
{
    const json_t *member;
    size_t i;

    json_array_foreach(json_object_get(answer, "members"), i, member)
    {
        printf("%-24s %-8s %s%s\n", cli_json_text(member, "name"), cli_json_text(member, "role"),
               cli_json_text(member, "incarnation"),
               strcmp(cli_json_text(member, "name"), cli_json_text(answer, "leader")) == 0
                   ? "  leads"
                   : "");
    }
}

static int show(const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    const char *key;
    json_t *answer, *value;

    queue_path(&path, name, "/status");
    answer = ask("GET", &path);
    if (!answer || json_out)
        return cli_web_print(answer);
    json_object_foreach(answer, key, value)
    {
        char *text = json_is_array(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);

        if (text)
            printf("%-20s %s\n", key, text);
        free(text);
    }
    print_members(answer);
    json_decref(answer);
    return 0;
}

static int create(const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    queue_path(&path, name, "");
    if (level)
        cli_web_param(&path, "level", level);
    if (retention)
        cli_web_param(&path, "retention", retention);
    if (consumer_expiry)
        cli_web_param(&path, "consumer_expiry", consumer_expiry);
    if (retention_bytes)
        cli_web_param_u64(&path, "retention_bytes", retention_bytes);
    if (delete_on_consume)
        cli_web_param(&path, "delete_on_consume", "true");
    return ask_done("PUT", &path, "created");
}

static int delete_queue(const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    queue_path(&path, name, "");
    return ask_done("DELETE", &path, "deleted");
}

/* --- records --- */

static void print_record(const json_t *record)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf bytes = QF_STRBUF_INIT;
    const json_t *text = json_object_get(record, "data");
    const char *base64 = json_string_value(json_object_get(record, "base64"));

    if (json_out) {
        char *line = json_dumps(record, JSON_COMPACT);

        printf("%s\n", line);
        free(line);
        return;
    }
    if (text)
        qf_strbuf_add(&bytes, json_string_value(text), json_string_length(text));
    else if (base64)
        (void)qf_base64_decode(&bytes, qf_str_from(base64));
    printf("%" PRId64 "\t", cli_json_number(record, "offset"));
    (void)fwrite(qf_strbuf_cstr(&bytes), 1, bytes.len, stdout);
    printf("\n");
}

/* Where the last --max records begin; offsets have gaps, so there may be fewer. */
static bool find_start(const char *name, uint64_t *ret_start)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    json_t *answer;
    uint64_t first, next;

    queue_path(&path, name, "/offsets");
    answer = ask("GET", &path);
    if (!answer)
        return false;
    first = (uint64_t)cli_json_number(answer, "first");
    next = (uint64_t)cli_json_number(answer, "next");
    *ret_start = next > first + max ? next - max : first;
    json_decref(answer);
    return true;
}

/* One answer's records; where to go on, and whether that is the end. */
static bool print_some(const char *name, uint64_t *at, uint64_t *left, bool *ret_end)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    const json_t *record;
    json_t *answer;
    size_t i;

    queue_path(&path, name, "");
    cli_web_param_u64(&path, "from", *at);
    cli_web_param_u64(&path, "max", QF_MIN(*left, UINT64_C(1000)));
    if (follow)
        cli_web_param(&path, "wait", FOLLOW_WAIT);
    answer = ask("GET", &path);
    if (!answer)
        return false;
    json_array_foreach(json_object_get(answer, "records"), i, record)
    {
        print_record(record);
        --*left;
    }
    (void)fflush(stdout);
    *at = (uint64_t)cli_json_number(answer, "next");
    *ret_end = cli_json_number(answer, "next") >= cli_json_number(answer, "end");
    json_decref(answer);
    return true;
}

static int tail(const char *name)
{
    uint64_t at = from, left = follow ? UINT64_MAX : max;
    bool end = false;

    if (!at && !find_start(name, &at))
        return 1;
    while (left && !(end && !follow))
        if (!print_some(name, &at, &left, &end))
            return 1;
    return 0;
}

static int offer_batch(const char *name, struct qf_strbuf *lines, const char *type)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    json_t *answer;

    queue_path(&path, name, "");
    if (level)
        cli_web_param(&path, "level", level);
    answer = cli_web_ask(&web, &(struct cli_web_request){ .method = "POST",
                                                          .path = qf_strbuf_cstr(&path),
                                                          .body = qf_strbuf_view(lines),
                                                          .content_type = type });
    qf_strbuf_reset(lines);
    if (!answer || json_out)
        return cli_web_print(answer);
    printf("%" PRId64 " records, offsets %" PRId64 " to %" PRId64 "\n",
           cli_json_number(answer, "count"), cli_json_number(answer, "first"),
           cli_json_number(answer, "last"));
    json_decref(answer);
    return 0;
}

/* Each line of the input is a record. */
static int offer_input(const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf lines = QF_STRBUF_INIT;
    QF_CLEANUP(qf_freep) char *line = NULL;
    size_t capacity = 0, count = 0;
    ssize_t len;
    int code = 0;

    while (code == 0 && (len = getline(&line, &capacity, stdin)) >= 0) {
        qf_strbuf_add(&lines, line, (size_t)len);
        if (++count % BATCH_RECORDS == 0 || lines.len >= BATCH_BYTES)
            code = offer_batch(name, &lines, "application/x-ndjson");
    }
    return code == 0 && lines.len ? offer_batch(name, &lines, "application/x-ndjson") : code;
}

static int offer(const char *name, int count, char **records)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;
    int code = 0;

    if (!count)
        return offer_input(name);
    for (int i = 0; i < count && code == 0; i++) {
        qf_strbuf_puts(&record, records[i]);
        code = offer_batch(name, &record, "application/octet-stream");
    }
    return code;
}

/* --- consumers and members --- */

static int offsets(const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    const json_t *item;
    json_t *answer;
    size_t i;

    queue_path(&path, name, "/offsets");
    if (consumer) {
        cli_web_param(&path, "consumer", consumer);
        cli_web_param_u64(&path, "offset", offset);
        return ask_done("PUT", &path, "moved");
    }
    answer = ask("GET", &path);
    if (!answer || json_out)
        return cli_web_print(answer);
    printf("first %" PRId64 ", next %" PRId64 "\n", cli_json_number(answer, "first"),
           cli_json_number(answer, "next"));
    json_array_foreach(json_object_get(answer, "consumers"), i, item)
    {
        printf("%-40s %10" PRId64 "  %" PRId64 " behind\n", cli_json_text(item, "consumer"),
               cli_json_number(item, "offset"),
               cli_json_number(answer, "next") - cli_json_number(item, "offset"));
    }
    json_decref(answer);
    return 0;
}

static int change_member(const char *change, const char *node)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_puts(&path, "/v1/members");
    cli_web_param(&path, "change", change);
    cli_web_param(&path, "name", node);
    return ask_done("POST", &path, "done");
}

static int members(const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    json_t *answer;

    if (add || promote || demote || remove_member)
        return change_member(add       ? "add"
                             : promote ? "promote"
                             : demote  ? "demote"
                                       : "remove",
                             add       ? add
                             : promote ? promote
                             : demote  ? demote
                                       : remove_member);
    if (transfer) {
        queue_path(&path, name ? name : "meta", "/transfer");
        cli_web_param(&path, "to", transfer);
        return ask_done("POST", &path, "asked to lead");
    }
    queue_path(&path, name ? name : "meta", "/status");
    answer = ask("GET", &path);
    if (!answer || json_out)
        return cli_web_print(answer);
    print_members(answer);
    json_decref(answer);
    return 0;
}

static int run(const char *word, const char *name, int rest, char **records)
{
    if (strcmp(word, "ls") == 0)
        return list();
    if (strcmp(word, "members") == 0)
        return members(name);
    if (!name) {
        fprintf(stderr,
                "error: the name of a queue, URLs of nodes or a folder are needed; try promfabric "
                "queue --help\n");
        return 2;
    }
    if (strcmp(word, "form") == 0)
        return cli_queue_form(&web, (const char *const *)(records - 1), (size_t)rest + 1, replace,
                              wait_ms);
    if (strcmp(word, "rescue") == 0)
        return cli_queue_rescue(name, as, yes);
    if (strcmp(word, "show") == 0)
        return show(name);
    if (strcmp(word, "tail") == 0)
        return tail(name);
    if (strcmp(word, "offer") == 0)
        return offer(name, rest, records);
    if (strcmp(word, "create") == 0)
        return create(name);
    if (strcmp(word, "delete") == 0)
        return delete_queue(name);
    if (strcmp(word, "offsets") == 0)
        return offsets(name);
    fprintf(stderr, "error: unknown word %s; try promfabric queue --help\n", word);
    return 2;
}

int cli_queue(int argc, char **argv)
{
    int positional;
    enum cli_parsed parsed = cli_flags_parse(&spec, argc, argv, &positional);

    if (parsed == CLI_PARSED_HELP)
        return 0;
    if (parsed == CLI_PARSED_OK && !positional) {
        fprintf(stderr, "error: what to do? ls, show, tail, offer, create, delete, offsets, "
                        "members, form or rescue; try promfabric queue --help\n");
        return 2;
    }
    if (parsed == CLI_PARSED_BAD || !cli_web_read_key(&web))
        return 2;
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    return run(argv[1], positional > 1 ? argv[2] : NULL, positional - 2, argv + 3);
}
