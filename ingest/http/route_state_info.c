/* route_state_info.c - what an API asks before it plans: which maps are info series, and where copies of them are. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pure/alloc.h"
#include "base/sys/clock.h"
#include "ingest/http/heads_int.h"
#include "ingest/http/state_int.h"
#include "queue/peer/peer.h"

/* This node, which has these copies, and the others, which make the same ones if their maps are as far. */
static void add_nodes(struct qf_strbuf *body, const struct in_routes *routes)
{
    struct qp_peers *peers = atomic_load(&routes->peers);
    struct qp_peer_stat *stats = qf_xcalloc(QP_PEERS_MAX, sizeof(*stats));
    size_t count = peers ? qp_stat(peers, stats) : 0;

    qf_strbuf_putc(body, '[');
    if (routes->http_base[0])
        qf_strbuf_json(body, qf_str_from(routes->http_base));
    for (size_t i = 0; i < count; i++) {
        if (stats[i].state != QP_CONNECTED || !stats[i].http_base[0])
            continue;
        if (body->data[body->len - 1] != '[')
            qf_strbuf_putc(body, ',');
        qf_strbuf_json(body, qf_str_from(stats[i].http_base));
    }
    qf_strbuf_putc(body, ']');
    free(stats);
}

static qf_rc run_info(struct in_state_task *task, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf maps = QF_STRBUF_INIT, body = QF_STRBUF_INIT;
    int64_t as_of = in_state_as_of(task->state);
    qf_rc rc;

    if (!as_of)
        return qf_err_set(
            err, QF_EUNAVAILABLE,
            "this node does not know yet which state maps there are: ask another one");
    rc = in_state_info(task->state, qf_str_from(task->tenant), &maps, err);
    if (rc != QF_OK)
        return rc;
    qf_strbuf_printf(&body, "{\"age_ms\":%" PRId64 ",\"nodes\":",
                     QF_MAX(qf_clock_wall_ms() - as_of, INT64_C(0)));
    add_nodes(&body, task->routes);
    qf_strbuf_puts(&body, ",\"maps\":");
    qf_strbuf_str(&body, qf_strbuf_view(&maps));
    qf_strbuf_puts(&body, "}\n");
    qh_stream_answer(task->stream, 200, "application/json", qf_strbuf_view(&body));
    return QF_OK;
}

static void handle_info(struct qh_visit *visit)
{
    json_t *root = in_body_read(visit);
    struct in_state_task *task;
    struct qf_str tenant;

    if (!root)
        return;
    if (!in_body_tenant(root, &tenant)) {
        in_body_refuse(visit, QF_EINVAL, "expected \"tenant\"");
    } else {
        task = in_state_task_new(visit, run_info);
        (void)snprintf(task->tenant, sizeof(task->tenant), "%.*s", QF_STR_ARG(tenant));
        in_state_task_submit(visit, task, task->routes->state_reads);
    }
    json_decref(root);
}

static const struct qh_route routes[] = {
    { "/v1/state/info", QH_METHOD_POST, false, handle_info, in_fail },
};
const struct qh_routes in_state_info_routes = { routes, QF_COUNT_OF(routes) };
