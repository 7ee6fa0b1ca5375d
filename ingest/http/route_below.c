/* route_below.c - up to which generation the segments of a tenant are all there: what a compactor asks before it
 * merges them (segments/compact/agree.h). */
#include <inttypes.h>

#include "base/pure/number.h"
#include "ingest/core/ledger.h"
#include "ingest/http/heads_int.h"

/* What all partitions have settled is what the least of them has. */
static void answer_least(struct in_round *round)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    uint64_t least = UINT64_MAX, settled;

    for (uint32_t i = 0; i < round->count; i++) {
        if (!qf_parse_u64(qf_strbuf_view(&round->parts[i].text), &settled)) {
            (void)qf_err_set(&round->parts[i].err, QF_EUNAVAILABLE,
                             "partition %u: its leader does not understand the question", i);
            in_round_failed(round, i);
            return;
        }
        least = QF_MIN(least, settled);
    }
    qf_strbuf_printf(&body, "{\"cluster\":\"%016" PRIx64 "\",\"generation\":%" PRIu64 "}\n",
                     qn_cluster(round->routes->node), least);
    qh_stream_answer(round->stream, 200, "application/json", qf_strbuf_view(&body));
}

static void handle_below(struct qh_visit *visit)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf record = QF_STRBUF_INIT;
    json_t *root = in_body_read(visit);
    struct qf_str tenant;
    uint64_t generation, keep_ms = UINT64_MAX;

    if (!root)
        return;
    if (!in_body_tenant(root, &tenant) ||
        !in_body_number(root, "generation", (int64_t)IN_GENERATION_MAX, &generation) ||
        (json_object_get(root, "keep_ms") &&
         !in_body_number(root, "keep_ms", INT64_MAX, &keep_ms))) {
        in_body_refuse(visit, QF_EINVAL,
                       "expected \"tenant\", \"generation\" and perhaps \"keep_ms\"");
    } else {
        in_record_put_below(&record, tenant, generation, 0, keep_ms); /* its time is the leader's */
        in_round_write(visit, qf_strbuf_view(&record), answer_least);
    }
    json_decref(root);
}

static const struct qh_route routes[] = {
    { "/v1/below", QH_METHOD_POST, false, handle_below, in_fail },
};
const struct qh_routes in_below_routes = { routes, QF_COUNT_OF(routes) };
