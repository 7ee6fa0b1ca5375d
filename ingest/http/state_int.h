/* state_int.h - requests about state maps on their way through a pool. */
#ifndef INGEST_HTTP_STATE_INT_H
#define INGEST_HTTP_STATE_INT_H

#include "base/pure/tenant.h"
#include "ingest/http/routes_int.h"
#include "ingest/state/state.h"

struct in_state_task;

/* On the pool: answer, or say why not. */
typedef qf_rc in_state_run(struct in_state_task *task, struct qf_err *err);

struct in_state_task {
    in_state_run *run;
    struct in_routes *routes;
    struct in_state *state;
    struct qh_stream *stream;
    char tenant[QF_TENANT_MAX + 1];
    char map[SM_NAME_MAX + 1]; /* "": none, or all */
    struct qf_strbuf body;
    struct qf_strbuf key, prefix, cursor; /* of look-ups, of rows */
    struct sm_filter filter;              /* but for its texts */
    int64_t time;
    uint64_t limit;
    uint64_t version, after;
    char range[128];
    struct sm_definition definition;
    struct in_state_load load;
};

struct in_state_task *in_state_task_new(struct qh_visit *visit, in_state_run *run);
struct in_state_task *in_state_task_free(struct in_state_task *task); /* Returns NULL. */
/* @task is the pool's, or answered and gone. */
void in_state_task_submit(struct qh_visit *visit, struct in_state_task *task, struct qf_pool *pool);
/* False: answered that it is no name. */
bool in_state_map_name(struct qh_visit *visit, struct qf_str name, char out[SM_NAME_MAX + 1]);
/* {"status":"success","data":DATA} */
void in_state_answer(struct in_state_task *task, struct qf_str data);

#endif
