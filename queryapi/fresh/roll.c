/* roll.c - one question to each node, one text of all answers. */
#include "queryapi/fresh/roll.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/pure/strbuf.h"
#include "base/pure/vec.h"
#include "queryapi/fresh/asker.h"

#define WAITERS_MAX 64
/* A node answers out of its memory: one that takes longer is as good as away. */
#define NODE_TIMEOUT_MS 2000

struct waiter {
    qa_roll_heard *heard;
    void *ctx;
};

struct node {
    struct qa_roll *roll;
    char *address;
    json_t *said; /* NULL: not yet */
};

struct qa_roll {
    void (*ask)(void *ctx, struct qa_question *question);
    void *ctx;
    QF_VEC(struct waiter) waiters;
    struct node *nodes; /* of the roll under way; NULL: there is none */
    size_t count, left;
};

struct qa_roll *qa_roll_new(void (*ask)(void *ctx, struct qa_question *question), void *ctx)
{
    struct qa_roll *roll = qf_xcalloc(1, sizeof(*roll));

    roll->ask = ask;
    roll->ctx = ctx;
    return roll;
}

static void forget(struct qa_roll *roll)
{
    for (size_t i = 0; i < roll->count; i++) {
        json_decref(roll->nodes[i].said);
        free(roll->nodes[i].address);
    }
    free(roll->nodes);
    roll->nodes = NULL;
    roll->count = roll->left = 0;
}

static void tell(struct qa_roll *roll, struct qf_str text)
{
    for (size_t i = 0; i < roll->waiters.count; i++)
        roll->waiters.items[i].heard(roll->waiters.items[i].ctx, text);
    roll->waiters.count = 0;
}

struct qa_roll *qa_roll_free(struct qa_roll *roll)
{
    if (!roll)
        return NULL;
    tell(roll, QF_STR(""));
    forget(roll);
    QF_VEC_DONE(&roll->waiters);
    free(roll);
    return NULL;
}

static void finish(struct qa_roll *roll)
{
    json_t *list = json_array();
    char *text;

    for (size_t i = 0; i < roll->count; i++)
        (void)json_array_append(list, roll->nodes[i].said);
    text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    forget(roll);
    tell(roll, text ? qf_str_from(text) : QF_STR(""));
    free(text);
}

static json_t *read_answer(const struct qa_question *question)
{
    struct qf_str text = qf_strbuf_view(&question->answer);
    json_t *said = question->rc == QF_OK ? json_loadb(text.data, text.len, 0, NULL) : NULL;
    bool drains = json_is_true(json_object_get(said, "draining"));
    const char *reason = question->reason;

    if (json_is_object(said)) {
        (void)json_object_set_new(said, "state", json_string(drains ? "drains" : "alive"));
        return said;
    }
    if (question->rc == QF_OK)
        reason = "what it says of itself cannot be read";
    json_decref(said);
    return json_pack("{s:s,s:s}", "state", "away", "error", reason);
}

static void answered(struct qa_question *question)
{
    struct node *node = question->ctx;

    node->said = read_answer(question);
    (void)json_object_set_new(node->said, "address", json_string(node->address));
    (void)qa_question_free(question);
    if (--node->roll->left == 0)
        finish(node->roll);
}

static void begin(struct qa_roll *roll, char *const *addresses, size_t count)
{
    roll->nodes = qf_xcalloc(count + 1, sizeof(*roll->nodes));
    roll->count = roll->left = count;
    for (size_t i = 0; i < count; i++)
        roll->nodes[i] = (struct node){ .roll = roll, .address = qf_xstrdup(addresses[i]) };
    for (size_t i = 0; i < count; i++) {
        struct qa_question *question = qf_xcalloc(1, sizeof(*question));

        *question = (struct qa_question){ .tenant = qf_xstrdup(""),
                                          .path = "/v1/node",
                                          .node = qf_xstrdup(addresses[i]),
                                          .timeout_ms = NODE_TIMEOUT_MS,
                                          .done = answered,
                                          .ctx = &roll->nodes[i] };
        roll->ask(roll->ctx, question);
    }
    if (!count)
        finish(roll);
}

void qa_roll_call(struct qa_roll *roll, char *const *addresses, size_t count, qa_roll_heard *heard,
                  void *ctx)
{
    if (roll->waiters.count == WAITERS_MAX) {
        heard(ctx, QF_STR(""));
        return;
    }
    QF_VEC_PUSH(&roll->waiters, (struct waiter){ heard, ctx });
    if (!roll->nodes)
        begin(roll, addresses, count);
}
