/* queue_form.c - one cluster out of ingest nodes, however far it is already. */
#include "cli/queue_form.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/sys/clock.h"

#define NODES_MAX 7 /* more voters make every write slower and nothing safer */
#define ASK_MS 5000L
#define CHANGE_MS 15000L
#define PAUSE_MS 500

struct node {
    const char *url;
    char name[64];
    char cluster[32];      /* "": none */
    json_int_t partitions; /* 0: not known yet */
};

struct form {
    const struct cli_web *web;
    const char *replace;
    struct node nodes[NODES_MAX];
    size_t count;
    struct qf_strbuf why; /* nothing better could be done yet */
};

static json_t *ask(struct form *form, const char *url, const char *method, const char *path,
                   long timeout_ms)
{
    struct cli_web web = *form->web;

    web.url = url;
    qf_strbuf_reset(&form->why);
    return cli_web_try(&web, &(struct cli_web_request){ .method = method, .path = path },
                       timeout_ms, &form->why);
}

static void copy_text(char *out, size_t size, const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    (void)snprintf(out, size, "%s", text ? text : "");
}

static bool look_at(struct form *form, struct node *node)
{
    json_t *answer = ask(form, node->url, "GET", "/v1/node", ASK_MS);

    if (!answer)
        return false;
    copy_text(node->name, sizeof(node->name), answer, "node");
    copy_text(node->cluster, sizeof(node->cluster), answer, "cluster");
    if (strspn(node->cluster, "0") == strlen(node->cluster))
        node->cluster[0] = 0;
    node->partitions = json_integer_value(json_object_get(answer, "partitions"));
    json_decref(answer);
    if (!node->name[0])
        qf_strbuf_printf(&form->why, "%s is no ingest node", node->url);
    return node->name[0];
}

/* Who votes as member @name, and who does not yet. */
enum role { NO_MEMBER, SPARE, VOTER };

static enum role role_in(const json_t *status, const char *name)
{
    enum role found = NO_MEMBER;
    const json_t *member;
    size_t i;

    json_array_foreach(json_object_get(status, "members"), i, member)
    {
        const char *known = json_string_value(json_object_get(member, "name"));
        const char *role = json_string_value(json_object_get(member, "role"));

        if (known && role && strcmp(known, name) == 0)
            found = strcmp(role, "voter") == 0 ? VOTER : SPARE;
    }
    return found;
}

static json_t *status_of(struct form *form, const struct node *at, const char *queue)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    char *escaped = curl_easy_escape(NULL, queue, (int)strlen(queue));

    qf_strbuf_printf(&path, "/v1/queues/%s/status", escaped ? escaped : "");
    curl_free(escaped);
    return ask(form, at->url, "GET", qf_strbuf_cstr(&path), ASK_MS);
}

static bool change(struct form *form, const struct node *at, const char *what, const char *name)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;
    json_t *answer;

    qf_strbuf_puts(&path, "/v1/members");
    cli_web_param(&path, "change", what);
    cli_web_param(&path, "name", name);
    answer = ask(form, at->url, "POST", qf_strbuf_cstr(&path), CHANGE_MS);
    json_decref(answer);
    if (answer)
        fprintf(stderr, "%s: %s\n", name, what);
    return answer;
}

enum step { DONE, AGAIN, NEVER };

/* A step nearer to @node being a voter. */
static enum step take_in(struct form *form, const struct node *at, const struct node *node)
{
    json_t *status = status_of(form, at, "meta");
    enum role role = role_in(status, node->name);

    json_decref(status);
    if (!status)
        return AGAIN;
    if (role == VOTER && node->cluster[0])
        return DONE;
    if (role != NO_MEMBER && !node->cluster[0]) {
        if (!form->replace || strcmp(form->replace, node->name) != 0) {
            fprintf(stderr,
                    "error: %s is a member, but the node at %s has an empty folder: if the old one "
                    "is lost, run this again with --replace %s\n",
                    node->name, node->url, node->name);
            return NEVER;
        }
        (void)change(form, at, "remove", node->name);
        return AGAIN;
    }
    (void)change(form, at, role == NO_MEMBER ? "add" : "promote", node->name);
    return AGAIN;
}

/* Do all nodes vote in @queue, too? Until then fewer nodes may be lost than their number says. */
static bool is_followed(struct form *form, const struct node *at, const char *queue)
{
    json_t *status = status_of(form, at, queue);
    bool followed = status;

    for (size_t i = 0; followed && i < form->count; i++) {
        followed = role_in(status, form->nodes[i].name) == VOTER;
        if (!followed)
            qf_strbuf_printf(&form->why, "%s does not vote in queue %s yet", form->nodes[i].name,
                             queue);
    }
    json_decref(status);
    return followed;
}

/* The leaders of the other queues follow meta, one change at a time. */
static enum step queues_follow(struct form *form, const struct node *at)
{
    json_t *answer = ask(form, at->url, "GET", "/v1/queues", ASK_MS);
    enum step followed = answer ? DONE : AGAIN;
    char partition[32];
    const json_t *queue;
    size_t i;

    /* Those of partitions are made a moment after the cluster. */
    (void)snprintf(partition, sizeof(partition), "metrics-%" JSON_INTEGER_FORMAT,
                   at->partitions - 1);
    if (followed == DONE && (!at->partitions || !is_followed(form, at, partition)))
        followed = AGAIN;
    json_array_foreach(json_object_get(answer, "queues"), i, queue)
    {
        const char *name = json_string_value(json_object_get(queue, "name"));

        if (name && followed == DONE && !is_followed(form, at, name))
            followed = AGAIN;
    }
    json_decref(answer);
    return followed;
}

/* The first node of the one cluster there is; it is made if there is none. */
static enum step find_cluster(struct form *form, const struct node **ret_at)
{
    const struct node *at = NULL;

    for (size_t i = 0; i < form->count; i++) {
        const struct node *node = &form->nodes[i];

        if (!node->cluster[0])
            continue;
        if (at && strcmp(at->cluster, node->cluster) != 0) {
            fprintf(stderr,
                    "error: %s and %s are in different clusters: empty the folder of the one whose "
                    "samples are not wanted, and start it without --bootstrap\n",
                    at->name, node->name);
            return NEVER;
        }
        at = at ? at : node;
    }
    *ret_at = at;
    if (!at) {
        json_t *answer = ask(form, form->nodes[0].url, "POST", "/v1/cluster", CHANGE_MS);

        if (answer)
            fprintf(stderr, "%s: made a cluster\n", form->nodes[0].name);
        json_decref(answer);
        return AGAIN;
    }
    return DONE;
}

static bool names_differ(const struct form *form)
{
    for (size_t i = 0; i < form->count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(form->nodes[i].name, form->nodes[k].name) == 0) {
                fprintf(stderr, "error: %s and %s are both called %s: give each its --ingest-id\n",
                        form->nodes[k].url, form->nodes[i].url, form->nodes[i].name);
                return false;
            }
    return true;
}

/* All nodes must answer first: a cluster that one of them is in already must not get a second beside it. */
static enum step step(struct form *form)
{
    const struct node *at;
    enum step found;

    for (size_t i = 0; i < form->count; i++)
        if (!look_at(form, &form->nodes[i]))
            return AGAIN;
    if (!names_differ(form))
        return NEVER;
    found = find_cluster(form, &at);
    for (size_t i = 0; found == DONE && i < form->count; i++)
        found = take_in(form, at, &form->nodes[i]);
    return found == DONE ? queues_follow(form, at) : found;
}

int cli_queue_form(const struct cli_web *web, const char *const *urls, size_t count,
                   const char *replace, int64_t wait_ms)
{
    struct form form = { .web = web, .replace = replace, .count = count };
    int64_t due = qf_clock_mono_ms() + wait_ms;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf said = QF_STRBUF_INIT;
    enum step now = AGAIN;

    if (count > NODES_MAX) {
        fprintf(stderr, "error: at most %d nodes make a cluster\n", NODES_MAX);
        return 2;
    }
    for (size_t i = 0; i < count; i++)
        form.nodes[i].url = urls[i];
    while ((now = step(&form)) == AGAIN && qf_clock_mono_ms() < due) {
        cli_web_waiting(&form.why, &said);
        (void)poll(NULL, 0, PAUSE_MS);
    }
    if (now == AGAIN)
        fprintf(stderr, "error: not done in time: %s\n", qf_strbuf_cstr(&form.why));
    if (now == DONE)
        printf("%zu nodes vote\n", count);
    qf_strbuf_done(&form.why);
    return now == DONE ? 0 : 1;
}
