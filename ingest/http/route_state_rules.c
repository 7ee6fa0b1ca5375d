/* route_state_rules.c - rules by which samples that come in are enriched by state maps. */
#include <stdio.h>
#include <string.h>

#include "ingest/http/state_int.h"
#include "statemap/store/rule_text.h"

static qf_rc answer_rules(struct in_state_task *task, struct qf_err *err)
{
    QF_CLEANUP(qf_strbuf_done) struct qf_strbuf data = QF_STRBUF_INIT;
    qf_rc rc =
        in_state_rules(task->state, qf_str_from(task->tenant), qf_str_from(task->map), &data, err);

    if (rc == QF_OK)
        in_state_answer(task, qf_strbuf_view(&data));
    return rc;
}

static qf_rc run_put(struct in_state_task *task, struct qf_err *err)
{
    struct sm_rule rule;
    qf_rc rc = sm_rule_read(qf_strbuf_view(&task->body), task->map, &rule, err);

    if (rc == QF_OK && strcmp(rule.name, task->map) != 0)
        rc = qf_err_set(err, QF_EINVAL, "the rule is called %s", rule.name);
    if (rc == QF_OK)
        rc = in_state_put_rule(task->state, qf_str_from(task->tenant), &rule, task->version, err);
    return rc == QF_OK ? answer_rules(task, err) : rc;
}

static qf_rc run_drop(struct in_state_task *task, struct qf_err *err)
{
    qf_rc rc = in_state_drop_rule(task->state, qf_str_from(task->tenant), qf_str_from(task->map),
                                  task->version, err);

    if (rc == QF_OK)
        qh_stream_answer(task->stream, 204, NULL, QF_STR(""));
    return rc;
}

static void handle_rules(struct qh_visit *visit)
{
    struct in_state_task *task = in_state_task_new(visit, answer_rules);

    in_state_task_submit(visit, task, task->routes->state_reads);
}

static void handle_rule(struct qh_visit *visit)
{
    struct in_state_task *task;
    struct qf_err err = { 0 };
    char name[SM_NAME_MAX + 1];
    uint64_t version;

    if (!sm_name_fold(visit->rest, name)) {
        (void)qf_err_set(&err, QF_EINVAL,
                         "not the name of a rule: letters, digits and underscores, no digit first, "
                         "at most %d",
                         SM_NAME_MAX);
        in_fail(visit, &err);
        return;
    }
    if (!in_param_u64(visit, "version", SM_EXPECT_ANY, UINT64_MAX / 2, &version))
        return;
    task = in_state_task_new(visit, answer_rules);
    task->version = version;
    memcpy(task->map, name, sizeof(name));
    if (visit->request->method == QH_METHOD_PUT)
        task->run = run_put;
    else if (visit->request->method == QH_METHOD_DELETE)
        task->run = run_drop;
    in_state_task_submit(visit, task,
                         task->run == answer_rules ? task->routes->state_reads
                                                   : task->routes->state_writes);
}

static const struct qh_route routes[] = {
    { "/api/v1/state/rules", QH_GET, false, handle_rules, in_fail },
    { "/api/v1/state/rules/*", QH_GET | QH_METHOD_PUT | QH_METHOD_DELETE, false, handle_rule,
      in_fail },
};
const struct qh_routes in_state_rule_routes = { routes, QF_COUNT_OF(routes) };
