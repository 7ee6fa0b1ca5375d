/* nodes_form.c - one ring out of storage nodes, however far it is already. */
#include "cli/nodes_form.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/sys/clock.h"

#define NODES_MAX 64
#define ASK_MS 15000L
#define PAUSE_MS 500
#define NODES_PATH "/v1/admin/storage-nodes"

struct wanted {
    char name[160];
    const char *url;
};

struct form {
    const struct cli_web *web;
    struct wanted nodes[NODES_MAX];
    size_t count;
    uint64_t copies;
    struct qf_strbuf why; /* nothing better could be done yet */
};

enum step { DONE, AGAIN, NEVER };

static json_t *ask(struct form *form, const char *method, const char *path)
{
    qf_strbuf_reset(&form->why);
    return cli_web_try(form->web, &(struct cli_web_request){ .method = method, .path = path },
                       ASK_MS, &form->why);
}

/* However it ends: the next look says how things stand. */
static void change(struct form *form, const struct qf_strbuf *path, const char *what)
{
    json_t *answer = ask(form, "POST", qf_strbuf_cstr(path));

    if (answer)
        fprintf(stderr, "%s\n", what);
    json_decref(answer);
}

static void add(struct form *form, const struct wanted *node)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT, said = QF_STRBUF_INIT;

    qf_strbuf_puts(&path, NODES_PATH);
    cli_web_param(&path, "name", node->name);
    cli_web_param(&path, "url", node->url);
    qf_strbuf_printf(&said, "%s: added", node->name);
    change(form, &path, qf_strbuf_cstr(&said));
}

static void found(struct form *form)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf path = QF_STRBUF_INIT;

    qf_strbuf_puts(&path, "/v1/admin/ring");
    cli_web_param_u64(&path, "copies", form->copies);
    change(form, &path, "made a ring");
}

/* Is @node, as @known tells it, what is wanted? */
static enum step check(const struct wanted *node, const json_t *known)
{
    const char *state = cli_json_text(known, "state"), *url = cli_json_text(known, "url");

    if (strcmp(url, node->url) != 0)
        fprintf(stderr, "error: %s is known at %s, not at %s\n", node->name, url, node->url);
    else if (strcmp(state, "LEAVING") == 0 || strcmp(state, "REMOVED") == 0)
        fprintf(stderr, "error: %s is %s: give the node another name\n", node->name, state);
    else
        return DONE;
    return NEVER;
}

static enum step look_for(struct form *form, const struct wanted *node, const json_t *nodes)
{
    const json_t *known;
    size_t i;

    json_array_foreach(nodes, i, known)
    {
        if (strcmp(cli_json_text(known, "name"), node->name) == 0)
            return check(node, known);
    }
    add(form, node);
    return AGAIN;
}

static enum step step(struct form *form)
{
    json_t *answer = ask(form, "GET", NODES_PATH);
    enum step now = answer ? DONE : AGAIN;

    for (size_t i = 0; i < form->count && now == DONE; i++)
        now = look_for(form, &form->nodes[i], json_object_get(answer, "nodes"));
    if (now == DONE && !json_is_true(json_object_get(json_object_get(answer, "ring"), "founded"))) {
        found(form);
        now = AGAIN;
    }
    json_decref(answer);
    return now;
}

static bool read_node(const char *text, struct wanted *node)
{
    const char *equals = strchr(text, '=');
    size_t len = equals ? (size_t)(equals - text) : 0;

    if (!len || len >= sizeof(node->name) || !strstr(equals, "://")) {
        fprintf(stderr, "error: %s is not NAME=URL\n", text);
        return false;
    }
    memcpy(node->name, text, len);
    node->name[len] = 0;
    node->url = equals + 1;
    return true;
}

static bool read_nodes(struct form *form, const char *const *nodes, size_t count)
{
    if (count > NODES_MAX) {
        fprintf(stderr, "error: at most %d storage nodes\n", NODES_MAX);
        return false;
    }
    for (form->count = 0; form->count < count; form->count++)
        if (!read_node(nodes[form->count], &form->nodes[form->count]))
            return false;
    return true;
}

int cli_nodes_form(const struct cli_web *web, const char *const *nodes, size_t count,
                   uint64_t copies, int64_t wait_ms)
{
    struct form form = { .web = web, .copies = copies };
    int64_t due = qf_clock_mono_ms() + wait_ms;
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf said = QF_STRBUF_INIT;
    enum step now;

    if (!read_nodes(&form, nodes, count))
        return 2;
    while ((now = step(&form)) == AGAIN && qf_clock_mono_ms() < due) {
        cli_web_waiting(&form.why, &said);
        if (form.why.len)
            (void)poll(NULL, 0, PAUSE_MS);
    }
    if (now == AGAIN)
        fprintf(stderr, "error: not done in time: %s\n", qf_strbuf_cstr(&form.why));
    if (now == DONE)
        printf("%zu storage nodes are on the ring\n", form.count);
    qf_strbuf_done(&form.why);
    return now == DONE ? 0 : 1;
}
