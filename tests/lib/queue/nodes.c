#include "tests/lib/queue/nodes.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "base/sys/thread.h"
#include "queue/node/folders.h"
#include "tests/lib/test.h"

static const char *const names[NODES_MAX] = { "a", "b", "c" };

struct place {
    struct nodes *nodes;
    size_t i;
    char path[64];
    struct qn_data *data;
    struct qn_node *node;
    bool cut, hearing;
    struct nodes_options *options;
};

struct nodes {
    struct nodes_options options;
    struct qf_lock *lock; /* of the places and what is called */
    struct place places[NODES_MAX];
    char folder[64], fatal[256];
    int waiting;
};

/* --- the wires --- */

/* With the lock taken: node @name, if messages of @from reach it. */
static struct qn_node *reach(struct place *from, const char *name)
{
    for (size_t i = 0; i < from->nodes->options.count; i++) {
        struct place *place = &from->nodes->places[i];

        if (strcmp(names[i], name) == 0 && place->hearing && !place->cut && !from->cut)
            return place->node;
    }
    return NULL;
}

static bool send_message(void *ctx, const char *to, const char *queue, struct qf_strbuf *bytes)
{
    struct place *place = ctx;
    struct qn_node *node;

    qf_lock_take(place->nodes->lock);
    node = reach(place, to);
    if (node)
        qn_hear(node, names[place->i], queue, qf_strbuf_view(bytes));
    qf_lock_drop(place->nodes->lock);
    return node != NULL;
}

struct call {
    struct nodes *nodes;
    qn_called *done;
    void *arg;
};

static qf_rc call_node(void *ctx, const char *to, const char *method, struct qf_str bytes,
                       int64_t deadline_ms, qn_called *done, void *arg)
{
    struct place *place = ctx;
    struct call *call;
    struct qn_node *node;

    (void)deadline_ms;
    qf_lock_take(place->nodes->lock);
    node = reach(place, to);
    if (node) {
        call = qf_xcalloc(1, sizeof(*call));
        *call = (struct call){ place->nodes, done, arg };
        qn_called_by(node, names[place->i], method, bytes, call);
    }
    qf_lock_drop(place->nodes->lock);
    return node ? QF_OK : QF_EUNAVAILABLE;
}

static void reply(void *arg, qf_rc rc, struct qf_str bytes)
{
    struct call *call = arg;

    call->done(call->arg, rc, bytes);
    free(call);
}

struct copy {
    qn_called *done;
    void *arg;
    char path[256];
};

static void bundled(void *ctx, qf_rc rc, const char *path)
{
    struct copy *copy = ctx;
    char command[700];

    if (rc == QF_OK) {
        (void)snprintf(command, sizeof(command), "cp '%s' '%s'", path, copy->path);
        rc = system(command) == 0 ? QF_OK : QF_EIO;
    }
    copy->done(copy->arg, rc, QF_STR("copied"));
    free(copy);
}

static qf_rc fetch_file(void *ctx, const char *from, const char *queue, uint64_t index,
                        uint64_t term, const char *path, qn_called *done, void *arg)
{
    struct place *place = ctx;
    struct copy *copy = qf_xcalloc(1, sizeof(*copy));
    struct qn_node *node;

    *copy = (struct copy){ .done = done, .arg = arg };
    (void)snprintf(copy->path, sizeof(copy->path), "%s", path);
    qf_lock_take(place->nodes->lock);
    node = reach(place, from);
    if (node)
        qn_bundle(node, queue, index, term, bundled, copy);
    qf_lock_drop(place->nodes->lock);
    if (!node)
        free(copy);
    return node ? QF_OK : QF_EUNAVAILABLE;
}

static void on_fatal(void *ctx, const char *why)
{
    struct place *place = ctx;

    (void)snprintf(place->nodes->fatal, sizeof(place->nodes->fatal), "%s", why);
}

/* --- nodes --- */

struct nodes *nodes_new(const struct nodes_options *options)
{
    struct nodes *nodes = qf_xcalloc(1, sizeof(*nodes));

    nodes->options = *options;
    nodes->lock = qf_lock_new();
    (void)snprintf(nodes->folder, sizeof(nodes->folder), "/tmp/promfabric-nodes-XXXXXX");
    CHECK(mkdtemp(nodes->folder) != NULL);
    for (size_t i = 0; i < options->count; i++) {
        nodes->places[i] = (struct place){ .nodes = nodes, .i = i };
        (void)snprintf(nodes->places[i].path, sizeof(nodes->places[i].path), "%.40s/%s",
                       nodes->folder, names[i]);
    }
    return nodes;
}

void nodes_start(struct nodes *nodes, size_t i)
{
    struct place *place = &nodes->places[i];
    struct qf_err err = { 0 };
    struct qn_options options = { .name = names[i],
                                  .bootstrap = i == 0,
                                  .reserve_bytes = 4096,
                                  .file_bytes = nodes->options.file_bytes,
                                  .election_ms = 300,
                                  .heartbeat_ms = 30,
                                  .applications = nodes->options.applications[i],
                                  .transport = { .ctx = place,
                                                 .send = send_message,
                                                 .call = call_node,
                                                 .reply = reply,
                                                 .fetch = fetch_file },
                                  .fatal = on_fatal,
                                  .ctx = place };
    struct qn_node *node = NULL;

    CHECK_OK(qn_data_open(place->path, &place->data, &err), &err);
    options.folders = qn_data_folders(place->data);
    CHECK_OK(qn_start(&options, &node, &err), &err);
    qf_lock_take(nodes->lock);
    place->node = node;
    place->hearing = true;
    qf_lock_drop(nodes->lock);
}

void nodes_stop(struct nodes *nodes, size_t i)
{
    struct place *place = &nodes->places[i];

    qf_lock_take(nodes->lock);
    place->hearing = false;
    qf_lock_drop(nodes->lock);
    /* Calls of it that others hold still end: it must be there until they have. */
    qn_halt(place->node);
    (void)poll(NULL, 0, 50);
    place->node = qn_stop(place->node);
    place->data = qn_data_close(place->data);
}

void nodes_wipe(struct nodes *nodes, size_t i)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", nodes->places[i].path);
    CHECK_EQ(system(command), 0);
}

struct nodes *nodes_free(struct nodes *nodes)
{
    char command[128];

    if (!nodes)
        return NULL;
    for (size_t i = 0; i < nodes->options.count; i++)
        if (nodes->places[i].node)
            nodes_stop(nodes, i);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", nodes->folder);
    (void)!system(command);
    (void)qf_lock_free(nodes->lock);
    free(nodes);
    return NULL;
}

struct qn_node *nodes_at(struct nodes *nodes, size_t i)
{
    return nodes->places[i].node;
}

void nodes_cut(struct nodes *nodes, size_t i, bool cut)
{
    qf_lock_take(nodes->lock);
    nodes->places[i].cut = cut;
    qf_lock_drop(nodes->lock);
}

const char *nodes_fatal(struct nodes *nodes)
{
    return nodes->fatal;
}

/* --- asks --- */

struct waiter {
    struct qf_lock *lock;
    struct qn_ask *answered;
};

static void on_done(void *ctx, struct qn_ask *ask)
{
    struct waiter *waiter = ctx;

    qf_lock_take(waiter->lock);
    waiter->answered = ask;
    qf_lock_wake_all(waiter->lock);
    qf_lock_drop(waiter->lock);
}

struct qn_ask *nodes_ask(struct nodes *nodes, size_t i, struct qn_ask *ask)
{
    struct waiter waiter = { .lock = qf_lock_new() };
    int64_t deadline = qf_clock_mono_ms() + 20000;

    if (!ask->tenant[0])
        (void)snprintf(ask->tenant, sizeof(ask->tenant), "t");
    ask->operates = true;
    ask->done = on_done;
    ask->ctx = &waiter;
    CHECK(qn_ask(nodes->places[i].node, ask));
    qf_lock_take(waiter.lock);
    while (!waiter.answered && qf_clock_mono_ms() < deadline)
        (void)qf_lock_wait(waiter.lock, 10);
    qf_lock_drop(waiter.lock);
    CHECK(waiter.answered != NULL);
    (void)qf_lock_free(waiter.lock);
    return waiter.answered;
}

qf_rc nodes_ask_rc(struct nodes *nodes, size_t i, struct qn_ask *ask)
{
    struct qn_ask *answered = nodes_ask(nodes, i, ask);
    qf_rc rc = answered->answer.err.rc;

    (void)qn_ask_free(answered);
    return rc;
}

static qf_rc change(struct nodes *nodes, size_t at, enum qc_change change, size_t i)
{
    struct qn_ask *ask = qn_ask_new(QN_CHANGE, QF_STR(QN_META));

    ask->change = change;
    (void)snprintf(ask->member, sizeof(ask->member), "%s", names[i]);
    return nodes_ask_rc(nodes, at, ask);
}

static void change_until_done(struct nodes *nodes, size_t at, enum qc_change what, size_t i)
{
    int64_t deadline = qf_clock_mono_ms() + 20000;
    qf_rc rc;

    /* One that was not answered in time, or by a leader that lost its place, may have been done. */
    while ((rc = change(nodes, at, what, i)) != QF_OK && rc != QF_EEXIST &&
           qf_clock_mono_ms() < deadline)
        (void)poll(NULL, 0, 20);
    CHECK(rc == QF_OK || rc == QF_EEXIST);
}

void nodes_join(struct nodes *nodes, size_t at, size_t i)
{
    change_until_done(nodes, at, QC_ADD, i);
    change_until_done(nodes, at, QC_PROMOTE, i);
}

size_t nodes_leader(struct nodes *nodes, const char *queue)
{
    int64_t deadline = qf_clock_mono_ms() + 20000;

    while (qf_clock_mono_ms() < deadline) {
        for (size_t i = 0; i < nodes->options.count; i++) {
            struct qn_ask *ask;
            bool leads;

            if (!nodes->places[i].node)
                continue;
            ask = nodes_ask(nodes, i, qn_ask_new(QN_SHOW, qf_str_from(queue)));
            leads = ask->answer.text.len &&
                    strstr(qf_strbuf_cstr(&ask->answer.text), "\"this_node\":\"leader\"") != NULL;
            (void)qn_ask_free(ask);
            if (leads && !nodes->places[i].cut)
                return i;
        }
        (void)poll(NULL, 0, 20);
    }
    test_fail(__FILE__, __LINE__, "queue %s has no leader", queue);
}
