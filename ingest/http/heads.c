/* heads.c - bodies of questions about heads, and asking the leaders of all partitions. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "ingest/head/heads.h"
#include "ingest/http/heads_int.h"

#define STATUS_TIMEOUT_MS 10000

/* --- bodies --- */

void in_body_refuse(struct qh_visit *visit, qf_rc rc, const char *what)
{
    struct qf_err err = { 0 };

    (void)qf_err_set(&err, rc, "%s", what);
    in_fail(visit, &err);
}

json_t *in_body_read(struct qh_visit *visit)
{
    struct qf_str body = visit->request->body;
    json_t *root;

    if (!visit->caller.sees_all) {
        in_body_refuse(visit, QF_EDENIED, "this is for operators: a key for all tenants");
        return NULL;
    }
    root = json_loadb(body.data ? body.data : "", body.len, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(root))
        return root;
    json_decref(root);
    in_body_refuse(visit, QF_EINVAL, "the body is not an object of JSON");
    return NULL;
}

bool in_body_int(const json_t *root, const char *name, int64_t *ret_value)
{
    const json_t *value = json_object_get(root, name);

    if (!json_is_integer(value))
        return false;
    *ret_value = json_integer_value(value);
    return true;
}

bool in_body_number(const json_t *root, const char *name, int64_t max, uint64_t *ret_value)
{
    int64_t value;

    if (!in_body_int(root, name, &value) || value < 0 || value > max)
        return false;
    *ret_value = (uint64_t)value;
    return true;
}

bool in_body_id(const json_t *root, const char *name, uint64_t *ret_id)
{
    const char *text = json_string_value(json_object_get(root, name));
    char *end = NULL;

    if (!text || !*text || strlen(text) > 16 || strspn(text, "0123456789abcdef") != strlen(text))
        return false;
    *ret_id = strtoull(text, &end, 16);
    return *end == 0;
}

bool in_body_tenant(const json_t *root, struct qf_str *ret_tenant)
{
    const json_t *value = json_object_get(root, "tenant");

    if (!json_is_string(value))
        return false;
    *ret_tenant = (struct qf_str){ json_string_value(value), json_string_length(value) };
    return qf_tenant_valid(*ret_tenant);
}

/* --- rounds --- */

static void free_round(struct in_round *round)
{
    for (uint32_t i = 0; i < round->count; i++)
        qf_strbuf_done(&round->parts[i].text);
    if (round->free_ctx)
        round->free_ctx(round->ctx);
    (void)qh_stream_drop(round->stream);
    free(round);
}

void in_round_failed(struct in_round *round, uint32_t partition)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;

    qf_strbuf_printf(&body, "{\"error\":\"unavailable\",\"partition\":%u,\"message\":", partition);
    qf_strbuf_json(&body, qf_str_from(round->parts[partition].err.msg));
    qf_strbuf_puts(&body, "}\n");
    qh_stream_header(round->stream, "Retry-After", "1");
    qh_stream_answer(round->stream, 503, "application/json", qf_strbuf_view(&body));
}

static void finish_round(void *arg)
{
    struct in_round *round = arg;
    uint32_t failed = 0;

    while (failed < round->count && round->parts[failed].err.rc == QF_OK)
        failed++;
    if (failed < round->count)
        in_round_failed(round, failed);
    else
        round->whole(round);
    free_round(round);
}

static void part_ended(struct in_round_part *part, bool on_node)
{
    struct in_round *round = part->round;

    if (atomic_fetch_sub(&round->open, 1) > 1)
        return;
    /* Many files make a long answer: not on the node's thread. */
    if (!on_node || !qf_pool_submit(round->routes->pool, finish_round, round))
        finish_round(round);
}

/* On the node's thread. */
static void answered(void *ctx, struct qn_ask *ask)
{
    struct in_round_part *part = ctx;
    uint32_t partition = (uint32_t)(part - part->round->parts);

    if (ask->verb == QN_WRITE && ask->answer.err.rc == QF_EPROTO)
        (void)qf_err_set(
            &part->err, QF_EUNSUPPORTED,
            "partition %u: its leader is of an older release: run this one on all nodes",
            partition);
    else if (ask->answer.err.rc != QF_OK)
        (void)qf_err_set(&part->err, ask->answer.err.rc, "partition %u: %s", partition,
                         ask->answer.err.msg);
    else
        qf_strbuf_str(&part->text, qf_strbuf_view(&ask->answer.text));
    (void)qn_ask_free(ask);
    part_ended(part, true);
}

/* The last part that is answered may free the round. */
static void ask_partition(struct in_round_part *part, enum qn_verb verb, struct qf_str bytes)
{
    uint32_t partition = (uint32_t)(part - part->round->parts);
    struct qn_ask *of;
    char queue[32];

    (void)snprintf(queue, sizeof(queue), "metrics-%u", partition);
    of = qn_ask_new(verb, qf_str_from(queue));
    of->operates = true;
    of->timeout_ms = STATUS_TIMEOUT_MS;
    of->done = answered;
    of->ctx = part;
    qn_ask_add(of, bytes);
    if (qn_ask(part->round->routes->node, of))
        return;
    (void)qn_ask_free(of);
    (void)qf_err_set(&part->err, QF_EBUSY, "partition %u: too many requests are under way",
                     partition);
    part_ended(part, false);
}

/* What is covered of @partition, if anything. */
static void find_covered(const json_t *covered, uint32_t partition, struct in_status_ask *ask)
{
    size_t count = json_array_size(covered);

    ask->covered_queue = ask->covered_index = 0;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(covered, i);
        uint64_t number, index, queue;

        if (in_body_number(item, "partition", IN_PARTITIONS_MAX, &number) && number == partition &&
            in_body_id(item, "queue", &queue) && in_body_number(item, "index", INT64_MAX, &index)) {
            ask->covered_queue = queue;
            ask->covered_index = index;
        }
    }
}

/* NULL, and answered: there is nobody to ask. */
static struct in_round *make_round(struct qh_visit *visit, void (*whole)(struct in_round *round))
{
    struct in_routes *routes = in_routes_of(visit);
    uint32_t count = qn_partitions(routes->node);
    struct in_round *round;

    if (!count || atomic_load(&routes->draining)) {
        in_body_refuse(visit, QF_EUNAVAILABLE,
                       count ? "this node is stopping: ask another one"
                             : "the partitions are not known here yet");
        return NULL;
    }
    round = qf_xcalloc(1, sizeof(*round) + count * sizeof(round->parts[0]));
    round->routes = routes;
    round->stream = qh_stream_ref(visit->stream);
    round->whole = whole;
    round->count = count;
    atomic_store(&round->open, count);
    for (uint32_t i = 0; i < count; i++)
        round->parts[i].round = round;
    return round;
}

void in_round_begin(struct qh_visit *visit, struct in_status_ask *ask, const json_t *covered,
                    void (*whole)(struct in_round *round), void *ctx, void (*free_ctx)(void *ctx))
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf question = QF_STRBUF_INIT;
    struct in_round *round = make_round(visit, whole);
    uint32_t count = round ? round->count : 0;

    if (!round) {
        if (free_ctx)
            free_ctx(ctx);
        return;
    }
    round->ctx = ctx;
    round->free_ctx = free_ctx;
    for (uint32_t i = 0; i < count; i++) {
        find_covered(covered, i, ask);
        qf_strbuf_reset(&question);
        in_status_ask_encode(&question, ask);
        ask_partition(&round->parts[i], QN_QUESTION, qf_strbuf_view(&question));
    }
}

static void ask_all(struct qh_visit *visit, enum qn_verb verb, struct qf_str bytes,
                    void (*whole)(struct in_round *round))
{
    struct in_round *round = make_round(visit, whole);
    uint32_t count = round ? round->count : 0;

    for (uint32_t i = 0; i < count; i++)
        ask_partition(&round->parts[i], verb, bytes);
}

void in_round_ask(struct qh_visit *visit, struct qf_str question,
                  void (*whole)(struct in_round *round))
{
    ask_all(visit, QN_QUESTION, question, whole);
}

void in_round_write(struct qh_visit *visit, struct qf_str record,
                    void (*whole)(struct in_round *round))
{
    ask_all(visit, QN_WRITE, record, whole);
}
