/* route_admin.c - queues as a whole, and who takes part. */
#include <inttypes.h>
#include <stdio.h>

#include "ingest/http/routes_int.h"

static void handle_list(struct qh_visit *visit)
{
    struct qn_ask *ask = in_visit_ask(visit, QN_LIST, QF_STR(""));

    if (ask)
        in_visit_submit(visit, ask);
}

static void handle_show(struct qh_visit *visit)
{
    struct qn_ask *ask = in_visit_ask(visit, QN_SHOW, visit->rest);

    if (ask)
        in_visit_submit(visit, ask);
}

static bool parse_change(struct qf_str text, enum qc_change *ret_change)
{
    static const char *const words[] = {
        [QC_ADD] = "add", [QC_PROMOTE] = "promote", [QC_DEMOTE] = "demote", [QC_REMOVE] = "remove"
    };

    for (size_t i = 0; i < QF_COUNT_OF(words); i++) {
        if (qf_str_is(text, words[i])) {
            *ret_change = (enum qc_change)i;
            return true;
        }
    }
    return false;
}

/* Members are those of the cluster; the queues follow. */
static void handle_members(struct qh_visit *visit)
{
    struct qn_ask *ask = in_visit_ask(visit, QN_CHANGE, QF_STR(QN_META));
    struct qf_err err = { 0 };

    if (!ask || !in_param_text(visit, "name", ask->member, sizeof(ask->member))) {
        (void)qn_ask_free(ask);
        return;
    }
    if (!parse_change(qh_visit_param(visit, "change"), &ask->change) || !ask->member[0]) {
        (void)qf_err_set(&err, QF_EINVAL,
                         "\"change\" (add, promote, demote or remove) and \"name\" of a node are "
                         "needed");
        in_fail(visit, &err);
        (void)qn_ask_free(ask);
        return;
    }
    in_visit_submit(visit, ask);
}

/* Of this node alone: others are taken in by members. */
static void handle_cluster(struct qh_visit *visit)
{
    struct qn_ask *ask = in_visit_ask(visit, QN_FOUND, QF_STR(QN_META));

    if (ask)
        in_visit_submit(visit, ask);
}

static void handle_transfer(struct qh_visit *visit)
{
    struct qn_ask *ask = in_visit_ask(visit, QN_TRANSFER, visit->rest);

    if (ask && in_param_text(visit, "to", ask->member, sizeof(ask->member)))
        in_visit_submit(visit, ask);
    else
        (void)qn_ask_free(ask);
}

static const struct qh_route routes[] = {
    { "/v1/queues", QH_METHOD_GET, false, handle_list, in_fail },
    { "/v1/members", QH_METHOD_POST, false, handle_members, in_fail },
    { "/v1/cluster", QH_METHOD_POST, false, handle_cluster, in_fail },
    { "/v1/queues/*/status", QH_METHOD_GET, false, handle_show, in_fail },
    { "/v1/queues/*/transfer", QH_METHOD_POST, false, handle_transfer, in_fail },
};
const struct qh_routes in_admin_routes = { routes, QF_COUNT_OF(routes) };
