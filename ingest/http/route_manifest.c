/* route_manifest.c - which blobs the partitions have on our own nodes, for those who keep, read and write them
 * (ring/wire/listing.h). */
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "ingest/accept/partition.h"
#include "ingest/core/listing.h"
#include "ingest/http/routes_int.h"
#include "ring/wire/listing.h"

#define TIMEOUT_MS 10000

/* A request whose ask is with the node. */
struct visitor {
    struct qh_stream *stream;
};

static void refuse(struct qh_visit *visit, qf_rc rc, const char *why)
{
    struct qf_err err = { 0 };

    (void)qf_err_set(&err, rc, "%s", why);
    in_fail(visit, &err);
}

/* On the node's thread. */
static void answered(void *ctx, struct qn_ask *ask)
{
    struct visitor *visitor = ctx;

    if (ask->answer.err.rc != QF_OK) {
        in_answer(ask, visitor->stream);
    } else {
        qh_stream_answer(visitor->stream, 200, "application/octet-stream",
                         qf_strbuf_view(&ask->answer.text));
        (void)qn_ask_free(ask);
    }
    (void)qh_stream_drop(visitor->stream);
    free(visitor);
}

static void submit(struct qh_visit *visit, struct qn_ask *ask)
{
    struct visitor *visitor = qf_xcalloc(1, sizeof(*visitor));

    visitor->stream = qh_stream_ref(visit->stream);
    ask->operates = true;
    ask->timeout_ms = TIMEOUT_MS;
    ask->done = answered;
    ask->ctx = visitor;
    if (qn_ask(in_routes_of(visit)->node, ask))
        return;
    refuse(visit, QF_EBUSY, "too many requests are under way: try again");
    (void)qn_ask_free(ask);
    (void)qh_stream_drop(visitor->stream);
    free(visitor);
}

/* False: answered. */
static bool may_ask(struct qh_visit *visit, uint64_t *ret_partition)
{
    struct in_routes *routes = in_routes_of(visit);
    uint32_t count = qn_partitions(routes->node);

    if (!visit->caller.sees_all) {
        refuse(visit, QF_EDENIED, "this is for operators: a key for all tenants");
        return false;
    }
    if (!count || atomic_load(&routes->draining)) {
        refuse(visit, QF_EUNAVAILABLE,
               count ? "this node is stopping: ask another one"
                     : "the partitions are not known here yet");
        return false;
    }
    return in_param_u64(visit, "partition", 0, count - 1, ret_partition);
}

static bool param_queue(struct qh_visit *visit, uint64_t *ret_queue)
{
    char text[20], *end = text;

    if (!in_param_text(visit, "queue", text, 17))
        return false;
    *ret_queue = strtoull(text, &end, 16);
    if (*end == 0)
        return true;
    refuse(visit, QF_EINVAL, "invalid parameter \"queue\": expected the id of a queue");
    return false;
}

static void handle_list(struct qh_visit *visit)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf question = QF_STRBUF_INIT;
    struct in_listing_ask of = { 0 };
    char queue[QN_NAME_SIZE];
    struct qn_ask *ask;
    uint64_t partition;

    if (!may_ask(visit, &partition) || !param_queue(visit, &of.queue) ||
        !in_param_u64(visit, "since", 0, UINT64_MAX / 2, &of.since) ||
        !in_param_u64(visit, "after", 0, UINT64_MAX / 2, &of.after))
        return;
    in_listing_ask_encode(&question, &of);
    qn_partition_name((uint32_t)partition, queue);
    ask = qn_ask_new(QN_QUESTION, qf_str_from(queue));
    qn_ask_add(ask, qf_strbuf_view(&question));
    submit(visit, ask);
}

/* A partition's SEALED come from its leader alone. */
static bool may_note(struct qf_str bytes)
{
    struct rg_note note;
    bool may;

    if (rg_note_decode(bytes, &note) != QF_OK)
        return false;
    may = note.kind != RG_NOTE_SEALED;
    rg_note_done(&note);
    return may;
}

static void handle_note(struct qh_visit *visit)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;
    uint64_t partition;

    if (!may_ask(visit, &partition))
        return;
    if (!may_note(visit->request->body)) {
        refuse(visit, QF_EINVAL, "the body is not a note about a manifest");
        return;
    }
    in_record_put_note(&record, visit->request->body);
    submit(visit, in_partition_ask((uint32_t)partition, qf_strbuf_view(&record)));
}

static void handle_manifest(struct qh_visit *visit)
{
    if (visit->request->method == QH_METHOD_POST)
        handle_note(visit);
    else
        handle_list(visit);
}

static const struct qh_route routes[] = {
    { RG_LISTING_PATH, QH_METHOD_GET | QH_METHOD_POST, false, handle_manifest, in_fail },
};
const struct qh_routes in_manifest_routes = { routes, QF_COUNT_OF(routes) };
