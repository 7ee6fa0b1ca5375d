/* route_ha.c - whose samples are written of a tenant's pairs of senders. */
#include "ingest/http/heads_int.h"

/* A cluster is known in one partition: the lists of all are the list. */
static void answer_elected(struct in_round *round)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf body = QF_STRBUF_INIT;
    bool any = false;

    qf_strbuf_puts(&body, "{\"status\":\"success\",\"data\":[");
    for (uint32_t i = 0; i < round->count; i++) {
        struct qf_str items = qf_strbuf_view(&round->parts[i].text);

        qf_strbuf_str(&body, any ? items : qf_str_sub(items, 1, items.len));
        any |= items.len > 0;
    }
    qf_strbuf_puts(&body, "]}\n");
    qh_stream_answer(round->stream, 200, "application/json", qf_strbuf_view(&body));
}

static void handle_ha(struct qh_visit *visit)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf question = QF_STRBUF_INIT;

    qf_strbuf_putc(&question, IN_QUESTION_ELECTED);
    qf_strbuf_str(&question, visit->tenant);
    in_round_ask(visit, qf_strbuf_view(&question), answer_elected);
}

static const struct qh_route routes[] = {
    { "/api/v1/status/ha", QH_METHOD_GET, false, handle_ha, in_fail },
};
const struct qh_routes in_ha_routes = { routes, QF_COUNT_OF(routes) };
