/* route_heads.c - what queries ask before and while they read what is fresh. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "ingest/fresh/fresh.h"
#include "ingest/head/status.h"
#include "ingest/http/routes_int.h"
#include "promql/parse.h"
#include "queue/peer/peer.h"

#define STATUS_TIMEOUT_MS 10000

/* --- bodies --- */

static void refuse(struct qh_visit *visit, qf_rc rc, const char *what)
{
    struct qf_err err = { 0 };

    (void)qf_err_set(&err, rc, "%s", what);
    in_fail(visit, &err);
}

/* The body as an object, of somebody who may see all tenants; NULL: answered. */
static json_t *read_body(struct qh_visit *visit)
{
    struct qf_str body = visit->request->body;
    json_t *root;

    if (!visit->caller.sees_all) {
        refuse(visit, QF_EDENIED, "heads are read with a key for all tenants");
        return NULL;
    }
    root = json_loadb(body.data ? body.data : "", body.len, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(root))
        return root;
    json_decref(root);
    refuse(visit, QF_EINVAL, "the body is not an object of JSON");
    return NULL;
}

static bool get_int(const json_t *root, const char *name, int64_t *ret_value)
{
    const json_t *value = json_object_get(root, name);

    if (!json_is_integer(value))
        return false;
    *ret_value = json_integer_value(value);
    return true;
}

static bool get_number(const json_t *root, const char *name, int64_t max, uint64_t *ret_value)
{
    int64_t value;

    if (!get_int(root, name, &value) || value < 0 || value > max)
        return false;
    *ret_value = (uint64_t)value;
    return true;
}

/* An id as hex. */
static bool get_id(const json_t *root, const char *name, uint64_t *ret_id)
{
    const char *text = json_string_value(json_object_get(root, name));
    char *end = NULL;

    if (!text || !*text || strlen(text) > 16 || strspn(text, "0123456789abcdef") != strlen(text))
        return false;
    *ret_id = strtoull(text, &end, 16);
    return *end == 0;
}

static bool get_tenant(const json_t *root, struct qf_str *ret_tenant)
{
    const json_t *value = json_object_get(root, "tenant");

    if (!json_is_string(value))
        return false;
    *ret_tenant = (struct qf_str){ json_string_value(value), json_string_length(value) };
    return qf_tenant_valid(*ret_tenant);
}

/* --- status --- */

/* A question to all partitions; the last answer makes the whole. */
struct round {
    struct in_routes *routes;
    struct qh_stream *stream;
    uint32_t count;
    atomic_uint open;
    struct part {
        struct round *round;
        struct qf_strbuf text;
        struct qf_err err;
    } parts[];
};

static void free_round(struct round *round)
{
    for (uint32_t i = 0; i < round->count; i++)
        qf_strbuf_done(&round->parts[i].text);
    (void)qh_stream_drop(round->stream);
    free(round);
}

static void add_replica(struct qf_strbuf *body, const char *base, bool *first)
{
    if (!*base)
        return;
    if (!*first)
        qf_strbuf_putc(body, ',');
    qf_strbuf_json(body, qf_str_from(base));
    *first = false;
}

/* Who leads, as the answer says. */
static struct qf_str leader_of(const struct qf_strbuf *text)
{
    const char *at = strstr(qf_strbuf_cstr(text), "\"leader\":\"");
    const char *end = at ? strchr(at + 10, '"') : NULL;

    return end ? (struct qf_str){ at + 10, (size_t)(end - at) - 10 } : QF_STR("");
}

/* Where heads can be read: followers first, whose threads have less to do. */
static void add_replicas(struct qf_strbuf *body, const struct in_routes *routes,
                         const struct qp_peer_stat *stats, size_t count, struct qf_str leader)
{
    bool first = true;

    qf_strbuf_puts(body, ",\"replicas\":[");
    for (int leads = 0; leads < 2; leads++) {
        if (qf_str_is(leader, routes->name) == leads)
            add_replica(body, routes->http_base, &first);
        for (size_t i = 0; i < count; i++)
            if (stats[i].state == QP_CONNECTED && qf_str_is(leader, stats[i].name) == leads)
                add_replica(body, stats[i].http_base, &first);
    }
    qf_strbuf_puts(body, "]}");
}

static void answer_whole(struct round *round)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct in_routes *routes = round->routes;
    struct qp_peers *peers = atomic_load(&routes->peers);
    struct qp_peer_stat *stats = qf_xcalloc(QP_PEERS_MAX, sizeof(*stats));
    size_t count = peers ? qp_stat(peers, stats) : 0;

    qf_strbuf_printf(&body, "{\"cluster\":\"%016" PRIx64 "\",\"epoch\":1,\"partitions\":[",
                     qn_cluster(routes->node));
    for (uint32_t i = 0; i < round->count; i++) {
        qf_strbuf_puts(&body, i ? "," : "");
        qf_strbuf_str(&body, qf_strbuf_view(&round->parts[i].text));
        add_replicas(&body, routes, stats, count, leader_of(&round->parts[i].text));
    }
    qf_strbuf_puts(&body, "]}\n");
    free(stats);
    qh_stream_answer(round->stream, 200, "application/json", qf_strbuf_view(&body));
}

static void answer_failed(struct round *round, uint32_t partition)
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
    struct round *round = arg;
    uint32_t failed = 0;

    while (failed < round->count && round->parts[failed].err.rc == QF_OK)
        failed++;
    if (failed < round->count)
        answer_failed(round, failed);
    else
        answer_whole(round);
    free_round(round);
}

static void part_ended(struct part *part, bool on_node)
{
    struct round *round = part->round;

    if (atomic_fetch_sub(&round->open, 1) > 1)
        return;
    /* Many files make a long answer: not on the node's thread. */
    if (!on_node || !qf_pool_submit(round->routes->pool, finish_round, round))
        finish_round(round);
}

/* On the node's thread. */
static void answered(void *ctx, struct qn_ask *ask)
{
    struct part *part = ctx;
    uint32_t partition = (uint32_t)(part - part->round->parts);

    if (ask->answer.err.rc != QF_OK)
        (void)qf_err_set(&part->err, ask->answer.err.rc, "partition %u: %s", partition,
                         ask->answer.err.msg);
    else
        qf_strbuf_str(&part->text, qf_strbuf_view(&ask->answer.text));
    (void)qn_ask_free(ask);
    part_ended(part, true);
}

static void ask_partition(struct part *part, uint32_t partition, const struct in_status_ask *ask)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf question = QF_STRBUF_INIT;
    struct qn_ask *of;
    char queue[32];

    (void)snprintf(queue, sizeof(queue), "metrics-%u", partition);
    in_status_ask_encode(&question, ask);
    of = qn_ask_new(QN_QUESTION, qf_str_from(queue));
    of->operates = true;
    of->timeout_ms = STATUS_TIMEOUT_MS;
    of->done = answered;
    of->ctx = part;
    qn_ask_add(of, qf_strbuf_view(&question));
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

        if (get_number(item, "partition", IN_PARTITIONS_MAX, &number) && number == partition &&
            get_id(item, "queue", &queue) && get_number(item, "index", INT64_MAX, &index)) {
            ask->covered_queue = queue;
            ask->covered_index = index;
        }
    }
}

static void ask_all(struct qh_visit *visit, uint32_t count, struct in_status_ask *ask,
                    const json_t *covered)
{
    struct round *round = qf_xcalloc(1, sizeof(*round) + count * sizeof(round->parts[0]));

    round->routes = in_routes_of(visit);
    round->stream = qh_stream_ref(visit->stream);
    round->count = count;
    atomic_store(&round->open, count);
    for (uint32_t i = 0; i < count; i++)
        round->parts[i].round = round;
    for (uint32_t i = 0; i < count; i++) {
        find_covered(covered, i, ask);
        ask_partition(&round->parts[i], i, ask); /* the last one may free the round */
    }
}

static void handle_status(struct qh_visit *visit)
{
    struct in_routes *routes = in_routes_of(visit);
    uint32_t count = qn_partitions(routes->node);
    struct in_status_ask ask = { 0 };
    json_t *root = read_body(visit);
    const json_t *covered = root ? json_object_get(root, "covered") : NULL;

    if (!root)
        return;
    if (!get_tenant(root, &ask.tenant) || !get_int(root, "min_ts", &ask.min_ts) ||
        !get_int(root, "max_ts", &ask.max_ts) || (covered && !json_is_array(covered)) ||
        json_array_size(covered) > IN_PARTITIONS_MAX)
        refuse(visit, QF_EINVAL,
               "expected \"tenant\", \"min_ts\", \"max_ts\" and perhaps \"covered\"");
    else if (atomic_load(&routes->draining))
        refuse(visit, QF_EUNAVAILABLE, "this node is stopping: ask another one");
    else if (!count)
        refuse(visit, QF_EUNAVAILABLE, "the partitions are not known here yet");
    else
        ask_all(visit, count, &ask, covered);
    json_decref(root);
}

/* --- reads --- */

static void send_read(struct in_fresh_read *read, int fd, const struct in_head_answer *answer)
{
    struct qh_stream *stream = read->ctx;
    struct stat status;
    char text[32];

    if (fd < 0) {
        qh_stream_answer(stream, 204, NULL, QF_STR(""));
        return;
    }
    if (fstat(fd, &status) != 0) {
        (void)close(fd);
        qh_stream_abort(stream);
        return;
    }
    (void)snprintf(text, sizeof(text), "%" PRIu64, answer->samples);
    qh_stream_header(stream, "X-Promfabric-Samples", text);
    (void)snprintf(text, sizeof(text), "%" PRIu64, answer->series);
    qh_stream_header(stream, "X-Promfabric-Series", text);
    qh_stream_send(stream, 200, "application/vnd.apache.parquet",
                   &(struct qh_body){ .fd = fd, .length = (uint64_t)status.st_size });
}

/* 410 for what is not here (any more): the query plans again. */
static void fail_read(struct qh_stream *stream, const struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    int status = err->rc == QF_ENOTFOUND ? 410
                 : err->rc == QF_EBUSY   ? 503
                                         : qf_rc_http_status(err->rc);

    qf_strbuf_puts(&body, "{\"error\":");
    qf_strbuf_json(&body, qf_str_from(status == 410 ? "gone" : qf_rc_name(err->rc)));
    qf_strbuf_puts(&body, ",\"message\":");
    qf_strbuf_json(&body, qf_str_from(err->msg));
    qf_strbuf_puts(&body, "}\n");
    if (status == 503)
        qh_stream_header(stream, "Retry-After", "1");
    qh_stream_answer(stream, status, "application/json", qf_strbuf_view(&body));
}

static void read_done(struct in_fresh_read *read, int fd, const struct in_head_answer *answer,
                      const struct qf_err *err)
{
    struct qh_stream *stream = read->ctx;

    if (err->rc == QF_OK)
        send_read(read, fd, answer);
    else
        fail_read(stream, err);
    (void)qh_stream_drop(stream);
    (void)in_fresh_read_free(read);
}

static qf_rc parse_match(const json_t *root, struct in_fresh_read *read, struct qf_err *err)
{
    const json_t *match = json_object_get(root, "match");
    struct qf_str text;

    if (!match)
        return QF_OK; /* all series */
    if (!json_is_string(match))
        return qf_err_set(err, QF_EINVAL, "\"match\" is not a selector");
    text = qf_arena_str(read->arena,
                        (struct qf_str){ json_string_value(match), json_string_length(match) });
    if (!text.data)
        return qf_err_set(err, QF_ELIMIT, "the selector is too long");
    return pq_parse_selector(read->arena, text, NULL, &read->ask.matchers, &read->ask.matcher_count,
                             err);
}

static qf_rc parse_read(const json_t *root, struct in_fresh_read *read, struct qf_err *err)
{
    struct in_head_ask *ask = &read->ask;
    uint64_t partition, shard, shards;

    if (!get_tenant(root, &ask->tenant) ||
        !get_number(root, "partition", IN_PARTITIONS_MAX - 1, &partition) ||
        !get_id(root, "queue", &read->queue_id) ||
        !get_number(root, "generation", INT64_MAX, &ask->generation) ||
        !get_number(root, "cut", INT64_MAX, &ask->cut) ||
        !get_number(root, "shard", UINT32_MAX, &shard) ||
        !get_number(root, "shards", UINT32_MAX, &shards) ||
        !get_int(root, "min_ts", &ask->min_ts) || !get_int(root, "max_ts", &ask->max_ts))
        return qf_err_set(err, QF_EINVAL,
                          "expected \"tenant\", \"partition\", \"queue\", \"generation\", \"cut\", "
                          "\"shard\", \"shards\", \"min_ts\", \"max_ts\" and perhaps \"match\"");
    ask->tenant = qf_arena_str(read->arena, ask->tenant);
    read->partition = (uint32_t)partition;
    ask->shard = (uint32_t)shard;
    ask->shards = (uint32_t)shards;
    return parse_match(root, read, err);
}

static void handle_read(struct qh_visit *visit)
{
    struct in_routes *routes = in_routes_of(visit);
    json_t *root = read_body(visit);
    struct in_fresh_read *read;
    struct qf_err err = { 0 };
    qf_rc rc;

    if (!root)
        return;
    read = in_fresh_read_new();
    rc = parse_read(root, read, &err);
    json_decref(root);
    if (rc == QF_OK) {
        read->done = read_done;
        read->ctx = qh_stream_ref(visit->stream);
        rc = in_fresh_read(routes->fresh, read, &err);
        if (rc != QF_OK)
            (void)qh_stream_drop(read->ctx);
    }
    if (rc == QF_OK)
        return;
    fail_read(visit->stream, &err);
    (void)in_fresh_read_free(read);
}

static const struct qh_route routes[] = {
    { "/v1/heads/status", QH_METHOD_POST, false, handle_status, in_fail },
    { "/v1/heads/read", QH_METHOD_POST, false, handle_read, in_fail },
};
const struct qh_routes in_head_routes = { routes, QF_COUNT_OF(routes) };
