/* route_heads.c - what queries ask before and while they read what is fresh. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pure/alloc.h"
#include "ingest/fresh/fresh.h"
#include "ingest/http/heads_int.h"
#include "promql/parse.h"
#include "queue/peer/peer.h"

/* --- status --- */

static void add_replica(struct qf_strbuf *body, const char *base, bool *first)
{
    if (!*base)
        return;
    if (!*first)
        qf_strbuf_putc(body, ',');
    qf_strbuf_json(body, qf_str_from(base));
    *first = false;
}

/* What the leader's answer @text has between @before and the next @end. Leaders write these before
 * everything that a sender may have a say in. */
static struct qf_str found_in(const struct qf_strbuf *text, const char *before, char end)
{
    const char *at = strstr(qf_strbuf_cstr(text), before), *to;

    if (!at)
        return (struct qf_str){ NULL, 0 };
    at += strlen(before);
    to = strchr(at, end);
    return (struct qf_str){ at, to ? (size_t)(to - at) : 0 };
}

/* Who leads, as the answer says. */
static struct qf_str leader_of(const struct qf_strbuf *text)
{
    return found_in(text, "\"leader\":\"", '"');
}

/* Is node @name in the partition, as its leader says? One of an older version does not say. */
static bool is_member(const struct qf_strbuf *text, const char *name)
{
    struct qf_str rest = found_in(text, "\"members\":[", ']');
    size_t len = strlen(name);

    if (!rest.data)
        return true;
    for (; rest.len >= len + 2; rest = qf_str_sub(rest, 1, rest.len))
        if (rest.data[0] == '"' && rest.data[len + 1] == '"' &&
            memcmp(rest.data + 1, name, len) == 0)
            return true;
    return false;
}

static uint64_t epoch_of(const struct qf_strbuf *text)
{
    struct qf_str number = found_in(text, "\"epoch\":", ',');

    return number.data ? strtoull(number.data, NULL, 10) : 0;
}

/* Has this node applied everything that the answer counts on? */
static bool has_applied(const struct in_routes *routes, uint32_t partition,
                        const struct qf_strbuf *text)
{
    const struct in_head *head = in_heads_get(routes->heads, partition, NULL);
    struct qf_str applied = found_in(text, "\"applied\":", ',');

    return head && applied.data && in_head_applied(head) >= strtoull(applied.data, NULL, 10);
}

static void add_peers(struct qf_strbuf *body, const struct qp_peer_stat *stats, size_t count,
                      const struct qf_strbuf *text, bool leads, bool *first)
{
    struct qf_str leader = leader_of(text);

    for (size_t i = 0; i < count; i++)
        if (stats[i].state == QP_CONNECTED && qf_str_is(leader, stats[i].name) == leads &&
            is_member(text, stats[i].name))
            add_replica(body, stats[i].http_base, first);
}

/* Where heads can be read, best first. Followers have less to do than the leader; but they hear of what is committed with its
 * next message, and one that has not refuses a read: whoever reads asks the next one at once, which costs a round trip. So this node comes first if it follows and has heard; if it has not, the leader, which
 * is sure to have it. */
static void add_replicas(struct qf_strbuf *body, const struct in_routes *routes, uint32_t partition,
                         const struct qp_peer_stat *stats, size_t count,
                         const struct qf_strbuf *text)
{
    bool leads = qf_str_is(leader_of(text), routes->name), first = true;
    bool behind = !leads && !has_applied(routes, partition, text);

    qf_strbuf_puts(body, ",\"replicas\":[");
    if (behind)
        add_peers(body, stats, count, text, true, &first);
    if (!leads)
        add_replica(body, routes->http_base, &first);
    add_peers(body, stats, count, text, false, &first);
    if (leads)
        add_replica(body, routes->http_base, &first);
    else if (!behind)
        add_peers(body, stats, count, text, true, &first);
    qf_strbuf_puts(body, "]}");
}

/* A node that is no member any more hears nothing new, and its heads grow old. */
static bool has_left(struct in_round *round)
{
    for (uint32_t i = 0; i < round->count; i++) {
        if (is_member(&round->parts[i].text, round->routes->name))
            continue;
        (void)qf_err_set(&round->parts[i].err, QF_EUNAVAILABLE,
                         "partition %u: this node is not a member: ask another one", i);
        in_round_failed(round, i);
        return true;
    }
    return false;
}

static void answer_whole(struct in_round *round)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    struct in_routes *routes = round->routes;
    struct qp_peers *peers = atomic_load(&routes->peers);
    struct qp_peer_stat *stats = qf_xcalloc(QP_PEERS_MAX, sizeof(*stats));
    size_t count = peers ? qp_stat(peers, stats) : 0;
    uint64_t epoch = 0;

    if (has_left(round)) {
        free(stats);
        return;
    }
    /* Each partition's index only grows, and so does their sum: with every change of any of them. */
    for (uint32_t i = 0; i < round->count; i++)
        epoch += epoch_of(&round->parts[i].text);
    qf_strbuf_printf(&body,
                     "{\"cluster\":\"%016" PRIx64 "\",\"epoch\":%" PRIu64
                     ",\"query_timeout_ms\":%" PRId64 ",\"partitions\":[",
                     qn_cluster(routes->node), epoch, routes->query_timeout_ms);
    for (uint32_t i = 0; i < round->count; i++) {
        qf_strbuf_puts(&body, i ? "," : "");
        qf_strbuf_str(&body, qf_strbuf_view(&round->parts[i].text));
        add_replicas(&body, routes, i, stats, count, &round->parts[i].text);
    }
    qf_strbuf_puts(&body, "]}\n");
    free(stats);
    qh_stream_answer(round->stream, 200, "application/json", qf_strbuf_view(&body));
}

static void handle_status(struct qh_visit *visit)
{
    struct in_status_ask ask = { 0 };
    json_t *root = in_body_read(visit);
    const json_t *covered = root ? json_object_get(root, "covered") : NULL;

    if (!root)
        return;
    if (!in_body_tenant(root, &ask.tenant) || !in_body_int(root, "min_ts", &ask.min_ts) ||
        !in_body_int(root, "max_ts", &ask.max_ts) || (covered && !json_is_array(covered)) ||
        json_array_size(covered) > IN_PARTITIONS_MAX)
        in_body_refuse(visit, QF_EINVAL,
                       "expected \"tenant\", \"min_ts\", \"max_ts\" and perhaps \"covered\"");
    else
        in_round_begin(visit, &ask, covered, answer_whole, NULL, NULL);
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

    if (!in_body_tenant(root, &ask->tenant) ||
        !in_body_number(root, "partition", IN_PARTITIONS_MAX - 1, &partition) ||
        !in_body_id(root, "queue", &read->queue_id) ||
        !in_body_number(root, "generation", INT64_MAX, &ask->generation) ||
        !in_body_number(root, "cut", INT64_MAX, &ask->cut) ||
        !in_body_number(root, "shard", UINT32_MAX, &shard) ||
        !in_body_number(root, "shards", UINT32_MAX, &shards) ||
        !in_body_int(root, "min_ts", &ask->min_ts) || !in_body_int(root, "max_ts", &ask->max_ts))
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
    json_t *root = in_body_read(visit);
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
